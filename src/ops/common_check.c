/* Checks that several ops make. */
#include "ops/common.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dmi_shape_text(const dmi_desc *desc, char text[192])
{
    int n = desc->ndim == 0 ? snprintf(text, 192, "scalar") : 0;
    for (int d = 0; d < desc->ndim; d++) {
        n += snprintf(text + n, 192 - (size_t)n, "%s%" PRId64, d ? "x" : "", desc->extent[d]);
    }
    return text;
}

static bool is_empty(const dmi_desc *x)
{
    bool empty = false;
    for (int d = 0; d < x->ndim; d++) {
        empty = empty || x->extent[d] == 0;
    }
    return empty;
}

/* One of them is reshaped: their common elements are not computed, but runs of the same bytes are the same
 * elements. */
static int reshaped_overlap(const dmi_desc *x, const dmi_desc *y)
{
    int64_t x_from, x_to, y_from, y_to;
    bool x_run, y_run;
    if (!dmi_desc_span(x, &x_from, &x_to, &x_run) || !dmi_desc_span(y, &y_from, &y_to, &y_run)) {
        return DMI_OVERLAPPING;
    }
    bool same = x_run && y_run && x_from == y_from && x_to == y_to && x->ndim == y->ndim &&
                memcmp(x->extent, y->extent, (size_t)x->ndim * sizeof *x->extent) == 0;
    return x_to <= y_from || y_to <= x_from ? DMI_APART : same ? DMI_SAME : DMI_OVERLAPPING;
}

int dmi_operands_overlap(const dmi_operand *a, const dmi_operand *b)
{
    if (a->memory != b->memory) {
        return DMI_APART;
    }
    const dmi_desc *x = &a->desc, *y = &b->desc;
    if (is_empty(x) || is_empty(y)) {
        return DMI_APART;
    }
    if (x->layout_id != y->layout_id) {
        return reshaped_overlap(x, y);
    }
    bool same = true;
    for (int d = 0; d < x->ndim; d++) {
        same = same && x->lo[d] == y->lo[d] && x->extent[d] == y->extent[d] && x->skip[d] == y->skip[d];
        int64_t between = y->lo[d] - x->lo[d];
        bool passing = x->skip[d] == y->skip[d] && between % (x->skip[d] + 1) != 0; /* never the same index */
        if (passing || between > (x->extent[d] - 1) * (x->skip[d] + 1) ||
            -between > (y->extent[d] - 1) * (y->skip[d] + 1)) {
            return DMI_APART;
        }
    }
    return same ? DMI_SAME : DMI_OVERLAPPING;
}

dm_status dmi_check_overlap(const dmi_call *call, int input, int output, bool same_allowed)
{
    int how = call->operand[input].mode ? dmi_operands_overlap(&call->operand[input], &call->operand[output])
                                        : DMI_APART;
    if (how == DMI_APART || (how == DMI_SAME && same_allowed)) {
        return DM_OK;
    }
    return dmi_fail(DM_ERR_OVERLAP, "%s: %s and %s share memory%s", dmi_call_name(call),
                    dmi_operand_name(call, input), dmi_operand_name(call, output),
                    same_allowed ? " without being the same elements" : "");
}

dm_status dmi_check_same_shape(const dmi_call *call, int a, int b)
{
    const dmi_desc *x = &call->operand[a].desc, *y = &call->operand[b].desc;
    if (x->ndim == y->ndim && memcmp(x->extent, y->extent, (size_t)x->ndim * sizeof(int64_t)) == 0) {
        return DM_OK;
    }
    char s[192], t[192];
    return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, but %s is %s", dmi_call_name(call), dmi_operand_name(call, a),
                    dmi_shape_text(x, s), dmi_operand_name(call, b), dmi_shape_text(y, t));
}

dm_status dmi_check_broadcast(const dmi_call *call, int a, int out)
{
    const dmi_desc *x = &call->operand[a].desc, *y = &call->operand[out].desc;
    bool fits = x->ndim <= y->ndim;
    for (int d = 0; fits && d < x->ndim; d++) {
        fits = x->extent[d] == 1 || x->extent[d] == y->extent[d + y->ndim - x->ndim];
    }
    if (fits) {
        return DM_OK;
    }
    char s[192], t[192];
    return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s and does not broadcast to %s, which is %s", dmi_call_name(call),
                    dmi_operand_name(call, a), dmi_shape_text(x, s), dmi_operand_name(call, out),
                    dmi_shape_text(y, t));
}

