/* out = alpha * a */
#include "ops/common.h"
#include "ops/joined.h"

dm_status dm_scale(dm_session *session, double alpha, dm_array a, dm_array out)
{
    dmi_call call = {.op = DMI_OP_scale, .noperand = 2, .args = {.i = {alpha == 0}}};
    dmi_call_factors(&call, alpha, 0);
    return dmi_call_submit(session, &call, (dm_array[]){a, out});
}

dm_status dmi_scale_check(dmi_call *call)
{
    dm_status status = dmi_check_broadcast(call, 0, 1);
    if (status == DM_OK) {
        status = dmi_check_factor(call, 0, "alpha", 1, 1);
    }
    if (call->args.i[0]) {
        call->operand[0].mode = 0;
    }
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

dm_status dmi_scale_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_elementwise_plan(b, call);
}
