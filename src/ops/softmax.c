/* out = e^(x - m) / sum(e^(x - m)), m the largest of x over dims: three planners, one after the other */
#include "ops/common.h"
#include "plan/reduce.h"

#include <dmath/reduce.h>

dm_status dm_softmax(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out)
{
    dmi_call call = {.op = DMI_OP_softmax, .noperand = 2};
    dm_status status = dmi_call_dims(&call, dims, ndims);
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, out}) : status;
}

dm_status dmi_softmax_check(dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc;
    dm_status status = dmi_check_same_shape(call, 0, 1);
    if (status == DM_OK && dmi_acc_for(DMI_REDUCTION_max, x->dtype) < 0) {
        status = dmi_fail(DM_ERR_DTYPE, "softmax: does not take x of %s", dmi_dtype_name(x->dtype));
    }
    if (status == DM_OK && !dmi_dtype_is_float(call->operand[1].desc.dtype)) {
        status = dmi_fail(DM_ERR_DTYPE, "softmax: out has dtype %s, and must be a float",
                          dmi_dtype_name(call->operand[1].desc.dtype));
    }
    status = status == DM_OK ? dmi_check_dims(call, x) : status;
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

dm_status dmi_softmax_plan(dmi_builder *b, const dmi_call *call)
{
    dm_dtype x = call->operand[0].desc.dtype, t = dmi_dtype_promote(x, DM_F32), types[3] = {x, t, t};
    unsigned dims = (unsigned)call->args.i[0];
    dmi_value in[3] = {dmi_value_operand(call, 0)}, out = dmi_value_operand(call, 1); /* x, m, and the sum */
    dmi_desc desc[3];
    dmi_map_program power, quotient;
    dm_status status = dmi_program_of("exp(x - y)", 2, types, t, &power);
    status = status == DM_OK ? dmi_program_of("exp(x - y) / z", 3, types, out.desc->dtype, &quotient) : status;
    dmi_reducing max = {.row = DMI_REDUCTION_max, .reduced = dims, .inputs = 1, .in = in, .out = &in[1], .scalar = DMI_UNSCALED};
    dmi_reducing sum = {.reduced = dims, .inputs = 2, .in = in, .out = &in[2], .scalar = DMI_UNSCALED};
    sum.program = &power;
    sum.made = t;
    for (int i = 1; i < 3 && status == DM_OK; i++) {
        status = dmi_build_reduced(b, in[0].desc, dims, t, &desc[i], &in[i]);
        status = status == DM_OK ? dmi_plan_reduce(b, i == 1 ? &max : &sum) : status;
        dmi_build_phase(b);
    }
    if (status == DM_OK && !b->failed) {
        dmi_plan_map(b, &quotient, in, &out);
    }
    return status;
}
