/* RNN, unrolled: h = tanh(Wx x + b + Wh (c h of the step before)), top = tanh(Wo h + bo), c: the sequence goes
 * on. Arrays of its own have the samples first, so that a step moves nothing. */
#include "layers/layers.h"

enum { X, HIDDEN, PREVIOUS, GOES_ON, STATE, SUM, OUT, OUT_DIFF, HIDDEN_DIFF, CARRY, FIXED };

static const int swap[] = {1, 0, 2};

/* Parameters as in Caffe: of the inputs, their bias, of the fixed input if there is one, of the step before, of
 * the outputs, their bias. */
dm_status nn_rnn_setup(nn_layer *l)
{
    const nn_message *weights = nn_sub(l->own, "weight_filler"), *biases = nn_sub(l->own, "bias_filler");
    nn_param *p = NULL;
    dm_status status = nn_recurrent_setup(l, 1);
    const int64_t h = l->u.dim;
    status =
        status == DM_OK ? nn_new_param(l, 2, (int64_t[]){h, nn_recurrent_width(l, 0)}, weights, &p) : status;
    status = status == DM_OK ? nn_new_param(l, 1, (int64_t[]){h}, biases, &p) : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_new_param(l, 2, (int64_t[]){h, nn_recurrent_width(l, 2)}, weights, &p);
    }
    status = status == DM_OK ? nn_new_param(l, 2, (int64_t[]){h, h}, weights, &p) : status;
    status = status == DM_OK ? nn_new_param(l, 2, (int64_t[]){h, h}, weights, &p) : status;
    return status == DM_OK ? nn_new_param(l, 1, (int64_t[]){h}, biases, &p) : status;
}

/* The parameters of the step before, and of the outputs. */
static int recurrent(const nn_layer *l)
{
    return l->params - 3;
}

static int output(const nn_layer *l)
{
    return l->params - 2;
}

dm_status nn_rnn_prepare(nn_layer *l)
{
    int64_t t = l->bottom[0]->shape[0], n = l->bottom[0]->shape[1], h = l->u.dim;
    const int64_t shapes[][3] = {{n, t, h}, {n, t, h}, {n, t, 1}, {n, 1, h}, {n, 1, h},
                                 {n, t, h}, {n, t, h}, {n, t, h}, {n, 1, h}};
    dm_status status = nn_recurrent_prepare(l, X, FIXED);
    for (int i = 0; status == DM_OK && i < NN_COUNT(shapes); i++) {
        status = nn_scratch(l, HIDDEN + i, false, 3, shapes[i]);
    }
    return status == DM_OK ? dm_fill(l->net->session, l->scratch[HIDDEN], 0) : status;
}

/* A view of one step of an array of its own, which ends with the scope. */
static dm_status cut(nn_layer *l, int which, int64_t step, int64_t columns, dm_array *out)
{
    return dm_array_view(l->net->session, l->scratch[which], (int64_t[]){0, step, 0},
                         (int64_t[]){l->bottom[0]->shape[1], 1, columns}, out);
}

static dm_status rows(nn_layer *l, int which, int64_t columns, dm_array *out)
{
    const int64_t *x = l->bottom[0]->shape;
    return dm_array_reshape(l->net->session, l->scratch[which], 2, (int64_t[]){x[0] * x[1], columns}, out);
}

static dm_status step_forward(nn_layer *l, int64_t t)
{
    dm_session *s = l->net->session;
    int64_t h = l->u.dim;
    dm_array last, now, before, goes_on;
    dm_status status = cut(l, t ? HIDDEN : STATE, t ? t - 1 : 0, h, &last);
    status = status == DM_OK ? cut(l, HIDDEN, t, h, &now) : status;
    status = status == DM_OK ? cut(l, PREVIOUS, t, h, &before) : status;
    status = status == DM_OK ? cut(l, GOES_ON, t, 1, &goes_on) : status;
    status = status == DM_OK ? dm_multiply(s, 1, last, goes_on, before) : status;
    status = status == DM_OK ? dm_inner_forward(s, l->net->slices, before, l->param[recurrent(l)]->data,
                                                DM_NO_ARRAY, l->scratch[SUM])
                             : status;
    dm_map_arg args[] = {DM_ARG("a", now), DM_ARG("b", l->scratch[SUM])};
    return status == DM_OK ? dm_map(s, "tanh(a + b)", 2, args, now) : status;
}

