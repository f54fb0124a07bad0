/* dst = src, repeated along the dims in which src has 1 or which it lacks. Each worker fetches every element of
 * src that it needs once, and repeats it as it writes. */
#include "ops/copy_parts.h"

#include <string.h>

typedef struct spread {
    const dmi_desc *src, *dst;
} spread;

static bool repeats(const spread *s, int dim) /* of dst */
{
    int d = dim - (s->dst->ndim - s->src->ndim);
    return d < 0 || (s->src->extent[d] == 1 && s->dst->extent[dim] != 1);
}

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(((const spread *)context)->dst, worker);
}

/* The region of src that region `which` of worker w's shard of dst needs. */
static void want_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const spread *s = context;
    dmi_region out;
    dmi_desc_region(s->dst, worker, which, &out);
    memset(want, 0, sizeof *want);
    want->ndim = s->src->ndim;
    want->count = out.count > 0;
    for (int d = 0; d < want->ndim; d++) {
        int dim = d + s->dst->ndim - s->src->ndim;
        want->dim[d] = repeats(s, dim) ? dmi_dimset_interval(0, out.count > 0) : out.dim[dim];
        want->count *= want->dim[d].count;
    }
}

/* One kernel: writes region `out` from its elements of src, with the memory of `want`. */
static void repeat(dmi_builder *b, const spread *s, const dmi_region *out, const dmi_region *want,
                   dm_dtype dtype, dmi_ref src, const dmi_mark ready)
{
    dmi_copy copy = {.ndim = out->ndim,
                     .src_dtype = dtype,
                     .dst_dtype = s->dst->dtype,
                     .count = out->count,
                     .src_offset = dmi_region_start(want),
                     .dst_offset = dmi_region_start(out)};
    dmi_run *run = dmi_build_alloc(b, DM_MAX_DIMS * sizeof *run);
    for (int d = 0; d < out->ndim && run; d++) {
        run[d] = (dmi_run){.len = out->dim[d].count};
        copy.run[d] = &run[d];
        copy.nrun[d] = 1;
        copy.dst_stride[d] = out->stride[d];
        copy.src_stride[d] = repeats(s, d) ? 0 : want->stride[d - (s->dst->ndim - s->src->ndim)];
    }
    dmi_ref refs[2] = {src, dmi_ref_operand(1, DMI_WRITE)};
    dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, ready);
}

dm_status dmi_plan_broadcast(dmi_builder *b, const dmi_desc *src, const dmi_desc *dst)
{
    spread s = {src, dst};
    int64_t n = b->me < b->profile->workers ? want_count(&s, b->me) : 0, missing = 0, placed = 0;
    dm_dtype narrow = dmi_dtype_bytes(dst->dtype) < dmi_dtype_bytes(src->dtype) ? dst->dtype : src->dtype;
    dmi_ref own = dmi_ref_operand(0, DMI_READ), brought = own;
    bool *in_place = dmi_build_alloc(b, (size_t)n + 1), all = true;
    dmi_mark ready = {0};
    for (int64_t i = 0; i < n && in_place; i++) {
        dmi_region want;
        want_region(&s, b->me, i, &want);
        missing += want.count;
        in_place[i] = want.count == 0 || dmi_fetch_in_place(src, b->me, &want);
        all = all && in_place[i];
    }
    if (!all) {
        brought = dmi_ref_work(dmi_build_work(b, missing * dmi_dtype_bytes(narrow)), DMI_WRITE);
    }
    dmi_fetch fetch = {.src = src,
                       .src_ref = own,
                       .dst_dtype = narrow,
                       .dst_ref = brought,
                       .count = want_count,
                       .want = want_region,
                       .context = &s,
                       .dense = true,
                       .skip = in_place};
    dmi_plan_fetch(b, &fetch, NULL, ready);
    brought.mode = DMI_READ;
    for (int64_t i = 0; i < n && !b->failed; i++) {
        dmi_region out, want;
        dmi_desc_region(dst, b->me, i, &out);
        want_region(&s, b->me, i, &want);
        if (!in_place[i]) {
            dmi_region_dense(&want, placed);
        } else {
            in_place[i] = dmi_fetch_in_place(src, b->me, &want); /* once more, for where it lies */
        }
        placed += want.count;
        if (out.count > 0) {
            repeat(b, &s, &out, &want, in_place[i] ? src->dtype : narrow, in_place[i] ? own : brought, ready);
        }
    }
    return DM_OK;
}
