/* LSTM, unrolled: as many steps as the bottom has. Arrays of its own have the samples first, so that a step
 * moves nothing. */
#include "layers/layers.h"

enum {
    X,
    GATES,
    CELLS,
    HIDDEN,
    PREVIOUS,
    GOES_ON,
    STATE,
    SUM,
    GATES_DIFF,
    HIDDEN_DIFF,
    CELL_CARRY,
    HIDDEN_CARRY,
    FIXED
};

static const int swap[] = {1, 0, 2};

/* Parameters as in Caffe: of the inputs, their bias, of the fixed input if there is one, of the step before. */
dm_status nn_lstm_setup(nn_layer *l)
{
    const nn_message *weights = nn_sub(l->own, "weight_filler"), *biases = nn_sub(l->own, "bias_filler");
    nn_param *p = NULL;
    dm_status status = nn_recurrent_setup(l, 2);
    const int64_t h = l->u.dim;
    status = status == DM_OK ? nn_new_param(l, 2, (int64_t[]){4 * h, nn_recurrent_width(l, 0)}, weights, &p)
                             : status;
    status = status == DM_OK ? nn_new_param(l, 1, (int64_t[]){4 * h}, biases, &p) : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_new_param(l, 2, (int64_t[]){4 * h, nn_recurrent_width(l, 2)}, weights, &p);
    }
    return status == DM_OK ? nn_new_param(l, 2, (int64_t[]){4 * h, h}, weights, &p) : status;
}

/* The parameter of the step before. */
static int recurrent(const nn_layer *l)
{
    return l->params - 1;
}

dm_status nn_lstm_prepare(nn_layer *l)
{
    int64_t t = l->bottom[0]->shape[0], n = l->bottom[0]->shape[1], h = l->u.dim;
    const int64_t shapes[][3] = {{n, t, 4 * h}, {n, t, h},     {n, t, h}, {n, t, h}, {n, t, 1}, {n, 2, h},
                                 {n, 1, 4 * h}, {n, t, 4 * h}, {n, t, h}, {n, 1, h}, {n, 1, h}};
    dm_status status = nn_recurrent_prepare(l, X, FIXED);
    for (int i = 0; status == DM_OK && i < NN_COUNT(shapes); i++) {
        status = nn_scratch(l, GATES + i, false, 3, shapes[i]);
    }
    status = status == DM_OK ? dm_fill(l->net->session, l->scratch[CELLS], 0) : status;
    return status == DM_OK ? dm_fill(l->net->session, l->scratch[HIDDEN], 0) : status;
}

/* A view of one step of an array of its own, which ends with the scope: columns [first, first + count). */
static dm_status cut(nn_layer *l, int which, int64_t step, int64_t first, int64_t count, dm_array *out)
{
    int64_t n = l->bottom[0]->shape[1];
    return dm_array_view(l->net->session, l->scratch[which], (int64_t[]){0, step, first},
                         (int64_t[]){n, 1, count}, out);
}

static dm_status rows(nn_layer *l, int which, int64_t columns, dm_array *out)
{
    const int64_t *x = l->bottom[0]->shape;
    return dm_array_reshape(l->net->session, l->scratch[which], 2, (int64_t[]){x[0] * x[1], columns}, out);
}

typedef struct step_views {
    dm_array i, f, o, g, all, sigmoids, c, h, before, cell_before, k, di, df, do_, dg, dall, dh;
} step_views;

static dm_status views(nn_layer *l, int64_t t, step_views *v)
{
    const int64_t h = l->u.dim;
    const struct {
        dm_array *to;
        int from;
        int64_t step, first, count;
    } all[] = {{&v->i, GATES, t, 0, h},           {&v->f, GATES, t, h, h},
               {&v->o, GATES, t, 2 * h, h},       {&v->g, GATES, t, 3 * h, h},
               {&v->all, GATES, t, 0, 4 * h},     {&v->sigmoids, GATES, t, 0, 3 * h},
               {&v->c, CELLS, t, 0, h},           {&v->h, HIDDEN, t, 0, h},
               {&v->before, PREVIOUS, t, 0, h},   {&v->cell_before, t ? CELLS : STATE, t ? t - 1 : 1, 0, h},
               {&v->k, GOES_ON, t, 0, 1},         {&v->di, GATES_DIFF, t, 0, h},
               {&v->df, GATES_DIFF, t, h, h},     {&v->do_, GATES_DIFF, t, 2 * h, h},
               {&v->dg, GATES_DIFF, t, 3 * h, h}, {&v->dall, GATES_DIFF, t, 0, 4 * h},
               {&v->dh, HIDDEN_DIFF, t, 0, h}};
    dm_status status = DM_OK;
    for (int n = 0; status == DM_OK && n < NN_COUNT(all); n++) {
        status = cut(l, all[n].from, all[n].step, all[n].first, all[n].count, all[n].to);
    }
    return status;
}

/* The letters: gates i, f, o, g; cells c, of the step before p; k: the sequence goes on; gradients d of the
 * hidden values, q of the cells. */
static dm_status map(nn_layer *l, const step_views *v, const char *text, dm_array out)
{
    const dm_map_arg args[] = {DM_ARG("i", v->i),
                               DM_ARG("f", v->f),
                               DM_ARG("o", v->o),
                               DM_ARG("g", v->g),
                               DM_ARG("c", v->c),
                               DM_ARG("p", v->cell_before),
                               DM_ARG("k", v->k),
                               DM_ARG("d", v->dh),
                               DM_ARG("q", l->scratch[CELL_CARRY]),
                               DM_ARG("r", l->scratch[HIDDEN_CARRY])};
    return nn_map(l->net->session, text, NN_COUNT(args), args, out);
}

