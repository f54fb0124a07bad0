#include "ops/common_order.h"

#include <string.h>

enum { SMALL_BYTES = 4096 };

static bool is_whole(const dmi_desc *x)
{
    return memcmp(x->extent, x->layout->shape, (size_t)x->ndim * sizeof *x->extent) == 0;
}

/* Has each worker whole rows along dim, or (whole: false) a range of their indices at least? */
static bool serves(const dmi_desc *x, int dim, bool whole)
{
    const dmi_layout *layout = x->layout;
    for (int d = 0; d < x->ndim; d++) {
        if (layout->grid[d] > 1 && x->skip[d] > 0) { /* a worker may have several regions */
            return false;
        }
    }
    return layout->kind == DMI_LAYOUT_GRID &&
           (layout->grid[dim] == 1 || (!whole && layout->order[dim] == DMI_ORDER_CONTIGUOUS));
}

bool dmi_same_places(const dmi_desc *x, const dmi_desc *y, int dim)
{
    const dmi_layout *a = x->layout, *b = y->layout;
    if (a->kind != DMI_LAYOUT_GRID || b->kind != DMI_LAYOUT_GRID || x->ndim != y->ndim ||
        a->nworkers != b->nworkers || a->replicas != b->replicas ||
        memcmp(a->workers, b->workers, (size_t)a->nworkers * sizeof *a->workers) != 0) {
        return false;
    }
    for (int d = 0; d < x->ndim; d++) {
        bool split = a->grid[d] > 1 || b->grid[d] > 1;
        bool free = !split && (d == dim || x->extent[d] == y->extent[d]);
        if (!free && (a->grid[d] != b->grid[d] || a->order[d] != b->order[d] || a->block[d] != b->block[d] ||
                      a->shape[d] != b->shape[d] || x->lo[d] != y->lo[d] || x->extent[d] != y->extent[d] ||
                      x->skip[d] != y->skip[d])) {
            return false;
        }
    }
    return true;
}

/* Splits the longest other dim; where that is short, and rows need not be whole, dim itself. */
static void choose_layout(const dmi_team *team, const dmi_desc *x, int dim, bool whole, dmi_layout_spec *spec)
{
    const dmi_team first = {1, team->worker, team->session};
    int best = -1;
    int64_t count = 1;
    for (int d = 0; d < x->ndim; d++) {
        count *= x->extent[d];
        best = d != dim && (best < 0 || x->extent[d] > x->extent[best]) ? d : best;
    }
    if (!whole && (best < 0 || x->extent[best] < team->count)) {
        best = dim;
    }
    bool split = best >= 0 && count * dmi_dtype_bytes(x->dtype) >= SMALL_BYTES;
    dmi_team_layout(split ? team : &first, x, split ? best : -1, spec);
}

/* A temporary of desc's layout. */
static void build_temporary(dmi_builder *b, const dmi_desc *desc, dmi_value *value)
{
    int64_t count = b->me < b->profile->workers ? dmi_layout_shard_count(desc->layout, b->me) : 0;
    *value = (dmi_value){
        .desc = desc, .ref = dmi_ref_work(dmi_build_work(b, count * dmi_dtype_bytes(desc->dtype)), DMI_READ)};
}

static dm_status move(dmi_builder *b, const dmi_value *from, const dmi_value *to)
{
    dmi_mark done = {0};
    dmi_ref ref = to->ref;
    ref.mode = DMI_WRITE;
    return dmi_plan_copy(b, from->desc, from->ref, to->desc, ref, NULL, NULL, done);
}

dm_status dmi_along_at(dmi_builder *b, const dmi_value *x, int dim, const dmi_desc *at, dmi_along *along)
{
    *along = (dmi_along){.dim = dim, .x = *x, .frame = *at};
    along->frame.dtype = x->desc->dtype;
    if (dmi_same_places(x->desc, at, dim)) {
        along->frame = *x->desc;
        return DM_OK;
    }
    build_temporary(b, &along->frame, &along->x);
    dm_status status = move(b, x, &along->x);
    dmi_build_phase(b);
    return status;
}

