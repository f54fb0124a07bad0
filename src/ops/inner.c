/* y = x w^T + bias, over flattened samples */
#include "ops/inner_parts.h"

#include <inttypes.h>

enum { X, W, Y };

dm_status dm_inner_forward(dm_session *session, int slices, dm_array x, dm_array w, dm_array bias, dm_array y)
{
    dmi_call call = {.op = DMI_OP_inner, .noperand = 4, .args = {.i = {slices}}};
    return dmi_layer_submit(session, &call, (dm_array[]){x, w, y, bias});
}

dm_status dmi_inner_fits(const dmi_call *call, int x, int w, int y)
{
    const dmi_desc *from = &call->operand[x].desc, *by = &call->operand[w].desc, *to = &call->operand[y].desc;
    if (from->ndim < 1 || by->ndim < 1 || to->ndim < 1 || from->extent[0] != to->extent[0] ||
        dmi_layer_sample(from) != dmi_layer_sample(by) || dmi_layer_sample(to) != by->extent[0]) {
        char text[3][192];
        return dmi_fail(DM_ERR_SHAPE, "%s: %s is %s, %s %s, %s %s; they must be N x D, M x D and N x M",
                        dmi_call_name(call), dmi_operand_name(call, x), dmi_shape_text(from, text[0]),
                        dmi_operand_name(call, w), dmi_shape_text(by, text[1]), dmi_operand_name(call, y),
                        dmi_shape_text(to, text[2]));
    }
    dm_status status = call->noperand > DMI_INNER_BIAS
                           ? dmi_layer_count(call, DMI_INNER_BIAS, by->extent[0], "outputs")
                           : DM_OK;
    return status == DM_OK ? dmi_layer_check(call, call->args.i[0]) : status;
}

void dmi_inner_describe(const dmi_builder *b, const dmi_call *call, int x, int w, int y, dmi_inner *d)
{
    unsigned operands = 1u << x | 1u << y | (w >= 0 ? 1u << w : 0);
    *d = (dmi_inner){.dnn = {.dtype = dmi_layer_kernel_dtype(b, call, operands)},
                     .tf32 = dmi_layer_tf32(b),
                     .in = dmi_layer_sample(&call->operand[x].desc),
                     .out = dmi_layer_sample(&call->operand[y].desc)};
}

dm_status dmi_inner_check(dmi_call *call)
{
    return dmi_inner_fits(call, X, W, Y);
}

dm_status dmi_inner_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_inner d;
    dmi_inner_describe(b, call, X, W, Y, &d);
    int bias = call->noperand > DMI_INNER_BIAS ? DMI_LAYER_WHOLE : DMI_LAYER_NONE;
    return dmi_plan_layer(b, call,
                          &(dmi_layer){.kernel = DMI_KERNEL_inner,
                                       .desc = &d.dnn,
                                       .slices = call->args.i[0],
                                       .like = X,
                                       .ref = {{DMI_LAYER_SLICED, X, d.dnn.dtype, 0},
                                               {DMI_LAYER_WHOLE, W, d.dnn.dtype, 0},
                                               {DMI_LAYER_MADE, Y, d.dnn.dtype, 0},
                                               {bias, DMI_INNER_BIAS, dmi_layer_wide(d.dnn.dtype), 0}}});
}
