/* dmath for programs that own MPI.  BSD-3-Clause, see LICENSE. */
#ifndef DMATH_MPI_H
#define DMATH_MPI_H

#include <dmath/dmath.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As dm_init over the ranks of comm (which is duplicated). Rank 0 of comm returns with *session set. The other
 * ranks serve, and return with *session == NULL when rank 0 calls dm_finalize: the program goes on. MPI is neither
 * initialised nor finalised. A communicator of one rank: the workers are threads of the process. */
DM_API DM_CHECKED dm_status dm_init_comm(MPI_Comm comm, const dm_config *config, dm_session **session);

#ifdef __cplusplus
}
#endif
#endif
