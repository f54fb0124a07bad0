/* Convolutions as products: the windows of x are copied to the rows of a matrix (im2col), some rows at a time,
 * and multiplied by the weights. K. Chellapilla et al., "High performance convolutional neural networks for
 * document processing", 2006. */
#include "kernels/dnn/dnn_cpu.h"
#include "kernels/dnn/onednn.h"

#include <string.h>

bool dmi_convolution_is_product(const dmi_convolution *d)
{
    return d->kernel[0] == 1 && d->kernel[1] == 1 && d->stride[0] == 1 && d->stride[1] == 1 && d->pad[0] == 0 &&
           d->pad[1] == 0;
}

/* One row of a window: `kernel[1]` pixels of `channels` channels from column w on, each `step` columns behind
 * the other. */
typedef struct pixels {
    int64_t count, channels, step, width, pitch; /* pitch: channels of x */
} pixels;

static void gather_row(const pixels *p, int64_t bytes, const char *x, int64_t w, char *to)
{
    int64_t pixel = p->channels * bytes;
    if (p->step == 1 && p->channels == p->pitch) { /* one range, cut at both ends */
        int64_t lo = DMI_MIN(DMI_MAX(-w, 0), p->count), hi = DMI_MAX(DMI_MIN(p->count, p->width - w), lo);
        memset(to, 0, (size_t)(lo * pixel));
        if (hi > lo) {
            memcpy(to + lo * pixel, x + (w + lo) * pixel, (size_t)((hi - lo) * pixel));
        }
        memset(to + hi * pixel, 0, (size_t)((p->count - hi) * pixel));
        return;
    }
    for (int64_t s = 0; s < p->count; s++, w += p->step, to += pixel) {
        if (w >= 0 && w < p->width) {
            memcpy(to, x + w * p->pitch * bytes, (size_t)pixel);
        } else {
            memset(to, 0, (size_t)pixel);
        }
    }
}

#define ADD_ROW(name, type)                                                                                    \
    static void add_row_##name(const pixels *p, const type *from, int64_t w, type *x)                          \
    {                                                                                                          \
        for (int64_t s = 0; s < p->count; s++, w += p->step, from += p->channels) {                            \
            if (w >= 0 && w < p->width) {                                                                      \
                type *to = x + w * p->pitch;                                                                   \
                for (int64_t c = 0; c < p->channels; c++) {                                                    \
                    to[c] += from[c];                                                                          \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }
ADD_ROW(f32, float)
ADD_ROW(f64, double)

/* Windows first .. first + rows, counted over the samples, of x's channels from `channel` on: to columns, or
 * added to x. */
static void each_window(const dmi_convolution *d, int64_t channel, int64_t first, int64_t rows, char *x,
                        char *columns, bool add)
{
    int64_t bytes = dmi_dtype_bytes(d->dnn.dtype), line = d->in[1] * d->in[2] * bytes;
    pixels p = {d->kernel[1], d->in[2] / d->group, d->dilation[1], d->in[1], d->in[2]};
    if (p.channels == 0) { /* x and columns may be NULL */
        return;
    }
    x += channel * bytes;
    for (int64_t i = first; i < first + rows; i++) {
        int64_t q = i % d->out[1], at = i / d->out[1] % d->out[0], sample = i / d->out[1] / d->out[0];
        int64_t w = q * d->stride[1] - d->pad[1], h = at * d->stride[0] - d->pad[0];
        char *image = x + sample * d->in[0] * line;
        for (int64_t r = 0; r < d->kernel[0];
             r++, h += d->dilation[0], columns += p.count * p.channels * bytes) {
            bool inside = h >= 0 && h < d->in[0];
            if (!add && inside) {
                gather_row(&p, bytes, image + h * line, w, columns);
            } else if (!add) {
                memset(columns, 0, (size_t)(p.count * p.channels * bytes));
            } else if (inside && d->dnn.dtype == DM_F64) {
                add_row_f64(&p, (const void *)columns, w, (void *)(image + h * line));
            } else if (inside) {
                add_row_f32(&p, (const void *)columns, w, (void *)(image + h * line));
            }
        }
    }
}

/* One group, one range of windows. */
typedef struct range {
    const dmi_convolution *d;
    int64_t group, first, rows, weights; /* elements of a row of w */
    int64_t in, out;                     /* channels of a group */
    int64_t windows;                     /* of the slice */
    bool product;
} range;

/* The windows as a matrix: rows x weights. */
static const void *windows_of(const range *g, void *x, void *columns, int64_t *ld, int64_t *offset)
{
    if (g->product) {
        *ld = g->d->in[2];
        *offset = g->first * g->d->in[2] + g->group * g->in;
        return x;
    }
    each_window(g->d, g->group * g->in, g->first, g->rows, x, columns, false);
    *ld = g->weights;
    *offset = 0;
    return columns;
}

static void forward(const range *g, const dmi_kernel_call *call)
{
    const dmi_convolution *d = g->d;
    char *y = dmi_dnn_at(call, 2), *bias = dmi_dnn_at(call, 3);
    int64_t pitch = dmi_conv_pitch(d);
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .trans_b = 1,
                  .m = g->rows,
                  .n = g->out,
                  .k = g->weights,
                  .ldb = g->weights,
                  .ldc = pitch,
                  .b_offset = g->group * g->out * g->weights,
                  .c_offset = g->first * pitch + g->group * g->out};
    if (bias && g->group == 0) {
        dmi_dnn_repeat(d->dnn.dtype, bias, g->rows, d->out[2], pitch,
                       y + k.c_offset * dmi_dtype_bytes(d->dnn.dtype));
    }
    const void *a = windows_of(g, dmi_dnn_at(call, 0), dmi_dnn_at(call, 4), &k.lda, &k.a_offset);
    dmi_cpu_gemm(&k, 1, a, dmi_dnn_at(call, 1), bias ? 1 : 0, y);
}

static void data(const range *g, const dmi_kernel_call *call)
{
    const dmi_convolution *d = g->d;
    char *x = dmi_dnn_at(call, 2), *columns = dmi_dnn_at(call, 3);
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .m = g->rows,
                  .n = g->weights,
                  .k = g->out,
                  .lda = d->out[2],
                  .ldb = g->weights,
                  .ldc = g->product ? d->in[2] : g->weights,
                  .a_offset = g->first * d->out[2] + g->group * g->out,
                  .b_offset = g->group * g->out * g->weights,
                  .c_offset = g->product ? g->first * d->in[2] + g->group * g->in : 0};
    dmi_cpu_gemm(&k, 1, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1), 0, g->product ? x : columns);
    if (!g->product) {
        each_window(d, g->group * g->in, g->first, g->rows, x, columns, true);
    }
}

