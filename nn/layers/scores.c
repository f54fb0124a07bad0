/* Scores along an axis behind the batch, for the calls that read scores from an array's last dim. */
#include "layers/layers.h"

dm_status nn_scores_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *labels = l->bottoms > 1 ? l->bottom[1] : NULL;
    int axis = 0;
    dm_status status = nn_axis(l, "axis", x->ndim, &axis);
    if (status == DM_OK && axis == 0) {
        status =
            nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                          "has axis 0, the batch, which workers share out: the scores of a sample must lie "
                          "in another dim");
    }
    if (status == DM_OK && labels &&
        (labels->count * x->shape[axis] != x->count || labels->ndim < 1 || labels->shape[0] != x->shape[0])) {
        status = nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                               "reads %lld labels '%s', but '%s' has %lld samples with %lld places in all",
                               (long long)labels->count, labels->name, x->name, (long long)x->shape[0],
                               (long long)(x->count / x->shape[axis]));
    }
    l->extra[NN_AXIS] = axis;
    return status;
}

int64_t nn_scores_before(const nn_layer *l)
{
    int64_t n = 1;
    for (int d = 1; d < (int)l->extra[NN_AXIS]; d++) {
        n *= l->bottom[0]->shape[d];
    }
    return n;
}

/* The order in which the scores come last, and Caffe's otherwise; and the way back. */
static void order_of(const nn_layer *l, int *to, int *back, int64_t *shape)
{
    const nn_blob *x = l->bottom[0];
    int axis = (int)l->extra[NN_AXIS];
    for (int d = 0; d < x->ndim; d++) {
        int from = d + 1 == x->ndim ? axis : d < axis ? d : d + 1;
        to[d] = nn_array_dim(x, from);
        back[to[d]] = d;
        shape[d] = x->shape[from];
    }
}

dm_status nn_scores_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *labels = l->bottom[1];
    int to[DM_MAX_DIMS], back[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    order_of(l, to, back, shape);
    if (nn_array_dim(x, (int)l->extra[NN_AXIS]) != x->ndim - 1) {
        status = nn_scratch(l, NN_SCORES, false, x->ndim, shape);
    }
    bool turned = labels->image && labels->shape[1] > 1 && labels->shape[2] * labels->shape[3] > 1;
    return status == DM_OK && turned ? nn_scratch(l, NN_LABELS, false, labels->ndim, labels->shape) : status;
}

dm_status nn_scores_read(nn_layer *l, dm_array *scores, dm_array *labels)
{
    static const int to_caffe[] = {0, 3, 1, 2};
    int to[DM_MAX_DIMS], back[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    *scores = l->bottom[0]->data;
    if (l->scratch[NN_SCORES].id) {
        order_of(l, to, back, shape);
        status = dm_permute(l->net->session, *scores, to, l->scratch[NN_SCORES]);
        *scores = l->scratch[NN_SCORES];
    }
    *labels = nn_scores_labels(l);
    return status == DM_OK && l->scratch[NN_LABELS].id
               ? dm_permute(l->net->session, l->bottom[1]->data, to_caffe, *labels)
               : status;
}

dm_array nn_scores_labels(const nn_layer *l)
{
    return l->scratch[NN_LABELS].id ? l->scratch[NN_LABELS] : l->bottom[1]->data;
}

dm_status nn_scores_write(nn_layer *l, dm_array from, dm_array out)
{
    int to[DM_MAX_DIMS], back[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    order_of(l, to, back, shape);
    return dm_permute(l->net->session, from, back, out);
}
