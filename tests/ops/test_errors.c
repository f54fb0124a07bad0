/* Calls on arrays, layouts and sessions with bad arguments: the status that their text promises, a message that
 * names the argument, and nothing changed. */
#include "support/refusal.h"

#include <math.h>
#include <string.h>

static void create_errors(dmt_case *c)
{
    const int64_t shape[] = {4, 4}, negative[] = {4, -1}, huge[] = {INT64_MAX, 3}, long_shape[9] = {1, 1, 1};
    dm_session *s = c->session;
    dm_array a = {42};
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_array_create(s, (dm_dtype)0, 2, shape, NULL, &a));
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_array_create(s, (dm_dtype)18, 2, shape, NULL, &a));
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_array_create(s, (dm_dtype)-1, 2, shape, NULL, &a));
    REFUSED(DMT_ONE(ARG), "ndim", dm_array_create(s, DM_F32, -1, shape, NULL, &a));
    REFUSED(DMT_ONE(ARG), "ndim", dm_array_create(s, DM_F32, 9, long_shape, NULL, &a));
    REFUSED(DMT_ONE(ARG), "shape", dm_array_create(s, DM_F32, 2, NULL, NULL, &a));
    REFUSED(DMT_ONE(ARG), "shape", dm_array_create(s, DM_F32, 2, negative, NULL, &a));
    REFUSED(DMT_ONE(ARG) | DMT_ONE(LIMIT) | DMT_ONE(SHAPE), NULL,
            dm_array_create(s, DM_F32, 2, huge, NULL, &a));
    REFUSED(DMT_ONE(ARG), "out", dm_array_create(s, DM_F32, 2, shape, NULL, NULL));
    REFUSED(DMT_ONE(ARG), NULL, dm_matrix(s, DM_F32, -2, 2, &a));
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_matrix(s, (dm_dtype)99, 2, 2, &a));
    REFUSED(DMT_ONE(ARG), "out", dm_matrix(s, DM_F32, 2, 2, NULL));
    if (a.id != 42) {
        dmt_fail(c, "a failed call set its output");
    }
}

static void layout_refused(dmt_case *c, dm_layout layout, const char *what)
{
    const int64_t shape[] = {4, 4};
    dm_array a = {42};
    dmt_refused(c, dm_array_create(c->session, DM_F32, 2, shape, &layout, &a), DMT_ONE(LAYOUT) | DMT_ONE(ARG),
                NULL, what);
}

static void layout_errors(dmt_case *c)
{
    const int64_t block[] = {2, 2};
    const int map[] = {0, 0, 1, 1}, outside[] = {0, 0, 99, 0}, below[] = {0, -1, 0, 0};
    const int twice[] = {0, 0}, unknown[] = {0, 99};
    dm_layout l = dm_layout_grid(1, 1, 0, 0);
    l.size = 3;
    layout_refused(c, l, "a layout of 3 bytes");
    l = dm_layout_grid(1, 1, 0, 0);
    l.kind = 7;
    layout_refused(c, l, "kind 7");
    layout_refused(c, dm_layout_grid(-1, 1, 0, 0), "a grid of -1 rows");
    layout_refused(c, dm_layout_grid(1, 1, -4, 1), "a block of -4 rows");
    layout_refused(c, dm_layout_grid(c->workers + 1, 1, 1, 1), "a grid of more than all workers");
    layout_refused(c, dm_layout_grid(65536, 65536, 1, 1), "a grid whose product overflows");
    layout_refused(c, dm_layout_single(c->workers), "a worker that is not there");
    layout_refused(c, dm_layout_single(-1), "worker -1");
    if (c->workers > 1) { /* on one nothing is split */
        layout_refused(c, dm_layout_split(c->session, 2), "a split along a dim that is not there");
    }
    layout_refused(c, dm_layout_split(c->session, -1), "a split along dim -1");
    layout_refused(c, dm_layout_cyclic(c->session, 0, -1), "blocks of -1");
    l = dm_layout_grid(2, 1, 0, 0);
    l.workers = twice;
    l.nworkers = 2;
    layout_refused(c, l, "a worker named twice");
    l.workers = unknown;
    layout_refused(c, l, "an unknown worker");
    l.workers = map;
    l.nworkers = 1;
    layout_refused(c, l, "too few workers named");
    l = dm_layout_grid(1, 1, 0, 0);
    l.order[1] = 5;
    layout_refused(c, l, "order 5");
    l = dm_layout_grid(1, 1, 0, 0);
    l.replicas = -2;
    layout_refused(c, l, "-2 replicas");
    l.replicas = c->workers + 1;
    layout_refused(c, l, "more replicas than workers");
    layout_refused(c, dm_layout_explicit(2, block, map, 3), "a map too short");
    layout_refused(c, dm_layout_explicit(2, block, map, 5), "a map too long");
    layout_refused(c, dm_layout_explicit(2, block, NULL, 4), "no map");
    layout_refused(c, dm_layout_explicit(2, block, outside, 4), "a map to worker 99");
    layout_refused(c, dm_layout_explicit(2, block, below, 4), "a map to worker -1");
}

