/* One endpoint: its plans bound to memory and hazards as the executor binds them, and checked step by step. */
#include "ops/ops.h"
#include "plan/program.h"
#include "sim/parts.h"

#include <stdlib.h>
#include <string.h>

typedef struct memory { /* an array at one endpoint */
    uint32_t number;
    dmi_allocation allocation;
    dmi_hazards last;
} memory;

typedef struct endpoint {
    const dmi_sim_program *program;
    dmi_sim_report *report;
    int me, memories;
    memory *memory; /* [operands of all calls] at most */
    dmi_pool *pool;
    dmi_race *race;
    dmi_run_end *run;
    dmi_stamp enqueued;
    uint32_t *transfers; /* [lane][endpoints] ordinals given so far */
    /* the call being bound */
    int call;
    const dmi_plan *plan;
    memory **operand; /* [operands of a call] here and below */
    dmi_hazard *use, *earlier;
    dmi_allocation *work;
    dmi_stamp *work_use;
} endpoint;

/* Slabs are addresses: nothing is ever stored in them. */
static void *slab_get(void *context, int index, int64_t bytes)
{
    uint64_t *next = context;
    uint64_t at = *next;
    (void)index;
    *next += ((uint64_t)bytes + 4095) / 4096 * 4096;
    return (void *)(uintptr_t)at;
}

static void slab_give_back(void *context, int index, void *base, int64_t bytes)
{
    (void)context;
    (void)index;
    (void)base;
    (void)bytes;
}

/* A call's operands: of a program, its arrays. */
static int operands_of(const dmi_call *call)
{
    return call->op == DMI_OP_program ? ((const dmi_program *)call->tail)->operands : call->noperand;
}

static dmi_operand operand_of(const dmi_call *call, int which)
{
    if (call->op != DMI_OP_program) {
        return call->operand[which];
    }
    const dmi_program_array *a = &((const dmi_program *)call->tail)->array[which];
    return (dmi_operand){.desc = a->desc, .id = a->id, .memory = a->memory, .mode = a->mode};
}

static dm_status find_memory(endpoint *e, const dmi_operand *o, memory **out)
{
    for (int i = 0; i < e->memories; i++) {
        if (e->memory[i].number == o->memory) {
            *out = &e->memory[i];
            return DM_OK;
        }
    }
    memory *m = &e->memory[e->memories];
    *m = (memory){.number = o->memory};
    if (e->me < e->program->profile->workers) {
        int64_t bytes = dmi_layout_shard_count(o->desc.layout, e->me) * dmi_dtype_bytes(o->desc.dtype);
        dm_status status = dmi_pool_alloc(e->pool, bytes, DMI_OWNER_ARRAY, &m->allocation);
        if (status != DM_OK) {
            return status;
        }
    }
    m->last.rest.write = m->allocation.ready;
    e->memories++;
    *out = m;
    return DM_OK;
}

static dm_status take_memory(endpoint *e, const dmi_call *call)
{
    dm_status status = DM_OK;
    for (int i = 0; i < operands_of(call) && status == DM_OK; i++) {
        dmi_operand operand = operand_of(call, i);
        status = find_memory(e, &operand, &e->operand[i]);
        memset(&e->use[i], 0, sizeof e->use[i]);
    }
    for (int i = 0; i < operands_of(call) && status == DM_OK; i++) {
        dmi_operand operand = operand_of(call, i);
        dmi_area area;
        dmi_desc_area(&operand.desc, &area);
        dmi_hazards_before(&e->operand[i]->last, &area, &e->earlier[i]);
    }
    e->work = calloc((size_t)e->plan->nwork + 1, sizeof *e->work);
    e->work_use = calloc((size_t)e->plan->nwork + 1, sizeof *e->work_use);
    if (!e->work || !e->work_use) {
        return dmi_fail(DM_ERR_NOMEM, "no memory to simulate");
    }
    for (int i = 0; i < e->plan->nwork && status == DM_OK; i++) {
        status = dmi_pool_alloc(e->pool, e->plan->work_bytes[i], DMI_OWNER_WORKSPACE, &e->work[i]);
    }
    return status;
}

