/* What a job of several ranks does in bad times: job_main <what> <folder>. Every rank leaves a file
 * <folder>/<rank> with its process id before dm_init, so that others can stop, kill and look for it. Prints
 * "right" at the end of a run that went as it must. */
#include <dmath/dmath.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *folder;

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            wrong(#what, __LINE__);                                                                            \
        }                                                                                                      \
    } while (0)
#define OK(call) CHECK((call) == DM_OK)

_Noreturn static void wrong(const char *what, int line)
{
    fprintf(stderr, "job_main, line %d: not %s (%s)\n", line, what, dm_error_message());
    _exit(1);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void leave_pid(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, rank ? rank : "0");
    FILE *f = fopen(path, "w");
    CHECK(f);
    fprintf(f, "%ld\n", (long)getpid());
    CHECK(fclose(f) == 0);
}

static pid_t pid_of(int rank)
{
    char path[300];
    long pid = 0;
    snprintf(path, sizeof path, "%s/%d", folder, rank);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%ld", &pid) == 1 && pid > 1);
    fclose(f);
    return (pid_t)pid;
}

static dm_session *start(const char *options)
{
    dm_config config = {sizeof config, 0, options};
    dm_session *s = NULL;
    OK(dm_init(&config, &s));
    return s;
}

static void refused(const char *options, dm_status status, const char *word, const char *other)
{
    dm_config config = {sizeof config, 0, options};
    dm_session *s = NULL;
    dm_status got = dm_init(&config, &s);
    fprintf(stderr, "%s: %s\n", dm_status_name(got), dm_error_message());
    CHECK(got == status);
    CHECK(!s);
    CHECK(strstr(dm_error_message(), word) && strstr(dm_error_message(), other));
}

enum { N = 60 };

static dm_array matrix(dm_session *s, dm_layout layout, double value)
{
    static const int64_t shape[2] = {N, N};
    static double values[N * N];
    dm_array a;
    OK(dm_array_create(s, DM_F64, 2, shape, &layout, &a));
    for (int i = 0; i < N * N; i++) {
        values[i] = value;
    }
    OK(dm_array_write(s, a, NULL, NULL, values, 0));
    return a;
}

static dm_status value_is(dm_session *s, dm_array a, double value)
{
    static double values[N * N];
    dm_status status = dm_array_read(s, a, NULL, NULL, values, 0);
    for (int i = 0; status == DM_OK && i < N * N; i++) {
        CHECK(values[i] == value);
    }
    return status;
}

static void products(dm_session *s, int count)
{
    dm_array a = matrix(s, dm_layout_rows(s), 1), b = matrix(s, dm_layout_rows(s), 2),
             c = matrix(s, dm_layout_rows(s), 3);
    for (int i = 0; i < count; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    }
}

/* --- the master leaves or is killed, a worker is killed
 * ---------------------------------------------------------- */

static void leave_by_exit(void)
{
    products(start(""), 500);
    exit(0);
}

static void leave_by_abort(void)
{
    products(start(""), 500);
    abort();
}

static void kill_worker(void)
{
    dm_session *s = start("");
    products(s, 100);
    OK(dm_sync(s));
    CHECK(kill(pid_of(2), SIGKILL) == 0);
    products(s, 100);
    (void)!dm_sync(s);
    sleep(60); /* the launcher ends this process */
    wrong("ended by the launcher", __LINE__);
}

/* --- a worker is stopped
 * ----------------------------------------------------------------------------------------- */

static void expect_timeout(dm_status status, double begin, double most, const char *word)
{
    fprintf(stderr, "%.1f s: %s: %s\n", seconds() - begin, dm_status_name(status), dm_error_message());
    CHECK(status == DM_ERR_TIMEOUT);
    CHECK(seconds() - begin < most);
    CHECK(strstr(dm_error_message(), word));
}

