/* Convolution and Deconvolution of blobs that are no images read by axis 1: with one spatial dim, none, or
 * three and more, or with other dims than that of the samples before the axis, which are of the batch like it.
 * The last two spatial dims are those of images (one alone: its rows are 1). Of those before them, the lead
 * dims, each place of the kernel is a tap: shifted by it, the elements that windows lie in give channels of an
 * image, tap by tap within each group, and each window of these dims is an image more. So the rest is a
 * convolution of images; a Deconvolution is its gradient. Scratch: such images of the elements (X) and with an
 * element for each window (Y), weights in their order (W) and the gradient of these (DW), each with a view that
 * convolutions take; and where there are lead dims, all elements with the channels last (ALL), and of several
 * groups a tap of them (TAP). */
#include "layers/layers.h"

#include <string.h>

enum { X, X_IMAGES, Y, Y_IMAGES, W, W_IMAGES, DW, DW_IMAGES, ALL, TAP };

bool nn_conv_is_nd(const nn_layer *l)
{
    const int64_t axis = nn_int(l->own, "ConvolutionParameter", "axis");
    return (strcmp(l->type->name, "Convolution") == 0 || strcmp(l->type->name, "Deconvolution") == 0) &&
           (l->bottom[0]->ndim != 4 || (axis != 1 && axis != -3));
}

typedef struct shapes {
    nn_sides s;
    bool back;            /* a Deconvolution: it reads Y and makes X */
    int lead;             /* dims */
    int64_t taps, images; /* of all lead dims; images: of the whole batch */
    int64_t channels, outputs, group, kernel[2], from[2], windows[2]; /* of the convolution of images */
} shapes;

static bool is_back(const nn_layer *l)
{
    return strcmp(l->type->name, "Deconvolution") == 0;
}

static dm_status shapes_of(const nn_layer *l, shapes *h)
{
    const nn_blob *b = l->bottom[0];
    *h = (shapes){.taps = 1, .images = 1, .kernel = {1, 1}, .from = {1, 1}, .windows = {1, 1}};
    h->back = is_back(l);
    dm_status status = nn_sides_read(l, h->back, &h->s);
    const int axis = h->s.axis, spatial = h->s.spatial;
    h->lead = spatial > 2 ? spatial - 2 : 0;
    h->group = l->u.conv.group;
    h->channels = (h->back ? l->top[0] : b)->shape[axis];
    h->outputs = (h->back ? b : l->top[0])->shape[axis];
    for (int d = 0; d < axis; d++) {
        h->images *= b->shape[d];
    }
    for (int d = 0; d < spatial; d++) {
        const nn_side *side = &h->s.side[d];
        const int at = d - spatial + 2;
        if (d < h->lead) {
            h->taps *= side->kernel;
            h->images *= side->windows;
        } else {
            h->kernel[at] = side->kernel;
            h->from[at] = side->from;
            h->windows[at] = side->windows;
        }
    }
    return status;
}

dm_status nn_conv_nd_setup(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    const bool back = is_back(l);
    int outputs = 0;
    nn_sides s;
    dm_status status = nn_conv_fields(l, back, &s, &outputs);
    if (status != DM_OK) {
        return status;
    }
    const int64_t channels = b->shape[s.axis], of = back ? channels : outputs, by = back ? outputs : channels;
    int64_t top[DM_MAX_DIMS], weights[DM_MAX_DIMS] = {of, by / l->u.conv.group};
    memcpy(top, b->shape, sizeof top);
    top[s.axis] = outputs;
    for (int d = 0; d < s.spatial; d++) {
        top[s.axis + 1 + d] = back ? s.side[d].from : s.side[d].windows;
        weights[2 + d] = s.side[d].kernel;
    }
    status = nn_top_shape(l, 0, b->ndim, top);
    return status == DM_OK ? nn_conv_params(l, 2 + s.spatial, weights, outputs) : status;
}

/* --- arrays: dims before the axis, spatial dims, channels. As convolutions take them, all before the image is
 * one dim. */
