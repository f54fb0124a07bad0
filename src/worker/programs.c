/* Programs at a worker: received call by call, planned once, run as commands. */
#include "comm/frames.h"
#include "ops/ops.h"
#include "plan/on_device.h"
#include "plan/program.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_program(struct dmi_worker_program *program)
{
    if (program) {
        for (int i = 0; i < program->calls; i++) {
            free((void *)(uintptr_t)program->p.call[i].tail);
        }
        for (int i = 0; i < program->course.received; i++) {
            free(program->course.part[i].operand);
        }
        free(program->course.part);
        free(program->course.step);
        dmi_plan_release(program->plan);
        free(program->p.array);
        free(program->p.call);
        free(program->p.number);
        free(program->seed);
        free(program);
    }
}

static struct dmi_worker_program *program_of(const dmi_worker *w, uint32_t number)
{
    return number < w->program_room ? w->program[number] : NULL;
}

static bool make_room(dmi_worker *w, uint32_t program)
{
    if (program < w->program_room) {
        return true;
    }
    uint32_t room = 2 * program + 8;
    struct dmi_worker_program **grown = realloc(w->program, room * sizeof(struct dmi_worker_program *));
    if (grown) {
        memset(grown + w->program_room, 0, (room - w->program_room) * sizeof(struct dmi_worker_program *));
        w->program = grown;
        w->program_room = room;
    }
    return grown != NULL;
}

static dm_status begin(dmi_worker *w, const void *frame, void *out)
{
    const dmi_program_frame *f = frame;
    (void)out;
    if (!make_room(w, f->program)) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a program");
    }
    struct dmi_worker_program *program = calloc(1, sizeof *program);
    if (program) {
        program->p = (dmi_program){.arrays = f->arrays,
                                   .operands = f->operands,
                                   .calls = f->calls,
                                   .recorded = f->recorded,
                                   .array = calloc((size_t)f->arrays + 1, sizeof *program->p.array),
                                   .call = calloc((size_t)f->calls + 1, sizeof *program->p.call)};
    }
    if (!program || !program->p.array || !program->p.call) {
        free_program(program);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a program");
    }
    program->skipped = !dmi_worker_takes_part(w, f->members);
    program->members = f->members;
    w->program[f->program] = program;
    w->receiving = program;
    return DM_OK;
}

static void take_array(dmi_worker *w, const dmi_program_array_frame *f)
{
    struct dmi_worker_program *program = w->receiving;
    const dmi_layout *layout = w->layout[f->layout_id];
    dmi_program_array *a = &program->p.array[program->arrays];
    a->desc =
        (dmi_desc){.dtype = (dm_dtype)f->dtype, .ndim = f->ndim, .layout = layout, .layout_id = f->layout_id};
    memcpy(a->desc.lo, f->lo, sizeof f->lo);
    memcpy(a->desc.extent, f->extent, sizeof f->extent);
    memcpy(a->desc.skip, f->skip, sizeof f->skip);
    a->memory = f->memory;
    a->mode = f->mode;
    a->temporary = program->arrays++ >= program->p.operands;
}

/* The seeds among the numbers of a call. */
static bool take_seeds(struct dmi_worker_program *program, const dmi_op_frame *f)
{
    int *seed = realloc(program->seed, (size_t)(program->seeds + f->numbers + 1) * sizeof *seed);
    program->seed = seed ? seed : program->seed;
    for (int i = 0; seed && i < f->numbers; i++) {
        if (f->seeds >> i & 1) {
            seed[program->seeds++] = program->p.numbers + i;
        }
    }
    return seed != NULL;
}

