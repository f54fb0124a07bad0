/* Loops inside programs. While a program is recorded, their begins and ends are marks between its calls. At its
 * end it is cut there: what lies between two marks is a part, a program of its own. */
#include "master/recording.h"
#include "ops/common.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- recording --- */

static dm_status enter_recording(dm_session *session, dmi_session **s)
{
    dm_status status = dmi_enter(session, s);
    return status == DM_OK && !(*s)->recording
               ? dmi_fail(DM_ERR_STATE, "%s: no program is being recorded", dmi_api_called())
               : status;
}

static dm_status add_mark(dmi_recording *r, dmi_loop_mark mark)
{
    if (!dmi_record_room(&r->mark, &r->mark_room, r->marks, 1, sizeof *r->mark)) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for a program", dmi_api_called());
    }
    mark.call = r->p.calls;
    r->mark[r->marks++] = mark;
    return DM_OK;
}

dm_status dm_program_repeat(dm_session *session, int64_t times)
{
    dmi_session *s;
    dm_status status = enter_recording(session, &s);
    if (status != DM_OK) {
        return status;
    }
    dmi_recording *r = s->recording;
    if (times < 0) {
        return dmi_fail(DM_ERR_ARG, "program_repeat: times is %" PRId64, times);
    }
    if (r->loops == DMI_COURSE_DEPTH) {
        return dmi_fail(DM_ERR_LIMIT, "program_repeat: %d loops are open, and no more can be",
                        DMI_COURSE_DEPTH);
    }
    if ((status = add_mark(r, (dmi_loop_mark){.times = times})) == DM_OK) {
        r->loop[r->loops++] = r->marks - 1;
    }
    return status;
}

static dm_status end_loop(dmi_recording *r, int64_t every, uint64_t value, double below)
{
    dm_status status = add_mark(r, (dmi_loop_mark){.times = -1});
    if (status == DM_OK) {
        dmi_loop_mark *begin = &r->mark[r->loop[--r->loops]];
        begin->every = every;
        begin->value = value;
        begin->below = below;
    }
    return status;
}

static dm_status enter_loop(dm_session *session, dmi_session **s)
{
    dm_status status = enter_recording(session, s);
    return status == DM_OK && (*s)->recording->loops == 0
               ? dmi_fail(DM_ERR_STATE, "%s: no loop has begun (dm_program_repeat)", dmi_api_called())
               : status;
}

dm_status dm_program_repeat_end(dm_session *session)
{
    dmi_session *s;
    dm_status status = enter_loop(session, &s);
    return status == DM_OK ? end_loop(s->recording, 0, 0, 0) : status;
}

static bool written_since(const dmi_program *p, int call, const dmi_operand *value)
{
    for (int c = call; c < p->calls; c++) {
        for (int i = 0; i < p->call[c].noperand; i++) {
            const dmi_operand *o = &p->call[c].operand[i];
            if (o->mode & DMI_WRITE && dmi_operands_overlap(o, value) != DMI_APART) {
                return true;
            }
        }
    }
    return false;
}

dm_status dm_program_repeat_until(dm_session *session, int64_t every, dm_array value, double below)
{
    dmi_session *s;
    dmi_operand o;
    dm_status status = enter_loop(session, &s);
    if (status != DM_OK || (status = dmi_operand_find(s, value, "value", &o)) != DM_OK ||
        (status = dmi_look_check(every, below)) != DM_OK || (status = dmi_look_check_value(&o.desc)) != DM_OK) {
        return status;
    }
    dmi_recording *r = s->recording;
    if (!written_since(&r->p, r->mark[r->loop[r->loops - 1]].call, &o)) {
        return dmi_fail(DM_ERR_ARG, "program_repeat_until: the loop does not write the array `value`");
    }
    if (dmi_record_array(r, &o) < 0) {
        return dmi_fail(DM_ERR_NOMEM, "program_repeat_until: no memory for a program");
    }
    return end_loop(r, every, value.id, below);
}

/* --- cutting --- */

static dmi_storage *storage_of(const dmi_session *s, uint64_t id)
{
    return s->handle[dmi_id_slot(id)].storage;
}

