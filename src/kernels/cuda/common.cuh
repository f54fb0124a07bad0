/* What all kernels share: positions of items, and grids. */
#ifndef DMI_CUDA_COMMON_CUH
#define DMI_CUDA_COMMON_CUH

#include <assert.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "kernels/cuda/launch.h"
}

static __device__ __forceinline__ uint32_t divided(uint32_t i, const dmi_cuda_divisor &by)
{
    return (uint32_t)((uint64_t)i * by.factor >> 31 >> by.shift);
}

/* Element positions of item i for SIDES sides. */
template <int SIDES>
static __device__ __forceinline__ void locate(const dmi_cuda_box &box, uint32_t i, int64_t *at)
{
    assert(i < box.items);
#pragma unroll
    for (int s = 0; s < SIDES; s++) {
        at[s] = 0;
    }
    int d = 0;
    for (; d < box.ndim - 1; d++) {
        uint32_t q = divided(i, box.extent[d]), r = i - q * box.extent[d].extent;
#pragma unroll
        for (int s = 0; s < SIDES; s++) {
            at[s] += r * box.stride[s][d];
        }
        i = q;
    }
#pragma unroll
    for (int s = 0; s < SIDES; s++) {
        at[s] += i * box.stride[s][d];
    }
}

/* The same over a product of runs; false where a run is shorter than the longest. */
static __device__ __forceinline__ bool locate(const dmi_cuda_runs &runs, uint32_t i, int64_t *src, int64_t *dst)
{
    assert(i < runs.items);
    bool inside = true;
    int64_t a = 0, b = 0;
    for (int d = 0; d < runs.ndim; d++) {
        const dmi_cuda_runs_dim &dim = runs.dim[d];
        uint32_t q = divided(i, dim.len), k = i - q * dim.len.extent;
        i = q;
        int64_t p = k, r = k;
        if (dim.run != NULL) {
            q = divided(i, dim.count);
            const dmi_run *run = dim.run + (i - q * dim.count.extent);
            i = q;
            p += run->a >> dim.shift;
            r += run->b >> dim.shift;
            inside = inside && k < run->len >> dim.shift;
        }
        a += p * dim.src_stride;
        b += r * dim.dst_stride;
    }
    *src = a;
    *dst = b;
    return inside;
}

/* N elements of T that are read and written at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) group {
    T v[N];
};

/* Blocks for n items, `per_block` each: at most a few times what the device runs at once, each then takes more.
 */
static inline unsigned blocks_for(const dmi_queue *q, int64_t n, int64_t per_block)
{
    int64_t blocks = (n + per_block - 1) / per_block, most = (int64_t)q->multiprocessors * 32;
    return (unsigned)DMI_MIN(blocks, most);
}

static inline cudaStream_t stream_of(const dmi_queue *q)
{
    return (cudaStream_t)q->stream;
}

#endif
