/* The table of layers, and what its rows use. */
#include "layers/layers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER_NONE(f) NULL
#define POINTER_HAS(f) f
static const nn_layer_type types[] = {
#define NN_LAYER(f, name, field, b0, b1, t0, t1, traits, grads, prepare, backward, drop)                       \
    {name,                                                                                                     \
     field,                                                                                                    \
     {b0, b1},                                                                                                 \
     {t0, t1},                                                                                                 \
     traits,                                                                                                   \
     grads,                                                                                                    \
     nn_##f##_setup,                                                                                           \
     POINTER_##prepare(nn_##f##_prepare),                                                                      \
     nn_##f##_forward,                                                                                         \
     POINTER_##backward(nn_##f##_backward),                                                                    \
     POINTER_##drop(nn_##f##_drop)},
#include "layers/layers.def"
#undef NN_LAYER
};

const nn_layer_type *nn_layer_types(int *count)
{
    *count = NN_COUNT(types);
    return types;
}

const nn_layer_type *nn_layer_type_of(const char *name)
{
    for (int i = 0; i < NN_COUNT(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

dm_status nn_layer_fail(const nn_layer *l, const char *field, dm_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const nn_message *m = l->own && nn_schema_by_name(l->own->type, field) ? l->own : l->message;
    return nn_fail_at(m, nn_line(m, field), status, "layer '%s' %s", l->name, text);
}

dm_status nn_top_shape(nn_layer *l, int top, int ndim, const int64_t *shape)
{
    nn_blob *b = l->top[top];
    if (ndim == 0) { /* of a number of the whole batch */
        return nn_top_number(l, top);
    }
    b->ndim = ndim;
    b->image = ndim == 4;
    b->count = 1;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] <= 0 || shape[d] > (INT64_C(1) << 40) / b->count) {
            return nn_layer_fail(l, "top", DM_ERR_SHAPE,
                                 "makes '%s' with extent %lld in dim %d: there must be 1 to 2^40 elements",
                                 b->name, (long long)shape[d], d);
        }
        b->shape[d] = shape[d];
        b->count *= shape[d];
    }
    return DM_OK;
}

dm_status nn_top_number(nn_layer *l, int top)
{
    nn_blob *b = l->top[top];
    b->ndim = 0;
    b->count = 1;
    b->whole = true;
    return DM_OK;
}

dm_status nn_axis(const nn_layer *l, const char *field, int ndim, int *out)
{
    int64_t axis = nn_int(l->own, nn_schema_by_name("LayerParameter", l->type->field)->of, field);
    if (axis < -ndim || axis >= ndim) {
        return nn_layer_fail(l, field, DM_ERR_SHAPE, "has %s %lld, but its bottom has %d dims", field,
                             (long long)axis, ndim);
    }
    *out = (int)(axis < 0 ? axis + ndim : axis);
    return DM_OK;
}

uint64_t nn_layer_number(const nn_layer *l)
{
    return nn_hash(l->net->seed, (uint64_t)l->index + 1000003);
}

uint64_t nn_layer_seed(const nn_layer *l, int64_t pass)
{
    return nn_pass_seed(l->net, nn_hash(nn_layer_number(l), 0), pass);
}

uint64_t nn_pass_seed(const nn_net *net, uint64_t seed, int64_t pass)
{
    return net->recording ? seed : dm_program_seed(seed, pass);
}

int nn_array_dim(const nn_blob *blob, int axis)
{
    static const int of_image[] = {0, 3, 1, 2};
    return blob->image ? of_image[axis] : axis;
}

dm_status nn_blob_array(const nn_net *net, const nn_blob *b, dm_dtype dtype, dm_array *out)
{
    int64_t shape[DM_MAX_DIMS] = {1};
    int ndim = b->whole ? 1 : b->ndim;
    for (int d = 0; d < b->ndim; d++) {
        shape[nn_array_dim(b, d)] = b->shape[d];
    }
    dm_layout layout =
        b->whole || ndim == 0 ? dm_layout_single(0) : dm_layout_batch(net->session, shape[0], net->slices);
    return dm_array_create(net->session, dtype, ndim, shape, &layout, out);
}

dm_status nn_new_state(nn_layer *l, int ndim, const int64_t *shape, nn_param **out)
{
    bool before = l->need_backward;
    const nn_message *spec =
        l->params < nn_count(l->message, "param") ? nn_sub_at(l->message, "param", l->params) : NULL;
    if (nn_has(spec, "lr_mult") && nn_real(spec, "ParamSpec", "lr_mult") != 0) {
        return nn_fail_at(spec, nn_line(spec, "lr_mult"), DM_ERR_FORMAT,
                          "layer '%s' learns nothing here: lr_mult must be 0", l->name);
    }
    dm_status status = nn_new_param(l, ndim, shape, NULL, out);
    if (status == DM_OK) {
        (*out)->lr_mult = 0;
        l->need_backward = before;
    }
    return status;
}

dm_status nn_scratch(nn_layer *l, int i, bool image, int ndim, const int64_t *shape)
{
    nn_blob b = {.ndim = ndim, .image = image};
    memcpy(b.shape, shape, (size_t)ndim * sizeof *shape);
    return nn_blob_array(l->net, &b, DM_F32, &l->scratch[i]);
}

dm_status nn_scratch_everywhere(nn_layer *l, int i, int64_t count)
{
    dm_layout everywhere = dm_layout_replicated(l->net->session);
    return dm_array_create(l->net->session, DM_F32, 1, &count, &everywhere, &l->scratch[i]);
}

dm_status nn_map_rows(nn_layer *l, const char *call, const char *operand, const nn_blob *b, int axis, int count,
                      const dm_map_arg *args, dm_array out)
{
    char text[256];
    size_t n = (size_t)snprintf(text, sizeof text, "%s(%.100s", call, operand);
    bool any = false;
    for (int d = axis > 1 ? axis : 1; d < b->ndim; d++, any = true) {
        n += (size_t)snprintf(text + n, sizeof text - n, ", %d", nn_array_dim(b, d));
    }
    snprintf(text + n, sizeof text - n, ")");
    return nn_map(l->net->session, any ? text : operand, count, args, out);
}

dm_status nn_sum_samples(nn_layer *l, double scale, dm_array x, int64_t samples, dm_array out)
{
    dm_session *s = l->net->session;
    dm_array column = DM_NO_ARRAY;
    dm_status status = dm_array_reshape(s, x, 2, (int64_t[]){samples, 1}, &column);
    status = status == DM_OK ? dm_channel_sums(s, l->net->slices, scale, column, DM_NO_ARRAY, 0, out) : status;
    dm_status end = dm_array_destroy(s, column);
    return status == DM_OK ? end : status;
}

dm_status nn_inner_weights(const nn_layer *l, int slices, dm_array x, dm_array dy, double beta, dm_array dw,
                           dm_array db)
{
    dm_inner inner = DM_INNER_INIT;
    inner.slices = slices;
    inner.wire = l->net->wire;
    return dm_inner_backward_weights_with(l->net->session, &inner, x, dy, dm_value(beta), dw, db);
}

void nn_say_unused(const nn_layer *l, const nn_message *m, const char *field, const char *why)
{
    nn_use(m, field);
    nn_log(l->net, "%s:%d: %s of layer '%s' has no effect: %s", m->file, nn_line(m, field), field, l->name,
           why);
}

bool nn_biased(const nn_layer *l, const char *message)
{
    bool biased = nn_int(l->own, message, "bias_term") != 0;
    if (!biased && nn_has(l->own, "bias_filler")) {
        nn_say_unused(l, l->own, "bias_filler", "the layer has no bias");
        nn_use_all(nn_sub(l->own, "bias_filler"));
    }
    return biased;
}

int nn_normalization(const nn_layer *l, int otherwise)
{
    static const char L[] = "LossParameter";
    const nn_message *m = nn_sub(l->message, "loss_param");
    bool now = nn_has(m, "normalization"), before = nn_has(m, "normalize");
    if (now && before) {
        nn_say_unused(l, m, "normalize", "normalization is there too, and counts");
    }
    return now      ? (int)nn_int(m, L, "normalization")
           : before ? (nn_int(m, L, "normalize") ? DM_NORMALIZE_VALID : DM_NORMALIZE_SAMPLES)
                    : otherwise;
}

/* Does an image lie otherwise than Caffe's order has it? */
static bool turned(const nn_blob *b)
{
    return b->image && b->shape[1] > 1 && b->shape[2] * b->shape[3] > 1;
}

dm_status nn_matrix(nn_layer *l, int i, const nn_blob *b, dm_array a, int64_t rows, bool own)
{
    dm_session *s = l->net->session;
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(s, a, &info);
    if (status == DM_OK && (own || turned(b))) {
        nn_blob plain = *b;
        plain.image = false;
        status = nn_blob_array(l->net, &plain, info.dtype, &l->scratch[i + 1]);
        a = l->scratch[i + 1];
    }
    return status == DM_OK ? dm_array_reshape(s, a, 2, (int64_t[]){rows, b->count / rows}, &l->scratch[i])
                           : status;
}

dm_status nn_in_order(const nn_layer *l, const nn_blob *b, dm_array from, dm_array to)
{
    static const int to_caffe[] = {0, 3, 1, 2};
    return b->image ? dm_permute(l->net->session, from, to_caffe, to) : dm_copy(l->net->session, from, to);
}

dm_status nn_matrix_read(const nn_layer *l, int i, const nn_blob *b, dm_array from)
{
    dm_array rows = l->scratch[i + 1];
    return rows.id ? nn_in_order(l, b, from, rows) : DM_OK;
}

dm_status nn_matrix_write(const nn_layer *l, int i, const nn_blob *b, dm_array to)
{
    static const int from_caffe[] = {0, 2, 3, 1};
    dm_array rows = l->scratch[i + 1];
    return rows.id == 0 ? DM_OK
           : b->image   ? dm_permute(l->net->session, rows, from_caffe, to)
                        : dm_copy(l->net->session, rows, to);
}

dm_status nn_wire_refuse(const nn_layer *l)
{
    bool learns = false;
    for (int i = 0; i < l->params; i++) {
        learns = learns || l->param[i]->lr_mult != 0;
    }
    return l->net->wire && l->net->phase == NN_TRAIN && learns
               ? nn_layer_fail(
                     l, "type", DM_ERR_UNSUPPORTED,
                     "is of the type %s: its gradient is no sum over slices, which wire could make bf16",
                     l->type->name)
               : DM_OK;
}
