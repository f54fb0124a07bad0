/* Workers that make no progress, here by links that take for ever: the waiting call gives up and says who, the
 * session may be waited for again, and dm_finalize comes back. */
#include "names_call.h"
#include "robust.h"

enum { N = 16 };

static void expect_timeout(dm_status status, double begin, double most)
{
    assert_int_equal(status, DM_ERR_TIMEOUT);
    print_message("%.1f s: %s\n", seconds() - begin, dm_error_message());
    assert_true(seconds() - begin < most);
    assert_true(names_call(dm_error_message()));
}

/* A copy over a link that is slower than the watchdog; on a machine that is slower still it may be done before anybody looks. */
static dm_session *late_copy(double latency_s, const char *options, dm_array *a, dm_array *b, dm_status *status)
{
    char text[128];
    snprintf(text, sizeof text, "link_latency_us=%g,log=error,%s", latency_s * 1e6, options);
    dm_session *s = open_session(2, text);
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    *a = make_matrix(s, N, &one, 1);
    *b = make_matrix(s, N, &other, 2);
    OK(dm_copy(s, *a, *b));
    *status = dm_sync(s);
    return s;
}

/* Late, not lost: dm_sync may wait once more, and then everything is right. */
static bool late(double latency_s)
{
    dm_array a, b, c;
    dm_status status;
    double begin, value[N * N];
    dm_session *s = late_copy(latency_s, "watchdog_s=0.5", &a, &b, &status);
    if (status == DM_OK) {
        OK(dm_finalize(s, NULL));
        return false;
    }
    assert_int_equal(status, DM_ERR_TIMEOUT);
    assert_non_null(strstr(dm_error_message(), "worker "));
    assert_non_null(strstr(dm_error_message(), "copy"));
    assert_non_null(strstr(dm_error_message(), "watchdog_s"));
    assert_non_null(strstr(dm_error_message(), "waits for worker 1"));
    assert_int_equal(dm_fill(s, a, 1), DM_ERR_TIMEOUT);
    assert_int_equal(dm_array_read(s, b, NULL, NULL, value, 0), DM_ERR_TIMEOUT);
    assert_int_equal(dm_matrix(s, DM_F32, 2, 2, &c), DM_ERR_TIMEOUT);
    assert_non_null(strstr(dm_error_message(), "dm_sync"));
    assert_int_equal(dm_workers(s), 2);
    begin = seconds();
    while ((status = dm_sync(s)) == DM_ERR_TIMEOUT && seconds() - begin < 60) {
    }
    OK(status);
    matrix_is(s, b, N, 1);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
    return true;
}

static void test_late(void **state)
{
    (void)state;
    assert_true(late(3) || late(15) || late(30));
}

