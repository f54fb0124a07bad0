/* Regions of arrays and views, and the copies between them. */
#include "plan/plan.h"

#include <assert.h>
#include <string.h>

dmi_desc dmi_desc_whole(dm_dtype dtype, const dmi_layout *layout, uint32_t layout_id)
{
    dmi_desc desc = {.dtype = dtype, .ndim = layout->ndim, .layout = layout, .layout_id = layout_id};
    memcpy(desc.extent, layout->shape, sizeof desc.extent);
    return desc;
}

int dmi_desc_broadcast(int count, const dmi_desc *const *x, int *ndim, int64_t extent[DM_MAX_DIMS])
{
    int misfit = -1;
    *ndim = 0;
    for (int i = 0; i < count; i++) {
        *ndim = DMI_MAX(*ndim, x[i]->ndim);
    }
    for (int d = 0; d < *ndim; d++) {
        extent[d] = 1;
    }
    for (int i = 0; i < count; i++) {
        for (int d = 0; d < x[i]->ndim; d++) {
            int64_t own = x[i]->extent[d], *to = &extent[d + *ndim - x[i]->ndim];
            bool fits = own == *to || own == 1 || *to == 1;
            misfit = fits || misfit >= 0 ? misfit : i;
            *to = *to == 1 ? own : *to;
        }
    }
    return misfit;
}

void dmi_default_on(const dmi_layout *of, int ndim, const int64_t *extent, dm_dtype dtype, dmi_layout_spec *out)
{
    dmi_layout_default(ndim, extent, dmi_dtype_bytes(dtype), of->nworkers, out);
    out->workers = of->workers;
    out->nworkers = ndim > 0 ? out->grid[0] : 1;
    out->session_workers = of->session_workers;
}

void dmi_desc_like(const dmi_desc *desc, dmi_layout_spec *out)
{
    const dmi_layout *layout = desc->layout;
    if (layout->kind == DMI_LAYOUT_EXPLICIT) {
        dmi_default_on(layout, desc->ndim, desc->extent, desc->dtype, out);
        return;
    }
    *out = (dmi_layout_spec){.kind = DMI_LAYOUT_GRID,
                             .ndim = desc->ndim,
                             .nworkers = layout->nworkers,
                             .workers = layout->workers,
                             .replicas = layout->replicas,
                             .session_workers = layout->session_workers};
    for (int d = 0; d < desc->ndim; d++) {
        out->shape[d] = desc->extent[d];
        out->grid[d] = layout->grid[d];
        out->order[d] = layout->order[d];
        out->block[d] = layout->order[d] == DMI_ORDER_CYCLIC ? layout->block[d] : 0;
    }
}

bool dmi_desc_span(const dmi_desc *desc, int64_t *from, int64_t *to, bool *run)
{
    const dmi_layout *layout = desc->layout;
    int64_t first = 0, last = 0, count = 1, bytes = dmi_dtype_bytes(desc->dtype);
    bool known = layout && layout->kind == DMI_LAYOUT_GRID && desc->ndim == layout->ndim;
    for (int d = 0; known && d < desc->ndim; d++) {
        known = layout->grid[d] == 1 && desc->extent[d] > 0;
        first = first * layout->shape[d] + desc->lo[d];
        last = last * layout->shape[d] + desc->lo[d] + (desc->extent[d] - 1) * (desc->skip[d] + 1);
        count *= desc->extent[d];
    }
    *from = first * bytes;
    *to = (last + 1) * bytes;
    *run = known && count == last + 1 - first;
    return known;
}

void dmi_desc_area(const dmi_desc *desc, dmi_area *out)
{
    const dmi_layout *layout = desc->layout;
    bool whole = true;
    out->ndim = -1;
    out->from = out->to = 0;
    if (!layout || desc->ndim != layout->ndim) {
        return;
    }
    for (int d = 0; d < desc->ndim; d++) {
        whole = whole && desc->lo[d] == 0 && desc->extent[d] == layout->shape[d];
    }
    if (whole) {
        return;
    }
    out->ndim = desc->ndim;
    out->layout = layout;
    bool run;
    if (!dmi_desc_span(desc, &out->from, &out->to, &run)) {
        out->to = 0;
    }
    for (int d = 0; d < desc->ndim; d++) {
        out->lo[d] = desc->lo[d];
        out->step[d] = desc->skip[d] + 1;
        out->hi[d] = desc->extent[d] > 0 ? desc->lo[d] + (desc->extent[d] - 1) * (desc->skip[d] + 1) + 1 : desc->lo[d];
    }
}

