/* y = alpha * x + beta * y */
#include "ops/common.h"

dm_status dm_axpby(dm_session *session, double alpha, dm_array x, double beta, dm_array y)
{
    dmi_call call = {
        .op = DMI_OP_axpby, .noperand = 2, .args = {.s = {alpha, beta}, .i = {alpha == 0, beta == 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){x, y});
}

dm_status dmi_axpby_check(dmi_call *call)
{
    dm_dtype computed = dmi_dtype_promote(call->operand[0].desc.dtype, call->operand[1].desc.dtype);
    dm_status status = dmi_check_broadcast(call, 0, 1);
    if (status == DM_OK) {
        status = dmi_check_scalar(call, "alpha", call->args.s[0], computed);
    }
    if (status == DM_OK) {
        status = dmi_check_scalar(call, "beta", call->args.s[1], computed);
    }
    if (call->args.i[0]) {
        call->operand[0].mode = 0;
    }
    call->operand[1].mode = call->args.i[1] ? DMI_WRITE : DMI_READWRITE;
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

dm_status dmi_axpby_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_plan_ewise(b, call, DMI_EW_ADD, 0, 1, 1);
}
