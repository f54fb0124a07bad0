/* Programs: the end of the recording, runs, and the end of a program. */
#include "master/recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- the end of a recording --- */

static bool there(const dmi_handle *h)
{
    return h->live || h->hidden;
}

/* Of the arrays made meanwhile, those of which the caller still has a handle become known to the workers. The
 * others live in the program only. */
static void settle_arrays(dmi_session *s, dmi_program *p)
{
    for (uint32_t i = 1; i < s->handles; i++) {
        dmi_handle *h = &s->handle[i];
        if (h->live && h->storage->unsent) {
            h->storage->visible++;
        }
    }
    for (int i = 0; i < p->arrays; i++) {
        const dmi_storage *storage = s->handle[dmi_id_slot(p->array[i].id)].storage;
        p->array[i].temporary = storage->unsent && storage->visible == 0;
    }
    for (int views = 0; views < 2; views++) { /* arrays come before their views */
        for (uint32_t i = 1; i < s->handles; i++) {
            dmi_handle *h = &s->handle[i];
            if (there(h) && h->view == views && h->storage->visible > 0) {
                dmi_array_send(s, h, dmi_handle_id(s, i));
            }
        }
    }
    for (uint32_t i = 1; i < s->handles; i++) {
        dmi_handle *h = &s->handle[i];
        if (there(h) && h->storage->visible > 0) {
            h->storage->unsent = false;
            h->storage->visible = 0;
        }
    }
}

/* Frees the hidden handles, or only those of arrays that live in the program. */
static void drop_hidden(dmi_session *s, uint32_t *hidden, int *count, bool all)
{
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        if (all || s->handle[hidden[i]].storage->unsent) {
            dmi_hidden_drop(s, hidden[i]);
        } else {
            hidden[kept++] = hidden[i];
        }
    }
    *count = kept;
}

