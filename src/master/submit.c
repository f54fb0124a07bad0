/* The one path every op call takes from the user to the command ring. */
#include "master/session.h"
#include "ops/messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NDEBUG
/* Does the op's row say what its check says of the operands? A check lowers their access, and raises none. A call may leave
 * operands of the row out. */
static bool as_in_row(const dmi_call *call)
{
    const dmi_operand_rule *rule = dmi_ops[call->op].operand;
    int at = 0;
    for (int i = 0; i < call->noperand; i++, at++) {
        while (at < DMI_MAX_OPERANDS && call->operand[i].mode & ~rule[at].mode) {
            at++;
        }
        if (at >= DMI_MAX_OPERANDS) {
            return false;
        }
    }
    return true;
}
#endif

static dm_status resolve(dmi_session *s, dmi_call *call, const dm_array *arrays)
{
    const dmi_opdef *op = &dmi_ops[call->op];
    for (int i = 0; i < call->noperand; i++) {
        const dmi_operand_rule *rule = &op->operand[i];
        dmi_handle *h = NULL;
        dm_status status = dmi_handle_find(s, arrays[i], dmi_operand_name(call, i), &h);
        if (status != DM_OK) {
            return status;
        }
        if (!(rule->dtypes >> h->desc.dtype & 1)) {
            return dmi_refuse_dtype(dmi_operand_name(call, i), h->desc.dtype, rule->dtypes);
        }
        call->operand[i] = (dmi_operand){
            .desc = h->desc, .id = arrays[i].id, .memory = h->storage->number, .mode = rule->mode};
    }
    dm_status status = op->check(call);
    assert(status != DM_OK || as_in_row(call));
    return status;
}

int64_t dmi_left_at(const dmi_session *s, int w, bool cleared)
{
    return s->config.memory_limit - s->live_bytes[w] + (cleared ? dmi_replicas_bytes(s, w) : 0);
}

/* With a memory limit: would every worker's workspace, and a new cached replica, fit beside the arrays? With a
 * forced algorithm: can it serve? */
static dm_status admit(dmi_session *s, const dmi_call *call, bool cleared)
{
    if (s->config.memory_limit <= 0) {
        dmi_plan *plan = NULL;
        bool may_refuse = s->profile.forced && dmi_ops[call->op].attributes & DMI_FORCIBLE;
        dm_status status = may_refuse ? dmi_plan_make(call, &s->profile, 0, &plan) : DM_OK;
        dmi_plan_release(plan);
        return status;
    }
    int place = dmi_op_replica(call->op);
    const dmi_operand *replica =
        place >= 0 && call->noperand > place && call->operand[place].id == 0 ? &call->operand[place] : NULL;
    for (int w = 0; w < s->workers; w++) {
        dmi_plan *plan = NULL;
        dm_status status = dmi_plan_make(call, &s->profile, w, &plan);
        if (status != DM_OK) {
            return status;
        }
        int64_t need = replica ? dmi_array_bytes(s, replica->desc.layout, replica->desc.dtype, w) : 0;
        for (int i = 0; i < plan->nwork; i++) {
            need += dmi_pool_rounded(&s->pool_config, plan->work_bytes[i]);
        }
        dmi_plan_release(plan);
        if (need > dmi_left_at(s, w, cleared)) {
            return dmi_fail(DM_ERR_LIMIT,
                            "%s: worker %d needs %" PRId64 " bytes of workspace, %" PRId64
                            " of the limit of %" PRId64 " are taken by arrays",
                            dmi_call_name(call), w, need, s->config.memory_limit - dmi_left_at(s, w, cleared),
                            (int64_t)s->config.memory_limit);
        }
    }
    return DM_OK;
}

/* Admission without the replica cache. If the fastest algorithm does not fit, plan again with a workspace
 * limit, and halve the limit up to three times: a product also holds memory that the limit does not count. */
