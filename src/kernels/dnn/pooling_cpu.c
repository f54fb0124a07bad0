/* Pooling: window by window, some channels at a time. */
#include "kernels/cpu/simd.h"
#include "kernels/dnn/dnn_cpu.h"
#include "kernels/random/random.h"

#include <dmath/layers.h>
#include <string.h>

enum { TILE = 64 }; /* channels */

typedef struct window {
    int64_t sample, lo[2], hi[2]; /* its elements of x: rows, columns */
    int64_t size;                 /* elements up to H + pad, padding included */
    int64_t first;                /* number of its first result in y */
    int32_t at, row;              /* the number of its first element, and from one of its rows to the next */
} window;

/* The window of a sample that gives this row and column of y. Its elements have the numbers of their places in
 * the plane, or taps: those in the window, with its padding. */
DMI_BODY window window_of(const dmi_pooling *d, int64_t sample, int64_t row, int64_t column)
{
    const int64_t place[2] = {row, column};
    int64_t from[2];
    window w = {.sample = sample,
                .size = 1,
                .first = (((d->dnn.first + sample) * d->out[0] + row) * d->out[1] + column) * d->in[2]};
    for (int a = 0; a < 2; a++) {
        int64_t lo = place[a] * d->stride[a] - d->pad[a], hi = DMI_MIN(lo + d->kernel[a], d->in[a] + d->pad[a]);
        w.size *= DMI_MAX(hi - lo, 0);
        from[a] = lo;
        w.lo[a] = DMI_MAX(lo, 0);
        w.hi[a] = DMI_MIN(hi, d->in[a]);
    }
    w.row = (int32_t)(d->taps ? d->kernel[1] : d->in[1]);
    w.at = (int32_t)(d->taps ? (w.lo[0] - from[0]) * d->kernel[1] + w.lo[1] - from[1]
                             : w.lo[0] * d->in[1] + w.lo[1]);
    return w;
}

static inline int32_t number_of(const window *w, int64_t row, int64_t column)
{
    return w->at + (int32_t)((row - w->lo[0]) * w->row + column - w->lo[1]);
}

/* Number `at` of those that dm_fill_uniform makes in [0, 1) of f32. */
static float uniform_at(uint64_t seed, int64_t at)
{
    dmi_words w = dmi_philox((uint64_t)at / 4, DMI_STREAM_UNIFORM, seed);
    uint32_t word = at % 4 == 0 ? w.w0 : at % 4 == 1 ? w.w1 : at % 4 == 2 ? w.w2 : w.w3;
    dmi_uniform32 range = dmi_uniform32_make(0, 1);
    return dmi_uniform32_at(&range, word);
}

/* Numbers of taps as they are kept, and the reverse. */
static void keep_taps(const int32_t *at, int64_t width, uint8_t *tap)
{
    for (int64_t k = 0; k < width; k++) {
        tap[k] = at[k] < 0 ? UINT8_MAX : (uint8_t)at[k];
    }
}

static void kept_taps(const uint8_t *tap, int64_t width, int32_t *at)
{
    for (int64_t k = 0; k < width; k++) {
        at[k] = tap[k] == UINT8_MAX ? -1 : tap[k];
    }
}

#define TWICE(...) DMI_TWICE(__VA_ARGS__) /* with FN's names in full */
#define T float
#define FN(name) name##_f32
#define BODY(name) name##_f32_body
#include "kernels/dnn/pooling_type_cpu.h"
#undef T
#undef FN
#undef BODY
#define T double
#define FN(name) name##_f64
#define BODY(name) name##_f64_body
#include "kernels/dnn/pooling_type_cpu.h"
#undef T
#undef FN
#undef BODY

dm_status dmi_pooling_cpu(const dmi_kernel_call *call)
{
    const dmi_pooling *d = call->desc;
    uint64_t seed = (uint64_t)call->number[0].whole;
    const void *x = dmi_dnn_at(call, 0);
    void *y = dmi_dnn_at(call, 1), *which = dmi_dnn_at(call, 2);
    if (!y) {
        return DM_OK;
    }
    if (d->dnn.dtype == DM_F64) {
        forward_f64(d, seed, x, y, which);
    } else {
        forward_f32(d, seed, x, y, which);
    }
    return DM_OK;
}

dm_status dmi_pooling_back_cpu(const dmi_kernel_call *call)
{
    const dmi_pooling *d = call->desc;
    uint64_t seed = (uint64_t)call->number[0].whole;
    const void *x = dmi_dnn_at(call, 0), *dy = dmi_dnn_at(call, 1);
    void *dx = dmi_dnn_at(call, 2);
    if (!dx) {
        return DM_OK;
    }
    if (d->dnn.dtype == DM_F64) {
        backward_f64(d, seed, x, dy, dx);
    } else {
        backward_f32(d, seed, x, dy, dx);
    }
    return DM_OK;
}
