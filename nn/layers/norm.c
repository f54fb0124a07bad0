/* Normalisation: BatchNorm, MVN. */
#include "layers/layers.h"

/* Scratch: the mean, the variance, and two sums of the backward pass. Of BatchNorm they are a number for each
 * channel; where the channels are not the last dim of the array there are views of them that broadcast to it
 * (WIDE), and sums over the places of each sample, with a view of these as a matrix. */
enum { WIDE = 4, PLACES = 8, MATRIX };

/* --- BatchNorm: parameters are the sums of means and of variances that it has seen, and by what to divide
 * them. */
dm_status nn_batch_norm_setup(nn_layer *l)
{
    static const char B[] = "BatchNormParameter";
    const nn_blob *x = l->bottom[0];
    nn_param *p = NULL;
    int64_t one = 1;
    if (x->ndim < 2) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which has no channels", x->name);
    }
    bool global = nn_has(l->own, "use_global_stats") ? nn_int(l->own, B, "use_global_stats") != 0
                                                     : l->net->phase == NN_TEST;
    l->extra[0] = global;
    l->extra[1] = nn_real(l->own, B, "moving_average_fraction");
    l->extra[2] = nn_real(l->own, B, "eps");
    dm_status status = nn_new_state(l, 1, &x->shape[1], &p);
    status = status == DM_OK ? nn_new_state(l, 1, &x->shape[1], &p) : status;
    status = status == DM_OK ? nn_new_state(l, 1, &one, &p) : status;
    return status == DM_OK ? nn_top_shape(l, 0, x->ndim, x->shape) : status;
}

dm_status nn_batch_norm_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    dm_session *s = l->net->session;
    const int64_t channels = x->shape[1], wide[DM_MAX_DIMS] = {1, channels, 1, 1, 1, 1, 1, 1},
                  places[DM_MAX_DIMS] = {x->shape[0], channels, 1, 1, 1, 1, 1, 1};
    const bool last = nn_array_dim(x, 1) == x->ndim - 1;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < (l->need_backward ? 4 : 2); i++) {
        status = nn_scratch_everywhere(l, i, channels);
        if (status == DM_OK && !last) {
            status = dm_array_reshape(s, l->scratch[i], x->ndim, wide, &l->scratch[WIDE + i]);
        }
    }
    if (status != DM_OK || last || l->extra[0] != 0) {
        return status;
    }
    status = nn_scratch(l, PLACES, false, x->ndim, places);
    return status == DM_OK ? dm_array_reshape(s, l->scratch[PLACES], 2, places, &l->scratch[MATRIX]) : status;
}

static dm_array broad(const nn_layer *l, int i)
{
    return l->scratch[WIDE + i].id ? l->scratch[WIDE + i] : l->scratch[i];
}

static dm_status map(nn_layer *l, const char *text, dm_array out)
{
    const dm_map_arg all[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("y", l->top[0]->data),
                              DM_ARG("d", l->top[0]->diff),    DM_ARG("m", broad(l, 0)),
                              DM_ARG("v", broad(l, 1)),         DM_ARG("g", broad(l, 2)),
                              DM_ARG("h", broad(l, 3)),         DM_NUMBER("e", l->extra[2])};
    return nn_map(l->net->session, text, NN_COUNT(all), all, out);
}

/* The mean of a, or of a * b, in each channel. */
static dm_status channel_means(nn_layer *l, dm_array a, dm_array b, int to)
{
    dm_session *s = l->net->session;
    const nn_blob *x = l->bottom[0];
    const double part = (double)x->shape[1] / (double)x->count;
    const dm_map_arg args[] = {DM_ARG("a", a), DM_ARG("b", b)};
    if (!l->scratch[PLACES].id) {
        return dm_channel_sums(s, l->net->slices, part, a, b, 0, l->scratch[to]);
    }
    dm_status status =
        nn_map_rows(l, "sum", b.id ? "a * b" : "a * 1", x, 2, NN_COUNT(args), args, l->scratch[PLACES]);
    return status == DM_OK
               ? dm_channel_sums(s, l->net->slices, part, l->scratch[MATRIX], DM_NO_ARRAY, 0, l->scratch[to])
               : status;
}

static dm_status remembered(nn_layer *l, int i)
{
    const dm_map_arg args[] = {DM_ARG("x", l->param[i]->data), DM_ARG("s", l->param[2]->data)};
    return dm_map(l->net->session, "where(s == 0, 0, x / s)", 2, args, l->scratch[i]);
}

