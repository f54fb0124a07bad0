/* out = the places of the elements of v in sorted elements */
#include "ops/common_order.h"
#include "plan/reduce.h"

#include <dmath/order.h>

#include <string.h>

enum { RIGHT, PARTS, DESCENDING }; /* args.i; PARTS: see dmi_search_parts */

dm_status dm_searchsorted(dm_session *session, dm_array sorted, dm_array v, int right, dm_array out)
{
    dmi_call call = {.op = DMI_OP_searchsorted, .noperand = 3, .args = {.i = {[RIGHT] = right != 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){sorted, v, out});
}

dm_status dmi_search_parts(dm_session *session, dm_array sorted, dm_array v, bool right, bool descending,
                           dm_array out)
{
    dmi_call call = {.op = DMI_OP_searchsorted,
                     .noperand = 3,
                     .args = {.i = {[RIGHT] = right, [PARTS] = 1, [DESCENDING] = descending}}};
    return dmi_call_submit(session, &call, (dm_array[]){sorted, v, out});
}

dm_status dmi_searchsorted_check(dmi_call *call)
{
    const dmi_desc *sorted = &call->operand[0].desc;
    if (call->args.i[PARTS]) {
        return DM_OK; /* the library's own */
    }
    if (sorted->ndim != 1) {
        return dmi_fail(DM_ERR_SHAPE, "%s: sorted has %d dims, not one", dmi_call_name(call), sorted->ndim);
    }
    dm_status status = dmi_check_same_shape(call, 1, 2);
    status = status == DM_OK ? dmi_check_overlap(call, 0, 2, false) : status;
    return status == DM_OK ? dmi_check_overlap(call, 1, 2, false) : status;
}

static int64_t bytes_of(const dmi_desc *x)
{
    return dmi_desc_count(x) * dmi_dtype_bytes(x->dtype);
}

typedef struct searching {
    dmi_builder *b;
    dmi_team team;
    bool right, descending;
    dm_dtype type;
    dmi_value sorted, v;
} searching;

/* Searches for the elements of one side in one region of the sorted ones. */
static void search(const searching *s, const dmi_region *sorted, const dmi_side *v, const dmi_region *out,
                   const dmi_value *to, bool adds, const dmi_mark ready)
{
    dmi_search k = {.ndim = out->ndim,
                    .type = s->type,
                    .stored = s->sorted.desc->dtype,
                    .dtype = v->dtype,
                    .right = s->right,
                    .descending = s->descending,
                    .adds = adds,
                    .count = sorted->count,
                    .sorted_offset = sorted->count > 0 ? dmi_region_start(sorted) : 0,
                    .offset = v->offset,
                    .out_offset = dmi_region_start(out)};
    for (int d = 0; d < k.ndim; d++) {
        k.extent[d] = out->dim[d].count;
        k.stride[d] = v->stride[d];
        k.out_stride[d] = out->stride[d];
    }
    dmi_ref refs[3] = {s->sorted.ref, v->ref, to->ref};
    refs[0] = k.count > 0 ? refs[0] : to->ref; /* GPUs skip steps of which a reference has no memory */
    refs[0].mode = refs[1].mode = DMI_READ;
    refs[2].mode = adds ? DMI_READWRITE : DMI_WRITE;
    dmi_build_kernel(s->b, DMI_KERNEL_search, &k, sizeof k, refs, 3, ready);
}

/* All sorted elements are at each worker, and the elements of v come to where out's are. */
static dm_status search_whole(searching *s, const dmi_value *out, dmi_along_out *o)
{
    dmi_builder *b = s->b;
    dmi_desc here;
    dmi_value sorted;
    dmi_input in;
    dmi_mark ready = {0};
    bool phase = false;
    dm_status status = dmi_build_brought(b, &s->team, &s->sorted, true, s->type, &here, &sorted, &phase);
    if (status != DM_OK || b->failed || !dmi_team_has(&s->team, b->me)) {
        return status;
    }
    if (phase) {
        dmi_build_phase(b);
    }
    s->sorted = sorted;
    dmi_region all;
    dmi_desc_region(sorted.desc, b->me, 0, &all);
    dmi_plan_input(b, &in, &s->v, out->desc, ready);
    for (int64_t i = 0; i < dmi_desc_region_count(out->desc, b->me) && !b->failed; i++) {
        int64_t stride[DM_MAX_DIMS];
        dmi_side side;
        dmi_region region;
        dmi_desc_region(out->desc, b->me, i, &region);
        dmi_input_side(&side, stride, &in, b->me, i, &region);
        if (region.count > 0) {
            search(s, &all, &side, &region, &o->made, false, ready);
        }
    }
    return DM_OK;
}

/* One more dim in front, a row for each worker of the team. */
static dm_status build_rows(dmi_builder *b, const dmi_team *team, const dmi_desc *v, dmi_desc *desc, dmi_value *rows)
{
    dmi_desc shape = {.ndim = v->ndim + 1, .extent = {team->count}};
    dmi_layout_spec spec;
    const dmi_layout *layout;
    memcpy(shape.extent + 1, v->extent, (size_t)v->ndim * sizeof *v->extent);
    dmi_team_layout(team, &shape, 0, &spec);
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status != DM_OK) {
        return status;
    }
    *desc = dmi_desc_whole(DM_I64, layout, 0);
    int64_t count = b->me < team->session ? dmi_layout_shard_count(layout, b->me) : 0;
    *rows = (dmi_value){.desc = desc, .ref = dmi_ref_work(dmi_build_work(b, count * 8), DMI_READ)};
    return DM_OK;
}