/* Calls that move the program's data wait too. */
static void stop_and_move(void)
{
    static double values[N * N];
    dm_session *s = start("watchdog_s=2");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    expect_timeout(dm_array_write(s, a, NULL, NULL, values, 0), begin, 8, "worker 1 (");
    CHECK(dm_array_read(s, a, NULL, NULL, values, 0) == DM_ERR_TIMEOUT);
    CHECK(kill(pid_of(2), SIGCONT) == 0);
    OK(dm_sync(s));
    OK(value_is(s, a, 0));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    begin = seconds();
    expect_timeout(dm_array_read(s, a, NULL, NULL, values, 0), begin, 8, "worker 1 (");
    expect_timeout(dm_finalize(s, NULL), begin, 9, "stuck");
}

static void stop_and_finalize(const char *options)
{
    dm_session *s = start(options);
    dm_array a = matrix(s, dm_layout_rows(s), 1), c = matrix(s, dm_layout_cols(s), 1);
    int64_t alive = -1;
    OK(dm_sync(s));
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_copy(s, a, c));
    dm_status status = dm_sync(s);
    expect_timeout(status, begin, 8, "worker 1 (");
    begin = seconds();
    CHECK(dm_fill(s, a, 1) == DM_ERR_TIMEOUT);
    status = dm_finalize(s, &alive);
    expect_timeout(status, begin, 3, "stuck");
    CHECK(alive == 2);
    CHECK(dm_sync(s) == DM_ERR_STATE);
    refused("", DM_ERR_STATE, "MPI", "session");
}

static void stop_and_finalize_at_once(void)
{
    dm_session *s = start("watchdog_s=2");
    (void)matrix(s, dm_layout_rows(s), 1);
    CHECK(kill(pid_of(1), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_noop(s));
    expect_timeout(dm_finalize(s, NULL), begin, 8, "stuck");
}

static void stop_and_continue(const char *options)
{
    dm_session *s = start(options);
    dm_array a = matrix(s, dm_layout_rows(s), 1), c = matrix(s, dm_layout_cols(s), 2);
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    OK(dm_copy(s, a, c));
    expect_timeout(dm_sync(s), begin, 8, "worker 1 (");
    CHECK(kill(pid_of(2), SIGCONT) == 0);
    OK(dm_sync(s));
    OK(value_is(s, c, 1));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, c));
    OK(dm_finalize(s, NULL));
}

static void stop_full_ring(void)
{
    dm_session *s = start("watchdog_s=2,ring=4096");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    dm_status status = DM_OK;
    while (status == DM_OK && seconds() - begin < 20) {
        status = dm_fill(s, a, 1);
    }
    expect_timeout(status, begin, 10, "dm_finalize");
    expect_timeout(dm_finalize(s, NULL), begin, 12, "stuck");
}

/* --- starting
 * ----------------------------------------------------------------------------------------------------- */

static void twice(void)
{
    dm_session *s = start("");
    refused("", DM_ERR_STATE, "session of this launch", "dm_init_comm");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
    refused("", DM_ERR_STATE, "finalized", "earlier session");
}

