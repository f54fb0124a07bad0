/* The graph: which blob a layer reads and makes, what is an output, and what needs a gradient. */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The blob that a name means now: the last that was made under it. */
static nn_blob *find_blob(const nn_net *net, const char *name)
{
    for (int i = net->blob_count - 1; i >= 0; i--) {
        if (strcmp(net->blobs[i]->name, name) == 0) {
            return net->blobs[i];
        }
    }
    return NULL;
}

static dm_status new_blob(nn_net *net, nn_layer *layer, const char *name, nn_blob **out)
{
    nn_blob **list = realloc(net->blobs, (size_t)(net->blob_count + 1) * sizeof *list);
    if (!list) {
        return dm_error_no_memory("a list of blobs", (size_t)(net->blob_count + 1) * sizeof *list);
    }
    net->blobs = list;
    nn_blob *b = calloc(1, sizeof *b);
    if (!b || !(b->name = strdup(name))) {
        free(b);
        return dm_error_no_memory("a blob", sizeof *b + strlen(name) + 1);
    }
    b->producer = layer;
    list[net->blob_count++] = b;
    *out = b;
    return DM_OK;
}

static dm_status check_count(const nn_layer *l, const char *field, const int *range, int count)
{
    if (count >= range[0] && (range[1] < 0 || count <= range[1])) {
        return DM_OK;
    }
    if (range[0] == range[1]) {
        return nn_layer_fail(l, field, DM_ERR_FORMAT, "has %d %ss; %s layers have %d", count, field,
                             l->type->name, range[0]);
    }
    return nn_layer_fail(l, field, DM_ERR_FORMAT, "has %d %ss; %s layers have at least %d%s", count, field,
                         l->type->name, range[0], range[1] > 0 ? ", and not as many" : "");
}

/* " in line 3"; nothing of a layer that no text file has. */
const char *nn_in_line(const nn_message *layer, char out[NN_IN_LINE])
{
    const int line = nn_line(layer, "name");
    snprintf(out, NN_IN_LINE, line > 0 ? " in line %d" : "", line);
    return out;
}

static dm_status no_blob(const nn_net *net, const nn_layer *l, const char *name)
{
    char line[NN_IN_LINE];
    for (int i = 0; i < net->left_count; i++) {
        const nn_message *other = net->left[i];
        for (int64_t k = 0; k < nn_count(other, "top"); k++) {
            if (strcmp(nn_string_at(other, "top", k), name) == 0) {
                return nn_layer_fail(
                    l, "bottom", DM_ERR_FORMAT,
                    "reads the blob '%s', which no layer before it makes in the phase %s: layer "
                    "'%s'%s does, but its rules leave it out",
                    name, net->phase == NN_TRAIN ? "TRAIN" : "TEST", nn_string(other, "LayerParameter", "name"),
                    nn_in_line(other, line));
            }
        }
    }
    return nn_layer_fail(l, "bottom", DM_ERR_FORMAT, "reads the blob '%s', which no layer before it makes",
                         name);
}

static dm_status connect_bottoms(nn_net *net, nn_layer *l)
{
    const int64_t flags = nn_count(l->message, "propagate_down"), all = nn_count(l->message, "bottom");
    if (flags && flags != all) {
        return nn_layer_fail(l, "propagate_down", DM_ERR_FORMAT,
                             "has %lld bottoms but %lld values of propagate_down", (long long)all,
                             (long long)flags);
    }
    for (int i = 0; i < l->bottoms; i++) {
        const char *name = nn_string_at(l->message, "bottom", l->pair + i);
        nn_blob *b = find_blob(net, name);
        if (!b) {
            return no_blob(net, l, name);
        }
        b->reads = true;
        l->bottom[i] = b;
        l->need_backward = l->need_backward || b->need_backward || net->force;
        l->down[i] = (flags ? nn_int_at(l->message, "propagate_down", l->pair + i) != 0 : b->need_backward) ||
                     net->force;
    }
    return DM_OK;
}

