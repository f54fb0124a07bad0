/* What every public call does around its own code: see cmake/api_calls.cmake. */
#ifndef DMI_API_CALL_H
#define DMI_API_CALL_H

#include <dmath/dmath.h>

/* The public call that this thread is in, without "dm_"; NULL outside of any. */
const char *dmi_api_called(void);
void dmi_api_begin(const char *name);
/* Calls the session's error handler where the status is a failure; returns the status. The session may be NULL.
 */
DM_CHECKED dm_status dmi_api_end(const dm_session *session, dm_status status);
/* Of a call that starts a session: the handler is the configuration's. */
DM_CHECKED dm_status dmi_api_end_start(const dm_config *config, dm_status status);

#endif
