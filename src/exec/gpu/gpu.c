#include "exec/gpu/gpu.h"
#include "exec/gpu/host_work.h"
#include "exec/trace.h"

#include <string.h>

enum { EAGER_NS = 2000000, WAKE_NS = 20000, TOGETHER_BYTES = 1 << 20 };

/* Where a device has failed, dmi_gpu_look fails this command and all others in flight, before any of them is
 * done. */
void dmi_gpu_failed(dmi_engine *e, const dmi_queued_step *w, dm_status status)
{
    int device;
    if (status != DM_OK && !dmi_cu_lost(&device)) {
        dmi_engine_fail_step(e, w, status);
    }
}

/* --- SEND --- */

static void *target(dmi_engine *e, int peer, const dmi_slot *slot)
{
    if (slot->slab < 0) {
        return (void *)(uintptr_t)slot->address;
    }
    char *base = dmi_gpu_map(e, peer, slot->slab);
    return base ? base + slot->address : NULL;
}

static bool is_granted(dmi_engine *e, const dmi_queued_step *w)
{
    return atomic_load_explicit(&dmi_box_to(e, w)->granted, memory_order_acquire) > w->ordinal;
}

static const dmi_slot *grant_of(dmi_engine *e, const dmi_queued_step *w)
{
    return &dmi_box_to(e, w)->slot[w->ordinal % DMI_SLOTS];
}

static void announce(dmi_engine *e, const dmi_queued_step *w)
{
    atomic_store_explicit(&dmi_box_to(e, w)->announced, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&dmi_hub_port(e->config.hub, w->step->peer)->bell);
}

/* The payload alone; status: of what it waits for. Has a kernel raised the counter, too? */
static bool put_payload(dmi_engine *e, dmi_queued_step *w, dm_status status)
{
    const dmi_slot *slot = grant_of(e, w);
    const int peer = w->step->peer, lane = w->step->lane;
    bool notified = false;
    dmi_gpu_time_begin(e, lane, w);
    if (status == DM_OK && !slot->refused && dmi_ref_pointer(w->inst, &w->step->ref[0]) &&
        !atomic_load(&w->inst->failed)) {
        void *to = target(e, peer, slot);
        status = to ? dmi_gpu_push_payload(e, w, to, &notified)
                    : dmi_fail(DM_ERR_TRANSPORT, "cannot map memory of the receiver");
        dmi_count_sent(e, w->inst, w->step->peer, w->step->bytes);
    }
    dmi_gpu_failed(e, w, status);
    dmi_gpu_time_end(e, lane, w);
    return notified;
}

/* The copy waits for the destination (freed), the counter is raised behind the copy, and only then the payload
 * is announced: see gpu.h. */
static bool send_direct(dmi_engine *e, dmi_queued_step *w)
{
    const int lane = w->step->lane;
    if (!is_granted(e, w)) {
        return false;
    }
    dm_status status = dmi_gpu_after(e, lane, &w->wait);
    if (status == DM_OK && !grant_of(e, w)->free) {
        status = dmi_gpu_wait(e, lane, &e->gpu->freed[dmi_engine_pair(e, w->step->peer, w)], w->ordinal + 1);
    }
    if (!put_payload(e, w, status)) {
        dmi_gpu_failed(e, w, dmi_gpu_raise(e, lane, dmi_gpu_arrived_at(e, w), w->ordinal + 1));
    }
    announce(e, w);
    return true;
}

/* Pushes of one command, of up to TOGETHER_BYTES each, that could all go now, and wait here for the same. */
static int find_together(dmi_engine *e, const dmi_lane *lane, uint64_t end)
{
    const dmi_queued_step *first = dmi_lane_slot(lane, lane->started);
    int count = 0;
    for (uint64_t i = lane->started; i < end && count < DMI_CU_WORDS; i++, count++) {
        const dmi_queued_step *w = dmi_lane_slot(lane, i);
        if (w->inst != first->inst || w->step->bytes > TOGETHER_BYTES ||
            w->step->bytes <= e->config.push_kernel || !dmi_gpu_direct(e, w->step->peer) ||
            !dmi_gpu_issued(e, &w->wait) || !is_granted(e, w) ||
            !dmi_gpu_waits_already(e, first->step->lane, &w->wait, &first->wait)) {
            break;
        }
    }
    return count;
}

