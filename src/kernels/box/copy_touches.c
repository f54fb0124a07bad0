/* What a copy touches. */
#include "kernels/kernel.h"

void dmi_copy_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_copy *copy = t->desc;
    dmi_touch_copy(&out[0], copy, false, dmi_dtype_bytes(copy->src_dtype), DMI_READ);
    dmi_touch_copy(&out[1], copy, true, dmi_dtype_bytes(copy->dst_dtype), DMI_WRITE);
}
