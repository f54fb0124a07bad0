/* Programs: the end of the recording, runs, and the end of a program. */
#include "master/recording.h"
#include "ops/joined.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- the end of a recording --- */

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
        p->array[i].base = storage->layout;
    }
    for (int views = 0; views < 2; views++) { /* arrays come before their views */
        for (uint32_t i = 1; i < s->handles; i++) {
            dmi_handle *h = &s->handle[i];
            if (dmi_handle_there(h) && h->view == views && h->storage->visible > 0) {
                dmi_array_send(s, h, dmi_handle_id(s, i));
            }
        }
    }
    for (uint32_t i = 1; i < s->handles; i++) {
        dmi_handle *h = &s->handle[i];
        if (dmi_handle_there(h) && h->storage->visible > 0) {
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

/* Elementwise calls that follow one another become one, but not over the end of a part. Without compiled kernels GPUs are
 * faster one by one. */
static dm_status join_calls(const dmi_session *s, dmi_recorded *r)
{
    dmi_program *p = &r->p;
    if (!s->config.program_join || (s->profile.gpu && !s->profile.map_compiled)) {
        return DM_OK;
    }
    int *moved = malloc(((size_t)p->calls + 1) * sizeof *moved), call = 0;
    bool *first = calloc((size_t)p->calls + 1, sizeof *first);
    for (int k = 0; k < r->pieces && first; k++) {
        first[call] = true;
        call += r->piece[k].p.calls;
    }
    bool joined = moved && first && dmi_program_join(p, first, moved);
    call = 0;
    for (int k = 0; k < r->pieces && joined; k++) {
        int end = call + r->piece[k].p.calls;
        r->piece[k].p.calls = moved[end] - moved[call];
        call = end;
    }
    for (int i = 0, c = 0, at = 0; i < r->nameds && joined; i++) { /* in the order of their calls */
        dmi_named *named = &r->named[i];
        for (named->call = moved[named->call]; c < named->call; c++) {
            at += p->call[c].numbers;
        }
        named->at = at;
    }
    free(moved);
    free(first);
    return joined ? DM_OK : dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
}

/* Who takes part in its runs, and gets it at all. */
uint64_t dmi_program_members(const dmi_program *p)
{
    uint64_t members = 0;
    for (int i = 0; i < p->calls; i++) {
        members |= dmi_call_members(&p->call[i]);
    }
    return members;
}

/* Plans it, or a part of it, for that profile. pass_us: how long a pass takes about that is cancelled: its
 * steps, but no kernels. */
static dm_status try_profile(dmi_session *s, dmi_recorded *r, const dmi_profile *profile, const dmi_program *p,
                             double *pass_us)
{
    const double step_us = 1.5, bytes_a_us = 5000;
    dmi_call call = dmi_program_call(p, DMI_OP_program);
    dm_status status = DM_OK;
    uint64_t members = dmi_program_members(p);
    int first = 0;
    while (first < s->workers - 1 && !(members >> first % 64 & 1)) {
        first++;
    }
    for (int i = 0; i < (r->workspace ? s->workers : 1) && status == DM_OK; i++) {
        int w = r->workspace ? i : first;
        dmi_plan *plan = NULL;
        int64_t bytes = 0;
        status = dmi_plan_make(&call, profile, w, &plan);
        for (int k = 0; status == DM_OK && k < plan->nwork; k++) {
            bytes += dmi_pool_rounded(&s->pool_config, plan->work_bytes[k]);
        }
        if (r->workspace) {
            r->workspace[w] = DMI_MAX(r->workspace[w], bytes);
        }
        if (status == DM_OK) {
            double us = plan->nstep * step_us + (double)(plan->bytes_sent + plan->bytes_received) / bytes_a_us;
            *pass_us = DMI_MAX(*pass_us, us);
        }
        dmi_plan_release(plan);
    }
    return status;
}

/* Also as it is where it cannot run on the devices alone, which the workers find. */
static dm_status try_plan(dmi_session *s, dmi_recorded *r, const dmi_program *p, double *pass_us)
{
    dmi_profile profile = s->profile;
    dm_status status = try_profile(s, r, &profile, p, pass_us);
    if (status == DM_OK && profile.on_device && r->workspace) {
        profile.on_device = false;
        status = try_profile(s, r, &profile, p, pass_us);
    }
    return status;
}

/* What its calls could not be refused for one by one. */
static dm_status try_plans(dmi_session *s, dmi_recorded *r)
{
    if (s->config.memory_limit > 0) {
        r->workspace = calloc((size_t)s->workers, sizeof *r->workspace);
        if (!r->workspace) {
            return dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
        }
    }
    double run_us = 0;
    dm_status status = r->step ? DM_OK : dmi_turns_choose(s, &r->p);
    status = r->step || status != DM_OK ? status : try_plan(s, r, &r->p, &run_us);
    for (int k = 0; k < r->pieces && status == DM_OK; k++) {
        status = dmi_turns_choose(s, &r->piece[k].p);
        status = status == DM_OK ? try_plan(s, r, &r->piece[k].p, &r->piece[k].pass_us) : status;
    }
    dmi_loops_pace(r, run_us);
    return status;
}

static void send_part(dmi_session *s, int kind, const dmi_program *p, uint32_t program)
{
    dmi_program_frame *f = dmi_frame_begin(s, sizeof *f, kind, DMI_OP_program);
    f->program = program;
    f->arrays = p->arrays;
    f->operands = p->operands;
    f->calls = p->calls;
    f->recorded = p->recorded;
    f->members = dmi_program_members(p);
    dmi_frame_send(s);
}

void dmi_program_send(dmi_session *s, const dmi_program *p, uint32_t program)
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
        dmi_loops_free(r);
        free(r->hidden);
        free(r->named);
        free(r->workspace);
        free(r);
    }
}