static dm_status admit_sparing(dmi_session *s, dmi_call *call)
{
    enum { TRIES = 4, STEP = 1024 /* so that few limits, and few plans, differ */ };
    dm_status status = admit(s, call, true);
    int64_t left = s->config.memory_limit;
    for (int w = 0; w < s->workers; w++) {
        left = DMI_MIN(left, dmi_left_at(s, w, true));
    }
    bool can = dmi_ops[call->op].attributes & DMI_LIMITED;
    for (int i = 0; i < TRIES && can && status == DM_ERR_LIMIT && left >= STEP; i++, left /= 2) {
        call->workspace_limit = left / STEP * STEP;
        status = admit(s, call, true);
    }
    return status;
}

static bool same_operands(const dmi_call *a, const dmi_call *b)
{
    bool same = a->noperand == b->noperand;
    for (int i = 0; i < a->noperand && same; i++) {
        same = a->operand[i].id == b->operand[i].id;
    }
    return same;
}

/* Admission under a memory limit. Try in this order: with cached replicas; without; with an empty replica cache
 * and a smaller workspace limit. *caches: the first try fitted. */
static dm_status admit_limited(dmi_session *s, dmi_call *call, bool *caches)
{
    dmi_call with = *call;
    *caches = *caches && dmi_replicas_use(s, &with, true) == DM_OK && !same_operands(&with, call) &&
              admit(s, &with, false) == DM_OK;
    if (*caches) {
        return DM_OK;
    }
    dm_status status = admit(s, call, false);
    if (status == DM_ERR_LIMIT && (status = admit_sparing(s, call)) == DM_OK && !s->explaining) {
        dmi_replicas_clear(s);
    }
    return status;
}

/* Drop the cached replicas of all outputs. This comes before new replicas are made, because an operand may be
 * an output too. */
static void forget_outputs(dmi_session *s, const dmi_call *call)
{
    for (int i = 0; i < call->noperand; i++) {
        if (call->operand[i].mode & DMI_WRITE) {
            dmi_replicas_forget(s, s->handle[dmi_id_slot(call->operand[i].id)].storage);
        }
    }
}

uint64_t dmi_call_members(const dmi_call *call)
{
    uint64_t members = call->op == DMI_OP_apply ? dmi_apply_members(call) : 0;
    for (int i = 0; i < call->noperand; i++) {
        members |= call->operand[i].mode ? call->operand[i].desc.layout->members : 0;
    }
    return dmi_ops[call->op].attributes & DMI_MEMBERS ? members : UINT64_MAX;
}

/* The name of an operand, as far as there is room. */
static void put_name(char *to, const char *name)
{
    int i = 0;
    for (; i < DMI_OPERAND_NAME - 1 && name && name[i]; i++) {
        to[i] = name[i];
    }
    to[i] = '\0';
}

void dmi_call_send(dmi_session *s, const dmi_call *call, int kind, void *user)
{
    size_t numbers = (size_t)call->numbers * sizeof *call->number,
           operands = (size_t)call->noperand * sizeof(dmi_operand_ref);
    dmi_op_frame *f = dmi_frame_begin(s, (uint32_t)(sizeof *f + operands + numbers + (size_t)call->tail_bytes),
                                      kind, call->op);
    dmi_operand_ref *operand = (dmi_operand_ref *)(f + 1);
    f->head.called = call->called; /* of a program: not the one that sends it */
    f->noperand = (int16_t)call->noperand;
    f->numbers = (int16_t)call->numbers;
    for (int i = 0; i < call->noperand; i++) {
        bool unread = kind == DMI_FRAME_PROGRAM_CALL && !call->operand[i].mode; /* its type may count */
        operand[i].id = unread ? (uint64_t)call->operand[i].desc.dtype : call->operand[i].id;
        operand[i].mode = (uint8_t)call->operand[i].mode;
        put_name(operand[i].name, call->names ? call->names[i] : NULL);
    }
    f->tail_bytes = call->tail_bytes;
    f->tail_key = call->tail_key;
    f->user = s->profile.one_space ? (uint64_t)(uintptr_t)user : 0;
    memcpy(f->args, call->args.i, sizeof f->args);
    f->compute = call->compute;
    f->seeds = call->seeds;
    f->turn = call->turn;
    f->recorded = call->recorded;
    dmi_group_mark(s, &f->group, &f->group_place);
    f->members = dmi_call_members(call);
    f->workspace_limit = call->workspace_limit;
    memcpy(operand + call->noperand, call->number, numbers);
    if (call->tail_bytes) {
        memcpy((char *)(operand + call->noperand) + numbers, call->tail, (size_t)call->tail_bytes);
    }
    dmi_frame_send(s);
}

