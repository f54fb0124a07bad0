/* Take and put where everything comes to the elements that are written: they stay, and so does their order. */
#include "ops/common_index.h"

#include <inttypes.h>
#include <string.h>

void dmi_indexing_of(const dmi_call *call, dmi_indexing *out)
{
    bool gathers = call->op == DMI_OP_take;
    *out = (dmi_indexing){.lines_operand = gathers ? 1 : 2,
                          .box_operand = gathers ? 2 : 1,
                          .indices = &call->operand[0].desc,
                          .dim = call->args.i[DMI_INDEX_DIM],
                          .mode = call->args.i[DMI_INDEX_MODE],
                          .along = call->args.i[DMI_INDEX_ALONG] != 0,
                          .gathers = gathers};
    out->lines = &call->operand[out->lines_operand].desc;
    out->box = &call->operand[out->box_operand].desc;
    for (int d = 0; d < out->lines->ndim; d++) {
        out->extent[d] = d != out->dim ? out->lines->extent[d] : out->indices->extent[out->along ? d : 0];
    }
}

/* The shape of the positions as a descriptor, for messages and comparisons. */
static dmi_desc shape_of(const dmi_indexing *t)
{
    dmi_desc shape = {.ndim = t->lines->ndim};
    memcpy(shape.extent, t->extent, sizeof shape.extent);
    return shape;
}

static dm_status check_indices(const dmi_call *call, const dmi_indexing *t)
{
    const dmi_desc *x = t->indices;
    bool fits = t->along ? x->ndim == t->lines->ndim : x->ndim == 1;
    for (int d = 0; d < x->ndim && fits && t->along; d++) {
        fits = d == t->dim || x->extent[d] == 1 || x->extent[d] == t->lines->extent[d];
    }
    if (fits) {
        return DM_OK;
    }
    char s[192], l[192];
    dmi_shape_text(t->lines, l);
    return t->along ? dmi_fail(DM_ERR_SHAPE, "%s: indices are %s, which does not fit x, %s, beside dim %d",
                               dmi_call_name(call), dmi_shape_text(x, s), l, t->dim)
                    : dmi_fail(DM_ERR_SHAPE, "%s: indices are %s, but must have one dim", dmi_call_name(call),
                               dmi_shape_text(x, s));
}

static dm_status check_box(const dmi_call *call, const dmi_indexing *t)
{
    dmi_desc shape = shape_of(t);
    const dmi_desc *box = t->box;
    int missing = shape.ndim - box->ndim;
    bool fits = missing == 0 || (missing > 0 && !t->gathers);
    for (int d = 0; d < box->ndim && fits; d++) {
        fits = box->extent[d] == shape.extent[d + missing] || (!t->gathers && box->extent[d] == 1);
    }
    if (fits) {
        return DM_OK;
    }
    char s[192], l[192];
    return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, but the indices name elements of shape %s",
                    dmi_call_name(call), dmi_operand_name(call, t->box_operand), dmi_shape_text(box, s),
                    dmi_shape_text(&shape, l));
}

