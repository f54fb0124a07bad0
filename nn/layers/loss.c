/* Softmax, its loss, accuracy. */
#include "layers/layers.h"

#include <stdio.h>

static const char L[] = "LossParameter";

/* --- Softmax: along an axis behind the batch where scores lie; along the batch on a copy, whose vectors lie
 * whole. Scratch: a sum for each vector, and the gradient in the copy's order. */
enum { SUMS, GRADIENT };

dm_status nn_softmax_setup(nn_layer *l)
{
    nn_use(l->own, "engine");
    dm_status status = nn_scores_setup(l);
    return status == DM_OK ? nn_top_shape(l, 0, l->bottom[0]->ndim, l->bottom[0]->shape) : status;
}

dm_status nn_softmax_prepare(nn_layer *l)
{
    const int axis = (int)l->extra[NN_AXIS];
    nn_blob sums = *l->top[0];
    sums.shape[axis] = 1;
    if (axis > 0) {
        return l->need_backward ? nn_blob_array(l->net, &sums, DM_F32, &l->scratch[SUMS]) : DM_OK;
    }
    dm_status status = nn_scores_prepare(l);
    if (status == DM_OK && l->need_backward) {
        status = nn_scores_scratch(l, SUMS, 1);
        status = status == DM_OK ? nn_scores_scratch(l, GRADIENT, l->bottom[0]->shape[0]) : status;
    }
    return status;
}

dm_status nn_softmax_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_array scores = l->bottom[0]->data, turned = l->scratch[NN_SCORES];
    int dim = nn_array_dim(l->bottom[0], (int)l->extra[NN_AXIS]);
    if (!turned.id) {
        return dm_softmax(s, scores, &dim, 1, l->top[0]->data);
    }
    dm_status status = nn_scores_read(l, &scores, NULL);
    dim = l->bottom[0]->ndim == 1 ? 1 : l->bottom[0]->ndim - 1;
    status = status == DM_OK ? dm_softmax(s, scores, &dim, 1, scores) : status;
    return status == DM_OK ? nn_scores_write(l, scores, l->top[0]->data) : status;
}

dm_status nn_softmax_backward(nn_layer *l)
{
    const dm_array turned = l->scratch[NN_SCORES]; /* the probabilities */
    dm_map_arg args[] = {DM_ARG("y", turned.id ? turned : l->top[0]->data),
                         DM_ARG("d", turned.id ? l->scratch[GRADIENT] : l->top[0]->diff),
                         DM_ARG("t", l->scratch[SUMS])};
    char text[32];
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_status status = turned.id ? nn_scores_turn(l, l->top[0]->diff, l->scratch[GRADIENT]) : DM_OK;
    snprintf(text, sizeof text, "sum(y * d, %d)",
             turned.id ? -1 : nn_array_dim(l->bottom[0], (int)l->extra[NN_AXIS]));
    status = status == DM_OK ? dm_map(l->net->session, text, 2, args, l->scratch[SUMS]) : status;
    dm_array down = nn_down(l, 0), to = turned.id ? l->scratch[GRADIENT] : down;
    status = status == DM_OK ? dm_map(l->net->session, "y * (d - t)", 3, args, to) : status;
    return nn_down_done(l, 0, status == DM_OK && turned.id ? nn_scores_write(l, to, down) : status);
}

/* --- SoftmaxWithLoss */
dm_status nn_softmax_loss_setup(nn_layer *l)
{
    dm_loss *loss = &l->u.loss;
    const nn_message *m = nn_sub(l->message, "loss_param");
    *loss = (dm_loss)DM_LOSS_INIT;
    loss->slices = l->net->slices;
    loss->ignores = nn_has(m, "ignore_label");
    loss->ignore_label = (int)nn_int(m, L, "ignore_label");
    loss->normalize = nn_normalization(l, DM_NORMALIZE_VALID);
    nn_use(l->own, "engine");
    dm_status status = nn_scores_setup(l);
    status = status == DM_OK ? nn_top_number(l, 0) : status;
    if (status == DM_OK && l->tops == 2) {
        status = nn_top_shape(l, 1, l->bottom[0]->ndim, l->bottom[0]->shape);
    }
    return status;
}

/* Scratch 0: the probabilities, where they are no top or lie in another order than that. */
dm_status nn_softmax_loss_prepare(nn_layer *l)
{
    dm_status status = nn_scores_prepare(l);
    dm_array scores = l->scratch[NN_SCORES];
    bool needed = scores.id ? l->tops == 2 || l->need_backward : l->tops == 1 && l->need_backward;
    if (status != DM_OK || !needed) {
        return status;
    }
    return scores.id ? dm_array_like(l->net->session, scores, DM_F32, &l->scratch[0])
                     : nn_blob_array(l->net, l->bottom[0], DM_F32, &l->scratch[0]);
}

static dm_array probabilities(const nn_layer *l)
{
    return l->tops == 2 && !l->scratch[0].id ? l->top[1]->data : l->scratch[0];
}

/* dm_softmax_loss divides by dim 0 of the scores where Caffe divides by the vectors before the axis. */
static double divisor(const nn_layer *l)
{
    int64_t shape[DM_MAX_DIMS];
    (void)nn_scores_shape(l, shape);
    return l->u.loss.normalize == DM_NORMALIZE_SAMPLES ? (double)nn_scores_outer(l) / (double)shape[0] : 1;
}