/* Numbers the arrays anew: operands first. */
static dm_status sort_arrays(dmi_program *p)
{
    int *number = malloc(((size_t)p->arrays + 1) * sizeof *number);
    dmi_program_array *sorted = malloc(((size_t)p->arrays + 1) * sizeof *sorted);
    int at = 0;
    if (!number || !sorted) {
        free(number);
        free(sorted);
        return dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    for (int temporary = 0; temporary < 2; temporary++) {
        for (int i = 0; i < p->arrays; i++) {
            if (p->array[i].temporary == temporary) {
                sorted[at] = p->array[i];
                number[i] = at++;
            }
        }
        p->operands = temporary == 0 ? at : p->operands;
    }
    for (int c = 0; c < p->calls; c++) {
        dmi_call *call = &p->call[c];
        for (int i = 0; i < call->noperand; i++) {
            call->operand[i].id = call->operand[i].mode ? (uint64_t)number[call->operand[i].id] : 0;
        }
    }
    free(p->array);
    free(number);
    p->array = sorted;
    return DM_OK;
}

/* What its calls could not be refused for one by one. */
static dm_status try_plans(dmi_session *s, dmi_recorded *r)
{
    dmi_call call = dmi_program_call(&r->p, DMI_OP_program);
    bool limited = s->config.memory_limit > 0;
    if (limited) {
        r->workspace = calloc((size_t)s->workers, sizeof *r->workspace);
        if (!r->workspace) {
            return dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
        }
    }
    dm_status status = DM_OK;
    for (int w = 0; w < (limited ? s->workers : 1) && status == DM_OK; w++) {
        dmi_plan *plan = NULL;
        status = dmi_plan_make(&call, &s->profile, w, &plan);
        for (int i = 0; status == DM_OK && limited && i < plan->nwork; i++) {
            r->workspace[w] += dmi_pool_rounded(&s->pool_config, plan->work_bytes[i]);
        }
        dmi_plan_release(plan);
    }
    return status;
}

/* Who takes part in its runs, and gets it at all. */
static uint64_t members_of(const dmi_program *p)
{
    uint64_t members = 0;
    for (int i = 0; i < p->calls; i++) {
        members |= dmi_call_members(&p->call[i]);
    }
    return members;
}

static void send_part(dmi_session *s, int kind, const dmi_program *p, uint32_t program)
{
    dmi_program_frame *f = dmi_frame_begin(s, sizeof *f, kind, DMI_OP_program);
    f->program = program;
    f->arrays = p->arrays;
    f->operands = p->operands;
    f->calls = p->calls;
    f->members = members_of(p);
    dmi_frame_send(s);
}

static void send_program(dmi_session *s, const dmi_program *p, uint32_t program)
{
    send_part(s, DMI_FRAME_PROGRAM, p, program);
    for (int i = 0; i < p->arrays; i++) {
        const dmi_program_array *a = &p->array[i];
        dmi_program_array_frame *f = dmi_frame_begin(s, sizeof *f, DMI_FRAME_PROGRAM_ARRAY, DMI_OP_program);
        f->program = program;
        f->memory = a->memory;
        f->layout_id = a->desc.layout_id;
        f->mode = a->mode;
        f->dtype = (int32_t)a->desc.dtype;
        f->ndim = a->desc.ndim;
        memcpy(f->lo, a->desc.lo, sizeof f->lo);
        memcpy(f->extent, a->desc.extent, sizeof f->extent);
        memcpy(f->skip, a->desc.skip, sizeof f->skip);
        dmi_frame_send(s);
    }
    for (int i = 0; i < p->calls; i++) {
        dmi_call_send(s, &p->call[i], DMI_FRAME_PROGRAM_CALL, NULL);
    }
    send_part(s, DMI_FRAME_PROGRAM_END, p, program);
}

static void free_recorded(dmi_recorded *r)
{
    if (r) {
        dmi_program_free(&r->p);
        free(r->hidden);
        free(r->named);
        free(r->workspace);
        free(r);
    }
}

/* A place in the table of programs; its number is the program's. */
static bool make_room(dmi_session *s)
{
    if (s->programs < s->program_room) {
        return true;
    }
    uint32_t room = s->program_room ? 2 * s->program_room : 8;
    dmi_recorded **grown = realloc(s->program, room * sizeof(dmi_recorded *));
    if (grown) {
        s->program = grown;
        s->program_room = room;
    }
    return grown != NULL;
}

dm_status dm_program_end(dm_session *session, dm_program *out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !s->recording) {
        status = dmi_fail(DM_ERR_STATE, "program_end: no program is being recorded");
    }
    if (status != DM_OK) {
        return status;
    }
    dmi_recording *from = s->recording;
    dmi_recorded *r = calloc(1, sizeof *r);
    dmi_numbers_end(s, from);
    s->recording = NULL;
    from->p.arrays = from->lost ? 0 : from->p.arrays;
    settle_arrays(s, &from->p);
    drop_hidden(s, from->hidden, &from->hiddens, !r || !out);
    if (!r || from->lost || !make_room(s)) {
        status = dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    if (r) {
        r->next = 0;
        r->p = from->p;
        r->hidden = from->hidden;
        r->hiddens = from->hiddens;
        r->named = from->named;
        r->nameds = from->nameds;
        from->p = (dmi_program){0};
        from->hidden = NULL;
        from->named = NULL;
    }
    dmi_recording_free(from);
    if (status == DM_OK && out && (status = sort_arrays(&r->p)) == DM_OK) {
        status = try_plans(s, r);
    }
    if (status != DM_OK || !out) {
        if (r) {
            drop_hidden(s, r->hidden, &r->hiddens, true);
        }
        free_recorded(r);
        return status;
    }
    send_program(s, &r->p, s->programs);
    s->program[s->programs++] = r;
    out->id = (uint64_t)s->number << 32 | s->programs;
    return DM_OK;
}

/* --- runs --- */

static dm_status find_program(dmi_session *s, dm_program program, const char *call, uint32_t *out)
{
    uint32_t number = (uint32_t)program.id;
    const char *wrong = program.id >> 32 != s->number || number == 0 || number > s->programs
                            ? "is not a program of this session"
                        : !s->program[number - 1] ? "has been destroyed"
                                                  : NULL;
    if (wrong) {
        return dmi_fail(DM_ERR_HANDLE, "%s: program %s", call, wrong);
    }
    *out = number - 1;
    return DM_OK;
}

static dm_status find_operand(dmi_session *s, const dmi_program *p, int i, uint64_t id, const dmi_handle **out)
{
    uint32_t slot = dmi_id_slot(id);
    if (slot >= s->handles || dmi_handle_id(s, slot) != id || !there(&s->handle[slot])) {
        char text[192];
        dmi_desc_describe(&p->array[i].desc, text, sizeof text);
        return dmi_fail(DM_ERR_HANDLE, "program_run: an array of the program has been destroyed: %s", text);
    }
    *out = &s->handle[slot];
    return DM_OK;
}

/* May an array stand for one that was recorded? */
static dm_status check_binding(int which, const dmi_desc *recorded, const dmi_desc *now)
{
    bool shape = recorded->ndim == now->ndim &&
                 memcmp(recorded->extent, now->extent, (size_t)now->ndim * sizeof *now->extent) == 0;
    bool layout = recorded->layout_id == now->layout_id &&
                  memcmp(recorded->lo, now->lo, (size_t)now->ndim * sizeof *now->lo) == 0 &&
                  memcmp(recorded->skip, now->skip, (size_t)now->ndim * sizeof *now->skip) == 0;
    if (!shape || !layout || recorded->dtype != now->dtype) {
        char a[192], b[192];
        dmi_desc_describe(recorded, a, sizeof a);
        dmi_desc_describe(now, b, sizeof b);
        return dmi_fail(!shape                          ? DM_ERR_SHAPE
                        : recorded->dtype != now->dtype ? DM_ERR_DTYPE
                                                        : DM_ERR_LAYOUT,
                        "program_run: bindings[%d]: %s was recorded, but array is %s%s", which, a, b,
                        shape && !layout && recorded->dtype == now->dtype ? ", or another part of such an array"
                                                                          : "");
    }
    return DM_OK;
}

static dm_status bind(dmi_session *s, const dmi_program *p, int count, const dm_program_binding *bindings,
                      uint64_t *id)
{
    for (int k = 0; k < count; k++) {
        int i = 0;
        dmi_handle *h;
        dm_status status = dmi_handle_find(s, bindings[k].array, "bindings: array", &h);
        while (i < p->operands && p->array[i].id != bindings[k].recorded.id) {
            i++;
        }
        if (status == DM_OK && i == p->operands) {
            status = dmi_fail(DM_ERR_ARG,
                              "program_run: bindings[%d]: the program does not use the array `recorded`", k);
        }
        if (status != DM_OK || (status = check_binding(k, &p->array[i].desc, &h->desc)) != DM_OK) {
            return status;
        }
        id[i] = bindings[k].array.id;
    }
    return DM_OK;
}

/* Waits inside the program are planned: arrays must share memory exactly where they did. */
static dm_status check_sharing(const dmi_program *p, const dmi_handle *const *h)
{
    for (int i = 0; i < p->operands; i++) {
        for (int k = 0; k < i; k++) {
            if ((p->array[i].memory == p->array[k].memory) != (h[i]->storage == h[k]->storage)) {
                return dmi_fail(DM_ERR_OVERLAP,
                                "program_run: bindings: two arrays %s memory when the program was recorded, "
                                "and %s now",
                                h[i]->storage == h[k]->storage ? "did not share" : "shared",
                                h[i]->storage == h[k]->storage ? "do" : "do not");
            }
        }
    }
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
                            "program_run: worker %d needs %" PRId64 " bytes of workspace, %" PRId64
                            " are left of the limit",
                            w, r->workspace[w], dmi_left_at(s, w, false));
        }
    }
    return DM_OK;
}

