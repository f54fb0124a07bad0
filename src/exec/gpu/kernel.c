/* Steps of the compute lanes on a GPU: kernels and their run tables. */
#include "exec/gpu/host_work.h"

#include <stdlib.h>
#include <string.h>

/* --- run tables --- */

static void free_tables(dmi_plan *plan)
{
    for (int i = 0; i < plan->nstep; i++) {
        if (plan->device[i].memory.base) {
            (void)!dmi_pool_free(plan->device_pool, &plan->device[i].memory, NULL);
        }
    }
    free(plan->device);
    plan->device = NULL;
}

static bool make_tables(dmi_engine *e, dmi_step_tables *t, const dmi_copy *c, int64_t runs)
{
    dmi_gpu *g = e->gpu;
    int64_t bytes = runs * (int64_t)sizeof(dmi_run), n = 0;
    dmi_run *host = malloc((size_t)bytes);
    if (!host || dmi_pool_alloc(g->tables, bytes, DMI_OWNER_STAGING, &t->memory) != DM_OK) {
        free(host);
        memset(&t->memory, 0, sizeof t->memory);
        return false;
    }
    dmi_run *device = t->memory.base;
    for (int d = 0; d < c->ndim; d++) {
        if (c->nrun[d] > 1) {
            memcpy(host + n, c->run[d], (size_t)c->nrun[d] * sizeof *host);
            t->run[d] = device + n;
            n += c->nrun[d];
        }
    }
    bool ok = dmi_cu_copy(g->stream[STREAM_TABLES], device, host, bytes) == DM_OK &&
              dmi_cu_stream_wait(g->stream[STREAM_TABLES]) == DM_OK;
    free(host);
    return ok;
}

const dmi_run *const *dmi_gpu_runs(dmi_engine *e, const dmi_queued_step *w, const dmi_copy *c)
{
    dmi_plan *plan = w->inst->plan;
    int64_t runs = 0;
    for (int d = 0; d < c->ndim; d++) {
        runs += c->nrun[d] > 1 ? c->nrun[d] : 0;
    }
    if (runs == 0) {
        return NULL;
    }
    if (!plan->device) { /* made when a step is first issued, kept with its plan */
        plan->device = calloc((size_t)plan->nstep, sizeof *plan->device);
        plan->device_pool = e->gpu->tables;
        plan->device_free = free_tables;
    }
    dmi_step_tables *t = plan->device ? &plan->device[w->step - plan->step] : NULL;
    return t && (t->memory.base || make_tables(e, t, c, runs)) ? t->run : NULL;
}

/* --- any step --- */

bool dmi_gpu_has_memory(const dmi_queued_step *w)
{
    for (int i = 0; i < w->step->nref; i++) {
        if (!dmi_ref_pointer(w->inst, &w->step->ref[i])) {
            return false;
        }
    }
    return true;
}

/* --- products that wait themselves --- */

/* A fused product starts behind all kernels issued so far on any lane. It leaves some multiprocessors free, but
 * they are too few for a kernel in clusters or for a second fused product. Everything that it waits for was
 * issued before it, so it depends on nothing that comes later. */
static dm_status fused_step(dmi_engine *e, int lane, dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    const dmi_fused_gemm *d = w->step->desc;
    dmi_arrival arrival[DMI_FUSED_MOST];
    dmi_stamp last = {{0}};
    for (int i = 0; i < d->chunks; i++) {
        int peer = d->chunk[i].peer;
        uint64_t ordinal = w->inst->before[peer] + d->chunk[i].nth;
        bool here = e->peer[peer].channel[0].retired >= ordinal;
        arrival[i] = (dmi_arrival){.counter = here ? NULL : &g->arrived[peer], .value = dmi_gpu_value(ordinal)};
    }
    for (int i = 0; i < e->lanes; i++) {
        last.seq[i] = dmi_lane_computes(i) ? g->issued[i] : 0;
    }
    dm_status status = dmi_gpu_after(e, lane, &last);
    status = status == DM_OK ? dmi_gpu_work_begin(e, lane) : status;
    if (status == DM_OK) {
        dmi_kernel_call call;
        dmi_step_call(e, w, g->queue[lane], &call);
        call.arrival = arrival;
        status = e->config.backend->run(DMI_KERNEL_fused, &call);
        status = dmi_gpu_work_end(e, lane, w, dmi_gpu_queued(g->queue[lane], status));
    }
    return status;
}

/* The word of a step in flight, 0 now. The device writes it, and the host reads it when the step is done. */
static uint32_t *status_word(dmi_engine *e, int lane)
{
    uint32_t *word =
        e->gpu->status + (size_t)lane * DMI_LANE_ROOM + (e->gpu->issued[lane] & (DMI_LANE_ROOM - 1));
    *word = 0;
    return word;
}

