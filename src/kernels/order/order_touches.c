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

void dmi_search_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_search *s = t->desc;
    int64_t bytes = dmi_dtype_bytes(s->stored);
    dmi_touch_dense(&out[0], s->count, bytes, DMI_READ);
    out[0].offset = s->sorted_offset * bytes;
    dmi_touch_box(&out[1], s->ndim, s->extent, s->stride, s->offset, dmi_dtype_bytes(s->dtype), DMI_READ);
    dmi_touch_box(&out[2], s->ndim, s->extent, s->out_stride, s->out_offset, 8,
                  s->adds ? DMI_READWRITE : DMI_WRITE);
}

void dmi_histogram_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_histogram *h = t->desc;
    int ref = 2;
    dmi_touch_box(&out[0], h->ndim, h->extent, h->stride, h->offset, dmi_dtype_bytes(h->dtype), DMI_READ);
    dmi_touch_dense(&out[1], h->bins, 8, h->adds ? DMI_READWRITE : DMI_WRITE);
    if (h->weights) {
        dmi_touch_box(&out[ref++], h->ndim, h->extent, h->weight_stride, h->weight_offset,
                      dmi_dtype_bytes(h->weights), DMI_READ);
    }
    if (h->kind == DMI_BINS_EDGES) {
        dmi_touch_dense(&out[ref], h->bins + 1, dmi_dtype_bytes(h->type), DMI_READ);
    }
}
