/* out = scale * (sum of x over some dims) + beta * out
 *
 * Every worker sums its own part of x into wide accumulators over the kept dims; those go to the workers that
 * hold out, which add them up in a fixed order and round once. Bytes: 8 (16 for f64) an output element and
 * contributor. */
#include "ops/common.h"

#include <string.h>

dm_status dm_sum(dm_session *session, dm_array x, const int *dims, int ndims, double scale, double beta,
                 dm_array out)
{
    dmi_call call = {.op = DMI_OP_sum, .noperand = 2, .args = {.s = {scale, beta}}};
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
    if (!dmi_dtype_is_float(out->dtype)) {
        for (int i = 0; i < 2; i++) {
            dm_status status = dmi_check_scalar(call, i ? "beta" : "scale", call->args.s[i], x->dtype);
            if (status != DM_OK) {
                return status;
            }
        }
    }
    call->args.i[0] = reduced;
    call->args.i[2] = !drop; /* out has 1 in place of the summed dims */
    call->operand[1].mode = call->args.i[1] ? DMI_WRITE : DMI_READWRITE;
    return dmi_check_overlap(call, 0, 1, false);
}

typedef struct summing {
    dmi_builder *b;
    const dmi_desc *x, *out;
    unsigned reduced;
    bool keeps;    /* out has all dims */
    int acc;       /* accumulator type */
    int64_t elem;  /* its bytes */
    dmi_late late; /* additions of this turn */
} summing;

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

/* Accumulators worker w makes from region i of x: dense, kept dims. */
static void partial_region(const summing *s, int worker, int64_t i, int64_t offset, dmi_region *part)
{
    dmi_region region;
    dmi_desc_region(s->x, worker, i, &region);
    keep_dims(&region, ~s->reduced, part);
    dmi_region_dense(part, offset);
}

static void out_region(const summing *s, int worker, int64_t i, dmi_region *kept)
{
    dmi_region region;
    dmi_desc_region(s->out, worker, i, &region);
    keep_dims(&region, s->keeps ? ~s->reduced : ~0u, kept);
}

/* The copy of accumulators as a transfer: doubles, two an accumulator for double-double. */
static void as_transfer(const summing *s, dmi_copy *copy)
{
    static const dmi_run pair = {0, 0, 0, 2};
    copy->src_dtype = copy->dst_dtype = s->acc == DMI_ACC_I64 ? DM_I64 : DM_F64;
    if (s->acc != DMI_ACC_DD) {
        return;
    }
    for (int d = 0; d < copy->ndim; d++) {
        copy->src_stride[d] *= 2;
        copy->dst_stride[d] *= 2;
    }
    copy->src_offset *= 2;
    copy->dst_offset *= 2;
    copy->count *= 2;
    copy->nrun[copy->ndim] = 1;
    copy->run[copy->ndim] = &pair;
    copy->src_stride[copy->ndim] = copy->dst_stride[copy->ndim] = 1;
    copy->ndim++;
}

/* This worker's partial sums; returns the workspace, region i's accumulators one after the other. */
static int local_sums(summing *s, dmi_mark done)
{
    int work = dmi_build_work(s->b, 0);
    int64_t offset = 0;
    for (int64_t i = 0; i < dmi_desc_region_count(s->x, s->b->me); i++) {
        dmi_region region, part;
        dmi_desc_region(s->x, s->b->me, i, &region);
        partial_region(s, s->b->me, i, offset, &part);
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
        dmi_ref refs[2] = {dmi_ref_operand(0, DMI_READ), dmi_ref_work(work, DMI_WRITE)};
        refs[1].offset = offset * s->elem;
        dmi_mark_step(done, dmi_build_kernel(s->b, DMI_STEP_REDUCE, &k, sizeof k, refs, 2, NULL));
        offset += part.count;
    }
    if (!s->b->failed) {
        s->b->plan->work_bytes[work] = offset * s->elem;
    }
    return work;
}

