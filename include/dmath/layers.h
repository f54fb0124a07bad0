/* clang-format off */
/* Layers of neural networks, forward and backward: convolution, pooling, inner product, losses, accuracy.
 *
 * Part of dmath.h, whose rules hold here too. Any spatial size, and any number of workers and layouts.
 *
 * Shapes: activations are N x H x W x C: samples, rows, columns, channels (NHWC). Weights of a convolution are K x R x
 * S x C/group (KRSC): out channels, rows, columns, in channels of a group. The gradient of an array has its shape.
 *
 * Types: f64, f32, f16, bf16, all floating operands of a call in any mixture; labels and targets these, or integers.
 * Computed in f64 where an operand is f64, else in f32; f16 and bf16 are rounded once, at the end. (On GPUs, where x
 * and dy have one type of 16 bits, gradients by the weights of a convolution are rounded to it a slice each, before
 * they are added; and cuDNN may round y to it before the bias is added.) Such operands are fastest on GPUs when x, y
 * and w have the same type.
 *
 * Layouts: any. Nothing is moved but weights where each slice (below) of each activation lies whole on one worker:
 * dm_layout_batch makes such layouts. Weights are fetched by the workers that need them, unless they are replicated.
 *
 * Slices: the same bits on any number of workers. The samples are cut into `slices` ranges of ceil(N / slices) samples;
 * the last may be shorter, and there may be fewer. One worker computes a slice, always with the same calls on the same
 * shapes. What is summed over samples (gradients of weights, losses) is first summed within each slice, then over the
 * slices in their order, in f64 (f64 itself in pairs of doubles), and rounded once. So results have the same bits for
 * any number of workers and any layouts, on hosts with the same processors and with the same option blas_threads.
 * slices = 0: as many as there are workers with samples, so that nothing but weights and sums is moved; results differ
 * by rounding then. More workers than slices: the others idle.
 *
 * Gradients on the wire: with the field `wire` = DM_BF16 each slice's gradient by the weights (dw) is rounded once to
 * bf16, to nearest, ties to even, before it is added: half the bytes of f32 go to the workers that add. Sums are made
 * as ever, and travel in dw's type. Slices are rounded wherever they are, on one worker too: the same bits on any
 * number of workers. The rounding makes dw wrong by at most 2^-8 of the sum of the slices' magnitudes (and 2^-134 a
 * slice, of numbers below 2^-126). The gradient by the bias (db) is not rounded. wire 0: all is sent as it is computed.
 * Errors: DM_ERR_ARG (another wire), DM_ERR_DTYPE (x or dy is f16, to which GPUs may have rounded such gradients).
 *
 * Calls with _by take factors that may be elements (<dmath/factors.h>). With elements, sums take a temporary of the
 * output's shape in f64, and other outputs one where they are narrower than what is computed in.
 *
 * Layers that are expressions, for dm_map (dy: the gradient that comes from above):
 *
 *     ReLU        y = where(x > 0, x, 0)
 *                 dx = where(x > 0, dy, 0); with the gradient of a bias: dm_relu_backward_sums
 *
 *     leaky ReLU  y = where(x > 0, x, slope * x)
 *                 dx = where(x > 0, dy, slope * dy)
 *
 *     dropout     y = where(uniform(seed) < keep, x * (1 / keep), 0)
 *                 dx: the same with dy in the place of x
 *
 *     bias        y = x + b, b of C elements
 *                 db = dm_channel_sums(dy)
 *
 *     scale       y = x * a, a of C elements
 *                 dx = dy * a, da = dm_channel_sums(dy, x)
 *
 *     batch norm  m = dm_channel_sums(x) / n, v = dm_channel_sums(c, c) / n, c = x - m, n: elements of a channel
 *                 y = c / sqrt(v + eps)
 *                 dx = (dy - g - y * h) / sqrt(v + eps), g = dm_channel_sums(dy) / n, h = dm_channel_sums(dy, y) / n
 *
 *     eltwise     a * x + b * y, x * y, maximum(x, y)
 *
 * The random numbers of dropout follow from the seed and the index of the element, so that no mask is stored. Give each
 * layer and iteration another seed. uniform is of the type that out has: x and dx must have one type. Such expressions
 * have the same bits on any number of workers. Reductions of dm_map may differ in the last.
 *
 * Blocking: none. Structures (dm_conv, ...) are read during the call; the arrays stay the caller's.
 *
 * Errors of all calls: DM_ERR_ARG (a structure is NULL or a field of it out of range, slices below 0), DM_ERR_SHAPE
 * (also an output of 8 dims), DM_ERR_DTYPE, DM_ERR_OVERLAP (an output shares memory with another operand).
 *
 * Costs of all calls: operands are read and outputs written once, unless a text says more. What a slice lacks of
 * activations, labels and targets moves to its worker; all of w and bias to each worker with slices. A sum over samples
 * (dw, db, out, loss) takes workspace of its size for each slice, in f64 for losses and sums by channel, else as
 * computed, and each holder is sent those of all slices; of 16 KiB or more only its segment, which it sends on when it is
 * finished. In programs, dw and db that are parts of one array may be summed together (option sum_bucket). */