static dm_status take_call(dmi_worker *w, const void *frame, void *out)
{
    const dmi_op_frame *f = frame;
    struct dmi_worker_program *program = w->receiving;
    (void)out;
    dmi_program *p = &program->p;
    dmi_number *number = realloc(p->number, (size_t)(p->numbers + f->numbers + 1) * sizeof *number);
    void *tail = f->tail_bytes ? malloc((size_t)f->tail_bytes) : NULL;
    p->number = number ? number : p->number;
    if (!number || (f->tail_bytes && !tail) || !take_seeds(program, f)) {
        free(tail);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a program");
    }
    bool same = program->calls == 0 || program->group == f->group;
    program->group = same ? f->group : 0;
    program->group_place = same ? f->group_place : 0;
    dmi_call *call = &p->call[program->calls++];
    dmi_call_from(f, call);
    for (int i = 0; i < f->noperand; i++) {
        const dmi_operand_ref *ref = &dmi_op_frame_operands(f)[i];
        if (ref->mode) {
            const dmi_program_array *a = &p->array[ref->id];
            call->operand[i] =
                (dmi_operand){.desc = a->desc, .id = ref->id, .memory = a->memory, .mode = (int)ref->mode};
        } else {
            call->operand[i].desc.dtype = (dm_dtype)ref->id;
        }
    }
    if (tail) {
        memcpy(tail, dmi_op_frame_tail(f), (size_t)f->tail_bytes);
    }
    call->tail = tail;
    if (f->numbers > 0) {
        memcpy(p->number + p->numbers, dmi_op_frame_numbers(f), (size_t)f->numbers * sizeof *number);
    }
    p->numbers += f->numbers;
    return DM_OK;
}

/* The plan of a worker. alone: for one that runs on its device alone, which planners may know. */
static dm_status plan_for(dmi_worker *w, const struct dmi_worker_program *program, int worker, bool alone,
                          dmi_plan **out)
{
    dmi_profile profile = w->profile;
    dmi_call call = dmi_program_call(&program->p, DMI_OP_program);
    profile.on_device = alone;
    return w->plan(&call, &profile, worker, out);
}

static bool may_be_alone(const dmi_worker *w, const struct dmi_worker_program *program)
{
    return w->profile.on_device && !program->skipped &&
           dmi_on_device_members(program->members, w->profile.workers) > 1;
}

static dm_status end(dmi_worker *w, const void *frame, void *out)
{
    (void)frame, (void)out;
    struct dmi_worker_program *program = w->receiving;
    dmi_group_counts *of_group = NULL;
    dm_status status =
        program->skipped ? DM_OK : dmi_group_counts_of(w, program->group, program->group_place, &of_group);
    status = status == DM_OK ? plan_for(w, program, w->me, may_be_alone(w, program), &program->plan) : status;
    if (status == DM_OK && !program->skipped) {
        dmi_worker_count_plan(w, of_group, false);
    }
    return status;
}

/* The plan of another worker as one that runs on its device alone. *alone is NULL: it cannot. */
static dm_status plan_other(dmi_worker *w, const struct dmi_worker_program *program, int other,
                            dmi_plan **alone, char why[DMI_ON_DEVICE_WHY])
{
    dmi_plan *plan = NULL;
    dm_status status = plan_for(w, program, other, true, &plan);
    status = status == DM_OK ? dmi_plan_on_device(plan, w->profile.workers, program->members, alone, why) : status;
    dmi_plan_release(plan);
    return status;
}

/* This worker's plan with the places of payloads, for which it plans for the others, too; NULL: it cannot run
 * on the devices alone, or there is no memory. */
