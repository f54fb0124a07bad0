/* What every public call does around its own code: see cmake/api_calls.cmake. */
#ifndef DMI_API_CALL_H
#define DMI_API_CALL_H

#include "base/base.h"

#include <dmath/dmath.h>

/* outer: the public call (dmi_api_number) inside which the call was made, by a function of the user; mostly 0.
 * The end of a call that failed: names the call and calls the session's error handler; returns the status. */
DM_CHECKED dm_status dmi_api_failed(uint16_t outer, const dm_session *session, dm_status status);

/* The end of a call; returns its status. The session may be NULL. */
DM_CHECKED static inline dm_status dmi_api_end(uint16_t outer, const dm_session *session, dm_status status)
{
    if (status != DM_OK) {
        return dmi_api_failed(outer, session, status);
    }
    dmi_api_begin(outer);
    return DM_OK;
}

/* Of a call that starts a session: the handler is the configuration's. */
DM_CHECKED dm_status dmi_api_end_start(uint16_t outer, const dm_config *config, dm_status status);

#endif
