/* Chunks in flight that are packed beside the arrays: through host memory, or as messages of device memory.
 *
 * RECV's stream copies received chunks to their destination and raises this device's own `arrived` counter
 * behind the copy, like a peer with direct access. So readers of a payload wait for the counter in either
 * case. */
#include "exec/gpu/parts.h"
#include "kernels/direct.h"

dmi_staged *dmi_gpu_packed_next(dmi_staging *s)
{
    dmi_staged *buffer = &s->buffer[s->tail % STAGED];
    if (s->tail - s->head == STAGED || (buffer->used && !dmi_cu_event_reached(buffer->event))) {
        return NULL;
    }
    dmi_arena_free(&buffer->arena);
    return buffer;
}

void dmi_gpu_packed_take(dmi_staging *s, dmi_staged *buffer, dmi_queued_step *w, int state)
{
    buffer->work = w;
    buffer->state = state;
    w->staged = buffer;
    s->tail++;
}

void dmi_gpu_packed_record(dmi_engine *e, dmi_queued_step *w, int lane)
{
    w->staged->used = true;
    dmi_gpu_failed(e, w, dmi_gpu_mark(e, w->staged->event, lane));
}

void dmi_gpu_packed_pack(dmi_engine *e, dmi_staged *buffer, dmi_queued_step *w)
{
    dmi_queue *queue = e->gpu->queue[DMI_LANE_SEND];
    dmi_copy packed;
    const void *source = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status = dmi_gpu_after(e, DMI_LANE_SEND, &w->wait);
    dmi_gpu_time_begin(e, DMI_LANE_SEND, w);
    if (status == DM_OK && !dmi_copy_pack(w->step->desc, &packed, &buffer->arena)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    if (status == DM_OK && source && !atomic_load(&w->inst->failed)) {
        queue->device_run = dmi_gpu_runs(e, w, &packed);
        status = dmi_gpu_work_begin(e, DMI_LANE_SEND);
        if (status == DM_OK) {
            dmi_run_copy(e->config.backend, queue, &packed, source, buffer->device);
            status = buffer->pinned ? dmi_cu_copy(queue->stream, buffer->pinned, buffer->device, w->step->bytes)
                                    : DM_OK;
            status = dmi_gpu_work_end(e, DMI_LANE_SEND, w, dmi_gpu_queued(queue, status));
        }
    }
    dmi_gpu_failed(e, w, status);
    dmi_gpu_time_end(e, DMI_LANE_SEND, w);
}

static dm_status bring(dmi_engine *e, dmi_staged *buffer, dmi_queued_step *w, void *destination)
{
    dmi_queue *queue = e->gpu->queue[DMI_LANE_RECV];
    dmi_copy unpacked;
    dm_status status = dmi_gpu_after(e, DMI_LANE_RECV, &w->wait); /* the current users of the destination */
    if (status == DM_OK && !dmi_copy_unpack(w->step->desc, &unpacked, &buffer->arena)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    if (status != DM_OK) {
        return status;
    }
    dmi_gpu_time_begin(e, DMI_LANE_RECV, w);
    queue->device_run = dmi_gpu_runs(e, w, &unpacked);
    status = dmi_gpu_work_begin(e, DMI_LANE_RECV);
    if (status == DM_OK) {
        status =
            buffer->pinned ? dmi_cu_copy(queue->stream, buffer->device, buffer->pinned, w->step->bytes) : DM_OK;
        dmi_run_copy(e->config.backend, queue, &unpacked, buffer->device, destination);
        status = dmi_gpu_work_end(e, DMI_LANE_RECV, w, dmi_gpu_queued(queue, status));
    }
    dmi_gpu_time_end(e, DMI_LANE_RECV, w);
    return status;
}

/* Unpacks on RECV's stream, behind the current users of the destination, and raises the counter. !good: no data
 * came; only raises the counter. */
static void unpack(dmi_engine *e, dmi_staged *buffer, dmi_queued_step *w, bool good)
{
    dmi_gpu *g = e->gpu;
    void *destination = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status = DM_OK;
    if (good && destination) {
        status = buffer->straight ? DM_OK
                                  : bring(e, buffer, w, destination); /* straight: it lies where it belongs */
        int64_t came = status == DM_OK ? w->step->bytes : 0;
        DMI_ADD_COUNT(e, w->inst, bytes_received, came);
    } else { /* a later step on this stream must not raise the counter before the destination is free */
        status = dmi_gpu_after(e, DMI_LANE_RECV, &w->wait);
    }
    dmi_gpu_failed(e, w, status);
    dmi_gpu_failed(e, w, dmi_gpu_raise(e, DMI_LANE_RECV, &g->arrived[w->step->peer], w->ordinal + 1));
    dmi_gpu_packed_record(e, w, DMI_LANE_RECV);
    buffer->state = CHUNK_ON_DEVICE;
    w->started = true;
}

bool dmi_gpu_packed_receive(dmi_engine *e, dmi_staged *buffer, int (*arrived)(dmi_engine *, dmi_queued_step *))
{
    dmi_queued_step *w = buffer->work;
    if (buffer->state == CHUNK_WITH_LINK) {
        int how = arrived(e, w);
        if (how == 0) {
            return false;
        }
        if (how < 0) {
            dmi_engine_fail(e, w->inst, DM_OK, "");
        }
        unpack(e, buffer, w, how > 0);
    }
    if (dmi_cu_event_reached(buffer->event)) {
        buffer->state = CHUNK_DONE;
    }
    return true;
}

bool dmi_gpu_packed_progress(dmi_engine *e, dmi_staging *s, bool (*each)(dmi_engine *, dmi_staged *))
{
    bool moved = false, on = true;
    for (uint64_t i = s->head; i < s->tail && on; i++) {
        dmi_staged *buffer = &s->buffer[i % STAGED];
        int before = buffer->state;
        on = buffer->state == CHUNK_DONE || each(e, buffer);
        moved = moved || buffer->state != before;
    }
    while (s->head < s->tail && s->buffer[s->head % STAGED].state == CHUNK_DONE) {
        dmi_staged *buffer = &s->buffer[s->head++ % STAGED];
        buffer->work->finished = true;
        buffer->work = NULL;
        moved = true;
    }
    return moved;
}
