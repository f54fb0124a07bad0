/* Calls of MPI by which the ranks of a job agree and meet. */
#include "base/fault.h"
#include "io/unfinished.h"
#include "launch/job.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_MS = 1000 }; /* for the thread that watches processes: a death may be the reason, and has a better line */

static _Noreturn void leave(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING + 128], why[MPI_MAX_ERROR_STRING] = "";
    int rank = 0, length = 0;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Error_string(code, why, &length);
    snprintf(text, sizeof text, "rank %d (process %d): %.*s failed: %s: the rank leaves", rank, (int)getpid(),
             (int)strcspn(call, "("), call, why);
    dmi_unfinished_remove_all();
    dmi_liveness_say(text);
    (void)poll(NULL, 0, GRACE_MS);
    _exit(EXIT_FAILURE);
}

void dmi_mpi_control(int code, const char *call)
{
    if (dmi_fault(DMI_FAULT_CONTROL)) {
        code = MPI_ERR_OTHER;
    }
    if (code != MPI_SUCCESS) {
        leave(code, call);
    }
}
