/* y = x * (k + alpha / n * (sum of x^2 over a window))^-beta */
#include "base/sized.h"
#include "kernels/dnn/dnn_parts.h"
#include "ops/lrn_parts.h"

#include <inttypes.h>

enum { X, Y };

dm_status dmi_lrn_call(const dm_lrn *lrn, int op, dmi_call *call)
{
    const char *name = dmi_api_called() ? dmi_api_called() : "lrn";
    dm_lrn known;
    if (!lrn) {
        return dmi_fail(DM_ERR_ARG, "%s: lrn is NULL: start from DM_LRN_INIT", name);
    }
    dm_status status = dmi_sized_take(lrn, DMI_SIZED_LEAST(dm_lrn, slices), &known, sizeof known,
                                      "lrn: start from DM_LRN_INIT");
    if (status == DM_OK && (known.local_size < 1 || known.local_size % 2 == 0)) {
        status = dmi_fail(DM_ERR_ARG, "%s: local_size is %d, not 1 or more and odd", name, known.local_size);
    }
    if (status == DM_OK) {
        *call = (dmi_call){.op = op,
                           .args = {.i = {known.local_size, known.within != 0, known.slices, known.relu != 0}},
                           .numbers = 3};
        call->number[0] = dmi_number_of(known.alpha);
        call->number[1] = dmi_number_of(known.beta);
        call->number[2] = dmi_number_of(known.k);
    }
    return status;
}

dm_status dmi_lrn_fits(const dmi_call *call, int last)
{
    const dmi_desc *x = &call->operand[0].desc;
    dm_status status = call->args.i[DMI_LRN_WITHIN] ? dmi_layer_dims(call, 0, 4) : DM_OK;
    if (status == DM_OK && x->ndim < 2) {
        status = dmi_fail(DM_ERR_SHAPE, "%s: %s has %d dims, not 2 or more", dmi_call_name(call),
                          dmi_operand_name(call, 0), x->ndim);
    }
    for (int i = 1; i <= last && status == DM_OK; i++) {
        status = dmi_check_same_shape(call, i, 0);
    }
    return status == DM_OK ? dmi_layer_check(call, call->args.i[DMI_LRN_SLICES]) : status;
}

void dmi_lrn_describe(const dmi_builder *b, const dmi_call *call, dmi_lrn *d)
{
    const dmi_desc *x = &call->operand[0].desc;
    *d = (dmi_lrn){.within = call->args.i[DMI_LRN_WITHIN],
                   .relu = call->args.i[DMI_LRN_RELU],
                   .size = call->args.i[DMI_LRN_SIZE]};
    d->unit = d->within ? dmi_layer_sample(x) : x->extent[x->ndim - 1];
    bool shared = !d->within && d->unit <= DMI_LRN_SHARED;
    d->dnn.dtype = shared ? dmi_layer_kernel_dtype(b, call, ~0u) : dmi_layer_dtype(call);
    for (int i = 0; i < 3 && d->within; i++) {
        d->in[i] = x->extent[1 + i];
    }
}

dm_status dm_lrn_forward(dm_session *session, const dm_lrn *lrn, dm_array x, dm_array y)
{
    dmi_call call;
    dm_status status = dmi_lrn_call(lrn, DMI_OP_lrn, &call);
    call.noperand = 2;
    return status == DM_OK ? dmi_call_submit(session, &call, (dm_array[]){x, y}) : status;
}

dm_status dmi_lrn_check(dmi_call *call)
{
    return dmi_lrn_fits(call, Y);
}

dm_status dmi_lrn_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_lrn d;
    dmi_lrn_describe(b, call, &d);
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_lrn,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[DMI_LRN_SLICES],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, Y, d.dnn.dtype, 0},
                                               {DMI_LAYER_SCRATCH, 0, d.dnn.dtype, 2 * d.unit}}});
}
