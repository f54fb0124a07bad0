/* Elementwise ops: the output stays where it is; inputs come to it where they are not there already. */
#include "ops/common.h"

#include <string.h>

typedef struct input {
    const dmi_desc *x, *out;
    dmi_ref ref;    /* operand, or the landing workspace */
    bool *in_place; /* a region of out each */
} input;

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(((const input *)context)->out, worker);
}

static void want_sets(const input *in, const dmi_region *out, dmi_region *want)
{
    memset(want, 0, sizeof *want);
    want->ndim = in->x->ndim;
    want->count = 1;
    for (int d = 0; d < want->ndim; d++) {
        int od = d + out->ndim - want->ndim;
        bool repeats = in->x->extent[d] == 1 && in->out->extent[od] != 1;
        want->dim[d] = repeats ? dmi_dimset_interval(0, out->dim[od].count > 0) : out->dim[od];
        want->count *= want->dim[d].count;
    }
    /* a dim of out that x lacks altogether and that is empty here: nothing is wanted */
    want->count = out->count == 0 ? 0 : want->count;
}

/* What worker w wants of x for its region `which` of out. */
static void want_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const input *in = context;
    dmi_region out;
    dmi_desc_region(in->out, worker, which, &out);
    want_sets(in, &out, want);
}

/* The same with the memory where it lies here; called for one region after the other, which `offset` counts. */
static void own_region(const input *in, int me, int64_t which, int64_t *offset, dmi_region *want)
{
    want_region(in, me, which, want);
    if (!dmi_fetch_in_place(in->x, me, want)) {
        dmi_region_dense(want, *offset);
    }
    *offset += want->count;
}

static void bring(dmi_builder *b, input *in, int operand, dmi_mark done)
{
    int64_t n = b->me < b->profile->workers ? want_count(in, b->me) : 0, landing = 0;
    bool all = true;
    in->in_place = dmi_build_alloc(b, (size_t)n + 1);
    for (int64_t i = 0; i < n && in->in_place; i++) {
        dmi_region want;
        want_region(in, b->me, i, &want);
        landing += want.count;
        in->in_place[i] = want.count == 0 || dmi_fetch_in_place(in->x, b->me, &want);
        all = all && in->in_place[i];
    }
    in->ref = dmi_ref_operand(operand, DMI_READ);
    dmi_ref landing_ref = in->ref;
    if (!all) {
        landing_ref = dmi_ref_work(dmi_build_work(b, landing * dmi_dtype_bytes(in->x->dtype)), DMI_WRITE);
        in->ref = landing_ref;
        in->ref.mode = DMI_READ;
    }
    dmi_fetch fetch = {.src = in->x,
                       .src_ref = dmi_ref_operand(operand, DMI_READ),
                       .dst_dtype = in->x->dtype,
                       .dst_ref = landing_ref,
                       .count = want_count,
                       .want = want_region,
                       .context = in,
                       .dense = true,
                       .skip = in->in_place};
    dmi_plan_fetch(b, &fetch, NULL, done);
}

static void bind_side(const input *in, int me, int64_t which, int64_t *landing, const dmi_region *out,
                      int operand, int64_t stride[DM_MAX_DIMS], int64_t *offset, dm_dtype *dtype, dmi_ref *ref)
{
    dmi_region want;
    own_region(in, me, which, landing, &want);
    *offset = want.count > 0 ? dmi_region_start(&want) : 0;
    *dtype = in->x->dtype;
    for (int d = 0; d < out->ndim; d++) {
        int xd = d - (out->ndim - in->x->ndim);
        bool repeats = xd < 0 || (in->x->extent[xd] == 1 && in->out->extent[d] != 1);
        stride[d] = repeats ? 0 : want.stride[xd];
    }
    *ref = in->in_place[which] ? dmi_ref_operand(operand, DMI_READ) : in->ref;
}

dm_status dmi_plan_ewise(dmi_builder *b, const dmi_call *call, int ewise_op, int a, int bb, int out)
{
    const dmi_desc *od = &call->operand[out].desc;
    int number[2] = {a, bb};
    input in[2] = {{0}, {0}};
    bool used[2];
    dmi_mark ready = {0};
    dm_dtype type[2];
    for (int i = 0; i < 2; i++) {
        used[i] = number[i] >= 0 && call->operand[number[i]].mode != 0;
        type[i] =
            call->operand[number[i] >= 0 ? number[i] : a].desc.dtype; /* counts even where nothing is read */
        if (used[i]) {
            in[i] = (input){.x = &call->operand[number[i]].desc, .out = od};
            bring(b, &in[i], number[i], ready);
        }
    }
    int64_t landing[2] = {0, 0};
    bool zero = ewise_op != DMI_EW_ADD && !used[0]; /* alpha == 0: nothing is read, zeros are written */
    int64_t regions = b->me < b->profile->workers ? dmi_desc_region_count(od, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        dmi_region region;
        dmi_desc_region(od, b->me, i, &region);
        dmi_ewise k = {.op = zero ? DMI_EW_ADD : ewise_op,
                       .ndim = region.ndim,
                       .a_dtype = type[0],
                       .b_dtype = type[1],
                       .out_dtype = od->dtype};
        dmi_ref refs[3] = {dmi_ref_operand(out, DMI_READ), dmi_ref_operand(out, DMI_WRITE),
                           dmi_ref_operand(out, DMI_READ)};
        if (used[0]) {
            bind_side(&in[0], b->me, i, &landing[0], &region, a, k.a_stride, &k.a_offset, &k.a_dtype, &refs[0]);
        }
        if (used[1]) {
            bind_side(&in[1], b->me, i, &landing[1], &region, bb, k.b_stride, &k.b_offset, &k.b_dtype,
                      &refs[2]);
        }
        if (region.count == 0) {
            continue;
        }
        k.out_offset = dmi_region_start(&region);
        for (int d = 0; d < region.ndim; d++) {
            k.extent[d] = region.dim[d].count;
            k.out_stride[d] = region.stride[d];
        }
        dmi_step *step =
            dmi_build_kernel(b, DMI_KERNEL_ewise, &k, sizeof k, refs, bb >= 0 || zero ? 3 : 2, ready);
        step->scalar[0] = DMI_SCALAR_S0;
        step->scalar[1] = bb >= 0 && !zero ? DMI_SCALAR_S1 : DMI_SCALAR_ZERO;
    }
    return DM_OK;
}
