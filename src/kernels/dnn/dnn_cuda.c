/* Layers on GPUs but for convolutions: what the kernels are given. */
#include "kernels/dnn/dnn_cuda.h"

#include <cuda_runtime_api.h>
#include <dmath/layers.h>

/* --- operands for libraries --- */

static void copy(dmi_queue *q, void *to, const void *from, int64_t bytes)
{
    cudaError_t e = cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, q->stream);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaMemcpyAsync", (int)e, cudaGetErrorString(e));
    }
}

void dmi_cuda_align_in(const dmi_kernel_call *call, int last, void *at[DMI_DNN_REFS])
{
    const dmi_dnn *d = call->desc;
    char *room = call->workspace;
    for (int r = 0; r < DMI_DNN_REFS; r++) {
        int64_t bytes = d->count[r] * dmi_dtype_bytes(d->type[r]);
        at[r] = dmi_dnn_at(call, r);
        if (r >= last || bytes == 0 || d->offset[r] * dmi_dtype_bytes(d->type[r]) % DMI_DNN_ALIGNED == 0) {
            continue;
        }
        if (d->mode[r] & DMI_READ) {
            copy(call->queue, room, at[r], bytes);
        }
        at[r] = room;
        room += (bytes + 255) / 256 * 256;
    }
}

void dmi_cuda_align_out(const dmi_kernel_call *call, int last, void *const at[DMI_DNN_REFS])
{
    const dmi_dnn *d = call->desc;
    for (int r = 0; r < last; r++) {
        void *own = dmi_dnn_at(call, r);
        if (d->mode[r] & DMI_WRITE && own != at[r]) {
            copy(call->queue, own, at[r], d->count[r] * dmi_dtype_bytes(d->type[r]));
        }
    }
}

/* --- inner products --- */

static void product(dmi_queue *q, const dmi_inner *d, dmi_gemm g, const void *a, const void *b, double beta,
                    void *c, dm_dtype c_dtype)
{
    g.dtype = d->dnn.dtype;
    g.c_dtype = c_dtype;
    g.tf32 = d->tf32;
    g.lda = DMI_MAX(g.lda, 1);
    g.ldb = DMI_MAX(g.ldb, 1);
    dmi_cuda_gemm(q, &g, 1, a, b, beta, c, NULL);
}

