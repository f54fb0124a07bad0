/* out[c] = beta out[c] + scale * (sum of x[..., c] y[..., c] over all dims but the last) */
#include "ops/common_layer.h"

enum { X, OUT, Y };

dm_status dm_channel_sums(dm_session *session, int slices, double scale, dm_array x, dm_array y, double beta,
                          dm_array out)
{
    dmi_call call = {.op = DMI_OP_channel_sums, .noperand = 3, .args = {.i = {slices}}};
    dmi_layer_sums(&call, scale, beta);
    return dmi_layer_submit(session, &call, (dm_array[]){x, out, y});
}

dm_status dmi_channel_sums_check(dmi_call *call)
{
    call->operand[OUT].mode = call->args.i[DMI_LAYER_KEEPS] ? DMI_READWRITE : DMI_WRITE;
    dm_status status = dmi_layer_channels(call, X, OUT);
    if (status == DM_OK && call->noperand > Y) {
        status = dmi_check_same_shape(call, Y, X);
    }
    return status == DM_OK ? dmi_layer_check(call, call->args.i[0]) : status;
}

dm_status dmi_channel_sums_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    int y = call->noperand > Y ? DMI_LAYER_SLICED : DMI_LAYER_NONE;
    dmi_channel_rows d = {.dnn = {.dtype = dmi_layer_kernel_dtype(b, call, 1u << X | 1u << Y)},
                          .rows = dmi_layer_rows(x),
                          .channels = x->extent[x->ndim - 1]};
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_channel_sums,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[0],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_SUMMED, OUT, DM_F64, 0},
                                               {y, Y, d.dnn.dtype, 0}}});
}
