/* dx = the gradient of pooling by its input */
#include "ops/pooling_parts.h"

enum { DY, DX, X };

dm_status dm_pool_backward(dm_session *session, const dm_pool *pool, dm_array x, dm_array dy, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_pooling_call(pool, DMI_OP_pooling_back, &call);
    call.noperand = 3;
    if (status == DM_OK && call.args.i[DMI_POOLING_METHOD] == DM_POOL_AVERAGE) {
        call.noperand = 2;
    }
    if (status == DM_OK && call.args.i[DMI_POOLING_METHOD] == DM_POOL_WEIGHTED) {
        status = dmi_fail(DM_ERR_ARG, "pool_backward: DM_POOL_WEIGHTED has no gradient: it is for tests");
    }
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){dy, dx, x}) : status;
}

dm_status dmi_pooling_back_check(dmi_call *call)
{
    dm_status status = dmi_pooling_fits(call, DX, DY);
    return status == DM_OK && call->noperand > X ? dmi_check_same_shape(call, X, DX) : status;
}

dm_status dmi_pooling_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_pooling d;
    dmi_pooling_describe(b, call, DX, DY, 1u << DX | 1u << DY | 1u << X, &d);
    int x = call->noperand > X ? DMI_LAYER_SLICED : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_pooling_back,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_POOLING_SLICES],
                                       .like = DY,
                                       .ref = {{x, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
