/* What a job of several ranks does in bad times: job_main <what> <folder>. Every rank leaves a file
 * <folder>/<rank> with its process id before dm_init, so that others can stop, kill and look for it. Prints
 * "right" at the end of a run that went as it must. */
#include "job.h"

#include <dmath/feed.h>
#include <dmath/program.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>

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
    wrong("ended by the launcher", __FILE__, __LINE__);
}

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

/* The program makes no call for longer than hosts may be silent. */
static void away(void)
{
    dm_session *s = start("heartbeat_s=3,pretend_hosts=2"); /* a busy machine may keep a thread waiting for a second */
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    for (int i = 0; i < 2; i++) {
        double until = seconds() + 7;
        while (i == 0 && seconds() < until) { /* once with all of a core, */
        }
        sleep(i == 1 ? 7 : 0); /* once without */
        OK(value_is(s, a, 1));
    }
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
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

/* An MPI without threads: it is ended again, on all ranks. */
static void no_threads(void)
{
    int flag = 0;
    refused("", DM_ERR_TRANSPORT, "MPI could not be initialised", "thread support");
    MPI_Finalized(&flag);
    CHECK(flag);
}

/* A launcher that does not say how many ranks there are, so that MPI is asked: there is one. */
static void asked(void)
{
    for (int i = 0; i < 2; i++) {
        int flag = 0;
        dm_session *s = start("");
        MPI_Finalized(&flag);
        CHECK(flag);
        dm_array a = matrix(s, dm_layout_rows(s), 1);
        OK(value_is(s, a, 1));
        OK(dm_array_destroy(s, a));
        OK(dm_finalize(s, NULL));
    }
}

/* Each command is explained when it is sent, and so is a run of a program. */
static void explained(void)
{
    dm_session *s = start("explain=1,workers=2,device=cpu");
    dm_array a = matrix(s, dm_layout_rows(s), 1);
    dm_program twice_over;
    OK(dm_program_begin(s));
    OK(dm_scale(s, 2, a, a));
    OK(dm_program_end(s, &twice_over));
    OK(dm_program_run(s, twice_over, 2, 0, NULL));
    OK(value_is(s, a, 4));
    OK(dm_program_destroy(s, twice_over));
    OK(dm_array_destroy(s, a));
    OK(dm_finalize(s, NULL));
}

/* A feed is memory that the program shares with its workers. */
static void feed_hosts(void)
{
    dm_session *s = start("pretend_hosts=2");
    dm_feed *feed = NULL;
    CHECK(dm_feed_create(s, DM_F64, 1, (int64_t[]){4}, 2, &feed) == DM_ERR_UNSUPPORTED && !feed);
    CHECK(strstr(dm_error_message(), "feed_create: workers are on other hosts than the program"));
    OK(dm_finalize(s, NULL));
}

static void versions(void)
{
    refused("", DM_ERR_VERSION, "rank 2", "0.1.0");
}

static void direct_hosts(void)
{
    refused("transport=direct,pretend_hosts=2", DM_ERR_TRANSPORT, "transport=direct", "hosts");
}

static int64_t bytes_sent(dm_session *s)
{
    int64_t sum = 0;
    for (int w = 0; w < dm_workers(s); w++) {
        dm_counters counters = {.size = sizeof counters};
        OK(dm_counters_get(s, w, &counters));
        sum += counters.bytes_sent;
    }
    return sum;
}

/* CPU workers of several hosts keep an operand that a product has moved, those of one host do not. */
static void replicas(const char *options)
{
    enum { SIDE = 64 };
    dm_session *s = start(options);
    dm_layout rows = dm_layout_rows(s);
    dm_array x[3];
    int64_t sent[3];
    for (int i = 0; i < 3; i++) {
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &rows, &x[i]));
        OK(dm_fill(s, x[i], i + 1));
    }
    for (int i = 0; i < 3; i++) {
        OK(dm_matmul(s, x[0], x[1], x[2]));
        OK(dm_sync(s));
        sent[i] = bytes_sent(s);
    }
    CHECK(sent[0] > 0 && (strstr(options, "hosts") != NULL) == (sent[2] == sent[1]));
    for (int i = 0; i < 3; i++) {
        OK(dm_array_destroy(s, x[i]));
    }
    OK(dm_finalize(s, NULL));
}

static const struct {
    const char *name;
    void (*run)(void);
    void (*run_with)(const char *options);
    const char *options;
} jobs[] = {
    {"exit", leave_by_exit, NULL, NULL},
    {"abort", leave_by_abort, NULL, NULL},
    {"kill", kill_worker, NULL, NULL},
    {"stop_move", stop_and_move, NULL, NULL},
    {"stop", NULL, stop_and_finalize, "watchdog_s=2"},
    {"stop_hosts", NULL, stop_and_finalize, "watchdog_s=2,pretend_hosts=2"},
    {"stop_finalize", stop_and_finalize_at_once, NULL, NULL},
    {"stop_continue", NULL, stop_and_continue, "watchdog_s=2"},
    {"stop_continue_hosts", NULL, stop_and_continue, "watchdog_s=2,pretend_hosts=2"},
    {"stop_ring", stop_full_ring, NULL, NULL},
    {"twice", twice, NULL, NULL},
    {"away", away, NULL, NULL},
    {"own_mpi", own_mpi, NULL, NULL},
    {"alone", alone, NULL, NULL},
    {"fault", fault, NULL, NULL},
    {"idle", idle, NULL, NULL},
    {"damaged_hosts", NULL, damaged, "device=cpu,pretend_hosts=2,log=error"},
    {"damaged_payload", NULL, damaged, "device=cpu,transport=mpi,log=error"},
    {"slabs", slabs, NULL, NULL},
    {"unmapped", unmapped, NULL, NULL},
    {"unread", unread, NULL, NULL},
    {"asked", asked, NULL, NULL},
    {"no_threads", no_threads, NULL, NULL},
    {"feed_hosts", feed_hosts, NULL, NULL},
    {"explained", explained, NULL, NULL},
    {"version", versions, NULL, NULL},
    {"direct_hosts", direct_hosts, NULL, NULL},
    {"replicas", NULL, replicas, "device=cpu"},
    {"replicas_hosts", NULL, replicas, "device=cpu,pretend_hosts=2"},
};

int main(int argc, char **argv)
{
    int which = 0, count = (int)(sizeof jobs / sizeof *jobs);
    while (argc >= 3 && which < count && strcmp(argv[1], jobs[which].name) != 0) {
        which++;
    }
    if (argc < 3 || which == count) {
        return 2;
    }
    alarm(90);
    leave_pid(argv[2]);
    if (jobs[which].run) {
        jobs[which].run();
    } else {
        jobs[which].run_with(jobs[which].options);
    }
    printf("right\n");
    return 0;
}
