/* Products of 8-bit floats by cublasLt. It wants both operands with k innermost, in rows of a multiple of 16
 * elements: what lies otherwise is packed into the workspace first. As for gemm_cuda.c, c^T = op(b)^T op(a)^T.
 */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>

enum { ALIGN = 16, SIDES = 3 }; /* b, a, c: cublasLt's A, B and both C and D */

typedef struct product {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t side[SIDES];
    cublasLtMatmulPreference_t preference;
    cublasStatus_t status; /* the first that is not a success */
} product;

static bool fine(product *p, cublasStatus_t s)
{
    p->status = p->status == CUBLAS_STATUS_SUCCESS ? s : p->status;
    return p->status == CUBLAS_STATUS_SUCCESS;
}

static cudaDataType_t type_of(dm_dtype dtype)
{
    return dtype == DM_F8E4M3   ? CUDA_R_8F_E4M3
           : dtype == DM_F8E5M2 ? CUDA_R_8F_E5M2
           : dtype == DM_F16    ? CUDA_R_16F
           : dtype == DM_BF16   ? CUDA_R_16BF
                                : CUDA_R_32F;
}

static void make(product *p, const dmi_queue *q, const dmi_gemm *d, int64_t k)
{
    const cublasOperation_t trans = CUBLAS_OP_T;
    const size_t room = (size_t)q->workspace_bytes;
    int8_t fast = 0; /* sums in the matrix units have few bits: cublasLt takes them out often */
    (void)(fine(p, cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
           fine(p,
                cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &trans, sizeof trans)) &&
           fine(p,
                cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast)) &&
           fine(p, cublasLtMatrixLayoutCreate(&p->side[0], type_of(d->b_dtype ? d->b_dtype : d->dtype),
                                              (uint64_t)k, (uint64_t)d->n, k)) &&
           fine(p,
                cublasLtMatrixLayoutCreate(&p->side[1], type_of(d->dtype), (uint64_t)k, (uint64_t)d->m, k)) &&
           fine(p, cublasLtMatrixLayoutCreate(&p->side[2], type_of(d->c_dtype), (uint64_t)d->n, (uint64_t)d->m,
                                              d->ldc)) &&
           fine(p, cublasLtMatmulPreferenceCreate(&p->preference)) &&
           fine(p, cublasLtMatmulPreferenceSetAttribute(p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &room, sizeof room)));
}

static void set_alignment(product *p)
{
    static const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t bytes = ALIGN; /* cublasLt expects 256 otherwise */
    for (int i = 0; i < DMI_COUNT(sides) && p->status == CUBLAS_STATUS_SUCCESS; i++) {
        (void)fine(p, cublasLtMatmulPreferenceSetAttribute(p->preference, sides[i], &bytes, sizeof bytes));
    }
}

static void set_ld(product *p, int side, int64_t ld)
{
    (void)fine(p, cublasLtMatrixLayoutSetAttribute(p->side[side], CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld));
}

static void release(product *p)
{
    for (int i = 0; i < SIDES; i++) {
        if (p->side[i]) {
            cublasLtMatrixLayoutDestroy(p->side[i]);
        }
    }
    if (p->preference) {
        cublasLtMatmulPreferenceDestroy(p->preference);
    }
    if (p->desc) {
        cublasLtMatmulDescDestroy(p->desc);
    }
}

static bool aligned(const void *p)
{
    return (uintptr_t)p % ALIGN == 0;
}

/* An operand: count rows of k elements, which lie one after another, or each in a column. */
typedef struct operand {
    const char *at;
    dm_dtype dtype;
    int64_t count, ld;
    bool by_rows;
} operand;

static bool in_place(const operand *o, int64_t k)
{
    return o->by_rows && aligned(o->at) && o->ld % ALIGN == 0 && k % ALIGN == 0;
}

/* Rows of `padded` elements, zeros behind the first k. */
static void pack(dmi_queue *q, const operand *o, int64_t k, int64_t padded, void *to)
{
    dmi_run row = {.len = o->count}, col = {.len = k};
    dmi_copy d = {.ndim = 2,
                  .src_dtype = o->dtype,
                  .dst_dtype = o->dtype,
                  .nrun = {1, 1},
                  .run = {&row, &col},
                  .src_stride = {o->by_rows ? o->ld : 1, o->by_rows ? 1 : o->ld},
                  .dst_stride = {padded, 1},
                  .count = o->count * k};
    cudaError_t e = padded > k ? cudaMemsetAsync(to, 0, (size_t)(o->count * padded), q->stream) : cudaSuccess;
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaMemsetAsync", (int)e, cudaGetErrorString(e));
    }
    q->device_run = NULL;
    dmi_cuda_copy(q, &d, o->at, to);
}

bool dmi_cuda_gemm_f8(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                      void *c, void *workspace)
{
    int64_t padded = (d->k + ALIGN - 1) / ALIGN * ALIGN;
    operand from[2] = {
        {dmi_at(b, d->b_offset), d->b_dtype ? d->b_dtype : d->dtype, d->n, d->ldb, d->trans_b != 0},
        {dmi_at(a, d->a_offset), d->dtype, d->m, d->lda, d->trans_a == 0},
    };
    void *at[2] = {(char *)workspace + dmi_gemm_f8_part(d->m, d->k), workspace};
    const void *operand_at[2];
    char *out = dmi_at_mut(c, d->c_offset * dmi_dtype_bytes(d->c_dtype));
    float by = (float)alpha, keep = (float)beta;
    cublasLtMatmulHeuristicResult_t found = {0};
    int count = 0;
    product p = {.status = CUBLAS_STATUS_SUCCESS};
    assert(d->m > 0 && d->n > 0 && d->k > 0 && dmi_gemm_is_f8(d) && aligned(workspace));
    make(&p, q, d, padded);
    set_alignment(&p);
    for (int i = 0; i < 2 && p.status == CUBLAS_STATUS_SUCCESS; i++) {
        if (in_place(&from[i], d->k)) {
            set_ld(&p, i, from[i].ld);
        }
    }
    bool can =
        p.status == CUBLAS_STATUS_SUCCESS && aligned(out) &&
        fine(&p, cublasLtMatmulAlgoGetHeuristic(q->library[DMI_LIBRARY_CUBLAS], p.desc, p.side[0], p.side[1],
                                                p.side[2], p.side[2], p.preference, 1, &found, &count)) &&
        count > 0;
    for (int i = 0; i < 2 && can; i++) {
        bool there = in_place(&from[i], d->k);
        operand_at[i] = there ? from[i].at : at[i];
        if (!there) {
            pack(q, &from[i], d->k, padded, at[i]);
        }
    }
    if (can && !fine(&p, cublasLtMatmul(q->library[DMI_LIBRARY_CUBLAS], p.desc, &by, operand_at[0], p.side[0],
                                        operand_at[1], p.side[1], &keep, out, p.side[2], out, p.side[2],
                                        &found.algo, q->workspace, (size_t)q->workspace_bytes, q->stream))) {
        dmi_cuda_failed(q, "cublasLtMatmul", -1 - (int)p.status, cublasGetStatusString(p.status));
    }
    release(&p);
    return can;
}
