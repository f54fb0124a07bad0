/* Convolutions by cuDNN, version 9. Images and weights stay as they are: NHWC and KRSC. What is made for a
 * shape, with the algorithm that is chosen for it, is kept with the queue's handle. */
#include "device/cuda/cudnn.h"
#include "kernels/dnn/dnn_cuda.h"

#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 512, ALGORITHMS = 16 };

/* A convolution of one shape, ready to run. */
typedef struct kept {
    dmi_convolution shape; /* without what differs between slices; all padding is zero */
    int which, algorithm;
    bool serves; /* the library has an algorithm for it */
    size_t bytes;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    uint64_t used;
} kept;

typedef struct cache {
    int count;
    uint64_t clock;
    kept *kept[KEPT_MOST];
} cache;

static void kept_free(kept *k)
{
    if (k->x) {
        cudnnDestroyTensorDescriptor(k->x);
    }
    if (k->y) {
        cudnnDestroyTensorDescriptor(k->y);
    }
    if (k->w) {
        cudnnDestroyFilterDescriptor(k->w);
    }
    if (k->conv) {
        cudnnDestroyConvolutionDescriptor(k->conv);
    }
    free(k);
}

static void cache_free(void *at)
{
    cache *c = at;
    for (int i = 0; i < c->count; i++) {
        kept_free(c->kept[i]);
    }
    free(c);
}

static bool ok(cudnnStatus_t s)
{
    return s == CUDNN_STATUS_SUCCESS;
}

static bool describe(kept *k)
{
    const dmi_convolution *d = &k->shape;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t form = CUDNN_TENSOR_NHWC;
    int n = (int)d->dnn.samples;
    return ok(cudnnCreateTensorDescriptor(&k->x)) && ok(cudnnCreateTensorDescriptor(&k->y)) &&
           ok(cudnnCreateFilterDescriptor(&k->w)) && ok(cudnnCreateConvolutionDescriptor(&k->conv)) &&
           ok(cudnnSetTensor4dDescriptor(k->x, form, type, n, (int)d->in[2], (int)d->in[0], (int)d->in[1])) &&
           ok(cudnnSetTensor4dDescriptor(k->y, form, type, n, (int)d->out[2], (int)d->out[0],
                                         (int)d->out[1])) &&
           ok(cudnnSetFilter4dDescriptor(k->w, type, form, (int)d->out[2], (int)(d->in[2] / d->group),
                                         (int)d->kernel[0], (int)d->kernel[1])) &&
           ok(cudnnSetConvolution2dDescriptor(k->conv, (int)d->pad[0], (int)d->pad[1], (int)d->stride[0],
                                              (int)d->stride[1], (int)d->dilation[0], (int)d->dilation[1],
                                              CUDNN_CROSS_CORRELATION, type)) &&
           ok(cudnnSetConvolutionGroupCount(k->conv, (int)d->group)) &&
           ok(cudnnSetConvolutionMathType(k->conv, d->tf32 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
}

/* The first algorithm, in the order of the library's estimates, that gives the same bits each time and fits. */
#define CHOOSE(k, found, count, room)                                                                          \
    for (int i = 0; i < (count) && !(k)->serves; i++) {                                                        \
        if (ok((found)[i].status) && (found)[i].determinism == CUDNN_DETERMINISTIC &&                          \
            (int64_t)(found)[i].memory <= (room)) {                                                            \
            (k)->serves = ok(cudnnSetConvolutionMathType((k)->conv, (found)[i].mathType));                     \
            (k)->algorithm = (int)(found)[i].algo;                                                             \
            (k)->bytes = (found)[i].memory;                                                                    \
        }                                                                                                      \
    }

static void choose(kept *k, cudnnHandle_t handle, int64_t room)
{
    int count = 0;
    if (k->which == DMI_CUDNN_FORWARD) {
        cudnnConvolutionFwdAlgoPerf_t found[ALGORITHMS];
        if (ok(cudnnGetConvolutionForwardAlgorithm_v7(handle, k->x, k->w, k->conv, k->y, ALGORITHMS, &count,
                                                      found))) {
            CHOOSE(k, found, count, room)
        }
    } else if (k->which == DMI_CUDNN_DATA) {
        cudnnConvolutionBwdDataAlgoPerf_t found[ALGORITHMS];
        if (ok(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, k->w, k->y, k->conv, k->x, ALGORITHMS,
                                                           &count, found))) {
            CHOOSE(k, found, count, room)
        }
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t found[ALGORITHMS];
        if (ok(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, k->x, k->y, k->conv, k->w, ALGORITHMS,
                                                             &count, found))) {
            CHOOSE(k, found, count, room)
        }
    }
}

