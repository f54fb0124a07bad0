/* Between the host code of the fused product (fused_cuda.c) and its kernel (fused.cu): what the kernel is to do,
 * which travels as its parameter. */
#ifndef DMI_CUDA_FUSED_JOB_H
#define DMI_CUDA_FUSED_JOB_H

#include "kernels/gemm/fused_cuda.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread block computes tiles of FUSED_M x FUSED_N of c, in steps of FUSED_K of the sum. Two thread blocks, a
 * pair, compute tiles one above the other, and read the tile of b together: each loads one half of it into
 * both. */
enum {
    FUSED_M = 128,
    FUSED_N = DMI_FUSED_STEP_N,
    FUSED_K = DMI_FUSED_STEP_K,
    FUSED_PAIR = 2,
    FUSED_STAGES = 4
};
/* Bytes along a row of every box that is loaded or stored: the copy engine's widest swizzle. */
enum { FUSED_ROW = 128, FUSED_STORE_ROWS = 16 };
enum { FUSED_CUTS = 2 * DMI_FUSED_CHUNKS + 4 };

/* Steps or tiles: first..first+count. */
typedef struct dmi_fused_range {
    uint16_t first, count;
} dmi_fused_range;

/* The steps of k and tiles of n that a chunk overlaps. */
typedef struct dmi_fused_box {
    uint16_t step, step_end, tile, tile_end;
} dmi_fused_box;

typedef struct dmi_fused_job {
    CUtensorMap a, b, own_a, own_b, c;
    const uint32_t
        *counter[DMI_FUSED_CHUNKS];   /* of the chunks that are waited for; small, as a launch takes longer */
    uint32_t value[DMI_FUSED_CHUNKS]; /* with more parameters */
    dmi_fused_box wait[DMI_FUSED_CHUNKS];
    dmi_fused_range range[FUSED_CUTS];        /* of k, in steps, in the order of the sum */
    dmi_fused_range column_range[FUSED_CUTS]; /* of n, in tiles, in the order of their computation */
    int32_t waits, ranges, column_ranges;
    int32_t own_k0, own_k1, own_n0, own_n1;
    bool has_own_a;
    int32_t m, n, k;
    int32_t pair_rows;  /* rows of tiles, two at a time */
    int32_t high, wide; /* pairs of rows and tiles of columns that are computed side by side */
    bool c_f32;
    float alpha, beta;
    /* Boxes of c that end beyond this column are not stored as boxes: the copy engine writes whole 16 bytes,
     * and where a row of c ends within them, what follows is not c's. */
    int32_t box_end;
    void *c_at;
    int64_t ldc;
} dmi_fused_job;

/* A row-major matrix, moved in boxes of box_rows rows and FUSED_ROW bytes; beyond its ends zeros are read and
 * nothing is written. */
void dmi_cuda_make_map(dmi_queue *q, CUtensorMap *map, dm_dtype dtype, const void *at, int64_t rows,
                       int64_t cols, int64_t ld, int box_rows);
/* The kernel for (16-bit floats of the kind, transposed or not); blocks: a multiple of FUSED_PAIR. */
void dmi_cuda_fused_enqueue(dmi_queue *q, const dmi_fused_job *job, dm_dtype dtype, int trans_a, int trans_b,
                            int blocks);
/* Whether the kernel was built for Hopper. */
bool dmi_cuda_fused_built(void);

#ifdef __cplusplus
}
#endif
#endif
