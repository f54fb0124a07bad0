/* dmath: events and time limits; which thread uses a session, and how another one stops its commands; signals.
 * BSD-3-Clause, see LICENSE. <dmath/dmath.h> includes it. */
#include <dmath/dmath.h> /* before the guard: it includes this header ahead of others that use dm_event */

#ifndef DMATH_CONTROL_H
#define DMATH_CONTROL_H

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread takes the session over. A session belongs to the thread that started it: a call from any other
 * thread is DM_ERR_STATE and changes nothing. After this call it belongs to the calling thread. The program sees to it
 * that the thread before makes no call at the same time. Does not block. Errors: DM_ERR_STATE (that thread waits inside
 * a call). */
DM_API DM_CHECKED dm_status dm_session_take(dm_session *session);

/* Cancels all commands given so far that are not done: each worker stops at its next step. The call that waits
 * for them, or the next one that waits, returns DM_ERR_CANCELLED; what they write is poisoned; the session goes
 * on. A step that runs goes on to its end: a product's on CPUs is a block of it, a user function's is the
 * function. From any thread, and from a signal handler while the session is not being started or ended. Beside
 * dm_finalize it cancels what that waits for, or is DM_ERR_STATE: the session has been finalized. Does not
 * block. No errors of its own. */
DM_API DM_CHECKED dm_status dm_cancel(dm_session *session);

/* ---- signals --------------------------------------------------------------------------------------------- */

/* *number = the first signal that came of those that are caught, 0: none did. With the option catch_signals
 * (DMATH_CATCH_SIGNALS=1, or dm_config.options), SIGUSR1 and SIGTERM do not end the program from dm_init to
 * dm_finalize (SIGUSR1: nor after it): they leave a note. Batch systems send them before the time of a job is
 * over; scripts/sbatch-template.sh has how. Under a launcher they are rank 0's, and do nothing in the other
 * ranks. With the option interrupt, Ctrl-C (SIGINT) cancels the commands of the sessions that have the option,
 * as dm_cancel does. The second one ends the process, by SIGINT; files and checkpoints that it had not finished
 * are removed. mpirun does not pass Ctrl-C on, and ends the job at the first one; send SIGINT to
 * rank 0 instead. A child by fork has these signals as they were before dm_init. From any thread. Does not
 * block. Errors: DM_ERR_ARG (number). */
DM_API DM_CHECKED dm_status dm_session_signalled(dm_session *session, int *number);

/* ---- events and time limits ------------------------------------------------------------------------------ */

/* A point in the order of the commands: plain data, owned by nobody, copy it freely. It is good until dm_finalize. */
typedef struct dm_event {
    uint64_t session;     /* 0: no event */
    uint64_t first, last; /* the commands that it covers, by number */
    uint64_t checkpoint;  /* number of the checkpoint that it is for (dm_checkpoint_save); 0: none */
} dm_event;

/* *event = the commands given since the last dm_event_record of this session, or since its start: called behind every
 * call, it is the event of that call. It is done when these commands, and all before them, are. Does not block. No
 * errors of its own. Cost: nothing; with workers on other hosts one small message to each of them. */
DM_API DM_CHECKED dm_status dm_event_record(dm_session *session, dm_event *event);

/* *done = 1 if the event's commands are done, well or not; else 0. Does not block: it also carries transfers on, as
 * every call that waits does. Errors: DM_ERR_HANDLE (another session's event, or none), DM_ERR_ARG (done). */
DM_API DM_CHECKED dm_status dm_event_done(dm_session *session, dm_event event, int *done);

/* Waits for the event's commands, and returns the failure of the first that failed, each time it is asked; the
 * calls that wait for all commands (dm_sync) do not report the failures that it has returned again. Blocks at
 * most so many seconds (0: only looks; negative: for ever). Errors: DM_ERR_PENDING: the time is over. Nothing
 * is lost, the commands go on, and the event may be waited for again. Those of its commands; DM_ERR_HANDLE
 * (another session's event, or none); DM_ERR_ARG (seconds: NaN). */
