/* The SEND and RECV lanes of the CPU: payloads to and from peers, by the transport of each pair. */
#include "base/fault.h"
#include "exec/engine.h"

void dmi_lane_advance(dmi_engine *e, int lane)
{
    dmi_lane *l = &e->lane[lane];
    const dmi_queued_step *w = dmi_lane_slot(l, atomic_load_explicit(&l->done, memory_order_relaxed));
    DMI_ADD_COUNT(e, w->inst, steps, 1);
    atomic_fetch_add_explicit(&l->done, 1, memory_order_release);
    if (e->thread_runs) {
        dmi_bell_ring(&e->compute_bell);
        dmi_background_wake(e);
    }
}

void dmi_transfer_check_source(dmi_engine *e, const dmi_queued_step *w)
{
    dmi_engine_check_cancelled(e, w->inst);
    const dmi_ref *ref = &w->step->ref[0];
    dmi_memory *source = ref->kind == DMI_REF_OPERAND ? w->inst->memory[ref->index] : NULL;
    if (source && atomic_load(&source->poisoned) && !atomic_load(&w->inst->failed)) {
        dmi_engine_fail_by_input(e, w->inst, ref->index);
    }
}

/* A planted delay: nobody rings for what is left for a later look. */
static bool delayed(dmi_engine *e)
{
    enum { LATER_NS = 20000 };
    bool later = dmi_fault_later();
    if (later) {
        e->wake_ns = dmi_now_ns() + LATER_NS;
    }
    return later;
}

/* Messages of one lane overlap where the transport allows; they finish in order. */
static bool progress_send(dmi_engine *e, int number)
{
    enum { MOST_STEPS = 8 };
    dmi_lane *lane = &e->lane[number];
    uint64_t done = atomic_load_explicit(&lane->done, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
    bool moved = false;
    for (uint64_t i = done; i < end && i < done + MOST_STEPS; i++) {
        dmi_queued_step *w = dmi_lane_slot(lane, i);
        if (!w->started) {
            if (!dmi_engine_reached(e, &w->wait)) {
                break;
            }
            dmi_transfer_check_source(e, w);
            w->started = moved = true;
            w->begun_ns = e->timed ? dmi_now_ns() : 0;
        }
        if (!w->finished && !delayed(e)) {
            int64_t before = w->at + w->run;
            w->finished = e->peer[w->step->peer].transport->push(e, w);
            w->ended_ns = w->finished && e->timed ? dmi_now_ns() : 0;
            moved = moved || w->finished || w->at + w->run != before;
        }
        if (!w->finished && (e->peer[w->step->peer].transport == &dmi_transport_direct || !w->message)) {
            /* direct pushes run one after another; a message does not overtake one that still waits for
             * memory */
            break;
        }
    }
    while (done < end && dmi_lane_slot(lane, done)->finished) {
        const dmi_queued_step *w = dmi_lane_slot(lane, done);
        DMI_ADD_COUNT(e, w->inst, messages_sent, 1);
        if (e->timed) {
            dmi_step_took(e, w, w->begun_ns, w->ended_ns);
        }
        dmi_lane_advance(e, number);
        done++;
        moved = true;
    }
    return moved;
}

static void received(dmi_engine *e, dmi_queued_step *w)
{
    dmi_engine_settle(w);
    DMI_ADD_COUNT(e, w->inst, messages_received, 1);
    if (e->timed) {
        dmi_step_took(e, w, w->begun_ns, dmi_now_ns());
    }
}

static bool progress_recv(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    uint64_t done = atomic_load_explicit(&lane->done, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
    bool moved = false;
    while (lane->started < end) { /* grants in order, ahead of arrivals */
        dmi_queued_step *w = dmi_lane_slot(lane, lane->started);
        if (!dmi_engine_reached(e, &w->wait) || delayed(e) || !e->peer[w->step->peer].transport->grant(e, w)) {
            break;
        }
        w->started = moved = true;
        w->begun_ns = e->timed ? dmi_now_ns() : 0;
        lane->started++;
    }
    while (done < lane->started) {
        dmi_queued_step *w = dmi_lane_slot(lane, done);
        if (delayed(e) || !e->peer[w->step->peer].transport->arrive(e, w)) {
            break;
        }
        received(e, w);
        dmi_lane_advance(e, number);
        done++;
        moved = true;
    }
    return moved;
}

/* For the watchdog: the peer whose payload or grant is waited for, and in which step. */
static void note_awaited(dmi_engine *e)
{
    int awaited = 0;
    const dmi_queued_step *in = NULL;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        if (dmi_lane_computes(lane)) {
            continue;
        }
        uint64_t done = atomic_load_explicit(&e->lane[lane].done, memory_order_relaxed);
        const dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], done);
        if (done < atomic_load_explicit(&e->lane[lane].enqueued, memory_order_relaxed) && w->started) {
            awaited = w->step->peer + 1;
            in = w;
        }
    }
    if (in) {
        bool grant = in->step->kind == DMI_STEP_PUSH;
        dmi_doing_set(&e->port->waits, in->inst->command, in->inst->called, in->step - in->inst->plan->step + 1,
                      in->inst->plan->nstep);
        atomic_store_explicit(&e->port->waits_for, grant ? -1 : in->step->of, memory_order_relaxed);
        atomic_store_explicit(&e->port->waits_number,
                              (uint64_t)in->step->ordinal << 32 | in->inst->plan->lane_steps[in->step->lane],
                              memory_order_relaxed);
    }
    atomic_store_explicit(&e->port->now_peer, awaited, memory_order_relaxed);
}

bool dmi_transfers_progress(dmi_engine *e)
{
    bool moved = progress_recv(e, DMI_LANE_RECV);
    moved = progress_recv(e, DMI_LANE_RECV_1) || moved;
    moved = progress_send(e, DMI_LANE_SEND) || moved;
    moved = progress_send(e, DMI_LANE_SEND_1) || moved;
    if (!moved) {
        note_awaited(e);
    }
    return moved;
}
