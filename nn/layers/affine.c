/* Products and sums with what broadcasts: Scale, Bias, PReLU. */
#include "layers/layers.h"

#include <stdio.h>
#include <string.h>

/* The operand is a bottom, or a parameter, with dims l->u.dim to l->extra[0] - 1 of the first bottom. */
static int64_t wide_shape(const nn_layer *l, int64_t *shape)
{
    const nn_blob *x = l->bottom[0];
    int64_t count = 1;
    for (int d = 0; d < x->ndim; d++) {
        bool has = d >= l->u.dim && d < (int)l->extra[0];
        shape[nn_array_dim(x, d)] = has ? x->shape[d] : 1;
        count *= has ? x->shape[d] : 1;
    }
    return count;
}

/* A view of an operand, or of its gradient, that broadcasts to the bottom. */
static dm_status widen(nn_layer *l, dm_array a, dm_array *out)
{
    int64_t shape[DM_MAX_DIMS];
    wide_shape(l, shape);
    return dm_array_reshape(l->net->session, a, l->bottom[0]->ndim, shape, out);
}

static dm_status find_dims(nn_layer *l, const char *message)
{
    const nn_blob *x = l->bottom[0], *other = l->bottoms > 1 ? l->bottom[1] : NULL;
    int axis = 0;
    dm_status status = nn_axis(l, "axis", x->ndim, &axis);
    int64_t given = nn_int(l->own, message, "num_axes"), n = given < 0 ? x->ndim - axis : given;
    if (status != DM_OK) {
        return status;
    }
    if (other) {
        nn_use(l->own, "num_axes");
        n = other->whole ? 0 : other->ndim;
    }
    if (given < -1 || axis + n > x->ndim ||
        (other && n && memcmp(other->shape, x->shape + axis, (size_t)n * sizeof *x->shape) != 0)) {
        return nn_layer_fail(l, "num_axes", DM_ERR_SHAPE,
                             "takes %lld dims from %d on, which '%s' does not have so", (long long)n, axis,
                             x->name);
    }
    bool in_order = !x->image || n < 2 || (axis == 0 && (n == 2 || (other && n == 4)));
    if (!in_order || (other && (axis != 0 || n == 0 || other->image != (x->image && n == 4)))) {
        return nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                             "takes %lld dims from %d on; of images one dim is supported, or the samples, or "
                             "samples and channels",
                             (long long)n, axis);
    }
    if (!other && axis == 0 && n > 0) {
        return nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                             "has a parameter for each sample, which is not supported");
    }
    l->u.dim = axis;
    l->extra[0] = (double)(axis + n);
    return nn_top_shape(l, 0, x->ndim, x->shape);
}

static dm_status new_operand(nn_layer *l, const nn_message *filler)
{
    nn_param *p = NULL;
    return nn_new_param(l, (int)l->extra[0] - l->u.dim, l->bottom[0]->shape + l->u.dim, filler, &p);
}

/* diff = beta diff + the sum of d (times x, if there is one) over all dims that a parameter lacks. */
static dm_status sum_to_param(nn_layer *l, dm_array x, double beta, dm_array diff)
{
    const nn_blob *b = l->bottom[0];
    dm_session *s = l->net->session;
    int64_t shape[DM_MAX_DIMS], count = wide_shape(l, shape);
    dm_array d = l->top[0]->diff, flat = DM_NO_ARRAY, rows = DM_NO_ARRAY;
    int end = (int)l->extra[0];
    if (end == l->u.dim + 1 && nn_array_dim(b, l->u.dim) == b->ndim - 1) {
        return dm_channel_sums(s, l->net->slices, 1, d, x, beta, diff);
    }
    char text[96];
    size_t n = (size_t)snprintf(text, sizeof text, "sum(%s", x.id ? "d * x" : "d * 1");
    bool any = false;
    for (int k = 1; k < b->ndim; k++) {
        if (k < l->u.dim || k >= end) {
            n += (size_t)snprintf(text + n, sizeof text - n, ", %d", nn_array_dim(b, k));
            any = true;
        }
    }
    snprintf(text + n, sizeof text - n, ")");
    dm_map_arg args[] = {DM_ARG("d", d), DM_ARG("x", x)};
    dm_status status = nn_map(s, any ? text : x.id ? "d * x" : "d * 1", 2, args, l->scratch[2]);
    status = status == DM_OK ? dm_array_reshape(s, l->scratch[2], 2, (int64_t[]){b->shape[0], count}, &rows)
                             : status;
    status = status == DM_OK ? dm_array_reshape(s, diff, 1, &count, &flat) : status;
    status = status == DM_OK ? dm_channel_sums(s, l->net->slices, 1, rows, DM_NO_ARRAY, beta, flat) : status;
    dm_status end1 = dm_array_destroy(s, rows), end2 = dm_array_destroy(s, flat);
    return status != DM_OK ? status : end1 != DM_OK ? end1 : end2;
}

/* The gradient of the second bottom, which has the samples. */
static dm_status sum_to_bottom(nn_layer *l, dm_array x)
{
    dm_array down = nn_down(l, 1), wide = DM_NO_ARRAY;
    dm_map_arg args[] = {DM_ARG("d", l->top[0]->diff), DM_ARG("x", x)};
    dm_status status = widen(l, down, &wide);
    if (status == DM_OK) {
        status =
            (int)l->extra[0] == l->bottom[0]->ndim
                ? nn_map(l->net->session, x.id ? "d * x" : "d * 1", 2, args, wide)
                : nn_map_rows(l, "sum", x.id ? "d * x" : "d", l->bottom[0], (int)l->extra[0], 2, args, wide);
    }
    dm_status end = dm_array_destroy(l->net->session, wide);
    return nn_down_done(l, 1, status == DM_OK ? end : status);
}

