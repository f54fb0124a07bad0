/* One command: look up its operands, plan it (or find the plan), hand it to the executor. */
#include "comm/frames.h"
#include "ops/ops.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dmi_call_from(const dmi_op_frame *f, dmi_call *call)
{
    call->op = f->head.op;
    call->called = f->head.called;
    call->noperand = f->noperand;
    memcpy(call->args.i, f->args, sizeof f->args);
    call->compute = f->compute;
    call->seeds = f->seeds;
    call->turn = (uint16_t)f->turn;
    call->recorded = (uint16_t)f->recorded;
    call->workspace_limit = f->workspace_limit;
    call->numbers = f->numbers;
    memcpy(call->number, dmi_op_frame_numbers(f), (size_t)f->numbers * sizeof *call->number);
    call->tail = dmi_op_frame_tail(f);
    call->tail_bytes = f->tail_bytes;
    call->tail_key = f->tail_key;
}

void dmi_instance_operand(dmi_instance *inst, int i, const dmi_entry *entry, int mode, uint64_t command)
{
    inst->memory[i] = entry->memory;
    inst->mode[i] = (uint8_t)mode;
    inst->desc[i] = entry->desc;
    inst->whole[i] = ((mode == DMI_WRITE && entry->whole) || entry->memory->fresh) &&
                     atomic_load(&entry->memory->poisoned) != DMI_NO_MEMORY;
    if (inst->whole[i]) {
        entry->memory->rewritten = command;
    }
}

/* Its operands are there: that has been looked at before the frame was taken (check.c). */
static void make_call(dmi_worker *w, const dmi_op_frame *f, dmi_call *call, dmi_instance *inst)
{
    const dmi_operand_ref *operand = dmi_op_frame_operands(f);
    dmi_call_from(f, call);
    for (int i = 0; i < f->noperand; i++) {
        dmi_entry *entry = dmi_store_find(w, operand[i].id);
        assert(entry);
        call->operand[i] = (dmi_operand){
            .desc = entry->desc, .id = operand[i].id, .memory = entry->memory->number, .mode = (int)operand[i].mode};
        dmi_instance_operand(inst, i, entry, (int)operand[i].mode, f->head.command);
        memcpy(inst->name[i], operand[i].name, sizeof operand[i].name);
    }
}

static void fail_unplanned(dmi_worker *w, const dmi_op_frame *f, dm_status status)
{
    char text[DMI_ERROR_TEXT];
    snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
             (unsigned long long)f->head.command, dmi_command_name(f->head.called, f->head.op), w->me,
             w->engine.port->host, dmi_error_text());
    uint32_t written[DMI_ERROR_WRITES];
    int count = 0;
    uint64_t culprit = dmi_culprit(f->head.command, f->head.called);
    for (int i = 0; i < f->noperand && count < DMI_ERROR_WRITES; i++) {
        const dmi_operand_ref *operand = &dmi_op_frame_operands(f)[i];
        const dmi_entry *entry = dmi_store_find(w, operand->id);
        if (entry && operand->mode & DMI_WRITE) {
            written[count++] = entry->memory->number;
        }
    }
    dmi_engine_report_writes(&w->engine, culprit, f->members, status, text, written, count);
    dmi_engine_drain(&w->engine); /* commands before it may still make its outputs clean */
    for (int i = 0; i < f->noperand; i++) {
        const dmi_operand_ref *operand = &dmi_op_frame_operands(f)[i];
        dmi_entry *entry = dmi_store_find(w, operand->id);
        if (entry && operand->mode & DMI_WRITE) {
            dmi_memory_poison(entry->memory, culprit);
        }
    }
}

/* "prepare:N" fails the N-th try, "prepares:N" every try from the N-th on. */
static bool planted_fault(dmi_worker *w)
{
    const char *fault = w->config->fault;
    w->prepared++;
    return (strncmp(fault, "prepare:", 8) == 0 && w->prepared == strtoll(fault + 8, NULL, 10)) ||
           (strncmp(fault, "prepares:", 9) == 0 && w->prepared >= strtoll(fault + 9, NULL, 10));
}

/* Allocates all host memory of the command before any of its steps. A command without a plan cannot be failed,
 * because only the plan knows the transfers that other workers wait for. */
static dm_status make_command(dmi_worker *w, const void *frame, void *out)
{
    const dmi_op_frame *f = frame;
    dmi_call call;
    dmi_plan *plan = NULL;
    bool reused = false, planted = planted_fault(w);
    dmi_instance *inst = planted ? NULL : dmi_instance_create(&w->engine, f->noperand, f->numbers, dmi_op_frame_numbers(f));
    dm_status status =
        inst ? DM_OK : dmi_fail(DM_ERR_NOMEM, "%sno memory for a command", planted ? "planted fault: " : "");
    if (status == DM_OK) {
        make_call(w, f, &call, inst);
    }
    if (status == DM_OK && !w->plans) {
        status = dmi_plan_cache_create((int)w->config->plan_cache, w->plan, &w->plans);
    }
    if (status == DM_OK) {
        status = dmi_group_counts_of(w, f->group, f->group_place, &inst->of_group);
    }
    if (status == DM_OK) {
        status = dmi_plan_cache_get(w->plans, &call, &w->profile, w->me, &plan, &reused);
    }
    if (status == DM_OK) {
        bool works = dmi_instance_plan(inst, plan);
        inst->tail = f->tail_bytes ? malloc((size_t)f->tail_bytes) : NULL;
        if (!works || (f->tail_bytes && !inst->tail)) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for a command");
        }
    }
    if (status != DM_OK) {
        dmi_instance_free(&w->engine, inst);
        return status;
    }
    dmi_worker_count_plan(w, inst->of_group, reused);
    if (w->engine.usage && dmi_worker_counts(w, f->members)) {
        dmi_usage_call(&w->engine, &call);
    }
    inst->group = f->group;
    inst->members = f->members;
    *(dmi_instance **)out = inst;
    return DM_OK;
}