static void view_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_array a = {42};
    dm_array_info unsized = {.size = 0};
    const int64_t zero[3] = {0, 0, 0}, six[] = {6, 0}, below[] = {-1, 0}, rows[] = {7, 5}, negative[] = {2, -1},
                  shape[] = {5, 7}, minus[] = {-6, -5}, all[] = {6, 5}, far[] = {INT64_MAX, 1}, one[] = {1, 1};
    int worker = -7;
    REFUSED(DMT_ONE(ARG), "info", dm_array_query(s, t.f, NULL));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_query(s, t.f, &unsized));
    REFUSED(DMT_ONE(ARG), "index", dm_array_owner(s, t.f, six, &worker));
    REFUSED(DMT_ONE(ARG), "index", dm_array_owner(s, t.f, below, &worker));
    REFUSED(DMT_ONE(ARG), "index", dm_array_owner(s, t.f, NULL, &worker));
    REFUSED(DMT_ONE(ARG), "worker", dm_array_owner(s, t.f, zero, NULL));
    REFUSED(DMT_ONE(ARG), "lo", dm_array_view(s, t.f, below, one, &a));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_view(s, t.f, far, one, &a));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_view(s, t.f, one, far, &a));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_view(s, t.f, zero, rows, &a));
    REFUSED(DMT_ONE(ARG), "extent", dm_array_view(s, t.f, zero, negative, &a));
    REFUSED(DMT_ONE(ARG), "lo", dm_array_view(s, t.f, NULL, one, &a));
    REFUSED(DMT_ONE(ARG), "extent", dm_array_view(s, t.f, zero, NULL, &a));
    REFUSED(DMT_ONE(ARG), "out", dm_array_view(s, t.f, zero, one, NULL));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_array_reshape(s, t.f, 2, shape, &a));
    REFUSED(DMT_ONE(ARG) | DMT_ONE(SHAPE), "shape", dm_array_reshape(s, t.f, 2, minus, &a));
    REFUSED(DMT_ONE(ARG), "ndim", dm_array_reshape(s, t.f, -1, all, &a));
    REFUSED(DMT_ONE(ARG), "ndim", dm_array_reshape(s, t.f, 9, all, &a));
    REFUSED(DMT_ONE(ARG), "shape", dm_array_reshape(s, t.f, 2, NULL, &a));
    REFUSED(DMT_ONE(ARG), "out", dm_array_reshape(s, t.f, 2, all, NULL));
    if (a.id != 42 || worker != -7) {
        dmt_fail(c, "a failed call set its output");
    }
    dmt_things_end(c, &t);
}

static void transfer_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    float memory[64] = {0};
    const int64_t zero[] = {0, 0}, below[] = {-1, 0}, rows[] = {7, 5}, all[] = {6, 5}, negative[] = {2, -1};
    REFUSED(DMT_ONE(ARG), "host", dm_array_read(s, t.f, NULL, NULL, NULL, 0));
    REFUSED(DMT_ONE(ARG), "host", dm_array_write(s, t.f, NULL, NULL, NULL, 0));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_read(s, t.f, NULL, NULL, memory, 4));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_write(s, t.f, NULL, NULL, memory, 4));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_read(s, t.f, NULL, NULL, memory, -5));
    REFUSED(DMT_ONE(ARG), "ld", dm_array_write(s, t.f, NULL, NULL, memory, -5));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_read(s, t.f, zero, rows, memory, 0));
    REFUSED(DMT_ONE(ARG), NULL, dm_array_write(s, t.f, zero, rows, memory, 0));
    REFUSED(DMT_ONE(ARG), "lo", dm_array_read(s, t.f, below, all, memory, 0));
    REFUSED(DMT_ONE(ARG), "lo", dm_array_write(s, t.f, below, all, memory, 0));
    REFUSED(DMT_ONE(ARG), "extent", dm_array_write(s, t.f, zero, negative, memory, 0));
    REFUSED(DMT_ONE(ARG), "path", dm_array_save(s, t.f, NULL));
    REFUSED(DMT_ONE(ARG) | DMT_ONE(IO), NULL, dm_array_save(s, t.f, ""));
    dm_array a = {42};
    REFUSED(DMT_ONE(ARG), "path", dm_array_load(s, NULL, NULL, &a));
    REFUSED(DMT_ONE(ARG), "out", dm_array_load(s, "x.npy", NULL, NULL));
    if (a.id != 42) {
        dmt_fail(c, "a failed load set its output");
    }
    dmt_things_end(c, &t);
}

