/* A step of gradient descent that also writes a copy of the weights, rounded to 16 bits */
#include "ops/momentum_parts.h"

dm_status dm_momentum_step_rounded(dm_session *session, double scale, double decay, int l1, double momentum,
                                   dm_factor rate, dm_array gradient, dm_array history, dm_array weights,
                                   dm_array rounded)
{
    return dmi_momentum_submit(
        session, DMI_OP_momentum_rounded,
        &(dmi_momentum_step){scale, decay, momentum, l1, rate, {gradient, history, weights}, rounded});
}

dm_status dmi_momentum_rounded_check(dmi_call *call)
{
    return dmi_momentum_check(call);
}

dm_status dmi_momentum_rounded_plan(dmi_builder *b, const dmi_call *call)
{
    return dmi_momentum_plan(b, call);
}
