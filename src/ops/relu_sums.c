/* dx = dy where x > 0, else 0; db[c] = beta db[c] + the sum of dx[..., c] over all dims but the last */
#include "ops/common_layer.h"

enum { X, DY, DX, DB };

dm_status dm_relu_backward_sums(dm_session *session, int slices, dm_array x, dm_array dy, dm_array dx,
                                double beta, dm_array db)
{
    dmi_call call = {.op = DMI_OP_relu_sums, .noperand = 4, .args = {.i = {slices}}};
    dmi_layer_sums(&call, 1, beta);
    return dmi_call_submit(session, &call, (dm_array[]){x, dy, dx, db});
}

dm_status dmi_relu_sums_check(dmi_call *call)
{
    dmi_layer_sums_check(call, DB);
    dm_status status = dmi_layer_channels(call, X, DB);
    for (int i = DY; i <= DX && status == DM_OK; i++) {
        status = dmi_check_same_shape(call, i, X);
    }
    return status == DM_OK ? dmi_layer_check(call, call->args.i[0]) : status;
}

dm_status dmi_relu_sums_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    dm_dtype t = dmi_layer_kernel_dtype(b, call, 1u << X | 1u << DY | 1u << DX);
    dmi_channel_rows d = {.dnn = {.dtype = t},
                          .rows = dmi_layer_rows(x),
                          .channels = x->extent[x->ndim - 1]};
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_relu_sums,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[0],
                                       .like = X,
                                       .ref = {{DMI_LAYER_ROWS, X, t, 0},
                                               {DMI_LAYER_ROWS, DY, t, 0},
                                               {DMI_LAYER_MADE_ROWS, DX, t, 0},
                                               {DMI_LAYER_SUMMED, DB, DM_F64, 0}}});
}