static void bind_waits(const endpoint *e, const dmi_step *step, const dmi_stamp *base, dmi_stamp *wait)
{
    for (int l = 0; l < DMI_LANES; l++) {
        wait->seq[l] = step->wait[l] ? base->seq[l] + step->wait[l] : 0;
    }
    for (int i = 0; i < step->nref && !e->program->no_hazards; i++) {
        const dmi_ref *ref = &step->ref[i];
        if (ref->kind == DMI_REF_OPERAND) {
            dmi_hazard_wait(&e->earlier[ref->index], ref->mode, wait);
        } else if (ref->kind == DMI_REF_WORK) {
            dmi_stamp_merge(wait, &e->work[ref->index].ready);
        }
    }
}

static void note_use(endpoint *e, const dmi_step *step, uint64_t seq)
{
    for (int i = 0; i < step->nref; i++) {
        const dmi_ref *ref = &step->ref[i];
        if (ref->kind == DMI_REF_OPERAND) {
            dmi_hazard_use(&e->use[ref->index], ref->mode, step->lane, seq);
        } else if (ref->kind == DMI_REF_WORK) {
            e->work_use[ref->index].seq[step->lane] = seq;
        }
    }
}

static void note_step(endpoint *e, int finding, int index, int ref, const char *what)
{
    const dmi_step *step = &e->plan->step[index];
    dmi_sim_note(e->report, finding, "endpoint %d: call %d step %d (%s) %s by reference %d", e->me, e->call,
                 index, dmi_step_name(step->kind), what, ref);
}

typedef struct extent {
    int64_t from, to;
} extent;

static void widen(void *context, int64_t from, int64_t to)
{
    extent *x = context;
    x->from = DMI_MIN(x->from, from);
    x->to = DMI_MAX(x->to, to);
}

/* One reference of a step: allowed, within its memory, and given to the race check. */
static bool check_ref(endpoint *e, int index, int which, const dmi_touch *touch)
{
    const dmi_call *call = &e->program->call[e->call];
    const dmi_ref *ref = &e->plan->step[index].ref[which];
    /* the caller's memory, of unknown size, lies far from everything else, another piece for each call */
    uint64_t base = (UINT64_C(1) << 62) + ((uint64_t)e->call << 45);
    int64_t bytes = INT64_C(1) << 44;
    if (touch->rw == 0) {
        return true;
    }
    if ((touch->rw & DMI_WRITE && !(ref->mode & DMI_WRITE)) ||
        (touch->rw & DMI_READ && !(ref->mode & DMI_READ))) {
        note_step(e, DMI_SIM_MODE, index, which, "touches more than is declared");
    }
    if (ref->kind == DMI_REF_OPERAND) {
        const dmi_allocation *allocation = &e->operand[ref->index]->allocation;
        base = (uint64_t)(uintptr_t)allocation->base;
        bytes = allocation->bytes;
        if (touch->rw & DMI_WRITE && !(operand_of(call, ref->index).mode & DMI_WRITE)) {
            note_step(e, DMI_SIM_MODE, index, which, "writes an operand that is only read");
        }
    } else if (ref->kind == DMI_REF_WORK) {
        base = (uint64_t)(uintptr_t)e->work[ref->index].base;
        bytes = e->work[ref->index].bytes;
    }
    extent x = {INT64_MAX, INT64_MIN};
    dmi_sim_walk(touch, widen, &x);
    if (ref->offset + x.from < 0 || ref->offset + x.to > bytes) {
        note_step(e, DMI_SIM_BOUNDS, index, which, "leaves its memory");
        return true;
    }
    return dmi_race_touch(e->race, which, touch, base + (uint64_t)ref->offset);
}

static bool any_empty(const dmi_call *call)
{
    bool empty = false;
    for (int i = 0; i < operands_of(call); i++) {
        dmi_operand operand = operand_of(call, i);
        for (int d = 0; d < operand.desc.ndim; d++) {
            empty = empty || operand.desc.extent[d] == 0;
        }
    }
    return empty;
}

/* A step that touches nothing has nothing to do: its plan, or the row of its kernel, is wrong. (A single
 * reference may be left alone: the elements of an empty sum, factors of a product whose k is 0.) Users'
 * functions run without elements, too. */
static void check_some(endpoint *e, int index, const dmi_touch *touch)
{
    const dmi_step *step = &e->plan->step[index];
    bool some = step->nref == 0 || step->kind == DMI_STEP(task);
    for (int i = 0; i < step->nref; i++) {
        some = some || touch[i].rw != 0;
    }
    if (!some && !any_empty(&e->program->call[e->call])) {
        dmi_sim_note(e->report, DMI_SIM_MODE, "endpoint %d: call %d step %d (%s) touches nothing", e->me,
                     e->call, index, dmi_step_name(step->kind));
    }
}

