/* Triangles, and products and solves with triangular matrices. These go by halves: of
 *     b1 = a11 b1,  b2 = a21 b1 + a22 b2
 * the middle term is one product of blocks, and the others are the same task of half the size. */
#include "api/blas.h"

typedef struct triangular {
    dm_session *session;
    dm_dtype dtype;
    bool right, upper, unit, solve;
    int trans;
    double alpha;
} triangular;

static dm_status find_type(dm_session *session, dm_array x, dm_array out, dm_dtype *dtype)
{
    dmi_session *s;
    dmi_handle *a, *b;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, x, "x", &a)) != DM_OK ||
        (status = dmi_handle_find(s, out, "out", &b)) != DM_OK) {
        return status;
    }
    if (a->desc.ndim != 2 || b->desc.ndim != 2) {
        return dmi_fail(DM_ERR_SHAPE, "%s has %d dims, not 2", a->desc.ndim != 2 ? "x" : "out",
                        a->desc.ndim != 2 ? a->desc.ndim : b->desc.ndim);
    }
    for (int d = 0; d < 2; d++) {
        if (a->desc.extent[d] != b->desc.extent[d]) {
            char text[2][192];
            return dmi_fail(DM_ERR_SHAPE, "x is %s, out %s", dmi_shape_text(&a->desc, text[0]),
                            dmi_shape_text(&b->desc, text[1]));
        }
    }
    *dtype = a->desc.dtype;
    return DM_OK;
}

dm_status dm_tril(dm_session *session, dm_array x, dm_array out)
{
    dm_dtype unused;
    dm_status status = find_type(session, x, out, &unused);
    return status == DM_OK ? dmi_blas_masked(session, "where(i >= j, w, 0)", x, NULL, out) : status;
}

dm_status dm_triu(dm_session *session, dm_array x, dm_array out)
{
    dm_dtype unused;
    dm_status status = find_type(session, x, out, &unused);
    return status == DM_OK ? dmi_blas_masked(session, "where(i <= j, w, 0)", x, NULL, out) : status;
}

dm_status dm_symmetrise(dm_session *session, int uplo, int hermitian, dm_array x, dm_array out)
{
    static const char *const texts[2][2] = {
        {"where(i >= j, x, t)", "where(i <= j, x, t)"},
        {"where(i > j, x, where(i < j, conj(t), real(x)))", "where(i < j, x, where(i > j, conj(t), real(x)))"}};
    dm_dtype dtype = 0;
    dm_status status = find_type(session, x, out, &dtype);
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    if (status != DM_OK) {
        return status;
    }
    const dmi_chain_name name[] = {{"x", .array = x},
                                   {"t", .kind = DMI_CHAIN_TRANSPOSED, .array = x},
                                   {"i", .kind = DMI_CHAIN_INDEX, .dim = 0},
                                   {"j", .kind = DMI_CHAIN_INDEX, .dim = 1}};
    const dmi_chain_text text[] = {{NULL, texts[hermitian && dmi_dtype_is_complex(dtype)][uplo]}};
    const dmi_chain_call chain = {4, 1, name, text, NULL, 0, 0};
    return dmi_chain_submit(session, &chain, out);
}

/* b = alpha op(a) b, or b op(a), of one block. */
static dm_status multiply_block(const triangular *q, dm_array a, dm_array b, int64_t n)
{
    static const char *const texts[2][2] = {
        {"where(i >= j, w, 0)", "where(i <= j, w, 0)"},
        {"where(i > j, w, where(i == j, 1, 0))", "where(i < j, w, where(i == j, 1, 0))"}};
    dm_array t, product;
    dm_status status = dm_scope_begin(q->session);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_blas_temporary(q->session, q->dtype, n, n, &t);
    status = status == DM_OK ? dm_array_like(q->session, b, 0, &product) : status;
    status = status == DM_OK ? dmi_blas_masked(q->session, texts[q->unit][q->upper], a, NULL, t) : status;
    if (status == DM_OK) {
        status = q->right ? dm_gemm(q->session, DM_N, q->trans, q->alpha, b, t, 0, product)
                          : dm_gemm(q->session, q->trans, DM_N, q->alpha, t, b, 0, product);
    }
    status = status == DM_OK ? dm_copy(q->session, product, b) : status;
    return dmi_blas_end(q->session, status);
}

static dm_status solve_block(const triangular *q, dm_array a, dm_array b)
{
    dmi_call call = {.op = DMI_OP_trsm, .noperand = 2, .args = {.i = {q->right, q->upper, q->trans, q->unit}}};
    return dmi_call_submit(q->session, &call, (dm_array[]){a, b});
}

