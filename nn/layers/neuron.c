/* Layers that work element by element. */
#include "layers/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static dm_status like_bottom(nn_layer *l)
{
    return nn_top_shape(l, 0, l->bottom[0]->ndim, l->bottom[0]->shape);
}

/* The gradient of the only bottom as an expression of x, y (its top) and d (the gradient from above). */
static dm_status down_by(nn_layer *l, const char *expression, int count, const dm_map_arg *args)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0, dm_map(l->net->session, expression, count, args, down));
}

/* --- ReLU */
dm_status nn_relu_setup(nn_layer *l)
{
    l->u.number[0] = nn_real(l->own, "ReLUParameter", "negative_slope");
    nn_use(l->own, "engine");
    return like_bottom(l);
}

dm_status nn_relu_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_NUMBER("a", l->u.number[0])};
    bool leaky = l->u.number[0] != 0;
    if (l->merged) {
        return DM_OK;
    }
    return dm_map(l->net->session, leaky ? "where(x > 0, x, a * x)" : "where(x > 0, x, 0)", leaky ? 2 : 1, args,
                  l->top[0]->data);
}

dm_status nn_relu_backward(nn_layer *l)
{
    if (l->merged_back) {
        return nn_down_done(l, 0, DM_OK);
    }
    nn_layer *before = l->bottom[0]->producer;
    if (before->bias_behind) {
        double beta = nn_param_beta(before, 1);
        return nn_down_done(l, 0,
                            dm_relu_backward_sums(l->net->session, before->u.conv.slices, l->top[0]->data,
                                                  l->top[0]->diff, nn_down(l, 0), beta, nn_bias_diff(before)));
    }
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("d", l->top[0]->diff),
                         DM_NUMBER("a", l->u.number[0])};
    bool leaky = l->u.number[0] != 0;
    return down_by(l, leaky ? "where(x > 0, d, a * d)" : "where(x > 0, d, 0)", leaky ? 3 : 2, args);
}

/* --- Sigmoid, TanH */
dm_status nn_sigmoid_setup(nn_layer *l)
{
    nn_use(l->own, "engine");
    return like_bottom(l);
}

dm_status nn_sigmoid_forward(nn_layer *l)
{
    return dm_sigmoid(l->net->session, l->bottom[0]->data, l->top[0]->data);
}

dm_status nn_sigmoid_backward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("y", l->top[0]->data), DM_ARG("d", l->top[0]->diff)};
    return down_by(l, "d * y * (1 - y)", 2, args);
}

dm_status nn_tanh_setup(nn_layer *l)
{
    nn_use(l->own, "engine");
    return like_bottom(l);
}

dm_status nn_tanh_forward(nn_layer *l)
{
    return dm_tanh(l->net->session, l->bottom[0]->data, l->top[0]->data);
}

dm_status nn_tanh_backward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("y", l->top[0]->data), DM_ARG("d", l->top[0]->diff)};
    return down_by(l, "d * (1 - y * y)", 2, args);
}

/* --- Dropout: what stays is scaled in training. The numbers are made again for the gradient. */
dm_status nn_dropout_setup(nn_layer *l)
{
    double ratio = nn_real(l->own, "DropoutParameter", "dropout_ratio");
    if (!(ratio > 0 && ratio < 1)) {
        return nn_layer_fail(l, "dropout_ratio", DM_ERR_FORMAT,
                             "has dropout_ratio %g; it must lie between 0 and 1", ratio);
    }
    l->u.number[0] = 1 - ratio;
    return like_bottom(l);
}

static dm_status dropout(const nn_layer *l, dm_array x, int64_t pass, dm_array out)
{
    char text[128];
    const dm_map_arg args[] = {DM_ARG("x", x), DM_NUMBER("keep", l->u.number[0]),
                               DM_NUMBER("scale", 1 / l->u.number[0])};
    snprintf(text, sizeof text, "where(uniform(%" PRIu64 ") < keep, x * scale, 0)", nn_layer_seed(l, pass));
    return dm_map(l->net->session, text, 3, args, out);
}

dm_status nn_dropout_forward(nn_layer *l)
{
    return l->net->phase == NN_TRAIN ? dropout(l, l->bottom[0]->data, l->net->pass, l->top[0]->data)
                                     : dm_copy(l->net->session, l->bottom[0]->data, l->top[0]->data);
}

