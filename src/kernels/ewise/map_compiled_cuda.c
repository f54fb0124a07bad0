/* Boxes for the kernels that are made for a program. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/ewise/map_args.h"
#include "kernels/ewise/map_compiled.h"
#include "kernels/ewise/map_source.h"
#include "kernels/ewise/tile_args.h"

_Static_assert(sizeof(dmi_tile_args) <= 4000, "a kernel's parameters have 4 KiB");

typedef struct compiled_job {
    dmi_queue *q;
    const dmi_map *d;
    dmi_map_kernels kernels;
    bool groups;
    char *memory[DMI_MAP_SIDES];
    dmi_map_args args;
} compiled_job;

static dmi_map_divisor divide_by(int64_t extent)
{
    dmi_cuda_divisor d = dmi_cuda_divide_by(extent);
    return (dmi_map_divisor){d.extent, d.factor, d.shift};
}

/* Thread blocks for so many items. A thread block keeps to one row where that leaves at most a fifth of the
 * threads idle. */
static unsigned blocks_for(dmi_map_args *a, int64_t row, int depth)
{
    int64_t per_block = (int64_t)DMI_MAP_THREADS * depth, each = (row + per_block - 1) / per_block;
    if (each * per_block * 4 > row * 5) {
        a->chunks = (dmi_map_divisor){0};
        return (unsigned)((a->items + per_block - 1) / per_block);
    }
    a->chunks = divide_by(each);
    return (unsigned)(a->items / row * each);
}

static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    compiled_job *job = context;
    dmi_map_args *a = &job->args;
    int sides = dmi_map_sides(&job->d->program), inner = part->ndim - 1;
    int64_t items = 1;
    a->ndim = part->ndim;
    for (int d = 0; d < part->ndim; d++) {
        a->extent[d] = divide_by(part->extent[inner - d]);
        items *= part->extent[inner - d];
        for (int s = 0; s < sides; s++) {
            a->stride[s][d] = part->stride[s][inner - d];
        }
    }
    a->items = (uint32_t)items;
    for (int s = 0; s < sides; s++) {
        a->memory[s] = dmi_at_mut(job->memory[s], at[s] * dmi_dtype_bytes(job->d->dtype[s]));
        a->linear.first[s] = at[s];
    }
    unsigned blocks = blocks_for(a, part->extent[inner], job->groups ? 1 : DMI_MAP_DEPTH);
    dmi_cuda_map_launch(job->q, job->groups ? job->kernels.groups : job->kernels.items, blocks, a);
}

/* Can all sides be read and written in groups? An input of which one element serves a whole group can. */
static bool grouped(compiled_job *job, const dmi_box *box, const int64_t *at, int64_t group)
{
    int out = job->d->program.inputs;
    bool fits = true;
    for (int s = 0; s < dmi_map_sides(&job->d->program); s++) {
        if (s < out && job->d->program.made[s]) {
            continue;
        }
        bool splat = s < out && box->stride[s][box->ndim - 1] == 0;
        job->args.splat[s] = splat;
        fits = fits && (splat || dmi_cuda_grouped(box, s, job->memory[s], at[s],
                                                  dmi_dtype_bytes(job->d->dtype[s]), group));
    }
    return fits;
}

/* Groups, then the elements of each row that are left over. */
static void launch_box(compiled_job *job, const dmi_box *box, const int64_t *at)
{
    int sides = dmi_map_sides(&job->d->program), inner = box->ndim - 1;
    int64_t group = dmi_map_group(job->d), n = box->extent[inner];
    int64_t body = grouped(job, box, at, group) ? n / group * group : 0;
    dmi_box part = *box;
    if (body > 0) {
        part.extent[inner] = body / group;
        for (int s = 0; s < sides; s++) {
            part.stride[s][inner] *= group;
        }
        job->groups = true;
        dmi_cuda_split(&part, at, false, launch_part, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES];
        part = *box;
        part.extent[inner] = n - body;
        for (int s = 0; s < sides; s++) {
            rest[s] = at[s] + body * box->stride[s][inner];
        }
        job->groups = false;
        dmi_cuda_split(&part, rest, false, launch_part, job);
    }
}

/* The dim along which an input is dense that is not dense along the innermost dim, as out is; -1: there is
 * none. */
static int turned_dim(const dmi_map *d, const dmi_box *box)
{
    enum { SHORTEST = 16 }; /* elements, in both dims: fewer leave most of a tile empty */
    int inner = box->ndim - 1, out = d->program.inputs;
    for (int s = 0; s < out; s++) {
        for (int dim = 0; dim < inner; dim++) {
            bool turned = !d->program.made[s] && box->stride[s][dim] == 1 && box->stride[s][inner] > 1;
            if (turned && box->stride[out][inner] == 1 && box->extent[dim] >= SHORTEST &&
                box->extent[inner] >= SHORTEST) {
                return dim;
            }
        }
    }
    return -1;
}

