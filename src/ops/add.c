/* out = alpha * a + beta * b */
#include "ops/common.h"

dm_status dm_add(dm_session *session, double alpha, dm_array a, double beta, dm_array b, dm_array out)
{
    dmi_call call = {
        .op = DMI_OP_add, .noperand = 3, .args = {.s = {alpha, beta}, .i = {alpha == 0, beta == 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){a, b, out});
}

dm_status dmi_add_check(dmi_call *call)
{
    dm_dtype computed = dmi_dtype_promote(call->operand[0].desc.dtype, call->operand[1].desc.dtype);
    const char *names[2] = {"alpha", "beta"};
    for (int i = 0; i < 2; i++) {
        dm_status status = dmi_check_broadcast(call, i, 2);
        if (status == DM_OK && !dmi_dtype_is_float(call->operand[2].desc.dtype)) {
            status = dmi_check_scalar(call, names[i], call->args.s[i], computed);
        }
        if (call->args.i[i]) {
            call->operand[i].mode = 0;
        }
        if (status == DM_OK) {
            status = dmi_check_overlap(call, i, 2, true);
        }
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

dm_status dmi_add_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_plan_ewise(b, call, DMI_EW_ADD, 0, 1, 2);
}