dm_status dmi_indexing_check(dmi_call *call, bool gathers)
{
    const dmi_desc *lines = &call->operand[gathers ? 1 : 2].desc, *box = &call->operand[gathers ? 2 : 1].desc;
    int dim = call->args.i[DMI_INDEX_DIM], mode = call->args.i[DMI_INDEX_MODE];
    if (dim < -lines->ndim || dim >= lines->ndim) {
        return dmi_fail(DM_ERR_ARG, "%s: dim is %d, but x has %d dims", dmi_call_name(call), dim, lines->ndim);
    }
    if (mode < 0 || mode >= DMI_INDEX_MODES) {
        return dmi_fail(DM_ERR_ARG, "%s: mode is %d, not DM_RAISE, DM_WRAP or DM_CLIP", dmi_call_name(call),
                        mode);
    }
    call->args.i[DMI_INDEX_DIM] = dim < 0 ? dim + lines->ndim : dim;
    if (lines->dtype != box->dtype) {
        return dmi_fail(DM_ERR_DTYPE, "%s: x has dtype %s, but %s has %s", dmi_call_name(call),
                        dmi_dtype_name(lines->dtype), dmi_operand_name(call, gathers ? 2 : 1),
                        dmi_dtype_name(box->dtype));
    }
    dmi_indexing t;
    dmi_indexing_of(call, &t);
    dm_status status = check_indices(call, &t);
    status = status == DM_OK ? check_box(call, &t) : status;
    bool some = true;
    for (int d = 0; d < lines->ndim; d++) {
        some = some && t.extent[d] > 0;
    }
    if (status == DM_OK && some && lines->extent[t.dim] == 0) {
        status = dmi_fail(DM_ERR_ARG, "%s: x has no elements along dim %d", dmi_call_name(call), t.dim);
    }
    status = status == DM_OK ? dmi_check_overlap(call, 0, 2, false) : status;
    return status == DM_OK ? dmi_check_overlap(call, 1, 2, false) : status;
}

/* The array that is written stays where it is. */
static const dmi_desc *staying(const dmi_indexing *t)
{
    return t->gathers ? t->box : t->lines;
}

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(staying(context), worker);
}

void dmi_indexing_positions(const dmi_indexing *t, int worker, int64_t which, dmi_region *out)
{
    dmi_desc_region(staying(t), worker, which, out);
    if (!t->gathers) {
        out->dim[t->dim] = dmi_dimset_interval(0, out->count > 0 ? t->extent[t->dim] : 0);
    }
    out->count = 1;
    for (int d = 0; d < out->ndim; d++) {
        out->count *= out->dim[d].count;
    }
}

/* What of x, aligned at the last dims and with its dims of 1 repeated, those positions need. */
static void want_repeated(const dmi_indexing *t, const dmi_desc *x, const dmi_region *p, dmi_region *want)
{
    memset(want, 0, sizeof *want);
    want->ndim = x->ndim;
    want->count = p->count > 0;
    for (int d = 0; d < x->ndim; d++) {
        int at = d + p->ndim - x->ndim;
        bool repeats = x->extent[d] == 1 && t->extent[at] != 1;
        want->dim[d] = repeats ? dmi_dimset_interval(0, p->count > 0) : p->dim[at];
        want->count *= want->dim[d].count;
    }
}

static void want_indices(const void *context, int worker, int64_t which, dmi_region *want)
{
    const dmi_indexing *t = context;
    dmi_region p;
    dmi_indexing_positions(t, worker, which, &p);
    if (t->along) {
        want_repeated(t, t->indices, &p, want);
        return;
    }
    memset(want, 0, sizeof *want);
    want->ndim = 1;
    want->dim[0] = p.dim[t->dim];
    want->count = p.count > 0 ? want->dim[0].count : 0;
}

/* The lines for a part of box, or the values for a part of lines. */
static void want_other(const void *context, int worker, int64_t which, dmi_region *want)
{
    const dmi_indexing *t = context;
    dmi_region p;
    dmi_indexing_positions(t, worker, which, &p);
    if (!t->gathers) {
        want_repeated(t, t->box, &p, want);
        return;
    }
    *want = p;
    want->dim[t->dim] = dmi_dimset_interval(0, p.count > 0 ? t->lines->extent[t->dim] : 0);
    want->count = p.count > 0 ? p.count / p.dim[t->dim].count * t->lines->extent[t->dim] : 0;
}

dmi_bring dmi_indexing_bring(const dmi_indexing *t, bool indices)
{
    return (dmi_bring){.x = indices      ? t->indices
                            : t->gathers ? t->lines
                                         : t->box,
                       .source = dmi_ref_operand(indices ? 0 : 1, DMI_READ),
                       .count = want_count,
                       .want = indices ? want_indices : want_other,
                       .context = t};
}

