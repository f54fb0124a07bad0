/* The one path every op call takes from the user to the ring. */
#include "master/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dm_status resolve(dmi_session *s, dmi_call *call, const dm_array *arrays)
{
    const dmi_opdef *op = &dmi_ops[call->op];
    for (int i = 0; i < call->noperand; i++) {
        const dmi_operand_rule *rule = &op->operand[i];
        dmi_handle *h = NULL;
        char what[64];
        snprintf(what, sizeof what, "%s: %s", op->name, rule->name);
        dm_status status = dmi_handle_find(s, arrays[i], what, &h);
        if (status != DM_OK) {
            return status;
        }
        if (!(rule->dtypes >> h->desc.dtype & 1)) {
            return dmi_fail(DM_ERR_DTYPE, "%s has dtype %s, which %s does not take", what,
                            dmi_dtype_name(h->desc.dtype), op->name);
        }
        call->operand[i] = (dmi_operand){
            .desc = h->desc, .id = arrays[i].id, .memory = h->storage->number, .mode = rule->mode};
    }
    return op->check(call);
}

/* With a memory limit: would every worker's workspace fit beside the arrays? With a forced algorithm: can it
 * serve? spare: bytes at each worker that would give way. */
static dm_status admit(dmi_session *s, const dmi_call *call, int64_t spare)
{
    if (s->config.memory_limit <= 0) {
        dmi_plan *plan = NULL;
        dm_status status =
            s->profile.gemm_algorithm == DMI_GEMM_AUTO ? DM_OK : dmi_plan_make(call, &s->profile, 0, &plan);
        dmi_plan_release(plan);
        return status;
    }
    for (int w = 0; w < s->workers; w++) {
        dmi_plan *plan = NULL;
        dm_status status = dmi_plan_make(call, &s->profile, w, &plan);
        if (status != DM_OK) {
            return status;
        }
        int64_t need = 0;
        for (int i = 0; i < plan->nwork; i++) {
            need += dmi_pool_rounded(&s->pool_config, plan->work_bytes[i]);
        }
        dmi_plan_release(plan);
        if (need > s->config.memory_limit - s->live_bytes[w] + spare) {
            return dmi_fail(DM_ERR_LIMIT,
                            "%s: worker %d needs %" PRId64 " bytes of workspace, %" PRId64
                            " of the limit of %" PRId64 " are taken by arrays",
                            dmi_ops[call->op].name, w, need, s->live_bytes[w], (int64_t)s->config.memory_limit);
        }
    }
    return DM_OK;
}

/* A product that does not fit as it would be fastest is told how little room there is, and then to take still less,
 * for blocks on their way are not all that it holds. */
static dm_status admit_sparing(dmi_session *s, dmi_call *call, int64_t spare)
{
    enum { TRIES = 4 };
    dm_status status = admit(s, call, spare);
    int64_t room = s->config.memory_limit + spare;
    for (int w = 0; w < s->workers; w++) {
        room = DMI_MIN(room, s->config.memory_limit - s->live_bytes[w] + spare);
    }
    bool can = dmi_ops[call->op].operand[DMI_KEEP].name != NULL;
    for (int i = 0; i < TRIES && can && status == DM_ERR_LIMIT && room >> 10 > 0; i++, room /= 2) {
        call->args.i[DMI_ROOM] = (int32_t)DMI_MIN(room >> 10, INT32_MAX);
        status = admit(s, call, spare);
    }
    return status;
}

/* What is kept of its outputs is out of date now. Before a replica is made for it: that may be of the same
 * array. */
static void forget_outputs(dmi_session *s, const dmi_call *call)
{
    for (int i = 0; i < call->noperand; i++) {
        if (call->operand[i].mode & DMI_WRITE) {
            dmi_replicas_forget(s, s->handle[dmi_id_slot(call->operand[i].id)].storage);
        }
    }
}

static void send_call(dmi_session *s, const dmi_call *call, void *user)
{
    if (s->config.explain) {
        dmi_explain_log(s, call);
    }
    dmi_op_frame *f =
        dmi_frame_begin(s, (uint32_t)(sizeof *f + (size_t)call->tail_bytes), DMI_FRAME_OP, call->op);
    f->noperand = call->noperand;
    for (int i = 0; i < DMI_MAX_OPERANDS; i++) {
        f->id[i] = call->operand[i].id;
        f->mode[i] = (int8_t)call->operand[i].mode;
    }
    f->tail_bytes = call->tail_bytes;
    f->tail_key = call->tail_key;
    f->user = s->profile.one_space ? (uint64_t)(uintptr_t)user : 0;
    f->args = call->args;
    if (call->tail_bytes) {
        memcpy(f + 1, call->tail, (size_t)call->tail_bytes);
    }
    dmi_frame_send(s);
}