dm_status nn_softmax_loss_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_array scores, labels, loss = l->top[0]->data;
    dm_status status = nn_scores_read(l, &scores, &labels);
    status = status == DM_OK ? dm_softmax_loss(s, &l->u.loss, scores, labels, probabilities(l), loss) : status;
    status = status == DM_OK && divisor(l) != 1 ? dm_scale(s, 1 / divisor(l), loss, loss) : status;
    return status == DM_OK && l->tops == 2 && l->scratch[0].id
               ? nn_scores_write(l, l->scratch[0], l->top[1]->data)
               : status;
}

dm_status nn_softmax_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0), scores = l->scratch[NN_SCORES]; /* which nobody reads any more */
    dm_status status =
        dm_softmax_loss_backward(l->net->session, &l->u.loss, probabilities(l), nn_scores_labels(l),
                                 l->top[0]->loss_weight / divisor(l), scores.id ? scores : down);
    return nn_down_done(l, 0, status == DM_OK && scores.id ? nn_scores_write(l, scores, down) : status);
}

/* --- Accuracy */
dm_status nn_accuracy_setup(nn_layer *l)
{
    dm_loss *loss = &l->u.loss;
    int64_t top_k = nn_int(l->own, "AccuracyParameter", "top_k");
    *loss = (dm_loss)DM_LOSS_INIT;
    loss->slices = l->net->slices;
    loss->ignores = nn_has(l->own, "ignore_label");
    loss->ignore_label = (int)nn_int(l->own, "AccuracyParameter", "ignore_label");
    dm_status status = nn_scores_setup(l);
    int64_t scores = status == DM_OK ? l->bottom[0]->shape[(int)l->extra[NN_AXIS]] : 0;
    if (status == DM_OK && (top_k < 1 || top_k > scores)) {
        status = nn_layer_fail(l, "top_k", DM_ERR_FORMAT, "has top_k %lld, but there are %lld scores",
                               (long long)top_k, (long long)scores);
    }
    l->extra[0] = (double)top_k;
    if (status == DM_OK && l->tops == 2) {
        status = nn_top_shape(l, 1, 1, &scores);
        l->top[1]->whole = true;
    }
    return status == DM_OK ? nn_top_number(l, 0) : status;
}

/* Of the second top, the accuracy of each class: labels beside the scores, the numbers of the classes, the
 * label's score and how many scores are as high, whether an element is a label (and a hit), and both counted by
 * class. */
enum { LABELS, CLASSES, SCORE, HIGHER, MEMBER, HIT, MEMBERS, HITS };

dm_status nn_accuracy_prepare(nn_layer *l)
{
    const int64_t c = l->bottom[0]->shape[(int)l->extra[NN_AXIS]];
    dm_status status = nn_scores_prepare(l);
    if (l->tops == 1 || status != DM_OK) {
        return status;
    }
    status = nn_scores_label_column(l, LABELS);
    status = status == DM_OK ? nn_scratch_everywhere(l, CLASSES, c) : status;
    status = status == DM_OK ? dm_fill_arange(l->net->session, l->scratch[CLASSES], 0, 1) : status;
    for (int i = SCORE; status == DM_OK && i <= HIT; i++) {
        status = nn_scores_scratch(l, i, i < MEMBER ? 1 : c);
    }
    status = status == DM_OK ? nn_scratch_everywhere(l, MEMBERS, c) : status;
    return status == DM_OK ? nn_scratch_everywhere(l, HITS, c) : status;
}

/* Labels that are ignored, or no class, count nowhere. A class without labels has 0. */
static dm_status by_class(nn_layer *l, dm_array scores)
{
    static const struct {
        const char *text;
        int to;
    } steps[] = {{"sum(where(trunc(t) == c, x, 0), -1)", SCORE},
                 {"sum(where(x >= s, 1, 0), -1)", HIGHER},
                 {"where((trunc(t) == c) & ((i == 0) | (trunc(t) != g)), 1, 0)", MEMBER},
                 {"where(h <= k, m, 0)", HIT}};
    const dm_array *a = l->scratch;
    const dm_map_arg args[] = {DM_ARG("x", scores),
                               DM_ARG("t", a[LABELS]),
                               DM_ARG("c", a[CLASSES]),
                               DM_ARG("s", a[SCORE]),
                               DM_ARG("h", a[HIGHER]),
                               DM_ARG("m", a[MEMBER]),
                               DM_NUMBER("k", l->extra[0]),
                               DM_NUMBER("i", l->u.loss.ignores),
                               DM_NUMBER("g", l->u.loss.ignore_label)};
    dm_session *s = l->net->session;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < NN_COUNT(steps); i++) {
        status = nn_map(s, steps[i].text, NN_COUNT(args), args, a[steps[i].to]);
    }
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = dm_channel_sums(s, l->net->slices, 1, a[MEMBER + i], DM_NO_ARRAY, 0, a[MEMBERS + i]);
    }
    dm_map_arg counts[] = {DM_ARG("n", a[MEMBERS]), DM_ARG("h", a[HITS])};
    return status == DM_OK ? dm_map(s, "where(n > 0, h / maximum(n, 1), 0)", 2, counts, l->top[1]->data)
                           : status;
}

dm_status nn_accuracy_forward(nn_layer *l)
{
    dm_array scores, labels;
    dm_status status = nn_scores_read(l, &scores, &labels);
    status = status == DM_OK
                 ? dm_accuracy(l->net->session, &l->u.loss, (int)l->extra[0], scores, labels, l->top[0]->data)
                 : status;
    return status == DM_OK && l->tops == 2 ? by_class(l, scores) : status;
}
