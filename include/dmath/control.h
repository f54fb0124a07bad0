/* dmath: which thread uses a session.  BSD-3-Clause, see LICENSE. <dmath/dmath.h> includes it. */
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

#ifdef __cplusplus
}
#endif
#endif