/* How often a program runs. every 0: `times` times. */
typedef struct repeat {
    int64_t times, every;
    dm_array value;
    double below;
    uint64_t seen;
} repeat;

static void send_run(dmi_session *s, uint32_t program, const repeat *r, int operands, const uint64_t *id)
{
    dmi_recorded *recorded = s->program[program];
    size_t numbers = (size_t)recorded->given * sizeof(dmi_given_number);
    dmi_program_run_frame *f = dmi_frame_begin(s, (uint32_t)(sizeof *f + (size_t)operands * sizeof *id + numbers),
                                               DMI_FRAME_PROGRAM_RUN, DMI_OP_program);
    f->program = program;
    f->operands = operands;
    f->numbers = recorded->given;
    f->times = r->times;
    f->members = members_of(&recorded->p);
    f->group = dmi_group_number(s);
    f->first = recorded->next;
    recorded->next = -1;
    f->every = r->every;
    f->value = r->value.id;
    f->seen = r->seen;
    f->below = r->below;
    if (operands > 0) {
        memcpy(f + 1, id, (size_t)operands * sizeof *id);
    }
    dmi_numbers_put(recorded, (dmi_given_number *)((uint64_t *)(f + 1) + operands));
    dmi_frame_send(s);
}

/* The checks of a run, with its arrays in id and h. */
static dm_status prepare(dmi_session *s, const dmi_recorded *r, int count, const dm_program_binding *bindings,
                         uint64_t *id, const dmi_handle **h)
{
    const dmi_program *p = &r->p;
    for (int i = 0; i < p->operands; i++) {
        id[i] = p->array[i].id;
    }
    dm_status status = bind(s, p, count, bindings, id);
    for (int i = 0; i < p->operands && status == DM_OK; i++) {
        status = find_operand(s, p, i, id[i], &h[i]);
    }
    if (status == DM_OK && count > 0) {
        status = check_sharing(p, h);
    }
    return status == DM_OK ? admit(s, r) : status;
}

