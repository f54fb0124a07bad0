/* What the kernel within touches. */
#include "kernels/kernel.h"

void dmi_within_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_within *d = t->desc;
    dmi_touch_box(&out[0], d->ndim, d->extent, d->stride, d->offset, dmi_dtype_bytes(d->dtype), DMI_READ);
    for (int i = 0; i < 2; i++) {
        if (d->bound[i] > 0) {
            dmi_touch_dense(&out[d->bound[i]], 1, sizeof(double), DMI_READ);
        }
    }
}
