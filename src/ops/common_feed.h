/* The ring of buffers of a feed, which its workers read: in memory that they share with the program's process.
 */
#ifndef DMI_OPS_COMMON_FEED_H
#define DMI_OPS_COMMON_FEED_H

#include "base/base.h"
#include "kernels/host/task.h"

#include <dmath/dmath.h>

#include <stdatomic.h>

/* The number of the user function that reads a feed: beyond those that are registered. */
enum { DMI_TASK_FEED = 1 << 16 };

typedef struct dmi_feed_turns {
    _Alignas(64) atomic_int_fast64_t taken; /* turns that this worker has had */
    int64_t since_ns;                       /* the worker's: it waits for the next one since then; 0: it does not */
} dmi_feed_turns;

/* Turn number t is in buffer t % buffers. It is put once, and taken by each worker of the feed. */
typedef struct dmi_feed_ring {
    int64_t bytes;        /* of this memory */
    int64_t first, apart; /* where buffer 0 begins; bytes from one buffer to the next */
    int buffers, workers;
    atomic_int stopped, ended; /* ended: nobody uses it any more */
    _Alignas(64) atomic_int_fast64_t put; /* turns that are filled */
    dmi_feed_turns worker[];              /* [workers]; INT64_MAX: it is none of the feed's */
} dmi_feed_ring;

/* The arguments of the function. Its operands: what every use of the feed writes, and the array. */
typedef struct dmi_feed_args {
    dmi_feed_ring *ring; /* in one address space; else NULL: */
    int pid, fd;         /* memory that this process shares by this descriptor, */
    int64_t serial;      /* and that it made then */
    int64_t bytes;
    double seconds; /* to wait; negative: for ever */
    int ndim;
    int64_t shape[DM_MAX_DIMS];
} dmi_feed_args;

DM_CHECKED dm_status dmi_feed_ring_make(int64_t buffer_bytes, int buffers, int workers, bool shared,
                                        dmi_feed_ring **out, int *fd);
void dmi_feed_ring_free(dmi_feed_ring *ring, int fd);
static inline void *dmi_feed_buffer(dmi_feed_ring *ring, int64_t turn)
{
    return (char *)ring + ring->first + turn % ring->buffers * ring->apart;
}
/* Has every worker taken the turn whose buffer this one will have? */
bool dmi_feed_free(const dmi_feed_ring *ring, int64_t turn);
/* Between looks at a ring; look: how many there were. */
void dmi_feed_pause(int look);
/* May the step begin? If the turn of this worker is in the ring, or never will be. */
bool dmi_feed_ready(const dmi_task_desc *desc, int worker, const void *args);
int dmi_feed_read(const dm_task *task);

#endif
