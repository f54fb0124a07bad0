/* The channels of groups, from pixels that have those of all groups to an image for each group, and back; and
 * their weights, turned. */
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

enum { TILE = 32, LINES = THREADS / TILE };

struct turned_params {
    int64_t outputs, channels, places;
    dmi_cuda_divisor across, down, place; /* tiles of channels, of outputs; places of a group */
};

/* A block: a tile of the outputs and channels of a place, which goes through shared memory. */
template <typename S>
static __global__ void __launch_bounds__(THREADS) turn(const turned_params p, const S *w, S *turned)
{
    __shared__ S tile[TILE][TILE + 1];
    after_previous();
    const uint32_t row = divided(blockIdx.x, p.across), matrix = divided(row, p.down),
                   group = divided(matrix, p.place);
    const int64_t place = matrix - group * p.place.extent,
                  channel = (int64_t)(blockIdx.x - row * p.across.extent) * TILE,
                  output = (int64_t)(row - matrix * p.down.extent) * TILE;
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int k = y; k < TILE; k += LINES) {
        if (output + k < p.outputs && channel + x < p.channels) {
            tile[k][x] = w[((group * p.outputs + output + k) * p.places + place) * p.channels + channel + x];
        }
    }
    __syncthreads();
    for (int c = y; c < TILE; c += LINES) {
        if (channel + c < p.channels && output + x < p.outputs) {
            turned[((group * p.channels + channel + c) * p.places + p.places - 1 - place) * p.outputs + output +
                   x] = tile[x][c];
        }
    }
}

void dmi_cuda_launch_turned(dmi_queue *q, const dmi_cuda_turned *t, const void *w, void *turned)
{
    turned_params p = {};
    const int64_t across = (t->channels + TILE - 1) / TILE, down = (t->outputs + TILE - 1) / TILE;
    p.outputs = t->outputs;
    p.channels = t->channels;
    p.places = t->places;
    p.across = dmi_cuda_divide_by(across);
    p.down = dmi_cuda_divide_by(down);
    p.place = dmi_cuda_divide_by(t->places);
    const dim3 blocks((unsigned)(t->groups * t->places * across * down));
    if (t->elem == 2) {
        launch_after(q, turn<uint16_t>, blocks, p, (const uint16_t *)w, (uint16_t *)turned);
    } else {
        launch_after(q, turn<uint32_t>, blocks, p, (const uint32_t *)w, (uint32_t *)turned);
    }
    dmi_cuda_launched(q, "turned");
}