static void send_call(dmi_session *s, const dmi_call *call, void *user)
{
    if (s->config.explain) {
        dmi_explain_log(s, dmi_explain_call(s, call));
    }
    dmi_call_send(s, call, DMI_FRAME_OP, user);
}

static dm_status check(dm_session *session, dmi_call *call, const dm_array *arrays, dmi_session **out)
{
    dm_status status = dmi_enter(session, out);
    call->called = dmi_api_number();
    if (status == DM_OK && call->op == DMI_OP_apply) {
        status = dmi_group_apply(*out, call);
    }
    if (status == DM_OK) {
        status = resolve(*out, call, arrays);
    }
    if (status == DM_OK && call->tail_bytes > (int64_t)((*out)->hub.ring->size / 8)) {
        status = dmi_fail(DM_ERR_ARG, "%s: its arguments take %" PRId64 " bytes, more than a command can hold",
                          dmi_call_name(call), call->tail_bytes);
    }
    return status;
}

dm_status dmi_call_check(dm_session *session, dmi_call *call, const dm_array *arrays)
{
    dmi_session *s;
    return check(session, call, arrays, &s);
}

/* caches: may cached replicas take part in this call? */
static dm_status prepare(dm_session *session, dmi_call *call, const dm_array *arrays, dmi_session **out,
                         bool *caches)
{
    dm_status status = check(session, call, arrays, out);
    if (status != DM_OK) {
        return status;
    }
    if ((*out)->recording) {
        return dmi_fail(DM_ERR_STATE, "%s waits, and cannot be part of a program", dmi_call_name(call));
    }
    *caches = (*out)->replicas && dmi_op_replica(call->op) >= 0;
    return (*out)->config.memory_limit > 0 ? admit_limited(*out, call, caches) : admit(*out, call, false);
}

static dm_status submit_to(dmi_session *s, dm_session *session, dmi_call *call, const dm_array *arrays)
{
    bool caches = false;
    if (s->recording) {
        dm_status recorded = check(session, call, arrays, &s);
        return recorded == DM_OK ? dmi_record(s, call) : recorded;
    }
    dm_status status = prepare(session, call, arrays, &s, &caches);
    if (status != DM_OK) {
        return status;
    }
    if (!s->explaining && (status = dmi_wait_room(s)) != DM_OK) {
        return status;
    }
    if (!s->explaining) {
        forget_outputs(s, call);
    }
    if (caches && (status = dmi_replicas_use(s, call, s->explaining)) != DM_OK) {
        return status;
    }
    if (s->explaining) {
        return dmi_explain_call(s, call);
    }
    send_call(s, call, NULL);
    return s->config.sync ? dmi_wait(s, s->command) : DM_OK;
}

static dm_status submit(dm_session *session, dmi_call *call, const dm_array *arrays)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || !s->profiling) {
        return status == DM_OK ? submit_to(s, session, call, arrays) : status;
    }
    int64_t begin = dmi_now_ns(), waited = dmi_profile_waited(s);
    status = submit_to(s, session, call, arrays);
    dmi_profile_called(s, call->op, begin, waited);
    return status;
}

