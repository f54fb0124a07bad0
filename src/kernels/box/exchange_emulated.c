/* Exchanges: one operation that copies, raises words and waits for words. */
#include "device/emulated/emulated.h"
#include "kernels/cuda/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct exchange_op {
    dmi_emu_op op;
    dmi_exchange_call call;
} exchange_op;

static void await(const dmi_exchange_call *x, const uint32_t *word, uint32_t value, int peer)
{
    bool told = false;
    while (!dmi_emu_has_reached(word, value) && !__atomic_load_n(x->give_up, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(x->awaits, (uint32_t)peer + 1, __ATOMIC_RELAXED);
        told = true;
        dmi_emu_sleep_on(word, value);
    }
    if (told) {
        __atomic_store_n(x->awaits, 0, __ATOMIC_RELAXED);
    }
}

static void run_exchange(dmi_emu_stream *s, dmi_emu_op *op)
{
    const dmi_exchange_call *x = &((const exchange_op *)op)->call;
    const uint32_t run = *x->run;
    (void)s;
    for (int i = 0; i < x->pushes; i++) {
        const dmi_exchange_rows *r = &x->rows[i];
        if (r->gate) {
            await(x, r->gate, run - 1, r->peer);
        }
        for (int64_t row = 0; r->here && row < r->height; row++) {
            memcpy(r->place + row * r->width, r->here + row * r->pitch, (size_t)r->width);
        }
        dmi_emu_raise(r->flag, run);
    }
    for (int i = x->pushes; i < x->pushes + x->arrivals; i++) {
        const dmi_exchange_rows *r = &x->rows[i];
        await(x, r->flag, run, r->peer);
        for (int64_t row = 0; r->here && row < r->height; row++) {
            memcpy(r->here + row * r->pitch, r->place + row * r->width, (size_t)r->width);
        }
    }
    if (x->last) {
        *x->run = run + 1;
        for (int i = 0; i < x->ends; i++) {
            dmi_emu_raise(x->ended[i], run);
        }
    }
}

/* Rows that lie in one allocation of a device. */
static bool reached(const void *at, int64_t pitch, int64_t width, int64_t height)
{
    dmi_emu_place place = dmi_emu_find(at);
    return width >= 0 && height >= 0 && place.kind != DMI_EMU_PAGEABLE && (height <= 1 || pitch >= width) &&
           (height - 1) * pitch + width <= place.bytes;
}

static const char *complaint(const dmi_exchange_call *x)
{
    const int64_t word = sizeof *x->run;
    bool words = reached(x->run, word, word, 1) && reached(x->give_up, word, word, 1) &&
                 reached(x->awaits, word, word, 1);
    for (int i = 0; i < x->ends; i++) {
        words = words && reached(x->ended[i], word, word, 1);
    }
    for (int i = 0; i < x->pushes + x->arrivals; i++) {
        const dmi_exchange_rows *r = &x->rows[i];
        words = words && reached(r->flag, word, word, 1) && (!r->gate || reached(r->gate, word, word, 1));
        if (r->here && (!reached(r->here, r->pitch, r->width, r->height) ||
                        !reached(r->place, r->width, r->width, r->height))) {
            return "rows or a place that are not of a device";
        }
    }
    return words ? NULL : "a word that is not of a device";
}

void dmi_cuda_exchange(dmi_queue *q, const dmi_exchange_call *call)
{
    const char *why = q->error == 0 ? complaint(call) : NULL;
    exchange_op *o = q->error == 0 && !why ? malloc(sizeof *o) : NULL;
    if (o) {
        *o = (exchange_op){.op.run = run_exchange, .call = *call};
        dmi_emu_put(q->stream, &o->op);
    } else if (q->error == 0) {
        q->error = 1;
        snprintf(q->error_text, sizeof q->error_text, "exchange: %s", why ? why : "no memory");
    }
}
