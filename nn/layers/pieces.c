/* Parts of blobs and copies of them: Slice, Crop, Tile. */
#include "layers/layers.h"

#include <string.h>

/* A view of the rectangle [at, at + shape) of an array that has the order of `blob`. */
static dm_status window(const nn_layer *l, const nn_blob *blob, dm_array whole, const int64_t *at,
                        const int64_t *shape, dm_array *out)
{
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
    for (int d = 0; d < blob->ndim; d++) {
        lo[nn_array_dim(blob, d)] = at[d];
        extent[nn_array_dim(blob, d)] = shape[d];
    }
    return dm_array_view(l->net->session, whole, lo, extent, out);
}

/* from, or else to, is a part of a larger array: copies, or adds. */
static dm_status move(nn_layer *l, dm_status status, dm_array from, dm_array to, bool add, dm_array view)
{
    dm_session *s = l->net->session;
    if (status == DM_OK) {
        status = add ? dm_axpby(s, 1, from, 1, to) : dm_copy(s, from, to);
    }
    dm_status end = dm_array_destroy(s, view);
    return status == DM_OK ? end : status;
}

/* --- Slice */
static dm_status slice_axis(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    if (!nn_has(l->own, "slice_dim")) {
        return nn_axis(l, "axis", b->ndim, &l->u.dim);
    }
    int64_t dim = nn_int(l->own, "SliceParameter", "slice_dim");
    l->u.dim = (int)dim;
    return nn_has(l->own, "axis") || dim >= b->ndim
               ? nn_layer_fail(l, "slice_dim", DM_ERR_FORMAT,
                               "has slice_dim %lld beside axis, or without such a dim", (long long)dim)
               : DM_OK;
}

dm_status nn_slice_setup(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    int64_t points = nn_count(l->own, "slice_point"), at = 0, shape[DM_MAX_DIMS];
    dm_status status = slice_axis(l);
    if (status != DM_OK) {
        return status;
    }
    int64_t all = b->shape[l->u.dim];
    if (points ? points != l->tops - 1 : all % l->tops != 0) {
        return nn_layer_fail(l, "slice_param", DM_ERR_SHAPE,
                             "makes %d tops out of %lld indices with %lld values of slice_point", l->tops,
                             (long long)all, (long long)points);
    }
    memcpy(shape, b->shape, sizeof shape);
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        int64_t next = i + 1 == l->tops ? all
                       : points         ? nn_int_at(l->own, "slice_point", i)
                                        : at + all / l->tops;
        if (next <= at || next > all) {
            return nn_layer_fail(l, "slice_point", DM_ERR_SHAPE,
                                 "has slice_point %lld: they must grow and lie within %lld", (long long)next,
                                 (long long)all);
        }
        shape[l->u.dim] = next - at;
        at = next;
        status = nn_top_shape(l, i, b->ndim, shape);
    }
    return status;
}

static dm_status slice(nn_layer *l, dm_array whole, bool back)
{
    int64_t at[DM_MAX_DIMS] = {0};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        const nn_blob *top = l->top[i];
        dm_array view = DM_NO_ARRAY;
        status = window(l, l->bottom[0], whole, at, top->shape, &view);
        status = move(l, status, back ? top->diff : view, back ? view : top->data, false, view);
        at[l->u.dim] += top->shape[l->u.dim];
    }
    return status;
}

dm_status nn_slice_forward(nn_layer *l)
{
    return slice(l, l->bottom[0]->data, false);
}

dm_status nn_slice_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0, slice(l, down, true));
}

/* --- Crop: to the shape of the second bottom from `axis` on. */
static dm_status offsets(const nn_layer *l, int axis, int64_t *at)
{
    const nn_blob *x = l->bottom[0], *like = l->bottom[1];
    int64_t given = nn_count(l->own, "offset");
    if (like->ndim != x->ndim || (given > 1 && given != x->ndim - axis)) {
        return nn_layer_fail(l, "crop_param", DM_ERR_SHAPE, "has %lld values of offset for dims %d to %d",
                             (long long)given, axis, x->ndim - 1);
    }
    for (int d = 0; d < x->ndim; d++) {
        at[d] = d >= axis && given ? nn_int_at(l->own, "offset", given == 1 ? 0 : d - axis) : 0;
        if (d >= axis && at[d] + like->shape[d] > x->shape[d]) {
            return nn_layer_fail(l, "crop_param", DM_ERR_SHAPE,
                                 "takes %lld indices from %lld on of dim %d, which has %lld",
                                 (long long)like->shape[d], (long long)at[d], d, (long long)x->shape[d]);
        }
    }
    return DM_OK;
}

dm_status nn_crop_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t at[DM_MAX_DIMS], shape[DM_MAX_DIMS];
    dm_status status = nn_axis(l, "axis", x->ndim, &l->u.dim);
    status = status == DM_OK ? offsets(l, l->u.dim, at) : status;
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = d < l->u.dim ? x->shape[d] : l->bottom[1]->shape[d];
    }
    return status == DM_OK ? nn_top_shape(l, 0, x->ndim, shape) : status;
}

dm_status nn_crop_forward(nn_layer *l)
{
    int64_t at[DM_MAX_DIMS];
    dm_array view = DM_NO_ARRAY;
    dm_status status = offsets(l, l->u.dim, at);
    status =
        status == DM_OK ? window(l, l->bottom[0], l->bottom[0]->data, at, l->top[0]->shape, &view) : status;
    return move(l, status, view, l->top[0]->data, false, view);
}

dm_status nn_crop_backward(nn_layer *l)
{
    int64_t at[DM_MAX_DIMS];
    dm_array view = DM_NO_ARRAY;
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    dm_status status = dm_fill(l->net->session, down, 0);
    status = status == DM_OK ? offsets(l, l->u.dim, at) : status;
    status = status == DM_OK ? window(l, l->bottom[0], down, at, l->top[0]->shape, &view) : status;
    return nn_down_done(l, 0, move(l, status, l->top[0]->diff, view, false, view));
}

/* --- Tile: the bottom `tiles` times, one behind the other. */
dm_status nn_tile_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t tiles = nn_int(l->own, "TileParameter", "tiles"), shape[DM_MAX_DIMS];
    dm_status status = nn_axis(l, "axis", x->ndim, &l->u.dim);
    if (status == DM_OK && tiles < 1) {
        status =
            nn_layer_fail(l, "tiles", DM_ERR_FORMAT, "has tiles %lld; it must be at least 1", (long long)tiles);
    }
    if (status != DM_OK) {
        return status;
    }
    l->extra[0] = (double)tiles;
    memcpy(shape, x->shape, sizeof shape);
    shape[l->u.dim] *= tiles;
    return nn_top_shape(l, 0, x->ndim, shape);
}

dm_status nn_tile_forward(nn_layer *l)
{
    int64_t times[DM_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    times[nn_array_dim(l->bottom[0], l->u.dim)] = (int64_t)l->extra[0];
    return dm_tile(l->net->session, l->bottom[0]->data, times, l->top[0]->data);
}

dm_status nn_tile_backward(nn_layer *l)
{
    int64_t at[DM_MAX_DIMS] = {0};
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < (int)l->extra[0]; i++) {
        dm_array view = DM_NO_ARRAY;
        status = window(l, l->bottom[0], l->top[0]->diff, at, l->bottom[0]->shape, &view);
        status = move(l, status, view, down, i > 0, view);
        at[l->u.dim] += l->bottom[0]->shape[l->u.dim];
    }
    return nn_down_done(l, 0, status);
}