bool dmi_desc_steps(const dmi_desc *desc)
{
    int64_t any = 0;
    for (int d = 0; d < desc->ndim; d++) {
        any |= desc->skip[d];
    }
    return any != 0;
}

/* --- views with steps ---
 * Let index k of a view be index lo + k * step of the layout. Of an interval the view has an interval, with its
 * step in memory. Of blocks it has blocks of block / step, if that is whole: block numbers of lo + k * step are
 * those of lo / step
 * + k, and what remains of lo is the same in each block. Else each block is a region of its own. */

/* Blocks that a view has to take one by one along dim d; 1: none. */
static int64_t separate_blocks(const dmi_desc *desc, const dmi_region *shard, int d)
{
    const dmi_dimset *set = &shard->dim[d];
    if (desc->skip[d] == 0 || set->g == 1 || set->block % (desc->skip[d] + 1) == 0) {
        return 1;
    }
    return (desc->layout->nblock[d] - set->c + set->g - 1) / set->g;
}

static int64_t step_up(int64_t value, int64_t step) /* value / step, rounded up; 0 if it is negative */
{
    return value <= 0 ? 0 : (value + step - 1) / step;
}

/* Indices of the view in the indices `set` of the layout; moves the region's memory. */
static void take_steps(const dmi_desc *desc, int d, dmi_dimset set, dmi_region *out)
{
    int64_t step = desc->skip[d] + 1, lo = desc->lo[d], stride = out->stride[d];
    if (set.g == 1) {
        int64_t from = step_up(set.lo - lo, step), to = DMI_MIN(step_up(set.hi - lo, step), desc->extent[d]);
        out->dim[d] = dmi_dimset_interval(from, DMI_MAX(to - from, 0));
        out->offset += (lo + from * step - set.lbase) * stride;
    } else {
        int64_t first = lo / step, rest = lo % step;
        dmi_dimset steps = {.lo = step_up(set.lo - rest, step),
                            .hi = step_up(set.hi - rest, step),
                            .block = set.block / step,
                            .g = set.g,
                            .c = set.c};
        dmi_dimset_clip(&steps, first, desc->extent[d], &out->dim[d]);
        out->offset += (rest - set.lbase) * stride;
    }
    out->stride[d] = stride * step;
}

/* Region `which` of those that region `shard` of the layout makes. */
static void stepped_region(const dmi_desc *desc, const dmi_region *shard, int64_t which, dmi_region *out)
{
    *out = *shard;
    out->count = 1;
    for (int d = desc->ndim - 1; d >= 0; d--) {
        dmi_dimset set = shard->dim[d];
        int64_t blocks = separate_blocks(desc, shard, d);
        if (blocks > 1) { /* block number `nth` of this worker */
            int64_t nth = which % blocks, lo = (set.c + nth * set.g) * set.block;
            which /= blocks;
            set = (dmi_dimset){.lo = lo,
                               .hi = DMI_MIN(lo + set.block, set.hi),
                               .block = 1,
                               .g = 1,
                               .lbase = lo - nth * set.block};
        }
        if (desc->skip[d] > 0) {
            take_steps(desc, d, set, out);
        } else {
            dmi_dimset_clip(&set, desc->lo[d], desc->extent[d], &out->dim[d]);
        }
        out->count *= out->dim[d].count;
    }
}

/* Regions of the view in one region of the layout. */
static int64_t regions_in(const dmi_desc *desc, const dmi_region *shard)
{
    int64_t regions = 1;
    for (int d = 0; d < desc->ndim; d++) {
        regions *= separate_blocks(desc, shard, d);
    }
    return regions;
}

int64_t dmi_desc_region_count(const dmi_desc *desc, int worker)
{
    int64_t count = dmi_layout_region_count(desc->layout, worker);
    if (count != 1 || desc->layout->kind == DMI_LAYOUT_EXPLICIT || !dmi_desc_steps(desc)) {
        return count;
    }
    dmi_region shard;
    dmi_layout_region(desc->layout, worker, 0, &shard);
    return regions_in(desc, &shard);
}

