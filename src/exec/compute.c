/* The COMPUTE lane: a worker has a thread for it; the master runs it within calls that wait. Steps of the background lane,
 * which write files, have another thread. */
#include "base/fault.h"
#include "base/process.h"
#include "base/turns.h"
#include "exec/engine.h"
#include "ops/ops.h"

#include <stdio.h>
#include <unistd.h>

enum { FEED_LOOK_NS = 200000 };

/* The first operand that the step reads and that is poisoned; -1: none. */
static int poisoned_input(const dmi_queued_step *w)
{
    for (int i = 0; i < w->step->nref; i++) {
        const dmi_ref *ref = &w->step->ref[i];
        int poisoned = ref->kind == DMI_REF_OPERAND ? atomic_load(&w->inst->memory[ref->index]->poisoned) : 0;
        /* Later steps may read an output that this command rewrites as a whole, even if it was poisoned. An
         * array without memory can be neither read nor written. */
        if (poisoned &&
            (poisoned == DMI_NO_MEMORY || ((ref->mode & DMI_READ) && !w->inst->whole[ref->index]))) {
            return ref->index;
        }
    }
    return -1;
}

void dmi_compute_check_inputs(dmi_engine *e, const dmi_queued_step *w)
{
    dmi_engine_check_cancelled(e, w->inst);
    int operand = atomic_load(&w->inst->failed) ? -1 : poisoned_input(w);
    if (operand >= 0) {
        dmi_engine_fail_by_input(e, w->inst, operand);
    }
}

void dmi_compute_enter(dmi_engine *e)
{
    atomic_store(&e->busy, 1);
    /* Quiesced: the process is ending and unloads the libraries that kernels call. */
    while (atomic_load(&e->quiesced)) {
        atomic_store(&e->busy, 0);
        pause();
    }
}

void dmi_compute_leave(dmi_engine *e)
{
    atomic_store(&e->busy, 0);
}

/* File steps call no library, so the end of the process need not wait for the background. */
static dm_status execute(dmi_engine *e, dmi_queued_step *w, bool background)
{
    if (background) {
        return dmi_execute(e, NULL, w);
    }
    dmi_compute_enter(e);
    dm_status status = dmi_execute(e, NULL, w);
    dmi_compute_leave(e);
    return status;
}

void dmi_compute_quiesce(dmi_engine *e, int64_t until_ns)
{
    atomic_store(&e->quiesced, 1);
    while (atomic_load(&e->busy) && dmi_now_ns() < until_ns) {
        usleep(100);
    }
}

/* Bytes of memory behind the step's references: each as far as it may be touched. */
static int64_t within_reach(const dmi_queued_step *w)
{
    int64_t bytes = w->step->bytes + 1;
    for (int i = 0; i < w->step->nref; i++) {
        const dmi_ref *ref = &w->step->ref[i];
        int64_t all = ref->kind == DMI_REF_OPERAND ? w->inst->memory[ref->index]->allocation.bytes
                      : ref->kind == DMI_REF_WORK  ? w->inst->plan->work_bytes[ref->index]
                                                   : 0;
        bytes += DMI_MAX(DMI_MIN(all, ref->to) - ref->from, 0);
    }
    return bytes;
}

/* For the watchdog and for messages about a death: they look at commands that others wait for. */
static void show(dmi_engine *e, const dmi_queued_step *w)
{
    const dmi_plan *plan = w->inst->plan;
    atomic_store_explicit(&e->port->now_step, w->step->kind, memory_order_relaxed);
    atomic_store_explicit(&e->port->now_flops, w->step->flops, memory_order_relaxed);
    atomic_store_explicit(&e->port->now_bytes, within_reach(w), memory_order_relaxed);
    dmi_doing_set(&e->port->runs, w->inst->command, w->inst->called, w->step - plan->step + 1, plan->nstep);
}

/* A failed or cancelled command waits for no buffer. */
static bool awaits_feed(dmi_engine *e, const dmi_queued_step *w)
{
    show(e, w);
    dmi_compute_check_inputs(e, w);
    e->awaits_feed = !atomic_load(&w->inst->failed) && !dmi_step_may_begin(e, w);
    return e->awaits_feed;
}

