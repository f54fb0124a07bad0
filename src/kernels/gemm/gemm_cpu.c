/* Products by BLAS, whose interface takes int: what is larger goes in tiles. */
#include "kernels/box/convert.h"
#include "kernels/cpu/cpu.h"
#include <assert.h>
#include <cblas.h>
#include <limits.h>

/* A row-major matrix; trans: its transpose is the operand. */
typedef struct matrix {
    const void *at;
    bool trans;
    int64_t rows, cols, ld; /* rows and cols of the operand */
} matrix;

/* y = alpha * op(a) * x + beta * y by several threads of BLAS. The stride of x changes the bits of BLAS'
 * result, and replicas of c must agree: x is packed, one range after another. */
static void vector_tile(dm_dtype dtype, double alpha, const matrix *a, const void *x, int64_t x_step,
                        double beta, void *y, int64_t y_step)
{
    enum { RANGE = 4096 };
    double room[RANGE];
    CBLAS_TRANSPOSE t = a->trans ? CblasTrans : CblasNoTrans;
    int64_t bytes = dmi_dtype_bytes(dtype);
    for (int64_t p = 0; p < a->cols; p += RANGE) {
        int64_t n = DMI_MIN(RANGE, a->cols - p);
        const void *from = dmi_at(a->at, p * (a->trans ? a->ld : 1) * bytes), *dense = dmi_at(x, p * bytes);
        int rows = (int)(a->trans ? n : a->rows), cols = (int)(a->trans ? a->rows : n);
        if (x_step != 1) {
            dmi_move_plane(bytes, 1, n, dmi_at(x, p * x_step * bytes), 0, x_step, room, 0, 1);
            dense = room;
        }
        if (dtype == DM_F64) {
            cblas_dgemv(CblasRowMajor, t, rows, cols, alpha, from, (int)a->ld, dense, 1, p == 0 ? beta : 1, y,
                        (int)y_step);
        } else {
            cblas_sgemv(CblasRowMajor, t, rows, cols, (float)alpha, from, (int)a->ld, dense, 1,
                        p == 0 ? (float)beta : 1, y, (int)y_step);
        }
    }
}

/* One tile: every number fits in an int. */
static void tile(const dmi_gemm *d, int64_t m, int64_t n, int64_t k, const int64_t *ld, double alpha,
                 const void *a, const void *b, double beta, void *c)
{
    CBLAS_TRANSPOSE ta = d->trans_a ? CblasTrans : CblasNoTrans, tb = d->trans_b ? CblasTrans : CblasNoTrans;
    int lda = (int)ld[0], ldb = (int)ld[1], ldc = (int)ld[2];
    bool vector = (d->m == 1 || d->n == 1) && openblas_get_num_threads() > 1;
    if (dmi_dtype_is_complex(d->dtype)) {
        dmi_cpu_gemm_complex(d, (int)m, (int)n, (int)k, (int[]){lda, ldb, ldc}, alpha, a, b, beta, c);
    } else if (vector && d->n == 1) {
        matrix x = {a, d->trans_a, m, k, lda};
        vector_tile(d->dtype, alpha, &x, b, d->trans_b ? 1 : ldb, beta, c, ldc);
    } else if (vector) { /* c^T = op(b)^T op(a)^T */
        matrix x = {b, !d->trans_b, n, k, ldb};
        vector_tile(d->dtype, alpha, &x, a, d->trans_a ? lda : 1, beta, c, 1);
    } else if (d->dtype == DM_F64) {
        cblas_dgemm(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, alpha, a, lda, b, ldb, beta, c, ldc);
    } else {
        cblas_sgemm(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, (float)alpha, a, lda, b, ldb, (float)beta, c,
                    ldc);
    }
}

/* c = beta * c, not read where beta is 0. */
static void scale_c(const dmi_gemm *d, double beta, void *c)
{
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    dm_dtype part = dmi_dtype_part(d->dtype);
    int64_t numbers = d->n * (part == d->dtype ? 1 : 2);
    for (int64_t i = 0; i < d->m; i++) {
        void *row = dmi_at_mut(c, i * d->ldc * bytes);
        if (beta == 0) {
            memset(row, 0, (size_t)(d->n * bytes));
        } else if (part == DM_F64) {
            for (int64_t j = 0; j < numbers; j++) {
                ((double *)row)[j] *= beta;
            }
        } else {
            for (int64_t j = 0; j < numbers; j++) {
                ((float *)row)[j] *= (float)beta;
            }
        }
    }
}

