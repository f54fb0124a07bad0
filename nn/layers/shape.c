/* Concat, Flatten and Reshape. */
#include "layers/layers.h"

#include <string.h>

/* --- Concat */
dm_status nn_concat_setup(nn_layer *l)
{
    const nn_blob *a = l->bottom[0];
    int axis = 0;
    dm_status status = DM_OK;
    if (nn_has(l->own, "concat_dim")) { /* the old name */
        if (nn_has(l->own, "axis")) {
            return nn_layer_fail(l, "concat_dim", DM_ERR_FORMAT,
                                 "has axis and concat_dim; only one of the two may be there");
        }
        int64_t dim = nn_int(l->own, "ConcatParameter", "concat_dim");
        axis = dim < a->ndim ? (int)dim : -1;
        if (axis < 0) {
            return nn_layer_fail(l, "concat_dim", DM_ERR_SHAPE,
                                 "has concat_dim %lld, but its bottom has %d dims", (long long)dim, a->ndim);
        }
    } else {
        status = nn_axis(l, "axis", a->ndim, &axis);
    }
    int64_t shape[DM_MAX_DIMS];
    memcpy(shape, a->shape, sizeof shape);
    for (int i = 1; status == DM_OK && i < l->bottoms; i++) {
        const nn_blob *b = l->bottom[i];
        bool fits = b->ndim == a->ndim;
        for (int d = 0; fits && d < a->ndim; d++) {
            fits = d == axis || b->shape[d] == a->shape[d];
        }
        if (!fits) {
            return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                                 "reads '%s' and '%s', whose shapes differ in other dims than %d", a->name,
                                 b->name, axis);
        }
        shape[axis] += b->shape[axis];
    }
    l->u.dim = axis;
    return status == DM_OK ? nn_top_shape(l, 0, a->ndim, shape) : status;
}

/* The part of the top, or of its gradient, that bottom i is; *at: where it begins, and then where the next
 * does. */
static dm_status part(const nn_layer *l, dm_array whole, int i, int64_t *at, dm_array *out)
{
    const nn_blob *b = l->bottom[i];
    int64_t from = *at;
    *at += b->shape[l->u.dim];
    return nn_blob_part(l->net, whole, b, l->u.dim, from, out);
}

dm_status nn_concat_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_status status = DM_OK;
    int64_t at = 0;
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        dm_array view = DM_NO_ARRAY;
        if (nn_laid_of(l->bottom[i], l)) {
            at += l->bottom[i]->shape[l->u.dim];
            continue;
        }
        status = part(l, l->top[0]->data, i, &at, &view);
        status = status == DM_OK ? dm_copy(s, l->bottom[i]->data, view) : status;
        dm_status end = dm_array_destroy(s, view);
        status = status == DM_OK ? end : status;
    }
    return status;
}

dm_status nn_concat_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_status status = DM_OK;
    int64_t at = 0;
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        dm_array view = DM_NO_ARRAY;
        status = part(l, l->top[0]->diff, i, &at, &view);
        if (status == DM_OK && l->down[i]) {
            dm_array down = nn_down(l, i);
            status = nn_down_done(l, i, l->bottom[i]->joined ? DM_OK : dm_copy(s, view, down));
        }
        dm_status end = dm_array_destroy(s, view);
        status = status == DM_OK ? end : status;
    }
    return status;
}

/* --- Flatten and Reshape: the same elements, in Caffe's order, under another shape. Scratch: the bottom in
 * Caffe's order and its gradient so, views of the top's where that has the order; else one array for both, and
 * a view of it in the top's shape. */
enum { ORDERED, SHAPED, ORDERED_DIFF };

static bool moves(const nn_layer *l)
{
    return l->bottom[0]->shape[0] != l->top[0]->shape[0];
}

/* Where dim 0 is another one, the largest common divisor of both says into how many parts, which are whole
 * samples of both, the array can be dealt out. */
static dm_status parted(nn_layer *l, int i, const nn_blob *x, int64_t samples)
{
    int64_t parts = x->shape[0];
    const int64_t workers = dm_workers(l->net->session);
    for (int64_t b = samples, rest = 0; b; b = rest) {
        rest = parts % b;
        parts = b;
    }
    dm_layout layout = dm_layout_rows(l->net->session);
    layout.block[0] = (parts + workers - 1) / workers * (x->shape[0] / parts);
    return dm_array_create(l->net->session, DM_F32, x->ndim, x->shape, &layout, &l->scratch[i]);
}

dm_status nn_reshaped(nn_layer *l, int i, const nn_blob *x, int ndim, const int64_t *shape)
{
    dm_status status =
        x->shape[0] != shape[0] ? parted(l, i, x, shape[0]) : nn_scratch(l, i, false, x->ndim, x->shape);
    return status == DM_OK ? dm_array_reshape(l->net->session, l->scratch[i], ndim, shape, &l->scratch[i + 1])
                           : status;
}

static bool through(const nn_layer *l)
{
    return l->top[0]->image || moves(l);
}