/* Every (part of giver, region of out at taker) pair that shares accumulators, in an order both sides walk. */
static void each_share(summing *s, int giver, int taker, int part_work, int acc_work, int landing,
                       const dmi_mark ready)
{
    int64_t part_at = 0;
    for (int64_t i = 0; i < dmi_desc_region_count(s->x, giver); i++) {
        dmi_region part, target;
        partial_region(s, giver, i, part_at, &part);
        part_at += part.count;
        int64_t acc_at = 0;
        for (int64_t j = 0; j < dmi_desc_region_count(s->out, taker) && part.count > 0; j++) {
            dmi_acc_add add = {.acc = s->acc};
            out_region(s, taker, j, &target);
            dmi_region_dense(&target, acc_at);
            acc_at += target.count;
            if (target.count == 0 || !dmi_region_copy(s->b, &part, &target, DM_F64, DM_F64, &add.geometry)) {
                continue;
            }
            dmi_ref part_ref = dmi_ref_work(part_work, DMI_READ),
                    acc_ref = dmi_ref_work(acc_work, DMI_READWRITE);
            dmi_mark here = {0};
            if (ready) {
                dmi_mark_merge(here, ready);
            }
            if (giver != taker) {
                dmi_copy moved;
                dmi_build_pack(s->b, &add.geometry, &moved);
                int64_t bytes = add.geometry.count * s->elem;
                as_transfer(s, &moved);
                if (giver == s->b->me) {
                    dmi_build_push(s->b, taker, part_ref, &moved, ready);
                    continue;
                }
                part_ref = dmi_ref_work(landing, DMI_WRITE);
                part_ref.offset = s->b->failed ? 0 : s->b->plan->work_bytes[landing];
                if (!s->b->failed) {
                    s->b->plan->work_bytes[landing] += bytes;
                }
                dmi_mark_step(here, dmi_build_expect(s->b, giver, part_ref, &moved, NULL));
                part_ref.mode = DMI_READ;
                dmi_copy packed;
                dmi_build_unpack(s->b, &add.geometry, &packed);
                add.geometry = packed;
            }
            dmi_late_kernel(s->b, &s->late, DMI_STEP_ACC_ADD, &add, sizeof add, (dmi_ref[]){part_ref, acc_ref},
                            here);
        }
    }
}

static int zero_accumulators(summing *s, int64_t count)
{
    int work = dmi_build_work(s->b, count * s->elem);
    int64_t doubles = count * s->elem / 8;
    dmi_fill k = {.kind = DMI_FILL_CONST, .dtype = DM_F64, .shape = {doubles}};
    k.region.ndim = 1; /* all bits zero is 0 for the integers too */
    k.region.dim[0] = dmi_dimset_interval(0, doubles);
    k.region.stride[0] = 1;
    k.region.count = doubles;
    dmi_ref ref = dmi_ref_work(work, DMI_WRITE);
    dmi_build_kernel(s->b, DMI_STEP_FILL, &k, sizeof k, &ref, 1, NULL);
    return work;
}

static void store_sums(summing *s, int acc_work, const dmi_mark added)
{
    int64_t at = 0;
    for (int64_t j = 0; j < dmi_desc_region_count(s->out, s->b->me); j++) {
        dmi_region target;
        out_region(s, s->b->me, j, &target);
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
        dmi_ref refs[2] = {dmi_ref_work(acc_work, DMI_READ), dmi_ref_operand(1, DMI_READWRITE)};
        refs[0].offset = at * s->elem;
        dmi_step *step = dmi_build_kernel(s->b, DMI_STEP_ACC_STORE, &k, sizeof k, refs, 2, added);
        step->scalar[0] = DMI_SCALAR_S0;
        step->scalar[1] = DMI_SCALAR_S1;
        at += target.count;
    }
}

static int first_giver(const summing *s, int taker)
{
    const dmi_layout *out = s->out->layout;
    return out->replicas > 1 && out->position[taker] >= 0 ? out->position[taker] % out->group : taker;
}

dm_status dmi_sum_plan(dmi_builder *b, const dmi_call *call)
{
    summing s = {.b = b,
                 .x = &call->operand[0].desc,
                 .out = &call->operand[1].desc,
                 .reduced = (unsigned)call->args.i[0],
                 .keeps = call->args.i[2]};
    s.acc = dmi_acc_of(s.x->dtype);
    s.elem = dmi_acc_bytes(s.acc);
    int workers = b->profile->workers, me = b->me;
    if (me >= workers) {
        return DM_OK;
    }
    dmi_mark summed = {0}, added = {0};
    int part = local_sums(&s, summed);
    int64_t count = dmi_desc_local_count(s.out, me);
    int acc = -1, landing = -1;
    if (count > 0) {
        acc = zero_accumulators(&s, count);
        landing = dmi_build_work(b, 0);
    }
    /* A worker that holds out is served by one replica of x, so that every element is counted once. The order
     * of the givers depends on the part of out only, so that copies of out come out alike to the last bit. */
    int mine = dmi_layout_replica(s.x->layout, me), serves_me = dmi_fetch_replica(s.x, me);
    for (int t = 0; t < workers && !b->failed; t++) {
        int from = (first_giver(&s, me) + t) % workers;
        if (count > 0 && dmi_layout_replica(s.x->layout, from) == serves_me) {
            each_share(&s, from, me, part, acc, landing, from == me ? summed : NULL);
        }
        for (int to = 0; to < workers; to++) {
            if (to != me && (first_giver(&s, to) + t) % workers == me && mine >= 0 &&
                dmi_fetch_replica(s.x, to) == mine) {
                each_share(&s, me, to, part, acc, landing, summed);
            }
        }
        dmi_late_make(b, &s.late, added);
    }
    if (count > 0) {
        store_sums(&s, acc, added);
    }
    return DM_OK;
}
