/* h = momentum h + rate (scale g + decay w); w = w - h; and where it is asked for a copy of w, rounded */
#include "ops/by.h"
#include "ops/messages.h"
#include "ops/momentum_parts.h"
#include "plan/places.h"

#include <string.h>

enum { GRADIENT = DMI_MOMENTUM_GRADIENT, HISTORY, WEIGHTS, BEHIND };
enum { DECAYS, L1 }; /* places in args.i */

/* Numbers of operands; 0: the call has none. */
static int copy_of(const dmi_call *call)
{
    return call->op == DMI_OP_momentum_rounded ? BEHIND : 0;
}
static int rate_of(const dmi_call *call)
{
    const int rate = copy_of(call) ? BEHIND + 1 : BEHIND;
    return call->noperand > rate ? rate : 0;
}

dm_status dmi_momentum_submit(dm_session *session, int op, const dmi_momentum_step *step)
{
    dmi_session *s = NULL;
    const dmi_desc *element = NULL;
    dm_factor rate = step->rate;
    dm_array arrays[BEHIND + 2];
    dmi_call call = {.op = op, .noperand = BEHIND, .args = {.i = {step->decay != 0, step->l1 != 0}}};
    memcpy(arrays, step->array, BEHIND * sizeof *arrays);
    if (copy_of(&call)) {
        arrays[call.noperand++] = step->copy;
    }
    dm_status status = dmi_enter(session, &s);
    status = status == DM_OK ? dmi_factor_check(s, "rate", &rate, DM_F64, &element) : status;
    if (status != DM_OK) {
        return status;
    }
    arrays[call.noperand] = rate.array;
    call.noperand += element != NULL;
    call.numbers = DMI_MOMENTUM_NUMBERS;
    call.number[DMI_MOMENTUM_SCALE] = dmi_number_of(step->scale);
    call.number[DMI_MOMENTUM_DECAY] = dmi_number_of(step->decay);
    call.number[DMI_MOMENTUM_MOMENTUM] = dmi_number_of(step->momentum);
    call.number[DMI_MOMENTUM_RATE] = dmi_number_of(rate.value);
    return dmi_call_submit(session, &call, arrays);
}

dm_status dm_momentum_step(dm_session *session, double scale, double decay, int l1, double momentum,
                           dm_factor rate, dm_array gradient, dm_array history, dm_array weights)
{
    return dmi_momentum_submit(
        session, DMI_OP_momentum,
        &(dmi_momentum_step){scale, decay, momentum, l1, rate, {gradient, history, weights}, DM_NO_ARRAY});
}

/* Do both lie alike, so that they are changed by whoever holds them? */
static bool lie_alike(const dmi_desc *a, const dmi_desc *b)
{
    return (a->layout == b->layout || dmi_layout_equal(a->layout, b->layout)) &&
           memcmp(a->lo, b->lo, (size_t)a->ndim * sizeof *a->lo) == 0 &&
           memcmp(a->skip, b->skip, (size_t)a->ndim * sizeof *a->skip) == 0;
}

/* The copy: of 16 bits, of weights of f32, as which it lies. */
static dm_status check_copy(dmi_call *call, int copy)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc, *to = &call->operand[copy].desc;
    dm_status status = dmi_check_same_shape(call, copy, WEIGHTS);
    if (status == DM_OK && weights->dtype != DM_F32) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: weights has dtype %s; with a copy it must be f32",
                          dmi_call_name(call), dmi_dtype_name(weights->dtype));
    }
    for (int i = GRADIENT; i <= WEIGHTS && status == DM_OK; i++) {
        status = dmi_check_overlap(call, i, copy, false);
    }
    return status == DM_OK && !lie_alike(to, weights)
               ? dmi_fail(DM_ERR_LAYOUT, "%s: %s does not lie as weights does", dmi_call_name(call),
                          dmi_operand_name(call, copy))
               : status;
}

dm_status dmi_momentum_check(dmi_call *call)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    const int copy = copy_of(call), rate = rate_of(call);
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
    for (int i = HISTORY; i < rate && status == DM_OK; i++) {
        status = dmi_check_element(call, rate, i);
    }
    if (status == DM_OK && !lie_alike(&call->operand[HISTORY].desc, weights)) {
        status = dmi_fail(DM_ERR_LAYOUT, "%s: history does not lie as weights does", dmi_call_name(call));
    }
    return status == DM_OK && copy ? check_copy(call, copy) : status;
}

/* The step of a region of the weights. */
static void step_region(dmi_builder *b, const dmi_call *call, dmi_input *in, int64_t index,
                        const dmi_mark ready)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    const int copy = copy_of(call), rate = rate_of(call);
    dmi_momentum k = {.dtype = weights->dtype, .decays = call->args.i[DECAYS], .l1 = call->args.i[L1]};
    dmi_ref refs[5];
    int count = BEHIND;
    dmi_side side[2];
    dmi_region region;
    int64_t unused[DM_MAX_DIMS];
    dmi_desc_region(weights, b->me, index, &region);
    dmi_input_side(&side[0], k.stride[0], &in[0], b->me, index, &region);
    if (rate) {
        dmi_input_side(&side[1], unused, &in[1], b->me, index, &region);
        k.rate = side[1].dtype;
        k.rate_offset = side[1].offset;
        refs[count] = side[1].ref;
        refs[count++].mode = DMI_READ;
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
    if (copy) {
        k.rounded = call->operand[copy].desc.dtype;
        refs[count++] = dmi_ref_operand(copy, DMI_WRITE);
    }
    dmi_build_kernel(b, DMI_KERNEL_momentum, &k, sizeof k, refs, count, ready);
}

dm_status dmi_momentum_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *weights = &call->operand[WEIGHTS].desc;
    const dmi_value gradient = dmi_value_operand(call, GRADIENT), rate = dmi_value_operand(call, rate_of(call));
    dmi_input in[2];
    dmi_mark ready = {0};
    dmi_plan_input(b, &in[0], &gradient, weights, ready);
    if (rate_of(call)) {
        dmi_plan_input(b, &in[1], &rate, weights, ready);
    }
    int64_t regions = b->me < b->profile->workers ? dmi_desc_region_count(weights, b->me) : 0;
    for (int64_t i = 0; i < regions && !b->failed; i++) {
        step_region(b, call, in, i, ready);
    }
    return DM_OK;
}
