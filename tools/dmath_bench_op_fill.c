/* Fills, moving, and the elementwise calls of <dmath/dmath.h>, for `dmath bench`, beside plain loops. */
#include "dmath_bench_op.h"

#include <math.h>
#include <stdlib.h>

enum { CHOICES = 100 };

#define CALL(name, call)                                                                                       \
    static dm_status call_##name(tool_op *o)                                                                   \
    {                                                                                                          \
        return (call);                                                                                         \
    }
#define PLAIN(name, value)                                                                                     \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        for (int64_t i = 0; i < o->count[o->result]; i++) {                                                    \
            o->want[i] = (value);                                                                              \
        }                                                                                                      \
    }

static dm_status one_vector(tool_op *o)
{
    return tool_op_result(o, 0, o->dtype, 1, &o->n);
}

static dm_status one_matrix(tool_op *o)
{
    return tool_op_result(o, 0, o->dtype, 2, (int64_t[]){o->side, o->side});
}

static dm_status integers(tool_op *o)
{
    return tool_op_result(o, 0, DM_I32, 1, &o->n);
}

CALL(fill, dm_fill(o->s, o->a[0], 2.5))
PLAIN(fill, 2.5)
CALL(identity, dm_fill_identity(o->s, o->a[0], 3))
PLAIN(identity, i / o->side == i % o->side ? 3 : 0)
CALL(arange, dm_fill_arange(o->s, o->a[0], 1, 0.5))
PLAIN(arange, 1 + 0.5 * (double)i)
CALL(uniform, dm_fill_uniform(o->s, o->a[0], 2, 5, 7))
CALL(normal, dm_fill_normal(o->s, o->a[0], 1, 2, 7))
CALL(bernoulli, dm_fill_bernoulli(o->s, o->a[0], 0.25, 7))
CALL(exponential, dm_fill_exponential(o->s, o->a[0], 2, 7))
CALL(dropout, dm_fill_dropout(o->s, o->a[0], 0.25, 7))
CALL(gamma, dm_fill_gamma(o->s, o->a[0], 2, 1.5, 7))
CALL(poisson, dm_fill_poisson(o->s, o->a[0], 4, 7))
CALL(choice, dm_choice(o->s, CHOICES, DM_NO_ARRAY, 1, 7, o->a[0]))
CALL(shuffle, dm_shuffle(o->s, o->a[1], 0, 7, o->a[0]))
CALL(permutation, dm_fill_permutation(o->s, o->a[0], 7))

/* Is the mean within five of its deviations, and every number in range? */
static bool check_random(const tool_op *o, const double *got)
{
    const double *r = o->row->with; /* mean, deviation, least, most */
    double sum = 0, n = (double)o->n;
    bool inside = true;
    for (int64_t i = 0; i < o->n; i++) {
        sum += got[i];
        inside = inside && got[i] >= r[2] && got[i] <= r[3];
    }
    return inside && fabs(sum / n - r[0]) <= 5 * r[1] / sqrt(n);
}

/* Does every number come once? Their sum and the sum of their squares say so, if all are in range. */
static bool check_permutation(const tool_op *o, const double *got)
{
    double sum = 0, squares = 0, n = (double)o->n;
    bool inside = true;
    for (int64_t i = 0; i < o->n; i++) {
        sum += got[i];
        squares += got[i] * got[i] / n;
        inside = inside && got[i] >= 0 && got[i] < n;
    }
    return inside && sum == n * (n - 1) / 2 && fabs(squares - (n - 1) * (2 * n - 1) / 6) <= 1e-9 * n * n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The same numbers in another order. */
static bool check_shuffle(const tool_op *o, const double *got)
{
    double *sorted = malloc((size_t)o->n * sizeof *sorted);
    bool same = sorted != NULL, moved = o->n < 10;
    for (int64_t i = 0; sorted && i < o->n; i++) {
        sorted[i] = got[i];
        moved = moved || got[i] != o->h[1][i];
    }
    if (sorted) {
        qsort(sorted, (size_t)o->n, sizeof *sorted, ascending);
        qsort(o->h[1], (size_t)o->n, sizeof *sorted, ascending);
    }
    for (int64_t i = 0; same && i < o->n; i++) {
        same = sorted[i] == o->h[1][i];
    }
    free(sorted);
    return same && moved;
}

/* --- moving --- */

static dm_status move_vector(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 1, &o->n));
}