/* It becomes an array that the workers know (programs.c), and lives as long as the program. */
static dm_status give_storage(dmi_session *s, dmi_storage *storage)
{
    char why[200];
    storage->visible += storage->unsent;
    storage->passing = storage->unsent && storage->alive == 0;
    dm_status status = dmi_storage_count(s, storage);
    if (status != DM_OK) {
        snprintf(why, sizeof why, "%s", dmi_error_text());
        status = dmi_fail(status, "program_end: loops keep an array from part to part: %s", why);
    }
    return status;
}

/* Arrays whose contents go from one part to another, or from one pass of a part to the next: not those that a
 * pass makes, or writes first as a whole. */
static dm_status keep_contents(dmi_session *s, const dmi_program *p, const dmi_piece *piece, const bool *loops,
                               int pieces)
{
    int *last =
        malloc(((size_t)p->arrays + 1) * sizeof *last); /* of the first array of a storage: the last part */
    int *same = malloc(((size_t)p->arrays + 1) * sizeof *same); /* the first array of the same storage */
    for (int i = 0; last && same && i < p->arrays; i++) {
        last[i] = -1;
        same[i] = 0;
        while (p->array[same[i]].memory != p->array[i].memory) {
            same[i]++;
        }
    }
    dm_status status = last && same ? DM_OK : dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    for (int k = 0, c = 0; status == DM_OK && k < pieces; k++) {
        for (int end = c + piece[k].p.calls; c < end; c++) {
            for (int i = 0; i < p->call[c].noperand && status == DM_OK; i++) {
                const dmi_operand *o = &p->call[c].operand[i];
                if (!o->mode) {
                    continue;
                }
                uint64_t id = p->array[o->id].id;
                int *at = &last[same[o->id]];
                bool made = (o->mode == DMI_WRITE && !s->handle[dmi_id_slot(id)].view) ||
                            (storage_of(s, id)->unsent && storage_of(s, id)->part == piece[k].marks);
                if (*at != k && (*at >= 0 || (loops[k] && !made))) {
                    status = give_storage(s, storage_of(s, id));
                }
                *at = k;
            }
        }
    }
    free(last);
    free(same);
    return status;
}

/* How often what lies in these loops runs in a run of the program; -1: not known before, or too often to count.
 */
static int64_t passes_of(const dmi_course_step *step, const int *open, int loops)
{
    int64_t passes = 1;
    for (int i = 0; i < loops; i++) {
        const dmi_course_step *s = &step[open[i]];
        if (s->every > 0 || !dmi_mul_fits(passes, s->times, &passes)) {
            return -1;
        }
    }
    return passes;
}

dm_status dmi_loops_cut(dmi_session *s, const dmi_recording *from, dmi_recorded *r)
{
    const dmi_program *p = &from->p;
    size_t most = 2 * (size_t)from->marks + 1;
    int open[DMI_COURSE_DEPTH], loops = 0;
    bool *in_loop = calloc(most, sizeof *in_loop);
    r->step = calloc(most, sizeof *r->step);
    r->piece = calloc(most, sizeof *r->piece);
    dm_status status =
        in_loop && r->step && r->piece ? DM_OK : dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
    for (int m = 0, call = 0; m <= from->marks && status == DM_OK; m++) {
        const dmi_loop_mark *mark = &from->mark[m];
        int next = m < from->marks ? mark->call : p->calls;
        if (next > call) { /* what lies before the mark */
            in_loop[r->pieces] = loops > 0;
            r->piece[r->pieces] =
                (dmi_piece){.p.calls = next - call, .marks = m, .passes = passes_of(r->step, open, loops)};
            r->step[r->steps++] = (dmi_course_step){.kind = DMI_COURSE_RUN, .other = r->pieces++};
            call = next;
        }
        if (m == from->marks) {
            break;
        }
        if (mark->times < 0) {
            int of = open[--loops];
            r->step[of].other = r->steps;
            r->step[r->steps++] = (dmi_course_step){.kind = DMI_COURSE_END, .other = of};
        } else {
            dmi_course_step *step = &r->step[r->steps];
            open[loops++] = r->steps++;
            *step = (dmi_course_step){
                .kind = DMI_COURSE_REPEAT, .times = mark->times, .every = mark->every, .below = mark->below};
            if (mark->every > 0) {
                status = give_storage(s, storage_of(s, mark->value));
                step->value = (int64_t)mark->value; /* its id, until dmi_loops_make */
                status = status == DM_OK
                             ? dmi_look_seen(s, dmi_array_desc(s, (dm_array){mark->value})->dtype, &step->seen)
                             : status;
            }
        }
    }
    status = status == DM_OK ? keep_contents(s, p, r->piece, in_loop, r->pieces) : status;
    for (uint32_t i = 1; i < s->handles && status != DM_OK; i++) { /* no program: nothing is kept for it */
        if (dmi_handle_there(&s->handle[i])) {
            s->handle[i].storage->visible = 0;
        }
    }
    free(in_loop);
    return status;
}