dm_status dmi_along_begin(dmi_builder *b, const dmi_team *team, const dmi_value *x, int dim, bool whole,
                          const dmi_value *out, dmi_along *along)
{
    const dmi_desc *at_x = x->desc, *at_out = out->desc;
    bool x_serves = serves(at_x, dim, whole), out_serves = serves(at_out, dim, whole) && is_whole(at_out);
    out_serves = out_serves && at_out->extent[dim] == at_x->extent[dim];
    if (x_serves && (dmi_same_places(at_x, at_out, dim) ||
                     (is_whole(at_x) && !(out_serves && at_out->layout->group > at_x->layout->group)))) {
        return dmi_along_at(b, x, dim, at_x, along);
    }
    if (out_serves) {
        return dmi_along_at(b, x, dim, at_out, along);
    }
    dmi_layout_spec spec;
    const dmi_layout *layout;
    choose_layout(team, at_x, dim, whole, &spec);
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status != DM_OK) {
        return status;
    }
    dmi_desc frame = dmi_desc_whole(at_x->dtype, layout, 0);
    return dmi_along_at(b, x, dim, &frame, along);
}

dm_status dmi_along_output(dmi_builder *b, const dmi_along *along, const dmi_value *out, dm_dtype dtype,
                           dmi_along_out *o)
{
    *o = (dmi_along_out){.out = *out, .made = *out};
    if (out->desc->dtype == dtype && dmi_same_places(&along->frame, out->desc, along->dim)) {
        return DM_OK;
    }
    const dmi_layout *frame = along->frame.layout;
    o->moves = true;
    o->desc = along->frame;
    if (out->desc->extent[along->dim] != o->desc.extent[along->dim]) {
        const dmi_layout *layout;
        dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID,
                                .ndim = frame->ndim,
                                .session_workers = frame->session_workers,
                                .nworkers = frame->nworkers,
                                .workers = frame->workers,
                                .replicas = frame->replicas};
        for (int d = 0; d < frame->ndim; d++) {
            bool here = d == along->dim;
            spec.shape[d] = here ? out->desc->extent[d] : frame->shape[d];
            spec.block[d] = here ? 0 : frame->block[d];
            spec.grid[d] = frame->grid[d];
            spec.order[d] = frame->order[d];
        }
        dm_status status = dmi_build_layout(b, &spec, &layout);
        if (status != DM_OK) {
            return status;
        }
        o->desc.layout = layout;
        o->desc.lo[along->dim] = o->desc.skip[along->dim] = 0;
        o->desc.extent[along->dim] = out->desc->extent[along->dim];
    }
    o->desc.dtype = dtype;
    build_temporary(b, &o->desc, &o->made);
    return DM_OK;
}

dm_status dmi_along_end(dmi_builder *b, dmi_along_out *const *outs, int count)
{
    dm_status status = DM_OK;
    bool phase = false;
    for (int i = 0; i < count && status == DM_OK; i++) {
        if (outs[i]->moves && !phase) {
            dmi_build_phase(b);
            phase = true;
        }
        status = outs[i]->moves ? move(b, &outs[i]->made, &outs[i]->out) : DM_OK;
    }
    return status;
}

/* Has each of the team all of x, as an array? */
static bool is_everywhere(const dmi_team *team, const dmi_desc *x)
{
    const dmi_layout *layout = x->layout;
    bool everywhere = layout->kind == DMI_LAYOUT_GRID && layout->group == 1 && is_whole(x);
    for (int i = 0; i < team->count && everywhere; i++) {
        everywhere = layout->position[team->worker[i]] >= 0;
    }
    return everywhere;
}

dm_status dmi_build_brought(dmi_builder *b, const dmi_team *team, const dmi_value *x, bool everywhere, dm_dtype dtype,
                            dmi_desc *desc, dmi_value *brought, bool *phase)
{
    const dmi_layout *layout;
    bool here = !everywhere || is_everywhere(team, x->desc);
    *brought = *x;
    if (here && x->desc->dtype == dtype) {
        return DM_OK;
    }
    *desc = *x->desc;
    if (!here) {
        dmi_layout_spec spec;
        dmi_team_layout(team, x->desc, -1, &spec);
        dm_status status = dmi_build_layout(b, &spec, &layout);
        if (status != DM_OK) {
            return status;
        }
        *desc = dmi_desc_whole(dtype, layout, 0);
    }
    desc->dtype = dtype;
    build_temporary(b, desc, brought);
    *phase = true;
    return move(b, x, brought);
}

dm_status dmi_check_along(const dmi_call *call, int out)
{
    const dmi_desc *x = &call->operand[0].desc;
    int dim = call->args.i[0];
    if (dim < 0 || dim >= x->ndim) {
        return dmi_fail(DM_ERR_ARG, "%s: dim is %d; %s has %d dims", dmi_call_name(call), dim,
                        dmi_operand_name(call, 0), x->ndim);
    }
    return dmi_check_same_shape(call, 0, out);
}
