/* A kernel that never ends, and a device that fails: each is named, within the limit. A process of its own for each, because
 * nothing ends such a kernel but the end of its process, and a device that has failed stays so. */
#include "gpu_case.h"

#include <dmath/dmath.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef DMATH_WITH_CUDA
#define DEVICE "device=cuda,share_gpu=1,log=error"
#else
#define DEVICE "device=emulated,share_gpu=1,log=error"
#endif

enum { SIDE = 256 };

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #what, dm_error_message());                     \
            _exit(1);                                                                                          \
        }                                                                                                      \
    } while (0)

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static dm_session *start(int workers, const char *options)
{
    dm_config config = {.size = sizeof config, .workers = workers, .options = options};
    dm_session *s = NULL;
    CHECK(dm_init(&config, &s) == DM_OK);
    return s;
}

/* Work until it fails. Returns the status. */
static dm_status work(dm_session *s)
{
    dm_array a, b, c;
    CHECK(dm_matrix(s, DM_F32, SIDE, SIDE, &a) == DM_OK && dm_matrix(s, DM_F32, SIDE, SIDE, &b) == DM_OK &&
          dm_matrix(s, DM_F32, SIDE, SIDE, &c) == DM_OK);
    dm_status status = DM_OK;
    for (int i = 0; i < 20 && status == DM_OK; i++) {
        status = dm_fill(s, a, 1);
        status = status == DM_OK ? dm_fill(s, b, 2) : status;
        status = status == DM_OK ? dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c) : status;
        status = status == DM_OK ? dm_transpose(s, c, a) : status;
        status = status == DM_OK ? dm_sync(s) : status;
    }
    return status;
}

static void endless(int workers)
{
    dm_session *s = start(workers, DEVICE ",fault=endless:9,watchdog_s=3");
    double begin = seconds();
    dm_status status = work(s);
    double took = seconds() - begin;
    fprintf(stderr, "%.1f s: %s: %s\n", took, dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_TIMEOUT && took < 40);
    CHECK(strstr(dm_error_message(), "worker 0 (") && strstr(dm_error_message(), " in command "));
    CHECK(strstr(dm_error_message(), "f32 256x256"));
    begin = seconds();
    CHECK(dm_finalize(s, NULL) == DM_ERR_TIMEOUT && seconds() - begin < 40);
    _exit(0);
}

/* An address without memory: CUDA's error 700. */
static void illegal(int workers)
{
    dm_session *s = start(workers, DEVICE ",fault=illegal:9,watchdog_s=5");
    double begin = seconds();
    dm_status status = work(s);
    double took = seconds() - begin;
    fprintf(stderr, "%.1f s: %s: %s\n", took, dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_INTERNAL && took < 40);
    CHECK(strstr(dm_error_message(), " failed on worker "));
    CHECK(strstr(dm_error_message(), "GPU of this process has failed") || strstr(dm_error_message(), "illegal memory access"));
    begin = seconds();
    (void)!dm_finalize(s, NULL);
    CHECK(seconds() - begin < 40);
    _exit(0);
}

static void in_child(void (*function)(int workers), int workers)
{
    int result = -1;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(100);
        function(workers);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

/* In a child, too: a process that has asked CUDA for its devices has none in its children. */
static void say_devices(int unused)
{
    (void)unused;
    _exit(dmi_cu_devices() > 0 ? 0 : 2);
}

static void need_devices(void)
{
    int result = -1;
    pid_t child = fork();
    if (child == 0) {
        say_devices(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result) || WEXITSTATUS(result) != 0) {
        puts("no GPU, skipped");
        skip();
    }
}

static void test_endless_kernel(void **state)
{
    (void)state;
    need_devices();
    in_child(endless, 1);
    in_child(endless, 2);
}

static void test_illegal_address(void **state)
{
    (void)state;
    need_devices();
#ifdef DMATH_WITH_CUDA
    in_child(illegal, 1);
    in_child(illegal, 2);
#else
    (void)illegal; /* an emulated GPU's memory is the process's: test_emulated_gpu.c loses a device in another way */
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_endless_kernel), cmocka_unit_test(test_illegal_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
