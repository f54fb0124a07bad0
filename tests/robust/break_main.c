/* Jobs one rank of which breaks in the middle of a command: break_main <what> <folder>, as job_main.
 * prepare: its environment plants "no memory for a command" once; prepares: for good; message: a call of MPI
 * fails; kill: it is killed; stop: it is stopped, and the error names it and the command; fifth: it is slow;
 * cancel: nothing breaks, but commands are cancelled. Prints "right" at the end of a run that went as it must.
 */
#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static dm_array a, b, c, d;

/* Without a payload. */
static dm_array filled(dm_session *s, dm_layout layout, double value)
{
    dm_array array;
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){N, N}, &layout, &array));
    OK(dm_fill(s, array, value));
    return array;
}

static dm_session *open_session(double watchdog_s, const char *options)
{
    char text[200];
    const char *more = getenv("DMATH_TEST_OPTIONS");
    snprintf(text, sizeof text, "log=error,watchdog_s=%g%s%s%s", watchdog_s, *options ? "," : "", options,
             more ? more : "");
    dm_session *s = start(text);
    a = filled(s, dm_layout_rows(s), 1);
    b = filled(s, dm_layout_cols(s), 2);
    c = filled(s, dm_layout_cyclic(s, 0, 2), 3);
    d = filled(s, dm_layout_cols(s), 4);
    return s;
}

/* Commands whose workers need one another; the first status that is not DM_OK. */
static dm_status work(dm_session *s, int turns)
{
    dm_status status = DM_OK;
    for (int i = 0; i < turns && status == DM_OK; i++) {
        (void)((status = dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c)) == DM_OK &&
               (status = dm_transpose(s, c, d)) == DM_OK && (status = dm_copy(s, d, c)) == DM_OK &&
               (status = dm_sync(s)) == DM_OK);
    }
    return status;
}

static void for_a_moment(void)
{
    dm_session *s = open_session(30, "");
    OK(work(s, 5));
    OK(value_is(s, c, 2 * N));
    OK(value_is(s, d, 2 * N));
    const dm_array all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    OK(dm_finalize(s, NULL));
}

static void for_good(dm_status expected, const char *text)
{
    static double values[N * N];
    dm_session *s = open_session(60, "");
    double begin = seconds();
    dm_status status = work(s, 100);
    fprintf(stderr, "%.1f s: %s: %s\n", seconds() - begin, dm_status_name(status), dm_error_message());
    CHECK(status == expected);
    CHECK(strstr(dm_error_message(), text) && strstr(dm_error_message(), "worker 1 ("));
    CHECK(dm_sync(s) == expected);
    CHECK(dm_fill(s, a, 1) == expected);
    CHECK(dm_array_read(s, a, NULL, NULL, values, 0) == expected);
    CHECK(strstr(dm_error_message(), "worker 1 ("));
    CHECK(dm_finalize(s, NULL) == expected);
    CHECK(dm_sync(s) == DM_ERR_STATE);
    CHECK(seconds() - begin < 50); /* without the watchdog */
}

static void kill_in_a_command(void)
{
    dm_session *s = open_session(30, "link_latency_us=2e5");
    OK(work(s, 1));
    OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    usleep(100000);
    CHECK(kill(pid_of(2), SIGKILL) == 0);
    (void)!dm_sync(s);
    sleep(60); /* the launcher ends this process */
    wrong("ended by the launcher", __FILE__, __LINE__);
}

/* Stops worker 1 so long after a product was queued. false: it had not begun, or was done already. */
static bool stopped_in_time(dm_session *s, useconds_t after_us)
{
    OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    usleep(after_us);
    CHECK(kill(pid_of(2), SIGSTOP) == 0);
    double begin = seconds();
    dm_status status = dm_sync(s);
    fprintf(stderr, "%.1f s: %s: %s\n", seconds() - begin, dm_status_name(status), dm_error_message());
    const char *at = strstr(dm_error_message(), "worker 1 (");
    bool in_time = status == DM_ERR_TIMEOUT && at && strstr(at, "is stopped (SIGSTOP), in command ");
    if (in_time) {
        CHECK(strstr(at, " gemm (a f64 60x60") && strstr(at, ", step "));
        CHECK(!strstr(dm_error_message(), "worker 0 (")); /* it only waits */
    } else {
        CHECK(status == DM_OK || (status == DM_ERR_TIMEOUT && at));
    }
    CHECK(kill(pid_of(2), SIGCONT) == 0);
    OK(dm_sync(s));
    OK(value_is(s, c, 2 * N));
    return in_time;
}

