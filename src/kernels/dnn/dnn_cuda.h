/* Between the host code of layers on GPUs (C) and their kernels (CUDA C++). Orders of sums follow from the
 * descriptor alone, not from where the operands lie, so that a slice has the same bits wherever it is. */
#ifndef DMI_DNN_CUDA_H
#define DMI_DNN_CUDA_H

#include "kernels/cuda/launch.h"
#include "kernels/dnn/dnn_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- pooling.cu, pooling_back.cu: an item is `repeat` groups of channels of a window, or of a pixel of x */
typedef struct dmi_cuda_pooling {
    dm_dtype dtype;
    uint32_t items;
    int method, group, repeat; /* group: channels of one; the item has every lanes-th group */
    bool wide;                 /* taps have 32 bits, else 8 */
    bool relu;                 /* no tap of what is not above 0 */
    dmi_cuda_divisor lanes;    /* items of a pixel */
    dmi_cuda_divisor side[2];  /* of y, or backward of x: rows, columns */
    dmi_cuda_divisor stride[2];
    int in[2], out[2], kernel[2], pad[2];
    int64_t samples, channels, first; /* first: number of the first element of y */
    uint64_t seed;
} dmi_cuda_pooling;
/* A tap: which element of the window is taken, in row-major order, padding counted; all bits set: none. y,
 * which, taps: each may be NULL. */
void dmi_cuda_launch_pooling(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                             void *taps);
/* taps NULL: means. */
void dmi_cuda_launch_pooling_back(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy,
                                  void *dx);

/* --- pooling_strips.cu, pooling_strips_back.cu: the largest and means, usual windows, whole groups; false: not
 * those, and nothing was done. An item is a strip: `rows` of the all_rows places of a column, V channels. */
typedef struct dmi_cuda_strips {
    int64_t items;
    int rows, all_rows;
    dmi_cuda_divisor lanes, columns, strips;
} dmi_cuda_strips;
dmi_cuda_strips dmi_cuda_strips_of(const dmi_cuda_pooling *p, int v, int rows, int columns);
bool dmi_cuda_launch_pooling_strips(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y,
                                    void *taps);
bool dmi_cuda_launch_pooling_back_strips(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps,
                                         const void *dy, void *dx);

/* --- lrn.cu */
typedef struct dmi_cuda_lrn {
    dm_dtype dtype;
    bool within, relu;
    int64_t count, unit, in[3], size;
    double k, factor, beta; /* factor: alpha by the elements of a window */
} dmi_cuda_lrn;
/* dy NULL: forward. ratio: backward, room for x, where windows are not summed in shared memory
 * (DMI_LRN_SHARED). */
void dmi_cuda_launch_lrn(dmi_queue *q, const dmi_cuda_lrn *p, const void *x, const void *dy, void *out,
                         void *ratio);

/* --- lrn_pool.cu: both at once; pooling as of strips, of 16 bits and whole groups of 8 channels; windows of 3
 * or 5 channels. */
void dmi_cuda_launch_lrn_pool(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                              void *y, void *taps);
void dmi_cuda_launch_lrn_pool_back(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p,
                                   const void *x, const void *taps, const void *dy, void *dx);

/* --- channels.cu */
/* out[c] = the sum over rows of x[., c], or of x[., c] y[., c]. out: f64, or of type dtype. */
void dmi_cuda_launch_channels(dmi_queue *q, dm_dtype dtype, int64_t rows, int64_t channels, const void *x,
                              const void *y, dm_dtype out_dtype, void *out);
/* dx[., c] = dy[., c] where x[., c] > 0, else 0; sums[c] = the sum over rows of dx[., c]. Rows of x are x_pitch
 * apart, those of dy pitch, those of dx dx_pitch. */
typedef struct dmi_cuda_relu_sums {
    dm_dtype dtype; /* of x, dy and dx */
    int64_t rows, channels, x_pitch, pitch, dx_pitch;
    const void *x, *dy;
    void *dx;
    double *sums;
} dmi_cuda_relu_sums;
void dmi_cuda_launch_relu_sums(dmi_queue *q, const dmi_cuda_relu_sums *r);
/* y[., c] = from[., c] + bias[c]. from: of the type of bias, f32 where dtype has 16 bits, or y itself, or NULL; bias:
 * may be NULL. relu: nothing below 0. */
