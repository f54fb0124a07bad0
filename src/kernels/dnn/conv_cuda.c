/* Convolutions on GPUs: small ones of f32 by a kernel of the library's own, others by cuDNN where TF32 is
 * allowed, the build has it and it has an engine, else as products of matrices by cuBLAS, the windows of x
 * copied to the rows of one (im2col), some rows at a time. */
#include "kernels/dnn/dnn_cuda.h"

#include <cuda_runtime_api.h>

/* One group, one range of windows. */
typedef struct range {
    dmi_queue *q;
    const dmi_convolution *d;
    int64_t group, first, rows, weights; /* elements of a row of w */
    int64_t in, out;                     /* channels of a group */
    int64_t windows;                     /* of the slice */
    bool product;
    void *const *at;
} range;

static dmi_cuda_windows windows_of(const range *g)
{
    const dmi_convolution *d = g->d;
    dmi_cuda_windows p = {.dtype = d->dnn.dtype,
                          .first = g->first,
                          .rows = g->rows,
                          .channel = g->group * g->in,
                          .channels = g->in,
                          .pixel = d->in[2]};
    for (int a = 0; a < 2; a++) {
        p.in[a] = (int)d->in[a];
        p.out[a] = (int)d->out[a];
        p.kernel[a] = (int)d->kernel[a];
        p.stride[a] = (int)d->stride[a];
        p.pad[a] = (int)d->pad[a];
        p.dilation[a] = (int)d->dilation[a];
    }
    return p;
}

/* The windows as a matrix: rows x weights. */
static const void *matrix_of(const range *g, const void *x, void *columns, int64_t *ld, int64_t *offset)
{
    if (g->product) {
        *ld = g->d->in[2];
        *offset = g->first * g->d->in[2] + g->group * g->in;
        return x;
    }
    dmi_cuda_windows p = windows_of(g);
    dmi_cuda_launch_windows(g->q, &p, x, columns);
    *ld = g->weights;
    *offset = 0;
    return columns;
}

static void forward(const range *g)
{
    const dmi_convolution *d = g->d;
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .tf32 = d->tf32,
                  .trans_b = 1,
                  .m = g->rows,
                  .n = g->out,
                  .k = g->weights,
                  .ldb = g->weights,
                  .ldc = dmi_conv_pitch(d),
                  .b_offset = g->group * g->out * g->weights,
                  .c_offset = g->first * dmi_conv_pitch(d) + g->group * g->out};
    const void *a = matrix_of(g, g->at[0], g->at[4], &k.lda, &k.a_offset);
    dmi_cuda_gemm(g->q, &k, 1, a, g->at[1], 0, g->at[2], NULL);
}

static void data(const range *g)
{
    const dmi_convolution *d = g->d;
    int64_t sample = d->out[0] * d->out[1], first = g->first / sample, last = (g->first + g->rows - 1) / sample;
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .tf32 = d->tf32,
                  .m = g->rows,
                  .n = g->weights,
                  .k = g->out,
                  .lda = d->out[2],
                  .ldb = g->weights,
                  .ldc = g->product ? d->in[2] : g->weights,
                  .a_offset = g->first * d->out[2] + g->group * g->out,
                  .b_offset = g->group * g->out * g->weights,
                  .c_offset = g->product ? g->first * d->in[2] + g->group * g->in : 0};
    dmi_cuda_gemm(g->q, &k, 1, g->at[0], g->at[1], 0, g->product ? g->at[2] : g->at[3], NULL);
    if (!g->product) {
        dmi_cuda_windows p = windows_of(g);
        p.adds = g->rows < g->windows; /* samples lie in several ranges */
        dmi_cuda_launch_windows_back(g->q, &p, first, last - first + 1, g->at[3], g->at[2]);
    }
}

static void weights(const range *g)
{
    const dmi_convolution *d = g->d;
    dmi_gemm k = {.dtype = d->dnn.dtype,
                  .tf32 = d->tf32,
                  .trans_a = 1,
                  .m = g->out,
                  .n = g->weights,
                  .k = g->rows,
                  .lda = d->out[2],
                  .ldc = g->weights,
                  .a_offset = g->first * d->out[2] + g->group * g->out,
                  .c_offset = g->group * g->out * g->weights};
    const void *b = matrix_of(g, g->at[0], g->at[4], &k.ldb, &k.b_offset);
    dmi_cuda_gemm(g->q, &k, 1, g->at[1], b, g->first == 0 ? 0 : 1, g->at[2], NULL);
}

/* Range by range, as scratch allows; in a range all groups. */
static void each_range(const dmi_kernel_call *call, void *const *at, void (*act)(const range *))
{
    const dmi_convolution *d = call->desc;
    range g = {.q = call->queue,
               .d = d,
               .weights = d->columns[1],
               .in = d->in[2] / d->group,
               .out = d->out[2] / d->group,
               .windows = d->dnn.samples * d->out[0] * d->out[1],
               .product = dmi_convolution_is_product(d),
               .at = at};
    int64_t step = g.product ? g.windows : d->columns[0];
    for (g.first = 0; g.first < g.windows; g.first += step) {
        g.rows = DMI_MIN(step, g.windows - g.first);
        for (g.group = 0; g.group < d->group; g.group++) {
            act(&g);
        }
    }
}

