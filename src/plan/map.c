/* Elementwise programs: out stays where it is; inputs come to it where they are not there already. */
#include "plan/plan.h"

#include <string.h>

dmi_value dmi_value_operand(const dmi_call *call, int operand)
{
    return (dmi_value){.desc = &call->operand[operand].desc, .ref = dmi_ref_operand(operand, DMI_READ)};
}

typedef dmi_input input;

static int64_t want_count(const void *context, int worker)
{
    return dmi_desc_region_count(((const input *)context)->out, worker);
}

/* What worker w wants of x for its region `which` of out. */
static void want_region(const void *context, int worker, int64_t which, dmi_region *want)
{
    const input *in = context;
    dmi_region out;
    dmi_desc_region(in->out, worker, which, &out);
    memset(want, 0, sizeof *want);
    want->ndim = in->x->ndim;
    want->count = 1;
    for (int d = 0; d < want->ndim; d++) {
        int od = d + out.ndim - want->ndim; /* below 0: of one element, which may have more dims */
        bool repeats = in->x->extent[d] == 1 && (od < 0 || in->out->extent[od] != 1);
        want->dim[d] = repeats ? dmi_dimset_interval(0, od < 0 || out.dim[od].count > 0) : out.dim[od];
        want->count *= want->dim[d].count;
    }
    /* a dim of out that x lacks altogether and that is empty here: nothing is wanted */
    want->count = out.count == 0 ? 0 : want->count;
}

void dmi_plan_input(dmi_builder *b, input *in, const dmi_value *value, const dmi_desc *out, dmi_mark done)
{
    *in = (input){.x = value->desc, .out = out};
    int64_t n = b->me < b->profile->workers ? want_count(in, b->me) : 0, missing = 0;
    bool all = true;
    in->in_place = dmi_build_alloc(b, (size_t)n + 1);
    for (int64_t i = 0; i < n && in->in_place; i++) {
        dmi_region want;
        want_region(in, b->me, i, &want);
        missing += want.count;
        in->in_place[i] = want.count == 0 || dmi_fetch_in_place(in->x, b->me, &want);
        all = all && in->in_place[i];
    }
    in->source = in->received = value->ref;
    if (!all) {
        in->received = dmi_ref_work(dmi_build_work(b, missing * dmi_dtype_bytes(in->x->dtype)), DMI_WRITE);
    }
    dmi_fetch fetch = {.src = in->x,
                       .src_ref = value->ref,
                       .dst_dtype = in->x->dtype,
                       .dst_ref = in->received,
                       .count = want_count,
                       .want = want_region,
                       .context = in,
                       .dense = true,
                       .skip = in->in_place};
    dmi_plan_fetch(b, &fetch, NULL, done);
    in->received.mode = DMI_READ;
}

void dmi_input_side(dmi_side *side, int64_t *stride, input *in, int me, int64_t index, const dmi_region *out)
{
    dmi_region want;
    want_region(in, me, index, &want);
    bool here = dmi_fetch_in_place(in->x, me, &want);
    if (!here) {
        dmi_region_dense(&want, in->received_elements);
    }
    in->received_elements += want.count;
    side->offset = want.count > 0 ? dmi_region_start(&want) : 0;
    side->dtype = in->x->dtype;
    for (int d = 0; d < out->ndim; d++) {
        int xd = d - (out->ndim - in->x->ndim);
        bool repeats = xd < 0 || (in->x->extent[xd] == 1 && in->out->extent[d] != 1);
        stride[d] = repeats ? 0 : want.stride[xd];
    }
    side->stride = stride;
    side->ref = here ? in->source : in->received;
}

dmi_step *dmi_build_map(dmi_builder *b, const dmi_map_program *program, int ndim, const int64_t *extent,
                        const dmi_map_places *places, const dmi_side *in, const dmi_side *out,
                        const dmi_mark after)
{
    dmi_map k = {.program = *program, .ndim = ndim, .places = places};
    dmi_ref refs[DMI_MAX_REFS];
    int sides = dmi_map_sides(program);
    memcpy(k.extent, extent, (size_t)ndim * sizeof *extent);
    for (int i = 0; i < sides; i++) {
        const dmi_side *side = i < program->inputs ? &in[i] : &out[i - program->inputs];
        k.dtype[i] = side->dtype;
        k.offset[i] = side->offset;
        memcpy(k.stride[i], side->stride, (size_t)ndim * sizeof *extent);
        refs[i] = side->ref;
        refs[i].mode = i < program->inputs ? DMI_READ : DMI_WRITE;
    }
    return dmi_build_kernel(b, DMI_KERNEL_map, &k, sizeof k, refs, sides, after);
}

