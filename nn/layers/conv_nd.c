/* Convolutions of blobs that are no images: N x C x one spatial dim, or three and more. The last two spatial
 * dims are those of images (one alone: its rows are 1). Of the dims before them, each place of the kernel is a
 * tap: shifted by it, the bottom gives channels of an image, tap by tap within each group, and each place of
 * these dims in the top is an image more. So the rest is a convolution of images. Weights are as in files.
 * Scratch: such images of the bottom and of the top, weights in their order and the gradient of these, each
 * with a view that convolutions take; and one tap in the bottom's order. */
#include "layers/layers.h"

#include <string.h>

enum { X, X_IMAGES, Y, Y_IMAGES, W, W_IMAGES, DW, DW_IMAGES, TAP, MOST_SPATIAL = DM_MAX_DIMS - 2 };
static const char C[] = "ConvolutionParameter";

bool nn_conv_is_nd(const nn_layer *l)
{
    return strcmp(l->type->name, "Convolution") == 0 && l->bottom[0]->ndim != 4;
}

/* What the fields say of spatial dim d. */
typedef struct side {
    int64_t kernel, stride, pad, dilation, in, out;
} side;

typedef struct shapes {
    int spatial, lead; /* dims; lead: those before the image */
    side side[MOST_SPATIAL];
    int64_t taps, images; /* of all lead dims; images: of a sample */
    int64_t samples, channels, outputs, group, kernel[2], in[2], out[2];
} shapes;

static dm_status read_field(const nn_layer *l, const char *field, int d, int spatial, int otherwise, int least,
                            int64_t *out)
{
    const int64_t given = nn_count(l->own, field);
    int value = otherwise;
    if (given > 1 && given != spatial) {
        return nn_layer_fail(l, field, DM_ERR_FORMAT, "has %lld values of %s; its bottom has %d spatial dims",
                             (long long)given, field, spatial);
    }
    dm_status status =
        given ? nn_to_int(l, field, nn_int_at(l->own, field, given == 1 ? 0 : d), least, &value) : DM_OK;
    *out = value;
    return status;
}

static dm_status read_side(const nn_layer *l, int d, int spatial, side *s)
{
    dm_status status = read_field(l, "kernel_size", d, spatial, 0, 1, &s->kernel);
    status = status == DM_OK ? read_field(l, "stride", d, spatial, 1, 1, &s->stride) : status;
    status = status == DM_OK ? read_field(l, "pad", d, spatial, 0, 0, &s->pad) : status;
    status = status == DM_OK ? read_field(l, "dilation", d, spatial, 1, 1, &s->dilation) : status;
    if (status != DM_OK) {
        return status;
    }
    s->in = l->bottom[0]->shape[2 + d];
    const int64_t room = s->in + 2 * s->pad - (s->dilation * (s->kernel - 1) + 1);
    s->out = room / s->stride + 1;
    return s->kernel == 0 ? nn_layer_fail(l, "convolution_param", DM_ERR_FORMAT, "has no kernel_size")
           : room < 0     ? nn_layer_fail(l, "convolution_param", DM_ERR_SHAPE,
                                          "has a kernel of %lld along dim %d, which has %lld with its padding",
                                          (long long)(s->dilation * (s->kernel - 1) + 1), 2 + d,
                                          (long long)(s->in + 2 * s->pad))
                          : DM_OK;
}

static dm_status shapes_of(const nn_layer *l, shapes *s)
{
    const nn_blob *b = l->bottom[0];
    dm_status status = DM_OK;
    *s =
        (shapes){.spatial = b->ndim - 2, .taps = 1, .images = 1, .kernel = {1, 1}, .in = {1, 1}, .out = {1, 1}};
    s->lead = s->spatial > 2 ? s->spatial - 2 : 0;
    s->samples = b->shape[0];
    s->channels = b->shape[1];
    s->outputs = nn_int(l->own, C, "num_output");
    s->group = nn_int(l->own, C, "group");
    for (int d = 0; status == DM_OK && d < s->spatial; d++) {
        status = read_side(l, d, s->spatial, &s->side[d]);
        const int at = d - s->lead + (s->spatial == 1);
        if (status == DM_OK && d < s->lead) {
            s->taps *= s->side[d].kernel;
            s->images *= s->side[d].out;
        } else if (status == DM_OK) {
            s->kernel[at] = s->side[d].kernel;
            s->in[at] = s->side[d].in;
            s->out[at] = s->side[d].out;
        }
    }
    return status;
}

