/* dst = src: copy, conversion, remap, repetition and permutation of dims in one */
#include "ops/copy_parts.h"
#include "plan/reduce.h"

#include <string.h>

static dm_status submit(dm_session *session, dm_array src, const int *perm, int ndim, dm_array dst)
{
    dmi_call call = {.op = DMI_OP_copy, .noperand = 2};
    call.args.i[0] = ndim; /* of perm; 0: the dims as they are */
    for (int d = 0; d < ndim; d++) {
        call.args.i[1 + d] = perm[d];
    }
    return dmi_call_submit(session, &call, (dm_array[]){src, dst});
}

dm_status dmi_copy_into(dm_session *session, dm_array src, dm_array dst, int dim)
{
    dmi_call call = {.op = DMI_OP_copy, .noperand = 2, .args = {.i = {[DMI_COPY_ADDED] = 1 + dim}}};
    return dmi_call_submit(session, &call, (dm_array[]){src, dst});
}

dm_status dm_copy(dm_session *session, dm_array src, dm_array dst)
{
    return submit(session, src, NULL, 0, dst);
}

dm_status dm_transpose(dm_session *session, dm_array src, dm_array dst)
{
    return submit(session, src, (int[]){1, 0}, 2, dst);
}

dm_status dm_permute(dm_session *session, dm_array src, const int *perm, dm_array dst)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(session, src, &info);
    if (status == DM_OK && !perm) {
        status = dmi_fail(DM_ERR_ARG, "permute: perm is NULL");
    }
    return status == DM_OK ? submit(session, src, perm, info.ndim, dst) : status;
}

dm_status dmi_copy_check(dmi_call *call)
{
    const dmi_desc *src = &call->operand[0].desc, *dst = &call->operand[1].desc;
    int n = call->args.i[0];
    const int32_t *perm = &call->args.i[1];
    if (call->args.i[DMI_COPY_ADDED] > 0) { /* the caller has looked at the shapes */
        return dmi_check_overlap(call, 0, 1, false);
    }
    if (n == 0) {
        dm_status status = dmi_check_broadcast(call, 0, 1);
        return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
    }
    if (src->ndim != n || dst->ndim != n) {
        return dmi_fail(DM_ERR_SHAPE, "%s: src has %d dims and dst %d, but %d are permuted",
                        dmi_call_name(call), src->ndim, dst->ndim, n);
    }
    unsigned seen = 0;
    for (int d = 0; d < n; d++) {
        if (perm[d] < 0 || perm[d] >= n || (seen >> perm[d] & 1)) {
            return dmi_fail(DM_ERR_ARG, "permute: perm[%d] is %d; perm must name each of the %d dims once", d,
                            perm[d], n);
        }
        seen |= 1u << perm[d];
    }
    for (int d = 0; d < n; d++) {
        if (dst->extent[d] != src->extent[perm[d]]) {
            char s[192], t[192];
            return dmi_fail(DM_ERR_SHAPE, "%s: src is %s and dst %s: dim %d of dst must be dim %d of src",
                            dmi_call_name(call), dmi_shape_text(src, s), dmi_shape_text(dst, t), d, perm[d]);
        }
    }
    return dmi_check_overlap(call, 0, 1, false);
}

typedef struct target {
    const dmi_desc *dst;
    int perm[DM_MAX_DIMS]; /* dim of src for each of dst; -1: src lacks it, and it has one index */
} target;

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(((const target *)context)->dst, worker);
}

static void want_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const target *t = context;
    dmi_region out;
    dmi_desc_region(t->dst, worker, which, &out);
    *want = out;
    for (int d = 0; d < out.ndim; d++) {
        if (t->perm[d] < 0) {
            want->ndim--;
            want->offset += out.count > 0 ? dmi_dimset_first_position(&out.dim[d]) * out.stride[d] : 0;
        } else {
            want->dim[t->perm[d]] = out.dim[d];
            want->stride[t->perm[d]] = out.stride[d];
        }
    }
}

