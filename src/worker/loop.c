/* The communication thread of a worker: command ring, lanes, replies, and waits that do not burn the core. */
#include "base/fault.h"
#include "base/process.h"
#include "comm/frames.h"
#include "exec/trace.h"
#include "ops/ops.h"
#include "worker/worker.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_PER_LOOK = 64, COMMANDS_IN_FLIGHT = 4096, LONGEST_POLL_NS = 20000000 };

static void unref_operands(const dmi_instance *inst)
{
    for (int i = 0; i < inst->noperand; i++) {
        dmi_memory_unref(inst->memory[i]);
    }
}

static void retired(void *context, dmi_instance *inst)
{
    dmi_worker *w = context;
    w->in_flight--;
    dmi_group_retired(inst);
    if (inst->program && atomic_load(&inst->failed)) {
        w->run.failed = inst->command;
    }
    if (inst->op == DMI_OP_until) {
        dmi_run_decided(w, inst);
    }
    unref_operands(inst);
}

/* Keep forwarding: commands here may wait for hosts that have not received theirs. */
static int meanwhile(void *context)
{
    dmi_worker *w = context;
    if (atomic_load_explicit(&w->hub.ring->closed, memory_order_relaxed)) {
        return -1;
    }
    return w->service && w->service(w);
}

dm_status dmi_worker_start(dmi_worker *w, int me, const dmi_config *config, const dmi_profile *profile,
                           const dmi_hub *hub, const dmi_slab_ops *slabs, const dmi_device *device,
                           int device_number, const dmi_slab_ops *host_memory)
{
    memset(w, 0, sizeof *w);
    w->me = me;
    w->config = config;
    w->profile = *profile;
    w->hub = *hub;
    w->hub.fits = hub->fits && !profile->gpu;
    w->plan = dmi_plan_make;
    dmi_pool_config pool = {.ops = *slabs,
                            .slab_bytes = config->slab,
                            .limit_bytes = config->memory_limit,
                            .align = 256,
                            .redzone = config->pool_debug && !config->pool_own ? 256 : 0,
                            .own = config->pool_own};
    /* processes map each other's slabs, and a slab for every allocation would be too many */
    if (config->pool_own && !profile->one_space) {
        return dmi_fail(DM_ERR_CONFIG, "pool_own=1, but the workers are ranks: only threads can have it");
    }
    dm_status status = dmi_pool_create(&pool, &w->pool);
    if (status == DM_OK) {
        status = dmi_plan_cache_create((int)config->plan_cache, w->plan, &w->plans);
    }
    if (status == DM_OK) {
        dmi_engine_config engine = {.me = me,
                                    .endpoints = hub->endpoints,
                                    .hub = &w->hub,
                                    .backend = device ? device->backend() : dmi_backend_cpu(),
                                    .pool = w->pool,
                                    .one_space = profile->one_space,
                                    .compute_thread = device == NULL,
                                    .device = device,
                                    .device_number = device_number,
                                    .timeline = config->trace[0] != 0 || dmi_config_profile(config),
                                    .compute_lanes = (int)config->lanes,
                                    .chunk = profile->chunk,
                                    .file_chunk = profile->file_chunk,
                                    .file_threads = (int)config->file_threads,
                                    .host_memory = host_memory ? *host_memory : (dmi_slab_ops){0},
                                    .push_kernel = config->push_kernel,
                                    .map_compile = config->map_compile,
                                    .cache_dir = config->cache_dir,
                                    .link_gbps = config->link_gbps,
                                    .link_latency_us = config->link_latency_us,
                                    .pool_debug = config->pool_debug || config->pool_own,
                                    .pool_own = config->pool_own,
                                    .capture = config->capture,
                                    .fault = config->fault[0] ? config->fault : NULL,
                                    .retired = retired,
                                    .meanwhile = meanwhile,
                                    .context = w};
        status = dmi_engine_start(&w->engine, &engine);
    }
    if (status == DM_OK) {
        dmi_engine_count(&w->engine, config->trace[0] ? dmi_trace_create(DMI_TRACE_MOST) : NULL,
                         dmi_config_profile(config));
    }
    if (status != DM_OK) {
        dmi_worker_finish(w);
    }
    return status;
}