dm_status nn_conv_nd_setup(nn_layer *l)
{
    static const char *const pairs[] = {"kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w"};
    dm_conv *conv = &l->u.conv;
    const nn_blob *b = l->bottom[0];
    int outputs = 0, axis = 0;
    shapes s;
    if (b->ndim < 3) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which has %d dims; it needs 3 or more",
                             b->name, b->ndim);
    }
    nn_use(l->own, "engine");
    if (nn_int(l->own, C, "force_nd_im2col")) {
        nn_say_unused(l, l->own, "force_nd_im2col", "it says how Caffe computes");
    }
    for (int i = 0; i < NN_COUNT(pairs); i++) {
        if (nn_has(l->own, pairs[i])) {
            return nn_layer_fail(l, pairs[i], DM_ERR_FORMAT, "has %s, but its bottom has %d spatial dims",
                                 pairs[i], b->ndim - 2);
        }
    }
    *conv = (dm_conv)DM_CONV_INIT;
    conv->slices = l->net->slices;
    conv->wire = l->net->wire;
    dm_status status = nn_to_int(l, "group", nn_int(l->own, C, "group"), 1, &conv->group);
    status =
        status == DM_OK ? nn_to_int(l, "num_output", nn_int(l->own, C, "num_output"), 1, &outputs) : status;
    status = status == DM_OK ? nn_axis(l, "axis", b->ndim, &axis) : status;
    if (status == DM_OK && axis != 1) {
        status = nn_layer_fail(l, "axis", DM_ERR_UNSUPPORTED, "has axis %d: only 1 is supported", axis);
    }
    status = status == DM_OK ? shapes_of(l, &s) : status;
    if (status != DM_OK) {
        return status;
    }
    if (s.channels % s.group || outputs % s.group) {
        return nn_layer_fail(l, "group", DM_ERR_SHAPE,
                             "has %d groups, which do not divide %lld channels and %d outputs", conv->group,
                             (long long)s.channels, outputs);
    }
    int64_t top[DM_MAX_DIMS] = {s.samples, outputs}, weights[DM_MAX_DIMS] = {outputs, s.channels / s.group};
    for (int d = 0; d < s.spatial; d++) {
        const int at = d - s.lead + (s.spatial == 1);
        top[2 + d] = s.side[d].out;
        weights[2 + d] = s.side[d].kernel;
        if (d >= s.lead) {
            conv->stride[at] = (int)s.side[d].stride;
            conv->pad[at] = (int)s.side[d].pad;
            conv->dilation[at] = (int)s.side[d].dilation;
        }
    }
    nn_param *weight = NULL, *bias = NULL;
    status = nn_top_shape(l, 0, b->ndim, top);
    status =
        status == DM_OK ? nn_new_param(l, b->ndim, weights, nn_sub(l->own, "weight_filler"), &weight) : status;
    if (status == DM_OK) {
        weight->rounds = true;
        status = nn_bias_param(l, outputs, &bias);
    }
    return status;
}

/* --- arrays. Images: samples x spatial dims x channels, the lead dims as in the top; as convolutions take
 * them, samples and lead dims are one. */
static dm_status make_images(nn_layer *l, int i, const shapes *s, const int64_t *image, int64_t channels,
                             dm_dtype type)
{
    nn_blob b = {.ndim = s->spatial + 2, .shape = {s->samples}};
    for (int d = 0; d < s->spatial; d++) {
        b.shape[1 + d] = d < s->lead ? s->side[d].out : image[d - s->lead + (s->spatial == 1)];
    }
    b.shape[1 + s->spatial] = channels;
    dm_status status = nn_blob_array(l->net, &b, type, &l->scratch[i]);
    return status == DM_OK ? dm_array_reshape(l->net->session, l->scratch[i], 4,
                                              (int64_t[]){s->samples * s->images, image[0], image[1], channels},
                                              &l->scratch[i + 1])
                           : status;
}

/* On all workers: outputs x rows x columns x taps x channels. */
static dm_status make_weights(nn_layer *l, int i, const shapes *s, dm_dtype type)
{
    dm_session *session = l->net->session;
    const dm_layout everywhere = dm_layout_replicated(session);
    const int64_t shape[] = {s->outputs, s->kernel[0], s->kernel[1], s->taps, s->channels / s->group};
    dm_status status = dm_array_create(session, type, 5, shape, &everywhere, &l->scratch[i]);
    return status == DM_OK ? dm_array_reshape(session, l->scratch[i], 4,
                                              (int64_t[]){shape[0], shape[1], shape[2], shape[3] * shape[4]},
                                              &l->scratch[i + 1])
                           : status;
}