static int operand_with(const dmi_program *p, uint64_t id)
{
    int i = 0;
    while (p->array[i].id != id) {
        i++;
    }
    return i;
}

/* The calls of the whole from this one on, with arrays of its own. */
static dm_status make_piece(const dmi_program *whole, int first, dmi_piece *piece)
{
    dmi_program *p = &piece->p;
    size_t n = (size_t)whole->arrays + 1;
    int *local = calloc(n, sizeof *local); /* what the part does to an array; then its number */
    p->recorded = whole->recorded;
    p->call = malloc((size_t)p->calls * sizeof *p->call);
    p->array = malloc(n * sizeof *p->array);
    piece->operand = malloc(n * sizeof *piece->operand);
    bool ok = local && p->call && p->array && piece->operand;
    for (int c = 0; ok && c < p->calls; c++) {
        p->call[c] = whole->call[first + c];
        for (int i = 0; i < p->call[c].noperand; i++) {
            const dmi_operand *o = &p->call[c].operand[i];
            if (o->mode) {
                local[o->id] = dmi_record_mode(local[o->id], o->mode);
            }
        }
        p->numbers += p->call[c].numbers;
    }
    for (int i = 0; ok && i < whole->arrays; i++) { /* operands come first there, so also here */
        if (local[i]) {
            p->array[p->arrays] = whole->array[i];
            p->array[p->arrays].mode = local[i];
            if (!whole->array[i].temporary) {
                piece->operand[p->operands++] = i;
            }
            local[i] = p->arrays++;
        }
    }
    for (int c = 0; ok && c < p->calls; c++) {
        for (int i = 0; i < p->call[c].noperand; i++) {
            dmi_operand *o = &p->call[c].operand[i];
            o->id = o->mode ? (uint64_t)local[o->id] : 0;
        }
    }
    free(local);
    return ok ? DM_OK : dmi_fail(DM_ERR_NOMEM, "program_end: no memory for a program");
}

dm_status dmi_loops_make(dmi_recorded *r)
{
    int call = 0;
    int64_t number = 0;
    dm_status status = DM_OK;
    for (int k = 0; k < r->pieces && status == DM_OK; k++) {
        dmi_piece *piece = &r->piece[k];
        piece->number = number;
        status = make_piece(&r->p, call, piece);
        piece->p.number = status == DM_OK ? r->p.number + number : NULL;
        call += piece->p.calls;
        number += piece->p.numbers;
    }
    for (int i = 0; i < r->steps; i++) {
        if (r->step[i].every > 0) {
            r->step[i].value = operand_with(&r->p, (uint64_t)r->step[i].value);
        }
    }
    return status;
}

/* Passes whose cancelled steps take some milliseconds: a question costs ten to twenty microseconds. */
static int64_t pace(double pass_us)
{
    const double most_us = 5000, most = 4096;
    double passes = pass_us > 0 ? most_us / pass_us : most;
    return passes < 1 ? 1 : (int64_t)DMI_MIN(passes, most);
}

/* What a pass of the loop that begins at a step takes, or of that of the frame (-1). *members: who has parts in
 * it; *looks: a loop in it ends by a value. */