dm_status dmi_call_submit(dm_session *session, dmi_call *call, const dm_array *arrays)
{
    return dmi_stepped(session, call, arrays) ? dmi_stepped_submit(session, call, arrays, NULL)
                                              : submit(session, call, arrays);
}

/* The master's side of a transfer, in its own engine. */
static dm_status take_part(dmi_session *s, const dmi_call *call, void *user)
{
    dmi_plan *plan = NULL;
    dm_status status = dmi_plan_make(call, &s->profile, s->workers, &plan);
    if (status != DM_OK) {
        return status;
    }
    dmi_instance *inst = dmi_instance_create(&s->engine, call->noperand, call->numbers, call->number);
    if (!inst) {
        dmi_plan_release(plan);
    }
    if (!inst || !dmi_instance_plan(inst, plan)) {
        dmi_instance_free(&s->engine, inst);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    inst->op = call->op;
    inst->called = call->called;
    inst->user = user;
    inst->command = s->command + 1;
    inst->members = dmi_call_members(call);
    s->transfer_culprit = 0;
    send_call(s, call, user);
    dmi_engine_submit(&s->engine, inst);
    return DM_OK;
}

dm_status dmi_call_wait(dm_session *session, dmi_call *call, const dm_array *arrays, void *user)
{
    return dmi_call_wait_until(session, call, arrays, user, 0);
}

static dm_status wait_until(dm_session *session, dmi_call *call, const dm_array *arrays, void *user, int64_t until_ns)
{
    dmi_session *s;
    bool unused;
    dm_status status = dmi_enter(session, &s);
    status = status == DM_OK ? dmi_wait_room(s) : status; /* so that where this fails, nothing was given */
    status = status == DM_OK ? prepare(session, call, arrays, &s, &unused) : status;
    if (status != DM_OK) {
        return status;
    }
    assert(dmi_ops[call->op].attributes & DMI_ALONE);
    assert(!s->explaining); /* calls that move data to the program or a file have refused before */
    forget_outputs(s, call);
    if (!user) {
        send_call(s, call, NULL);
        return dmi_wait_until(s, s->command, until_ns);
    }
    status = take_part(s, call, user);
    if (status != DM_OK) {
        return status;
    }
    uint64_t transfer = s->command;
    status = dmi_group_transferred(s, call->operand[0].desc.layout, transfer, until_ns);
    assert(status != DM_OK || s->transfer_culprit == 0); /* who sent no data has told of it */
    s->late_transfer = status == DM_ERR_PENDING ? transfer : s->late_transfer;
    return status;
}

dm_status dmi_call_wait_until(dm_session *session, dmi_call *call, const dm_array *arrays, void *user, int64_t until_ns)
{
    dmi_session *s = NULL;
    if (dmi_stepped(session, call, arrays)) {
        return dmi_stepped_submit(session, call, arrays, &user);
    }
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || !s->profiling) {
        return status == DM_OK ? wait_until(session, call, arrays, user, until_ns) : status;
    }
    int64_t begin = dmi_now_ns(), waited = dmi_profile_waited(s);
    status = wait_until(session, call, arrays, user, until_ns);
    dmi_profile_called(s, call->op, begin, waited);
    return status;
}

void dmi_transfer_retired(void *context, dmi_instance *inst)
{
    dmi_session *s = context;
    uint64_t culprit = dmi_engine_culprit(inst);
    if (inst->command > s->late_transfer) {
        s->transfer_culprit = culprit;
    } else if (culprit) { /* its call has returned, so a call that waits reports it */
        char text[160], line[DMI_ERROR_TEXT];
        dmi_culprit_text("the array", culprit, text, sizeof text);
        snprintf(line, sizeof line, "command %" PRIu64 " (%s): %s", inst->command,
                 dmi_command_name(inst->called, inst->op), text);
        dmi_failure_add(s, inst->command, inst->members, DM_ERR_POISONED, line);
    }
}
