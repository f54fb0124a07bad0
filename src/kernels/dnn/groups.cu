/* The channels of groups, from pixels that have those of all groups to an image for each group, and back. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

enum { THREADS = DMI_CUDA_THREADS };

struct groups_params {
    uint32_t items;
    dmi_cuda_divisor row, part; /* units of a pixel, of a group's pixel */
    int64_t first, rows;        /* pixels: the first of this launch, all */
    bool back;
};

static __global__ void __launch_bounds__(THREADS) regroup(const groups_params p, const uint4 *from, uint4 *to)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    uint32_t row = divided(i, p.row), unit = i - row * p.row.extent, g = divided(unit, p.part);
    int64_t whole = p.first * p.row.extent + i,
            apart = (g * p.rows + p.first + row) * p.part.extent + unit - g * p.part.extent;
    to[p.back ? whole : apart] = from[p.back ? apart : whole];
}

void dmi_cuda_launch_groups(dmi_queue *q, int64_t rows, int64_t bytes, int64_t groups, bool back,
                            const void *from, void *to)
{
    groups_params p = {};
    int64_t units = bytes / (int64_t)sizeof(uint4), most = DMI_CUDA_ITEMS / units;
    p.row = dmi_cuda_divide_by(units);
    p.part = dmi_cuda_divide_by(units / groups);
    p.rows = rows;
    p.back = back;
    for (p.first = 0; p.first < rows; p.first += most) {
        p.items = (uint32_t)((rows - p.first < most ? rows - p.first : most) * units);
        launch_after(q, regroup, dim3(blocks_for(p.items, THREADS)), p, (const uint4 *)from, (uint4 *)to);
    }
    dmi_cuda_launched(q, "groups");
}
