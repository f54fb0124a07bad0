/* Workers that never come back, and workers that only seem so: functions that loop or sleep for ever, a BLAS
 * that has no memory, a program that is stopped for a while. The waiting call says who it is within the limit
 * of dmath.h, or waits on. */
#include "robust.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { N = 16 };
static atomic_int go_on, computing;

static int loop(const dm_task *task)
{
    while (task->worker == 1 && !atomic_load(&go_on)) {
    }
    return 0;
}

static int nap(const dm_task *task)
{
    while (task->worker == 1 && !atomic_load(&go_on)) {
        usleep(1000);
    }
    return 0;
}

/* Another thread of the program, whose processor time is no worker's progress. */
static void *compute(void *nothing)
{
    while (atomic_load(&computing)) {
    }
    return nothing;
}

static void forever(const char *name)
{
    dm_session *s = open_session(3, "watchdog_s=0.2,log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    pthread_t thread;
    alarm(200); /* other programs may have the processors */
    atomic_store(&go_on, 0);
    atomic_store(&computing, 1);
    assert_int_equal(pthread_create(&thread, NULL, compute, NULL), 0);
    OK(dm_apply(s, name, 1, &a, (int[]){DM_READ}, NULL, 0));
    double begin = seconds();
    dm_status status = dm_sync(s);
    double took = seconds() - begin;
    print_message("%.1f s: %s\n", took, dm_error_message());
    atomic_store(&computing, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, DM_ERR_TIMEOUT);
    assert_true(took > 1.9 && took < 60);
    assert_non_null(strstr(dm_error_message(), "worker 1 ("));
    assert_non_null(strstr(dm_error_message(), name));
    assert_null(strstr(dm_error_message(), "worker 0 ("));
    atomic_store(&go_on, 1);
    begin = seconds();
    while ((status = dm_sync(s)) == DM_ERR_TIMEOUT && seconds() - begin < 60) {
    }
    OK(status);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static void test_functions(void **state)
{
    (void)state;
    OK(dm_register("loops", loop));
    OK(dm_register("naps", nap));
    forever("loops");
    forever("naps");
}

/* Runs it in a child, which must end well within so many seconds; meanwhile the child may be stopped now and
 * then. */
static void in_child(int (*run)(void), double most, bool stopped)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(run());
    }
    double begin = seconds();
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && seconds() - begin < most) {
        usleep(300000);
        if (stopped) {
            assert_int_equal(kill(child, SIGSTOP), 0);
            usleep(2500000);
            assert_int_equal(kill(child, SIGCONT), 0);
        }
    }
    if (ended == 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, &status, 0);
        fail_msg("it did not end in %g s", most);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In so little address space OpenBLAS may spin for a buffer for ever. */
static rlim_t space;

static int product_in_little_space(void)
{
    enum { SIDE = 900 };
    struct rlimit limit = {space, space};
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array x, y, z;
    int64_t alive;
    config.workers = 2;
    config.options = "watchdog_s=1,log=error,slab=1M";
    if (setrlimit(RLIMIT_AS, &limit) != 0 || dm_init(&config, &s) != DM_OK) {
        return 0; /* an error is as it must be */
    }
    dm_status status = dm_matrix(s, DM_F64, SIDE, SIDE, &x);
    status = status == DM_OK ? dm_matrix(s, DM_F64, SIDE, SIDE, &y) : status;
    status = status == DM_OK ? dm_matrix(s, DM_F64, SIDE, SIDE, &z) : status;
    status = status == DM_OK ? dm_fill(s, x, 1) : status;
    status = status == DM_OK ? dm_fill(s, y, 1) : status;
    status = status == DM_OK ? dm_matmul(s, x, y, z) : status;
    status = status == DM_OK ? dm_sync(s) : status;
    fprintf(stderr, "%lld MiB: %s %s\n", (long long)(space >> 20), dm_status_name(status),
            status ? dm_error_message() : "");
    bool right = status == DM_OK || (status == DM_ERR_NOMEM && dm_error_message()[0]);
    (void)!dm_finalize(s, &alive);
    return !right;
}

static void test_little_space(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    for (rlim_t mib = 300; mib <= 1050; mib += 75) {
        space = mib << 20;
        in_child(product_in_little_space, 80, false);
    }
}

/* Waits for slow links while the whole program is stopped for longer than the watchdog's time. */
static int slow_copies(void)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array a, b;
    config.workers = 2;
    config.options = "watchdog_s=1,log=error,link_latency_us=4e5";
    if (dm_init(&config, &s) != DM_OK) {
        return 1;
    }
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    const int64_t shape[] = {N};
    dm_status status = dm_array_create(s, DM_F64, 1, shape, &one, &a);
    status = status == DM_OK ? dm_array_create(s, DM_F64, 1, shape, &other, &b) : status;
    status = status == DM_OK ? dm_fill(s, a, 1) : status;
    for (int i = 0; i < 8 && status == DM_OK; i++) {
        status = dm_copy(s, i % 2 ? b : a, i % 2 ? a : b);
        status = status == DM_OK ? dm_sync(s) : status;
    }
    if (status != DM_OK) {
        fprintf(stderr, "%s: %s\n", dm_status_name(status), dm_error_message());
    }
    return status != DM_OK;
}

static void test_suspended(void **state)
{
    (void)state;
    in_child(slow_copies, 95, true);
}

/* Many workers need much: the log says so. */
static void test_many(void **state)
{
    (void)state;
    char text[4000];
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    dm_session *s = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 500;
    dm_status status = dm_init(&config, &s);
    if (status == DM_OK) {
        status = dm_finalize(s, NULL);
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[got > 0 ? got : 0] = 0;
    assert_true(status == DM_ERR_NOMEM || strstr(text, "500 workers in one process") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_functions, deadline),
        cmocka_unit_test_setup(test_little_space, deadline),
        cmocka_unit_test_setup(test_suspended, deadline),
        cmocka_unit_test_setup(test_many, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