typedef struct dmi_cuda_bias {
    dm_dtype dtype; /* of y */
    int64_t rows, channels, pitch; /* pitch: from one row of y to the next; others are dense */
    bool relu;
    const void *from, *bias;
    void *y;
} dmi_cuda_bias;
void dmi_cuda_launch_bias(dmi_queue *q, const dmi_cuda_bias *b);

/* --- windows.cu */
/* Windows first .. first + rows of a group, as a matrix: rows x kernel x channels of a group. */
typedef struct dmi_cuda_windows {
    dm_dtype dtype;
    int64_t first, rows, channel; /* channel: the group's first */
    int64_t channels, pixel;      /* of a group; of a pixel of x */
    int in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
    int adds; /* windows_back: to what x has; else x is only written */
} dmi_cuda_windows;
void dmi_cuda_launch_windows(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns);
/* x = the sums of the elements of columns that are copies of an element of x, over `samples` samples from
 * `sample` on; or adds them to it. */
void dmi_cuda_launch_windows_back(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                                  const void *columns, void *x);

/* --- groups.cu: rows of `bytes` bytes, all groups of a pixel beside one another, to `groups` images of whole pixels;
 * back: the other way. A group's part of a row is a multiple of 16 bytes. */
void dmi_cuda_launch_groups(dmi_queue *q, int64_t rows, int64_t bytes, int64_t groups, bool back, const void *from,
                            void *to);

/* The same to images of groups, and out[c] = the sum over rows of x[., c], as dmi_cuda_launch_channels adds
 * them (channels.cu). dtype: f32, f16 or bf16. */
void dmi_cuda_launch_groups_sums(dmi_queue *q, dm_dtype dtype, int64_t rows, int64_t channels, int64_t groups,
                                 const void *x, void *to, dm_dtype out_dtype, void *out);
/* Weights of a convolution whose gradient by the input is to be made as a convolution forward: of each group
 * turned[c, R - 1 - r, S - 1 - s, k] = w[k, r, s, c]. elem: 2 or 4 bytes. */
typedef struct dmi_cuda_turned {
    int elem;
    int64_t groups, outputs, channels, places; /* outputs, channels: of a group; places: R S */
} dmi_cuda_turned;
void dmi_cuda_launch_turned(dmi_queue *q, const dmi_cuda_turned *t, const void *w, void *turned);

/* --- depth.cu: 16-bit elements */
typedef struct dmi_cuda_depth {
    int64_t samples;
    int in[2], out[2], block[2], pad[2]; /* rows and columns: of x, folded, of a block; of zeros before x */
    int channels, depth, pitch;          /* of x; folded, a multiple of 8; from one folded pixel to the next */
    int turns, shift;                    /* 1 or more; columns */
} dmi_cuda_depth;
/* folded[t samples + n, i, j, (a block[1] + b) channels + c]
 *     = x[n, i block[0] + a - pad[0], j block[1] + b - pad[1] - t shift, c] for each turn t */
void dmi_cuda_launch_depth(dmi_queue *q, const dmi_cuda_depth *p, const void *x, void *folded);
/* x = the elements of folded that are its, all turns added up, of f16 or bf16. */
void dmi_cuda_launch_depth_back(dmi_queue *q, const dmi_cuda_depth *p, dm_dtype dtype, const void *folded,
                                void *x);
/* y = x, `turns` times */
void dmi_cuda_launch_turns(dmi_queue *q, int64_t count, int64_t turns, const float *x, float *y);

/* --- images.cu */
typedef struct dmi_cuda_images {
    dm_dtype dtype; /* of y */
    int64_t samples;
    int in[2], whole[2], out[2], channels;
    bool plane, bytes; /* bytes: x is u8 */
} dmi_cuda_images;
/* mean: of the type that is computed in, or NULL. */
void dmi_cuda_launch_images(dmi_queue *q, const dmi_cuda_images *p, double scale, const void *x,
                            const void *places, const void *mean, void *y);