void dmi_gpu_check_status(dmi_engine *e, const dmi_queued_step *w)
{
    uint32_t failure = w->status ? *(volatile uint32_t *)w->status : 0;
    if (failure && !atomic_load(&w->inst->failed)) {
        dmi_gpu_failed(e, w, dmi_step_failed(w, failure));
    }
}

dm_status dmi_gpu_put_kernel(dmi_engine *e, int lane, dmi_queue *queue, dmi_queued_step *w)
{
    if (w->step->kind == DMI_STEP_EXCHANGE) {
        return dmi_gpu_put_exchange(e, lane, w);
    }
    w->status = dmi_kernel_may_fail(w->step->kind - DMI_STEP_KERNEL) ? status_word(e, lane) : NULL;
    queue->device_run =
        dmi_step_kernel(w->step)->traits & DMI_TRAIT_RUNS ? dmi_gpu_runs(e, w, w->step->desc) : NULL;
    return dmi_gpu_queued(queue, dmi_execute(e, queue, w));
}

/* Tests plant faults: "endless:N" makes the N-th kernel of this worker's GPU one that never ends. Nobody raises the counter of
 * arrivals from the worker itself. */
static dm_status plant_endless(dmi_engine *e, int lane)
{
    const char *fault = e->config.fault;
    if (!fault || strncmp(fault, "endless:", 8) != 0 ||
        atomic_fetch_add(&e->kernel_steps, 1) + 1 != strtoll(fault + 8, NULL, 10)) {
        return DM_OK;
    }
    return dmi_gpu_wait(e, lane, &e->gpu->arrived[e->config.me], 1);
}

/* Has its kernel this trait? */
static bool is(const dmi_queued_step *w, unsigned trait)
{
    const dmi_kernel *kernel = dmi_step_kernel(w->step);
    return kernel && kernel->traits & trait;
}

static dm_status kernel_step(dmi_engine *e, int lane, dmi_queued_step *w)
{
    if (is(w, DMI_TRAIT_RUNS)) { /* a capture could not make them */
        (void)dmi_gpu_runs(e, w, w->step->desc);
    }
    dm_status status = plant_endless(e, lane);
    status = status == DM_OK ? dmi_gpu_work_begin(e, lane) : status;
    return status == DM_OK ? dmi_gpu_work_end(e, lane, w, dmi_gpu_put_kernel(e, lane, e->gpu->queue[lane], w))
                           : status;
}

static dm_status execute(dmi_engine *e, int lane, dmi_queued_step *w)
{
    e->gpu->queue[lane]->device_run = NULL;
    return is(w, DMI_TRAIT_WAITS) ? fused_step(e, lane, w) : kernel_step(e, lane, w);
}

/* Also where its command has failed, for peers wait for it. */
static void exchange_step(dmi_engine *e, int lane, dmi_queued_step *w)
{
    dm_status status = dmi_gpu_after(e, lane, &w->wait);
    int64_t pause_ns = 0;
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
    dmi_gpu_time_begin(e, lane, w);
    if (status == DM_OK) {
        do {
            status = dmi_gpu_put_exchange(e, lane, w);
        } while (dmi_gpu_again(e, status, &pause_ns));
    }
    dmi_gpu_time_end(e, lane, w);
    dmi_gpu_failed(e, w, status);
}

bool dmi_gpu_issue_compute(dmi_engine *e, int lane, dmi_queued_step *w)
{
    if (is(w, DMI_TRAIT_HOST)) {
        return w->step->kind == DMI_STEP(task) ? dmi_gpu_issue_task(e, lane, w) : dmi_gpu_issue_file(e, lane, w);
    }
    if (w->arrivals > e->gpu->issued[DMI_LANE_RECV]) { /* they must be in flight */
        return false;
    }
    /* It leaves no room for other kernels, so a reduction before it that has yet to add up would end after it. */
    if (is(w, DMI_TRAIT_WAITS) && e->gpu->issued[DMI_LANE_COMPUTE_1] < w->inst->base.seq[DMI_LANE_COMPUTE_1]) {
        return false;
    }
    if (w->step->kind == DMI_STEP_EXCHANGE) {
        exchange_step(e, lane, w);
        return true;
    }
    dm_status status = dmi_gpu_after(e, lane, &w->wait);
    bool works = !atomic_load(&w->inst->failed) && dmi_gpu_has_memory(w);
    if (status == DM_OK && works) {
        atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
        dmi_gpu_time_begin(e, lane, w);
        status = execute(e, lane, w);
        dmi_gpu_time_end(e, lane, w);
    }
    dmi_gpu_failed(e, w, status);
    return true;
}
