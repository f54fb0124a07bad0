#include "support/layouts.h"

#include <inttypes.h>
#include <stdio.h>

static void add_numbers(char *text, int bytes, const char *label, int count, const int64_t *numbers)
{
    int used = 0;
    while (text[used]) {
        used++;
    }
    used += snprintf(text + used, (size_t)(bytes - used), " %s [", label);
    for (int i = 0; i < count && used < bytes - 24; i++) {
        used += snprintf(text + used, (size_t)(bytes - used), "%s%" PRId64, i ? "," : "", numbers[i]);
    }
    snprintf(text + used, (size_t)(bytes - used), "]");
}

static void add_ints(char *text, int bytes, const char *label, int64_t count, const int *numbers)
{
    int64_t wide[DMT_WORKERS_MOST];
    int shown = count < DMT_WORKERS_MOST ? (int)count : DMT_WORKERS_MOST;
    for (int i = 0; i < shown; i++) {
        wide[i] = numbers[i];
    }
    add_numbers(text, bytes, label, shown, wide);
}

static void describe(dmt_layout *l, int ndim)
{
    const dm_layout *y = &l->layout;
    int bytes = (int)sizeof l->text;
    if (!l->use || y->kind == -1) {
        snprintf(l->text, sizeof l->text, "default layout");
        return;
    }
    if (y->kind == 2) {
        snprintf(l->text, sizeof l->text, "on worker %d", y->single);
        return;
    }
    if (y->kind == 1) {
        snprintf(l->text, sizeof l->text, "map");
        add_numbers(l->text, bytes, "block", ndim, y->block);
        add_ints(l->text, bytes, "workers of blocks", y->map_count, y->map);
        return;
    }
    snprintf(l->text, sizeof l->text, "replicas %d", y->replicas);
    add_ints(l->text, bytes, "grid", ndim, y->grid);
    add_numbers(l->text, bytes, "block", ndim, y->block);
    add_ints(l->text, bytes, "cyclic", ndim, y->order);
    if (y->workers) {
        add_ints(l->text, bytes, "workers", y->nworkers, y->workers);
    }
}

/* A grid layout with one worker along every dim, to be filled in. */
static void plain_grid(dmt_layout *out)
{
    out->layout = dm_layout_grid(1, 1, 0, 0);
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        out->layout.grid[d] = 1;
        out->layout.block[d] = 0;
        out->layout.order[d] = DM_CONTIGUOUS;
    }
    out->layout.replicas = 1;
    out->use = &out->layout;
}

static void use_workers(dmt_layout *out, int count)
{
    out->layout.workers = out->workers;
    out->layout.nworkers = count;
}

