/* Reductions in which every worker accumulates its elements before it sends. */
#include "plan/reduce.h"

#include <string.h>

/* A region's kept dims only. `stays`: bit d set: dim d is kept. */
static void keep_dims(const dmi_region *in, unsigned stays, dmi_region *out)
{
    *out = *in;
    out->ndim = 0;
    out->count = in->count > 0;
    for (int d = 0; d < in->ndim; d++) {
        if (stays >> d & 1) {
            out->dim[out->ndim] = in->dim[d];
            out->stride[out->ndim++] = in->stride[d];
            out->count *= in->dim[d].count;
        } else if (in->dim[d].count > 0) {
            out->offset += dmi_dimset_first_position(&in->dim[d]) * in->stride[d];
        }
    }
}

/* The region of x with the addends of a region of out (its kept dims). */
static void box_in_x(const dmi_partials *s, const dmi_region *target, dmi_region *box)
{
    int k = 0;
    memset(box, 0, sizeof *box);
    box->ndim = s->x->ndim;
    for (int d = 0; d < box->ndim; d++) {
        bool gone = s->r->reduced >> d & 1;
        box->dim[d] = gone ? dmi_dimset_interval(0, s->x->extent[d]) : target->dim[k];
        k += !gone;
    }
}

/* Accumulators worker w makes from region i of x: dense, kept dims. */
static void partial_region(const dmi_partials *s, int worker, int64_t i, int64_t offset, dmi_region *partial)
{
    dmi_region region;
    dmi_desc_region(s->x, worker, i, &region);
    keep_dims(&region, ~s->r->reduced, partial);
    dmi_region_dense(partial, offset);
}

/* Region j that worker w makes of out: kept dims. */
static void target_region(const dmi_partials *s, int worker, int64_t j, int chunk, dmi_region *out)
{
    dmi_region region;
    if (s->scatter) {
        dmi_segment_region(s->out, worker, s->chunks, chunk, &region);
    } else {
        dmi_desc_region(s->out, worker, j, &region);
    }
    keep_dims(&region, s->keeps ? ~s->r->reduced : ~0u, out);
}

/* The copy of accumulators as a transfer of words, or of runs of words. */
static void as_transfer(const dmi_partials *s, dmi_copy *copy)
{
    dm_dtype word = s->elem % 8 == 0 ? DM_I64 : s->elem == 4 ? DM_I32 : s->elem == 2 ? DM_I16 : DM_U8;
    int64_t words = s->elem / dmi_dtype_bytes(word);
    copy->src_dtype = copy->dst_dtype = word;
    if (words == 1) {
        return;
    }
    dmi_run *run = dmi_build_alloc(s->b, sizeof *run);
    if (!run) {
        return;
    }
    *run = (dmi_run){.len = words};
    for (int d = 0; d < copy->ndim; d++) {
        copy->src_stride[d] *= words;
        copy->dst_stride[d] *= words;
    }
    copy->src_offset *= words;
    copy->dst_offset *= words;
    copy->count *= words;
    copy->nrun[copy->ndim] = 1;
    copy->run[copy->ndim] = run;
    copy->src_stride[copy->ndim] = copy->dst_stride[copy->ndim] = 1;
    copy->ndim++;
}

/* The indices of this region, for a row that keeps indices. */
static void add_indices(const dmi_partials *s, const dmi_region *region, dmi_reduce *k)
{
    dmi_dimset *index = dmi_build_alloc(s->b, sizeof region->dim);
    if (index) {
        memcpy(index, region->dim, sizeof region->dim);
        k->index = index;
        memcpy(k->whole, s->x->extent, sizeof k->whole);
    }
}

/* The elements of one region are made by the program. Returns the number of its references. */
static int add_program(const dmi_partials *s, dmi_input *in, int64_t index, const dmi_region *region, dmi_reduce *k,
                       dmi_ref *refs)
{
    dmi_map *map = dmi_build_alloc(s->b, sizeof *map);
    int inputs = s->r->program->inputs, read = dmi_map_inputs_read(s->r->program);
    const dmi_map_places *places = dmi_build_places(s->b, s->r->program, s->x, region);
    if (!map || s->b->failed) {
        return 0;
    }
    *map = (dmi_map){.program = *s->r->program, .ndim = k->ndim, .places = places};
    memcpy(map->extent, k->extent, sizeof map->extent);
    map->dtype[inputs] = k->dtype;
    for (int i = 0; i < inputs; i++) {
        dmi_side side;
        if (i < read) {
            dmi_input_side(&side, map->stride[i], &in[i], s->b->me, index, region);
        } else {
            dmi_ref none = dmi_ref_work(s->partial_work, DMI_READ);
            dmi_made_side(&side, map->stride[i], places, (dm_dtype)s->r->program->input_type[i], none);
        }
        map->dtype[i] = side.dtype;
        map->offset[i] = side.offset;
        refs[i] = side.ref;
        refs[i].mode = DMI_READ;
    }
    k->map = map;
    return inputs;
}

