/* Symmetric and Hermitian matrices: products with them, and updates of one triangle. Updates go by halves: the
 * block beside the diagonal is one product, and those on the diagonal are the same task of half the size. */
#include "api/blas.h"

typedef struct update {
    dm_session *session;
    dm_dtype dtype;
    bool upper, hermitian, two; /* two: of a and b */
    int trans;
    int64_t n, k;
    dm_factor alpha, mirrored, beta; /* settled; mirrored: of the second product of two */
} update;

/* c = alpha op(x) op(y)^T + beta c, or ^H */
static dm_status product(const update *q, dm_factor alpha, dm_array x, dm_array y, dm_factor beta, dm_array c)
{
    int other = q->hermitian ? DM_C : DM_T;
    return q->trans == DM_N ? dm_gemm_by(q->session, DM_N, other, alpha, x, y, beta, c, NULL)
                            : dm_gemm_by(q->session, other, DM_N, alpha, x, y, beta, c, NULL);
}

/* The same, and with two operands the mirrored product too. */
static dm_status products(const update *q, const dm_array x[2], const dm_array y[2], dm_factor beta, dm_array c)
{
    dm_status status = product(q, q->alpha, x[0], y[1], beta, c);
    return status == DM_OK && q->two ? product(q, q->mirrored, x[1], y[0], dm_value(1), c) : status;
}

/* Indices r to r + rows of op(x). */
static dm_status part(const update *q, dm_array x, int64_t r, int64_t rows, dm_array *out)
{
    return q->trans == DM_N ? dmi_blas_block(q->session, x, r, rows, 0, q->k, out)
                            : dmi_blas_block(q->session, x, 0, q->k, r, rows, out);
}

static dm_status update_block(const update *q, const dm_array x[2], dm_array c, int64_t n)
{
    static const char *const texts[2][2][2] = {
        {{"where(i >= j, w, c)", "where(i <= j, w, c)"},
         {"where(i >= j, w + beta * c, c)", "where(i <= j, w + beta * c, c)"}},
        {{"where(i > j, w, where(i == j, real(w), c))", "where(i < j, w, where(i == j, real(w), c))"},
         {"where(i > j, w + beta * c, where(i == j, real(w + beta * c), c))",
          "where(i < j, w + beta * c, where(i == j, real(w + beta * c), c))"}}};
    dm_array w;
    dm_status status = dm_scope_begin(q->session);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_blas_temporary(q->session, q->dtype, n, n, &w);
    status = status == DM_OK ? products(q, x, x, dm_value(0), w) : status;
    const char *text = texts[q->hermitian][!dmi_factor_zero(&q->beta)][q->upper];
    status = status == DM_OK ? dmi_blas_masked(q->session, text, w, &q->beta, c) : status;
    return dmi_blas_end(q->session, status);
}

static dm_status recurse(const update *q, const dm_array x[2], dm_array c, int64_t n);

static dm_status halves(const update *q, const dm_array x[2], dm_array c, int64_t n)
{
    int64_t h = dmi_blas_half(n), at[2] = {0, h}, size[2] = {h, n - h};
    dm_array diagonal[2], other, half[2][2];
    dm_session *s = q->session;
    dm_status status =
        q->upper ? dmi_blas_block(s, c, 0, h, h, n - h, &other) : dmi_blas_block(s, c, h, n - h, 0, h, &other);
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_blas_block(s, c, at[i], size[i], at[i], size[i], &diagonal[i]);
        for (int k = 0; k < 2 && status == DM_OK; k++) {
            status = part(q, x[k], at[i], size[i], &half[i][k]);
        }
    }
    status =
        status == DM_OK ? products(q, half[q->upper ? 0 : 1], half[q->upper ? 1 : 0], q->beta, other) : status;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = recurse(q, half[i], diagonal[i], size[i]);
    }
    return status;
}