static bool add_run_step(endpoint *e, const dmi_step *step, const dmi_stamp *wait)
{
    dmi_run_step r = {.peer = step->peer, .call = (uint16_t)e->call, .kind = step->kind, .bytes = step->bytes};
    for (int l = 0; l < DMI_LANES; l++) {
        r.wait[l] = (uint32_t)wait->seq[l];
    }
    if (!dmi_lane_computes(step->lane)) {
        int ends = e->program->profile->workers + 1;
        r.ordinal = e->transfers[step->lane * ends + step->peer]++;
        r.landing = dmi_sim_landing_hash(step);
    }
    return dmi_run_add(e->run, step->lane, &r);
}

static bool check_steps(endpoint *e, const dmi_call *call)
{
    const dmi_stamp base = e->enqueued;
    for (int i = 0; i < e->plan->nstep; i++) {
        const dmi_step *step = &e->plan->step[i];
        dmi_touch touch[DMI_MAX_REFS];
        dmi_stamp wait;
        bind_waits(e, step, &base, &wait);
        e->enqueued.seq[step->lane]++;
        dmi_stamp at = {{0}};
        at.seq[step->lane] = base.seq[step->lane] + step->ordinal;
        if (!dmi_race_step(e->race, e->call, step, &at, &wait) || (e->run && !add_run_step(e, step, &wait))) {
            return false;
        }
        note_use(e, step, e->enqueued.seq[step->lane]);
        if (step->kind >= DMI_STEP_KINDS) {
            dmi_sim_note(e->report, DMI_SIM_MODE, "endpoint %d: call %d step %d is no kernel of the table",
                         e->me, e->call, i);
            continue;
        }
        dmi_sim_touches(step, call, touch);
        check_some(e, i, touch);
        for (int ref = 0; ref < step->nref; ref++) {
            if (!check_ref(e, i, ref, &touch[ref])) {
                return false;
            }
        }
    }
    return true;
}

static void check_totals(endpoint *e)
{
    const dmi_plan *p = e->plan;
    int64_t bytes[DMI_CHANNEL_LANES] = {0}, messages[DMI_CHANNEL_LANES] = {0}, count[DMI_LANES] = {0};
    int64_t flops = 0, workspace = 0;
    int ends = e->program->profile->workers + 1;
    bool order = true;
    for (int i = 0; i < p->nstep; i++) {
        const dmi_step *s = &p->step[i];
        int kind = s->kind == DMI_STEP_PUSH     ? DMI_LANE_SEND
                   : s->kind == DMI_STEP_EXPECT ? DMI_LANE_RECV
                                                : DMI_LANE_COMPUTE;
        bytes[kind] += s->bytes;
        messages[kind]++;
        flops += s->flops;
        order =
            order && s->lane < DMI_LANES && s->lane % DMI_CHANNEL_LANES == kind &&
            s->ordinal == (uint32_t)++count[s->lane] &&
            (kind == DMI_LANE_COMPUTE || (s->peer >= 0 && s->peer < ends && s->peer != e->me && s->bytes > 0));
    }
    for (int i = 0; i < p->nwork; i++) {
        workspace += p->work_bytes[i];
    }
    if (!order) {
        dmi_sim_note(e->report, DMI_SIM_ORDER,
                     "endpoint %d: call %d: a lane's steps are not numbered 1, 2, ...", e->me, e->call);
    }
    bool lanes = true;
    for (int l = 0; l < DMI_LANES; l++) {
        lanes = lanes && p->lane_steps[l] == count[l];
    }
    if (!lanes || p->bytes_sent != bytes[DMI_LANE_SEND] || p->bytes_received != bytes[DMI_LANE_RECV] ||
        p->messages_sent != messages[DMI_LANE_SEND] || p->messages_received != messages[DMI_LANE_RECV] ||
        p->flops != flops || p->workspace != workspace || p->me != e->me) {
        dmi_sim_note(e->report, DMI_SIM_TOTALS,
                     "endpoint %d: call %d: the plan's counts are not those of its steps", e->me, e->call);
    }
    e->report->steps += p->nstep;
    e->report->bytes += p->bytes_sent;
    e->report->messages += p->messages_sent;
    e->report->workspace = DMI_MAX(e->report->workspace, workspace);
}

