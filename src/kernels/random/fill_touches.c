/* What a fill touches. */
#include "kernels/kernel.h"

void dmi_fill_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fill *f = t->desc;
    int64_t extent[DM_MAX_DIMS] = {0};
    for (int d = 0; d < f->region.ndim; d++) {
        extent[d] = f->region.dim[d].count;
    }
    dmi_touch_box(&out[0], f->region.ndim, extent, f->region.stride, dmi_region_start(&f->region),
                  dmi_dtype_bytes(f->dtype), DMI_WRITE);
    if (f->element) {
        dmi_touch_dense(&out[1], 1, sizeof(double), DMI_READ);
    }
}
