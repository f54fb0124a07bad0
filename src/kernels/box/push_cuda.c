/* A push by a kernel: rows in the widest units that they allow. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>

enum { SRC = 0, DST = 1 };

void dmi_cuda_push_rows(dmi_queue *q, const dmi_push *p)
{
    dmi_box rows = {.sides = 2, .ndim = 2, .extent = {p->height, p->width}}, units;
    const uintptr_t address[2] = {(uintptr_t)p->src, (uintptr_t)p->dst};
    dmi_cuda_box box;
    assert(p->width >= 0 && p->height >= 0);
    rows.stride[SRC][0] = p->height > 1 ? p->src_pitch : p->width;
    rows.stride[DST][0] = p->height > 1 ? p->dst_pitch : p->width;
    rows.stride[SRC][1] = rows.stride[DST][1] = 1;
    int64_t unit = dmi_cuda_row_unit(&rows, address, 1) | p->width;
    unit &= -unit;
    bool nothing = p->width == 0 || p->height == 0;
    if (nothing) { /* the counter all the same */
        rows.extent[0] = rows.extent[1] = 1;
        unit = 1;
    }
    dmi_cuda_in_units(&rows, unit, &units);
    dmi_cuda_box_make(&units, &box);
    box.items = nothing ? 0 : box.items;
    dmi_cuda_launch_push(q, (int)unit, &box, p);
}
