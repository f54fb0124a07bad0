/* dmath: which thread uses a session, and how another one stops its commands.  BSD-3-Clause, see LICENSE. <dmath/dmath.h> includes it. */
#ifndef DMATH_CONTROL_H
#define DMATH_CONTROL_H

#include <dmath/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dm_session dm_session;

/* The calling thread takes the session over. A session belongs to the thread that started it: a call from any
 * other thread is DM_ERR_STATE and changes nothing. After this call it belongs to the calling thread. The
 * program sees to it that the thread before makes no call at the same time. Does not block. Errors:
 * DM_ERR_STATE (that thread waits inside a call). */
DM_API DM_CHECKED dm_status dm_session_take(dm_session *session);

/* Cancels all commands given so far that are not done: each worker stops at its next step. The call that waits for them, or
 * the next one that waits, returns DM_ERR_CANCELLED; what they write is poisoned; the session goes on. From any thread, and
 * from a signal handler while the session is not being started or ended. A step that runs goes on to its end: a product's on
 * CPUs is a block of it, a user function's is the function. Does not block. No errors of its own. */
DM_API DM_CHECKED dm_status dm_cancel(dm_session *session);

#ifdef __cplusplus
}
#endif
#endif