dm_status nn_conv_nd_prepare(nn_layer *l)
{
    shapes s;
    dm_session *session = l->net->session;
    dm_array_info info = {.size = sizeof info};
    dm_status status = shapes_of(l, &s);
    status = status == DM_OK ? dm_array_query(session, l->top[0]->data, &info) : status;
    if (status != DM_OK) {
        return status;
    }
    const dm_dtype type = info.dtype;
    const int64_t inner = s.channels / s.group;
    nn_blob tap = {.ndim = l->bottom[0]->ndim, .shape = {s.samples, inner}};
    memcpy(tap.shape + 2, l->top[0]->shape + 2, (size_t)s.lead * sizeof *tap.shape);
    memcpy(tap.shape + 2 + s.lead, l->bottom[0]->shape + 2 + s.lead,
           (size_t)(s.spatial - s.lead) * sizeof *tap.shape);
    status = make_images(l, X, &s, s.in, s.taps * s.channels, type);
    status = status == DM_OK ? make_images(l, Y, &s, s.out, s.outputs, type) : status;
    status = status == DM_OK ? make_weights(l, W, &s, type) : status;
    if (status == DM_OK && l->net->phase == NN_TRAIN) {
        status = make_weights(l, DW, &s, DM_F32);
    }
    return status == DM_OK && l->down[0] ? nn_blob_array(l->net, &tap, type, &l->scratch[TAP]) : status;
}

/* --- between a blob's order and that of images. */
typedef struct views {
    dm_array images, blob, tap; /* of a tap in a group: in X; in the bottom, in its order; in TAP */
    bool any;                   /* not all of it is padding */
} views;

static dm_status end(dm_session *session, dm_status status, dm_array a)
{
    const dm_status ended = a.id ? dm_array_destroy(session, a) : DM_OK;
    return status == DM_OK ? ended : status;
}

static dm_status views_end(const nn_layer *l, dm_status status, const views *v)
{
    status = end(l->net->session, status, v->images);
    status = end(l->net->session, status, v->blob);
    return end(l->net->session, status, v->tap);
}

static dm_status views_of(const nn_layer *l, const shapes *s, int64_t group, int64_t tap, dm_array blob,
                          views *v)
{
    const int64_t inner = s->channels / s->group;
    int64_t at[DM_MAX_DIMS] = {0}, from[DM_MAX_DIMS] = {0}, images[DM_MAX_DIMS] = {s->samples};
    int64_t shape[DM_MAX_DIMS] = {s->samples, inner}, step[DM_MAX_DIMS] = {1, 1}, place[DM_MAX_DIMS] = {0};
    dm_session *session = l->net->session;
    *v = (views){.any = true};
    from[1] = group * inner;
    at[1 + s->spatial] = (group * s->taps + tap) * inner;
    images[1 + s->spatial] = inner;
    for (int d = s->lead - 1; d >= 0; d--) {
        const side *e = &s->side[d];
        const int64_t shift = tap % e->kernel * e->dilation - e->pad;
        const int64_t lo = shift < 0 ? (e->stride - 1 - shift) / e->stride : 0; /* places that are no padding */
        const int64_t past = e->in > shift ? (e->in - shift + e->stride - 1) / e->stride : 0;
        const int64_t hi = past < e->out ? past : e->out;
        tap /= e->kernel;
        v->any = v->any && hi > lo;
        at[1 + d] = place[2 + d] = lo;
        from[2 + d] = lo * e->stride + shift;
        step[2 + d] = e->stride;
        images[1 + d] = shape[2 + d] = hi - lo;
    }
    if (!v->any) {
        return DM_OK;
    }
    for (int d = s->lead; d < s->spatial; d++) {
        images[1 + d] = shape[2 + d] = s->side[d].in;
        step[2 + d] = 1;
    }
    dm_status status = dm_array_view(session, l->scratch[X], at, images, &v->images);
    status = status == DM_OK ? dm_array_slice(session, blob, from, shape, step, &v->blob) : status;
    return status == DM_OK && l->scratch[TAP].id
               ? dm_array_view(session, l->scratch[TAP], place, shape, &v->tap)
               : status;
}

/* The blob's order to that of images, which has the channels last, or back. */
static dm_status turn(const nn_layer *l, bool back, dm_array images, dm_array blob)
{
    const int ndim = l->bottom[0]->ndim;
    int perm[DM_MAX_DIMS] = {0};
    for (int d = 1; d < ndim; d++) {
        perm[d] = back ? (d == 1 ? ndim - 1 : d - 1) : (d == ndim - 1 ? 1 : d + 1);
    }
    return dm_permute(l->net->session, back ? images : blob, perm, back ? blob : images);
}

