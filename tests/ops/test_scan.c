/* Scans along a dim, against loops in long double */
#include "support/answers.h"
#include "support/cases.h"

#include <math.h>
#include <string.h>

static const struct row {
    const char *name, *reduction; /* reduction NULL: the sum */
    dm_status (*call)(dm_session *session, dm_array x, int dim, dm_array out);
} rows[] = {
    {"cumulative_sum", NULL, dm_cumulative_sum},
    {"cumulative_prod", "prod", dm_cumulative_prod},
    {"cumulative_max", "max", dm_cumulative_max},
    {"cumulative_min", "min", dm_cumulative_min},
    {"cumulative_logsumexp", "logsumexp", dm_cumulative_logsumexp},
};

/* Numbers whose products are exact and stay small. */
static void set_powers(dmt_case *c, dmt_host *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_chance(&c->random, 85)                             ? 1
                  : dmt_is_float(h->dtype) && dmt_chance(&c->random, 10) ? NAN
                                                                         : 0;
        h->v[i] = h->v[i] == 0 && i > 5 && dmt_chance(&c->random, 80) ? 1 : h->v[i];
        h->v[i] *= dmt_is_float(h->dtype) && dmt_chance(&c->random, 50) ? -1 : 1;
    }
}

static dmt_answer sum_of(dm_dtype dtype, const long double *v, int64_t n)
{
    dmt_answer a = {.whole = !dmt_is_float(dtype)};
    long double size = 0;
    for (int64_t i = 0; i < n; i++) {
        a.value += v[i];
        size += fabsl(v[i]);
    }
    a.bound = isfinite(size) ? size * (dtype == DM_F64 ? 0x1p-100L : 0x1p-48L) : 0;
    return a;
}

static void set_elements(dmt_case *c, const struct row *row, dmt_host *x)
{
    if (row->reduction && strcmp(row->reduction, "prod") == 0) {
        set_powers(c, x);
        return;
    }
    dmt_host_random(x, &c->random,
                    dmt_chance(&c->random, 30)   ? DMT_ODD
                    : dmt_chance(&c->random, 40) ? DMT_SMALL
                                                 : DMT_SMOOTH);
    for (int64_t i = 0; i < x->count && dmt_is_float(x->dtype); i++) { /* mostly finite */
        x->v[i] = !isfinite(x->v[i]) && dmt_chance(&c->random, 70) ? 0 : x->v[i];
    }
}

static void expect(const struct row *row, const dmt_host *x, int dim, dmt_host *want, dmt_host *bound,
                   long double *v)
{
    int64_t index[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at[DM_MAX_DIMS], n = index[dim] + 1;
        memcpy(at, index, sizeof at);
        for (int64_t k = 0; k < n; k++) {
            at[dim] = k;
            v[k] = x->v[dmt_linear(x->ndim, x->shape, at)];
        }
        dmt_answer a = row->reduction ? dmt_reduction_named(row->reduction)->value(x->dtype, v, n)
                                      : sum_of(x->dtype, v, n);
        want->v[i] = a.whole && !dmt_is_float(want->dtype)
                         ? dmt_from_whole(want->dtype, (int64_t)dmt_wrapped(a.value))
                         : a.value;
        bound->v[i] = isfinite(a.value) ? a.bound : 0;
        dmt_next(x->ndim, x->shape, index);
    }
}

static void scan_case(dmt_case *c)
{
    const struct row *row = &rows[dmt_int(&c->random, 0, 4)];
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, dmt_chance(&c->random, 10) ? 6 : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 60) ? from : dmt_dtype_random(c);
    if (row->reduction && strcmp(row->reduction, "logsumexp") == 0 && !dmt_is_float(to)) {
        to = dmt_float_random(c);
    }
    if (!row->reduction && dmt_is_float(from) && !dmt_is_float(to)) { /* what is rounded may not be cut off */
        to = from;
    }
    dmt_shape_random(c, ndim, 2500, shape);
    if (ndim == 1 && dmt_chance(&c->random, 20)) {
        shape[0] = dmt_int(&c->random, 400, 1500);
    }
    int dim = (int)dmt_int(&c->random, 0, ndim - 1);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host *want = dmt_host_make(&c->scratch, to, ndim, shape), *bound = dmt_host_copy(&c->scratch, want);
    set_elements(c, row, x);
    expect(row, x, dim, want, bound, dmt_alloc(&c->scratch, (shape[dim] + 1) * (int64_t)sizeof(long double)));
    bool in_place = from == to && dmt_chance(&c->random, 20);
    dmt_operand *in = dmt_operand_make(c, "x", x, 0);
    dmt_operand *out = in_place ? in : dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, ", %s along %d", row->name, dim);
    dmt_status_is(c, row->call(c->session, in->array, dim, out->array), DM_OK, row->name);
    dmt_operand_check(c, out, want, bound);
    if (!in_place) {
        dmt_operand_unchanged(c, in);
    }
}

