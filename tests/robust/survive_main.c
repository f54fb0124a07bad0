/* A job whose program outlives its workers: survive_main <folder> <seed> [own_mpi | once | between | late |
 * refused]. A thread of rank 0 kills one worker after the other, at random moments. Each death must end the
 * session with a line that names the worker, and nothing else: the next session has the workers that are left,
 * its checkpoint is whole, and its results are right. Prints "right", and the number of deaths, when one worker
 * is left and has been killed too.
 */
#include "job.h"

#include <dirent.h>
#include <dmath/dmath_mpi.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { SIDE = 200, RANKS_MOST = 64 };

static char series[300];
static pid_t victim;
static atomic_int armed; /* microseconds until the victim dies, + 1; 0: nobody is to */

static void *killer(void *context)
{
    static const int how[] = {SIGKILL, SIGKILL, SIGABRT, SIGSEGV};
    unsigned seed = *(const unsigned *)context;
    for (;;) {
        int wait = atomic_load(&armed);
        if (wait > 0) {
            usleep((useconds_t)wait);
            CHECK(kill(victim, how[rand_r(&seed) % 4]) == 0);
            atomic_store(&armed, 0);
        }
        usleep(100);
    }
    return NULL;
}

static dm_array square(dm_session *s, dm_layout layout, double value)
{
    dm_array a;
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &layout, &a));
    OK(dm_fill(s, a, value));
    return a;
}

static int entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    while (dir && readdir(dir)) {
        count++;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* Memory that processes share, as this one has it mapped. */
static int mapped(void)
{
    char line[512];
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        count += strstr(line, "memfd:dmath") != NULL;
    }
    fclose(f);
    return count;
}

/* Step k makes x = k everywhere, so it is known what x, and a checkpoint of it, must hold. */
static dm_status work(dm_session *s, dm_array x, dm_array y, dm_array z, int64_t *step, unsigned *seed)
{
    const dm_checkpoint_item items[] = {{.name = "x", .array = x},
                                        {.name = "step", .dtype = DM_I64, .value = step, .count = 1}};
    const dm_checkpoint_options options = {.size = sizeof options, .keep = 2};
    dm_status status = DM_OK;
    while (status == DM_OK) {
        double one = 0;
        dm_event event;
        ++*step;
        status = dm_fill(s, x, (double)*step);
        for (int i = 0; i < 3 && status == DM_OK; i++) {
            status = dm_gemm(s, DM_N, DM_T, 1, x, y, 0, z);
            status = status == DM_OK ? dm_transpose(s, z, y) : status;
            status = status == DM_OK ? dm_fill(s, y, 1) : status;
        }
        switch (status == DM_OK ? rand_r(seed) % 5 : -1) {
        case 0:
            status = dm_checkpoint_save(s, series, 2, items, &options, &event);
            break;
        case 1:
            status = dm_array_read(s, x, (int64_t[]){SIDE / 2, SIDE / 3}, (int64_t[]){1, 1}, &one, 0);
            CHECK(status != DM_OK || one == (double)*step);
            break;
        case 2:
            usleep((useconds_t)(rand_r(seed) % 20000));
            break;
        case 3:
            status = dm_sync(s);
            break;
        default:
            break;
        }
    }
    return status;
}

static dm_array resume(dm_session *s, int64_t *step)
{
    dm_array x = square(s, dm_layout_rows(s), 0);
    double all[SIDE];
    const dm_checkpoint_item items[] = {{.name = "x", .array = x},
                                        {.name = "step", .dtype = DM_I64, .value = step, .count = 1}};
    if (dm_checkpoint_exists(series)) {
        OK(dm_checkpoint_load(s, series, 2, items));
        OK(dm_checkpoint_verify(series, NULL, NULL));
        for (int i = 0; i < SIDE; i += 7) {
            OK(dm_array_read(s, x, (int64_t[]){i, 0}, (int64_t[]){1, SIDE}, all, 0));
            for (int j = 0; j < SIDE; j++) {
                CHECK(all[j] == (double)*step);
            }
        }
    }
    return x;
}

/* One session, until a worker dies. */
static void live_through(const char *options, int workers, int rank, int64_t *step, unsigned *seed)
{
    char words[64];
    dm_session *s = start(options);
    CHECK(dm_workers(s) == workers);
    dm_array x = resume(s, step), y = square(s, dm_layout_cols(s), 1),
             z = square(s, dm_layout_cyclic(s, 0, 7), 0);
    victim = pid_of(rank);
    atomic_store(&armed, 1 + (int)(rand_r(seed) % 200000));
    dm_status status = work(s, x, y, z, step, seed);
    double begin = seconds();
    snprintf(words, sizeof words, ", process %ld, CPU) has died", (long)victim);
    if (status != DM_ERR_DIED || !strstr(dm_error_message(), words)) {
        fprintf(stderr, "%s\n", dm_status_name(status));
        wrong(words, __FILE__, __LINE__);
    }
    CHECK(dm_sync(s) == DM_ERR_DIED && strstr(dm_error_message(), words));
    CHECK(dm_fill(s, x, 1) == DM_ERR_DIED);
    OK(dm_finalize(s, NULL));
    CHECK(seconds() - begin < 30);
    CHECK(dm_sync(s) == DM_ERR_STATE);
    CHECK(mapped() == 0);
}

