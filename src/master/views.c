/* Views, reshapes, queries, and public layouts. */
#include "base/sized.h"
#include "master/session.h"

#include <inttypes.h>
#include <string.h>

static dm_status check_rectangle(const dmi_desc *desc, const int64_t *lo, const int64_t *extent)
{
    for (int d = 0; d < desc->ndim; d++) {
        if (lo[d] < 0 || extent[d] < 0 || lo[d] > desc->extent[d] || extent[d] > desc->extent[d] - lo[d]) {
            return dmi_fail(DM_ERR_ARG,
                            "lo[%d] = %" PRId64 ", extent[%d] = %" PRId64 " leave dim %d of %" PRId64
                            " elements",
                            d, lo[d], d, extent[d], d, desc->extent[d]);
        }
    }
    return DM_OK;
}

dm_status dm_array_view(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                        dm_array *out)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (!out || (h->desc.ndim > 0 && (!lo || !extent))) {
        return dmi_fail(DM_ERR_ARG, "%s is NULL", !out ? "out" : !lo ? "lo" : "extent");
    }
    if ((status = check_rectangle(&h->desc, lo, extent)) != DM_OK) {
        return status;
    }
    dmi_desc desc = h->desc;
    for (int d = 0; d < desc.ndim; d++) {
        desc.lo[d] += lo[d] * (desc.skip[d] + 1);
        desc.extent[d] = extent[d];
        desc.skip[d] = extent[d] > 1 ? desc.skip[d] : 0;
    }
    return dmi_view_make(s, a, &desc, out);
}

static dm_status check_slice(const dmi_desc *desc, const int64_t *lo, const int64_t *extent, const int64_t *step)
{
    for (int d = 0; d < desc->ndim; d++) {
        int64_t n = desc->extent[d];
        if (step[d] < 1) {
            return dmi_fail(DM_ERR_ARG, "step[%d] is %" PRId64 ", but must be at least 1", d, step[d]);
        }
        bool fits = lo[d] >= 0 && extent[d] >= 0 && lo[d] <= n && extent[d] <= n;
        if (!fits || (extent[d] > 0 && (lo[d] >= n || extent[d] - 1 > (n - 1 - lo[d]) / step[d]))) {
            return dmi_fail(DM_ERR_ARG,
                            "lo[%d] = %" PRId64 ", extent[%d] = %" PRId64 ", step[%d] = %" PRId64
                            " leave dim %d of %" PRId64 " elements",
                            d, lo[d], d, extent[d], d, step[d], d, n);
        }
    }
    return DM_OK;
}

dm_status dm_array_slice(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                         const int64_t *step, dm_array *out)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (!out || (h->desc.ndim > 0 && (!lo || !extent || !step))) {
        return dmi_fail(DM_ERR_ARG, "%s is NULL", !out ? "out" : !lo ? "lo" : extent ? "step" : "extent");
    }
    if ((status = check_slice(&h->desc, lo, extent, step)) != DM_OK) {
        return status;
    }
    dmi_desc desc = h->desc;
    for (int d = 0; d < desc.ndim; d++) {
        desc.lo[d] += lo[d] * (desc.skip[d] + 1);
        desc.extent[d] = extent[d];
        desc.skip[d] = extent[d] > 1 ? (desc.skip[d] + 1) * step[d] - 1 : 0;
    }
    return dmi_view_make(s, a, &desc, out);
}

/* The layout of the same memory under another shape. The array must be split along one dim at most, with only
 * dims of 1 before it, and each of its blocks must hold a whole number of rows of the new shape. */
static bool reshaped_spec(const dmi_layout *old, int ndim, const int64_t *shape, dmi_layout_spec *spec)
{
    int from = -1;
    for (int d = 0; d < old->ndim; d++) {
        if (old->grid[d] > 1 && from >= 0) {
            return false;
        }
        from = old->grid[d] > 1 ? d : from;
    }
    *spec = (dmi_layout_spec){.kind = DMI_LAYOUT_GRID,
                              .ndim = ndim,
                              .replicas = old->replicas,
                              .nworkers = old->nworkers,
                              .workers = old->workers,
                              .session_workers = old->session_workers};
    for (int d = 0; d < ndim; d++) {
        spec->shape[d] = shape[d];
        spec->grid[d] = 1;
        spec->block[d] = DMI_MAX(shape[d], 1);
    }
    if (old->kind != DMI_LAYOUT_GRID || from < 0) {
        return old->kind == DMI_LAYOUT_GRID;
    }
    int64_t block = old->block[from]; /* elements of one block */
    for (int d = 0; d < old->ndim; d++) {
        if (d < from && old->shape[d] != 1) {
            return false;
        }
        block *= d > from ? old->shape[d] : 1;
    }
    for (int to = 0; to < ndim; to++) { /* the first dim that can be split alike */
        int64_t row = 1;
        for (int d = to + 1; d < ndim; d++) {
            row *= shape[d];
        }
        if (row > 0 && block % row == 0 && (block > 0 || old->count == 0)) {
            spec->grid[to] = old->grid[from];
            spec->order[to] = old->order[from];
            spec->block[to] = DMI_MAX(block / row, 1);
            return true;
        }
        if (shape[to] != 1) {
            return false;
        }
    }
    return false;
}

