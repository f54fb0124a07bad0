/* Looks at indices before take or put: is one outside, and how many does each worker hold? Each worker of the
 * indices' layout has one row of counts: the row-major number of its first index outside, or INT64_MAX; then a
 * count for each holder. The tail is a dmi_index_owner. */
#include "ops/common_index.h"

#include <string.h>

dm_status dmi_index_count_check(dmi_call *call)
{
    (void)call; /* the library's own, made right */
    return DM_OK;
}

dm_status dmi_index_count_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *x = &call->operand[0].desc;
    dmi_ref refs[2] = {dmi_ref_operand(1, DMI_WRITE), dmi_ref_operand(0, DMI_READ)};
    dmi_index_count k = {.dtype = x->dtype, .first = true};
    memcpy(&k.owner, call->tail, sizeof k.owner);
    memcpy(k.shape, x->extent, sizeof k.shape);
    if (b->me >= b->profile->workers || dmi_desc_region_count(&call->operand[1].desc, b->me) == 0) {
        return DM_OK;
    }
    int64_t regions = dmi_layout_replica(x->layout, b->me) == 0 ? dmi_desc_region_count(x, b->me) : 0;
    for (int64_t i = 0; i < DMI_MAX(regions, 1); i++) {
        memset(&k.region, 0, sizeof k.region);
        if (i < regions) {
            dmi_desc_region(x, b->me, i, &k.region);
        }
        refs[0].mode = k.first ? DMI_WRITE : DMI_READWRITE;
        dmi_build_kernel(b, DMI_KERNEL_index_count, &k, sizeof k, refs, k.region.count > 0 ? 2 : 1, NULL);
        k.first = false;
    }
    return DM_OK;
}
