/* Covariances and distances: what is taken off comes off before the product. */
#include "api/blas.h"

#include <math.h>

static dm_status find(dm_session *session, dm_array a, const char *name, int ndim, dmi_operand *out)
{
    dm_status status = dmi_part_operand(session, a, name, out);
    return status != DM_OK || out->desc.ndim == ndim
               ? status
               : dmi_fail(DM_ERR_SHAPE, "%s has %d dims, not %d", name, out->desc.ndim, ndim);
}

/* out = a matrix rows x cols, which shares no memory with x. */
static dm_status check_out(const dmi_operand *x, const dmi_operand *out, int64_t rows, int64_t cols)
{
    char text[192];
    if (out->desc.extent[0] != rows || out->desc.extent[1] != cols) {
        return dmi_fail(DM_ERR_SHAPE, "out is %s, not %lldx%lld", dmi_shape_text(&out->desc, text),
                        (long long)rows, (long long)cols);
    }
    if (dmi_operands_overlap(x, out) != DMI_APART) {
        return dmi_fail(DM_ERR_OVERLAP, "out shares memory with an input");
    }
    return DM_OK;
}

/* The type in which a float is centred and multiplied. */
static dm_dtype working_type(dm_dtype dtype)
{
    return dmi_dtype_is_complex(dtype) ? dtype
           : dmi_dtype_is_float(dtype) ? dmi_dtype_promote(dtype, DM_F32)
                                       : DM_F64;
}