/* What the layer has seen counts less with each pass. */
static dm_status remember(nn_layer *l, double n)
{
    dm_session *s = l->net->session;
    double part = l->extra[1];
    const dm_map_arg args[] = {DM_ARG("s", l->param[2]->data), DM_NUMBER("part", part)};
    dm_status status = dm_axpby(s, 1, l->scratch[0], part, l->param[0]->data);
    status =
        status == DM_OK ? dm_axpby(s, n > 1 ? n / (n - 1) : 1, l->scratch[1], part, l->param[1]->data) : status;
    return status == DM_OK ? dm_map(s, "part * s + 1", 2, args, l->param[2]->data) : status;
}

dm_status nn_batch_norm_forward(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    dm_array y = l->top[0]->data;
    if (l->extra[0] != 0) {
        dm_status status = remembered(l, 0);
        status = status == DM_OK ? remembered(l, 1) : status;
        return status == DM_OK ? map(l, "(x - m) / sqrt(v + e)", y) : status;
    }
    dm_status status = channel_means(l, x->data, DM_NO_ARRAY, 0);
    status = status == DM_OK ? map(l, "x - m", y) : status;
    status = status == DM_OK ? channel_means(l, y, y, 1) : status;
    status = status == DM_OK ? map(l, "y / sqrt(v + e)", y) : status;
    return status == DM_OK ? remember(l, (double)(x->count / x->shape[1])) : status;
}

dm_status nn_batch_norm_backward(nn_layer *l)
{
    dm_array d = l->top[0]->diff;
    dm_status status = DM_OK;
    if (!l->down[0]) {
        return DM_OK;
    }
    if (l->extra[0] == 0) {
        status = channel_means(l, d, DM_NO_ARRAY, 2);
        status = status == DM_OK ? channel_means(l, d, l->top[0]->data, 3) : status;
    }
    dm_array down = nn_down(l, 0);
    status = status == DM_OK
                 ? map(l, l->extra[0] != 0 ? "d / sqrt(v + e)" : "(d - g - y * h) / sqrt(v + e)", down)
                 : status;
    return nn_down_done(l, 0, status);
}

/* --- MVN: each sample, or each channel of it, gets mean 0 and deviation 1. */
dm_status nn_mvn_setup(nn_layer *l)
{
    static const char M[] = "MVNParameter";
    const nn_blob *x = l->bottom[0];
    l->u.dim = nn_int(l->own, M, "across_channels") ? 1 : 2;
    l->extra[1] = (double)nn_int(l->own, M, "normalize_variance");
    l->extra[2] = nn_real(l->own, M, "eps");
    if (x->ndim < 2) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which has no channels", x->name);
    }
    return nn_top_shape(l, 0, x->ndim, x->shape);
}

dm_status nn_mvn_prepare(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = d < l->u.dim ? x->shape[d] : 1;
    }
    for (int i = 0; status == DM_OK && i < 4; i++) {
        status = nn_scratch(l, i, x->image, x->ndim, shape);
    }
    return status;
}

static dm_status mean(nn_layer *l, const char *text, int to)
{
    const dm_map_arg all[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("y", l->top[0]->data),
                              DM_ARG("d", l->top[0]->diff), DM_ARG("m", l->scratch[0])};
    return nn_map_rows(l, "mean", text, l->bottom[0], l->u.dim, NN_COUNT(all), all, l->scratch[to]);
}

dm_status nn_mvn_forward(nn_layer *l)
{
    dm_status status = mean(l, "x * 1", 0);
    if (l->extra[1] == 0) {
        return status == DM_OK ? map(l, "x - m", l->top[0]->data) : status;
    }
    status = status == DM_OK ? mean(l, "(x - m) * (x - m)", 1) : status;
    return status == DM_OK ? map(l, "(x - m) / (sqrt(v) + e)", l->top[0]->data) : status;
}

dm_status nn_mvn_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    dm_status status = mean(l, "d * 1", 2);
    if (l->extra[1] == 0) {
        return nn_down_done(l, 0, status == DM_OK ? map(l, "d - g", down) : status);
    }
    status = status == DM_OK ? mean(l, "d * y", 3) : status;
    return nn_down_done(l, 0, status == DM_OK ? map(l, "(d - g - y * h) / (sqrt(v) + e)", down) : status);
}
