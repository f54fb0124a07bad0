/* dx = scale (sigmoid(x) - target) / normaliser */
#include "ops/pair_loss_parts.h"

enum { X, TARGET, DX };

dm_status dm_sigmoid_loss_backward(dm_session *session, const dm_loss *options, dm_array x, dm_array targets,
                                   double scale, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_labelled_call(options, DMI_OP_pair_back, &call);
    if (status != DM_OK) {
        return status;
    }
    call.noperand = 3;
    dmi_call_factors(&call, scale, 0);
    return dmi_call_submit(session, &call, (dm_array[]){x, targets, dx});
}

dm_status dmi_pair_back_check(dmi_call *call)
{
    dm_status status = dmi_pair_fits(call);
    return status == DM_OK ? dmi_check_same_shape(call, DX, X) : status;
}

dm_status dmi_pair_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref targets;
    dmi_pair_describe(call, &d, &targets);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_pair_back,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = X,
            .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0}, targets, {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