/* clang-format on */
#ifndef DMATH_LAYERS_H
#define DMATH_LAYERS_H

#include <dmath/dmath.h>
#include <dmath/factors.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DM_SLICES = 4 }; /* the usual number */

/* The layout of `samples` samples by whole slices, dealt to the workers in contiguous ranges: for arrays whose dim 0 is
 * the batch. slices 0: one range a worker. */
DM_API dm_layout dm_layout_batch(const dm_session *session, int64_t samples, int slices);

/* ---- convolution ----------------------------------------------------------------------------------------- */

/* Make one with DM_CONV_INIT, then set fields. [0] is of rows, [1] of columns. */
typedef struct dm_conv {
    size_t size;                        /* sizeof(dm_conv): set by DM_CONV_INIT */
    int stride[2], pad[2], dilation[2]; /* at least 1, 0, 1 */
    int group; /* divides the channels of x and y: channels of group g of y see those of group g of x */
    int slices;
    int relu; /* not 0: forward, y = max(y, 0); the gradients are those of the convolution */
    int unused;    /* not read */
    dm_dtype wire; /* of the gradient by the weights: see "Gradients on the wire" above */
} dm_conv;
#define DM_CONV_INIT                                                                                           \
    {                                                                                                          \
        sizeof(dm_conv), {1, 1}, {0, 0}, {1, 1}, 1, DM_SLICES, 0, 0, (dm_dtype)0                               \
    }

/* y[4] = the shape of y for x of shape x[4] and weights of shape w[4]: rows (H + 2 pad - (dilation (R - 1) + 1)) /
 * stride + 1, rounded down. Errors: DM_ERR_ARG, DM_ERR_SHAPE (the kernel does not fit; channels). */
DM_API DM_CHECKED dm_status dm_conv_shape(const dm_conv *conv, const int64_t *x, const int64_t *w, int64_t *y);

/* y[n,p,q,k] = bias[k] + sum of x[n, p stride + r dilation - pad, ..., c] w[k,r,s,c] over r, s and the channels of k's
 * group; x is 0 in the padding. (A correlation, as everywhere in networks.) bias: K elements, or DM_NO_ARRAY. Costs of
 * this call and its gradients: 2 R S C/group flops an element of y. On CPUs by oneDNN in f32; on GPUs by cuDNN where
 * operands have 16 bits or may be rounded to TF32 (option gemm_compute), in 16 to 256 MiB of workspace and a few
 * copies; else, and in builds without these, as products, for which windows of x are copied to 2^21 elements of
 * workspace (2^24 on GPUs in f32). Source: Chellapilla, Puri & Simard (2006). */
DM_API DM_CHECKED dm_status dm_conv_forward(dm_session *session, const dm_conv *conv, dm_array x, dm_array w,
                                            dm_array bias, dm_array y);
/* dx = the gradient by x, all of it written. Also the forward form of a deconvolution, whose weights are those of the
 * convolution that it transposes (K: its in channels): dm_conv_forward is then the gradient by its input, and
 * dm_conv_backward_weights with x and dy exchanged that by its weights. */
