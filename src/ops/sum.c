/* out = scale * (sum of x over some dims) + beta * out
 *
 * Where a worker has one element of x, at most, for every element of out, as the gradients of workers have, the
 * elements themselves are pushed from x to where they are summed. Else every worker sums its own part of x into
 * wide accumulators, which are pushed instead: 8 bytes each, 16 for f64 (common_sum.c). Whether a result with
 * several holders is made in slices, which are then shared, is a matter of size: see plan/reduce.h. */
#include "ops/common_sum.h"

#include <string.h>

dm_status dm_sum(dm_session *session, dm_array x, const int *dims, int ndims, double scale, double beta,
                 dm_array out)
{
    dmi_call call = {.op = DMI_OP_sum, .noperand = 2};
    dmi_call_factors(&call, scale, beta);
    if (!dims) {
        call.args.i[0] = -1; /* all */
        if (ndims != 0) {
            return dmi_fail(DM_ERR_ARG, "sum: dims is NULL but ndims is %d", ndims);
        }
    } else if (ndims < 1) {
        return dmi_fail(DM_ERR_ARG, "sum: ndims is %d: name the dims to sum over, or pass NULL for all", ndims);
    }
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0 || dims[i] >= DM_MAX_DIMS || (call.args.i[0] >> dims[i] & 1)) {
            return dmi_fail(DM_ERR_ARG, "sum: dims[%d] is %d, out of range or named twice", i, dims[i]);
        }
        call.args.i[0] |= 1 << dims[i];
    }
    call.args.i[1] = beta == 0;
    return dmi_call_submit(session, &call, (dm_array[]){x, out});
}

dm_status dmi_sum_check(dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc, *out = &call->operand[1].desc;
    int32_t all = (int32_t)((1u << x->ndim) - 1);
    int32_t reduced = call->args.i[0] == -1 ? all : call->args.i[0];
    if (reduced & ~all) {
        return dmi_fail(DM_ERR_ARG, "sum: dims[0..ndims) names a dim that x, which has %d, lacks", x->ndim);
    }
    if (dmi_dtype_is_complex(x->dtype) && out->dtype == DM_BOOL) {
        return dmi_fail(DM_ERR_DTYPE, "sum: x has dtype %s and out bool; a complex sum is taken by a number",
                        dmi_dtype_name(x->dtype));
    }
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
    drop = drop && kept == out->ndim;
    if (!keep && !drop) {
        char s[192], t[192];
        return dmi_fail(DM_ERR_SHAPE,
                        "sum: x is %s; out is %s, not x's shape without the summed dims (or 1 there)",
                        dmi_shape_text(x, s), dmi_shape_text(out, t));
    }
    for (int i = 0; i < 2; i++) {
        dm_status status = dmi_check_factor(call, i, i ? "beta" : "scale", 1, 1);
        if (status != DM_OK) {
            return status;
        }
    }
    call->args.i[0] = reduced;
    call->args.i[2] = !drop; /* out has 1 in place of the summed dims */
    call->operand[1].mode = call->args.i[1] ? DMI_WRITE : DMI_READWRITE;
    return dmi_check_overlap(call, 0, 1, false);
}

/* The addends of a call whose workers have one element of x, at most, for every element of out. */
typedef struct elements {
    const dmi_summing *s;
    int count;
    int *row; /* [workers] */
} elements;

static bool kept_dims_are_whole(const dmi_summing *s)
{
    const dmi_layout *x = s->x->layout;
    for (int d = 0; d < s->x->ndim; d++) {
        if (!(s->reduced >> d & 1) && x->grid[d] > 1) {
            return false;
        }
    }
    return x->group > 1;
}