/* This worker's partial results, region after region. */
static void local_parts(dmi_partials *s, dmi_mark done)
{
    const dmi_reducing *r = s->r;
    int64_t offset = 0, regions = dmi_desc_region_count(s->x, s->b->me);
    dmi_input in[DMI_MAP_INPUTS];
    dmi_mark ready = {0};
    for (int i = 0; r->program && i < dmi_map_inputs_read(r->program); i++) {
        dmi_plan_input(s->b, &in[i], &r->in[i], s->x, ready);
    }
    s->partial_work = dmi_build_work(s->b, 0);
    s->partial_at = dmi_build_alloc(s->b, (size_t)(regions + 1) * sizeof *s->partial_at);
    for (int64_t i = 0; i < regions && !s->b->failed; i++) {
        dmi_region region, partial;
        dmi_desc_region(s->x, s->b->me, i, &region);
        partial_region(s, s->b->me, i, offset, &partial);
        s->partial_at[i] = offset;
        dmi_reduce k = {.ndim = region.ndim,
                        .dtype = r->program ? r->made : s->x->dtype,
                        .reduced = r->reduced,
                        .row = r->row,
                        .offset = dmi_region_start(&region)};
        dmi_ref refs[DMI_MAX_REFS] = {r->in[0].ref};
        int nref = 1;
        for (int d = 0; d < region.ndim; d++) {
            k.extent[d] = region.dim[d].count;
            k.stride[d] = region.stride[d];
        }
        if (dmi_reductions[r->row].state == DMI_STATE_PLACE) {
            add_indices(s, &region, &k);
        }
        if (r->program) { /* for empty regions too: sides are counted off one after the other */
            nref = add_program(s, in, i, &region, &k, refs);
        }
        if (region.count == 0) {
            continue;
        }
        refs[nref] = dmi_ref_work(s->partial_work, DMI_WRITE);
        refs[nref].offset = offset * s->elem;
        dmi_mark_step(done, dmi_build_kernel(s->b, DMI_KERNEL_reduce, &k, sizeof k, refs, nref + 1, ready));
        offset += partial.count;
    }
    if (!s->b->failed) {
        s->b->plan->work_bytes[s->partial_work] = offset * s->elem;
    }
}

dmi_ref dmi_plan_narrow(dmi_partials *s, dmi_mark ready)
{
    dmi_region partial;
    dmi_mark summed = {0};
    dmi_acc_store k = {.acc = s->acc, .ndim = 1, .out_dtype = s->narrow, .out_stride = {1}};
    local_parts(s, summed);
    dmi_ref sums = dmi_ref_work(dmi_build_work(s->b, 0), DMI_READ);
    if (dmi_desc_region_count(s->x, s->b->me) == 0 || s->b->failed) {
        return sums;
    }
    partial_region(s, s->b->me, 0, 0, &partial);
    if (partial.count > 0) {
        dmi_ref refs[2] = {dmi_ref_work(s->partial_work, DMI_READ), sums};
        refs[1].mode = DMI_WRITE;
        k.extent[0] = partial.count;
        s->b->plan->work_bytes[sums.index] = partial.count * dmi_dtype_bytes(s->narrow);
        dmi_step *step = dmi_build_kernel(s->b, DMI_KERNEL_acc_store, &k, sizeof k, refs, 2, summed);
        memcpy(step->scalar, (uint8_t[])DMI_UNSCALED, sizeof step->scalar);
        dmi_mark_step(ready, step);
    }
    return sums;
}