/* Room in the table of programs, for this one and its parts, each of which has a number. */
static dm_status make_room(dmi_session *s, const dmi_recorded *r)
{
    uint32_t all = s->programs + 1 + (uint32_t)r->pieces;
    if (all > DMI_ID_MOST_SLOTS) {
        return dmi_fail(DM_ERR_LIMIT, "program_end: a session can have %d programs and parts of them at once",
                        DMI_ID_MOST_SLOTS);
    }
    if (all <= s->program_room) {
        return DM_OK;
    }
    uint32_t room = DMI_MAX(2 * s->program_room, DMI_MAX(all, 8));
    dmi_numbered *grown = realloc(s->program, room * sizeof *grown);
    if (!grown) {
        return dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    s->program = grown;
    s->program_room = room;
    return DM_OK;
}

/* The frame of a run names all arrays, that of the course all begins and ends of loops. */
static dm_status check_frames(const dmi_session *s, const dmi_recorded *r)
{
    const size_t most = (size_t)(s->hub.ring->size / 4), run = dmi_run_frame_bytes(r->p.operands, r->nameds),
                 course = dmi_course_frame_bytes(r->steps);
    if (run > most) {
        return dmi_fail(DM_ERR_LIMIT,
                        "program_end: a run with %d arrays and %d numbers takes %zu bytes in the command ring, "
                        "a quarter of "
                        "which has %zu (option ring)",
                        r->p.operands, r->nameds, run, most);
    }
    return course > most
               ? dmi_fail(DM_ERR_LIMIT,
                          "program_end: loops that cut the program into %d parts take %zu bytes in the command "
                          "ring, a quarter of which has %zu (option ring)",
                          r->pieces, course, most)
               : DM_OK;
}

/* There is room. */
static uint32_t take_number(dmi_session *s, dmi_recorded *r)
{
    uint32_t number;
    if (s->free_program) {
        number = s->free_program - 1;
        s->free_program = s->program[number].next_free;
    } else {
        number = s->programs++;
        s->program[number].generation = 0;
    }
    s->program[number].generation++;
    s->program[number].recorded = r;
    return number;
}

static void free_number(dmi_session *s, uint32_t number)
{
    dmi_numbered *n = &s->program[number];
    n->recorded = NULL;
    if (n->generation < DMI_ID_LAST_GENERATION) { /* else it stays unused */
        n->next_free = s->free_program;
        s->free_program = number + 1;
    }
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
    if (out && from->loops > 0) {
        status = dmi_fail(DM_ERR_STATE, "program_end: %d loops are open (dm_program_repeat)", from->loops);
    } else if (r && out && from->marks > 0 && !from->lost) {
        status = dmi_loops_cut(s, from, r);
    }
    settle_arrays(s, &from->p);
    drop_hidden(s, from->hidden, &from->hiddens, !r || !out);
    if (status == DM_OK && (!r || from->lost)) {
        if (from->lost) { /* in an earlier call */
            dmi_memory_missed((size_t)(from->hiddens + 1) * sizeof *from->hidden);
        }
        status = dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    }
    status = status == DM_OK ? make_room(s, r) : status;
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
    if (status == DM_OK && out && (status = sort_arrays(&r->p)) == DM_OK &&
        (status = join_calls(s, r)) == DM_OK && (status = dmi_loops_make(r)) == DM_OK &&
        (status = check_frames(s, r)) == DM_OK) {
        status = try_plans(s, r);
    }
    if (status != DM_OK || !out) {
        if (r) {
            drop_hidden(s, r->hidden, &r->hiddens, true);
        }
        free_recorded(r);
        return status;
    }
    uint32_t number = take_number(s, r);
    for (int k = 0; k < r->pieces; k++) {
        r->piece[k].program = take_number(s, NULL);
    }
    r->ordinal = ++s->recorded;
    if (r->step) {
        dmi_loops_send(s, r, number);
    } else {
        dmi_program_send(s, &r->p, number);
    }
    out->id = dmi_id_make(s->number, s->program[number].generation, number);
    return DM_OK;
}

dm_status dm_program_destroy(dm_session *session, dm_program program)
{
    dmi_session *s;
    uint32_t number = 0;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && program.id != 0) {
        status = s->recording ? dmi_fail(DM_ERR_STATE, "program_destroy: a program is being recorded")
                              : dmi_program_find(s, program, "program_destroy", &number);
    }
    if (status != DM_OK || program.id == 0) {
        return status;
    }
    dmi_recorded *r = s->program[number].recorded;
    send_part(s, DMI_FRAME_PROGRAM_DESTROY, &r->p, number);
    free_number(s, number);
    for (int k = 0; k < r->pieces; k++) {
        send_part(s, DMI_FRAME_PROGRAM_DESTROY, &r->piece[k].p, r->piece[k].program);
        free_number(s, r->piece[k].program);
    }
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
    bool there_still =
        at < s->hub.ring->size && f->head.command == command && f->head.kind == DMI_FRAME_PROGRAM_RUN;
    size_t n = there_still ? (size_t)f->operands : 0;
    uint32_t *memory = n > 0 ? malloc(n * sizeof *memory) : NULL;
    int count = 0;
    for (size_t i = 0; memory && i < n; i++) { /* before the first frame is sent: it may take this one's place */
        const dmi_run_use *use = &dmi_run_frame_uses(f)[i];
        if (use->mode & DMI_WRITE) {
            memory[count++] = use->memory;
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
        free_recorded(s->program[i].recorded);
    }
    free(s->program);
}
