/* Kernels of a program as graphs. The compute steps of its plan fall into *runs*: within a run no step waits
 * for a transfer of this call of the program, or of a few calls before. A run whose memory is where it was the
 * time before is captured, and from then on launched as a whole. A run ends with a step for which channel 1
 * waits: transfers there begin beside the run that follows.
 *
 * A launch waits for what any step of the run waits for outside of it: work of earlier commands, transfers that
 * the lane has waited for before, those that the first step waits for, and those of calls at least RECENT
 * before its own. None of these waits for this run, so nothing can block (plan/phases.c).
 *
 * In the plan of a program that runs on its device alone (plan/on_device.h) transfers are steps of the graph.
 */
#include "exec/gpu/parts.h"

#include <stdlib.h>
#include <string.h>

/* RECENT: calls; a run does not wait for their transfers, which may take their time. A program may come on any
 * of a few lanes, and with other memory: room is for TIMES as many graphs as it has runs, but for at most
 * MOST_GRAPHS. */
enum { LEAST_STEPS = 4, RECENT = 8, GRAPHS = 64, TIMES = 4, MOST_GRAPHS = 2048, OFTEN = 32 };

typedef struct kept_graph {
    uint32_t first;   /* ordinal of the run's first step; 0: nothing here */
    int lane;         /* whose queue its kernels use: it has workspace of the library */
    void **memory;    /* [noperand + nwork] where operands and workspaces were */
    dmi_graph *graph; /* NULL: seen once */
    int launches;     /* up to OFTEN: then it is captured once more, with elementwise programs compiled */
    bool refused;     /* it cannot be captured */
} kept_graph;

struct dmi_plan_graphs {
    uint32_t *length; /* [ordinal] of the run that begins with this compute step; 0: none does */
    bool *warm; /* [ordinal] what this step calls is loaded; of steps that are in no graph, in a section */
    int next;         /* the one that gives way */
    int room;
    kept_graph *kept; /* [room] */
};

static void drop(kept_graph *k)
{
    dmi_cu_graph_destroy(k->graph);
    free(k->memory);
    *k = (kept_graph){0};
}

static void free_graphs(struct dmi_plan_graphs *g)
{
    for (int i = 0; i < g->room; i++) {
        drop(&g->kept[i]);
    }
    free(g->kept);
    free(g->length);
    free(g->warm);
    free(g);
}

static bool can_be_part(const dmi_step *step)
{
    if (step->kind == DMI_STEP_EXCHANGE) {
        return true;
    }
    return !(dmi_step_kernel(step)->traits & (DMI_TRAIT_HOST | DMI_TRAIT_WAITS)) && !step->advances &&
           !dmi_kernel_may_fail(step->kind - DMI_STEP_KERNEL); /* its status has a place of its own in every run */
}

/* ends: [ordinal] does channel 1 wait for this compute step? */
static void find_ends(const dmi_plan *plan, bool *ends)
{
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        if (step->lane == DMI_LANE_SEND_1 || step->lane == DMI_LANE_COMPUTE_1) {
            ends[step->wait[DMI_LANE_COMPUTE]] = true;
        }
    }
}

typedef uint32_t lane_counts[DMI_LANES];

/* Steps that a run may wait for: those that the lane has waited for before it, .. */
typedef struct allowed {
    lane_counts waited, run;
    lane_counts before[RECENT + 1]; /* [calls % (RECENT + 1)] steps before each of the last calls */
    lane_counts now;
    int calls;
} allowed;

/* The next step of the plan; last_call: that of the one before it. */
static void count_step(allowed *a, const dmi_step *step, int last_call)
{
    if (step->call != last_call || a->calls == 0) {
        memcpy(a->before[++a->calls % (RECENT + 1)], a->now, sizeof a->now);
    }
    a->now[step->lane] = step->ordinal;
}

