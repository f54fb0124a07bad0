/* dx = dy w, over flattened samples */
#include "ops/inner_parts.h"

enum { DY, W, DX };

dm_status dm_inner_backward_data(dm_session *session, int slices, dm_array dy, dm_array w, dm_array dx)
{
    dmi_call call = {.op = DMI_OP_inner_data, .noperand = 3, .args = {.i = {slices}}};
    return dmi_call_submit(session, &call, (dm_array[]){dy, w, dx});
}

dm_status dmi_inner_data_check(dmi_call *call)
{
    return dmi_inner_fits(call, DX, W, DY);
}

dm_status dmi_inner_data_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_inner d;
    dmi_inner_describe(b, call, DX, W, DY, &d);
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_inner_data,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[0],
                                       .like = DY,
                                       .ref = {{DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {DMI_LAYER_WHOLE, W, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