static dm_status forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const int64_t *x = l->bottom[0]->shape, h = l->u.dim;
    const int o = output(l);
    dm_array last, in, hidden, out;
    dm_status status = cut(l, HIDDEN, x[0] - 1, h, &last);
    status = status == DM_OK ? nn_recurrent_begin(l, 0, last, l->scratch[STATE]) : status;
    status = status == DM_OK ? nn_recurrent_read(l, X, GOES_ON) : status;
    status = status == DM_OK ? rows(l, X, nn_recurrent_width(l, 0), &in) : status;
    status = status == DM_OK ? rows(l, HIDDEN, h, &hidden) : status;
    status = status == DM_OK ? rows(l, OUT, h, &out) : status;
    status = status == DM_OK
                 ? dm_inner_forward(s, l->net->slices, in, l->param[0]->data, l->param[1]->data, hidden)
                 : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_recurrent_add_fixed(l, FIXED, 2, SUM, l->scratch[HIDDEN]);
    }
    for (int64_t t = 0; status == DM_OK && t < x[0]; t++) {
        status = step_forward(l, t);
    }
    status = status == DM_OK ? nn_recurrent_end(l, 0, last) : status;
    status = status == DM_OK
                 ? dm_inner_forward(s, l->net->slices, hidden, l->param[o]->data, l->param[o + 1]->data, out)
                 : status;
    status = status == DM_OK ? dm_tanh(s, out, out) : status;
    return status == DM_OK ? dm_permute(s, l->scratch[OUT], swap, l->top[0]->data) : status;
}

static dm_status step_backward(nn_layer *l, int64_t t)
{
    dm_session *s = l->net->session;
    int64_t h = l->u.dim;
    dm_array hidden, diff, goes_on, carry = l->scratch[CARRY];
    dm_status status = cut(l, HIDDEN, t, h, &hidden);
    status = status == DM_OK ? cut(l, HIDDEN_DIFF, t, h, &diff) : status;
    status = status == DM_OK ? cut(l, GOES_ON, t, 1, &goes_on) : status;
    dm_map_arg args[] = {DM_ARG("d", diff), DM_ARG("r", carry), DM_ARG("h", hidden)};
    status = status == DM_OK ? dm_map(s, "(d + r) * (1 - h * h)", 3, args, diff) : status;
    status = status == DM_OK
                 ? dm_inner_backward_data(s, l->net->slices, diff, l->param[recurrent(l)]->data, carry)
                 : status;
    return status == DM_OK ? dm_multiply(s, 1, carry, goes_on, carry) : status;
}

/* Gradients of the weights that rows of `in` meet, and of a bias. */
static dm_status weights(nn_layer *l, dm_array in, dm_array diff, int weight, int bias)
{
    double beta = 0;
    dm_status status = nn_one_beta(l, weight, bias, &beta);
    return status == DM_OK ? nn_inner_weights(l, l->net->slices, in, diff, beta, l->param[weight]->diff,
                                              bias >= 0 ? l->param[bias]->diff : DM_NO_ARRAY)
                           : status;
}

static dm_status backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const int64_t *x = l->bottom[0]->shape, h = l->u.dim;
    dm_array in, hidden, before, out, diff;
    dm_status status = dm_permute(s, l->top[0]->diff, swap, l->scratch[OUT_DIFF]);
    dm_map_arg args[] = {DM_ARG("d", l->scratch[OUT_DIFF]), DM_ARG("o", l->scratch[OUT])};
    status = status == DM_OK ? dm_map(s, "d * (1 - o * o)", 2, args, l->scratch[OUT_DIFF]) : status;
    status = status == DM_OK ? rows(l, X, nn_recurrent_width(l, 0), &in) : status;
    status = status == DM_OK ? rows(l, HIDDEN, h, &hidden) : status;
    status = status == DM_OK ? rows(l, PREVIOUS, h, &before) : status;
    status = status == DM_OK ? rows(l, OUT_DIFF, h, &out) : status;
    status = status == DM_OK ? rows(l, HIDDEN_DIFF, h, &diff) : status;
    status = status == DM_OK ? weights(l, hidden, out, output(l), output(l) + 1) : status;
    status = status == DM_OK ? dm_inner_backward_data(s, l->net->slices, out, l->param[output(l)]->data, diff)
                             : status;
    status = status == DM_OK ? dm_fill(s, l->scratch[CARRY], 0) : status;
    for (int64_t t = x[0] - 1; status == DM_OK && t >= 0; t--) {
        status = step_backward(l, t);
    }
    status = status == DM_OK ? weights(l, in, diff, 0, 1) : status;
    status = status == DM_OK ? weights(l, before, diff, recurrent(l), -1) : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_recurrent_fixed_down(l, FIXED, 2, SUM, l->scratch[HIDDEN_DIFF]);
    }
    if (status == DM_OK && l->down[0]) {
        status = dm_inner_backward_data(s, l->net->slices, diff, l->param[0]->data, in);
        status = status == DM_OK ? nn_recurrent_down(l, X) : status;
    }
    return status;
}

/* All views end with the pass. */
static dm_status scoped(nn_layer *l, dm_status (*pass)(nn_layer *))
{
    dm_status status = dm_scope_begin(l->net->session);
    if (status != DM_OK) {
        return status;
    }
    status = pass(l);
    dm_status end = dm_scope_end(l->net->session, NULL, 0);
    return status == DM_OK ? end : status;
}

dm_status nn_rnn_forward(nn_layer *l)
{
    return scoped(l, forward);
}

dm_status nn_rnn_backward(nn_layer *l)
{
    return scoped(l, backward);
}
