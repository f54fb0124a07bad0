/* Memory goes back to the system on request, also what other workers have had mapped, and comes again. */
#include "support/cases.h"

#include <stdlib.h>

enum { ROWS = 1200, COLS = 600, ROUNDS = 3 };

static int64_t held(dm_session *s)
{
    int64_t sum = 0;
    for (int w = 0; w < dm_workers(s); w++) {
        dm_memory m = {.size = sizeof m};
        assert_int_equal(dm_memory_report(s, w, &m), DM_OK);
        sum += m.held;
    }
    return sum;
}

static dm_array matrix(dm_session *s, bool by_rows)
{
    const int64_t shape[] = {ROWS, COLS};
    dm_layout layout = by_rows ? dm_layout_rows(s) : dm_layout_cols(s);
    dm_array a = DM_NO_ARRAY;
    assert_int_equal(dm_array_create(s, DM_F64, 2, shape, &layout, &a), DM_OK);
    return a;
}

/* Every worker's part goes to every other: into memory that is mapped there, where there is such. */
static void test_trim(void **state)
{
    (void)state;
    const char *own = getenv("DMATH_POOL_OWN");
    if (own && atoi(own) == 1) { /* with it nothing is held */
        skip();
    }
    dm_session *s = dmt_session_open(3, "slab=1M");
    for (int round = 0; round < ROUNDS; round++) {
        dm_array a = matrix(s, true), b = matrix(s, false);
        const int64_t lo[] = {ROWS - 1, COLS - 1}, extent[] = {1, 1};
        double value = 0;
        assert_int_equal(dm_fill(s, a, 3 + round), DM_OK);
        assert_int_equal(dm_copy(s, a, b), DM_OK);
        assert_int_equal(dm_array_read(s, b, lo, extent, &value, 0), DM_OK);
        assert_true(value == 3 + round);
        assert_int_equal(dm_array_destroy(s, a), DM_OK);
        assert_int_equal(dm_array_destroy(s, b), DM_OK);
        int64_t before = held(s);
        assert_int_equal(dm_memory_trim(s), DM_OK);
        int64_t after = held(s), both = INT64_C(2) * ROWS * COLS * 8;
        if (before - after < both) {
            fail_msg("%lld bytes held, after trim %lld: less than %lld given back", (long long)before,
                     (long long)after, (long long)both);
        }
    }
    dmt_session_close(s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trim)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