/* --- labelled.cu, labelled_back.cu */
enum dmi_cuda_labelled_what {
    DMI_CUDA_SOFTMAX,
    DMI_CUDA_SOFTMAX_BACK,
    DMI_CUDA_ACCURACY,
    DMI_CUDA_PAIR,
    DMI_CUDA_PAIR_BACK,
    DMI_CUDA_HINGE,
    DMI_CUDA_HINGE_BACK
};
/* labels: of the batch where d->whole. sum: of losses; made: prob, or dx, or NULL. */
void dmi_cuda_launch_labelled(dmi_queue *q, int what, const dmi_labelled *d, double scale, const void *x,
                              const void *labels, double *sum, void *made);

/* --- dnn_cuda.c: operands for libraries, which choose kernels by the alignment of pointers too. */
/* at[r] = reference r; of the first `last` those that do not begin at DMI_DNN_ALIGNED bytes are copied to the
 * workspace. */
void dmi_cuda_align_in(const dmi_kernel_call *call, int last, void *at[DMI_DNN_REFS]);
/* What was made there goes to where it belongs. */
void dmi_cuda_align_out(const dmi_kernel_call *call, int last, void *const at[DMI_DNN_REFS]);

/* Places in dnn.pitch of a convolution as plans of cuDNN, and the kernels below, take it. */
enum { DMI_CUDNN_X = 0, DMI_CUDNN_Y = 1 };

/* --- forward_cuda.c, weights_cuda.c: convolutions by kernels of the library's own, on Hopper GPUs */
/* Forward, of one group: where cuDNN would fill up channels. */
bool dmi_cuda_forward_takes(const dmi_queue *q, const dmi_convolution *d);
/* d has pitches (dnn.pitch, DMI_CUDNN_X and Y). w: places of a window lie dmi_cudnn_lines apart. bias: may be
 * NULL, and then there is no ReLU. */
void dmi_cuda_run_forward(dmi_queue *q, const dmi_convolution *d, const void *x, const void *w,
                          const void *bias, void *y);
/* The gradient by the weights, of 16 bits and without strides: where it is faster than cuDNN's, and `room`
 * bytes of workspace are enough. */
bool dmi_cuda_weights_takes(const dmi_queue *q, const dmi_convolution *d, int64_t room);
void dmi_cuda_run_weights(dmi_queue *q, const dmi_convolution *d, const void *x, int64_t x_pitch,
                          const void *dy, void *w, void *workspace);

/* --- narrow_cuda.c: small products of f32, where one kernel is faster than cuBLAS with those around it, on
 * Hopper GPUs FORWARD  image x, matrix w, bias   out = y DATA     image dy, matrix w        out = dx; of inner
 * products WEIGHTS  image x, matrix dy        out = dw, sums = the sums of dy */
enum { DMI_NARROW_FORWARD, DMI_NARROW_DATA, DMI_NARROW_WEIGHTS };
typedef struct dmi_cuda_narrow_at {
    const void *image, *matrix, *bias; /* bias: may be NULL */
    void *out, *sums;                  /* of f32; sums: may be NULL */
} dmi_cuda_narrow_at;
/* False: it is not taken, and nothing was done. That follows from the descriptor and the GPU. Operands are
 * aligned. */
bool dmi_cuda_narrow(dmi_queue *q, const dmi_convolution *d, int kind, const dmi_cuda_narrow_at *at);
bool dmi_cuda_narrow_inner(dmi_queue *q, const dmi_inner *d, int kind, const dmi_cuda_narrow_at *at);

/* --- cudnn_cuda.c */
enum {
    DMI_CUDNN_FORWARD,
    DMI_CUDNN_DATA,
    DMI_CUDNN_WEIGHTS,
    DMI_CUDNN_BIASED, /* forward */
    DMI_CUDNN_KINDS
};
/* Runs the convolution of aligned references, without its bias and ReLU but for DMI_CUDNN_BIASED, and without
 * the gradient of its bias unless dmi_cudnn_packs; false: cuDNN has no engine for it, and nothing was done. The
 * choice follows from the descriptor. workspace: dmi_cudnn_workspace. */
bool dmi_cudnn_conv(dmi_queue *q, int which, const dmi_convolution *d, void *const at[DMI_DNN_REFS],
                    void *workspace);

#ifdef __cplusplus
}
#endif
#endif
