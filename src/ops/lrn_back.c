/* dx = the gradient of local response normalisation by its input */
#include "ops/lrn_parts.h"

enum { X, DY, DX };

dm_status dm_lrn_backward(dm_session *session, const dm_lrn *lrn, dm_array x, dm_array dy, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_lrn_call(lrn, DMI_OP_lrn_back, &call);
    call.noperand = 3;
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, dy, dx}) : status;
}

dm_status dmi_lrn_back_check(dmi_call *call)
{
    return dmi_lrn_fits(call, DX);
}

dm_status dmi_lrn_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_lrn d;
    dmi_lrn_describe(b, call, &d);
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_lrn_back,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_LRN_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, DX, d.dnn.dtype, 0},
                                               {DMI_LAYER_SCRATCH, 0, d.dnn.dtype, 2 * d.unit}}});
}
