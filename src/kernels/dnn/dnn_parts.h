/* What kernels of layers share on all devices. */
#ifndef DMI_DNN_PARTS_H
#define DMI_DNN_PARTS_H

#include "kernels/kernel.h"

/* Reference r of a call; NULL: the call has none. */
static inline void *dmi_dnn_at(const dmi_kernel_call *call, int r)
{
    const dmi_dnn *d = (const dmi_dnn *)call->desc;
    return d->count[r] == 0 ? NULL : (char *)call->at[r] + d->offset[r] * dmi_dtype_bytes(d->type[r]);
}
/* What a loss of the batch is divided by; valid: labels that are not ignored. */
double dmi_labelled_divisor(const dmi_labelled *d, int64_t valid);

/* --- lrn_pool.c: lrn, then pooling, or their gradients the other way round, some samples at a time, by these
 * kernels. */
enum { DMI_LRN_POOL_CHANNELS = 1024 }; /* at most, where a GPU's kernel does both */
typedef dm_status dmi_dnn_run(const dmi_kernel_call *call);
DM_CHECKED dm_status dmi_lrn_pool_apart(const dmi_kernel_call *call, dmi_dnn_run *lrn, dmi_dnn_run *pooling);
DM_CHECKED dm_status dmi_lrn_pool_back_apart(const dmi_kernel_call *call, dmi_dnn_run *lrn,
                                             dmi_dnn_run *pooling);

/* --- dnn_workspace.c: on GPUs */
/* Elements from one pixel of y to the next, of a convolution. */
static inline int64_t dmi_conv_pitch(const dmi_convolution *d)
{
    return d->dnn.pitch[2] > 0 ? d->dnn.pitch[2] : d->out[2];
}

enum { DMI_DNN_ALIGNED = 16 }; /* bytes at which operands of libraries begin */
/* References 0 .. last - 1 that do not begin there: bytes of their copies, each rounded up. */
int64_t dmi_dnn_moved_bytes(const dmi_dnn *d, int last);
/* Bytes that an engine of cuDNN may take for a convolution: those of the operands, within bounds. */
int64_t dmi_cudnn_room(const dmi_convolution *d);
/* And the images that are copied, of groups or with blocks as channels, or weights that are turned. */
int64_t dmi_cudnn_workspace(const dmi_convolution *d);
bool dmi_cudnn_is_built(void);
/* Does cuDNN take it, where the build has it? Of f32 only what may be rounded to TF32. */
static inline bool dmi_cudnn_takes(const dmi_convolution *d)
{
    return dmi_dtype_bytes(d->dnn.dtype) == 2 || (d->dnn.dtype == DM_F32 && d->tf32);
}
/* Are the groups computed one by one? */
static inline bool dmi_cudnn_packs(const dmi_convolution *d)
{
    int64_t by = DMI_DNN_ALIGNED / dmi_dtype_bytes(d->dnn.dtype);
    return d->group > 1 && d->group <= 8 && d->in[2] / d->group % by == 0 && d->out[2] / d->group % by == 0;
}
/* Do blocks of `stride` pixels become channels? Forward and by the weights, of 16-bit types. */
static inline bool dmi_cudnn_folds(const dmi_convolution *d)
{
    return dmi_dtype_bytes(d->dnn.dtype) == 2 && d->group == 1 && d->dilation[0] == 1 && d->dilation[1] == 1 &&
           d->stride[0] * d->stride[1] > 1 && d->in[2] < DMI_DNN_ALIGNED / 2;
}
/* So many columns of y side by side are computed at one place then, each with outputs of its own, from a block
 * that much wider: engines are slow with few channels and few outputs (adr/0074). A power of 2. */
int64_t dmi_cudnn_side(const dmi_convolution *d);
/* The convolution that comes of it. */
void dmi_cudnn_fold(const dmi_convolution *d, dmi_convolution *folded);
/* Bytes of its bias, an element for each of its outputs. */
static inline int64_t dmi_cudnn_bias_bytes(const dmi_convolution *folded)
{
    return (folded->out[2] * (int64_t)sizeof(float) + 255) / 256 * 256;
}
/* So many channels of 16 bits, in whole lines of memory: of what the library's own kernels load. */
static inline int64_t dmi_cudnn_lines(int64_t channels)
{
    return (channels + 63) / 64 * 64;
}
/* Bytes of so many elements in the workspace. */
static inline int64_t dmi_cudnn_part(const dmi_convolution *d, int64_t elements)
{
    return (elements * dmi_dtype_bytes(d->dnn.dtype) + 255) / 256 * 256;
}
enum { DMI_LRN_SHARED = 2048 }; /* elements of the largest unit whose windows are summed in shared memory */
/* Elements of a window are counted in 8 bits by the taps of pooling; else in 32. */
static inline bool dmi_pooling_is_wide(const dmi_pooling *d)
{
    return d->kernel[0] * d->kernel[1] > UINT8_MAX;
}

#endif
