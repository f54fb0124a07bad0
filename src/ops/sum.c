/* out = scale * (sum of x over some dims) + beta * out */
#include "ops/common.h"
#include "plan/reduce.h"

dm_status dm_sum(dm_session *session, dm_array x, const int *dims, int ndims, double scale, double beta,
                 dm_array out)
{
    dmi_call call = {.op = DMI_OP_sum, .noperand = 2};
    dmi_call_factors(&call, scale, beta);
    call.args.i[1] = beta == 0;
    dm_status status = dmi_call_dims(&call, dims, ndims);
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, out}) : status;
}

dm_status dmi_check_sum(dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc, *out = &call->operand[1].desc;
    dm_status status = dmi_check_reduced(call, x, 1);
    if (status == DM_OK && dmi_dtype_is_complex(x->dtype) && out->dtype == DM_BOOL) {
        return dmi_fail(DM_ERR_DTYPE, "sum: x has dtype %s and out bool; a complex sum is taken by a number",
                        dmi_dtype_name(x->dtype));
    }
    call->operand[1].mode = call->args.i[1] ? DMI_WRITE : DMI_READWRITE;
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, false) : status;
}

dm_status dmi_sum_check(dmi_call *call)
{
    dm_status status = dmi_check_sum(call);
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_check_factor(call, i, i ? "beta" : "scale", 1, 1);
    }
    return status;
}

dm_status dmi_sum_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_value x = dmi_value_operand(call, 0), out = dmi_value_operand(call, 1);
    dmi_reducing sum = {.reduced = (unsigned)call->args.i[0],
                        .inputs = 1,
                        .in = &x,
                        .out = &out,
                        .scalar = {DMI_SCALAR_S0, DMI_SCALAR_S1}};
    return dmi_plan_reduce(b, &sum);
}
