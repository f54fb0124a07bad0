/* The descriptors of matrix products. */
#ifndef DMI_KERNEL_GEMM_H
#define DMI_KERNEL_GEMM_H

#include "layout/layout.h"

/* c = alpha * op(a) * op(b) + beta * c, row-major: op(a) m x k, op(b) k x n, c m x n. One dtype for all three, F64, F32,
 * C64 or C128; on GPUs F16 and BF16 too, summed in f32, c in that type or in F32, and 8-bit floats, summed in f32, c in
 * F32, F16 or BF16. beta == 0: c is not read. k == 0: c = beta * c. Or a stack of such products, whose c do not overlap. */
typedef struct dmi_gemm {
    dm_dtype dtype;   /* of a and b */
    dm_dtype b_dtype; /* 0: dtype; else both are of 8 bits */
    dm_dtype c_dtype; /* 0: dtype */
    bool tf32;        /* F32: a and b may be rounded to TF32; a backend without it takes them as they are */
    int trans_a, trans_b;
    bool conj_a, conj_b; /* complex, and transposed: the conjugate */
    int64_t m, n, k, lda, ldb, ldc;
    int64_t a_offset, b_offset, c_offset;
    int64_t count; /* of products of this shape; 0: one. From one to the next: */
    int64_t a_step, b_step, c_step;
} dmi_gemm;
static inline int64_t dmi_gemm_count(const dmi_gemm *d)
{
    return DMI_MAX(d->count, 1);
}
/* Operations on real numbers: of one multiplication and addition, and of all of these products. */
static inline int64_t dmi_multiply_add_flops(dm_dtype dtype)
{
    return dmi_dtype_is_complex(dtype) ? 8 : 2;
}
static inline int64_t dmi_gemm_flops(const dmi_gemm *d)
{
    return dmi_multiply_add_flops(d->dtype) * d->m * d->n * d->k * dmi_gemm_count(d);
}
static inline dmi_gemm dmi_gemm_one(const dmi_gemm *d, int64_t which)
{
    dmi_gemm one = *d;
    one.count = 0;
    one.a_offset += which * d->a_step;
    one.b_offset += which * d->b_step;
    one.c_offset += which * d->c_step;
    return one;
}

static inline bool dmi_gemm_is_f8(const dmi_gemm *d)
{
    return d->dtype == DM_F8E4M3 || d->dtype == DM_F8E5M2;
}
/* Types of c beside that of a and b. */
static inline bool dmi_gemm_takes_c(dm_dtype dtype, dm_dtype c)
{
    int64_t bytes = dmi_dtype_bytes(dtype);
    return (bytes <= 2 && c == DM_F32) || (bytes == 1 && (c == DM_F16 || c == DM_BF16));
}
/* Of 8-bit operands: where in the workspace the second one begins, behind rows x k elements of the first. Each is either
 * widened to 16 bits, or packed, with k rounded up to 16. */
static inline int64_t dmi_gemm_f8_part(int64_t rows, int64_t k)
{
    return (2 * rows * ((k + 15) / 16 * 16) + 255) / 256 * 256;
}

/* A fused product: peers still fill the gathered b while the kernel runs. Chunk {k0, k1, n0, n1} of op(b) has
 * arrived when the nth EXPECT of this plan from `peer` is done. Chunks of a are listed in the same way, for all
 * columns. The kernel reads the worker's own rows own_k0..own_k1 of op(b) from its shard, and the same columns
 * of op(a) if ld_own[0] is not 0. On GPUs the kernel itself waits for each chunk when it needs it. Sums in f32;
 * a and b have 16 bits. */
typedef struct dmi_fused_chunk {
    int64_t k0, k1, n0, n1;
    int peer;
    uint32_t nth; /* from 1 */
} dmi_fused_chunk;
typedef struct dmi_fused_gemm {
    dmi_gemm gemm; /* b: the gathered operand */
    int chunks;    /* in the order in which they are expected */
    const dmi_fused_chunk *chunk;
    int64_t own_k0, own_k1; /* empty: there is none */
    int64_t own_offset[2], ld_own[2]; /* of a's, of b's */
} dmi_fused_gemm;
enum { DMI_FUSED_MOST = 64 };
/* What the kernel counts in 16 bits: ranges of 64 indices of k, of 256 columns. */
enum { DMI_FUSED_MOST_K = 65535 * 64, DMI_FUSED_MOST_N = 65535 * 256, DMI_FUSED_MOST_M = INT32_MAX / 2 - 1 };
/* Where a chunk's arrival is counted: *counter has reached value (cyclic compare); counter NULL: it is here. */
typedef struct dmi_arrival {
    const uint32_t *counter;
    uint32_t value;
} dmi_arrival;

/* Threads of the BLAS in this process (it has one setting for all callers); returns what it was. */
int dmi_cpu_blas_threads(int threads);

#endif
