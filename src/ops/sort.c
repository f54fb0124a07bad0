/* The rows of x along a dim in order, or the first of them: their elements, their indices, or both */
#include "ops/common_order.h"

#include <dmath/order.h>

#include <inttypes.h>
#include <string.h>

/* args.i. FIRST: outputs may be shorter than rows. PARTS: each worker sorts what it has of a row. */
enum { DIM, DESCENDING, VALUES, INDICES, FIRST, PARTS, ARGS };

static dm_status submit(dm_session *session, dm_array x, const int32_t *args, dm_array values, dm_array indices)
{
    static const char *const sorted[] = {"x", "out"}, *const first[] = {"x", "values", "indices"},
                             *const places[] = {"x", "indices"};
    dmi_call call = {.op = DMI_OP_sort};
    dm_array arrays[3] = {x, values, indices};
    memcpy(call.args.i, args, ARGS * sizeof *args);
    call.noperand = 1 + args[VALUES] + args[INDICES];
    call.names = !args[FIRST] && call.noperand == 2 ? sorted : args[VALUES] ? first : places;
    if (!args[VALUES]) {
        arrays[1] = indices;
    }
    return dmi_call_submit(session, &call, arrays);
}

static dm_status sort_rows(dm_session *session, const dmi_sorting *sort, dm_array x, dm_array out)
{
    bool done;
    dm_status status = dmi_sort_long(session, sort, x, out, &done);
    if (status != DM_OK || done) {
        return status;
    }
    return submit(session, x, (int32_t[ARGS]){sort->dim, sort->descending, !sort->indices, sort->indices, 0, 0},
                  out, out);
}

dm_status dm_sort(dm_session *session, dm_array x, int dim, int descending, dm_array out)
{
    return sort_rows(session, &(dmi_sorting){dim, descending != 0, false}, x, out);
}

dm_status dm_argsort(dm_session *session, dm_array x, int dim, int descending, dm_array out)
{
    return sort_rows(session, &(dmi_sorting){dim, descending != 0, true}, x, out);
}

dm_status dmi_sort_parts(dm_session *session, const dmi_sorting *sort, bool first, dm_array x, dm_array values,
                         dm_array indices)
{
    return submit(session, x, (int32_t[ARGS]){sort->dim, sort->descending, 1, indices.id != 0, first, 1},
                  values, indices);
}

dm_status dm_topk(dm_session *session, dm_array x, int dim, int largest, dm_array values, dm_array indices)
{
    bool wants_values = values.id != 0, wants_indices = indices.id != 0;
    if (!wants_values && !wants_indices) {
        return dmi_fail(DM_ERR_HANDLE, "topk: neither values nor indices are given");
    }
    bool done;
    dm_status status =
        dmi_topk_long(session, &(dmi_sorting){dim, largest != 0, wants_indices}, x, values, indices, &done);
    if (status != DM_OK || done) {
        return status;
    }
    return submit(session, x, (int32_t[ARGS]){dim, largest != 0, wants_values, wants_indices, 1, 0}, values,
                  indices);
}

/* Of x's shape but for dim, where it may be shorter. */
static dm_status check_output(const dmi_call *call, int which)
{
    const dmi_desc *x = &call->operand[0].desc, *out = &call->operand[which].desc;
    int dim = call->args.i[DIM];
    bool fits = out->ndim == x->ndim;
    for (int d = 0; d < x->ndim && fits; d++) {
        fits = out->extent[d] == x->extent[d] ||
               (d == dim && call->args.i[FIRST] && out->extent[d] < x->extent[d]);
    }
    if (!fits) {
        char s[192], t[192];
        return dmi_fail(DM_ERR_SHAPE, "%s: x is %s; %s is %s", dmi_call_name(call), dmi_shape_text(x, s),
                        dmi_operand_name(call, which), dmi_shape_text(out, t));
    }
    bool values = which == 1 && call->args.i[VALUES];
    if (!values && !dmi_dtype_is_integer(out->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s; indices are integers", dmi_call_name(call),
                        dmi_operand_name(call, which), dmi_dtype_name(out->dtype));
    }
    return dmi_check_overlap(call, 0, which, values && !call->args.i[FIRST]);
}

dm_status dmi_sort_check(dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc;
    int dim = call->args.i[DIM];
    if (dim < 0 || dim >= x->ndim) {
        return dmi_fail(DM_ERR_ARG, "%s: dim is %d; x has %d dims", dmi_call_name(call), dim, x->ndim);
    }
    dm_status status = DM_OK;
    for (int i = 1; i < call->noperand && status == DM_OK; i++) {
        status = check_output(call, i);
    }
    if (status == DM_OK && call->noperand == 3) {
        const dmi_desc *values = &call->operand[1].desc, *indices = &call->operand[2].desc;
        if (values->extent[dim] != indices->extent[dim]) {
            return dmi_fail(DM_ERR_SHAPE,
                            "%s: values have %" PRId64 " elements along dim %d, and indices %" PRId64,
                            dmi_call_name(call), values->extent[dim], dim, indices->extent[dim]);
        }
        status = dmi_check_overlap(call, 1, 2, false);
    }
    return status;
}

