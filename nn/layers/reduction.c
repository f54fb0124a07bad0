/* Sums over dims from an axis on (Reduction), and Reshape. */
#include "layers/layers.h"

#include <string.h>

static const int to_caffe[] = {0, 3, 1, 2}, from_caffe[] = {0, 2, 3, 1};

/* --- Reduction. Scratch: the sums, in the order of the bottom with 1 for each dim that goes, and the gradient
 * so. */
dm_status nn_reduction_setup(nn_layer *l)
{
    static const char R[] = "ReductionParameter";
    const nn_blob *x = l->bottom[0];
    int64_t below = 1;
    dm_status status = nn_axis(l, "axis", x->ndim, &l->u.dim);
    for (int d = l->u.dim; status == DM_OK && d < x->ndim; d++) {
        below *= x->shape[d];
    }
    l->extra[0] = (double)nn_int(l->own, R, "operation");
    l->extra[1] = nn_real(l->own, R, "coeff") / (l->extra[0] == 4 ? (double)below : 1);
    return status != DM_OK ? status
           : l->u.dim == 0 ? nn_top_number(l, 0)
                           : nn_top_shape(l, 0, l->u.dim, x->shape);
}

dm_status nn_reduction_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = d == 0 || d < l->u.dim ? x->shape[d] : 1;
    }
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = nn_scratch(l, i, x->image, x->ndim, shape);
    }
    dm_array of[2] = {l->top[0]->data, l->top[0]->diff};
    for (int i = 0; status == DM_OK && l->u.dim && i < 2; i++) {
        if (of[i].id) {
            status = dm_array_reshape(l->net->session, of[i], x->ndim, shape, &l->scratch[2 + i]);
        }
    }
    return status;
}

dm_status nn_reduction_forward(nn_layer *l)
{
    static const char *const terms[] = {"", "x * 1", "abs(x)", "x * x", "x * 1"};
    const nn_blob *x = l->bottom[0];
    dm_session *s = l->net->session;
    dm_map_arg arg = DM_ARG("x", x->data);
    dm_status status = nn_map_rows(l, "sum", terms[(int)l->extra[0]], x, l->u.dim, 1, &arg, l->scratch[0]);
    if (status != DM_OK) {
        return status;
    }
    if (l->u.dim == 0) {
        return nn_sum_samples(l, l->extra[1], l->scratch[0], x->shape[0], l->top[0]->data);
    }
    status = x->image ? dm_permute(s, l->scratch[0], to_caffe, l->scratch[2])
                      : dm_copy(s, l->scratch[0], l->scratch[2]);
    return status == DM_OK ? dm_scale(s, l->extra[1], l->top[0]->data, l->top[0]->data) : status;
}

dm_status nn_reduction_backward(nn_layer *l)
{
    static const char *const terms[] = {"", "x * 0 + a * d", "a * d * sign(x)", "2 * a * d * x",
                                        "x * 0 + a * d"};
    const nn_blob *x = l->bottom[0];
    dm_array d = l->top[0]->diff;
    dm_status status = DM_OK;
    if (!l->down[0]) {
        return DM_OK;
    }
    if (l->u.dim) {
        d = l->scratch[1];
        status = x->image ? dm_permute(l->net->session, l->scratch[3], from_caffe, d)
                          : dm_copy(l->net->session, l->scratch[3], d);
    }
    dm_map_arg args[] = {DM_ARG("x", x->data), DM_ARG("d", d), DM_NUMBER("a", l->extra[1])};
    dm_array down = nn_down(l, 0);
    return nn_down_done(
        l, 0, status == DM_OK ? nn_map(l->net->session, terms[(int)l->extra[0]], 3, args, down) : status);
}

/* --- Reshape: in Caffe's order. Scratch: what an image is on the way, forward and back. */
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
    if (status == DM_OK && shape[0] != l->bottom[0]->shape[0]) {
        status =
            nn_layer_fail(l, "shape", DM_ERR_UNSUPPORTED, "makes %lld samples out of %lld: dim 0 must stay",
                          (long long)shape[0], (long long)l->bottom[0]->shape[0]);
    }
    return status == DM_OK ? nn_top_shape(l, 0, ndim, shape) : status;
}

/* Scratch 0 is in Caffe's order of the bottom, scratch 1 a view of it in that of the top. */
dm_status nn_reshape_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    dm_status status = nn_scratch(l, 0, false, x->ndim, x->shape);
    return status == DM_OK ? dm_array_reshape(l->net->session, l->scratch[0], y->ndim, y->shape, &l->scratch[1])
                           : status;
}

static dm_status turn(nn_layer *l, bool image, const int *perm, dm_array from, dm_array to)
{
    return image ? dm_permute(l->net->session, from, perm, to) : dm_copy(l->net->session, from, to);
}

dm_status nn_reshape_forward(nn_layer *l)
{
    dm_status status = turn(l, l->bottom[0]->image, to_caffe, l->bottom[0]->data, l->scratch[0]);
    return status == DM_OK ? turn(l, l->top[0]->image, from_caffe, l->scratch[1], l->top[0]->data) : status;
}

dm_status nn_reshape_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    dm_status status = turn(l, l->top[0]->image, to_caffe, l->top[0]->diff, l->scratch[1]);
    return nn_down_done(
        l, 0, status == DM_OK ? turn(l, l->bottom[0]->image, from_caffe, l->scratch[0], down) : status);
}
