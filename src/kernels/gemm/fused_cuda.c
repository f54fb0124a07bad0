/* The fused product: the order of its work, worked out from the chunks, and its maps of the matrices. */
#include "kernels/cuda/launch.h"
#include "kernels/gemm/fused_job.h"
#include <assert.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <string.h>

/* Tiles computed side by side: a square of about as much as one GPU has in work at once, so that few rows of a
 * and columns of b are read by many. */
enum { SIDE_BY_SIDE = 8 };

static int64_t units(int64_t length, int64_t unit)
{
    return (length + unit - 1) / unit;
}

static bool has_own(const dmi_fused *d)
{
    return d->own_k0 < d->own_k1 && d->own_n0 < d->own_n1;
}

/* --- order ---------------------------------------------------------------------------------------- */
/* One axis of op(b), k or n, cut wherever a chunk begins or ends. */
typedef struct axis {
    int64_t length, unit;
    bool is_k;
    int cuts;
    int64_t cut[FUSED_CUTS + 1];
    int key[FUSED_CUTS]; /* of the range from each cut */
} axis;

static void add_cut(axis *x, int64_t at)
{
    int64_t u = at >= x->length ? units(x->length, x->unit) : at / x->unit;
    int i = x->cuts;
    for (int j = 0; j < x->cuts; j++) {
        if (x->cut[j] == u) {
            return;
        }
    }
    for (; i > 0 && x->cut[i - 1] > u; i--) {
        x->cut[i] = x->cut[i - 1];
    }
    x->cut[i] = u;
    x->cuts++;
}

/* Is range number r of this axis entirely in the worker's own matrix? */
static bool within_own(const axis *x, const dmi_fused *d, int r)
{
    int64_t from = x->cut[r] * x->unit, to = DMI_MIN(x->cut[r + 1] * x->unit, x->length);
    return has_own(d) &&
           (x->is_k ? d->own_k0 <= from && to <= d->own_k1 && d->own_n0 == 0 && d->own_n1 == d->n
                    : d->own_n0 <= from && to <= d->own_n1 && d->own_k0 == 0 && d->own_k1 == d->k);
}

/* The chunk by which a range is ordered: -1 where it waits for none, else for k the first, for
 * n the last that meets it. */
static int key_of(const axis *x, const dmi_fused *d, int r)
{
    int key = -1;
    int64_t from = x->cut[r] * x->unit, to = x->cut[r + 1] * x->unit;
    for (int i = 0; i < d->chunks && !within_own(x, d, r); i++) {
        const dmi_fused_arrival *p = &d->chunk[i];
        bool meets = x->is_k ? p->k0 < to && p->k1 > from : p->n0 < to && p->n1 > from;
        if (meets && p->counter != NULL && (key < 0 || !x->is_k)) {
            key = i;
        }
    }
    return key;
}

/* Cuts the axis and puts its ranges in order. Returns their number. */
static int order_axis(const dmi_fused *d, bool is_k, dmi_fused_range *out)
{
    axis x = {.length = is_k ? d->k : d->n, .unit = is_k ? FUSED_K : FUSED_N, .is_k = is_k};
    int count = 0;
    add_cut(&x, 0);
    add_cut(&x, x.length);
    for (int i = 0; i < d->chunks; i++) {
        add_cut(&x, is_k ? d->chunk[i].k0 : d->chunk[i].n0);
        add_cut(&x, is_k ? d->chunk[i].k1 : d->chunk[i].n1);
    }
    if (has_own(d)) {
        add_cut(&x, is_k ? d->own_k0 : d->own_n0);
        add_cut(&x, is_k ? d->own_k1 : d->own_n1);
    }
    for (int r = 0; r < x.cuts - 1; r++) {
        x.key[r] = key_of(&x, d, r);
    }
    for (int key = -1; key < d->chunks; key++) {
        for (int r = 0; r < x.cuts - 1; r++) {
            if (x.key[r] == key) {
                out[count++] = (dmi_fused_range){.first = (uint16_t)x.cut[r],
                                                 .count = (uint16_t)(x.cut[r + 1] - x.cut[r])};
            }
        }
    }
    return count;
}

/* --- maps ------------------------------------------------------------------------------------------- */
typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
                                 const cuuint64_t *extent, const cuuint64_t *stride, const cuuint32_t *box,
                                 const cuuint32_t *step, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill);

