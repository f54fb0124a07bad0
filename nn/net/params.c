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
    if (!same && !(loose && count == shared->count)) {
        char mine[NN_SHAPE_TEXT], theirs[NN_SHAPE_TEXT];
        return nn_fail_at(spec, nn_line(spec, "name"), DM_ERR_SHAPE,
                          "layer '%s' shares '%s' of layer '%s', but needs another shape: %s, and not %s",
                          l->name, shared->name, shared->owner->name, nn_shape_text(ndim, shape, mine),
                          nn_shape_text(shared->ndim, shared->shape, theirs));
    }
    dm_status status = agree(l, spec, "lr_mult", &shared->lr_mult, &shared->has_lr);
    return status == DM_OK ? agree(l, spec, "decay_mult", &shared->decay_mult, &shared->has_decay) : status;
}

/* Do its arrays lie as a layer needs them? */
static bool lies_so(const nn_param *p, int ndim, const int64_t *shape, const int64_t *folded)
{
    return p->ndim == ndim && memcmp(p->shape, shape, (size_t)ndim * sizeof *shape) == 0 &&
           p->order == (folded ? NN_CHANNELS_LAST : NN_PLAIN) &&
           (!folded || memcmp(p->folded, folded, sizeof p->folded) == 0);
}

static dm_status add(nn_layer *l, int ndim, const int64_t *shape, const int64_t *folded, nn_param ***list,
                     int *count, nn_param **out)
{
    nn_param **longer = realloc(*list, (size_t)(*count + 1) * sizeof *longer), *p = calloc(1, sizeof *p);
    *list = longer ? longer : *list;
    if (!longer || !p) {
        free(p);
        return dm_error_no_memory("a parameter", (size_t)(*count + 1) * sizeof *longer + sizeof *p);
    }
    (*list)[(*count)++] = p;
    p->owner = l;
    p->number = l->params;
    p->ndim = ndim;
    memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
    p->count = 1;
    for (int d = 0; d < ndim; d++) {
        p->count *= shape[d];
    }
    if (folded) {
        p->order = NN_CHANNELS_LAST;
        memcpy(p->folded, folded, sizeof p->folded);
    }
    *out = p;
    return DM_OK;
}

/* A parameter that no layer before has. */
static dm_status add_new(nn_layer *l, int ndim, const int64_t *shape, const int64_t *folded,
                         const nn_message *filler, const nn_message *spec, nn_param **out)
{
    const char *name = nn_string(spec, "ParamSpec", "name");
    dm_status status = add(l, ndim, shape, folded, &l->net->params, &l->net->param_count, out);
    if (status != DM_OK) {
        return status;
    }
    nn_param *p = *out;
    if (*name && !(p->name = strdup(name))) {
        return dm_error_no_memory("the name of a parameter", strlen(name) + 1);
    }
    p->filler = filler;
    p->lr_mult = p->decay_mult = 1;
    status = agree(l, spec, "lr_mult", &p->lr_mult, &p->has_lr);
    return status == DM_OK ? agree(l, spec, "decay_mult", &p->decay_mult, &p->has_decay) : status;
}

dm_status nn_new_param(nn_layer *l, int ndim, const int64_t *shape, const nn_message *filler, nn_param **out)
{
    return nn_new_folded(l, ndim, shape, NULL, filler, out);
}

dm_status nn_new_folded(nn_layer *l, int ndim, const int64_t *shape, const int64_t *folded,
                        const nn_message *filler, nn_param **out)
{
    nn_net *net = l->net;
    int number = l->params;
    const nn_message *spec =
        number < nn_count(l->message, "param") ? nn_sub_at(l->message, "param", number) : NULL;
    const char *name = nn_string(spec, "ParamSpec", "name");
    nn_param *p = l->pair > 0 ? l[-l->pair].param[number] : *name ? find_shared(net, name) : NULL;
    dm_status status = DM_OK;
    if (spec) {
        nn_use(spec, "share_mode");
    }
    if (p) {
        nn_param *shared = p;
        status = join(l, shared, ndim, shape, spec);
        shared->shared = true;
        nn_use_all((nn_message *)(uintptr_t)filler); /* the owner's counts */
        if (status == DM_OK && !lies_so(shared, ndim, shape, folded)) {
            status = add(l, ndim, shape, folded, &net->turned, &net->turned_count, &p);
            if (status == DM_OK) {
                p->of = shared;
                p->shared = true;
                p->lr_mult = shared->lr_mult;
            }
        }
    } else {
        status = add_new(l, ndim, shape, folded, filler, spec, &p);
    }
    if (status == DM_OK) {
        l->param[l->params++] = p;
        l->need_backward = l->need_backward || p->lr_mult != 0;
        *out = p;
    }
    return status;
}

