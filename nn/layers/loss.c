/* Softmax, its loss, accuracy. */
#include "layers/layers.h"

static const char L[] = "LossParameter";

/* Only the channels: they are the last dim of all arrays with up to two dims, and of images. */
static dm_status channel_axis(const nn_layer *l, const char *message)
{
    const nn_blob *b = l->bottom[0];
    int64_t axis = nn_int(l->own, message, "axis");
    axis = axis < 0 ? axis + b->ndim : axis;
    if (axis != 1 || (b->ndim != 2 && !b->image)) {
        return nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                             "has axis %lld of %d dims: only axis 1 of 2 or 4 is supported", (long long)axis,
                             b->ndim);
    }
    return DM_OK;
}

/* Is there one label for each score vector? */
static dm_status check_labels(const nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *labels = l->bottom[1];
    if (labels->count * x->shape[1] != x->count) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads %lld labels '%s', but '%s' has places for %lld",
                             (long long)labels->count, labels->name, x->name,
                             (long long)(x->count / x->shape[1]));
    }
    return DM_OK;
}

/* --- Softmax */
dm_status nn_softmax_setup(nn_layer *l)
{
    nn_use(l->own, "engine");
    dm_status status = channel_axis(l, "SoftmaxParameter");
    return status == DM_OK ? nn_top_shape(l, 0, l->bottom[0]->ndim, l->bottom[0]->shape) : status;
}

dm_status nn_softmax_prepare(nn_layer *l) /* a sum for each score vector */
{
    nn_blob sums = *l->top[0];
    sums.shape[1] = 1;
    return l->need_backward ? nn_blob_array(l->net, &sums, DM_F32, &l->scratch[0]) : DM_OK;
}

dm_status nn_softmax_forward(nn_layer *l)
{
    int dim = nn_array_dim(l->bottom[0], 1);
    return dm_softmax(l->net->session, l->bottom[0]->data, &dim, 1, l->top[0]->data);
}

dm_status nn_softmax_backward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("y", l->top[0]->data), DM_ARG("d", l->top[0]->diff),
                         DM_ARG("t", l->scratch[0])};
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_status status = dm_map(l->net->session, "sum(y * d, -1)", 2, args, l->scratch[0]);
    dm_array down = nn_down(l, 0);
    if (status == DM_OK) {
        status = dm_map(l->net->session, "y * (d - t)", 3, args, down);
    }
    return nn_down_done(l, 0, status);
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
    dm_status status = channel_axis(l, "SoftmaxParameter");
    status = status == DM_OK ? check_labels(l) : status;
    status = status == DM_OK ? nn_top_number(l, 0) : status;
    if (status == DM_OK && l->tops == 2) {
        status = nn_top_shape(l, 1, l->bottom[0]->ndim, l->bottom[0]->shape);
    }
    return status;
}

dm_status nn_softmax_loss_prepare(nn_layer *l)
{
    return l->tops == 1 && l->need_backward ? nn_blob_array(l->net, l->bottom[0], DM_F32, &l->scratch[0])
                                            : DM_OK;
}

static dm_array probabilities(const nn_layer *l)
{
    return l->tops == 2 ? l->top[1]->data : l->scratch[0];
}

dm_status nn_softmax_loss_forward(nn_layer *l)
{
    return dm_softmax_loss(l->net->session, &l->u.loss, l->bottom[0]->data, l->bottom[1]->data,
                           probabilities(l), l->top[0]->data);
}

dm_status nn_softmax_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0,
                        dm_softmax_loss_backward(l->net->session, &l->u.loss, probabilities(l),
                                                 l->bottom[1]->data, l->top[0]->loss_weight, down));
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
    dm_status status = channel_axis(l, "AccuracyParameter");
    status = status == DM_OK ? check_labels(l) : status;
    if (status == DM_OK && (top_k < 1 || top_k > l->bottom[0]->shape[1])) {
        status = nn_layer_fail(l, "top_k", DM_ERR_FORMAT, "has top_k %lld, but there are %lld scores",
                               (long long)top_k, (long long)l->bottom[0]->shape[1]);
    }
    l->extra[0] = (double)top_k;
    if (status == DM_OK && l->tops == 2) {
        status = nn_top_shape(l, 1, 1, &l->bottom[0]->shape[1]);
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
    const nn_blob *x = l->bottom[0];
    const int64_t c = x->shape[1];
    nn_blob classes = {.ndim = x->ndim, .image = x->image, .shape = {1, c, 1, 1}}, one = *x;
    int64_t shape[DM_MAX_DIMS];
    if (l->tops == 1) {
        return DM_OK;
    }
    one.shape[1] = 1;
    for (int d = 0; d < x->ndim; d++) {
        shape[nn_array_dim(x, d)] = one.shape[d];
    }
    dm_status status =
        dm_array_reshape(l->net->session, l->bottom[1]->data, x->ndim, shape, &l->scratch[LABELS]);
    status = status == DM_OK ? nn_blob_array(l->net, &classes, DM_F32, &l->scratch[CLASSES]) : status;
    status = status == DM_OK ? dm_fill_arange(l->net->session, l->scratch[CLASSES], 0, 1) : status;
    for (int i = SCORE; status == DM_OK && i <= HIT; i++) {
        status = nn_blob_array(l->net, i < MEMBER ? &one : x, DM_F32, &l->scratch[i]);
    }
    status = status == DM_OK ? nn_scratch_everywhere(l, MEMBERS, c) : status;
    return status == DM_OK ? nn_scratch_everywhere(l, HITS, c) : status;
}

/* Labels that are ignored, or no class, count nowhere. A class without labels has 0. */
static dm_status by_class(nn_layer *l)
{
    static const struct {
        const char *text;
        int to;
    } steps[] = {{"sum(where(trunc(t) == c, x, 0), -1)", SCORE},
                 {"sum(where(x >= s, 1, 0), -1)", HIGHER},
                 {"where((trunc(t) == c) & ((i == 0) | (trunc(t) != g)), 1, 0)", MEMBER},
                 {"where(h <= k, m, 0)", HIT}};
    const dm_array *a = l->scratch;
    const dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data),
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
    dm_status status = dm_accuracy(l->net->session, &l->u.loss, (int)l->extra[0], l->bottom[0]->data,
                                   l->bottom[1]->data, l->top[0]->data);
    return status == DM_OK && l->tops == 2 ? by_class(l) : status;
}
