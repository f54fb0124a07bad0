/* y = alpha * x + beta * y */
#include "ops/common.h"
#include "ops/joined.h"

dm_status dm_axpby(dm_session *session, double alpha, dm_array x, double beta, dm_array y)
{
    dmi_call call = {.op = DMI_OP_axpby, .noperand = 2, .args = {.i = {alpha == 0, beta == 0}}};
    dmi_call_factors(&call, alpha, beta);
    return dmi_call_submit(session, &call, (dm_array[]){x, y});
}

dm_status dmi_axpby_check(dmi_call *call)
{
    dm_status status = dmi_check_broadcast(call, 0, 1);
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_check_factor(call, i, i == 0 ? "alpha" : "beta", 2, 1);
    }
    if (call->args.i[0]) {
        call->operand[0].mode = 0;
    }
    call->operand[1].mode = call->args.i[1] ? DMI_WRITE : DMI_READWRITE;
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

dm_status dmi_axpby_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_elementwise_plan(b, call);
}