static encode_function *encode_entry(void)
{
    static _Atomic(void *) entry; /* the driver's function: the same for all */
    void *f = atomic_load_explicit(&entry, memory_order_relaxed);
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    if (f == NULL &&
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found) ==
            cudaSuccess &&
        found == cudaDriverEntryPointSuccess) {
        atomic_store_explicit(&entry, f, memory_order_relaxed);
    }
    return (encode_function *)f;
}

void dmi_cuda_make_map(dmi_queue *q, CUtensorMap *map, dm_dtype dtype, const void *at, int64_t rows,
                       int64_t cols, int64_t ld, int box_rows)
{
    encode_function *encode = encode_entry();
    int64_t bytes = dmi_dtype_bytes(dtype);
    cuuint64_t extent[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, stride[1] = {(cuuint64_t)(ld * bytes)};
    cuuint32_t box[2] = {(cuuint32_t)(FUSED_ROW / bytes), (cuuint32_t)box_rows}, step[2] = {1, 1};
    CUtensorMapDataType type = dtype == DM_F32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                               : dtype == DM_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    CUresult code = encode == NULL
                        ? CUDA_ERROR_NOT_FOUND
                        : encode(map, type, 2, (void *)(uintptr_t)at, extent, stride, box, step,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) {
        dmi_cuda_failed(q, "cuTensorMapEncodeTiled", (int)code, "a map of a matrix");
    }
}

static void make_maps(dmi_queue *q, dmi_fused_job *job, const dmi_fused *d, const void *a, const void *b,
                      const void *const own[2])
{
    /* The sum's dim runs along a row of op(a) = a and of op(b) = b^T: one box has the rows of the whole tile.
     * Along columns one box has the step's rows, and a tile takes several boxes. */
    int a_rows = d->trans_a ? FUSED_K : FUSED_M, b_rows = d->trans_b ? FUSED_N / FUSED_PAIR : FUSED_K;
    int64_t own_k = d->own_k1 - d->own_k0, own_n = d->own_n1 - d->own_n0;
    dmi_cuda_make_map(q, &job->a, d->dtype, a, d->trans_a ? d->k : d->m, d->trans_a ? d->m : d->k, d->lda,
                      a_rows);
    dmi_cuda_make_map(q, &job->b, d->dtype, b, d->trans_b ? d->n : d->k, d->trans_b ? d->k : d->n, d->ldb,
                      b_rows);
    if (has_own(d)) {
        dmi_cuda_make_map(q, &job->own_b, d->dtype, own[1], d->trans_b ? own_n : own_k,
                          d->trans_b ? own_k : own_n, d->ld_own[1], b_rows);
    }
    if (job->has_own_a) {
        dmi_cuda_make_map(q, &job->own_a, d->dtype, own[0], d->trans_a ? own_k : d->m,
                          d->trans_a ? d->m : own_k, d->ld_own[0], a_rows);
    }
    dmi_cuda_make_map(q, &job->c, job->c_f32 ? DM_F32 : d->dtype, job->c_at, d->m, d->n, d->ldc,
                      FUSED_STORE_ROWS);
}

/* --- calls --------------------------------------------------------------------------------------- */
static bool on_16_bytes(const void *at, int64_t ld, int64_t bytes)
{
    return at != NULL && (uintptr_t)at % 16 == 0 && ld * bytes % 16 == 0 && ld * bytes < INT64_C(1) << 40;
}

static bool own_fits(const dmi_fused *d, const void *const own[2])
{
    return !has_own(d) ||
           (own[1] != NULL && on_16_bytes(own[1], d->ld_own[1], 2) && d->own_k0 % FUSED_K == 0 &&
            (d->ld_own[0] == 0 || on_16_bytes(own[0], d->ld_own[0], 2)) && d->own_n0 % FUSED_N == 0 &&
            (d->own_k1 % FUSED_K == 0 || d->own_k1 == d->k) && (d->own_n1 % FUSED_N == 0 || d->own_n1 == d->n));
}

/* The kernel waits for nothing in the worker's own range. */
static bool comes_into_own(const dmi_fused *d)
{
    for (int i = 0; i < d->chunks && has_own(d); i++) {
        const dmi_fused_arrival *p = &d->chunk[i];
        if (p->counter != NULL && p->k0 < d->own_k1 && p->k1 > d->own_k0 && p->n0 < d->own_n1 &&
            p->n1 > d->own_n0) {
            return true;
        }
    }
    return false;
}

bool dmi_cuda_fused_serves(const dmi_queue *q, const dmi_fused *d, const void *a, const void *b,
                           const void *const own[2], const void *c)
{
    dm_dtype c_dtype = d->c_dtype == 0 ? d->dtype : d->c_dtype;
    bool types = (d->dtype == DM_F16 || d->dtype == DM_BF16) && (c_dtype == d->dtype || c_dtype == DM_F32);
    _Static_assert(DMI_FUSED_MOST_K == 65535 * FUSED_K && DMI_FUSED_MOST_N == 65535 * FUSED_N,
                   "as plans know them");
    bool sizes = d->m > 0 && d->n > 0 && d->k > 0 && d->m <= DMI_FUSED_MOST_M && d->k <= DMI_FUSED_MOST_K &&
                 d->n <= DMI_FUSED_MOST_N && units(d->m, FUSED_M) * units(d->n, FUSED_N) < INT32_MAX / 2 &&
                 d->chunks >= 0 && d->chunks <= DMI_FUSED_CHUNKS && (d->blocks == 0 || d->blocks >= FUSED_PAIR);
    if (!types || !sizes || !own_fits(d, own) || comes_into_own(d) || !on_16_bytes(a, d->lda, 2) ||
        !on_16_bytes(b, d->ldb, 2) || !on_16_bytes(c, d->ldc, dmi_dtype_bytes(c_dtype))) {
        return false;
    }
    return q->capability == 90 && dmi_cuda_fused_built();
}

static void add_waits(dmi_fused_job *job, const dmi_fused *d)
{
    for (int i = 0; i < d->chunks; i++) {
        const dmi_fused_arrival *p = &d->chunk[i];
        assert(0 <= p->k0 && p->k0 <= p->k1 && p->k1 <= d->k && 0 <= p->n0 && p->n0 <= p->n1 && p->n1 <= d->n);
        if (p->counter != NULL && p->k0 < p->k1 && p->n0 < p->n1) {
            job->counter[job->waits] = p->counter;
            job->value[job->waits] = p->value;
            job->wait[job->waits++] = (dmi_fused_box){.step = (uint16_t)(p->k0 / FUSED_K),
                                                      .step_end = (uint16_t)units(p->k1, FUSED_K),
                                                      .tile = (uint16_t)(p->n0 / FUSED_N),
                                                      .tile_end = (uint16_t)units(p->n1, FUSED_N)};
        }
    }
}

void dmi_cuda_launch_fused(dmi_queue *q, const dmi_fused *d, double alpha, const void *a, const void *b,
                           const void *const own[2], double beta, void *c)
{
    dm_dtype c_dtype = d->c_dtype == 0 ? d->dtype : d->c_dtype;
    dmi_fused_job job = {.c_f32 = c_dtype == DM_F32,
                         .m = (int32_t)d->m,
                         .n = (int32_t)d->n,
                         .k = (int32_t)d->k,
                         .pair_rows = (int32_t)units(d->m, FUSED_PAIR * FUSED_M),
                         .high = SIDE_BY_SIDE,
                         .wide = SIDE_BY_SIDE,
                         .alpha = (float)alpha,
                         .beta = (float)beta,
                         .box_end = d->n * dmi_dtype_bytes(c_dtype) % 16 == 0 ? INT32_MAX : (int32_t)d->n,
                         .c_at = c,
                         .ldc = d->ldc};
    if (q->error != 0) {
        return;
    }
    cudaError_t e = cudaSetDevice(q->device);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaSetDevice", (int)e, cudaGetErrorString(e));
        return;
    }
    if (has_own(d)) {
        job.own_k0 = (int32_t)d->own_k0;
        job.own_k1 = (int32_t)d->own_k1;
        job.own_n0 = (int32_t)d->own_n0;
        job.own_n1 = (int32_t)d->own_n1;
        job.has_own_a = d->ld_own[0] > 0;
    }
    add_waits(&job, d);
    job.ranges = order_axis(d, true, job.range);
    job.column_ranges = order_axis(d, false, job.column_range);
    make_maps(q, &job, d, a, b, own);
    if (q->error == 0) {
        int64_t pairs = job.pair_rows * units(d->n, FUSED_N);
        int most = d->blocks == 0 ? q->multiprocessors : DMI_MIN(d->blocks, q->multiprocessors);
        dmi_cuda_fused_enqueue(q, &job, d->dtype, d->trans_a, d->trans_b,
                               FUSED_PAIR * (int)DMI_MIN(pairs, most / FUSED_PAIR));
    }
}
