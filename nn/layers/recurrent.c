/* What LSTM and RNN share: their bottoms and tops. Bottoms: inputs T x N x ..., signs T x N that say where
 * sequences go on, perhaps an input N x ... that is the same in all steps, and with expose_hidden the states
 * before the first step, 1 x N x H each. Tops: T x N x H, and with expose_hidden the states behind the last
 * step. */
#include "layers/layers.h"

#include <string.h>

static const int swap[] = {1, 0, 2};

dm_status nn_recurrent_setup(nn_layer *l, int states)
{
    static const char R[] = "RecurrentParameter";
    const nn_blob *x = l->bottom[0], *cont = l->bottom[1];
    const int64_t h = nn_int(l->own, R, "num_output");
    const int exposed = nn_int(l->own, R, "expose_hidden") ? states : 0;
    const bool fixed = l->bottoms == 3 + exposed;
    if (nn_int(l->own, R, "debug_info")) {
        nn_say_unused(l, l->own, "debug_info",
                      "no net is made inside of this layer; use debug_info of the net");
    }
    if (x->ndim < 3 || cont->ndim != 2 || cont->shape[0] != x->shape[0] || cont->shape[1] != x->shape[1]) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                             "needs inputs of 3 dims or more, steps x samples x numbers, and a sign for each "
                             "sample of each step");
    }
    if (h < 1 || h > INT32_MAX / 4) {
        return nn_layer_fail(l, "num_output", DM_ERR_FORMAT, "has num_output %lld; it must be 1 to 2^29",
                             (long long)h);
    }
    if ((l->bottoms != 2 + exposed && !fixed) || l->tops != 1 + exposed) {
        return nn_layer_fail(
            l, "bottom", DM_ERR_FORMAT,
            "has %d bottoms and %d tops; it takes %d or %d bottoms, with an input that is the same in "
            "all steps, and %d tops",
            l->bottoms, l->tops, 2 + exposed, 3 + exposed, 1 + exposed);
    }
    if (fixed && (l->bottom[2]->ndim < 1 || l->bottom[2]->shape[0] != x->shape[1])) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                             "reads '%s', which does not have the %lld samples of '%s'", l->bottom[2]->name,
                             (long long)x->shape[1], x->name);
    }
    const int64_t state[] = {1, x->shape[1], h};
    dm_status status = nn_top_shape(l, 0, 3, (int64_t[]){x->shape[0], x->shape[1], h});
    for (int i = 0; status == DM_OK && i < exposed; i++) {
        const nn_blob *from = l->bottom[2 + fixed + i];
        if (from->ndim != 3 || memcmp(from->shape, state, sizeof state) != 0) {
            return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which must be 1 x %lld x %lld",
                                 from->name, (long long)x->shape[1], (long long)h);
        }
        l->down[2 + fixed + i] = false; /* as in Caffe, no gradient leaves the steps of a pass */
        status = nn_top_shape(l, 1 + i, 3, state);
    }
    l->u.dim = (int)h;
    l->extra[0] = exposed;
    l->extra[1] = fixed;
    return status;
}

int64_t nn_recurrent_width(const nn_layer *l, int bottom)
{
    const nn_blob *b = l->bottom[bottom];
    return b->count / (bottom == 0 ? b->shape[0] * b->shape[1] : b->shape[0]);
}

bool nn_recurrent_fixed(const nn_layer *l)
{
    return l->extra[1] != 0;
}

dm_status nn_recurrent_prepare(nn_layer *l, int x, int fixed)
{
    const nn_blob *in = l->bottom[0], *same = l->bottom[2];
    int64_t shape[DM_MAX_DIMS];
    memcpy(shape, in->shape, sizeof shape);
    shape[0] = in->shape[1];
    shape[1] = in->shape[0];
    dm_status status = nn_scratch(l, x, false, in->ndim, shape);
    return status == DM_OK && nn_recurrent_fixed(l) && same->image ? nn_scratch(l, fixed, false, 4, same->shape)
                                                                   : status;
}

