/* Scans, sorting, searching and counting for `dmath bench`, beside plain loops. */
#include "dmath_bench_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 64, TOP = 16 };

/* --- scans --- */

typedef struct scan {
    dm_status (*call)(dm_session *s, dm_array x, int dim, dm_array out);
    double (*take)(double so_far, double x);
    double lo, hi;
} scan;

static double add(double v, double x)
{
    return v + x;
}

static double multiply(double v, double x)
{
    return v * x;
}

static double log_add(double v, double x)
{
    return fmax(v, x) + log1p(exp(-fabs(v - x)));
}

static dm_status prepare_scan(tool_op *o)
{
    const scan *f = o->row->with;
    dm_status status = tool_op_vector(o, 0, o->dtype, f->lo, f->hi);
    return TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 1, &o->n));
}

static dm_status call_scan(tool_op *o)
{
    const scan *f = o->row->with;
    return f->call(o->s, o->a[0], 0, o->a[1]);
}

static void plain_scan(tool_op *o)
{
    const scan *f = o->row->with;
    o->want[0] = o->h[0][0];
    for (int64_t i = 1; i < o->n; i++) {
        o->want[i] = f->take(o->want[i - 1], o->h[0][i]);
    }
}

/* --- sorting --- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static dm_status prepare_sort(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 1, &o->n));
}

static void plain_sort(tool_op *o)
{
    memcpy(o->want, o->h[0], (size_t)o->n * sizeof(double));
    qsort(o->want, (size_t)o->n, sizeof(double), ascending);
}

static dm_status call_sort(tool_op *o)
{
    return dm_sort(o->s, o->a[0], 0, 0, o->a[1]);
}

static dm_status prepare_argsort(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 1, DM_I64, 1, &o->n));
}

static dm_status call_argsort(tool_op *o)
{
    return dm_argsort(o->s, o->a[0], 0, 0, o->a[1]);
}

/* Indices in an order that ascends; equal elements in their own. */
static bool check_argsort(const tool_op *o, const double *got)
{
    for (int64_t i = 0; i < o->n; i++) {
        int64_t at = (int64_t)got[i], before = i > 0 ? (int64_t)got[i - 1] : at;
        if (at < 0 || at >= o->n) {
            return false;
        }
        double x = o->h[0][before], y = o->h[0][at];
        if (x > y || (i > 0 && x == y && before >= at)) {
            return false;
        }
    }
    return true;
}

static dm_status prepare_topk(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 1, (int64_t[]){DMI_MIN(o->n, TOP)}));
}

static dm_status call_topk(tool_op *o)
{
    return dm_topk(o->s, o->a[0], 0, 1, o->a[1], DM_NO_ARRAY);
}

static void plain_topk(tool_op *o)
{
    qsort(o->h[0], (size_t)o->n, sizeof(double), ascending);
    for (int64_t i = 0; i < o->count[1]; i++) {
        o->want[i] = o->h[0][o->n - 1 - i];
    }
}

/* --- searching and counting --- */

/* Ascending numbers 0, 1, ... in a slot. */
static dm_status ascend(tool_op *o, int slot, int64_t n, double step)
{
    dm_status status = tool_op_fill(o, slot, o->dtype, 1, &n, 0, 1);
    status = TOOL_TRY(status, dm_fill_arange(o->s, o->a[slot], 0, step));
    return TOOL_TRY(status, dm_array_read_as(o->s, o->a[slot], NULL, NULL, DM_F64, o->h[slot], 0));
}

static dm_status prepare_search(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, 0, BINS);
    status = TOOL_TRY(status, ascend(o, 2, BINS, 1));
    return TOOL_TRY(status, tool_op_result(o, 1, DM_I64, 1, &o->n));
}

static dm_status call_search(tool_op *o)
{
    return dm_searchsorted(o->s, o->a[2], o->a[0], 0, o->a[1]);
}

static void plain_search(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        while (o->want[i] < BINS && o->h[2][(int64_t)o->want[i]] < o->h[0][i]) {
            o->want[i]++;
        }
    }
}

static dm_status prepare_histogram(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, 0, 1);
    status = TOOL_TRY(status, ascend(o, 2, BINS + 1, 1.0 / BINS));
    return TOOL_TRY(status, tool_op_result(o, 1, DM_I64, 1, (int64_t[]){BINS}));
}

static dm_status call_histogram(tool_op *o)
{
    return dm_histogram(o->s, o->a[0], 0, 1, DM_NO_ARRAY, o->a[1]);
}

static dm_status call_histogram_edges(tool_op *o)
{
    return dm_histogram_edges(o->s, o->a[0], o->a[2], DM_NO_ARRAY, o->a[1]);
}

/* The edges are powers of two apart, so exact. */
static void plain_histogram(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        o->want[DMI_MIN((int64_t)(o->h[0][i] * BINS), BINS - 1)]++;
    }
}

static dm_status prepare_bincount(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, DM_I32, 0, BINS);
    return TOOL_TRY(status, tool_op_result(o, 1, DM_I64, 1, (int64_t[]){BINS}));
}