static void test_scan(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scan", .cases = 3000, .fn = scan_case});
}

/* The parts of complex sums, each by itself; products. */
static void complex_case(dmt_case *c)
{
    enum { ROWS = 7, COLUMNS = 45 };
    int64_t shape[2] = {ROWS, COLUMNS}, step = dmt_chance(&c->random, 50) ? 1 : COLUMNS;
    bool product = dmt_chance(&c->random, 50);
    static dm_c64 x[ROWS * COLUMNS], got[ROWS * COLUMNS];
    dmt_layout from, to;
    dm_array in, out;
    for (int i = 0; i < ROWS * COLUMNS; i++) { /* i^k: all products are exact */
        int64_t k = dmt_int(&c->random, 0, 3);
        x[i] = (dm_c64){k == 0 ? 1 : k == 2 ? -1 : 0, k == 1 ? 1 : k == 3 ? -1 : 0};
    }
    dmt_layout_random(&from, &c->scratch, &c->random, c->session, 2, shape);
    dmt_layout_random(&to, &c->scratch, &c->random, c->session, 2, shape);
    dmt_say(c, "%s, %s to %s along %d", product ? "product" : "sum", from.text, to.text, step == 1);
    DMT_OK(c, dm_array_create(c->session, DM_C64, 2, shape, from.use, &in));
    DMT_OK(c, dm_array_create(c->session, DM_C64, 2, shape, to.use, &out));
    DMT_OK(c, dm_array_write(c->session, in, NULL, NULL, x, 0));
    DMT_OK(c, (product ? dm_cumulative_prod : dm_cumulative_sum)(c->session, in, step == 1, out));
    DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, got, 0));
    DMT_OK(c, dm_array_destroy(c->session, in));
    DMT_OK(c, dm_array_destroy(c->session, out));
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        bool first = step == 1 ? i % COLUMNS == 0 : i < COLUMNS;
        dm_c64 a = first ? (dm_c64){(float)product, 0} : got[i - step], b = x[i];
        dm_c64 want = product ? (dm_c64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}
                              : (dm_c64){a.re + b.re, a.im + b.im};
        if (want.re != got[i].re || want.im != got[i].im) {
            dmt_fail(c, "element %d is %g, %g and not %g, %g", (int)i, (double)got[i].re, (double)got[i].im,
                     (double)want.re, (double)want.im);
        }
    }
}

static void test_complex(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scan_complex", .cases = 200, .fn = complex_case});
}

static void errors_case(dmt_case *c)
{
    int64_t shape[2] = {4, 5};
    dmt_host *x = dmt_host_make(&c->scratch, DM_C64, 0, shape),
             *y = dmt_host_make(&c->scratch, DM_F64, 2, shape);
    dmt_operand *a = dmt_operand_make(c, "a", y, DMT_NO_VIEW), *b = dmt_operand_make(c, "b", y, DMT_NO_VIEW);
    dm_array z, part;
    (void)x;
    DMT_OK(c, dm_array_create(c->session, DM_C64, 2, shape, NULL, &z));
    DMT_OK(c, dm_array_view(c->session, b->array, (int64_t[]){0, 0}, (int64_t[]){3, 5}, &part));
    DMT_REFUSED(c, DM_ERR_ARG, dm_cumulative_sum(c->session, a->array, 2, b->array));
    DMT_REFUSED(c, DM_ERR_ARG, dm_cumulative_sum(c->session, a->array, -1, b->array));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_cumulative_sum(c->session, a->array, 0, part));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_cumulative_max(c->session, z, 0, z));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_cumulative_sum(c->session, z, 0, a->array));
    DMT_OK(c, dm_array_destroy(c->session, part));
    DMT_OK(c, dm_array_destroy(c->session, z));
}

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scan_errors", .cases = 5, .fn = errors_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan), cmocka_unit_test(test_complex),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
