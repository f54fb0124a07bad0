/* Reductions: the choice of addends or accumulators.
 *
 * If each worker has at most one element of x for each element of out (as with gradients) and they are summed,
 * the elements themselves are pushed to where they are summed (addends.c). Else every worker reduces its own
 * elements into accumulators and pushes these (partials.c). A large result with several holders is made in
 * segments. */
#include "plan/reduce.h"

#include <string.h>

/* The addends of a sum in which every worker has at most one element of x for each element of out. */
typedef struct elements {
    const dmi_partials *s;
    int count;
    int *row; /* [workers] */
} elements;

static bool kept_dims_are_whole(const dmi_partials *s)
{
    const dmi_layout *x = s->x->layout;
    for (int d = 0; d < s->x->ndim; d++) {
        if (!(s->r->reduced >> d & 1) && x->grid[d] > 1) {
            return false;
        }
    }
    return x->group > 1;
}

/* Numbers the workers of each replica of x that have elements, by their positions. */
static bool find_elements(const dmi_partials *s, elements *e)
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
            if (s->r->reduced >> d & 1 && region.dim[d].count > 1) {
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
static void in_out(const dmi_partials *s, const dmi_region *in, dmi_region *out)
{
    memset(out, 0, sizeof *out);
    out->offset = in->offset;
    out->count = in->count > 0;
    for (int d = 0; d < in->ndim; d++) {
        bool gone = s->r->reduced >> d & 1;
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

static bool serves(const void *context, int sender, int receiver)
{
    const elements *e = context;
    return dmi_layout_replica(e->s->x->layout, sender) == dmi_fetch_replica(e->s->x, receiver);
}

static void own_elements(const void *context, int sender, dmi_region *out)
{
    const elements *e = context;
    dmi_region region;
    dmi_desc_region(e->s->x, sender, 0, &region);
    in_out(e->s, &region, out);
}

/* Number of workers with addends of an element of out. */
static dmi_load load_of(const dmi_partials *s, const elements *e)
{
    const dmi_layout *x = s->x->layout;
    dmi_load load = {.addends = 1, .bytes = s->elem, .senders = x->group, .replicas = x->replicas};
    if (e->count > 0) {
        load.addends = e->count;
        load.bytes = dmi_dtype_bytes(s->x->dtype);
        load.senders = e->count;
    } else if (x->kind == DMI_LAYOUT_GRID) {
        for (int d = 0; d < x->ndim; d++) {
            load.addends *= s->r->reduced >> d & 1 ? x->grid[d] : 1;
        }
    } else {
        load.addends = load.senders = s->b->profile->workers;
        load.replicas = 1;
    }
    return load;
}

dm_status dmi_build_frame(dmi_builder *b, int inputs, const dmi_value *in, const dmi_value *out, dm_dtype dtype,
                          dmi_desc *frame, bool *own)
{
    int ndim;
    int64_t extent[DM_MAX_DIMS];
    const dmi_desc *x_of[DMI_MAP_INPUTS] = {NULL};
    for (int i = 0; i < inputs; i++) {
        x_of[i] = in[i].desc;
    }
    (void)dmi_desc_broadcast(inputs, x_of, &ndim, extent); /* that they fit is checked on the master */
    *own = true;
    for (int i = 0; i < inputs; i++) {
        const dmi_desc *x = in[i].desc;
        if (x->ndim == ndim && memcmp(x->extent, extent, (size_t)ndim * sizeof *extent) == 0) {
            *frame = *x;
            *own = false;
            break;
        }
    }
    if (*own) {
        dmi_layout_spec spec;
        const dmi_layout *layout;
        dmi_default_on((inputs > 0 ? in : out)->desc->layout, ndim, extent, dtype, &spec); /* other workers may take no part */
        dm_status status = dmi_build_layout(b, &spec, &layout);
        if (status != DM_OK) {
            return status;
        }
        *frame = dmi_desc_whole(dtype, layout, 0);
    }
    frame->dtype = dtype;
    return DM_OK;
}

static void plan_addends(dmi_partials *s, const elements *e)
{
    const dmi_value *x = &s->r->in[0];
    dmi_addends addends = {.out = s->r->out,
                           .dtype = s->x->dtype,
                           .count = e->count,
                           .row = e->row,
                           .serves = serves,
                           .region = own_elements,
                           .context = e,
                           .ref = x->ref,
                           .scatter = s->scatter,
                           .channel = s->channel};
    memcpy(addends.scalar, s->r->scalar, sizeof addends.scalar);
    dmi_plan_addends(s->b, &addends);
}

dm_status dmi_plan_reduce(dmi_builder *b, const dmi_reducing *r)
{
    dmi_desc frame;
    bool own; /* the frame is no input's, whose elements then come to it */
    int acc = dmi_acc_for(r->row, r->program ? r->made : r->in[0].desc->dtype);
    dm_status status = r->program ? dmi_build_frame(b, r->inputs, r->in, r->out, r->made, &frame, &own) : DM_OK;
    if (status != DM_OK || b->failed) {
        return status;
    }
    if (r->program) {
        b->plan->compute = b->profile->facts.gpu ? "one pass, on GPUs where NVRTC compiles it" : "one pass";
    }
    dmi_partials s = {.b = b,
                      .r = r,
                      .x = r->program ? &frame : r->in[0].desc,
                      .out = r->out->desc,
                      .chunks = 1,
                      .acc = acc,
                      .elem = dmi_acc_bytes(acc)};
    elements e;
    s.keeps = s.out->ndim == s.x->ndim && r->reduced != 0;
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    if (r->program || r->row != DMI_REDUCTION_sum || !find_elements(&s, &e)) {
        e.count = 0;
    }
    dmi_load load = load_of(&s, &e);
    s.scatter = dmi_scatter_pays(b->profile, s.out, &load);
    s.channel = dmi_reduction_channel(b->profile, s.out, &load);
    if (e.count > 0 && !b->failed) {
        plan_addends(&s, &e);
    } else {
        dmi_plan_partials(&s);
    }
    dmi_build_channel(b, 0);
    if (b->plan->messages_sent + b->plan->messages_received > 0) {
        strcpy(b->plan->algorithm, s.scatter ? "scatter" : "direct");
    }
    return DM_OK;
}

/* Whole-number coordinates of position `at` in a grid. */
static void grid_place(const dmi_layout *layout, int at, int *place)
{
    for (int d = layout->ndim - 1; d >= 0; d--) {
        place[d] = at % layout->grid[d];
        at /= layout->grid[d];
    }
}

/* The workers of x's grid in the order of a layout whose replicas are the workers with the same kept indices. */
static int *order_workers(dmi_builder *b, const dmi_layout *from, unsigned reduced)
{
    int *workers = dmi_build_alloc(b, (size_t)from->nworkers * sizeof *workers), group = 1;
    for (int d = 0; d < from->ndim; d++) {
        group *= reduced >> d & 1 ? 1 : from->grid[d];
    }
    for (int i = 0; i < from->nworkers && workers; i++) {
        int place[DM_MAX_DIMS], kept = 0, replica = i / from->group;
        grid_place(from, i % from->group, place);
        for (int d = 0; d < from->ndim; d++) {
            int *number = reduced >> d & 1 ? &replica : &kept;
            *number = *number * from->grid[d] + place[d];
        }
        workers[replica * group + kept] = from->workers[i];
    }
    return workers;
}

dm_status dmi_build_reduced(dmi_builder *b, const dmi_desc *x, unsigned reduced, dm_dtype dtype, dmi_desc *desc,
                            dmi_value *value)
{
    const dmi_layout *from = x->layout, *layout;
    bool grid = from->kind == DMI_LAYOUT_GRID;
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID,
                            .ndim = x->ndim,
                            .session_workers = from->session_workers,
                            .nworkers = from->nworkers,
                            .workers = grid ? order_workers(b, from, reduced) : from->workers,
                            .replicas = from->nworkers};
    *desc = *x;
    desc->dtype = dtype;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = reduced >> d & 1;
        spec.shape[d] = gone ? 1 : from->shape[d];
        spec.block[d] = gone ? 1 : from->block[d];
        spec.order[d] = gone ? DMI_ORDER_CONTIGUOUS : from->order[d];
        spec.grid[d] = gone || !grid ? 1 : from->grid[d];
        spec.replicas /= spec.grid[d];
        desc->lo[d] = gone ? 0 : x->lo[d];
        desc->extent[d] = gone ? 1 : x->extent[d];
    }
    if (b->failed) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a plan");
    }
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status != DM_OK) {
        return status;
    }
    desc->layout = layout;
    int64_t count = b->me < b->profile->workers ? dmi_layout_shard_count(layout, b->me) : 0;
    *value = (dmi_value){.desc = desc,
                         .ref = dmi_ref_work(dmi_build_work(b, count * dmi_dtype_bytes(dtype)), DMI_READ)};
    return DM_OK;
}
