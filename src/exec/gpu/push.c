/* A payload's way into memory of another GPU that is mapped here. */
#include "exec/gpu/parts.h"
#include "kernels/direct.h"

/* One kernel instead of a copy and a copy of the counter. It takes the copy's position on the stream, behind
 * the wait for the destination, and raises the counter when whoever sees the counter also sees all bytes
 * (dmi_push). As with a copy, the payload is announced when the kernel has been launched. */
static dm_status push_small(dmi_engine *e, const dmi_queued_step *w, dmi_push *p)
{
    dmi_queue *queue = e->gpu->queue[w->step->lane];
    p->counter = dmi_gpu_arrived_at(e, w);
    p->value = dmi_gpu_number(e, w->ordinal + 1);
    dmi_cuda_push(queue, p);
    return dmi_gpu_queued(queue, DM_OK);
}

static dm_status push(dmi_engine *e, const dmi_queued_step *w, void *to, bool *notified)
{
    dmi_queue *queue = e->gpu->queue[w->step->lane];
    const dmi_copy *c = w->step->desc;
    char *from = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    int64_t elem = dmi_dtype_bytes(c->src_dtype), src, dst, v[4];
    if (dmi_copy_as_rows(c, elem, &src, &dst, v)) {
        char *s = from + src * elem, *d = (char *)to + dst * elem;
        if (v[0] * v[1] <= e->config.push_kernel) {
            dmi_push p = {
                .src = s, .dst = d, .src_pitch = v[2], .dst_pitch = v[3], .width = v[0], .height = v[1]};
            *notified = true;
            return push_small(e, w, &p);
        }
        return v[1] == 1 ? dmi_cu_copy(queue->stream, d, s, v[0])
                         : dmi_cu_copy_2d(queue->stream, d, v[3], s, v[2], v[0], v[1]);
    }
    dmi_run_copy(e->config.backend, queue, c, from, to);
    return dmi_gpu_queued(queue, DM_OK);
}

dm_status dmi_gpu_push_payload(dmi_engine *e, const dmi_queued_step *w, void *to, bool *notified)
{
    e->gpu->queue[w->step->lane]->device_run = dmi_gpu_runs(e, w, w->step->desc); /* which may have to be made */
    *notified = false;
    dm_status status = dmi_gpu_work_begin(e, w->step->lane);
    status = dmi_gpu_work_end(e, w->step->lane, w, status == DM_OK ? push(e, w, to, notified) : status);
    *notified = *notified && status == DM_OK;
    return status;
}
