#include "exec/gpu.h"
#include "exec/gpu_parts.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

static dmi_work *slot_of(dmi_lane *lane, uint64_t seq) /* the step with number seq, from 1 */
{
    return &lane->ring[(seq - 1) & (DMI_LANE_ROOM - 1)];
}

/* --- waits between streams
 * ------------------------------------------------------------------------------------- */

static dm_status record(dmi_gpu *g, int lane, dmi_stream stream)
{
    dmi_marks *m = &g->marks[lane];
    dmi_mark_event *at = &m->event[m->head++ % MARKS];
    at->seq = g->issued[lane];
    return dmi_cu_event_record(at->event, stream);
}

/* The oldest event of a lane at or behind position seq; NULL: none yet. Events older than MARKS records are
 * gone, and a newer one serves as well. */
static dmi_mark_event *find_mark(dmi_gpu *g, int lane, uint64_t seq)
{
    dmi_marks *m = &g->marks[lane];
    dmi_mark_event *best = NULL;
    uint64_t first = m->head > MARKS ? m->head - MARKS : 0;
    for (uint64_t i = m->head; i-- > first;) {
        dmi_mark_event *at = &m->event[i % MARKS];
        if (at->seq < seq) {
            break;
        }
        best = at;
    }
    return best;
}

static dm_status after_lane(dmi_gpu *g, int stream, int lane, uint64_t seq)
{
    if (stream == lane || seq <= g->known[stream].seq[lane]) { /* a stream keeps its own order */
        return DM_OK;
    }
    dmi_mark_event *mark = find_mark(g, lane, seq);
    dm_status status = DM_OK;
    if (!mark) {
        status = record(g, lane, g->stream[lane]);
        mark = find_mark(g, lane, seq);
    }
    if (status == DM_OK) {
        status = dmi_cu_event_after(g->stream[stream], mark->event);
        g->known[stream].seq[lane] = mark->seq;
    }
    return status;
}

static dm_status after_arrivals(dmi_engine *e, int stream, uint64_t seq)
{
    dmi_gpu *g = e->gpu;
    dmi_lane *lane = &e->lane[DMI_LANE_RECV];
    uint64_t from = DMI_MAX(atomic_load(&lane->done), g->known[stream].seq[DMI_LANE_RECV]);
    dm_status status = DM_OK;
    for (uint64_t i = from + 1; i <= seq && status == DM_OK; i++) {
        const dmi_work *w = slot_of(lane, i);
        status = dmi_cu_wait_value(g->stream[stream], &g->arrived[w->step->peer], (uint32_t)(w->ordinal + 1));
    }
    g->known[stream].seq[DMI_LANE_RECV] = DMI_MAX(from, seq);
    return status;
}

dm_status dmi_gpu_after(dmi_engine *e, int stream, const dmi_stamp *stamp)
{
    dmi_gpu *g = e->gpu;
    dm_status status = DM_OK;
    for (int lane = 0; lane < DMI_LANES && status == DM_OK; lane++) {
        if (stamp->seq[lane] > atomic_load(&e->lane[lane].done)) {
            status = lane == DMI_LANE_RECV ? after_arrivals(e, stream, stamp->seq[lane])
                                           : after_lane(g, stream, lane, stamp->seq[lane]);
        }
    }
    return status;
}

/* Raises a counter (of any device) to `value` when the stream gets there: a 4-byte copy, which follows a
 * block's copy without a gap. Its source is used again NUMBERS raises later. */
dm_status dmi_gpu_raise(dmi_engine *e, int stream, uint32_t *counter, uint32_t value)
{
    dmi_gpu *g = e->gpu;
    uint32_t *source = &g->pinned_numbers[g->next_number++ % NUMBERS];
    *source = value;
    return dmi_cu_copy(g->stream[stream], counter, source, sizeof value);
}

/* --- steps
 * ------------------------------------------------------------------------------------------------------ */

static void failed(dmi_engine *e, dmi_work *w, dm_status status)
{
    if (status != DM_OK) {
        dmi_engine_fail(e, w->inst, status, dmi_error_text());
    }
}

static bool issue_compute(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    dm_status status = dmi_gpu_after(e, DMI_LANE_COMPUTE, &w->wait);
    if (status == DM_OK && !atomic_load(&w->inst->failed)) {
        status = dmi_gpu_execute(e, w);
        if (status == DM_OK && g->queue->error) {
            status = dmi_fail(DM_ERR_INTERNAL, "%s", g->queue->error_text);
        }
        atomic_fetch_add_explicit(&e->port->tally.flops, w->step->flops, memory_order_relaxed);
    }
    failed(e, w, status);
    return true;
}

