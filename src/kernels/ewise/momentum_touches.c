/* What the kernel momentum touches. */
#include "kernels/kernel.h"

void dmi_momentum_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_momentum *d = t->desc;
    for (int i = 0; i < 3; i++) {
        dmi_touch_box(&out[i], d->ndim, d->extent, d->stride[i > 0], d->offset[i > 0],
                      dmi_dtype_bytes(d->dtype), i > 0 ? DMI_READWRITE : DMI_READ);
    }
    if (d->rounded != 0) {
        dmi_touch_box(&out[dmi_momentum_copy(d)], d->ndim, d->extent, d->stride[1], d->offset[1],
                      dmi_dtype_bytes(d->rounded), DMI_WRITE);
    }
    if (d->rate != 0) {
        dmi_touch_box(&out[3], 0, d->extent, d->stride[0], d->rate_offset, dmi_dtype_bytes(d->rate), DMI_READ);
    }
}
