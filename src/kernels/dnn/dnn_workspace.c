/* Workspace of layers: on GPUs, and nothing on CPUs or emulated GPUs, which have the CPU's kernels. */
#include "kernels/dnn/dnn_parts.h"

enum { CUDNN_LEAST = 16 << 20, CUDNN_MOST = 256 << 20 };

static bool on_gpu(const dmi_device_facts *facts)
{
    return facts->gpu && !facts->emulated;
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

int64_t dmi_cudnn_workspace(const dmi_convolution *d)
{
    int64_t x = d->dnn.samples * d->in[0] * d->in[1] * d->in[2] / d->group,
            y = d->dnn.samples * d->out[0] * d->out[1] * d->out[2] / d->group;
    return dmi_cudnn_room(d) + (dmi_cudnn_packs(d) ? dmi_cudnn_part(x) + dmi_cudnn_part(y) : 0);
}

static int64_t convolution(const void *desc, const dmi_device_facts *facts)
{
    const dmi_convolution *d = desc;
    bool cudnn = false;
#ifdef DMATH_WITH_CUDNN
    cudnn = d->dnn.dtype == DM_F32 && d->tf32;
#endif
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

#define INNER(name)                                                                                            \
    int64_t dmi_##name##_workspace(const void *desc, const dmi_device_facts *facts)                            \
    {                                                                                                          \
        return on_gpu(facts) ? dmi_dnn_moved_bytes(desc, 3) : 0;                                               \
    }
INNER(inner)
INNER(inner_data)
INNER(inner_weights)

/* A tap for each element of y. */
int64_t dmi_pooling_back_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_pooling *d = desc;
    return on_gpu(facts) && d->dnn.count[0] > 0 ? d->dnn.count[1] * (dmi_pooling_is_wide(d) ? 4 : 1) : 0;
}

/* The ratios of windows that are not summed in shared memory. */
int64_t dmi_lrn_back_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_lrn *d = desc;
    bool apart = d->within || d->unit > DMI_LRN_SHARED;
    return on_gpu(facts) && apart ? d->dnn.count[0] * dmi_dtype_bytes(d->dnn.dtype) : 0;
}