int nn_param_shape(const nn_param *p, int64_t shape[DM_MAX_DIMS])
{
    const int64_t *f = p->folded, folded[4] = {f[0], f[2], f[3], f[1]};
    bool plain = p->order == NN_PLAIN;
    int ndim = plain ? p->ndim : 4;
    memcpy(shape, plain ? p->shape : folded, (size_t)ndim * sizeof *shape);
    return ndim;
}

/* The ranges of a parameter that workers hold so, and in *block the indices of a range that each of the workers
 * that have copies of it updates, where it is dealt out: so each sum into a range is shared by all of them. */
static nn_deal ranges_of(const nn_param *p, const int64_t *shape, int64_t *block)
{
    *block = (p->range + p->parts[0] - 1) / p->parts[0];
    return nn_deal_out(shape[p->range_dim], p->range, p->parts[1]);
}

static dm_status make_dealt_ranges(const nn_net *net, const nn_param *p, dm_dtype type, int ndim,
                                   const int64_t *shape, dm_array *out)
{
    int64_t block[DM_MAX_DIMS];
    memcpy(block, shape, (size_t)ndim * sizeof *shape);
    const nn_deal d = ranges_of(p, shape, &block[p->range_dim]);
    const int64_t size = block[p->range_dim], count = (d.count + size - 1) / size;
    int *map = calloc((size_t)count, sizeof *map);
    if (!map) {
        return dm_error_no_memory("the layout of a parameter", (size_t)count * sizeof *map);
    }
    /* At most as many blocks begin in a range as there are workers for it. */
    for (int64_t i = 0; i < count; i++) {
        const int64_t range = i * size / p->range, first = (range * p->range + size - 1) / size;
        map[i] = (int)((i - first) * p->parts[1] + range / d.each);
    }
    const dm_layout layout = dm_layout_explicit(ndim, block, map, count);
    dm_status status = dm_array_create(net->session, type, ndim, shape, &layout, out);
    free(map);
    return status;
}

/* part: in a parameter that is dealt out, each worker has its rows. */
static dm_status make_array(const nn_net *net, const nn_param *p, bool part, dm_dtype type, dm_array *out)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = nn_param_shape(p, shape);
    dm_layout layout = dm_layout_replicated(net->session);
    if (p->dealt && part && p->range) {
        return make_dealt_ranges(net, p, type, ndim, shape, out);
    }
    if (p->dealt && part) {
        layout = dm_layout_rows(net->session);
    } else if (p->range) {
        layout = dm_layout_split(net->session, p->range_dim);
        layout.block[p->range_dim] = p->range;
        layout.grid[p->range_dim] = p->parts[1];
        layout.replicas = p->parts[0];
    }
    return dm_array_create(net->session, type, ndim, shape, &layout, out);
}

dm_status nn_param_array(const nn_net *net, const nn_param *p, dm_array *out)
{
    return make_array(net, p, true, DM_F32, out);
}

int64_t nn_param_held(const nn_net *net, const nn_param *p, bool part)
{
    int64_t shape[DM_MAX_DIMS], rows = 1, all = 1;
    const bool dealt = p->dealt && part;
    (void)nn_param_shape(p, shape);
    if (p->range) {
        int64_t block = 0;
        const nn_deal d = ranges_of(p, shape, &block);
        all = d.count;
        rows = d.each * (dealt ? block : d.size);
        rows = rows < all ? rows : all;
    } else if (dealt) {
        const int64_t workers = dm_workers(net->session);
        all = shape[0];
        rows = (all + workers - 1) / workers;
    }
    return p->count / all * rows;
}

dm_array nn_param_used(const nn_layer *l, int param)
{
    const nn_param *p = l->param[param];
    return p->rounded.id ? p->rounded : p->data;
}

bool nn_type_fits(dm_dtype type)
{
    return type == DM_F32 || type == DM_F16 || type == DM_BF16;
}

dm_status nn_wire_check(const char *call, dm_dtype wire, dm_dtype type)
{
    if (wire != 0 && wire != DM_BF16) {
        return dm_error_set(DM_ERR_ARG, "%s: wire is %d, not 0 or DM_BF16", call, (int)wire);
    }
    return wire == 0 || type != DM_F16
               ? DM_OK
               : dm_error_set(DM_ERR_ARG, "%s: wire is DM_BF16, which nets of the type DM_F16 do not take",
                              call);
}

