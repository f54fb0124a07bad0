/* Histograms and counts, against loops over edges */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE, EDGES, WHOLE };

static int compare(const void *a, const void *b)
{
    const long double x = *(const long double *)a, y = *(const long double *)b;
    return (x > y) - (x < y);
}

/* The bin of v; -1: none. */
static int64_t bin_of(long double v, int64_t bins, const long double *edge)
{
    for (int64_t k = 0; k < bins; k++) {
        if (v >= edge[k] && (v < edge[k + 1] || (k + 1 == bins && v == edge[bins]))) {
            return k;
        }
    }
    return -1;
}

static void count_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3), kind = (int)dmt_int(&c->random, RANGE, WHOLE);
    dm_dtype from = dmt_dtype_random(c), weight = dmt_dtype_random(c);
    bool weighted = dmt_chance(&c->random, 40);
    int64_t bins = dmt_int(&c->random, 0, 40), edges_count = bins + 1;
    double lo = (double)dmt_int(&c->random, -4, 4),
           hi = lo + dmt_unit(&c->random) * 5 * (dmt_chance(&c->random, 90));
    dmt_shape_random(c, ndim, 2500, shape);
    if (kind == WHOLE && dmt_is_float(from)) {
        from = dmt_chance(&c->random, 50) ? DM_I32 : DM_U8;
    }
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape),
             *w = dmt_host_make(&c->scratch, weight, ndim, shape);
    dmt_host *edges = dmt_host_make(&c->scratch, kind == EDGES && dmt_chance(&c->random, 50) ? from : DM_F64, 1,
                                    &edges_count);
    dmt_host *want = dmt_host_make(&c->scratch, dmt_chance(&c->random, 50) ? DM_I64 : DM_F64, 1, &bins);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 50) ? DMT_SMALL : DMT_ODD);
    dmt_host_random(w, &c->random, DMT_SMALL);
    dmt_host_random(edges, &c->random, dmt_chance(&c->random, 50) ? DMT_SMALL : DMT_SMOOTH);
    if (dmt_is_float(from) != dmt_is_float(edges->dtype)) { /* whole numbers are exact in any */
        dmt_host_random(edges, &c->random, DMT_SMALL);
    }
    qsort(edges->v, (size_t)edges_count, sizeof *edges->v, compare);
    long double *edge = dmt_alloc(&c->scratch, edges_count * (int64_t)sizeof *edge);
    double from_lo = hi > lo ? lo : lo - 0.5, to_hi = hi > lo ? hi : hi + 0.5,
           step = (to_hi - from_lo) / (double)bins;
    for (int64_t k = 0; k <= bins; k++) {
        double at = from_lo + (double)k * step;
        edge[k] = kind == EDGES ? edges->v[k] : k == bins ? to_hi : at;
    }
    for (int64_t i = 0; i < x->count && kind == RANGE && from == DM_F64 && bins > 0; i += 2) {
        double at = (double)edge[dmt_int(&c->random, 0, bins)]; /* an edge, or the number before it */
        x->v[i] = dmt_chance(&c->random, 50) ? at : nextafter(at, -INFINITY);
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t k = kind != WHOLE                    ? bin_of(x->v[i], bins, edge)
                    : x->v[i] >= 0 && x->v[i] < bins ? (int64_t)x->v[i]
                                                     : -1;
        if (k >= 0) {
            want->v[k] += weighted ? w->v[i] : 1;
        }
    }
    dmt_operand *a = dmt_operand_make(c, "x", x, 0),
                *b = weighted ? dmt_operand_make(c, "weights", w, 0) : NULL;
    dmt_operand *e = kind == EDGES ? dmt_operand_make(c, "edges", edges, 0) : NULL;
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dm_array weights = weighted ? b->array : DM_NO_ARRAY;
    dmt_say(c, kind == RANGE ? ", %g to %g" : "", lo, hi);
    DMT_OK(c, kind == RANGE   ? dm_histogram(c->session, a->array, lo, hi, weights, out->array)
              : kind == EDGES ? dm_histogram_edges(c->session, a->array, e->array, weights, out->array)
                              : dm_bincount(c->session, a->array, weights, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, a);
}

static void test_count(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "histogram", .cases = 2500, .fn = count_case});
}

static void refused_out(dmt_case *c, dm_status got)
{
    if (got != DM_ERR_DTYPE || !strstr(dm_error_message(), "out has dtype c")) {
        dmt_fail(c, "a complex output gave %s: %s", dm_status_name(got),
                 got == DM_OK ? "-" : dm_error_message());
    }
}

static void errors_case(dmt_case *c)
{
    int64_t shape[2] = {4, 5}, ten = 10;
    dm_array x, out, bad, none = DM_NO_ARRAY;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &ten, NULL, &out));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &ten, NULL, &bad));
    DMT_REFUSED(c, DM_ERR_ARG, dm_histogram(c->session, x, 1, 0, none, out));
    DMT_REFUSED(c, DM_ERR_ARG, dm_histogram(c->session, x, 0, (double)INFINITY, none, out));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_histogram(c->session, x, 0, 1, none, x));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_histogram(c->session, x, 0, 1, bad, out));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_histogram_edges(c->session, x, bad, none, out));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_bincount(c->session, x, none, out));
    DMT_REFUSED(c, DM_ERR_OVERLAP, dm_bincount(c->session, out, none, out));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_searchsorted(c->session, x, out, 0, bad));
    dm_array edges, weights, complex; /* a complex output or weights, with any other operands beside them */
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, (int64_t[]){11}, NULL, &edges));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &ten, NULL, &weights));
    for (int type = DM_C64; type <= DM_C128; type++) {
        DMT_OK(c, dm_array_create(c->session, (dm_dtype)type, 1, &ten, NULL, &complex));
        for (int weighted = 0; weighted < 2; weighted++) {
            dm_array w = weighted ? weights : none;
            refused_out(c, dm_histogram(c->session, bad, 0, 1, w, complex));
            refused_out(c, dm_histogram_edges(c->session, bad, edges, w, complex));
            refused_out(c, dm_bincount(c->session, bad, w, complex));
        }
        DMT_REFUSED(c, DM_ERR_DTYPE, dm_histogram(c->session, bad, 0, 1, complex, out));
        DMT_REFUSED(c, DM_ERR_DTYPE, dm_histogram_edges(c->session, bad, edges, complex, out));
        DMT_REFUSED(c, DM_ERR_DTYPE, dm_histogram_edges(c->session, bad, complex, none, out));
        DMT_REFUSED(c, DM_ERR_DTYPE, dm_bincount(c->session, bad, complex, out));
        DMT_OK(c, dm_array_destroy(c->session, complex));
    }
    DMT_OK(c, dm_array_destroy(c->session, edges));
    DMT_OK(c, dm_array_destroy(c->session, weights));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, out));
    DMT_OK(c, dm_array_destroy(c->session, bad));
}

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "histogram_errors", .cases = 5, .fn = errors_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_count), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
