/* Losses against targets, and of margins: SigmoidCrossEntropyLoss, EuclideanLoss, HingeLoss. */
#include "layers/layers.h"

#include <string.h>

static const char L[] = "LossParameter";

/* --- Targets may have other dims than the scores, and are taken in Caffe's order then. Scratch: they in that
 * order, where they lie in another; a view of them in the shape of the scores; and that in the order of the
 * scores. Where they get a gradient: it in Caffe's order with the shape of the scores, and a view of it with
 * theirs. */
enum { ORDERED, SHAPED, TURNED, BACK, BACK_SHAPED };

static const int to_caffe[] = {0, 3, 1, 2}, from_caffe[] = {0, 2, 3, 1};

static bool shapes_differ(const nn_layer *l)
{
    const nn_blob *a = l->bottom[0], *b = l->bottom[1];
    return a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0;
}

static dm_status as_many(const nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *t = l->bottom[1];
    if (x->ndim < 1 || t->ndim < 1 || x->shape[0] != t->shape[0] || x->count != t->count) {
        return nn_layer_fail(
            l, "bottom", DM_ERR_SHAPE,
            "reads %lld samples with %lld scores '%s', but %lld samples with %lld targets '%s'",
            (long long)(x->ndim ? x->shape[0] : 1), (long long)x->count, x->name,
            (long long)(t->ndim ? t->shape[0] : 1), (long long)t->count, t->name);
    }
    return DM_OK;
}

static dm_status prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *t = l->bottom[1];
    dm_array ordered = t->data;
    dm_status status = DM_OK;
    if (!shapes_differ(l)) {
        return DM_OK;
    }
    if (t->image) {
        status = nn_scratch(l, ORDERED, false, t->ndim, t->shape);
        ordered = l->scratch[ORDERED];
    }
    status = status == DM_OK
                 ? dm_array_reshape(l->net->session, ordered, x->ndim, x->shape, &l->scratch[SHAPED])
                 : status;
    return status == DM_OK && x->image ? nn_scratch(l, TURNED, true, x->ndim, x->shape) : status;
}

static dm_array targets(const nn_layer *l)
{
    dm_array turned = l->scratch[TURNED], shaped = l->scratch[SHAPED];
    return turned.id ? turned : shaped.id ? shaped : l->bottom[1]->data;
}

static dm_status take_targets(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_status status =
        l->scratch[ORDERED].id ? dm_permute(s, l->bottom[1]->data, to_caffe, l->scratch[ORDERED]) : DM_OK;
    return status == DM_OK && l->scratch[TURNED].id
               ? dm_permute(s, l->scratch[SHAPED], from_caffe, l->scratch[TURNED])
               : status;
}

/* --- SigmoidCrossEntropyLoss: divided by the samples, unless loss_param says otherwise. */
dm_status nn_sigmoid_loss_prepare(nn_layer *l)
{
    return prepare(l);
}

dm_status nn_sigmoid_loss_setup(nn_layer *l)
{
    dm_loss *loss = &l->u.loss;
    const nn_message *m = nn_sub(l->message, "loss_param");
    *loss = (dm_loss)DM_LOSS_INIT;
    loss->slices = l->net->slices;
    loss->ignores = nn_has(m, "ignore_label");
    loss->ignore_label = (int)nn_int(m, L, "ignore_label");
    loss->normalize = nn_normalization(l, DM_NORMALIZE_SAMPLES);
    nn_use(l->own, "engine");
    dm_status status = as_many(l);
    return status == DM_OK ? nn_top_number(l, 0) : status;
}

dm_status nn_sigmoid_loss_forward(nn_layer *l)
{
    dm_status status = take_targets(l);
    return status == DM_OK
               ? dm_sigmoid_loss(l->net->session, &l->u.loss, l->bottom[0]->data, targets(l), l->top[0]->data)
               : status;
}

dm_status nn_sigmoid_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0,
                        dm_sigmoid_loss_backward(l->net->session, &l->u.loss, l->bottom[0]->data, targets(l),
                                                 l->top[0]->loss_weight, down));
}

