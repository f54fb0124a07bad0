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
        status = dmi_fail(DM_ERR_DTYPE, "softmax: does not take %s", dmi_dtype_name(x->dtype));
    }
    status = status == DM_OK ? dmi_check_dims(call, x) : status;
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

/* e^(x - m), and with a third input divided by it. */
static dm_status power_program(dm_dtype x, dm_dtype type, bool divided, dm_dtype out, dmi_map_program *program)
{
    dmi_map_builder map = {0};
    dmi_map_value v[2] = {dmi_map_input(&map, x), dmi_map_input(&map, type)}, made;
    dmi_map_value sum = divided ? dmi_map_input(&map, type) : v[0];
    v[0] = dmi_map_cast(&map, v[0], type);
    dm_status status = dmi_map_apply(&map, DMI_EW_subtract, v, NULL, &made);
    status = status == DM_OK ? dmi_map_apply(&map, DMI_EW_exp, &made, NULL, &v[0]) : status;
    v[1] = sum;
    if (status == DM_OK && divided) {
        status = dmi_map_apply(&map, DMI_EW_divide, v, NULL, &v[0]);
    }
    dmi_map_result(&map, v[0], out);
    *program = map.program;
    return status;
}

dm_status dmi_softmax_plan(dmi_builder *b, const dmi_call *call)
{
    dm_dtype x = call->operand[0].desc.dtype, type = dmi_dtype_promote(x, DM_F32);
    unsigned dims = (unsigned)call->args.i[0];
    dmi_value in[3] = {dmi_value_operand(call, 0)}, out = dmi_value_operand(call, 1);
    dmi_desc desc[2];
    dmi_mark ready[2] = {{0}};
    dmi_map_program power, quotient;
    dm_status status = power_program(x, type, false, type, &power);
    status = status == DM_OK ? power_program(x, type, true, out.desc->dtype, &quotient) : status;
    dmi_reducing step[2] = {
        {.row = DMI_REDUCTION_max, .reduced = dims, .inputs = 1, .scalar = {DMI_SCALAR_ONE, DMI_SCALAR_ZERO}},
        {.reduced = dims, .program = &power, .made = type, .inputs = 2, .scalar = {DMI_SCALAR_ONE, DMI_SCALAR_ZERO}}};
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_build_reduced(b, in[0].desc, dims, type, &desc[i], &in[i + 1]);
        step[i].in = in;
        step[i].out = &in[i + 1];
        status = status == DM_OK ? dmi_plan_reduce(b, &step[i], ready[i]) : status;
        in[i + 1].ready = ready[i];
    }
    if (status == DM_OK && !b->failed) {
        dmi_plan_map(b, &quotient, in, &out, NULL);
    }
    return status;
}
