#include "api/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

dm_status dmi_part_operand(dm_session *session, dm_array a, const char *name, dmi_operand *out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    return status == DM_OK ? dmi_operand_find(s, a, name, out) : status;
}

dm_status dmi_part_view(dm_session *session, dm_array a, int dim, int64_t lo, int64_t count, dm_array *out)
{
    dmi_operand x;
    int64_t from[DM_MAX_DIMS] = {0};
    dm_status status = dmi_part_operand(session, a, "a", &x);
    if (status != DM_OK) {
        return status;
    }
    from[dim] = lo;
    x.desc.extent[dim] = count;
    return dm_array_view(session, a, from, x.desc.extent, out);
}

dm_status dmi_part_copy(dm_session *session, dm_array src, int64_t from, dm_array dst, int64_t to, int dim,
                        int64_t count)
{
    dm_array x, y;
    dm_status status = dmi_part_view(session, src, dim, from, count, &x);
    status = status == DM_OK ? dmi_part_view(session, dst, dim, to, count, &y) : status;
    return status == DM_OK ? dm_copy(session, x, y) : status;
}

dm_status dmi_part_flat(dm_session *session, dm_array a, dm_array *out)
{
    dmi_operand x;
    dm_array copy;
    int64_t n = 1;
    dm_status status = dmi_part_operand(session, a, "a", &x);
    for (int d = 0; d < x.desc.ndim && status == DM_OK; d++) {
        n *= x.desc.extent[d];
    }
    status = status == DM_OK ? dm_array_reshape(session, a, 1, &n, out) : status;
    if (status != DM_ERR_UNSUPPORTED) {
        return status;
    }
    status = dm_array_create(session, x.desc.dtype, x.desc.ndim, x.desc.extent, NULL, &copy);
    status = status == DM_OK ? dm_copy(session, a, copy) : status;
    return status == DM_OK ? dm_array_reshape(session, copy, 1, &n, out) : status;
}

dm_status dmi_part_dim(int *dim, int ndim)
{
    if (*dim < -ndim || *dim >= ndim) {
        return dmi_fail(DM_ERR_ARG, "%s: dim is %d, but there are %d dims", dmi_api_called(), *dim, ndim);
    }
    *dim += *dim < 0 ? ndim : 0;
    return DM_OK;
}

dm_status dmi_part_shape(const dmi_operand *out, int ndim, const int64_t *shape)
{
    dmi_desc want = {.ndim = ndim};
    char s[192], t[192];
    memcpy(want.extent, shape, (size_t)ndim * sizeof *shape);
    if (out->desc.ndim == ndim && memcmp(out->desc.extent, shape, (size_t)ndim * sizeof *shape) == 0) {
        return DM_OK;
    }
    return dmi_fail(DM_ERR_SHAPE, "%s: out is %s, but the result is %s", dmi_api_called(),
                    dmi_shape_text(&out->desc, s), dmi_shape_text(&want, t));
}

dm_status dmi_part_apart(const dmi_operand *x, const char *name, const dmi_operand *out)
{
    return dmi_operands_overlap(x, out) == DMI_APART
               ? DM_OK
               : dmi_fail(DM_ERR_OVERLAP, "%s: %s and out share memory", dmi_api_called(), name);
}

dm_status dmi_part_factor(dm_session *session, const char *name, const dm_factor *f, dm_dtype type,
                          const char *out_name, const dmi_operand *out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    return status == DM_OK ? dmi_factor_apart(s, name, f, type, out_name, out) : status;
}

dmi_chain_name dmi_chain_factor(const char *name, const dm_factor *f)
{
    return f->element ? (dmi_chain_name){name, .array = f->array}
                      : (dmi_chain_name){name, .kind = DMI_CHAIN_NUMBER, .number = f->value};
}

dm_status dmi_part_outside(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    return status == DM_OK && dmi_session_facts(s).recording
               ? dmi_fail(DM_ERR_STATE, "%s cannot be part of a program", dmi_api_called())
               : status;
}

dm_status dmi_part_end(dm_session *session, dm_status status)
{
    char *text = status == DM_OK ? NULL : strdup(dmi_error_text());
    dm_status end = dm_scope_end(session, NULL, 0);
    if (status != DM_OK) {
        end = dmi_fail(status, "%s", text ? text : "no memory for the reason");
    }
    free(text);
    return end;
}