/* An array of the session in which every worker sees the value. */
static dm_status make_seen(dmi_session *s, dm_dtype dtype, uint64_t *out)
{
    const dmi_layout *layout;
    uint32_t layout_id;
    dmi_layout_spec spec = {.ndim = 1, .shape = {1}, .block = {1}, .grid = {1}, .replicas = s->workers, .session_workers = s->workers};
    dm_array a;
    dm_status status = s->seen[dtype] ? DM_OK : dmi_layout_intern(s, &spec, &layout, &layout_id);
    if (status == DM_OK && !s->seen[dtype] &&
        (status = dmi_array_make(s, dtype, layout, layout_id, true, &a)) == DM_OK) {
        s->seen[dtype] = a.id;
    }
    *out = s->seen[dtype];
    return status;
}

/* What the workers look at must be an element that the program writes; bound: the arrays of this run. */
static dm_status check_value(dmi_session *s, const dmi_program *p, const uint64_t *bound, repeat *r)
{
    int i = 0;
    bool written = false;
    while (i < p->operands && p->array[i].id != r->value.id) {
        i++;
    }
    if (i == p->operands) {
        return dmi_fail(DM_ERR_ARG, "program_run_until: the program does not use the array `value`");
    }
    const dmi_desc *desc = &p->array[i].desc;
    for (int d = 0; d < desc->ndim; d++) {
        if (desc->extent[d] != 1) {
            return dmi_fail(DM_ERR_SHAPE, "program_run_until: value has more than one element, or none");
        }
    }
    if (dmi_dtype_is_complex(desc->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "program_run_until: value has dtype %s, which is not taken",
                        dmi_dtype_name(desc->dtype));
    }
    for (int k = 0; k < p->operands; k++) {
        written = written || (p->array[k].memory == p->array[i].memory && p->array[k].mode & DMI_WRITE);
    }
    if (!written) {
        return dmi_fail(DM_ERR_ARG, "program_run_until: the program does not write the array `value`");
    }
    r->value.id = bound[i];
    return make_seen(s, desc->dtype, &r->seen);
}

