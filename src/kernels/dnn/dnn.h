/* The descriptors of layers. A kernel computes one slice: consecutive samples, densely one after the other, of
 * each reference. All are of one type, f32 or f64, but for labels (i32; on GPUs f32 as well), indices (i32) and
 * sums of losses (f64). On GPUs the type of convolutions, inner products, pooling, LRN and sums by channel may
 * be f16 or bf16 too; sums, biases, their gradients and the gradients of inner products by their weights are
 * f32 then. */
#ifndef DMI_KERNEL_DNN_H
#define DMI_KERNEL_DNN_H

#include "base/base.h"

enum { DMI_DNN_REFS = 6 };

/* Each descriptor begins with one. Reference r has count[r] elements from element offset[r] on; 0: the call has
 * none. */
typedef struct dmi_dnn {
    dm_dtype dtype;         /* of samples and weights; computed in, but f16 and bf16 in f32 */
    int64_t first, samples; /* of the slice: its first sample in the batch */
    dm_dtype type[DMI_DNN_REFS];
    int mode[DMI_DNN_REFS]; /* DMI_READ, DMI_WRITE */
    int64_t offset[DMI_DNN_REFS], count[DMI_DNN_REFS];
    int64_t pitch[DMI_DNN_REFS]; /* of a reference whose rows may lie apart: elements from one to the next; 0:
                                    they do not */
} dmi_dnn;

/* x: samples x in, y: samples x out, w: out[2] x kernel x in[2] / group. [0] rows, [1] columns, [2] channels.
 *   conv          x, w, y, bias, scratch       y = x convolved with w, + bias. Pixels of y may lie apart
 *   conv_data     y, w, x, scratch             x = the gradient
 *   conv_weights  x, y, w, bias, scratch       w, bias = the gradients
 * scratch: of type dtype, columns[0] * columns[1] elements: so many rows of windows of x at once. */
typedef struct dmi_convolution {
    dmi_dnn dnn;
    int64_t in[3], out[3], kernel[2], stride[2], pad[2], dilation[2], group;
    int64_t columns[2];
    bool tf32; /* f32: x, y and w may be rounded to TF32, as in dmi_gemm */
    bool relu; /* conv: nothing below 0 in y */
} dmi_convolution;
enum {
    DMI_CONV_SCRATCH = 1 << 21,     /* elements of scratch, unless one row of windows has more */
    DMI_CONV_SCRATCH_GPU = 1 << 24, /* the same on GPUs, whose products are made of many rows */
};
/* Are the windows of x its pixels, in their order? Then they are read in place. */
bool dmi_convolution_is_product(const dmi_convolution *d);

/*   pooling       x, y, which    y = what `method` takes of each window
 *   pooling_back  x, y, dx       dx = the gradient by x; y: that by y; x is not read where means are taken; taps: x is
 *                                what pooling wrote as `which`
 * Number 0 of the call: the seed, whole. */
typedef struct dmi_pooling {
    dmi_dnn dnn;
    int method; /* DM_POOL_* */
    bool relu;  /* back and taps, DM_POOL_MAX: nothing where the largest is not above 0 */
    bool taps;  /* which is u8: the element's number in its window; UINT8_MAX: none receives a gradient */
    int64_t in[3], out[3], kernel[2], stride[2], pad[2];
} dmi_pooling;

/* x: samples x in, y: samples x out, w: out x in.
 *   inner          x, w, y, bias     y = x w^T + bias
 *   inner_data     y, w, x           x = y w
 *   inner_weights  x, y, w, bias     w = y^T x, bias = the sum of y */
typedef struct dmi_inner {
    dmi_dnn dnn;
    int64_t in, out;
    bool tf32; /* as in dmi_convolution */
} dmi_inner;

/* Of channel c, over `rows` rows of c channels; sums are f64:
 *   channel_sums  x, sums [, y]      sums = the sum of x, or x y
 *   relu_sums     x, dy, dx, sums    dx = dy where x > 0, else 0; sums = the sum of dx
 * Rows of x and dy, and dx of relu_sums, may lie apart. */
typedef struct dmi_channel_rows {
    dmi_dnn dnn;
    int64_t rows, channels;
} dmi_channel_rows;

/* x: samples x places x classes. whole: the labels are those of the whole batch, and are counted; else those of
 * the slice. softmax_loss  x, labels, sum, prob    sum = the loss of the slice, divided; prob = softmax of x
 *   softmax_back  prob, labels, dx        dx = (prob - [label]) / normaliser; number 0 of the call: scale
 *   accuracy      x, labels, sum          sum = how many labels are among the top_k, divided by their count
 *   hinge_loss    x, labels, sum          sum = the loss of the slice, divided
 *   hinge_back    x, labels, dx           dx = scale * the gradient
 * With targets of type dtype in the place of labels, one for each element, classes 1:
 *   pair_loss     x, targets, sum         sum = the loss of the slice, divided
 *   pair_back     x, targets, dx          dx = scale * the gradient of the sigmoid loss */
typedef struct dmi_labelled {
    dmi_dnn dnn;
    int64_t places, classes, batch;
    bool whole;
    int normalize, ignores, ignore_label, top_k;
    int loss; /* DMI_LOSS_* */
} dmi_labelled;
enum { DMI_LOSS_SIGMOID, DMI_LOSS_EUCLIDEAN, DMI_LOSS_HINGE_1, DMI_LOSS_HINGE_2 };

/*   lrn       x, y, scratch       y = x * (k + alpha / n * (sum of x^2 over a window))^-beta
 *   lrn_back  x, dy, dx, scratch  dx = the gradient
 * Windows: `size` channels of a pixel, n = size; or, within, size x size pixels of a channel, n = size^2 and k
 * = 1. scratch: 2 unit elements. Numbers of the call: alpha, beta, k. */
typedef struct dmi_lrn {
    dmi_dnn dnn;
    bool within, relu;   /* relu: back, nothing where x is not above 0 */
    int64_t size, in[3]; /* in: within */
    int64_t unit;        /* elements that windows stay in: the channels of a pixel, or a sample */
} dmi_lrn;

/*   lrn_pool       x, y, which, scratch        y = the largest of each window of what lrn makes of x; which:
 * its taps lrn_pool_back  x, which, dy, dx, scratch   dx = the gradient, from these taps `lrn` and `pooling`
 * are as those kernels take them, without references. scratch: what lies between the two, of `step` samples,
 * and behind it the scratch of lrn; none where `one`. Numbers of the call: those of lrn. */
typedef struct dmi_lrn_pool {
    dmi_dnn dnn;
    dmi_lrn lrn;
    dmi_pooling pooling;
    dm_dtype between; /* what lies between is rounded to it: of 16 bits where f32 is computed, else dnn.dtype */
    int64_t step;     /* samples at once */
    bool one;         /* on GPUs: nothing lies between the two in memory */
} dmi_lrn_pool;

/*   images    x, places, mean, y    y = (window of x - window of mean) * scale, mirrored, channels last
 * x: samples x channels x in, u8 or what is computed in; places: samples x {row, column, mirrored?}, i32; mean:
 * channels [x whole], or none; y: samples x out. A window begins at its place of `whole`, or at the nearest
 * where it fits, and at 0 of an x that is the window. Number 0 of the call: scale. */
typedef struct dmi_images {
    dmi_dnn dnn;
    int64_t in[2], whole[2]; /* rows, columns */
    int64_t out[3];          /* and channels */
    bool plane;              /* mean has an element for each of x, not for each channel */
} dmi_images;

#endif
