/* What reductions touch. */
#include "kernels/kernel.h"

void dmi_reduce_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_reduce *r = t->desc;
    int64_t kept = 1;
    for (int d = 0; d < r->ndim; d++) {
        kept *= r->reduced >> d & 1 ? 1 : r->extent[d];
    }
    int inputs = r->map ? r->map->program.inputs : 1;
    for (int i = 0; r->map && i < dmi_map_inputs_read(&r->map->program); i++) {
        dmi_touch_box(&out[i], r->ndim, r->extent, r->map->stride[i], r->map->offset[i],
                      dmi_dtype_bytes(r->map->dtype[i]), DMI_READ);
    }
    if (!r->map) {
        dmi_touch_box(&out[0], r->ndim, r->extent, r->stride, r->offset, dmi_dtype_bytes(r->dtype), DMI_READ);
    }
    dmi_touch_dense(&out[inputs], kept, dmi_acc_bytes(dmi_acc_for(r->row, r->dtype)), DMI_WRITE);
}

void dmi_acc_add_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_acc_add *add = t->desc;
    dmi_touch_copy(&out[0], &add->geometry, false, dmi_acc_bytes(add->acc), DMI_READ);
    dmi_touch_copy(&out[1], &add->geometry, true, dmi_acc_bytes(add->acc), DMI_READWRITE);
}

static void touch_stored(const dmi_touching *t, const dmi_acc_store *s, dmi_touch *out)
{
    dmi_touch_box(out, s->ndim, s->extent, s->out_stride, s->out_offset, dmi_dtype_bytes(s->out_dtype),
                  t->zero[1] ? DMI_WRITE : DMI_READWRITE);
}

void dmi_acc_store_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_acc_store *s = t->desc;
    int64_t count = 1;
    for (int d = 0; d < s->ndim; d++) {
        count *= s->extent[d];
    }
    dmi_touch_dense(&out[0], count, dmi_acc_bytes(s->acc), DMI_READ);
    touch_stored(t, s, &out[1]);
}

void dmi_fold_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_fold *f = t->desc;
    const dmi_acc_store *s = &f->store;
    int64_t elem = dmi_dtype_bytes(f->dtype), rows[2] = {f->addends - (f->own >= 0), 1},
            stride[2] = {f->pitch, 1};
    for (int d = 0; d < s->ndim; d++) {
        rows[1] *= s->extent[d];
    }
    dmi_touch_box(&out[0], 2, rows, stride, 0, elem, DMI_READ);
    touch_stored(t, s, &out[1]);
    dmi_touch_box(&out[2], s->ndim, s->extent, f->own_stride, f->own_offset, elem, f->own >= 0 ? DMI_READ : 0);
}
