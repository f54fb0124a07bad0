/* Parameters: sharing by name, their places in the flat arrays, their first values. */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

static nn_param *find_shared(const nn_net *net, const char *name)
{
    for (int i = 0; i < net->param_count; i++) {
        if (net->params[i]->name && strcmp(net->params[i]->name, name) == 0) {
            return net->params[i];
        }
    }
    return NULL;
}

/* One value that all who share a parameter must agree on, where they give it. */
static dm_status agree(const nn_layer *l, const nn_message *spec, const char *field, double *value, bool *has)
{
    if (!spec || !nn_has(spec, field)) {
        return DM_OK;
    }
    double mine = nn_real(spec, "ParamSpec", field);
    if (*has && mine != *value) {
        return nn_fail_at(spec, nn_line(spec, field), DM_ERR_FORMAT,
                          "layer '%s' gives the shared parameter '%s' another %s than the layers before it",
                          l->name, nn_string(spec, "ParamSpec", "name"), field);
    }
    *value = mine;
    *has = true;
    return DM_OK;
}

static dm_status join(nn_layer *l, nn_param *shared, int ndim, const int64_t *shape, const nn_message *spec)
{
    int64_t count = 1;
    bool same = ndim == shared->ndim, loose = nn_int(spec, "ParamSpec", "share_mode") == 1;
    for (int d = 0; d < ndim; d++) {
        same = same && shape[d] == shared->shape[d];
        count *= shape[d];
    }
    if (!same && !(loose && count == shared->count && shared->order == NN_PLAIN)) {
        return nn_fail_at(spec, nn_line(spec, "name"), DM_ERR_SHAPE,
                          "layer '%s' shares '%s' of layer '%s', but needs another shape", l->name,
                          shared->name, shared->owner->name);
    }
    dm_status status = agree(l, spec, "lr_mult", &shared->lr_mult, &shared->has_lr);
    return status == DM_OK ? agree(l, spec, "decay_mult", &shared->decay_mult, &shared->has_decay) : status;
}

dm_status nn_new_param(nn_layer *l, int ndim, const int64_t *shape, const nn_message *filler, nn_param **out)
{
    nn_net *net = l->net;
    int number = l->params;
    const nn_message *spec =
        number < nn_count(l->message, "param") ? nn_sub_at(l->message, "param", number) : NULL;
    const char *name = nn_string(spec, "ParamSpec", "name");
    nn_param *p = *name ? find_shared(net, name) : NULL;
    dm_status status = DM_OK;
    if (spec) {
        nn_use(spec, "share_mode");
    }
    if (p) {
        status = join(l, p, ndim, shape, spec);
        nn_use_all((nn_message *)(uintptr_t)filler); /* the owner's counts */
    } else {
        nn_param **list = realloc(net->params, (size_t)(net->param_count + 1) * sizeof *list);
        if (list) {
            net->params = list;
        }
        p = list ? calloc(1, sizeof *p) : NULL;
        if (!p || (*name && !(p->name = strdup(name)))) {
            free(p);
            return nn_no_memory();
        }
        list[net->param_count++] = p;
        p->owner = l;
        p->number = number;
        p->ndim = ndim;
        memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
        p->count = 1;
        for (int d = 0; d < ndim; d++) {
            p->count *= shape[d];
        }
        p->filler = filler;
        p->lr_mult = p->decay_mult = 1;
        status = agree(l, spec, "lr_mult", &p->lr_mult, &p->has_lr);
        status = status == DM_OK ? agree(l, spec, "decay_mult", &p->decay_mult, &p->has_decay) : status;
    }
    if (status == DM_OK) {
        l->param[l->params++] = p;
        l->need_backward = l->need_backward || p->lr_mult != 0;
        *out = p;
    }
    return status;
}

/* The shape of its array. */
static int array_shape(const nn_param *p, int64_t *shape)
{
    if (p->order == NN_PLAIN) {
        memcpy(shape, p->shape, (size_t)p->ndim * sizeof *shape);
        return p->ndim;
    }
    const int64_t *f = p->folded;
    memcpy(shape, (int64_t[]){f[0], f[2], f[3], f[1]}, 4 * sizeof *shape);
    return 4;
}