static bool issue_expect(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    int peer = w->step->peer;
    if (peer == e->config.endpoints - 1) {
        return dmi_gpu_expect_host(e, w);
    }
    if (w->ordinal - e->peer[peer].retired >= DMI_SLOTS) {
        return false;
    }
    dmi_mailbox *box = &e->port->mailbox[peer];
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    void *at = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    *slot = (dmi_slot){.slab = -1, .refused = at == NULL, .address = (uint64_t)(uintptr_t)at};
    slot->free = dmi_engine_reached(e, &w->wait);
    if (!slot->free) { /* the place becomes free when the device gets there */
        dm_status status = dmi_gpu_after(e, STREAM_GRANT, &w->wait);
        if (status == DM_OK) {
            status = dmi_gpu_raise(e, STREAM_GRANT, g->peer_freed[peer], (uint32_t)(w->ordinal + 1));
        }
        failed(e, w, status);
    }
    atomic_store_explicit(&box->granted, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&dmi_hub_port(e->config.hub, peer)->bell);
    return true;
}

/* Is one side's memory a stack of rows? Folds the dims of a copy without runs into width, height and two
 * pitches. */
static bool as_rows(const dmi_copy *c, int64_t elem, int64_t *src, int64_t *dst, int64_t v[4])
{
    int64_t width = 1, height = 1, src_pitch = 0, dst_pitch = 0;
    *src = c->src_offset;
    *dst = c->dst_offset;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->nrun[d] != 1) {
            return false;
        }
        int64_t len = c->run[d][0].len, ss = c->src_stride[d], ds = c->dst_stride[d];
        *src += c->run[d][0].a * ss;
        *dst += c->run[d][0].b * ds;
        if (len == 1) {
            continue;
        }
        if (height == 1 && ss == width && ds == width) {
            width *= len;
        } else if (height == 1) {
            height = len;
            src_pitch = ss;
            dst_pitch = ds;
        } else if (ss == src_pitch * height && ds == dst_pitch * height) {
            height *= len;
        } else {
            return false;
        }
    }
    v[0] = width * elem;
    v[1] = height;
    v[2] = (height > 1 ? src_pitch : width) * elem;
    v[3] = (height > 1 ? dst_pitch : width) * elem;
    return v[2] >= v[0] && v[3] >= v[0];
}

static dm_status push_block(dmi_engine *e, dmi_work *w, void *to)
{
    dmi_gpu *g = e->gpu;
    const dmi_copy *c = w->step->desc;
    char *from = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    int64_t elem = dmi_dtype_bytes(c->src_dtype), src, dst, v[4];
    if (as_rows(c, elem, &src, &dst, v)) {
        char *s = from + src * elem, *d = (char *)to + dst * elem;
        return v[1] == 1 ? dmi_cu_copy(g->stream[DMI_LANE_SEND], d, s, v[0])
                         : dmi_cu_copy_2d(g->stream[DMI_LANE_SEND], d, v[3], s, v[2], v[0], v[1]);
    }
    g->send_queue->device_run = dmi_gpu_runs(e, w, c);
    e->config.backend->copy(g->send_queue, c, from, to);
    return g->send_queue->error ? dmi_fail(DM_ERR_INTERNAL, "%s", g->send_queue->error_text) : DM_OK;
}