static dm_status move_matrix(tool_op *o)
{
    dm_status status = tool_op_matrix(o, 1, o->dtype, -1, 1);
    return TOOL_TRY(status, one_matrix(o));
}

CALL(copy, dm_copy(o->s, o->a[1], o->a[0]))
PLAIN(copy, o->h[1][i])
CALL(transpose, dm_transpose(o->s, o->a[1], o->a[0]))
CALL(permute, dm_permute(o->s, o->a[1], (int[]){1, 0}, o->a[0]))
PLAIN(transpose, o->h[1][i % o->side * o->side + i / o->side])

/* --- elementwise --- */

static dm_status two_vectors(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_vector(o, 2, o->dtype, -1, 1));
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 1, &o->n));
}

static dm_status two_in_place(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    o->result = 0;
    return TOOL_TRY(status, tool_op_vector(o, 0, o->dtype, -1, 1));
}

CALL(axpby, dm_axpby(o->s, 2, o->a[1], -0.5, o->a[0]))
PLAIN(axpby, 2 * o->h[1][i] - 0.5 * o->h[0][i])
CALL(add, dm_add(o->s, 2, o->a[1], -0.5, o->a[2], o->a[0]))
PLAIN(add, 2 * o->h[1][i] - 0.5 * o->h[2][i])
CALL(multiply, dm_multiply(o->s, 2, o->a[1], o->a[2], o->a[0]))
PLAIN(multiply, 2 * o->h[1][i] * o->h[2][i])
CALL(scale, dm_scale(o->s, -3, o->a[1], o->a[0]))
PLAIN(scale, -3 * o->h[1][i])

static dm_status call_map(tool_op *o)
{
    dm_map_arg args[] = {DM_ARG("x", o->a[1]), DM_ARG("y", o->a[2])};
    return dm_map(o->s, "where(x > 0, x * y + 1, y)", 2, args, o->a[0]);
}
PLAIN(map, o->h[1][i] > 0 ? o->h[1][i] * o->h[2][i] + 1 : o->h[2][i])

/* --- with factors that are elements --- */
#define ONE(value) tool_op_element(o, 4, value)
#define TWO(value) tool_op_element(o, 5, value)
CALL(fill_by, dm_fill_by(o->s, o->a[0], ONE(2.5)))
CALL(identity_by, dm_fill_identity_by(o->s, o->a[0], ONE(3)))
CALL(arange_by, dm_fill_arange_by(o->s, o->a[0], ONE(1), TWO(0.5)))
CALL(uniform_by, dm_fill_uniform_by(o->s, o->a[0], ONE(2), TWO(5), 7))
CALL(normal_by, dm_fill_normal_by(o->s, o->a[0], ONE(1), TWO(2), 7))
CALL(bernoulli_by, dm_fill_bernoulli_by(o->s, o->a[0], ONE(0.25), 7))
CALL(exponential_by, dm_fill_exponential_by(o->s, o->a[0], ONE(2), 7))
CALL(dropout_by, dm_fill_dropout_by(o->s, o->a[0], ONE(0.25), 7))
CALL(gamma_by, dm_fill_gamma_by(o->s, o->a[0], ONE(2), TWO(1.5), 7))
CALL(poisson_by, dm_fill_poisson_by(o->s, o->a[0], ONE(4), 7))
CALL(axpby_by, dm_axpby_by(o->s, ONE(2), o->a[1], TWO(-0.5), o->a[0]))
CALL(add_by, dm_add_by(o->s, ONE(2), o->a[1], TWO(-0.5), o->a[2], o->a[0]))
CALL(multiply_by, dm_multiply_by(o->s, ONE(2), o->a[1], o->a[2], o->a[0]))
CALL(scale_by, dm_scale_by(o->s, ONE(-3), o->a[1], o->a[0]))

