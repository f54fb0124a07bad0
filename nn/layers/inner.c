/* InnerProduct: weights of images lie with the channels last, as the images do. Large layers compute their
 * outputs in ranges (net/split.c): the calls and their shapes are the same where workers share the batch and
 * where they share the features, so the bits are too. */
#include "layers/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char I[] = "InnerProductParameter";

/* A range of outputs. By features all of it is on one worker, but y and dy, which are columns of the blob. */
typedef struct range {
    dm_array w, bias, dw, dbias, y, dy; /* views */
    dm_array mine;                      /* by features: its columns of y, and later of dy */
    dm_array part;                      /* its part of the gradient by x */
} range;

typedef struct inner {
    dm_session *session;
    int ranges, holders, each; /* each: ranges of a worker */
    range *range;
    dm_array *x; /* by features: the bottom, on each worker that has ranges */
} inner;

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
    status = status == DM_OK ? nn_new_param(l, 2, shape, nn_sub(l->own, "weight_filler"), &weight) : status;
    if (status == DM_OK) {
        weight->rounds = true;
    }
    if (status == DM_OK && b->image) {
        int64_t folded[4] = {outputs, b->shape[1], b->shape[2], b->shape[3]};
        if (weight->owner != l && memcmp(folded, weight->folded, sizeof folded) != 0) {
            return nn_layer_fail(l, "param", DM_ERR_UNSUPPORTED,
                                 "shares weights with a layer that reads images of another shape");
        }
        weight->order = NN_CHANNELS_LAST;
        memcpy(weight->folded, folded, sizeof folded);
    }
    return status == DM_OK ? nn_bias_param(l, outputs, &bias) : status;
}

/* The rows [first, first + count) of an array; nothing of nothing. */
static dm_status rows_of(dm_session *s, dm_array a, int64_t first, int64_t count, dm_array *out)
{
    return a.id ? dm_rows(s, a, first, count, out) : DM_OK;
}

static dm_status columns_of(dm_session *s, dm_array a, int64_t samples, int64_t first, int64_t count,
                            dm_array *out)
{
    return a.id ? dm_array_view(s, a, (int64_t[]){0, first}, (int64_t[]){samples, count}, out) : DM_OK;
}

static dm_status prepare_range(nn_layer *l, range *r, int64_t first, int64_t count, int worker)
{
    dm_session *s = l->net->session;
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    const int64_t samples = y->shape[0];
    dm_layout layout = dm_layout_single(worker);
    dm_array_info info = {.size = sizeof info};
    dm_status status = rows_of(s, nn_param_used(l, 0), first, count, &r->w);
    status = status == DM_OK ? rows_of(s, l->param[0]->diff, first, count, &r->dw) : status;
    status = status == DM_OK ? rows_of(s, nn_bias_of(l), first, count, &r->bias) : status;
    status = status == DM_OK ? rows_of(s, nn_bias_diff(l), first, count, &r->dbias) : status;
    status = status == DM_OK ? columns_of(s, y->data, samples, first, count, &r->y) : status;
    status = status == DM_OK ? columns_of(s, y->diff, samples, first, count, &r->dy) : status;
    if (status == DM_OK && l->by_features) {
        status = dm_array_query(s, y->data, &info);
        if (status == DM_OK) {
            status = dm_array_create(s, info.dtype, 2, (int64_t[]){samples, count}, &layout, &r->mine);
        }
    }
    if (status != DM_OK || !l->down[0]) {
        return status;
    }
    if (!l->by_features) {
        layout = dm_layout_batch(s, samples, l->net->slices);
    }
    status = dm_array_query(s, x->diff, &info);
    return status == DM_OK ? dm_array_create(s, info.dtype, info.ndim, info.shape, &layout, &r->part) : status;
}

dm_status nn_inner_prepare(nn_layer *l)
{
    dm_session *s = l->net->session;
    const int64_t outputs = l->param[0]->shape[0];
    if (nn_inner_by_rows(l)) {
        return nn_inner_rows_prepare(l);
    }
    if (l->ranges == 0) {
        return DM_OK;
    }
    const nn_deal deal = nn_deal_out(l->net, outputs, (outputs + l->ranges - 1) / l->ranges);
    dm_array_info info = {.size = sizeof info};
    inner *in = calloc(1, sizeof *in);
    if (!in) {
        return nn_no_memory();
    }
    l->u.state = in;
    *in = (inner){
        .session = s, .ranges = deal.ranges, .holders = l->by_features ? deal.holders : 0, .each = deal.each};
    in->range = calloc((size_t)in->ranges, sizeof *in->range);
    in->x = calloc((size_t)in->holders + 1, sizeof *in->x);
    if (!in->range || !in->x) {
        return nn_no_memory();
    }
    dm_status status = dm_array_query(s, l->bottom[0]->data, &info);
    for (int q = 0; status == DM_OK && q < in->holders; q++) {
        dm_layout layout = dm_layout_single(q);
        status = dm_array_create(s, info.dtype, info.ndim, info.shape, &layout, &in->x[q]);
    }
    for (int i = 0; status == DM_OK && i < in->ranges; i++) {
        int64_t first = i * deal.size, count = outputs - first < deal.size ? outputs - first : deal.size;
        status = prepare_range(l, &in->range[i], first, count, i / deal.each);
    }
    return status;
}

