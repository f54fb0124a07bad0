/* Kernels of a program as graphs. The compute steps of its plan fall into *runs*: within a run no step waits
 * for a transfer that the first step does not wait for. A run whose memory is where it was the time before is
 * captured, and from then on launched as a whole.
 *
 * A launch waits for what any step of the run waits for outside of it. That is work of earlier commands, or the
 * transfers of this one that its first step waits for. None of these waits for this run, so nothing can block.
 */
#include "exec/gpu/parts.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_STEPS = 4, GRAPHS = 64, OFTEN = 32 };

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
    int next;         /* the one that gives way */
    kept_graph kept[GRAPHS];
};

static void drop(kept_graph *k)
{
    dmi_cu_graph_destroy(k->graph);
    free(k->memory);
    *k = (kept_graph){0};
}

static void free_graphs(struct dmi_plan_graphs *g)
{
    for (int i = 0; i < GRAPHS; i++) {
        drop(&g->kept[i]);
    }
    free(g->length);
    free(g);
}

static bool can_be_part(const dmi_step *step)
{
    return !(dmi_step_kernel(step)->traits & (DMI_TRAIT_HOST | DMI_TRAIT_WAITS)) && !step->advances &&
           !dmi_kernel_may_fail(step->kind - DMI_STEP_KERNEL); /* its status has a place of its own in every run */
}

static void find_runs(const dmi_plan *plan, uint32_t *length)
{
    const dmi_step *first = NULL;
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        if (step->lane != DMI_LANE_COMPUTE) {
            continue;
        }
        bool joins = first && can_be_part(step);
        for (int l = 1; l < DMI_LANES; l++) {
            joins = joins && step->wait[l] <= first->wait[l];
        }
        if (!joins) {
            first = can_be_part(step) ? step : NULL;
        }
        if (first) {
            length[first->ordinal]++;
        }
    }
}

static struct dmi_plan_graphs *graphs_of(dmi_plan *plan)
{
    if (!plan->graphs) {
        struct dmi_plan_graphs *g = calloc(1, sizeof *g);
        uint32_t *length = calloc((size_t)plan->lane_steps[DMI_LANE_COMPUTE] + 1, sizeof *length);
        if (!g || !length) {
            free(g);
            free(length);
            return NULL;
        }
        g->length = length;
        find_runs(plan, g->length);
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
    for (int i = 0; i < GRAPHS; i++) {
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
        g->next = (g->next + 1) % GRAPHS;
    }
}

/* What the run waits for, but for its own steps. */
static dmi_stamp waits_of(const dmi_engine *e, int lane, uint64_t at, uint32_t length)
{
    dmi_stamp wait = {{0}};
    for (uint32_t i = 0; i < length; i++) {
        dmi_stamp_merge(&wait, &dmi_lane_slot(&e->lane[lane], at + i)->wait);
    }
    wait.seq[lane] = DMI_MIN(wait.seq[lane], at);
    return wait;
}

static void capture(dmi_engine *e, int lane, uint64_t at, uint32_t length, kept_graph *k)
{
    dmi_gpu *g = e->gpu;
    for (uint32_t i = 0; i < length; i++) { /* a capture could not make run tables */
        dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], at + i);
        if (dmi_step_kernel(w->step)->traits & DMI_TRAIT_RUNS) {
            (void)dmi_gpu_runs(e, w, w->step->desc);
        }
    }
    dm_status status = dmi_cu_capture_begin(g->stream[lane]);
    bool begun = status == DM_OK;
    g->queue[lane]->overlaps = true; /* nothing but kernels follow one another in a graph */
    g->queue[lane]->repeats = k->launches == OFTEN;
    for (uint32_t i = 0; i < length && status == DM_OK; i++) {
        status = dmi_gpu_put_kernel(e, lane, dmi_lane_slot(&e->lane[lane], at + i));
    }
    g->queue[lane]->overlaps = g->queue[lane]->repeats = false;
    if (begun) {
        dm_status end = dmi_cu_capture_end(g->stream[lane], &k->graph);
        status = status == DM_OK ? end : status;
    }
    k->refused = status != DM_OK;
    if (k->refused) {
        dmi_cu_graph_destroy(k->graph);
        k->graph = NULL;
        dmi_log(DMI_LOG_INFO, "a program's kernels run one by one: %s", dmi_error_text());
    }
}

int dmi_gpu_issue_graph(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end)
{
    dmi_instance *inst = w->inst;
    struct dmi_plan_graphs *g = graphs_of(inst->plan);
    uint32_t length = g ? g->length[w->step->ordinal] : 0;
    if (length < LEAST_STEPS || at + length > end || e->timed || e->config.capture || e->config.fault ||
        atomic_load(&inst->failed)) {
        return 0;
    }
    for (uint32_t i = 0; i < length; i++) {
        if (!dmi_gpu_has_memory(dmi_lane_slot(&e->lane[lane], at + i))) {
            return 0;
        }
    }
    kept_graph *k = find(g, w->step->ordinal, lane, inst);
    if (!k) {
        remember(g, w->step->ordinal, lane, inst);
        return 0;
    }
    if (k->refused) {
        return 0;
    }
    dmi_stamp wait = waits_of(e, lane, at, length);
    if (!dmi_gpu_issued(e, &wait)) {
        return -1;
    }
    if (k->launches < OFTEN && ++k->launches == OFTEN) {
        dmi_cu_graph_destroy(k->graph);
        k->graph = NULL;
    }
    if (!k->graph) {
        capture(e, lane, at, length, k);
    }
    if (!k->graph) {
        return 0;
    }
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
    dm_status status = dmi_gpu_after(e, lane, &wait);
    status = status == DM_OK ? dmi_cu_graph_launch(k->graph, e->gpu->stream[lane]) : status;
    dmi_gpu_failed(e, w, status);
    return (int)length;
}
