/* What calls have left to do whose time was over (dm_session_limit). */
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>

void dmi_rest_keep(dmi_session *s, dmi_rest *rest)
{
    rest->command = s->command;
    rest->called = dmi_api_number();
    rest->next = s->rests;
    s->rests = rest;
}

/* A failure of the command is known and will be reported: what came of it is dropped. */
static void end_one(dmi_session *s, dmi_rest *rest, dm_status status)
{
    uint64_t command = rest->command; /* the rest goes */
    const char *name = dmi_api_name(rest->called);
    bool failed = status == DM_OK && dmi_failure_of(s, rest->first, command, 0);
    dm_status ended = rest->end(rest, failed ? DM_ERR_POISONED : status);
    if (ended != DM_OK && !failed && status == DM_OK) {
        char line[DMI_ERROR_TEXT];
        snprintf(line, sizeof line, "command %" PRIu64 " (%s): %s", command, name ? name : "unknown",
                 dmi_error_text());
        dmi_failure_add(s, command, UINT64_MAX, ended, line);
    }
}

void dmi_rests_end(dmi_session *s, uint64_t command, dm_status status)
{
    for (dmi_rest **at = &s->rests; *at;) {
        dmi_rest *rest = *at;
        if (rest->command > command) {
            at = &rest->next;
            continue;
        }
        *at = rest->next;
        end_one(s, rest, status);
    }
}

dm_status dm_session_limit(dm_session *session, double seconds)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter_stuck(session, &s);
    if (status == DM_OK && seconds != seconds) {
        return dmi_fail(DM_ERR_ARG, "session_limit: seconds is NaN");
    }
    if (status == DM_OK) {
        s->limited = seconds >= 0;
        s->limit_s = seconds;
        s->limited_call = 0;
    }
    return status;
}
