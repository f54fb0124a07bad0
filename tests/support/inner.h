/* Shapes of inner products. */
#ifndef DMT_INNER_H
#define DMT_INNER_H

#include "support/layers.h"

typedef struct dmt_inner {
    int x_dims, w_dims, slices;
    int64_t in, x[4], w[4], y[2];
} dmt_inner;

static inline void dmt_inner_random(dmt_case *c, dmt_inner *v)
{
    dmt_random *r = &c->random;
    bool large = dmt_chance(r, 10);
    *v = (dmt_inner){.x_dims = 4, .w_dims = 2, .slices = dmt_layer_slices(c)};
    v->x[0] = v->y[0] = dmt_int(r, dmt_chance(r, 10) ? 0 : 1, 13);
    v->w[0] = v->y[1] = large ? dmt_int(r, 60, 90) : dmt_int(r, 1, 20);
    v->in = 1;
    for (int d = 1; d < 4; d++) {
        v->x[d] = large ? dmt_int(r, 3, 7) : dmt_int(r, 1, 5);
        v->in *= v->x[d];
    }
    v->w[1] = v->in;
    if (dmt_chance(r, 30)) {
        v->w_dims = 4;
        for (int d = 1; d < 4; d++) {
            v->w[d] = v->x[d];
        }
    }
    dmt_say(c, "\n    slices %d", v->slices);
}

#endif