DM_API DM_CHECKED dm_status dm_conv_backward_data(dm_session *session, const dm_conv *conv, dm_array dy,
                                                  dm_array w, dm_array dx);
/* dw = beta dw + the gradient by the weights; db = beta db + the sum of dy over samples and places. db: K elements, or
 * DM_NO_ARRAY. beta 0 does not read them. */
DM_API DM_CHECKED dm_status dm_conv_backward_weights(dm_session *session, const dm_conv *conv, dm_array x,
                                                     dm_array dy, double beta, dm_array dw, dm_array db);
DM_API DM_CHECKED dm_status dm_conv_backward_weights_by(dm_session *session, const dm_conv *conv, dm_array x,
                                                        dm_array dy, dm_factor beta, dm_array dw, dm_array db);

/* ---- pooling --------------------------------------------------------------------------------------------- */

enum { DM_POOL_MAX = 0, DM_POOL_AVERAGE = 1, DM_POOL_STOCHASTIC = 2, DM_POOL_WEIGHTED = 3 };

/* Make one with DM_POOL_INIT, then set fields. */
typedef struct dm_pool {
    size_t size;                      /* sizeof(dm_pool): set by DM_POOL_INIT */
    int method;                       /* DM_POOL_* */
    int kernel[2], stride[2], pad[2]; /* pad is less than kernel */
    int global;     /* not 0: the kernel is the whole plane; kernel, stride and pad are not read */
    int round_down; /* not 0: sizes are rounded down, not up */
    int slices;
    uint64_t seed; /* of DM_POOL_STOCHASTIC: another one for each layer and iteration */
    int relu; /* not 0: backward, of DM_POOL_MAX: x was made by a ReLU, and dx is the gradient by what that was given */
} dm_pool;
#define DM_POOL_INIT                                                                                           \
    {                                                                                                          \
        sizeof(dm_pool), DM_POOL_MAX, {2, 2}, {2, 2}, {0, 0}, 0, 0, DM_SLICES, 0, 0                                \
    }

/* y[4] = the shape of y for x of shape x[4], as Caffe has it: rows ceil((H + 2 pad - kernel) / stride) + 1, and
 * one less where there is padding (in any dim) and the last window would begin behind H + pad. So a kernel may
 * be larger than H + 2 pad, by less than a stride: it has one window. Errors: DM_ERR_ARG, DM_ERR_SHAPE (the
 * kernel does not fit). */
DM_API DM_CHECKED dm_status dm_pool_shape(const dm_pool *pool, const int64_t *x, int64_t *y);

/* y = the largest element of each window, or its mean. Windows are cut at H + pad: the mean divides by the elements up
 * to there, padding included. Of equal largest elements the first counts, in row-major order. DM_POOL_STOCHASTIC takes
 * the first element at which the running sum of the window reaches u times the sum of the window, u: the number of
 * dm_fill_uniform(0, 1, seed) for an f32 array of y's shape: an element of x >= 0 is taken with the probability x /
 * sum. DM_POOL_WEIGHTED, its counterpart for tests: the sum of x^2 divided by that of x; 0 where that is 0. which, of
 * y's shape, or DM_NO_ARRAY: the element that was taken; not for means (DM_ERR_ARG). i32 or i64: row * W + column of x. u8:
 * row * kernel[1] + column in the window, or 255: no element, or with relu none above 0; of windows of at most 255
 * elements (DM_ERR_DTYPE).
 * Cost: an element of y reads its window. Source: Zeiler & Fergus (2013), of DM_POOL_STOCHASTIC. */
DM_API DM_CHECKED dm_status dm_pool_forward(dm_session *session, const dm_pool *pool, dm_array x, dm_array y,
                                            dm_array which);
/* dx = the gradient by x, all of it written. x as it was given forward; not used by DM_POOL_AVERAGE, and may be
 * DM_NO_ARRAY there. Errors: DM_ERR_ARG (DM_POOL_WEIGHTED, which has no gradient). Cost: as forward; the places of the
 * largest elements are found again. */
