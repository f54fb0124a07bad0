/* BLAS, level 1: expressions and their reductions. */
#include "api/blas.h"

#include <math.h>

/* out = the expression of x, and of y where there is one. */
static dm_status expression(dm_session *session, const char *text, dm_array x, const dm_array *y, dm_array out)
{
    const dm_map_arg args[] = {DM_ARG("x", x), DM_ARG("y", y ? *y : x)};
    return dm_map(session, text, y ? 2 : 1, args, out);
}

static dm_status find(dm_session *session, dm_array a, const char *name, dmi_operand *out)
{
    dm_status status = dmi_part_operand(session, a, name, out);
    dm_dtype dtype = out->desc.dtype;
    if (status == DM_OK && !dmi_dtype_is_float(dtype) && !dmi_dtype_is_complex(dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s has dtype %s, and must be a float or complex", name,
                        dmi_dtype_name(dtype));
    }
    return status;
}

/* x and y have one shape; alike: and one type, and share no memory. */
static dm_status find_two(dm_session *session, dm_array x, dm_array y, bool alike)
{
    dmi_operand a = {0}, b = {0};
    char s[192], t[192];
    dm_status status = find(session, x, "x", &a);
    status = status == DM_OK ? find(session, y, "y", &b) : status;
    if (status != DM_OK) {
        return status;
    }
    bool same = a.desc.ndim == b.desc.ndim;
    for (int d = 0; d < a.desc.ndim && same; d++) {
        same = a.desc.extent[d] == b.desc.extent[d];
    }
    if (!same) {
        return dmi_fail(DM_ERR_SHAPE, "x is %s, y %s", dmi_shape_text(&a.desc, s), dmi_shape_text(&b.desc, t));
    }
    if (alike && a.desc.dtype != b.desc.dtype) {
        return dmi_fail(DM_ERR_DTYPE, "x has dtype %s, y has %s", dmi_dtype_name(a.desc.dtype),
                        dmi_dtype_name(b.desc.dtype));
    }
    if (alike && dmi_operands_overlap(&a, &b) != DMI_APART) {
        return dmi_fail(DM_ERR_OVERLAP, "x and y share memory");
    }
    return DM_OK;
}

dm_status dm_dot(dm_session *session, dm_array x, dm_array y, dm_array out)
{
    dm_status status = find_two(session, x, y, false);
    return status == DM_OK ? expression(session, "sum(x * y)", x, &y, out) : status;
}

dm_status dm_dotc(dm_session *session, dm_array x, dm_array y, dm_array out)
{
    dm_status status = find_two(session, x, y, false);
    return status == DM_OK ? expression(session, "sum(conj(x) * y)", x, &y, out) : status;
}

/* By the largest element, so that no square overflows nor underflows. */
static dm_status scaled_norm(dm_session *session, dm_array x, const dmi_desc *shape, dm_array out)
{
    dm_array largest, sum;
    dm_status status = dm_scope_begin(session);
    if (status != DM_OK) {
        return status;
    }
    status = dm_array_create(session, DM_F64, shape->ndim, shape->extent, NULL, &largest);
    status =
        status == DM_OK ? dm_array_create(session, DM_F64, shape->ndim, shape->extent, NULL, &sum) : status;
    const dm_map_arg args[] = {DM_ARG("m", largest), DM_ARG("s", sum)},
                     parts[] = {DM_ARG("x", x), DM_ARG("m", largest)};
    status = status == DM_OK ? dm_norm(session, x, (double)INFINITY, NULL, 0, largest) : status;
    status = status == DM_OK ? dm_map(session, "sum(square(abs(x) / m))", 2, parts, sum) : status;
    status = status == DM_OK ? dm_map(session, "where((m == 0) | (m == inf), m, m * sqrt(s))", 2, args, out)
                             : status;
    return dmi_blas_end(session, status);
}