/* a is n x n; sides: how many columns b has, or (right) rows. */
static dm_status recurse(const triangular *q, dm_array a, dm_array b, int64_t n, int64_t sides);

static dm_status halves(const triangular *q, dm_array a, dm_array b, int64_t n, int64_t sides)
{
    int64_t h = dmi_blas_half(n), at[2] = {0, h}, size[2] = {h, n - h};
    dm_array diagonal[2], other, part[2];
    dm_session *s = q->session;
    dm_status status =
        q->upper ? dmi_blas_block(s, a, 0, h, h, n - h, &other) : dmi_blas_block(s, a, h, n - h, 0, h, &other);
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_blas_block(s, a, at[i], size[i], at[i], size[i], &diagonal[i]);
        if (status == DM_OK) {
            status = q->right ? dmi_blas_block(s, b, 0, sides, at[i], size[i], &part[i])
                              : dmi_blas_block(s, b, at[i], size[i], 0, sides, &part[i]);
        }
    }
    /* op(a) takes half `from` of b into half `to`. */
    bool lower = q->upper == (q->trans != DM_N);
    int to = lower != q->right ? 1 : 0, from = 1 - to, first = q->solve ? from : to;
    double factor = q->solve ? -1 : q->alpha;
    status = status == DM_OK ? recurse(q, diagonal[first], part[first], size[first], sides) : status;
    if (status == DM_OK) {
        status = q->right ? dm_gemm(s, DM_N, q->trans, factor, part[from], other, 1, part[to])
                          : dm_gemm(s, q->trans, DM_N, factor, other, part[from], 1, part[to]);
    }
    return status == DM_OK ? recurse(q, diagonal[1 - first], part[1 - first], size[1 - first], sides) : status;
}

static dm_status recurse(const triangular *q, dm_array a, dm_array b, int64_t n, int64_t sides)
{
    if (n <= DMI_BLAS_BLOCK) {
        return q->solve ? solve_block(q, a, b) : multiply_block(q, a, b, n);
    }
    dm_status status = dm_scope_begin(q->session);
    return status == DM_OK ? dmi_blas_end(q->session, halves(q, a, b, n, sides)) : status;
}

static dm_status triangular_call(dm_session *session, bool solve, int side, int uplo, int trans, int diag,
                                 dm_factor alpha, dm_array a, dm_array b)
{
    dmi_blas q;
    dm_status status = dmi_blas_begin(session, "ab", (int[]){2, 2}, (dm_array[]){a, b}, &q);
    status = status == DM_OK ? dmi_blas_flag("side", side, DM_RIGHT) : status;
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    status = status == DM_OK ? dmi_blas_flag("trans", trans, DM_C) : status;
    status = status == DM_OK ? dmi_blas_flag("diag", diag, DM_UNIT) : status;
    if (status != DM_OK) {
        return status;
    }
    bool right = side == DM_RIGHT;
    int64_t n = dmi_blas_extent(&q, 1, right), sides = dmi_blas_extent(&q, 1, !right);
    status = dmi_blas_shape(&q, 0, n, n);
    status = status == DM_OK ? dmi_blas_factor(&q, "alpha", &alpha, false) : status;
    if (status != DM_OK || n == 0 || sides == 0) {
        return status;
    }
    if (dmi_factor_zero(&alpha)) {
        return dm_fill(session, b, 0);
    }
    if (solve || !dmi_factor_real(&alpha)) {
        status = dmi_factor_is(&alpha, 1) ? DM_OK : dm_scale_by(session, alpha, b, b);
        alpha = dm_value(1);
    }
    if (status != DM_OK) {
        return status;
    }
    const triangular t = {session,         q.dtype, right, uplo == DM_UPPER,
                          diag == DM_UNIT, solve,   trans, alpha.value};
    return recurse(&t, a, b, n, sides);
}

dm_status dm_trmm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                  dm_array b)
{
    return triangular_call(session, false, side, uplo, trans, diag, dm_value(alpha), a, b);
}

dm_status dm_trmm_by(dm_session *session, int side, int uplo, int trans, int diag, dm_factor alpha, dm_array a,
                     dm_array b)
{
    return triangular_call(session, false, side, uplo, trans, diag, alpha, a, b);
}

dm_status dm_trsm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                  dm_array b)
{
    return triangular_call(session, true, side, uplo, trans, diag, dm_value(alpha), a, b);
}

dm_status dm_trsm_by(dm_session *session, int side, int uplo, int trans, int diag, dm_factor alpha, dm_array a,
                     dm_array b)
{
    return triangular_call(session, true, side, uplo, trans, diag, alpha, a, b);
}