DM_API DM_CHECKED dm_status dm_pool_backward(dm_session *session, const dm_pool *pool, dm_array x, dm_array dy,
                                             dm_array dx);
/* The same from the `which` of type u8 that dm_pool_forward wrote, with relu as it was there: x is not read. The same
 * bits. which: of dy's shape. Errors: DM_ERR_ARG (a method that takes no single element), DM_ERR_DTYPE (which is not
 * u8; windows of more than 255 elements). Cost: reads dy and which, writes dx. */
DM_API DM_CHECKED dm_status dm_pool_backward_which(dm_session *session, const dm_pool *pool, dm_array which,
                                                   dm_array dy, dm_array dx);

/* ---- local response normalisation ------------------------------------------------------------------------ */

/* Make one with DM_LRN_INIT, then set fields. */
typedef struct dm_lrn {
    size_t size;    /* sizeof(dm_lrn): set by DM_LRN_INIT */
    int local_size; /* odd */
    int within;     /* 0: windows of local_size channels; else of local_size x local_size pixels of a channel */
    double alpha, beta, k; /* k is not read within channels */
    int slices;
    int relu; /* not 0: backward, x was made by a ReLU, and dx is the gradient by what that was given: 0 where x <= 0 */
} dm_lrn;
#define DM_LRN_INIT                                                                                            \
    {                                                                                                          \
        sizeof(dm_lrn), 5, 0, 1, 0.75, 1, DM_SLICES, 0                                                          \
    }

/* y = x s^-beta. Across channels s = k + alpha / n * (sum of x^2 over the window), n = local_size; within channels s =
 * 1 + alpha / n^2 * (sum). Windows are centred, and x is 0 outside. x, y: N x ... x C; within channels N x H x W x C.
 * Cost: an addition for each element of a window, and a power for each element of x; workspace for two pixels, or
 * within channels two samples. Source: Krizhevsky, Sutskever & Hinton (2012). */
DM_API DM_CHECKED dm_status dm_lrn_forward(dm_session *session, const dm_lrn *lrn, dm_array x, dm_array y);
/* dx = the gradient by x. Cost: twice that of dm_lrn_forward. */
DM_API DM_CHECKED dm_status dm_lrn_backward(dm_session *session, const dm_lrn *lrn, dm_array x, dm_array dy,
                                            dm_array dx);

/* y = the pooling by the largest of what dm_lrn_forward makes of x, which is never in memory as a whole. Where
 * x and y have one type, y and which are to the bit those of dm_lrn_forward into an array of that type, and of
 * dm_pool_forward from it, but on GPUs for f16 and bf16 with more than 2048 channels, where nothing is rounded
 * in between. x: N x H x W x C; y: as dm_pool_shape has it; which: of y's shape, u8, or DM_NO_ARRAY.
 * pool->slices is not read: lrn->slices counts. Errors: DM_ERR_ARG (within is not 0, a method other than
 * DM_POOL_MAX), DM_ERR_DTYPE (which is not u8, or windows have more than 255 elements), DM_ERR_SHAPE. Cost: an
 * element of x is read, and an element of y and which written, by f16 and bf16 on GPUs with windows of 2 x 2,
 * stride 2, or 3 x 3, stride 1 or 2, C a multiple of 8 up to 1024 and local_size 3 or 5; else the costs of both
 * calls, and workspace for a sample, on GPUs for some. */
DM_API DM_CHECKED dm_status dm_lrn_pool_forward(dm_session *session, const dm_lrn *lrn, const dm_pool *pool,
                                                dm_array x, dm_array y, dm_array which);
/* dx = the gradient by x, from the `which` that dm_lrn_pool_forward wrote. dy: of y's shape. The numbers are
 * those of dm_pool_backward_which and dm_lrn_backward, as above. */
DM_API DM_CHECKED dm_status dm_lrn_pool_backward(dm_session *session, const dm_lrn *lrn, const dm_pool *pool,
                                                 dm_array x, dm_array which, dm_array dy, dm_array dx);

/* ---- inner product --------------------------------------------------------------------------------------- */