static dm_status make_images(nn_layer *l, int i, const shapes *h, dm_dtype type)
{
    const int axis = h->s.axis, spatial = h->s.spatial;
    const int64_t channels = i == Y ? h->outputs : i == X ? h->taps * h->channels : h->channels;
    const int64_t *image = i == Y ? h->windows : h->from;
    nn_blob b = {.ndim = axis + spatial + 1};
    memcpy(b.shape, l->bottom[0]->shape, (size_t)axis * sizeof *b.shape);
    for (int d = 0; d < spatial; d++) {
        const bool windows = i == Y || (i != ALL && d < h->lead);
        b.shape[axis + d] = windows ? h->s.side[d].windows : h->s.side[d].from;
    }
    b.shape[axis + spatial] = channels;
    dm_status status = nn_blob_array(l->net, &b, type, &l->scratch[i]);
    return status == DM_OK && (i == X || i == Y)
               ? dm_array_reshape(l->net->session, l->scratch[i], 4,
                                  (int64_t[]){h->images, image[0], image[1], channels}, &l->scratch[i + 1])
               : status;
}

/* On all workers: outputs x rows x columns x taps x channels. Weights of two spatial dims lie so themselves. */
static dm_status make_weights(nn_layer *l, int i, const shapes *h, dm_dtype type)
{
    dm_session *session = l->net->session;
    const dm_layout everywhere = dm_layout_replicated(session);
    const int64_t shape[] = {h->outputs, h->kernel[0], h->kernel[1], h->taps, h->channels / h->group};
    dm_status status = dm_array_create(session, type, 5, shape, &everywhere, &l->scratch[i]);
    return status == DM_OK ? dm_array_reshape(session, l->scratch[i], 4,
                                              (int64_t[]){shape[0], shape[1], shape[2], shape[3] * shape[4]},
                                              &l->scratch[i + 1])
                           : status;
}

dm_status nn_conv_nd_prepare(nn_layer *l)
{
    shapes h;
    dm_array_info info = {.size = sizeof info};
    dm_status status = shapes_of(l, &h);
    status = status == DM_OK ? dm_array_query(l->net->session, l->top[0]->data, &info) : status;
    status = status == DM_OK ? make_images(l, X, &h, info.dtype) : status;
    status = status == DM_OK ? make_images(l, Y, &h, info.dtype) : status;
    status = status == DM_OK && h.lead > 0 ? make_images(l, ALL, &h, DM_F32) : status;
    if (status == DM_OK && h.lead > 0 && h.group > 1 && (h.back || l->down[0])) {
        status = make_images(l, TAP, &h, info.dtype);
    }
    if (status == DM_OK && h.s.spatial != 2) {
        status = make_weights(l, W, &h, info.dtype);
        status = status == DM_OK && l->net->phase == NN_TRAIN ? make_weights(l, DW, &h, DM_F32) : status;
    }
    return status;
}

/* --- between a blob's order and that of images. */
static dm_status end(dm_session *session, dm_status status, dm_array a)
{
    const dm_status ended = a.id ? dm_array_destroy(session, a) : DM_OK;
    return status == DM_OK ? ended : status;
}

static dm_status turn(const nn_layer *l, const shapes *h, bool to_blob, dm_array images, const nn_blob *blob,
                      dm_array array)
{
    const int last = blob->ndim - 1, axis = h->s.axis;
    int perm[DM_MAX_DIMS] = {0};
    for (int d = 0; d <= last; d++) {
        const int dim = nn_array_dim(blob, d < axis ? d : d < last ? d + 1 : axis);
        perm[to_blob ? dim : d] = to_blob ? d : dim;
    }
    return dm_permute(l->net->session, to_blob ? images : array, perm, to_blob ? array : images);
}

/* What a tap takes: windows from `at` on of X, and elements from `from` on of ALL. */
typedef struct reach {
    int64_t at[DM_MAX_DIMS], from[DM_MAX_DIMS], shape[DM_MAX_DIMS], step[DM_MAX_DIMS];
    bool any; /* not all of it is padding */
} reach;

static reach reach_of(const nn_layer *l, const shapes *h, int64_t tap)
{
    const int axis = h->s.axis, last = axis + h->s.spatial;
    reach r = {.any = true};
    for (int d = last - 1; d >= 0; d--) {
        const nn_side *side = d >= axis ? &h->s.side[d - axis] : NULL;
        r.shape[d] = side ? side->from : l->bottom[0]->shape[d];
        r.step[d] = 1;
        if (side && d - axis < h->lead) {
            r.shape[d] = nn_side_reach(side, tap % side->kernel, &r.at[d], &r.from[d]);
            r.step[d] = side->stride;
            tap /= side->kernel;
            r.any = r.any && r.shape[d] > 0;
        }
    }
    r.step[last] = 1;
    return r;
}

