/* dw = beta dw + dy^T x, db = beta db + the sum of dy over the samples */
#include "ops/inner_parts.h"

enum { X, DY, DW };

dm_status dmi_inner_weights(dm_session *session, const dm_inner *inner, dm_array x, dm_array dy, double beta,
                            dm_array dw, dm_array db)
{
    dmi_call call = {.op = DMI_OP_inner_weights, .noperand = 4, .args = {.i = {inner->slices}}};
    dmi_layer_sums(&call, 1, beta);
    call.args.i[DMI_LAYER_WIRE] = (int32_t)inner->wire;
    return dmi_layer_submit(session, &call, (dm_array[]){x, dy, dw, db});
}

dm_status dm_inner_backward_weights(dm_session *session, int slices, dm_array x, dm_array dy, double beta,
                                    dm_array dw, dm_array db)
{
    return dmi_inner_weights(session, &(dm_inner){.slices = slices}, x, dy, beta, dw, db);
}

dm_status dmi_inner_weights_check(dmi_call *call)
{
    dmi_layer_sums_check(call, DW);
    dm_status status = dmi_inner_fits(call, X, DW, DY);
    return status == DM_OK ? dmi_layer_wire_check(call, 1u << X | 1u << DY) : status;
}

dm_status dmi_inner_weights_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_inner d;
    dmi_inner_describe(b, call, X, -1, DY, &d);
    dm_dtype wide = dmi_layer_wide(d.dnn.dtype);
    int bias = call->noperand > DMI_INNER_BIAS ? DMI_LAYER_SUMMED : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_inner_weights,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[0],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {dmi_layer_wire_role(call, wide), DW, wide, 0},
                                               {bias, DMI_INNER_BIAS, wide, 0}}});
}
