/* require_range: values that are checked where they lie, and what a check that fails leaves behind. */
#include "support/cases.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The bounds are numbers, or lie in an array. */
static void require(dmt_case *c, dm_array x, int by, double low, double high, dm_array bounds)
{
    dm_factor bound[2] = {dm_value(low), dm_value(high)};
    dm_array view;
    if (by == 0) {
        DMT_OK(c, dm_require_range(c->session, x, low, high));
        return;
    }
    for (int64_t i = 0; i < 2; i++) {
        if (by >> i & 1) {
            DMT_OK(c, dm_array_view(c->session, bounds, &i, (int64_t[]){1}, &view));
            bound[i] = dm_element(view);
        }
    }
    DMT_OK(c, dm_require_range_by(c->session, x, bound[0], bound[1]));
    for (int i = 0; i < 2; i++) {
        if (by >> i & 1) {
            DMT_OK(c, dm_array_destroy(c->session, bound[i].array));
        }
    }
}

/* Some elements of a vector whose numbers are 0, 1, 2, ... are not in low .. high. */
static void range_case(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32,
                                      DM_U8,  DM_I8,  DM_U64, DM_C64,  DM_C128};
    dm_dtype dtype = dtypes[dmt_int(&c->random, 0, (int)(sizeof dtypes / sizeof *dtypes) - 1)];
    const int64_t shape[] = {dmt_int(&c->random, 0, 9), dmt_int(&c->random, 1, 12)};
    int64_t count = shape[0] * shape[1];
    dm_layout layouts[] = {dm_layout_rows(c->session), dm_layout_cols(c->session),
                           dm_layout_cyclic(c->session, 1, 2), dm_layout_single(c->workers - 1)};
    dm_array x, y;
    double host[9 * 12];
    DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, &layouts[dmt_int(&c->random, 0, 3)], &x));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &y));
    DMT_OK(c, dm_fill_arange(c->session, x, 0, 1));
    bool complex = dtype == DM_C64 || dtype == DM_C128; /* its imaginary parts are 0 */
    double low = complex ? 0 : (double)dmt_int(&c->random, 0, 2),
           high = (double)dmt_int(&c->random, count - 3, count);
    bool good = count == 0 || (low <= 0 && high >= (double)(count - 1));
    dmt_say(c, "\n    %d elements of type %d, %g to %g", (int)count, (int)dtype, low, high);
    int by = (int)dmt_int(&c->random, 0, 3); /* bit 0: low is an element, bit 1: high */
    dm_array bounds;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, (int64_t[]){2}, &layouts[dmt_int(&c->random, 0, 1) * 3],
                              &bounds));
    DMT_OK(c, dm_array_write(c->session, bounds, NULL, NULL, (float[]){(float)low, (float)high}, 0));
    require(c, x, by, low, high, bounds);
    dm_status status = dm_sync(c->session);
    dmt_status_is(c, status, good ? DM_OK : DM_ERR_VALUE, "dm_sync");
    if (!good && (!strstr(dm_error_message(), "require") || !strstr(dm_error_message(), "outside the range"))) {
        dmt_fail(c, "the message is: %s", dm_error_message());
    }
    DMT_OK(c, dm_copy(c->session, x, y)); /* x is as it was, or poisoned, and so is y then */
    dmt_status_is(c, dm_read(c->session, y, host), good ? DM_OK : DM_ERR_POISONED, "dm_read");
    for (int64_t i = 0; i < count && good; i++) {
        if (host[i] != (double)i) {
            dmt_fail(c, "element %d is %g", (int)i, host[i]);
        }
    }
    DMT_OK(c, dm_fill(c->session, x, 1)); /* wholly rewritten */
    DMT_OK(c, dm_require_range(c->session, x, 0, 1));
    DMT_OK(c, dm_copy(c->session, x, y));
    DMT_OK(c, dm_read(c->session, y, host));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
    DMT_OK(c, dm_array_destroy(c->session, bounds));
}

/* NaN in any element of a view, and infinities. */
static void finite_case(dmt_case *c)
{
    enum { N = 3000 };
    dm_array x, part;
    float host[N];
    int64_t at = dmt_int(&c->random, 0, N - 1), lo = dmt_int(&c->random, 0, N - 1),
            n = dmt_int(&c->random, 1, N - lo);
    float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < N; i++) {
        host[i] = (float)i;
    }
    host[at] = bad[c->number % 3];
    DMT_OK(c, dm_vector(c->session, DM_F32, N, &x));
    DMT_OK(c, dm_write(c->session, x, host));
    DMT_OK(c, dm_array_view(c->session, x, &lo, &n, &part));
    DMT_OK(c, dm_require_range(c->session, part, -DBL_MAX, DBL_MAX));
    bool good = at < lo || at >= lo + n;
    dmt_status_is(c, dm_sync(c->session), good ? DM_OK : DM_ERR_VALUE, "dm_sync");
    DMT_REFUSED(c, DM_ERR_ARG, dm_require_range(c->session, x, NAN, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_require_range(c->session, x, 0, NAN));
    dm_array bound; /* with NaN in it nothing lies within */
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &bound));
    DMT_OK(c, dm_fill(c->session, bound, c->number % 2 ? NAN : (double)N));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_require_range_by(c->session, part, dm_value(0), dm_element(bound)));
    dmt_status_is(c, dm_sync(c->session), c->number % 2 ? DM_ERR_VALUE : DM_OK, "dm_sync");
    DMT_OK(c, dm_fill(c->session, bound, -1));
    DMT_OK(c, dm_require_range_by(c->session, x, dm_element(bound), dm_value(2)));
    dmt_status_is(c, dm_sync(c->session), DM_OK, "dm_sync");
    DMT_OK(c, dm_array_destroy(c->session, bound));
    DMT_OK(c, dm_array_destroy(c->session, part));
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void test_range(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "require_range", .cases = 120, .fn = range_case});
}

static void test_finite(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "require_finite", .cases = 30, .fn = finite_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_range), cmocka_unit_test(test_finite)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