/* Of rows of an array that is not split: the memory in rows of the new shape, and of them those that the view
 * has. */
static bool reshaped_rows(const dmi_desc *of, int ndim, const int64_t *shape, dmi_layout_spec *spec,
                          dmi_desc *out)
{
    const dmi_layout *old = of->layout;
    int64_t from, to, elem = dmi_dtype_bytes(of->dtype), row = elem, rows[DM_MAX_DIMS];
    bool run = false;
    int dim = 0; /* whose indices are rows: before it are dims of 1 */
    while (dim < ndim - 1 && shape[dim] == 1) {
        dim++;
    }
    for (int d = dim + 1; d < ndim; d++) {
        row *= shape[d];
    }
    if (ndim == 0 || !dmi_desc_span(of, &from, &to, &run) || !run || from % row != 0) {
        return false;
    }
    memcpy(rows, shape, (size_t)ndim * sizeof *rows);
    rows[dim] = old->count * elem / row; /* a part of a row at the end is in no view */
    out->lo[dim] = from / row;
    memcpy(out->extent, shape, (size_t)ndim * sizeof *shape);
    return reshaped_spec(old, ndim, rows, spec);
}

dm_status dm_array_reshape(dm_session *session, dm_array a, int ndim, const int64_t *shape, dm_array *out)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (ndim < 0 || ndim > DM_MAX_DIMS || (ndim > 0 && !shape) || !out) {
        return dmi_fail(DM_ERR_ARG, !out ? "out is NULL" : "ndim is %d, not 0 to %d with a shape", ndim,
                        DM_MAX_DIMS);
    }
    int64_t have = 1, want = 1;
    for (int d = 0; d < h->desc.ndim; d++) {
        have *= h->desc.extent[d];
    }
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0 || !dmi_mul_fits(want, shape[d], &want)) {
            return dmi_fail(DM_ERR_ARG, "shape[%d] is %" PRId64, d, shape[d]);
        }
    }
    if (have != want) {
        return dmi_fail(DM_ERR_SHAPE, "shape has %" PRId64 " elements, the array %" PRId64, want, have);
    }
    const dmi_layout *old = h->desc.layout;
    bool whole = memcmp(h->desc.extent, old->shape, (size_t)h->desc.ndim * sizeof(int64_t)) == 0;
    bool same = ndim == h->desc.ndim && memcmp(h->desc.extent, shape, (size_t)ndim * sizeof(int64_t)) == 0;
    dmi_desc desc = h->desc;
    if (!same) {
        dmi_layout_spec spec;
        dmi_desc rows = {.ndim = ndim};
        if (!(whole ? reshaped_spec(old, ndim, shape, &spec)
                    : reshaped_rows(&desc, ndim, shape, &spec, &rows))) {
            return whole ? dmi_fail(DM_ERR_UNSUPPORTED,
                                    "this shape would move data between workers: a block of the array "
                                    "does not hold a whole number of new rows")
                         : dmi_fail(DM_ERR_UNSUPPORTED,
                                    "a part of an array takes another shape only if it is consecutive "
                                    "elements, not split, that begin at a whole number of new rows; "
                                    "copy it first");
        }
        const dmi_layout *layout = NULL;
        uint32_t id = 0;
        if ((status = dmi_layout_intern(s, &spec, &layout, &id)) != DM_OK) {
            return status;
        }
        desc = dmi_desc_whole(h->desc.dtype, layout, id);
        if (!whole) {
            memcpy(desc.lo, rows.lo, sizeof desc.lo);
            memcpy(desc.extent, rows.extent, sizeof desc.extent);
        }
    }
    return dmi_view_make(s, a, &desc, out);
}