DM_API DM_CHECKED dm_status dm_event_wait(dm_session *session, dm_event event, double seconds);

/* The failures of the event's commands, one by one in the order of the commands, index from 0 on: *status and a copy of
 * the message into text[room] (NULL and 0: none). *status is DM_OK beyond the last. All that is known so far, of an
 * event that is done all there are; the 4096 latest failures of a session are kept. Marks nothing as reported. Does not
 * block. Errors: DM_ERR_HANDLE (another session's event, or none), DM_ERR_ARG (index, status). */
DM_API DM_CHECKED dm_status dm_event_error(dm_session *session, dm_event event, int index, dm_status *status, char *text,
                                           size_t room);

/* dm_sync with a time limit in seconds (0: only looks; negative: none). Errors: as dm_sync; DM_ERR_PENDING: the
 * time is over; nothing is lost, the commands go on; DM_ERR_ARG (seconds: NaN). */
DM_API DM_CHECKED dm_status dm_sync_within(dm_session *session, double seconds);

/* dm_array_read with a time limit in seconds (negative: none). Blocks no longer than that. host belongs to the
 * library until the read is done: after DM_ERR_PENDING the read goes on inside later calls that wait, and is
 * done when a dm_sync, a dm_sync_within or an event that was recorded behind it says so; they report its
 * failure too. The other calls that return data wait for the commands before them and for little else: with an
 * event before them, their time is known as well. Errors and cost: as dm_array_read; DM_ERR_PENDING; DM_ERR_ARG
 * (seconds: NaN). */
DM_API DM_CHECKED dm_status dm_array_read_within(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                                 void *host, int64_t ld, double seconds);

/* A time limit for every call of this session that blocks, in seconds (negative: none, as at the start). A call
 * that has waited so long returns DM_ERR_PENDING: what it waits for goes on, no command is cancelled (dm_cancel
 * does that), and the session can be used as before. The time counts from the first moment in which the call
 * waits, over all of its waits; 0: it only looks. Calls with a limit of their own keep that (dm_event_wait,
 * dm_group_wait, dm_sync_within, dm_array_read_within; where it is negative this one holds). What things are
 * after DM_ERR_PENDING:
 * - dm_sync, dm_event_wait, dm_group_sync, counters, profiles: as before the call; it may be made again.
 * - dm_array_read and all that read elements (dm_read, dm_item): the caller's memory is as it was, and is the
 * caller's. The library reads on into memory of its own, of the same size; what fails there a later call
 * reports.
 * - dm_array_write: the elements were copied during the call and will be written; the memory is the caller's.
 * - dm_array_load: the new array is gone; what fails there a later call that waits reports.
 * - dm_array_save: the file appears when a later call that waits finds the command done, or that call reports
 * the failure.
 * - dm_checkpoint_save, dm_session_save: it goes on, as with an event; dm_finalize, and the next checkpoint,
 * wait for it. But if the one before was still being written, none was begun; then the message says so.
 * - dm_checkpoint_load, dm_session_load: arrays with a name will be written; values and the generator are as
 * they were. New arrays, and that of dm_checkpoint_array, are gone.
 * - Operations that wait between their commands (dm_take, dm_put and dm_shuffle with exchanges, dm_compress,
 * dm_unique, dm_sort of long rows, dm_isin): what they write is either untouched or undefined until it is
 * written again; temporaries are freed.
 * - Calls that find the command ring full, those too that do not block otherwise: not given.
 * - dm_feed_destroy, dm_finalize: the feed (stopped), the session, is still there; the call may be made again,
 * after dm_cancel too.
 * - Calls of <dmath/nn.h>: as after any failure.
 *
 * Not limited: reading and syncing files in the calling thread, dm_init, and the end of the workers once all
 * commands are done. Does not block. Errors: DM_ERR_ARG (seconds is NaN). Cost: nothing is sent; while there is
 * a limit, transfers from and to the program take a buffer of their size, and one copy more. */
DM_API DM_CHECKED dm_status dm_session_limit(dm_session *session, double seconds);

#ifdef __cplusplus
}
#endif
#endif
