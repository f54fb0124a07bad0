/* Padding and flips: copies of parts, and parts taken in another order. */
#include "api/parts.h"

#include <dmath/index.h>
#include <inttypes.h>
#include <stdlib.h>

/* out[.., k, ..] = x[.., index[k] - first, ..], k < count, for parts of two arrays that share no memory. */
static dm_status take_part(dm_session *session, dm_array x, int64_t first, int64_t span, const int64_t *index,
                           dm_array out, int64_t at, int64_t count, int dim)
{
    dm_array from, to, indices = DM_NO_ARRAY;
    int64_t *number = malloc((size_t)DMI_MAX(count, 1) * sizeof *number);
    if (!number) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for indices", dmi_api_called());
    }
    for (int64_t k = 0; k < count; k++) {
        number[k] = index[k] - first;
    }
    dm_status status = dmi_part_view(session, x, dim, first, span, &from);
    status = status == DM_OK ? dmi_part_view(session, out, dim, at, count, &to) : status;
    status = status == DM_OK ? dm_vector(session, DM_I64, count, &indices) : status;
    status = status == DM_OK ? dm_array_write(session, indices, NULL, NULL, number, 0) : status;
    status = status == DM_OK ? dm_take(session, from, indices, dim, DM_WRAP, to) : status;
    free(number);
    return status;
}

/* The same where the rows that are taken are found first, so that no others travel. */
static dm_status take_listed(dm_session *session, dm_array x, const int64_t *index, dm_array out, int64_t at,
                             int64_t count, int dim)
{
    int64_t lo = INT64_MAX, hi = -1;
    for (int64_t k = 0; k < count; k++) {
        lo = DMI_MIN(lo, index[k]);
        hi = DMI_MAX(hi, index[k]);
    }
    return count == 0 ? DM_OK : take_part(session, x, lo, hi + 1 - lo, index, out, at, count, dim);
}

/* --- flip ------------------------------------------------------------------------------------------------- */

/* A part for each worker: where out is split along dim, that worker needs those rows of x and no others. */
static dm_status flip_parts(dm_session *session, dm_array x, int64_t n, int dim, dm_array out)
{
    int64_t parts = DMI_MAX(dm_workers(session), 1), each = DMI_MAX((n + parts - 1) / parts, 1);
    dm_array order, indices;
    dm_status status = dm_vector(session, DM_I64, DMI_MIN(each, n), &order);
    status = status == DM_OK ? dm_fill_arange(session, order, (double)(DMI_MIN(each, n) - 1), -1) : status;
    for (int64_t at = 0; at < n && status == DM_OK; at += each) {
        int64_t count = DMI_MIN(each, n - at);
        dm_array from, to;
        status = dmi_part_view(session, x, dim, n - at - count, count, &from);
        status = status == DM_OK ? dmi_part_view(session, out, dim, at, count, &to) : status;
        /* the last numbers of the order lead to a shorter part */
        status = status == DM_OK ? dmi_part_view(session, order, 0, DMI_MIN(each, n) - count, count, &indices)
                                 : status;
        status = status == DM_OK ? dm_take(session, from, indices, dim, DM_WRAP, to) : status;
    }
    return status;
}

/* x and out, of one shape and without common memory. */
static dm_status check_flip(dm_session *session, dm_array x, int *dim, dm_array out, dmi_operand *from)
{
    dmi_operand to;
    dm_status status = dmi_part_operand(session, x, "x", from);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &to) : status;
    status = status == DM_OK ? dmi_part_dim(dim, from->desc.ndim) : status;
    status = status == DM_OK ? dmi_part_shape(&to, from->desc.ndim, from->desc.extent) : status;
    if (status == DM_OK && from->desc.dtype != to.desc.dtype) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s, but out has %s", dmi_api_called(),
                          dmi_dtype_name(from->desc.dtype), dmi_dtype_name(to.desc.dtype));
    }
    return status == DM_OK ? dmi_part_apart(from, "x", &to) : status;
}

