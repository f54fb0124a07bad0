/* Scopes: what they destroy, what they keep, and that a random program of them leaves what a list says. */
#include "support/refusal.h"

static dm_array make(dmt_case *c)
{
    dm_array a;
    DMT_OK(c, dm_matrix(c->session, DM_F32, 4, 3, &a));
    return a;
}

static bool lives(dmt_case *c, dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(c->session, a, &info);
    if (status != DM_OK && status != DM_ERR_HANDLE) {
        dmt_fail(c, "query gave %s", dm_status_name(status));
    }
    return status == DM_OK;
}

static void nested_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array outside = make(c), view, last;
    DMT_OK(c, dm_scope_begin(s));
    dm_array outer = make(c);
    DMT_OK(c, dm_scope_begin(s));
    dm_array inner = make(c), kept = make(c), gone = make(c);
    DMT_OK(c, dm_fill(s, kept, 3));
    DMT_OK(c, dm_rows(s, kept, 1, 2, &view));
    DMT_OK(c, dm_rows(s, outer, 1, 2, &last));
    DMT_OK(c, dm_array_destroy(s, gone));
    DMT_OK(c, dm_scope_end(s, (dm_array[]){outside, view, DM_NO_ARRAY}, 3));
    assert_true(lives(c, outside) && lives(c, outer) && lives(c, view));
    assert_true(!lives(c, inner) && !lives(c, kept) && !lives(c, gone) && !lives(c, last));
    double value = 0;
    DMT_OK(c, dm_item(s, view, (int64_t[]){1, 1}, &value)); /* whose array is gone */
    assert_true(value == 3);
    DMT_OK(c, dm_scope_end(s, &outer, 1));
    assert_true(lives(c, outside) && lives(c, outer) && !lives(c, view));
    DMT_OK(c, dm_array_destroy(s, outer));
    DMT_OK(c, dm_array_destroy(s, outside));
}

/* The same program on a list: for each array the scope it belongs to, -1 dead. */
static void random_case(dmt_case *c)
{
    enum { MOST = 200 };
    dm_array array[MOST];
    int scope[MOST], made = 0, depth = 0;
    while (made < MOST || depth > 0) {
        int what = (int)dmt_int(&c->random, 0, 9);
        if (made < MOST && what < 6) {
            array[made] = make(c);
            scope[made++] = depth;
        } else if (made < MOST && what < 8) {
            DMT_OK(c, dm_scope_begin(c->session));
            depth++;
        } else if (made > 0 && what == 8) {
            int i = (int)dmt_int(&c->random, 0, made - 1);
            if (scope[i] >= 0) {
                DMT_OK(c, dm_array_destroy(c->session, array[i]));
                scope[i] = -1;
            }
        } else if (depth > 0) {
            dm_array keep[MOST];
            int nkeep = 0;
            for (int i = 0; i < made; i++) {
                bool want = scope[i] >= 0 && dmt_chance(&c->random, 20);
                if (want) {
                    keep[nkeep++] = array[i];
                }
                if (scope[i] == depth) {
                    scope[i] = want ? depth - 1 : -1;
                }
            }
            DMT_OK(c, dm_scope_end(c->session, keep, nkeep));
            depth--;
        }
    }
    for (int i = 0; i < made; i++) {
        if (lives(c, array[i]) != (scope[i] >= 0)) {
            dmt_fail(c, "array %d should %s", i, scope[i] >= 0 ? "live" : "be gone");
        }
        if (scope[i] >= 0) {
            DMT_OK(c, dm_array_destroy(c->session, array[i]));
        }
    }
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    REFUSED(DMT_ONE(STATE), NULL, dm_scope_end(s, NULL, 0));
    DMT_OK(c, dm_scope_begin(s));
    dm_array a = make(c), dead = make(c);
    DMT_OK(c, dm_array_destroy(s, dead));
    REFUSED(DMT_ONE(ARG), "keep", dm_scope_end(s, NULL, 1));
    REFUSED(DMT_ONE(ARG), "nkeep", dm_scope_end(s, &a, -1));
    REFUSED(DMT_ONE(HANDLE), "keep[1]", dm_scope_end(s, (dm_array[]){a, dead}, 2));
    assert_true(lives(c, a)); /* a refused call ends nothing */
    DMT_OK(c, dm_scope_end(s, NULL, 0));
    assert_false(lives(c, a));
}

/* A product's operand that is kept at the workers is no array of the scope's. */
static void replicas_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t shape[] = {60, 60};
    dm_layout rows = dm_layout_rows(s);
    dm_array a, b, out;
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &a));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &b));
    DMT_OK(c, dm_fill(s, a, 1));
    DMT_OK(c, dm_fill(s, b, 2));
    DMT_OK(c, dm_scope_begin(s));
    for (int i = 0; i < 3; i++) {
        double value = 0;
        DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &out));
        DMT_OK(c, dm_matmul(s, a, b, out));
        DMT_OK(c, dm_item(s, out, (int64_t[]){59, 59}, &value));
        assert_true(value == 120);
    }
    DMT_OK(c, dm_scope_end(s, NULL, 0));
    DMT_OK(c, dm_fill(s, b, 3)); /* forgets it */
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_destroy(s, b));
}

static void test_random(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scopes", .cases = 60, .fn = random_case});
}

static void test_replicas(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scopes_replicas",
                         .cases = 2,
                         .fn = replicas_case,
                         .workers = 3,
                         .each = true,
                         .options = "replica_limit=1M"});
}

DMT_ONE_CASE(nested_case)
DMT_ONE_CASE(errors_case)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_case),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_errors_case),
        cmocka_unit_test(test_replicas),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
