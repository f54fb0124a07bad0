/* dx = the gradient of a hinge loss by the scores; dm_hinge_loss_backward is in hinge_loss.c */
#include "ops/pair_loss_parts.h"

enum { X, LABELS, DX };

dm_status dmi_hinge_back_check(dmi_call *call)
{
    dm_status status = dmi_labelled_fits(call, X);
    return status == DM_OK ? dmi_check_same_shape(call, DX, X) : status;
}

dm_status dmi_hinge_back_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref labels;
    dmi_hinge_describe(b, call, &d, &labels);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_hinge_back,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = X,
            .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0}, labels, {DMI_LAYER_MADE, DX, d.dnn.dtype, 0}}});
}
