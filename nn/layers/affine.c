/* Products and sums with what broadcasts: Scale, Bias, PReLU. */
#include "layers/layers.h"

#include <stdio.h>
#include <string.h>

/* The operand is a bottom, or a parameter, with dims l->u.dim to l->extra[0] - 1 of the first bottom. A
 * parameter lies in the order of the first bottom's array. A second bottom is copied to that order, where its
 * own is another, and to all workers, where it lacks the samples. */
enum { OPERAND, BIAS, SUMS, BELOW, COPY, COPY_DIFF }; /* scratch; BELOW is PReLU's */

/* Does the operand have a part of its own for each sample? */
static bool by_samples(const nn_layer *l)
{
    return l->u.dim == 0 && l->extra[0] > 0;
}

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
    if ((!other && given < -1) || axis + n > x->ndim ||
        (other && n && memcmp(other->shape, x->shape + axis, (size_t)n * sizeof *x->shape) != 0)) {
        return nn_layer_fail(l, "num_axes", DM_ERR_SHAPE,
                             "takes %lld dims from %d on, which '%s' does not have so", (long long)n, axis,
                             x->name);
    }
    l->u.dim = axis;
    l->extra[0] = (double)(axis + n);
    return nn_top_shape(l, 0, x->ndim, x->shape);
}

/* Parameters of an image that have the channels and places lie with the channels last. */
static dm_status new_operand(nn_layer *l, const nn_message *filler)
{
    const nn_blob *x = l->bottom[0];
    const int end = (int)l->extra[0], n = end - l->u.dim;
    const int64_t folded[4] = {by_samples(l) ? x->shape[0] : 1, x->shape[1], x->shape[2],
                               end > 3 ? x->shape[3] : 1};
    const bool turned = x->image && l->u.dim < 2 && end > 2;
    nn_param *p = NULL;
    dm_status status = nn_new_folded(l, n, x->shape + l->u.dim, turned ? folded : NULL, filler, &p);
    if (status == DM_OK && turned && !by_samples(l) && p->owner == l && !p->of &&
        strcmp(nn_string(filler, "FillerParameter", "type"), "positive_unitball") == 0) {
        return nn_layer_fail(l, "filler", DM_ERR_UNSUPPORTED,
                             "has the filler positive_unitball for several dims of an image");
    }
    return status;
}

/* diff = beta diff + the sum of d (times x, if there is one) over all dims that an operand lacks, the samples
 * among them. */
static dm_status sum_over_samples(nn_layer *l, dm_array x, double beta, dm_array diff)
{
    const nn_blob *b = l->bottom[0];
    dm_session *s = l->net->session;
    int64_t shape[DM_MAX_DIMS], count = wide_shape(l, shape);
    dm_array d = l->top[0]->diff, rows = DM_NO_ARRAY;
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
    dm_status status = nn_map(s, any ? text : x.id ? "d * x" : "d * 1", 2, args, l->scratch[SUMS]);
    status = status == DM_OK ? dm_array_reshape(s, l->scratch[SUMS], 2, (int64_t[]){b->shape[0], count}, &rows)
                             : status;
    status = status == DM_OK ? dm_channel_sums(s, l->net->slices, 1, rows, DM_NO_ARRAY, beta, diff) : status;
    dm_status end1 = dm_array_destroy(s, rows);
    return status != DM_OK ? status : end1;
}

/* wide, which has dims of 1 behind those of an operand with the samples, = the same sum. */
static dm_status sum_by_sample(nn_layer *l, dm_array x, dm_array wide)
{
    dm_map_arg args[] = {DM_ARG("d", l->top[0]->diff), DM_ARG("x", x)};
    return (int)l->extra[0] == l->bottom[0]->ndim
               ? nn_map(l->net->session, x.id ? "d * x" : "d * 1", 2, args, wide)
               : nn_map_rows(l, "sum", x.id ? "d * x" : "d", l->bottom[0], (int)l->extra[0], 2, args, wide);
}

/* The gradient of parameter `number`. */
static dm_status param_diff(nn_layer *l, int number, dm_array x)
{
    dm_session *s = l->net->session;
    const double beta = nn_param_beta(l, number);
    const dm_array diff = l->param[number]->diff;
    dm_array wide = DM_NO_ARRAY;
    if (!by_samples(l)) {
        return sum_over_samples(l, x, beta, diff);
    }
    dm_status status = sum_by_sample(l, x, l->scratch[SUMS]);
    status = status == DM_OK ? widen(l, diff, &wide) : status;
    if (status == DM_OK) {
        status = beta == 0 ? dm_copy(s, l->scratch[SUMS], wide) : dm_axpby(s, 1, l->scratch[SUMS], beta, wide);
    }
    dm_status end = dm_array_destroy(s, wide);
    return status == DM_OK ? end : status;
}

/* --- the second bottom. Which dim of its array is dim i of its copy; returns the dims. */
static int copy_order(const nn_layer *l, int *order, int64_t *shape)
{
    const nn_blob *x = l->bottom[0], *other = l->bottom[1];
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        for (int k = l->u.dim; k < (int)l->extra[0]; k++) {
            if (nn_array_dim(x, k) == d) {
                order[n] = nn_array_dim(other, k - l->u.dim);
                shape[n++] = x->shape[k];
            }
        }
    }
    if (n == 0) { /* one number */
        order[n] = 0;
        shape[n++] = 1;
    }
    return n;
}

