/* Reductions: the choice of addends or accumulators.
 *
 * If each worker has at most one element of x for each element of out (as with gradients) and they are summed,
 * the elements themselves are pushed to where they are summed (addends.c). So are a worker's sums of integers,
 * where their number and type say that fewer than 64 bits hold them. Else every worker reduces its own elements
 * into accumulators and pushes these (partials.c). A large result with several holders is made in segments. */
#include "plan/reduce.h"

#include <string.h>

/* The addends of a sum: one of a worker at most for each element of out. They are the elements themselves,
 * where no worker has more, or the sums of each worker's elements in a type that holds them. */
typedef struct elements {
    const dmi_partials *s;
    int count;    /* of an element of out */
    int senders;  /* workers of a replica of x that have some */
    int *row;     /* [workers] which of them a worker has; -1: none */
    int64_t most; /* elements of x that a worker adds up, at most */
    bool partial; /* they are sums, not elements */
} elements;

/* The place of position `at` of x's grid among the positions along the reduced dims. */
static int reduced_place(const dmi_partials *s, int at)
{
    const dmi_layout *x = s->x->layout;
    int place = 0, weight = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (s->r->reduced >> d & 1) {
            place += at % x->grid[d] * weight;
            weight *= x->grid[d];
        }
        at /= x->grid[d];
    }
    return place;
}

/* Does a worker that holds some of the result lack elements of x? */
static bool some_travels(const dmi_partials *s)
{
    const dmi_layout *x = s->x->layout, *out = s->out->layout;
    bool travels = x->group > 1;
    for (int i = 0; i < out->nworkers; i++) {
        travels = travels || dmi_layout_replica(x, out->workers[i]) < 0;
    }
    return travels;
}

/* Numbers the workers of each replica of x that have elements, by their places along the reduced dims: so each
 * number once for each element of out. */
static bool find_elements(const dmi_partials *s, elements *e)
{
    const dmi_layout *x = s->x->layout;
    int workers = s->b->profile->workers, *number = NULL;
    *e = (elements){.s = s};
    if (x->kind != DMI_LAYOUT_GRID || s->out->layout->kind != DMI_LAYOUT_GRID || !some_travels(s)) {
        return false;
    }
    e->row = dmi_build_alloc(s->b, (size_t)workers * sizeof *e->row);
    number = dmi_build_alloc(s->b, (size_t)x->group * sizeof *number); /* of a place, from 1 on */
    for (int w = 0; w < workers && !s->b->failed; w++) {
        e->row[w] = -1;
    }
    for (int i = 0; i < x->nworkers && !s->b->failed; i++) {
        dmi_region region;
        int *place = &number[reduced_place(s, i % x->group)];
        int64_t own = 1;
        dmi_desc_region(s->x, x->workers[i], 0, &region);
        for (int d = 0; d < region.ndim; d++) {
            own *= s->r->reduced >> d & 1 ? region.dim[d].count : 1;
        }
        if (region.count > 0) {
            e->most = DMI_MAX(e->most, own);
            e->senders += i < x->group;
            *place = *place > 0 ? *place : ++e->count;
            e->row[x->workers[i]] = *place - 1;
        }
    }
    return e->count > 0 && !s->b->failed;
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
    if (e->partial) {
        dmi_region_dense(out, 0);
    }
}

/* Number of workers with addends of an element of out. Sums that travel narrow are as accumulators to the
 * choice of the algorithm: to add them all up at every holder takes as long as to send them. */
static dmi_load load_of(const dmi_partials *s, const elements *e)
{
    const dmi_layout *x = s->x->layout;
    dmi_load load = {.addends = 1, .bytes = s->elem, .senders = x->group, .replicas = x->replicas};
    if (e->count > 0) {
        load.addends = e->count;
        load.bytes = e->partial ? s->elem : dmi_dtype_bytes(s->narrow);
        load.senders = e->senders;
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

/* The narrowest type that holds each sum of `most` elements of this type, or each number of so many of them; 0:
 * it has 64 bits, or the sum is of floats. */
static dm_dtype narrow_type(int row, dm_dtype dtype, int64_t most)
{
    static const dm_dtype types[2][3] = {{DM_U8, DM_U16, DM_U32}, {DM_I8, DM_I16, DM_I32}};
    bool counts = row == DMI_REDUCTION_count_nonzero || dtype == DM_BOOL;
    bool sign = !counts && dmi_dtype_kind(dtype) == DMI_KIND_INT;
    int bits = counts ? 1 : 8 * (int)dmi_dtype_bytes(dtype) - sign;
    int64_t largest = 0; /* sum; with a sign, the smallest one is -largest */
    if ((row != DMI_REDUCTION_sum && row != DMI_REDUCTION_count_nonzero) ||
        (!counts && !dmi_dtype_is_integer(dtype)) || bits > 32 ||
        __builtin_mul_overflow(most, (INT64_C(1) << bits) - !sign, &largest)) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        int64_t room = INT64_C(1) << ((8 << i) - sign);
        if (sign ? largest <= room : largest < room) {
            return types[sign][i];
        }
    }
    return 0;
}

/* Do addends, of which each worker has one at most, serve? */
static bool choose_addends(dmi_partials *s, elements *e)
{
    if (!find_elements(s, e)) {
        return false;
    }
    e->partial = s->r->program != NULL || s->r->row != DMI_REDUCTION_sum || e->most > 1;
    s->narrow =
        e->partial ? narrow_type(s->r->row, s->r->program ? s->r->made : s->x->dtype, e->most) : s->x->dtype;
    return s->narrow != 0;
}

static void plan_addends(dmi_partials *s, const elements *e)
{
    dmi_mark ready = {0};
    dmi_addends addends = {.out = s->r->out,
                           .dtype = s->narrow,
                           .count = e->count,
                           .row = e->row,
                           .serves = serves,
                           .region = own_elements,
                           .context = e,
                           .ref = e->partial ? dmi_plan_narrow(s, ready) : s->r->in[0].ref,
                           .ready = e->partial ? ready : NULL,
                           .scatter = s->scatter,
                           .channel = s->channel,
                           .divides = s->r->divides};
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
    if (!choose_addends(&s, &e)) {
        e.count = 0;
    }
    dmi_load load = load_of(&s, &e);
    s.scatter = dmi_scatter_pays(b, s.out, &load);
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
