/* What every public call does around its own code: see cmake/api_calls.cmake. */
#ifndef DMI_API_CALL_H
#define DMI_API_CALL_H

#include "base/base.h"

#include <dmath/dmath.h>

/* Calls the session's error handler where the status is a failure; returns the status. The session may be NULL.
 */
DM_CHECKED dm_status dmi_api_end(const dm_session *session, dm_status status);
/* Of a call that starts a session: the handler is the configuration's. */
DM_CHECKED dm_status dmi_api_end_start(const dm_config *config, dm_status status);

#endif