static void weights(const range *g, const dmi_kernel_call *call)
{
    const dmi_convolution *d = g->d;
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .trans_a = 1,
                  .m = g->out,
                  .n = g->weights,
                  .k = g->rows,
                  .lda = d->out[2],
                  .ldc = g->weights,
                  .a_offset = g->first * d->out[2] + g->group * g->out,
                  .c_offset = g->group * g->out * g->weights};
    const void *b = windows_of(g, dmi_dnn_at(call, 0), dmi_dnn_at(call, 4), &k.ldb, &k.b_offset);
    dmi_cpu_gemm(&k, 1, dmi_dnn_at(call, 1), b, g->first == 0 ? 0 : 1, dmi_dnn_at(call, 2));
}

/* Range by range, as scratch allows; in a range all groups. */
static dm_status each_range(const dmi_kernel_call *call, void (*act)(const range *, const dmi_kernel_call *))
{
    const dmi_convolution *d = call->desc;
    range g = {.d = d,
               .weights = d->columns[1],
               .in = d->in[2] / d->group,
               .out = d->out[2] / d->group,
               .windows = d->dnn.samples * d->out[0] * d->out[1],
               .product = dmi_convolution_is_product(d)};
    int64_t step = g.product ? g.windows : d->columns[0];
    dm_status status = dmi_cpu_blas_ready();
    for (g.first = 0; g.first < g.windows && status == DM_OK; g.first += step) {
        g.rows = DMI_MIN(step, g.windows - g.first);
        for (g.group = 0; g.group < d->group; g.group++) {
            act(&g, call);
        }
    }
    return status;
}

static void cut(dm_dtype dtype, int64_t count, void *y)
{
    float *f32 = y;
    double *f64 = y;
    for (int64_t i = 0; i < count && dtype == DM_F32; i++) {
        f32[i] = f32[i] < 0 ? 0 : f32[i];
    }
    for (int64_t i = 0; i < count && dtype == DM_F64; i++) {
        f64[i] = f64[i] < 0 ? 0 : f64[i];
    }
}

static void cut_rows(const dmi_convolution *d, char *y)
{
    int64_t pitch = dmi_conv_pitch(d), each = pitch == d->out[2] ? d->dnn.count[2] : d->out[2];
    for (int64_t i = 0; i < d->dnn.count[2]; i += each, y += pitch * dmi_dtype_bytes(d->dnn.dtype)) {
        cut(d->dnn.dtype, each, y);
    }
}

dm_status dmi_conv_cpu(const dmi_kernel_call *call)
{
    const dmi_convolution *d = call->desc;
    dm_status status = dmi_onednn_conv(DMI_ONEDNN_FORWARD, call) ? DM_OK : each_range(call, forward);
    if (d->relu) {
        cut_rows(d, dmi_dnn_at(call, 2));
    }
    return status;
}

static void clear(const dmi_kernel_call *call, int r)
{
    const dmi_dnn *d = call->desc;
    if (d->count[r] > 0) {
        memset(dmi_dnn_at(call, r), 0, (size_t)(d->count[r] * dmi_dtype_bytes(d->type[r])));
    }
}

dm_status dmi_conv_data_cpu(const dmi_kernel_call *call)
{
    const dmi_convolution *d = call->desc;
    if (dmi_onednn_conv(DMI_ONEDNN_DATA, call)) {
        return DM_OK;
    }
    if (!dmi_convolution_is_product(d)) {
        clear(call, 2);
    }
    return each_range(call, data);
}

dm_status dmi_conv_weights_cpu(const dmi_kernel_call *call)
{
    const dmi_convolution *d = call->desc;
    int64_t places = d->dnn.samples * d->out[0] * d->out[1];
    void *bias = dmi_dnn_at(call, 3);
    if (places == 0) {
        clear(call, 2);
    }
    dm_status status = dmi_onednn_conv(DMI_ONEDNN_WEIGHTS, call) ? DM_OK : each_range(call, weights);
    if (bias) {
        dmi_dnn_sum_rows(d->dnn.dtype, dmi_dnn_at(call, 1), places, d->out[2], bias);
    }
    return status;
}
