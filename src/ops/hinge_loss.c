/* loss = (sum of max(0, 1 - x at the label, 1 + x elsewhere), or of its square) / N */
#include "ops/pair_loss_parts.h"

enum { X, LABELS, LOSS };

static const char *const norms = "%s: norm is %d, not 1 or 2";

void dmi_hinge_describe(const dmi_builder *b, const dmi_call *call, dmi_labelled *d, dmi_layer_ref *labels)
{
    dmi_labelled_describe(b, call, X, d, labels);
    d->loss = call->args.i[DMI_LABELLED_LOSS];
}

static dm_status hinge_call(int op, int norm, int slices, dmi_call *call)
{
    *call = (dmi_call){.op = op, .noperand = 3};
    call->args.i[DMI_LABELLED_NORMALIZE] = DM_NORMALIZE_SAMPLES;
    call->args.i[DMI_LABELLED_SLICES] = slices;
    call->args.i[DMI_LABELLED_LOSS] = norm == 1 ? DMI_LOSS_HINGE_1 : DMI_LOSS_HINGE_2;
    return norm == 1 || norm == 2 ? DM_OK : dmi_fail(DM_ERR_ARG, norms, dmi_api_called(), norm);
}

dm_status dm_hinge_loss(dm_session *session, int norm, int slices, dm_array x, dm_array labels, dm_array loss)
{
    dmi_call call;
    dm_status status = hinge_call(DMI_OP_hinge_loss, norm, slices, &call);
    dmi_layer_sums(&call, 1, 0);
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, labels, loss}) : status;
}

dm_status dm_hinge_loss_backward(dm_session *session, int norm, int slices, dm_array x, dm_array labels,
                                 double scale, dm_array dx)
{
    dmi_call call;
    dm_status status = hinge_call(DMI_OP_hinge_back, norm, slices, &call);
    dmi_call_factors(&call, scale, 0);
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, labels, dx}) : status;
}

dm_status dmi_hinge_loss_check(dmi_call *call)
{
    dm_status status = dmi_labelled_fits(call, X);
    return status == DM_OK ? dmi_layer_count(call, LOSS, 1, "losses") : status;
}

dm_status dmi_hinge_loss_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref labels;
    dmi_hinge_describe(b, call, &d, &labels);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_hinge_loss,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = X,
            .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0}, labels, {DMI_LAYER_SUMMED, LOSS, DM_F64, 0}}});
}