/* .. those of its first step, and those of calls long before. */
static void allow(allowed *a, const dmi_step *first)
{
    const uint32_t *old = a->before[(a->calls + 1) % (RECENT + 1)];
    for (int l = 0; l < DMI_LANES; l++) {
        a->run[l] = DMI_MAX(a->waited[l], first->wait[l]);
        a->run[l] = DMI_MAX(a->run[l], a->calls > RECENT ? old[l] : 0);
    }
}

/* Returns how many runs are long enough for a graph. */
static int find_runs(const dmi_plan *plan, const bool *ends, uint32_t *length)
{
    const dmi_step *first = NULL;
    allowed a = {.calls = 0};
    int runs = 0;
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        count_step(&a, step, i > 0 ? plan->step[i - 1].call : 0);
        if (step->lane != DMI_LANE_COMPUTE) {
            continue;
        }
        bool joins = first && can_be_part(step);
        for (int l = 1; l < DMI_LANES; l++) {
            joins = joins && step->wait[l] <= a.run[l];
        }
        const dmi_on_device *d = plan->on_device;
        joins = joins && !(d && (step->ordinal == d->first || step->ordinal == d->last + 1));
        if (!joins || (length[first->ordinal] >= LEAST_STEPS && ends[step->ordinal - 1])) {
            first = can_be_part(step) ? step : NULL;
            allow(&a, step);
        }
        for (int l = 0; l < DMI_LANES; l++) {
            a.waited[l] = DMI_MAX(a.waited[l], step->wait[l]);
        }
        if (first) {
            runs += ++length[first->ordinal] == LEAST_STEPS;
        }
    }
    return runs;
}

static struct dmi_plan_graphs *graphs_of(dmi_plan *plan)
{
    if (!plan->graphs) {
        size_t steps = (size_t)plan->lane_steps[DMI_LANE_COMPUTE] + 1;
        struct dmi_plan_graphs *g = calloc(1, sizeof *g);
        uint32_t *length = calloc(steps, sizeof *length);
        bool *ends = calloc(steps, sizeof *ends), *warm = calloc(steps, sizeof *warm);
        int runs = 0;
        const bool room_for_ends = ends != NULL;
        if (length && ends) {
            find_ends(plan, ends);
            runs = find_runs(plan, ends, length);
        }
        free(ends);
        int room = DMI_MIN(DMI_MAX(TIMES * runs, GRAPHS), MOST_GRAPHS);
        kept_graph *kept = calloc((size_t)room, sizeof *kept);
        if (!g || !length || !room_for_ends || !warm || !kept) {
            free(g);
            free(length);
            free(warm);
            free(kept);
            return NULL;
        }
        g->length = length;
        g->warm = warm;
        g->kept = kept;
        g->room = room;
        plan->graphs = g;
        plan->graphs_free = free_graphs;
    }
    return plan->graphs;
}

static void *memory_at(const dmi_instance *inst, int i)
{
    int operands = inst->plan->noperand;
    return i < operands ? inst->memory[i]->allocation.base : inst->work[i - operands].base;
}

static bool same_memory(const kept_graph *k, const dmi_instance *inst)
{
    int count = inst->plan->noperand + inst->plan->nwork;
    for (int i = 0; i < count; i++) {
        if (k->memory[i] != memory_at(inst, i)) {
            return false;
        }
    }
    return true;
}

static kept_graph *find(struct dmi_plan_graphs *g, uint32_t first, int lane, const dmi_instance *inst)
{
    for (int i = 0; i < g->room; i++) {
        if (g->kept[i].first == first && g->kept[i].lane == lane && same_memory(&g->kept[i], inst)) {
            return &g->kept[i];
        }
    }
    return NULL;
}