/* A layer of a test net that has another's name has as many parameters. */
static dm_status count_params(const nn_net *net, const nn_net *share)
{
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i], *other = nn_find_layer(share, l->name);
        if (other && other->params != l->params) {
            return nn_layer_fail(l, "name", DM_ERR_SHAPE,
                                 "has %d parameters, but the training net's layer of this name has %d",
                                 l->params, other->params);
        }
    }
    return DM_OK;
}

/* Takes the arrays of a net whose layers have the same names: for tests. Of parameters that are dealt out, and
 * with `apart` of all, the elements. */
static dm_status borrow(nn_net *net, nn_net *share, bool apart)
{
    dm_status status = count_params(net, share);
    if (status != DM_OK) {
        return status;
    }
    for (int i = 0; i < net->param_count; i++) {
        nn_param *p = net->params[i];
        const nn_layer *other = nn_find_layer(share, p->owner->name);
        if (!other) {
            continue;
        }
        nn_param *theirs = other->param[p->number];
        if (theirs->of) { /* whose elements a pass of that net writes */
            return nn_layer_fail(
                p->owner, "name", DM_ERR_UNSUPPORTED,
                "takes parameter %d of the training net's layer, which is a copy of that of layer '%s', "
                "under another shape or in another order: that layer must be there too",
                p->number, theirs->of->owner->name);
        }
        if (p->ndim != theirs->ndim ||
            memcmp(p->shape, theirs->shape, (size_t)p->ndim * sizeof *p->shape) != 0 ||
            p->order != theirs->order) {
            char mine[NN_SHAPE_TEXT], other_shape[NN_SHAPE_TEXT];
            return nn_layer_fail(
                p->owner, "name", DM_ERR_SHAPE,
                "has parameters of another shape than the training net's layer: %s, and not %s",
                nn_shape_text(p->ndim, p->shape, mine),
                nn_shape_text(theirs->ndim, theirs->shape, other_shape));
        }
        p->borrowed = !apart && !theirs->dealt;
        p->lender = p->borrowed ? theirs : NULL;
        p->follows = p->borrowed ? NULL : theirs;
        p->data = p->borrowed ? theirs->data : p->data;
    }
    return DM_OK;
}

dm_status nn_param_place(const nn_net *net, nn_param *p)
{
    dm_status status = p->borrowed ? DM_OK : nn_param_array(net, p, &p->data);
    if (status == DM_OK && p->rounds && (net->type != DM_F32 || p->dealt)) {
        status = make_array(net, p, false, net->type, &p->rounded);
    }
    if (status == DM_OK && net->phase == NN_TRAIN) {
        status = nn_param_array(net, p, &p->diff);
        status = status == DM_OK ? dm_fill(net->session, p->diff, 0) : status;
    }
    return status;
}

static dm_status place_in_flat(const nn_net *net, nn_param *p)
{
    const nn_flat *f = p->flat;
    dm_status status = nn_flat_part(net, p, f->data, &p->data);
    status = status == DM_OK ? nn_flat_part(net, p, f->diff, &p->diff) : status;
    return status == DM_OK && f->rounds ? nn_flat_part(net, p, f->rounded, &p->rounded) : status;
}

dm_status nn_params_place(nn_net *net, nn_net *share, bool apart)
{
    dm_status status = share ? borrow(net, share, apart) : DM_OK;
    for (int i = 0; i < net->param_count; i++) {
        nn_param *p = net->params[i];
        p->dealt = !p->owner->fused && nn_update_deals(net, p);
    }
    status = status == DM_OK && net->phase == NN_TRAIN ? nn_flats_make(net) : status;
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        nn_param *p = net->params[i];
        status = p->flat ? place_in_flat(net, p) : nn_param_place(net, p);
    }
    status = status == DM_OK ? nn_turned_place(net) : status;
    return status == DM_OK ? nn_fused_place(net) : status;
}

dm_status nn_params_fill(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        nn_param *p = net->params[i];
        if (p->borrowed || p->follows) {
            nn_use_all((nn_message *)(uintptr_t)p->filler);
        } else if (!p->filler && p->first != 0) {
            status = dm_fill(net->session, p->data, p->first);
        } else {
            status = nn_fill(p->owner, p->filler, p->ndim, p->shape, p->order == NN_CHANNELS_LAST,
                             nn_hash(net->seed, (uint64_t)i), p->data);
        }
    }
    return status == DM_OK ? nn_params_follow(net) : status;
}

dm_status nn_params_follow(const nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        const nn_param *p = net->params[i];
        status = p->follows ? dm_copy(net->session, p->follows->data, p->data) : DM_OK;
    }
    return status;
}