static dm_status prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_session *s = l->net->session;
    if (through(l)) {
        return nn_reshaped(l, ORDERED, x, y->ndim, y->shape);
    }
    dm_status status = dm_array_reshape(s, y->data, x->ndim, x->shape, &l->scratch[ORDERED]);
    return status == DM_OK && y->diff.id
               ? dm_array_reshape(s, y->diff, x->ndim, x->shape, &l->scratch[ORDERED_DIFF])
               : status;
}

static dm_status turn(nn_layer *l, bool image, bool to_caffe, dm_array from, dm_array to)
{
    static const int order[2][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}};
    return image ? dm_permute(l->net->session, from, order[to_caffe], to) : dm_copy(l->net->session, from, to);
}

static dm_status forward(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_status status = turn(l, x->image, true, x->data, l->scratch[ORDERED]);
    return status == DM_OK && through(l) ? turn(l, y->image, false, l->scratch[SHAPED], y->data) : status;
}

static dm_status backward(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0), from = l->scratch[through(l) ? ORDERED : ORDERED_DIFF];
    dm_status status = through(l) ? turn(l, y->image, true, y->diff, l->scratch[SHAPED]) : DM_OK;
    return nn_down_done(l, 0, status == DM_OK ? turn(l, x->image, false, from, down) : status);
}

/* --- Flatten */
dm_status nn_flatten_setup(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    int first = 0, last = 0, ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = nn_axis(l, "axis", b->ndim, &first);
    status = status == DM_OK ? nn_axis(l, "end_axis", b->ndim, &last) : status;
    if (status == DM_OK && last < first) {
        status = nn_layer_fail(l, "axis", DM_ERR_SHAPE,
                               "flattens dims %d to %d: the last lies before the first", first, last);
    }
    for (int d = 0; status == DM_OK && d < b->ndim; d++) {
        if (d > first && d <= last) {
            shape[ndim - 1] *= b->shape[d];
        } else {
            shape[ndim++] = b->shape[d];
        }
    }
    return status == DM_OK ? nn_top_shape(l, 0, ndim, shape) : status;
}

dm_status nn_flatten_prepare(nn_layer *l)
{
    return prepare(l);
}

dm_status nn_flatten_forward(nn_layer *l)
{
    return forward(l);
}

dm_status nn_flatten_backward(nn_layer *l)
{
    return backward(l);
}

/* --- Reshape */
static dm_status new_shape(nn_layer *l, int64_t *shape, int *ndim)
{
    const nn_blob *x = l->bottom[0];
    const nn_message *given = nn_sub(l->own, "shape");
    int64_t first = nn_int(l->own, "ReshapeParameter", "axis"),
            axes = nn_int(l->own, "ReshapeParameter", "num_axes");
    int64_t dims = nn_count(given, "dim"), begin = first < 0 ? first + x->ndim + 1 : first;
    int64_t end = axes < 0 ? x->ndim : begin + axes, count = 1, open = -1;
    if (begin < 0 || axes < -1 || begin > x->ndim || end > x->ndim ||
        x->ndim - (end - begin) + dims > DM_MAX_DIMS) {
        return nn_layer_fail(l, "reshape_param", DM_ERR_SHAPE,
                             "replaces dims %lld to %lld by %lld others; its bottom has %d", (long long)begin,
                             (long long)end, (long long)dims, x->ndim);
    }
    *ndim = 0;
    for (int64_t d = 0; d < begin; d++) {
        shape[(*ndim)++] = x->shape[d];
    }
    for (int64_t i = 0; i < dims; i++) {
        int64_t n = nn_int_at(given, "dim", i);
        if (n < -1 || (n == 0 && begin + i >= x->ndim) || (n == -1 && open >= 0)) {
            return nn_layer_fail(l, "shape", DM_ERR_SHAPE, "has dim %lld, which means nothing here",
                                 (long long)n);
        }
        open = n == -1 ? *ndim : open;
        shape[(*ndim)++] = n == 0 ? x->shape[begin + i] : n == -1 ? 1 : n;
    }
    for (int64_t d = end; d < x->ndim; d++) {
        shape[(*ndim)++] = x->shape[d];
    }
    for (int d = 0; d < *ndim; d++) {
        if (shape[d] > x->count / count) {
            return nn_layer_fail(l, "shape", DM_ERR_SHAPE,
                                 "makes another number of elements than the %lld of '%s'", (long long)x->count,
                                 x->name);
        }
        count *= shape[d];
    }
    if (open >= 0) {
        shape[open] = x->count / count;
        count *= shape[open];
    }
    return count == x->count && *ndim > 0
               ? DM_OK
               : nn_layer_fail(l, "shape", DM_ERR_SHAPE, "makes %lld elements out of the %lld of '%s'",
                               (long long)count, (long long)x->count, x->name);
}

dm_status nn_reshape_setup(nn_layer *l)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = 0;
    dm_status status = new_shape(l, shape, &ndim);
    return status == DM_OK ? nn_top_shape(l, 0, ndim, shape) : status;
}

dm_status nn_reshape_prepare(nn_layer *l)
{
    return prepare(l);
}

dm_status nn_reshape_forward(nn_layer *l)
{
    return forward(l);
}

dm_status nn_reshape_backward(nn_layer *l)
{
    return backward(l);
}
