/* From a COMPUTE step to the backend's kernel. */
#include "base/fault.h"
#include "exec/engine.h"
#include "kernels/direct.h"
#include "ops/common_feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { OVERRUN_BYTES = 16, SCRATCH_ALIGN = 256 };

void *dmi_ref_pointer(const dmi_instance *inst, const dmi_ref *ref)
{
    char *base = NULL;
    switch (ref->kind) {
    case DMI_REF_OPERAND:
        base = inst->memory[ref->index]->allocation.base;
        break;
    case DMI_REF_WORK:
        base = inst->work[ref->index].base;
        break;
    case DMI_REF_USER:
        base = inst->user;
        break;
    default:
        assert(!"a step without memory");
    }
    return base ? base + ref->offset : NULL;
}

double dmi_step_scalar(const dmi_queued_step *w, int which)
{
    switch (w->step->scalar[which]) {
    case DMI_SCALAR_ONE:
        return 1.0;
    case DMI_SCALAR_ZERO:
        return 0.0;
    default:
        return w->inst->number[w->step->number + w->step->scalar[which]].re;
    }
}

/* Tests plant faults: "compute:N" makes the N-th kernel of this worker fail. */
static bool planted(dmi_engine *e)
{
    const char *fault = e->config.fault;
    if (!fault || strncmp(fault, "compute:", 8) != 0) {
        return false;
    }
    return atomic_fetch_add(&e->kernel_steps, 1) + 1 == strtoll(fault + 8, NULL, 10);
}

/* "overrun:N" makes the N-th kernel of this worker write beyond the end of its output; "illegal:N" so far
 * beyond it that there is no memory, "illegal:N:worker=W" of worker W alone. On a GPU, emulated or not, that is
 * an error of the device, anywhere else the end of the process. */
static void plant_overrun(dmi_engine *e, dmi_queue *q, const dmi_queued_step *w)
{
    const char *fault = e->config.fault;
    const dmi_allocation *allocation = NULL;
    bool far = fault && strncmp(fault, "illegal:", 8) == 0;
    if (!fault || (strncmp(fault, "overrun:", 8) != 0 && !far)) {
        return;
    }
    char *rest;
    int64_t at = strtoll(fault + 8, &rest, 10);
    bool mine = strncmp(rest, ":worker=", 8) != 0 || strtol(rest + 8, NULL, 10) == e->config.me;
    if (atomic_fetch_add(&e->kernel_steps, 1) + 1 != at || !mine) {
        return;
    }
    for (int i = 0; i < w->step->nref; i++) {
        const dmi_ref *ref = &w->step->ref[i];
        if (ref->mode & DMI_WRITE) {
            allocation = ref->kind == DMI_REF_OPERAND ? &w->inst->memory[ref->index]->allocation
                         : ref->kind == DMI_REF_WORK  ? &w->inst->work[ref->index]
                                                      : allocation;
        }
    }
    dmi_run run = {.len = allocation ? DMI_MIN(allocation->bytes, OVERRUN_BYTES) : 0};
    dmi_copy copy = {.ndim = 1,
                     .src_dtype = DM_U8,
                     .dst_dtype = DM_U8,
                     .nrun = {1},
                     .run = {&run},
                     .src_stride = {1},
                     .dst_stride = {1},
                     .dst_offset = far ? INT64_C(1) << 46 : allocation ? allocation->bytes : 0,
                     .count = run.len};
    if (run.len > 0) {
        dmi_run_copy(e->config.backend, q, &copy, allocation->base, allocation->base);
    }
}

dmi_tail dmi_step_tail(const dmi_queued_step *w)
{
    const dmi_plan *plan = w->inst->plan;
    return w->step->call > 0 && w->step->call <= plan->calls ? plan->tail[w->step->call - 1]
                                                             : (dmi_tail){w->inst->tail, w->inst->tail_bytes};
}

bool dmi_step_may_begin(const dmi_engine *e, const dmi_queued_step *w)
{
    if (w->step->kind != DMI_STEP(task)) {
        return true;
    }
    const dmi_task_desc *task = w->step->desc;
    return task->number != DMI_TASK_FEED || dmi_feed_ready(task, e->config.me, dmi_step_tail(w).at);
}

void dmi_step_touches(const dmi_step *step, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_touching touching = {.desc = step->desc, .refs = step->nref - (step->workspace > 0)};
    memset(out, 0, DMI_MAX_REFS * sizeof *out);
    dmi_step_kernel(step)->touches(&touching, out);
    if (step->workspace > 0) {
        dmi_touch_dense(&out[step->nref - 1], step->workspace, 1, DMI_WRITE);
        out[step->nref - 1].scratch = true;
    }
}

int64_t dmi_scratch_bytes(const dmi_touch *t)
{
    return t->scratch && t->rw && t->ndim == 0
               ? (t->offset + t->inner + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN
               : 0;
}

/* Scratch lies in the queue's own memory. */
static void move_scratch(const dmi_step *step, const dmi_queue *q, dmi_kernel_call *call)
{
    dmi_touch touch[DMI_MAX_REFS];
    char *at = q->scratch;
    dmi_step_touches(step, touch);
    for (int i = 0; i < step->nref; i++) {
        int64_t bytes = dmi_scratch_bytes(&touch[i]);
        if (bytes > 0) {
            call->at[i] = at;
            at += bytes;
        }
    }
}

void dmi_step_call(const dmi_engine *e, const dmi_queued_step *w, dmi_queue *q, dmi_kernel_call *out)
{
    const dmi_step *step = w->step;
    const dmi_tail tail = dmi_step_tail(w);
    *out = (dmi_kernel_call){.queue = q,
                             .desc = step->desc,
                             .scalar = {dmi_step_scalar(w, 0), dmi_step_scalar(w, 1)},
                             .number = w->inst->number + step->number,
                             .numbers = w->inst->numbers - step->number,
                             .tail = tail.at,
                             .tail_bytes = tail.bytes,
                             .refs = step->nref,
                             .worker = e->config.me};
    for (int i = 0; i < step->nref; i++) {
        out->at[i] = dmi_ref_pointer(w->inst, &step->ref[i]);
    }
    if (q && q->scratch) {
        move_scratch(step, q, out);
    }
    if (step->workspace > 0) {
        out->workspace = out->at[--out->refs];
        out->at[out->refs] = NULL;
    }
}

dm_status dmi_execute(dmi_engine *e, dmi_queue *q, dmi_queued_step *w)
{
    dmi_kernel_call call;
    uint32_t failure = 0;
    dmi_fault_step();
    if (planted(e)) {
        return dmi_fail(DM_ERR_INTERNAL, "planted fault in a %s step", dmi_step_name(w->step->kind));
    }
    plant_overrun(e, q, w);
    dmi_step_call(e, w, q, &call);
    call.status = q ? w->status : &failure;
    int kernel = w->step->kind - DMI_STEP_KERNEL;
    dm_status status = e->config.backend->run(kernel, &call);
    return status == DM_OK && failure ? dmi_step_failed(w, failure) : status;
}