static dm_status run_checked(dmi_session *s, uint32_t number, repeat r, int count, const dm_program_binding *bindings)
{
    const dmi_recorded *recorded = s->program[number];
    const dmi_program *p = &recorded->p;
    size_t n = (size_t)p->operands + 1;
    uint64_t *id = malloc(n * sizeof *id);
    const dmi_handle **h = malloc(n * sizeof(dmi_handle *));
    dm_status status =
        id && h ? prepare(s, recorded, count, bindings, id, h) : dmi_fail(DM_ERR_NOMEM, "program_run: no memory");
    dmi_call call = dmi_program_call(p, DMI_OP_program);
    if (status == DM_OK && r.every > 0) {
        status = check_value(s, p, id, &r);
    }
    if (status == DM_OK && s->explaining) {
        status = dmi_explain_call(s, &call);
    } else if (status == DM_OK && r.times > 0) {
        if (s->config.explain) {
            dmi_explain_log(s, &call);
        }
        for (int i = 0; i < p->operands; i++) {
            if (p->array[i].mode & DMI_WRITE) {
                dmi_replicas_forget(s, h[i]->storage);
            }
        }
        send_run(s, number, &r, p->operands, id);
        status = s->config.sync ? dmi_wait(s, s->command) : DM_OK;
    }
    free(id);
    free(h);
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
static dm_status begin_run(dm_session *session, dm_program program, const char *times_name, int64_t times, int count,
                           const dm_program_binding *bindings, dmi_session **s, uint32_t *number)
{
    const char *call = dmi_api_called();
    dm_status status = dmi_enter(session, s);
    if (status == DM_OK) {
        status = find_program(*s, program, call, number);
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
        return dmi_fail(DM_ERR_ARG, count < 0 ? "%s: count is %d" : "%s: bindings is NULL, but count is %d", call, count);
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

dm_status dm_program_run_until(dm_session *session, dm_program program, int64_t most, int64_t every, dm_array value,
                               double below, int count, const dm_program_binding *bindings)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "most", most, count, bindings, &s, &number);
    if (status == DM_OK && every < 1) {
        status = dmi_fail(DM_ERR_ARG, "program_run_until: every is %" PRId64 ", not 1 or more", every);
    }
    if (status == DM_OK && below != below) {
        status = dmi_fail(DM_ERR_ARG, "program_run_until: below is NaN");
    }
    return status == DM_OK
               ? run(s, number, (repeat){.times = most, .every = every, .value = value, .below = below}, count, bindings)
               : status;
}

dm_status dm_program_set_run(dm_session *session, dm_program program, int64_t next)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "next", next, 0, NULL, &s, &number);
    if (status == DM_OK) {
        s->program[number]->next = next;
    }
    return status;
}

dm_status dm_program_set_number(dm_session *session, dm_program program, const char *name, double value)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = begin_run(session, program, "times", 0, 0, NULL, &s, &number);
    return status == DM_OK ? dmi_number_set(s->program[number], name, value) : status;
}

dm_status dm_program_destroy(dm_session *session, dm_program program)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && program.id != 0) {
        status = s->recording ? dmi_fail(DM_ERR_STATE, "program_destroy: a program is being recorded")
                              : find_program(s, program, "program_destroy", &number);
    }
    if (status != DM_OK || program.id == 0) {
        return status;
    }
    dmi_recorded *r = s->program[number];
    s->program[number] = NULL;
    send_part(s, DMI_FRAME_PROGRAM_DESTROY, &r->p, number);
    drop_hidden(s, r->hidden, &r->hiddens, true);
    free_recorded(r);
    return DM_OK;
}

static void send_poison(dmi_session *s, uint64_t culprit, const uint32_t *memory, int count)
{
    dmi_poison_frame *frame = dmi_frame_begin(s, sizeof *frame, DMI_FRAME_POISON, 0);
    frame->culprit = culprit;
    memset(frame->memory, 0, sizeof frame->memory);
    memcpy(frame->memory, memory, (size_t)count * sizeof *memory);
    dmi_frame_send(s);
}

void dmi_program_poison(dmi_session *s, uint64_t culprit)
{
    uint64_t command = culprit >> 16, at = s->recent[command % DMI_RECENT];
    const dmi_program_run_frame *f = (const dmi_program_run_frame *)(const void *)(s->hub.ring->data + at);
    bool there_still = at < s->hub.ring->size && f->head.command == command && f->head.kind == DMI_FRAME_PROGRAM_RUN &&
                       f->program < s->programs && s->program[f->program];
    size_t n = there_still ? (size_t)f->operands : 0;
    uint32_t *memory = n > 0 ? malloc(n * sizeof *memory) : NULL;
    int count = 0;
    for (size_t i = 0; memory && i < n; i++) { /* before the first frame is sent: it may take this one's place */
        uint64_t id = dmi_run_frame_operands(f)[i];
        uint32_t slot = dmi_id_slot(id);
        if (s->program[f->program]->p.array[i].mode & DMI_WRITE && slot < s->handles &&
            dmi_handle_id(s, slot) == id && there(&s->handle[slot])) {
            memory[count++] = s->handle[slot].storage->number;
        }
    }
    for (int i = 0; i < count; i += DMI_ERROR_WRITES) {
        send_poison(s, culprit, memory + i, DMI_MIN(count - i, DMI_ERROR_WRITES));
    }
    free(memory);
}

void dmi_programs_free(dmi_session *s)
{
    for (uint32_t i = 0; i < s->programs; i++) {
        free_recorded(s->program[i]);
    }
    free(s->program);
}
