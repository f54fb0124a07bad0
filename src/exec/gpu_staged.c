/* Blocks through host memory: to and from the master, who works there, and between GPUs that cannot reach each
 * other's memory. A block comes in pieces of the plan that fit a place in pinned memory (profile.piece).
 *
 * Out: packed on the device, copied to pinned memory, and when the device is there, given to the host's link.
 * In: the link fills pinned memory; then a copy and a kernel bring it to its place, and this device's own
 * `arrived` counter is raised behind them, as a peer would. Pieces are handled in the order of their lane. */
#include "comm/mpi_link.h"
#include "exec/gpu_parts.h"

#include <assert.h>
#include <string.h>

enum { ON_DEVICE, WITH_LINK, DONE };

static dmi_staged *next_piece(dmi_staging *s)
{
    dmi_staged *piece = &s->piece[s->tail % STAGED];
    if (s->tail - s->head == STAGED || (piece->used && !dmi_cu_event_reached(piece->event))) {
        return NULL;
    }
    dmi_arena_free(&piece->arena);
    return piece;
}

static void take_piece(dmi_staging *s, dmi_staged *piece, dmi_work *w, int state)
{
    piece->work = w;
    piece->state = state;
    w->staged = piece;
    s->tail++;
}

static void mark(dmi_engine *e, dmi_work *w, int lane)
{
    w->staged->used = true;
    dmi_gpu_failed(e, w, dmi_cu_event_record(w->staged->event, e->gpu->stream[lane]));
}

/* --- out --- */

