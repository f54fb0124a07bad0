/* Concat and Flatten. */
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

/* --- Flatten: in Caffe's order, so images are permuted. Where the top is an image, it is a Reshape. */
dm_status nn_flatten_setup(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    int first = 0, last = 0, ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = nn_axis(l, "axis", b->ndim, &first);
    status = status == DM_OK ? nn_axis(l, "end_axis", b->ndim, &last) : status;
    if (status == DM_OK && (first < 1 || last < first)) {
        status = nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                               "flattens dims %d to %d: they must lie behind the batch", first, last);
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

dm_status
nn_flatten_prepare(nn_layer *l) /* views of top and gradient in the shape of the bottom, in Caffe's order */
{
    const nn_blob *b = l->bottom[0];
    dm_array of[2] = {l->top[0]->data, l->top[0]->diff};
    dm_status status = DM_OK;
    if (l->top[0]->image) {
        return nn_reshape_prepare(l);
    }
    for (int i = 0; status == DM_OK && i < 2; i++) {
        if (of[i].id) {
            status = dm_array_reshape(l->net->session, of[i], b->ndim, b->shape, &l->scratch[i]);
        }
    }
    return status;
}

dm_status nn_flatten_forward(nn_layer *l)
{
    static const int to_caffe[] = {0, 3, 1, 2};
    dm_session *s = l->net->session;
    if (l->top[0]->image) {
        return nn_reshape_forward(l);
    }
    return l->bottom[0]->image ? dm_permute(s, l->bottom[0]->data, to_caffe, l->scratch[0])
                               : dm_copy(s, l->bottom[0]->data, l->scratch[0]);
}

dm_status nn_flatten_backward(nn_layer *l)
{
    static const int from_caffe[] = {0, 2, 3, 1};
    dm_session *s = l->net->session;
    if (!l->down[0]) {
        return DM_OK;
    }
    if (l->top[0]->image) {
        return nn_reshape_backward(l);
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0,
                        l->bottom[0]->image ? dm_permute(s, l->scratch[1], from_caffe, down)
                                            : dm_copy(s, l->scratch[1], down));
}