/* The next time that it comes with this memory it is captured. */
static void remember(struct dmi_plan_graphs *g, uint32_t first, int lane, const dmi_instance *inst)
{
    int count = inst->plan->noperand + inst->plan->nwork;
    kept_graph *k = &g->kept[g->next];
    void **memory = malloc(((size_t)count + 1) * sizeof *memory);
    if (memory) {
        for (int i = 0; i < count; i++) {
            memory[i] = memory_at(inst, i);
        }
        drop(k);
        *k = (kept_graph){.first = first, .lane = lane, .memory = memory};
        g->next = (g->next + 1) % g->room;
    }
}

dmi_stamp dmi_gpu_waits_of(const dmi_engine *e, int lane, uint64_t at, uint32_t length)
{
    dmi_stamp wait = {{0}};
    for (uint32_t i = 0; i < length; i++) {
        dmi_stamp_merge(&wait, &dmi_lane_slot(&e->lane[lane], at + i)->wait);
    }
    wait.seq[lane] = DMI_MIN(wait.seq[lane], at);
    return wait;
}

/* Places of the steps in the graph, to be freed; NULL: all are in one chain. */
static dmi_gpu_place *places_of(dmi_engine *e, int lane, uint64_t at, uint32_t length)
{
    bool aside = false;
    dmi_gpu_work *work = e->gpu->aside[lane] ? malloc(length * sizeof *work) : NULL;
    dmi_gpu_place *place = work ? malloc(length * sizeof *place) : NULL;
    if (place) {
        for (uint32_t i = 0; i < length; i++) {
            dmi_gpu_work_of(dmi_lane_slot(&e->lane[lane], at + i), &work[i]);
        }
        dmi_gpu_branches(work, (int)length, place);
        for (uint32_t i = 0; i < length; i++) {
            aside = aside || place[i].aside;
        }
    }
    free(work);
    if (!aside) {
        free(place);
    }
    return aside ? place : NULL;
}

/* The steps of a graph while it is captured. */
typedef struct branches {
    dmi_queue *main, *aside;
    const dmi_gpu_place *place; /* [steps] NULL: all are in one chain */
    dmi_event *end;             /* [steps] behind those aside; NULL: not made yet */
    uint32_t last, waited;      /* the last step aside, from 1, and up to which one the main chain has waited */
} branches;

static dm_status mark(dmi_event *end, dmi_queue *queue)
{
    dm_status status = dmi_cu_event_create(false, end);
    return status == DM_OK ? dmi_cu_capture_mark(*end, queue->stream) : status;
}

/* Step i, aside: it follows all that the main chain has. */
static dm_status put_aside(dmi_engine *e, int lane, dmi_queued_step *w, uint32_t i, branches *b)
{
    dmi_event here = NULL;
    dm_status status = mark(&here, b->main);
    status = status == DM_OK ? dmi_cu_capture_after(b->aside->stream, here) : status;
    status = status == DM_OK ? dmi_gpu_put_kernel(e, lane, b->aside, w) : status;
    status = status == DM_OK ? mark(&b->end[i], b->aside) : status;
    dmi_cu_event_destroy(here);
    b->last = i + 1;
    return status;
}

/* The main chain waits for step `after` aside; 0: for none. */
static dm_status wait_for(branches *b, uint32_t after)
{
    if (after == 0) {
        return DM_OK;
    }
    b->waited = after;
    return dmi_cu_capture_after(b->main->stream, b->end[after - 1]);
}

static dm_status put_main(dmi_engine *e, int lane, dmi_queued_step *w, uint32_t after, branches *b)
{
    dm_status status = wait_for(b, after);
    /* Nothing but kernels follow one another in a graph. One that begins early holds its room on the GPU while
     * it waits, which kernels aside need; and it waits for one kernel alone. */
    b->main->overlaps = after == 0 && b->last <= b->waited;
    status = status == DM_OK ? dmi_gpu_put_kernel(e, lane, b->main, w) : status;
    b->main->overlaps = false;
    return status;
}