dm_status dm_covariance(dm_session *session, dm_array x, int by, double correction, dm_array out)
{
    dmi_operand a = {0}, c = {0};
    dm_status status = find(session, x, "x", 2, &a);
    status = status == DM_OK ? find(session, out, "out", 2, &c) : status;
    status = status == DM_OK ? dmi_blas_flag("by", by, DM_BY_COLUMNS) : status;
    if (status != DM_OK || (status = check_out(&a, &c, a.desc.extent[by], a.desc.extent[by])) != DM_OK) {
        return status;
    }
    bool complex = dmi_dtype_is_complex(a.desc.dtype), into = dmi_dtype_is_complex(c.desc.dtype);
    if (!(DMI_DT_PRODUCT >> c.desc.dtype & 1) || (complex && !into)) { /* as dm_gemm, which comes second */
        return dmi_fail(DM_ERR_DTYPE, "out has dtype %s, x has %s", dmi_dtype_name(c.desc.dtype),
                        dmi_dtype_name(a.desc.dtype));
    }
    double less = (double)a.desc.extent[1 - by] - correction;
    if (isnan(correction)) {
        return dmi_fail(DM_ERR_ARG, "correction is NaN");
    }
    dm_array centred;
    const dmi_chain_name name[] = {{"x", .array = x}};
    const dmi_chain_text texts[] = {{"m", "mean(x)"},
                                    {NULL, complex && by == DM_BY_COLUMNS ? "conj(x - m)" : "x - m"}};
    const dmi_chain_call chain = {1, 2, name, texts, (int[]){1 - by}, 1, 0};
    int trans = complex ? DM_C : DM_T;
    if ((status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dm_array_like(session, x, working_type(a.desc.dtype), &centred);
    status = status == DM_OK ? dmi_chain_submit(session, &chain, centred) : status;
    status = status == DM_OK
                 ? dm_gemm(session, by == DM_BY_ROWS ? DM_N : trans, by == DM_BY_ROWS ? trans : DM_N,
                           1 / (less > 0 ? less : 0), centred, centred, 0, out)
                 : status;
    return dmi_blas_end(session, status);
}

static dm_status check_rows(dm_session *session, dm_array a, dm_array b, dm_array out, dmi_operand x[3])
{
    dm_status status = find(session, a, "a", 2, &x[0]);
    status = status == DM_OK ? find(session, b, "b", 2, &x[1]) : status;
    status = status == DM_OK ? find(session, out, "out", 2, &x[2]) : status;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = check_out(&x[i], &x[2], x[0].desc.extent[0], x[1].desc.extent[0]);
        if (status == DM_OK && dmi_dtype_is_complex(x[i].desc.dtype)) {
            status = dmi_fail(DM_ERR_DTYPE, "%c has dtype %s, and must be real", "ab"[i],
                              dmi_dtype_name(x[i].desc.dtype));
        }
    }
    if (status == DM_OK && x[0].desc.extent[1] != x[1].desc.extent[1]) {
        char s[192], t[192];
        status = dmi_fail(DM_ERR_SHAPE, "a is %s, b %s", dmi_shape_text(&x[0].desc, s),
                          dmi_shape_text(&x[1].desc, t));
    }
    if (status == DM_OK && !dmi_dtype_is_float(x[2].desc.dtype)) {
        status =
            dmi_fail(DM_ERR_DTYPE, "out has dtype %s, and must be a float", dmi_dtype_name(x[2].desc.dtype));
    }
    return status;
}

/* out = text of t = made[0] made[1]^T, p and q: the sums of the squares of their rows. */
static dm_status combine(dm_session *session, const dm_array made[2], bool squares, const char *text,
                         dm_array out)
{
    dm_array sums[2], product;
    dm_status status = dm_array_like(session, out, DM_F64, &product);
    for (int i = 0; i < 2 && squares && status == DM_OK; i++) {
        const dm_map_arg args[] = {DM_ARG("x", made[i])};
        status = dm_map_new(session, "sum(x * x, 1)", 1, args, NULL, &sums[i]);
    }
    status = status == DM_OK ? dm_gemm(session, DM_N, DM_T, 1, made[0], made[1], 0, product) : status;
    if (status != DM_OK) {
        return status;
    }
    const dmi_chain_name name[] = {
        {"t", .array = product}, {"p", .kind = DMI_CHAIN_COLUMN, .array = sums[0]}, {"q", .array = sums[1]}};
    const dmi_chain_text texts[] = {{NULL, text}};
    const dmi_chain_call chain = {squares ? 3 : 1, 1, name, texts, NULL, 0, 0};
    return dmi_chain_submit(session, &chain, out);
}

dm_status dm_distances(dm_session *session, dm_array a, dm_array b, dm_array out)
{
    dmi_operand x[3];
    dm_array made[2], sum, count;
    dm_status status = check_rows(session, a, b, out, x);
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    const dm_map_arg rows[] = {DM_ARG("x", a)}; /* a row with NaN or Inf must not spoil the others */
    status = dm_map_new(session, "sum(where(isfinite(x), f64(x), 0), 0)", 1, rows, NULL, &sum);
    status =
        status == DM_OK ? dm_map_new(session, "count_nonzero(isfinite(x), 0)", 1, rows, NULL, &count) : status;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        const dm_map_arg args[] = {DM_ARG("x", i == 0 ? a : b), DM_ARG("s", sum), DM_ARG("n", count)};
        status = dm_array_like(session, args[0].array, DM_F64, &made[i]);
        status = status == DM_OK ? dm_map(session, "x - s / maximum(n, 1)", 3, args, made[i]) : status;
    }
    status = status == DM_OK ? combine(session, made, true, "sqrt(maximum(p + q - 2 * t, 0))", out) : status;
    return dmi_blas_end(session, status);
}

dm_status dm_cosine_distances(dm_session *session, dm_array a, dm_array b, dm_array out)
{
    dmi_operand x[3];
    dm_array made[2];
    dm_status status = check_rows(session, a, b, out, x);
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        dm_array from = i == 0 ? a : b;
        status = dm_array_like(session, from, DM_F64, &made[i]);
        status = status == DM_OK ? dm_copy(session, from, made[i]) : status;
        const dmi_chain_name name[] = {{"x", .array = made[i]}};
        const dmi_chain_text texts[] = {
            {"m", "max(abs(x))"}, {"s", "sum(square(x / m))"}, {NULL, "x / m / sqrt(s)"}};
        const dmi_chain_call chain = {1, 3, name, texts, (int[]){1}, 1, 0};
        status =
            status == DM_OK && x[i].desc.extent[1] > 0 ? dmi_chain_submit(session, &chain, made[i]) : status;
    }
    status = status == DM_OK ? combine(session, made, false, x[0].desc.extent[1] > 0 ? "1 - t" : "t / t", out)
                             : status;
    return dmi_blas_end(session, status);
}