static dm_status step_forward(nn_layer *l, int64_t t)
{
    dm_session *s = l->net->session;
    step_views v;
    dm_array last = DM_NO_ARRAY;
    dm_status status = views(l, t, &v);
    status = status == DM_OK ? cut(l, t ? HIDDEN : STATE, t ? t - 1 : 0, 0, l->u.dim, &last) : status;
    status = status == DM_OK ? dm_multiply(s, 1, last, v.k, v.before) : status;
    status = status == DM_OK ? dm_inner_forward(s, l->net->slices, v.before, l->param[recurrent(l)]->data,
                                                DM_NO_ARRAY, l->scratch[SUM])
                             : status;
    status = status == DM_OK ? dm_axpby(s, 1, l->scratch[SUM], 1, v.all) : status;
    status = status == DM_OK ? dm_sigmoid(s, v.sigmoids, v.sigmoids) : status;
    status = status == DM_OK ? dm_tanh(s, v.g, v.g) : status;
    status = status == DM_OK ? map(l, &v, "k * f * p + i * g", v.c) : status;
    return status == DM_OK ? map(l, &v, "o * tanh(c)", v.h) : status;
}

static dm_status forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    int64_t steps = l->bottom[0]->shape[0], h = l->u.dim;
    dm_array last[2], to[2], x, gates;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = cut(l, i ? CELLS : HIDDEN, steps - 1, 0, h, &last[i]);
        status = status == DM_OK ? cut(l, STATE, i, 0, h, &to[i]) : status;
        status = status == DM_OK ? nn_recurrent_begin(l, i, last[i], to[i]) : status;
    }
    status = status == DM_OK ? nn_recurrent_read(l, X, GOES_ON) : status;
    status = status == DM_OK ? rows(l, X, nn_recurrent_width(l, 0), &x) : status;
    status = status == DM_OK ? rows(l, GATES, 4 * h, &gates) : status;
    status = status == DM_OK
                 ? dm_inner_forward(s, l->net->slices, x, l->param[0]->data, l->param[1]->data, gates)
                 : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_recurrent_add_fixed(l, FIXED, 2, SUM, l->scratch[GATES]);
    }
    for (int64_t t = 0; status == DM_OK && t < steps; t++) {
        status = step_forward(l, t);
    }
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = nn_recurrent_end(l, i, last[i]);
    }
    return status == DM_OK ? dm_permute(s, l->scratch[HIDDEN], swap, l->top[0]->data) : status;
}

static dm_status step_backward(nn_layer *l, int64_t t)
{
    dm_session *s = l->net->session;
    step_views v;
    dm_array q = l->scratch[CELL_CARRY], r = l->scratch[HIDDEN_CARRY];
    dm_status status = views(l, t, &v);
    status = status == DM_OK ? map(l, &v, "d + r", v.dh) : status;
    status = status == DM_OK ? map(l, &v, "q + d * o * (1 - tanh(c) ** 2)", q) : status;
    status = status == DM_OK ? map(l, &v, "d * tanh(c) * o * (1 - o)", v.do_) : status;
    status = status == DM_OK ? map(l, &v, "q * g * i * (1 - i)", v.di) : status;
    status = status == DM_OK ? map(l, &v, "q * k * p * f * (1 - f)", v.df) : status;
    status = status == DM_OK ? map(l, &v, "q * i * (1 - g * g)", v.dg) : status;
    status = status == DM_OK ? map(l, &v, "q * k * f", q) : status;
    status = status == DM_OK
                 ? dm_inner_backward_data(s, l->net->slices, v.dall, l->param[recurrent(l)]->data, r)
                 : status;
    return status == DM_OK ? map(l, &v, "r * k", r) : status;
}

static dm_status backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    int64_t steps = l->bottom[0]->shape[0], h = l->u.dim;
    double beta = 0, beta2 = nn_param_beta(l, recurrent(l));
    dm_array x, before, gates;
    dm_status status = nn_one_beta(l, 0, 1, &beta);
    status = status == DM_OK ? dm_permute(s, l->top[0]->diff, swap, l->scratch[HIDDEN_DIFF]) : status;
    status = status == DM_OK ? dm_fill(s, l->scratch[CELL_CARRY], 0) : status;
    status = status == DM_OK ? dm_fill(s, l->scratch[HIDDEN_CARRY], 0) : status;
    for (int64_t t = steps - 1; status == DM_OK && t >= 0; t--) {
        status = step_backward(l, t);
    }
    status = status == DM_OK ? rows(l, X, nn_recurrent_width(l, 0), &x) : status;
    status = status == DM_OK ? rows(l, PREVIOUS, h, &before) : status;
    status = status == DM_OK ? rows(l, GATES_DIFF, 4 * h, &gates) : status;
    status = status == DM_OK
                 ? nn_inner_weights(l, l->net->slices, x, gates, beta, l->param[0]->diff, l->param[1]->diff)
                 : status;
    status = status == DM_OK ? nn_inner_weights(l, l->net->slices, before, gates, beta2,
                                                l->param[recurrent(l)]->diff, DM_NO_ARRAY)
                             : status;
    if (status == DM_OK && nn_recurrent_fixed(l)) {
        status = nn_recurrent_fixed_down(l, FIXED, 2, SUM, l->scratch[GATES_DIFF]);
    }
    if (status == DM_OK && l->down[0]) {
        status = dm_inner_backward_data(s, l->net->slices, gates, l->param[0]->data, x);
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

dm_status nn_lstm_forward(nn_layer *l)
{
    return scoped(l, forward);
}

dm_status nn_lstm_backward(nn_layer *l)
{
    return scoped(l, backward);
}