static void clear(const dmi_kernel_call *call, int r, void *at)
{
    const dmi_dnn *d = call->desc;
    size_t bytes = (size_t)(d->count[r] * dmi_dtype_bytes(d->type[r]));
    cudaError_t e = bytes > 0 ? cudaMemsetAsync(at, 0, bytes, call->queue->stream) : cudaSuccess;
    if (e != cudaSuccess) {
        dmi_cuda_failed(call->queue, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
    }
}

/* By cuDNN, if it takes the convolution. */
static bool by_library(const dmi_kernel_call *call, int which, void *const *at)
{
    const dmi_convolution *d = call->desc;
    return d->dnn.samples > 0 &&
           dmi_cudnn_conv(call->queue, which, d, at, (char *)call->workspace + dmi_dnn_moved_bytes(&d->dnn, 3));
}

/* The gradient by the weights by a kernel of the library's own, if it is faster. */
static bool by_own(const dmi_kernel_call *call, void *const *at)
{
    const dmi_convolution *d = call->desc;
    bool own = dmi_cudnn_is_built() && dmi_cudnn_takes(d) &&
               dmi_cuda_weights_takes(call->queue, d, dmi_cudnn_workspace(d));
    if (own) {
        dmi_cuda_run_weights(call->queue, d, at[0], d->in[2], at[1], at[2],
                             (char *)call->workspace + dmi_dnn_moved_bytes(&d->dnn, 3));
    }
    return own;
}

dm_status dmi_conv_cuda(const dmi_kernel_call *call)
{
    const dmi_convolution *d = call->desc;
    void *at[DMI_DNN_REFS];
    dmi_cuda_align_in(call, 3, at);
    if (at[2] &&
        dmi_cuda_narrow(call->queue, d, DMI_NARROW_FORWARD,
                        &(dmi_cuda_narrow_at){.image = at[0], .matrix = at[1], .bias = at[3], .out = at[2]})) {
        dmi_cuda_align_out(call, 3, at);
        return DM_OK;
    }
    if (at[3] && by_library(call, DMI_CUDNN_BIASED, at)) {
        dmi_cuda_align_out(call, 3, at);
        return DM_OK;
    }
    if (!by_library(call, DMI_CUDNN_FORWARD, at)) {
        each_range(call, at, forward);
    }
    if (at[2] && (at[3] || d->relu)) {
        dmi_cuda_launch_bias(call->queue, &(dmi_cuda_bias){.dtype = d->dnn.dtype,
                                                           .rows = d->dnn.count[2] / d->out[2],
                                                           .channels = d->out[2],
                                                           .pitch = dmi_conv_pitch(d),
                                                           .relu = d->relu,
                                                           .from = at[2],
                                                           .bias = at[3],
                                                           .y = at[2]});
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}

dm_status dmi_conv_data_cuda(const dmi_kernel_call *call)
{
    void *at[DMI_DNN_REFS];
    dmi_cuda_align_in(call, 3, at);
    if (!by_library(call, DMI_CUDNN_DATA, at)) {
        const dmi_convolution *d = call->desc;
        int64_t windows = d->dnn.samples * d->out[0] * d->out[1];
        if (windows == 0 || (!dmi_convolution_is_product(d) && d->columns[0] < windows)) {
            clear(call, 2, at[2]); /* ranges add to it */
        }
        each_range(call, at, data);
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}

dm_status dmi_conv_weights_cuda(const dmi_kernel_call *call)
{
    const dmi_convolution *d = call->desc;
    int64_t places = d->dnn.samples * d->out[0] * d->out[1];
    void *at[DMI_DNN_REFS];
    dmi_cuda_align_in(call, 3, at);
    dmi_cuda_narrow_at narrow = {.image = at[0], .matrix = at[1], .out = at[2], .sums = at[3]};
    if (places > 0 && dmi_cuda_narrow(call->queue, d, DMI_NARROW_WEIGHTS, &narrow)) {
        dmi_cuda_align_out(call, 3, at);
        return DM_OK;
    }
    bool own = places > 0 && by_own(call, at),
         library = places > 0 && !own && by_library(call, DMI_CUDNN_WEIGHTS, at);
    if (places == 0) {
        clear(call, 2, at[2]);
    } else if (!own && !library) {
        each_range(call, at, weights);
    }
    if (at[3] && !(library && dmi_cudnn_packs(d))) {
        dmi_cuda_launch_channels(call->queue, d->dnn.dtype, places, d->out[2], at[1], NULL, d->dnn.type[3],
                                 at[3]);
    }
    dmi_cuda_align_out(call, 3, at);
    return DM_OK;
}