static dm_status new_copy(nn_layer *l, dm_array *out)
{
    int order[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    int n = copy_order(l, order, shape);
    dm_layout layout = by_samples(l) ? dm_layout_batch(l->net->session, shape[0], l->net->slices)
                                     : dm_layout_replicated(l->net->session);
    return dm_array_create(l->net->session, DM_F32, n, shape, &layout, out);
}

static dm_status prepare_bottom(nn_layer *l)
{
    int order[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    const int n = copy_order(l, order, shape);
    bool copied = !by_samples(l);
    for (int d = 0; d < n; d++) {
        copied = copied || order[d] != d;
    }
    dm_status status = copied ? new_copy(l, &l->scratch[COPY]) : DM_OK;
    status = status == DM_OK && copied && l->down[1] ? new_copy(l, &l->scratch[COPY_DIFF]) : status;
    return status == DM_OK ? widen(l, copied ? l->scratch[COPY] : l->bottom[1]->data, &l->scratch[OPERAND])
                           : status;
}

static dm_status take_bottom(nn_layer *l)
{
    int order[DM_MAX_DIMS];
    int64_t shape[DM_MAX_DIMS];
    if (!l->scratch[COPY].id) {
        return DM_OK;
    }
    copy_order(l, order, shape);
    return dm_permute(l->net->session, l->bottom[1]->data, order, l->scratch[COPY]);
}

/* The gradient of the second bottom. */
static dm_status bottom_down(nn_layer *l, dm_array x)
{
    dm_array down = nn_down(l, 1), copy = l->scratch[COPY_DIFF], to = copy.id ? copy : down;
    dm_array wide = DM_NO_ARRAY;
    dm_status status = by_samples(l) ? widen(l, to, &wide) : sum_over_samples(l, x, 0, to);
    status = status == DM_OK && wide.id ? sum_by_sample(l, x, wide) : status;
    dm_status end = dm_array_destroy(l->net->session, wide);
    status = status == DM_OK ? end : status;
    if (status == DM_OK && copy.id) {
        int order[DM_MAX_DIMS], back[DM_MAX_DIMS];
        int64_t shape[DM_MAX_DIMS];
        int n = copy_order(l, order, shape);
        for (int d = 0; d < n; d++) {
            back[order[d]] = d;
        }
        status = dm_permute(l->net->session, copy, back, down);
    }
    return nn_down_done(l, 1, status);
}

/* Views of the operand and of the bias, and what sums over samples need. */
static dm_status prepare(nn_layer *l)
{
    int64_t shape[DM_MAX_DIMS];
    dm_status status = l->bottoms > 1 ? prepare_bottom(l) : widen(l, l->param[0]->data, &l->scratch[OPERAND]);
    const int biases = l->bottoms > 1 ? 0 : 1;
    if (status == DM_OK && l->params > biases) {
        status = widen(l, l->param[biases]->data, &l->scratch[BIAS]);
    }
    for (int d = 0; d < l->bottom[0]->ndim; d++) {
        bool has = d == 0 || (d >= l->u.dim && d < (int)l->extra[0]);
        shape[d] = has ? l->bottom[0]->shape[d] : 1;
    }
    bool sums = l->params || (l->bottoms > 1 && l->down[1] && !by_samples(l));
    return status == DM_OK && sums ? nn_scratch(l, SUMS, l->bottom[0]->image, l->bottom[0]->ndim, shape)
                                   : status;
}

/* --- Scale: times a parameter or a second bottom, and perhaps plus a bias. */
dm_status nn_scale_setup(nn_layer *l)
{
    static const char S[] = "ScaleParameter";
    bool biased = nn_biased(l, S);
    dm_status status = find_dims(l, S);
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
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[OPERAND]),
                         DM_ARG("b", l->scratch[BIAS])};
    dm_status status = take_bottom(l);
    return status == DM_OK
               ? nn_map(l->net->session, l->scratch[BIAS].id ? "x * a + b" : "x * a", 3, args, l->top[0]->data)
               : status;
}

dm_status nn_scale_backward(nn_layer *l)
{
    const int biases = l->bottoms > 1 ? 0 : 1;
    dm_status status = DM_OK;
    if (l->bottoms == 1) {
        status = param_diff(l, 0, l->bottom[0]->data);
    } else if (l->down[1]) {
        status = bottom_down(l, l->bottom[0]->data);
    }
    if (status == DM_OK && l->params > biases) {
        status = param_diff(l, biases, DM_NO_ARRAY);
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status =
            nn_down_done(l, 0, dm_multiply(l->net->session, 1, l->top[0]->diff, l->scratch[OPERAND], down));
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
    dm_status status = take_bottom(l);
    return status == DM_OK
               ? dm_add(l->net->session, 1, l->bottom[0]->data, 1, l->scratch[OPERAND], l->top[0]->data)
               : status;
}

dm_status nn_bias_backward(nn_layer *l)
{
    dm_status status = DM_OK;
    if (l->bottoms == 1) {
        status = param_diff(l, 0, DM_NO_ARRAY);
    } else if (l->down[1]) {
        status = bottom_down(l, DM_NO_ARRAY);
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
               ? nn_scratch(l, BELOW, l->bottom[0]->image, l->bottom[0]->ndim, l->bottom[0]->shape)
               : status;
}

dm_status nn_prelu_forward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[OPERAND])};
    return dm_map(l->net->session, "where(x > 0, x, a * x)", 2, args, l->top[0]->data);
}

dm_status nn_prelu_backward(nn_layer *l)
{
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("a", l->scratch[OPERAND]),
                         DM_ARG("d", l->top[0]->diff)};
    dm_status status = dm_map(l->net->session, "minimum(x, 0)", 1, args, l->scratch[BELOW]);
    status = status == DM_OK ? param_diff(l, 0, l->scratch[BELOW]) : status;
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, dm_map(l->net->session, "where(x > 0, d, a * d)", 3, args, down));
    }
    return status;
}
