/* Im2col: each window as channels. Place by place of the kernel, what it reads in all windows is a view of the
 * bottom with steps, and becomes every so manieth channel of the top. Elements of the padding are 0. Scratch:
 * in nets of 16 bits, the sum of a gradient. */
#include "layers/layers.h"

#include <string.h>

dm_status nn_im2col_setup(nn_layer *l)
{
    nn_sides s;
    int64_t top[DM_MAX_DIMS];
    const nn_blob *b = l->bottom[0];
    dm_status status = nn_conv_fields(l, false, &s, NULL);
    if (status != DM_OK) {
        return status;
    }
    if (s.spatial == 0) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "has no spatial dims: '%s' has %d dims, and axis is %d",
                             b->name, b->ndim, s.axis);
    }
    memcpy(top, b->shape, sizeof top);
    for (int d = 0; d < s.spatial; d++) {
        if (s.side[d].kernel > (INT64_C(1) << 40) / top[s.axis]) {
            return nn_layer_fail(l, "kernel_size", DM_ERR_SHAPE, "has windows of more than 2^40 elements");
        }
        top[s.axis] *= s.side[d].kernel;
        top[s.axis + 1 + d] = s.side[d].windows;
    }
    return nn_top_shape(l, 0, b->ndim, top);
}

dm_status nn_im2col_prepare(nn_layer *l)
{
    const nn_blob *b = l->bottom[0];
    return l->down[0] && l->net->type != DM_F32 ? nn_scratch(l, 0, b->image, b->ndim, b->shape) : DM_OK;
}

/* Place `tap` of the kernel, the last dim of which counts fastest: copies what it reads to its channels, or
 * adds these to it. */
static dm_status move(const nn_layer *l, const nn_sides *s, int64_t tap, int64_t taps, bool back,
                      dm_array elements, dm_array columns)
{
    const nn_blob *b = l->bottom[0];
    dm_session *session = l->net->session;
    int64_t from[DM_MAX_DIMS] = {0}, step[DM_MAX_DIMS], to[DM_MAX_DIMS] = {0}, skip[DM_MAX_DIMS],
            shape[DM_MAX_DIMS], rest = tap;
    bool any = true;
    for (int d = b->ndim - 1; d >= 0; d--) {
        const int i = nn_array_dim(b, d), k = d - s->axis - 1;
        shape[i] = b->shape[d];
        step[i] = skip[i] = 1;
        if (k >= 0) {
            const nn_side *side = &s->side[k];
            shape[i] = nn_side_reach(side, rest % side->kernel, &to[i], &from[i]);
            step[i] = side->stride;
            rest /= side->kernel;
            any = any && shape[i] > 0;
        } else if (k == -1) {
            to[i] = tap;
            skip[i] = taps;
        }
    }
    if (!any) { /* padding alone */
        return DM_OK;
    }
    dm_array x = DM_NO_ARRAY, y = DM_NO_ARRAY;
    dm_status status = dm_array_slice(session, elements, from, shape, step, &x);
    status = status == DM_OK ? dm_array_slice(session, columns, to, shape, skip, &y) : status;
    if (status == DM_OK) {
        status = back ? dm_axpby(session, 1, y, 1, x) : dm_copy(session, x, y);
    }
    const dm_status end = dm_array_destroy(session, x), end2 = dm_array_destroy(session, y);
    return status != DM_OK ? status : end != DM_OK ? end : end2;
}

static dm_status all(const nn_layer *l, bool back, dm_array elements, dm_array columns)
{
    nn_sides s;
    int64_t taps = 1;
    bool zeros = back; /* the first addend has something to be added to; what is padding is not copied */
    dm_status status = nn_sides_read(l, false, &s);
    for (int d = 0; d < s.spatial; d++) {
        taps *= s.side[d].kernel;
        zeros = zeros || s.side[d].pad > 0;
    }
    status = status == DM_OK && zeros ? dm_fill(l->net->session, back ? elements : columns, 0) : status;
    for (int64_t tap = 0; status == DM_OK && tap < taps; tap++) {
        status = move(l, &s, tap, taps, back, elements, columns);
    }
    return status;
}

dm_status nn_im2col_forward(nn_layer *l)
{
    return all(l, false, l->bottom[0]->data, l->top[0]->data);
}

dm_status nn_im2col_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    const dm_array down = nn_down(l, 0), sum = l->scratch[0].id ? l->scratch[0] : down;
    dm_status status = all(l, true, sum, l->top[0]->diff);
    status = status == DM_OK && l->scratch[0].id ? dm_copy(l->net->session, sum, down) : status;
    return nn_down_done(l, 0, status);
}
