/* dw, db = beta dw, db + the gradients of a convolution by its weights and its bias */
#include "ops/conv_parts.h"

static const dmi_conv_roles roles = {.x = 0, .w = 2, .y = 1, .bias = 3};

dm_status dm_conv_backward_weights(dm_session *session, const dm_conv *conv, dm_array x, dm_array dy,
                                   double beta, dm_array dw, dm_array db)
{
    dmi_call call;
    dm_status status = dmi_conv_call(conv, DMI_OP_conv_weights, &call);
    call.noperand = 4;
    dmi_layer_sums(&call, 1, beta);
    return status == DM_OK ? dmi_layer_submit(session, &call, (dm_array[]){x, dy, dw, db}) : status;
}

dm_status dmi_conv_weights_check(dmi_call *call)
{
    dmi_layer_sums_check(call, roles.w);
    dm_status status = dmi_conv_fits(call, roles);
    return status == DM_OK ? dmi_layer_wire_check(call, 1u << roles.x | 1u << roles.y) : status;
}

dm_status dmi_conv_weights_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_convolution d;
    int64_t scratch;
    dmi_conv_describe(b, call, roles, &d, &scratch);
    dm_dtype t = d.dnn.dtype;
    int bias = call->noperand > roles.bias ? DMI_LAYER_SUMMED : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_conv_weights,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_CONV_SLICES],
                                       .like = roles.x,
                                       .ref = {{DMI_LAYER_SLICED, roles.x, t, 0},
                                               {DMI_LAYER_SLICED, roles.y, t, 0},
                                               {dmi_layer_wire_role(call, t), roles.w, t, 0},
                                               {bias, roles.bias, dmi_layer_wide(t), 0},
                                               {DMI_LAYER_SCRATCH, 0, t, scratch}}});
}
