/* SPP: pooling by 1 x 1, 2 x 2, 4 x 4 ... windows, side by side. */
#include "layers/layers.h"

enum { MAX, AVERAGE, STOCHASTIC }; /* extra[1] */

static dm_pool level(const nn_layer *l, int k)
{
    const int64_t *x = l->bottom[0]->shape;
    dm_pool pool = DM_POOL_INIT;
    pool.method = l->extra[1] == MAX          ? DM_POOL_MAX
                  : l->extra[1] == AVERAGE    ? DM_POOL_AVERAGE
                  : l->net->phase == NN_TRAIN ? DM_POOL_STOCHASTIC
                                              : DM_POOL_WEIGHTED;
    pool.slices = l->net->slices;
    for (int d = 0; d < 2; d++) {
        int64_t bins = INT64_C(1) << k, kernel = (x[2 + d] + bins - 1) / bins;
        pool.kernel[d] = pool.stride[d] = (int)kernel;
        pool.pad[d] = (int)((kernel * bins - x[2 + d] + 1) / 2);
    }
    return pool;
}

static dm_status level_shape(const nn_layer *l, int k, dm_pool *pool, nn_blob *out)
{
    const int64_t *b = l->bottom[0]->shape;
    int64_t y[4], x[4] = {b[0], b[2], b[3], b[1]};
    *pool = level(l, k);
    dm_status status = dm_pool_shape(pool, x, y);
    *out = (nn_blob){.ndim = 4, .image = true, .shape = {y[0], y[3], y[1], y[2]}, .count = y[1] * y[2] * y[3]};
    return status;
}

dm_status nn_spp_setup(nn_layer *l)
{
    static const char S[] = "SPPParameter";
    int64_t height = nn_int(l->own, S, "pyramid_height"), channels = 0;
    nn_use(l->own, "engine");
    l->extra[0] = (double)height;
    l->extra[1] = (double)nn_int(l->own, S, "pool");
    if (!l->bottom[0]->image || height < 1 || height > 16) {
        return nn_layer_fail(l, "spp_param", DM_ERR_SHAPE, "needs images and a pyramid_height from 1 to 16");
    }
    for (int k = 0; k < (int)height; k++) {
        dm_pool pool;
        nn_blob b;
        dm_status status = level_shape(l, k, &pool, &b);
        if (l->extra[1] == STOCHASTIC && (pool.pad[0] || pool.pad[1])) { /* in Caffe, too */
            return nn_layer_fail(
                l, "pool", DM_ERR_UNSUPPORTED,
                "has stochastic pooling, which has no padding, and %lld windows that do not cut "
                "%lld x %lld pixels in equal parts",
                1LL << k, (long long)l->bottom[0]->shape[2], (long long)l->bottom[0]->shape[3]);
        }
        if (status != DM_OK) {
            return nn_layer_fail(l, "pyramid_height", status, "makes windows that do not fit: %s",
                                 dm_error_message());
        }
        channels += b.count;
    }
    const int64_t *x = l->bottom[0]->shape;
    return height == 1 ? nn_top_shape(l, 0, 4, (int64_t[]){x[0], x[1], 1, 1})
                       : nn_top_shape(l, 0, 2, (int64_t[]){x[0], channels});
}

/* The arrays of a level: pooled, in Caffe's order, that as rows, and its columns of the top or of its gradient.
 */
static dm_status arrays(nn_layer *l, const nn_blob *b, dm_array top, int64_t at, dm_array *a)
{
    dm_session *s = l->net->session;
    nn_blob plain = *b;
    plain.image = false;
    dm_status status = nn_blob_array(l->net, b, DM_F32, &a[0]);
    status = status == DM_OK ? nn_blob_array(l->net, &plain, DM_F32, &a[1]) : status;
    status = status == DM_OK ? dm_array_reshape(s, a[1], 2, (int64_t[]){b->shape[0], b->count}, &a[2]) : status;
    return status == DM_OK
               ? dm_array_view(s, top, (int64_t[]){0, at}, (int64_t[]){b->shape[0], b->count}, &a[3])
               : status;
}

static dm_status level_forward(nn_layer *l, const dm_pool *pool, const nn_blob *b, int64_t at)
{
    dm_session *s = l->net->session;
    dm_array a[4] = {{0}};
    dm_status status = arrays(l, b, l->scratch[0], at, a);
    status = status == DM_OK ? dm_pool_forward(s, pool, l->bottom[0]->data, a[0], DM_NO_ARRAY) : status;
    status = status == DM_OK ? dm_permute(s, a[0], (int[]){0, 3, 1, 2}, a[1]) : status;
    status = status == DM_OK ? dm_copy(s, a[2], a[3]) : status;
    for (int i = 3; i >= 0; i--) {
        dm_status end = dm_array_destroy(s, a[i]);
        status = status == DM_OK ? end : status;
    }
    return status;
}

static dm_status level_backward(nn_layer *l, const dm_pool *pool, const nn_blob *b, int64_t at, dm_array down)
{
    dm_session *s = l->net->session;
    dm_array a[5] = {{0}};
    dm_status status = arrays(l, b, l->scratch[1], at, a);
    status = status == DM_OK ? nn_blob_array(l->net, l->bottom[0], DM_F32, &a[4]) : status;
    status = status == DM_OK ? dm_copy(s, a[3], a[2]) : status;
    status = status == DM_OK ? dm_permute(s, a[1], (int[]){0, 2, 3, 1}, a[0]) : status;
    status = status == DM_OK ? dm_pool_backward(s, pool, l->bottom[0]->data, a[0], at ? a[4] : down) : status;
    status = status == DM_OK && at ? dm_axpby(s, 1, a[4], 1, down) : status;
    for (int i = 4; i >= 0; i--) {
        dm_status end = dm_array_destroy(s, a[i]);
        status = status == DM_OK ? end : status;
    }
    return status;
}

dm_status nn_spp_prepare(nn_layer *l) /* top and gradient as rows */
{
    dm_array of[2] = {l->top[0]->data, l->top[0]->diff};
    int64_t n = l->bottom[0]->shape[0];
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        if (of[i].id) {
            status = dm_array_reshape(l->net->session, of[i], 2, (int64_t[]){n, l->top[0]->count / n},
                                      &l->scratch[i]);
        }
    }
    return status;
}

/* pass: that of the forward pass, whose random numbers the gradient needs too. */
static dm_status levels(nn_layer *l, int64_t pass, bool back, dm_array down)
{
    dm_status status = DM_OK;
    int64_t at = 0;
    for (int k = 0; status == DM_OK && k < (int)l->extra[0]; k++) {
        dm_pool pool;
        nn_blob b;
        status = level_shape(l, k, &pool, &b);
        pool.seed = nn_pass_seed(l->net, nn_hash(nn_layer_number(l), (uint64_t)k), pass);
        if (status == DM_OK) {
            status = back ? level_backward(l, &pool, &b, at, down) : level_forward(l, &pool, &b, at);
        }
        at += b.count;
    }
    return status;
}

dm_status nn_spp_forward(nn_layer *l)
{
    return levels(l, l->net->pass, false, DM_NO_ARRAY);
}

dm_status nn_spp_backward(nn_layer *l)
{
    if (!l->down[0]) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0, levels(l, l->net->pass - 1, true, down));
}