static void stop_in_a_command(void)
{
    dm_session *s = open_session(2, "link_latency_us=5e5");
    bool in_time = false;
    OK(work(s, 1));
    for (int i = 0; i < 8 && !in_time; i++) {
        in_time = stopped_in_time(s, (useconds_t)(200000 + 50000 * i));
    }
    CHECK(in_time);
    OK(dm_finalize(s, NULL));
}

static atomic_bool over;

static void *slow_down(void *rank)
{
    pid_t pid = pid_of((int)(intptr_t)rank);
    while (!atomic_load(&over)) {
        CHECK(kill(pid, SIGSTOP) == 0);
        usleep(80000);
        CHECK(kill(pid, SIGCONT) == 0);
        usleep(20000);
    }
    return NULL;
}

/* A worker with a fifth of a core computes for longer than the watchdog's time: it is slow, not stuck. */
static void a_fifth(void)
{
    enum { LARGE = 2500 };
    dm_session *s = start("watchdog_s=0.5,log=error");
    dm_array x, y, z;
    pthread_t thread;
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &x));
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &y));
    OK(dm_matrix(s, DM_F64, LARGE, LARGE, &z));
    OK(dm_fill(s, x, 1));
    OK(dm_fill(s, y, 1));
    OK(dm_sync(s));
    CHECK(pthread_create(&thread, NULL, slow_down, (void *)2) == 0);
    OK(dm_matmul(s, x, y, z));
    OK(dm_sync(s));
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(dm_finalize(s, &(int64_t){0}));
}

static atomic_bool asked;

static void *cancel_soon(void *session)
{
    usleep((useconds_t)(rand() % 60000));
    OK(dm_cancel(session));
    atomic_store(&asked, true);
    return NULL;
}

/* Commands are cancelled at random moments; each time the session goes on. A call between two commands cancels
 * nothing: commands follow one another until it has returned, and there are as many calls as it takes. */
static void cancel_often(void)
{
    int cancelled = 0, tries = 0;
    dm_session *s = open_session(30, "link_latency_us=1000");
    OK(dm_sync(s)); /* the arrays hold what they must */
    for (; tries < 20 || (cancelled < 5 && tries < 500); tries++) {
        pthread_t thread;
        dm_status status = DM_OK;
        atomic_store(&asked, false);
        CHECK(pthread_create(&thread, NULL, cancel_soon, s) == 0);
        while (status == DM_OK && !atomic_load(&asked)) {
            status = work(s, 1);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(status == DM_OK || status == DM_ERR_CANCELLED);
        cancelled += status != DM_OK;
        status = dm_sync(s);
        CHECK(status == DM_OK || status == DM_ERR_CANCELLED);
        OK(value_is(s, a, 1));
        OK(work(s, 1));
        OK(value_is(s, c, 2 * N));
        OK(value_is(s, d, 2 * N));
    }
    fprintf(stderr, "%d of %d were cancelled\n", cancelled, tries);
    CHECK(cancelled >= 5);
    OK(dm_finalize(s, &(int64_t){0}));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    const char *what = argv[1];
    alarm(90);
    leave_pid(argv[2]);
    if (!strcmp(what, "prepare")) {
        for_a_moment();
    } else if (!strcmp(what, "prepares")) {
        for_good(DM_ERR_NOMEM, "planted fault");
    } else if (!strcmp(what, "message")) {
        for_good(DM_ERR_TRANSPORT, "): MPI_");
    } else if (!strcmp(what, "kill")) {
        kill_in_a_command();
    } else if (!strcmp(what, "stop")) {
        stop_in_a_command();
    } else if (!strcmp(what, "cancel")) {
        cancel_often();
    } else if (!strcmp(what, "fifth")) {
        a_fifth();
    } else {
        return 2;
    }
    printf("right\n");
    return 0;
}
