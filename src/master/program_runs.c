/* Runs of programs. */
#include "master/recording.h"
#include "ops/common.h"
#include "ops/messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

dm_status dmi_program_find(dmi_session *s, dm_program program, const char *call, uint32_t *out)
{
    uint32_t number = dmi_id_slot(program.id);
    const dmi_numbered *n = number < s->programs ? &s->program[number] : NULL;
    const char *wrong = !n || dmi_id_session(program.id) != s->number ? "is not a program of this session"
                        : !n->recorded || dmi_id_make(s->number, n->generation, number) != program.id
                            ? "has been destroyed"
                            : NULL;
    if (wrong) {
        return dmi_fail(DM_ERR_HANDLE, "%s: program %s", call, wrong);
    }
    *out = number;
    return DM_OK;
}

static dm_status admit(dmi_session *s, const dmi_recorded *r)
{
    for (int w = 0; r->workspace && w < s->workers; w++) {
        if (r->workspace[w] > dmi_left_at(s, w, false)) {
            dmi_replicas_clear(s);
        }
        if (r->workspace[w] > dmi_left_at(s, w, false)) {
            return dmi_fail(DM_ERR_LIMIT,
                            "%s: worker %d needs %" PRId64 " bytes of workspace, %" PRId64
                            " are left of the limit",
                            dmi_api_called(), w, r->workspace[w], dmi_left_at(s, w, false));
        }
    }
    return DM_OK;
}

/* How often a program runs. every 0: `times` times. */
typedef struct repeat {
    int64_t times, every;
    dm_array value;
    double below;
    uint64_t seen, asked;
} repeat;

static void send_run(dmi_session *s, uint32_t program, const repeat *r, const dmi_run_operands *o)
{
    dmi_recorded *recorded = s->program[program].recorded;
    const int count = recorded->p.operands;
    dmi_program_run_frame *f = dmi_frame_begin(s, (uint32_t)dmi_run_frame_bytes(count, recorded->given),
                                               DMI_FRAME_PROGRAM_RUN, DMI_OP_program);
    f->program = program;
    f->ordinal = recorded->ordinal;
    f->operands = count;
    f->numbers = recorded->given;
    f->times = r->times;
    f->members = recorded->members;
    dmi_group_mark(s, &f->group, &f->group_place);
    f->first = recorded->next;
    recorded->next = -1;
    f->every = r->every;
    f->value = r->value.id;
    f->seen = r->seen;
    f->below = r->below;
    f->asks = recorded->asks;
    f->asked = r->asked;
    if (count > 0) {
        memcpy(f + 1, o->id, (size_t)count * sizeof *o->id);
    }
    dmi_given_number *given = (dmi_given_number *)((uint64_t *)(f + 1) + count);
    dmi_run_use *use = (dmi_run_use *)(given + f->numbers);
    dmi_numbers_put(recorded, given);
    for (int i = 0; i < count; i++) {
        use[i] = (dmi_run_use){.memory = o->h[i]->storage->number,
                               .mode = (uint16_t)recorded->p.array[i].mode,
                               .fresh = o->h[i]->storage->passing};
    }
    dmi_frame_send(s);
}

dm_status dmi_look_seen(dmi_session *s, dm_dtype dtype, uint64_t *out)
{
    const dmi_layout *layout;
    uint32_t layout_id;
    dmi_layout_spec spec = {.ndim = 1,
                            .shape = {1},
                            .block = {1},
                            .grid = {1},
                            .replicas = s->workers,
                            .session_workers = s->workers};
    dm_array a;
    dm_status status = s->seen[dtype] ? DM_OK : dmi_layout_intern(s, &spec, &layout, &layout_id);
    if (status == DM_OK && !s->seen[dtype] &&
        (status = dmi_array_make(s, dtype, layout, layout_id, true, &a)) == DM_OK) {
        s->seen[dtype] = a.id;
    }
    *out = s->seen[dtype];
    return status;
}

dm_status dmi_look_check(int64_t every, double below)
{
    const char *call = dmi_api_called();
    if (every < 1) {
        return dmi_fail(DM_ERR_ARG, "%s: every is %" PRId64 ", not 1 or more", call, every);
    }
    return below != below ? dmi_fail(DM_ERR_ARG, "%s: below is NaN", call) : DM_OK;
}

dm_status dmi_look_check_value(const dmi_desc *value)
{
    const char *call = dmi_api_called();
    for (int d = 0; d < value->ndim; d++) {
        if (value->extent[d] != 1) {
            return dmi_fail(DM_ERR_SHAPE, "%s: value has more than one element, or none", call);
        }
    }
    if (dmi_dtype_is_complex(value->dtype)) {
        return dmi_refuse_dtype("value", value->dtype, DMI_DT_REAL);
    }
    return DM_OK;
}

/* Does this run write some of what is there in that memory? */
static bool writes(const dmi_program *p, const dmi_run_operands *o, const dmi_desc *desc,
                   const dmi_storage *storage)
{
    const dmi_operand value = {.desc = *desc};
    bool written = false;
    for (int k = 0; k < p->operands && !written; k++) {
        const dmi_operand operand = {.desc = p->array[k].desc};
        written = p->array[k].mode & DMI_WRITE && o->h[k]->storage == storage &&
                  dmi_operands_overlap(&value, &operand) != DMI_APART;
    }
    return written;
}

/* What the workers look at must be an element that the run writes. *operand: its number, where the program uses
 * it; -1: it is another view. */