/* y = x w^T + bias. x: N x ..., of D elements a sample, in row-major order; w: M x ..., of D elements a row; y: N x
 * ..., of M elements a sample; bias: M elements, or DM_NO_ARRAY. Costs of this call and its gradients: 2 N M D flops,
 * in products a slice each. Every worker with samples has all of w: for large w and few samples dm_gemm may be faster,
 * but its sums are not those of slices. */
DM_API DM_CHECKED dm_status dm_inner_forward(dm_session *session, int slices, dm_array x, dm_array w,
                                             dm_array bias, dm_array y);
/* dx = dy w, of the same shapes. */
DM_API DM_CHECKED dm_status dm_inner_backward_data(dm_session *session, int slices, dm_array dy, dm_array w,
                                                   dm_array dx);
/* dw = beta dw + dy^T x, db = beta db + the sum of dy over the samples; db: M elements, or DM_NO_ARRAY. beta 0 does not
 * read them. */
DM_API DM_CHECKED dm_status dm_inner_backward_weights(dm_session *session, int slices, dm_array x, dm_array dy,
                                                      double beta, dm_array dw, dm_array db);
DM_API DM_CHECKED dm_status dm_inner_backward_weights_by(dm_session *session, int slices, dm_array x, dm_array dy,
                                                         dm_factor beta, dm_array dw, dm_array db);
/* Make one with DM_INNER_INIT, then set fields. */
typedef struct dm_inner {
    size_t size; /* sizeof(dm_inner): set by DM_INNER_INIT */
    int slices;
    dm_dtype wire; /* of dw: see "Gradients on the wire" above */
} dm_inner;
#define DM_INNER_INIT                                                                                          \
    {                                                                                                          \
        sizeof(dm_inner), DM_SLICES, (dm_dtype)0                                                               \
    }
/* The same with options. Errors: also DM_ERR_ARG (inner is NULL, its size or wire), DM_ERR_DTYPE (wire and
 * f16). Cost: as above; with wire each slice's dw is read once more, and written in bf16. */
DM_API DM_CHECKED dm_status dm_inner_backward_weights_with(dm_session *session, const dm_inner *inner,
                                                           dm_array x, dm_array dy, dm_factor beta, dm_array dw,
                                                           dm_array db);

/* ---- sums by channel ------------------------------------------------------------------------------------- */

/* out[c] = beta out[c] + scale * (sum of x[..., c] y[..., c] over all dims but the last). x and y: one shape, N x ... x
 * C; y may be DM_NO_ARRAY, which counts as 1; out: C elements, in any dims. Gradients of biases and scales, moments of
 * batch normalisation: the mean of x, then that of (x - mean)^2. Cost: a slice's sums take 8 C bytes. */
DM_API DM_CHECKED dm_status dm_channel_sums(dm_session *session, int slices, double scale, dm_array x,
                                            dm_array y, double beta, dm_array out);
DM_API DM_CHECKED dm_status dm_channel_sums_by(dm_session *session, int slices, dm_factor scale, dm_array x,
                                               dm_array y, dm_factor beta, dm_array out);

/* ---- update ---------------------------------------------------------------------------------------------- */

/* One step of gradient descent with momentum, in one pass: history = momentum * history + rate * (scale *
 * gradient + decay * weights), then weights = weights - history; with l1 not 0 sign(weights) counts in place of
 * weights. The same numbers as these two expressions of dm_map. gradient, history, weights: one shape and one
 * type, f32 or f64; history lies as weights does: in the same layout, and the same part of it where they are
 * views. rate: a number, or an element of f32 or f64. Errors: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP (of
 * any two), DM_ERR_LAYOUT (of the history). Cost: each array is read once, history and weights are written
 * once; the gradient comes to where weights lie. */
DM_API DM_CHECKED dm_status dm_momentum_step(dm_session *session, double scale, double decay, int l1,
                                             double momentum, dm_factor rate, dm_array gradient,
                                             dm_array history, dm_array weights);
/* The same, and rounded = weights in its type, in the same pass: the copy that layers of 16 bits take. weights:
 * f32; rounded: f16 or bf16, of one shape with weights, and it lies as weights does. Errors: also DM_ERR_LAYOUT
 * of rounded. Cost: rounded is written once. */
