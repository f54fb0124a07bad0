/* out = scale * (sum of x over some dims) + beta * out, with factors that may be elements: a sum, then an
 * expression of it */
#include "ops/by.h"
#include "plan/reduce.h"

#include <string.h>

enum { X, OUT, FIRST_ELEMENT, BETA_ZERO = 1 /* args.i; [0]: the dims */ };

static dm_dtype sum_type(dm_dtype x)
{
    return dmi_acc_result(dmi_acc_for(DMI_REDUCTION_sum, x));
}

dm_status dm_sum_by(dm_session *session, dm_array x, const int *dims, int ndims, dm_factor scale,
                    dm_factor beta, dm_array out)
{
    const dmi_desc *from, *to;
    char text[256] = "";
    dmi_by by;
    if (dmi_factor_real(&scale) && dmi_factor_real(&beta)) {
        return dm_sum(session, x, dims, ndims, scale.value, beta.value, out);
    }
    dm_status status = dmi_by_begin(&by, session, DMI_OP_sum_by);
    by.call.called = dmi_api_number();
    if (status != DM_OK || (status = dmi_by_find(&by, "x", x, &from)) != DM_OK ||
        (status = dmi_by_find(&by, "out", out, &to)) != DM_OK ||
        (status = dmi_call_dims(&by.call, dims, ndims)) != DM_OK) {
        return status;
    }
    dm_dtype sum = sum_type(from->dtype), types[2] = {sum, to->dtype};
    by.type = dmi_dtype_carrier(dmi_linear_type(types, 2, to->dtype));
    by.call.args.i[BETA_ZERO] = dmi_factor_zero(&beta);
    dmi_by_operand(&by, "x", x, "t", sum);
    if (dmi_factor_zero(&beta)) {
        dmi_by_operand(&by, "out", out, NULL, 0);
    } else {
        dmi_by_operand(&by, "out", out, "y", to->dtype);
        status = dmi_by_factor(&by, "q", "beta", &beta);
        dmi_by_term(&by, text, "qy");
    }
    status = status == DM_OK ? dmi_by_factor(&by, "p", "scale", &scale) : status;
    dmi_by_term(&by, text, "pt");
    status = status == DM_OK ? dmi_by_program(&by, text, to->dtype) : status;
    return status == DM_OK ? dmi_by_submit(&by, session) : status;
}

dm_status dmi_sum_by_check(dmi_call *call)
{
    dm_status status = dmi_check_sum(call);
    for (int i = FIRST_ELEMENT; i < call->noperand && status == DM_OK; i++) {
        status = dmi_check_element(call, i, OUT);
    }
    return status;
}

dm_status dmi_sum_by_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_value x = dmi_value_operand(call, X), out = dmi_value_operand(call, OUT), in[DMI_MAP_INPUTS];
    dm_dtype type = sum_type(x.desc->dtype);
    dmi_map_program program = {0};
    dmi_desc temporary;
    int inputs = 1;
    dm_status status = DM_OK;
    memcpy(&program, call->tail, (size_t)call->tail_key);
    in[0] = out;
    if (!call->args.i[BETA_ZERO] || out.desc->dtype != type) {
        status = dmi_build_like(b, out.desc, type, &temporary, &in[0]);
    }
    dmi_reducing sum = {
        .reduced = (unsigned)call->args.i[0], .inputs = 1, .in = &x, .out = &in[0], .scalar = DMI_UNSCALED};
    status = status == DM_OK ? dmi_plan_reduce(b, &sum) : status;
    if (status != DM_OK || b->failed) {
        return status;
    }
    dmi_build_phase(b);
    if (!call->args.i[BETA_ZERO]) {
        in[inputs++] = out;
    }
    for (int i = FIRST_ELEMENT; i < call->noperand; i++) {
        in[inputs++] = dmi_value_operand(call, i);
    }
    dmi_plan_map(b, &program, in, &out);
    return DM_OK;
}
