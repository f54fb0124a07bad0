/* Runs of programs at a worker. */
#include "comm/frames.h"
#include "ops/ops.h"
#include "worker/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The workers look at the value as a command of their own, all at the same place of the stream. */
static void look(dmi_worker *w, const dmi_program_run_frame *run)
{
    dmi_until_frame f = {.op = {.head = run->head,
                                .noperand = 2,
                                .numbers = 2,
                                .members = run->members,
                                .args = {(int32_t)run->members, (int32_t)(run->members >> 32)}},
                         .operand = {{run->value, DMI_READ}, {run->seen, DMI_WRITE}},
                         .number = {{.re = run->below}, {.re = HUGE_VAL}}};
    f.op.head.op = DMI_OP_until;
    w->run_since = 0;
    w->deciding = true;
    dmi_dispatch_op(w, &f.op);
    w->deciding = w->deciding && !w->broken;
}

/* A worker that could not look does not know what the others do. */
void dmi_run_decided(dmi_worker *w, const dmi_instance *inst)
{
    w->deciding = false;
    if (inst->stop || atomic_load(&inst->failed)) {
        w->run_left = 0;
    }
    if (atomic_load(&inst->failed) & DMI_FAILED_HERE) {
        dmi_worker_break(w);
    }
}

void dmi_run_go_on(dmi_worker *w)
{
    const dmi_frame *frame = w->run;
    const dmi_program_run_frame *run = w->run;
    dmi_instance *inst = NULL;
    if (run->every > 0 && w->run_since == run->every) {
        look(w, run);
        return;
    }
    if (dmi_insist(w, dmi_program_instance, w->run, &inst) != DM_OK) {
        char text[DMI_ERROR_TEXT];
        snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
                 (unsigned long long)frame->command, dmi_command_name(frame->called, frame->op), w->me,
                 w->engine.port->host, dmi_error_text());
        dmi_engine_report(&w->engine, frame->command, DM_ERR_NOMEM, text);
        w->run_left = 0;
        dmi_worker_break(w);
        return;
    }
    w->run_left--;
    w->run_since++;
    dmi_worker_count_plan(w, true);
    dmi_worker_submit(w, inst, frame);
}

/* The frame's place in the ring is free after the dispatch, so it is kept. */
static dm_status keep_run(dmi_worker *w, const void *frame, void *out)
{
    const dmi_program_run_frame *f = frame;
    void *kept = realloc(w->run, f->head.bytes);
    (void)out;
    if (!kept) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a command");
    }
    w->run = memcpy(kept, f, f->head.bytes);
    return DM_OK;
}

void dmi_run_begin(dmi_worker *w, const dmi_program_run_frame *f)
{
    if (!dmi_worker_takes_part(w, f->members)) {
        return;
    }
    if (dmi_insist(w, keep_run, f, NULL) != DM_OK) {
        dmi_engine_report(&w->engine, f->head.command, DM_ERR_NOMEM, "no memory for a command");
        dmi_worker_break(w);
        return;
    }
    w->run_left = f->times;
    dmi_program_begin_runs(w, f);
    w->run_since = 0;
    dmi_run_go_on(w);
}
