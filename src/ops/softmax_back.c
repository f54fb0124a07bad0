/* dx = scale (prob - [c is the label]) / normaliser */
#include "ops/softmax_loss_parts.h"

enum { PROB, LABELS, DX };

dm_status dm_softmax_loss_backward(dm_session *session, const dm_loss *options, dm_array prob, dm_array labels,
                                   double scale, dm_array dx)
{
    dmi_call call;
    dm_status status = dmi_labelled_call(options, DMI_OP_softmax_back, &call);
    if (status != DM_OK) {
        return status;
    }
    call.noperand = 3;
    dmi_call_factors(&call, scale, 0);
    return dmi_call_submit(session, &call, (dm_array[]){prob, labels, dx});
}

dm_status dmi_softmax_back_check(dmi_call *call)
{
    dm_status status = dmi_labelled_fits(call, PROB);
    return status == DM_OK ? dmi_check_same_shape(call, DX, PROB) : status;
}

dm_status dmi_softmax_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref labels;
    dmi_labelled_describe(b, call, PROB, &d, &labels);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_softmax_back,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = PROB,
            .ref = {{DMI_LAYER_SLICED, PROB, d.dnn.dtype, 0}, labels, {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
