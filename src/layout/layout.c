/* Layouts: checked and completed when made, then never changed. */
#include "layout/explicit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CYCLIC_BLOCK = 64 }; /* elements: small enough for balance, large enough for efficient kernels */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static dm_status no_memory(void)
{
    return dmi_fail(DM_ERR_NOMEM, "layout: no memory for its tables");
}

static dm_status take_shape(const dmi_layout_spec *spec, dmi_layout *y)
{
    if (spec->session_workers < 1) {
        return dmi_fail(DM_ERR_ARG, "layout: session_workers is %d, at least 1 is needed",
                        spec->session_workers);
    }
    if (spec->ndim < 0 || spec->ndim > DM_MAX_DIMS) {
        return dmi_fail(DM_ERR_ARG, "layout: ndim is %d, but must be 0 .. %d", spec->ndim, DM_MAX_DIMS);
    }
    y->session_workers = spec->session_workers;
    y->ndim = spec->ndim;
    int64_t product = 1; /* of the extents other than 0: strides must fit even where there is no element */
    y->count = 1;
    for (int d = 0; d < y->ndim; d++) {
        int64_t n = spec->shape[d];
        if (n < 0) {
            return dmi_fail(DM_ERR_ARG, "layout: shape[%d] is %" PRId64 ", but must not be negative", d, n);
        }
        if (!dmi_mul_fits(product, DMI_MAX(n, 1), &product) || product > DMI_LAYOUT_MOST) {
            return dmi_fail(DM_ERR_ARG, "layout: shape[%d] of %" PRId64 " makes more than %" PRId64 " elements",
                            d, n, DMI_LAYOUT_MOST);
        }
        y->shape[d] = n;
        y->count *= n > 0 ? 1 : 0;
    }
    y->count *= product;
    return DM_OK;
}

/* Grid and order of each dim, and their product. */
static dm_status take_grid(const dmi_layout_spec *spec, dmi_layout *y)
{
    int64_t group = 1;
    for (int d = 0; d < y->ndim; d++) {
        if (y->kind == DMI_LAYOUT_EXPLICIT) {
            y->grid[d] = 1;
            continue;
        }
        if (spec->grid[d] < 1) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: grid[%d] is %d, at least 1 is needed", d, spec->grid[d]);
        }
        if (spec->order[d] != DMI_ORDER_CONTIGUOUS && spec->order[d] != DMI_ORDER_CYCLIC) {
            return dmi_fail(DM_ERR_LAYOUT,
                            "layout: order[%d] is %d, but must be contiguous (%d) or cyclic (%d)", d,
                            spec->order[d], DMI_ORDER_CONTIGUOUS, DMI_ORDER_CYCLIC);
        }
        y->grid[d] = spec->grid[d];
        /* An undivided dim has no order; one spelling of it, so that equal layouts compare equal. */
        y->order[d] = spec->grid[d] > 1 ? spec->order[d] : DMI_ORDER_CONTIGUOUS;
        group *= spec->grid[d];
        if (group > spec->session_workers) {
            return dmi_fail(DM_ERR_LAYOUT,
                            "layout: grid[%d] of %d makes %" PRId64
                            " grid positions, but the session has %d workers",
                            d, spec->grid[d], group, spec->session_workers);
        }
    }
    y->group = (int)group;
    return DM_OK;
}

static dm_status take_blocks(const dmi_layout_spec *spec, dmi_layout *y)
{
    y->blocks = y->count > 0 ? 1 : 0; /* starting from 0, empty dims cannot let the product overflow before */
    for (int d = 0; d < y->ndim; d++) {
        int64_t block = spec->block[d];
        if (block < 0) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: block[%d] is %" PRId64 ", but must not be negative", d,
                            block);
        }
        if (block == 0) {
            block = DMI_MAX(ceil_div(y->shape[d], y->grid[d]), 1);
            block = y->order[d] == DMI_ORDER_CYCLIC ? DMI_MIN(block, CYCLIC_BLOCK) : block;
        }
        y->block[d] = block;
        y->nblock[d] = ceil_div(y->shape[d], block);
        y->blocks *= y->nblock[d];
    }
    return DM_OK;
}

/* How often the array is held, and by how many workers. */
static dm_status take_counts(const dmi_layout_spec *spec, dmi_layout *y)
{
    if (spec->replicas < 0 || (y->kind == DMI_LAYOUT_EXPLICIT && spec->replicas > 1)) {
        return dmi_fail(DM_ERR_LAYOUT, "layout: replicas is %d, but must be %s", spec->replicas,
                        y->kind == DMI_LAYOUT_EXPLICIT ? "1 with an explicit map"
                                                       : "at least 1 (or 0, which means 1)");
    }
    y->replicas = DMI_MAX(spec->replicas, 1);
    int64_t needed = (int64_t)y->group * y->replicas;
    if (needed > spec->session_workers) {
        return dmi_fail(DM_ERR_LAYOUT,
                        "layout: replicas is %d, each on %d workers, but the session has %d workers",
                        y->replicas, y->group, spec->session_workers);
    }
    if (y->kind == DMI_LAYOUT_EXPLICIT) {
        needed = spec->nworkers > 0 ? spec->nworkers : spec->session_workers;
    }
    y->nworkers = spec->nworkers == 0 && !spec->workers ? (int)needed : spec->nworkers;
    if (y->nworkers < 1 || y->nworkers > spec->session_workers) {
        return dmi_fail(DM_ERR_LAYOUT, "layout: nworkers is %d, but must be 1 .. %d, the session's workers",
                        y->nworkers, spec->session_workers);
    }
    if (y->nworkers != needed) {
        return dmi_fail(DM_ERR_LAYOUT,
                        "layout: nworkers is %d, but a grid of %d positions and %d replicas need %" PRId64,
                        y->nworkers, y->group, y->replicas, needed);
    }
    return DM_OK;
}