static dm_status check_value(dmi_session *s, const dmi_program *p, repeat *r, const dmi_run_operands *o,
                             int *operand)
{
    int i = 0;
    dmi_handle *h = NULL;
    dm_status status = DM_OK;
    while (i < p->operands && p->array[i].id != r->value.id) {
        i++;
    }
    const bool used = i < p->operands;
    if (!used) {
        status = dmi_handle_find(s, r->value, "value", &h);
    }
    if (status != DM_OK) {
        return status;
    }
    const dmi_desc *desc = used ? &p->array[i].desc : &h->desc;
    if ((status = dmi_look_check_value(desc)) != DM_OK) {
        return status;
    }
    if (!writes(p, o, desc, used ? o->h[i]->storage : h->storage)) {
        return dmi_fail(DM_ERR_ARG, "program_run_until: the run does not write the array `value`");
    }
    *operand = used ? i : -1;
    return dmi_look_seen(s, desc->dtype, &r->seen);
}

/* To the text of dm_explain_begin. */
static dm_status explain(dmi_session *s, const dmi_recorded *r)
{
    dmi_call call = dmi_program_call(&r->p, DMI_OP_program);
    return r->step ? dmi_loops_explain(s, r) : dmi_explain_call(s, &call);
}

static dm_status send(dmi_session *s, uint32_t number, repeat r, dmi_run_operands *o, int value)
{
    const dmi_recorded *recorded = s->program[number].recorded;
    const dmi_program *p = &recorded->p;
    dm_status status = dmi_operands_make(s, p, o);
    if (status != DM_OK) {
        return status;
    }
    if (s->config.explain) {
        dmi_explain_log(s, explain(s, recorded));
    }
    for (int i = 0; i < p->operands; i++) {
        if (p->array[i].mode & DMI_WRITE) {
            dmi_replicas_forget(s, o->h[i]->storage);
        }
    }
    r.value.id = r.every == 0 ? 0 : value >= 0 ? o->id[value] : r.value.id;
    send_run(s, number, &r, o);
    uint64_t command = s->command;
    dmi_operands_drop(s, o, p->operands);
    return s->config.sync ? dmi_wait(s, command) : DM_OK;
}

static dm_status run_checked(dmi_session *s, uint32_t number, repeat r, int count,
                             const dm_program_binding *bindings)
{
    const dmi_recorded *recorded = s->program[number].recorded;
    dmi_run_operands o = {0};
    int value = 0;
    dm_status status = dmi_operands_bind(s, &recorded->p, count, bindings, &o);
    status = status == DM_OK ? admit(s, recorded) : status;
    if (status == DM_OK && r.every > 0) {
        status = check_value(s, &recorded->p, &r, &o, &value);
    }
    if (status == DM_OK && (recorded->step || r.times > recorded->asks)) {
        status = dmi_look_seen(s, DM_F64, &r.asked);
    }
    if (status == DM_OK && !s->explaining) {
        status = dmi_wait_room(s);
    }
    if (status == DM_OK && s->explaining) {
        status = explain(s, recorded);
    } else if (status == DM_OK && r.times > 0) {
        status = send(s, number, r, &o, value);
    }
    dmi_operands_free(&o);
    return status;
}

static dm_status run(dmi_session *s, uint32_t number, repeat r, int count, const dm_program_binding *bindings)
{
    if (!s->profiling) {
        return run_checked(s, number, r, count, bindings);
    }
    int64_t begin = dmi_now_ns(), waited = dmi_profile_waited(s);
    dm_status status = run_checked(s, number, r, count, bindings);
    dmi_profile_called(s, DMI_OP_program, begin, waited);
    return status;
}

/* The arguments that all runs have. */
static dm_status begin_run(dm_session *session, dm_program program, const char *times_name, int64_t times,
                           int count, const dm_program_binding *bindings, dmi_session **s, uint32_t *number)
{
    const char *call = dmi_api_called();
    dm_status status = dmi_enter(session, s);
    if (status == DM_OK) {
        status = dmi_program_find(*s, program, call, number);
    }
    if (status != DM_OK) {
        return status;
    }
    if ((*s)->recording) {
        return dmi_fail(DM_ERR_STATE, "%s cannot be part of a program", call);
    }
    if (times < 0) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %" PRId64, call, times_name, times);
    }
    if (count < 0 || (count > 0 && !bindings)) {
        return dmi_fail(DM_ERR_ARG, count < 0 ? "%s: count is %d" : "%s: bindings is NULL, but count is %d",
                        call, count);
    }
    return DM_OK;
}

dm_status dm_program_run(dm_session *session, dm_program program, int64_t times, int count,
                         const dm_program_binding *bindings)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "times", times, count, bindings, &s, &number);
    return status == DM_OK ? run(s, number, (repeat){.times = times}, count, bindings) : status;
}

dm_status dm_program_run_until(dm_session *session, dm_program program, int64_t most, int64_t every,
                               dm_array value, double below, int count, const dm_program_binding *bindings)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "most", most, count, bindings, &s, &number);
    status = status == DM_OK ? dmi_look_check(every, below) : status;
    return status == DM_OK
               ? run(s, number, (repeat){.times = most, .every = every, .value = value, .below = below}, count,
                     bindings)
               : status;
}

dm_status dm_program_set_run(dm_session *session, dm_program program, int64_t next)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "next", next, 0, NULL, &s, &number);
    if (status == DM_OK && !dmi_loops_know_run(s->program[number].recorded)) {
        status = dmi_fail(DM_ERR_UNSUPPORTED,
                          "program_set_run: seeds of the program advance in a loop that may end early "
                          "(dm_program_repeat_until), so the number of a run does not give them");
    }
    if (status == DM_OK) {
        s->program[number].recorded->next = next;
    }
    return status;
}

dm_status dm_program_set_number(dm_session *session, dm_program program, const char *name, double value)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "times", 0, 0, NULL, &s, &number);
    return status == DM_OK ? dmi_number_set(s->program[number].recorded, name, value) : status;
}
