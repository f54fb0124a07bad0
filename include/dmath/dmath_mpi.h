/* dmath for programs that own MPI.  BSD-3-Clause, see LICENSE. */
#ifndef DMATH_MPI_H
#define DMATH_MPI_H

#include <dmath/dmath.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As dm_init over the ranks of comm (which is duplicated, and stays the caller's). Rank 0 of comm returns with *session
 * set. The other ranks serve, and return with *session == NULL when rank 0 calls dm_finalize: the program goes on. MPI
 * is neither initialised nor finalised. A communicator of one rank: the workers are threads of the process. With the
 * option on_death=session (<dmath/dmath.h>) a worker's death makes the call return DM_ERR_DIED on the other ranks that
 * serve; the program may make a communicator of the ranks that are left (MPI_Comm_create_group) and call this again.
 * Open MPI 4's MPI_Finalize may then wait for the dead rank: end without it. MPI_Finalize ends a session that is still
 * open, with a warning. Blocks: collective over comm. Errors: as dm_init; where some rank of comm does not call it
 * within meet_s (option, 120 s), those that did return DM_ERR_TIMEOUT, and so does that rank should it still come; comm
 * can serve for no collective call afterwards; DM_ERR_ARG (comm; MPI has not been initialised). */
DM_API DM_CHECKED dm_status dm_init_comm(MPI_Comm comm, const dm_config *config, dm_session **session);

#ifdef __cplusplus
}
#endif
#endif
