/* Products with a vector by cuBLAS' gemv, which reads the matrix once; its gemm is slower there. cuBLAS has
 * none of 16-bit operands. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>
#include <cublas_v2.h>

/* A matrix as cuBLAS sees it, by columns: the transpose of what lies in rows. */
typedef struct matrix {
    const void *at;
    int64_t rows, cols, ld;
    bool trans; /* op(matrix) is the transpose of the rows in memory */
} matrix;

bool dmi_cuda_gemv(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                   void *c)
{
    if ((d->n != 1 && d->m != 1) || (d->dtype != DM_F64 && d->dtype != DM_F32)) {
        return false;
    }
    assert(d->k > 0 && d->m > 0 && d->n > 0 && (d->c_dtype == 0 || d->c_dtype == d->dtype));
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    const void *pa = dmi_at(a, d->a_offset * bytes), *pb = dmi_at(b, d->b_offset * bytes);
    void *y = dmi_at_mut(c, d->c_offset * bytes);
    bool column = d->n == 1; /* else c^T = op(b)^T op(a)^T */
    matrix x =
        column ? (matrix){pa, d->m, d->k, d->lda, d->trans_a} : (matrix){pb, d->n, d->k, d->ldb, !d->trans_b};
    const void *v = column ? pb : pa;
    int64_t v_step = column ? (d->trans_b ? 1 : d->ldb) : (d->trans_a ? d->lda : 1),
            y_step = column ? d->ldc : 1;
    /* Without a transpose memory holds rows x cols by rows: cols x rows by columns, of which it takes the
     * transpose. */
    cublasOperation_t op = x.trans ? CUBLAS_OP_N : CUBLAS_OP_T;
    int64_t m = x.trans ? x.rows : x.cols, n = x.trans ? x.cols : x.rows;
    cublasHandle_t blas = q->library[DMI_LIBRARY_CUBLAS];
    float alpha32 = (float)alpha, beta32 = (float)beta;
    int64_t count = dmi_gemm_count(d), x_next = column ? d->a_step : d->b_step,
            v_next = column ? d->b_step : d->a_step;
    cublasStatus_t s = count == 1 && d->dtype == DM_F64
                           ? cublasDgemv_64(blas, op, m, n, &alpha, x.at, x.ld, v, v_step, &beta, y, y_step)
                       : count == 1
                           ? cublasSgemv_64(blas, op, m, n, &alpha32, x.at, x.ld, v, v_step, &beta32, y, y_step)
                       : d->dtype == DM_F64
                           ? cublasDgemvStridedBatched_64(blas, op, m, n, &alpha, x.at, x.ld, x_next, v, v_step,
                                                          v_next, &beta, y, y_step, d->c_step, count)
                           : cublasSgemvStridedBatched_64(blas, op, m, n, &alpha32, x.at, x.ld, x_next, v,
                                                          v_step, v_next, &beta32, y, y_step, d->c_step, count);
    if (s != CUBLAS_STATUS_SUCCESS) {
        dmi_cuda_failed(q, "cublasgemv", -1 - (int)s, cublasGetStatusString(s));
    }
    return true;
}
