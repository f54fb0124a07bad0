/* Products by cuBLAS, which reads matrices by columns: it computes c^T = op(b)^T op(a)^T. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

static cudaDataType_t blas_type(dm_dtype dtype)
{
    return dtype == DM_F64    ? CUDA_R_64F
           : dtype == DM_F32  ? CUDA_R_32F
           : dtype == DM_F16  ? CUDA_R_16F
           : dtype == DM_C64  ? CUDA_C_32F
           : dtype == DM_C128 ? CUDA_C_64F
                              : CUDA_R_16BF;
}

/* c = beta * c, not read where beta is 0. */
static void scale_c(dmi_queue *q, const dmi_gemm *d, dm_dtype type, double beta, void *c)
{
    dmi_number number = dmi_number_of(beta);
    dmi_map map = {.ndim = 2, .extent = {d->m, d->n}};
    if (dmi_map_row(beta == 0 ? DMI_EW_constant : DMI_EW_scale, &type, (int[]){0, 0}, type, &map.program) !=
        DM_OK) {
        return; /* both take every type */
    }
    for (int i = 0; i <= map.program.inputs; i++) {
        map.dtype[i] = type;
        map.stride[i][0] = d->ldc;
        map.stride[i][1] = 1;
        map.offset[i] = d->c_offset;
    }
    dmi_kernel_call call = {.queue = q, .desc = &map, .at = {c, c}, .number = &number, .numbers = 1};
    (void)!dmi_map_cuda(&call);
}

static cublasComputeType_t compute_type(const dmi_gemm *d)
{
    return d->dtype == DM_F64 || d->dtype == DM_C128 ? CUBLAS_COMPUTE_64F
           : d->dtype == DM_F32 && d->tf32           ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                     : CUBLAS_COMPUTE_32F;
}

static cublasOperation_t form_of(int trans, bool conjugate)
{
    assert(trans || !conjugate);
    return conjugate ? CUBLAS_OP_C : trans ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* alpha or beta in the type of the sums. */
typedef union factor {
    double f64;
    float f32;
    dm_c64 c64;
    dm_c128 c128;
} factor;

static factor factor_of(dm_dtype dtype, double value)
{
    return dtype == DM_F64    ? (factor){.f64 = value}
           : dtype == DM_C64  ? (factor){.c64 = {(float)value, 0}}
           : dtype == DM_C128 ? (factor){.c128 = {value, 0}}
                              : (factor){.f32 = (float)value};
}

static void multiply(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                     void *c)
{
    dm_dtype type = d->dtype, c_type = d->c_dtype == 0 ? type : d->c_dtype;
    int64_t bytes = dmi_dtype_bytes(type);
    factor by = factor_of(type, alpha), keep = factor_of(type, beta);
    cublasHandle_t blas = q->library[DMI_LIBRARY_CUBLAS];
    cublasOperation_t first = form_of(d->trans_b, d->conj_b), second = form_of(d->trans_a, d->conj_a);
    const void *at_a = dmi_at(a, d->a_offset * bytes), *at_b = dmi_at(b, d->b_offset * bytes);
    void *at_c = dmi_at_mut(c, d->c_offset * dmi_dtype_bytes(c_type));
    cudaDataType_t in = blas_type(type), out = blas_type(c_type);
    int64_t count = dmi_gemm_count(d);
    cublasStatus_t s =
        count == 1
            ? cublasGemmEx_64(blas, first, second, d->n, d->m, d->k, &by, at_b, in, d->ldb, at_a, in, d->lda,
                              &keep, at_c, out, d->ldc, compute_type(d), CUBLAS_GEMM_DEFAULT)
            : cublasGemmStridedBatchedEx_64(blas, first, second, d->n, d->m, d->k, &by, at_b, in, d->ldb,
                                            d->b_step, at_a, in, d->lda, d->a_step, &keep, at_c, out, d->ldc,
                                            d->c_step, count, compute_type(d), CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) {
        dmi_cuda_failed(q, "cublasGemmEx", -1 - (int)s, cublasGetStatusString(s));
    }
}

static void convert(dmi_queue *q, int64_t rows, int64_t cols, dm_dtype from, const void *src, int64_t offset,
                    int64_t ld, dm_dtype to, void *dst)
{
    dmi_run row = {.len = rows}, col = {.len = cols};
    dmi_copy d = {.ndim = 2,
                  .src_dtype = from,
                  .dst_dtype = to,
                  .nrun = {1, 1},
                  .run = {&row, &col},
                  .src_stride = {ld, 1},
                  .dst_stride = {cols, 1},
                  .src_offset = offset,
                  .count = rows * cols};
    q->device_run = NULL;
    dmi_cuda_copy(q, &d, src, dst);
}

/* Operands of 8 bits in the 16-bit type that c has, or else in f16: both hold all of their values. */
static void multiply_widened(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b,
                             double beta, void *c, void *workspace)
{
    dmi_gemm wide = *d;
    int64_t a_rows = d->trans_a ? d->k : d->m, a_cols = d->trans_a ? d->m : d->k;
    int64_t b_rows = d->trans_b ? d->n : d->k, b_cols = d->trans_b ? d->k : d->n;
    char *wide_b = (char *)workspace + dmi_gemm_f8_part(d->m, d->k);
    wide.dtype = d->c_dtype == DM_BF16 ? DM_BF16 : DM_F16;
    wide.b_dtype = 0;
    wide.a_offset = wide.b_offset = 0;
    wide.lda = a_cols;
    wide.ldb = b_cols;
    convert(q, a_rows, a_cols, d->dtype, a, d->a_offset, d->lda, wide.dtype, workspace);
    convert(q, b_rows, b_cols, d->b_dtype ? d->b_dtype : d->dtype, b, d->b_offset, d->ldb, wide.dtype, wide_b);
    multiply(q, &wide, alpha, workspace, wide_b, beta, c);
}

void dmi_cuda_gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                   void *c, void *workspace)
{
    dm_dtype type = d->dtype, c_type = d->c_dtype == 0 ? d->dtype : d->c_dtype;
    bool f8 = dmi_dtype_bytes(type) == 1;
    assert(c_type == type || dmi_gemm_takes_c(type, c_type));
    assert(f8 ? workspace != NULL || d->m == 0 || d->n == 0 || d->k == 0 : d->b_dtype == 0);
    if (d->m == 0 || d->n == 0) {
        return;
    }
    if (dmi_gemm_count(d) > 1 && (f8 || d->k == 0)) { /* cuBLAS has none for stacks of these */
        for (int64_t i = 0; i < d->count; i++) {
            dmi_gemm one = dmi_gemm_one(d, i);
            dmi_cuda_gemm(q, &one, alpha, a, b, beta, c, workspace);
        }
        return;
    }
    assert(d->ldc >= d->n);
    if (d->k == 0) {
        scale_c(q, d, c_type, beta, c);
        return;
    }
    assert(d->lda >= (d->trans_a ? d->m : d->k) && d->ldb >= (d->trans_b ? d->k : d->n));
    if (q->library[DMI_LIBRARY_CUBLAS] == NULL) {
        dmi_cuda_failed(q, "product", -1, "this queue has no handle of cuBLAS");
    } else if (f8) {
        if (!dmi_cuda_gemm_f8(q, d, alpha, a, b, beta, c, workspace)) {
            multiply_widened(q, d, alpha, a, b, beta, c, workspace);
        }
    } else if (!dmi_cuda_gemv(q, d, alpha, a, b, beta, c)) {
        multiply(q, d, alpha, a, b, beta, c);
    }
}
