/* A worker whose host has no memory to prepare a command: for a moment, which nobody notices; and for good,
 * which ends the session with an error at once, without the watchdog. */
#include "robust.h"

enum { N = 24, WORKERS = 3, CALLS = 12 };

/* Copies between layouts, products and reads, up to the first that is not DM_OK: its status, and its text. */
static dm_status run(dm_session *s, dm_array *a, int turns)
{
    double values[N * N];
    dm_status status = DM_OK;
    for (int i = 0; i < turns && status == DM_OK; i++) {
        (void)((status = dm_copy(s, a[0], a[1])) == DM_OK &&
               (status = dm_gemm(s, DM_N, DM_T, 1, a[0], a[1], 0, a[2])) == DM_OK &&
               (status = dm_array_read(s, a[2], NULL, NULL, values, 0)) == DM_OK &&
               (status = dm_array_write(s, a[0], NULL, NULL, values, 0)) == DM_OK &&
               (status = dm_fill(s, a[0], 1)) == DM_OK && (status = dm_sync(s)) == DM_OK);
    }
    return status;
}

static dm_session *open_with_fault(const char *fault, int at, const char *options, dm_array *a)
{
    char text[200];
    const int64_t shape[2] = {N, N};
    snprintf(text, sizeof text, "fault='%s:%d',log=error%s", fault, at, options);
    dm_session *s = open_session(WORKERS, text);
    dm_layout layouts[3] = {dm_layout_rows(s), dm_layout_cols(s), dm_layout_cyclic(s, 0, 2)};
    for (int i = 0; i < 3; i++) {
        OK(dm_array_create(s, DM_F64, 2, shape, &layouts[i], &a[i]));
    }
    return s;
}

static void test_for_a_moment(void **state)
{
    (void)state;
    for (int at = 1; at <= CALLS; at++) {
        dm_array a[3];
        dm_session *s = open_with_fault("prepare", at, "", a);
        OK(dm_fill(s, a[0], 1));
        OK(run(s, a, 2));
        double want[N * N];
        for (int i = 0; i < N * N; i++) {
            want[i] = N;
        }
        OK(read_matrix(s, a[2], N, want));
        for (int i = 0; i < 3; i++) {
            OK(dm_array_destroy(s, a[i]));
        }
        close_session(s);
    }
}

/* All workers meet the fault at the same command. */
static void test_for_good(void **state)
{
    (void)state;
    for (int at = 1; at <= CALLS; at++) {
        dm_array a[3], b;
        int64_t alive = -1;
        const int64_t shape[2] = {N, N};
        dm_session *s = open_with_fault("prepares", at, at % 2 ? "" : ",ring=4096", a);
        double begin = seconds();
        (void)!dm_fill(s, a[0], 1);
        dm_status status = run(s, a, 1000);
        print_message("%.2f s: %s: %s\n", seconds() - begin, dm_status_name(status), dm_error_message());
        assert_int_equal(status, DM_ERR_NOMEM);
        assert_non_null(strstr(dm_error_message(), "worker "));
        assert_non_null(strstr(dm_error_message(), "planted fault"));
        assert_non_null(strstr(dm_error_message(), "The session has failed; call dm_finalize"));
        assert_true(seconds() - begin < 30);
        assert_int_equal(dm_sync(s), DM_ERR_NOMEM);
        assert_int_equal(dm_fill(s, a[0], 2), DM_ERR_NOMEM);
        assert_int_equal(dm_array_create(s, DM_F64, 2, shape, NULL, &b), DM_ERR_NOMEM);
        assert_int_equal(dm_workers(s), WORKERS);
        assert_int_equal(dm_finalize(s, &alive), DM_ERR_NOMEM);
        assert_int_equal(alive, 3);
        assert_int_equal(dm_sync(s), DM_ERR_STATE);
    }
    dm_session *s = open_session(WORKERS, ""); /* the process goes on */
    dm_array a = make_matrix(s, N, NULL, 1);
    matrix_is(s, a, N, 1);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* dm_finalize is the first call that waits. */
static void test_in_finalize(void **state)
{
    (void)state;
    dm_array a[3];
    dm_session *s = open_with_fault("prepares", 2, "", a);
    double begin = seconds();
    OK(dm_fill(s, a[0], 1));
    OK(dm_copy(s, a[0], a[1]));
    assert_int_equal(dm_finalize(s, NULL), DM_ERR_NOMEM);
    assert_true(seconds() - begin < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_for_a_moment, deadline),
        cmocka_unit_test_setup(test_for_good, deadline),
        cmocka_unit_test_setup(test_in_finalize, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
