/* Convolution and what is made like it, pooling. */
#include "layers/layers.h"

#include <stdio.h>
#include <string.h>

static const char C[] = "ConvolutionParameter", P[] = "PoolingParameter";

dm_status nn_to_int(const nn_layer *l, const char *field, int64_t value, int least, int *out)
{
    if (value < least || value > INT32_MAX) {
        return nn_layer_fail(l, field, DM_ERR_FORMAT, "has %s %lld; it must be at least %d", field,
                             (long long)value, least);
    }
    *out = (int)value;
    return DM_OK;
}

/* Rows and columns out of a field, or of NAME_h and NAME_w; `otherwise`: where there is none. */
static dm_status pair(const nn_layer *l, const char *field, const char *stem, int otherwise, int least,
                      int *out)
{
    const bool given = nn_has(l->own, field);
    out[0] = out[1] = otherwise;
    for (int d = 0; d < 2; d++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%c", stem, "hw"[d]);
        const char *from = nn_has(l->own, name) ? name : field;
        if (from == name && given) {
            return nn_layer_fail(l, name, DM_ERR_FORMAT, "has %s and %s; only one of the two may be there",
                                 field, name);
        }
        if (from == name || given) {
            dm_status status = nn_to_int(l, from, nn_int(l->own, P, from), least, &out[d]);
            if (status != DM_OK) {
                return status;
            }
        }
    }
    return DM_OK;
}

dm_status nn_bias_param(nn_layer *l, int64_t outputs, nn_param **out)
{
    return nn_biased(l, l->own ? l->own->type : C)
               ? nn_new_param(l, 1, &outputs, nn_sub(l->own, "bias_filler"), out)
               : DM_OK;
}

dm_array nn_bias_of(const nn_layer *l)
{
    return l->params > 1 ? l->param[1]->data : DM_NO_ARRAY;
}

dm_array nn_bias_diff(const nn_layer *l)
{
    return l->params > 1 ? l->param[1]->diff : DM_NO_ARRAY;
}

dm_status nn_one_beta(nn_layer *l, int weight, int bias, double *beta)
{
    const double betas[2] = {nn_param_beta(l, weight), bias >= 0 ? nn_param_beta(l, bias) : 0};
    *beta = betas[0];
    if (bias < 0 || betas[0] == betas[1]) {
        return DM_OK;
    }
    *beta = 1; /* another layer shares one of the two and has been here; the other is 0 before */
    return dm_fill(l->net->session, l->param[betas[0] == 0 ? weight : bias]->diff, 0);
}

/* --- Convolution */
dm_status nn_conv_fields(nn_layer *l, bool back, nn_sides *s, int *outputs)
{
    dm_conv *conv = &l->u.conv;
    *conv = (dm_conv)DM_CONV_INIT;
    conv->slices = l->net->slices;
    conv->wire = l->net->wire;
    nn_use(l->own, "engine");
    if (nn_int(l->own, C, "force_nd_im2col")) {
        nn_say_unused(l, l->own, "force_nd_im2col", "it says how Caffe computes");
    }
    dm_status status = nn_sides_read(l, back, s);
    status = status == DM_OK ? nn_to_int(l, "group", nn_int(l->own, C, "group"), 1, &conv->group) : status;
    if (status == DM_OK && outputs) {
        status = nn_to_int(l, "num_output", nn_int(l->own, C, "num_output"), 1, outputs);
    }
    for (int d = s->spatial > 2 ? s->spatial - 2 : 0; status == DM_OK && d < s->spatial; d++) {
        const int at = d - s->spatial + 2; /* a single spatial dim is the columns of an image */
        conv->stride[at] = (int)s->side[d].stride;
        conv->pad[at] = (int)s->side[d].pad;
        conv->dilation[at] = (int)s->side[d].dilation;
    }
    const int64_t channels = l->bottom[0]->shape[s->axis];
    return status == DM_OK && outputs && (channels % conv->group || *outputs % conv->group)
               ? nn_layer_fail(l, "group", DM_ERR_SHAPE,
                               "has %d groups, which do not divide %lld channels and %d outputs", conv->group,
                               (long long)channels, *outputs)
               : status;
}

dm_status nn_conv_params(nn_layer *l, int ndim, const int64_t *shape, int outputs)
{
    nn_param *weight = NULL, *bias = NULL;
    dm_status status =
        nn_new_folded(l, ndim, shape, ndim == 4 ? shape : NULL, nn_sub(l->own, "weight_filler"), &weight);
    if (status == DM_OK) {
        weight->rounds = true;
        status = nn_bias_param(l, outputs, &bias);
    }
    return status;
}

