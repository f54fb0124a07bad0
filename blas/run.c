/* A request on the session: operands become arrays, the call is made, and the result goes back. */
#include "blas.h"

#include <stdlib.h>

/* A matrix of the caller, by rows. */
typedef struct matrix {
    const void *at;
    int64_t rows, cols, ld;
} matrix;

static bool is_complex(dm_dtype dtype)
{
    return dtype == DM_C64 || dtype == DM_C128;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* A matrix by columns is its transpose by rows: the request becomes one for the transposed result. */
static void by_rows(dmb_request *r)
{
    const void *kept = r->a;
    int trans = r->trans[0], other = r->kind == DMB_HERK || r->kind == DMB_HER2K ? DM_C : DM_T;
    switch (r->kind) {
    case DMB_GEMM:
        r->a = r->b;
        r->b = kept;
        r->trans[0] = r->trans[1];
        r->trans[1] = trans;
        swap(&r->lda, &r->ldb);
        swap(&r->m, &r->n);
        break;
    case DMB_SYRK:
    case DMB_HERK:
    case DMB_SYR2K:
    case DMB_HER2K:
        r->uplo = 1 - r->uplo;
        r->trans[0] = trans == DM_N ? other : DM_N;
        r->alpha[1] = r->kind == DMB_HER2K ? -r->alpha[1] : r->alpha[1];
        break;
    default:
        r->side = 1 - r->side;
        r->uplo = 1 - r->uplo;
        swap(&r->m, &r->n);
    }
    r->by_columns = false;
}

/* a, b and c as the request has them. Of kinds without b, its at is NULL. */
static void find_matrices(const dmb_request *r, matrix x[3])
{
    bool na = r->trans[0] == DM_N, nb = r->trans[1] == DM_N;
    int64_t order = r->side == DM_LEFT ? r->m : r->n;
    x[2] = (matrix){r->c, r->m, r->n, r->ldc};
    switch (r->kind) {
    case DMB_GEMM:
        x[0] = (matrix){r->a, na ? r->m : r->k, na ? r->k : r->m, r->lda};
        x[1] = (matrix){r->b, nb ? r->k : r->n, nb ? r->n : r->k, r->ldb};
        break;
    case DMB_SYMM:
    case DMB_HEMM:
        x[0] = (matrix){r->a, order, order, r->lda};
        x[1] = (matrix){r->b, r->m, r->n, r->ldb};
        break;
    case DMB_TRMM:
    case DMB_TRSM:
        x[0] = (matrix){r->a, order, order, r->lda};
        x[1] = (matrix){0};
        break;
    default:
        x[0] = (matrix){r->a, na ? r->n : r->k, na ? r->k : r->n, r->lda};
        x[1] = r->b ? (matrix){r->b, x[0].rows, x[0].cols, r->ldb} : (matrix){0};
        x[2].rows = r->n;
    }
}

/* What is wrong, OpenBLAS says by XERBLA. */
static bool is_valid(const dmb_request *r)
{
    bool symmetric = r->kind == DMB_SYRK || r->kind == DMB_SYR2K,
         hermitian = r->kind == DMB_HERK || r->kind == DMB_HER2K;
    bool has_k = r->kind == DMB_GEMM || symmetric || hermitian;
    if (r->side < 0 || r->uplo < 0 || r->trans[0] < 0 || r->trans[1] < 0 || r->diag < 0 || r->m <= 0 ||
        r->n <= 0 || (has_k && r->k <= 0)) {
        return false;
    }
    if (is_complex(r->dtype) && ((symmetric && r->trans[0] == DM_C) || (hermitian && r->trans[0] == DM_T))) {
        return false;
    }
    dmb_request rows = *r;
    matrix x[3];
    if (rows.by_columns) {
        by_rows(&rows);
    }
    find_matrices(&rows, x);
    for (int i = 0; i < 3; i++) {
        if (x[i].at && x[i].ld < (x[i].cols > 1 ? x[i].cols : 1)) {
            return false;
        }
    }
    return x[0].at && x[2].at;
}

static double flops_of(const dmb_request *r)
{
    double m = (double)r->m, n = (double)r->n, k = (double)r->k, order = r->side == DM_LEFT ? m : n;
    double real = r->kind == DMB_GEMM                            ? 2 * m * n * k
                  : r->kind == DMB_SYMM || r->kind == DMB_HEMM   ? 2 * m * n * order
                  : r->kind == DMB_TRMM || r->kind == DMB_TRSM   ? m * n * order
                  : r->kind == DMB_SYR2K || r->kind == DMB_HER2K ? 2 * n * n * k
                                                                 : n * n * k;
    return is_complex(r->dtype) ? 4 * real : real;
}

static void multiply(dm_dtype dtype, const void *from, int64_t i, const double factor[2], void *to, int64_t j)
{
    if (dtype == DM_C128) {
        dm_c128 v = ((const dm_c128 *)from)[i];
        ((dm_c128 *)to)[j] =
            (dm_c128){factor[0] * v.re - factor[1] * v.im, factor[0] * v.im + factor[1] * v.re};
    } else {
        dm_c64 v = ((const dm_c64 *)from)[i];
        float re = (float)factor[0], im = (float)factor[1];
        ((dm_c64 *)to)[j] = (dm_c64){re * v.re - im * v.im, re * v.im + im * v.re};
    }
}

/* Split by rows, small ones too. */
static dm_status make(dm_session *s, dm_dtype dtype, const matrix *x, dm_array *out)
{
    dm_layout rows = dm_layout_rows(s);
    return dm_array_create(s, dtype, 2, (int64_t[]){x->rows, x->cols}, &rows, out);
}

/* A new array with the matrix, times the factor if that is not real. triangle: the factor is for this triangle
 * alone; -1: for all elements. */
static dm_status put(dm_session *s, dm_dtype dtype, const matrix *x, const double factor[2], int triangle,
                     dm_array *out)
{
    static const double one[2] = {1, 0};
    dm_status status = make(s, dtype, x, out);
    if (status != DM_OK || factor[1] == 0) {
        return status == DM_OK ? dm_array_write(s, *out, NULL, NULL, x->at, x->ld) : status;
    }
    void *scaled = malloc((size_t)(x->rows * x->cols * dm_dtype_bytes(dtype)));
    if (!scaled) {
        return DM_ERR_NOMEM;
    }
    for (int64_t i = 0; i < x->rows; i++) {
        for (int64_t j = 0; j < x->cols; j++) {
            bool in = triangle < 0 || (triangle == DM_LOWER ? i >= j : i <= j);
            multiply(dtype, x->at, i * x->ld + j, in ? factor : one, scaled, i * x->cols + j);
        }
    }
    status = dm_array_write(s, *out, NULL, NULL, scaled, 0);
    free(scaled);
    return status;
}

/* Which operand takes a factor alpha that is not real, and the factor: operands are multiplied before they are
 * used. */
static int alpha_operand(dmb_request *r, double factor[2])
{
    if (r->alpha[1] == 0) {
        return -1;
    }
    bool conjugate = (r->kind == DMB_GEMM || r->kind == DMB_HER2K) && r->trans[0] == DM_C;
    factor[0] = r->alpha[0];
    factor[1] = conjugate ? -r->alpha[1] : r->alpha[1];
    r->alpha[0] = 1;
    switch (r->kind) {
    case DMB_SYMM:
    case DMB_HEMM:
        return 1;
    case DMB_TRMM:
    case DMB_TRSM:
        return 2;
    case DMB_SYRK: /* a a^T = (a/2) a^T + a (a/2)^T */
        r->alpha[0] = 0.5;
        return 0;
    default:
        return 0;
    }
}

static dm_status call(dm_session *s, const dmb_request *r, const dm_array x[3])
{
    double alpha = r->alpha[0], beta = r->beta[0];
    int trans = r->trans[0];
    switch (r->kind) {
    case DMB_GEMM:
        return dm_gemm(s, trans, r->trans[1], alpha, x[0], x[1], beta, x[2]);
    case DMB_SYMM:
        return dm_symm(s, r->side, r->uplo, alpha, x[0], x[1], beta, x[2]);
    case DMB_HEMM:
        return dm_hemm(s, r->side, r->uplo, alpha, x[0], x[1], beta, x[2]);
    case DMB_SYRK:
        return x[1].id ? dm_syr2k(s, r->uplo, trans, alpha, x[0], x[1], beta, x[2])
                       : dm_syrk(s, r->uplo, trans, alpha, x[0], beta, x[2]);
    case DMB_HERK:
        return dm_herk(s, r->uplo, trans, alpha, x[0], beta, x[2]);
    case DMB_SYR2K:
        return dm_syr2k(s, r->uplo, trans, alpha, x[0], x[1], beta, x[2]);
    case DMB_HER2K:
        return dm_her2k(s, r->uplo, trans, alpha, x[0], x[1], beta, x[2]);
    case DMB_TRMM:
        return dm_trmm(s, r->side, r->uplo, trans, r->diag, alpha, x[0], x[2]);
    default:
        return dm_trsm(s, r->side, r->uplo, trans, r->diag, alpha, x[0], x[2]);
    }
}

/* Until the result is read back, the caller's memory is as it was. */
static dm_status compute(dm_session *s, dmb_request *r)
{
    static const double one[2] = {1, 0};
    double factor[2], beta[2] = {r->beta[0], r->beta[1]};
    matrix m[3];
    dm_array x[3] = {DM_NO_ARRAY, DM_NO_ARRAY, DM_NO_ARRAY};
    bool triangle = r->kind >= DMB_SYRK && r->kind <= DMB_HER2K, in_place = r->kind >= DMB_TRMM;
    int scaled = alpha_operand(r, factor);
    find_matrices(r, m);
    dm_status status = put(s, r->dtype, &m[0], scaled == 0 ? factor : one, -1, &x[0]);
    if (r->kind == DMB_SYRK && scaled == 0) {
        m[1] = m[0];
    }
    if (status == DM_OK && m[1].at) {
        status = put(s, r->dtype, &m[1], scaled == 1 ? factor : one, -1, &x[1]);
    }
    if (status == DM_OK && (triangle || in_place || beta[0] != 0 || beta[1] != 0)) {
        status = put(s, r->dtype, &m[2], in_place ? (scaled == 2 ? factor : one) : beta,
                     triangle ? r->uplo : -1, &x[2]);
        r->beta[0] = beta[1] != 0 ? 1 : beta[0];
    } else if (status == DM_OK) {
        status = make(s, r->dtype, &m[2], &x[2]);
    }
    status = status == DM_OK ? call(s, r, x) : status;
    status = status == DM_OK ? dm_sync(s) : status;
    return status == DM_OK ? dm_array_read(s, x[2], NULL, NULL, r->c, r->ldc) : status;
}

bool dmb_run(dmb_request r)
{
    if (!is_valid(&r) || flops_of(&r) < dmb_threshold()) {
        return false;
    }
    dm_session *s = dmb_enter();
    if (!s) {
        return false;
    }
    if (r.by_columns) {
        by_rows(&r);
    }
    dm_status status = dm_scope_begin(s);
    if (status == DM_OK) {
        status = compute(s, &r);
        if (status != DM_OK) {
            dmb_say_once("a call failed: %s", dm_error_message());
        }
        dm_status ended = dm_scope_end(s, NULL, 0);
        status = status == DM_OK ? ended : status;
    }
    dmb_leave();
    return status == DM_OK;
}
