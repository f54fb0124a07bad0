/* What a net holds, in Caffe's order: blobs, parameters, layers. */
#include "net/net.h"

#include "data/feed.h"

#include <stdlib.h>
#include <string.h>

/* there: are the other arguments of the call? */
static const nn_blob *find_blob(const dm_net *net, const char *call, const char *name, bool there)
{
    if (!net || !name || !there) {
        (void)!dm_error_set(DM_ERR_ARG, "%s: an argument is NULL", call);
        return NULL;
    }
    for (int i = net->blob_count - 1; i >= 0; i--) {
        if (strcmp(net->blobs[i]->name, name) == 0) {
            return net->blobs[i];
        }
    }
    (void)!dm_error_set(DM_ERR_ARG, "%s: the net has no blob '%s'", call, name);
    return NULL;
}

dm_status dm_net_shape(const dm_net *net, const char *blob, int *ndim, int64_t shape[DM_MAX_DIMS])
{
    const nn_blob *b = find_blob(net, "dm_net_shape", blob, ndim && shape);
    if (!b) {
        return DM_ERR_ARG;
    }
    *ndim = b->ndim;
    memcpy(shape, b->shape, (size_t)b->ndim * sizeof *shape);
    return DM_OK;
}

/* Channels last to channels first, or back. */
static void turn(const nn_blob *b, bool to_caffe, const float *in, float *out)
{
    int64_t c = b->shape[1], n = b->shape[2] * b->shape[3];
    for (int64_t i = 0; i < b->shape[0]; i++) {
        for (int64_t j = 0; j < c; j++) {
            for (int64_t q = 0; q < n; q++) {
                int64_t caffe = (i * c + j) * n + q, array = (i * n + q) * c + j;
                out[to_caffe ? caffe : array] = in[to_caffe ? array : caffe];
            }
        }
    }
}

int64_t nn_blob_place(const nn_blob *b, int64_t element)
{
    if (!b->image) {
        return element;
    }
    const int64_t c = b->shape[1], n = b->shape[2] * b->shape[3];
    return (element / (c * n) * n + element % n) * c + element / n % c;
}

dm_status nn_blob_read(const nn_net *net, const nn_blob *b, float *elements)
{
    if (!b->image) {
        return dm_read_as(net->session, b->data, elements);
    }
    float *lying = malloc((size_t)b->count * sizeof *lying);
    dm_status status = lying ? dm_read_as(net->session, b->data, lying)
                             : dm_error_no_memory("the elements of a blob", (size_t)b->count * sizeof *lying);
    if (status == DM_OK) {
        turn(b, true, lying, elements);
    }
    free(lying);
    return status;
}

dm_status dm_net_read(dm_net *net, const char *blob, float *elements)
{
    const nn_blob *b = find_blob(net, "dm_net_read", blob, elements != NULL);
    if (b && b->lent) {
        return dm_error_set(
            DM_ERR_STATE,
            "dm_net_read: '%s' has no memory of its own: the solver was opened with the option lean", blob);
    }
    return b ? nn_blob_read(net, b, elements) : DM_ERR_ARG;
}

dm_status dm_net_write(dm_net *net, const char *blob, const float *elements)
{
    const nn_blob *b = find_blob(net, "dm_net_write", blob, elements != NULL);
    if (!b || !(b->producer->type->traits & NN_INPUT)) {
        return b ? dm_error_set(DM_ERR_ARG, "dm_net_write: '%s' is no input of the net", blob) : DM_ERR_ARG;
    }
    if (!b->image) {
        return dm_write_as(net->session, b->data, elements);
    }
    float *lying = malloc((size_t)b->count * sizeof *lying);
    if (!lying) {
        return dm_error_no_memory("the elements of a blob", (size_t)b->count * sizeof *lying);
    }
    turn(b, false, elements, lying);
    dm_status status = dm_write_as(net->session, b->data, lying);
    free(lying);
    return status;
}

dm_status dm_net_param_read(dm_net *net, const char *layer, int number, int *ndim, int64_t shape[DM_MAX_DIMS],
                            float *elements)
{
    if (!net || !layer || !ndim || !shape) {
        return dm_error_set(DM_ERR_ARG, "dm_net_param_read: an argument is NULL");
    }
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        if (strcmp(l->name, layer) == 0 && number >= 0 && number < l->params) {
            const nn_param *p = l->param[number];
            *ndim = p->ndim;
            memcpy(shape, p->shape, (size_t)p->ndim * sizeof *shape);
            return elements ? nn_param_read(net, p, nn_param_itself(l->param[number])->data, elements) : DM_OK;
        }
    }
    return dm_error_set(DM_ERR_ARG, "dm_net_param_read: the net has no parameter %d of a layer '%s'", number,
                        layer);
}

int dm_net_layers(const dm_net *net)
{
    return net ? net->layer_count : 0;
}

dm_status dm_net_layer(const dm_net *net, int i, dm_layer_info *out)
{
    const dm_layer_info none = {0};
    if (!net || !out || !nn_sized_give(&none, sizeof none, offsetof(dm_layer_info, waited), out) || i < 0 ||
        i >= net->layer_count) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_net_layer: i is %d, and the net has %d layers; out->size must be set", i,
                            net ? net->layer_count : 0);
    }
    const nn_layer *l = &net->layers[i];
    dm_layer_info info = {.size = sizeof info,
                          .name = l->name,
                          .type = l->type->name,
                          .bottoms = l->bottoms,
                          .tops = l->tops,
                          .params = l->params,
                          .axis = nn_scores_axis(l),
                          .ignored = nn_ignored_label(l)};
    if (l->type->traits & NN_FEED) {
        info.waited = nn_feed_waited(l->u.state);
    }
    (void)nn_sized_give(&info, sizeof info, offsetof(dm_layer_info, waited), out);
    return DM_OK;
}

const char *dm_net_bottom(const dm_net *net, int i, int k)
{
    bool there = net && i >= 0 && i < net->layer_count && k >= 0 && k < net->layers[i].bottoms;
    return there ? net->layers[i].bottom[k]->name : NULL;
}

const char *dm_net_top(const dm_net *net, int i, int k)
{
    bool there = net && i >= 0 && i < net->layer_count && k >= 0 && k < net->layers[i].tops;
    return there ? net->layers[i].top[k]->name : NULL;
}
