/* out = the reduction of x over dims, against loops in long double */
#include "kernels/reduce/reduction.h"
#include "support/reduced.h"

#include <math.h>
#include <string.h>

/* What a row of reductions makes of n elements. */
typedef struct answer {
    long double value, bound;
    bool whole; /* an integer: it is converted as integers are */
} answer;

static long double sum_of(const long double *v, int64_t n, long double (*f)(long double))
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += f ? f(v[i]) : v[i];
    }
    return sum;
}

static long double largest(const long double *v, int64_t n)
{
    long double most = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fabsl(v[i]) > most || isnan(v[i]) ? fabsl(v[i]) : most;
    }
    return most;
}

static bool whole_type(dm_dtype dtype)
{
    return !dmt_is_float(dtype);
}

static answer product(dm_dtype dtype, const long double *v, int64_t n)
{
    uint64_t bits = 1;
    long double value = 1;
    for (int64_t i = 0; i < n; i++) {
        bits *= whole_type(dtype) ? dmt_wrapped(v[i]) : 1;
        value *= v[i];
    }
    return whole_type(dtype) ? (answer){dtype == DM_U64 ? (long double)bits : (long double)(int64_t)bits, 0, true}
                             : (answer){value, 0, false};
}

/* Where the first element is that is ahead of all others. */
static int64_t place_of(const long double *v, int64_t n, int sign)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        bool ahead = isnan(v[i]) ? !isnan(v[best]) : sign * v[i] > sign * v[best];
        best = ahead ? i : best;
    }
    return best;
}

static answer minimum(dm_dtype dtype, const long double *v, int64_t n)
{
    return (answer){v[place_of(v, n, -1)], 0, whole_type(dtype)};
}

static answer maximum(dm_dtype dtype, const long double *v, int64_t n)
{
    return (answer){v[place_of(v, n, 1)], 0, whole_type(dtype)};
}

static answer first_minimum(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (answer){(long double)place_of(v, n, -1), 0, true};
}

static answer first_maximum(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (answer){(long double)place_of(v, n, 1), 0, true};
}

static answer nonzero(dm_dtype dtype, const long double *v, int64_t n)
{
    int64_t count = 0;
    (void)dtype;
    for (int64_t i = 0; i < n; i++) {
        count += v[i] != 0;
    }
    return (answer){(long double)count, 0, true};
}

static answer some(dm_dtype dtype, const long double *v, int64_t n)
{
    return (answer){nonzero(dtype, v, n).value > 0, 0, true};
}

static answer every(dm_dtype dtype, const long double *v, int64_t n)
{
    return (answer){nonzero(dtype, v, n).value == (long double)n, 0, true};
}

static answer average(dm_dtype dtype, const long double *v, int64_t n)
{
    long double eps = dmt_eps(DM_F64), value = sum_of(v, n, NULL) / (long double)n;
    (void)dtype;
    return (answer){value, (eps * largest(v, n) + dmt_tiny(DM_F64)) * 4 * (long double)(n + 1), false};
}

static answer log_sum(dm_dtype dtype, const long double *v, int64_t n)
{
    long double top = n > 0 ? maximum(dtype, v, n).value : -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i] == top ? 1 : expl(v[i] - top);
    }
    long double value = top + logl(sum);
    return (answer){value, 8 * dmt_eps(DM_F64) * (fabsl(top) + (long double)n + 1), false};
}

static answer norm_1(dm_dtype dtype, const long double *v, int64_t n)
{
    long double value = sum_of(v, n, fabsl);
    (void)dtype;
    return (answer){value, dmt_eps(DM_F64) * (long double)n * value, false};
}

static long double squared(long double v)
{
    return v * v;
}

static answer norm_2(dm_dtype dtype, const long double *v, int64_t n)
{
    long double value = sqrtl(sum_of(v, n, squared));
    (void)dtype;
    return (answer){value, dmt_eps(DM_F64) * (long double)(n + 2) * value, false};
}

static answer norm_inf(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (answer){largest(v, n), 0, false};
}

static double correction;

static answer variance(dm_dtype dtype, const long double *v, int64_t n)
{
    long double mean = sum_of(v, n, NULL) / (long double)n, sum = 0, left = (long double)n - correction;
    (void)dtype;
    for (int64_t i = 0; i < n; i++) {
        sum += (v[i] - mean) * (v[i] - mean);
    }
    left = left > 0 ? left : 0;
    return (answer){sum / left, 8 * dmt_eps(DM_F64) * (long double)(n + 1) * squared(largest(v, n)) * (long double)n / left,
                    false};
}

static answer deviation(dm_dtype dtype, const long double *v, int64_t n)
{
    answer a = variance(dtype, v, n);
    long double value = sqrtl(a.value);
    return (answer){value, value > sqrtl(a.bound) ? a.bound / value : sqrtl(a.bound), false};
}

static dm_status call_var(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_var(s, x, dims, ndims, correction, out);
}

static dm_status call_std(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_std(s, x, dims, ndims, correction, out);
}

static dm_status call_norm_1(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 1, dims, ndims, out);
}

static dm_status call_norm_2(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 2, dims, ndims, out);
}

static dm_status call_norm_inf(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, (double)INFINITY, dims, ndims, out);
}