static dm_status connect_tops(nn_net *net, nn_layer *l)
{
    const int64_t named = nn_count(l->message, "top"), weights = nn_count(l->message, "loss_weight"),
                  all = l->pairs > 1 ? l->pairs : l->tops;
    if (weights && weights != all) {
        return nn_layer_fail(l, "loss_weight", DM_ERR_FORMAT, "has %lld tops but %lld values of loss_weight",
                             (long long)all, (long long)weights);
    }
    for (int i = 0; i < l->tops; i++) {
        const char *name = i < named ? nn_string_at(l->message, "top", l->pair + i) : "(automatic)";
        bool in_place = i < l->bottoms && strcmp(name, nn_string_at(l->message, "bottom", l->pair + i)) == 0;
        if (i < named && !in_place && find_blob(net, name)) {
            return nn_layer_fail(l, "top", DM_ERR_FORMAT,
                                 "makes the blob '%s', which another layer makes already", name);
        }
        dm_status status = new_blob(net, l, name, &l->top[i]);
        if (status != DM_OK) {
            return status;
        }
        l->top[i]->loss_weight = weights ? nn_real_at(l->message, "loss_weight", l->pair + i)
                                 : (l->type->traits & NN_LOSS) && i == 0 ? 1
                                                                         : 0;
        l->top[i]->reads = i >= named; /* no output */
    }
    return DM_OK;
}

dm_status nn_connect(nn_net *net, nn_layer *l)
{
    l->bottoms = l->pairs > 1 ? 1 : (int)nn_count(l->message, "bottom");
    l->tops = l->pairs > 1 ? 1 : (int)nn_count(l->message, "top");
    if ((l->type->traits & NN_LOSS) && l->tops == 0) {
        l->tops = 1; /* a loss needs no name */
    }
    l->bottom = calloc((size_t)l->bottoms + 1, sizeof(nn_blob *));
    l->top = calloc((size_t)l->tops + 1, sizeof(nn_blob *));
    l->down = calloc((size_t)l->bottoms + 1, sizeof(bool));
    if (!l->bottom || !l->top || !l->down) {
        return dm_error_no_memory("the blobs of a layer",
                                  ((size_t)l->bottoms + (size_t)l->tops + 2) * sizeof(nn_blob *));
    }
    dm_status status = check_count(l, "bottom", l->type->bottoms, l->bottoms);
    if (status == DM_OK) {
        status = check_count(l, "top", l->type->tops, l->tops);
    }
    if (status == DM_OK) {
        status = connect_bottoms(net, l);
    }
    return status == DM_OK ? connect_tops(net, l) : status;
}

/* Outputs in the order of their names, as Caffe prints them. */
dm_status nn_find_outputs(nn_net *net)
{
    net->output = calloc((size_t)net->blob_count + 1, sizeof(int));
    if (!net->output) {
        return dm_error_no_memory("the outputs of a net", ((size_t)net->blob_count + 1) * sizeof(int));
    }
    for (int i = 0; i < net->blob_count; i++) {
        if (net->blobs[i]->reads) {
            continue;
        }
        int at = net->output_count++;
        for (; at > 0 && strcmp(net->blobs[net->output[at - 1]]->name, net->blobs[i]->name) > 0; at--) {
            net->output[at] = net->output[at - 1];
        }
        net->output[at] = i;
    }
    return DM_OK;
}

static bool differentiable(const nn_layer *l, int bottom)
{
    return l->type->backward && l->type->differentiable >> (bottom < 31 ? bottom : 31) & 1;
}

/* A layer that would have to pass a gradient on, but has none. */
static dm_status no_gradient(const nn_layer *l)
{
    bool weighs = false;
    for (int i = 0; i < l->tops; i++) {
        weighs = weighs || l->top[i]->loss_weight != 0;
    }
    return nn_layer_fail(l, weighs ? "loss_weight" : "type", DM_ERR_UNSUPPORTED,
                         weighs
                             ? "has a loss_weight, but %s layers have no gradient"
                             : "is on the way from parameters to the loss, but %s layers have no gradient: a "
                               "layer that reads it may have propagate_down: false",
                         l->type->name);
}

