/* y = the largest element of each window of x * (k + alpha / n * (sum of x^2 over n channels))^-beta */
#include "ops/lrn_pool_parts.h"

enum { X, Y, WHICH };

dm_status dm_lrn_pool_forward(dm_session *session, const dm_lrn *lrn, const dm_pool *pool, dm_array x,
                              dm_array y, dm_array which)
{
    dmi_call call;
    dm_status status = dmi_lrn_pool_call(lrn, pool, DMI_OP_lrn_pool, &call);
    call.noperand = 3;
    return status == DM_OK ? dmi_layer_submit(session, &call, (dm_array[]){x, y, which}) : status;
}

dm_status dmi_lrn_pool_check(dmi_call *call)
{
    dm_status status = dmi_pooling_fits(call, X, Y);
    if (status == DM_OK && call->noperand > WHICH) {
        status = dmi_check_same_shape(call, WHICH, Y);
        status = status == DM_OK ? dmi_pooling_fits_taps(call, X, WHICH) : status;
    }
    return status;
}

dm_status dmi_lrn_pool_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_lrn_pool d;
    dmi_lrn_pool_describe(b, call, X, Y, 1u << X | 1u << Y, &d);
    int which = call->noperand > WHICH ? DMI_LAYER_MADE : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_lrn_pool,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_POOLING_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, Y, d.dnn.dtype, 0},
                                               {which, WHICH, DM_U8, 0},
                                               dmi_lrn_pool_scratch(&d)}});
}
