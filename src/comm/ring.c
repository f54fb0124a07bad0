/* One producer, many readers of the same frames; a frame is contiguous, the end of the buffer is padded. */
#include "comm/frames.h"
#include "comm/hub.h"

#include <assert.h>
#include <string.h>

static uint32_t frame_up(uint32_t bytes)
{
    return (bytes + DMI_FRAME_ALIGN - 1) / DMI_FRAME_ALIGN * DMI_FRAME_ALIGN;
}

static bool have_room(dmi_ring_writer *w, uint64_t bytes)
{
    if (w->head + bytes <= w->room_until) {
        return true;
    }
    uint64_t least = w->head;
    for (int i = 0; i < w->nconsumer; i++) {
        uint64_t at =
            atomic_load_explicit(&dmi_hub_port(w->hub, w->consumer[i])->consumed, memory_order_acquire);
        least = DMI_MIN(least, at);
    }
    w->room_until = least + w->hub->ring->size;
    return w->head + bytes <= w->room_until;
}

void *dmi_ring_reserve(dmi_ring_writer *w, uint32_t bytes)
{
    dmi_ring *ring = w->hub->ring;
    bytes = frame_up(bytes);
    assert(bytes <= ring->size / 4);
    uint64_t at = w->head & (ring->size - 1), left = ring->size - at;
    if (left < bytes) { /* pad to the end; `left` is a multiple of the alignment, so a header fits */
        if (!have_room(w, left + bytes)) {
            return NULL;
        }
        dmi_frame *pad = (dmi_frame *)(void *)(ring->data + at);
        *pad = (dmi_frame){.bytes = (uint32_t)left, .kind = DMI_FRAME_PAD};
        w->head += left;
        at = 0;
    } else if (!have_room(w, bytes)) {
        return NULL;
    }
    return ring->data + at;
}

void dmi_ring_publish(dmi_ring_writer *w, uint32_t bytes)
{
    w->head += frame_up(bytes);
    atomic_store_explicit(&w->hub->ring->head, w->head, memory_order_release);
}

void dmi_ring_wake(dmi_ring_writer *w)
{
    for (int i = 0; i < w->nconsumer; i++) {
        dmi_bell_ring(&dmi_hub_port(w->hub, w->consumer[i])->bell);
    }
}

const dmi_frame *dmi_ring_peek(const dmi_hub *hub, uint64_t *cursor)
{
    uint64_t head = atomic_load_explicit(&hub->ring->head, memory_order_acquire);
    while (*cursor != head) {
        const dmi_frame *frame =
            (const dmi_frame *)(const void *)(hub->ring->data + (*cursor & (hub->ring->size - 1)));
        if (frame->kind != DMI_FRAME_PAD || dmi_frame_wrong(frame, (int64_t)(head - *cursor))) {
            return frame; /* a pad that is wrong is for the reader to refuse */
        }
        *cursor += frame->bytes;
    }
    return NULL;
}
