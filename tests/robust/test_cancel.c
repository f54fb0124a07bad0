/* dm_cancel at random moments: the wait returns soon, what was cancelled is poisoned or whole, and the session
 * goes on. */
#include "robust.h"

#include <pthread.h>
#include <signal.h>

enum { N = 24, WORKERS = 3 };
static dm_session *running;

static int nap(const dm_task *task)
{
    (void)task;
    usleep(5000);
    return 0;
}

static void *cancel_later(void *after_us)
{
    usleep((useconds_t)(uintptr_t)after_us);
    return (void *)(uintptr_t)dm_cancel(running);
}

/* Commands of all kinds that depend on one another, some seconds of them. */
static void queue(dm_session *s, dm_array a, dm_array b, dm_array c, dm_array d, int turns)
{
    for (int i = 0; i < turns; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        OK(dm_transpose(s, c, d));
        OK(dm_apply(s, "naps", 1, &d, (int[]){DM_READWRITE}, NULL, 0));
        OK(dm_copy(s, d, c));
    }
}

static double cancelled_after(dm_session *s, int after_us, int *cancelled)
{
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    double left[N * N], right[N * N], want[N * N], straight[N * N];
    dm_array a = make_matrix(s, N, &rows, 1), b = make_matrix(s, N, &cols, 2), c = make_matrix(s, N, &rows, 3),
             d = make_matrix(s, N, &cols, 4);
    element_matrix(N, 1, left);
    element_matrix(N, 2, right);
    product(N, left, right, straight);
    for (int i = 0; i < N * N; i++) {
        want[i] = straight[i % N * N + i / N];
    }
    pthread_t thread;
    void *result;
    running = s;
    queue(s, a, b, c, d, 50);
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, (void *)(uintptr_t)after_us), 0);
    double begin = seconds();
    dm_status status = dm_sync(s);
    double took = seconds() - begin - after_us / 1e6;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true((dm_status)(uintptr_t)result == DM_OK);
    assert_true(status == DM_OK || status == DM_ERR_CANCELLED);
    if (status == DM_ERR_CANCELLED) {
        assert_non_null(strstr(dm_error_message(), "it was cancelled"));
        ++*cancelled;
    }
    OK(dm_sync(s));
    for (int i = 0; i < 2; i++) { /* right, or not to be read */
        dm_status read = read_matrix(s, i ? d : c, N, NULL);
        assert_true(read == DM_ERR_POISONED || (status == DM_OK && read == DM_OK));
    }
    matrix_is(s, a, N, 1);
    matrix_is(s, b, N, 2);
    queue(s, a, b, c, d, 1); /* and it goes on */
    OK(read_matrix(s, d, N, want));
    const dm_array all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    return took;
}

static void test_random_moments(void **state)
{
    (void)state;
    enum { TRIES = 60 };
    unsigned seed =
        getenv("DMATH_TEST_SEED") ? (unsigned)atoi(getenv("DMATH_TEST_SEED")) : (unsigned)time(NULL);
    int cancelled = 0;
    double most = 0;
    print_message("seed %u\n", seed);
    dm_session *s = open_session(WORKERS, "log=error");
    int tries = 0;
    alarm(200);
    for (; tries < TRIES || (cancelled <= TRIES / 2 && tries < 4 * TRIES); tries++) { /* a slow machine may cancel too late */
        seed = seed * 1103515245 + 12345;
        double took = cancelled_after(s, (int)(seed >> 8) % 200000, &cancelled);
        most = took > most ? took : most;
    }
    print_message("%d of %d were cancelled, the slowest returned after %.3f s\n", cancelled, tries, most);
    assert_true(cancelled > TRIES / 2);
    close_session(s);
}

static void test_nothing(void **state)
{
    (void)state;
    dm_session *s = open_session(WORKERS, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_sync(s));
    OK(dm_cancel(s));
    OK(dm_sync(s));
    matrix_is(s, a, N, 1);
    OK(dm_fill(s, a, 2));
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    close_session(s);
    assert_int_equal(dm_cancel(s), DM_ERR_STATE);
    assert_int_equal(dm_cancel(NULL), DM_ERR_HANDLE);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    (void)!dm_cancel(running);
}

static int long_nap(const dm_task *task)
{
    (void)task;
    usleep(100000);
    return 0;
}

/* From a signal handler: commands of a minute in all return long before. */
static void test_signal(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    struct sigaction act = {.sa_handler = on_alarm}, before;
    running = s;
    assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
    for (int i = 0; i < 600; i++) {
        OK(dm_apply(s, "long naps", 1, &a, (int[]){DM_READWRITE}, NULL, 0));
    }
    alarm(1);
    double begin = seconds();
    assert_int_equal(dm_sync(s), DM_ERR_CANCELLED);
    assert_true(seconds() - begin < 40);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static int register_naps(void **state)
{
    (void)state;
    return dm_register("naps", nap) != DM_OK || dm_register("long naps", long_nap) != DM_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_moments, deadline),
        cmocka_unit_test_setup(test_nothing, deadline),
        cmocka_unit_test_setup(test_signal, deadline),
    };
    return cmocka_run_group_tests(tests, register_naps, NULL);
}