enum { NEEDS_ELEMENTS = 1, INEXACT = 2, POWERS = 4 };
static const struct row {
    const char *name;
    dm_status (*call)(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);
    answer (*value)(dm_dtype dtype, const long double *v, int64_t n);
    int flags;
} rows[] = {
    {"prod", dm_prod, product, POWERS},
    {"min", dm_min, minimum, NEEDS_ELEMENTS},
    {"max", dm_max, maximum, NEEDS_ELEMENTS},
    {"any", dm_any, some, 0},
    {"all", dm_all, every, 0},
    {"count_nonzero", dm_count_nonzero, nonzero, 0},
    {"argmin", dm_argmin, first_minimum, NEEDS_ELEMENTS},
    {"argmax", dm_argmax, first_maximum, NEEDS_ELEMENTS},
    {"mean", dm_mean, average, INEXACT},
    {"logsumexp", dm_logsumexp, log_sum, INEXACT},
    {"var", call_var, variance, INEXACT},
    {"std", call_std, deviation, INEXACT},
    {"norm_1", call_norm_1, norm_1, INEXACT},
    {"norm_2", call_norm_2, norm_2, INEXACT},
    {"norm_inf", call_norm_inf, norm_inf, INEXACT},
};

/* Numbers whose product is exact and stays small; now and then one is 0, or not a number. */
static void set_powers(dmt_case *c, dmt_host *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        bool odd = dmt_is_float(h->dtype) && dmt_chance(&c->random, 2);
        h->v[i] = dmt_chance(&c->random, 80) ? 1 : odd ? (dmt_chance(&c->random, 50) ? NAN : 0) : i % 2 == 0 ? 2 : 1;
        h->v[i] *= dmt_is_float(h->dtype) && dmt_chance(&c->random, 50) ? -1 : 1;
        h->v[i] = h->dtype == DM_BOOL ? i % 7 > 0 : dmt_is_float(h->dtype) && i > 400 ? 1 : h->v[i];
    }
}

static void set_elements(dmt_case *c, const struct row *row, dmt_host *x)
{
    if (row->flags & POWERS) {
        set_powers(c, x);
        return;
    }
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 25) ? DMT_ODD : dmt_chance(&c->random, 40) ? DMT_SMALL : DMT_SMOOTH);
    for (int64_t i = 0; i < x->count && dmt_is_float(x->dtype) && row->flags & INEXACT; i++) {
        x->v[i] = isinf(x->v[i]) && dmt_chance(&c->random, 90) ? 0 : x->v[i];
    }
}

static void reduce_case(dmt_case *c)
{
    const struct row *row = &rows[dmt_int(&c->random, 0, (int64_t)(sizeof rows / sizeof rows[0]) - 1)];
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 50) ? from : dmt_dtype_random(c);
    to = row->flags & INEXACT && !dmt_is_float(to) ? dmt_float_random(c) : to;
    dmt_dims dims;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    set_elements(c, row, x);
    dmt_dims_random(c, x, &dims);
    correction = (double)dmt_int(&c->random, 0, 1);
    dmt_host *want = dmt_reduced_make(c, x, &dims, to), *bound = dmt_host_copy(&c->scratch, want);
    bool empty = false;
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        empty = empty || n == 0;
        if (n == 0 && row->flags & NEEDS_ELEMENTS) {
            continue;
        }
        answer a = row->value(from, v, n);
        want->v[i] = a.whole && !dmt_is_float(to) ? dmt_from_whole(to, (int64_t)dmt_wrapped(a.value)) : a.value;
        bound->v[i] = isfinite(a.value) ? a.bound : 0;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say_dims(c, &dims);
    dmt_say(c, ", %s", row->name);
    dm_status status = row->call(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array);
    if (empty && row->flags & NEEDS_ELEMENTS) {
        dmt_status_is(c, status, DM_ERR_SHAPE, row->name);
        return;
    }
    dmt_status_is(c, status, DM_OK, row->name);
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, in);
}

static void test_reduce(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "reduce", .cases = 6000, .fn = reduce_case});
}

/* Of equal elements the first counts, wherever it is. */
static void tie_case(dmt_case *c)
{
    int64_t shape[2] = {dmt_int(&c->random, 1, 60), dmt_int(&c->random, 1, 60)};
    dmt_host *x = dmt_host_make(&c->scratch, DM_I32, 2, shape);
    dmt_dims dims;
    for (int64_t i = 0; i < x->count; i++) {
        x->v[i] = (long double)dmt_int(&c->random, 0, 2);
    }
    dmt_dims_random(c, x, &dims);
    dmt_host *want = dmt_reduced_make(c, x, &dims, DM_I64), *bound = dmt_host_copy(&c->scratch, want);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        want->v[i] = first_maximum(DM_I32, v, n).value;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    DMT_OK(c, dm_argmax(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array));
    dmt_operand_check(c, out, want, bound);
}

static void test_ties(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "reduce_ties", .cases = 400, .fn = tie_case});
}

/* Every row of reduce.def has its loop here. */
static void test_table(void **state)
{
    (void)state;
    for (int i = DMI_REDUCTION_sum + 1; i < DMI_REDUCTIONS; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            known = known || strcmp(rows[k].name, dmi_reductions[i].name) == 0;
        }
        if (!known) {
            fail_msg("reduce.def has a row %s, whose values no test knows", dmi_reductions[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_reduce),
                                       cmocka_unit_test(test_ties)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
