/* out = alpha * f(a): scale, exp, tanh, relu */
#include "ops/common.h"

static dm_status submit(dm_session *session, int function, double alpha, dm_array a, dm_array out)
{
    dmi_call call = {.op = DMI_OP_unary, .noperand = 2, .args = {.s = {alpha}, .i = {function, alpha == 0}}};
    return dmi_call_submit(session, &call, (dm_array[]){a, out});
}

dm_status dm_scale(dm_session *session, double alpha, dm_array a, dm_array out)
{
    return submit(session, DMI_EW_SCALE, alpha, a, out);
}

dm_status dm_exp(dm_session *session, dm_array a, dm_array out)
{
    return submit(session, DMI_EW_EXP, 1.0, a, out);
}

dm_status dm_tanh(dm_session *session, dm_array a, dm_array out)
{
    return submit(session, DMI_EW_TANH, 1.0, a, out);
}

dm_status dm_relu(dm_session *session, dm_array a, dm_array out)
{
    return submit(session, DMI_EW_RELU, 1.0, a, out);
}

dm_status dmi_unary_check(dmi_call *call)
{
    int function = call->args.i[0];
    dm_dtype from = call->operand[0].desc.dtype, to = call->operand[1].desc.dtype;
    if ((function == DMI_EW_EXP || function == DMI_EW_TANH) &&
        (!dmi_dtype_is_float(from) || !dmi_dtype_is_float(to))) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s has dtype %s; only floating types are taken",
                        function == DMI_EW_EXP ? "exp" : "tanh", dmi_dtype_is_float(from) ? "out" : "a",
                        dmi_dtype_name(dmi_dtype_is_float(from) ? to : from));
    }
    dm_status status =
        function == DMI_EW_SCALE ? dmi_check_broadcast(call, 0, 1) : dmi_check_same_shape(call, 0, 1);
    if (status == DM_OK && !dmi_dtype_is_float(to)) {
        status = dmi_check_scalar(call, "alpha", call->args.s[0], from);
    }
    if (call->args.i[1]) {
        call->operand[0].mode = 0;
    }
    return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;
}

dm_status dmi_unary_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_plan_ewise(b, call, call->args.i[0], 0, -1, 1);
}
