/* Runs of programs at a worker. All runs that a frame asks for are commands with its number. */
#include "comm/frames.h"
#include "ops/ops.h"
#include "worker/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A loop of the course, or that of the frame. */
typedef struct loop {
    int64_t times, every, asks;
    uint64_t value, seen, members;
    double below;
} loop;

static loop loop_of(const dmi_running *r)
{
    const dmi_program_run_frame *f = r->frame;
    if (r->depth == 0) {
        return (loop){f->times, f->every, f->asks, f->value, f->seen, f->members, f->below};
    }
    const dmi_course_step *s = &r->course->step[r->loop[r->depth].begin];
    return (loop){s->times, s->every,   s->asks, s->every > 0 ? dmi_run_frame_operands(f)[s->value] : 0,
                  s->seen,  s->members, s->below};
}

static void leave_loop(dmi_running *r)
{
    if (r->depth == 0) {
        r->on = false;
    } else {
        r->at = r->course->step[r->loop[r->depth--].begin].other + 1;
    }
}

static void end_pass(dmi_running *r)
{
    const dmi_program_run_frame *f = r->frame;
    loop l = loop_of(r);
    r->at = r->loop[r->depth].begin + 1;
    r->begins = r->begins || r->depth == 0;
    r->loop[r->depth].since++;
    r->loop[r->depth].asked++;
    if (--r->loop[r->depth].left == 0) {
        leave_loop(r);
    } else if (l.every > 0 && r->loop[r->depth].since == l.every) {
        r->loop[r->depth].since = 0;
        r->looks = true;
    } else if (f->asked && r->loop[r->depth].asked >= l.asks) {
        r->loop[r->depth].asked = 0;
        r->asks = true;
    }
}

/* Goes on to the next part of this worker, or to a look or a question, or to the end. */
static void advance(dmi_running *r)
{
    const dmi_course *c = r->course;
    while (r->on && !r->looks && !r->asks) {
        const dmi_course_step *s = r->at < c->steps ? &c->step[r->at] : NULL;
        if (!s || s->kind == DMI_COURSE_END) {
            end_pass(r);
        } else if (s->kind == DMI_COURSE_RUN) {
            if (!c->part || c->part[s->other].mine) {
                return;
            }
            r->at++;
        } else if (s->times == 0) {
            r->at = s->other + 1;
        } else {
            r->loop[++r->depth].begin = r->at++;
            r->loop[r->depth].left = s->times;
            r->loop[r->depth].since = r->loop[r->depth].asked = 0;
        }
    }
}

/* A command of their own, all at the same place of the stream. */
static void decide(dmi_worker *w, dmi_until_frame *f, uint64_t members)
{
    const dmi_program_run_frame *run = w->run.frame;
    f->op.head = run->head;
    f->op.head.op = DMI_OP_until;
    f->op.noperand = DMI_COUNT(f->operand);
    f->op.numbers = DMI_COUNT(f->number);
    f->op.members = members;
    f->op.group = w->run.group;
    f->op.group_place = w->run.group_place;
    f->op.args[0] = (int32_t)members;
    f->op.args[1] = (int32_t)(members >> 32);
    w->run.looks = w->run.asks = false;
    w->run.deciding = true;
    dmi_dispatch_op(w, &f->op);
    if (w->broken) {
        w->run.deciding = w->run.on = false;
    }
}

static void look(dmi_worker *w)
{
    const dmi_program_run_frame *run = w->run.frame;
    loop l = loop_of(&w->run);
    dmi_until_frame f = {.operand = {{l.value, DMI_READ}, {l.seen, DMI_WRITE}},
                         .number = {{.re = l.below}, {.re = HUGE_VAL}}};
    w->run.asked = false;
    decide(w, &f, run->members);
}

/* Workers see a cancel at different times, but must leave a loop in the same pass. The first of them says
 * whether it has seen one, or a failure. */
static void ask(dmi_worker *w)
{
    const dmi_program_run_frame *run = w->run.frame;
    uint64_t cancelled = atomic_load(&w->hub.ring->cancelled), command = run->head.command;
    bool over = command <= cancelled || command == w->run.failed;
    dmi_until_frame f = {.op.args[2] = 1,
                         .operand = {{run->asked, DMI_READ}, {run->asked, DMI_WRITE}},
                         .number = {{.re = -0.5}, {.re = 0.5}, {.re = over}}};
    w->run.asked = true;
    decide(w, &f, loop_of(&w->run).members);
}