dm_status nn_param_part(nn_net *net, const nn_param *p, dm_array flat, dm_array *out)
{
    dm_array range = DM_NO_ARRAY;
    int64_t shape[DM_MAX_DIMS];
    int ndim = array_shape(p, shape);
    dm_status status = dm_rows(net->session, flat, p->offset, p->count, &range);
    if (status == DM_OK) {
        status = dm_array_reshape(net->session, range, ndim, shape, out);
    }
    dm_status end = dm_array_destroy(net->session, range);
    return status == DM_OK ? end : status;
}

static bool same_group(const nn_param *a, const nn_param *b)
{
    return a->lr_mult == b->lr_mult && a->decay_mult == b->decay_mult;
}

/* Places in the flat arrays: groups in the order of their first parameters. */
static int64_t place(nn_net *net)
{
    int64_t at = 0;
    for (int i = 0; i < net->param_count; i++) {
        net->params[i]->offset = -1;
    }
    for (int i = 0; i < net->param_count; i++) {
        for (int k = i; k < net->param_count; k++) {
            nn_param *p = net->params[k];
            if (p->offset < 0 && same_group(p, net->params[i])) {
                p->offset = at;
                at += p->count;
            }
        }
    }
    return at;
}

/* Takes the arrays of a net whose layers have the same names: for tests beside training. */
static dm_status borrow(nn_net *net, nn_net *share)
{
    for (int i = 0; i < net->param_count; i++) {
        nn_param *p = net->params[i];
        const nn_layer *other = NULL;
        for (int k = 0; k < share->layer_count && !other; k++) {
            if (strcmp(share->layers[k].name, p->owner->name) == 0 && p->number < share->layers[k].params) {
                other = &share->layers[k];
            }
        }
        if (!other) {
            continue;
        }
        const nn_param *theirs = other->param[p->number];
        if (p->count != theirs->count || p->order != theirs->order) {
            return nn_layer_fail(p->owner, "name", DM_ERR_SHAPE,
                                 "has parameters of another shape than the training net's layer");
        }
        p->borrowed = true;
        p->data = theirs->data;
    }
    return DM_OK;
}

dm_status nn_params_place(nn_net *net, nn_net *share)
{
    dm_layout everywhere = dm_layout_replicated(net->session);
    dm_status status = share ? borrow(net, share) : DM_OK;
    net->weight_count = place(net);
    bool own = false;
    for (int i = 0; i < net->param_count; i++) {
        own = own || !net->params[i]->borrowed;
    }
    if (status == DM_OK && own) {
        status = dm_array_create(net->session, DM_F32, 1, &net->weight_count, &everywhere, &net->weights);
    }
    if (status == DM_OK && own && net->phase == NN_TRAIN) {
        status = dm_array_create(net->session, DM_F32, 1, &net->weight_count, &everywhere, &net->gradients);
        if (status == DM_OK) {
            status = dm_fill(net->session, net->gradients, 0);
        }
    }
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        nn_param *p = net->params[i];
        if (!p->borrowed) {
            status = nn_param_part(net, p, net->weights, &p->data);
        }
        if (status == DM_OK && net->gradients.id) {
            status = nn_param_part(net, p, net->gradients, &p->diff);
        }
    }
    return status;
}

dm_status nn_params_fill(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        nn_param *p = net->params[i];
        if (p->borrowed) {
            nn_use_all((nn_message *)(uintptr_t)p->filler);
        } else {
            status = nn_fill(net, p->filler, p->ndim, p->shape, nn_hash(net->seed, (uint64_t)i), p->data);
        }
    }
    return status;
}

dm_status nn_params_group(const nn_net *net, int64_t from, const nn_param **first, int64_t *end)
{
    const nn_param *head = NULL;
    int64_t last = from;
    for (int i = 0; i < net->param_count; i++) {
        head = net->params[i]->offset == from ? net->params[i] : head;
    }
    if (!head) {
        return dm_error_set(DM_ERR_INTERNAL, "no parameter begins at %lld", (long long)from);
    }
    for (int i = 0; i < net->param_count; i++) {
        const nn_param *p = net->params[i];
        if (same_group(p, head) && p->offset + p->count > last) {
            last = p->offset + p->count;
        }
    }
    *first = head;
    *end = last;
    return DM_OK;
}
