/* Local response normalisation. */
#include "layers/layers.h"

static const char R[] = "LRNParameter";

dm_status nn_lrn_setup(nn_layer *l)
{
    dm_lrn *lrn = &l->u.lrn;
    int64_t size = nn_int(l->own, R, "local_size");
    nn_use(l->own, "engine");
    if (l->bottom[0]->ndim != 4) {
        return nn_layer_fail(l, "bottom", DM_ERR_SHAPE, "reads '%s', which is no image of 4 dims",
                             l->bottom[0]->name);
    }
    if (size % 2 == 0 || size > 1 << 20) {
        return nn_layer_fail(l, "local_size", DM_ERR_FORMAT, "has local_size %lld; it must be odd",
                             (long long)size);
    }
    *lrn = (dm_lrn)DM_LRN_INIT;
    lrn->local_size = (int)size;
    lrn->within = nn_int(l->own, R, "norm_region") == 1;
    lrn->alpha = nn_real(l->own, R, "alpha");
    lrn->beta = nn_real(l->own, R, "beta");
    lrn->k = nn_real(l->own, R, "k");
    lrn->slices = l->net->slices;
    if (lrn->within && nn_has(l->own, "k")) { /* as in Caffe */
        nn_say_unused(l, l->own, "k", "within channels it is 1");
    }
    return nn_top_shape(l, 0, 4, l->bottom[0]->shape);
}

dm_status nn_lrn_forward(nn_layer *l)
{
    if (l->pooled) {
        return DM_OK;
    }
    return dm_lrn_forward(l->net->session, &l->u.lrn, l->bottom[0]->data, l->top[0]->data);
}

dm_status nn_lrn_backward(nn_layer *l)
{
    if (!l->down[0] || l->pooled) {
        return DM_OK;
    }
    dm_array down = nn_down(l, 0);
    return nn_down_done(l, 0,
                        dm_lrn_backward(l->net->session, &l->u.lrn, l->bottom[0]->data, l->top[0]->diff, down));
}
