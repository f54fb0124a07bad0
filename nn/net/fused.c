/* Convolutions of 1 x 1 that read one blob, as in the modules of GoogLeNet: their gradients are made together.
 * The gradients by their outputs are channels of one array, and their weights lie one behind the other in a
 * flat array, so one product makes the gradient by the blob, where there were several and their sum, and one
 * that by all weights. Both wait for the first of the layers, whose backward pass comes last. What decides
 * about it is the net alone: the same on any number of workers. */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

/* Behind each is a ReLU in place, which makes the gradient of the bias. */
static bool fits(const nn_layer *l)
{
    const dm_conv *c = &l->u.conv;
    const nn_param *w = l->param[0];
    return strcmp(l->type->name, "Convolution") == 0 && l->need_backward && l->bias_behind && l->ranges == 0 &&
           c->group == 1 && w->folded[2] * w->folded[3] == 1 && c->stride[0] * c->stride[1] == 1 &&
           c->pad[0] + c->pad[1] == 0 && !w->name && !w->shared && nn_flat_takes(w);
}

static bool alike(const nn_layer *a, const nn_layer *b)
{
    const nn_param *v = a->param[0], *w = b->param[0];
    return a->bottom[0] == b->bottom[0] && a->down[0] == b->down[0] && v->lr_mult == w->lr_mult &&
           v->decay_mult == w->decay_mult;
}

static dm_status find_one(nn_net *net, int first)
{
    nn_layer *head = &net->layers[first], *last = head;
    nn_fused f = {.layer = calloc((size_t)(net->layer_count - first), sizeof(nn_layer *))};
    if (!f.layer) {
        return dm_error_no_memory("a list of layers", (size_t)(net->layer_count - first) * sizeof *f.layer);
    }
    f.layer[f.count++] = head;
    f.outputs = head->top[0]->shape[1];
    for (int k = first + 1; k < net->layer_count; k++) {
        nn_layer *l = &net->layers[k];
        bool closes =
            last->param[0]->count % nn_flat_step(last->param[0]) == 0; /* no room behind its weights */
        if (closes && !l->fused && fits(l) && alike(head, l)) {
            f.layer[f.count++] = last = l;
            f.outputs += l->top[0]->shape[1];
        }
    }
    if (f.count == 1) {
        free(f.layer);
        return DM_OK;
    }
    nn_fused *all = net->fused[net->fused_count] = malloc(sizeof *all);
    if (!all) {
        free(f.layer);
        return dm_error_no_memory("a list of layers", sizeof *all);
    }
    net->fused_count++;
    *all = f;
    for (int i = 0; i < f.count; i++) {
        f.layer[i]->fused = all;
    }
    return DM_OK;
}

dm_status nn_fused_find(nn_net *net)
{
    dm_status status = DM_OK;
    net->fused = calloc((size_t)net->layer_count + 1, sizeof(nn_fused *));
    if (!net->fused) {
        return dm_error_no_memory("a list of layers", ((size_t)net->layer_count + 1) * sizeof *net->fused);
    }
    for (int k = 0; status == DM_OK && k < net->layer_count; k++) {
        nn_layer *l = &net->layers[k];
        status = !l->fused && fits(l) ? find_one(net, k) : DM_OK;
    }
    return status;
}

dm_status nn_fused_place(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->fused_count; i++) {
        nn_fused *f = net->fused[i];
        nn_param all = *f->layer[0]->param[0];
        all.count = all.count / all.folded[0] * f->outputs;
        all.folded[0] = f->outputs;
        status = nn_flat_part(net, &all, all.flat->rounds ? all.flat->rounded : all.flat->data, &f->w);
        status = status == DM_OK ? nn_flat_part(net, &all, all.flat->diff, &f->dw) : status;
    }
    return status;
}

dm_status nn_fused_make(nn_fused *f, dm_dtype type)
{
    const nn_layer *head = f->layer[0];
    const nn_net *net = head->net;
    nn_blob all = *head->top[0];
    int64_t at = 0;
    all.shape[1] = f->outputs;
    dm_status status = nn_blob_array(net, &all, type, &f->diff);
    for (int i = 0; status == DM_OK && i < f->count; i++) {
        nn_blob *x = f->layer[i]->top[0];
        status = nn_blob_part(net, f->diff, x, 1, at, &x->diff);
        at += x->shape[1];
    }
    return status;
}

dm_status nn_fused_backward(nn_layer *l)
{
    const nn_fused *f = l->fused;
    dm_session *s = l->net->session;
    double beta = 0;
    if (l != f->layer[0]) {
        return DM_OK;
    }
    for (int i = 0; i < f->count; i++) {
        beta = nn_param_beta(f->layer[i], 0); /* of all the same: nobody shares them */
    }
    dm_status status =
        dm_conv_backward_weights(s, &l->u.conv, l->bottom[0]->data, f->diff, beta, f->dw, DM_NO_ARRAY);
    if (status == DM_OK && l->down[0]) {
        dm_array down = nn_down(l, 0);
        status = nn_down_done(l, 0, dm_conv_backward_data(s, &l->u.conv, f->diff, f->w, down));
    }
    return status;
}