dm_status nn_convolution_setup(nn_layer *l)
{
    const dm_conv *conv = &l->u.conv;
    int outputs = 0;
    nn_sides s;
    if (nn_conv_is_nd(l)) {
        return nn_conv_nd_setup(l);
    }
    dm_status status = nn_conv_fields(l, false, &s, &outputs);
    if (status != DM_OK) {
        return status;
    }
    const int64_t *b = l->bottom[0]->shape, rows = s.side[0].kernel, cols = s.side[1].kernel;
    int64_t inner = b[1] / conv->group, y[4], x[4] = {b[0], b[2], b[3], b[1]},
            w[4] = {outputs, rows, cols, inner};
    status = dm_conv_shape(conv, x, w, y);
    if (status != DM_OK) {
        return nn_layer_fail(l, "convolution_param", status, "does not fit its bottom: %s", dm_error_message());
    }
    status = nn_top_shape(l, 0, 4, (int64_t[]){y[0], y[3], y[1], y[2]});
    return status == DM_OK ? nn_conv_params(l, 4, (int64_t[]){outputs, inner, rows, cols}, outputs) : status;
}

dm_status nn_convolution_prepare(nn_layer *l)
{
    return nn_conv_is_nd(l) ? nn_conv_nd_prepare(l) : nn_ranges_prepare(l);
}

void nn_convolution_drop(nn_layer *l)
{
    nn_ranges_drop(l);
}

/* The convolution of a range of outputs. */
static dm_conv conv_of(const nn_layer *l, const nn_range *r)
{
    dm_conv conv = l->u.conv;
    conv.group = r->groups;
    conv.slices = nn_ranges_slices(l);
    return conv;
}

static dm_status conv_range(const nn_layer *l, const nn_range *r)
{
    const dm_conv conv = conv_of(l, r);
    return dm_conv_forward(l->net->session, &conv, r->x, r->w, r->bias, r->mine);
}

dm_status nn_convolution_forward(nn_layer *l)
{
    return nn_conv_is_nd(l) ? nn_conv_nd_forward(l)
           : l->ranges      ? nn_ranges_forward(l, conv_range)
                       : dm_conv_forward(l->net->session, &l->u.conv, l->bottom[0]->data, nn_param_used(l, 0),
                                         nn_bias_of(l), l->top[0]->data);
}

static dm_status conv_range_data(const nn_layer *l, const nn_range *r)
{
    const dm_conv conv = conv_of(l, r);
    return dm_conv_backward_data(l->net->session, &conv, r->mine, r->w, r->part);
}

static dm_status conv_range_weights(const nn_layer *l, const nn_range *r, const double *beta)
{
    const dm_conv conv = conv_of(l, r);
    return dm_conv_backward_weights(l->net->session, &conv, r->x, r->mine, beta[0], r->dw, r->dbias);
}

/* Gradients of parameters that nobody learns are made all the same where their layer has others. */
dm_status nn_convolution_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    double beta[2] = {0, 0};
    if (nn_conv_is_nd(l)) {
        return nn_conv_nd_backward(l);
    }
    if (l->fused) {
        return nn_fused_backward(l);
    }
    dm_array bias = l->bias_behind ? DM_NO_ARRAY : nn_bias_diff(l);
    dm_status status = nn_one_beta(l, 0, bias.id ? 1 : -1, &beta[0]);
    if (status == DM_OK && l->ranges) {
        return nn_ranges_backward(l, beta, conv_range_data, conv_range_weights);
    }
    if (status == DM_OK) {
        status = dm_conv_backward_weights(s, &l->u.conv, l->bottom[0]->data, l->top[0]->diff, beta[0],
                                          l->param[0]->diff, bias);
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = dm_conv_backward_data(s, &l->u.conv, l->top[0]->diff, nn_param_used(l, 0), down);
        status = nn_down_done(l, 0, status);
    }
    return status;
}

/* --- Deconvolution: a convolution turned round. Its weights are those of the convolution that it transposes.
 */
dm_status nn_deconvolution_setup(nn_layer *l)
{
    int outputs = 0;
    nn_sides s;
    if (nn_conv_is_nd(l)) {
        return nn_conv_nd_setup(l);
    }
    dm_status status = nn_conv_fields(l, true, &s, &outputs);
    if (status != DM_OK) {
        return status;
    }
    const int64_t *b = l->bottom[0]->shape;
    status = nn_top_shape(l, 0, 4, (int64_t[]){b[0], outputs, s.side[0].from, s.side[1].from});
    return status == DM_OK
               ? nn_conv_params(
                     l, 4, (int64_t[]){b[1], outputs / l->u.conv.group, s.side[0].kernel, s.side[1].kernel},
                     outputs)
               : status;
}