static dm_status take_workers(const dmi_layout_spec *spec, dmi_layout *y)
{
    int *workers = dmi_arena_alloc(&y->arena, (size_t)y->nworkers * sizeof *workers);
    int *position = dmi_arena_alloc(&y->arena, (size_t)y->session_workers * sizeof *position);
    if (!workers || !position) {
        return no_memory();
    }
    for (int w = 0; w < y->session_workers; w++) {
        position[w] = -1;
    }
    for (int i = 0; i < y->nworkers; i++) {
        int w = spec->workers ? spec->workers[i] : i;
        if (w < 0 || w >= y->session_workers) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: workers[%d] is %d, but must be 0 .. %d", i, w,
                            y->session_workers - 1);
        }
        if (position[w] >= 0) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: workers[%d] is %d, as workers[%d] is already", i, w,
                            position[w]);
        }
        workers[i] = w;
        position[w] = i;
    }
    y->workers = workers;
    y->position = position;
    return DM_OK;
}

static uint64_t mix(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const dmi_layout *y)
{
    uint64_t hash = mix(mix(UINT64_C(0xCBF29CE484222325), y->kind), y->ndim);
    hash = mix(mix(mix(hash, y->session_workers), y->nworkers), y->replicas);
    for (int d = 0; d < y->ndim; d++) {
        hash = mix(mix(mix(mix(hash, y->shape[d]), y->block[d]), y->grid[d]), y->order[d]);
    }
    for (int i = 0; i < y->nworkers; i++) {
        hash = mix(hash, y->workers[i]);
    }
    for (int64_t i = 0; y->map && i < y->blocks; i++) {
        hash = mix(hash, y->map[i]);
    }
    return hash;
}

static uint64_t members_of(const dmi_layout *y)
{
    uint64_t members = 0;
    for (int i = 0; i < y->nworkers; i++) {
        members |= UINT64_C(1) << y->workers[i] % 64;
    }
    return members;
}

dm_status dmi_layout_create(const dmi_layout_spec *spec, dmi_layout **out)
{
    assert(spec && out);
    if (spec->kind != DMI_LAYOUT_GRID && spec->kind != DMI_LAYOUT_EXPLICIT) {
        return dmi_fail(DM_ERR_LAYOUT, "layout: kind is %d, but must be a grid (%d) or explicit (%d)",
                        spec->kind, DMI_LAYOUT_GRID, DMI_LAYOUT_EXPLICIT);
    }
    dmi_layout *y = calloc(1, sizeof *y);
    if (!y) {
        return no_memory();
    }
    y->kind = spec->kind;
    y->arena.first = 128; /* programs have many, and small ones */
    dm_status status = take_shape(spec, y);
    if (status == DM_OK) {
        status = take_grid(spec, y);
    }
    if (status == DM_OK) {
        status = take_blocks(spec, y);
    }
    if (status == DM_OK) {
        status = take_counts(spec, y);
    }
    if (status == DM_OK) {
        status = take_workers(spec, y);
    }
    if (status == DM_OK && y->kind == DMI_LAYOUT_EXPLICIT) {
        status = dmi_layout_take_map(spec, y);
    }
    if (status != DM_OK) {
        dmi_layout_destroy(y);
        return status;
    }
    y->members = members_of(y);
    y->hash = hash_of(y);
    *out = y;
    return DM_OK;
}

void dmi_layout_destroy(dmi_layout *layout)
{
    if (layout) {
        dmi_arena_free(&layout->arena);
        free(layout);
    }
}

bool dmi_layout_equal(const dmi_layout *a, const dmi_layout *b)
{
    if (a == b) {
        return true;
    }
    if (a->hash != b->hash || a->kind != b->kind || a->ndim != b->ndim ||
        a->session_workers != b->session_workers || a->nworkers != b->nworkers || a->replicas != b->replicas) {
        return false;
    }
    /* Entries past ndim are 0 in every layout. */
    if (memcmp(a->shape, b->shape, sizeof a->shape) || memcmp(a->block, b->block, sizeof a->block) ||
        memcmp(a->grid, b->grid, sizeof a->grid) || memcmp(a->order, b->order, sizeof a->order) ||
        memcmp(a->workers, b->workers, (size_t)a->nworkers * sizeof *a->workers)) {
        return false;
    }
    return a->kind != DMI_LAYOUT_EXPLICIT || !memcmp(a->map, b->map, (size_t)a->blocks * sizeof *a->map);
}

/* Fewer bytes are not worth the messages that parts of them would cost. */
enum { LEAST_BYTES = 4096 };

static bool is_small(int dims, const int64_t *shape, int64_t element_bytes)
{
    int64_t bytes = element_bytes;
    for (int d = 0; d < dims; d++) {
        if (shape[d] <= 0) {
            return true;
        }
        if (!dmi_mul_fits(bytes, shape[d], &bytes)) {
            bytes = INT64_MAX / 2; /* too large anyway: dmi_layout_create says so */
        }
    }
    return dims == 0 || bytes < LEAST_BYTES;
}

void dmi_layout_default(int ndim, const int64_t *shape, int64_t element_bytes, int session_workers,
                        dmi_layout_spec *out)
{
    *out = (dmi_layout_spec){.kind = DMI_LAYOUT_GRID, .ndim = ndim, .session_workers = session_workers};
    int dims = DMI_MIN(ndim, DM_MAX_DIMS); /* that ndim is too large dmi_layout_create reports */
    for (int d = 0; d < dims; d++) {
        out->shape[d] = shape[d];
        out->grid[d] = 1;
    }
    if (!is_small(dims, shape, element_bytes)) {
        out->grid[0] = session_workers;
    }
}
