/* Pushes: one operation that copies rows and then raises a word. */
#include "device/emulated/emulated.h"
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct push_op {
    dmi_emu_op op;
    dmi_push push;
} push_op;

static void run_push(dmi_emu_stream *s, dmi_emu_op *op)
{
    const dmi_push *p = &((const push_op *)op)->push;
    (void)s;
    for (int64_t row = 0; row < p->height; row++) {
        memcpy((char *)p->dst + row * p->dst_pitch, (const char *)p->src + row * p->src_pitch,
               (size_t)p->width);
    }
    dmi_emu_raise(p->counter, *p->value);
}

/* Rows that lie in one allocation of a device: a kernel cannot reach any other. */
static bool reached(const void *at, int64_t pitch, int64_t width, int64_t height)
{
    dmi_emu_place place = dmi_emu_find(at);
    return place.kind != DMI_EMU_PAGEABLE && (height <= 1 || pitch >= width) &&
           (height - 1) * pitch + width <= place.bytes;
}

static const char *complaint(const dmi_push *p)
{
    bool rows = p->width > 0 && p->height > 0;
    if (p->width < 0 || p->height < 0 || (rows && !reached(p->src, p->src_pitch, p->width, p->height))) {
        return "rows that are not of a device";
    }
    if (rows && !reached(p->dst, p->dst_pitch, p->width, p->height)) {
        return "a place that is not of a device";
    }
    int64_t word = sizeof *p->counter;
    bool words = reached(p->counter, word, word, 1) && reached(p->value, word, word, 1);
    return words && (uintptr_t)p->counter % sizeof *p->counter == 0 ? NULL
                                                                    : "a counter that is no word of a device";
}

void dmi_cuda_push(dmi_queue *q, const dmi_push *p)
{
    const char *why = q->error == 0 ? complaint(p) : NULL;
    push_op *o = q->error == 0 && !why ? malloc(sizeof *o) : NULL;
    if (o) {
        *o = (push_op){.op.run = run_push, .push = *p};
        dmi_emu_put(q->stream, &o->op);
    } else if (q->error == 0) {
        q->error = 1;
        snprintf(q->error_text, sizeof q->error_text, "push: %s", why ? why : "no memory");
    }
}