/* On all ranks. */
static void own_mpi(void)
{
    MPI_Init(NULL, NULL);
    refused("", DM_ERR_STATE, "dm_init_comm", "the program itself");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static void alone(void)
{
    int flag = -1;
    dm_session *s = start("");
    MPI_Initialized(&flag);
    CHECK(!flag);
    CHECK(dm_workers(s) >= 1);
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
    MPI_Initialized(&flag);
    CHECK(!flag);
    s = start(""); /* and again: no worker process has left */
    OK(dm_finalize(s, NULL));
}

/* --- failures of single ranks
 * -------------------------------------------------------------------------------------- */

/* The environment of one rank plants a fault. Whatever happens, nobody hangs, values are right or poisoned. */
static void fault(void)
{
    dm_session *s = start(getenv("DMATH_TEST_OPTIONS"));
    dm_array a = matrix(s, dm_layout_rows(s), 1), b = matrix(s, dm_layout_rows(s), 2),
             c = matrix(s, dm_layout_cols(s), 3);
    dm_array d = matrix(s, dm_layout_cyclic(s, 0, 2), 4), e = matrix(s, dm_layout_replicated(s), 5);
    int failures = 0;
    for (int turn = 0; turn < 6; turn++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
        OK(dm_copy(s, c, d));
        OK(dm_transpose(s, d, e));
        OK(dm_add(s, 1, e, 1, a, d));
        dm_status status = dm_sync(s);
        if (status != DM_OK) {
            failures++;
            CHECK(strstr(dm_error_message(), "planted fault") && strstr(dm_error_message(), "worker 1 ("));
            OK(dm_sync(s));
        }
        dm_status c_status = value_is(s, c, 2 * N), d_status = value_is(s, d, 2 * N + 1);
        CHECK(status != DM_OK || (c_status == DM_OK && d_status == DM_OK));
        CHECK(c_status == DM_OK || c_status == DM_ERR_POISONED);
        CHECK(d_status == DM_OK || d_status == DM_ERR_POISONED);
        OK(value_is(s, a, 1));
        OK(value_is(s, b, 2));
    }
    fprintf(stderr, "%d failures\n", failures);
    CHECK(failures == 1);
    dm_array all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    OK(dm_finalize(s, NULL));
}

/* --- idle
 * ---------------------------------------------------------------------------------------------------------- */

static double cpu_seconds(int rank)
{
    char path[64], line[1024];
    unsigned long user = 0, system_time = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid_of(rank));
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(line, sizeof line, f));
    fclose(f);
    const char *at = strrchr(line, ')');
    CHECK(at &&
          sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system_time) == 2);
    return (double)(user + system_time) / (double)sysconf(_SC_CLK_TCK);
}

static void idle(void)
{
    dm_session *s = start("");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    OK(value_is(s, a, 1));
    int ranks = dm_workers(s) + 1;
    double worst = 1, sum = 0;
    for (int attempt = 0; attempt < 3 && worst > 0.01; attempt++) {
        double before[64], all = 0;
        sleep(1);
        for (int r = 0; r < ranks; r++) {
            before[r] = cpu_seconds(r);
            all -= before[r];
        }
        sleep(4);
        worst = 0;
        for (int r = 0; r < ranks; r++) {
            double now = cpu_seconds(r), share = (now - before[r]) / 4;
            all += now;
            worst = share > worst ? share : worst;
        }
        sum = all / 4;
        fprintf(stderr, "%d idle ranks: the busiest takes %.2f %% of a core, all together %.2f %%\n", ranks,
                worst * 100, sum * 100);
    }
    CHECK(worst <= 0.015); /* one tick of the clock is 0.25 % */
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    const char *what = argv[1];
    folder = argv[2];
    alarm(90);
    leave_pid();
    if (!strcmp(what, "exit")) {
        leave_by_exit();
    } else if (!strcmp(what, "abort")) {
        leave_by_abort();
    } else if (!strcmp(what, "kill")) {
        kill_worker();
    } else if (!strcmp(what, "stop_move")) {
        stop_and_move();
    } else if (!strcmp(what, "stop")) {
        stop_and_finalize("watchdog_s=2");
    } else if (!strcmp(what, "stop_hosts")) {
        stop_and_finalize("watchdog_s=2,pretend_hosts=2");
    } else if (!strcmp(what, "stop_finalize")) {
        stop_and_finalize_at_once();
    } else if (!strcmp(what, "stop_continue")) {
        stop_and_continue("watchdog_s=2");
    } else if (!strcmp(what, "stop_continue_hosts")) {
        stop_and_continue("watchdog_s=2,pretend_hosts=2");
    } else if (!strcmp(what, "stop_ring")) {
        stop_full_ring();
    } else if (!strcmp(what, "twice")) {
        twice();
    } else if (!strcmp(what, "own_mpi")) {
        own_mpi();
    } else if (!strcmp(what, "alone")) {
        alone();
    } else if (!strcmp(what, "fault")) {
        fault();
    } else if (!strcmp(what, "idle")) {
        idle();
    } else if (!strcmp(what, "version")) {
        refused("", DM_ERR_VERSION, "rank 2", "0.1.0");
    } else if (!strcmp(what, "direct_hosts")) {
        refused("transport=direct,pretend_hosts=2", DM_ERR_TRANSPORT, "transport=direct", "hosts");
    } else {
        return 2;
    }
    printf("right\n");
    return 0;
}
