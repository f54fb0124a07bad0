/* Sorting along a dim, and the first of each row, against insertion sorts of indices */
#include "support/cases.h"

#include <math.h>
#include <string.h>

/* Is a before b? NaN is the largest. */
static bool before(long double a, long double b, bool descending)
{
    if (descending) {
        return isnan(a) ? !isnan(b) : a > b;
    }
    return isnan(b) ? !isnan(a) : a < b;
}

/* The order of a row: order[0 .. n-1]. Merging, so that rows may be long. */
static void order_row(const long double *v, int64_t n, bool descending, int64_t *order, int64_t *other)
{
    if (n < 2) {
        return;
    }
    int64_t half = n / 2, i = 0, j = half, k = 0;
    order_row(v, half, descending, order, other);
    order_row(v, n - half, descending, order + half, other);
    memcpy(other, order, (size_t)n * sizeof *order);
    while (k < n) {
        bool second = i == half || (j < n && before(v[other[j]], v[other[i]], descending));
        order[k++] = second ? other[j++] : other[i++];
    }
}

typedef struct rows {
    dmt_host *values, *indices; /* the first `most` of each row */
} rows;

static rows expect(dmt_case *c, const dmt_host *x, int dim, bool descending, int64_t most, dm_dtype dtype,
                   dm_dtype index_dtype)
{
    int64_t shape[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0}, n = x->shape[dim];
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = most;
    rows r = {dmt_host_make(&c->scratch, dtype, x->ndim, shape),
              dmt_host_make(&c->scratch, index_dtype, x->ndim, shape)};
    long double *v = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *v);
    int64_t *order = dmt_alloc(&c->scratch, (n + 1) * 8), *other = dmt_alloc(&c->scratch, (n + 1) * 8);
    for (int64_t i = 0; i < x->count; i++, dmt_next(x->ndim, x->shape, index)) {
        int64_t at[DM_MAX_DIMS];
        if (index[dim] != 0) {
            continue;
        }
        memcpy(at, index, sizeof at);
        for (int64_t k = 0; k < n; k++) {
            at[dim] = k;
            v[k] = x->v[dmt_linear(x->ndim, x->shape, at)];
            order[k] = k;
        }
        order_row(v, n, descending, order, other);
        for (int64_t k = 0; k < most; k++) {
            at[dim] = k;
            int64_t to = dmt_linear(x->ndim, shape, at);
            r.values->v[to] = dmt_convert(x->dtype, dtype, v[order[k]]);
            r.indices->v[to] = dmt_from_whole(index_dtype, order[k]);
        }
    }
    return r;
}

static void set_elements(dmt_case *c, dmt_host *x)
{
    int kind = (int)dmt_int(&c->random, 0, 3);
    dmt_host_random(x, &c->random,
                    kind == 0   ? DMT_SMALL
                    : kind == 1 ? DMT_ODD
                    : kind == 2 ? DMT_SMOOTH
                                : DMT_WILD);
    for (int64_t i = 0; i < x->count && kind < 2 && dmt_is_float(x->dtype); i++) { /* both zeros */
        x->v[i] = dmt_chance(&c->random, 20) ? (dmt_chance(&c->random, 50) ? 0.0L : -0.0L) : x->v[i];
    }
}

static void sort_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, dmt_chance(&c->random, 10) ? 6 : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 80) ? from : dmt_dtype_random(c);
    dm_dtype index_dtype = dmt_chance(&c->random, 80) ? DM_I64 : DM_I32;
    bool descending = dmt_chance(&c->random, 50), in_place = from == to && dmt_chance(&c->random, 20);
    dmt_shape_random(c, ndim, 2500, shape);
    if (ndim == 1 && dmt_chance(&c->random, 30)) {
        shape[0] = dmt_int(&c->random, 400, 2500);
    }
    int dim = (int)dmt_int(&c->random, 0, ndim - 1);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    set_elements(c, x);
    rows want = expect(c, x, dim, descending, shape[dim], to, index_dtype);
    dmt_operand *in = dmt_operand_make(c, "x", x, 0);
    if (dmt_chance(&c->random, 50)) {
        dmt_operand *out = dmt_operand_make(c, "out", want.indices, DMT_UNSET);
        dmt_say(c, ", argsort along %d%s", dim, descending ? " descending" : "");
        DMT_OK(c, dm_argsort(c->session, in->array, dim, descending, out->array));
        dmt_operand_check_same(c, out, want.indices);
        dmt_operand_unchanged(c, in);
        return;
    }
    dmt_operand *out = in_place ? in : dmt_operand_make(c, "out", want.values, DMT_UNSET);
    dmt_say(c, ", sort along %d%s", dim, descending ? " descending" : "");
    DMT_OK(c, dm_sort(c->session, in->array, dim, descending, out->array));
    dmt_operand_check_same(c, out, want.values);
    if (!in_place) {
        dmt_operand_unchanged(c, in);
    }
}

static void test_sort(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort", .cases = 3000, .fn = sort_case});
    dmt_run(&(dmt_suite){.name = "sort, wide", .cases = 1000, .fn = sort_case, .options = "sort_wide=1"});
}

