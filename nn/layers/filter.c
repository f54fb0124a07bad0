/* Filter: passes the samples whose selector, the last bottom, is not 0. Caffe makes smaller blobs of them. Here
 * plans have fixed shapes: tops keep all samples in their places, those that do not pass are 0, and labels of
 * theirs are what the layers that read them ignore. So only layers that take each sample by itself, and losses
 * that ignore labels, stand behind it. */
#include "layers/layers.h"

#include <string.h>

/* Log and Power are not here: of 0 they may be infinite, and a gradient of 0 then not a number. */
static const char *const may_follow[] = {"AbsVal",        "Accuracy", "ArgMax",
                                         "BNLL",          "Clip",     "Convolution",
                                         "Deconvolution", "Dropout",  "ELU",
                                         "Eltwise",       "Exp",      "Filter",
                                         "Flatten",       "Im2col",   "InnerProduct",
                                         "LRN",           "MVN",      "PReLU",
                                         "Pooling",       "ReLU",     "Reshape",
                                         "SPP",           "Scale",    "Sigmoid",
                                         "Silence",       "Softmax",  "SoftmaxWithLoss",
                                         "Split",         "Swish",    "TanH",
                                         "Threshold"};

static bool is(const nn_layer *l, const char *type)
{
    return strcmp(l->type->name, type) == 0;
}

/* Does a layer read bottom `bottom` as labels? */
static bool is_label(const nn_layer *reader, int bottom)
{
    return bottom == 1 && (is(reader, "SoftmaxWithLoss") || is(reader, "Accuracy"));
}

dm_status nn_filter_follow(nn_layer *l)
{
    const nn_layer *filter = NULL;
    bool follows = false;
    for (int i = 0; i < l->bottoms; i++) {
        filter = l->bottom[i]->filter ? l->bottom[i]->filter : filter;
    }
    for (int i = 0; filter && i < NN_COUNT(may_follow); i++) {
        follows = follows || is(l, may_follow[i]);
    }
    for (int i = 0; filter && i < l->bottoms && follows && !is(l, "Silence"); i++) {
        follows = l->bottom[i]->filter == filter;
    }
    if (filter && (is(l, "Reshape") || is(l, "Flatten"))) {
        follows = follows && l->top[0]->shape[0] == l->bottom[0]->shape[0];
    }
    bool labels = is(l, "SoftmaxWithLoss") || is(l, "Accuracy");
    if (filter && (labels || is(l, "Softmax"))) { /* along the batch they would mix samples */
        follows = follows && l->extra[NN_AXIS] > 0;
    }
    if (filter && is(l, "Scale")) { /* Caffe has fewer samples than a parameter for each has elements */
        follows = follows && (l->params == 0 || l->u.dim > 0 || l->extra[0] == 0);
    }
    if (filter && !follows) {
        return nn_layer_fail(l, "bottom", DM_ERR_UNSUPPORTED,
                             "reads what the Filter layer '%s' passes, where samples keep their places: %s "
                             "layers and bottoms of "
                             "other layers do not fit there",
                             filter->name, l->type->name);
    }
    if (filter && labels && l->u.loss.normalize != DM_NORMALIZE_VALID &&
        l->u.loss.normalize != DM_NORMALIZE_NONE) {
        return nn_layer_fail(
            l, "loss_param", DM_ERR_UNSUPPORTED,
            "divides by all samples: behind the Filter layer '%s' only VALID and NONE are supported",
            filter->name);
    }
    if (filter && labels && !l->u.loss.ignores) {
        l->u.loss.ignores = 1;
        l->u.loss.ignore_label = -1;
    }
    for (int i = 0; i < l->tops && !is(l, "Filter"); i++) {
        l->top[i]->filter = filter;
    }
    return DM_OK;
}

dm_status nn_filter_setup(nn_layer *l)
{
    const nn_blob *selector = l->bottom[l->bottoms - 1];
    dm_status status = l->tops == l->bottoms - 1
                           ? DM_OK
                           : nn_layer_fail(l, "top", DM_ERR_FORMAT, "has %d tops for %d bottoms and a selector",
                                           l->tops, l->bottoms - 1);
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        if (l->bottom[i]->whole || l->bottom[i]->shape[0] != selector->shape[0] ||
            selector->count != selector->shape[0]) {
            return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                                 "needs a selector with one number for each sample of '%s'",
                                 l->bottom[i]->name);
        }
    }
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = nn_top_shape(l, i, l->bottom[i]->ndim, l->bottom[i]->shape);
        l->top[i]->filter = l;
    }
    l->down[l->bottoms - 1] = false;
    return status;
}

/* Scratch: the selector with the dims of each top. Here all readers are known. */
dm_status nn_filter_prepare(nn_layer *l)
{
    const nn_blob *selector = l->bottom[l->bottoms - 1];
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        int64_t shape[DM_MAX_DIMS] = {selector->count, 1, 1, 1, 1, 1, 1, 1};
        status = dm_array_reshape(l->net->session, selector->data, l->bottom[i]->ndim, shape, &l->scratch[i]);
    }
    return status;
}

/* What stands in the place of samples that do not pass. */
static dm_status filler_of(const nn_layer *l, const nn_blob *top, double *out)
{
    bool labels = false, other = false;
    int label = 0;
    for (int k = 0; k < l->net->layer_count; k++) {
        const nn_layer *reader = &l->net->layers[k];
        for (int i = 0; i < reader->bottoms; i++) {
            bool reads = reader->bottom[i] == top;
            other = other || (reads && !is_label(reader, i)) ||
                    (reads && labels && label != reader->u.loss.ignore_label);
            labels = labels || (reads && is_label(reader, i));
            label = reads && is_label(reader, i) ? reader->u.loss.ignore_label : label;
        }
    }
    *out = labels ? label : 0;
    return labels && other
               ? nn_layer_fail(l, "top", DM_ERR_UNSUPPORTED,
                               "makes the labels '%s', which other layers read too, or ignore otherwise",
                               top->name)
               : DM_OK;
}

dm_status nn_filter_forward(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        double filler = 0;
        status = filler_of(l, l->top[i], &filler);
        dm_map_arg args[] = {DM_ARG("x", l->bottom[i]->data), DM_ARG("s", l->scratch[i]),
                             DM_NUMBER("f", filler)};
        status =
            status == DM_OK ? dm_map(l->net->session, "where(s != 0, x, f)", 3, args, l->top[i]->data) : status;
    }
    return status;
}

dm_status nn_filter_backward(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        if (l->down[i]) {
            dm_array down = nn_down(l, i);
            dm_map_arg args[] = {DM_ARG("d", l->top[i]->diff), DM_ARG("s", l->scratch[i])};
            status = nn_down_done(l, i, dm_map(l->net->session, "where(s != 0, d, 0)", 2, args, down));
        }
    }
    return status;
}
