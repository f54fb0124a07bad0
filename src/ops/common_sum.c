#include "ops/common_sum.h"

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

/* Where in x the addends of a region of out, its kept dims, are. */
static void box_in_x(const dmi_summing *s, const dmi_region *target, dmi_region *box)
{
    int k = 0;
    memset(box, 0, sizeof *box);
    box->ndim = s->x->ndim;
    for (int d = 0; d < box->ndim; d++) {
        bool gone = s->reduced >> d & 1;
        box->dim[d] = gone ? dmi_dimset_interval(0, s->x->extent[d]) : target->dim[k];
        k += !gone;
    }
}

/* Accumulators worker w makes from region i of x: dense, kept dims. */
static void partial_region(const dmi_summing *s, int worker, int64_t i, int64_t offset, dmi_region *part)
{
    dmi_region region;
    dmi_desc_region(s->x, worker, i, &region);
    keep_dims(&region, ~s->reduced, part);
    dmi_region_dense(part, offset);
}

/* Region j of what worker w makes of out: kept dims. */
static void target_region(const dmi_summing *s, int worker, int64_t j, int piece, dmi_region *out)
{
    dmi_region region;
    if (s->scatter) {
        dmi_slice_region(s->out, worker, s->pieces, piece, &region);
    } else {
        dmi_desc_region(s->out, worker, j, &region);
    }
    keep_dims(&region, s->keeps ? ~s->reduced : ~0u, out);
}

/* The copy of accumulators as a transfer: 8 bytes each, or a run of so many. */
static void as_transfer(const dmi_summing *s, dmi_copy *copy)
{
    static const dmi_run two = {0, 0, 0, 2}, four = {0, 0, 0, 4};
    int64_t words = s->elem / 8;
    copy->src_dtype = copy->dst_dtype = dmi_acc_whole(s->acc) ? DM_I64 : DM_F64;
    if (words == 1) {
        return;
    }
    for (int d = 0; d < copy->ndim; d++) {
        copy->src_stride[d] *= words;
        copy->dst_stride[d] *= words;
    }
    copy->src_offset *= words;
    copy->dst_offset *= words;
    copy->count *= words;
    copy->nrun[copy->ndim] = 1;
    copy->run[copy->ndim] = words == 2 ? &two : &four;
    copy->src_stride[copy->ndim] = copy->dst_stride[copy->ndim] = 1;
    copy->ndim++;
}

/* This worker's partial sums, region after region. */
static void local_sums(dmi_summing *s, dmi_mark done)
{
    int64_t offset = 0, regions = dmi_desc_region_count(s->x, s->b->me);
    s->part_work = dmi_build_work(s->b, 0);
    s->part_at = dmi_build_alloc(s->b, (size_t)(regions + 1) * sizeof *s->part_at);
    for (int64_t i = 0; i < regions && !s->b->failed; i++) {
        dmi_region region, part;
        dmi_desc_region(s->x, s->b->me, i, &region);
        partial_region(s, s->b->me, i, offset, &part);
        s->part_at[i] = offset;
        if (region.count == 0) {
            continue;
        }
        dmi_reduce k = {.ndim = region.ndim,
                        .dtype = s->x->dtype,
                        .reduced = s->reduced,
                        .offset = dmi_region_start(&region)};
        for (int d = 0; d < region.ndim; d++) {
            k.extent[d] = region.dim[d].count;
            k.stride[d] = region.stride[d];
        }
        dmi_ref refs[2] = {dmi_ref_operand(0, DMI_READ), dmi_ref_work(s->part_work, DMI_WRITE)};
        refs[1].offset = offset * s->elem;
        dmi_mark_step(done, dmi_build_kernel(s->b, DMI_KERNEL_reduce, &k, sizeof k, refs, 2, NULL));
        offset += part.count;
    }
    if (!s->b->failed) {
        s->b->plan->work_bytes[s->part_work] = offset * s->elem;
    }
}

/* Accumulators that go from giver to taker (or stay), to be added there. */
static void share(dmi_summing *s, int giver, int taker, dmi_acc_add *add, const dmi_mark ready)
{
    dmi_ref part = dmi_ref_work(s->part_work, DMI_READ), sum = dmi_ref_work(s->acc_work, DMI_READWRITE);
    dmi_mark here = {0};
    if (ready) {
        dmi_mark_merge(here, ready);
    }
    if (giver != taker) {
        dmi_copy moved;
        dmi_build_pack(s->b, &add->geometry, &moved);
        int64_t bytes = add->geometry.count * s->elem;
        as_transfer(s, &moved);
        if (giver == s->b->me) {
            dmi_build_push(s->b, taker, part, &moved, ready);
            return;
        }
        part = dmi_ref_work(s->landing, DMI_WRITE);
        part.offset = s->b->failed ? 0 : s->b->plan->work_bytes[s->landing];
        if (!s->b->failed) {
            s->b->plan->work_bytes[s->landing] += bytes;
        }
        dmi_mark_step(here, dmi_build_expect(s->b, giver, part, &moved, NULL));
        part.mode = DMI_READ;
        dmi_copy packed;
        dmi_build_unpack(s->b, &add->geometry, &packed);
        add->geometry = packed;
    }
    dmi_late_kernel(s->b, &s->late, DMI_KERNEL_acc_add, add, sizeof *add, (dmi_ref[]){part, sum}, here);
}

/* Every (region that taker makes of out, part of giver) pair that shares accumulators, in an order both sides
 * walk; of the giver's regions only those that may. at: where the taker's accumulators begin. */
