/* dx = the gradient of pooling by its input */
#include "ops/messages.h"
#include "ops/pooling_parts.h"

enum { DY, DX, X };

/* x: what was pooled, or (taps) which elements were taken */
static dm_status submit(dm_session *session, const dm_pool *pool, bool taps, dm_array x, dm_array dy,
                        dm_array dx)
{
    static const char *const names[] = {"dy", "dx", "which"};
    dmi_call call;
    dm_status status = dmi_pooling_call(pool, DMI_OP_pooling_back, &call);
    call.noperand = 3;
    call.args.i[DMI_POOLING_TAPS] = taps;
    call.names = taps ? names : NULL;
    if (status == DM_OK && call.args.i[DMI_POOLING_METHOD] == DM_POOL_AVERAGE) {
        call.noperand = 2;
        status = taps ? dmi_fail(DM_ERR_ARG, "%s: DM_POOL_AVERAGE takes no single element", dmi_api_called())
                      : DM_OK;
    }
    if (status == DM_OK && call.args.i[DMI_POOLING_METHOD] == DM_POOL_WEIGHTED) {
        status =
            dmi_fail(DM_ERR_ARG, "%s: DM_POOL_WEIGHTED has no gradient: it is for tests", dmi_api_called());
    }
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){dy, dx, x}) : status;
}

dm_status dm_pool_backward(dm_session *session, const dm_pool *pool, dm_array x, dm_array dy, dm_array dx)
{
    return submit(session, pool, false, x, dy, dx);
}

dm_status dm_pool_backward_which(dm_session *session, const dm_pool *pool, dm_array which, dm_array dy,
                                 dm_array dx)
{
    return submit(session, pool, true, which, dy, dx);
}

dm_status dmi_pooling_back_check(dmi_call *call)
{
    bool taps = call->args.i[DMI_POOLING_TAPS];
    dm_status status = dmi_pooling_fits(call, DX, DY);
    if (status != DM_OK || call->noperand <= X) {
        return status;
    }
    if ((call->operand[X].desc.dtype == DM_U8) != taps) {
        return dmi_refuse_dtype(dmi_operand_name(call, X), call->operand[X].desc.dtype,
                                taps ? 1u << DM_U8 : DMI_DT_FLOAT);
    }
    status = dmi_check_same_shape(call, X, taps ? DY : DX);
    return status == DM_OK && taps ? dmi_pooling_fits_taps(call, DX, X) : status;
}

dm_status dmi_pooling_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_pooling d;
    bool taps = call->args.i[DMI_POOLING_TAPS];
    dmi_pooling_describe(b, call, DX, DY, 1u << DX | 1u << DY | (taps ? 0 : 1u << X), &d);
    d.taps = taps;
    int x = call->noperand > X ? DMI_LAYER_SLICED : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_pooling_back,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_POOLING_SLICES],
                                       .like = DY,
                                       .ref = {{x, X, taps ? DM_U8 : d.dnn.dtype, 0},
                                               {DMI_LAYER_SLICED, DY, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