/* Runs the oldest step of a lane that has some; false: it must wait. */
static bool run_oldest(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    bool background = number == e->background;
    uint64_t at = atomic_load_explicit(&lane->done, memory_order_relaxed);
    dmi_queued_step *w = &lane->queue[at & (DMI_LANE_ROOM - 1)];
    if (!dmi_engine_reached(e, &w->wait) || (w->step->kind == DMI_STEP(task) && awaits_feed(e, w))) {
        if (e->usage && !lane->idle_since_ns) {
            lane->idle_since_ns = dmi_now_ns();
        }
        return false;
    }
    if (e->usage) {
        dmi_usage_idle(e, lane, w);
    }
    if (!background) {
        show(e, w);
    }
    dmi_compute_check_inputs(e, w);
    if (!atomic_load(&w->inst->failed)) {
        int64_t begin = e->timed ? dmi_now_ns() : 0;
        if (!background) {
            atomic_store_explicit(&e->port->now_busy, 1, memory_order_relaxed);
        }
        dm_status status = execute(e, w, background);
        if (!background) {
            atomic_store_explicit(&e->port->now_busy, 0, memory_order_relaxed);
        }
        if (status != DM_OK) {
            dmi_engine_fail_step(e, w, status);
        }
        if (e->timed) {
            dmi_step_took(e, w, begin, dmi_now_ns());
        }
        DMI_ADD_COUNT(e, w->inst, flops, w->step->flops);
    }
    dmi_engine_settle(w);
    DMI_ADD_COUNT(e, w->inst, steps, 1);
    atomic_store_explicit(&lane->done, at + 1, memory_order_release);
    if (e->thread_runs) {
        dmi_engine_wake(e, number, at + 1);
        dmi_background_wake(e);
    }
    return true;
}

static bool has_steps(const dmi_lane *lane)
{
    return atomic_load_explicit(&lane->done, memory_order_relaxed) !=
           atomic_load_explicit(&lane->enqueued, memory_order_acquire);
}

bool dmi_compute_any(dmi_engine *e)
{
    bool moved = has_steps(&e->lane[DMI_LANE_COMPUTE]) && run_oldest(e, DMI_LANE_COMPUTE);
    return (has_steps(&e->lane[DMI_LANE_COMPUTE_1]) && run_oldest(e, DMI_LANE_COMPUTE_1)) || moved;
}

void dmi_background_wake(dmi_engine *e)
{
    const dmi_lane *lane = &e->lane[e->background];
    if (e->background_runs && atomic_load(&lane->done) < atomic_load(&lane->enqueued)) {
        dmi_bell_ring(&e->background_bell);
    }
}

static bool background_one(dmi_engine *e)
{
    return has_steps(&e->lane[e->background]) && run_oldest(e, e->background);
}

/* one: runs steps that may start; false: there is none. */
static void serve(dmi_engine *e, bool (*one)(dmi_engine *), dmi_bell *bell)
{
    dmi_backoff backoff = {0};
    while (!atomic_load_explicit(&e->stop, memory_order_relaxed)) {
        if (one(e)) {
            dmi_backoff_reset(&backoff);
        } else if (dmi_backoff_step(&backoff, e->config.hub) == DMI_WAIT_SLEEP) {
            unsigned token = dmi_bell_announce(bell);
            if (atomic_load(&e->stop) || one(e)) {
                dmi_bell_cancel(bell);
                dmi_backoff_reset(&backoff);
            } else {
                dmi_bell_sleep(bell, token, bell == &e->compute_bell && e->awaits_feed ? FEED_LOOK_NS : 500000000);
            }
        }
    }
}

void *dmi_compute_thread(void *engine)
{
    dmi_engine *e = engine;
    char who[32];
    snprintf(who, sizeof who, "worker %d compute", e->config.me);
    dmi_thread_name(who);
    dmi_fault_worker(e->config.me);
    dmi_turns_begin(e->config.me, DMI_TURNS_COMPUTE);
    atomic_store(&e->port->compute_thread, dmi_thread_number());
    serve(e, dmi_compute_any, &e->compute_bell);
    dmi_turns_end();
    return NULL;
}

void *dmi_background_thread(void *engine)
{
    dmi_engine *e = engine;
    char who[32];
    snprintf(who, sizeof who, "worker %d files", e->config.me);
    dmi_thread_name(who);
    dmi_fault_worker(e->config.me);
    dmi_turns_begin(e->config.me, DMI_TURNS_BACKGROUND);
    serve(e, background_one, &e->background_bell);
    dmi_turns_end();
    return NULL;
}
