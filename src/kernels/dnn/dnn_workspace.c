/* Workspace of layers: on GPUs, and nothing on CPUs or emulated GPUs, which have the CPU's kernels. */
#include "kernels/dnn/dnn_parts.h"

enum { CUDNN_LEAST = 16 << 20, CUDNN_MOST = 256 << 20 };

static bool on_gpu(const dmi_device_facts *facts)
{
    return facts->gpu && !facts->emulated;
}

bool dmi_cudnn_is_built(void)
{
#ifdef DMATH_WITH_CUDNN
    return true;
#else
    return false;
#endif
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

int64_t dmi_dnn_moved_bytes(const dmi_dnn *d, int last)
{
    int64_t bytes = 0;
    for (int r = 0; r < last; r++) {
        int64_t elem = dmi_dtype_bytes(d->type[r]);
        bytes += d->offset[r] * elem % DMI_DNN_ALIGNED != 0 ? rounded(d->count[r] * elem) : 0;
    }
    return bytes;
}

int64_t dmi_cudnn_room(const dmi_convolution *d)
{
    int64_t bytes = 0;
    for (int r = 0; r < 3; r++) {
        bytes += d->dnn.count[r] * dmi_dtype_bytes(d->dnn.type[r]);
    }
    return rounded(DMI_MIN(DMI_MAX(bytes, CUDNN_LEAST), CUDNN_MOST));
}

static int64_t block_channels(const dmi_convolution *d)
{
    return d->in[2] * d->stride[0] * d->stride[1];
}

int64_t dmi_cudnn_side(const dmi_convolution *d)
{
    enum { DEPTH_MOST = 64, OUT_MOST = 256, EVEN = 8 };
    bool dense = dmi_conv_pitch(d) == d->out[2] && d->out[2] % EVEN == 0;
    int64_t side = 1;
    while (dense && 2 * side <= d->out[1] && d->out[1] % (2 * side) == 0 &&
           2 * side * block_channels(d) <= DEPTH_MOST && 2 * side * d->out[2] <= OUT_MOST) {
        side *= 2;
    }
    return side;
}

void dmi_cudnn_fold(const dmi_convolution *d, dmi_convolution *f)
{
    int64_t side = dmi_cudnn_side(d), block[2] = {d->stride[0], side * d->stride[1]},
            reach[2] = {d->kernel[0], d->kernel[1] + (side - 1) * d->stride[1]};
    *f = *d;
    f->out[1] /= side;
    f->out[2] *= side;
    for (int a = 0; a < 2; a++) {
        f->kernel[a] = (reach[a] + block[a] - 1) / block[a];
        f->in[a] = f->out[a] + f->kernel[a] - 1;
        f->stride[a] = 1;
        f->pad[a] = 0;
    }
    f->in[2] = (side * block_channels(d) + 7) / 8 * 8;
    f->columns[1] = f->kernel[0] * f->kernel[1] * f->in[2];
}

int64_t dmi_cudnn_workspace(const dmi_convolution *d)
{
    int64_t x = d->dnn.samples * d->in[0] * d->in[1] * d->in[2],
            y = d->dnn.samples * d->out[0] * d->out[1] * d->out[2];
    if (dmi_cudnn_folds(d)) {
        dmi_convolution f;
        dmi_cudnn_fold(d, &f);
        x = d->dnn.samples * f.in[0] * f.in[1] * dmi_cudnn_lines(f.in[2]);
        return dmi_cudnn_room(d) + dmi_cudnn_part(d, x) +
               dmi_cudnn_part(d, f.out[2] * f.kernel[0] * f.kernel[1] * dmi_cudnn_lines(f.in[2])) +
               dmi_cudnn_bias_bytes(&f);
    }
    int64_t images = dmi_cudnn_part(d, x) + dmi_cudnn_part(d, y),
            w = dmi_cudnn_part(d,
                               d->out[2] * d->kernel[0] * d->kernel[1] * dmi_cudnn_lines(d->in[2] / d->group));
    return dmi_cudnn_room(d) + (dmi_cudnn_packs(d) ? DMI_MAX(images, w) : w);
}

static int64_t convolution(const void *desc, const dmi_device_facts *facts)
{
    const dmi_convolution *d = desc;
    bool cudnn = dmi_cudnn_is_built() && dmi_cudnn_takes(d);
    return on_gpu(facts) ? dmi_dnn_moved_bytes(&d->dnn, 3) + (cudnn ? dmi_cudnn_workspace(d) : 0) : 0;
}

#define CONVOLUTION(name)                                                                                      \
    int64_t dmi_##name##_workspace(const void *desc, const dmi_device_facts *facts)                            \
    {                                                                                                          \
        return convolution(desc, facts);                                                                       \
    }
CONVOLUTION(conv)
CONVOLUTION(conv_data)
CONVOLUTION(conv_weights)

/* And, with a bias for 16 bits, the product in f32. */
int64_t dmi_inner_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_inner *d = desc;
    bool apart = d->dnn.count[3] > 0 && dmi_dtype_bytes(d->dnn.dtype) == 2;
    int64_t wide = apart ? d->dnn.count[2] * (int64_t)sizeof(float) : 0;
    return on_gpu(facts) ? dmi_dnn_moved_bytes(&d->dnn, 3) + wide : 0;
}

#define INNER(name)                                                                                            \
    int64_t dmi_##name##_workspace(const void *desc, const dmi_device_facts *facts)                            \
    {                                                                                                          \
        return on_gpu(facts) ? dmi_dnn_moved_bytes(desc, 3) : 0;                                               \
    }
INNER(inner_data)
INNER(inner_weights)

/* A tap for each element of y, unless they are given. */
int64_t dmi_pooling_back_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_pooling *d = desc;
    return on_gpu(facts) && d->dnn.count[0] > 0 && !d->taps ? d->dnn.count[1] * (dmi_pooling_is_wide(d) ? 4 : 1) : 0;
}

/* The ratios of windows that are not summed in shared memory. */
int64_t dmi_lrn_back_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_lrn *d = desc;
    bool apart = d->within || d->unit > DMI_LRN_SHARED;
    return on_gpu(facts) && apart ? d->dnn.count[0] * dmi_dtype_bytes(d->dnn.dtype) : 0;
}

/* The same, of the samples that it takes at once. */
int64_t dmi_lrn_pool_back_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_lrn_pool *d = desc;
    dmi_lrn part = d->lrn;
    part.dnn.count[0] = d->step * d->pooling.in[0] * d->pooling.in[1] * d->pooling.in[2];
    return dmi_lrn_back_workspace(&part, facts);
}
