/* The first k of few long rows: of each worker's part, and then of what those are. */
#include "ops/common_order.h"

#include <dmath/index.h>
#include <dmath/order.h>

#include <string.h>

typedef struct first_of {
    dm_array values, indices, places; /* of the parts; which of those are wanted */
} first_of;

/* Do parts of a row have enough elements, and is it worth the while? */
static bool serves(const dmi_facts *s, const dmi_sorting *sort, const dmi_desc *x, int64_t most)
{
    int64_t rows = 1, n;
    if (sort->dim < 0 || sort->dim >= x->ndim || dmi_dtype_is_complex(x->dtype)) {
        return false;
    }
    n = x->extent[sort->dim];
    for (int d = 0; d < x->ndim; d++) {
        rows *= d == sort->dim ? 1 : x->extent[d];
    }
    bool split = x->layout->kind != DMI_LAYOUT_GRID || x->layout->grid[sort->dim] > 1;
    split = split && !s->grouped;
    return split && rows > 0 && rows < s->workers && most > 0 && most < n / s->workers / 2 &&
           n * dmi_dtype_bytes(x->dtype) >= DMI_MAX(s->config->sort_exchange, 1);
}

/* The first of the parts. Their shards have `most` elements each, but the last may have fewer. */
static dm_status make_parts(dm_session *session, const dmi_facts *s, const dmi_sorting *sort,
                            const dmi_desc *x, int64_t most, dm_array from, first_of *f)
{
    int64_t shape[DM_MAX_DIMS], n = x->extent[sort->dim], block = (n + s->workers - 1) / s->workers;
    int64_t parts = (n + block - 1) / block;
    dm_layout layout = dm_layout_split(session, sort->dim);
    memcpy(shape, x->extent, sizeof shape);
    shape[sort->dim] = (parts - 1) * most + DMI_MIN(most, n - (parts - 1) * block);
    layout.block[sort->dim] = most;
    dm_status status = dm_array_create(session, x->dtype, x->ndim, shape, &layout, &f->values);
    status = status == DM_OK ? dm_array_create(session, DM_I64, x->ndim, shape, &layout, &f->indices) : status;
    return status == DM_OK ? dmi_sort_parts(session, sort, true, from, f->values, f->indices) : status;
}

dm_status dmi_topk_long(dm_session *session, const dmi_sorting *sort, dm_array x, dm_array values,
                        dm_array indices, bool *done)
{
    dmi_session *s;
    dmi_handle *hx = NULL, *ho = NULL;
    dm_status status = dmi_enter(session, &s);
    *done = false;
    status = status == DM_OK ? dmi_handle_find(s, x, "x", &hx) : status;
    status = status == DM_OK ? dmi_handle_find(s, values.id ? values : indices, "values", &ho) : status;
    if (status != DM_OK) {
        return status;
    }
    const dmi_facts facts = dmi_session_facts(s);
    const dmi_desc from = hx->desc, out = ho->desc;
    bool overlaps = hx->storage == ho->storage;
    dm_dtype index_dtype = DM_I64;
    if (indices.id) {
        status = dmi_handle_find(s, indices, "indices", &ho);
        index_dtype = status == DM_OK ? ho->desc.dtype : index_dtype;
        overlaps = overlaps || (status == DM_OK && hx->storage == ho->storage);
    }
    /* what does not fit is refused where it is submitted */
    bool fits = from.ndim == out.ndim && index_dtype == DM_I64 && sort->dim >= 0 && sort->dim < from.ndim;
    for (int d = 0; d < from.ndim && fits; d++) {
        fits = d == sort->dim || from.extent[d] == out.extent[d];
    }
    bool differ = fits && values.id && indices.id && status == DM_OK &&
                  ho->desc.extent[sort->dim] != out.extent[sort->dim];
    if (status != DM_OK || !fits || differ || overlaps || !serves(&facts, sort, &from, out.extent[sort->dim])) {
        return status;
    }
    *done = true;
    first_of f = {{0}, {0}, {0}};
    status = make_parts(session, &facts, sort, &from, out.extent[sort->dim], x, &f);
    if (status == DM_OK && indices.id) {
        status = dm_array_like(session, indices, DM_I64, &f.places);
    }
    status =
        status == DM_OK ? dm_topk(session, f.values, sort->dim, sort->descending, values, f.places) : status;
    if (status == DM_OK && indices.id) {
        status = dm_take_along_dim(session, f.indices, f.places, sort->dim, DM_CLIP, indices);
    }
    dm_array made[] = {f.values, f.indices, f.places};
    for (int i = 0; i < DMI_COUNT(made); i++) {
        status = made[i].id ? dmi_array_release(session, made[i], status) : status;
    }
    return status;
}