bool dmi_gpu_send_staged(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    dmi_queue *queue = g->queue[DMI_LANE_SEND];
    dmi_staged *piece = next_piece(&g->out);
    if (!piece) {
        return false;
    }
    assert(w->step->bytes <= g->piece_bytes);
    dmi_copy packed;
    const void *source = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status = dmi_gpu_after(e, DMI_LANE_SEND, &w->wait);
    dmi_gpu_time_begin(e, DMI_LANE_SEND, w);
    if (status == DM_OK && !dmi_copy_pack(w->step->desc, &packed, &piece->arena)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    if (status == DM_OK && source && !atomic_load(&w->inst->failed)) {
        queue->device_run = dmi_gpu_runs(e, w, &packed);
        e->config.backend->copy(queue, &packed, source, piece->device);
        status = dmi_cu_copy(queue->stream, piece->pinned, piece->device, w->step->bytes);
    }
    dmi_gpu_failed(e, w, status);
    dmi_gpu_time_end(e, DMI_LANE_SEND, w);
    take_piece(&g->out, piece, w, ON_DEVICE);
    mark(e, w, DMI_LANE_SEND);
    return true;
}

static bool deliver(dmi_engine *e, dmi_work *w)
{
    dmi_port *port = dmi_hub_port(e->config.hub, w->step->peer);
    dmi_mailbox *box = &port->mailbox[e->config.me];
    if (atomic_load_explicit(&box->granted, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    dmi_copy unpacked;
    char *base = slot->slab < 0 ? NULL : dmi_direct_map(e, w->step->peer, slot->slab);
    void *to = slot->slab < 0 ? (void *)(uintptr_t)slot->address : base ? (void *)(base + slot->address) : NULL;
    bool to_worker = w->step->peer < e->config.endpoints - 1; /* into such a piece, as it is */
    if (!slot->refused && !atomic_load(&w->inst->failed)) {
        if (to && to_worker) {
            memcpy(to, w->staged->pinned, (size_t)w->step->bytes);
            atomic_fetch_add_explicit(&e->port->tally.bytes_sent, w->step->bytes, memory_order_relaxed);
        } else if (to && dmi_copy_unpack(w->step->desc, &unpacked, &w->staged->arena)) {
            dmi_backend_cpu()->copy(NULL, &unpacked, w->staged->pinned, to);
            atomic_fetch_add_explicit(&e->port->tally.bytes_sent, w->step->bytes, memory_order_relaxed);
        } else {
            dmi_engine_fail(e, w->inst, to ? DM_ERR_NOMEM : DM_ERR_TRANSPORT,
                            to ? "no memory for a transfer" : "cannot map memory of the receiver");
        }
    }
    slot->poisoned = atomic_load(&w->inst->failed);
    atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&port->bell);
    return true;
}

/* True: the next piece may be looked at too. */
static bool send_piece(dmi_engine *e, dmi_staged *piece)
{
    dmi_work *w = piece->work;
    bool message = e->peer[w->step->peer].link == &dmi_link_mpi;
    if (piece->state == ON_DEVICE) {
        if (!dmi_cu_event_reached(piece->event) || !dmi_engine_reached(e, &w->wait)) {
            return false;
        }
        dmi_transfer_check_source(e, w);
        piece->state = WITH_LINK;
    }
    if (piece->state == WITH_LINK && (message ? dmi_mpi_push_packed(e, w, piece->pinned) : deliver(e, w))) {
        piece->state = DONE;
    }
    return piece->state == DONE || (message && w->message); /* messages under way overlap */
}

/* --- in --- */

bool dmi_gpu_grant_staged(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    int peer = w->step->peer;
    bool message = e->peer[peer].link == &dmi_link_mpi;
    dmi_staged *piece = next_piece(&g->in);
    if (!piece || (!message && w->ordinal - e->peer[peer].retired >= DMI_SLOTS)) {
        return false;
    }
    assert(w->step->bytes <= g->piece_bytes);
    if (message) {
        if (!dmi_mpi_grant_packed(e, w, piece->pinned)) {
            return false;
        }
    } else {
        dmi_mailbox *box = &e->port->mailbox[peer];
        dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
        *slot = e->config.one_space
                    ? (dmi_slot){.slab = -1, .address = (uint64_t)(uintptr_t)piece->pinned}
                    : (dmi_slot){.slab = DMI_MAX_SLABS - 1, .address = (uint64_t)(piece->pinned - g->pinned)};
        atomic_store_explicit(&box->granted, w->ordinal + 1, memory_order_release);
        dmi_bell_ring(&dmi_hub_port(e->config.hub, peer)->bell);
    }
    take_piece(&g->in, piece, w, WITH_LINK);
    return true;
}

/* -1: the sender's command failed; 0: not yet; 1: here. */
static int arrived(dmi_engine *e, dmi_work *w)
{
    int peer = w->step->peer;
    if (e->peer[peer].link == &dmi_link_mpi) {
        return dmi_mpi_arrive_packed(e, w);
    }
    const dmi_mailbox *box = &e->port->mailbox[peer];
    if (atomic_load_explicit(&box->arrived, memory_order_acquire) <= w->ordinal) {
        return 0;
    }
    e->peer[peer].retired++;
    return box->slot[w->ordinal % DMI_SLOTS].poisoned ? -1 : 1;
}

static dm_status unpack(dmi_engine *e, dmi_work *w, bool good)
{
    dmi_gpu *g = e->gpu;
    dmi_queue *queue = g->queue[DMI_LANE_RECV];
    dmi_copy unpacked;
    void *place = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status = dmi_gpu_after(e, DMI_LANE_RECV, &w->wait); /* what uses the place now */
    if (status != DM_OK || !place || !good) {
        return status;
    }
    if (!dmi_copy_unpack(w->step->desc, &unpacked, &w->staged->arena)) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    dmi_gpu_time_begin(e, DMI_LANE_RECV, w);
    status = dmi_cu_copy(queue->stream, w->staged->device, w->staged->pinned, w->step->bytes);
    queue->device_run = dmi_gpu_runs(e, w, &unpacked);
    e->config.backend->copy(queue, &unpacked, w->staged->device, place);
    dmi_gpu_time_end(e, DMI_LANE_RECV, w);
    atomic_fetch_add_explicit(&e->port->tally.bytes_received, w->step->bytes, memory_order_relaxed);
    return status == DM_OK && queue->error ? dmi_fail(DM_ERR_INTERNAL, "%s", queue->error_text) : status;
}

static bool receive_piece(dmi_engine *e, dmi_staged *piece)
{
    dmi_gpu *g = e->gpu;
    dmi_work *w = piece->work;
    if (piece->state == WITH_LINK) {
        int how = arrived(e, w);
        if (how == 0) {
            return false;
        }
        if (how < 0) {
            dmi_engine_fail(e, w->inst, DM_OK, "");
        }
        dmi_gpu_failed(e, w, unpack(e, w, how > 0));
        dmi_gpu_failed(e, w, dmi_gpu_raise(e, DMI_LANE_RECV, &g->arrived[w->step->peer], w->ordinal + 1));
        mark(e, w, DMI_LANE_RECV);
        piece->state = ON_DEVICE;
        w->started = true;
    }
    if (dmi_cu_event_reached(piece->event)) {
        piece->state = DONE;
    }
    return true;
}

static bool progress(dmi_engine *e, dmi_staging *s, bool (*each)(dmi_engine *, dmi_staged *))
{
    bool moved = false, on = true;
    for (uint64_t i = s->head; i < s->tail && on; i++) {
        dmi_staged *piece = &s->piece[i % STAGED];
        int before = piece->state;
        on = piece->state == DONE || each(e, piece);
        moved = moved || piece->state != before;
    }
    while (s->head < s->tail && s->piece[s->head % STAGED].state == DONE) {
        dmi_staged *piece = &s->piece[s->head++ % STAGED];
        piece->work->finished = true;
        piece->work = NULL;
        moved = true;
    }
    return moved;
}

bool dmi_gpu_staged_progress(dmi_engine *e)
{
    bool moved = progress(e, &e->gpu->out, send_piece);
    return progress(e, &e->gpu->in, receive_piece) || moved;
}