bool dmi_is_whole(double value)
{
    return value == floor(value) && value >= -9223372036854775808.0 && value < 9223372036854775808.0;
}

static bool is_floating(const dmi_operand *o)
{
    return dmi_dtype_is_float(o->desc.dtype) || dmi_dtype_is_complex(o->desc.dtype);
}

dm_status dmi_check_factor(const dmi_call *call, int which, const char *name, int inputs, int output)
{
    bool floating = is_floating(&call->operand[output]);
    for (int i = 0; i < inputs; i++) {
        floating = floating || is_floating(&call->operand[i]);
    }
    double value = call->number[which].re;
    if (!floating && !dmi_is_whole(value)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s is %g, but with integer operands it must be a whole number%s",
                        dmi_call_name(call), name, value,
                        value == floor(value) ? " from -2^63 to 2^63 - 1024" : "");
    }
    return DM_OK;
}

dm_status dmi_call_dims(dmi_call *call, const int *dims, int ndims)
{
    const char *name = dmi_call_name(call);
    if (!dims) {
        call->args.i[0] = -1;
        return ndims == 0 ? DM_OK : dmi_fail(DM_ERR_ARG, "%s: dims is NULL but ndims is %d", name, ndims);
    }
    if (ndims < 1) {
        return dmi_fail(DM_ERR_ARG, "%s: ndims is %d: name the dims to reduce over, or pass NULL for all", name,
                        ndims);
    }
    if (ndims > DM_MAX_DIMS) {
        return dmi_fail(DM_ERR_ARG, "%s: ndims is %d, and arrays have %d dims at most", name, ndims,
                        DM_MAX_DIMS);
    }
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0 || dims[i] >= DM_MAX_DIMS) {
            return dmi_fail(DM_ERR_ARG,
                            dims[i] < 0 ? "%s: dims[%d] is %d; dims count from 0"
                                        : "%s: dims[%d] is %d, and arrays have %d dims at most",
                            name, i, dims[i], DM_MAX_DIMS);
        }
        if (call->args.i[0] >> dims[i] & 1) {
            return dmi_fail(DM_ERR_ARG, "%s: dims[%d] is %d, which is named before", name, i, dims[i]);
        }
        call->args.i[0] |= 1 << dims[i];
    }
    return DM_OK;
}

dm_status dmi_check_dims(dmi_call *call, const dmi_desc *x)
{
    int32_t all = (int32_t)((1u << x->ndim) - 1), reduced = call->args.i[0] == -1 ? all : call->args.i[0];
    if (reduced & ~all) {
        int dim = x->ndim;
        while (!(reduced >> dim & 1)) {
            dim++;
        }
        return dmi_fail(DM_ERR_ARG, "%s: dims names dim %d, but x has %d dims", dmi_call_name(call), dim,
                        x->ndim);
    }
    call->args.i[0] = reduced;
    return DM_OK;
}

dm_status dmi_check_reduced(dmi_call *call, const dmi_desc *x, int which)
{
    const dmi_desc *out = &call->operand[which].desc;
    dm_status status = dmi_check_dims(call, x);
    if (status != DM_OK) {
        return status;
    }
    int32_t reduced = call->args.i[0];
    bool keep = out->ndim == x->ndim && out->ndim > 0 && reduced != 0, drop = true;
    int kept = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = reduced >> d & 1;
        keep = keep && out->extent[d] == (gone ? 1 : x->extent[d]);
        if (!gone) {
            drop = drop && kept < out->ndim && out->extent[kept] == x->extent[d];
            kept++;
        }
    }
    if (!keep && !(drop && kept == out->ndim)) {
        dmi_desc rest = {.ndim = 0};
        char s[192], t[192], u[192];
        for (int d = 0; d < x->ndim; d++) {
            if (!(reduced >> d & 1)) {
                rest.extent[rest.ndim++] = x->extent[d];
            }
        }
        bool text = call->tail_key > 0 && call->op != DMI_OP_sum_by; /* whose expression is of the sum */
        return dmi_fail(DM_ERR_SHAPE, "%s: %s %s %s, and %s without the reduced dims; out is %s",
                        dmi_call_name(call), text ? "the elements" : dmi_operand_name(call, 0),
                        text ? "are" : "is", dmi_shape_text(x, s), dmi_shape_text(&rest, t),
                        dmi_shape_text(out, u));
    }
    return DM_OK;
}