/* The bottom's taps to X. */
static dm_status gather(const nn_layer *l, const shapes *s)
{
    bool padded = false;
    for (int d = 0; d < s->lead; d++) {
        padded = padded || s->side[d].pad > 0;
    }
    dm_status status = padded ? dm_fill(l->net->session, l->scratch[X], 0) : DM_OK;
    for (int64_t i = 0; status == DM_OK && i < s->group * s->taps; i++) {
        views v;
        status = views_of(l, s, i / s->taps, i % s->taps, l->bottom[0]->data, &v);
        status = status == DM_OK && v.any ? turn(l, false, v.images, v.blob) : status;
        status = views_end(l, status, &v);
    }
    return status;
}

/* X, added up over the taps, to the gradient by the bottom. */
static dm_status scatter(const nn_layer *l, const shapes *s, dm_array down)
{
    dm_status status = dm_fill(l->net->session, down, 0);
    for (int64_t i = 0; status == DM_OK && i < s->group * s->taps; i++) {
        views v;
        status = views_of(l, s, i / s->taps, i % s->taps, down, &v);
        status = status == DM_OK && v.any ? turn(l, true, v.images, v.tap) : status;
        status = status == DM_OK && v.any ? dm_axpby(l->net->session, 1, v.tap, 1, v.blob) : status;
        status = views_end(l, status, &v);
    }
    return status;
}

/* A view of an array of weights whose lead dims are one: outputs x channels x taps x rows x columns. */
static dm_status five(const nn_layer *l, const shapes *s, dm_array w, dm_array *out)
{
    return dm_array_reshape(
        l->net->session, w, 5,
        (int64_t[]){s->outputs, s->channels / s->group, s->taps, s->kernel[0], s->kernel[1]}, out);
}

dm_status nn_conv_nd_forward(nn_layer *l)
{
    static const int to_images[] = {0, 3, 4, 2, 1};
    dm_session *session = l->net->session;
    shapes s;
    dm_array w = DM_NO_ARRAY;
    dm_status status = shapes_of(l, &s);
    status = status == DM_OK ? five(l, &s, nn_param_used(l, 0), &w) : status;
    status = status == DM_OK ? dm_permute(session, w, to_images, l->scratch[W]) : status;
    status = end(session, status, w);
    status = status == DM_OK ? gather(l, &s) : status;
    status = status == DM_OK ? dm_conv_forward(session, &l->u.conv, l->scratch[X_IMAGES], l->scratch[W_IMAGES],
                                               nn_bias_of(l), l->scratch[Y_IMAGES])
                             : status;
    return status == DM_OK ? turn(l, true, l->scratch[Y], l->top[0]->data) : status;
}

/* The gradient of the weights, to or added to that of the parameter. */
static dm_status weights(nn_layer *l, const shapes *s)
{
    static const int from_images[] = {0, 4, 3, 1, 2};
    dm_session *session = l->net->session;
    const double beta = nn_param_beta(l, 0);
    dm_array dw = DM_NO_ARRAY, more = DM_NO_ARRAY;
    dm_status status = dm_conv_backward_weights(session, &l->u.conv, l->scratch[X_IMAGES], l->scratch[Y_IMAGES],
                                                0, l->scratch[DW_IMAGES], DM_NO_ARRAY);
    status = status == DM_OK ? five(l, s, l->param[0]->diff, &dw) : status;
    if (status == DM_OK && beta != 0) {
        status = dm_array_like(session, dw, DM_F32, &more);
    }
    status = status == DM_OK ? dm_permute(session, l->scratch[DW], from_images, more.id ? more : dw) : status;
    status = status == DM_OK && more.id ? dm_axpby(session, 1, more, beta, dw) : status;
    return end(session, end(session, status, more), dw);
}

dm_status nn_conv_nd_backward(nn_layer *l)
{
    dm_session *session = l->net->session;
    const dm_array dy = l->scratch[Y_IMAGES];
    shapes s;
    dm_status status = shapes_of(l, &s);
    status = status == DM_OK ? turn(l, false, l->scratch[Y], l->top[0]->diff) : status;
    status = status == DM_OK ? weights(l, &s) : status;
    if (status == DM_OK && l->params > 1) {
        status =
            dm_channel_sums(session, l->net->slices, 1, dy, DM_NO_ARRAY, nn_param_beta(l, 1), nn_bias_diff(l));
    }
    if (status != DM_OK || !l->down[0]) {
        return status;
    }
    dm_array down = nn_down(l, 0); /* the taps are no more needed: theirs take their place */
    status = dm_conv_backward_data(session, &l->u.conv, dy, l->scratch[W_IMAGES], l->scratch[X_IMAGES]);
    return nn_down_done(l, 0, status == DM_OK ? scatter(l, &s, down) : status);
}
