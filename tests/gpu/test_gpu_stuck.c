/* A kernel that never ends, and a device that fails: each is named, within the limit. A process of its own for
 * each, because nothing ends such a kernel but the end of its process, and a device that has failed stays so.
 * With the argument "rank" the program is a rank of a job that works until it ends. */
#include "gpu_case.h"
#include "support/child.h"

#include <dmath/dmath.h>
#include <signal.h>
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

/* An address without memory: CUDA's error 700. Of the last worker, and with one worker it is named. With two
 * GPUs in a process CUDA does not tell which of them has failed, and the text says so. */
static void illegal(int workers)
{
    char options[160];
    int last = workers - 1;
    bool alone = workers == 1, one_gpu = alone || dmi_cu_devices() == 1;
    snprintf(options, sizeof options, DEVICE ",fault=illegal:9:worker=%d,watchdog_s=5", last);
    dm_session *s = start(workers, options);
    double begin = seconds();
    dm_status status = work(s);
    double took = seconds() - begin;
    fprintf(stderr, "%.1f s: %s: %s\n", took, dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_INTERNAL && took < 40);
    CHECK(strstr(dm_error_message(), alone ? " failed on worker 0 (" : " failed on worker "));
    CHECK(strstr(dm_error_message(), one_gpu ? ", GPU 0): its GPU has failed, here or in a later command: "
                                             : "): its GPU or another one of this process (CUDA does not tell "
                                               "which) has failed, here or in a later command: "));
    CHECK(strstr(dm_error_message(), ": an illegal memory access was encountered"));
    CHECK(strstr(dm_error_message(), "f32 256x256") && strncmp(dm_error_message(), "command ", 8) == 0);
    CHECK(work(s) != DM_OK && strstr(dm_error_message(), ", GPU ")); /* as all that comes later */
    fprintf(stderr, "then: %s\n", dm_error_message());
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
    in_child(illegal, 1);
    in_child(illegal, 2);
}

static int be_rank(void)
{
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    dm_session *s = start(0, DEVICE);
    puts("begun");
    fflush(stdout);
    while (work(s) == DM_OK) {
    }
    sleep(60); /* the launcher, or the library, ends this process */
    return 0;
}

/* What a job of three ranks has said, one of whose GPUs fails. */
typedef struct job {
    char said[8192];
    pid_t pid[8];
    int pids, named, status;
    double took; /* from the first command on */
} job;

static void run_job(const char *more, job *j)
{
    char self[512], command[2048], line[2048];
    size_t used = 0;
    double begun = 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(command, sizeof command,
             "timeout -k 5 100 mpirun %s -n 1 '%s' rank : -n 1 -x DMATH_FAULT=illegal:9 '%s' rank : -n 1 '%s' "
             "rank 2>&1",
             more, self, self, self);
    *j = (job){.took = -1};
    FILE *from = popen(command, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from)) {
        int pid;
        used += (size_t)snprintf(j->said + used, sizeof j->said - used, "%s", line);
        used = used < sizeof j->said ? used : sizeof j->said - 1;
        if (sscanf(line, "pid %d", &pid) == 1 && j->pids < 8) {
            j->pid[j->pids++] = pid;
        }
        begun = strcmp(line, "begun\n") == 0 ? seconds() : begun;
        j->named += strstr(line, "worker 0 (") && strstr(line, ", GPU ") &&
                    strstr(line, ") has died in command ") && strstr(line, "f32 256x256") &&
                    strstr(line, ": its GPU has failed: an illegal memory access was encountered");
    }
    j->status = pclose(from);
    j->took = begun > 0 ? seconds() - begun : -1;
}

/* The rank leaves, and rank 0 names it, what it was doing, and why; the job ends, and nothing is left of it. */
static void test_illegal_address_of_a_rank(void **state)
{
    (void)state;
    static const char *const launchers[] = {"", "--enable-recovery"};
    need_devices();
    if (system("command -v mpirun >/dev/null") != 0) {
        puts("no mpirun, skipped");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        job j;
        run_job(launchers[i], &j);
        print_message("%s%.1f s\n", j.said, j.took);
        assert_int_equal(j.pids, 3);
        assert_int_equal(j.named, 1);
        assert_true(i == 1 || j.status != 0); /* with the other its status is 0, whatever happens */
        assert_true(j.took >= 0 && j.took < 15);
        for (int p = 0; p < j.pids; p++) {
            for (int wait = 0; wait < 50 && kill(j.pid[p], 0) == 0; wait++) {
                usleep(100000);
            }
            assert_true(kill(j.pid[p], 0) != 0);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "rank") == 0) {
        return be_rank();
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_endless_kernel),
                                       cmocka_unit_test(test_illegal_address),
                                       cmocka_unit_test(test_illegal_address_of_a_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
