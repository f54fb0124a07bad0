/* How the fused product's warps store their rows of a tile. */
#ifndef DMI_CUDA_FUSED_STORE_CUH
#define DMI_CUDA_FUSED_STORE_CUH

#include "kernels/gemm/fused_shape.cuh"

template <bool f16> static __device__ __forceinline__ uint32_t two_rounded(float x, float y)
{
    uint32_t bits;
    if (f16) {
        __half2 v = __floats2half2_rn(x, y);
        memcpy(&bits, &v, 4);
    } else {
        __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
        memcpy(&bits, &v, 4);
    }
    return bits;
}

template <bool f16> static __device__ __forceinline__ float read_c(const dmi_fused_job &job, int64_t at)
{
    return job.c_f32 ? ((const float *)job.c_at)[at]
           : f16     ? __half2float(((const __half *)job.c_at)[at])
                     : __bfloat162float(((const __nv_bfloat16 *)job.c_at)[at]);
}

/* d = alpha d + beta c. A thread holds, of each 8 columns, two of row (warp lane) / 4 and two of the row 8
 * below. */
template <bool f16>
static __device__ __forceinline__ void scale(const dmi_fused_job &job, float (&d)[128], int32_t row0,
                                             int32_t n0)
{
    int32_t lane = (int32_t)(threadIdx.x & 31);
#pragma unroll
    for (int i = 0; i < 128; i++) {
        int32_t row = row0 + lane / 4 + (i & 2) * 4, col = n0 + i / 4 * 8 + lane % 4 * 2 + (i & 1);
        d[i] = job.alpha == 0 ? 0 : job.alpha * d[i];
        if (job.beta != 0 && row < job.m && col < job.n) {
            d[i] = fmaf(job.beta, read_c<f16>(job, (int64_t)row * job.ldc + col), d[i]);
        }
    }
}

/* A box at the end of c's rows, item by item from where it was written. */
template <bool c_f32>
static __device__ __forceinline__ void store_items_of(const dmi_fused_job &job, uint32_t at, int32_t row0,
                                                      int32_t col0)
{
    const uint32_t bytes = c_f32 ? 4 : 2, cols = FUSED_ROW / bytes;
#pragma unroll 1
    for (uint32_t i = threadIdx.x & 31; i < FUSED_STORE_ROWS * cols; i += 32) {
        uint32_t row = i / cols, within = i % cols * bytes;
        uint32_t from = at + row * FUSED_ROW + (within / 16 ^ row % 8) * 16 + within % 16;
        int64_t to = (int64_t)(row0 + (int32_t)row) * job.ldc + col0 + (int32_t)(i % cols);
        if (row0 + (int32_t)row < job.m && col0 + (int32_t)(i % cols) < job.n) {
            if (c_f32) {
                ((uint32_t *)job.c_at)[to] = load_shared_32(from);
            } else {
                ((uint16_t *)job.c_at)[to] = load_shared_16(from);
            }
        }
    }
}

/* The warp's 16 rows, box after box: written to one of its two buffers, then stored from there. */
template <bool f16, bool c_f32>
static __device__ __forceinline__ void store_rows(const dmi_fused_job &job, const float (&d)[128],
                                                  uint32_t buffer, int32_t row0, int32_t n0)
{
    const int eights = c_f32 ? 4 : 8, boxes = 32 / eights; /* a box has so many groups of 8 columns */
    uint32_t lane = threadIdx.x & 31;
#pragma unroll
    for (int box = 0; box < boxes; box++) {
        uint32_t at = buffer + (uint32_t)(box % STORE_BUFFERS) * STORE_BYTES;
        int32_t col0 = n0 + box * eights * 8;
        if (lane == 0) {
            stores_have_read<STORE_BUFFERS - 1>();
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < eights; j += c_f32 ? 1 : 2) {
            const float *v = &d[(box * eights + j) * 4];
            if (c_f32) {
                uint32_t row = lane / 4, unit = (uint32_t)j * 2 + lane % 4 / 2, within = lane % 2 * 8;
                uint32_t to = at + row * FUSED_ROW + (unit ^ row) * 16 + within;
                store_two(to, v[0], v[1]);
                store_two(to + 8 * FUSED_ROW, v[2], v[3]);
            } else {
                uint32_t row = lane % 16, unit = (uint32_t)j + lane / 16;
                uint32_t pairs[4] = {two_rounded<f16>(v[0], v[1]), two_rounded<f16>(v[2], v[3]),
                                     two_rounded<f16>(v[4], v[5]), two_rounded<f16>(v[6], v[7])};
                store_matrices(at + row * FUSED_ROW + (unit ^ row % 8) * 16, pairs);
            }
        }
        fence_async_shared();
        __syncwarp();
        if (col0 + eights * 8 > job.box_end) {
            store_items_of<c_f32>(job, at, row0, col0);
        } else if (lane == 0) {
            store_box(&job.c, col0, row0, at);
        }
        if (lane == 0) { /* a group without a store too: buffers alternate by groups */
            stores_commit();
        }
    }
}

#endif