/* Sends accumulators from sender to receiver (or leaves them), to be added there. */
static void share(dmi_partials *s, int sender, int receiver, dmi_acc_add *add, const dmi_mark ready)
{
    dmi_ref partial = dmi_ref_work(s->partial_work, DMI_READ), sum = dmi_ref_work(s->acc_work, DMI_READWRITE);
    dmi_mark here = {0};
    if (ready) {
        dmi_mark_merge(here, ready);
    }
    if (sender != receiver) {
        dmi_copy moved;
        dmi_build_pack(s->b, &add->geometry, &moved);
        int64_t bytes = add->geometry.count * s->elem;
        as_transfer(s, &moved);
        if (sender == s->b->me) {
            dmi_build_push(s->b, receiver, partial, &moved, ready);
            return;
        }
        partial = dmi_ref_work(s->receive_work, DMI_WRITE);
        partial.offset = s->b->failed ? 0 : s->b->plan->work_bytes[s->receive_work];
        if (!s->b->failed) {
            s->b->plan->work_bytes[s->receive_work] += bytes;
        }
        dmi_mark_step(here, dmi_build_expect(s->b, sender, partial, &moved, NULL));
        partial.mode = DMI_READ;
        dmi_copy packed;
        dmi_build_unpack(s->b, &add->geometry, &packed);
        add->geometry = packed;
    }
    dmi_late_kernel(s->b, &s->late, DMI_KERNEL_acc_add, add, sizeof *add, (dmi_ref[]){partial, sum}, here);
}

/* Every (region that receiver makes of out, region of x at sender) pair that shares accumulators, in an order
 * both sides walk; of the sender's regions only those that may. at: where the receiver's accumulators begin. */
static void each_share(dmi_partials *s, int sender, int receiver, int chunk, int64_t at, const dmi_mark ready)
{
    int64_t regions = dmi_desc_region_count(s->x, sender);
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, receiver) && !s->b->failed; j++) {
        dmi_region partial, target, box;
        target_region(s, receiver, j, chunk, &target);
        dmi_region_dense(&target, at);
        at += target.count;
        if (target.count == 0) {
            continue;
        }
        box_in_x(s, &target, &box);
        int64_t i = -1;
        while ((i = dmi_desc_region_next(s->x, sender, &box, i)) < regions) {
            dmi_acc_add add = {.acc = s->acc};
            partial_region(s, sender, i, sender == s->b->me ? s->partial_at[i] : 0, &partial);
            if (partial.count > 0 && dmi_region_copy(s->b, &partial, &target, DM_F64, DM_F64, &add.geometry)) {
                share(s, sender, receiver, &add, ready);
            }
        }
    }
}

/* Accumulators without addends: no element is read, so any memory may stand for the elements. */
static void clear_accumulators(dmi_partials *s, int64_t count)
{
    s->acc_work = dmi_build_work(s->b, count * s->elem);
    dmi_reduce k = {.ndim = 2,
                    .dtype = s->r->program ? s->r->made : s->x->dtype,
                    .reduced = 2,
                    .row = s->r->row,
                    .extent = {count, 0},
                    .stride = {1, 1}};
    dmi_ref refs[2] = {dmi_ref_work(s->acc_work, DMI_READ), dmi_ref_work(s->acc_work, DMI_WRITE)};
    dmi_build_kernel(s->b, DMI_KERNEL_reduce, &k, sizeof k, refs, 2, NULL);
}

static int first_sender(const dmi_partials *s, int receiver)
{
    const dmi_layout *out = s->out->layout;
    return out->replicas > 1 && out->position[receiver] >= 0 ? out->position[receiver] % out->group : receiver;
}

/* Whose accumulators come to a receiver in a round: of the replica of x that serves it, counted by places in the replica, so
 * that it is the same order of elements whichever replica that is. */
static int sender_in(const dmi_partials *s, int receiver, int round)
{
    const dmi_layout *x = s->x->layout;
    int place = first_sender(s, receiver) + round;
    if (x->kind != DMI_LAYOUT_GRID) {
        return place % s->b->profile->workers;
    }
    return round < x->group ? x->workers[dmi_fetch_replica(s->x, receiver) * x->group + place % x->group] : -1;
}

/* The own region of x from which alone a region of the result is made, result by result: its accumulators are
 * the result's. -1: there is none. */
static int64_t only_source(const dmi_partials *s, const dmi_region *target)
{
    int me = s->b->me;
    int64_t only = -1;
    dmi_region box;
    box_in_x(s, target, &box);
    for (int t = 0; t < s->b->profile->workers; t++) {
        int from = sender_in(s, me, t);
        int64_t regions = from >= 0 ? dmi_desc_region_count(s->x, from) : 0, i = -1;
        while (regions > 0 && (i = dmi_desc_region_next(s->x, from, &box, i)) < regions) {
            dmi_region partial;
            partial_region(s, from, i, 0, &partial);
            bool same = partial.count == target->count;
            for (int d = 0; same && d < partial.ndim; d++) {
                same = dmi_dimset_same(&partial.dim[d], &target->dim[d]);
            }
            if (partial.count == 0) {
                continue;
            }
            if (from != me || only >= 0 || !same) {
                return -1;
            }
            only = i;
        }
    }
    return only;
}