void nn_inner_drop(nn_layer *l)
{
    inner *in = l->u.state;
    dm_status status = DM_OK;
    for (int i = 0; in && in->range && i < in->ranges; i++) {
        const range *r = &in->range[i];
        const dm_array all[] = {r->w, r->bias, r->dw, r->dbias, r->y, r->dy, r->mine, r->part};
        for (int k = 0; k < NN_COUNT(all); k++) {
            dm_status end = dm_array_destroy(in->session, all[k]);
            status = status == DM_OK ? end : status;
        }
    }
    for (int q = 0; in && in->x && q < in->holders; q++) {
        dm_status end = dm_array_destroy(in->session, in->x[q]);
        status = status == DM_OK ? end : status;
    }
    if (status != DM_OK) {
        nn_log(l->net, "an array was gone before its net ended: %s", dm_error_message());
    }
    if (in) {
        free(in->range);
        free(in->x);
        free(in);
    }
}

/* By features all slices are on one worker; without slices there is one. */
static int slices_of(const nn_layer *l)
{
    return l->by_features && l->net->slices == 0 ? 1 : l->net->slices;
}

static dm_array x_of(const nn_layer *l, int i)
{
    const inner *in = l->u.state;
    return l->by_features ? in->x[i / in->each] : l->bottom[0]->data;
}

dm_status nn_inner_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    const inner *in = l->ranges ? l->u.state : NULL;
    dm_status status = DM_OK;
    if (nn_inner_by_rows(l)) {
        return nn_inner_rows_forward(l);
    }
    if (!in) {
        return dm_inner_forward(s, l->net->slices, l->bottom[0]->data, nn_param_used(l, 0), nn_bias_of(l),
                                l->top[0]->data);
    }
    for (int q = 0; status == DM_OK && q < in->holders; q++) {
        status = dm_copy(s, l->bottom[0]->data, in->x[q]);
    }
    for (int i = 0; status == DM_OK && i < in->ranges; i++) {
        const range *r = &in->range[i];
        status = dm_inner_forward(s, slices_of(l), x_of(l, i), r->w, r->bias, l->by_features ? r->mine : r->y);
    }
    for (int i = 0; status == DM_OK && i < in->ranges && l->by_features; i++) {
        status = dm_copy(s, in->range[i].mine, in->range[i].y);
    }
    return status;
}

/* out = the sum of the parts, from the first to the last. */
static dm_status add_parts(const nn_layer *l, dm_array out)
{
    enum { TERMS = 8 };
    static const char *const names[TERMS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const inner *in = l->u.state;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < in->ranges;) {
        char text[4 * TERMS] = "";
        dm_map_arg args[TERMS];
        int n = 0;
        for (; n < TERMS && (i < in->ranges || n == 0); n++) {
            bool sum = n == 0 && i > 0; /* of those before */
            args[n] = (dm_map_arg)DM_ARG(names[n], sum ? out : in->range[i].part);
            snprintf(text + strlen(text), sizeof text - strlen(text), n ? " + %s" : "%s", names[n]);
            i += !sum;
        }
        status = n == 1 ? dm_copy(l->net->session, in->range[0].part, out)
                        : dm_map(l->net->session, text, n, args, out);
    }
    return status;
}

static dm_status by_ranges(nn_layer *l, double beta)
{
    dm_session *s = l->net->session;
    const inner *in = l->u.state;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < in->ranges && l->by_features; i++) {
        status = dm_copy(s, in->range[i].dy, in->range[i].mine);
    }
    for (int i = 0; status == DM_OK && i < in->ranges; i++) {
        const range *r = &in->range[i];
        dm_array dy = l->by_features ? r->mine : r->dy;
        if (l->down[0]) {
            status = dm_inner_backward_data(s, slices_of(l), dy, r->w, r->part);
        }
        if (status == DM_OK) {
            status = nn_inner_weights(l, slices_of(l), x_of(l, i), dy, beta, r->dw, r->dbias);
        }
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, add_parts(l, down));
    }
    return status;
}

dm_status nn_inner_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    if (nn_inner_by_rows(l)) {
        return nn_inner_rows_backward(l);
    }
    double beta = nn_param_beta(l, 0);
    dm_status status =
        l->params > 1 && nn_param_beta(l, 1) != beta
            ? nn_layer_fail(l, "param", DM_ERR_UNSUPPORTED, "shares its weights or its bias, but not both")
            : DM_OK;
    if (status == DM_OK && l->ranges) {
        return by_ranges(l, beta);
    }
    if (status == DM_OK) {
        status = nn_inner_weights(l, l->net->slices, l->bottom[0]->data, l->top[0]->diff, beta,
                                  l->param[0]->diff, nn_bias_diff(l));
    }
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(
            l, 0, dm_inner_backward_data(s, l->net->slices, l->top[0]->diff, nn_param_used(l, 0), down));
    }
    return status;
}
