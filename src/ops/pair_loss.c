/* Sigmoid cross-entropy and Euclidean losses */
#include "ops/pair_loss_parts.h"

enum { X, TARGET, LOSS };

dm_status dmi_pair_fits(const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    if (x->ndim < 1) {
        return dmi_fail(DM_ERR_SHAPE, "%s: x has no dims, but must be N x ...", dmi_call_name(call));
    }
    dm_status status = dmi_check_same_shape(call, TARGET, X);
    return status == DM_OK ? dmi_layer_check(call, call->args.i[DMI_LABELLED_SLICES]) : status;
}

void dmi_pair_describe(const dmi_call *call, dmi_labelled *d, dmi_layer_ref *targets)
{
    const dmi_desc *x = &call->operand[X].desc;
    bool counted = dmi_labelled_counts(call);
    *d = (dmi_labelled){.dnn = {.dtype = dmi_layer_dtype(call)}, /* each element has a label of its own */
                        .places = dmi_layer_sample(x),
                        .classes = 1,
                        .batch = x->extent[0],
                        .whole = counted,
                        .loss = call->args.i[DMI_LABELLED_LOSS]};
    dmi_labelled_options(call, d);
    *targets = (dmi_layer_ref){counted ? DMI_LAYER_WHOLE : DMI_LAYER_SLICED, TARGET, d->dnn.dtype, 0};
}

dm_status dm_sigmoid_loss(dm_session *session, const dm_loss *options, dm_array x, dm_array targets,
                          dm_array loss)
{
    dmi_call call;
    dm_status status = dmi_labelled_call(options, DMI_OP_pair_loss, &call);
    if (status != DM_OK) {
        return status;
    }
    call.args.i[DMI_LABELLED_LOSS] = DMI_LOSS_SIGMOID;
    call.noperand = 3;
    dmi_layer_sums(&call, 1, 0);
    return dmi_call_submit(session, &call, (dm_array[]){x, targets, loss});
}

dm_status dm_euclidean_loss(dm_session *session, int slices, dm_array x, dm_array targets, dm_array loss)
{
    dmi_call call = {.op = DMI_OP_pair_loss, .noperand = 3};
    call.args.i[DMI_LABELLED_NORMALIZE] = DM_NORMALIZE_SAMPLES;
    call.args.i[DMI_LABELLED_SLICES] = slices;
    call.args.i[DMI_LABELLED_LOSS] = DMI_LOSS_EUCLIDEAN;
    dmi_layer_sums(&call, 1, 0);
    return dmi_call_submit(session, &call, (dm_array[]){x, targets, loss});
}

dm_status dmi_pair_loss_check(dmi_call *call)
{
    dm_status status = dmi_pair_fits(call);
    return status == DM_OK ? dmi_layer_count(call, LOSS, 1, "losses") : status;
}

dm_status dmi_pair_loss_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_labelled d;
    dmi_layer_ref targets;
    dmi_pair_describe(call, &d, &targets);
    return dmi_plan_layer(
        b, call,
        &(dmi_layer){
            .kernel = DMI_KERNEL_pair_loss,
            .desc = &d.dnn,
            .slices = call->args.i[DMI_LABELLED_SLICES],
            .like = X,
            .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0}, targets, {DMI_LAYER_SUMMED, LOSS, DM_F64, 0}}});
}