/* Which block is waited for: of a product's operands, which come to a workspace, and of a copy's. */
static void test_block(void **state)
{
    (void)state;
    static const char *const wants[] = {": block 1 of 2 that it receives, one of b",
                                        ": block 1 of 2 that it receives, one of src"};
    bool shown[2] = {false};
    for (int latency_s = 1; latency_s < 10 && !(shown[0] && shown[1]); latency_s *= 3) {
        for (int i = 0; i < 2; i++) {
            char options[96];
            snprintf(options, sizeof options, "watchdog_s=0.5,link_latency_us=%d,log=error",
                     latency_s * 1000000);
            dm_session *s = open_session(3, options);
            dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
            dm_array a = make_matrix(s, N, &rows, 1), b = make_matrix(s, N, &rows, 2),
                     c = make_matrix(s, N, i ? &cols : &rows, 3);
            OK(i ? dm_copy(s, a, c) : dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
            dm_status status = dm_sync(s);
            if (status != DM_OK) {
                assert_int_equal(status, DM_ERR_TIMEOUT);
                print_message("%s\n", dm_error_message());
                shown[i] = strstr(dm_error_message(), wants[i]) != NULL;
            }
            double begin = seconds();
            while (status == DM_ERR_TIMEOUT && seconds() - begin < 60) {
                status = dm_sync(s);
            }
            OK(status);
            OK(dm_array_destroy(s, a));
            OK(dm_array_destroy(s, b));
            OK(dm_array_destroy(s, c));
            close_session(s);
        }
    }
    assert_true(shown[0] && shown[1]);
}

/* Nobody waited, and the worker comes back in time for dm_finalize. */
static void test_late_then_finalize(void **state)
{
    (void)state;
    bool shown = false;
    for (int latency_s = 1; latency_s < 30 && !shown; latency_s *= 3) {
        dm_array a, b;
        dm_status status;
        int64_t alive = -1;
        dm_session *s = late_copy(latency_s, "watchdog_s=0.3", &a, &b, &status);
        sleep((unsigned)(2 * latency_s));
        dm_status end = dm_finalize(s, &alive);
        assert_true(end == DM_OK || end == DM_ERR_TIMEOUT); /* not yet back, on a slow machine */
        assert_int_equal(alive, 2);
        shown = status == DM_ERR_TIMEOUT && end == DM_OK;
    }
    assert_true(shown);
}

static void test_never(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "link_latency_us=1e9,watchdog_s=0.5,log=error");
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    dm_array a = make_matrix(s, N, &one, 1), b = make_matrix(s, N, &other, 2);
    int64_t alive = -1;
    OK(dm_copy(s, a, b));
    double begin = seconds();
    expect_timeout(dm_finalize(s, &alive), begin, 60);
    assert_int_equal(alive, 2);
    assert_int_equal(dm_sync(s), DM_ERR_STATE);
    assert_int_equal(dm_finalize(s, NULL), DM_ERR_STATE);
    s = open_session(2, ""); /* the process can go on */
    a = make_matrix(s, N, NULL, 1);
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* The program runs ahead until the ring is full: it must not wait there for ever either. */
static void test_never_with_a_full_ring(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "link_latency_us=1e9,watchdog_s=0.5,log=error,ring=4096");
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    dm_array a = make_matrix(s, N, &one, 1), b = make_matrix(s, N, &other, 2);
    dm_status status = DM_OK;
    double begin = seconds();
    OK(dm_copy(s, a, b));
    for (int i = 0; i < 100000 && status == DM_OK; i++) {
        status = dm_fill(s, a, i);
    }
    expect_timeout(status, begin, 60);
    begin = seconds();
    expect_timeout(dm_sync(s), begin, 30);
    expect_timeout(dm_finalize(s, NULL), begin, 60);
}

/* Long work is no reason to give up as long as something moves. */
static void test_slow_but_moving(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "link_latency_us=5e4,watchdog_s=0.5");
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    dm_array a = make_matrix(s, N, &one, 1), b = make_matrix(s, N, &other, 2);
    for (int i = 0; i < 20; i++) {
        OK(dm_copy(s, a, b));
        OK(dm_copy(s, b, a));
    }
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

/* A step that takes 8 seconds of processor time, with a watchdog of one. Of few bytes it is stuck, however much
 * memory the worker holds; of 64 MB it may take so long. */
static void test_spin(void **state)
{
    (void)state;
    dm_array held, small;
    for (int i = 0; i < 2; i++) {
        dm_session *s = open_session(1, "watchdog_s=1,log=error,fault=spin:1");
        OK(dm_vector(s, DM_F64, 64 << 20,
                     &held)); /* 512 MB that nobody touches: it allowed 26 seconds more once */
        OK(dm_vector(s, DM_F64, i ? 8 << 20 : 1000, &small));
        OK(dm_fill(s, small, 1));
        double begin = seconds();
        dm_status status = dm_sync(s);
        if (i) {
            OK(status);
        } else {
            expect_timeout(status, begin, 60);
            assert_non_null(strstr(dm_error_message(), "kernel fill"));
            while ((status = dm_sync(s)) == DM_ERR_TIMEOUT && seconds() - begin < 90) {
            }
            OK(status);
        }
        OK(dm_finalize(s, &(int64_t){0}));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_block, deadline),
        cmocka_unit_test_setup(test_late, deadline),
        cmocka_unit_test_setup(test_late_then_finalize, deadline),
        cmocka_unit_test_setup(test_never, deadline),
        cmocka_unit_test_setup(test_never_with_a_full_ring, deadline),
        cmocka_unit_test_setup(test_slow_but_moving, deadline),
        cmocka_unit_test_setup(test_spin, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
