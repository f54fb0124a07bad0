/* fails unless low <= x <= high */
#include "ops/common.h"

#include <string.h>

dm_status dm_require_range(dm_session *session, dm_array x, double low, double high)
{
    dmi_call call = {.op = DMI_OP_require, .noperand = 1, .numbers = 2, .number = {{.re = low}, {.re = high}}};
    return dmi_call_submit(session, &call, (dm_array[]){x});
}

dm_status dmi_require_check(dmi_call *call)
{
    double low = call->number[0].re, high = call->number[1].re;
    return low == low && high == high
               ? DM_OK
               : dmi_fail(DM_ERR_ARG, "%s: low is %g, high is %g", dmi_call_name(call), low, high);
}

dm_status dmi_require_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc;
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(x, b->me); i++) {
        dmi_region region;
        dmi_desc_region(x, b->me, i, &region);
        if (region.count == 0) {
            continue;
        }
        dmi_within k = {.dtype = x->dtype, .ndim = region.ndim, .offset = dmi_region_start(&region)};
        dmi_ref ref = dmi_ref_operand(0, DMI_READWRITE); /* written: a failure poisons x */
        for (int d = 0; d < region.ndim; d++) {
            k.extent[d] = region.dim[d].count;
            k.stride[d] = region.stride[d];
        }
        dmi_build_kernel(b, DMI_KERNEL_within, &k, sizeof k, &ref, 1, NULL);
    }
    return DM_OK;
}