static void topk_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, 3);
    dm_dtype from = dmt_dtype_random(c);
    bool largest = dmt_chance(&c->random, 50);
    dmt_shape_random(c, ndim, 2500, shape);
    int dim = (int)dmt_int(&c->random, 0, ndim - 1), which = (int)dmt_int(&c->random, 0, 2);
    if (ndim == 1 && dmt_chance(&c->random, 5)) { /* long enough for a selection */
        shape[0] = dmt_int(&c->random, 65536, 70000);
    }
    int64_t most = dmt_int(&c->random, 0, shape[dim] > 2500 ? 300 : shape[dim]);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    set_elements(c, x);
    rows want = expect(c, x, dim, largest, most, from, DM_I64);
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *values = NULL, *indices = NULL;
    dm_array none = DM_NO_ARRAY;
    if (which != 1) {
        values = dmt_operand_make(c, "values", want.values, DMT_UNSET);
    }
    if (which != 0) {
        indices = dmt_operand_make(c, "indices", want.indices, DMT_UNSET);
    }
    dmt_say(c, ", along %d, %s", dim, largest ? "largest" : "smallest");
    DMT_OK(c, dm_topk(c->session, in->array, dim, largest, values ? values->array : none,
                      indices ? indices->array : none));
    if (values) {
        dmt_operand_check_same(c, values, want.values);
    }
    if (indices) {
        dmt_operand_check_same(c, indices, want.indices);
    }
    dmt_operand_unchanged(c, in);
}

static void test_topk(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "topk", .cases = 1500, .fn = topk_case});
    dmt_run(&(dmt_suite){.name = "topk, wide", .cases = 500, .fn = topk_case, .options = "sort_wide=1"});
}

/* Views with steps whose first elements are those of a view without; sorted elements with a step. */
static void steps_case(dmt_case *c)
{
    enum { ROWS = 24, N = 7, ALL = 800 };
    const int64_t shape[2] = {2 * ROWS, 2 * N}, lo[2] = {0, 0}, extent[2] = {ROWS, N}, steps[2] = {2, 2},
                  all = ALL, half = ALL / 2;
    dm_layout layout = dm_layout_rows(c->session);
    dm_array x, y, from, to, line, part;
    static int64_t got[2 * ROWS * 2 * N], found[ALL / 2];
    DMT_OK(c, dm_array_create(c->session, DM_I64, 2, shape, &layout, &x));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 2, shape, &layout, &y));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &all, &layout, &line));
    DMT_OK(c, dm_fill_arange(c->session, x, 0, 1));
    DMT_OK(c, dm_fill(c->session, y, -1));
    DMT_OK(c, dm_fill_arange(c->session, line, 0, 1));
    DMT_OK(c, dm_array_slice(c->session, x, lo, extent, steps, &from));
    DMT_OK(c, dm_array_view(c->session, y, lo, extent, &to));
    DMT_OK(c, dm_array_slice(c->session, line, lo, &half, steps, &part));
    DMT_OK(c, dm_sort(c->session, from, 1, 1, to));
    DMT_OK(c, dm_array_read(c->session, y, NULL, NULL, got, 0));
    for (int64_t i = 0; i < (int64_t)2 * ROWS * 2 * N; i++) {
        int64_t row = i / (2 * N), k = i % (2 * N);
        int64_t want = row < ROWS && k < N ? 2 * row * 2 * N + 2 * (N - 1 - k) : -1;
        if (got[i] != want) {
            dmt_fail(c, "sorted element %d is %d, not %d", (int)i, (int)got[i], (int)want);
        }
    }
    int64_t few = 20;
    dm_array v, few_places;
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &few, NULL, &v));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &few, NULL, &few_places));
    DMT_OK(c, dm_fill_arange(c->session, v, 100, 7));
    DMT_OK(c, dm_searchsorted(c->session, part, v, 0, few_places));
    DMT_OK(c, dm_array_read(c->session, few_places, NULL, NULL, found, 0));
    for (int64_t i = 0; i < few; i++) { /* even numbers before 100 + 7 i */
        if (found[i] != (101 + 7 * i) / 2) {
            dmt_fail(c, "place %d is %d, not %d", (int)i, (int)found[i], (int)(101 + 7 * i) / 2);
        }
    }
    dm_array made[] = {from, to, part, x, y, line, v, few_places};
    for (int i = 0; i < 8; i++) {
        DMT_OK(c, dm_array_destroy(c->session, made[i]));
    }
}

static void test_steps(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort_steps", .cases = 5, .fn = steps_case});
}

static void errors_case(dmt_case *c)
{
    int64_t shape[2] = {4, 5};
    dm_array a, b, z, part, none = DM_NO_ARRAY;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &b));
    DMT_OK(c, dm_array_create(c->session, DM_C64, 2, shape, NULL, &z));
    DMT_OK(c, dm_array_view(c->session, b, (int64_t[]){0, 0}, (int64_t[]){3, 5}, &part));
    DMT_REFUSED(c, DM_ERR_ARG, dm_sort(c->session, a, 2, 0, b));
    DMT_REFUSED(c, DM_ERR_ARG, dm_topk(c->session, a, -1, 0, b, none));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_sort(c->session, a, 0, 0, part));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_topk(c->session, a, 1, 0, part, none));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_sort(c->session, z, 0, 0, z));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_argsort(c->session, a, 0, 0, b));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_topk(c->session, a, 0, 0, none, none));
    DMT_REFUSED(c, DM_ERR_OVERLAP, dm_topk(c->session, b, 0, 0, part, none));
    DMT_OK(c, dm_array_destroy(c->session, part));
    DMT_OK(c, dm_array_destroy(c->session, z));
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
}

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort_errors", .cases = 5, .fn = errors_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sort), cmocka_unit_test(test_topk),
                                       cmocka_unit_test(test_steps), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