static dm_status prepare(dm_session *session, dmi_call *call, const dm_array *arrays, dmi_session **out)
{
    dm_status status = dmi_enter(session, out);
    if (status == DM_OK) {
        status = resolve(*out, call, arrays);
    }
    if (status == DM_OK && call->tail_bytes > (int64_t)((*out)->hub.ring->size / 8)) {
        status = dmi_fail(DM_ERR_ARG, "%s: its arguments take %" PRId64 " bytes, more than a command can hold",
                          dmi_ops[call->op].name, call->tail_bytes);
    }
    if (status != DM_OK || (status = admit(*out, call, 0)) != DM_ERR_LIMIT) {
        return status;
    }
    int64_t kept = dmi_replicas_bytes(*out); /* what is kept of operands gives way */
    status = admit_sparing(*out, call, kept);
    if (status == DM_OK && kept > 0 && !(*out)->explaining) {
        dmi_replicas_clear(*out);
    }
    return status;
}

/* Under a memory limit what it makes of the call may fit less than the call as it was given, which was admitted. */
static dm_status use_replicas(dmi_session *s, dmi_call *call)
{
    bool kept = s->replicas && dmi_ops[call->op].operand[DMI_KEEP].name;
    if (s->config.memory_limit <= 0 || !kept || s->explaining) {
        return dmi_replicas_use(s, call);
    }
    dmi_call as_given = *call;
    dm_status status = dmi_replicas_use(s, call);
    if (status == DM_OK && admit(s, call, 0) != DM_OK) {
        *call = as_given;
        dmi_replicas_clear(s);
    }
    return status;
}

dm_status dmi_call_submit(dm_session *session, dmi_call *call, const dm_array *arrays)
{
    dmi_session *s;
    dm_status status = prepare(session, call, arrays, &s);
    if (status != DM_OK) {
        return status;
    }
    if (!s->explaining) {
        forget_outputs(s, call);
    }
    status = use_replicas(s, call);
    if (status != DM_OK) {
        return status;
    }
    if (s->explaining) {
        return dmi_explain_call(s, call);
    }
    send_call(s, call, NULL);
    return s->config.sync ? dmi_wait(s, s->command) : DM_OK;
}

/* The master's own part of a transfer, in its own engine. */
static dm_status take_part(dmi_session *s, const dmi_call *call, void *user)
{
    dmi_plan *plan = NULL;
    dm_status status = dmi_plan_make(call, &s->profile, s->workers, &plan);
    if (status != DM_OK) {
        return status;
    }
    dmi_instance *inst = calloc(1, sizeof *inst);
    dmi_block *work = calloc((size_t)plan->nwork + 1, sizeof *work + sizeof(dmi_stamp));
    if (!inst || !work) {
        free(inst);
        free(work);
        dmi_plan_release(plan);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    inst->plan = plan;
    inst->op = call->op;
    inst->args = call->args;
    inst->user = user;
    inst->work = work;
    inst->work_use = (dmi_stamp *)(void *)(work + plan->nwork + 1);
    inst->command = s->command + 1;
    s->transfer_failed = 0;
    send_call(s, call, user);
    dmi_engine_submit(&s->engine, inst);
    return DM_OK;
}

dm_status dmi_call_wait(dm_session *session, dmi_call *call, const dm_array *arrays, void *user)
{
    dmi_session *s;
    dm_status status = prepare(session, call, arrays, &s);
    if (status != DM_OK) {
        return status;
    }
    if (s->explaining) {
        return dmi_fail(DM_ERR_STATE, "%s returns data, which it cannot while explaining",
                        dmi_ops[call->op].name);
    }
    forget_outputs(s, call);
    if (!user) {
        send_call(s, call, NULL);
        return dmi_wait(s, s->command);
    }
    status = take_part(s, call, user);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_wait(s, s->command);
    if (status == DM_OK && s->transfer_failed) {
        status = dmi_fail(DM_ERR_POISONED, "%s: the array holds the result of a command that failed earlier",
                          dmi_ops[call->op].name);
    }
    return status;
}

void dmi_transfer_retired(void *context, dmi_instance *inst)
{
    dmi_session *s = context;
    s->transfer_failed = atomic_load(&inst->failed);
    free(inst->work);
}
