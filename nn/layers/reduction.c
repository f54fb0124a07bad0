/* Reduction: sums over dims from an axis on. */
#include "layers/layers.h"

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
