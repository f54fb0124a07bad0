/* Local response normalisation by loops. */
#ifndef DMT_LRN_H
#define DMT_LRN_H

#include "support/layers.h"

#include <math.h>

typedef struct dmt_lrn {
    dm_lrn lrn;
    int ndim;
    int64_t shape[4];
} dmt_lrn;

static inline void dmt_lrn_random(dmt_case *c, dmt_lrn *v)
{
    dmt_random *r = &c->random;
    *v = (dmt_lrn){.lrn = DM_LRN_INIT, .ndim = 4};
    v->lrn.local_size = (int)dmt_int(r, 0, 3) * 2 + 1;
    v->lrn.within = dmt_chance(r, 40);
    v->lrn.alpha = 0.1 * (double)dmt_int(r, 1, 20);
    v->lrn.beta = dmt_chance(r, 60) ? 0.75 : 0.1 * (double)dmt_int(r, 1, 20);
    v->lrn.k = 0.5 * (double)dmt_int(r, 1, 4);
    v->lrn.slices = dmt_layer_slices(c);
    v->ndim = v->lrn.within || dmt_chance(r, 70) ? 4 : 2;
    for (int d = 0; d < v->ndim; d++) {
        v->shape[d] = dmt_int(r, d == 0 && dmt_chance(r, 10) ? 0 : 1, 7);
    }
    dmt_say(c, "\n    size %d within %d alpha %g beta %g k %g slices %d", v->lrn.local_size, v->lrn.within,
            v->lrn.alpha, v->lrn.beta, v->lrn.k, v->lrn.slices);
}

/* Are elements i and j in one window? The window of i contains j just where that of j contains i. */
static inline bool dmt_lrn_near(const dmt_lrn *v, int64_t i, int64_t j)
{
    int64_t a[4], b[4], half = v->lrn.local_size / 2;
    dmt_unlinear(v->ndim, v->shape, i, a);
    dmt_unlinear(v->ndim, v->shape, j, b);
    for (int d = 0; d < v->ndim; d++) {
        bool windowed = v->lrn.within ? d == 1 || d == 2 : d == v->ndim - 1;
        int64_t apart = a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
        if (apart > (windowed ? half : 0)) {
            return false;
        }
    }
    return true;
}

static inline long double dmt_lrn_factor(const dmt_lrn *v)
{
    long double n = v->lrn.local_size;
    return (long double)v->lrn.alpha / (v->lrn.within ? n * n : n);
}

static inline long double dmt_lrn_scale(const dmt_lrn *v, const dmt_host *x, int64_t i)
{
    long double sum = 0;
    for (int64_t j = 0; j < x->count; j++) {
        sum += dmt_lrn_near(v, i, j) ? x->v[j] * x->v[j] : 0;
    }
    return (v->lrn.within ? 1 : (long double)v->lrn.k) + dmt_lrn_factor(v) * sum;
}

#endif
