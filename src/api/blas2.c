/* BLAS, level 2, but for symv and hemv (symmetric.c). */
#include "api/blas.h"

static dm_status gemv(dm_session *session, int trans, dm_factor alpha, dm_array a, dm_array x, dm_factor beta,
                      dm_array y)
{
    dmi_blas q;
    dm_status status = dmi_blas_begin(session, "axy", (int[]){2, 1, 1}, (dm_array[]){a, x, y}, &q);
    status = status == DM_OK ? dmi_blas_flag("trans", trans, DM_C) : status;
    if (status != DM_OK) {
        return status;
    }
    int64_t rows = dmi_blas_extent(&q, 0, trans != DM_N), cols = dmi_blas_extent(&q, 0, trans == DM_N);
    status = dmi_blas_shape(&q, 1, cols, 0);
    status = status == DM_OK ? dmi_blas_shape(&q, 2, rows, 0) : status;
    return status == DM_OK ? dm_gemm_by(session, trans, DM_N, alpha, a, x, beta, y, NULL) : status;
}

dm_status dm_gemv(dm_session *session, int trans, double alpha, dm_array a, dm_array x, double beta, dm_array y)
{
    return gemv(session, trans, dm_value(alpha), a, x, dm_value(beta), y);
}

dm_status dm_gemv_by(dm_session *session, int trans, dm_factor alpha, dm_array a, dm_array x, dm_factor beta,
                     dm_array y)
{
    return gemv(session, trans, alpha, a, x, beta, y);
}

/* a = the expression of x and y (NULL: of x alone), both as columns c* and rows r*, of alpha, of a and of its
 * indices. */
static dm_status outer(const dmi_blas *q, const char *text, dm_factor alpha, dm_array x, const dm_array *y,
                       bool mask, bool wide, dm_array a)
{
    dm_session *session = q->session;
    dm_status status = dm_scope_begin(session);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_factor_settle(session, q->dtype, &alpha);
    dmi_chain_name name[8] = {{"a", .array = a}, dmi_chain_factor("alpha", &alpha)};
    int count = 2;
    name[count++] = (dmi_chain_name){"x", .kind = DMI_CHAIN_COLUMN, .array = x};
    if (wide || !y) {
        name[count++] = (dmi_chain_name){"xt", .array = x};
    }
    if (y) {
        name[count++] = (dmi_chain_name){"yt", .array = *y};
    }
    if (wide) {
        name[count++] = (dmi_chain_name){"y", .kind = DMI_CHAIN_COLUMN, .array = *y};
    }
    if (mask) {
        name[count++] = (dmi_chain_name){"i", .kind = DMI_CHAIN_INDEX, .dim = 0};
        name[count++] = (dmi_chain_name){"j", .kind = DMI_CHAIN_INDEX, .dim = 1};
    }
    const dmi_chain_text texts[] = {{NULL, text}};
    const dmi_chain_call chain = {count, 1, name, texts, NULL, 0, 0};
    return dmi_blas_end(session, status == DM_OK ? dmi_chain_submit(session, &chain, a) : status);
}

static dm_status rank_one(dm_session *session, const char *text, dm_factor alpha, dm_array x, dm_array y,
                          dm_array a)
{
    dmi_blas q;
    dm_status status = dmi_blas_begin(session, "xya", (int[]){1, 1, 2}, (dm_array[]){x, y, a}, &q);
    status =
        status == DM_OK ? dmi_blas_shape(&q, 2, dmi_blas_extent(&q, 0, 0), dmi_blas_extent(&q, 1, 0)) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "alpha", &alpha, false) : status;
    return status != DM_OK || dmi_factor_zero(&alpha) ? status : outer(&q, text, alpha, x, &y, false, false, a);
}

dm_status dm_ger(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a)
{
    return rank_one(session, "a + alpha * x * yt", dm_value(alpha), x, y, a);
}

dm_status dm_ger_by(dm_session *session, dm_factor alpha, dm_array x, dm_array y, dm_array a)
{
    return rank_one(session, "a + alpha * x * yt", alpha, x, y, a);
}

dm_status dm_gerc(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a)
{
    return rank_one(session, "a + alpha * x * conj(yt)", dm_value(alpha), x, y, a);
}

dm_status dm_gerc_by(dm_session *session, dm_factor alpha, dm_array x, dm_array y, dm_array a)
{
    return rank_one(session, "a + alpha * x * conj(yt)", alpha, x, y, a);
}

/* The texts of an update: of the lower triangle and of the upper one. */
typedef struct update {
    const char *texts[2];
    bool real; /* alpha is */
} update;
static const update syr = {{"where(i >= j, a + alpha * x * xt, a)", "where(i <= j, a + alpha * x * xt, a)"},
                           false};
