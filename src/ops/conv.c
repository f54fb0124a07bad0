/* y = x convolved with w, + bias */
#include "ops/conv_parts.h"

static const dmi_conv_roles roles = {.x = 0, .w = 1, .y = 2, .bias = 3};

dm_status dm_conv_forward(dm_session *session, const dm_conv *conv, dm_array x, dm_array w, dm_array bias,
                          dm_array y)
{
    dmi_call call;
    dm_status status = dmi_conv_call(conv, DMI_OP_conv, &call);
    call.noperand = 4;
    return status == DM_OK ? dmi_layer_submit(session, &call, (dm_array[]){x, w, y, bias}) : status;
}

dm_status dmi_conv_check(dmi_call *call)
{
    return dmi_conv_fits(call, roles);
}

dm_status dmi_conv_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_convolution d;
    int64_t scratch;
    dmi_conv_describe(b, call, roles, &d, &scratch);
    dm_dtype t = d.dnn.dtype;
    const bool rows = d.group == 1 && b->profile->gpu; /* oneDNN writes dense rows */
    int bias = call->noperand > roles.bias ? DMI_LAYER_WHOLE : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_conv,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_CONV_SLICES],
                                       .like = roles.x,
                                       .ref = {{DMI_LAYER_SLICED, roles.x, t, 0},
                                               {DMI_LAYER_WHOLE, roles.w, t, 0},
                                               {rows ? DMI_LAYER_MADE_ROWS : DMI_LAYER_MADE, roles.y, t, 0},
                                               {bias, roles.bias, dmi_layer_wide(t), 0},
                                               {DMI_LAYER_SCRATCH, 0, t, scratch}}});
}
