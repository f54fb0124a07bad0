/* out = alpha * a * b */
#include "ops/common.h"
#include "ops/joined.h"

dm_status dm_multiply(dm_session *session, double alpha, dm_array a, dm_array b, dm_array out)
{
    dmi_call call = {.op = DMI_OP_multiply, .noperand = 3, .args = {.i = {alpha == 0}}};
    dmi_call_factors(&call, alpha, 0);
    return dmi_call_submit(session, &call, (dm_array[]){a, b, out});
}

dm_status dmi_multiply_check(dmi_call *call)
{
    for (int i = 0; i < 2; i++) {
        dm_status status = dmi_check_broadcast(call, i, 2);
        if (call->args.i[0]) {
            call->operand[i].mode = 0;
        }
        if (status == DM_OK) {
            status = dmi_check_overlap(call, i, 2, true);
        }
        if (status != DM_OK) {
            return status;
        }
    }
    return dmi_check_factor(call, 0, "alpha", 2, 2);
}

dm_status dmi_multiply_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_elementwise_plan(b, call);
}
