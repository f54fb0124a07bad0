/* New dims and diagonals: compositions of expressions, takes and puts with the indices of dims as arrays. */
#include "api/parts.h"

#include <dmath/index.h>
#include <inttypes.h>
#include <string.h>

/* A new array of i64 on all workers, of extent 1 but for n along dim: first, first + 1, ... */
static dm_status make_line(dm_session *session, int ndim, int dim, int64_t n, int64_t first, dm_array *out)
{
    int64_t shape[DM_MAX_DIMS];
    dm_layout everywhere = dm_layout_replicated(session);
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == dim ? n : 1;
    }
    dm_status status = dm_array_create(session, DM_I64, ndim, shape, &everywhere, out);
    return status == DM_OK ? dm_fill_arange(session, *out, (double)first, 1) : status;
}

/* --- new dims --------------------------------------------------------------------------------------------- */

/* A new array with x's elements and one more dim, of extent 1, at the end. */
static dm_status add_dim(dm_session *session, dm_array x, dm_array *out)
{
    dmi_operand a;
    dm_status status = dmi_part_operand(session, x, "x", &a);
    if (status != DM_OK) {
        return status;
    }
    a.desc.extent[a.desc.ndim] = 1;
    status = dm_array_create(session, a.desc.dtype, a.desc.ndim + 1, a.desc.extent, NULL, out);
    return status == DM_OK ? dmi_copy_into(session, x, *out, a.desc.ndim) : status;
}

dm_status dm_one_hot(dm_session *session, dm_array indices, dm_array out)
{
    dmi_operand x, o;
    dm_array wide, classes;
    dm_status status = dmi_part_operand(session, indices, "indices", &x);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &o) : status;
    if (status != DM_OK) {
        return status;
    }
    if (!dmi_dtype_is_integer(x.desc.dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "one_hot: indices have dtype %s, which is no integer",
                        dmi_dtype_name(x.desc.dtype));
    }
    if (o.desc.ndim != x.desc.ndim + 1 ||
        memcmp(o.desc.extent, x.desc.extent, (size_t)x.desc.ndim * sizeof *x.desc.extent) != 0) {
        char s[192], t[192];
        return dmi_fail(DM_ERR_SHAPE, "one_hot: indices are %s, so out needs one dim more than that, but is %s",
                        dmi_shape_text(&x.desc, s), dmi_shape_text(&o.desc, t));
    }
    if ((status = dmi_part_apart(&x, "indices", &o)) != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    status = make_line(session, 1, 0, o.desc.extent[x.desc.ndim], 0, &classes);
    status = status == DM_OK ? add_dim(session, indices, &wide) : status;
    if (status == DM_OK) {
        const dm_map_arg args[] = {DM_ARG("x", wide), DM_ARG("c", classes)};
        status = dm_map(session, x.desc.dtype == DM_U64 ? "x == u64(c)" : "x == c", 2, args, out);
    }
    return dmi_part_end(session, status);
}