static void store_i64(atomic_int_fast64_t *at, int64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

void dmi_publish_memory(dmi_worker *w)
{
    dmi_pool_stats s;
    dmi_pool_stats_get(w->pool, &s);
    atomic_int_fast64_t *m = w->engine.port->tally.memory;
    store_i64(&m[DMI_MEM_ARRAYS], s.live_bytes[DMI_OWNER_ARRAY]);
    store_i64(&m[DMI_MEM_WORKSPACE], s.live_bytes[DMI_OWNER_WORKSPACE]);
    store_i64(&m[DMI_MEM_REPLICAS], s.live_bytes[DMI_OWNER_REPLICA]);
    store_i64(&m[DMI_MEM_STAGING], s.live_bytes[DMI_OWNER_STAGING]);
    store_i64(&m[DMI_MEM_PEAK], s.peak_total);
    store_i64(&m[DMI_MEM_HELD], s.slab_bytes);
    store_i64(&m[DMI_MEM_CALLS], s.slab_calls);
}

bool dmi_worker_take_frames(dmi_worker *w)
{
    bool moved = false;
    for (int i = 0; i < FRAMES_PER_LOOK && !w->stopping && !w->lost; i++) {
        if (!dmi_engine_ready(&w->engine) || w->in_flight >= COMMANDS_IN_FLIGHT || w->run.deciding) {
            break;
        }
        if (w->run.spoiled) {
            dmi_run_spoil(w);
        }
        if (w->run.on) {
            dmi_run_go_on(w);
            moved = true;
            continue;
        }
        const dmi_frame *frame = dmi_ring_peek(&w->hub, &w->cursor);
        if (!frame) {
            break;
        }
        const char *wrong = dmi_worker_frame_wrong(w, frame);
        if (wrong) {
            dmi_worker_refuse(w, frame, wrong);
            return true;
        }
        dmi_dispatch(w, frame);
        dmi_ring_consume(&w->hub, w->me, &w->cursor, frame);
        moved = true;
    }
    return moved;
}

/* Commands are done in order: all before the oldest one in flight. Those in the background count by themselves. */
static void publish_completed(dmi_worker *w)
{
    dmi_port *port = w->engine.port;
    if (w->broken) {
        return;
    }
    uint64_t all = w->dispatched - w->run.on;
    const dmi_instance *oldest = dmi_engine_oldest(&w->engine, false), *behind = dmi_engine_oldest(&w->engine, true);
    uint64_t done = oldest ? oldest->command - 1 : all;
    atomic_store_explicit(&port->background, behind ? behind->command - 1 : all, memory_order_release);
    if (done != atomic_load_explicit(&port->completed, memory_order_relaxed)) {
        dmi_publish_memory(w);
        atomic_store_explicit(&port->completed, done, memory_order_release);
        dmi_bell_ring(&dmi_hub_port(&w->hub, w->hub.endpoints - 1)->bell);
    }
}

static bool look(dmi_worker *w)
{
    w->engine.wake_ns = 0;
    if (w->engine.gpu) {
        dmi_compute_enter(&w->engine);
    }
    const dmi_device *device = w->engine.gpu ? w->engine.config.device : NULL;
    const bool entered = device && device->enter(&w->engine);
    bool moved = (entered || !device) && dmi_worker_take_frames(w);
    moved = dmi_engine_progress(&w->engine) || moved;
    bool told = dmi_engine_report_more(&w->engine);
    moved = told || moved;
    if (entered) {
        device->leave(&w->engine);
    }
    if (w->engine.gpu) {
        dmi_compute_leave(&w->engine);
    }
    if (moved) {
        publish_completed(w);
    }
    if (told) { /* the master may wait for nothing else */
        dmi_bell_ring(&dmi_hub_port(&w->hub, w->hub.endpoints - 1)->bell);
    }
    return w->service ? w->service(w) || moved : moved;
}

static int64_t sleep_limit(const dmi_worker *w, int64_t idle_ns)
{
    static const struct {
        int64_t idle_ns, sleep_ns;
    } poll[] = {{1000000, 50000}, {100000000, 500000}, {2000000000, 2000000}, {INT64_MAX, LONGEST_POLL_NS}};
    int64_t limit = 500000000; /* everybody rings; this is only a safety net */
    bool in_flight = w->in_flight > 0 || idle_ns < poll[1].idle_ns; /* a message may still be going out */
    if (w->listens || (w->polls && in_flight)) { /* messages ring no bell: poll often, less so after a while */
        int i = 0;
        while (idle_ns >= poll[i].idle_ns) {
            i++;
        }
        limit = poll[i].sleep_ns;
    } else if (w->polls) {
        limit = 20000000;
    }
    if (w->engine.wake_ns) {
        limit = DMI_MIN(limit, DMI_MAX(w->engine.wake_ns - dmi_now_ns(), 1000));
    }
    return limit;
}

void dmi_worker_serve(dmi_worker *w)
{
    char who[32];
    snprintf(who, sizeof who, "worker %d", w->me);
    dmi_log_set_who(who);
    dmi_fault_worker(w->me);
    atomic_store(&w->engine.port->communication_thread, dmi_thread_number());
    if (w->engine.usage && dmi_engine_rates(&w->engine, &w->profile.rates) != DM_OK) {
        dmi_log(DMI_LOG_WARN, "the profile does without the rates of the machine: %s", dmi_error_text());
    }
    w->engine.sections = w->engine.gpu && w->profile.on_device;
    dmi_bell *bell = &w->engine.port->bell;
    dmi_backoff backoff = {0};
    while (!w->stopping || !dmi_engine_idle(&w->engine) || (w->drained && !w->drained(w))) {
        if (atomic_load_explicit(&w->hub.ring->closed, memory_order_relaxed)) {
            if (w->engine.config.device) { /* nothing comes any more that its kernels wait for */
                w->engine.config.device->give_up(&w->engine);
            }
            return;
        }
        if (look(w)) {
            dmi_backoff_reset(&backoff);
            continue;
        }
        if (dmi_backoff_step(&backoff, &w->hub) != DMI_WAIT_SLEEP) {
            continue;
        }
        dmi_engine_note_wakes(&w->engine);
        unsigned token = dmi_bell_announce(bell);
        if (look(w)) {
            dmi_bell_cancel(bell);
            dmi_backoff_reset(&backoff);
        } else {
            dmi_bell_sleep(bell, token, sleep_limit(w, dmi_now_ns() - backoff.since_ns));
        }
    }
    publish_completed(w);
}

void dmi_worker_finish(dmi_worker *w)
{
    dmi_programs_clear(w);
    dmi_plan_cache_destroy(w->plans); /* first: plans may have tables in the executor's memory */
    w->plans = NULL;
    if (w->engine.peer) {
        dmi_engine_stop(&w->engine);
    }
    while (w->engine.first) { /* of a session that was broken */
        dmi_instance *inst = w->engine.first;
        w->engine.first = inst->next;
        unref_operands(inst);
        dmi_instance_free(&w->engine, inst);
    }
    dmi_instances_free(&w->engine);
    dmi_group_counts_clear(w);
    if (w->cursor > 0) { /* the worker has served: the master expects its timeline file */
        dmi_trace_write_worker(&w->engine, w->config->trace);
    }
    dmi_trace_destroy(w->engine.trace);
    w->engine.trace = NULL;
    dmi_store_clear(w);
    dmi_pool_destroy(w->pool);
    w->pool = NULL;
}
