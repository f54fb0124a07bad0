/* Blocks to and from the master, who works in host memory: packed, in pieces that fit pinned memory, in order.
 */
#include "exec/gpu_parts.h"

#include <assert.h>
#include <string.h>

static dmi_host_slot *next_slot(dmi_gpu *g)
{
    dmi_host_slot *slot = &g->host[g->host_tail % HOST_SLOTS];
    if (g->host_tail - g->host_head == HOST_SLOTS) {
        return NULL;
    }
    if (slot->draining) {
        if (!dmi_cu_event_reached(slot->event)) {
            return NULL;
        }
        slot->draining = false;
    }
    dmi_arena_free(&slot->arena);
    return slot;
}

bool dmi_gpu_push_host(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    dmi_host_slot *slot = next_slot(g);
    if (!slot) {
        return false;
    }
    assert(w->step->bytes <= g->host_bytes);
    dmi_copy packed;
    dm_status status = dmi_gpu_after(e, DMI_LANE_SEND, &w->wait);
    if (status == DM_OK && !dmi_copy_pack(w->step->desc, &packed, &slot->arena)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    }
    if (status == DM_OK && !atomic_load(&w->inst->failed)) {
        g->send_queue->device_run = dmi_gpu_runs(e, w, w->step->desc);
        e->config.backend->copy(g->send_queue, &packed, dmi_ref_pointer(w->inst, &w->step->ref[0]),
                                slot->device);
        status = dmi_cu_copy(g->stream[DMI_LANE_SEND], slot->pinned, slot->device, w->step->bytes);
    }
    if (status == DM_OK) {
        status = dmi_cu_event_record(slot->event, g->stream[DMI_LANE_SEND]);
    }
    if (status != DM_OK) {
        dmi_engine_fail(e, w->inst, status, dmi_error_text());
    }
    slot->work = w;
    slot->busy = true;
    g->host_tail++;
    return true;
}

bool dmi_gpu_expect_host(dmi_engine *e, dmi_work *w)
{
    dmi_gpu *g = e->gpu;
    int master = e->config.endpoints - 1;
    dmi_host_slot *slot = next_slot(g);
    if (!slot) {
        return false;
    }
    assert(w->step->bytes <= g->host_bytes);
    /* Now, and not when the block comes: what is issued after this step may wait for its arrival. */
    dm_status status = dmi_gpu_after(e, STREAM_HOST, &w->wait);
    if (status != DM_OK) {
        dmi_engine_fail(e, w->inst, status, dmi_error_text());
    }
    dmi_mailbox *box = &e->port->mailbox[master];
    box->slot[w->ordinal % DMI_SLOTS] = (dmi_slot){.slab = -1, .address = (uint64_t)(uintptr_t)slot->pinned};
    slot->work = w;
    slot->busy = true;
    g->host_tail++;
    atomic_store_explicit(&box->granted, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&dmi_hub_port(e->config.hub, master)->bell);
    return true;
}

static bool deliver(dmi_engine *e, dmi_host_slot *slot)
{
    dmi_work *w = slot->work;
    dmi_port *port = dmi_hub_port(e->config.hub, w->step->peer);
    dmi_mailbox *box = &port->mailbox[e->config.me];
    if (!dmi_cu_event_reached(slot->event) ||
        atomic_load_explicit(&box->granted, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_slot *to = &box->slot[w->ordinal % DMI_SLOTS];
    dmi_copy unpacked;
    if (!to->refused && !atomic_load(&w->inst->failed) &&
        dmi_copy_unpack(w->step->desc, &unpacked, &slot->arena)) {
        dmi_backend_cpu()->copy(NULL, &unpacked, slot->pinned, (void *)(uintptr_t)to->address);
        atomic_fetch_add_explicit(&e->port->tally.bytes_sent, w->step->bytes, memory_order_relaxed);
    }
    to->poisoned = atomic_load(&w->inst->failed);
    atomic_fetch_add_explicit(&e->port->tally.messages_sent, 1, memory_order_relaxed);
    atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&port->bell);
    return true;
}

static bool take_in(dmi_engine *e, dmi_host_slot *slot)
{
    dmi_gpu *g = e->gpu;
    dmi_work *w = slot->work;
    int master = e->config.endpoints - 1;
    dmi_mailbox *box = &e->port->mailbox[master];
    if (atomic_load_explicit(&box->arrived, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_copy unpacked;
    void *place = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    dm_status status = DM_OK;
    if (place && !dmi_copy_unpack(w->step->desc, &unpacked, &slot->arena)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a transfer");
    } else if (place) {
        status = dmi_cu_copy(g->stream[STREAM_HOST], slot->device, slot->pinned, w->step->bytes);
        g->host_queue->device_run = dmi_gpu_runs(e, w, w->step->desc);
        e->config.backend->copy(g->host_queue, &unpacked, slot->device, place);
    }
    if (status == DM_OK) {
        status = dmi_gpu_raise(e, STREAM_HOST, &g->arrived[master], (uint32_t)(w->ordinal + 1));
    }
    if (status == DM_OK) {
        status = dmi_cu_event_record(slot->event, g->stream[STREAM_HOST]);
    }
    if (status != DM_OK) {
        dmi_engine_fail(e, w->inst, status, dmi_error_text());
    }
    slot->draining = true;
    return true;
}

bool dmi_gpu_host_progress(dmi_engine *e)
{
    dmi_gpu *g = e->gpu;
    bool moved = false;
    while (g->host_head < g->host_tail) {
        dmi_host_slot *slot = &g->host[g->host_head % HOST_SLOTS];
        bool done = slot->work->step->kind == DMI_STEP_PUSH ? deliver(e, slot) : take_in(e, slot);
        if (!done) {
            break;
        }
        slot->busy = false;
        g->host_head++;
        moved = true;
    }
    return moved;
}

bool dmi_gpu_host_pending(const dmi_engine *e)
{
    return e->gpu->host_head < e->gpu->host_tail;
}