/* Numbers the workers of each replica of x that have elements, by their positions. */
static bool find_elements(const dmi_summing *s, elements *e)
{
    const dmi_layout *x = s->x->layout;
    int workers = s->b->profile->workers;
    *e = (elements){.s = s};
    if (x->kind != DMI_LAYOUT_GRID || s->out->layout->kind != DMI_LAYOUT_GRID || !kept_dims_are_whole(s)) {
        return false;
    }
    e->row = dmi_build_alloc(s->b, (size_t)workers * sizeof *e->row);
    for (int w = 0; w < workers && !s->b->failed; w++) {
        e->row[w] = -1;
    }
    for (int i = 0; i < x->nworkers && !s->b->failed; i++) {
        dmi_region region;
        dmi_desc_region(s->x, x->workers[i], 0, &region);
        e->count = i % x->group == 0 ? 0 : e->count;
        for (int d = 0; d < region.ndim; d++) {
            if (s->reduced >> d & 1 && region.dim[d].count > 1) {
                return false;
            }
        }
        if (region.count > 0) {
            e->row[x->workers[i]] = e->count++;
        }
    }
    return e->count > 0;
}

/* A region of x in out's coordinates, memory as it is. */
static void in_out(const dmi_summing *s, const dmi_region *in, dmi_region *out)
{
    memset(out, 0, sizeof *out);
    out->offset = in->offset;
    out->count = in->count > 0;
    for (int d = 0; d < in->ndim; d++) {
        bool gone = s->reduced >> d & 1;
        if (gone && in->dim[d].count > 0) {
            out->offset += dmi_dimset_first_position(&in->dim[d]) * in->stride[d];
        }
        if (gone && s->keeps) {
            out->dim[out->ndim++] = dmi_dimset_interval(0, 1);
        } else if (!gone) {
            out->count *= in->dim[d].count;
            out->stride[out->ndim] = in->stride[d];
            out->dim[out->ndim++] = in->dim[d];
        }
    }
}

static bool serves(const void *context, int giver, int taker)
{
    const elements *e = context;
    return dmi_layout_replica(e->s->x->layout, giver) == dmi_fetch_replica(e->s->x, taker);
}

static void own_elements(const void *context, int giver, dmi_region *out)
{
    const elements *e = context;
    dmi_region region;
    dmi_desc_region(e->s->x, giver, 0, &region);
    in_out(e->s, &region, out);
}

/* How many workers have something to add to an element of out. */
static dmi_load load_of(const dmi_summing *s, const elements *e)
{
    const dmi_layout *x = s->x->layout;
    dmi_load load = {.addends = 1, .bytes = s->elem, .givers = x->group, .replicas = x->replicas};
    if (e->count > 0) {
        load.addends = e->count;
        load.bytes = dmi_dtype_bytes(s->x->dtype);
        load.givers = e->count;
    } else if (x->kind == DMI_LAYOUT_GRID) {
        for (int d = 0; d < x->ndim; d++) {
            load.addends *= s->reduced >> d & 1 ? x->grid[d] : 1;
        }
    } else {
        load.addends = load.givers = s->b->profile->workers;
        load.replicas = 1;
    }
    return load;
}

dm_status dmi_sum_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_summing s = {.b = b,
                     .x = &call->operand[0].desc,
                     .out = &call->operand[1].desc,
                     .reduced = (unsigned)call->args.i[0],
                     .keeps = call->args.i[2],
                     .pieces = 1};
    elements e;
    s.acc = dmi_acc_of(s.x->dtype);
    s.elem = dmi_acc_bytes(s.acc);
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    if (!find_elements(&s, &e)) {
        e.count = 0;
    }
    dmi_load load = load_of(&s, &e);
    s.scatter = dmi_scatter_pays(b->profile, s.out, &load);
    if (e.count > 0 && !b->failed) {
        dmi_addends addends = {.out = s.out,
                               .operand = 1,
                               .dtype = s.x->dtype,
                               .count = e.count,
                               .row = e.row,
                               .serves = serves,
                               .region = own_elements,
                               .context = &e,
                               .ref = dmi_ref_operand(0, DMI_READ),
                               .scatter = s.scatter};
        dmi_plan_addends(b, &addends);
    } else {
        dmi_sum_parts(&s);
    }
    if (b->plan->messages_sent + b->plan->messages_received > 0) {
        strcpy(b->plan->algorithm, s.scatter ? "scatter" : "direct");
    }
    return DM_OK;
}
