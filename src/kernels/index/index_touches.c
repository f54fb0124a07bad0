/* What the kernels that follow indices touch: of lines all that they have here. */
#include "kernels/kernel.h"

static void touch_sides(const dmi_index *d, dmi_touch *indices, dmi_touch *box, int box_mode, dmi_touch *lines,
                        int line_mode)
{
    int64_t extent[DM_MAX_DIMS], elem = dmi_dtype_bytes(d->dtype), count = 1;
    for (int k = 0; k < d->ndim; k++) {
        extent[k] = k == d->dim ? d->set.count : d->extent[k];
        count *= d->extent[k];
    }
    if (count == 0) {
        return;
    }
    dmi_touch_box(indices, d->ndim, d->extent, d->index_stride, d->index_offset,
                  dmi_dtype_bytes(d->index_dtype), DMI_READ);
    dmi_touch_box(box, d->ndim, d->extent, d->box_stride, d->box_offset, elem, box_mode);
    dmi_touch_box(lines, d->ndim, extent, d->line_stride,
                  d->line_offset + dmi_dimset_first_position(&d->set) * d->line_stride[d->dim], elem,
                  line_mode);
}

void dmi_take_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_index *d = t->desc;
    touch_sides(d, &out[0], &out[2], d->some ? DMI_READWRITE : DMI_WRITE, &out[1], DMI_READ);
}

void dmi_put_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_index *d = t->desc;
    bool all = d->unique && !d->adds && d->extent[d->dim] == d->set.count; /* every place is written */
    touch_sides(d, &out[0], &out[1], DMI_READ, &out[2], all ? DMI_WRITE : DMI_READWRITE);
}

/* Lines are read by others, and what a borrower reads of them is another's. */
void dmi_lend_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_lend *d = t->desc;
    dmi_touch_dense(&out[1], 1, 8, DMI_WRITE);
    out[1].offset = d->place * 8;
}

void dmi_borrow_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_borrow *d = t->desc;
    const dmi_index *x = &d->index;
    dmi_touch_box(&out[0], x->ndim, x->extent, x->index_stride, x->index_offset,
                  dmi_dtype_bytes(x->index_dtype), DMI_READ);
    dmi_touch_dense(&out[1], d->addresses, 8, DMI_READ);
    dmi_touch_box(&out[2], x->ndim, x->extent, x->box_stride, x->box_offset, dmi_dtype_bytes(x->dtype),
                  DMI_WRITE);
    dmi_touch_dense(&out[3], 1, 8, DMI_WRITE);
}

void dmi_nonzero_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_nonzero *d = t->desc;
    const int64_t own = d->own_to - d->own_from;
    const bool some = t->refs > 1;
    if (some) {
        dmi_touch_box(&out[0], d->ndim, d->extent, d->stride, d->offset, dmi_dtype_bytes(d->dtype), DMI_READ);
    }
    if (!d->lists) {
        dmi_touch_dense(&out[some], 1, 8, DMI_WRITE);
        return;
    }
    dmi_touch_dense(&out[1], (d->count - own) * d->ndim, 8, DMI_WRITE);
    for (int k = 0; k < d->ndim; k++) {
        dmi_touch_dense(&out[2 + k], own, 8, DMI_WRITE);
        out[2 + k].offset = d->out_at * 8;
    }
}

void dmi_index_count_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_index_count *d = t->desc;
    int64_t extent[DM_MAX_DIMS] = {0};
    for (int k = 0; k < d->region.ndim; k++) {
        extent[k] = d->region.dim[k].count;
    }
    if (d->region.count > 0) {
        dmi_touch_box(&out[1], d->region.ndim, extent, d->region.stride, dmi_region_start(&d->region),
                      dmi_dtype_bytes(d->dtype), DMI_READ);
    }
    dmi_touch_dense(&out[0], 1 + d->owner.g, 8, d->first ? DMI_WRITE : DMI_READWRITE);
}

void dmi_index_sort_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_index_sort *d = t->desc;
    dmi_touch_box(&out[0], 1, &d->count, &d->stride, d->offset, dmi_dtype_bytes(d->dtype), DMI_READ);
    dmi_touch_dense(&out[1], d->count, 8, DMI_WRITE);
    dmi_touch_dense(&out[2], d->count, 8, DMI_WRITE);
    dmi_touch_dense(&out[3], d->owner.g, 8, DMI_WRITE);
}