dm_status dm_meshgrid(dm_session *session, int count, const dm_array *arrays, const dm_array *outs)
{
    dmi_operand x, o[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    if (count < 1 || count > DM_MAX_DIMS || !arrays || !outs) {
        return dmi_fail(DM_ERR_ARG, "meshgrid: count is %d, not 1 to %d, or arrays or outs is NULL", count,
                        DM_MAX_DIMS);
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dmi_part_operand(session, arrays[i], "arrays", &x);
        if (status == DM_OK && x.desc.ndim != 1) {
            status = dmi_fail(DM_ERR_SHAPE, "meshgrid: arrays[%d] has %d dims, not 1", i, x.desc.ndim);
        }
        shape[i] = status == DM_OK ? x.desc.extent[0] : 0;
        status = status == DM_OK ? dmi_part_operand(session, outs[i], "outs", &o[i]) : status;
        status = status == DM_OK ? dmi_part_apart(&x, "arrays", &o[i]) : status;
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = dmi_part_shape(&o[i], count, shape);
    }
    if (status != DM_OK || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        dm_array line = arrays[i];
        for (int d = i + 1; d < count && status == DM_OK; d++) { /* dims before it repeat by themselves */
            status = add_dim(session, line, &line);
        }
        status = status == DM_OK ? dm_copy(session, line, outs[i]) : status;
    }
    return dmi_part_end(session, status);
}

/* --- diagonals -------------------------------------------------------------------------------------------- */

/* The rows of x that a diagonal passes, the index of its element in each of them, and how many there are. */
static dm_status diagonal_of(dm_session *session, dm_array x, int64_t offset, dmi_operand *a, int64_t *count)
{
    dm_status status = dmi_part_operand(session, x, "x", a);
    if (status == DM_OK && a->desc.ndim != 2) {
        return dmi_fail(DM_ERR_SHAPE, "%s: x has %d dims, not 2", dmi_api_called(), a->desc.ndim);
    }
    if (status == DM_OK) {
        int64_t m = a->desc.extent[0], n = a->desc.extent[1];
        bool none = offset >= n || offset <= -m;
        *count = none ? 0 : offset >= 0 ? DMI_MIN(m, n - offset) : DMI_MIN(m + offset, n);
    }
    return status;
}

static dm_status diagonal_places(dm_session *session, dm_array x, int64_t offset, int64_t count, dm_array *rows,
                                 dm_array *indices)
{
    int64_t shape[2] = {count, 1};
    dm_status status = dmi_part_view(session, x, 0, DMI_MAX(-offset, 0), count, rows);
    status = status == DM_OK ? dm_array_create(session, DM_I64, 2, shape, NULL, indices) : status;
    return status == DM_OK ? dm_fill_arange(session, *indices, (double)DMI_MAX(offset, 0), 1) : status;
}

dm_status dm_diagonal(dm_session *session, dm_array x, int64_t offset, dm_array out)
{
    dmi_operand a, o;
    dm_array rows, indices, column, flat;
    int64_t count = 0;
    dm_status status = diagonal_of(session, x, offset, &a, &count);
    status = status == DM_OK ? dmi_part_operand(session, out, "out", &o) : status;
    status = status == DM_OK ? dmi_part_shape(&o, 1, &count) : status;
    status = status == DM_OK ? dmi_part_apart(&a, "x", &o) : status;
    if (status != DM_OK || count == 0 || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    int64_t shape[2] = {count, 1};
    status = diagonal_places(session, x, offset, count, &rows, &indices);
    status = status == DM_OK ? dm_array_create(session, a.desc.dtype, 2, shape, NULL, &column) : status;
    status = status == DM_OK ? dm_take_along_dim(session, rows, indices, 1, DM_WRAP, column) : status;
    status = status == DM_OK ? dm_array_reshape(session, column, 1, &count, &flat) : status;
    status = status == DM_OK ? dm_copy(session, flat, out) : status;
    return dmi_part_end(session, status);
}

dm_status dm_set_diagonal(dm_session *session, dm_array x, int64_t offset, dm_array values)
{
    dmi_operand a, v;
    dm_array rows, indices, column;
    int64_t count = 0;
    dm_status status = diagonal_of(session, x, offset, &a, &count);
    status = status == DM_OK ? dmi_part_operand(session, values, "values", &v) : status;
    if (status == DM_OK && (v.desc.ndim != 1 || v.desc.extent[0] != count)) {
        char s[192];
        status =
            dmi_fail(DM_ERR_SHAPE, "set_diagonal: values are %s, but the diagonal has %" PRId64 " elements",
                     dmi_shape_text(&v.desc, s), count);
    }
    if (status == DM_OK && dmi_operands_overlap(&v, &a) != DMI_APART) {
        status = dmi_fail(DM_ERR_OVERLAP, "set_diagonal: values and x share memory");
    }
    if (status != DM_OK || count == 0 || (status = dm_scope_begin(session)) != DM_OK) {
        return status;
    }
    int64_t shape[2] = {count, 1};
    status = diagonal_places(session, x, offset, count, &rows, &indices);
    status = status == DM_OK ? dm_array_create(session, a.desc.dtype, 2, shape, NULL, &column) : status;
    status = status == DM_OK ? dmi_copy_into(session, values, column, 1) : status;
    status = status == DM_OK ? dm_put_along_dim(session, rows, indices, column, 1, DM_WRAP) : status;
    return dmi_part_end(session, status);
}
