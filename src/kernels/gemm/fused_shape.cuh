/* What all warps of the fused product know: its shared memory, and the order of the tiles. */
#ifndef DMI_CUDA_FUSED_SHAPE_CUH
#define DMI_CUDA_FUSED_SHAPE_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/gemm/fused_job.h"
#include "kernels/gemm/fused_ptx.cuh"

enum {
    GROUP = 128, /* threads */
    THREADS = 3 * GROUP,
    WARPS = 2 * GROUP / 32, /* that multiply */
    A_BYTES = FUSED_M * FUSED_K * 2,
    B_BYTES = FUSED_N * FUSED_K * 2,
    STAGE_BYTES = A_BYTES + B_BYTES,
    BOX_BYTES = FUSED_ROW * FUSED_K, /* of a box of FUSED_K rows */
    /* Each warp stores its 16 rows of c in boxes, from two buffers alternately. */
    STORE_BYTES = FUSED_ROW * FUSED_STORE_ROWS,
    STORE_BUFFERS = 2,
    ALIGN = 1024, /* of what is swizzled */
    SHARED_BYTES =
        ALIGN + FUSED_STAGES * STAGE_BYTES + WARPS * STORE_BUFFERS * STORE_BYTES + 2 * 8 * FUSED_STAGES,
    LOADER_REGISTERS = 56,
    MULTIPLIER_REGISTERS = 224,
};

/* --- shared memory ---------------------------------------------------------------------------------- */
typedef struct shared_places {
    uint32_t stage, store, full, empty;
} shared_places;

static __device__ __forceinline__ shared_places places_of(const void *memory)
{
    shared_places s;
    s.stage = (shared_address(memory) + ALIGN - 1) / ALIGN * ALIGN;
    s.store = s.stage + FUSED_STAGES * STAGE_BYTES;
    s.full = s.store + WARPS * STORE_BUFFERS * STORE_BYTES;
    s.empty = s.full + 8 * FUSED_STAGES;
    return s;
}

/* The ring of stages, as one side goes round it. */
typedef struct ring {
    uint32_t at, parity;
} ring;

static __device__ __forceinline__ void advance(ring *r)
{
    if (++r->at == FUSED_STAGES) {
        r->at = 0;
        r->parity ^= 1;
    }
}

/* --- tiles -------------------------------------------------------------------------------------------- */
/* The tiles of this pair of thread blocks, one after the other: numbers pair, pair + pairs, ... of the order. */
typedef struct walk {
    int32_t number, column_range, before; /* before: tiles of the ranges that are over */
    int32_t row, n0;               /* the tile: pair of rows, first column */
} walk;

static __device__ __forceinline__ walk walk_start(void)
{
    walk w = {(int32_t)(blockIdx.x / FUSED_PAIR), 0, 0, 0, 0};
    return w;
}

/* Within a range of tile columns: columns `wide` at a time, in them pairs of rows `high` at a time. False:
 * there are no more.
 */
static __device__ __forceinline__ bool walk_next(const dmi_fused_job &job, walk *w)
{
    while (w->column_range < job.column_ranges &&
           w->number - w->before >= job.column_range[w->column_range].count * job.pair_rows) {
        w->before += job.column_range[w->column_range++].count * job.pair_rows;
    }
    if (w->column_range == job.column_ranges) {
        return false;
    }
    int32_t cols = job.column_range[w->column_range].count, i = w->number - w->before;
    int32_t band = i / (job.wide * job.pair_rows);
    int32_t wide = min(job.wide, cols - band * job.wide);
    i -= band * job.wide * job.pair_rows;
    int32_t group = i / (job.high * wide);
    int32_t high = min(job.high, job.pair_rows - group * job.high);
    i -= group * job.high * wide;
    w->row = group * job.high + i % high;
    w->n0 = (job.column_range[w->column_range].first + band * job.wide + i / high) * FUSED_N;
    w->number += (int32_t)(gridDim.x / FUSED_PAIR);
    return true;
}

#endif
