/* Level 3 on the session. */
#include "blas.h"

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
        dmb_swap(&r->lda, &r->ldb);
        dmb_swap(&r->m, &r->n);
        break;
    case DMB_SYRK:
    case DMB_HERK:
    case DMB_SYR2K:
    case DMB_HER2K:
        r->uplo = 1 - r->uplo;
        r->trans[0] = trans == DM_N ? other : DM_N;
        r->alpha.im = r->kind == DMB_HER2K ? -r->alpha.im : r->alpha.im;
        break;
    default:
        r->side = 1 - r->side;
        r->uplo = 1 - r->uplo;
        dmb_swap(&r->m, &r->n);
    }
    r->by_columns = 0;
}

/* a, b and c as the request has them. Of kinds without b, its at is NULL. */
static void find_matrices(const dmb_request *r, dmb_matrix x[3])
{
    bool na = r->trans[0] == DM_N, nb = r->trans[1] == DM_N;
    int64_t order = r->side == DM_LEFT ? r->m : r->n;
    x[2] = (dmb_matrix){r->c, r->m, r->n, r->ldc};
    switch (r->kind) {
    case DMB_GEMM:
        x[0] = (dmb_matrix){r->a, na ? r->m : r->k, na ? r->k : r->m, r->lda};
        x[1] = (dmb_matrix){r->b, nb ? r->k : r->n, nb ? r->n : r->k, r->ldb};
        break;
    case DMB_SYMM:
    case DMB_HEMM:
        x[0] = (dmb_matrix){r->a, order, order, r->lda};
        x[1] = (dmb_matrix){r->b, r->m, r->n, r->ldb};
        break;
    case DMB_TRMM:
    case DMB_TRSM:
        x[0] = (dmb_matrix){r->a, order, order, r->lda};
        x[1] = (dmb_matrix){0};
        break;
    default:
        x[0] = (dmb_matrix){r->a, na ? r->n : r->k, na ? r->k : r->n, r->lda};
        x[1] = r->b ? (dmb_matrix){r->b, x[0].rows, x[0].cols, r->ldb} : (dmb_matrix){0};
    }
}

bool dmb_matrices_valid(const dmb_request *r)
{
    bool symmetric = r->kind == DMB_SYRK || r->kind == DMB_SYR2K,
         hermitian = r->kind == DMB_HERK || r->kind == DMB_HER2K;
    bool has_k = r->kind == DMB_GEMM || symmetric || hermitian;
    if (r->by_columns < 0 || r->side < 0 || r->uplo < 0 || r->trans[0] < 0 || r->trans[1] < 0 || r->diag < 0 ||
        r->m <= 0 || r->n <= 0 || (has_k && r->k <= 0)) {
        return false;
    }
    if (dmb_is_complex(r->dtype) &&
        ((symmetric && r->trans[0] == DM_C) || (hermitian && r->trans[0] == DM_T))) {
        return false;
    }
    dmb_request rows = *r;
    dmb_matrix x[3];
    if (rows.by_columns) {
        by_rows(&rows);
    }
    find_matrices(&rows, x);
    for (int i = 0; i < 3; i++) {
        if (x[i].at && x[i].ld < (x[i].cols > 1 ? x[i].cols : 1)) {
            return false;
        }
    }
    return x[0].at && x[2].at && !dmb_is_zero(r->alpha); /* with alpha 0 there may be no memory at a and b */
}

double dmb_matrices_flops(const dmb_request *r)
{
    double m = (double)r->m, n = (double)r->n, k = (double)r->k, order = r->side == DM_LEFT ? m : n;
    switch (r->kind) {
    case DMB_GEMM:
        return 2 * m * n * k;
    case DMB_SYMM:
    case DMB_HEMM:
        return 2 * m * n * order;
    case DMB_TRMM:
    case DMB_TRSM:
        return m * n * order;
    case DMB_SYR2K:
    case DMB_HER2K:
        return 2 * n * n * k;
    default:
        return n * n * k;
    }
}

static dm_status call(dm_session *s, const dmb_request *r, const dm_array x[3])
{
    dm_factor alpha = dm_complex(r->alpha.re, r->alpha.im), beta = dm_complex(r->beta.re, r->beta.im);
    int trans = r->trans[0];
    switch (r->kind) {
    case DMB_GEMM:
        return dm_gemm_by(s, trans, r->trans[1], alpha, x[0], x[1], beta, x[2], NULL);
    case DMB_SYMM:
        return dm_symm_by(s, r->side, r->uplo, alpha, x[0], x[1], beta, x[2]);
    case DMB_HEMM:
        return dm_hemm_by(s, r->side, r->uplo, alpha, x[0], x[1], beta, x[2]);
    case DMB_SYRK:
        return dm_syrk_by(s, r->uplo, trans, alpha, x[0], beta, x[2]);
    case DMB_HERK:
        return dm_herk_by(s, r->uplo, trans, alpha, x[0], beta, x[2]);
    case DMB_SYR2K:
        return dm_syr2k_by(s, r->uplo, trans, alpha, x[0], x[1], beta, x[2]);
    case DMB_HER2K:
        return dm_her2k_by(s, r->uplo, trans, alpha, x[0], x[1], beta, x[2]);
    case DMB_TRMM:
        return dm_trmm_by(s, r->side, r->uplo, trans, r->diag, alpha, x[0], x[2]);
    default:
        return dm_trsm_by(s, r->side, r->uplo, trans, r->diag, alpha, x[0], x[2]);
    }
}

dm_status dmb_matrices_compute(dm_session *s, dmb_request *r)
{
    dmb_matrix m[3];
    dm_array x[3] = {DM_NO_ARRAY, DM_NO_ARRAY, DM_NO_ARRAY};
    bool triangle = r->kind >= DMB_SYRK && r->kind <= DMB_HER2K, in_place = r->kind >= DMB_TRMM;
    if (r->by_columns) {
        by_rows(r);
    }
    find_matrices(r, m);
    dm_status status = dmb_put(s, r->dtype, &m[0], &x[0]);
    status = status == DM_OK && m[1].at ? dmb_put(s, r->dtype, &m[1], &x[1]) : status;
    if (status == DM_OK) {
        bool read = triangle || in_place || !dmb_is_zero(r->beta);
        status = (read ? dmb_put : dmb_make)(s, r->dtype, &m[2], &x[2]);
    }
    status = status == DM_OK ? call(s, r, x) : status;
    status = status == DM_OK ? dm_sync(s) : status;
    return status == DM_OK ? dm_array_read(s, x[2], NULL, NULL, r->c, r->ldc) : status;
}
