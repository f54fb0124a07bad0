/* A worker's shard as regions; the holder of an element; clipping. */
#include "layout/layout.h"

#include <assert.h>
#include <string.h>

/* First index of block number `b` of a dim, the end of the dim when there is no such block. */
static int64_t block_start(const dmi_layout *layout, int d, int64_t b)
{
    return b < layout->nblock[d] ? b * layout->block[d] : layout->shape[d];
}

/* Blocks that one grid position of a contiguous dim takes (the last ones may get fewer). */
static int64_t blocks_each(const dmi_layout *layout, int d)
{
    return layout->nblock[d] / layout->grid[d] + (layout->nblock[d] % layout->grid[d] != 0);
}

/* The indices of dim d at grid position c. */
static dmi_dimset grid_dimset(const dmi_layout *layout, int d, int c)
{
    int g = layout->grid[d];
    bool cyclic = layout->order[d] == DMI_ORDER_CYCLIC && g > 1;
    if (cyclic && layout->nblock[d] > g) {
        dmi_dimset all = {.lo = 0,
                          .hi = layout->shape[d],
                          .block = layout->block[d],
                          .g = g,
                          .c = c,
                          .origin = 0,
                          .lbase = 0};
        dmi_dimset_clip(&all, 0, layout->shape[d], &all);
        return all;
    }
    int64_t each = cyclic ? 1 : blocks_each(layout, d);
    int64_t lo = block_start(layout, d, c * each), hi = block_start(layout, d, (c + 1) * each);
    return dmi_dimset_interval(lo, hi - lo);
}

/* Strides and count of a region whose dims are packed, row-major. An empty dim counts as one in the strides, so
 * that they never are 0, which elsewhere means broadcasting. */
static void pack(dmi_region *region)
{
    int64_t stride = 1;
    region->count = 1;
    for (int d = region->ndim - 1; d >= 0; d--) {
        region->stride[d] = stride;
        stride *= DMI_MAX(region->dim[d].count, 1);
        region->count *= region->dim[d].count;
    }
}

int64_t dmi_layout_region_count(const dmi_layout *layout, int worker)
{
    assert(worker >= 0 && worker < layout->session_workers);
    if (layout->kind == DMI_LAYOUT_EXPLICIT) {
        return layout->first[worker + 1] - layout->first[worker];
    }
    return layout->position[worker] >= 0 ? 1 : 0;
}

void dmi_layout_region(const dmi_layout *layout, int worker, int64_t which, dmi_region *out)
{
    assert(which >= 0 && which < dmi_layout_region_count(layout, worker));
    memset(out, 0, sizeof *out);
    out->ndim = layout->ndim;
    if (layout->kind == DMI_LAYOUT_EXPLICIT) {
        int64_t block = layout->own[layout->first[worker] + which];
        for (int d = layout->ndim - 1; d >= 0; d--) {
            int64_t b = block % layout->nblock[d], lo = block_start(layout, d, b);
            out->dim[d] = dmi_dimset_interval(lo, block_start(layout, d, b + 1) - lo);
            block /= layout->nblock[d];
        }
        out->offset = layout->own_offset[layout->first[worker] + which];
    } else {
        int at = layout->position[worker] % layout->group;
        for (int d = layout->ndim - 1; d >= 0; d--) {
            out->dim[d] = grid_dimset(layout, d, at % layout->grid[d]);
            at /= layout->grid[d];
        }
    }
    pack(out);
}

int64_t dmi_layout_shard_count(const dmi_layout *layout, int worker)
{
    int64_t regions = dmi_layout_region_count(layout, worker);
    if (regions == 0) {
        return 0;
    }
    dmi_region last;
    dmi_layout_region(layout, worker, regions - 1, &last);
    return last.offset + last.count;
}

int dmi_layout_replica(const dmi_layout *layout, int worker)
{
    if (dmi_layout_region_count(layout, worker) == 0) {
        return -1;
    }
    return layout->kind == DMI_LAYOUT_EXPLICIT ? 0 : layout->position[worker] / layout->group;
}

int dmi_layout_owner(const dmi_layout *layout, const int64_t *index, int replica)
{
    assert(replica >= 0 && replica < layout->replicas);
    int64_t at = 0;
    for (int d = 0; d < layout->ndim; d++) {
        assert(index[d] >= 0 && index[d] < layout->shape[d]);
        int64_t b = index[d] / layout->block[d];
        if (layout->kind == DMI_LAYOUT_EXPLICIT) {
            at = at * layout->nblock[d] + b;
        } else {
            bool cyclic = layout->order[d] == DMI_ORDER_CYCLIC;
            at = at * layout->grid[d] + (cyclic ? b % layout->grid[d] : b / blocks_each(layout, d));
        }
    }
    if (layout->kind == DMI_LAYOUT_EXPLICIT) {
        return layout->map[at];
    }
    return layout->workers[(int64_t)replica * layout->group + at];
}

bool dmi_region_clip(const dmi_region *in, const int64_t *lo, const int64_t *extent, dmi_region *out)
{
    if (out != in) {
        *out = *in;
    }
    out->count = 1;
    for (int d = 0; d < out->ndim; d++) {
        dmi_dimset_clip(&out->dim[d], lo[d], extent[d], &out->dim[d]);
        out->count *= out->dim[d].count;
    }
    return out->count > 0;
}

int64_t dmi_region_start(const dmi_region *region)
{
    int64_t at = region->offset;
    for (int d = 0; d < region->ndim; d++) {
        at += region->dim[d].count > 0 ? dmi_dimset_first_position(&region->dim[d]) * region->stride[d] : 0;
    }
    return at;
}
