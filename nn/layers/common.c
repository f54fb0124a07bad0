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
