/* Payloads through host memory: to and from the master, which works there, and between GPUs that cannot reach
 * each other's memory. A payload comes in chunks of the plan that fit a staging buffer (profile.chunk).
 *
 * Out: packed on the device, copied to pinned memory, and then sent by the host's transport. In: the transport
 * fills pinned memory; then a copy and a kernel move the chunk to its destination. Chunks stay in the order of
 * their lane. */
#include "exec/gpu/parts.h"
#include "exec/mpi_link.h"
#include "kernels/direct.h"

#include <assert.h>
#include <string.h>

/* --- out --- */

bool dmi_gpu_send_staged(dmi_engine *e, dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    dmi_staged *buffer = dmi_gpu_packed_next(&g->out);
    if (!buffer) {
        return false;
    }
    assert(w->step->bytes <= g->chunk_bytes);
    dmi_gpu_packed_pack(e, buffer, w);
    dmi_gpu_packed_take(&g->out, buffer, w, CHUNK_ON_DEVICE);
    dmi_gpu_packed_record(e, w, DMI_LANE_SEND);
    return true;
}

static bool deliver(dmi_engine *e, dmi_queued_step *w)
{
    dmi_port *port = dmi_hub_port(e->config.hub, w->step->peer);
    dmi_mailbox *box = dmi_box_to(e, w);
    if (atomic_load_explicit(&box->granted, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    dmi_copy unpacked;
    char *base = slot->slab < 0 ? NULL : dmi_direct_map(e, w->step->peer, slot->slab);
    void *to = slot->slab < 0 ? (void *)(uintptr_t)slot->address : base ? (void *)(base + slot->address) : NULL;
    bool to_worker = w->step->peer < e->config.endpoints - 1; /* into such a chunk, as it is */
    if (!slot->refused && !atomic_load(&w->inst->failed)) {
        if (to && to_worker) {
            memcpy(to, w->staged->pinned, (size_t)w->step->bytes);
            dmi_count_sent(e, w->inst, w->step->peer, w->step->bytes);
        } else if (to && dmi_copy_unpack(w->step->desc, &unpacked, &w->staged->arena)) {
            dmi_run_copy(dmi_backend_cpu(), NULL, &unpacked, w->staged->pinned, to);
            dmi_count_sent(e, w->inst, w->step->peer, w->step->bytes);
        } else {
            dm_status status = to ? dmi_fail(DM_ERR_NOMEM, "no memory for a transfer")
                                  : dmi_fail(DM_ERR_TRANSPORT, "cannot map memory of the receiver");
            dmi_engine_fail(e, w->inst, status, dmi_error_text());
        }
    }
    slot->poisoned = dmi_engine_culprit(w->inst);
    atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&port->bell);
    return true;
}

/* True: the next chunk may be looked at too. */
static bool send_chunk(dmi_engine *e, dmi_staged *buffer)
{
    dmi_queued_step *w = buffer->work;
    bool message = e->peer[w->step->peer].transport == &dmi_transport_mpi;
    if (buffer->state == CHUNK_ON_DEVICE) {
        if (!dmi_cu_event_reached(buffer->event) || !dmi_engine_reached(e, &w->wait)) {
            return false;
        }
        dmi_transfer_check_source(e, w);
        buffer->state = CHUNK_WITH_LINK;
    }
    if (buffer->state == CHUNK_WITH_LINK &&
        (message ? dmi_mpi_push_packed(e, w, buffer->pinned) : deliver(e, w))) {
        buffer->state = CHUNK_DONE;
    }
    return buffer->state == CHUNK_DONE || (message && w->message); /* messages in flight overlap */
}

/* --- in --- */

bool dmi_gpu_grant_staged(dmi_engine *e, dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    int peer = w->step->peer;
    bool message = e->peer[peer].transport == &dmi_transport_mpi;
    dmi_staged *buffer = dmi_gpu_packed_next(&g->in);
    if (!buffer || (!message && w->ordinal - *dmi_retired(e, w) >= DMI_SLOTS)) {
        return false;
    }
    assert(w->step->bytes <= g->chunk_bytes);
    if (message) {
        if (!dmi_mpi_grant_packed(e, w, buffer->pinned)) {
            return false;
        }
    } else {
        dmi_mailbox *box = dmi_box_from(e, w);
        dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
        *slot = e->config.one_space
                    ? (dmi_slot){.slab = -1, .address = (uint64_t)(uintptr_t)buffer->pinned}
                    : (dmi_slot){.slab = DMI_MAX_SLABS - 1, .address = (uint64_t)(buffer->pinned - g->pinned)};
        atomic_store_explicit(&box->granted, w->ordinal + 1, memory_order_release);
        dmi_bell_ring(&dmi_hub_port(e->config.hub, peer)->bell);
    }
    dmi_gpu_packed_take(&g->in, buffer, w, CHUNK_WITH_LINK);
    return true;
}

/* -1: the sender's command failed; 0: not yet; 1: here. */
static int arrived(dmi_engine *e, dmi_queued_step *w)
{
    int peer = w->step->peer;
    if (e->peer[peer].transport == &dmi_transport_mpi) {
        return dmi_mpi_arrive_packed(e, w);
    }
    const dmi_mailbox *box = dmi_box_from(e, w);
    if (atomic_load_explicit(&box->arrived, memory_order_acquire) <= w->ordinal) {
        return 0;
    }
    ++*dmi_retired(e, w);
    uint64_t culprit = box->slot[w->ordinal % DMI_SLOTS].poisoned;
    if (culprit) {
        dmi_engine_inherit(e, w->inst, culprit);
    }
    return culprit ? -1 : 1;
}

static bool receive_chunk(dmi_engine *e, dmi_staged *buffer)
{
    return dmi_gpu_packed_receive(e, buffer, arrived);
}

bool dmi_gpu_staged_progress(dmi_engine *e)
{
    bool moved = dmi_gpu_packed_progress(e, &e->gpu->out, send_chunk);
    return dmi_gpu_packed_progress(e, &e->gpu->in, receive_chunk) || moved;
}