/* The waits for their destinations are one request, and so are their counters, behind all of them: beside small
 * payloads these take longer than the payloads. */
static void send_together(dmi_engine *e, const dmi_lane *lane, int count)
{
    const int number = dmi_lane_slot(lane, lane->started)->step->lane;
    dmi_gpu_batch batch = {0};
    dm_status status = DM_OK;
    for (int i = 0; i < count; i++) {
        const dmi_queued_step *w = dmi_lane_slot(lane, lane->started + (uint64_t)i);
        status = status == DM_OK ? dmi_gpu_after(e, number, &w->wait) : status;
        if (!grant_of(e, w)->free) {
            dmi_gpu_add_word(&batch, &e->gpu->freed[dmi_engine_pair(e, w->step->peer, w)], w->ordinal + 1);
        }
    }
    status = status == DM_OK ? dmi_gpu_wait_batch(e, number, &batch) : status;
    batch.count = 0;
    for (int i = 0; i < count; i++) {
        dmi_queued_step *w = dmi_lane_slot(lane, lane->started + (uint64_t)i);
        (void)put_payload(e, w, status);
        dmi_gpu_add_word(&batch, dmi_gpu_arrived_at(e, w), w->ordinal + 1);
    }
    status = dmi_gpu_raise_batch(e, number, &batch);
    for (int i = 0; i < count; i++) {
        const dmi_queued_step *w = dmi_lane_slot(lane, lane->started + (uint64_t)i);
        dmi_gpu_failed(e, w, status);
        announce(e, w);
    }
}

static bool send_step(dmi_engine *e, dmi_queued_step *w)
{
    int peer = w->step->peer;
    return dmi_gpu_direct(e, peer) ? send_direct(e, w)
           : dmi_gpu_far(e, peer)  ? dmi_gpu_send_message(e, w)
                                   : dmi_gpu_send_staged(e, w);
}

/* A step that overwrites the source of a push waits until the push is issued, and then for its stream. If MPI
 * reads the source, no stream knows when MPI has finished. So such a push counts as issued only when MPI has
 * sent it. */
static bool count_sent(dmi_engine *e, int number)
{
    const dmi_lane *lane = &e->lane[number];
    uint64_t *issued = &e->gpu->issued[number], before = *issued;
    while (*issued < lane->started && !dmi_gpu_held(dmi_lane_slot(lane, *issued))) {
        const dmi_queued_step *w = dmi_lane_slot(lane, (*issued)++);
        dmi_gpu_record(e, number, w);
    }
    return *issued != before;
}

static bool issue_send(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    uint64_t end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
    bool moved = count_sent(e, number);
    while (lane->started < end) {
        dmi_queued_step *w = dmi_lane_slot(lane, lane->started);
        int count = find_together(e, lane, end);
        if (count > 1) {
            send_together(e, lane, count);
        } else if (!dmi_gpu_issued(e, &w->wait) || !send_step(e, w)) {
            break;
        } else {
            count = 1;
        }
        lane->started += (uint64_t)count;
        moved = true;
        (void)count_sent(e, number);
    }
    return moved;
}

/* --- RECV --- */

/* Grants that wait for their counters to be on the stream. */
typedef struct grants {
    dmi_gpu_batch batch;
    int count;
    dmi_queued_step *step[DMI_CU_WORDS];
} grants;

/* By one request; only then may the senders see them. */
static void give_grants(dmi_engine *e, grants *g)
{
    dm_status status = dmi_gpu_raise_batch(e, STREAM_GRANT, &g->batch);
    for (int i = 0; i < g->count; i++) {
        dmi_gpu_failed(e, g->step[i], status);
        atomic_store_explicit(&dmi_box_from(e, g->step[i])->granted, g->step[i]->ordinal + 1,
                              memory_order_release);
        dmi_bell_ring(&dmi_hub_port(e->config.hub, g->step[i]->step->peer)->bell);
    }
    g->count = 0;
}