dm_status nn_dropout_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(
        l, 0, dropout(l, l->top[0]->diff, l->net->pass - 1, down)); /* the pass of the last nn_forward */
}

/* --- Eltwise */
enum { PRODUCT, SUM, MAX, MOST = 8 };

static const char *const names[MOST] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
static const char *const factors[MOST] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};

dm_status nn_eltwise_setup(nn_layer *l)
{
    const char E[] = "EltwiseParameter";
    int64_t coeffs = nn_count(l->own, "coeff");
    l->u.dim = (int)nn_int(l->own, E, "operation");
    nn_use(l->own, "stable_prod_grad"); /* the stable form is always taken */
    if (coeffs && (coeffs != l->bottoms || l->u.dim != SUM)) {
        return nn_layer_fail(l, "coeff", DM_ERR_FORMAT,
                             "has %lld coeff; a SUM may have one for each of its %d bottoms", (long long)coeffs,
                             l->bottoms);
    }
    for (int i = 1; i < l->bottoms; i++) {
        const nn_blob *a = l->bottom[0], *b = l->bottom[i];
        if (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof a->shape) != 0) {
            return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s' and '%s', whose shapes differ", a->name,
                                 b->name);
        }
    }
    return like_bottom(l);
}

static double coeff(const nn_layer *l, int i)
{
    return nn_count(l->own, "coeff") ? nn_real_at(l->own, "coeff", i) : 1;
}

static int bottoms_of(const nn_layer *l, dm_map_arg *args)
{
    for (int i = 0; i < l->bottoms; i++) {
        args[i] = (dm_map_arg)DM_ARG(names[i], l->bottom[i]->data);
    }
    return l->bottoms;
}

dm_status nn_eltwise_forward(nn_layer *l)
{
    dm_map_arg args[2 * MOST];
    char text[256];
    int count = bottoms_of(l, args), end = 0;
    if (l->u.dim == SUM) {
        for (int i = 0; i < l->bottoms; i++) {
            end += snprintf(text + end, sizeof text - (size_t)end, "%s%s * %s", i ? " + " : "", factors[i],
                            names[i]);
            args[count++] = (dm_map_arg)DM_NUMBER(factors[i], coeff(l, i));
        }
        return dm_map(l->net->session, text, count, args, l->top[0]->data);
    }
    snprintf(text, sizeof text, "%s", names[0]);
    for (int i = 1; i < l->bottoms; i++) {
        char before[256];
        snprintf(before, sizeof before, "%s", text);
        snprintf(text, sizeof text, l->u.dim == MAX ? "maximum(%.150s, %s)" : "%.150s * %s", before, names[i]);
    }
    return dm_map(l->net->session, text, count, args, l->top[0]->data);
}

/* The gradient goes to the largest. Of the first two equal ones the second is taken, behind them the first, as
 * Caffe does. */
static void max_text(const nn_layer *l, int i, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "where(");
    for (int k = 0; k < l->bottoms; k++) {
        bool strict = i < 2 ? k == 1 && i == 0 : k < i;
        if (k != i) {
            n += (size_t)snprintf(text + n, room - n, "(x%d %s x%d) & ", i, strict ? ">" : ">=", k);
        }
    }
    snprintf(text + n - 3, room - n + 3, ", d, 0)");
}

static dm_status eltwise_down(nn_layer *l, int i, dm_array out)
{
    dm_map_arg args[MOST + 1];
    dm_array d = l->top[0]->diff;
    char text[400] = "d";
    int count = 0, used = 0;
    if (l->u.dim == SUM) {
        return dm_scale(l->net->session, coeff(l, i), d, out);
    }
    args[count++] = (dm_map_arg)DM_ARG("d", d);
    if (l->u.dim == MAX) {
        count += bottoms_of(l, args + 1);
        max_text(l, i, text, sizeof text);
        return dm_map(l->net->session, text, count, args, out);
    }
    for (int k = 0; k < l->bottoms; k++) {
        if (k != i) {
            args[count++] = (dm_map_arg)DM_ARG(names[k], l->bottom[k]->data);
            used += snprintf(text + 1 + used, sizeof text - 1 - (size_t)used, " * %s", names[k]);
        }
    }
    return dm_map(l->net->session, text, count, args, out);
}

dm_status nn_eltwise_backward(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        if (l->down[i]) {
            dm_array down = nn_down(l, i);
            status = nn_down_done(l, i, eltwise_down(l, i, down));
        }
    }
    return status;
}
