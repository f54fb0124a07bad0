/* dx = the gradient of local response normalisation and pooling by their input */
#include "ops/lrn_pool_parts.h"

enum { X, WHICH, DY, DX };

dm_status dm_lrn_pool_backward(dm_session *session, const dm_lrn *lrn, const dm_pool *pool, dm_array x,
                               dm_array which, dm_array dy, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_lrn_pool_call(lrn, pool, DMI_OP_lrn_pool_back, &call);
    call.noperand = 4;
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, which, dy, dx}) : status;
}

dm_status dmi_lrn_pool_back_check(dmi_call *call)
{
    dm_status status = dmi_pooling_fits(call, X, DY);
    status = status == DM_OK ? dmi_check_same_shape(call, DX, X) : status;
    status = status == DM_OK ? dmi_check_same_shape(call, WHICH, DY) : status;
    return status == DM_OK ? dmi_pooling_fits_taps(call, X, WHICH) : status;
}

dm_status dmi_lrn_pool_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_lrn_pool d;
    dmi_lrn_pool_describe(b, call, X, DY, 1u << X | 1u << DY | 1u << DX, &d);
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_lrn_pool_back,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_POOLING_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_SLICED, WHICH, DM_U8, 0},
                                               {DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, DX, d.dnn.dtype, 0},
                                               dmi_lrn_pool_scratch(&d)}});
}
