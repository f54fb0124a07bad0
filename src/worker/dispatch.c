/* One command: look up its operands, plan it (or find the plan), hand it to the executor. */
#include "comm/frames.h"
#include "ops/ops.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_plan(dmi_worker *w, bool reused)
{
    dmi_tally *t = &w->engine.port->tally;
    atomic_fetch_add_explicit(reused ? &t->plans_reused : &t->plans_made, 1, memory_order_relaxed);
}

static bool make_call(dmi_worker *w, const dmi_op_frame *f, dmi_call *call, dmi_instance *inst)
{
    *call = (dmi_call){.op = f->head.op,
                       .noperand = f->noperand,
                       .args = f->args,
                       .tail = f + 1,
                       .tail_bytes = f->tail_bytes,
                       .tail_key = f->tail_key};
    for (int i = 0; i < f->noperand; i++) {
        dmi_entry *entry = dmi_store_find(w, f->id[i]);
        if (!entry) { /* its creation failed here and was reported */
            return false;
        }
        call->operand[i] = (dmi_operand){
            .desc = entry->desc, .id = f->id[i], .memory = entry->memory->number, .mode = f->mode[i]};
        inst->memory[i] = entry->memory;
        inst->mode[i] = (uint8_t)f->mode[i];
        inst->desc[i] = entry->desc;
        inst->whole[i] =
            f->mode[i] == DMI_WRITE && entry->whole && atomic_load(&entry->memory->poisoned) != DMI_NO_MEMORY;
    }
    return true;
}

static void fail_unplanned(dmi_worker *w, const dmi_op_frame *f, dm_status status)
{
    char text[DMI_ERROR_TEXT];
    snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
             (unsigned long long)f->head.command, dmi_ops[f->head.op].name, w->me, w->engine.port->host,
             dmi_error_text());
    dmi_engine_report(&w->engine, f->head.command, status, text);
    dmi_worker_drain(w); /* commands before it may still make its outputs clean */
    for (int i = 0; i < f->noperand; i++) {
        dmi_entry *entry = dmi_store_find(w, f->id[i]);
        if (entry && (f->mode[i] & DMI_WRITE) && atomic_load(&entry->memory->poisoned) == DMI_CLEAN) {
            atomic_store(&entry->memory->poisoned, DMI_POISONED);
        }
    }
}

static void dispatch_op(dmi_worker *w, const dmi_op_frame *f)
{
    dmi_call call;
    dmi_plan *plan = NULL;
    bool reused = false;
    dmi_instance *inst = calloc(1, sizeof *inst);
    dm_status status = inst ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a command");
    if (status == DM_OK && !make_call(w, f, &call, inst)) {
        status = dmi_fail(DM_ERR_NOMEM, "an operand does not exist here");
    }
    if (status == DM_OK) {
        status = dmi_plan_cache_get(w->plans, &call, &w->profile, w->me, &plan, &reused);
    }
    if (status == DM_OK) {
        count_plan(w, reused);
        inst->work = calloc((size_t)plan->nwork + 1, sizeof *inst->work + sizeof *inst->work_use);
        inst->tail = f->tail_bytes ? malloc((size_t)f->tail_bytes) : NULL;
        if (!inst->work || (f->tail_bytes && !inst->tail)) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for a command");
        }
    }
    if (status != DM_OK) {
        fail_unplanned(w, f, status);
        free(inst ? inst->work : NULL);
        free(inst);
        dmi_plan_release(plan);
        return;
    }
    inst->work_use = (dmi_stamp *)(void *)(inst->work + plan->nwork + 1);
    inst->plan = plan;
    inst->command = f->head.command;
    inst->op = f->head.op;
    inst->noperand = f->noperand;
    inst->args = f->args;
    if (f->tail_bytes) {
        memcpy(inst->tail, f + 1, (size_t)f->tail_bytes);
        inst->tail_bytes = f->tail_bytes;
    }
    if (f->user) {
        inst->user = (void *)(uintptr_t)f->user;
    }
    for (int i = 0; i < inst->noperand; i++) {
        inst->memory[i]->refs++;
    }
    w->under_way++;
    dmi_engine_submit(&w->engine, inst);
}

void dmi_dispatch(dmi_worker *w, const dmi_frame *frame)
{
    w->dispatched = frame->command;
    atomic_store_explicit(&w->engine.port->now_command, frame->command, memory_order_relaxed);
    switch (frame->kind) {
    case DMI_FRAME_NOOP:
        break;
    case DMI_FRAME_LAYOUT:
        dmi_store_layout(w, frame);
        break;
    case DMI_FRAME_CREATE:
        dmi_store_create(w, frame);
        break;
    case DMI_FRAME_VIEW:
        dmi_store_view(w, frame);
        break;
    case DMI_FRAME_DESTROY:
        dmi_store_destroy(w, frame);
        break;
    case DMI_FRAME_OP:
        atomic_store_explicit(&w->engine.port->now_op, frame->op, memory_order_relaxed);
        dispatch_op(w, (const dmi_op_frame *)(const void *)frame);
        break;
    case DMI_FRAME_TRIM: {
        dmi_stamp done = dmi_engine_done(&w->engine);
        dmi_pool_trim(w->pool, &done);
        break;
    }
    case DMI_FRAME_SYNC:
        w->sync_command = frame->command;
        break;
    case DMI_FRAME_STOP:
        w->stopping = true;
        break;
    default:
        assert(!"a frame of an unknown kind");
    }
}
