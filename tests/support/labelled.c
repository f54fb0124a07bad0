#include "support/labelled.h"

#include <string.h>

void dmt_labelled_random(dmt_case *c, dmt_labelled *v)
{
    dmt_random *r = &c->random;
    *v = (dmt_labelled){.options = DM_LOSS_INIT};
    v->options.normalize = (int)dmt_int(r, DM_NORMALIZE_FULL, DM_NORMALIZE_NONE);
    v->options.ignores = dmt_chance(r, 50);
    v->options.ignore_label = (int)dmt_int(r, -1, 3);
    v->options.slices = dmt_layer_slices(c);
    v->ndim = dmt_chance(r, 50) ? 2 : 4;
    v->count = 1;
    for (int d = 0; d < v->ndim - 1; d++) {
        v->shape[d] = v->label_shape[d] = dmt_int(r, d == 0 && dmt_chance(r, 10) ? 0 : 1, d == 0 ? 13 : 4);
        v->count *= v->shape[d];
    }
    v->classes = v->shape[v->ndim - 1] = dmt_int(r, 1, 12);
    v->label_dims = v->ndim - 1;
    if (dmt_chance(r, 30)) {
        v->label_shape[v->label_dims++] = 1;
    }
    dmt_say(c, "\n    normalize %d ignores %d label %d slices %d", v->options.normalize, v->options.ignores,
            v->options.ignore_label, v->options.slices);
}

dmt_host *dmt_labels_add(dmt_case *c, dmt_layer *l, const dmt_labelled *v)
{
    static const dm_dtype types[] = {DM_F32, DM_I32, DM_I64, DM_U8, DM_F16};
    dmt_host *h =
        dmt_layer_add(c, l, "labels", types[dmt_int(&c->random, 0, 4)], v->label_dims, v->label_shape);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)dmt_int(&c->random, 0, v->classes - 1);
        if (v->options.ignores && h->dtype != DM_U8 && dmt_chance(&c->random, 30)) {
            h->v[i] = v->options.ignore_label;
        }
    }
    return h;
}

bool dmt_ignored(const dmt_labelled *v, long double label)
{
    return v->options.ignores && label == (long double)v->options.ignore_label;
}

long double dmt_normaliser(const dmt_labelled *v, const dmt_host *labels)
{
    int64_t valid = 0;
    for (int64_t i = 0; i < labels->count; i++) {
        valid += !dmt_ignored(v, labels->v[i]);
    }
    const int64_t by[] = {v->count, valid, v->shape[0], 1};
    int64_t n = by[v->options.normalize];
    return n > 1 ? (long double)n : 1;
}
