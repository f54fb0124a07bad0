/* Scores along an axis, for the calls that read scores from an array's last dim. Along axis 0, the batch, a
 * vector has elements of all samples: its copy is dealt out by the next dim, and of one dim it is a row of its
 * own. */
#include "layers/layers.h"

dm_status nn_scores_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *labels = l->bottoms > 1 ? l->bottom[1] : NULL;
    int axis = 0;
    dm_status status = nn_axis(l, "axis", x->ndim, &axis);
    if (status == DM_OK && labels && labels->count * x->shape[axis] != x->count) {
        status = nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                               "reads %lld labels '%s', but '%s' has %lld vectors of scores along dim %d",
                               (long long)labels->count, labels->name, x->name,
                               (long long)(x->count / x->shape[axis]), axis);
    }
    l->extra[NN_AXIS] = axis;
    return status;
}

int nn_scores_axis(const nn_layer *l)
{
    static dm_status (*const setups[])(nn_layer * layer) = {nn_softmax_setup, nn_softmax_loss_setup,
                                                            nn_infogain_loss_setup, nn_accuracy_setup};
    for (int i = 0; i < NN_COUNT(setups); i++) {
        if (l->type->setup == setups[i]) {
            return (int)l->extra[NN_AXIS];
        }
    }
    return -1;
}

int nn_ignored_label(const nn_layer *l)
{
    return l->type->setup == nn_accuracy_setup && l->u.loss.ignores ? l->u.loss.ignore_label : -1;
}

int64_t nn_scores_outer(const nn_layer *l)
{
    int64_t n = 1;
    for (int d = 0; d < (int)l->extra[NN_AXIS]; d++) {
        n *= l->bottom[0]->shape[d];
    }
    return n;
}

/* Which dim of Caffe's is dim d of the scores as they are read. */
static int from_dim(const nn_layer *l, int d)
{
    const int axis = (int)l->extra[NN_AXIS];
    return d + 1 == l->bottom[0]->ndim ? axis : d < axis ? d : d + 1;
}

int nn_scores_shape(const nn_layer *l, int64_t shape[DM_MAX_DIMS])
{
    const nn_blob *x = l->bottom[0];
    const int more = x->ndim == 1;
    shape[0] = 1;
    for (int d = 0; d < x->ndim; d++) {
        shape[d + more] = x->shape[from_dim(l, d)];
    }
    return x->ndim + more;
}

dm_status nn_scores_scratch(nn_layer *l, int i, int64_t last)
{
    int64_t shape[DM_MAX_DIMS];
    const int ndim = nn_scores_shape(l, shape);
    shape[ndim - 1] = last;
    return nn_scratch(l, i, false, ndim, shape);
}

/* Labels are taken as they lie where dim 0 is that of the scores and the order is Caffe's. */
static dm_status prepare_labels(nn_layer *l, int ndim, const int64_t *shape)
{
    const nn_blob *labels = l->bottom[1];
    const bool turned = labels->image && labels->shape[1] > 1 && labels->shape[2] * labels->shape[3] > 1;
    return labels->shape[0] != shape[0] ? nn_reshaped(l, NN_LABELS, labels, ndim - 1, shape)
           : turned                     ? nn_scratch(l, NN_LABELS, false, labels->ndim, labels->shape)
                                        : DM_OK;
}

dm_status nn_scores_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t shape[DM_MAX_DIMS] = {0};
    const int ndim = nn_scores_shape(l, shape), axis = (int)l->extra[NN_AXIS];
    dm_status status = DM_OK;
    if (ndim != x->ndim || nn_array_dim(x, axis) != x->ndim - 1) {
        status = nn_scores_scratch(l, NN_SCORES, shape[ndim - 1]);
    }
    return status == DM_OK && l->bottoms > 1 ? prepare_labels(l, ndim, shape) : status;
}

/* Of one dim: between the row and an array of the first bottom's shape. */
static dm_status copy_row(nn_layer *l, dm_array row, dm_array other, bool to_row)
{
    dm_session *s = l->net->session;
    dm_array view = DM_NO_ARRAY;
    dm_status status = dm_array_reshape(s, row, 1, l->bottom[0]->shape, &view);
    if (status == DM_OK) {
        status = dm_copy(s, to_row ? other : view, to_row ? view : other);
    }
    dm_status end = dm_array_destroy(s, view);
    return status == DM_OK ? end : status;
}

/* The order in which the scores come last, and the way back. */
static void order_of(const nn_layer *l, int *to, int *back)
{
    const nn_blob *x = l->bottom[0];
    for (int d = 0; d < x->ndim; d++) {
        to[d] = nn_array_dim(x, from_dim(l, d));
        back[to[d]] = d;
    }
}

dm_status nn_scores_turn(nn_layer *l, dm_array from, dm_array out)
{
    int to[DM_MAX_DIMS], back[DM_MAX_DIMS];
    order_of(l, to, back);
    return l->bottom[0]->ndim == 1 ? copy_row(l, out, from, true) : dm_permute(l->net->session, from, to, out);
}

dm_status nn_scores_write(nn_layer *l, dm_array from, dm_array out)
{
    int to[DM_MAX_DIMS], back[DM_MAX_DIMS];
    order_of(l, to, back);
    return l->bottom[0]->ndim == 1 ? copy_row(l, from, out, false)
                                   : dm_permute(l->net->session, from, back, out);
}

dm_status nn_scores_read(nn_layer *l, dm_array *scores, dm_array *labels)
{
    const dm_array turned = l->scratch[NN_SCORES], ordered = l->scratch[NN_LABELS];
    dm_status status = turned.id ? nn_scores_turn(l, l->bottom[0]->data, turned) : DM_OK;
    *scores = turned.id ? turned : l->bottom[0]->data;
    if (labels) {
        *labels = nn_scores_labels(l);
        status =
            status == DM_OK && ordered.id ? nn_in_order(l, l->bottom[1], l->bottom[1]->data, ordered) : status;
    }
    return status;
}

dm_array nn_scores_labels(const nn_layer *l)
{
    const dm_array ordered = l->scratch[NN_LABELS], shaped = l->scratch[NN_LABELS + 1];
    return shaped.id ? shaped : ordered.id ? ordered : l->bottom[1]->data;
}

dm_status nn_scores_label_column(nn_layer *l, int i)
{
    int64_t shape[DM_MAX_DIMS];
    const int ndim = nn_scores_shape(l, shape);
    const dm_array ordered = l->scratch[NN_LABELS];
    shape[ndim - 1] = 1;
    return dm_array_reshape(l->net->session, ordered.id ? ordered : l->bottom[1]->data, ndim, shape,
                            &l->scratch[i]);
}