static bool issue_push(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    int peer = w->step->peer;
    if (peer == e->config.endpoints - 1) {
        return dmi_gpu_push_host(e, w);
    }
    dmi_port *port = dmi_hub_port(e->config.hub, peer);
    dmi_mailbox *box = &port->mailbox[e->config.me];
    if (atomic_load_explicit(&box->granted, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    dm_status status = dmi_gpu_after(e, DMI_LANE_SEND, &w->wait);
    if (status == DM_OK && !slot->refused && !atomic_load(&w->inst->failed)) {
        if (!slot->free) {
            status = dmi_cu_wait_value(g->stream[DMI_LANE_SEND], &g->freed[peer], (uint32_t)(w->ordinal + 1));
        }
        if (status == DM_OK) {
            status = push_block(e, w, (void *)(uintptr_t)slot->address);
        }
        atomic_fetch_add_explicit(&e->port->tally.bytes_sent, w->step->bytes, memory_order_relaxed);
    }
    failed(e, w, status);
    slot->poisoned = atomic_load(&w->inst->failed);
    status = dmi_gpu_raise(e, DMI_LANE_SEND, g->peer_arrived[peer], (uint32_t)(w->ordinal + 1));
    failed(e, w, status);
    atomic_fetch_add_explicit(&e->port->tally.messages_sent, 1, memory_order_relaxed);
    atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release); /* it has been put on its way */
    dmi_bell_ring(&port->bell);
    return true;
}

/* Steps in the order of the plans; stops at one that cannot be issued now. */
static bool issue(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    bool moved = false;
    while (g->inst) {
        dmi_instance *inst = g->inst;
        while (g->next < inst->plan->nstep) {
            const dmi_step *step = &inst->plan->step[g->next];
            if (inst->next_step[step->lane] <= g->next) { /* its lane is full: not enqueued yet */
                return moved;
            }
            dmi_work *w = slot_of(&e->lane[step->lane], inst->base.seq[step->lane] + step->ordinal);
            bool done = step->lane == DMI_LANE_COMPUTE ? issue_compute(e, w)
                        : step->lane == DMI_LANE_SEND  ? issue_push(e, w)
                                                       : issue_expect(e, w);
            if (!done) {
                return moved;
            }
            g->issued[step->lane]++;
            g->next++;
            moved = true;
        }
        if (inst == e->pending || g->next < inst->plan->nstep) {
            return moved;
        }
        g->inst = inst->next;
        g->next = 0;
    }
    return moved;
}

/* --- completion
 * ------------------------------------------------------------------------------------------------- */

/* Puts an event behind everything issued so far, when none is under way: when it is reached, so are all lanes.
 */
static dm_status place_marker(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    dmi_stamp all;
    memcpy(all.seq, g->issued, sizeof all.seq);
    dm_status status = dmi_gpu_after(e, STREAM_MARK, &all);
    if (status == DM_OK) {
        status = dmi_cu_event_record(g->marker, g->stream[STREAM_MARK]);
    }
    g->marker_stamp = all;
    g->marker_set = true;
    return status;
}

static void settle_upto(dmi_engine *e, const dmi_stamp *stamp)
{
    static const int order[DMI_LANES] = {DMI_LANE_RECV, DMI_LANE_COMPUTE, DMI_LANE_SEND};
    for (int k = 0; k < DMI_LANES; k++) {
        dmi_lane *lane = &e->lane[order[k]];
        for (uint64_t i = atomic_load(&lane->done) + 1; i <= stamp->seq[order[k]]; i++) {
            dmi_work *w = slot_of(lane, i);
            if (order[k] == DMI_LANE_RECV) {
                const dmi_slot *slot = &e->port->mailbox[w->step->peer].slot[w->ordinal % DMI_SLOTS];
                if (slot->poisoned) {
                    dmi_engine_fail(e, w->inst, DM_OK, "");
                } else if (!slot->refused) {
                    atomic_fetch_add_explicit(&e->port->tally.bytes_received, w->step->bytes,
                                              memory_order_relaxed);
                }
                atomic_fetch_add_explicit(&e->port->tally.messages_received, 1, memory_order_relaxed);
                e->peer[w->step->peer].retired++;
            }
            dmi_engine_settle(w);
            atomic_store_explicit(&lane->done, i, memory_order_release);
            atomic_fetch_add_explicit(&e->port->tally.steps, 1, memory_order_relaxed);
        }
    }
}

static bool complete(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    bool moved = false;
    if (g->marker_set && dmi_cu_event_reached(g->marker)) {
        g->marker_set = false;
        settle_upto(e, &g->marker_stamp);
        moved = true;
    }
    bool behind = false;
    for (int i = 0; i < DMI_LANES; i++) {
        behind = behind || g->issued[i] > atomic_load(&e->lane[i].done);
    }
    if (!g->marker_set && behind && !dmi_gpu_host_pending(e)) {
        dm_status status = place_marker(e);
        if (status != DM_OK && e->first) {
            dmi_engine_fail(e, e->first, status, dmi_error_text());
        }
        moved = true;
    }
    return moved;
}

void dmi_gpu_submitted(dmi_engine *e, dmi_instance *inst)
{
    if (!e->gpu->inst) {
        e->gpu->inst = inst;
        e->gpu->next = 0;
    }
}

bool dmi_gpu_progress(dmi_engine *e)
{
    bool moved = issue(e);
    moved = dmi_gpu_host_progress(e) || moved;
    return complete(e) || moved;
}