static dm_status put_steps(dmi_engine *e, int lane, uint64_t at, uint32_t length, branches *b)
{
    dm_status status = DM_OK;
    for (uint32_t i = 0; i < length && status == DM_OK; i++) {
        dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], at + i);
        const dmi_gpu_place place = b->place ? b->place[i] : (dmi_gpu_place){0};
        status = place.aside ? put_aside(e, lane, w, i, b) : put_main(e, lane, w, (uint32_t)place.after, b);
    }
    return status == DM_OK ? wait_for(b, b->last > b->waited ? b->last : 0) : status;
}

/* *graph: NULL where that fails */
static dm_status capture_steps(dmi_engine *e, int lane, uint64_t at, uint32_t length,
                               const dmi_gpu_place *place, dmi_graph **graph)
{
    dmi_gpu *g = e->gpu;
    branches b = {.main = g->queue[lane], .aside = g->aside[lane], .place = place};
    *graph = NULL;
    b.end = calloc(length, sizeof *b.end);
    dm_status status = b.end ? dmi_cu_capture_begin(g->stream[lane])
                             : dmi_fail(DM_ERR_NOMEM, "no memory for a graph's branches");
    if (status == DM_OK) {
        dm_status put = put_steps(e, lane, at, length, &b), end = dmi_cu_capture_end(g->stream[lane], graph);
        status = put == DM_OK ? end : put;
    }
    for (uint32_t i = 0; b.end && i < length; i++) {
        dmi_cu_event_destroy(b.end[i]);
    }
    free(b.end);
    if (status != DM_OK) {
        dmi_cu_graph_destroy(*graph);
        *graph = NULL;
    }
    return status;
}

/* Kernels that come again and again are worth compiling. */
static void set_repeats(dmi_gpu *g, int lane, bool repeats)
{
    g->queue[lane]->repeats = repeats;
    if (g->aside[lane]) {
        g->aside[lane]->repeats = repeats;
    }
}

static void capture(dmi_engine *e, int lane, uint64_t at, uint32_t length, kept_graph *k)
{
    dmi_gpu *g = e->gpu;
    for (uint32_t i = 0; i < length; i++) { /* a capture could not make run tables */
        dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], at + i);
        const dmi_kernel *kernel = dmi_step_kernel(w->step);
        if (kernel && kernel->traits & DMI_TRAIT_RUNS) {
            (void)dmi_gpu_runs(e, w, w->step->desc);
        }
    }
    dmi_gpu_place *place = places_of(e, lane, at, length);
    set_repeats(g, lane, k->launches == OFTEN);
    dm_status status = capture_steps(e, lane, at, length, place, &k->graph);
    if (status != DM_OK && place) {
        dmi_log(DMI_LOG_INFO, "kernels of a program's graph run one after the other: %s", dmi_error_text());
        status = capture_steps(e, lane, at, length, NULL, &k->graph);
    }
    set_repeats(g, lane, false);
    free(place);
    k->refused = status != DM_OK;
    if (k->refused) {
        dmi_log(DMI_LOG_INFO, "a program's kernels run one by one: %s", dmi_error_text());
    }
}

/* May the run be a graph now? */
static bool may_be_graph(dmi_engine *e, int lane, const dmi_instance *inst, uint64_t at, uint32_t length)
{
    if (length < LEAST_STEPS || e->timed || e->config.capture || e->config.fault ||
        atomic_load(&inst->failed)) {
        return false;
    }
    for (uint32_t i = 0; i < length; i++) {
        const dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], at + i);
        if (w->step->kind != DMI_STEP_EXCHANGE && !dmi_gpu_has_memory(w)) {
            return false;
        }
    }
    return true;
}

/* After so many launches it is captured once more. */
static void make_graph(dmi_engine *e, int lane, uint64_t at, uint32_t length, kept_graph *k)
{
    if (k->launches < OFTEN && ++k->launches == OFTEN) {
        dmi_cu_graph_destroy(k->graph);
        k->graph = NULL;
    }
    if (!k->graph) {
        capture(e, lane, at, length, k);
    }
}