static dm_status recurse(const update *q, const dm_array x[2], dm_array c, int64_t n)
{
    if (n <= DMI_BLAS_BLOCK) {
        return update_block(q, x, c, n);
    }
    dm_status status = dm_scope_begin(q->session);
    return status == DM_OK ? dmi_blas_end(q->session, halves(q, x, c, n)) : status;
}

/* The factors become what all products can take: mirrored is alpha, or of Hermitian updates its conjugate. */
static dm_status settle(update *q)
{
    dm_array conjugate;
    dm_status status = dmi_factor_settle(q->session, q->dtype, &q->alpha);
    status = status == DM_OK ? dmi_factor_settle(q->session, q->dtype, &q->beta) : status;
    q->mirrored = q->alpha;
    if (status != DM_OK || !q->hermitian || !q->two || !q->alpha.element) {
        return status;
    }
    const dm_map_arg arg = DM_ARG("alpha", q->alpha.array);
    status = dm_array_like(q->session, q->alpha.array, 0, &conjugate);
    q->mirrored = dm_element(conjugate);
    return status == DM_OK ? dm_map(q->session, "conj(alpha)", 1, &arg, conjugate) : status;
}

/* b: NULL for rank k */
static dm_status update_call(dm_session *session, bool hermitian, int uplo, int trans, dm_factor alpha,
                             dm_array a, const dm_array *b, dm_factor beta, dm_array c)
{
    dmi_blas q;
    dm_status status = b ? dmi_blas_begin(session, "abc", (int[]){2, 2, 2}, (dm_array[]){a, *b, c}, &q)
                         : dmi_blas_begin(session, "ac", (int[]){2, 2}, (dm_array[]){a, c}, &q);
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    status = status == DM_OK ? dmi_blas_flag("trans", trans, DM_C) : status;
    if (status == DM_OK && q.complex && trans == (hermitian ? DM_T : DM_C)) {
        status = dmi_fail(DM_ERR_ARG, "trans is %s, which this call does not take of complex matrices",
                          hermitian ? "DM_T" : "DM_C");
    }
    if (status != DM_OK) {
        return status;
    }
    int64_t n = dmi_blas_extent(&q, 0, trans != DM_N), k = dmi_blas_extent(&q, 0, trans == DM_N);
    status = dmi_blas_shape(&q, q.count - 1, n, n);
    status =
        status == DM_OK && b ? dmi_blas_shape(&q, 1, trans == DM_N ? n : k, trans == DM_N ? k : n) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "alpha", &alpha, hermitian && !b) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "beta", &beta, hermitian) : status;
    bool adds_nothing = dmi_factor_zero(&alpha) || k == 0;
    if (status != DM_OK || n == 0 || (adds_nothing && dmi_factor_is(&beta, 1)) ||
        (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    update u = {session, q.dtype, uplo == DM_UPPER, hermitian && q.complex, b != NULL, trans, n, k, alpha,
                alpha,   beta};
    status = settle(&u);
    return dmi_blas_end(session, status == DM_OK ? recurse(&u, (dm_array[]){a, b ? *b : a}, c, n) : status);
}

dm_status dm_syrk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta, dm_array c)
{
    return update_call(session, false, uplo, trans, dm_value(alpha), a, NULL, dm_value(beta), c);
}

dm_status dm_syrk_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a, dm_factor beta,
                     dm_array c)
{
    return update_call(session, false, uplo, trans, alpha, a, NULL, beta, c);
}

dm_status dm_herk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta, dm_array c)
{
    return update_call(session, true, uplo, trans, dm_value(alpha), a, NULL, dm_value(beta), c);
}

dm_status dm_herk_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a, dm_factor beta,
                     dm_array c)
{
    return update_call(session, true, uplo, trans, alpha, a, NULL, beta, c);
}

dm_status dm_syr2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                   dm_array c)
{
    return update_call(session, false, uplo, trans, dm_value(alpha), a, &b, dm_value(beta), c);
}

dm_status dm_syr2k_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a, dm_array b,
                      dm_factor beta, dm_array c)
{
    return update_call(session, false, uplo, trans, alpha, a, &b, beta, c);
}