DM_API DM_CHECKED dm_status dm_momentum_step_rounded(dm_session *session, double scale, double decay, int l1,
                                                     double momentum, dm_factor rate, dm_array gradient,
                                                     dm_array history, dm_array weights, dm_array rounded);

/* ---- gradients of ReLU with sums ------------------------------------------------------------------------- */

/* dx = dy where x > 0, else 0; db[c] = beta db[c] + the sum of dx[..., c] over all dims but the last: the
 * gradients of ReLU(v + bias), where x is v + bias or the result. x, dy and dx: one shape, N x ... x C; db: C
 * elements, in any dims. beta 0 does not read db. Where dx has fewer bits than x or dy, the sum is that before
 * the rounding. Cost: dx and db in one pass; what dm_map and dm_channel_sums take reads dx once more. A slice's
 * sums take 8 C bytes. A view of some channels of a wider array is read or written where it is (dx: if all of
 * its rows begin at 16 bytes). */
DM_API DM_CHECKED dm_status dm_relu_backward_sums(dm_session *session, int slices, dm_array x, dm_array dy,
                                                  dm_array dx, double beta, dm_array db);
DM_API DM_CHECKED dm_status dm_relu_backward_sums_by(dm_session *session, int slices, dm_array x, dm_array dy,
                                                     dm_array dx, dm_factor beta, dm_array db);

/* ---- images ---------------------------------------------------------------------------------------------- */

/* Make one with DM_IMAGES_INIT, then set fields. */
typedef struct dm_images {
    size_t size; /* sizeof(dm_images): set by DM_IMAGES_INIT */
    double scale;
    int slices;
} dm_images;
#define DM_IMAGES_INIT                                                                                         \
    {                                                                                                          \
        sizeof(dm_images), 1, DM_SLICES                                                                        \
    }

/* Windows of images, which lie channel by channel as in files, become the input of a net: y[n,i,j,c] = scale *
 * (x[n,c, t + i, l + m] - mean[c, t + i, l + m]), m = j, or columns - 1 - j where the image is mirrored. x: N x
 * C x rows x columns, whole images, or windows that were cut from them before, of y's rows and columns: t and l
 * are 0 in these; u8, other integers or floats. y: N x rows x columns x C, no larger than x. places: N x 3
 * integers: t, l, and whether (not 0) the image is mirrored; a window that would not lie in the image (that of
 * the mean where x is windows) is moved by as much as is needed. mean: C elements, one a channel; or C x rows x
 * columns of the whole images; or DM_NO_ARRAY. Blocking, ownership: as all calls here. Cost: x is read and y is
 * written once; u8 is not converted in between, but other types first to what is computed in. Source: Caffe's
 * data transformer. */
DM_API DM_CHECKED dm_status dm_images_forward(dm_session *session, const dm_images *images, dm_array x,
                                              dm_array places, dm_array mean, dm_array y);

/* ---- losses ---------------------------------------------------------------------------------------------- */

/* By what a loss is divided: all labels; those that are not ignored; the samples; 1. Never by less than 1. */
enum { DM_NORMALIZE_FULL = 0, DM_NORMALIZE_VALID = 1, DM_NORMALIZE_SAMPLES = 2, DM_NORMALIZE_NONE = 3 };

/* Make one with DM_LOSS_INIT, then set fields. */
typedef struct dm_loss {
    size_t size;   /* sizeof(dm_loss): set by DM_LOSS_INIT */
    int normalize; /* DM_NORMALIZE_* */
    int ignores;   /* not 0: labels equal to ignore_label do not count */
    int ignore_label;
    int slices;
} dm_loss;
#define DM_LOSS_INIT                                                                                           \
    {                                                                                                          \
        sizeof(dm_loss), DM_NORMALIZE_VALID, 0, 0, DM_SLICES                                                   \
    }

