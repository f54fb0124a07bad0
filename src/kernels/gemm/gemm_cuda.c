/* Products by cuBLAS, which reads matrices by columns: it computes c^T = op(b)^T op(a)^T. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

static cudaDataType_t blas_type(dm_dtype dtype)
{
    return dtype == DM_F64   ? CUDA_R_64F
           : dtype == DM_F32 ? CUDA_R_32F
           : dtype == DM_F16 ? CUDA_R_16F
                             : CUDA_R_16BF;
}

/* c = beta * c, not read where beta is 0. */
static void scale_c(dmi_queue *q, const dmi_gemm *d, dm_dtype type, double beta, void *c)
{
    dmi_number number = dmi_number_of(beta);
    dmi_map map = {.ndim = 2, .extent = {d->m, d->n}};
    if (dmi_map_row(beta == 0 ? DMI_EW_constant : DMI_EW_scale, &type, (int[]){0, 0}, type, &map.program) != DM_OK) {
        return; /* both take every type */
    }
    for (int i = 0; i <= map.program.inputs; i++) {
        map.dtype[i] = type;
        map.stride[i][0] = d->ldc;
        map.stride[i][1] = 1;
        map.offset[i] = d->c_offset;
    }
    dmi_kernel_call call = {
        .queue = q, .desc = &map, .at = {c, c}, .number = &number, .numbers = 1};
    (void)!dmi_map_cuda(&call);
}

void dmi_cuda_gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                   void *c)
{
    dm_dtype type = d->dtype, c_type = d->c_dtype == 0 ? d->dtype : d->c_dtype;
    float alpha32 = (float)alpha, beta32 = (float)beta;
    bool wide = type == DM_F64;
    assert(dmi_dtype_is_float(type) && (c_type == type || (c_type == DM_F32 && dmi_dtype_bytes(type) == 2)));
    if (d->m == 0 || d->n == 0) {
        return;
    }
    assert(d->ldc >= d->n);
    if (d->k == 0) {
        scale_c(q, d, c_type, beta, c);
        return;
    }
    assert(d->lda >= (d->trans_a ? d->m : d->k) && d->ldb >= (d->trans_b ? d->k : d->n));
    if (!dmi_cuda_queue_blas(q) || dmi_cuda_gemv(q, d, alpha, a, b, beta, c)) {
        return;
    }
    cublasComputeType_t compute = wide                        ? CUBLAS_COMPUTE_64F
                                  : type == DM_F32 && d->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                              : CUBLAS_COMPUTE_32F;
    cublasStatus_t s = cublasGemmEx_64(
        q->blas, d->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, d->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, d->n, d->m,
        d->k, wide ? (const void *)&alpha : &alpha32, dmi_at(b, d->b_offset * dmi_dtype_bytes(type)),
        blas_type(type), d->ldb, dmi_at(a, d->a_offset * dmi_dtype_bytes(type)), blas_type(type), d->lda,
        wide ? (const void *)&beta : &beta32, dmi_at_mut(c, d->c_offset * dmi_dtype_bytes(c_type)),
        blas_type(c_type), d->ldc, compute, CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) {
        dmi_cuda_failed(q, "cublasGemmEx", -1 - (int)s, cublasGetStatusString(s));
    }
}