static dmi_plan *plan_alone(dmi_worker *w, const struct dmi_worker_program *program,
                            char why[DMI_ON_DEVICE_WHY])
{
    const int workers = w->profile.workers;
    dmi_plan *plan[DMI_ON_DEVICE_WORKERS] = {NULL};
    bool all = workers <= DMI_ON_DEVICE_WORKERS;
    dm_status status = all ? dmi_plan_on_device(program->plan, workers, program->members, &plan[w->me], why) : DM_OK;
    all = all && plan[w->me];
    for (int other = 0; other < workers && all && status == DM_OK; other++) {
        status = other == w->me ? DM_OK : plan_other(w, program, other, &plan[other], why);
        all = plan[other] != NULL;
    }
    status = all && status == DM_OK ? dmi_on_device_places(plan, workers, w->config->memory_limit == 0, &all, why) : status;
    for (int other = 0; other < DMI_MIN(workers, DMI_ON_DEVICE_WORKERS); other++) {
        if (other != w->me || !all || status != DM_OK) {
            dmi_plan_release(plan[other]);
            plan[other] = NULL;
        }
    }
    return all ? plan[w->me] : NULL;
}

/* Do all who take part run the program on their devices alone? */
static bool agree(dmi_worker *w, struct dmi_worker_program *program)
{
    const dmi_device *device = w->engine.config.device;
    char why[DMI_ON_DEVICE_WHY] = "there is no memory";
    dmi_plan *alone = plan_alone(w, program, why);
    bool agreed = device->agree(&w->engine, program->members, alone);
    if (alone) {
        snprintf(why, sizeof why, "%s", agreed ? "yes" : "not all workers can");
    }
    dmi_log(DMI_LOG_INFO, "a program on the devices alone: %s", why);
    dmi_plan_release(agreed ? program->plan : alone);
    program->plan = agreed ? alone : program->plan;
    return agreed;
}

/* As all workers do that have not agreed. */
static dm_status plan_again(dmi_worker *w, const void *frame, void *out)
{
    dmi_plan *plan = NULL;
    dm_status status = plan_for(w, w->receiving, w->me, false, &plan);
    (void)frame, (void)out;
    if (status == DM_OK) {
        dmi_plan_release(w->receiving->plan);
        w->receiving->plan = plan;
    }
    return status;
}

static dm_status begin_course(dmi_worker *w, const void *frame, void *out)
{
    const dmi_course_frame *f = frame;
    (void)out;
    bool room = make_room(w, f->program);
    struct dmi_worker_program *program = room ? calloc(1, sizeof *program) : NULL;
    dmi_course *c = program ? &program->course : NULL;
    if (c) {
        c->step = malloc(((size_t)f->steps + 1) * sizeof *c->step);
        c->part = calloc((size_t)f->parts + 1, sizeof *c->part);
    }
    if (!c || !c->step || !c->part) {
        free_program(program);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a program");
    }
    memcpy(c->step, dmi_course_frame_steps(f), (size_t)f->steps * sizeof *c->step);
    c->steps = f->steps;
    c->parts = f->parts;
    program->p.operands = f->operands;
    program->p.numbers = f->numbers;
    for (int i = 0; i < c->steps; i++) { /* loops that it need not follow */
        if (c->step[i].kind == DMI_COURSE_REPEAT && !dmi_worker_takes_part(w, c->step[i].members)) {
            c->step[i].times = 0;
        }
    }
    w->program[f->program] = program;
    return DM_OK;
}

static dm_status take_part(dmi_worker *w, const void *frame, void *out)
{
    const dmi_part_frame *f = frame;
    dmi_course *c = &program_of(w, f->program)->course;
    size_t bytes = (size_t)f->operands * sizeof(int32_t);
    (void)out;
    int32_t *operand = malloc(bytes + 1);
    if (!operand) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a program");
    }
    memcpy(operand, dmi_part_frame_operands(f), bytes);
    c->part[f->part] = (dmi_part){.program = f->runs,
                                  .operand = operand,
                                  .number = f->number,
                                  .passes = f->passes,
                                  .mine = dmi_worker_takes_part(w, f->members)};
    c->received = f->part + 1;
    return DM_OK;
}

/* A worker that takes no part receives the program in debug builds only, to see that it would have nothing to
 * do. */
static bool receives(const dmi_worker *w, const dmi_program_frame *f)
{
#ifdef NDEBUG
    return dmi_worker_takes_part(w, f->members);
#else
    (void)w, (void)f;
    return true;
#endif
}