dm_status dmi_inner_cuda(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    void *at[DMI_DNN_REFS];
    dmi_gemm g = {
        .trans_b = 1, .m = d->dnn.samples, .n = d->out, .k = d->in, .lda = d->in, .ldb = d->in, .ldc = d->out};
    dmi_cuda_align_in(call, 3, at);
    if (at[2] && dmi_cuda_narrow_inner(
                     call->queue, d, DMI_NARROW_FORWARD,
                     &(dmi_cuda_narrow_at){.image = at[0], .matrix = at[1], .bias = at[3], .out = at[2]})) {
        dmi_cuda_align_out(call, 3, at);
        return DM_OK;
    }
    dmi_cuda_bias b = {.dtype = d->dnn.dtype,
                       .rows = d->dnn.samples,
                       .channels = d->out,
                       .pitch = d->out,
                       .bias = at[3],
                       .y = at[2]};
    bool halves = dmi_dtype_bytes(d->dnn.dtype) == 2, biased = at[2] && at[3];
    if (biased && !halves) {
        dmi_cuda_launch_bias(call->queue, &b);
    }
    /* 16 bits: the product goes to the workspace in f32, so that y is rounded once */
    char *wide = (char *)call->workspace + dmi_dnn_moved_bytes(&d->dnn, 3);
    bool apart = biased && halves;
    product(call->queue, d, g, at[0], at[1], biased && !apart ? 1 : 0, apart ? wide : at[2],
            apart ? DM_F32 : d->dnn.type[2]);
    if (apart) {
        b.from = wide;
        dmi_cuda_launch_bias(call->queue, &b);
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}

dm_status dmi_inner_data_cuda(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    void *at[DMI_DNN_REFS];
    dmi_gemm g = {.m = d->dnn.samples, .n = d->in, .k = d->out, .lda = d->out, .ldb = d->in, .ldc = d->in};
    dmi_cuda_align_in(call, 3, at);
    dmi_cuda_narrow_at narrow = {.image = at[0], .matrix = at[1], .out = at[2]};
    if (!dmi_cuda_narrow_inner(call->queue, d, DMI_NARROW_DATA, &narrow)) {
        product(call->queue, d, g, at[0], at[1], 0, at[2], d->dnn.type[2]);
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}

dm_status dmi_inner_weights_cuda(const dmi_kernel_call *call)
{
    const dmi_inner *d = call->desc;
    void *at[DMI_DNN_REFS];
    dmi_gemm g = {
        .trans_a = 1, .m = d->out, .n = d->in, .k = d->dnn.samples, .lda = d->out, .ldb = d->in, .ldc = d->in};
    dmi_cuda_align_in(call, 3, at);
    dmi_cuda_narrow_at narrow = {.image = at[0], .matrix = at[1], .out = at[2], .sums = at[3]};
    bool own = dmi_cuda_narrow_inner(call->queue, d, DMI_NARROW_WEIGHTS, &narrow);
    if (!own) {
        product(call->queue, d, g, at[1], at[0], 0, at[2], d->dnn.type[2]);
    }
    if (at[3] && !own) {
        dmi_cuda_launch_channels(call->queue, d->dnn.dtype, at[1] ? d->dnn.samples : 0, d->out, at[1], NULL,
                                 d->dnn.type[3], at[3]);
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}

dm_status dmi_channel_sums_cuda(const dmi_kernel_call *call)
{
    const dmi_channel_rows *d = call->desc;
    int64_t rows = dmi_dnn_at(call, 0) ? d->rows * d->dnn.samples : 0;
    dmi_cuda_launch_channels(call->queue, d->dnn.dtype, rows, d->channels, dmi_dnn_at(call, 0),
                             dmi_dnn_at(call, 2), DM_F64, dmi_dnn_at(call, 1));
    return DM_OK;
}

dm_status dmi_relu_sums_cuda(const dmi_kernel_call *call)
{
    const dmi_channel_rows *d = call->desc;
    void *x = dmi_dnn_at(call, 0), *sums = dmi_dnn_at(call, 3);
    dmi_cuda_relu_sums r = {.dtype = d->dnn.dtype,
                            .rows = x ? d->rows * d->dnn.samples : 0,
                            .channels = d->channels,
                            .x_pitch = d->dnn.pitch[0],
                            .pitch = d->dnn.pitch[1],
                            .dx_pitch = d->dnn.pitch[2],
                            .x = x,
                            .dy = dmi_dnn_at(call, 1),
                            .dx = dmi_dnn_at(call, 2),
                            .sums = sums};
    if (sums) {
        dmi_cuda_launch_relu_sums(call->queue, &r);
    }
    return DM_OK;
}

/* --- pooling --- */

static bool is_aligned(const void *p, int64_t bytes)
{
    return (uintptr_t)p % (uintptr_t)bytes == 0;
}

/* Items are groups of channels of a place of y, or (back) of x; an item takes several where there are many. */
static dmi_cuda_pooling describe(const dmi_kernel_call *call, const dmi_pooling *d, const int64_t places[2],
                                 bool grouped)
{
    enum { MANY = 132 * 2048 }; /* as many threads as run at once */
    int64_t group = 16 / dmi_dtype_bytes(d->dnn.dtype);
    dmi_cuda_pooling p = {.dtype = d->dnn.dtype,
                          .method = d->method,
                          .group = grouped && d->in[2] % group == 0 ? (int)group : 1,
                          .wide = dmi_pooling_is_wide(d),
                          .relu = d->relu && d->method == DM_POOL_MAX,
                          .channels = d->in[2],
                          .seed = (uint64_t)call->number[0].whole};
    int64_t groups = d->in[2] / p.group;
    int64_t all = d->dnn.samples * places[0] * places[1] * groups;
    p.repeat = groups % 4 == 0 ? 4 : groups % 2 == 0 ? 2 : 1;
    while (p.repeat > 1 && all / p.repeat < MANY) {
        p.repeat /= 2;
    }
    p.lanes = dmi_cuda_divide_by(groups / p.repeat);
    for (int a = 0; a < 2; a++) {
        p.in[a] = (int)d->in[a];
        p.out[a] = (int)d->out[a];
        p.kernel[a] = (int)d->kernel[a];
        p.pad[a] = (int)d->pad[a];
        p.stride[a] = dmi_cuda_divide_by(d->stride[a]);
    }
    return p;
}

/* Rows of a strip: as many as leave some strips for each thread that the GPU has. */
dmi_cuda_strips dmi_cuda_strips_of(const dmi_cuda_pooling *p, int v, int rows, int columns)
{
    enum { MOST = 8, THREADS = 1 << 19 };
    int64_t lanes = p->channels / v, line = p->samples * columns * lanes;
    int64_t each = DMI_MIN(DMI_MAX(line * rows / THREADS, 1), MOST), strips = (rows + each - 1) / each;
    return (dmi_cuda_strips){.items = line * strips,
                             .rows = (int)((rows + strips - 1) / strips),
                             .all_rows = rows,
                             .lanes = dmi_cuda_divide_by(lanes),
                             .columns = dmi_cuda_divide_by(columns),
                             .strips = dmi_cuda_divide_by(strips)};
}

/* Some samples at a time, as many as one launch may have. */
static int64_t samples_at_once(const dmi_pooling *d, const int64_t *places)
{
    return DMI_MAX(DMI_CUDA_ITEMS / (places[0] * places[1] * d->in[2]), 1);
}

static void pool(const dmi_kernel_call *call, const void *x, void *y, int32_t *which, char *taps)
{
    const dmi_pooling *d = call->desc;
    int64_t elem = dmi_dtype_bytes(d->dnn.dtype), tap = dmi_pooling_is_wide(d) ? 4 : 1;
    int64_t from = d->in[0] * d->in[1] * d->in[2], to = d->out[0] * d->out[1] * d->in[2],
            step = samples_at_once(d, d->out);
    bool grouped = is_aligned(x, 16) && is_aligned(y, 16) && is_aligned(which, 16) && is_aligned(taps, 8);
    dmi_cuda_pooling p = describe(call, d, d->out, grouped);
    for (int64_t n = 0; n < d->dnn.samples; n += step) {
        p.samples = DMI_MIN(step, d->dnn.samples - n);
        p.items = (uint32_t)(p.samples * to / p.group / p.repeat);
        p.first = (d->dnn.first + n) * to;
        for (int a = 0; a < 2; a++) {
            p.side[a] = dmi_cuda_divide_by(d->out[a]);
        }
        dmi_cuda_launch_pooling(call->queue, &p, (const char *)x + n * from * elem,
                                y ? (char *)y + n * to * elem : NULL, which ? which + n * to : NULL,
                                taps ? taps + n * to * tap : NULL);
    }
}

dm_status dmi_pooling_cuda(const dmi_kernel_call *call)
{
    void *y = dmi_dnn_at(call, 1);
    void *which = dmi_dnn_at(call, 2);
    bool taps = ((const dmi_pooling *)call->desc)->taps;
    if (y) {
        pool(call, dmi_dnn_at(call, 0), y, taps ? NULL : which, taps ? which : NULL);
    }
    return DM_OK;
}

dm_status dmi_pooling_back_cuda(const dmi_kernel_call *call)
{
    const dmi_pooling *d = call->desc;
    int64_t elem = dmi_dtype_bytes(d->dnn.dtype), tap = dmi_pooling_is_wide(d) ? 4 : 1;
    int64_t from = d->out[0] * d->out[1] * d->in[2], to = d->in[0] * d->in[1] * d->in[2],
            step = samples_at_once(d, d->in);
    const char *x = dmi_dnn_at(call, 0), *dy = dmi_dnn_at(call, 1), *taps = x;
    char *dx = dmi_dnn_at(call, 2);
    if (!dx) {
        return DM_OK;
    }
    if (x && !d->taps) {
        pool(call, x, NULL, NULL, call->workspace);
        taps = call->workspace;
    }
    dmi_cuda_pooling p =
        describe(call, d, d->in, is_aligned(dy, 16) && is_aligned(dx, 16) && is_aligned(taps, 8));
    for (int64_t n = 0; n < d->dnn.samples; n += step) {
        p.samples = DMI_MIN(step, d->dnn.samples - n);
        p.items = (uint32_t)(p.samples * to / p.group / p.repeat);
        for (int a = 0; a < 2; a++) {
            p.side[a] = dmi_cuda_divide_by(d->in[a]);
        }
        dmi_cuda_launch_pooling_back(call->queue, &p, taps ? taps + n * from * tap : NULL, dy + n * from * elem,
                                     dx + n * to * elem);
    }
    return DM_OK;
}

/* --- local response normalisation --- */

/* count: elements of x. */
static dmi_cuda_lrn numbers_of(const dmi_kernel_call *call, const dmi_lrn *d, int64_t count)
{
    double window = (double)d->size * (double)(d->within ? d->size : 1);
    return (dmi_cuda_lrn){.dtype = d->dnn.dtype,
                          .within = d->within,
                          .count = count,
                          .unit = d->unit,
                          .in = {d->in[0], d->in[1], d->in[2]},
                          .size = d->size,
                          .k = d->within ? 1 : call->number[2].re,
                          .factor = call->number[0].re / window,
                          .beta = call->number[1].re};
}

static void normalise(const dmi_kernel_call *call, const void *dy, void *out)
{
    const dmi_lrn *d = call->desc;
    dmi_cuda_lrn p = numbers_of(call, d, d->dnn.count[0]);
    p.relu = d->relu && dy;
    if (p.count > 0) {
        dmi_cuda_launch_lrn(call->queue, &p, dmi_dnn_at(call, 0), dy, out, call->workspace);
    }
}

dm_status dmi_lrn_cuda(const dmi_kernel_call *call)
{
    normalise(call, NULL, dmi_dnn_at(call, 1));
    return DM_OK;
}

dm_status dmi_lrn_back_cuda(const dmi_kernel_call *call)
{
    normalise(call, dmi_dnn_at(call, 1), dmi_dnn_at(call, 2));
    return DM_OK;
}

/* --- local response normalisation and pooling --- */

/* The kernel for both; `made` is dx where there is dy, else y. */
static void pool_normalised(const dmi_kernel_call *call, const char *x, char *taps, const char *dy, char *made)
{
    const dmi_lrn_pool *d = call->desc;
    const dmi_pooling *own = &d->pooling;
    const int64_t padded[2] = {own->in[0] + own->pad[0], own->in[1] + own->pad[1]};
    int64_t elem = dmi_dtype_bytes(d->dnn.dtype), in = own->in[0] * own->in[1] * own->in[2],
            out = own->out[0] * own->out[1] * own->in[2], step = samples_at_once(own, padded);
    dmi_cuda_pooling p = describe(call, own, own->out, true);
    for (int64_t n = 0; n < d->dnn.samples && made; n += step) {
        p.samples = DMI_MIN(step, d->dnn.samples - n);
        dmi_cuda_lrn l = numbers_of(call, &d->lrn, p.samples * in);
        l.relu = d->lrn.relu && dy;
        const char *from = x + n * in * elem;
        char *at = taps ? taps + n * out : NULL;
        if (dy) {
            dmi_cuda_launch_lrn_pool_back(call->queue, &l, &p, from, at, dy + n * out * elem,
                                          made + n * in * elem);
        } else {
            dmi_cuda_launch_lrn_pool(call->queue, &l, &p, from, made + n * out * elem, at);
        }
    }
}

dm_status dmi_lrn_pool_cuda(const dmi_kernel_call *call)
{
    if (!((const dmi_lrn_pool *)call->desc)->one) {
        return dmi_lrn_pool_apart(call, dmi_lrn_cuda, dmi_pooling_cuda);
    }
    pool_normalised(call, dmi_dnn_at(call, 0), dmi_dnn_at(call, 2), NULL, dmi_dnn_at(call, 1));
    return DM_OK;
}

dm_status dmi_lrn_pool_back_cuda(const dmi_kernel_call *call)
{
    if (!((const dmi_lrn_pool *)call->desc)->one) {
        return dmi_lrn_pool_back_apart(call, dmi_lrn_back_cuda, dmi_pooling_back_cuda);
    }
    pool_normalised(call, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1), dmi_dnn_at(call, 2), dmi_dnn_at(call, 3));
    return DM_OK;
}

/* --- losses and accuracy --- */

/* sum: reference 2; prob, where there is one: reference 3. */
static dm_status loss(const dmi_kernel_call *call, int what)
{
    dmi_cuda_launch_labelled(call->queue, what, call->desc, 0, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1),
                             dmi_dnn_at(call, 2), what == DMI_CUDA_SOFTMAX ? dmi_dnn_at(call, 3) : NULL);
    return DM_OK;
}

static dm_status gradient(const dmi_kernel_call *call, int what)
{
    dmi_cuda_launch_labelled(call->queue, what, call->desc, call->number[0].re, dmi_dnn_at(call, 0),
                             dmi_dnn_at(call, 1), NULL, dmi_dnn_at(call, 2));
    return DM_OK;
}

dm_status dmi_softmax_loss_cuda(const dmi_kernel_call *call)
{
    return loss(call, DMI_CUDA_SOFTMAX);
}

dm_status dmi_softmax_back_cuda(const dmi_kernel_call *call)
{
    return gradient(call, DMI_CUDA_SOFTMAX_BACK);
}

dm_status dmi_accuracy_cuda(const dmi_kernel_call *call)
{
    return loss(call, DMI_CUDA_ACCURACY);
}

dm_status dmi_pair_loss_cuda(const dmi_kernel_call *call)
{
    return loss(call, DMI_CUDA_PAIR);
}

dm_status dmi_pair_back_cuda(const dmi_kernel_call *call)
{
    return gradient(call, DMI_CUDA_PAIR_BACK);
}

dm_status dmi_hinge_loss_cuda(const dmi_kernel_call *call)
{
    return loss(call, DMI_CUDA_HINGE);
}

dm_status dmi_hinge_back_cuda(const dmi_kernel_call *call)
{
    return gradient(call, DMI_CUDA_HINGE_BACK);
}

/* --- images --- */

dm_status dmi_images_cuda(const dmi_kernel_call *call)
{
    const dmi_images *d = call->desc;
    dmi_cuda_images p = {.dtype = d->dnn.dtype,
                         .samples = d->dnn.samples,
                         .channels = (int)d->out[2],
                         .plane = d->plane,
                         .bytes = d->dnn.type[0] == DM_U8};
    for (int a = 0; a < 2; a++) {
        p.in[a] = (int)d->in[a];
        p.whole[a] = (int)d->whole[a];
        p.out[a] = (int)d->out[a];
    }
    if (dmi_dnn_at(call, 3)) {
        dmi_cuda_launch_images(call->queue, &p, call->number[0].re, dmi_dnn_at(call, 0), dmi_dnn_at(call, 1),
                               dmi_dnn_at(call, 2), dmi_dnn_at(call, 3));
    }
    return DM_OK;
}
