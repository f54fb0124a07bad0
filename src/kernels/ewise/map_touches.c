/* What the kernel map touches. */
#include "kernels/kernel.h"

void dmi_map_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_map *m = t->desc;
    for (int i = 0; i < dmi_map_sides(&m->program); i++) {
        if (i < m->program.inputs && m->program.made[i]) {
            continue;
        }
        dmi_touch_box(&out[i], m->ndim, m->extent, m->stride[i], m->offset[i], dmi_dtype_bytes(m->dtype[i]),
                      i < m->program.inputs ? DMI_READ : DMI_WRITE);
    }
}