static void each_share(dmi_summing *s, int giver, int taker, int piece, int64_t at, const dmi_mark ready)
{
    int64_t parts = dmi_desc_region_count(s->x, giver);
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, taker) && !s->b->failed; j++) {
        dmi_region part, target, box;
        target_region(s, taker, j, piece, &target);
        dmi_region_dense(&target, at);
        at += target.count;
        if (target.count == 0) {
            continue;
        }
        box_in_x(s, &target, &box);
        int64_t i = -1;
        while ((i = dmi_desc_region_next(s->x, giver, &box, i)) < parts) {
            dmi_acc_add add = {.acc = s->acc};
            partial_region(s, giver, i, giver == s->b->me ? s->part_at[i] : 0, &part);
            if (part.count > 0 && dmi_region_copy(s->b, &part, &target, DM_F64, DM_F64, &add.geometry)) {
                share(s, giver, taker, &add, ready);
            }
        }
    }
}

static void zero_accumulators(dmi_summing *s, int64_t count)
{
    s->acc_work = dmi_build_work(s->b, count * s->elem);
    int64_t doubles = count * s->elem / 8;
    dmi_fill k = {.kind = DMI_FILL_CONST, .dtype = DM_F64, .shape = {doubles}};
    k.region.ndim = 1; /* all bits zero is 0 for the integers too */
    k.region.dim[0] = dmi_dimset_interval(0, doubles);
    k.region.stride[0] = 1;
    k.region.count = doubles;
    dmi_ref ref = dmi_ref_work(s->acc_work, DMI_WRITE);
    dmi_build_kernel(s->b, DMI_KERNEL_fill, &k, sizeof k, &ref, 1, NULL)->scalar[0] = DMI_SCALAR_ZERO;
}

static void store_sums(dmi_summing *s, int piece, int64_t at, const dmi_mark added, dmi_mark done)
{
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        target_region(s, s->b->me, j, piece, &target);
        if (target.count == 0) {
            continue;
        }
        dmi_acc_store k = {.acc = s->acc,
                           .ndim = target.ndim,
                           .out_dtype = s->out->dtype,
                           .out_offset = dmi_region_start(&target)};
        for (int d = 0; d < target.ndim; d++) {
            k.extent[d] = target.dim[d].count;
            k.out_stride[d] = target.stride[d];
        }
        dmi_ref refs[2] = {dmi_ref_work(s->acc_work, DMI_READ), dmi_ref_operand(1, DMI_READWRITE)};
        refs[0].offset = at * s->elem;
        dmi_step *step = dmi_build_kernel(s->b, DMI_KERNEL_acc_store, &k, sizeof k, refs, 2, added);
        step->scalar[0] = DMI_SCALAR_S0;
        step->scalar[1] = DMI_SCALAR_S1;
        dmi_mark_step(done, step);
        at += target.count;
    }
}

static int first_giver(const dmi_summing *s, int taker)
{
    const dmi_layout *out = s->out->layout;
    return out->replicas > 1 && out->position[taker] >= 0 ? out->position[taker] % out->group : taker;
}

/* Elements of out that this worker makes. */
static int64_t made_here(const dmi_summing *s, int piece)
{
    int64_t count = 0;
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        target_region(s, s->b->me, j, piece, &target);
        count += target.count;
    }
    return count;
}

/* A worker that makes a part of out is served by one replica of x, so that every element is counted once. The
 * order of the givers depends on the part of out only, so that copies of out that are not shared come out alike
 * to the last bit, too. Grants come before the pushes of a turn, what waits for them after it. */
static void collect(dmi_summing *s, int piece, int64_t at, const dmi_mark summed, dmi_mark added)
{
    int workers = s->b->profile->workers, me = s->b->me;
    int mine = dmi_layout_replica(s->x->layout, me), serves_me = dmi_fetch_replica(s->x, me);
    for (int t = 0; t < workers && !s->b->failed; t++) {
        dmi_build_turn(s->b);
        int from = (first_giver(s, me) + t) % workers;
        if (dmi_layout_replica(s->x->layout, from) == serves_me) {
            each_share(s, from, me, piece, at, from == me ? summed : NULL);
        }
        for (int to = 0; to < workers; to++) {
            if (to != me && (first_giver(s, to) + t) % workers == me && mine >= 0 &&
                dmi_fetch_replica(s->x, to) == mine) {
                each_share(s, me, to, piece, 0, summed);
            }
        }
        dmi_late_make(s->b, &s->late, added);
    }
}

void dmi_sum_parts(dmi_summing *s)
{
    dmi_builder *b = s->b;
    dmi_mark summed = {0}, made[DMI_MOST_PIECES] = {{0}};
    int64_t count = 0, at = 0;
    s->pieces = s->scatter ? dmi_slice_pieces(b->profile, s->out, s->elem) : 1;
    local_sums(s, summed);
    for (int q = 0; q < s->pieces; q++) {
        count += made_here(s, q);
    }
    if (count > 0) {
        zero_accumulators(s, count);
        s->landing = dmi_build_work(b, 0);
    }
    for (int q = 0; q <= s->pieces && !b->failed; q++) {
        dmi_mark added = {0};
        if (q < s->pieces) {
            collect(s, q, at, summed, added);
            store_sums(s, q, at, added, made[q]);
            at += made_here(s, q);
        }
        if (s->scatter && q > 0) { /* behind the next piece's pushes: these need not wait for a sum */
            dmi_slices_share(b, s->out, 1, s->pieces, q - 1, made[q - 1]);
        }
    }
}