dm_status dm_her2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                   dm_array c)
{
    return update_call(session, true, uplo, trans, dm_value(alpha), a, &b, dm_value(beta), c);
}

dm_status dm_her2k_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a, dm_array b,
                      dm_factor beta, dm_array c)
{
    return update_call(session, true, uplo, trans, alpha, a, &b, beta, c);
}

/* b and c: matrices, or vectors (side left) */
static dm_status product_call(dm_session *session, bool hermitian, const char *names, int side, int uplo,
                              dm_factor alpha, const dm_array *x, dm_factor beta)
{
    int ndim = names[1] == 'x' ? 1 : 2;
    dmi_blas q;
    dm_array whole;
    dm_status status = dmi_blas_begin(session, names, (int[]){2, ndim, ndim}, x, &q);
    status = status == DM_OK ? dmi_blas_flag("side", side, DM_RIGHT) : status;
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    if (status != DM_OK) {
        return status;
    }
    int64_t n = dmi_blas_extent(&q, 2, side), cols = ndim == 2 ? dmi_blas_extent(&q, 2, 1) : 1;
    status = dmi_blas_shape(&q, 0, n, n);
    status = status == DM_OK ? dmi_blas_shape(&q, 1, dmi_blas_extent(&q, 2, 0), cols) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "alpha", &alpha, false) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "beta", &beta, false) : status;
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dm_array_like(session, x[0], 0, &whole);
    status = status == DM_OK && !dmi_factor_zero(&alpha) ? dm_symmetrise(session, uplo, hermitian, x[0], whole)
                                                         : status;
    if (status == DM_OK) {
        status = side == DM_RIGHT ? dm_gemm_by(session, DM_N, DM_N, alpha, x[1], whole, beta, x[2], NULL)
                                  : dm_gemm_by(session, DM_N, DM_N, alpha, whole, x[1], beta, x[2], NULL);
    }
    return dmi_blas_end(session, status);
}

dm_status dm_symm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                  dm_array c)
{
    return product_call(session, false, "abc", side, uplo, dm_value(alpha), (dm_array[]){a, b, c},
                        dm_value(beta));
}

dm_status dm_symm_by(dm_session *session, int side, int uplo, dm_factor alpha, dm_array a, dm_array b,
                     dm_factor beta, dm_array c)
{
    return product_call(session, false, "abc", side, uplo, alpha, (dm_array[]){a, b, c}, beta);
}

dm_status dm_hemm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                  dm_array c)
{
    return product_call(session, true, "abc", side, uplo, dm_value(alpha), (dm_array[]){a, b, c},
                        dm_value(beta));
}

dm_status dm_hemm_by(dm_session *session, int side, int uplo, dm_factor alpha, dm_array a, dm_array b,
                     dm_factor beta, dm_array c)
{
    return product_call(session, true, "abc", side, uplo, alpha, (dm_array[]){a, b, c}, beta);
}

dm_status dm_symv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta, dm_array y)
{
    return product_call(session, false, "axy", DM_LEFT, uplo, dm_value(alpha), (dm_array[]){a, x, y},
                        dm_value(beta));
}

dm_status dm_symv_by(dm_session *session, int uplo, dm_factor alpha, dm_array a, dm_array x, dm_factor beta,
                     dm_array y)
{
    return product_call(session, false, "axy", DM_LEFT, uplo, alpha, (dm_array[]){a, x, y}, beta);
}

dm_status dm_hemv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta, dm_array y)
{
    return product_call(session, true, "axy", DM_LEFT, uplo, dm_value(alpha), (dm_array[]){a, x, y},
                        dm_value(beta));
}

dm_status dm_hemv_by(dm_session *session, int uplo, dm_factor alpha, dm_array a, dm_array x, dm_factor beta,
                     dm_array y)
{
    return product_call(session, true, "axy", DM_LEFT, uplo, alpha, (dm_array[]){a, x, y}, beta);
}
