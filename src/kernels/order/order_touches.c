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

void dmi_sort_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_sort *s = t->desc;
    int64_t bytes = dmi_dtype_bytes(s->dtype), made[DM_MAX_DIMS];
    int ref = 2;
    for (int d = 0; d < s->ndim; d++) {
        made[d] = d == s->dim ? s->most : s->extent[d];
    }
    dmi_touch_box(&out[0], s->ndim, s->extent, s->stride, s->offset, bytes, DMI_READ);
    dmi_touch_dense(&out[1], s->scratch, 1, DMI_WRITE);
    if (s->values) {
        dmi_touch_box(&out[ref++], s->ndim, made, s->value_stride, s->value_offset, bytes, DMI_WRITE);
    }
    if (s->indices) {
        dmi_touch_box(&out[ref++], s->ndim, made, s->index_stride, s->index_offset, 8, DMI_WRITE);
    }
    if (s->carried) {
        dmi_touch_box(&out[ref++], s->ndim, s->extent, s->carried_stride, s->carried_offset, 8, DMI_READ);
    }
}
