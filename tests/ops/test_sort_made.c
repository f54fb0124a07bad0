/* What is made of sorting: quantiles, distinct elements and membership, against loops */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const long double x = *(const long double *)a, y = *(const long double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

static void quantile_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 1, 3), count = (int)dmt_int(&c->random, 1, 3);
    dm_dtype from = dmt_dtype_random(c),
             to = dmt_is_float(from) && dmt_chance(&c->random, 50) ? from : dmt_float_random(c);
    double q[3];
    dmt_shape_random(c, ndim, 1500, shape);
    int dim = (int)dmt_int(&c->random, 0, ndim - 1);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 30) ? DMT_SMALL : DMT_SMOOTH);
    for (int64_t i = 0; i < x->count && dmt_is_float(from); i++) {
        x->v[i] = dmt_chance(&c->random, 1) ? NAN : x->v[i];
    }
    for (int k = 0; k < count; k++) {
        q[k] = dmt_chance(&c->random, 30) ? (double)dmt_int(&c->random, 0, 2) / 2 : dmt_unit(&c->random);
    }
    int64_t n = shape[dim], made[DM_MAX_DIMS];
    memcpy(made, shape, sizeof made);
    made[dim] = count;
    dmt_host *want = dmt_host_make(&c->scratch, to, ndim, made), *bound = dmt_host_copy(&c->scratch, want);
    long double *v = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *v);
    for (int64_t i = 0; i < x->count; i++, dmt_next(ndim, shape, index)) {
        int64_t at[DM_MAX_DIMS];
        if (index[dim] != 0) {
            continue;
        }
        memcpy(at, index, sizeof at);
        for (int64_t k = 0; k < n; k++) {
            at[dim] = k;
            v[k] = x->v[dmt_linear(ndim, shape, at)];
        }
        qsort(v, (size_t)n, sizeof *v, compare);
        for (int k = 0; k < count; k++) {
            long double place = (long double)(q[k] * (double)(n - 1)), low = floorl(place);
            long double a = v[(int64_t)low], b = v[(int64_t)low < n - 1 ? (int64_t)low + 1 : n - 1];
            at[dim] = k;
            int64_t out = dmt_linear(ndim, made, at);
            want->v[out] = isnan(v[n - 1]) ? (long double)NAN : a + (b - a) * (place - low);
            /* computed in f32 at least, or, of bf16 and the like, rounded by the test */
            bound->v[out] = 4e-7L * (fabsl(a) + fabsl(b)) + dmt_tiny(DM_F32);
        }
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, ", %d quantiles, %g first, along %d", count, q[0], dim);
    dm_status status = dm_quantile(c->session, in->array, q, count, dim, out->array);
    if (n == 0) {
        dmt_status_is(c, status, DM_ERR_SHAPE, "dm_quantile");
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_quantile");
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, in);
}

static void test_quantile(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "quantile", .cases = 600, .fn = quantile_case});
    dmt_run(
        &(dmt_suite){.name = "quantile, wide", .cases = 150, .fn = quantile_case, .options = "sort_wide=1"});
}

static void check(dmt_case *c, const char *name, dm_array a, const dmt_host *want)
{
    char text[400];
    dmt_host *got = dmt_read(c, a, want->dtype, 1, want->shape);
    DMT_OK(c, dm_array_destroy(c->session, a));
    if (!dmt_host_same(got, want, text, sizeof text)) {
        dmt_fail(c, "%s: %s", name, text);
    }
}

static void unique_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], m = 0;
    int ndim = (int)dmt_int(&c->random, 0, 3);
    dm_dtype dtype = dmt_dtype_random(c);
    dmt_shape_random(c, ndim, 1500, shape);
    dmt_host *x = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 60) ? DMT_SMALL : DMT_ODD);
    long double *v = dmt_alloc(&c->scratch, (x->count + 1) * (int64_t)sizeof *v);
    for (int64_t i = 0; i < x->count; i++) {
        x->v[i] = x->v[i] == 0 ? 0 : x->v[i]; /* one zero */
        v[i] = x->v[i];
    }
    qsort(v, (size_t)x->count, sizeof *v, compare);
    for (int64_t i = 0; i < x->count; i++) {
        m += i == 0 || compare(&v[i - 1], &v[i]) != 0;
    }
    dmt_host *values = dmt_host_make(&c->scratch, dtype, 1, &m),
             *counts = dmt_host_make(&c->scratch, DM_I64, 1, &m);
    dmt_host *inverse = dmt_host_make(&c->scratch, DM_I64, 1, &x->count);
    for (int64_t i = 0, k = -1; i < x->count; i++) {
        k += i == 0 || compare(&v[i - 1], &v[i]) != 0;
        values->v[k] = v[i];
        counts->v[k]++;
    }
    for (int64_t i = 0; i < x->count; i++) {
        while (compare(&values->v[(int64_t)inverse->v[i]], &x->v[i]) != 0) {
            inverse->v[i]++;
        }
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0);
    dm_array got[3];
    bool all = dmt_chance(&c->random, 70);
    DMT_OK(c, dm_unique(c->session, in->array, &got[0], all ? &got[1] : NULL, all ? &got[2] : NULL));
    check(c, "values", got[0], values);
    if (all) {
        check(c, "counts", got[1], counts);
        check(c, "inverse", got[2], inverse);
    }
    dmt_operand_unchanged(c, in);
}

