/* Rows that all workers sort together, against a sort of the whole row */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct element {
    long double v;
    int64_t at;
} element;

static bool descends;

static int compare(const void *a, const void *b)
{
    const element *x = a, *y = b;
    int order = isnan(x->v) || isnan(y->v) ? isnan(x->v) - isnan(y->v) : (x->v > y->v) - (x->v < y->v);
    order = descends ? -order : order;
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static void set_elements(dmt_case *c, dmt_host *x)
{
    int kind = (int)dmt_int(&c->random, 0, 5);
    dmt_host_random(x, &c->random,
                    kind == 0   ? DMT_SMALL
                    : kind == 1 ? DMT_ODD
                    : kind == 2 ? DMT_SMOOTH
                                : DMT_WILD);
    for (int64_t i = 0; i < x->count && kind >= 4; i++) { /* many alike, or in order already */
        x->v[i] = kind == 4 ? x->v[i % 3] : dmt_convert(DM_I64, x->dtype, (long double)(i / 7 % 100));
    }
    for (int64_t i = 0; i < x->count && kind < 2 && dmt_is_float(x->dtype); i++) {
        x->v[i] = dmt_chance(&c->random, 20) ? (dmt_chance(&c->random, 50) ? 0.0L : -0.0L) : x->v[i];
    }
}

static void long_case(dmt_case *c)
{
    int64_t shape[3] = {1, 1, 1};
    int ndim = (int)dmt_int(&c->random, 1, 3), dim = (int)dmt_int(&c->random, 0, ndim - 1);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 85) ? from : dmt_dtype_random(c);
    bool indices = dmt_chance(&c->random, 50), in_place = !indices && from == to && dmt_chance(&c->random, 20);
    shape[(dim + 1) % ndim] = dmt_int(&c->random, 1, 3);
    shape[dim] = dmt_int(&c->random, 1, dmt_chance(&c->random, 50) ? 60 : 1500);
    descends = dmt_chance(&c->random, 50);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host *want =
        dmt_host_make(&c->scratch, indices ? (dmt_chance(&c->random, 80) ? DM_I64 : DM_I16) : to, ndim, shape);
    int64_t n = shape[dim], index[DM_MAX_DIMS] = {0};
    element *row = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *row);
    set_elements(c, x);
    for (int64_t i = 0; i < x->count; i++, dmt_next(ndim, shape, index)) {
        int64_t at[DM_MAX_DIMS];
        if (index[dim] != 0) {
            continue;
        }
        memcpy(at, index, sizeof at);
        for (int64_t k = 0; k < n; k++) {
            at[dim] = k;
            row[k] = (element){x->v[dmt_linear(ndim, shape, at)], k};
        }
        qsort(row, (size_t)n, sizeof *row, compare);
        for (int64_t k = 0; k < n; k++) {
            at[dim] = k;
            want->v[dmt_linear(ndim, shape, at)] =
                indices ? dmt_from_whole(want->dtype, row[k].at) : dmt_convert(from, to, row[k].v);
        }
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0);
    dmt_operand *out = in_place ? in : dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, ", %s along %d%s", indices ? "argsort" : "sort", dim, descends ? " descending" : "");
    DMT_OK(c, (indices ? dm_argsort : dm_sort)(c->session, in->array, dim, descends, out->array));
    dmt_operand_check_same(c, out, want);
    if (!in_place) {
        dmt_operand_unchanged(c, in);
    }
}

static void test_long(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort_long", .cases = 1000, .fn = long_case, .options = "sort_exchange=1"});
    dmt_run(&(dmt_suite){
        .name = "sort_long, wide", .cases = 500, .fn = long_case, .options = "sort_exchange=1,sort_wide=1"});
}

/* The first of long rows, of parts first. */
static void first_case(dmt_case *c)
{
    int64_t shape[2] = {1, 1};
    int ndim = (int)dmt_int(&c->random, 1, 2), dim = ndim - 1, which = (int)dmt_int(&c->random, 0, 2);
    dm_dtype dtype = dmt_dtype_random(c);
    shape[0] = dmt_int(&c->random, 1, 2);
    shape[dim] = dmt_int(&c->random, 1, 1500);
    int64_t n = shape[dim], rows = ndim == 2 ? shape[0] : 1, most = dmt_int(&c->random, 0, 1 + n / 20),
            made[2] = {rows, most};
    made[dim] = most;
    descends = dmt_chance(&c->random, 50);
    dmt_host *x = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host *values = dmt_host_make(&c->scratch, dtype, ndim, made),
             *indices = dmt_host_make(&c->scratch, DM_I64, ndim, made);
    element *row = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *row);
    set_elements(c, x);
    if (most > n) {
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < n; k++) {
            row[k] = (element){x->v[i * n + k], k};
        }
        qsort(row, (size_t)n, sizeof *row, compare);
        for (int64_t k = 0; k < most; k++) {
            values->v[i * most + k] = row[k].v;
            indices->v[i * most + k] = (long double)row[k].at;
        }
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *v = NULL, *p = NULL;
    if (which != 1) {
        v = dmt_operand_make(c, "values", values, DMT_UNSET);
    }
    if (which != 0) {
        p = dmt_operand_make(c, "indices", indices, DMT_UNSET);
    }
    dmt_say(c, ", the first %d of %d%s", (int)most, (int)n, descends ? " descending" : "");
    DMT_OK(c, dm_topk(c->session, in->array, dim, descends, v ? v->array : DM_NO_ARRAY,
                      p ? p->array : DM_NO_ARRAY));
    if (v) {
        dmt_operand_check_same(c, v, values);
    }
    if (p) {
        dmt_operand_check_same(c, p, indices);
    }
    dmt_operand_unchanged(c, in);
}

static void test_first(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "topk_long", .cases = 600, .fn = first_case, .options = "sort_exchange=1"});
    dmt_run(&(dmt_suite){
        .name = "topk_long, wide", .cases = 300, .fn = first_case, .options = "sort_exchange=1,sort_wide=1"});
}

/* As it comes, which launched tests take too. */
static void large_case(dmt_case *c)
{
    enum { N = 70000 };
    int64_t n = N;
    dmt_host *x = dmt_host_make(&c->scratch, DM_F32, 1, &n), *want = dmt_host_make(&c->scratch, DM_I64, 1, &n);
    element *row = dmt_alloc(&c->scratch, n * (int64_t)sizeof *row);
    dmt_host_random(x, &c->random, DMT_ODD);
    descends = false;
    for (int64_t i = 0; i < n; i++) {
        row[i] = (element){x->v[i], i};
    }
    qsort(row, (size_t)n, sizeof *row, compare);
    for (int64_t i = 0; i < n; i++) {
        want->v[i] = (long double)row[i].at;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    DMT_OK(c, dm_argsort(c->session, in->array, 0, 0, out->array));
    dmt_operand_check_same(c, out, want);
}

static void test_large(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sort_large", .cases = 20, .fn = large_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long), cmocka_unit_test(test_first),
                                       cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