/* A program with an MPI of its own: rank 1 is to die, the others make a communicator without it. */
static _Noreturn void own_mpi(const char *options)
{
    dm_config config = {sizeof config, 0, options};
    dm_session *s = NULL;
    MPI_Comm comm;
    MPI_Group all, some;
    int rank, provided, dead = 1;
    int64_t step = 0;
    unsigned seed = 5;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    dm_status status = dm_init_comm(MPI_COMM_WORLD, &config, &s);
    if (rank == 0) {
        OK(status);
        victim = pid_of(dead);
        atomic_store(&armed, 50000);
        dm_array x = square(s, dm_layout_rows(s), 0);
        CHECK(work(s, x, square(s, dm_layout_cols(s), 1), square(s, dm_layout_rows(s), 0), &step, &seed) ==
              DM_ERR_DIED);
        OK(dm_finalize(s, NULL));
    } else {
        CHECK(status == DM_ERR_DIED && !s && strstr(dm_error_message(), "has died"));
    }
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &dead, &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &comm);
    OK(dm_init_comm(comm, &config, &s));
    if (rank == 0) {
        step = 0;
        dm_array x = resume(s, &step);
        OK(dm_array_destroy(s, x));
        OK(dm_finalize(s, NULL));
        printf("right\n");
    }
    fflush(NULL);
    _exit(0); /* MPI_Finalize may wait for the rank that has died */
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    alarm(100);
    leave_pid(argv[1]);
    snprintf(series, sizeof series, "%s/series", argv[1]);
    unsigned seed = (unsigned)atoi(argv[2]), killer_seed = seed;
    const char *options =
        getenv("DMATH_TEST_OPTIONS") ? getenv("DMATH_TEST_OPTIONS") : "on_death=session,log=error";
    int ranks = atoi(getenv("OMPI_COMM_WORLD_SIZE")), rank[RANKS_MOST], left = ranks - 1, fds = 0, threads = 0,
        sessions = 0;
    for (int i = 0; i < left; i++) {
        rank[i] = i + 1;
    }
    int64_t step = 0;
    pthread_t thread;
    if (atoi(getenv("OMPI_COMM_WORLD_RANK")) == 0) { /* the others do not return from dm_init */
        CHECK(pthread_create(&thread, NULL, killer, &killer_seed) == 0);
    }
    if (argc > 3 && strcmp(argv[3], "own_mpi") == 0) {
        own_mpi(options);
    }
    if (argc > 3 && strcmp(argv[3], "between") == 0) { /* another one dies when there is no session */
        live_through(options, left, rank[0], &step, &seed);
        CHECK(kill(pid_of(rank[1]), SIGKILL) == 0);
        usleep((useconds_t)(rand_r(&seed) % 2000));
        live_through(options, left - 2, rank[2], &step, &seed);
        printf("right\n");
        return 0;
    }
    if (argc > 3 && strcmp(argv[3], "late") == 0) { /* another one stands still, and is waited for as long as meet_s says */
        const char *soon = "on_death=session,log=error,meet_s=1";
        live_through(options, left, rank[0], &step, &seed);
        CHECK(kill(pid_of(rank[1]), SIGSTOP) == 0);
        refused(soon, DM_ERR_TIMEOUT, "worker 1 (process ", "does not come within 1 s (option meet_s)");
        CHECK(strstr(dm_error_message(), "Try again later"));
        CHECK(kill(pid_of(rank[1]), SIGCONT) == 0);
        live_through(options, left - 1, rank[2], &step, &seed);
        printf("right\n");
        return 0;
    }
    if (argc > 3 &&
        strcmp(argv[3], "refused") == 0) { /* the next session cannot be: then there is no other one */
        live_through(options, left, rank[0], &step, &seed);
        refused("on_death=session,log=error,nonsense=1", DM_ERR_CONFIG, "nonsense", "unknown");
        refused("on_death=session,log=error,transport=cuda_mpi", DM_ERR_TRANSPORT, "transport=cuda_mpi",
                "GPUs");
        refused(options, DM_ERR_STATE, "have left", "earlier session");
        printf("right\n");
        return 0;
    }
    if (argc > 3) { /* once: the workers that are left go when the program ends */
        live_through(options, left, rank[0], &step, &seed);
        printf("right\n");
        return 0;
    }
    for (; left > (atoi(argv[2]) % 2 == 0); left--) {
        int which = (int)(rand_r(&seed) % (unsigned)left);
        live_through(options, left, rank[which], &step, &seed);
        memmove(&rank[which], &rank[which + 1], (size_t)(left - 1 - which) * sizeof *rank);
        int now = entries("/proc/self/fd"), running = entries("/proc/self/task");
        CHECK(sessions < 2 || (now <= fds && running <= threads)); /* of each session nothing stays */
        fds = sessions < 2 ? now : fds;
        threads = sessions < 2 ? running : threads;
        sessions++;
    }
    if (left > 0) { /* a session of a launch with dead ranks may end well */
        dm_session *s = start(options);
        OK(dm_array_destroy(s, resume(s, &step)));
        OK(dm_finalize(s, NULL));
        refused(options, DM_ERR_STATE, "have left", "earlier session");
    } else {
        refused(options, DM_ERR_STATE, "no worker process", "left");
    }
    printf("%d deaths\nright\n", sessions);
    return 0;
}