dm_status dmi_plan_copy(dmi_builder *b, const dmi_desc *src, dmi_ref src_ref, const dmi_desc *dst,
                        dmi_ref dst_ref, const int *perm, const dmi_mark after, dmi_mark done)
{
    target t = {.dst = dst};
    for (int d = 0; d < dst->ndim; d++) {
        t.perm[d] = perm ? perm[d] : d;
    }
    dmi_fetch fetch = {.src = src,
                       .src_ref = src_ref,
                       .dst_dtype = dst->dtype,
                       .dst_ref = dst_ref,
                       .count = want_count,
                       .want = want_region,
                       .context = &t};
    dmi_plan_fetch(b, &fetch, after, done);
    return DM_OK;
}

/* Is every element where it is wanted, as far as the layouts say so at once? */
static bool is_in_place(const dmi_call *call)
{
    const dmi_desc *src = &call->operand[0].desc, *dst = &call->operand[1].desc;
    bool same =
        call->args.i[0] == 0 && call->args.i[DMI_COPY_ADDED] == 0 && dmi_layout_equal(src->layout, dst->layout);
    for (int d = 0; same && d < src->ndim; d++) {
        same = src->lo[d] == dst->lo[d] && src->extent[d] == dst->extent[d] && src->skip[d] == dst->skip[d];
    }
    return same;
}

/* A large copy has the lanes of large reductions, so that what comes after it need not wait for it. By what the
 * worker has of dst that has most, for both ends of a transfer must choose alike. In a program the order of the
 * calls does that (plan/turns.c); on GPUs it is not measured (adr/0087). */
static int channel_of(const dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *src = &call->operand[0].desc, *dst = &call->operand[1].desc;
    const int64_t bytes = DMI_MIN(dmi_dtype_bytes(src->dtype), dmi_dtype_bytes(dst->dtype));
    bool large = false;
    if (b->profile->gpu || b->in_program || is_in_place(call)) {
        return 0;
    }
    for (int w = 0; w < b->profile->workers && !large; w++) {
        large = dmi_is_large(b->profile, (double)(dmi_desc_local_count(dst, w) * bytes));
    }
    return large;
}

static dm_status plan_any(dmi_builder *b, const dmi_call *call)
{
    const dmi_operand *src = &call->operand[0], *dst = &call->operand[1];
    int perm[DM_MAX_DIMS];
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        perm[d] = call->args.i[0] ? call->args.i[1 + d] : d;
    }
    if (call->args.i[DMI_COPY_ADDED] > 0) {
        for (int d = 0; d < dst->desc.ndim; d++) {
            int added = call->args.i[DMI_COPY_ADDED] - 1;
            perm[d] = d == added ? -1 : d - (d > added);
        }
        dmi_mark done = {0};
        return dmi_plan_copy(b, &src->desc, dmi_ref_operand(0, DMI_READ), &dst->desc,
                             dmi_ref_operand(1, DMI_WRITE), perm, NULL, done);
    }
    if (dmi_operands_overlap(src, dst) == DMI_SAME && call->args.i[0] == 0) {
        return DM_OK; /* the same elements: nothing to do */
    }
    bool same_shape = src->desc.ndim == dst->desc.ndim &&
                      memcmp(src->desc.extent, dst->desc.extent, (size_t)src->desc.ndim * sizeof(int64_t)) == 0;
    if (!same_shape && call->args.i[0] == 0) {
        return dmi_plan_broadcast(b, &src->desc, &dst->desc);
    }
    dmi_mark done = {0};
    return dmi_plan_copy(b, &src->desc, dmi_ref_operand(0, DMI_READ), &dst->desc, dmi_ref_operand(1, DMI_WRITE),
                         perm, NULL, done);
}

dm_status dmi_copy_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_build_channel(b, channel_of(b, call));
    const dm_status status = plan_any(b, call);
    dmi_build_channel(b, 0);
    return status;
}