dm_status dm_flip(dm_session *session, dm_array x, int dim, dm_array out)
{
    dmi_operand from;
    dm_status status = check_flip(session, x, &dim, out, &from);
    if (status != DM_OK || from.desc.extent[dim] == 0 || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    return dmi_part_end(session, flip_parts(session, x, from.desc.extent[dim], dim, out));
}

/* --- pad -------------------------------------------------------------------------------------------------- */

typedef struct padding {
    dm_session *session;
    dm_array x, out;
    int mode, ndim;
    const int64_t *before, *after;
    int64_t extent[DM_MAX_DIMS], padded[DM_MAX_DIMS];
    dm_factor value;
} padding;

/* The row of 0 .. n-1 that row i, from -before to n + after - 1, repeats. */
static int64_t source_row(int mode, int64_t i, int64_t n)
{
    int64_t period = mode == DM_PAD_WRAP ? n : mode == DM_PAD_SYMMETRIC ? 2 * n : DMI_MAX(2 * n - 2, 1);
    if (mode == DM_PAD_EDGE) {
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
    i = (i % period + period) % period;
    return i < n ? i : mode == DM_PAD_SYMMETRIC ? 2 * n - 1 - i : 2 * n - 2 - i;
}

/* The rows [from, to) of dim d of `box`, which counts from -before: repeated from its inner rows. */
static dm_status fill_rows(const padding *p, dm_array box, int d, int64_t from, int64_t to)
{
    int64_t n = p->extent[d], count = to - from;
    dm_array inner, rows;
    int64_t *index = malloc((size_t)DMI_MAX(count, 1) * sizeof *index);
    if (!index) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for indices", dmi_api_called());
    }
    for (int64_t k = 0; k < count; k++) {
        index[k] = source_row(p->mode, from + k, n);
    }
    dm_status status = dmi_part_view(p->session, box, d, p->before[d], n, &inner);
    if (status == DM_OK && p->mode == DM_PAD_EDGE && count > 0) { /* one row, repeated */
        status = dmi_part_view(p->session, inner, d, index[0], 1, &inner);
        status =
            status == DM_OK ? dmi_part_view(p->session, box, d, from + p->before[d], count, &rows) : status;
        status = status == DM_OK ? dm_copy(p->session, inner, rows) : status;
    } else if (status == DM_OK) {
        status = take_listed(p->session, inner, index, box, from + p->before[d], count, d);
    }
    free(index);
    return status;
}

static dm_status pad_constant(const padding *p, dm_array box, int d)
{
    dm_array rows;
    dm_status status = dmi_part_view(p->session, box, d, 0, p->before[d], &rows);
    status = status == DM_OK ? dm_fill_by(p->session, rows, p->value) : status;
    status = status == DM_OK
                 ? dmi_part_view(p->session, box, d, p->before[d] + p->extent[d], p->after[d], &rows)
                 : status;
    return status == DM_OK ? dm_fill_by(p->session, rows, p->value) : status;
}

/* Dim after dim: of the dims before it the padded extent, of those behind it the inner rows. */
static dm_status pad_dims(const padding *p)
{
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
    dm_array inner, box;
    for (int d = 0; d < p->ndim; d++) {
        lo[d] = p->before[d];
        extent[d] = p->extent[d];
    }
    dm_status status = dm_array_view(p->session, p->out, lo, extent, &inner);
    status = status == DM_OK ? dm_copy(p->session, p->x, inner) : status;
    for (int d = 0; d < p->ndim && status == DM_OK; d++) {
        lo[d] = 0;
        extent[d] = p->padded[d];
        status = dm_array_view(p->session, p->out, lo, extent, &box);
        if (status == DM_OK && p->mode == DM_PAD_CONSTANT) {
            status = pad_constant(p, box, d);
        } else if (status == DM_OK) {
            status = fill_rows(p, box, d, -p->before[d], 0);
            status = status == DM_OK ? fill_rows(p, box, d, p->extent[d], p->extent[d] + p->after[d]) : status;
        }
    }
    return status;
}

/* Would dm_fill take the value? It is asked where nothing is filled. */
static dm_status check_value(const padding *p)
{
    int64_t none[DM_MAX_DIMS] = {0};
    dm_array nothing;
    dm_status status = dm_array_view(p->session, p->out, none, none, &nothing);
    return status == DM_OK ? dm_fill_by(p->session, nothing, p->value) : status;
}

static dm_status check_pad(padding *p)
{
    dmi_operand x, out;
    bool none = false;
    dm_status status = dmi_part_operand(p->session, p->x, "x", &x);
    status = status == DM_OK ? dmi_part_operand(p->session, p->out, "out", &out) : status;
    if (status != DM_OK) {
        return status;
    }
    p->ndim = x.desc.ndim;
    if (p->mode < DM_PAD_CONSTANT || p->mode > DM_PAD_WRAP) {
        status = dmi_fail(DM_ERR_ARG, "%s: mode is %d, not DM_PAD_CONSTANT to DM_PAD_WRAP", dmi_api_called(),
                          p->mode);
    }
    if (status == DM_OK && p->ndim > 0 && (!p->before || !p->after)) {
        status = dmi_fail(DM_ERR_ARG, "%s: %s is NULL", dmi_api_called(), p->before ? "after" : "before");
    }
    for (int d = 0; status == DM_OK && d < p->ndim; d++) {
        p->extent[d] = x.desc.extent[d];
        if (p->before[d] < 0 || p->after[d] < 0 ||
            __builtin_add_overflow(p->before[d], p->extent[d], &p->padded[d]) ||
            __builtin_add_overflow(p->padded[d], p->after[d], &p->padded[d])) {
            return dmi_fail(DM_ERR_ARG, "%s: before[%d] is %" PRId64 ", after[%d] is %" PRId64,
                            dmi_api_called(), d, p->before[d], d, p->after[d]);
        }
        none = none || (p->extent[d] == 0 && p->padded[d] > 0);
    }
    if (status == DM_OK && none && p->mode != DM_PAD_CONSTANT) {
        status = dmi_fail(DM_ERR_SHAPE, "%s: x has no elements to repeat", dmi_api_called());
    }
    if (status == DM_OK && p->mode != DM_PAD_CONSTANT && x.desc.dtype != out.desc.dtype) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s, but out has %s", dmi_api_called(),
                          dmi_dtype_name(x.desc.dtype), dmi_dtype_name(out.desc.dtype));
    }
    if (status == DM_OK && p->mode > DM_PAD_EDGE) {
        status = dmi_part_outside(p->session);
    }
    status = status == DM_OK ? dmi_part_shape(&out, p->ndim, p->padded) : status;
    status = status == DM_OK ? dmi_part_apart(&x, "x", &out) : status;
    dm_dtype any = dmi_dtype_is_complex(out.desc.dtype) ? DM_C128 : DM_F64;
    return status == DM_OK && p->mode == DM_PAD_CONSTANT
               ? dmi_part_factor(p->session, "value", &p->value, any, "out", &out)
               : status;
}

static dm_status pad_call(padding *p)
{
    dm_status status = check_pad(p);
    if (status != DM_OK || (status = dm_scope_begin(p->session)) != DM_OK) {
        return status;
    }
    status = p->mode == DM_PAD_CONSTANT && p->ndim > 0 ? check_value(p) : DM_OK;
    return dmi_part_end(p->session, status == DM_OK ? pad_dims(p) : status);
}

dm_status dm_pad(dm_session *session, dm_array x, const int64_t *before, const int64_t *after, int mode,
                 double value, dm_array out)
{
    return pad_call(&(padding){session, x, out, mode, 0, before, after, .value = dm_value(value)});
}

dm_status dm_pad_by(dm_session *session, dm_array x, const int64_t *before, const int64_t *after, int mode,
                    dm_factor value, dm_array out)
{
    return pad_call(&(padding){session, x, out, mode, 0, before, after, .value = value});
}