static void test_unique(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "unique", .cases = 400, .fn = unique_case});
    dmt_run(&(dmt_suite){.name = "unique, wide", .cases = 150, .fn = unique_case, .options = "sort_wide=1"});
}

static void check_isin(dmt_case *c, dmt_host *x, dmt_host *test, dmt_host *want, int invert)
{
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *t = dmt_operand_make(c, "test", test, 0),
                *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, ", invert %d", invert);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 1));
    }
    DMT_OK(c, dm_isin(c->session, in->array, t->array, invert, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, in);
    dmt_operand_unchanged(c, t);
}

static void isin_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], of_test[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3), test_ndim = (int)dmt_int(&c->random, 0, 3),
        invert = dmt_chance(&c->random, 30);
    int kind = dmt_chance(&c->random, 60) ? DMT_SMALL : DMT_ODD;
    dmt_shape_random(c, ndim, 1500, shape);
    dmt_shape_random(c, test_ndim, 300, of_test);
    dmt_host *x = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dm_dtype dtype = dmt_chance(&c->random, 50) ? x->dtype : dmt_dtype_random(c);
    dmt_host *test = dmt_host_make(&c->scratch, dtype, test_ndim, of_test);
    dmt_host *want =
        dmt_host_make(&c->scratch, dmt_chance(&c->random, 60) ? DM_BOOL : dmt_dtype_random(c), ndim, shape);
    dmt_host_random(x, &c->random, kind);
    dmt_host_random(test, &c->random, kind);
    for (int64_t i = 0; i < x->count; i++) {
        if (x->dtype == dtype && test->count > 0 && dmt_chance(&c->random, 40)) {
            x->v[i] = test->v[dmt_int(&c->random, 0, test->count - 1)];
        }
        bool found = false;
        for (int64_t k = 0; k < test->count && !found; k++) {
            found = x->v[i] == test->v[k];
        }
        want->v[i] = found != (invert != 0);
    }
    check_isin(c, x, test, want, invert);
}

/* Integers that are many and near one another, or far: by a table, or not. */
static void isin_table_case(dmt_case *c)
{
    static const dm_dtype types[] = {DM_I8, DM_U8, DM_I16, DM_U16, DM_I32, DM_U32, DM_I64, DM_U64};
    enum { MIDDLE = 1000, MOST = 40 };
    const int x_type = (int)dmt_int(&c->random, 0, 7), test_type = (int)dmt_int(&c->random, 0, 7);
    const bool small = x_type < 2 || test_type < 2, sign = x_type % 2 == 0 && test_type % 2 == 0;
    const int invert = dmt_chance(&c->random, 30);
    int64_t shape[2] = {dmt_int(&c->random, 300, 400), dmt_int(&c->random, 100, 130)},
            tests = dmt_int(&c->random, 0, MOST);
    const int64_t from =
        (small ? 30 : MIDDLE) - (sign ? dmt_int(&c->random, 0, 1) * 2 * (small ? 30 : MIDDLE) : 0);
    const int64_t reach = small ? 25 : dmt_int(&c->random, 1, 900);
    dmt_host *x = dmt_host_make(&c->scratch, types[x_type], 2, shape),
             *test = dmt_host_make(&c->scratch, types[test_type], 1, &tests);
    dmt_host *want = dmt_host_make(&c->scratch, dmt_chance(&c->random, 60) ? DM_BOOL : DM_F32, 2, shape);
    for (int64_t k = 0; k < tests; k++) {
        test->v[k] = (long double)(from + dmt_int(&c->random, -reach, reach));
    }
    if (tests > 0 && test_type >= 4 && dmt_chance(&c->random, 30)) { /* a range that has no table */
        test->v[dmt_int(&c->random, 0, tests - 1)] = 2000000000;
    }
    for (int64_t i = 0; i < x->count; i++) {
        bool found = false;
        x->v[i] = (long double)(from + dmt_int(&c->random, -reach - 3, reach + 3));
        for (int64_t k = 0; k < tests && !found; k++) {
            found = x->v[i] == test->v[k];
        }
        want->v[i] = found != (invert != 0);
    }
    check_isin(c, x, test, want, invert);
}

static void test_isin(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "isin", .cases = 300, .fn = isin_case});
    dmt_run(&(dmt_suite){.name = "isin, many", .cases = 40, .fn = isin_table_case});
}

static void errors_case(dmt_case *c)
{
    int64_t shape[2] = {4, 5}, one[2] = {1, 5}, none[2] = {0, 5};
    dm_array x, z, out, empty, values;
    double half = 0.5, two = 2;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_C64, 2, shape, NULL, &z));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, one, NULL, &out));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, none, NULL, &empty));
    DMT_REFUSED(c, DM_ERR_ARG, dm_quantile(c->session, x, &two, 1, 0, out));
    DMT_REFUSED(c, DM_ERR_ARG, dm_quantile(c->session, x, NULL, 1, 0, out));
    DMT_REFUSED(c, DM_ERR_ARG, dm_median(c->session, x, 2, out));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_quantile(c->session, x, &half, 1, 1, out));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_median(c->session, empty, 0, out));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_median(c->session, z, 0, out));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_unique(c->session, z, &values, NULL, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_unique(c->session, x, NULL, NULL, NULL));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, z));
    DMT_OK(c, dm_array_destroy(c->session, out));
    DMT_OK(c, dm_array_destroy(c->session, empty));
}

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort_made_errors", .cases = 5, .fn = errors_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quantile), cmocka_unit_test(test_unique),
                                       cmocka_unit_test(test_isin), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