static bool grant_direct(dmi_engine *e, dmi_queued_step *w, grants *g)
{
    int peer = w->step->peer;
    if (w->ordinal - *dmi_retired(e, w) >= DMI_SLOTS) {
        return false;
    }
    const dmi_ref *ref = &w->step->ref[0];
    const dmi_allocation *allocation =
        ref->kind == DMI_REF_OPERAND ? &w->inst->memory[ref->index]->allocation : &w->inst->work[ref->index];
    dmi_mailbox *box = dmi_box_from(e, w);
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    char *at = dmi_ref_pointer(w->inst, ref);
    bool mapped = e->gpu->peer[peer].counters != NULL; /* the peer is another process */
    *slot = (dmi_slot){.slab = at && mapped ? allocation->slab : -1, .refused = at == NULL};
    slot->address = at && mapped ? (uint64_t)(allocation->offset + ref->offset) : (uint64_t)(uintptr_t)at;
    /* raised now and then even so: counters are compared cyclically, and one that lags by half its range would
     * look ahead */
    slot->free = dmi_engine_reached(e, &w->wait) && (w->ordinal + 1) % (UINT64_C(1) << (NUMBER_BITS - 2)) != 0;
    if (!slot->free) { /* the destination becomes free when the device gets there */
        const bool small = w->step->bytes <= TOGETHER_BYTES;
        if (!small || !dmi_gpu_waits_already(e, STREAM_GRANT, &w->wait, NULL)) { /* those so far need not */
            give_grants(e, g);
        }
        dm_status status = dmi_gpu_after(e, STREAM_GRANT, &w->wait);
        dmi_gpu_failed(e, w, status);
        dmi_gpu_add_word(&g->batch, dmi_gpu_freed_at(e, w), w->ordinal + 1);
    }
    g->step[g->count++] = w;
    if (g->count == DMI_CU_WORDS || w->step->bytes > TOGETHER_BYTES) {
        give_grants(e, g);
    }
    return true;
}

static bool payload_in_flight(dmi_engine *e, const dmi_queued_step *w)
{
    if (!dmi_gpu_direct(e, w->step->peer)) {
        return w->started; /* the copy from the staging buffer is on the stream */
    }
    return atomic_load_explicit(&dmi_box_from(e, w)->announced, memory_order_acquire) > w->ordinal;
}

static bool grant_step(dmi_engine *e, dmi_queued_step *w, grants *g)
{
    int peer = w->step->peer;
    return dmi_gpu_direct(e, peer) ? grant_direct(e, w, g)
           : dmi_gpu_far(e, peer)  ? dmi_gpu_grant_message(e, w)
                                   : dmi_gpu_grant_staged(e, w);
}

static bool issue_recv(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    uint64_t end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
    uint64_t *issued = &e->gpu->issued[number];
    bool moved = false;
    grants g = {0};
    while (lane->started < end) {
        dmi_queued_step *w = dmi_lane_slot(lane, lane->started);
        if (!dmi_gpu_issued(e, &w->wait) || !grant_step(e, w, &g)) {
            break;
        }
        lane->started++;
        moved = true;
    }
    give_grants(e, &g);
    while (*issued < lane->started && payload_in_flight(e, dmi_lane_slot(lane, *issued))) {
        ++*issued;
        moved = true;
    }
    return moved;
}