int64_t dmi_indexed_bytes(const dmi_indexing *t, int workers)
{
    int64_t bytes = 0;
    for (int which = 0; which < 2; which++) {
        dmi_bring bring = dmi_indexing_bring(t, which == 0);
        for (int w = 0; w < workers; w++) {
            bytes += dmi_bring_missing(&bring, w) * dmi_dtype_bytes(bring.x->dtype);
        }
    }
    return bytes;
}

/* Strides along the positions' dims of an array that repeats along them. */
static void repeated_strides(const dmi_indexing *t, const dmi_desc *x, const dmi_region *region,
                             int64_t *stride)
{
    int missing = t->lines->ndim - x->ndim;
    for (int d = 0; d < t->lines->ndim; d++) {
        bool repeats = d < missing || (x->extent[d - missing] == 1 && t->extent[d] != 1);
        stride[d] = repeats ? 0 : region->stride[d - missing];
    }
}

void dmi_indexing_strides(const dmi_indexing *t, const dmi_region *indices, int64_t *stride)
{
    if (t->along) {
        repeated_strides(t, t->indices, indices, stride);
    } else {
        stride[t->dim] = indices->stride[0];
    }
}

/* One kernel: the positions of one region of what stays. */
static void indexed_region(dmi_builder *b, const dmi_call *call, const dmi_indexing *t, int64_t which,
                           dmi_bring bring[2], const dmi_mark ready)
{
    dmi_region p, stays, indices, other;
    dmi_ref refs[3];
    dmi_indexing_positions(t, b->me, which, &p);
    dmi_desc_region(staying(t), b->me, which, &stays);
    refs[0] = dmi_bring_region(&bring[0], b->me, which, &indices);
    refs[1] = dmi_bring_region(&bring[1], b->me, which, &other);
    refs[2] = dmi_ref_operand(2, t->gathers ? DMI_WRITE : DMI_READWRITE);
    const dmi_region *box = t->gathers ? &stays : &other, *lines = t->gathers ? &other : &stays;
    if (p.count == 0 || lines->dim[t->dim].count == 0) {
        return;
    }
    dmi_index k = {.dtype = t->lines->dtype,
                   .index_dtype = t->indices->dtype,
                   .mode = t->mode,
                   .adds = call->args.i[DMI_INDEX_ADDS] != 0,
                   .ndim = p.ndim,
                   .dim = t->dim,
                   .index_offset = dmi_region_start(&indices),
                   .box_offset = dmi_region_start(box),
                   .line_offset = dmi_region_start(lines) -
                                  dmi_dimset_first_position(&lines->dim[t->dim]) * lines->stride[t->dim],
                   .n = t->lines->extent[t->dim],
                   .set = lines->dim[t->dim]};
    dmi_indexing_strides(t, &indices, k.index_stride);
    repeated_strides(t, t->box, box, k.box_stride);
    for (int d = 0; d < p.ndim; d++) {
        k.extent[d] = p.dim[d].count;
        k.line_stride[d] = lines->stride[d];
    }
    dmi_build_kernel(b, t->gathers ? DMI_KERNEL_take : DMI_KERNEL_put, &k, sizeof k, refs, 3, ready);
}

dm_status dmi_plan_indexed(dmi_builder *b, const dmi_call *call, const dmi_indexing *t)
{
    dmi_bring bring[2] = {dmi_indexing_bring(t, true), dmi_indexing_bring(t, false)};
    dmi_mark ready = {0};
    dmi_plan_bring(b, &bring[0], ready);
    dmi_plan_bring(b, &bring[1], ready);
    int64_t n = b->me < b->profile->workers ? want_count(t, b->me) : 0;
    for (int64_t i = 0; i < n && !b->failed; i++) {
        indexed_region(b, call, t, i, bring, ready);
    }
    return DM_OK;
}