/* Has every result that this worker makes one source, its own? Then no accumulators are combined here. */
static bool each_alone(const dmi_partials *s)
{
    bool alone = !s->scatter;
    for (int64_t j = 0; alone && j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        target_region(s, s->b->me, j, 0, &target);
        alone = target.count == 0 || only_source(s, &target) >= 0;
    }
    return alone;
}

/* Elements of out that this worker makes. */
static int64_t made_here(const dmi_partials *s, int chunk)
{
    int64_t count = 0;
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        target_region(s, s->b->me, j, chunk, &target);
        count += target.count;
    }
    return count;
}

/* made: the accumulators are there. */
static void store_results(dmi_partials *s, int chunk, int64_t at, const dmi_mark made, dmi_mark done)
{
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        target_region(s, s->b->me, j, chunk, &target);
        if (target.count == 0) {
            continue;
        }
        dmi_acc_store k = {.acc = s->acc,
                           .divides = s->r->divides,
                           .ndim = target.ndim,
                           .out_dtype = s->out->dtype,
                           .out_offset = dmi_region_start(&target)};
        for (int d = 0; d < target.ndim; d++) {
            k.extent[d] = target.dim[d].count;
            k.out_stride[d] = target.stride[d];
        }
        dmi_ref refs[2] = {dmi_ref_work(s->alone ? s->partial_work : s->acc_work, DMI_READ), s->r->out->ref};
        refs[1].mode = DMI_READWRITE;
        refs[0].offset = (s->alone ? s->partial_at[only_source(s, &target)] : at) * s->elem;
        dmi_step *step = dmi_build_kernel(s->b, DMI_KERNEL_acc_store, &k, sizeof k, refs, 2, made);
        memcpy(step->scalar, s->r->scalar, sizeof step->scalar);
        dmi_mark_step(done, step);
        at += target.count;
    }
}

/* Each region of out gets its addends from one replica of x, so every element counts once. The order of the
 * senders depends only on the region of out, so replicas of out agree to the last bit. In a round, grants come
 * before pushes, and kernels that wait for arrivals come last. */
static void collect(dmi_partials *s, int chunk, int64_t at, const dmi_mark summed, dmi_mark added)
{
    int workers = s->b->profile->workers, me = s->b->me;
    for (int t = 0; t < workers && !s->b->failed; t++) {
        dmi_build_round(s->b);
        int from = sender_in(s, me, t);
        if (from >= 0 && !s->alone) {
            each_share(s, from, me, chunk, at, from == me ? summed : NULL);
        }
        for (int to = 0; to < workers; to++) {
            if (to != me && sender_in(s, to, t) == me) {
                each_share(s, me, to, chunk, 0, summed);
            }
        }
        dmi_late_make(s->b, &s->late, added);
    }
}

void dmi_plan_partials(dmi_partials *s)
{
    dmi_builder *b = s->b;
    dmi_mark summed = {0}, made[DMI_MOST_CHUNKS] = {{0}};
    int64_t count = 0, at = 0;
    s->chunks = s->scatter ? dmi_segment_chunks(b->profile, s->out, s->elem) : 1;
    local_parts(s, summed);
    dmi_build_channel(b, s->channel);
    s->alone = each_alone(s);
    for (int q = 0; q < s->chunks; q++) {
        count += made_here(s, q);
    }
    if (count > 0 && !s->alone) {
        clear_accumulators(s, count);
        s->receive_work = dmi_build_work(b, 0);
    }
    for (int q = 0; q <= s->chunks && !b->failed; q++) {
        dmi_mark added = {0};
        if (q < s->chunks) {
            collect(s, q, at, summed, added);
            store_results(s, q, at, s->alone ? summed : added, made[q]);
            at += made_here(s, q);
        }
        if (s->scatter && q > 0) { /* behind the next chunk's pushes: these need not wait for a sum */
            dmi_segments_share(b, s->r->out, s->chunks, q - 1, made[q - 1]);
        }
    }
}