static void fill_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    REFUSED(DMT_ONE(ARG), "value", dm_fill(s, t.whole, 0.5));
    REFUSED(DMT_ONE(ARG), "value", dm_fill(s, t.whole, 3e9));
    REFUSED(DMT_ONE(ARG), "value", dm_fill(s, t.whole, NAN));
    REFUSED(DMT_ONE(ARG), "value", dm_fill(s, t.byte, 256));
    REFUSED(DMT_ONE(ARG), "value", dm_fill(s, t.byte, -1));
    REFUSED(DMT_ONE(ARG), "value", dm_fill_identity(s, t.byte, INFINITY));
    REFUSED(DMT_ONE(SHAPE) | DMT_ONE(ARG), "x", dm_fill_identity(s, t.cube, 1));
    REFUSED(DMT_ONE(SHAPE) | DMT_ONE(ARG), "x", dm_fill_identity(s, t.row, 1));
    REFUSED(DMT_ONE(ARG), "step", dm_fill_arange(s, t.whole, 0, 0.5));
    REFUSED(DMT_ONE(ARG), "start", dm_fill_arange(s, t.whole, 0.5, 1));
    REFUSED(DMT_ONE(ARG), NULL, dm_fill_uniform(s, t.f, 2, 1, 1));
    REFUSED(DMT_ONE(ARG), NULL, dm_fill_uniform(s, t.f, NAN, 1, 1));
    REFUSED(DMT_ONE(ARG), "lo", dm_fill_uniform(s, t.whole, 0.5, 3, 1));
    REFUSED(DMT_ONE(ARG), "hi", dm_fill_uniform(s, t.byte, 0, 300, 1));
    REFUSED(DMT_ONE(DTYPE), "x", dm_fill_normal(s, t.whole, 0, 1, 1));
    REFUSED(DMT_ONE(ARG), "deviation", dm_fill_normal(s, t.f, 0, -1, 1));
    dmt_things_end(c, &t);
}

static void null_session(dmt_case *c)
{
    dm_array a = DM_NO_ARRAY;
    unsigned wanted = DMT_ONE(HANDLE) | DMT_ONE(ARG) | DMT_ONE(STATE);
    const int64_t shape[] = {2, 2};
    float value[4];
    char *text;
    dm_counters counters = {.size = sizeof counters};
    REFUSED(wanted, "session", dm_sync(NULL));
    REFUSED(wanted, "session", dm_noop(NULL));
    REFUSED(wanted, "session", dm_finalize(NULL, NULL));
    REFUSED(wanted, "session", dm_array_create(NULL, DM_F32, 2, shape, NULL, &a));
    REFUSED(wanted, "session", dm_array_destroy(NULL, a));
    REFUSED(wanted, "session", dm_array_read(NULL, a, NULL, NULL, value, 0));
    REFUSED(wanted, "session", dm_array_load(NULL, "x.npy", NULL, &a));
    REFUSED(wanted, "session", dm_fill(NULL, a, 0));
    REFUSED(wanted, "session", dm_gemm(NULL, DM_N, DM_N, 1, a, a, 0, a));
    REFUSED(wanted, "session", dm_explain_begin(NULL));
    REFUSED(wanted, "session", dm_explain_end(NULL, &text));
    REFUSED(wanted, "session", dm_counters_get(NULL, 0, &counters));
    REFUSED(wanted, "session", dm_memory_trim(NULL));
    if (dm_workers(NULL) > 0) {
        dmt_fail(c, "dm_workers(NULL) is %d", dm_workers(NULL));
    }
}

/* The first kernel of every worker fails: a fill. What was made of it, also on other workers, names the fill. */
static void test_poison_names_its_command(void **state)
{
    (void)state;
    if (dmt_launched()) {
        return;
    }
    float host[30];
    const int64_t shape[] = {6, 5};
    dm_array a, copy, sum;
    dm_session *s = dmt_session_open(3, "fault='compute:1',log=error");
    const dm_layout rows = dm_layout_rows(s), one = dm_layout_single(2), cols = dm_layout_cols(s);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &rows, &a), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &one, &copy), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &cols, &sum), DM_OK);
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_copy(s, a, copy), DM_OK);
    assert_int_equal(dm_add(s, 1, copy, 1, copy, sum), DM_OK);
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    dm_array poisoned[] = {a, copy, sum};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dm_array_read(s, poisoned[i], NULL, NULL, host, 0), DM_ERR_POISONED);
        if (!strstr(dm_error_message(), "(fill), which failed")) {
            fail_msg("array %d: %s", i, dm_error_message());
        }
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dm_array_destroy(s, poisoned[i]), DM_OK);
    }
    dmt_session_close(s, 0);
}

DMT_ONE_CASE(create_errors)
DMT_ONE_CASE(layout_errors)
DMT_ONE_CASE(view_errors)
DMT_ONE_CASE(transfer_errors)
DMT_ONE_CASE(fill_errors)
DMT_ONE_CASE(null_session)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_errors),
        cmocka_unit_test(test_layout_errors),
        cmocka_unit_test(test_view_errors),
        cmocka_unit_test(test_transfer_errors),
        cmocka_unit_test(test_fill_errors),
        cmocka_unit_test(test_null_session),
        cmocka_unit_test(test_poison_names_its_command),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
