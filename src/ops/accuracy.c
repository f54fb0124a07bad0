/* out = the part of the labels whose score is among the top_k largest; ties count against */
#include "ops/softmax_loss_parts.h"

enum { X, LABELS, OUT };

dm_status dm_accuracy(dm_session *session, const dm_loss *options, int top_k, dm_array x, dm_array labels,
                      dm_array out)
{
    dmi_call call;
    dm_status status = dmi_labelled_call(options, DMI_OP_accuracy, &call);
    if (status != DM_OK) {
        return status;
    }
    call.args.i[DMI_LABELLED_NORMALIZE] = DM_NORMALIZE_VALID; /* by the labels that are not ignored */
    call.args.i[DMI_LABELLED_TOP] = top_k;
    call.noperand = 3;
    dmi_layer_sums(&call, 1, 0);
    return dmi_call_submit(session, &call, (dm_array[]){x, labels, out});
}

dm_status dmi_accuracy_check(dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    dm_status status = dmi_labelled_fits(call, X);
    int top_k = call->args.i[DMI_LABELLED_TOP];
    if (status == DM_OK && (top_k < 1 || top_k > x->extent[x->ndim - 1])) {
        status =
            dmi_fail(DM_ERR_ARG, "%s: top_k is %d, not 1 to the number of classes", dmi_call_name(call), top_k);
    }
    return status == DM_OK ? dmi_layer_count(call, OUT, 1, "numbers") : status;
}

dm_status dmi_accuracy_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref labels;
    dmi_labelled_describe(b, call, X, &d, &labels);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_accuracy,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = X,
            .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0}, labels, {DMI_LAYER_SUMMED, OUT, DM_F64, 0}}});
}
