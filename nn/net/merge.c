/* Layers that a layer beside them does at once. Forward: a ReLU in place behind a convolution; what lay between
 * the two has no name any more, and no array. Backward: a ReLU before LRN or pooling by the largest, which mask
 * what they give back. The gradient needs y alone: y > 0 where x > 0. Any other ReLU behind a convolution makes
 * the gradient of its bias on the way; before a Concat, it reads its part of that one's
 * gradient where it is, and the convolution writes to its part of that one's top. In a lean net pooling by the
 * largest does the passes of an LRN before it. */
#include "net/net.h"

#include <string.h>

static bool is(const nn_layer *l, const char *type)
{
    return strcmp(l->type->name, type) == 0;
}

/* The only layer that reads a blob; NULL: there are others, or none. */
static nn_layer *reader(const nn_net *net, const nn_blob *b)
{
    nn_layer *found = NULL;
    int readers = 0;
    for (int k = 0; k < net->layer_count; k++) {
        for (int i = 0; i < net->layers[k].bottoms; i++) {
            found = net->layers[k].bottom[i] == b ? &net->layers[k] : found;
            readers += net->layers[k].bottom[i] == b;
        }
    }
    return readers == 1 ? found : NULL;
}

static void merge_forward(const nn_net *net, nn_layer *relu)
{
    const nn_blob *x = relu->bottom[0], *y = relu->top[0];
    nn_layer *before = x->producer;
    if (is(before, "Convolution") && !nn_conv_is_nd(before) && strcmp(x->name, y->name) == 0 &&
        x->loss_weight == 0 && reader(net, x)) {
        before->u.conv.relu = 1;
        relu->merged = relu->top[0]->shares = true;
    }
}

static void merge_back(const nn_net *net, nn_layer *relu)
{
    nn_blob *x = relu->bottom[0], *y = relu->top[0];
    nn_layer *behind = reader(net, y);
    bool alone = behind && behind->down[0] && relu->down[0] && reader(net, x) && y->loss_weight == 0 &&
                 x->loss_weight == 0 && !y->own_loss && strcmp(x->name, y->name) == 0;
    if (alone && is(behind, "LRN")) {
        behind->u.lrn.relu = 1;
    } else if (alone && is(behind, "Pooling") && behind->u.pool.method == DM_POOL_MAX) {
        behind->u.pool.relu = 1;
    } else {
        return;
    }
    relu->merged_back = x->shares_diff = true;
}

static void merge_bias(nn_layer *relu)
{
    nn_layer *before = relu->bottom[0]->producer;
    before->bias_behind =
        relu->merged && !relu->merged_back && relu->down[0] && before->params > 1 &&
        !before->param[1]->shared; /* gradients of all of a layer's parameters are added, or none */
}

static void merge_concat(const nn_net *net, const nn_layer *relu)
{
    nn_blob *y = relu->top[0];
    nn_layer *behind = reader(net, y);
    for (int i = 0; behind && is(behind, "Concat") && i < behind->bottoms; i++) {
        bool here = behind->bottom[i] == y && behind->down[i] && y->loss_weight == 0 && !y->own_loss;
        y->joined = here ? behind : y->joined;
    }
}

static void merge_top(const nn_net *net, const nn_layer *relu)
{
    nn_layer *behind = relu->merged ? reader(net, relu->top[0]) : NULL;
    nn_blob *x = relu->bottom[0];
    if (behind && is(behind, "Concat") && x->image && behind->u.dim == 1) {
        x->laid = behind;
    }
}

void nn_merge(nn_net *net)
{
    for (int k = 0; k < net->layer_count && !net->debug; k++) { /* each layer is to tell its own */
        nn_layer *l = &net->layers[k];
        if (is(l, "ReLU") && l->u.number[0] == 0) {
            merge_forward(net, l);
            merge_back(net, l);
            merge_bias(l);
            merge_concat(net, l);
            merge_top(net, l);
        }
    }
}

/* Windows of channels; more of them GPUs would not round between the two (dm_lrn_pool_forward). */
static bool takes_lrn(const nn_net *net, const nn_layer *lrn)
{
    enum { MOST_CHANNELS = 2048 };
    const nn_blob *between = lrn->top[0];
    const nn_layer *pool = is(lrn, "LRN") && !lrn->u.lrn.within ? reader(net, between) : NULL;
    return pool && is(pool, "Pooling") && pool->u.pool.method == DM_POOL_MAX && pool->top[0]->picks &&
           pool->tops == 1 && pool->need_backward == lrn->need_backward && between->lent &&
           between->shape[1] <= MOST_CHANNELS && pool->down[0] == lrn->down[0];
}

void nn_merge_lent(nn_net *net)
{
    for (int k = 0; k < net->layer_count && !net->debug; k++) {
        nn_layer *l = &net->layers[k];
        if (takes_lrn(net, l)) {
            nn_layer *pool = reader(net, l->top[0]);
            l->pooled = pool;
            pool->pooled = l;
            l->top[0]->between = true;
        }
    }
}
