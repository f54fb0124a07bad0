/* The descriptors of matrix products. */
#ifndef DMI_KERNEL_GEMM_H
#define DMI_KERNEL_GEMM_H

#include "layout/layout.h"

/* c = alpha * op(a) * op(b) + beta * c, row-major: op(a) m x k, op(b) k x n, c m x n. One dtype for all three,
 * F64 or F32, on the CPU C64 or C128; on CUDA F16 and BF16 too, summed in f32, c in that type or in F32.
 * beta == 0: c is not read. k == 0: c = beta * c. */
typedef struct dmi_gemm {
    dm_dtype dtype;   /* of a and b */
    dm_dtype c_dtype; /* 0: dtype */
    bool tf32;        /* F32: a and b may be rounded to TF32; a backend without it takes them as they are */
    int trans_a, trans_b;
    bool conj_a, conj_b; /* complex, and transposed: the conjugate */
    int64_t m, n, k, lda, ldb, ldc;
    int64_t a_offset, b_offset, c_offset;
} dmi_gemm;

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
