/* h = momentum h + rate (scale g + decay w); w = w - h */
#include "ops/by.h"
#include "ops/common.h"
#include "ops/messages.h"
#include "plan/places.h"

#include <string.h>

enum { GRADIENT, HISTORY, WEIGHTS, RATE };
enum { DECAYS, L1 }; /* places in args.i */

dm_status dm_momentum_step(dm_session *session, double scale, double decay, int l1, double momentum,
                           dm_factor rate, dm_array gradient, dm_array history, dm_array weights)
{
    dmi_session *s = NULL;
    const dmi_desc *element = NULL;
    dm_array arrays[] = {gradient, history, weights, rate.array};
    dmi_call call = {.op = DMI_OP_momentum, .noperand = RATE, .args = {.i = {decay != 0, l1 != 0}}};
    dm_status status = dmi_enter(session, &s);
    status = status == DM_OK ? dmi_factor_check(s, "rate", &rate, DM_F64, &element) : status;
    if (status != DM_OK) {
        return status;
    }
    call.noperand += element != NULL;
    call.numbers = DMI_MOMENTUM_NUMBERS;
    call.number[DMI_MOMENTUM_SCALE] = dmi_number_of(scale);
    call.number[DMI_MOMENTUM_DECAY] = dmi_number_of(decay);
    call.number[DMI_MOMENTUM_MOMENTUM] = dmi_number_of(momentum);
    call.number[DMI_MOMENTUM_RATE] = dmi_number_of(rate.value);
    return dmi_call_submit(session, &call, arrays);
}

/* Does the history lie as the weights do, so that both are changed by whoever holds them? */
static bool lie_alike(const dmi_desc *a, const dmi_desc *b)
{
    return (a->layout == b->layout || dmi_layout_equal(a->layout, b->layout)) &&
           memcmp(a->lo, b->lo, (size_t)a->ndim * sizeof *a->lo) == 0 &&
           memcmp(a->skip, b->skip, (size_t)a->ndim * sizeof *a->skip) == 0;
}

dm_status dmi_momentum_check(dmi_call *call)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    dm_status status = DM_OK;
    for (int i = GRADIENT; i <= HISTORY && status == DM_OK; i++) {
        const dm_dtype type = call->operand[i].desc.dtype;
        status = dmi_check_same_shape(call, i, WEIGHTS);
        if (status == DM_OK && type != weights->dtype) {
            status = dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s, but weights has %s", dmi_call_name(call),
                              dmi_operand_name(call, i), dmi_dtype_name(type), dmi_dtype_name(weights->dtype));
        }
        status = status == DM_OK ? dmi_check_overlap(call, i, WEIGHTS, false) : status;
    }
    status = status == DM_OK ? dmi_check_overlap(call, GRADIENT, HISTORY, false) : status;
    for (int i = HISTORY; i <= WEIGHTS && status == DM_OK && call->noperand > RATE; i++) {
        status = dmi_check_element(call, RATE, i);
    }
    if (status == DM_OK && !lie_alike(&call->operand[HISTORY].desc, weights)) {
        status = dmi_fail(DM_ERR_LAYOUT, "%s: history does not lie as weights does", dmi_call_name(call));
    }
    return status;
}

/* The step of a region of the weights. */
static void step_region(dmi_builder *b, const dmi_call *call, dmi_input *in, int64_t index,
                        const dmi_mark ready)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    bool element = call->noperand > RATE;
    dmi_momentum k = {.dtype = weights->dtype, .decays = call->args.i[DECAYS], .l1 = call->args.i[L1]};
    dmi_ref refs[4];
    dmi_side side[2];
    dmi_region region;
    int64_t unused[DM_MAX_DIMS];
    dmi_desc_region(weights, b->me, index, &region);
    dmi_input_side(&side[0], k.stride[0], &in[0], b->me, index, &region);
    if (element) {
        dmi_input_side(&side[1], unused, &in[1], b->me, index, &region);
        k.rate = side[1].dtype;
        k.rate_offset = side[1].offset;
        refs[RATE] = side[1].ref;
        refs[RATE].mode = DMI_READ;
    }
    if (region.count == 0 || b->failed) {
        return;
    }
    k.ndim = region.ndim;
    k.offset[0] = side[0].offset;
    k.offset[1] = dmi_region_start(&region);
    for (int d = 0; d < region.ndim; d++) {
        k.extent[d] = region.dim[d].count;
        k.stride[1][d] = region.stride[d];
    }
    refs[GRADIENT] = side[0].ref;
    refs[GRADIENT].mode = DMI_READ;
    refs[HISTORY] = dmi_ref_operand(HISTORY, DMI_READWRITE);
    refs[WEIGHTS] = dmi_ref_operand(WEIGHTS, DMI_READWRITE);
    dmi_build_kernel(b, DMI_KERNEL_momentum, &k, sizeof k, refs, element ? 4 : 3, ready);
}

dm_status dmi_momentum_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    const dmi_value gradient = dmi_value_operand(call, GRADIENT), rate = dmi_value_operand(call, RATE);
    dmi_input in[2];
    dmi_mark ready = {0};
    dmi_plan_input(b, &in[0], &gradient, weights, ready);
    if (call->noperand > RATE) {
        dmi_plan_input(b, &in[1], &rate, weights, ready);
    }
    int64_t regions = b->me < b->profile->workers ? dmi_desc_region_count(weights, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        step_region(b, call, in, i, ready);
    }
    return DM_OK;
}
