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

/* Element positions of the DEPTH items a thread has: neighbours in a thread block are neighbours in the box.
 * Where a box has long rows, all items of a thread block are of one row, whose position is then computed once
 * for all of them. */
template <int SIDES, int DEPTH>
static __device__ __forceinline__ void locate_all(const dmi_cuda_box &box, int64_t (&at)[DEPTH][SIDES],
                                                  bool (&valid)[DEPTH])
{
    const uint32_t threads = DMI_CUDA_THREADS;
    if (box.ndim == 1) {
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = blockIdx.x * (threads * DEPTH) + k * threads + threadIdx.x;
            valid[k] = i < box.items;
#pragma unroll
            for (int s = 0; s < SIDES; s++) {
                at[k][s] = i * box.stride[s][0];
            }
        }
        return;
    }
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

/* Adds the place of item k of one dim of a product of runs; returns false where a run is shorter than the
 * longest. */
static __device__ __forceinline__ bool advance(const dmi_cuda_runs_dim &dim, uint32_t k, uint32_t r,
                                               int64_t (&at)[2])
{
    int64_t a = k, b = k;
    bool inside = true;
    if (dim.run != NULL) {
        assert(r < dim.count.extent);
        const dmi_run *run = dim.run + r;
        a += run->a >> dim.shift;
        b += run->b >> dim.shift;
        inside = k < run->len >> dim.shift;
    }
    at[0] += a * dim.src_stride;
    at[1] += b * dim.dst_stride;
    return inside;
}
/* The same for dims from `first` on, by a number of items of them all. */
static __device__ __forceinline__ bool advance_all(const dmi_cuda_runs &runs, int first, uint32_t i,
                                                   int64_t (&at)[2])
{
    bool inside = true;
    for (int d = first; d < runs.ndim; d++) {
        const dmi_cuda_runs_dim &dim = runs.dim[d];
        uint32_t q = divided(i, dim.len), rest = divided(q, dim.count);
        inside = advance(dim, i - q * dim.len.extent, q - rest * dim.count.extent, at) && inside;
        i = rest;
    }
    return inside;
}

/* As locate_all, over a product of runs: src, dst. */
template <int DEPTH>
static __device__ __forceinline__ void locate_all(const dmi_cuda_runs &runs, int64_t (&at)[DEPTH][2],
                                                  bool (&valid)[DEPTH])
{
    const uint32_t threads = DMI_CUDA_THREADS;
    if (runs.chunks.extent > 0) {
        uint32_t row = divided(blockIdx.x, runs.chunks),
                 length = runs.dim[0].len.extent * runs.dim[0].count.extent;
        uint32_t first = (blockIdx.x - row * runs.chunks.extent) * (threads * DEPTH) + threadIdx.x;
        int64_t begin[2] = {0, 0};
        bool inside = advance_all(runs, 1, row, begin);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = first + k * threads, r = divided(i, runs.dim[0].len);
            at[k][0] = begin[0];
            at[k][1] = begin[1];
            valid[k] = inside && i < length && advance(runs.dim[0], i - r * runs.dim[0].len.extent, r, at[k]);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        uint32_t i = blockIdx.x * (threads * DEPTH) + k * threads + threadIdx.x;
        at[k][0] = at[k][1] = 0;
        valid[k] = i < runs.items && advance_all(runs, 0, i, at[k]);
    }
}

/* N elements of T that are read and written at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) group {
    T v[N];
};

/* CALL(T) with the type of items of so many bytes; other sizes fail the queue. */
#define DMI_CUDA_BY_UNIT(q, what, unit, CALL)                                                                  \
    switch (unit) {                                                                                            \
    case 1:                                                                                                    \
        CALL(uint8_t);                                                                                         \
        break;                                                                                                 \
    case 2:                                                                                                    \
        CALL(uint16_t);                                                                                        \
        break;                                                                                                 \
    case 4:                                                                                                    \
        CALL(uint32_t);                                                                                        \
        break;                                                                                                 \
    case 8:                                                                                                    \
        CALL(uint64_t);                                                                                        \
        break;                                                                                                 \
    case 16:                                                                                                   \
        CALL(uint4);                                                                                           \
        break;                                                                                                 \
    default:                                                                                                   \
        dmi_cuda_failed(q, what, -1, "no kernel for elements of this size");                                   \
    }

/* Thread blocks for n items, `per_block` each: as many as that takes. A grid as large as the device, which goes
 * over the items in turns, streams through the memory of an H200 at 0.93 of the rate. */
static inline unsigned blocks_for(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}
/* Thread blocks for locate_all, of a box whose rows have n items. A thread block keeps to one row where that
 * leaves at most a fifth of the threads idle. */
static inline unsigned blocks_for_rows(int64_t items, int64_t n, int depth, dmi_cuda_divisor *chunks)
{
    int64_t per_block = (int64_t)DMI_CUDA_THREADS * depth, each = (n + per_block - 1) / per_block;
    if (each * per_block * 4 > n * 5) {
        chunks->extent = 0;
        return blocks_for(items, per_block);
    }
    *chunks = dmi_cuda_divide_by(each);
    return (unsigned)(items / n * each);
}
static inline unsigned blocks_for(dmi_cuda_box *box, int depth)
{
    return blocks_for_rows(box->items, box->extent[0].extent, depth, &box->chunks);
}
static inline unsigned blocks_for(dmi_cuda_runs *runs, int depth)
{
    const dmi_cuda_runs_dim *inner = &runs->dim[0];
    int64_t n = (int64_t)inner->len.extent * inner->count.extent;
    return blocks_for_rows(runs->items, n, depth, &runs->chunks);
}

static inline cudaStream_t stream_of(const dmi_queue *q)
{
    return (cudaStream_t)q->stream;
}

/* --- kernels that begin while the one before them ends ---
 * Such a kernel calls after_previous() first, in all threads: it waits there for the whole kernel before it, and lets
 * the next one begin to wait likewise. So whatever ran before a kernel of a queue is done when the kernel reads or
 * writes. Pointers of its parameters are not __restrict__, for reads of what is said not to change may be moved in
 * front of the wait. */
static __device__ __forceinline__ void after_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Of a queue that `overlaps`, such a kernel begins before the one before it has ended, where the GPU and the code can. */
template <typename... P, typename... A>
static inline void launch_after(const dmi_queue *q, void (*kernel)(P...), dim3 blocks, const A &...args)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(DMI_CUDA_THREADS);
    config.stream = stream_of(q);
    cudaFuncAttributes code;
    if (q->overlaps && cudaFuncGetAttributes(&code, kernel) == cudaSuccess && code.ptxVersion >= 90) {
        config.attrs = &early;
        config.numAttrs = 1;
    }
    cudaLaunchKernelEx(&config, kernel, args...);
}

#endif