static bool issue_compute(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    uint64_t end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
    uint64_t *issued = &e->gpu->issued[number];
    bool moved = false;
    while (*issued < end && (e->inside > 0 || dmi_gpu_holds(e))) {
        dmi_queued_step *w = dmi_lane_slot(lane, *issued);
        if (w->inst->plan->on_device && w->step->ordinal == 1) {
            /* it may take long: who waits for what is in front of it shall not wait for its end */
            dmi_gpu_failed(e, w, dmi_gpu_record_issued(e, number));
        }
        bool graphs = w->inst->plan->repeats && w->step->lane == DMI_LANE_COMPUTE;
        int count = w->inst->plan->on_device ? dmi_gpu_issue_section(e, number, w, *issued, end) : 0;
        if (dmi_gpu_holds(e) && count <= 0) {
            break;
        }
        count = count == 0 && graphs ? dmi_gpu_issue_graph(e, number, w, *issued, end) : count;
        if (count == 0 && dmi_gpu_issued(e, &w->wait)) {
            count = dmi_gpu_issue_compute(e, number, w);
        }
        if (count <= 0) {
            break;
        }
        *issued += (uint64_t)count;
        dmi_gpu_record(e, number, dmi_lane_slot(lane, *issued - 1));
        moved = true;
    }
    return moved;
}

/* --- what is done --- */

static bool finished(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t seq)
{
    if (dmi_lane_receives(lane)) {
        return dmi_gpu_direct(e, w->step->peer)
                   ? atomic_load_explicit(&dmi_box_from(e, w)->arrived, memory_order_acquire) > w->ordinal
                   : w->finished;
    }
    if (w->step->kind == DMI_STEP_EXCHANGE) {
        return e->gpu->reached[lane] >= seq && dmi_gpu_run_ended(e, w);
    }
    bool by_host = (dmi_lane_sends(lane) && !dmi_gpu_direct(e, w->step->peer)) ||
                   w->step->kind == DMI_STEP(file_write); /* the host finishes it after the device */
    return e->gpu->reached[lane] >= seq && (!by_host || w->finished);
}

static void settle_send(dmi_engine *e, dmi_queued_step *w)
{
    dmi_port *port = dmi_hub_port(e->config.hub, w->step->peer);
    dmi_mailbox *box = dmi_box_to(e, w);
    /* the receiver now learns that the payload has arrived, and whether it is poisoned */
    if (dmi_gpu_direct(e, w->step->peer)) {
        dmi_transfer_check_source(e, w);
        box->slot[w->ordinal % DMI_SLOTS].poisoned = dmi_engine_culprit(w->inst);
        atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release);
        dmi_bell_ring(&port->bell);
    }
    DMI_ADD_COUNT(e, w->inst, messages_sent, 1);
}

static void settle_recv(dmi_engine *e, dmi_queued_step *w)
{
    const dmi_slot *slot = &dmi_box_from(e, w)->slot[w->ordinal % DMI_SLOTS];
    if (dmi_gpu_direct(e, w->step->peer)) {
        if (slot->poisoned) {
            dmi_engine_inherit(e, w->inst, slot->poisoned);
        } else if (!slot->refused) {
            DMI_ADD_COUNT(e, w->inst, bytes_received, w->step->bytes);
        }
        ++*dmi_retired(e, w);
    }
    dmi_engine_settle(w);
    DMI_ADD_COUNT(e, w->inst, messages_received, 1);
}

static void settle_compute(dmi_engine *e, dmi_queued_step *w)
{
    dmi_compute_check_inputs(e, w);
    dmi_gpu_check_status(e, w);
    if (w->step->kind == DMI_STEP_EXCHANGE) {
        dmi_gpu_settle_exchange(e, w);
    }
    if (!atomic_load(&w->inst->failed)) {
        DMI_ADD_COUNT(e, w->inst, flops, w->step->flops);
    }
    dmi_engine_settle(w);
}

static bool settle_lane(dmi_engine *e, int number)
{
    dmi_lane *lane = &e->lane[number];
    uint64_t done = atomic_load_explicit(&lane->done, memory_order_relaxed);
    uint64_t end = e->gpu->issued[number];
    bool moved = false;
    for (; done < end; done++) {
        dmi_queued_step *w = dmi_lane_slot(lane, done);
        bool came = atomic_load(&e->lane[DMI_LANE_RECV].done) >= w->arrivals;
        if (!finished(e, number, w, done + 1) || !came || !dmi_engine_reached(e, &w->wait)) {
            break;
        }
        if (dmi_lane_sends(number)) {
            settle_send(e, w);
        } else if (dmi_lane_receives(number)) {
            settle_recv(e, w);
        } else {
            settle_compute(e, w);
        }
        if (e->timed) {
            dmi_gpu_time_take(e, w);
        }
        dmi_lane_advance(e, number);
        moved = true;
    }
    return moved;
}

