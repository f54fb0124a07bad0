/* Device times of steps, for the timeline and the profile: an event before and one behind each, in a ring. Times are relative
 * to a base event recorded at a known host time. The base is renewed often, because times are float
 * milliseconds and the two clocks drift. */
#include "exec/gpu/parts.h"

#include <stdlib.h>

enum { TIMINGS = 4096 };
#define BASE_NS INT64_C(4000000000)

typedef struct dmi_gpu_time {
    dmi_event base, begin[TIMINGS], end[TIMINGS];
    int64_t base_ns;
    uint64_t count;
} dmi_gpu_time;

/* Events in flight then have times before it, which is fine. */
static dm_status set_base(const dmi_gpu *g)
{
    dm_status status = dmi_cu_event_record(g->time->base, g->stream[STREAM_TABLES]);
    status = status == DM_OK ? dmi_cu_stream_wait(g->stream[STREAM_TABLES]) : status;
    g->time->base_ns = dmi_now_ns();
    return status;
}

dm_status dmi_gpu_time_start(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    g->time = calloc(1, sizeof *g->time);
    dm_status status = g->time ? dmi_cu_event_create(true, &g->time->base)
                               : dmi_fail(DM_ERR_NOMEM, "no memory for the times of GPU %d", g->device);
    for (int i = 0; i < TIMINGS && status == DM_OK; i++) {
        status = dmi_cu_event_create(true, &g->time->begin[i]);
        status = status == DM_OK ? dmi_cu_event_create(true, &g->time->end[i]) : status;
    }
    return status == DM_OK ? set_base(g) : status;
}

void dmi_gpu_time_stop(dmi_engine *e)
{
    dmi_gpu_time *t = e->gpu->time;
    for (int i = 0; t && i < TIMINGS; i++) {
        dmi_cu_event_destroy(t->begin[i]);
        dmi_cu_event_destroy(t->end[i]);
    }
    if (t) {
        dmi_cu_event_destroy(t->base);
    }
    free(t);
    e->gpu->time = NULL;
}

void dmi_gpu_time_begin(dmi_engine *e, int stream, dmi_queued_step *w)
{
    dmi_gpu_time *t = e->gpu->time;
    dmi_gpu_range_step(e, w);
    if (e->timed && t) {
        if (dmi_now_ns() - t->base_ns > BASE_NS && !e->gpu->launching) {
            dmi_gpu_failed(e, w, set_base(e->gpu));
        }
        w->timing = ++t->count;
        dmi_gpu_failed(e, w, dmi_cu_event_record(t->begin[w->timing % TIMINGS], e->gpu->stream[stream]));
    }
}

void dmi_gpu_time_end(dmi_engine *e, int stream, dmi_queued_step *w)
{
    dmi_gpu_time *t = e->gpu->time;
    if (e->timed && t && w->timing) {
        dmi_gpu_failed(e, w, dmi_cu_event_record(t->end[w->timing % TIMINGS], e->gpu->stream[stream]));
    }
    dmi_gpu_range_end(e);
}

void dmi_gpu_time_take(dmi_engine *e, const dmi_queued_step *w)
{
    const dmi_gpu_time *t = e->gpu->time;
    double from = 0, to = 0;
    int at = (int)(w->timing % TIMINGS);
    int64_t now = dmi_now_ns();
    if (!t || !w->timing ||
        t->count - w->timing >= TIMINGS) { /* none on the device, or its events are gone */
        dmi_step_took(e, w, w->begun_ns ? w->begun_ns : now, now);
    } else if (dmi_cu_event_between(t->base, t->begin[at], &from) == DM_OK &&
               dmi_cu_event_between(t->base, t->end[at], &to) == DM_OK) {
        dmi_step_took(e, w, t->base_ns + (int64_t)(from * 1e9), t->base_ns + (int64_t)(to * 1e9));
    } else {
        dmi_log(DMI_LOG_INFO, "timeline: %s", dmi_error_text());
    }
}