/* Channels of it in an array. */
static dm_status part(const nn_layer *l, const shapes *h, const reach *r, int array, int64_t channel,
                      int64_t count, dm_array *out)
{
    const int last = h->s.axis + h->s.spatial;
    int64_t lo[DM_MAX_DIMS], shape[DM_MAX_DIMS];
    memcpy(lo, array == ALL ? r->from : r->at, sizeof lo);
    memcpy(shape, r->shape, sizeof shape);
    lo[last] = channel;
    shape[last] = count;
    return array == ALL ? dm_array_slice(l->net->session, l->scratch[ALL], lo, shape, r->step, out)
                        : dm_array_view(l->net->session, l->scratch[array], lo, shape, out);
}

/* From one array to, or added to, another. */
static dm_status move(const nn_layer *l, const shapes *h, const reach *r, int from, int64_t from_channel,
                      int to, int64_t to_channel, int64_t count, bool add)
{
    dm_session *session = l->net->session;
    dm_array x = DM_NO_ARRAY, y = DM_NO_ARRAY;
    dm_status status = part(l, h, r, from, from_channel, count, &x);
    status = status == DM_OK ? part(l, h, r, to, to_channel, count, &y) : status;
    if (status == DM_OK) {
        status = add ? dm_axpby(session, 1, x, 1, y) : dm_copy(session, x, y);
    }
    return end(session, end(session, status, x), y);
}

/* ALL's elements to X, or X, added up over the taps, to ALL. The channels of a group are few: those of all
 * groups are added at once. */
static dm_status taps(const nn_layer *l, const shapes *h, bool add)
{
    const int64_t inner = h->channels / h->group;
    const bool joined = h->group > 1;
    bool zeros = add;
    for (int d = 0; d < h->lead; d++) {
        zeros = zeros || h->s.side[d].pad > 0;
    }
    dm_status status = zeros ? dm_fill(l->net->session, l->scratch[add ? ALL : X], 0) : DM_OK;
    for (int64_t tap = 0; status == DM_OK && tap < h->taps; tap++) {
        const reach r = reach_of(l, h, tap);
        for (int64_t g = 0; status == DM_OK && r.any && g < h->group; g++) {
            const int64_t x = (g * h->taps + tap) * inner, all = g * inner;
            status = add ? move(l, h, &r, X, x, joined ? TAP : ALL, all, inner, !joined)
                         : move(l, h, &r, ALL, all, X, x, inner, false);
        }
        if (status == DM_OK && r.any && add && joined) {
            status = move(l, h, &r, TAP, 0, ALL, 0, h->channels, true);
        }
    }
    return status;
}

/* All elements with the channels last. */
static dm_array elements(const nn_layer *l, const shapes *h)
{
    return l->scratch[h->lead > 0 ? ALL : X];
}

/* An array of the blob that windows lie in, to X. */
static dm_status gather(const nn_layer *l, const shapes *h, const nn_blob *blob, dm_array array)
{
    dm_status status = turn(l, h, false, elements(l, h), blob, array);
    return status == DM_OK && h->lead > 0 ? taps(l, h, false) : status;
}

/* X to such an array; bias: added, or none. */
static dm_status scatter(const nn_layer *l, const shapes *h, dm_array bias, const nn_blob *blob, dm_array array)
{
    dm_status status = h->lead > 0 ? taps(l, h, true) : DM_OK;
    status = status == DM_OK && bias.id ? dm_axpby(l->net->session, 1, bias, 1, elements(l, h)) : status;
    return status == DM_OK ? turn(l, h, true, elements(l, h), blob, array) : status;
}

/* --- weights. A view of an array of theirs with one lead dim: outputs x channels x taps x rows x columns. */
static dm_status five(const nn_layer *l, const shapes *h, dm_array w, dm_array *out)
{
    return dm_array_reshape(
        l->net->session, w, 5,
        (int64_t[]){h->outputs, h->channels / h->group, h->taps, h->kernel[0], h->kernel[1]}, out);
}

static dm_array weights_of(const nn_layer *l)
{
    return l->scratch[W].id ? l->scratch[W_IMAGES] : nn_param_used(l, 0);
}

