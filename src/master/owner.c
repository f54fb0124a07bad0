/* Which thread may make calls on a session, and what others may do. */
#include "master/session.h"

#include <dmath/control.h>

void dmi_owner_take(dm_session *session)
{
    atomic_store(&session->owner, dmi_thread_self());
}

dm_status dmi_owner_refuse(void)
{
    return dmi_fail(
        DM_ERR_STATE,
        "this thread is not the session's: calls come from the thread that started it, or that took it over "
        "with dm_session_take");
}

dm_status dm_session_take(dm_session *session)
{
    dmi_session *s = NULL;
    dm_status status = dmi_hold(session, &s);
    if (status != DM_OK) {
        return status;
    }
    if (atomic_load(&s->waiting) && !dmi_owner_is(session)) {
        status = dmi_fail(DM_ERR_STATE, "the session's thread is inside a call that waits");
    } else {
        dmi_owner_take(session);
    }
    dmi_release(session);
    return status;
}

static void cancel(dmi_session *s)
{
    uint64_t command = __atomic_load_n(&s->command, __ATOMIC_RELAXED);
    atomic_store(&s->cancel, command);
    dmi_engine_cancel(&s->hub, command);
}

dm_status dm_cancel(dm_session *session)
{
    dmi_session *s = NULL;
    dm_status status = dmi_hold(session, &s);
    if (status == DM_OK) {
        cancel(s);
        dmi_release(session);
    }
    return status;
}

void dmi_cancel_interrupted(void)
{
    dmi_session *s = NULL;
    for (dm_session *at = dmi_session_first(); at; at = at->next) {
        if (atomic_load(&at->interrupts) && dmi_hold_now(at, &s)) {
            cancel(s);
            dmi_release(at);
        }
    }
}

void dmi_cancel_send(dmi_session *s)
{
    uint64_t until = atomic_load_explicit(&s->cancel, memory_order_relaxed);
    if (until > s->cancel_sent) {
        s->cancel_sent = until;
        dmi_cancel_frame *frame = dmi_frame_begin(s, sizeof *frame, DMI_FRAME_CANCEL, 0);
        frame->until = until;
        dmi_frame_send(s);
    }
}
