/* Reductions for `dmath bench`: over all elements of a vector, beside plain loops. */
#include "dmath_bench_op.h"

#include <math.h>

typedef struct reduction {
    dm_status (*call)(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out);
    double (*plain)(const double *x, int64_t n);
    dm_dtype result; /* 0: of the elements */
    double lo, hi;
    double start; /* of an accumulating one: what the result has */
} reduction;

#define LOOP(name, start, step, result)                                                                        \
    static double plain_##name(const double *x, int64_t n)                                                     \
    {                                                                                                          \
        double v = (start);                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            step;                                                                                              \
        }                                                                                                      \
        return (result);                                                                                       \
    }
LOOP(prod, 1, v *= x[i], v)
LOOP(min, x[0], v = fmin(v, x[i]), v)
LOOP(max, x[0], v = fmax(v, x[i]), v)
LOOP(any, 0, v = v != 0 || x[i] != 0, v)
LOOP(all, 1, v = v != 0 && x[i] != 0, v)
LOOP(count_nonzero, 0, v += x[i] != 0, v)
LOOP(argmin, 0, v = x[i] < x[(int64_t)v] ? (double)i : v, v)
LOOP(argmax, 0, v = x[i] > x[(int64_t)v] ? (double)i : v, v)
LOOP(sum, 0, v += x[i], v)
LOOP(mean, 0, v += x[i], v / (double)n)
LOOP(logsumexp, 0, v += exp(x[i]), log(v))
LOOP(norm_1, 0, v += fabs(x[i]), v)
LOOP(norm_2, 0, v += x[i] * x[i], sqrt(v))
LOOP(norm_inf, 0, v = fmax(v, fabs(x[i])), v)
#undef LOOP

static double plain_var(const double *x, int64_t n)
{
    double mean = plain_mean(x, n), v = 0;
    for (int64_t i = 0; i < n; i++) {
        v += (x[i] - mean) * (x[i] - mean);
    }
    return v / (double)n;
}

static double plain_std(const double *x, int64_t n)
{
    return sqrt(plain_var(x, n));
}

static dm_status sum(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_sum(s, x, dims, ndims, 1, 0, out);
}

static dm_status var(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_var(s, x, dims, ndims, 0, out);
}

static dm_status deviation(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_std(s, x, dims, ndims, 0, out);
}

static dm_status norm_1(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 1, dims, ndims, out);
}

static dm_status norm_2(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 2, dims, ndims, out);
}

static dm_status norm_inf(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, INFINITY, dims, ndims, out);
}

static dm_status prepare(tool_op *o)
{
    const reduction *r = o->row->with;
    dm_status status = tool_op_vector(o, 0, o->dtype, r->lo, r->hi);
    return TOOL_TRY(status, tool_op_result(o, 1, r->result ? r->result : o->dtype, 0, NULL));
}

static dm_status call(tool_op *o)
{
    const reduction *r = o->row->with;
    return r->call(o->s, o->a[0], NULL, 0, o->a[1]);
}

static void plain(tool_op *o)
{
    const reduction *r = o->row->with;
    o->want[0] = r->plain(o->h[0], o->n);
}

static dm_status sum_dim(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    (void)dims, (void)ndims;
    return dm_sum_dim(s, x, 0, out);
}

/* An accumulating reduction goes on from what the first call left, the same value again but for products and
 * counts, whose type holds what repeated calls make. */
static dm_status prepare_accumulate(tool_op *o)
{
    const reduction *r = o->row->with;
    dm_status status = prepare(o);
    if (status == DM_OK && r->start != 0) {
        status = dm_fill(o->s, o->a[1], r->start);
    }
    return status;
}

/* With elements: slots 4 and 5. */
static dm_status call_sum_by(tool_op *o)
{
    return dm_sum_by(o->s, o->a[0], NULL, 0, tool_op_element(o, 4, 1), tool_op_element(o, 5, 0), o->a[1]);
}

/* A softmax has as many results as elements. */
static dm_status prepare_softmax(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 1, &o->n));
}

static dm_status call_softmax(tool_op *o)
{
    return dm_softmax(o->s, o->a[0], NULL, 0, o->a[1]);
}

static void plain_softmax(tool_op *o)
{
    double sum = exp(plain_logsumexp(o->h[0], o->n));
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = exp(o->h[0][i]) / sum;
    }
}

#define ACCUMULATE(name, result, lo, hi, start)                                                                \
    {                                                                                                          \
        "accumulate_" #name, "reduction", prepare_accumulate, call, plain, NULL, &(const reduction)            \
        {                                                                                                      \
            dm_accumulate_##name, plain_##name, result, lo, hi, start                                          \
        }                                                                                                      \
    }
#define ROW(name, function, result, lo, hi)                                                                    \
    {                                                                                                          \
#name, "reduction", prepare, call, plain, NULL, &(const reduction)                                     \
        {                                                                                                      \
            function, plain_##name, result, lo, hi, 0                                                          \
        }                                                                                                      \
    }
const tool_op_row tool_ops_reduce[] = {
    ROW(sum, sum, 0, -1, 1),
    {"sum_by", "reduction", prepare, call_sum_by, plain, NULL,
     &(const reduction){NULL, plain_sum, 0, -1, 1, 0}},
    {"sum_dim", "reduction", prepare, call, plain, NULL, &(const reduction){sum_dim, plain_sum, 0, -1, 1, 0}},
    ROW(prod, dm_prod, 0, 0.9999, 1.0001),
    ROW(min, dm_min, 0, -1, 1),
    ROW(max, dm_max, 0, -1, 1),
    ROW(any, dm_any, DM_BOOL, -1, 1),
    ROW(all, dm_all, DM_BOOL, 0.1, 1),
    ROW(count_nonzero, dm_count_nonzero, DM_I64, -1, 1),
    ROW(argmin, dm_argmin, DM_I64, -1, 1),
    ROW(argmax, dm_argmax, DM_I64, -1, 1),
    ROW(mean, dm_mean, 0, 0, 1),
    ROW(logsumexp, dm_logsumexp, 0, -1, 1),
    ROW(var, var, 0, -1, 1),
    ROW(std, deviation, 0, -1, 1),
    ROW(norm_1, norm_1, 0, -1, 1),
    ROW(norm_2, norm_2, 0, -1, 1),
    ROW(norm_inf, norm_inf, 0, -1, 1),
    ACCUMULATE(prod, DM_F64, 0.9999, 1.0001, 1),
    ACCUMULATE(min, 0, -1, 1, 1),
    ACCUMULATE(max, 0, -1, 1, -1),
    ACCUMULATE(any, DM_BOOL, -1, 1, 0),
    ACCUMULATE(all, DM_BOOL, 0.1, 1, 1),
    ACCUMULATE(count_nonzero, DM_I64, -1, 1, 0),
    {"softmax", "reduction", prepare_softmax, call_softmax, plain_softmax, NULL, NULL},
    {0},
};
