/* What pooling and its gradient share: windows and items. */
#ifndef DMI_DNN_POOLING_CUH
#define DMI_DNN_POOLING_CUH

extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

#include <dmath/layers.h>

struct window {
    int from[2], lo[2], hi[2], size; /* from: with padding; size: elements up to H + pad */
};

static __device__ __forceinline__ window window_of(const dmi_cuda_pooling &p, const int (&at)[2])
{
    window w;
    w.size = 1;
#pragma unroll
    for (int a = 0; a < 2; a++) {
        w.from[a] = at[a] * (int)p.stride[a].extent - p.pad[a];
        int end = min(w.from[a] + p.kernel[a], p.in[a] + p.pad[a]);
        w.size *= max(end - w.from[a], 0);
        w.lo[a] = max(w.from[a], 0);
        w.hi[a] = min(end, p.in[a]);
    }
    return w;
}

/* Where an item is: sample, row and column; its first element among those of all places. */
static __device__ __forceinline__ int64_t place_of(const dmi_cuda_pooling &p, uint32_t i, int64_t *sample,
                                                   int (&at)[2], int64_t *channel)
{
    uint32_t place = divided(i, p.lanes), row = divided(place, p.side[1]), n = divided(row, p.side[0]);
    *channel = (int64_t)(i - place * p.lanes.extent) * p.group;
    at[1] = (int)(place - row * p.side[1].extent);
    at[0] = (int)(row - n * p.side[0].extent);
    *sample = n;
    return place * p.channels + *channel;
}

#endif