void dmi_desc_region(const dmi_desc *desc, int worker, int64_t which, dmi_region *out)
{
    if (!dmi_desc_steps(desc)) {
        dmi_layout_region(desc->layout, worker, which, out);
        dmi_region_clip(out, desc->lo, desc->extent, out);
        return;
    }
    dmi_region shard;
    bool blocks = desc->layout->kind == DMI_LAYOUT_EXPLICIT; /* intervals, all of them */
    dmi_layout_region(desc->layout, worker, blocks ? which : 0, &shard);
    stepped_region(desc, &shard, blocks ? 0 : which, out);
}

int64_t dmi_desc_region_next(const dmi_desc *desc, int worker, const dmi_region *box, int64_t after)
{
    int64_t lo[DM_MAX_DIMS], hi[DM_MAX_DIMS];
    if (desc->layout->kind != DMI_LAYOUT_EXPLICIT) { /* one at most */
        return after + 1;
    }
    for (int d = 0; d < box->ndim; d++) {
        const dmi_dimset *set = &box->dim[d];
        if (set->count == 0) {
            return after + 1;
        }
        lo[d] = desc->lo[d] + dmi_dimset_index(set, 0) * (desc->skip[d] + 1);
        hi[d] = desc->lo[d] + dmi_dimset_index(set, set->count - 1) * (desc->skip[d] + 1) + 1;
    }
    return dmi_layout_region_next(desc->layout, worker, lo, hi, after);
}

int64_t dmi_desc_count(const dmi_desc *desc)
{
    int64_t count = 1;
    for (int d = 0; d < desc->ndim; d++) {
        count *= desc->extent[d];
    }
    return count;
}

int64_t dmi_desc_local_count(const dmi_desc *desc, int worker)
{
    int64_t count = 0;
    for (int64_t i = 0; i < dmi_desc_region_count(desc, worker); i++) {
        dmi_region region;
        dmi_desc_region(desc, worker, i, &region);
        count += region.count;
    }
    return count;
}

bool dmi_region_locate(const dmi_region *have, const dmi_region *want, int64_t *offset)
{
    int64_t at = have->offset;
    for (int d = 0; d < want->ndim; d++) {
        const dmi_dimset *h = &have->dim[d], *w = &want->dim[d];
        if (w->count == 0) {
            *offset = 0;
            return true;
        }
        int64_t first = dmi_dimset_index(w, 0), last = dmi_dimset_index(w, w->count - 1);
        if (!dmi_dimset_contains(h, first) || !dmi_dimset_contains(h, last)) {
            return false;
        }
        int64_t position = dmi_dimset_position(h, first);
        if (dmi_dimset_position(h, last) - position != w->count - 1 || dmi_dimset_overlap(h, w) != w->count) {
            return false;
        }
        at += position * have->stride[d];
    }
    *offset = at;
    return true;
}

void dmi_region_dense(dmi_region *region, int64_t offset)
{
    int64_t stride = 1;
    region->offset = 0;
    for (int d = region->ndim - 1; d >= 0; d--) {
        region->stride[d] = stride;
        stride *= region->dim[d].count;
    }
    region->offset = offset - dmi_region_start(region);
}

bool dmi_region_copy(dmi_builder *b, const dmi_region *from, const dmi_region *to, dm_dtype from_dtype,
                     dm_dtype to_dtype, dmi_copy *out)
{
    assert(from->ndim == to->ndim);
    memset(out, 0, sizeof *out);
    out->ndim = from->ndim;
    out->src_dtype = from_dtype;
    out->dst_dtype = to_dtype;
    out->count = 1;
    for (int d = 0; d < from->ndim; d++) {
        int64_t overlap = dmi_dimset_overlap(&from->dim[d], &to->dim[d]);
        if (overlap == 0) {
            return false;
        }
        out->count *= overlap;
    }
    for (int d = 0; d < from->ndim; d++) {
        dmi_run *runs = NULL;
        int64_t n = b->failed ? -1 : dmi_dimset_intersect(&from->dim[d], &to->dim[d], &b->plan->arena, &runs);
        if (n < 0) {
            b->failed = true;
            return false;
        }
        out->nrun[d] = n;
        out->run[d] = runs;
        out->src_stride[d] = from->stride[d];
        out->dst_stride[d] = to->stride[d];
    }
    out->src_offset = dmi_region_start(from);
    out->dst_offset = dmi_region_start(to);
    return true;
}

