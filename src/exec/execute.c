/* From a COMPUTE step to the backend's kernel. */
#include "exec/engine.h"
#include "io/file.h"
#include "ops/common_task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { OVERRUN_BYTES = 16 };

void *dmi_ref_pointer(const dmi_instance *inst, const dmi_ref *ref)
{
    char *base = NULL;
    switch (ref->kind) {
    case DMI_REF_OPERAND:
        base = inst->memory[ref->index]->block.base;
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

double dmi_step_scalar(const dmi_work *w, int which)
{
    switch (w->step->scalar[which]) {
    case DMI_SCALAR_ONE:
        return 1.0;
    case DMI_SCALAR_ZERO:
        return 0.0;
    default:
        return w->inst->args.s[w->step->scalar[which]];
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

/* "overrun:N" makes the N-th kernel of this worker write behind the memory that it writes to. */
static void plant_overrun(dmi_engine *e, dmi_queue *q, const dmi_work *w)
{
    const char *fault = e->config.fault;
    const dmi_block *block = NULL;
    if (!fault || strncmp(fault, "overrun:", 8) != 0 ||
        atomic_fetch_add(&e->kernel_steps, 1) + 1 != strtoll(fault + 8, NULL, 10)) {
        return;
    }
    for (int i = 0; i < w->step->nref; i++) {
        const dmi_ref *ref = &w->step->ref[i];
        if (ref->mode & DMI_WRITE) {
            block = ref->kind == DMI_REF_OPERAND ? &w->inst->memory[ref->index]->block
                    : ref->kind == DMI_REF_WORK  ? &w->inst->work[ref->index]
                                                 : block;
        }
    }
    dmi_run run = {.len = block ? DMI_MIN(block->bytes, OVERRUN_BYTES) : 0};
    dmi_copy copy = {.ndim = 1,
                     .src_dtype = DM_U8,
                     .dst_dtype = DM_U8,
                     .nrun = {1},
                     .run = {&run},
                     .src_stride = {1},
                     .dst_stride = {1},
                     .dst_offset = block ? block->bytes : 0,
                     .count = run.len};
    if (run.len > 0) {
        e->config.backend->copy(q, &copy, block->base, block->base);
    }
}

dm_status dmi_execute(dmi_engine *e, dmi_queue *q, dmi_work *w)
{
    const dmi_step *step = w->step;
    const dmi_backend *k = e->config.backend;
    void *p[DMI_MAX_REFS] = {0};
    for (int i = 0; i < step->nref; i++) {
        p[i] = dmi_ref_pointer(w->inst, &step->ref[i]);
    }
    if (planted(e)) {
        return dmi_fail(DM_ERR_INTERNAL, "planted fault in a %s step", dmi_step_names[step->kind]);
    }
    plant_overrun(e, q, w);
    switch (step->kind) {
    case DMI_STEP_COPY:
        k->copy(q, step->desc, p[0], p[1]);
        return DM_OK;
    case DMI_STEP_GEMM:
        k->gemm(q, step->desc, dmi_step_scalar(w, 0), p[0], p[1], dmi_step_scalar(w, 1), p[2]);
        return DM_OK;
    case DMI_STEP_EWISE: /* a, out [, b] */
        k->ewise(q, step->desc, dmi_step_scalar(w, 0), p[0], dmi_step_scalar(w, 1), step->nref > 2 ? p[2] : NULL, p[1]);
        return DM_OK;
    case DMI_STEP_FILL:
        k->fill(q, step->desc, &w->inst->args.fill, p[0]);
        return DM_OK;
    case DMI_STEP_REDUCE:
        k->reduce(q, step->desc, p[0], p[1]);
        return DM_OK;
    case DMI_STEP_ACC_ADD:
        k->acc_add(q, step->desc, p[0], p[1]);
        return DM_OK;
    case DMI_STEP_ACC_STORE:
        k->acc_store(q, step->desc, dmi_step_scalar(w, 0), p[0], dmi_step_scalar(w, 1), p[1]);
        return DM_OK;
    case DMI_STEP_FOLD: /* rows, out [, own] */
        k->fold(q, step->desc, dmi_step_scalar(w, 0), p[0], step->nref > 2 ? p[2] : NULL, dmi_step_scalar(w, 1), p[1]);
        return DM_OK;
    case DMI_STEP_FUSED: /* all has arrived */
        k->fused(q, step->desc, NULL, dmi_step_scalar(w, 0), p[0], p[1], (const void *const[2]){p[4], p[3]},
                 dmi_step_scalar(w, 1), p[2]);
        return DM_OK;
    case DMI_STEP_FILE_READ:
        return dmi_file_read(step->desc, w->inst->tail, p[0]);
    case DMI_STEP_FILE_WRITE:
        return dmi_file_write(step->desc, w->inst->tail, p[0]);
    case DMI_STEP_TASK:
        return dmi_task_run(step->desc, e->config.me, step->nref, p, w->inst->tail, w->inst->tail_bytes);
    default:
        return dmi_fail(DM_ERR_INTERNAL, "step kind %d is not a kernel", step->kind);
    }
}