/* In which type the sorted elements of a worker lie where all of v is searched for: theirs, if few of them are
 * compared. */
static dm_dtype type_of_parts(const searching *s)
{
    enum { FEW = 1024 };
    const dmi_desc *sorted = s->sorted.desc, *v = s->v.desc;
    bool few = dmi_desc_count(sorted) / s->team.count > FEW * dmi_desc_count(v);
    return few || s->b->profile->sort_wide ? sorted->dtype : s->type;
}

/* Each worker searches for all of v in its own sorted elements; the places are the sums over the workers. out
 * NULL: rows has what each has found. */
static dm_status search_parts(searching *s, const dmi_value *out, dmi_value *rows)
{
    dmi_builder *b = s->b;
    dmi_desc everywhere, typed, desc;
    dmi_value v, sorted;
    bool phase = false;
    dm_status status = dmi_build_brought(b, &s->team, &s->v, true, s->v.desc->dtype, &everywhere, &v, &phase);
    status = status == DM_OK
                 ? dmi_build_brought(b, &s->team, &s->sorted, false, type_of_parts(s), &typed, &sorted, &phase)
                 : status;
    status = status == DM_OK && out ? build_rows(b, &s->team, v.desc, &desc, rows) : status;
    if (status != DM_OK || b->failed) {
        return status;
    }
    if (phase) {
        dmi_build_phase(b);
    }
    s->sorted = sorted;
    if (dmi_team_has(&s->team, b->me)) {
        dmi_region from, to, none = {.ndim = 1};
        bool counts = dmi_layout_replica(sorted.desc->layout, b->me) == 0;
        int64_t regions = counts ? dmi_desc_region_count(sorted.desc, b->me) : 0;
        dmi_desc_region(v.desc, b->me, 0, &from);
        dmi_region_dense(&from, 0);
        dmi_side side = {v.desc->dtype, from.stride, 0, v.ref};
        to = from;
        for (int64_t i = 0; i < regions || i == 0; i++) {
            dmi_region part = none;
            if (i < regions) {
                dmi_desc_region(sorted.desc, b->me, i, &part);
            }
            if (from.count > 0) {
                search(s, &part, &side, &to, rows, i > 0, NULL);
            }
        }
    }
    if (!out) {
        return DM_OK;
    }
    dmi_build_phase(b);
    dmi_reducing sum = {.reduced = 1, .inputs = 1, .in = rows, .out = out, .scalar = DMI_UNSCALED};
    return dmi_plan_reduce(b, &sum);
}

dm_status dmi_searchsorted_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_value sorted = dmi_value_operand(call, 0), v = dmi_value_operand(call, 1),
              out = dmi_value_operand(call, 2);
    dm_dtype type = dmi_dtype_carrier(dmi_dtype_promote(sorted.desc->dtype, v.desc->dtype));
    searching s = {.b = b,
                   .right = call->args.i[RIGHT],
                   .descending = call->args.i[DESCENDING],
                   .type = type,
                   .sorted = sorted,
                   .v = v};
    dmi_value rows;
    if (!dmi_build_team(b, call, &s.team)) {
        return DM_OK;
    }
    if (call->args.i[PARTS]) {
        return search_parts(&s, NULL, &out);
    }
    const dmi_layout *layout = sorted.desc->layout;
    bool split = layout->kind != DMI_LAYOUT_GRID || layout->group > 1; /* parts must be dense */
    split = split && !dmi_desc_steps(sorted.desc);
    if (split && bytes_of(sorted.desc) > bytes_of(v.desc) && v.desc->ndim < DM_MAX_DIMS) {
        return search_parts(&s, &out, &rows);
    }
    dmi_along_out o = {.out = out, .made = out};
    if (out.desc->dtype != DM_I64) {
        o.moves = true;
        o.desc = *out.desc;
        o.desc.dtype = DM_I64;
        int64_t count = b->me < b->profile->workers ? dmi_layout_shard_count(o.desc.layout, b->me) : 0;
        o.made = (dmi_value){.desc = &o.desc, .ref = dmi_ref_work(dmi_build_work(b, count * 8), DMI_READ)};
    }
    dm_status status = search_whole(&s, &out, &o);
    return status == DM_OK && !b->failed ? dmi_along_end(b, (dmi_along_out *[]){&o}, 1) : status;
}