void dmi_worker_submit(dmi_worker *w, dmi_instance *inst, const dmi_frame *head)
{
    inst->command = head->command;
    inst->op = head->op;
    inst->called = head->called;
    for (int i = 0; i < inst->noperand; i++) {
        inst->memory[i]->refs++;
    }
    if (w->engine.config.pool_debug && w->config->memory_limit > 0 && inst->plan->nwork > 0) {
        dmi_engine_drain(
            &w->engine); /* their workspace counts until they are done, and may not be in its way */
    }
    w->in_flight++;
    dmi_group_begun(inst);
    dmi_engine_submit(&w->engine, inst);
}

#ifndef NDEBUG
/* A worker that takes no part would have nothing to do. */
static void check_skipped(dmi_worker *w, const dmi_op_frame *f)
{
    dmi_call call;
    dmi_plan *plan = NULL;
    dmi_instance *inst = dmi_instance_create(&w->engine, f->noperand, 0, NULL);
    if (inst) {
        make_call(w, f, &call, inst);
        if (w->plan(&call, &w->profile, w->me, &plan) == DM_OK) {
            assert(plan->nstep == 0);
        }
    }
    dmi_plan_release(plan);
    dmi_instance_free(&w->engine, inst);
}
#endif

void dmi_dispatch_op(dmi_worker *w, const dmi_op_frame *f)
{
    dmi_instance *inst = NULL;
    if (!dmi_worker_takes_part(w, f->members)) {
#ifndef NDEBUG
        check_skipped(w, f);
#endif
        return;
    }
    dm_status status = dmi_insist(w, make_command, f, &inst);
    if (status != DM_OK) {
        fail_unplanned(w, f, status);
        if (status == DM_ERR_NOMEM) { /* any other failure happens on all workers alike, so nobody waits */
            dmi_worker_break(w, DM_ERR_NOMEM);
        }
        return;
    }
    inst->noperand = f->noperand;
    if (f->tail_bytes) {
        memcpy(inst->tail, dmi_op_frame_tail(f), (size_t)f->tail_bytes);
        inst->tail_bytes = f->tail_bytes;
    }
    if (f->user) {
        inst->user = (void *)(uintptr_t)f->user;
    }
    dmi_worker_submit(w, inst, &f->head);
}

void dmi_dispatch(dmi_worker *w, const dmi_frame *frame)
{
    const dmi_device *device = w->engine.config.device;
    w->dispatched = frame->command;
    atomic_store_explicit(&w->engine.port->now_command, frame->command, memory_order_relaxed);
    if (w->broken && frame->kind != DMI_FRAME_SYNC && frame->kind != DMI_FRAME_STOP) {
        return;
    }
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
        if (device) {
            device->range_begin(&w->engine, frame->op, frame->command);
        }
        dmi_dispatch_op(w, (const dmi_op_frame *)(const void *)frame);
        if (device) {
            device->range_end(&w->engine);
        }
        break;
    case DMI_FRAME_PROGRAM:
    case DMI_FRAME_PROGRAM_ARRAY:
    case DMI_FRAME_PROGRAM_CALL:
    case DMI_FRAME_PROGRAM_END:
    case DMI_FRAME_PROGRAM_COURSE:
    case DMI_FRAME_PROGRAM_PART:
    case DMI_FRAME_PROGRAM_DESTROY:
        dmi_program_receive(w, frame);
        break;
    case DMI_FRAME_PROGRAM_RUN:
        atomic_store_explicit(&w->engine.port->now_op, frame->op, memory_order_relaxed);
        dmi_run_begin(w, (const dmi_program_run_frame *)(const void *)frame);
        break;
    case DMI_FRAME_UNMAP:
        if (device) {
            device->unmap(&w->engine);
        }
        break;
    case DMI_FRAME_TRIM: {
        dmi_engine_trim(&w->engine);
        dmi_stamp done = dmi_engine_done(&w->engine);
        dmi_pool_trim(w->pool, &done);
        break;
    }
    case DMI_FRAME_CANCEL: /* obeyed when it came (launch/forward.c) */
        break;
    case DMI_FRAME_POISON:
        dmi_store_poison(w, frame);
        break;
    case DMI_FRAME_GROUP:
        dmi_group_tell(w, frame);
        break;
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
