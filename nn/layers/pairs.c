/* Losses that are expressions: ContrastiveLoss, MultinomialLogisticLoss. */
#include "layers/layers.h"

#include <string.h>

/* --- ContrastiveLoss: pairs of samples, and whether they are alike. Scratch: the squares of distances, the
 * terms, and labels as a column. */
dm_status nn_contrastive_loss_setup(nn_layer *l)
{
    static const char C[] = "ContrastiveLossParameter";
    const nn_blob *a = l->bottom[0], *b = l->bottom[1];
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0 ||
        a->ndim < 2 || a->count != a->shape[0] * a->shape[1] || l->bottom[2]->count != a->shape[0]) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                             "needs two blobs of one shape, N x C, and a label for each of N samples");
    }
    l->extra[0] = nn_real(l->own, C, "margin");
    l->extra[1] = nn_int(l->own, C, "legacy_version") != 0;
    return nn_top_number(l, 0);
}

dm_status nn_contrastive_loss_prepare(nn_layer *l)
{
    const nn_blob *a = l->bottom[0];
    int64_t shape[DM_MAX_DIMS] = {a->shape[0], 1, 1, 1, 1, 1, 1, 1};
    dm_status status = nn_scratch(l, 0, a->image, a->ndim, shape);
    status = status == DM_OK ? nn_scratch(l, 1, a->image, a->ndim, shape) : status;
    return status == DM_OK
               ? dm_array_reshape(l->net->session, l->bottom[2]->data, a->ndim, shape, &l->scratch[2])
               : status;
}

dm_status nn_contrastive_loss_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("y", l->bottom[1]->data),
                         DM_ARG("q", l->scratch[0]), DM_ARG("t", l->scratch[2]), DM_NUMBER("m", l->extra[0])};
    dm_session *s = l->net->session;
    dm_status status =
        nn_map_rows(l, "sum", "(x - y) * (x - y)", l->bottom[0], 1, NN_COUNT(args), args, l->scratch[0]);
    status = status == DM_OK
                 ? nn_map(s,
                          l->extra[1] != 0 ? "where(trunc(t) != 0, q, maximum(m - q, 0))"
                                           : "where(trunc(t) != 0, q, maximum(m - sqrt(q), 0) ** 2)",
                          NN_COUNT(args), args, l->scratch[1])
                 : status;
    double n = (double)l->bottom[0]->shape[0];
    return status == DM_OK ? nn_sum_samples(l, 0.5 / n, l->scratch[1], l->bottom[0]->shape[0], l->top[0]->data)
                           : status;
}

dm_status nn_contrastive_loss_backward(nn_layer *l)
{
    static const char *const texts[] = {
        "where(trunc(t) != 0, a, where(m - sqrt(q) > 0, -a * (m - sqrt(q)) / (sqrt(q) + 1e-4), 0)) * (x - y)",
        "where(trunc(t) != 0, a, where(m - q > 0, -a, 0)) * (x - y)"};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        if (l->down[i]) {
            double factor = l->top[0]->loss_weight / (double)l->bottom[0]->shape[0];
            dm_array down = nn_down(l, i);
            dm_map_arg args[] = {DM_ARG("x", l->bottom[i]->data), DM_ARG("y", l->bottom[1 - i]->data),
                                 DM_ARG("q", l->scratch[0]),      DM_ARG("t", l->scratch[2]),
                                 DM_NUMBER("m", l->extra[0]),     DM_NUMBER("a", factor)};
            status = nn_down_done(l, i,
                                  nn_map(l->net->session, texts[l->extra[1] != 0], NN_COUNT(args), args, down));
        }
    }
    return status;
}

/* --- MultinomialLogisticLoss: of probabilities. Scratch: terms, labels as a column, the numbers of the
 * classes. */
static const double least = 1e-20; /* Caffe's kLOG_THRESHOLD */

dm_status nn_multinomial_loss_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    if (x->ndim < 2 || x->count != x->shape[0] * x->shape[1] || l->bottom[1]->count != x->shape[0]) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                             "needs probabilities, N x C, and a label for each of N samples");
    }
    return nn_top_number(l, 0);
}

dm_status nn_multinomial_loss_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t shape[DM_MAX_DIMS] = {x->shape[0], 1, 1, 1, 1, 1, 1, 1};
    dm_status status = nn_scratch(l, 0, x->image, x->ndim, shape);
    status = status == DM_OK
                 ? dm_array_reshape(l->net->session, l->bottom[1]->data, x->ndim, shape, &l->scratch[1])
                 : status;
    if (status == DM_OK) {
        nn_blob classes = {.ndim = x->ndim, .image = x->image, .shape = {1, x->shape[1], 1, 1, 1, 1, 1, 1}};
        status = nn_blob_array(l->net, &classes, DM_F32, &l->scratch[2]);
    }
    return status == DM_OK ? dm_fill_arange(l->net->session, l->scratch[2], 0, 1) : status;
}

dm_status nn_multinomial_loss_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("t", l->scratch[1]),
                         DM_ARG("c", l->scratch[2]), DM_NUMBER("m", least)};
    dm_status status = nn_map_rows(l, "sum", "where(trunc(t) == c, log(maximum(x, m)), 0)", l->bottom[0], 1,
                                   NN_COUNT(args), args, l->scratch[0]);
    double n = (double)l->bottom[0]->shape[0];
    return status == DM_OK ? nn_sum_samples(l, -1 / n, l->scratch[0], l->bottom[0]->shape[0], l->top[0]->data)
                           : status;
}

dm_status nn_multinomial_loss_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("t", l->scratch[1]),
                         DM_ARG("c", l->scratch[2]), DM_NUMBER("m", least),
                         DM_NUMBER("a", -l->top[0]->loss_weight / (double)l->bottom[0]->shape[0])};
    return nn_down_done(
        l, 0,
        nn_map(l->net->session, "where(trunc(t) == c, a / maximum(x, m), 0)", NN_COUNT(args), args, down));
}