uint32_t dmi_gpu_run_length(const dmi_queued_step *w)
{
    struct dmi_plan_graphs *g = graphs_of(w->inst->plan);
    return g && g->length[w->step->ordinal] > 0 ? g->length[w->step->ordinal] : 1;
}

/* The step is captured and thrown away: what it calls is compiled and loaded then. */
static void warm_up(dmi_engine *e, int lane, dmi_queued_step *w)
{
    struct dmi_plan_graphs *g = graphs_of(w->inst->plan);
    kept_graph k = {0};
    bool works =
        g && w->step->kind != DMI_STEP_EXCHANGE && !atomic_load(&w->inst->failed) && dmi_gpu_has_memory(w);
    if (works && !g->warm[w->step->ordinal]) {
        uint64_t at = e->gpu->issued[lane];
        while (dmi_lane_slot(&e->lane[lane], at) != w) {
            at++;
        }
        g->warm[w->step->ordinal] = true;
        capture(e, lane, at, 1, &k);
        dmi_cu_graph_destroy(k.graph);
    }
}

void dmi_gpu_prepare_run(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at)
{
    struct dmi_plan_graphs *g = graphs_of(w->inst->plan);
    uint32_t length = dmi_gpu_run_length(w);
    if (g && may_be_graph(e, lane, w->inst, at, length)) {
        kept_graph *k = find(g, w->step->ordinal, lane, w->inst);
        if (!k) {
            remember(g, w->step->ordinal, lane, w->inst);
            k = find(g, w->step->ordinal, lane, w->inst);
        }
        if (k && !k->refused) {
            dmi_graph *before = k->graph;
            make_graph(e, lane, at, length, k);
            if (k->graph && k->graph != before &&
                dmi_cu_graph_upload(k->graph, e->gpu->stream[lane]) != DM_OK) {
                dmi_log(DMI_LOG_INFO, "%s", dmi_error_text());
            }
        }
        if (k && k->graph) {
            return;
        }
    }
    for (uint32_t i = 0; i < length; i++) {
        warm_up(e, lane, dmi_lane_slot(&e->lane[lane], at + i));
    }
}

int dmi_gpu_launch_run(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at)
{
    struct dmi_plan_graphs *g = graphs_of(w->inst->plan);
    uint32_t length = dmi_gpu_run_length(w);
    kept_graph *k =
        g && may_be_graph(e, lane, w->inst, at, length) ? find(g, w->step->ordinal, lane, w->inst) : NULL;
    if (!k || !k->graph) {
        return 0;
    }
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
    if (dmi_cu_graph_launch(k->graph, e->gpu->stream[lane]) != DM_OK) {
        dmi_log(DMI_LOG_INFO, "a program's kernels run one by one: %s", dmi_error_text());
        return 0;
    }
    return (int)length;
}

int dmi_gpu_issue_graph(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end)
{
    dmi_instance *inst = w->inst;
    struct dmi_plan_graphs *g = graphs_of(inst->plan);
    uint32_t length = g ? g->length[w->step->ordinal] : 0;
    if (at + length > end || !may_be_graph(e, lane, inst, at, length)) {
        return 0;
    }
    kept_graph *k = find(g, w->step->ordinal, lane, inst);
    if (!k) {
        remember(g, w->step->ordinal, lane, inst);
        return 0;
    }
    if (k->refused) {
        return 0;
    }
    dmi_stamp wait = dmi_gpu_waits_of(e, lane, at, length);
    if (!dmi_gpu_issued(e, &wait)) {
        return -1;
    }
    make_graph(e, lane, at, length, k);
    if (!k->graph) {
        return 0;
    }
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
    dm_status status = dmi_gpu_after(e, lane, &wait);
    status = status == DM_OK ? dmi_cu_graph_launch(k->graph, e->gpu->stream[lane]) : status;
    dmi_gpu_failed(e, w, status);
    return (int)length;
}
