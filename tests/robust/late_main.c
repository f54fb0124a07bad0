/* Programs that own MPI and start or end badly: late_main <what>. never: rank 1 does not call dm_init_comm;
 * late: it calls when the others have given up; slow: it is slow, but within the others' time; forgotten:
 * MPI_Finalize without dm_finalize; broken: a worker has no memory for a command. Prints "right" at the end of
 * a run that went as it must. */
#include <dmath/dmath_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int world_rank;

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "rank %d, line %d: not %s (%s)\n", world_rank, __LINE__, #what,                    \
                    dm_error_message());                                                                       \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                      \
        }                                                                                                      \
    } while (0)

/* The status of dm_init_comm on this rank, and how long it took. */
static dm_status start(MPI_Comm comm, double meet_s, double *took, dm_session **out)
{
    char options[64];
    snprintf(options, sizeof options, "meet_s=%g", meet_s);
    dm_config config = {sizeof config, 0, options};
    double begin = MPI_Wtime();
    dm_status status = dm_init_comm(comm, &config, out);
    *took = MPI_Wtime() - begin;
    fprintf(stderr, "rank %d: %.2f s: %s: %s\n", world_rank, *took, dm_status_name(status),
            status == DM_OK ? "" : dm_error_message());
    return status;
}

static void expect_timeout(MPI_Comm comm, double meet_s)
{
    dm_session *s = NULL;
    double took = 0;
    dm_status status = start(comm, meet_s, &took, &s);
    CHECK(status == DM_ERR_TIMEOUT && !s);
    CHECK(strstr(dm_error_message(), "meet_s") && strstr(dm_error_message(), "rank"));
    CHECK(took >= meet_s * 0.9 && took < 3 * meet_s + 30);
}

static void never(MPI_Comm comm)
{
    if (world_rank != 1) {
        expect_timeout(comm, 1);
    }
}

static void late(MPI_Comm comm)
{
    if (world_rank == 1) {
        sleep(3);
    }
    expect_timeout(comm, 1);
}

static void slow(MPI_Comm comm)
{
    dm_session *s = NULL;
    double took = 0;
    if (world_rank == 1) {
        sleep(2);
    }
    CHECK(start(comm, 40, &took, &s) == DM_OK);
    if (world_rank == 0) {
        CHECK(dm_finalize(s, NULL) == DM_OK);
    }
}

static void forgotten(MPI_Comm comm)
{
    dm_session *s = NULL;
    double took = 0;
    dm_array a;
    CHECK(start(comm, 20, &took, &s) == DM_OK);
    if (world_rank == 0) {
        CHECK(dm_matrix(s, DM_F32, 100, 100, &a) == DM_OK);
        CHECK(dm_fill(s, a, 1) == DM_OK);
    }
    MPI_Finalize(); /* the session ends in it */
    if (world_rank == 0) {
        CHECK(dm_sync(s) == DM_ERR_STATE);
    }
}

/* A worker that cannot take part in a command: the session ends, and MPI goes on. */
static void broken(MPI_Comm comm)
{
    dm_config config = {sizeof config, 0, world_rank == 2 ? "fault='prepares:4',log=error" : "log=error"};
    static const int64_t shape[2] = {40, 40};
    dm_session *s = NULL;
    dm_array a, b;
    CHECK(dm_init_comm(comm, &config, &s) == DM_OK);
    if (world_rank == 0) {
        dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
        dm_status status = DM_OK;
        int64_t alive = 0;
        CHECK(dm_array_create(s, DM_F64, 2, shape, &rows, &a) == DM_OK);
        CHECK(dm_array_create(s, DM_F64, 2, shape, &columns, &b) == DM_OK);
        CHECK(dm_fill(s, a, 1) == DM_OK);
        for (int i = 0; i < 10 && status == DM_OK; i++) {
            status = dm_copy(s, i % 2 ? b : a, i % 2 ? a : b);
        }
        CHECK(status == DM_OK && dm_sync(s) == DM_ERR_NOMEM);
        CHECK(strstr(dm_error_message(), "worker 1 (") && strstr(dm_error_message(), "planted fault"));
        CHECK(dm_finalize(s, &alive) == DM_ERR_NOMEM && alive == 2);
        CHECK(dm_sync(s) == DM_ERR_STATE);
    }
    MPI_Barrier(comm);
    CHECK(dm_init_comm(comm, NULL, &s) == DM_OK);
    if (world_rank == 0) {
        CHECK(dm_finalize(s, NULL) == DM_OK);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int ended = 0;
    MPI_Comm comm;
    alarm(60);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!strcmp(what, "never")) {
        never(comm);
    } else if (!strcmp(what, "late")) {
        late(comm);
    } else if (!strcmp(what, "slow")) {
        slow(comm);
    } else if (!strcmp(what, "broken")) {
        broken(comm);
    } else if (!strcmp(what, "forgotten")) {
        forgotten(comm);
    } else {
        return 2;
    }
    MPI_Finalized(&ended);
    if (!ended) {
        MPI_Barrier(MPI_COMM_WORLD); /* the program's own communicators work */
        MPI_Finalize();
    }
    if (world_rank == 0) {
        printf("right\n");
    }
    return 0;
}
