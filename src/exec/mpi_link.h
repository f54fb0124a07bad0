/* Plain MPI messages between endpoints. One thread of a process makes all MPI calls of a session: the communication
 * thread in a worker, the user's in the master (within calls of the library). With other hosts, the master has a
 * second one for heartbeats (launch/heartbeat.c), and a lock. */
#ifndef DMI_MPI_LINK_H
#define DMI_MPI_LINK_H

#include "exec/engine.h"

#include <mpi.h>
#include <pthread.h>

typedef struct dmi_mpi_state {
    MPI_Comm data;      /* payload */
    const int *rank;    /* [endpoints] rank of each endpoint in both communicators */
    int posted[DMI_CHANNELS]; /* receives that hold a buffer now */
    pthread_mutex_t *lock; /* NULL: one thread of the process calls MPI */
} dmi_mpi_state;

static inline void dmi_mpi_enter(const dmi_mpi_state *mpi)
{
    if (mpi->lock) {
        pthread_mutex_lock(mpi->lock);
    }
}
static inline void dmi_mpi_leave(const dmi_mpi_state *mpi)
{
    if (mpi->lock) {
        pthread_mutex_unlock(mpi->lock);
    }
}

/* "function: text of the MPI error" as a status; DM_OK for MPI_SUCCESS. */
DM_CHECKED dm_status dmi_mpi_check(int code, const char *function);

/* Are the elements of one side consecutive in memory, in the order of the message? *offset: where they begin. */
bool dmi_mpi_contiguous(const dmi_copy *g, bool dst, int64_t *offset);
/* Payloads packed by the caller (in GPU memory, or pinned). push starts the send, or polls it; true: `buffer`
 * may change again. arrive: 0 not yet, 1 here, -1 the sender's command failed. */
bool dmi_mpi_push_packed(dmi_engine *e, dmi_queued_step *w, char *buffer);
bool dmi_mpi_grant_packed(dmi_engine *e, dmi_queued_step *w, char *buffer);
int dmi_mpi_arrive_packed(dmi_engine *e, dmi_queued_step *w);

#endif
