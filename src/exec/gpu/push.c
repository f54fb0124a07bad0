/* A payload's way into memory of another GPU that is mapped here. */
#include "exec/gpu/parts.h"
#include "kernels/direct.h"

/* Folds the dims of a copy without runs into width, height and two pitches. */
bool dmi_gpu_as_rows(const dmi_copy *c, int64_t elem, int64_t *src, int64_t *dst, int64_t v[4])
{
    int64_t width = 1, height = 1, src_pitch = 0, dst_pitch = 0;
    *src = c->src_offset;
    *dst = c->dst_offset;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->nrun[d] != 1) {
            return false;
        }
        int64_t len = c->run[d][0].len, ss = c->src_stride[d], ds = c->dst_stride[d];
        *src += c->run[d][0].a * ss;
        *dst += c->run[d][0].b * ds;
        if (len == 1) {
            continue;
        }
        if (height == 1 && ss == width && ds == width) {
            width *= len;
        } else if (height == 1) {
            height = len;
            src_pitch = ss;
            dst_pitch = ds;
        } else if (ss == src_pitch * height && ds == dst_pitch * height) {
            height *= len;
        } else {
            return false;
        }
    }
    v[0] = width * elem;
    v[1] = height;
    v[2] = (height > 1 ? src_pitch : width) * elem;
    v[3] = (height > 1 ? dst_pitch : width) * elem;
    bool few = v[0] <= INT32_MAX && v[2] <= INT32_MAX && v[3] <= INT32_MAX; /* what a copy of rows takes */
    return v[2] >= v[0] && v[3] >= v[0] && (height == 1 || few);
}

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
    if (dmi_gpu_as_rows(c, elem, &src, &dst, v)) {
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