static int64_t blocks_along(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

static int random_worker(dmt_random *r, int workers)
{
    return (int)dmt_int(r, 0, workers - 1);
}

/* Blocks of out->layout.block[], each on a random worker, or all of a random few. */
static void random_map(dmt_layout *out, dmt_scratch *scratch, dmt_random *r, int workers, int ndim,
                       const int64_t *shape, const int64_t *block)
{
    int64_t blocks = 1;
    for (int d = 0; d < ndim; d++) {
        blocks *= blocks_along(shape[d], block[d]);
    }
    int *map = dmt_alloc(scratch, (blocks + 1) * (int64_t)sizeof *map);
    int few = random_worker(r, workers) + 1;
    int first = random_worker(r, workers);
    for (int64_t b = 0; b < blocks; b++) {
        map[b] = (first + random_worker(r, few)) % workers;
    }
    out->layout = dm_layout_explicit(ndim, block, map, blocks);
    out->use = &out->layout;
}

static int64_t random_block(dmt_random *r, int64_t extent)
{
    static const int64_t primes[] = {2, 3, 5, 7, 11, 13};
    switch (dmt_int(r, 0, 4)) {
    case 0:
        return 1;
    case 1:
        return dmt_int(r, 1, 4);
    case 2:
        return primes[dmt_int(r, 0, 5)];
    case 3:
        return extent + dmt_int(r, 1, 9);
    default:
        return dmt_int(r, 1, extent < 1 ? 1 : extent);
    }
}

/* Grows the blocks until there are few enough for a map that can still be printed. */
static void random_explicit(dmt_layout *out, dmt_scratch *scratch, dmt_random *r, int workers, int ndim,
                            const int64_t *shape)
{
    int64_t block[DM_MAX_DIMS] = {0};
    int64_t blocks = 1;
    for (int d = 0; d < ndim; d++) {
        block[d] = random_block(r, shape[d]);
        while (blocks * blocks_along(shape[d], block[d]) > 300) {
            block[d] *= 2;
        }
        blocks *= blocks_along(shape[d], block[d]);
    }
    random_map(out, scratch, r, workers, ndim, shape, block);
}

/* Factors of `count` dealt to random dims. */
static void random_factors(dmt_random *r, int count, int ndim, int *grid)
{
    for (int f = 2; count > 1; f++) {
        for (; count % f == 0; count /= f) {
            grid[dmt_int(r, 0, ndim - 1)] *= f;
        }
    }
}

static void random_grid(dmt_layout *out, dmt_random *r, int workers, int ndim, const int64_t *shape)
{
    plain_grid(out);
    dm_layout *y = &out->layout;
    int used = dmt_chance(r, 60) ? workers : random_worker(r, workers) + 1;
    if (ndim == 0) {
        y->replicas = used;
    } else if (dmt_chance(r, 25)) {
        do {
            y->replicas = (int)dmt_int(r, 1, used);
        } while (used % y->replicas != 0);
    }
    if (ndim > 0) {
        random_factors(r, used / y->replicas, ndim, y->grid);
    }
    for (int d = 0; d < ndim; d++) {
        y->order[d] = dmt_chance(r, 60) ? DM_CYCLIC : DM_CONTIGUOUS;
        y->block[d] = dmt_chance(r, 25) ? 0 : random_block(r, shape[d]);
        if (y->grid[d] == 1 && dmt_chance(r, 30)) {
            y->grid[d] = 0; /* means 1 */
        }
    }
    if (dmt_chance(r, 60)) {
        dmt_shuffle(r, workers, out->workers);
        use_workers(out, used);
    }
}

void dmt_layout_random(dmt_layout *out, dmt_scratch *scratch, dmt_random *r, const dm_session *session,
                       int ndim, const int64_t *shape)
{
    int workers = dm_workers(session);
    int64_t pick = dmt_int(r, 0, 99);
    out->use = &out->layout;
    if (pick < 8) {
        out->layout = dm_layout_default();
        out->use = dmt_chance(r, 50) ? NULL : &out->layout;
    } else if (pick < 16) {
        out->layout = dm_layout_replicated(session);
    } else if (pick < 24) {
        out->layout = dm_layout_single(random_worker(r, workers));
    } else if (pick < 32 && ndim > 0) {
        out->layout = dm_layout_split(session, (int)dmt_int(r, 0, ndim - 1));
    } else if (pick < 42 && ndim > 0) {
        int dim = (int)dmt_int(r, 0, ndim - 1);
        out->layout = dm_layout_cyclic(session, dim, random_block(r, shape[dim]));
    } else if (pick < 62) {
        random_explicit(out, scratch, r, workers, ndim, shape);
    } else {
        random_grid(out, r, workers, ndim, shape);
    }
    describe(out, ndim);
}

/* The most even split of the workers over two dims. */
static void two_dims(dmt_layout *out, int workers, int ndim)
{
    int rows = 1;
    for (int f = 1; f * f <= workers; f++) {
        rows = workers % f == 0 ? f : rows;
    }
    out->layout.grid[0] = rows;
    out->layout.grid[ndim - 1] = ndim > 1 ? workers / rows : rows;
}

static void scattered_map(dmt_layout *out, dmt_scratch *scratch, int workers, int ndim, const int64_t *shape)
{
    int64_t block[DM_MAX_DIMS] = {0};
    dmt_random r;
    dmt_random_start(&r, 77);
    for (int d = 0; d < ndim; d++) {
        block[d] = d % 2 ? 2 : 3;
    }
    random_map(out, scratch, &r, workers, ndim, shape, block);
}

static void ordered_rows(dmt_layout *out, int count, int first, int step)
{
    plain_grid(out);
    out->layout.grid[0] = count;
    for (int i = 0; i < count; i++) {
        out->workers[i] = first + i * step;
    }
    use_workers(out, count);
}

static void grid_kind(dmt_layout *out, int workers, int ndim, int kind)
{
    plain_grid(out);
    if (kind == DMT_TWO_REPLICAS) {
        out->layout.replicas = workers > 1 ? 2 : 1;
        out->layout.grid[ndim - 1] = workers / out->layout.replicas;
        return;
    }
    two_dims(out, workers, ndim);
    for (int d = 0; d < ndim && kind == DMT_GRID_CYCLIC; d++) {
        out->layout.order[d] = DM_CYCLIC;
        out->layout.block[d] = 2 + d % 2;
    }
}

void dmt_layout_kind(dmt_layout *out, dmt_scratch *scratch, const dm_session *session, int ndim,
                     const int64_t *shape, int kind)
{
    int workers = dm_workers(session);
    bool splits = kind != DMT_REPLICATED && kind != DMT_SINGLE && kind != DMT_MAP;
    out->use = &out->layout;
    if (kind == DMT_DEFAULT || (ndim == 0 && splits)) {
        out->layout = dm_layout_default();
        out->use = NULL;
    } else if (kind == DMT_ROWS) {
        out->layout = dm_layout_rows(session);
    } else if (kind == DMT_LAST) {
        out->layout = dm_layout_split(session, ndim - 1);
    } else if (kind == DMT_CYCLIC_ONE) {
        out->layout = dm_layout_cyclic(session, 0, 1);
    } else if (kind == DMT_CYCLIC_LAST) {
        out->layout = dm_layout_cyclic(session, ndim - 1, 3);
    } else if (kind == DMT_GRID_CYCLIC || kind == DMT_GRID_BLOCKS || kind == DMT_TWO_REPLICAS) {
        grid_kind(out, workers, ndim, kind);
    } else if (kind == DMT_REPLICATED) {
        out->layout = dm_layout_replicated(session);
    } else if (kind == DMT_SINGLE) {
        out->layout = dm_layout_single(workers - 1);
    } else if (kind == DMT_REVERSED) {
        ordered_rows(out, workers, workers - 1, -1);
    } else if (kind == DMT_SUBSET) {
        ordered_rows(out, workers - workers / 2, workers / 2, 1);
    } else if (kind == DMT_MAP) {
        scattered_map(out, scratch, workers, ndim, shape);
    } else {
        out->layout = dm_layout_cyclic(session, 0, shape[0] + 1);
    }
    describe(out, ndim);
}
