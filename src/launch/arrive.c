/* Waits for all ranks of a communicator; some may never arrive. */
#include "launch/job.h"

#include <time.h>

/* Waits for a collective call, with a time limit: some rank may never make it. */
static bool meet(MPI_Request *request, double limit_s)
{
    int64_t begin = dmi_now_ns(), wait_ns = 1000;
    int flag = 0;
    for (;;) {
        DMI_MPI(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
        if (flag || (limit_s > 0 && (double)(dmi_now_ns() - begin) > limit_s * 1e9)) {
            return flag;
        }
        nanosleep(&(struct timespec){.tv_nsec = wait_ns}, NULL);
        wait_ns = DMI_MIN(2 * wait_ns, 1000000);
    }
}

/* Makes the job's communicators. All ranks must arrive before any call without a time limit. A rank that gives
 * up in the first barrier is missing in the second. The second has a longer limit, so a rank gives up there
 * only for that reason. */
dm_status dmi_job_communicators(MPI_Comm comm, double limit_s, dmi_job *job)
{
    MPI_Request request;
    int64_t begin = dmi_now_ns();
    DMI_MPI(MPI_Ibarrier(comm, &request));
    bool here = meet(&request, limit_s);
    if (here) {
        DMI_MPI(MPI_Comm_idup(comm, &job->ctl, &request));
        here = meet(&request, 2 * limit_s);
    }
    if (!here) {
        int rank = 0, ranks = 0;
        DMI_MPI(MPI_Comm_rank(comm, &rank));
        DMI_MPI(MPI_Comm_size(comm, &ranks));
        return dmi_fail(
            DM_ERR_TIMEOUT,
            "rank %d has waited %.3g s for the %d ranks of the communicator, and not all of them have come "
            "(option meet_s); it can serve for no collective call any more",
            rank, (double)(dmi_now_ns() - begin) / 1e9, ranks);
    }
    DMI_MPI(MPI_Comm_dup(comm, &job->data));
    return DM_OK;
}