static void kept_make(kept *k, cudnnHandle_t handle, int64_t room)
{
    static const char *const names[] = {"forward", "by the input", "by the weights"};
    const dmi_convolution *d = &k->shape;
    if (describe(k)) {
        choose(k, handle, room);
    }
    dmi_log(DMI_LOG_DEBUG, "cuDNN: %s, %d x %d x %d x %d, kernel %d x %d, to %d: %s %d, %.1f MB",
            names[k->which], (int)d->dnn.samples, (int)d->in[0], (int)d->in[1], (int)d->in[2],
            (int)d->kernel[0], (int)d->kernel[1], (int)d->out[2], k->serves ? "algorithm" : "none",
            k->algorithm, (double)k->bytes * 1e-6);
}

/* Finds what fits, or makes it in the place of what was not used for longest. NULL: there is no memory. */
static kept *kept_get(cache *c, const kept *wanted, cudnnHandle_t handle, int64_t room)
{
    int oldest = 0;
    for (int i = 0; i < c->count; i++) {
        kept *k = c->kept[i];
        if (k->which == wanted->which && memcmp(&k->shape, &wanted->shape, sizeof k->shape) == 0) {
            k->used = ++c->clock;
            return k;
        }
        oldest = k->used < c->kept[oldest]->used ? i : oldest;
    }
    kept *k = malloc(sizeof *k);
    if (!k) {
        return NULL;
    }
    memcpy(k, wanted, sizeof *k);
    if (c->count == KEPT_MOST) {
        kept_free(c->kept[oldest]);
        c->kept[oldest] = k;
    } else {
        c->kept[c->count++] = k;
    }
    kept_make(k, handle, room);
    k->used = ++c->clock;
    return k;
}

static cudnnStatus_t run(const kept *k, cudnnHandle_t handle, void *const *at, void *workspace)
{
    const float one = 1, zero = 0;
    if (k->which == DMI_CUDNN_FORWARD) {
        return cudnnConvolutionForward(handle, &one, k->x, at[0], k->w, at[1], k->conv,
                                       (cudnnConvolutionFwdAlgo_t)k->algorithm, workspace, k->bytes, &zero,
                                       k->y, at[2]);
    }
    if (k->which == DMI_CUDNN_DATA) {
        return cudnnConvolutionBackwardData(handle, &one, k->w, at[1], k->y, at[0], k->conv,
                                            (cudnnConvolutionBwdDataAlgo_t)k->algorithm, workspace, k->bytes,
                                            &zero, k->x, at[2]);
    }
    return cudnnConvolutionBackwardFilter(handle, &one, k->x, at[0], k->y, at[1], k->conv,
                                          (cudnnConvolutionBwdFilterAlgo_t)k->algorithm, workspace, k->bytes,
                                          &zero, k->w, at[2]);
}

bool dmi_cudnn_conv(dmi_queue *q, int which, const dmi_convolution *d, void *const at[DMI_DNN_REFS],
                    void *workspace)
{
    dmi_cudnn *dnn = q->library[DMI_LIBRARY_CUDNN];
    kept wanted;
    if (!dnn || d->dnn.dtype != DM_F32) {
        return false;
    }
    if (!dnn->kept) {
        dnn->kept = calloc(1, sizeof(cache));
        dnn->free = dnn->kept ? cache_free : NULL;
    }
    memset(&wanted, 0, sizeof wanted);
    memcpy(&wanted.shape.in, d->in, sizeof *d - offsetof(dmi_convolution, in));
    wanted.shape.dnn.samples = d->dnn.samples;
    wanted.which = which;
    kept *k = dnn->kept ? kept_get(dnn->kept, &wanted, dnn->handle, dmi_cudnn_workspace(d)) : NULL;
    if (!k) {
        dmi_cuda_failed(q, "cuDNN", -1, "no memory for a convolution");
        return true;
    }
    if (!k->serves) {
        return false;
    }
    cudnnStatus_t s = run(k, dnn->handle, at, workspace);
    if (!ok(s)) {
        dmi_cuda_failed(q, "cuDNN", -1 - (int)s, cudnnGetErrorString(s));
    }
    return true;
}
