/* InnerProduct: weights of images lie with the channels last, as the images do. */
#include "layers/layers.h"

#include <string.h>

static const char I[] = "InnerProductParameter";

dm_status nn_inner_setup(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    nn_param *weight = NULL, *bias = NULL;
    int axis = 0, outputs = 0;
    dm_status status = nn_axis(l, "axis", b->ndim, &axis);
    status =
        status == DM_OK ? nn_to_int(l, "num_output", nn_int(l->own, I, "num_output"), 1, &outputs) : status;
    if (status == DM_OK && axis == 0) {
        status = nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED,
                               "has axis 0, which would join all samples: dim 0 is the batch");
    }
    if (status != DM_OK) {
        return status;
    }
    if (axis != 1 || nn_int(l->own, I, "transpose")) {
        return nn_inner_rows_setup(l, axis, nn_int(l->own, I, "transpose") != 0, outputs);
    }
    int64_t shape[2] = {outputs, b->count / b->shape[0]};
    status = nn_top_shape(l, 0, 2, (int64_t[]){b->shape[0], outputs});
    const int64_t folded[4] = {outputs, b->shape[1], b->shape[2], b->shape[3]};
    const nn_message *filler = nn_sub(l->own, "weight_filler");
    status = status == DM_OK ? nn_new_folded(l, 2, shape, b->image ? folded : NULL, filler, &weight) : status;
    if (status == DM_OK) {
        weight->rounds = true;
    }
    return status == DM_OK ? nn_bias_param(l, outputs, &bias) : status;
}

dm_status nn_inner_prepare(nn_layer *l)
{
    return nn_inner_by_rows(l) ? nn_inner_rows_prepare(l) : nn_ranges_prepare(l);
}

void nn_inner_drop(nn_layer *l)
{
    nn_ranges_drop(l);
}

static dm_status range_forward(const nn_layer *l, const nn_range *r)
{
    return dm_inner_forward(l->net->session, nn_ranges_slices(l), r->x, r->w, r->bias, r->mine);
}

dm_status nn_inner_forward(nn_layer *l)
{
    if (nn_inner_by_rows(l)) {
        return nn_inner_rows_forward(l);
    }
    return l->ranges ? nn_ranges_forward(l, range_forward)
                     : dm_inner_forward(l->net->session, l->net->slices, l->bottom[0]->data,
                                        nn_param_used(l, 0), nn_bias_of(l), l->top[0]->data);
}

static dm_status range_data(const nn_layer *l, const nn_range *r)
{
    return dm_inner_backward_data(l->net->session, nn_ranges_slices(l), r->mine, r->w, r->part);
}

static dm_status range_weights(const nn_layer *l, const nn_range *r, const double *beta)
{
    return nn_inner_weights(l, nn_ranges_slices(l), r->x, r->mine, beta[0], r->dw, r->dbias);
}

dm_status nn_inner_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    if (nn_inner_by_rows(l)) {
        return nn_inner_rows_backward(l);
    }
    double beta[2] = {0, 0};
    dm_status status = nn_one_beta(l, 0, nn_bias_diff(l).id ? 1 : -1, &beta[0]);
    if (status == DM_OK && l->ranges) {
        return nn_ranges_backward(l, beta, range_data, range_weights);
    }
    if (status == DM_OK) {
        status = nn_inner_weights(l, l->net->slices, l->bottom[0]->data, l->top[0]->diff, beta[0],
                                  l->param[0]->diff, nn_bias_diff(l));
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(
            l, 0, dm_inner_backward_data(s, l->net->slices, l->top[0]->diff, nn_param_used(l, 0), down));
    }
    return status;
}