static const update her = {
    {"where(i > j, a + alpha * x * conj(xt), where(i == j, real(a + alpha * x * conj(xt)), a))",
     "where(i < j, a + alpha * x * conj(xt), where(i == j, real(a + alpha * x * conj(xt)), a))"},
    true};
static const update syr2 = {{"where(i >= j, a + alpha * x * yt + alpha * y * xt, a)",
                             "where(i <= j, a + alpha * x * yt + alpha * y * xt, a)"},
                            false};
static const update her2 = {{"where(i > j, a + alpha * x * conj(yt) + conj(alpha) * y * conj(xt), "
                             "where(i == j, real(a + alpha * x * conj(yt) + conj(alpha) * y * conj(xt)), a))",
                             "where(i < j, a + alpha * x * conj(yt) + conj(alpha) * y * conj(xt), "
                             "where(i == j, real(a + alpha * x * conj(yt) + conj(alpha) * y * conj(xt)), a))"},
                            false};

/* y: NULL where there is none */
static dm_status update_call(dm_session *session, const update *u, int uplo, dm_factor alpha, dm_array x,
                             const dm_array *y, dm_array a)
{
    dmi_blas q;
    dm_status status = y ? dmi_blas_begin(session, "xya", (int[]){1, 1, 2}, (dm_array[]){x, *y, a}, &q)
                         : dmi_blas_begin(session, "xa", (int[]){1, 2}, (dm_array[]){x, a}, &q);
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    if (status != DM_OK) {
        return status;
    }
    int64_t n = dmi_blas_extent(&q, 0, 0);
    status = dmi_blas_shape(&q, q.count - 1, n, n);
    status = status == DM_OK && y ? dmi_blas_shape(&q, 1, n, 0) : status;
    status = status == DM_OK ? dmi_blas_factor(&q, "alpha", &alpha, u->real) : status;
    return status != DM_OK || dmi_factor_zero(&alpha)
               ? status
               : outer(&q, u->texts[uplo], alpha, x, y, true, y != NULL, a);
}

dm_status dm_syr(dm_session *session, int uplo, double alpha, dm_array x, dm_array a)
{
    return update_call(session, &syr, uplo, dm_value(alpha), x, NULL, a);
}

dm_status dm_syr_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array a)
{
    return update_call(session, &syr, uplo, alpha, x, NULL, a);
}

dm_status dm_her(dm_session *session, int uplo, double alpha, dm_array x, dm_array a)
{
    return update_call(session, &her, uplo, dm_value(alpha), x, NULL, a);
}

dm_status dm_her_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array a)
{
    return update_call(session, &her, uplo, alpha, x, NULL, a);
}

dm_status dm_syr2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a)
{
    return update_call(session, &syr2, uplo, dm_value(alpha), x, &y, a);
}

dm_status dm_syr2_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array y, dm_array a)
{
    return update_call(session, &syr2, uplo, alpha, x, &y, a);
}

dm_status dm_her2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a)
{
    return update_call(session, &her2, uplo, dm_value(alpha), x, &y, a);
}

dm_status dm_her2_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array y, dm_array a)
{
    return update_call(session, &her2, uplo, alpha, x, &y, a);
}

/* x = op(a) x, or the solution: x goes to a column and back. */
static dm_status triangular(dm_session *session, bool solve, int uplo, int trans, int diag, dm_array a,
                            dm_array x)
{
    dmi_blas q;
    dm_array copy, column;
    dm_status status = dmi_blas_begin(session, "ax", (int[]){2, 1}, (dm_array[]){a, x}, &q);
    status = status == DM_OK ? dmi_blas_flag("uplo", uplo, DM_UPPER) : status;
    status = status == DM_OK ? dmi_blas_flag("trans", trans, DM_C) : status;
    status = status == DM_OK ? dmi_blas_flag("diag", diag, DM_UNIT) : status;
    if (status != DM_OK) {
        return status;
    }
    int64_t n = dmi_blas_extent(&q, 1, 0);
    if ((status = dmi_blas_shape(&q, 0, n, n)) != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dm_vector(session, q.dtype, n, &copy);
    status = status == DM_OK ? dm_array_reshape(session, copy, 2, (int64_t[]){n, 1}, &column) : status;
    status = status == DM_OK ? dm_copy(session, x, copy) : status;
    if (status == DM_OK) {
        status = solve ? dm_trsm(session, DM_LEFT, uplo, trans, diag, 1, a, column)
                       : dm_trmm(session, DM_LEFT, uplo, trans, diag, 1, a, column);
    }
    status = status == DM_OK ? dm_copy(session, copy, x) : status;
    return dmi_blas_end(session, status);
}

dm_status dm_trmv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x)
{
    return triangular(session, false, uplo, trans, diag, a, x);
}

dm_status dm_trsv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x)
{
    return triangular(session, true, uplo, trans, diag, a, x);
}