/* Dim d of what has the samples first is dim order[d] of the inputs' array; and back. */
static void samples_first(const nn_layer *l, int *order, int *back)
{
    const nn_blob *x = l->bottom[0];
    for (int d = 0; d < x->ndim; d++) {
        order[d] = nn_array_dim(x, d < 2 ? 1 - d : d);
        back[order[d]] = d;
    }
}

dm_status nn_recurrent_read(nn_layer *l, int x, int goes_on)
{
    const int64_t *shape = l->bottom[0]->shape;
    dm_session *s = l->net->session;
    dm_array signs = DM_NO_ARRAY;
    int order[DM_MAX_DIMS], back[DM_MAX_DIMS];
    samples_first(l, order, back);
    dm_status status = dm_permute(s, l->bottom[0]->data, order, l->scratch[x]);
    status = status == DM_OK
                 ? dm_array_reshape(s, l->scratch[goes_on], 2, (int64_t[]){shape[1], shape[0]}, &signs)
                 : status;
    return status == DM_OK ? dm_transpose(s, l->bottom[1]->data, signs) : status;
}

dm_status nn_recurrent_down(nn_layer *l, int x)
{
    int order[DM_MAX_DIMS], back[DM_MAX_DIMS];
    dm_array down = nn_down(l, 0);
    samples_first(l, order, back);
    return nn_down_done(l, 0, dm_permute(l->net->session, l->scratch[x], back, down));
}

dm_status nn_recurrent_begin(nn_layer *l, int state, dm_array last, dm_array to)
{
    return l->extra[0] != 0
               ? dm_permute(l->net->session, l->bottom[2 + (int)l->extra[1] + state]->data, swap, to)
               : dm_copy(l->net->session, last, to);
}

dm_status nn_recurrent_end(nn_layer *l, int state, dm_array last)
{
    return l->extra[0] != 0 ? dm_permute(l->net->session, last, swap, l->top[1 + state]->data) : DM_OK;
}

dm_status nn_recurrent_add_fixed(nn_layer *l, int fixed, int weight, int sum, dm_array to)
{
    static const int to_caffe[] = {0, 3, 1, 2};
    dm_session *s = l->net->session;
    dm_array in = l->bottom[2]->data;
    dm_status status = DM_OK;
    if (l->scratch[fixed].id) {
        status = dm_permute(s, in, to_caffe, l->scratch[fixed]);
        in = l->scratch[fixed];
    }
    status = status == DM_OK
                 ? dm_inner_forward(s, l->net->slices, in, l->param[weight]->data, DM_NO_ARRAY, l->scratch[sum])
                 : status;
    return status == DM_OK ? dm_axpby(s, 1, l->scratch[sum], 1, to) : status;
}

dm_status nn_recurrent_fixed_down(nn_layer *l, int fixed, int weight, int sum, dm_array diff)
{
    static const int from_caffe[] = {0, 2, 3, 1};
    dm_session *s = l->net->session;
    dm_array copy = l->scratch[fixed], in = copy.id ? copy : l->bottom[2]->data;
    dm_map_arg arg = DM_ARG("d", diff);
    dm_status status = dm_map(s, "sum(d * 1, 1)", 1, &arg, l->scratch[sum]);
    status = status == DM_OK ? nn_inner_weights(l, l->net->slices, in, l->scratch[sum],
                                                nn_param_beta(l, weight), l->param[weight]->diff, DM_NO_ARRAY)
                             : status;
    if (status != DM_OK || !l->down[2]) {
        return status;
    }
    dm_array down = nn_down(l, 2);
    status = dm_inner_backward_data(s, l->net->slices, l->scratch[sum], l->param[weight]->data,
                                    copy.id ? copy : down);
    return nn_down_done(l, 2, status == DM_OK && copy.id ? dm_permute(s, copy, from_caffe, down) : status);
}