/* Does a blob depend on parameters that are learned? Top i of a Filter has samples of bottom i alone. */
static bool learned(const nn_blob *b)
{
    const nn_layer *l = b->producer;
    for (int i = 0; strcmp(l->type->name, "Filter") == 0 && i < l->tops; i++) {
        if (l->top[i] == b) {
            return learned(l->bottom[i]);
        }
    }
    return b->need_backward;
}

/* A bottom that would have to get a gradient, for it depends on parameters or the file says so, but has none.
 */
static dm_status check_bottom(const nn_layer *l, int i)
{
    const bool said = nn_count(l->message, "propagate_down") > 0;
    const bool asked = said ? nn_int_at(l->message, "propagate_down", l->pair + i) != 0
                            : learned(l->bottom[i]) && !l->net->force;
    if (!asked || !l->need_backward || l->net->phase != NN_TRAIN || (l->type->traits & NN_LOOKS) ||
        differentiable(l, i)) {
        return DM_OK;
    }
    return nn_layer_fail(
        l, said ? "propagate_down" : "bottom", DM_ERR_UNSUPPORTED,
        "reads '%s', which %s: %s layers have no gradient by it, and take propagate_down: false for it",
        l->bottom[i]->name, said ? "has propagate_down: true" : "depends on parameters that are learned",
        l->type->name);
}

/* From the end: a layer that adds nothing to the loss, or whose gradients nobody wants, has no backward pass.
 */
dm_status nn_mark_backward(nn_net *net)
{
    for (int k = net->layer_count - 1; k >= 0; k--) {
        nn_layer *l = &net->layers[k];
        bool contributes = false, wanted = l->tops == 0;
        for (int i = 0; i < l->tops; i++) {
            const nn_blob *b = l->top[i];
            contributes = contributes || b->loss_weight != 0 || b->own_loss || b->under_loss;
            wanted = wanted || b->loss_weight != 0 || b->own_loss || b->has_diff;
        }
        l->need_backward = l->need_backward && contributes && wanted;
        if (l->need_backward && !l->type->backward) {
            if (net->phase == NN_TRAIN) {
                return no_gradient(l);
            }
            l->need_backward = false;
        }
        for (int i = 0; i < l->bottoms; i++) {
            dm_status status = check_bottom(l, i);
            if (status != DM_OK) {
                return status;
            }
            l->down[i] = l->down[i] && l->need_backward && differentiable(l, i);
            l->bottom[i]->under_loss = l->bottom[i]->under_loss || contributes;
            l->bottom[i]->has_diff = l->bottom[i]->has_diff || l->down[i];
        }
    }
    return DM_OK;
}

dm_status nn_mark_own_losses(nn_net *net, const char *names)
{
    for (const char *at = names; at && *at;) {
        size_t n = strcspn(at, ",");
        nn_blob *found = NULL;
        for (int i = net->blob_count - 1; i >= 0 && !found; i--) {
            const nn_blob *b = net->blobs[i];
            found = strncmp(b->name, at, n) == 0 && b->name[n] == 0 ? net->blobs[i] : NULL;
        }
        if (!found) {
            return dm_error_set(DM_ERR_ARG, "own_loss: the net has no blob '%.*s'", (int)n, at);
        }
        if (!found->need_backward || (found->producer->type->traits & NN_LOSS) ||
            !found->producer->type->backward) {
            return dm_error_set(
                DM_ERR_ARG,
                "own_loss: '%s' does not depend on parameters that are learned, is the loss of a "
                "layer, or of one without a gradient: it takes no gradient",
                found->name);
        }
        found->own_loss = true;
        at += n + (at[n] == ',');
    }
    return DM_OK;
}
