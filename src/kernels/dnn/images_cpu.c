/* Images of bytes as the input of a net. A row of the window is converted channel by channel, then its channels
 * are brought together. */
#include "kernels/dnn/dnn_cpu.h"

enum { COLUMNS = 256 }; /* of a row at once */

typedef struct window {
    const dmi_images *d;
    int64_t row, column; /* of the mean's */
    int64_t first;       /* element of a channel of x, of the window's first */
    bool mirrored;
} window;

static int64_t within(int64_t at, int64_t most)
{
    return at < 0 ? 0 : at > most ? most : at;
}

static window place(const dmi_images *d, const int32_t *places)
{
    window w = {.d = d,
                .row = within(places[0], d->whole[0] - d->out[0]),
                .column = within(places[1], d->whole[1] - d->out[1]),
                .mirrored = places[2] != 0};
    w.first = within(w.row, d->in[0] - d->out[0]) * d->in[1] + within(w.column, d->in[1] - d->out[1]);
    return w;
}

#define T float
#define X uint8_t
#define FN(name) name##_f32_u8
#include "kernels/dnn/images_type_cpu.h"
#undef X
#undef FN
#define X float
#define FN(name) name##_f32
#include "kernels/dnn/images_type_cpu.h"
#undef T
#undef X
#undef FN
#define T double
#define X uint8_t
#define FN(name) name##_f64_u8
#include "kernels/dnn/images_type_cpu.h"
#undef X
#undef FN
#define X double
#define FN(name) name##_f64
#include "kernels/dnn/images_type_cpu.h"

dm_status dmi_images_cpu(const dmi_kernel_call *call)
{
    const dmi_images *d = call->desc;
    const void *x = dmi_dnn_at(call, 0), *mean = dmi_dnn_at(call, 2);
    const int32_t *places = dmi_dnn_at(call, 1);
    void *y = dmi_dnn_at(call, 3);
    if (!y) {
        return DM_OK;
    }
    const bool bytes = d->dnn.type[0] == DM_U8;
    for (int64_t n = 0; n < d->dnn.samples; n++) {
        const window w = place(d, places + 3 * n);
        if (d->dnn.dtype == DM_F64 && bytes) {
            image_f64_u8(&w, n, x, mean, call->number[0].re, y);
        } else if (d->dnn.dtype == DM_F64) {
            image_f64(&w, n, x, mean, call->number[0].re, y);
        } else if (bytes) {
            image_f32_u8(&w, n, x, mean, call->number[0].re, y);
        } else {
            image_f32(&w, n, x, mean, call->number[0].re, y);
        }
    }
    return DM_OK;
}
