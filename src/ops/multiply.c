/* out = alpha * a * b */
#include "ops/common.h"

dm_status dm_multiply(dm_session *session, double alpha, dm_array a, dm_array b, dm_array out)
{
    dmi_call call = {.op = DMI_OP_multiply, .noperand = 3, .args = {.s = {alpha}, .i = {alpha == 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){a, b, out});
}

dm_status dmi_multiply_check(dmi_call *call)
{
    dm_dtype computed = dmi_dtype_promote(call->operand[0].desc.dtype, call->operand[1].desc.dtype);
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
    return dmi_dtype_is_float(call->operand[2].desc.dtype)
               ? DM_OK
               : dmi_check_scalar(call, "alpha", call->args.s[0], computed);
}

dm_status dmi_multiply_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_plan_ewise(b, call, DMI_EW_MUL, 0, 1, 2);
}
