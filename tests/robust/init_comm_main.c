/* A program that owns MPI and gives dmath some of its ranks: all of them, half of them, one of them, twice in a
 * row, two sessions side by side. MPI works before, between and after. */
#include <dirent.h>
#include <dmath/dmath_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 30 };

static int world_rank, world_size;

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "rank %d, line %d: not %s (%s)\n", world_rank, __LINE__, #what,                    \
                    dm_error_message());                                                                       \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                      \
        }                                                                                                      \
    } while (0)

static void mpi_works(void)
{
    int sum = 0;
    CHECK(MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == world_size * (world_size - 1) / 2);
}

static void use(dm_session *s, double value)
{
    static const int64_t shape[2] = {N, N};
    double host[N * N];
    dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
    dm_array a, b, c;
    CHECK(dm_array_create(s, DM_F64, 2, shape, &rows, &a) == DM_OK);
    CHECK(dm_array_create(s, DM_F64, 2, shape, &columns, &b) == DM_OK);
    CHECK(dm_array_create(s, DM_F64, 2, shape, &columns, &c) == DM_OK);
    CHECK(dm_fill(s, a, value) == DM_OK);
    CHECK(dm_fill(s, b, 2) == DM_OK);
    CHECK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c) == DM_OK);
    CHECK(dm_array_read(s, c, NULL, NULL, host, 0) == DM_OK);
    for (int i = 0; i < N * N; i++) {
        CHECK(host[i] == 2 * value * N);
    }
    CHECK(dm_array_destroy(s, a) == DM_OK);
    CHECK(dm_array_destroy(s, b) == DM_OK);
    CHECK(dm_array_destroy(s, c) == DM_OK);
}

/* Collective over comm. */
static void session_over(MPI_Comm comm, const char *options, int workers, double value)
{
    int rank = 0, flag = 0;
    dm_config config = {sizeof config, 2, options};
    dm_session *s = (dm_session *)&config;
    MPI_Comm_rank(comm, &rank);
    dm_status status = dm_init_comm(comm, &config, &s);
    CHECK(status == DM_OK);
    CHECK((s != NULL) == (rank == 0));
    if (s) {
        int64_t alive = -1;
        CHECK(dm_workers(s) == workers);
        use(s, value);
        CHECK(dm_finalize(s, &alive) == DM_OK && alive == 0);
        CHECK(dm_sync(s) == DM_ERR_STATE);
    }
    MPI_Finalized(&flag);
    CHECK(!flag);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

/* Options only one rank gets wrong; one that rank 0 gets wrong; a transport that cannot be: the same answer on
 * all, and all can go on. */
static void refusals(void)
{
    dm_config config = {sizeof config, 0, "transport=direct,pretend_hosts=2,log=error"};
    dm_session *s = (dm_session *)&config;
    if (world_size > 2) { /* one worker cannot be split into two hosts */
        CHECK(dm_init_comm(MPI_COMM_WORLD, &config, &s) == DM_ERR_TRANSPORT);
        CHECK(strstr(dm_error_message(), "transport=direct"));
    }
    config.options = world_rank == 1 ? "fault=version" : "";
    CHECK(dm_init_comm(MPI_COMM_WORLD, &config, &s) == DM_ERR_VERSION);
    CHECK(strstr(dm_error_message(), "rank 1 ") && strstr(dm_error_message(), dm_version()));
    config.options = world_rank == 0 ? "nonsense=1" : "";
    CHECK(dm_init_comm(MPI_COMM_WORLD, &config, &s) == DM_ERR_CONFIG);
    CHECK(strstr(dm_error_message(), "nonsense"));
    config.options = world_rank == 1 ? "nonsense=1" : "";
    CHECK(dm_init_comm(MPI_COMM_WORLD, &config, &s) == DM_ERR_CONFIG);
    CHECK(s == (dm_session *)&config);
    CHECK(dm_init_comm(MPI_COMM_SELF, &config, &s) == (world_rank == 1 ? DM_ERR_CONFIG : DM_OK));
    CHECK(world_rank == 1 ? s == (dm_session *)&config : dm_finalize(s, NULL) == DM_OK);
    s = (dm_session *)&config;
    config.options = "";
    CHECK(dm_init_comm(MPI_COMM_NULL, &config, &s) == DM_ERR_ARG);
    CHECK(dm_init_comm(MPI_COMM_WORLD, &config, NULL) == DM_ERR_ARG);
}

int main(int argc, char **argv)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    alarm(90);
    if (dm_init_comm(MPI_COMM_WORLD, &config, &s) != DM_ERR_ARG || !strstr(dm_error_message(), "initialised")) {
        return 1; /* before MPI_Init */
    }
    int level = getenv("DMATH_TEST_MULTIPLE") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE; /* then there are heartbeats */
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm half, self, back;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &back);
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    mpi_works();
    session_over(MPI_COMM_WORLD, "", world_size - 1, 1);
    int files = open_files();
    for (int turn = 0; turn < 5; turn++) {
        mpi_works();
        session_over(MPI_COMM_WORLD, turn % 2 ? "transport=mpi" : "pretend_hosts=2", world_size - 1, turn);
        mpi_works();
        session_over(back, "", world_size - 1, 3); /* the last rank is the master */
        if (world_rank % 2) {                      /* the others do something else meanwhile */
            int size = 0;
            MPI_Comm_size(half, &size);
            session_over(half, "", size == 1 ? 2 : size - 1, 4);
        }
        mpi_works();
        int size = 0;
        MPI_Comm_size(half, &size);
        session_over(half, "", size == 1 ? 2 : size - 1, 5); /* two sessions at once */
        session_over(self, "", 2, 6);                        /* workers are threads */
    }
    mpi_works();
    refusals();
    mpi_works();
    session_over(MPI_COMM_WORLD, "", world_size - 1, 7);
    CHECK(open_files() <= files);
    MPI_Comm_free(&half);
    MPI_Comm_free(&back);
    MPI_Comm_free(&self);
    mpi_works();
    MPI_Finalize();
    if (world_rank == 0) {
        printf("right\n");
    }
    return 0;
}
