/* Local response normalisation and pooling by the largest, at once. */
#ifndef DMT_LRN_POOL_H
#define DMT_LRN_POOL_H

#include "support/lrn.h"

typedef struct dmt_lrn_pool {
    dmt_lrn lrn;
    dmt_pool pool;
} dmt_lrn_pool;

/* Half of them as GPUs take them in one kernel. */
static inline void dmt_lrn_pool_random(dmt_case *c, dmt_lrn_pool *v)
{
    static const int usual[][2] = {{2, 2}, {3, 1}, {3, 2}};
    dmt_random *r = &c->random;
    bool one = dmt_chance(r, 50);
    dmt_lrn_random(c, &v->lrn);
    dmt_pool_random(c, &v->pool);
    v->lrn.ndim = 4;
    v->lrn.lrn.within = 0;
    v->lrn.lrn.relu = dmt_chance(r, 30);
    v->pool.pool.method = DM_POOL_MAX;
    v->pool.pool.relu = dmt_chance(r, 20);
    v->pool.x[0] = v->pool.x[0] > 4 ? 4 : v->pool.x[0];
    v->pool.x[3] = v->pool.x[3] > 20 ? 20 : v->pool.x[3];
    if (one) {
        const int *w = usual[dmt_int(r, 0, 2)];
        v->lrn.lrn.local_size = dmt_chance(r, 50) ? 3 : 5;
        v->pool.pool.global = 0;
        v->pool.x[3] = 8 * dmt_int(r, 1, 3);
        for (int d = 0; d < 2; d++) {
            v->pool.pool.kernel[d] = w[0];
            v->pool.pool.stride[d] = w[1];
            v->pool.pool.pad[d] = (int)dmt_int(r, 0, w[0] - 1);
            v->pool.x[1 + d] = dmt_int(r, w[0] - w[1] + 1, 7); /* from the least that the windows fit */
            v->pool.pool.round_down = v->pool.pool.round_down && v->pool.x[1 + d] >= w[0];
        }
    }
    for (int d = 1; d < 3; d++) {
        v->pool.x[d] = v->pool.x[d] > 7 && v->pool.pool.kernel[d - 1] <= 7 ? 7 : v->pool.x[d];
    }
    DMT_OK(c, dm_pool_shape(&v->pool.pool, v->pool.x, v->pool.y));
    for (int d = 0; d < 4; d++) {
        v->lrn.shape[d] = v->pool.x[d];
    }
    dmt_say(c, "\n    one %d: size %d, kernel %d %d, stride %d %d, pad %d %d, global %d, relu %d %d", one,
            v->lrn.lrn.local_size, v->pool.pool.kernel[0], v->pool.pool.kernel[1], v->pool.pool.stride[0],
            v->pool.pool.stride[1], v->pool.pool.pad[0], v->pool.pool.pad[1], v->pool.pool.global,
            v->lrn.lrn.relu, v->pool.pool.relu);
}

/* Has the result the bits of the two calls? Where all is of one type. */
static inline bool dmt_lrn_pool_same_bits(const dmt_layer *l, const int *operand, int count)
{
    bool same = true;
    dm_dtype type = l->host[operand[0]]->dtype;
    for (int i = 1; i < count; i++) {
        same = same && l->host[operand[i]]->dtype == type;
    }
    return same;
}

#endif