static void check_skipped(const struct dmi_worker_program *program)
{
    assert(!program->plan || program->plan->nstep == 0);
    (void)program;
}

/* Without the program, or its plan, this worker can neither run it nor fail it: the others wait for its
 * transfers. */
static void receive(dmi_worker *w, dmi_attempt *attempt, const dmi_frame *frame)
{
    dm_status status = dmi_insist(w, attempt, frame, NULL);
    if (status != DM_OK) {
        char text[DMI_ERROR_TEXT];
        snprintf(text, sizeof text, "command %llu (%s) failed on worker %d (%s): %s",
                 (unsigned long long)frame->command, dmi_command_name(frame->called, frame->op), w->me,
                 w->engine.port->host, dmi_error_text());
        dmi_engine_report(&w->engine, frame->command, status, text);
        dmi_worker_break(w, DM_ERR_NOMEM);
    }
}

void dmi_program_receive(dmi_worker *w, const dmi_frame *frame)
{
    const void *f = frame;
    switch (frame->kind) {
    case DMI_FRAME_PROGRAM:
        if (receives(w, f)) {
            receive(w, begin, f);
        }
        break;
    case DMI_FRAME_PROGRAM_ARRAY:
        if (w->receiving) {
            take_array(w, f);
        }
        break;
    case DMI_FRAME_PROGRAM_CALL:
        if (w->receiving) {
            receive(w, take_call, f);
        }
        break;
    case DMI_FRAME_PROGRAM_END:
        if (w->receiving) {
            receive(w, end, f);
            if (w->receiving->skipped) {
                check_skipped(w->receiving);
            }
            if (may_be_alone(w, w->receiving) && w->receiving->plan && !agree(w, w->receiving)) {
                receive(w, plan_again, f);
            }
        }
        w->receiving = NULL;
        break;
    case DMI_FRAME_PROGRAM_COURSE:
        if (dmi_worker_takes_part(w, ((const dmi_course_frame *)f)->members)) {
            receive(w, begin_course, f);
        }
        break;
    case DMI_FRAME_PROGRAM_PART:
        if (program_of(w, ((const dmi_part_frame *)f)->program)) {
            receive(w, take_part, f);
        }
        break;
    default: { /* PROGRAM_DESTROY */
        uint32_t number = ((const dmi_program_frame *)f)->program;
        if (number < w->program_room) {
            free_program(w->program[number]);
            w->program[number] = NULL;
        }
    }
    }
}

void dmi_programs_clear(dmi_worker *w)
{
    for (uint32_t i = 0; i < w->program_room; i++) {
        free_program(w->program[i]);
    }
    free(w->program);
    free(w->run.frame);
    w->program = NULL;
    w->run.frame = NULL;
    w->program_room = 0;
}

/* --- runs --- */

const dmi_course *dmi_program_course(const dmi_worker *w, uint32_t program)
{
    static dmi_course_step once = {.kind = DMI_COURSE_RUN};
    static const dmi_course plain = {.step = &once, .steps = 1};
    const struct dmi_worker_program *p = program_of(w, program);
    return p && p->course.part ? &p->course : &plain;
}

/* Numbers given anew that are among those of a program, the first of which is number `from` of the whole. */
static void begin_part(struct dmi_worker_program *program, const dmi_program_run_frame *f, int64_t from,
                       int64_t passes)
{
    const dmi_given_number *given = dmi_run_frame_numbers(f);
    if (f->first >= 0 && passes >= 0) {
        program->run = (int64_t)((uint64_t)f->first * (uint64_t)passes);
    }
    for (int i = 0; i < f->numbers; i++) {
        if (given[i].at >= from && given[i].at < from + program->p.numbers) {
            program->p.number[given[i].at - from] = given[i].value;
        }
    }
}

