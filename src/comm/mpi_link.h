/* Plain MPI messages between endpoints. One thread of a process makes all MPI calls of a session: the communication
 * thread in a worker, the user's in the master (within calls of the library). */
#ifndef DMI_MPI_LINK_H
#define DMI_MPI_LINK_H

#include "exec/engine.h"

#include <mpi.h>

typedef struct dmi_mpi_state {
    MPI_Comm data;      /* payload */
    const int *rank;    /* [endpoints] rank of each endpoint in both communicators */
    int posted;         /* receives that hold a buffer now */
} dmi_mpi_state;

/* "function: text of the MPI error" as a status; DM_OK for MPI_SUCCESS. */
DM_CHECKED dm_status dmi_mpi_check(int code, const char *function);

#endif