/* prob = softmax of x over its last dim; loss = -(sum of log(max(prob at the label, FLT_MIN))) / normaliser. x: N x ...
 * x C; labels: N x ..., one for each C elements of x in row-major order, 0 to C - 1; prob: x's shape, or DM_NO_ARRAY;
 * loss: one element. A label outside 0 to C - 1 that is not ignored makes the loss NaN. Costs of all calls with labels:
 * x is read a few times where a slice has it; where ignored labels are to be counted (`ignores` with
 * DM_NORMALIZE_VALID), all labels come to each worker. */
DM_API DM_CHECKED dm_status dm_softmax_loss(dm_session *session, const dm_loss *options, dm_array x,
                                            dm_array labels, dm_array prob, dm_array loss);
/* dx = scale (prob - [c is the label]) / normaliser; 0 where the label is ignored; NaN where it is outside 0 to C - 1.
 * dx: the shape of prob. */
DM_API DM_CHECKED dm_status dm_softmax_loss_backward(dm_session *session, const dm_loss *options, dm_array prob,
                                                     dm_array labels, double scale, dm_array dx);
DM_API DM_CHECKED dm_status dm_softmax_loss_backward_by(dm_session *session, const dm_loss *options, dm_array prob,
                                                        dm_array labels, dm_factor scale, dm_array dx);

/* loss = -(sum of t log s + (1 - t) log(1 - s)) / normaliser, s = 1 / (1 + e^-x), over all elements of x. targets t:
 * x's shape; those equal to ignore_label do not count if `ignores`, and an element takes the place of a label in
 * DM_NORMALIZE_*. Caffe's default is DM_NORMALIZE_SAMPLES. loss: one element. */
DM_API DM_CHECKED dm_status dm_sigmoid_loss(dm_session *session, const dm_loss *options, dm_array x,
                                            dm_array targets, dm_array loss);
/* dx = scale (s - t) / normaliser; 0 where the target is ignored. dx: x's shape. */
DM_API DM_CHECKED dm_status dm_sigmoid_loss_backward(dm_session *session, const dm_loss *options, dm_array x,
                                                     dm_array targets, double scale, dm_array dx);
DM_API DM_CHECKED dm_status dm_sigmoid_loss_backward_by(dm_session *session, const dm_loss *options, dm_array x,
                                                        dm_array targets, dm_factor scale, dm_array dx);

/* loss = (sum of (x - t)^2) / (2 N). x: N x ...; targets t: x's shape; loss: one element. The gradient by x is an
 * expression: f * (x - t), f = scale / N. */
DM_API DM_CHECKED dm_status dm_euclidean_loss(dm_session *session, int slices, dm_array x, dm_array targets,
                                              dm_array loss);

/* loss = (sum of m, norm 1, or of m^2, norm 2) / N, m = max(0, 1 - x) at the label and max(0, 1 + x) at the other
 * classes. x, labels, loss: as those of dm_softmax_loss. Errors: DM_ERR_ARG (norm). */
DM_API DM_CHECKED dm_status dm_hinge_loss(dm_session *session, int norm, int slices, dm_array x,
                                          dm_array labels, dm_array loss);
/* dx = scale * the gradient by x. dx: x's shape. Errors: DM_ERR_ARG (norm). */
DM_API DM_CHECKED dm_status dm_hinge_loss_backward(dm_session *session, int norm, int slices, dm_array x,
                                                   dm_array labels, double scale, dm_array dx);
DM_API DM_CHECKED dm_status dm_hinge_loss_backward_by(dm_session *session, int norm, int slices, dm_array x,
                                                      dm_array labels, dm_factor scale, dm_array dx);

/* out = the part of the labels, ignored ones left out, whose score is among the top_k largest of their C scores. Ties
 * count against: a score equal to the label's is counted as larger. 0 where there are no labels, NaN where one is
 * outside 0 to C - 1. Of options the fields ignores, ignore_label and slices are read. x, labels: as those of
 * dm_softmax_loss; out: one element. Errors: DM_ERR_ARG (top_k is not 1 to C). */
DM_API DM_CHECKED dm_status dm_accuracy(dm_session *session, const dm_loss *options, int top_k, dm_array x,
                                        dm_array labels, dm_array out);

#ifdef __cplusplus
}
#endif
#endif
