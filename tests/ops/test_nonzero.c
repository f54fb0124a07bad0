/* Indices of elements that are not zero: of short arrays, and of arrays long enough for all ways of listing
 * them. */
#include "support/cases.h"

#include <dmath/index.h>
#include <string.h>

/* In stretches, so that some pieces and some workers have all, and others none. */
static void set_values(dmt_case *c, dmt_host *h)
{
    const int percent[] = {0, 2, 20, 50, 98, 100};
    for (int64_t i = 0; i < h->count;) {
        const int chance = percent[dmt_int(&c->random, 0, 5)];
        for (int64_t end = i + dmt_int(&c->random, 1, 3000); i < h->count && i < end; i++) {
            h->v[i] = dmt_chance(&c->random, chance)                         ? 1
                      : dmt_is_float(h->dtype) && dmt_chance(&c->random, 50) ? -0.0L
                                                                             : 0;
        }
    }
}

/* dm_nonzero of an array of these values, against a loop over its indices. */
static void check(dmt_case *c, dmt_host *h)
{
    const int ndim = h->ndim;
    int64_t index[DM_MAX_DIMS] = {0}, found = 0;
    char text[400];
    dm_array out[DM_MAX_DIMS];
    dmt_host *want[DM_MAX_DIMS];
    for (int64_t i = 0; i < h->count; i++) {
        found += h->v[i] != 0; /* NaN is not 0 */
    }
    for (int d = 0; d < ndim; d++) {
        want[d] = dmt_host_make(&c->scratch, DM_I64, 1, &found);
    }
    for (int64_t i = 0, k = 0; i < h->count; i++) {
        for (int d = 0; d < ndim && h->v[i] != 0; d++) {
            want[d]->v[k] = (long double)index[d];
        }
        k += h->v[i] != 0;
        dmt_next(ndim, h->shape, index);
    }
    dmt_operand *x = dmt_operand_make(c, "x", h, 0);
    DMT_OK(c, dm_nonzero(c->session, x->array, ndim, out));
    for (int d = 0; d < ndim; d++) {
        if (!dmt_host_same(dmt_read(c, out[d], DM_I64, 1, &found), want[d], text, sizeof text)) {
            dmt_fail(c, "dim %d: %s", d, text);
        }
        DMT_OK(c, dm_array_destroy(c->session, out[d]));
    }
    dmt_operand_unchanged(c, x);
}

static void short_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, 4), percent = (int)dmt_int(&c->random, 0, 100);
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_chance(&c->random, percent)                        ? h->v[i]
                  : dmt_is_float(h->dtype) && dmt_chance(&c->random, 50) ? -0.0L
                                                                         : 0;
    }
    check(c, h);
}

static void long_case(dmt_case *c)
{
    enum { MOST = 12000 };
    int64_t shape[DM_MAX_DIMS], left = MOST;
    int ndim = (int)dmt_int(&c->random, 1, 3);
    for (int d = 0; d < ndim; d++) {
        shape[d] = dmt_int(&c->random, d > 0 || dmt_chance(&c->random, 95), left > 0 ? left : 1);
        left /= shape[d] + 1;
    }
    if (ndim > 1 && dmt_chance(&c->random, 50)) { /* long rows */
        int64_t first = shape[0];
        shape[0] = shape[ndim - 1];
        shape[ndim - 1] = first;
    }
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    set_values(c, h);
    check(c, h);
}

/* Complex numbers: one part is enough, and -0 is none. */
static void complex_case(dmt_case *c)
{
    enum { MOST = 4000 };
    const int64_t n = dmt_int(&c->random, 1, MOST);
    const bool wide = dmt_chance(&c->random, 50);
    int64_t count = 0, found;
    dm_array_info info = {.size = sizeof info};
    double values[2 * MOST];
    float narrow[2 * MOST];
    int64_t want[MOST], got[MOST];
    dm_array x, out;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 2 * i; k < 2 * i + 2; k++) {
            values[k] = dmt_chance(&c->random, 30) ? 1 : dmt_chance(&c->random, 50) ? -0.0 : 0;
            narrow[k] = (float)values[k];
        }
        if (values[2 * i] != 0 || values[2 * i + 1] != 0) {
            want[count++] = i;
        }
    }
    DMT_OK(c, dm_vector(c->session, wide ? DM_C128 : DM_C64, n, &x));
    DMT_OK(c, dm_array_write(c->session, x, NULL, NULL, wide ? (const void *)values : narrow, 0));
    DMT_OK(c, dm_nonzero(c->session, x, 1, &out));
    DMT_OK(c, dm_array_query(c->session, out, &info));
    found = info.shape[0];
    if (found == count) {
        DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, got, 0));
    }
    if (found != count || memcmp(got, want, (size_t)count * sizeof *got) != 0) {
        dmt_fail(c, "%lld of %lld are found, or others, not %lld", (long long)found, (long long)n,
                 (long long)count);
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

static void test_nonzero(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "nonzero, complex", .cases = 30, .fn = complex_case});
    dmt_run(&(dmt_suite){.name = "nonzero", .cases = 250, .fn = short_case});
    dmt_run(&(dmt_suite){.name = "nonzero, long", .cases = 160, .fn = long_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nonzero)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
