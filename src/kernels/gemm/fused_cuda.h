/* The fused product of Hopper GPUs: one kernel that multiplies while b is still arriving. Peers copy their
 * chunks of b into the gathered operand on this GPU and then raise a counter for each. The kernel starts with
 * the chunks that are here and waits for a chunk only when its next step reads it. */
#ifndef DMI_CUDA_FUSED_H
#define DMI_CUDA_FUSED_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DMI_FUSED_CHUNKS = 64 }; /* of one product */
/* Bounds of `own` and, for no needless waits, of the chunks are multiples of these, or the matrix's end. */
enum { DMI_FUSED_STEP_K = 64, DMI_FUSED_STEP_N = 256 };

/* Rows k0..k1 and columns n0..n1 of op(b). They are in the gathered operand once (int32_t)(*counter - value) >=
 * 0. */
typedef struct dmi_fused_arrival {
    int64_t k0, k1, n0, n1;
    const uint32_t *counter; /* memory of this device; NULL: is here already */
    uint32_t value;
} dmi_fused_arrival;

/* c = alpha * op(a) * op(b) + beta * c, all row-major: op(a) m x k, op(b) k x n, c m x n. a and b F16 or BF16,
 * c of their type or F32 (0: their type); sums in f32, rounded once. beta == 0: c is not read. The order of the
 * sum is a function of this description alone, so that the result does not depend on when the chunks come. */
typedef struct dmi_fused {
    dm_dtype dtype, c_dtype;
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    /* The chunks, in the order in which they are expected; read during the call. A column of c is computed in
     * the order of the last chunk that it needs. The sum takes the ranges of k in the order of the first chunk
     * of each. Ranges that wait for no chunk come first; elements that no chunk covers are here already. A good
     * order: one range of tile columns after the other, a range being as wide as the GPU's multiprocessors take
     * at once (tiles of 128 x 256). If all of c is one such range: chunks of some rows from one owner after
     * another, because a tile whose chunks all arrive last has all of its work left then. */
    const dmi_fused_arrival *chunk;
    int chunks;
    /* Rows own_k0..own_k1 and columns own_n0..own_n1 of op(b) lie in a matrix of their own (stored as b is, so
     * transposed with trans_b), which is here; the gathered operand need not hold them, and no chunk to wait
     * for may overlap them. Empty: there is none. If ld_own[0] is not 0, columns own_k0..own_k1 of op(a) lie in
     * a matrix of their own too. */
    int64_t own_k0, own_k1, own_n0, own_n1, ld_own[2]; /* of a's, of b's */
    int blocks; /* multiprocessors taken at most, 2 or more; 0: all */
} dmi_fused;

/* Whether the kernel does this: a Hopper GPU (and a build for it), types, bounds, and addresses and rows of all
 * matrices on 16 bytes. m, n and k may be any numbers above 0. own: a's and b's, NULL where there is none. */
bool dmi_cuda_fused_serves(const dmi_queue *q, const dmi_fused *d, const void *a, const void *b,
                           const void *const own[2], const void *c);
/* Only enqueues, and allocates nothing. What has to be true: the call above says yes, and whoever raises the
 * counters needs no multiprocessor of this GPU, as the kernel may hold all of them until the last chunk is
 * here. */
void dmi_cuda_launch_fused(dmi_queue *q, const dmi_fused *d, double alpha, const void *a, const void *b,
                           const void *const own[2], double beta, void *c);

#ifdef __cplusplus
}
#endif
#endif
