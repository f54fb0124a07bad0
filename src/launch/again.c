/* A session that a death has ended, and the one after it (option on_death=session). The ranks that are left
 * stay in their processes. Rank 0 calls them by messages on the communicator of the session that has ended,
 * then they make a communicator of their own: only calls that no dead rank takes part in. */
#include "base/process.h"
#include "launch/job.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_CALL = 21, TAG_HERE = 22, TAG_GROUP = 23 };
/* A message of rank 0 is a number of the call, then the ranks of the new session; none: who is there? */
enum { HEAD = 1 };

/* What started this process, and ends all ranks when one dies. NULL: it lets them live, or is not known to end
 * them. */
static const char *ender(void)
{
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery"), *srun = getenv("SLURM_KILL_BAD_EXIT");
    if (getenv("OMPI_MCA_orte_hnp_uri") && (!recovery || strcmp(recovery, "1") != 0)) {
        return "mpirun ends the job when a rank dies: start it with mpirun --enable-recovery";
    }
    if (!getenv("OMPI_MCA_orte_hnp_uri") && srun && strcmp(srun, "1") == 0) {
        return "srun ends the job when a rank dies: start it with srun --kill-on-bad-exit=0";
    }
    return NULL;
}

dm_status dmi_job_outlives(dmi_job *job)
{
    dm_status status = DM_OK;
    const char *why = ender();
    if (job->config.on_death != DMI_DEATH_SESSION) {
        return DM_OK;
    }
    if (!job->config.liveness) {
        why = "option liveness is 0, so nobody notices deaths";
    } else if (job->profile.gpu) {
        why = "the workers have GPUs: work on a GPU that waits for a dead worker never ends";
    } else if (job->hosts > 1 || job->messages) {
        why = "the workers send messages to one another, and MPI does not take back those to a dead rank: this "
              "is for "
              "workers of one host with direct transport";
    }
    if (why) {
        status = dmi_fail(DM_ERR_CONFIG, "on_death=session, but %s", why);
    }
    status = dmi_job_agree(job, status);
    job->outlives = status == DM_OK;
    return status;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Answers to call `number`, into here[rank]. */
static void take_answers(const dmi_job *last, int number, bool *here)
{
    for (;;) {
        int flag = 0, answer = 0;
        MPI_Status status;
        DMI_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG_HERE, last->ctl, &flag, &status));
        if (!flag) {
            return;
        }
        DMI_MPI(MPI_Recv(&answer, 1, MPI_INT, status.MPI_SOURCE, TAG_HERE, last->ctl, MPI_STATUS_IGNORE));
        here[status.MPI_SOURCE] =
            here[status.MPI_SOURCE] || answer == number; /* else of a call that was given up */
    }
}

static bool lives(const dmi_job *last, int worker)
{
    return dmi_process_lives(last->pid_of[worker], last->start_of[worker]);
}

/* Until all that live have answered, at most for limit_s (0: for ever). */
static dm_status gather_ranks(const dmi_job *last, double limit_s, int number, bool *here)
{
    int64_t begin = dmi_now_ns();
    for (int w = 0; w < last->workers; w++) {
        if (lives(last, w)) {
            int code = MPI_Send(&number, HEAD, MPI_INT, last->rank_of[w], TAG_CALL, last->ctl);
            if (dmi_mpi_check(code, "MPI_Send") != DM_OK) { /* it may have died just now, which is seen below */
                dmi_log(DMI_LOG_WARN, "rank %d: %s", last->rank_of[w], dmi_error_text());
            }
        }
    }
    for (;;) {
        int missing = -1;
        take_answers(last, number, here);
        for (int w = 0; w < last->workers; w++) {
            missing = lives(last, w) && !here[last->rank_of[w]] ? w : missing;
        }
        if (missing < 0) {
            return DM_OK;
        }
        if (limit_s > 0 && (double)(dmi_now_ns() - begin) > limit_s * 1e9) {
            return dmi_fail(DM_ERR_TIMEOUT,
                            "worker %d (process %d) of the session that has ended does not come within %.3g s "
                            "(option meet_s): a step of it may still run there. Try again later",
                            missing, last->pid_of[missing], limit_s);
        }
        pause_ms(2);
    }
}

/* message: room for HEAD + ranks. Returns how many ranks the session has. */
static int choose_ranks(dmi_job *last, int number, const bool *here, int *message)
{
    int count = 1;
    message[0] = number;
    message[HEAD] = 0;
    dmi_liveness_ignore(last, false); /* from here on a death ends the job; before it, we see it: */
    for (int w = 0; w < last->workers; w++) {
        if (lives(last, w) && here[last->rank_of[w]]) {
            message[HEAD + count++] = last->rank_of[w];
        }
    }
    return count;
}

static void make_comm(const dmi_job *last, const int *message, int count, MPI_Comm *out)
{
    MPI_Group all, some;
    DMI_MPI(MPI_Comm_group(last->ctl, &all));
    DMI_MPI(MPI_Group_incl(all, count, &message[HEAD], &some));
    DMI_MPI(MPI_Comm_create_group(last->ctl, some, TAG_GROUP, out));
    DMI_MPI(MPI_Group_free(&some));
    DMI_MPI(MPI_Group_free(&all));
}

dm_status dmi_again_begin(dmi_job *last, double limit_s, MPI_Comm *out)
{
    static int calls;
    int number = ++calls, count = 0;
    bool *here = calloc((size_t)last->ranks, sizeof *here);
    int *message = calloc((size_t)last->ranks + HEAD, sizeof *message);
    dm_status status =
        here && message ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a list of %d ranks", last->ranks);
    status = status == DM_OK ? gather_ranks(last, limit_s, number, here) : status;
    if (status == DM_OK) {
        count = choose_ranks(last, number, here, message);
        if (count == 1) {
            dmi_liveness_ignore(last, true);
            status = dmi_fail(DM_ERR_STATE, "no worker process of this launch is left");
        }
    }
    for (int i = 1; i < count && status == DM_OK; i++) {
        DMI_MPI(MPI_Send(message, HEAD + count, MPI_INT, message[HEAD + i], TAG_CALL, last->ctl));
    }
    if (status == DM_OK) {
        make_comm(last, message, count, out);
    }
    free(here);
    free(message);
    return status;
}

MPI_Comm dmi_again_wait(dmi_job *last)
{
    MPI_Comm comm = MPI_COMM_NULL;
    while (comm == MPI_COMM_NULL) {
        int flag = 0, count = 0;
        MPI_Status status;
        DMI_MPI(MPI_Iprobe(0, TAG_CALL, last->ctl, &flag, &status));
        if (!flag) {
            pause_ms(5);
            continue;
        }
        DMI_MPI(MPI_Get_count(&status, MPI_INT, &count));
        int *message = calloc((size_t)count, sizeof *message);
        while (!message) { /* rank 0 waits for this one */
            pause_ms(100);
            message = calloc((size_t)count, sizeof *message);
        }
        DMI_MPI(MPI_Recv(message, count, MPI_INT, 0, TAG_CALL, last->ctl, MPI_STATUS_IGNORE));
        if (count == HEAD) {
            DMI_MPI(MPI_Send(message, 1, MPI_INT, 0, TAG_HERE, last->ctl));
        } else {
            make_comm(last, message, count - HEAD, &comm);
        }
        free(message);
    }
    dmi_liveness_ignore(last, false); /* rank 0's end is a death again */
    return comm;
}
