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
    if (!(ratio >= 0 && ratio < 1)) {
        return nn_layer_fail(l, "dropout_ratio", DM_ERR_FORMAT,
                             "has dropout_ratio %g; it must be at least 0 and below 1", ratio);
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
enum { PRODUCT, SUM, MAX, MOST = 8 }; /* MOST: bottoms that one expression takes */

static const char *const names[MOST] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
static const char *const factors[MOST] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};

dm_status nn_eltwise_setup(nn_layer *l)
{
    const char E[] = "EltwiseParameter";
    int64_t coeffs = nn_count(l->own, "coeff");
    l->u.dim = (int)nn_int(l->own, E, "operation");
    if (!nn_int(l->own, E, "stable_prod_grad")) {
        nn_say_unused(l, l->own, "stable_prod_grad", "the stable form is always taken");
    }
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

/* The bottoms from `first` on, as many as an expression takes, after the result of those before them. */
static dm_status join(nn_layer *l, int first, int n)
{
    dm_map_arg args[2 * MOST];
    char text[256];
    dm_array y = l->top[0]->data;
    int count = 0;
    for (int k = 0; k < n; k++) {
        bool before = k == 0 && first > 0;
        int i = first + k - (first > 0);
        args[count++] = (dm_map_arg)DM_ARG(names[k], before ? y : l->bottom[i]->data);
    }
    size_t end = (size_t)snprintf(text, sizeof text, l->u.dim == SUM ? "" : "%s", names[0]);
    for (int k = 0; k < n; k++) {
        int i = first + k - (first > 0);
        if (l->u.dim == SUM) {
            end += (size_t)snprintf(text + end, sizeof text - end, "%s%s * %s", k ? " + " : "", factors[k],
                                    names[k]);
            args[count++] = (dm_map_arg)DM_NUMBER(factors[k], k == 0 && first > 0 ? 1 : coeff(l, i));
        } else if (k > 0) {
            char so_far[256];
            snprintf(so_far, sizeof so_far, "%s", text);
            snprintf(text, sizeof text, l->u.dim == MAX ? "maximum(%.150s, %s)" : "%.150s * %s", so_far,
                     names[k]);
        }
    }
    return dm_map(l->net->session, text, count, args, y);
}

dm_status nn_eltwise_forward(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int first = 0; status == DM_OK && first < l->bottoms;) {
        int room = MOST - (first > 0), left = l->bottoms - first, taken = left < room ? left : room;
        status = join(l, first, taken + (first > 0));
        first += taken;
    }
    return status;
}

/* Part of an expression for the gradient by bottom i: what bottom k does to it, x being the one and x0 ... the
 * other. The gradient of a MAX goes to the largest. Of the first two equal ones the second is taken, behind
 * them the first, as Caffe does. */
static size_t term(const nn_layer *l, int i, int k, const char *name, char *text, size_t room)
{
    bool strict = i < 2 ? k == 1 && i == 0 : k < i;
    int n = l->u.dim == MAX ? snprintf(text, room, "(x %s %s) & ", strict ? ">" : ">=", name)
                            : snprintf(text, room, " * %s", name);
    return (size_t)n;
}

static dm_status eltwise_down(nn_layer *l, int i, dm_array out)
{
    dm_array d = l->top[0]->diff;
    dm_status status = DM_OK;
    if (l->u.dim == SUM) {
        return dm_scale(l->net->session, coeff(l, i), d, out);
    }
    for (int k = 0; status == DM_OK && k < l->bottoms;) {
        dm_map_arg args[MOST + 2] = {DM_ARG("d", d), DM_ARG("x", l->bottom[i]->data)};
        char text[400];
        int count = l->u.dim == MAX ? 2 : 1, others = 0;
        size_t n = (size_t)snprintf(text, sizeof text, l->u.dim == MAX ? "where(" : "d");
        for (; k < l->bottoms && others < MOST; k++) {
            if (k != i) {
                args[count++] = (dm_map_arg)DM_ARG(names[others], l->bottom[k]->data);
                n += term(l, i, k, names[others++], text + n, sizeof text - n);
            }
        }
        if (l->u.dim == MAX) {
            snprintf(text + n - 3, sizeof text - n + 3, ", d, 0)");
        }
        status = others ? dm_map(l->net->session, text, count, args, out) : DM_OK;
        d = out; /* what the bottoms up to here leave of the gradient */
    }
    return status;
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