#define RANDOM(name, ...)                                                                                      \
    {                                                                                                          \
        "fill_" #name, "fill", one_vector, call_##name, NULL, check_random, (const double[])                   \
        {                                                                                                      \
            __VA_ARGS__                                                                                        \
        }                                                                                                      \
    }
const tool_op_row tool_ops_fill[] = {
    {"fill", "fill", one_vector, call_fill, plain_fill, NULL, NULL},
    {"fill_identity", "fill", one_matrix, call_identity, plain_identity, NULL, NULL},
    {"fill_arange", "fill", one_vector, call_arange, plain_arange, NULL, NULL},
    RANDOM(uniform, 3.5, 0.8661, 2, 5),
    RANDOM(normal, 1, 2, -INFINITY, INFINITY),
    RANDOM(bernoulli, 0.25, 0.4331, 0, 1),
    RANDOM(exponential, 2, 2, 0, INFINITY),
    RANDOM(dropout, 1, 0.5774, 0, 1.3334),
    RANDOM(gamma, 3, 2.1214, 0, INFINITY),
    RANDOM(poisson, 4, 2, 0, INFINITY),
    {"choice", "fill", integers, call_choice, NULL, check_random,
     (const double[]){49.5, 28.8661, 0, CHOICES - 1}},
    {"shuffle", "fill", move_vector, call_shuffle, NULL, check_shuffle, NULL},
    {"fill_permutation", "fill", integers, call_permutation, NULL, check_permutation, NULL},
    {"copy", "fill", move_vector, call_copy, plain_copy, NULL, NULL},
    {"transpose", "fill", move_matrix, call_transpose, plain_transpose, NULL, NULL},
    {"permute", "fill", move_matrix, call_permute, plain_transpose, NULL, NULL},
    {"fill_by", "fill", one_vector, call_fill_by, plain_fill, NULL, NULL},
    {"fill_identity_by", "fill", one_matrix, call_identity_by, plain_identity, NULL, NULL},
    {"fill_arange_by", "fill", one_vector, call_arange_by, plain_arange, NULL, NULL},
    RANDOM(uniform_by, 3.5, 0.8661, 2, 5),
    RANDOM(normal_by, 1, 2, -INFINITY, INFINITY),
    RANDOM(bernoulli_by, 0.25, 0.4331, 0, 1),
    RANDOM(exponential_by, 2, 2, 0, INFINITY),
    RANDOM(dropout_by, 1, 0.5774, 0, 1.3334),
    RANDOM(gamma_by, 3, 2.1214, 0, INFINITY),
    RANDOM(poisson_by, 4, 2, 0, INFINITY),
    {"axpby_by", "elementwise", two_in_place, call_axpby_by, plain_axpby, NULL, NULL},
    {"add_by", "elementwise", two_vectors, call_add_by, plain_add, NULL, NULL},
    {"multiply_by", "elementwise", two_vectors, call_multiply_by, plain_multiply, NULL, NULL},
    {"scale_by", "elementwise", move_vector, call_scale_by, plain_scale, NULL, NULL},
    {"axpby", "elementwise", two_in_place, call_axpby, plain_axpby, NULL, NULL},
    {"add", "elementwise", two_vectors, call_add, plain_add, NULL, NULL},
    {"multiply", "elementwise", two_vectors, call_multiply, plain_multiply, NULL, NULL},
    {"scale", "elementwise", move_vector, call_scale, plain_scale, NULL, NULL},
    {"map", "elementwise", two_vectors, call_map, plain_map, NULL, NULL},
    {0},
};