dm_status dm_nrm2(dm_session *session, dm_array x, dm_array out)
{
    dmi_operand a = {0}, b = {0};
    dm_status status = find(session, x, "x", &a);
    status = status == DM_OK ? find(session, out, "out", &b) : status;
    if (status != DM_OK) {
        return status;
    }
    bool empty = false, wrong = b.desc.ndim != 0 && b.desc.ndim != a.desc.ndim; /* dm_norm refuses it */
    for (int d = 0; d < a.desc.ndim; d++) {
        empty = empty || a.desc.extent[d] == 0;
        wrong = wrong || (d < b.desc.ndim && b.desc.extent[d] != 1);
    }
    wrong = wrong || dmi_operands_overlap(&a, &b) != DMI_APART;
    if (wrong || empty || dmi_dtype_bytes(dmi_dtype_part(a.desc.dtype)) < 8) {
        return dm_norm(session, x, 2, NULL, 0, out);
    }
    return scaled_norm(session, x, &b.desc, out);
}

dm_status dm_asum(dm_session *session, dm_array x, dm_array out)
{
    dmi_operand a = {0};
    dm_status status = find(session, x, "x", &a);
    const char *text = dmi_dtype_is_complex(a.desc.dtype) ? "sum(abs(real(x)) + abs(imag(x)))" : "sum(abs(x))";
    return status == DM_OK ? expression(session, text, x, NULL, out) : status;
}

dm_status dm_iamax(dm_session *session, dm_array x, dm_array out)
{
    dmi_operand a = {0};
    dm_status status = find(session, x, "x", &a);
    const char *text =
        dmi_dtype_is_complex(a.desc.dtype) ? "argmax(abs(real(x)) + abs(imag(x)))" : "argmax(abs(x))";
    return status == DM_OK ? expression(session, text, x, NULL, out) : status;
}

dm_status dm_scal(dm_session *session, double alpha, dm_array x)
{
    dmi_operand a = {0};
    dm_status status = find(session, x, "x", &a);
    return status == DM_OK ? dm_scale(session, alpha, x, x) : status;
}

dm_status dm_axpy(dm_session *session, double alpha, dm_array x, dm_array y)
{
    dm_status status = find_two(session, x, y, false);
    return status == DM_OK ? dm_axpby(session, alpha, x, 1, y) : status;
}

dm_status dm_swap(dm_session *session, dm_array x, dm_array y)
{
    dm_array kept;
    dm_status status = find_two(session, x, y, true);
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = dm_array_like(session, x, 0, &kept);
    status = status == DM_OK ? dm_copy(session, x, kept) : status;
    status = status == DM_OK ? dm_copy(session, y, x) : status;
    status = status == DM_OK ? dm_copy(session, kept, y) : status;
    return dmi_blas_end(session, status);
}

static dm_status negate(dm_session *session, dm_dtype type, dm_factor f, dm_factor *out)
{
    *out = dm_value(-f.value);
    if (!f.element) {
        return DM_OK;
    }
    dm_status status = dmi_factor_settle(session, type, &f);
    *out = f;
    return status == DM_OK ? dm_scale(session, -1, f.array, f.array) : status;
}

static dm_status rotate(dm_session *session, dm_array x, dm_array y, dm_factor c, dm_factor s)
{
    dm_array kept;
    dm_factor less;
    dmi_operand out[2];
    dm_dtype real = 0;
    dm_status status = find_two(session, x, y, true);
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_part_operand(session, i ? y : x, i ? "y" : "x", &out[i]);
        real = status == DM_OK ? dmi_dtype_carrier(dmi_dtype_part(out[i].desc.dtype)) : real;
        status = status == DM_OK ? dmi_part_factor(session, "c", &c, real, i ? "y" : "x", &out[i]) : status;
        status = status == DM_OK ? dmi_part_factor(session, "s", &s, real, i ? "y" : "x", &out[i]) : status;
    }
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = negate(session, real, s, &less);
    status = status == DM_OK ? dm_array_like(session, x, 0, &kept) : status;
    status = status == DM_OK ? dm_add_by(session, c, x, s, y, kept) : status;
    status = status == DM_OK ? dm_axpby_by(session, less, x, c, y) : status;
    status = status == DM_OK ? dm_copy(session, kept, x) : status;
    return dmi_blas_end(session, status);
}

dm_status dm_rot(dm_session *session, dm_array x, dm_array y, double c, double s)
{
    return rotate(session, x, y, dm_value(c), dm_value(s));
}

dm_status dm_rot_by(dm_session *session, dm_array x, dm_array y, dm_factor c, dm_factor s)
{
    return rotate(session, x, y, c, s);
}