dm_status nn_deconvolution_prepare(nn_layer *l)
{
    return nn_conv_is_nd(l) ? nn_conv_nd_prepare(l) : nn_ranges_prepare(l);
}

void nn_deconvolution_drop(nn_layer *l)
{
    nn_ranges_drop(l);
}

/* y = the transposed convolution of x, + bias. */
static dm_status deconvolve(const nn_layer *l, const dm_conv *conv, dm_array x, dm_array w, dm_array bias,
                            dm_array y)
{
    dm_status status = dm_conv_backward_data(l->net->session, conv, x, w, y);
    return status == DM_OK && bias.id ? dm_axpby(l->net->session, 1, bias, 1, y) : status;
}

static dm_status deconv_range(const nn_layer *l, const nn_range *r)
{
    const dm_conv conv = conv_of(l, r);
    return deconvolve(l, &conv, r->x, r->w, r->bias, r->mine);
}

dm_status nn_deconvolution_forward(nn_layer *l)
{
    return nn_conv_is_nd(l) ? nn_conv_nd_forward(l)
           : l->ranges      ? nn_ranges_forward(l, deconv_range)
                            : deconvolve(l, &l->u.conv, l->bottom[0]->data, nn_param_used(l, 0), nn_bias_of(l),
                                         l->top[0]->data);
}

static dm_status deconv_sums(const nn_layer *l, const dm_conv *conv, dm_array x, dm_array dy,
                             const double *beta, dm_array dw, dm_array db)
{
    dm_session *s = l->net->session;
    dm_status status = dm_conv_backward_weights(s, conv, dy, x, beta[0], dw, DM_NO_ARRAY);
    return status == DM_OK && db.id ? dm_channel_sums(s, conv->slices, 1, dy, DM_NO_ARRAY, beta[1], db)
                                    : status;
}

static dm_status deconv_range_data(const nn_layer *l, const nn_range *r)
{
    const dm_conv conv = conv_of(l, r);
    return dm_conv_forward(l->net->session, &conv, r->mine, r->w, DM_NO_ARRAY, r->part);
}

static dm_status deconv_range_weights(const nn_layer *l, const nn_range *r, const double *beta)
{
    const dm_conv conv = conv_of(l, r);
    return deconv_sums(l, &conv, r->x, r->mine, beta, r->dw, r->dbias);
}

dm_status nn_deconvolution_backward(nn_layer *l)
{
    const dm_array d = l->top[0]->diff;
    if (nn_conv_is_nd(l)) {
        return nn_conv_nd_backward(l);
    }
    const double beta[2] = {nn_param_beta(l, 0), l->params > 1 ? nn_param_beta(l, 1) : 0};
    if (l->ranges) {
        return nn_ranges_backward(l, beta, deconv_range_data, deconv_range_weights);
    }
    dm_status status =
        deconv_sums(l, &l->u.conv, l->bottom[0]->data, d, beta, l->param[0]->diff, nn_bias_diff(l));
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(
            l, 0, dm_conv_forward(l->net->session, &l->u.conv, d, nn_param_used(l, 0), DM_NO_ARRAY, down));
    }
    return status;
}

/* --- Pooling */
static dm_status need_image(const nn_layer *l)
{
    return l->bottom[0]->ndim == 4
               ? DM_OK
               : nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which has %d dims; %s layers need 4",
                               l->bottom[0]->name, l->bottom[0]->ndim, l->type->name);
}

