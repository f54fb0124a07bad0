/* Events: ranges of commands that can be polled, waited for and asked for their failures. */
#include "master/checkpoint.h"
#include "master/session.h"

#include <stdio.h>

static dm_status enter(dm_session *session, dm_event event, dmi_session **out)
{
    dm_status status = dmi_enter_stuck(session, out);
    if (status == DM_OK && event.session != (*out)->number) {
        return dmi_fail(DM_ERR_HANDLE, "%s: event %s", dmi_api_called(),
                        event.session ? "belongs to another session" : "is none: dm_event_record makes one");
    }
    return status;
}

dm_status dm_event_record(dm_session *session, dm_event *event)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !event) {
        return dmi_fail(DM_ERR_ARG, "event_record: event is NULL");
    }
    if (status == DM_OK) {
        *event = (dm_event){.session = s->number, .first = s->marked + 1};
        event->last = dmi_wait_mark(s);
        s->marked = event->last;
    }
    return status;
}

static bool is_done(dmi_session *s, dm_event event)
{
    return event.checkpoint ? dmi_checkpoint_done(s, event.checkpoint) : dmi_done(s, event.last);
}

dm_status dm_event_done(dm_session *session, dm_event event, int *done)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, event, &s);
    if (status == DM_OK && !done) {
        return dmi_fail(DM_ERR_ARG, "event_done: done is NULL");
    }
    if (status == DM_OK) {
        *done = is_done(s, event);
        dmi_failures_spread(s);
    }
    return status;
}

dm_status dm_event_wait(dm_session *session, dm_event event, double seconds)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, event, &s);
    if (status == DM_OK && seconds != seconds) {
        status = dmi_fail(DM_ERR_ARG, "event_wait: seconds is NaN");
    }
    if (status != DM_OK) {
        return status;
    }
    status = event.checkpoint ? dmi_checkpoint_wait(s, event.checkpoint, dmi_deadline(seconds))
                              : dmi_wait_done(s, event.last, dmi_deadline(seconds));
    if (status != DM_OK) {
        return status;
    }
    (void)!dmi_failures_report(s, event.first, event.last, UINT64_MAX); /* so that no other call does */
    const dmi_failure *failure = dmi_failure_of(s, event.first, event.last, 0);
    return failure ? dmi_fail(failure->status, "%s", failure->text) : DM_OK;
}

dm_status dm_event_error(dm_session *session, dm_event event, int index, dm_status *out, char *text,
                         size_t room)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, event, &s);
    if (status == DM_OK && (index < 0 || !out)) {
        return dmi_fail(DM_ERR_ARG, "event_error: %s", out ? "index is negative" : "status is NULL");
    }
    if (status == DM_OK) {
        (void)is_done(s, event);
        const dmi_failure *failure = dmi_failure_of(s, event.first, event.last, index);
        *out = failure ? failure->status : DM_OK;
        if (text && room > 0) {
            snprintf(text, room, "%s", failure ? failure->text : "");
        }
    }
    return status;
}

dm_status dm_sync_within(dm_session *session, double seconds)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter_stuck(session, &s);
    if (status == DM_OK && seconds != seconds) {
        return dmi_fail(DM_ERR_ARG, "sync_within: seconds is NaN");
    }
    return status == DM_OK ? dmi_wait_until(s, s->command, dmi_deadline(seconds)) : status;
}