static bool in_flight(const dmi_engine *e)
{
    for (int lane = 0; lane < e->lanes; lane++) {
        if (atomic_load_explicit(&e->lane[lane].done, memory_order_relaxed) <
            atomic_load_explicit(&e->lane[lane].enqueued, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* For the watchdog: the peer whose payload or grant is waited for. */
static void note_awaited(dmi_engine *e)
{
    int awaited = 0;
    for (int lane = 0; lane < DMI_LANES; lane++) {
        uint64_t done = atomic_load_explicit(&e->lane[lane].done, memory_order_relaxed);
        if (!dmi_lane_computes(lane) &&
            done < atomic_load_explicit(&e->lane[lane].enqueued, memory_order_relaxed)) {
            awaited = dmi_lane_slot(&e->lane[lane], done)->step->peer + 1;
        }
    }
    if (awaited == 0 && (awaited = dmi_gpu_exchange_awaits(e)) != 0 && e->first) {
        dmi_doing_set(&e->port->waits, e->first->command, e->first->called, 0, 0);
        atomic_store_explicit(&e->port->waits_for, 0, memory_order_relaxed);
        atomic_store_explicit(&e->port->waits_number, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&e->port->now_peer, awaited, memory_order_relaxed);
}

/* While this worker stands (dmi_gpu_stands), nothing but the section that it holds for. */
static bool issue_all(dmi_engine *e)
{
    bool moved = false;
    if (!dmi_gpu_stands(e)) {
        moved = issue_recv(e, DMI_LANE_RECV);
        moved = issue_recv(e, DMI_LANE_RECV_1) || moved;
    }
    for (int lane = 0; lane < e->lanes; lane++) {
        if (lane != DMI_LANE_COMPUTE && dmi_gpu_stands(e)) {
            continue;
        }
        moved = (dmi_lane_sends(lane)      ? issue_send(e, lane)
                 : dmi_lane_computes(lane) ? issue_compute(e, lane)
                                           : false) ||
                moved;
    }
    if (!dmi_gpu_stands(e)) {
        moved = dmi_gpu_staged_progress(e) || moved;
        moved = dmi_gpu_host_work_progress(e) || moved;
        moved = dmi_gpu_message_progress(e) || moved;
    }
    bool held = dmi_gpu_stands(e);
    moved = moved || held != e->held;
    e->held = held;
    return moved;
}

bool dmi_gpu_progress(dmi_engine *e)
{
    bool moved = issue_all(e);
    /* Querying an event costs about as much as a launch. So query rarely while there are steps to issue. */
    if (!moved || ++e->gpu->rounds >= LOOK_EVERY) {
        e->gpu->rounds = 0;
        moved = dmi_gpu_look(e, !moved) || moved;
    }
    for (int lane = 0; lane < e->lanes; lane++) {
        moved = settle_lane(e, lane) || moved;
    }
    if (moved || !in_flight(e)) {
        e->gpu->busy_ns = moved ? 0 : e->gpu->busy_ns;
        return moved;
    }
    /* The device rings no bell. Poll it without a pause while it may be done soon, later less often. */
    int64_t now = dmi_now_ns();
    e->gpu->busy_ns = e->gpu->busy_ns ? e->gpu->busy_ns : now;
    note_awaited(e);
    if (!e->config.hub->oversubscribed && now - e->gpu->busy_ns < EAGER_NS) {
        return true;
    }
    if (dmi_gpu_host_work_rings(e)) {
        return false;
    }
    e->wake_ns = e->wake_ns ? DMI_MIN(e->wake_ns, now + WAKE_NS) : now + WAKE_NS;
    return false;
}
