/* Triangular solves by cuBLAS, which reads matrices by columns: it solves the transposed equation. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/kernel.h"

#include <cublas_v2.h>

dm_status dmi_trsm_cuda(const dmi_kernel_call *call)
{
    const dmi_trsm *s = call->desc;
    dmi_queue *q = call->queue;
    int64_t bytes = dmi_dtype_bytes(s->dtype);
    cublasHandle_t blas = q->library[DMI_LIBRARY_CUBLAS];
    if (s->m == 0 || s->n == 0) {
        return DM_OK;
    }
    cublasSideMode_t side = s->right ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    cublasFillMode_t uplo = s->upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    cublasOperation_t op = s->trans == 2 ? CUBLAS_OP_C : s->trans ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasDiagType_t diag = s->unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const void *a = dmi_at(call->at[0], s->a_offset * bytes);
    void *b = dmi_at_mut(call->at[1], s->b_offset * bytes);
    double one64[2] = {1, 0};
    float one32[2] = {1, 0};
    cublasStatus_t status;
    switch ((int)s->dtype) {
    case DM_F64:
        status = cublasDtrsm_64(blas, side, uplo, op, diag, s->n, s->m, one64, a, s->lda, b, s->ldb);
        break;
    case DM_F32:
        status = cublasStrsm_64(blas, side, uplo, op, diag, s->n, s->m, one32, a, s->lda, b, s->ldb);
        break;
    case DM_C128:
        status = cublasZtrsm_64(blas, side, uplo, op, diag, s->n, s->m, (const cuDoubleComplex *)one64, a,
                                s->lda, b, s->ldb);
        break;
    case DM_C64:
        status = cublasCtrsm_64(blas, side, uplo, op, diag, s->n, s->m, (const cuComplex *)one32, a, s->lda,
                                b, s->ldb);
        break;
    default:
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        dmi_cuda_failed(q, "cublastrsm", -1 - (int)status, cublasGetStatusString(status));
    }
    return DM_OK;
}