void dmi_program_begin_runs(dmi_worker *w, const dmi_program_run_frame *f)
{
    struct dmi_worker_program *program = program_of(w, f->program);
    if (program && !program->course.part) {
        begin_part(program, f, 0, 1);
    }
    for (int i = 0; program && i < program->course.parts; i++) {
        const dmi_part *part = &program->course.part[i];
        struct dmi_worker_program *runs = program_of(w, part->program);
        if (runs && part->mine) { /* of another one its number may stand for another program by now */
            begin_part(runs, f, part->number, part->passes);
        }
    }
}

void dmi_program_begin_run(dmi_worker *w, const dmi_program_run_frame *f)
{
    const dmi_run_use *use = dmi_run_frame_uses(f);
    for (int i = 0; i < f->operands; i++) {
        const dmi_entry *entry = use[i].fresh ? dmi_store_find(w, dmi_run_frame_operands(f)[i]) : NULL;
        if (entry) {
            entry->memory->fresh = true;
        }
    }
}

/* Of the innermost loop around the part, for messages. */
static int64_t pass_of(const dmi_running *r)
{
    int begin = r->loop[r->depth].begin;
    return r->depth > 0 ? r->course->step[begin].times - r->loop[r->depth].left + 1 : 0;
}

/* For the profile: the run, and its calls. */
static void count_calls(dmi_worker *w, const dmi_program_run_frame *f, const dmi_program *p)
{
    if (w->engine.usage && dmi_worker_counts(w, f->members)) {
        dmi_usage_call(&w->engine, &(dmi_call){.op = DMI_OP_program});
        for (int i = 0; i < p->calls; i++) {
            dmi_usage_call(&w->engine, &p->call[i]);
        }
    }
}

dm_status dmi_program_instance(dmi_worker *w, const void *frame, void *instance)
{
    const dmi_program_run_frame *f = frame;
    const uint64_t *id = dmi_run_frame_operands(f);
    const dmi_part *part =
        w->run.course->part ? &w->run.course->part[w->run.course->step[w->run.at].other] : NULL;
    struct dmi_worker_program *program = program_of(w, part ? part->program : f->program);
    const dmi_program *p = &program->p;
    uint32_t group = f->group ? f->group : program->group;
    uint32_t group_place = f->group ? f->group_place : program->group_place;
    dmi_group_counts *of_group;
    dm_status status = dmi_group_counts_of(w, group, group_place, &of_group);
    if (status != DM_OK) {
        return status;
    }
    dmi_instance *inst = dmi_instance_create(&w->engine, p->operands, p->numbers, p->number);
    for (int i = 0; inst && i < p->operands; i++) {
        const dmi_entry *entry = dmi_store_find(w, id[part ? part->operand[i] : i]);
        assert(entry); /* check.c has looked */
        dmi_instance_operand(inst, i, entry, p->array[i].mode, f->head.command);
    }
    for (int i = 0; inst && i < p->operands; i++) {
        inst->memory[i]->fresh = inst->memory[i]->fresh && !(p->array[i].mode & DMI_WRITE);
    }
    atomic_fetch_add(&program->plan->refs, inst != NULL);
    if (!inst || !dmi_instance_plan(inst, program->plan)) {
        dmi_instance_free(&w->engine, inst);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a command");
    }
    for (int i = 0; i < program->seeds; i++) {
        dmi_number *n = &inst->number[program->seed[i]];
        n->whole = (int64_t)dmi_program_seed((uint64_t)n->whole, program->run);
    }
    inst->group = w->run.group = group;
    w->run.group_place = group_place;
    inst->of_group = of_group;
    inst->members = f->members;
    inst->calls = p->recorded;
    inst->pass = part ? pass_of(&w->run) : 0;
    inst->program = f->ordinal;
    inst->run = program->run++;
    count_calls(w, f, p);
    inst->noperand = p->operands;
    *(dmi_instance **)instance = inst;
    return DM_OK;
}