dm_status dmi_layout_like(dmi_session *s, const dmi_desc *desc, const dmi_layout **out, uint32_t *id)
{
    const dmi_layout *layout = desc->layout;
    dmi_layout_spec spec;
    if (memcmp(desc->extent, layout->shape, (size_t)desc->ndim * sizeof(int64_t)) == 0) {
        *out = layout;
        *id = desc->layout_id;
        return DM_OK;
    }
    dmi_desc_like(desc, &spec);
    return dmi_layout_intern(s, &spec, out, id);
}

dm_status dm_array_query(dm_session *session, dm_array a, dm_array_info *info)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (!info) {
        return dmi_fail(DM_ERR_ARG, "info is NULL");
    }
    if ((status = dmi_sized_check(info, DMI_SIZED_LEAST(dm_array_info, is_view),
                                  "info: set size to sizeof(dm_array_info)")) != DM_OK) {
        return status;
    }
    dm_array_info r = {.dtype = h->desc.dtype, .ndim = h->desc.ndim, .is_view = h->view};
    r.replicas = h->desc.layout->replicas;
    for (int d = 0; d < r.ndim; d++) {
        r.shape[d] = h->desc.extent[d];
        r.block[d] = h->desc.layout->block[d];
        r.grid[d] = h->desc.layout->kind == DMI_LAYOUT_GRID ? h->desc.layout->grid[d] : 1;
    }
    dmi_sized_give(&r, sizeof r, info);
    return DM_OK;
}

dm_status dm_array_owner(dm_session *session, dm_array a, const int64_t *index, int *worker)
{
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    if (!worker || (h->desc.ndim > 0 && !index)) {
        return dmi_fail(DM_ERR_ARG, "%s is NULL", worker ? "index" : "worker");
    }
    int64_t at[DM_MAX_DIMS] = {0};
    for (int d = 0; d < h->desc.ndim; d++) {
        if (index[d] < 0 || index[d] >= h->desc.extent[d]) {
            return dmi_fail(DM_ERR_ARG, "index[%d] is %" PRId64 ", not 0 to %" PRId64, d, index[d],
                            h->desc.extent[d] - 1);
        }
        at[d] = index[d] * (h->desc.skip[d] + 1) + h->desc.lo[d];
    }
    *worker = dmi_layout_owner(h->desc.layout, at, 0);
    return DM_OK;
}

/* --- makers ----------------------------------------------------------------------------------------------- */

dm_layout dm_layout_default(void)
{
    return (dm_layout){.size = sizeof(dm_layout), .kind = -1};
}

dm_layout dm_layout_split(const dm_session *session, int dim)
{
    dm_layout layout = {.size = sizeof layout, .kind = 0};
    if (dim >= 0 && dim < DM_MAX_DIMS) {
        layout.grid[dim] = dm_workers(session);
    } else {
        layout.kind = -2; /* refused where it is used */
    }
    return layout;
}

dm_layout dm_layout_rows(const dm_session *session)
{
    return dm_layout_split(session, 0);
}

dm_layout dm_layout_cols(const dm_session *session)
{
    return dm_layout_split(session, 1);
}

dm_layout dm_layout_cyclic(const dm_session *session, int dim, int64_t block)
{
    dm_layout layout = dm_layout_split(session, dim);
    if (layout.kind == 0) {
        layout.order[dim] = DM_CYCLIC;
        layout.block[dim] = block;
    }
    return layout;
}

dm_layout dm_layout_grid(int grid_rows, int grid_cols, int64_t block_rows, int64_t block_cols)
{
    return (dm_layout){.size = sizeof(dm_layout),
                       .grid = {grid_rows, grid_cols},
                       .order = {DM_CYCLIC, DM_CYCLIC},
                       .block = {block_rows, block_cols}};
}

dm_layout dm_layout_replicated(const dm_session *session)
{
    return (dm_layout){.size = sizeof(dm_layout), .replicas = dm_workers(session)};
}

dm_layout dm_layout_single(int worker)
{
    return (dm_layout){.size = sizeof(dm_layout), .kind = 2, .single = worker};
}

dm_layout dm_layout_explicit(int ndim, const int64_t *block, const int *map, int64_t map_count)
{
    dm_layout layout = {.size = sizeof layout, .kind = 1, .map = map, .map_count = map_count};
    for (int d = 0; d < ndim && d < DM_MAX_DIMS && block; d++) {
        layout.block[d] = block[d];
    }
    return layout;
}
