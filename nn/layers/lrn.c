/* Local response normalisation, made of pooling and expressions: scale = k + alpha * (mean of x^2 over the
 * window), which has alpha / n of the sum, as Caffe's; y = x scale^-beta. Windows across channels are those of
 * a plane of pixels x channels. */
#include "layers/layers.h"

static const char R[] = "LRNParameter";

enum { SCALE, WORK, MEAN_VIEW, WORK_VIEW }; /* arrays of scratch */

dm_status nn_lrn_setup(nn_layer *l)
{
    dm_pool *pool = &l->u.pool;
    int64_t size = nn_int(l->own, R, "local_size"), within = nn_int(l->own, R, "norm_region");
    nn_use(l->own, "engine");
    if (l->bottom[0]->ndim != 4) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which is no image of 4 dims",
                             l->bottom[0]->name);
    }
    if (size % 2 == 0 || size > 1 << 20) {
        return nn_layer_fail(l, "local_size", DM_ERR_FORMAT, "has local_size %lld; it must be odd",
                             (long long)size);
    }
    int n = (int)size;
    *pool = (dm_pool)DM_POOL_INIT;
    *pool = (dm_pool){
        sizeof *pool,  DM_POOL_AVERAGE, {within ? n : 1, n}, {1, 1}, {within ? n / 2 : 0, n / 2}, 0, 0,
        l->net->slices};
    l->extra[0] = nn_real(l->own, R, "alpha");
    l->extra[1] = nn_real(l->own, R, "beta");
    l->extra[2] = within ? 1 : nn_real(l->own, R, "k");
    nn_use(l->own, "k");
    l->extra[3] = within ? 1 : 0;
    return nn_top_shape(l, 0, 4, l->bottom[0]->shape);
}

/* Across channels, an image is N x (H W) x C x 1. */
static dm_status plane(const nn_layer *l, dm_array image, dm_array *out)
{
    const int64_t *b = l->bottom[0]->shape;
    int64_t across[4] = {b[0], b[2] * b[3], b[1], 1}, within[4] = {b[0], b[2], b[3], b[1]};
    return dm_array_reshape(l->net->session, image, 4, l->extra[3] != 0 ? within : across, out);
}

dm_status nn_lrn_prepare(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = nn_blob_array(l->net, l->bottom[0], DM_F32, &l->scratch[i]);
        status = status == DM_OK ? plane(l, l->scratch[i], &l->scratch[i + 2]) : status;
    }
    return status;
}

dm_status nn_lrn_forward(nn_layer *l)
{
    dm_session *s = l->net->session;
    dm_map_arg args[] = {DM_ARG("m", l->scratch[SCALE]), DM_NUMBER("a", l->extra[0]),
                         DM_NUMBER("k", l->extra[2])};
    dm_map_arg out[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("m", l->scratch[SCALE]),
                        DM_NUMBER("b", -l->extra[1])};
    dm_status status = dm_square(s, l->bottom[0]->data, l->scratch[WORK]);
    if (status == DM_OK) {
        status = dm_pool_forward(s, &l->u.pool, l->scratch[WORK_VIEW], l->scratch[MEAN_VIEW], DM_NO_ARRAY);
    }
    if (status == DM_OK) {
        status = dm_map(s, "k + a * m", 3, args, l->scratch[SCALE]);
    }
    return status == DM_OK ? dm_map(s, "x * m ** b", 3, out, l->top[0]->data) : status;
}

/* dx = d scale^-beta - 2 alpha beta x * (the adjoint mean of d y / scale) */
dm_status nn_lrn_backward(nn_layer *l)
{
    dm_session *s = l->net->session;
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array mean = DM_NO_ARRAY, mean_view = DM_NO_ARRAY, down = nn_down(l, 0);
    dm_map_arg args[] = {DM_ARG("x", l->bottom[0]->data), DM_ARG("d", l->top[0]->diff),
                         DM_ARG("m", l->scratch[SCALE]), DM_NUMBER("b", -l->extra[1]),
                         DM_NUMBER("c", 2 * l->extra[0] * l->extra[1])};
    dm_map_arg inner[] = {DM_ARG("d", l->top[0]->diff), DM_ARG("y", l->top[0]->data),
                          DM_ARG("m", l->scratch[SCALE])};
    dm_status status = dm_map(s, "d * y / m", 3, inner, l->scratch[WORK]);
    status = status == DM_OK ? nn_blob_array(l->net, l->bottom[0], DM_F32, &mean) : status;
    status = status == DM_OK ? plane(l, mean, &mean_view) : status;
    if (status == DM_OK) {
        status = dm_pool_backward(s, &l->u.pool, DM_NO_ARRAY, l->scratch[WORK_VIEW], mean_view);
    }
    if (status == DM_OK) {
        dm_map_arg all[] = {args[0], args[1], args[2], args[3], args[4], DM_ARG("p", mean)};
        status = dm_map(s, "d * m ** b - c * x * p", 6, all, down);
    }
    dm_status end = dm_array_destroy(s, mean_view), last = dm_array_destroy(s, mean);
    status = nn_down_done(l, 0, status);
    return status != DM_OK ? status : end != DM_OK ? end : last;
}