static int64_t dim_count(const dmi_copy *copy, int d)
{
    int64_t n = 0;
    for (int64_t r = 0; r < copy->nrun[d]; r++) {
        n += copy->run[d][r].len;
    }
    return n;
}

/* The chunk of the copy whose ordinals along dim d (over its runs) are [first, first+len). */
static bool take_range(dmi_builder *b, const dmi_copy *copy, int d, int64_t first, int64_t len, dmi_copy *chunk)
{
    dmi_run *runs = dmi_build_alloc(b, (size_t)copy->nrun[d] * sizeof *runs);
    if (!runs) {
        return false;
    }
    int64_t n = 0, at = 0;
    for (int64_t r = 0; r < copy->nrun[d] && at < first + len; r++) {
        const dmi_run *run = &copy->run[d][r];
        int64_t lo = DMI_MAX(first - at, 0), hi = DMI_MIN(first + len - at, run->len);
        if (lo < hi) {
            runs[n++] = (dmi_run){run->index + lo, run->a + lo, run->b + lo, hi - lo};
        }
        at += run->len;
    }
    *chunk = *copy;
    chunk->count = copy->count / dim_count(copy, d) * len;
    chunk->nrun[d] = n;
    chunk->run[d] = runs;
    return true;
}

void dmi_copy_split(dmi_builder *b, const dmi_copy *copy, int64_t max_bytes,
                    void (*each)(void *context, const dmi_copy *chunk), void *context)
{
    int64_t bytes = copy->count * dmi_dtype_bytes(copy->src_dtype);
    int d = 0;
    while (d < copy->ndim && dim_count(copy, d) == 1) {
        d++;
    }
    if (bytes <= max_bytes || d == copy->ndim) {
        each(context, copy);
        return;
    }
    int64_t n = dim_count(copy, d), row = bytes / n;
    int64_t step = DMI_MAX(max_bytes / row, 1);
    for (int64_t i = 0; i < n; i += step) {
        dmi_copy chunk;
        if (!take_range(b, copy, d, i, DMI_MIN(step, n - i), &chunk)) {
            return;
        }
        if (row > max_bytes) { /* one index of this dim is still too much: split the next */
            dmi_copy_split(b, &chunk, max_bytes, each, context);
        } else {
            each(context, &chunk);
        }
    }
}

void dmi_build_pack(dmi_builder *b, const dmi_copy *copy, dmi_copy *packed)
{
    if (b->failed || !dmi_copy_pack(copy, packed, &b->plan->arena)) {
        b->failed = true;
    }
}

void dmi_build_unpack(dmi_builder *b, const dmi_copy *copy, dmi_copy *unpacked)
{
    if (b->failed || !dmi_copy_unpack(copy, unpacked, &b->plan->arena)) {
        b->failed = true;
    }
}

/* Folds the dims of a copy without runs into width, height and two pitches. */
bool dmi_copy_as_rows(const dmi_copy *c, int64_t elem, int64_t *src, int64_t *dst, int64_t v[4])
{
    int64_t width = 1, height = 1, src_pitch = 0, dst_pitch = 0;
    *src = c->src_offset;
    *dst = c->dst_offset;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->nrun[d] != 1) {
            return false;
        }
        int64_t len = c->run[d][0].len, ss = c->src_stride[d], ds = c->dst_stride[d];
        *src += c->run[d][0].a * ss;
        *dst += c->run[d][0].b * ds;
        if (len == 1) {
            continue;
        }
        if (height == 1 && ss == width && ds == width) {
            width *= len;
        } else if (height == 1) {
            height = len;
            src_pitch = ss;
            dst_pitch = ds;
        } else if (ss == src_pitch * height && ds == dst_pitch * height) {
            height *= len;
        } else {
            return false;
        }
    }
    v[0] = width * elem;
    v[1] = height;
    v[2] = (height > 1 ? src_pitch : width) * elem;
    v[3] = (height > 1 ? dst_pitch : width) * elem;
    bool few = v[0] <= INT32_MAX && v[2] <= INT32_MAX && v[3] <= INT32_MAX; /* what a copy of rows takes */
    return v[2] >= v[0] && v[3] >= v[0] && (height == 1 || few);
}