const dmi_map_places *dmi_build_places(dmi_builder *b, const dmi_map_program *program, const dmi_desc *x,
                                       const dmi_region *region)
{
    bool makes = dmi_map_inputs_read(program) < program->inputs;
    dmi_map_places *places = makes ? dmi_build_alloc(b, sizeof *places) : NULL;
    if (places) {
        *places = (dmi_map_places){.ndim = region->ndim};
        for (int d = 0; d < region->ndim; d++) {
            places->index[d] = region->dim[d];
            places->extent[d] = region->dim[d].count;
            places->whole[d] = x->extent[d];
        }
    }
    return places;
}

void dmi_made_side(dmi_side *side, int64_t *stride, const dmi_map_places *places, dm_dtype dtype, dmi_ref ref)
{
    int64_t number = 1;
    *side = (dmi_side){.dtype = dtype, .stride = stride, .ref = ref};
    for (int d = places->ndim - 1; d >= 0; d--) {
        stride[d] = number;
        number *= places->extent[d];
    }
}

static void map_region(dmi_builder *b, const dmi_map_program *program, input *in, int64_t index,
                       const dmi_value *out, const dmi_mark ready)
{
    int64_t stride[DMI_MAP_INPUTS][DM_MAX_DIMS], extent[DM_MAX_DIMS];
    dmi_side side[DMI_MAP_INPUTS], to[1 + DMI_MAP_KEPT];
    dmi_region region;
    int read = dmi_map_inputs_read(program);
    dmi_desc_region(out->desc, b->me, index, &region);
    for (int i = 0; i < read; i++) {
        dmi_input_side(&side[i], stride[i], &in[i], b->me, index, &region);
    }
    const dmi_map_places *places = region.count > 0 ? dmi_build_places(b, program, out->desc, &region) : NULL;
    if (region.count == 0 || b->failed) {
        return;
    }
    for (int i = read; i < program->inputs; i++) {
        dmi_made_side(&side[i], stride[i], places, (dm_dtype)program->input_type[i], out->ref);
    }
    for (int d = 0; d < region.ndim; d++) {
        extent[d] = region.dim[d].count;
    }
    for (int k = 0; k <= program->kept; k++) {
        to[k] = (dmi_side){out[k].desc->dtype, region.stride, dmi_region_start(&region), out[k].ref};
    }
    dmi_build_map(b, program, region.ndim, extent, places, side, to, ready);
}

void dmi_plan_map(dmi_builder *b, const dmi_map_program *program, const dmi_value *in, const dmi_value *out)
{
    input side[DMI_MAP_INPUTS];
    dmi_mark ready = {0};
    for (int i = 0; i < dmi_map_inputs_read(program); i++) {
        dmi_plan_input(b, &side[i], &in[i], out->desc, ready);
    }
    int64_t regions = b->me < b->profile->workers ? dmi_desc_region_count(out->desc, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        map_region(b, program, side, i, out, ready);
    }
}

void dmi_plan_number(dmi_builder *b, const dmi_value *element, const dmi_desc *out, dmi_ref *number)
{
    input in;
    dmi_side from;
    dmi_mark ready = {0};
    dmi_map_program program;
    dmi_region region = {.count = 0};
    int64_t stride[DM_MAX_DIMS], regions = b->me < b->profile->workers ? dmi_desc_region_count(out, b->me) : 0;
    dmi_plan_input(b, &in, element, out, ready);
    for (int64_t i = 0; i < regions && region.count == 0 && !b->failed; i++) {
        dmi_desc_region(out, b->me, i, &region);
        dmi_input_side(&from, stride, &in, b->me, i, &region);
    }
    if (region.count == 0 || b->failed) {
        return;
    }
    *number = dmi_ref_work(dmi_build_work(b, sizeof(double)), DMI_READ);
    dmi_side to = {.dtype = DM_F64, .stride = stride, .ref = *number};
    dmi_convert_program(element->desc->dtype, DM_F64, &program);
    dmi_build_map(b, &program, 0, stride, NULL, &from, &to, ready);
}
