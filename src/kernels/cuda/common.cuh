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

/* Element positions of the DEPTH items a thread has: neighbours in a block are neighbours in the box. Where a box has
 * long rows, all items of a block are of one row, whose place is then worked out once for all of them. */
template <int SIDES, int DEPTH>
static __device__ __forceinline__ void locate_all(const dmi_cuda_box &box, int64_t (&at)[DEPTH][SIDES],
                                                  bool (&valid)[DEPTH])
{
    const uint32_t threads = DMI_CUDA_THREADS;
    if (box.chunks.extent > 0) {
        uint32_t i = divided(blockIdx.x, box.chunks);
        uint32_t first = (blockIdx.x - i * box.chunks.extent) * (threads * DEPTH) + threadIdx.x;
        int64_t row[SIDES] = {};
        for (int d = 1; d < box.ndim; d++) {
            uint32_t q = divided(i, box.extent[d]), r = i - q * box.extent[d].extent;
#pragma unroll
            for (int s = 0; s < SIDES; s++) {
                row[s] += r * box.stride[s][d];
            }
            i = q;
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t x = first + k * threads;
            valid[k] = x < box.extent[0].extent;
#pragma unroll
            for (int s = 0; s < SIDES; s++) {
                at[k][s] = row[s] + x * box.stride[s][0];
            }
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        uint32_t i = blockIdx.x * (threads * DEPTH) + k * threads + threadIdx.x;
        valid[k] = i < box.items;
        if (valid[k]) {
            locate<SIDES>(box, i, at[k]);
        }
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

/* Blocks for n items, `per_block` each. As many as there are items for: on Hopper that streams through memory 7 %
 * faster than a grid as large as the device, which goes over the items in turns. */
static inline unsigned blocks_for(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}
/* Blocks for locate_all. A block keeps to one row where that leaves at most a fifth of the threads idle. */
static inline unsigned blocks_for(dmi_cuda_box *box, int depth)
{
    int64_t n = box->extent[0].extent, per_block = (int64_t)DMI_CUDA_THREADS * depth;
    int64_t chunks = (n + per_block - 1) / per_block;
    if (chunks * per_block * 4 > n * 5) {
        box->chunks.extent = 0;
        return blocks_for(box->items, per_block);
    }
    box->chunks = dmi_cuda_divide_by(chunks);
    return (unsigned)(box->items / n * chunks);
}

static inline cudaStream_t stream_of(const dmi_queue *q)
{
    return (cudaStream_t)q->stream;
}

#endif
