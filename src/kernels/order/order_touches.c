/* What kernels along one dim touch. */
#include "kernels/kernel.h"

void dmi_scan_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_scan *s = t->desc;
    int64_t rows = 1;
    for (int d = 0; d < s->ndim; d++) {
        rows *= d == s->dim ? 1 : s->extent[d];
    }
    dmi_touch_box(&out[0], s->ndim, s->extent, s->stride, s->offset, dmi_dtype_bytes(s->dtype), DMI_READ);
    dmi_touch_box(&out[1], s->ndim, s->extent, s->out_stride, s->out_offset, dmi_dtype_bytes(s->out_dtype),
                  DMI_WRITE);
    if (s->starts) {
        dmi_touch_dense(&out[2], rows, dmi_acc_bytes(dmi_acc_for(s->row, s->dtype)), DMI_READ);
    }
}
