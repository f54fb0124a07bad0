/* Events. Each record is a mark of its own, so that a wait is for the record that was the latest when it was
 * asked for, however the event is recorded afterwards, on this stream or another. */
#include "device/emulated/emulated.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct emu_event {
    pthread_mutex_t lock;
    dmi_emu_mark *latest; /* NULL: never recorded */
    int device;
    bool timing;
    const dmi_emu_op *captured; /* of a capture: the last operation; NULL: none */
} emu_event;

void dmi_emu_event_capture(void *event, const dmi_emu_op *last)
{
    ((emu_event *)event)->captured = last;
}

const dmi_emu_op *dmi_emu_event_captured(const void *event)
{
    return ((const emu_event *)event)->captured;
}

static dmi_emu_mark *latest_of(emu_event *e)
{
    pthread_mutex_lock(&e->lock);
    dmi_emu_mark *mark = e->latest;
    if (mark) {
        atomic_fetch_add(&mark->references, 1);
    }
    pthread_mutex_unlock(&e->lock);
    return mark;
}

dm_status dmi_cu_event_create(bool timing, dmi_event *out)
{
    emu_event *e = calloc(1, sizeof *e);
    if (!e) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for an event");
    }
    pthread_mutex_init(&e->lock, NULL);
    e->device = dmi_emu_current();
    e->timing = timing;
    *out = e;
    return DM_OK;
}

void dmi_cu_event_destroy(dmi_event event)
{
    emu_event *e = event;
    if (e) {
        dmi_emu_mark_unref(e->latest);
        pthread_mutex_destroy(&e->lock);
        free(e);
    }
}

dm_status dmi_cu_event_record(dmi_event event, dmi_stream s)
{
    emu_event *e = event;
    dm_status status = dmi_emu_refuse(s, "an event behind a part of a graph");
    if (status != DM_OK) {
        return status;
    }
    if (e->device != dmi_emu_device_of(s)) {
        return dmi_fail(DM_ERR_INTERNAL, "an event of emulated GPU %d is recorded on a stream of GPU %d",
                        e->device, dmi_emu_device_of(s));
    }
    pthread_mutex_lock(&e->lock);
    dmi_emu_mark *mark = dmi_emu_mark_put(s), *before = e->latest;
    e->latest = mark ? mark : before;
    pthread_mutex_unlock(&e->lock);
    if (!mark) {
        return dmi_fail(DM_ERR_NOMEM, "no memory to record an event");
    }
    dmi_emu_mark_unref(before);
    return DM_OK;
}

dm_status dmi_cu_event_after(dmi_stream s, dmi_event event)
{
    dm_status status = dmi_emu_refuse(s, "a wait for an event from outside");
    if (status != DM_OK) {
        return status;
    }
    dmi_emu_mark *mark = latest_of(event);
    status = mark ? dmi_emu_put_wait(s, &mark->reached, 1, mark) : DM_OK;
    dmi_emu_mark_unref(mark);
    return status;
}

static _Atomic(const char *) lost; /* why, set after; as a device of CUDA, for the rest of the process */
static atomic_int lost_device;

void dmi_emu_lose(int device, const char *why)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!why || !atomic_load(&lost)) {
        atomic_store(&lost_device, device);
        atomic_store(&lost, why);
    }
    pthread_mutex_unlock(&lock);
}

const char *dmi_cu_lost(int *device)
{
    const char *why = atomic_load(&lost);
    *device = why ? atomic_load(&lost_device) : -1;
    return why;
}

bool dmi_cu_event_reached(dmi_event event)
{
    (void)!dmi_emu_refuse(NULL, "a question for an event");
    dmi_emu_mark *mark = latest_of(event);
    bool reached = !mark || dmi_emu_has_reached(&mark->reached, 1);
    dmi_emu_mark_unref(mark);
    return reached;
}

dm_status dmi_cu_event_between(dmi_event from, dmi_event to, double *seconds)
{
    emu_event *event[2] = {from, to};
    dmi_emu_mark *mark[2] = {latest_of(from), latest_of(to)};
    bool known = true;
    for (int i = 0; i < 2; i++) {
        known = known && event[i]->timing && mark[i] && dmi_emu_has_reached(&mark[i]->reached, 1);
    }
    if (known) {
        *seconds = (double)(mark[1]->when_ns - mark[0]->when_ns) * 1e-9;
    }
    dmi_emu_mark_unref(mark[0]);
    dmi_emu_mark_unref(mark[1]);
    return known ? DM_OK
                 : dmi_fail(DM_ERR_INTERNAL, "elapsed time of events that were not recorded or not reached");
}