static dm_status call_bincount(tool_op *o)
{
    return dm_bincount(o->s, o->a[0], DM_NO_ARRAY, o->a[1]);
}

static void plain_bincount(tool_op *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        o->want[(int64_t)o->h[0][i]]++;
    }
}

/* --- quantiles, distinct elements --- */

static dm_status prepare_quantile(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 1, (int64_t[]){1}));
}

static dm_status call_quantile(tool_op *o)
{
    return dm_quantile(o->s, o->a[0], (double[]){0.25}, 1, 0, o->a[1]);
}

static dm_status call_median(tool_op *o)
{
    return dm_median(o->s, o->a[0], 0, o->a[1]);
}

static void plain_quantile(tool_op *o)
{
    double q = strcmp(o->row->name, "median") == 0 ? 0.5 : 0.25, at = q * (double)(o->n - 1);
    int64_t below = (int64_t)at, above = DMI_MIN(below + 1, o->n - 1);
    qsort(o->h[0], (size_t)o->n, sizeof(double), ascending);
    o->want[0] = o->h[0][below] + (at - (double)below) * (o->h[0][above] - o->h[0][below]);
}

static dm_status prepare_unique(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, DM_I32, 0, BINS);
    return TOOL_TRY(status, tool_op_result(o, 1, DM_I64, 1, (int64_t[]){1}));
}

/* Slot 1 becomes the counts of the distinct elements; those themselves go. */
static dm_status call_unique(tool_op *o)
{
    dm_array values, counts;
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_destroy(o->s, o->a[1]);
    o->a[1] = DM_NO_ARRAY;
    status = TOOL_TRY(status, dm_unique(o->s, o->a[0], &values, &counts, NULL));
    if (status == DM_OK) {
        o->a[1] = counts;
        status = dm_array_destroy(o->s, values);
    }
    status = TOOL_TRY(status, dm_array_query(o->s, o->a[1], &info));
    o->count[1] = status == DM_OK ? info.shape[0] : 0;
    return status;
}

static void plain_unique(tool_op *o)
{
    double count[BINS] = {0};
    int64_t at = 0;
    for (int64_t i = 0; i < o->n; i++) {
        count[(int64_t)o->h[0][i]]++;
    }
    for (int i = 0; i < BINS && at < o->count[1]; i++) {
        if (count[i] > 0) {
            o->want[at++] = count[i];
        }
    }
}

static dm_status prepare_isin(tool_op *o)
{
    dm_status status = tool_op_vector(o, 0, DM_I32, 0, 2 * BINS);
    status = TOOL_TRY(status, tool_op_fill(o, 2, DM_I32, 1, (int64_t[]){BINS}, 0, 2 * BINS));
    return TOOL_TRY(status, tool_op_result(o, 1, DM_BOOL, 1, &o->n));
}

static dm_status call_isin(tool_op *o)
{
    return dm_isin(o->s, o->a[0], o->a[2], 0, o->a[1]);
}

static void plain_isin(tool_op *o)
{
    bool there[2 * BINS] = {false};
    for (int i = 0; i < BINS; i++) {
        there[(int)o->h[2][i]] = true;
    }
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = there[(int)o->h[0][i]];
    }
}

#define SCAN(name, take, lo, hi)                                                                               \
    {                                                                                                          \
#name, "order", prepare_scan, call_scan, plain_scan, NULL, &(const scan)                               \
        {                                                                                                      \
            dm_##name, take, lo, hi                                                                            \
        }                                                                                                      \
    }
const tool_op_row tool_ops_order[] = {
    SCAN(cumulative_sum, add, 0, 1),
    SCAN(cumulative_prod, multiply, 0.9999, 1.0001),
    SCAN(cumulative_max, fmax, -1, 1),
    SCAN(cumulative_min, fmin, -1, 1),
    SCAN(cumulative_logsumexp, log_add, -1, 1),
    {"sort", "order", prepare_sort, call_sort, plain_sort, NULL, NULL},
    {"argsort", "order", prepare_argsort, call_argsort, NULL, check_argsort, NULL},
    {"topk", "order", prepare_topk, call_topk, plain_topk, NULL, NULL},
    {"searchsorted", "order", prepare_search, call_search, plain_search, NULL, NULL},
    {"histogram", "order", prepare_histogram, call_histogram, plain_histogram, NULL, NULL},
    {"histogram_edges", "order", prepare_histogram, call_histogram_edges, plain_histogram, NULL, NULL},
    {"bincount", "order", prepare_bincount, call_bincount, plain_bincount, NULL, NULL},
    {"isin", "order", prepare_isin, call_isin, plain_isin, NULL, NULL},
    {"quantile", "order", prepare_quantile, call_quantile, plain_quantile, NULL, NULL},
    {"median", "order", prepare_quantile, call_median, plain_quantile, NULL, NULL},
    {"unique", "order", prepare_unique, call_unique, plain_unique, NULL, NULL},
    {0},
};
