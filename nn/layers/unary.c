/* Functions of one element: an expression for the value and one for the gradient, of x, y (the value), d (the
 * gradient from above) and the numbers a, b, c that setup finds. Split and Silence. */
#include "layers/layers.h"

#include <math.h>

static dm_status setup(nn_layer *l, double a, double b, double c)
{
    l->u.number[0] = a;
    l->u.number[1] = b;
    l->u.number[2] = c;
    return nn_top_shape(l, 0, l->bottom[0]->ndim, l->bottom[0]->shape);
}

static dm_status map(nn_layer *l, const char *text, dm_array out)
{
    const dm_map_arg all[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("y", l->top[0]->data),
                              DM_ARG("d", l->top[0]->diff),    DM_NUMBER("a", l->u.number[0]),
                              DM_NUMBER("b", l->u.number[1]),  DM_NUMBER("c", l->u.number[2])};
    return nn_map(l->net->session, text, NN_COUNT(all), all, out);
}

static dm_status down(nn_layer *l, const char *text)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array to = nn_down(l, 0);
    return nn_down_done(l, 0, map(l, text, to));
}

#define NN_UNARY(name, value, gradient)                                                                        \
    dm_status nn_##name##_forward(nn_layer *l)                                                                 \
    {                                                                                                          \
        return map(l, value, l->top[0]->data);                                                                 \
    }                                                                                                          \
    dm_status nn_##name##_backward(nn_layer *l)                                                                \
    {                                                                                                          \
        return down(l, gradient);                                                                              \
    }

NN_UNARY(absval, "abs(x)", "d * sign(x)")
NN_UNARY(bnll, "softplus(x)", "d * sigmoid(x)")
NN_UNARY(clip, "minimum(maximum(x, a), b)", "where((x >= a) & (x <= b), d, 0)")
NN_UNARY(elu, "where(x > 0, x, a * expm1(x))", "where(x > 0, d, d * (y + a))")
NN_UNARY(exp, "exp(a * x + b)", "d * y * a")                   /* a = scale ln(base), b = shift ln(base) */
NN_UNARY(log, "log(a * x + b) * c", "d * c * a / (a * x + b)") /* c = 1 / ln(base) */
NN_UNARY(swish, "x * sigmoid(a * x)", "d * (a * y + sigmoid(a * x) * (1 - a * y))")

dm_status nn_absval_setup(nn_layer *l)
{
    return setup(l, 0, 0, 0);
}

dm_status nn_bnll_setup(nn_layer *l)
{
    return setup(l, 0, 0, 0);
}

dm_status nn_clip_setup(nn_layer *l)
{
    const char C[] = "ClipParameter";
    return l->own ? setup(l, nn_real(l->own, C, "min"), nn_real(l->own, C, "max"), 0)
                  : nn_layer_fail(l, "clip_param", DM_ERR_FORMAT, "needs clip_param with min and max");
}

dm_status nn_elu_setup(nn_layer *l)
{
    return setup(l, nn_real(l->own, "ELUParameter", "alpha"), 0, 0);
}

/* ln(base); base -1 stands for e. */
static dm_status log_of_base(const nn_layer *l, const char *message, double *out)
{
    double base = nn_real(l->own, message, "base");
    if (base != -1 && !(base > 0)) {
        return nn_layer_fail(l, "base", DM_ERR_FORMAT, "has base %g; it must be positive, or -1 for e", base);
    }
    *out = base == -1 ? 1 : log(base);
    return DM_OK;
}

dm_status nn_exp_setup(nn_layer *l)
{
    const char E[] = "ExpParameter";
    double ln = 1;
    dm_status status = log_of_base(l, E, &ln);
    return status == DM_OK ? setup(l, nn_real(l->own, E, "scale") * ln, nn_real(l->own, E, "shift") * ln, 0)
                           : status;
}

dm_status nn_log_setup(nn_layer *l)
{
    const char L[] = "LogParameter";
    double ln = 1;
    dm_status status = log_of_base(l, L, &ln);
    if (status == DM_OK && ln == 0) {
        status = nn_layer_fail(l, "base", DM_ERR_FORMAT, "has base 1, to which there are no logarithms");
    }
    return status == DM_OK ? setup(l, nn_real(l->own, L, "scale"), nn_real(l->own, L, "shift"), 1 / ln)
                           : status;
}

dm_status nn_swish_setup(nn_layer *l)
{
    return setup(l, nn_real(l->own, "SwishParameter", "beta"), 0, 0);
}

/* --- Power: whole powers 1 and 2 without the function, which knows no negative base. */
dm_status nn_power_setup(nn_layer *l)
{
    const char P[] = "PowerParameter";
    return setup(l, nn_real(l->own, P, "scale"), nn_real(l->own, P, "shift"), nn_real(l->own, P, "power"));
}

dm_status nn_power_forward(nn_layer *l)
{
    double c = l->u.number[2];
    return map(l, c == 1 ? "a * x + b" : c == 2 ? "(a * x + b) ** 2" : "(a * x + b) ** c", l->top[0]->data);
}

dm_status nn_power_backward(nn_layer *l)
{
    double c = l->u.number[2];
    return down(l, c == 1   ? "d * a"
                   : c == 2 ? "d * 2 * a * (a * x + b)"
                            : "d * a * c * (a * x + b) ** (c - 1)");
}

/* --- Threshold: no gradient */
dm_status nn_threshold_setup(nn_layer *l)
{
    return setup(l, nn_real(l->own, "ThresholdParameter", "threshold"), 0, 0);
}

dm_status nn_threshold_forward(nn_layer *l)
{
    return map(l, "x > a", l->top[0]->data);
}

/* --- Split: copies, whose gradients add up. */
dm_status nn_split_setup(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = nn_top_shape(l, i, l->bottom[0]->ndim, l->bottom[0]->shape);
    }
    return status;
}

dm_status nn_split_forward(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = dm_copy(l->net->session, l->bottom[0]->data, l->top[i]->data);
    }
    return status;
}

dm_status nn_split_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array to = nn_down(l, 0);
    dm_status status = dm_copy(s, l->top[0]->diff, to);
    for (int i = 1; status == DM_OK && i < l->tops; i++) {
        status = dm_axpby(s, 1, l->top[i]->diff, 1, to);
    }
    return nn_down_done(l, 0, status);
}

/* --- Silence: what it reads is no output of the net. */
dm_status nn_silence_setup(nn_layer *l)
{
    (void)l;
    return DM_OK;
}

dm_status nn_silence_forward(nn_layer *l)
{
    (void)l;
    return DM_OK;
}
