/* fails unless low <= x <= high, with bounds that may be elements */
#include "ops/by.h"

#include <string.h>

enum { X, FIRST_ELEMENT, BOUNDS = 2 }; /* operands; args.i[b], below BOUNDS: bound b is an element */

static const char *const bound_name[BOUNDS] = {"low", "high"};

dm_status dm_require_range(dm_session *session, dm_array x, double low, double high)
{
    dmi_call call = {
        .op = DMI_OP_require, .noperand = 1, .numbers = BOUNDS, .number = {{.re = low}, {.re = high}}};
    return dmi_call_submit(session, &call, (dm_array[]){x});
}

dm_status dm_require_range_by(dm_session *session, dm_array x, dm_factor low, dm_factor high)
{
    const dm_factor bound[BOUNDS] = {low, high};
    dmi_by by;
    if (dmi_factor_real(&low) && dmi_factor_real(&high)) {
        return dm_require_range(session, x, low.value, high.value);
    }
    dm_status status = dmi_by_begin(&by, session, DMI_OP_require);
    by.type = DM_F64;
    by.call.numbers = BOUNDS;
    dmi_by_operand(&by, "x", x, NULL, 0);
    for (int i = 0; i < BOUNDS && status == DM_OK; i++) {
        by.call.args.i[i] = bound[i].element;
        by.call.number[i].re = bound[i].element ? 0 : bound[i].value;
        status = dmi_by_factor(&by, bound_name[i], bound_name[i], &bound[i]);
    }
    return status == DM_OK ? dmi_by_submit(&by, session) : status;
}

dm_status dmi_require_check(dmi_call *call)
{
    double low = call->number[0].re, high = call->number[1].re;
    dm_status status = low == low && high == high
                           ? DM_OK
                           : dmi_fail(DM_ERR_ARG, "%s: low is %g, high is %g", dmi_call_name(call), low, high);
    for (int i = FIRST_ELEMENT; i < call->noperand && status == DM_OK; i++) {
        status = dmi_check_element(call, i, X);
    }
    return status;
}

dm_status dmi_require_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[X].desc;
    dmi_ref refs[1 + BOUNDS] = {dmi_ref_operand(X, DMI_READWRITE)}; /* written: a failure poisons x */
    int reference[BOUNDS] = {0}, nref = FIRST_ELEMENT;
    for (int i = 0; i < BOUNDS; i++) {
        if (call->args.i[i]) {
            dmi_value element = dmi_value_operand(call, nref);
            reference[i] = nref;
            dmi_plan_number(b, &element, x, &refs[nref++]);
        }
    }
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(x, b->me) && !b->failed; i++) {
        dmi_region region;
        dmi_desc_region(x, b->me, i, &region);
        if (region.count == 0) {
            continue;
        }
        dmi_within k = {.dtype = x->dtype, .ndim = region.ndim, .offset = dmi_region_start(&region)};
        memcpy(k.bound, reference, sizeof k.bound);
        for (int d = 0; d < region.ndim; d++) {
            k.extent[d] = region.dim[d].count;
            k.stride[d] = region.stride[d];
        }
        dmi_build_kernel(b, DMI_KERNEL_within, &k, sizeof k, refs, nref, NULL);
    }
    return DM_OK;
}