/* A value that is poisoned ends the run. A worker that could not look does not know what the others do. It
 * could not if the array that shows it the value got no memory when it was made. */
void dmi_run_decided(dmi_worker *w, const dmi_instance *inst)
{
    dmi_running *r = &w->run;
    int failed = atomic_load(&inst->failed);
    const bool unseen = failed && atomic_load(&inst->memory[1]->poisoned) == DMI_NO_MEMORY;
    const dm_status blind = failed & DMI_FAILED_HERE ? (dm_status)atomic_load(&inst->status)
                            : unseen                 ? DM_ERR_NOMEM
                                                     : DM_OK;
    r->deciding = false;
    if (failed || (inst->stop && r->asked)) { /* passes are dropped */
        const dmi_frame *run = r->frame;
        uint64_t culprit = failed ? atomic_load(&inst->culprit) : 0;
        r->spoiled = culprit ? culprit : dmi_culprit(run->command, run->called);
    }
    if (failed) {
        r->on = false;
    } else if (inst->stop) {
        leave_loop(r);
    }
    advance(r);
    if (blind != DM_OK) {
        dmi_worker_break(w, blind);
    }
}

/* There is no memory for the run here, and the others go on with it. */
static void give_up(dmi_worker *w, const dmi_frame *frame)
{
    char text[DMI_ERROR_TEXT];
    snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
             (unsigned long long)frame->command, dmi_command_name(frame->called, frame->op), w->me,
             w->engine.port->host, dmi_error_text());
    dmi_engine_report(&w->engine, frame->command, DM_ERR_NOMEM, text);
    w->run.on = false;
    dmi_worker_break(w, DM_ERR_NOMEM);
}

void dmi_run_spoil(dmi_worker *w)
{
    const dmi_program_run_frame *f = w->run.frame;
    dmi_engine_drain(&w->engine); /* passes before it may still make what they write clean */
    for (int i = 0; i < f->operands; i++) {
        const dmi_entry *entry = dmi_store_find(w, dmi_run_frame_operands(f)[i]);
        if (entry && dmi_run_frame_uses(f)[i].mode & DMI_WRITE) {
            dmi_memory_poison(entry->memory, w->run.spoiled);
        }
    }
    w->run.spoiled = 0;
}

void dmi_run_go_on(dmi_worker *w)
{
    const dmi_frame *frame = w->run.frame;
    dmi_instance *inst = NULL;
    if (w->run.looks || w->run.asks) {
        (w->run.looks ? look : ask)(w);
        return;
    }
    if (w->run.begins) {
        w->run.begins = false;
        dmi_program_begin_run(w, w->run.frame);
    }
    if (dmi_insist(w, dmi_program_instance, frame, &inst) != DM_OK) {
        give_up(w, frame);
        return;
    }
    w->run.at++;
    advance(&w->run);
    dmi_worker_count_plan(w, inst->of_group, true);
    dmi_worker_submit(w, inst, frame);
}

/* The frame's place in the ring is free after the dispatch, so it is kept. */
static dm_status keep_frame(dmi_worker *w, const void *frame, void *out)
{
    const dmi_program_run_frame *f = frame;
    void *kept = realloc(w->run.frame, f->head.bytes);
    (void)out;
    if (!kept) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a command");
    }
    w->run.frame = memcpy(kept, f, f->head.bytes);
    return DM_OK;
}

void dmi_run_begin(dmi_worker *w, const dmi_program_run_frame *f)
{
    if (!dmi_worker_takes_part(w, f->members)) {
        return;
    }
    if (dmi_insist(w, keep_frame, f, NULL) != DM_OK) {
        give_up(w, &f->head);
        return;
    }
    w->run.course = dmi_program_course(w, f->program);
    w->run.on = w->run.begins = true;
    w->run.looks = w->run.asks = false;
    w->run.group = f->group;
    w->run.group_place = f->group_place;
    w->run.at = w->run.depth = 0;
    w->run.loop[0].begin = -1;
    w->run.loop[0].left = f->times;
    w->run.loop[0].since = w->run.loop[0].asked = 0;
    dmi_program_begin_runs(w, f);
    advance(&w->run);
    if (w->run.on) {
        dmi_run_go_on(w);
    }
}
