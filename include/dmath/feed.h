/* dmath: feeds: data that a thread of the program brings while commands run.  BSD-3-Clause, see LICENSE.
 *
 * A feed is a ring of buffers in host memory. A thread of the program, which need not be the session's, takes a
 * free buffer, fills it and puts it into the ring. dm_array_feed copies the next buffer that was put to an
 * array. Recorded in a program it does so in every run, and the session's thread takes no part:
 *
 *     dm_feed_create(s, DM_F32, 2, shape, 3, &feed);
 *     dm_program_begin(s);
 *     dm_array_feed(s, batch, feed, 60);                      -- recorded, as what is done with the batch
 *     dm_program_end(s, &step);
 *     dm_program_run(s, step, 1000, 0, NULL);                 -- takes 1000 buffers
 *
 *     while (there_is_more) {                                 -- another thread
 *         dm_feed_take(feed, -1, &buffer);
 *         fill(buffer);
 *         dm_feed_put(feed);
 *     }
 *
 * Order: each dm_array_feed, in the order of the calls and of the runs of programs, has a buffer of its own, in
 * the order in which they were put.
 *
 * Who waits: dm_feed_take, until a buffer is free, which it is when every worker has copied what it holds of it. A
 * worker that comes to a dm_array_feed, until the buffer was put; meanwhile it runs no kernel that was called later (a
 * GPU: none in the same lane). Calls of the session's thread do not wait, so the session's thread may fill buffers as
 * well, before or after it calls a run. A worker that has waited for `seconds` fails the command (DM_ERR_TASK), and so
 * does one that waits when dm_feed_stop is called, or dm_cancel (DM_ERR_CANCELLED).
 *
 * A failed or cancelled command that takes a buffer leaves the feed poisoned, as all that it writes, because
 * workers may have taken different numbers of buffers. Commands with the feed fail (DM_ERR_POISONED) until
 * dm_feed_restart. */
#ifndef DMATH_FEED_H
#define DMATH_FEED_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dm_feed dm_feed;

/* A feed of this many buffers for arrays of this type and shape, for the workers of the session or of the group that
 * has begun. A buffer has all elements in C order. Does not block. The caller destroys the feed (dm_feed_destroy).
 * Errors: DM_ERR_ARG (shape, buffers < 1), DM_ERR_DTYPE, DM_ERR_NOMEM, DM_ERR_STATE (while recording, and between
 * dm_explain_begin and dm_explain_end), DM_ERR_UNSUPPORTED (a worker is on another host than the program). Cost: host
 * memory for the buffers. */
DM_API DM_CHECKED dm_status dm_feed_create(dm_session *session, dm_dtype dtype, int ndim, const int64_t *shape,
                                           int buffers, dm_feed **out);
/* *buffer = the next buffer, when it is free. Taken again before it was put, it is the same one. From any thread, one
 * at a time. Blocks at most so many seconds (0: only looks; negative: for ever). The buffer is the feed's; the caller
 * fills all of it. Errors: DM_ERR_PENDING (none is free yet), DM_ERR_STATE (the feed was stopped), DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_feed_take(dm_feed *feed, double seconds, void **buffer);
/* The buffer that was taken is filled, and the feed's again. From the thread that took it. Does not block. Errors:
 * DM_ERR_STATE (none was taken), DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_feed_put(dm_feed *feed);
/* Ends all waits for the feed, those to come as well, but not those for buffers that were put: dm_feed_take returns
 * DM_ERR_STATE, and commands that find no buffer fail. dm_finalize does it too. From any thread. Does not block.
 * Errors: DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_feed_stop(dm_feed *feed);
/* a = the next buffer that was put. a: an array or view of the feed's type and shape, on workers of the feed, in any
 * layout. seconds: how long a worker waits for the buffer (negative: for ever). The option watchdog_s bounds it too.
 * Does not block. Errors: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_LAYOUT (a lies on a worker that is none of the feed's),
 * DM_ERR_ARG (feed; seconds is NaN), DM_ERR_HANDLE (a, or a feed of another session). Of the command: DM_ERR_TASK (no
 * buffer came), DM_ERR_POISONED. Cost: a copy of the array's bytes; on GPUs two more, as of a user function. A journal
 * (option journal) does not have it. */
DM_API DM_CHECKED dm_status dm_array_feed(dm_session *session, dm_array a, dm_feed *feed, double seconds);
/* Blocks until all commands given so far are done; then drops the buffers that were put and not taken, and the feed is
 * as new: not poisoned, not stopped. A buffer that a thread is filling stays its own. Errors: as dm_sync, but for
 * failed commands, which it does not report; DM_ERR_ARG, DM_ERR_HANDLE (a feed of another session), DM_ERR_STATE (while
 * recording). */
DM_API DM_CHECKED dm_status dm_feed_restart(dm_session *session, dm_feed *feed);
/* Stops the feed and frees it. No thread may use it any more. Programs that use it cannot run again (DM_ERR_HANDLE).
 * Also after dm_finalize. NULL is ignored. Blocks until all commands given so far are done. Errors: DM_ERR_STATE
 * (another thread than the session's; while recording). */
DM_API DM_CHECKED dm_status dm_feed_destroy(dm_feed *feed);

#ifdef __cplusplus
}
#endif

#endif
