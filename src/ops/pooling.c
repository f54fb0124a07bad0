/* y = the largest element of each window of x, the mean, or one that is taken at random */
#include "ops/pooling_parts.h"

enum { X, Y, WHICH };

dm_status dm_pool_forward(dm_session *session, const dm_pool *pool, dm_array x, dm_array y, dm_array which)
{
    dmi_call call;
    dm_status status = dmi_pooling_call(pool, DMI_OP_pooling, &call);
    call.noperand = 3;
    return status == DM_OK ? dmi_layer_submit(session, &call, (dm_array[]){x, y, which}) : status;
}

dm_status dmi_pooling_check(dmi_call *call)
{
    dm_status status = dmi_pooling_fits(call, X, Y);
    if (status != DM_OK || call->noperand <= WHICH) {
        return status;
    }
    int method = call->args.i[DMI_POOLING_METHOD];
    if (method != DM_POOL_MAX && method != DM_POOL_STOCHASTIC) {
        return dmi_fail(DM_ERR_ARG, "%s: which is given, but means take no single element",
                        dmi_call_name(call));
    }
    status = dmi_check_same_shape(call, WHICH, Y);
    bool taps = call->operand[WHICH].desc.dtype == DM_U8;
    return status == DM_OK && taps ? dmi_pooling_fits_taps(call, X, WHICH) : status;
}

dm_status dmi_pooling_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_pooling d;
    dmi_pooling_describe(b, call, X, Y, 1u << X | 1u << Y, &d);
    int which = call->noperand > WHICH ? DMI_LAYER_MADE : DMI_LAYER_NONE;
    d.taps = which == DMI_LAYER_MADE && call->operand[WHICH].desc.dtype == DM_U8;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_pooling,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_POOLING_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, Y, d.dnn.dtype, 0},
                                               {which, WHICH, d.taps ? DM_U8 : DM_I32, 0}}});
}
