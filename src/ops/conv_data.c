/* dx = the gradient of a convolution by its input */
#include "ops/conv_parts.h"

static const dmi_conv_roles roles = {.x = 2, .w = 1, .y = 0, .bias = -1};

dm_status dm_conv_backward_data(dm_session *session, const dm_conv *conv, dm_array dy, dm_array w, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_conv_call(conv, DMI_OP_conv_data, &call);
    call.noperand = 3;
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){dy, w, dx}) : status;
}

dm_status dmi_conv_data_check(dmi_call *call)
{
    return dmi_conv_fits(call, roles);
}

dm_status dmi_conv_data_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_convolution d;
    int64_t scratch;
    dmi_conv_describe(b, call, roles, &d, &scratch);
    dm_dtype t = d.dnn.dtype;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_conv_data,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_CONV_SLICES],
                                       .like = roles.y,
                                       .ref = {{DMI_LAYER_SLICED, roles.y, t, 0},
                                               {DMI_LAYER_WHOLE, roles.w, t, 0},
                                               {DMI_LAYER_MADE, roles.x, t, 0},
                                               {DMI_LAYER_SCRATCH, 0, t, scratch}}});
}