static double pass_of(const dmi_recorded *r, int begin, uint64_t *members, bool *looks)
{
    double us = 0;
    int end = begin < 0 ? r->steps : r->step[begin].other;
    for (int i = begin + 1; i < end; i++) {
        const dmi_course_step *s = &r->step[i];
        if (s->kind == DMI_COURSE_RUN) {
            us += r->piece[s->other].pass_us;
            *members |= dmi_program_members(&r->piece[s->other].p);
            continue;
        }
        if (s->times > 0) { /* a look at what a cancelled pass has poisoned ends a run */
            double passes = (double)(s->every > 0 ? DMI_MIN(s->every, s->times) : s->times);
            double once = pass_of(r, i, members, looks);
            us += once * DMI_MIN(passes, (double)pace(once));
            *looks = *looks || s->every > 0;
        }
        i = s->other;
    }
    return us;
}

void dmi_loops_pace(dmi_recorded *r, double run_us)
{
    bool any = false;
    r->members = 0;
    r->asks = pace(r->step ? pass_of(r, -1, &r->members, &any) : run_us);
    r->members |= r->step ? 0 : dmi_program_members(&r->p);
    for (int i = 0; i < r->steps; i++) {
        dmi_course_step *s = &r->step[i];
        if (s->kind == DMI_COURSE_REPEAT) {
            bool looks = s->every > 0;
            uint64_t members = 0;
            s->asks = pace(pass_of(r, i, &members, &looks));
            s->members = looks ? r->members : members; /* all look */
        }
    }
}

void dmi_loops_send(dmi_session *s, const dmi_recorded *r, uint32_t program)
{
    for (int k = 0; k < r->pieces; k++) {
        dmi_program_send(s, &r->piece[k].p, r->piece[k].program);
    }
    dmi_course_frame *f = dmi_frame_begin(s, (uint32_t)dmi_course_frame_bytes(r->steps),
                                          DMI_FRAME_PROGRAM_COURSE, DMI_OP_program);
    f->program = program;
    f->parts = r->pieces;
    f->steps = r->steps;
    f->operands = r->p.operands;
    f->numbers = r->p.numbers;
    f->members = r->members;
    memcpy(f + 1, r->step, (size_t)r->steps * sizeof *r->step);
    dmi_frame_send(s);
    for (int k = 0; k < r->pieces; k++) {
        const dmi_piece *piece = &r->piece[k];
        size_t operands = (size_t)piece->p.operands * sizeof *piece->operand;
        dmi_part_frame *part =
            dmi_frame_begin(s, (uint32_t)(sizeof *part + operands), DMI_FRAME_PROGRAM_PART, DMI_OP_program);
        part->program = program;
        part->runs = piece->program;
        part->part = k;
        part->operands = piece->p.operands;
        part->number = piece->number;
        part->passes = piece->passes;
        part->members = dmi_program_members(&piece->p);
        memcpy(part + 1, piece->operand, operands);
        dmi_frame_send(s);
    }
}

bool dmi_loops_know_run(const dmi_recorded *r)
{
    for (int k = 0; k < r->pieces; k++) {
        for (int c = 0; r->piece[k].passes < 0 && c < r->piece[k].p.calls; c++) {
            if (r->piece[k].p.call[c].seeds & ~DMI_GIVEN_ANEW) {
                return false;
            }
        }
    }
    return true;
}

dm_status dmi_loops_explain(dmi_session *s, const dmi_recorded *r)
{
    dm_status status = DM_OK;
    for (int i = 0, depth = 0; i < r->steps && status == DM_OK; i++) {
        const dmi_course_step *step = &r->step[i];
        depth -= step->kind == DMI_COURSE_END;
        if (step->kind == DMI_COURSE_RUN) {
            dmi_call call = dmi_program_call(&r->piece[step->other].p, DMI_OP_program);
            status = dmi_explain_call(s, &call);
        } else if (step->kind == DMI_COURSE_END) {
            dmi_explain_printf(s, "%*send of the loop\n", 2 * depth, "");
        } else {
            dmi_explain_printf(s, "%*sloop: %s%" PRId64 " times\n", 2 * depth, "",
                               step->every > 0 ? "at most " : "", step->times);
            depth++;
        }
    }
    return status;
}

void dmi_loops_free(dmi_recorded *r)
{
    for (int k = 0; r->piece && k < r->pieces; k++) {
        free(r->piece[k].p.call);
        free(r->piece[k].p.array);
        free(r->piece[k].operand);
    }
    free(r->piece);
    free(r->step);
}