/* --- EuclideanLoss: both bottoms get gradients. */
dm_status nn_euclidean_loss_setup(nn_layer *l)
{
    dm_status status = as_many(l);
    return status == DM_OK ? nn_top_number(l, 0) : status;
}

dm_status nn_euclidean_loss_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *t = l->bottom[1];
    dm_status status = prepare(l);
    if (status == DM_OK && shapes_differ(l) && l->down[1]) {
        status = nn_scratch(l, BACK, false, x->ndim, x->shape);
        status = status == DM_OK ? dm_array_reshape(l->net->session, l->scratch[BACK], t->ndim, t->shape,
                                                    &l->scratch[BACK_SHAPED])
                                 : status;
    }
    return status;
}

dm_status nn_euclidean_loss_forward(nn_layer *l)
{
    dm_status status = take_targets(l);
    return status == DM_OK ? dm_euclidean_loss(l->net->session, l->net->slices, l->bottom[0]->data, targets(l),
                                               l->top[0]->data)
                           : status;
}

/* The gradient of targets of other dims than the scores; what was made of them for the forward pass is not
 * needed any more. */
static dm_status shaped_down(nn_layer *l, double scale, dm_array down)
{
    dm_session *s = l->net->session;
    const dm_array turned = l->scratch[TURNED], to = turned.id ? turned : l->scratch[BACK];
    dm_status status = dm_add(s, scale, targets(l), -scale, l->bottom[0]->data, to);
    status = status == DM_OK && turned.id ? dm_permute(s, turned, to_caffe, l->scratch[BACK]) : status;
    return status != DM_OK       ? status
           : l->bottom[1]->image ? dm_permute(s, l->scratch[BACK_SHAPED], from_caffe, down)
                                 : dm_copy(s, l->scratch[BACK_SHAPED], down);
}

dm_status nn_euclidean_loss_backward(nn_layer *l)
{
    double scale = l->top[0]->loss_weight / (double)l->bottom[0]->shape[0];
    const dm_array of[2] = {l->bottom[0]->data, targets(l)};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        if (l->down[i]) {
            dm_array down = nn_down(l, i);
            status = nn_down_done(l, i,
                                  i == 1 && shapes_differ(l)
                                      ? shaped_down(l, scale, down)
                                      : dm_add(l->net->session, scale, of[i], -scale, of[1 - i], down));
        }
    }
    return status;
}

/* --- HingeLoss: of all elements of a sample, in Caffe's order. Scratch: scores, and their gradients, as rows.
 */
enum { SCORES = 0, DOWN = 2 };

dm_status nn_hinge_loss_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    l->u.dim = (int)nn_int(l->own, "HingeLossParameter", "norm");
    if (x->ndim < 2 || l->bottom[1]->count != x->shape[0] || l->bottom[1]->shape[0] != x->shape[0]) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                             "needs scores of at least 2 dims and a label for each sample");
    }
    return nn_top_number(l, 0);
}

dm_status nn_hinge_loss_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    dm_status status = nn_matrix(l, SCORES, x, x->data, x->shape[0], false);
    return status == DM_OK && x->ndim > 2 && l->down[0] ? nn_matrix(l, DOWN, x, x->diff, x->shape[0], true)
                                                        : status;
}

dm_status nn_hinge_loss_forward(nn_layer *l)
{
    dm_status status = nn_matrix_read(l, SCORES, l->bottom[0], l->bottom[0]->data);
    return status == DM_OK ? dm_hinge_loss(l->net->session, l->u.dim, l->net->slices, l->scratch[SCORES],
                                           l->bottom[1]->data, l->top[0]->data)
                           : status;
}

dm_status nn_hinge_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0), rows = l->scratch[DOWN].id ? l->scratch[DOWN] : down;
    dm_status status = dm_hinge_loss_backward(l->net->session, l->u.dim, l->net->slices, l->scratch[SCORES],
                                              l->bottom[1]->data, l->top[0]->loss_weight, rows);
    return nn_down_done(l, 0, status == DM_OK ? nn_matrix_write(l, DOWN, l->bottom[0], down) : status);
}