bool dmi_cuda_map_turned(const dmi_map *d)
{
    dmi_box box = {.ndim = d->ndim, .sides = d->program.inputs + 1};
    for (int s = 0; s <= d->program.inputs; s++) {
        memcpy(box.stride[s], d->stride[s], sizeof d->stride[s]);
    }
    memcpy(box.extent, d->extent, sizeof d->extent);
    dmi_box_simplify(&box, d->program.inputs);
    return turned_dim(d, &box) >= 0;
}

/* In tiles of the innermost dim and `dim`. */
static bool launch_tiles(compiled_job *job, const dmi_box *given, const int64_t *at, int dim, int64_t bytes)
{
    dmi_tile_args tile = {0};
    dmi_map_args *a = &tile.map;
    const dmi_map *d = job->d;
    int out = d->program.inputs, inner = given->ndim - 1;
    dmi_box box = *given;
    for (int k = dim; k + 1 < inner; k++) { /* y becomes the dim before the innermost */
        box.extent[k] = given->extent[k + 1];
        for (int s = 0; s <= out; s++) {
            box.stride[s][k] = given->stride[s][k + 1];
        }
    }
    box.extent[inner - 1] = given->extent[dim];
    bool groups = true;
    int64_t group = dmi_map_group(d);
    for (int s = 0; s <= out; s++) {
        box.stride[s][inner - 1] = given->stride[s][dim];
        tile.turned[s] =
            s < out && !d->program.made[s] && box.stride[s][inner - 1] == 1 && box.stride[s][inner] > 1;
        dmi_box side = box;
        if (tile.turned[s]) {
            side.stride[s][inner] = 1;
            side.stride[s][inner - 1] = box.stride[s][inner];
            side.extent[inner] = box.extent[inner - 1];
            side.extent[inner - 1] = box.extent[inner];
        }
        bool made = s < out && d->program.made[s];
        groups =
            groups && (made || side.stride[s][inner] != 1 ||
                       dmi_cuda_grouped(&side, s, job->memory[s], at[s], dmi_dtype_bytes(d->dtype[s]), group));
    }
    int64_t edge = dmi_map_tile_edge(d, groups), tiles = 1;
    for (int k = 0; k < box.ndim; k++) {
        int64_t extent = box.extent[inner - k];
        tiles *= k < 2 ? (extent + edge - 1) / edge : extent;
        if (tiles > DMI_CUDA_ITEMS || extent > DMI_CUDA_ITEMS) {
            return false;
        }
    }
    if (!dmi_cuda_map_kernels(job->q, d, true, bytes, &job->kernels)) {
        return false;
    }
    *a = job->args;
    a->ndim = box.ndim;
    for (int k = 0; k < box.ndim; k++) {
        a->extent[k] = divide_by(box.extent[inner - k]);
        for (int s = 0; s <= out; s++) {
            a->stride[s][k] = box.stride[s][inner - k];
        }
    }
    for (int k = 0; k < 2; k++) {
        tile.edge[k] = box.extent[inner - k];
        tile.tiles[k] = divide_by((tile.edge[k] + edge - 1) / edge);
    }
    for (int s = 0; s <= out; s++) {
        a->memory[s] = dmi_at_mut(job->memory[s], at[s] * dmi_dtype_bytes(d->dtype[s]));
        a->linear.first[s] = at[s];
    }
    dmi_cuda_map_launch(job->q, groups ? job->kernels.groups : job->kernels.items, (unsigned)tiles, &tile);
    return true;
}

bool dmi_cuda_map_compiled(const dmi_kernel_call *call, const dmi_map *d)
{
    int inputs = d->program.inputs;
    compiled_job job = {.q = call->queue, .d = d};
    dmi_box box = {.ndim = d->ndim, .sides = dmi_map_sides(&d->program)};
    int64_t at[DMI_BOX_SIDES] = {0}, elements = 1, bytes = 0;
    for (int i = 0; i < d->ndim; i++) {
        elements *= d->extent[i];
    }
    for (int s = 0; s < box.sides; s++) {
        job.memory[s] = call->at[s];
        at[s] = d->offset[s];
        bytes += elements * dmi_dtype_bytes(d->dtype[s]);
        memcpy(box.stride[s], d->stride[s], sizeof d->stride[s]);
    }
    for (int i = 0; i < call->numbers && i < DMI_MAP_ARG_NUMBERS; i++) {
        job.args.number[i] = (dmi_map_scalar){call->number[i].re, call->number[i].im, call->number[i].whole};
    }
    dmi_cuda_linear_of(d->places, &job.args.linear);
    memcpy(box.extent, d->extent, sizeof d->extent);
    dmi_box_simplify(&box, inputs);
    int turned = d->program.kept > 0 ? -1 : turned_dim(d, &box); /* tiles have one result */
    if (turned >= 0 && launch_tiles(&job, &box, at, turned, bytes)) {
        return true;
    }
    if (!dmi_cuda_map_kernels(call->queue, d, false, bytes, &job.kernels)) {
        return false;
    }
    launch_box(&job, &box, at);
    return true;
}