dm_status nn_pooling_setup(nn_layer *l)
{
    dm_pool *pool = &l->u.pool;
    *pool = (dm_pool)DM_POOL_INIT;
    pool->slices = l->net->slices;
    pool->global = nn_int(l->own, P, "global_pooling") != 0;
    pool->round_down = nn_int(l->own, P, "round_mode") == 1;
    nn_use(l->own, "engine");
    int64_t method = nn_int(l->own, P, "pool");
    dm_status status = need_image(l);
    int random = l->net->phase == NN_TRAIN ? DM_POOL_STOCHASTIC : DM_POOL_WEIGHTED;
    pool->method = method == 0 ? DM_POOL_MAX : method == 1 ? DM_POOL_AVERAGE : random;
    status = status == DM_OK ? pair(l, "kernel_size", "kernel", 0, 1, pool->kernel) : status;
    status = status == DM_OK ? pair(l, "stride", "stride", 1, 1, pool->stride) : status;
    status = status == DM_OK ? pair(l, "pad", "pad", 0, 0, pool->pad) : status;
    if (status == DM_OK && method == 2 && (pool->pad[0] || pool->pad[1])) {
        status =
            nn_layer_fail(l, "pad", DM_ERR_UNSUPPORTED, "has padding and stochastic pooling, which has none");
    }
    if (status == DM_OK && pool->global) {
        const char *other = pool->kernel[0] || pool->kernel[1]             ? "a kernel"
                            : pool->pad[0] || pool->pad[1]                 ? "padding"
                            : pool->stride[0] != 1 || pool->stride[1] != 1 ? "a stride"
                                                                           : NULL;
        if (other) {
            status = nn_layer_fail(l, "pooling_param", DM_ERR_FORMAT, "has %s and global_pooling", other);
        }
    } else if (status == DM_OK && (pool->kernel[0] == 0 || pool->kernel[1] == 0)) {
        status = nn_layer_fail(l, "pooling_param", DM_ERR_FORMAT, "has no kernel_size");
    }
    if (status != DM_OK) {
        return status;
    }
    const int64_t *b = l->bottom[0]->shape;
    int64_t y[4], x[4] = {b[0], b[2], b[3], b[1]};
    status = dm_pool_shape(pool, x, y);
    int64_t elements = pool->global ? x[1] * x[2] : (int64_t)pool->kernel[0] * pool->kernel[1];
    l->top[0]->picks = elements <= UINT8_MAX && l->tops == 1 &&
                       (pool->method == DM_POOL_MAX || pool->method == DM_POOL_STOCHASTIC);
    if (status != DM_OK) {
        return nn_layer_fail(l, "pooling_param", status, "does not fit its bottom: %s", dm_error_message());
    }
    if (l->tops == 2 && pool->method != DM_POOL_MAX) {
        return nn_layer_fail(l, "top", DM_ERR_FORMAT,
                             "has 2 tops: only pooling by the largest element tells which it was");
    }
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = nn_top_shape(l, i, 4, (int64_t[]){y[0], y[3], y[1], y[2]});
        l->top[i]->numbers = i == 1;
    }
    return status;
}

/* The largest elements, and their places in the plane: row * columns + column, as floats. */
static dm_status pool_with_places(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_array which = DM_NO_ARRAY;
    dm_status status = nn_blob_array(l->net, l->top[1], DM_I32, &which);
    status =
        status == DM_OK ? dm_pool_forward(s, &l->u.pool, l->bottom[0]->data, l->top[0]->data, which) : status;
    status = status == DM_OK ? dm_copy(s, which, l->top[1]->data) : status;
    dm_status end = dm_array_destroy(s, which);
    return status == DM_OK ? end : status;
}

dm_status nn_pooling_forward(nn_layer *l)
{
    nn_layer *lrn = l->pooled;
    if (lrn) {
        return dm_lrn_pool_forward(l->net->session, &lrn->u.lrn, &l->u.pool, lrn->bottom[0]->data,
                                   l->top[0]->data, l->top[0]->which);
    }
    if (l->tops == 2) {
        return pool_with_places(l);
    }
    l->u.pool.seed = nn_layer_seed(l, l->net->pass);
    return dm_pool_forward(l->net->session, &l->u.pool, l->bottom[0]->data, l->top[0]->data, l->top[0]->which);
}

dm_status nn_pooling_backward(nn_layer *l)
{
    nn_layer *lrn = l->pooled;
    if (!l->down[0]) {
        return DM_OK;
    }
    if (lrn) {
        dm_array dx = nn_down(lrn, 0);
        return nn_down_done(lrn, 0,
                            dm_lrn_pool_backward(l->net->session, &lrn->u.lrn, &l->u.pool, lrn->bottom[0]->data,
                                                 l->top[0]->which, l->top[0]->diff, dx));
    }
    dm_session *s = l->net->session;
    dm_array down = nn_down(l, 0), diff = l->top[0]->diff;
    dm_status status = l->top[0]->which.id /* else with the seed of the forward pass */
                           ? dm_pool_backward_which(s, &l->u.pool, l->top[0]->which, diff, down)
                           : dm_pool_backward(s, &l->u.pool, l->bottom[0]->data, diff, down);
    return nn_down_done(l, 0, status);
}
