/* Which regions of a worker may lie in a box, in their order, without looking at all of them. */
#include "layout/layout.h"

/* The blocks that a box touches: first and last of each dim. False where it touches none. */
static bool box_blocks(const dmi_layout *y, const int64_t *lo, const int64_t *hi, int64_t *first, int64_t *last,
                       int64_t *count)
{
    *count = 1;
    for (int d = 0; d < y->ndim; d++) {
        first[d] = DMI_MAX(lo[d], 0) / y->block[d];
        last[d] = DMI_MIN(hi[d], y->shape[d]) - 1;
        if (hi[d] <= lo[d] || last[d] < 0 || first[d] >= y->nblock[d]) {
            return false;
        }
        last[d] /= y->block[d];
        *count *= last[d] - first[d] + 1;
    }
    return true;
}

/* Moves at[] to the next block of the box with dims from `d` on begun anew; false at the end of the box. */
static bool carry(const dmi_layout *y, const int64_t *first, const int64_t *last, int d, int64_t *at)
{
    for (int i = d; i < y->ndim; i++) {
        at[i] = first[i];
    }
    while (--d >= 0) {
        if (at[d] < last[d]) {
            at[d]++;
            return true;
        }
        at[d] = first[d];
    }
    return false;
}

/* The first block of the box whose number is `from` or more. */
static bool enter_box(const dmi_layout *y, const int64_t *first, const int64_t *last, int64_t from, int64_t *at)
{
    if (from >= y->blocks) {
        return false;
    }
    for (int d = y->ndim - 1; d >= 0; d--) {
        at[d] = from % y->nblock[d];
        from /= y->nblock[d];
    }
    for (int d = 0; d < y->ndim; d++) {
        if (at[d] > last[d]) {
            return carry(y, first, last, d, at);
        }
        if (at[d] < first[d]) {
            for (; d < y->ndim; d++) {
                at[d] = first[d];
            }
        }
    }
    return true;
}

/* Where in the worker's list a block of its own is. */
static int64_t place_of(const int64_t *own, int64_t count, int64_t block)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (own[middle] < block) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int64_t dmi_layout_region_next(const dmi_layout *y, int worker, const int64_t *lo, const int64_t *hi,
                               int64_t after)
{
    int64_t first[DM_MAX_DIMS], last[DM_MAX_DIMS], at[DM_MAX_DIMS];
    int64_t regions = dmi_layout_region_count(y, worker), inside;
    if (y->kind != DMI_LAYOUT_EXPLICIT || after + 1 >= regions) {
        return after + 1;
    }
    if (!box_blocks(y, lo, hi, first, last, &inside)) {
        return regions;
    }
    if (inside > regions) { /* fewer are ours than lie in the box */
        return after + 1;
    }
    const int64_t *own = y->own + y->first[worker];
    bool more = enter_box(y, first, last, after < 0 ? 0 : own[after] + 1, at);
    for (; more; more = carry(y, first, last, y->ndim, at)) {
        int64_t block = 0;
        for (int d = 0; d < y->ndim; d++) {
            block = block * y->nblock[d] + at[d];
        }
        if (y->map[block] == worker) {
            return place_of(own, regions, block);
        }
    }
    return regions;
}