static dm_status read_weights(const nn_layer *l, const shapes *h)
{
    static const int to_images[] = {0, 3, 4, 2, 1};
    dm_array w = DM_NO_ARRAY;
    if (!l->scratch[W].id) {
        return DM_OK;
    }
    dm_status status = five(l, h, nn_param_used(l, 0), &w);
    status = status == DM_OK ? dm_permute(l->net->session, w, to_images, l->scratch[W]) : status;
    return end(l->net->session, status, w);
}

/* The gradient of the weights from X and Y, to or added to that of the parameter. */
static dm_status learn_weights(nn_layer *l, const shapes *h)
{
    static const int from_images[] = {0, 4, 3, 1, 2};
    dm_session *session = l->net->session;
    const double beta = nn_param_beta(l, 0);
    const bool turned = l->scratch[DW].id;
    const dm_array diff = l->param[0]->diff;
    dm_array dw = DM_NO_ARRAY, more = DM_NO_ARRAY;
    dm_status status =
        dm_conv_backward_weights(session, &l->u.conv, l->scratch[X_IMAGES], l->scratch[Y_IMAGES],
                                 turned ? 0 : beta, turned ? l->scratch[DW_IMAGES] : diff, DM_NO_ARRAY);
    if (status != DM_OK || !turned) {
        return status;
    }
    status = five(l, h, diff, &dw);
    if (status == DM_OK && beta != 0) {
        status = dm_array_like(session, dw, DM_F32, &more);
    }
    status = status == DM_OK ? dm_permute(session, l->scratch[DW], from_images, more.id ? more : dw) : status;
    status = status == DM_OK && more.id ? dm_axpby(session, 1, more, beta, dw) : status;
    return end(session, end(session, status, more), dw);
}

/* --- passes. */
dm_status nn_conv_nd_forward(nn_layer *l)
{
    dm_session *session = l->net->session;
    const nn_blob *b = l->bottom[0], *top = l->top[0];
    const dm_array x = l->scratch[X_IMAGES], y = l->scratch[Y_IMAGES], bias = nn_bias_of(l);
    shapes h;
    dm_status status = shapes_of(l, &h);
    status = status == DM_OK ? read_weights(l, &h) : status;
    if (status == DM_OK && h.back) {
        status = turn(l, &h, false, l->scratch[Y], b, b->data);
        status = status == DM_OK ? dm_conv_backward_data(session, &l->u.conv, y, weights_of(l), x) : status;
        return status == DM_OK ? scatter(l, &h, bias, top, top->data) : status;
    }
    status = status == DM_OK ? gather(l, &h, b, b->data) : status;
    status = status == DM_OK ? dm_conv_forward(session, &l->u.conv, x, weights_of(l), bias, y) : status;
    return status == DM_OK ? turn(l, &h, true, l->scratch[Y], top, top->data) : status;
}

/* X and Y hold what the forward pass has read; the gradient by that takes its place. */
dm_status nn_conv_nd_backward(nn_layer *l)
{
    dm_session *session = l->net->session;
    const nn_blob *b = l->bottom[0], *top = l->top[0];
    const dm_array x = l->scratch[X_IMAGES], y = l->scratch[Y_IMAGES];
    shapes h;
    dm_status status = shapes_of(l, &h);
    if (status == DM_OK) {
        status = h.back ? gather(l, &h, top, top->diff) : turn(l, &h, false, l->scratch[Y], top, top->diff);
    }
    status = status == DM_OK ? learn_weights(l, &h) : status;
    if (status == DM_OK && l->params > 1) {
        status = dm_channel_sums(session, l->net->slices, 1, h.back ? elements(l, &h) : y, DM_NO_ARRAY,
                                 nn_param_beta(l, 1), nn_bias_diff(l));
    }
    if (status != DM_OK || !l->down[0]) {
        return status;
    }
    const dm_array down = nn_down(l, 0);
    if (h.back) {
        status = dm_conv_forward(session, &l->u.conv, x, weights_of(l), DM_NO_ARRAY, y);
        return nn_down_done(l, 0, status == DM_OK ? turn(l, &h, true, l->scratch[Y], b, down) : status);
    }
    status = dm_conv_backward_data(session, &l->u.conv, y, weights_of(l), x);
    return nn_down_done(l, 0, status == DM_OK ? scatter(l, &h, DM_NO_ARRAY, b, down) : status);
}