/* The call's use becomes what later calls wait for. */
static dm_status end_call(endpoint *e, const dmi_call *call)
{
    dm_status status = DM_OK;
    for (int i = 0; i < operands_of(call); i++) {
        dmi_operand operand = operand_of(call, i);
        dmi_area area;
        dmi_desc_area(&operand.desc, &area);
        dmi_hazards_add(&e->operand[i]->last, &area, &e->use[i]);
    }
    for (int i = 0; i < e->plan->nwork && status == DM_OK; i++) {
        if (e->work[i].base) {
            status = dmi_pool_free(e->pool, &e->work[i], &e->work_use[i]);
        }
    }
    return status;
}

static bool may_take_part(const endpoint *e, const dmi_call *call)
{
    if (call->op == DMI_OP_program) { /* who takes part in one of its calls */
        const dmi_program *p = call->tail;
        bool any = e->me == e->program->profile->workers;
        for (int i = 0; i < p->calls && !any; i++) {
            any = may_take_part(e, &p->call[i]);
        }
        return any;
    }
    bool holds = e->me == e->program->profile->workers || !(dmi_ops[call->op].attributes & DMI_MEMBERS) ||
                 (call->op == DMI_OP_apply && dmi_apply_members(call) >> e->me % 64 & 1);
    for (int i = 0; i < call->noperand; i++) {
        holds = holds || (call->operand[i].mode && call->operand[i].desc.layout->members >> e->me % 64 & 1);
    }
    return holds;
}

static dm_status one_call(endpoint *e, int which)
{
    const dmi_sim_program *program = e->program;
    const dmi_call *call = &program->call[which];
    dmi_plan *plan = NULL;
    double begin = (double)dmi_now_ns();
    dmi_plan_maker *make = program->make ? program->make : dmi_plan_make;
    dm_status status = make(call, program->profile, e->me, &plan);
    e->report->plan_s += ((double)dmi_now_ns() - begin) / 1e9;
    if (status != DM_OK) {
        return status;
    }
    if (program->change) {
        program->change(program->context, e->me, which, plan);
    }
    e->call = which;
    e->plan = plan;
    if (plan->nstep > 0 && !may_take_part(e, call)) {
        dmi_sim_note(e->report, DMI_SIM_TOTALS, "endpoint %d: call %d: it holds nothing, but has steps", e->me,
                     which);
    }
    check_totals(e);
    status = take_memory(e, call);
    if (status == DM_OK && !check_steps(e, call)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory to simulate endpoint %d", e->me);
    }
    if (status == DM_OK) {
        status = end_call(e, call);
    }
    free(e->work);
    free(e->work_use);
    dmi_plan_release(plan);
    return status;
}

dm_status dmi_sim_endpoint(const dmi_sim_program *program, int me, dmi_run_end *run, dmi_sim_report *report)
{
    uint64_t address = UINT64_C(1) << 20;
    dmi_pool_config config = {.ops = {.context = &address, .get = slab_get, .give_back = slab_give_back},
                              .slab_bytes = 1 << 20,
                              .align = 256};
    endpoint e = {.program = program, .report = report, .me = me, .run = run};
    size_t ends = (size_t)program->profile->workers + 1, most = 1, all = 1;
    for (int i = 0; i < program->calls; i++) {
        size_t operands = (size_t)operands_of(&program->call[i]);
        most = DMI_MAX(most, operands);
        all += operands;
    }
    e.memory = calloc(all, sizeof *e.memory);
    e.operand = calloc(most, sizeof(memory *));
    e.use = calloc(most, sizeof *e.use);
    e.earlier = calloc(most, sizeof *e.earlier);
    e.transfers = calloc(DMI_LANES * ends, sizeof *e.transfers);
    e.race = dmi_race_new(me, report);
    bool room = e.memory && e.operand && e.use && e.earlier && e.transfers && e.race;
    dm_status status = room ? dmi_pool_create(&config, &e.pool)
                            : dmi_fail(DM_ERR_NOMEM, "no memory to simulate endpoint %d", me);
    for (int i = 0; i < program->calls && status == DM_OK; i++) {
        status = one_call(&e, i);
    }
    if (status == DM_OK && !dmi_race_check(e.race)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory to simulate endpoint %d", me);
    }
    dmi_pool_destroy(e.pool);
    dmi_race_free(e.race);
    free(e.transfers);
    free(e.operand);
    free(e.use);
    free(e.earlier);
    for (int i = 0; i < e.memories; i++) {
        dmi_hazards_free(&e.memory[i].last);
    }
    free(e.memory);
    return status;
}