/* Views of the operand and of the bias, and what sums to parameters needs. */
static dm_status prepare(nn_layer *l)
{
    int64_t shape[DM_MAX_DIMS];
    dm_status status = widen(l, l->bottoms > 1 ? l->bottom[1]->data : l->param[0]->data, &l->scratch[0]);
    const int biases = l->bottoms > 1 ? 0 : 1;
    if (status == DM_OK && l->params > biases) {
        status = widen(l, l->param[biases]->data, &l->scratch[1]);
    }
    for (int d = 0; d < l->bottom[0]->ndim; d++) {
        bool has = d == 0 || (d >= l->u.dim && d < (int)l->extra[0]);
        shape[d] = has ? l->bottom[0]->shape[d] : 1;
    }
    return status == DM_OK && l->params ? nn_scratch(l, 2, l->bottom[0]->image, l->bottom[0]->ndim, shape)
                                        : status;
}

/* --- Scale: times a parameter or a second bottom, and perhaps plus a bias. */
dm_status nn_scale_setup(nn_layer *l)
{
    static const char S[] = "ScaleParameter";
    bool biased = nn_int(l->own, S, "bias_term") != 0;
    dm_status status = find_dims(l, S);
    if (status == DM_OK && biased && l->bottoms > 1) {
        status = nn_layer_fail(l, "bias_term", DM_ERR_UNSUPPORTED,
                               "has a bias beside a scale that is a bottom: use a Bias layer");
    }
    if (status == DM_OK && l->bottoms == 1) {
        status = new_operand(l, nn_sub(l->own, "filler"));
        if (status == DM_OK && !nn_sub(l->own, "filler")) {
            l->param[0]->first = 1; /* Caffe's own default */
        }
    }
    return status == DM_OK && biased ? new_operand(l, nn_sub(l->own, "bias_filler")) : status;
}

dm_status nn_scale_prepare(nn_layer *l)
{
    return prepare(l);
}

dm_status nn_scale_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[0]),
                         DM_ARG("b", l->scratch[1])};
    return nn_map(l->net->session, l->scratch[1].id ? "x * a + b" : "x * a", 3, args, l->top[0]->data);
}

dm_status nn_scale_backward(nn_layer *l)
{
    dm_status status = DM_OK;
    if (l->bottoms == 1) {
        status = sum_to_param(l, l->bottom[0]->data, nn_param_beta(l, 0), l->param[0]->diff);
    } else if (l->down[1]) {
        status = sum_to_bottom(l, l->bottom[0]->data);
    }
    if (status == DM_OK && l->params > 1) {
        status = sum_to_param(l, DM_NO_ARRAY, nn_param_beta(l, 1), l->param[1]->diff);
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, dm_multiply(l->net->session, 1, l->top[0]->diff, l->scratch[0], down));
    }
    return status;
}

/* --- Bias */
dm_status nn_bias_setup(nn_layer *l)
{
    dm_status status = find_dims(l, "BiasParameter");
    return status == DM_OK && l->bottoms == 1 ? new_operand(l, nn_sub(l->own, "filler")) : status;
}

dm_status nn_bias_prepare(nn_layer *l)
{
    return prepare(l);
}

dm_status nn_bias_forward(nn_layer *l)
{
    return dm_add(l->net->session, 1, l->bottom[0]->data, 1, l->scratch[0], l->top[0]->data);
}

dm_status nn_bias_backward(nn_layer *l)
{
    dm_status status = DM_OK;
    if (l->bottoms == 1) {
        status = sum_to_param(l, DM_NO_ARRAY, nn_param_beta(l, 0), l->param[0]->diff);
    } else if (l->down[1]) {
        status = sum_to_bottom(l, DM_NO_ARRAY);
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, dm_copy(l->net->session, l->top[0]->diff, down));
    }
    return status;
}

/* --- PReLU: a slope for each channel, or one for all; 0.25 where the file says nothing. */
dm_status nn_prelu_setup(nn_layer *l)
{
    const nn_blob *x = l->bottom[0];
    bool shared = nn_int(l->own, "PReLUParameter", "channel_shared") != 0;
    const nn_message *filler = nn_sub(l->own, "filler");
    if (x->ndim < 2) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which has no channels", x->name);
    }
    l->u.dim = 1;
    l->extra[0] = shared ? 1 : 2;
    dm_status status = nn_top_shape(l, 0, x->ndim, x->shape);
    status = status == DM_OK ? new_operand(l, filler) : status;
    if (status == DM_OK && !filler) {
        l->param[0]->first = 0.25;
    }
    return status;
}

dm_status nn_prelu_prepare(nn_layer *l)
{
    dm_status status = prepare(l);
    return status == DM_OK && l->need_backward
               ? nn_scratch(l, 3, l->bottom[0]->image, l->bottom[0]->ndim, l->bottom[0]->shape)
               : status;
}

dm_status nn_prelu_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[0])};
    return dm_map(l->net->session, "where(x > 0, x, a * x)", 2, args, l->top[0]->data);
}

dm_status nn_prelu_backward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[0]),
                         DM_ARG("d", l->top[0]->diff)};
    dm_status status = dm_map(l->net->session, "minimum(x, 0)", 1, args, l->scratch[3]);
    status = status == DM_OK ? sum_to_param(l, l->scratch[3], nn_param_beta(l, 0), l->param[0]->diff) : status;
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, dm_map(l->net->session, "where(x > 0, d, a * d)", 3, args, down));
    }
    return status;
}
