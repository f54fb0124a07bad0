/* Explicit maps: which blocks each worker owns, and where in its shard. */
#include "layout/explicit.h"

#include <inttypes.h>
#include <stdlib.h>

static dm_status no_memory(const dmi_layout *y)
{
    return dmi_fail(DM_ERR_NOMEM, "layout: no memory for a map of %" PRId64 " blocks", y->blocks);
}

static dm_status copy_map(const dmi_layout_spec *spec, dmi_layout *y)
{
    if (spec->map_count != y->blocks) {
        return dmi_fail(DM_ERR_LAYOUT, "layout: map_count is %" PRId64 ", but the array has %" PRId64 " blocks",
                        spec->map_count, y->blocks);
    }
    if (!spec->map && y->blocks > 0) {
        return dmi_fail(DM_ERR_LAYOUT, "layout: map is null, but the array has %" PRId64 " blocks", y->blocks);
    }
    int *map = dmi_arena_alloc(&y->arena, (size_t)y->blocks * sizeof *map);
    if (!map) {
        return no_memory(y);
    }
    for (int64_t i = 0; i < y->blocks; i++) {
        map[i] = spec->map[i];
        if (map[i] < 0 || map[i] >= y->session_workers || y->position[map[i]] < 0) {
            return dmi_fail(DM_ERR_LAYOUT,
                            "layout: map[%" PRId64 "] is %d, which is none of the layout's %d workers", i,
                            map[i], y->nworkers);
        }
    }
    y->map = map;
    return DM_OK;
}

/* Steps at[] to the next block in row-major order. */
static void next_block(const dmi_layout *y, int64_t *at)
{
    for (int d = y->ndim - 1; d >= 0 && ++at[d] == y->nblock[d]; d--) {
        at[d] = 0;
    }
}

/* Which blocks each worker owns, and where in its shard they begin. */
static dm_status place_blocks(dmi_layout *y)
{
    size_t workers = (size_t)y->session_workers;
    int64_t *first = dmi_arena_alloc(&y->arena, (workers + 1) * sizeof *first);
    int64_t *own = dmi_arena_alloc(&y->arena, (size_t)y->blocks * sizeof *own);
    int64_t *own_offset = dmi_arena_alloc(&y->arena, (size_t)y->blocks * sizeof *own_offset);
    int64_t *cursor = calloc(workers, sizeof *cursor), *used = calloc(workers, sizeof *used);
    dm_status status = DM_OK;
    if (!first || !own || !own_offset || !cursor || !used) {
        status = no_memory(y);
        goto out;
    }
    for (int64_t i = 0; i < y->blocks; i++) {
        first[y->map[i] + 1]++;
    }
    for (size_t w = 0; w < workers; w++) {
        cursor[w] = first[w];
        first[w + 1] += first[w];
    }
    int64_t at[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < y->blocks; i++, next_block(y, at)) {
        int w = y->map[i];
        int64_t count = 1;
        for (int d = 0; d < y->ndim; d++) {
            count *= DMI_MIN(y->block[d], y->shape[d] - at[d] * y->block[d]);
        }
        own[cursor[w]] = i;
        own_offset[cursor[w]++] = used[w];
        used[w] += count;
    }
    y->first = first;
    y->own = own;
    y->own_offset = own_offset;
out:
    free(cursor);
    free(used);
    return status;
}

dm_status dmi_layout_take_map(const dmi_layout_spec *spec, dmi_layout *y)
{
    dm_status status = copy_map(spec, y);
    return status == DM_OK ? place_blocks(y) : status;
}