void dmi_cpu_gemm_limited(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c,
                          int64_t limit)
{
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    assert(d->dtype == DM_F64 || d->dtype == DM_F32 || dmi_dtype_is_complex(d->dtype));
    if (d->m == 0 || d->n == 0) {
        return;
    }
    assert(d->ldc >= d->n);
    c = dmi_at_mut(c, d->c_offset * bytes);
    if (d->k == 0) {
        scale_c(d, beta, c);
        return;
    }
    assert(d->lda >= (d->trans_a ? d->m : d->k) && d->ldb >= (d->trans_b ? d->k : d->n));
    a = dmi_at(a, d->a_offset * bytes);
    b = dmi_at(b, d->b_offset * bytes);
    /* A leading dimension beyond the limit does not matter to a tile of one row. */
    bool wide_a = d->lda > limit, wide_b = d->ldb > limit, wide_c = d->ldc > limit;
    int64_t sm = wide_c || (wide_a && !d->trans_a) ? 1 : DMI_MIN(d->m, limit);
    int64_t sn = wide_b && d->trans_b ? 1 : DMI_MIN(d->n, limit);
    int64_t sk = (wide_a && d->trans_a) || (wide_b && !d->trans_b) ? 1 : DMI_MIN(d->k, limit);
    int64_t ld[3] = {wide_a ? limit : d->lda, wide_b ? limit : d->ldb, wide_c ? limit : d->ldc};
    for (int64_t i = 0; i < d->m; i += sm) {
        for (int64_t j = 0; j < d->n; j += sn) {
            for (int64_t p = 0; p < d->k; p += sk) {
                int64_t a_at = d->trans_a ? p * d->lda + i : i * d->lda + p;
                int64_t b_at = d->trans_b ? j * d->ldb + p : p * d->ldb + j;
                tile(d, DMI_MIN(sm, d->m - i), DMI_MIN(sn, d->n - j), DMI_MIN(sk, d->k - p), ld, alpha,
                     dmi_at(a, a_at * bytes), dmi_at(b, b_at * bytes), p == 0 ? beta : 1,
                     dmi_at_mut(c, (i * d->ldc + j) * bytes));
            }
        }
    }
}

/* ThreadSanitizer does not see inside BLAS: what a product reads and writes is reported to it here. */
#ifdef __SANITIZE_THREAD__
void __tsan_read_range(void *at, unsigned long bytes);  /* NOLINT(bugprone-reserved-identifier): libtsan's */
void __tsan_write_range(void *at, unsigned long bytes); /* NOLINT(bugprone-reserved-identifier) */

static void report(void (*range)(void *, unsigned long), void *at, int64_t rows, int64_t cols, int64_t ld,
                   int64_t bytes)
{
    for (int64_t i = 0; i < rows; i++) {
        range((char *)at + i * ld * bytes, (unsigned long)(cols * bytes));
    }
}

static void report_product(const dmi_gemm *d, const void *a, const void *b, void *c)
{
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    report(__tsan_read_range, dmi_at_mut((void *)a, d->a_offset * bytes), d->trans_a ? d->k : d->m,
           d->trans_a ? d->m : d->k, d->lda, bytes);
    report(__tsan_read_range, dmi_at_mut((void *)b, d->b_offset * bytes), d->trans_b ? d->n : d->k,
           d->trans_b ? d->k : d->n, d->ldb, bytes);
    report(__tsan_write_range, dmi_at_mut(c, d->c_offset * bytes), d->m, d->n, d->ldc, bytes);
}
#else
static void report_product(const dmi_gemm *d, const void *a, const void *b, const void *c)
{
    (void)d, (void)a, (void)b, (void)c;
}
#endif

void dmi_cpu_gemm(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c)
{
    bool real = !dmi_dtype_is_complex(d->dtype);
    if (real && openblas_get_num_threads() == 1 && alpha != 0 && dmi_cpu_thin_pays(d)) {
        dmi_cpu_thin(d, alpha, a, b, beta, c);
    } else {
        report_product(d, a, b, c);
        dmi_cpu_gemm_limited(d, alpha, a, b, beta, c, INT_MAX);
    }
}

int dmi_cpu_blas_threads(int threads)
{
    int before = openblas_get_num_threads();
    openblas_set_num_threads(threads);
    return before;
}