/* The output's strides and place at this worker. */
static void output_side(const dmi_builder *b, const dmi_value *out, int64_t *stride, int64_t *offset)
{
    dmi_region region;
    dmi_desc_region(out->desc, b->me, 0, &region);
    memcpy(stride, region.stride, (size_t)region.ndim * sizeof *stride);
    *offset = region.count > 0 ? dmi_region_start(&region) : 0;
}

/* How many elements of a row the output has at this worker. */
static int64_t made_here(const dmi_builder *b, const dmi_value *out, int dim)
{
    dmi_region region;
    dmi_desc_region(out->desc, b->me, 0, &region);
    return region.dim[dim].count;
}

/* Sorts this worker's rows. */
static void sort_here(dmi_builder *b, const dmi_call *call, const dmi_along *along, const dmi_value *values,
                      const dmi_value *indices)
{
    dmi_region region;
    dmi_desc_region(&along->frame, b->me, 0, &region);
    if (region.count == 0) {
        return;
    }
    const dmi_value *out = values ? values : indices;
    dmi_sort k = {.ndim = region.ndim,
                  .dim = along->dim,
                  .dtype = along->frame.dtype,
                  .descending = call->args.i[DESCENDING],
                  .values = values != NULL,
                  .indices = indices != NULL,
                  .most = made_here(b, out, along->dim),
                  .first = dmi_dimset_index(&region.dim[along->dim], 0),
                  .offset = dmi_region_start(&region)};
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = region.dim[d].count;
        k.stride[d] = region.stride[d];
    }
    if (k.most == 0) {
        return;
    }
    k.wide = dmi_sort_is_wide(b, k.extent[k.dim]);
    k.scratch = dmi_sort_scratch(&k, b->profile->gpu);
    dmi_ref refs[4] = {along->x.ref, dmi_ref_work(dmi_build_work(b, k.scratch), DMI_WRITE)};
    int nref = 2;
    refs[0].mode = DMI_READ;
    if (values) {
        output_side(b, values, k.value_stride, &k.value_offset);
        refs[nref] = values->ref;
        refs[nref++].mode = DMI_WRITE;
    }
    if (indices) {
        output_side(b, indices, k.index_stride, &k.index_offset);
        refs[nref] = indices->ref;
        refs[nref++].mode = DMI_WRITE;
    }
    dmi_build_kernel(b, DMI_KERNEL_sort, &k, sizeof k, refs, nref, NULL);
}

/* The frame of rows that are sorted in parts: as the output, or, of the first of each part, contiguous blocks.
 */
static dm_status begin_parts(dmi_builder *b, const dmi_call *call, const dmi_value *x, const dmi_desc *out,
                             dmi_along *along)
{
    int dim = call->args.i[DIM];
    const dmi_layout *layout;
    dmi_layout_spec spec = {
        .kind = DMI_LAYOUT_GRID, .ndim = x->desc->ndim, .session_workers = b->profile->workers};
    if (!call->args.i[FIRST]) {
        return dmi_along_at(b, x, dim, out, along);
    }
    for (int d = 0; d < spec.ndim; d++) {
        spec.shape[d] = x->desc->extent[d];
        spec.grid[d] = d == dim ? b->profile->workers : 1;
    }
    dm_status status = dmi_build_layout(b, &spec, &layout);
    dmi_desc frame = status == DM_OK ? dmi_desc_whole(x->desc->dtype, layout, 0) : *x->desc;
    return status == DM_OK ? dmi_along_at(b, x, dim, &frame, along) : status;
}

dm_status dmi_sort_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_along along;
    dmi_along_out made[2], *outs[2] = {NULL, NULL};
    int count = call->noperand - 1, values = call->args.i[VALUES];
    dmi_value x = dmi_value_operand(call, 0),
              out[2] = {dmi_value_operand(call, 1), dmi_value_operand(call, count)};
    dmi_team team;
    if (!dmi_build_team(b, call, &team)) {
        return DM_OK;
    }
    dm_status status = call->args.i[PARTS] ? begin_parts(b, call, &x, out[0].desc, &along)
                                           : dmi_along_begin(b, &team, &x, call->args.i[DIM], true, &out[0], &along);
    for (int i = 0; i < count && status == DM_OK && !b->failed; i++) {
        outs[i] = &made[i];
        made[i] = (dmi_along_out){.out = out[i], .made = out[i]}; /* of parts: there already */
        if (!call->args.i[PARTS]) {
            status = dmi_along_output(b, &along, &out[i], i == 0 && values ? x.desc->dtype : DM_I64, outs[i]);
        }
    }
    if (status != DM_OK || b->failed) {
        return status;
    }
    if (b->me < b->profile->workers && dmi_desc_region_count(&along.frame, b->me) > 0) {
        sort_here(b, call, &along, values ? &made[0].made : NULL,
                  call->args.i[INDICES] ? &made[count - 1].made : NULL);
    }
    return dmi_along_end(b, outs, count);
}
