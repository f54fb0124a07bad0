/* Parameters that move alike lie one behind the other in one array: then one kernel moves them all, and one
 * rounds them. Each is a view of its part. */
#include "net/net.h"

#include <stdlib.h>

/* ALIGN: elements, so that each parameter begins where vectors, and libraries, want it. A kernel of its own
 * takes a parameter above NN_MOST_FLAT no longer, and need not wait for the gradients of all others. */
enum { ALIGN = 16 };

/* A view can have the parameter's shape where it begins at a multiple of so many elements: whole rows. */
int64_t nn_flat_step(const nn_param *p)
{
    int64_t shape[DM_MAX_DIMS], row = 1, step = ALIGN;
    int ndim = nn_param_shape(p, shape), first = 0;
    while (first < ndim && shape[first] == 1) { /* such dims have no rows */
        first++;
    }
    for (int d = first + 1; d < ndim; d++) {
        row *= shape[d];
    }
    while (step % row != 0) {
        step += ALIGN;
    }
    return step;
}

/* Parameters that workers hold in parts, or that have no dims, cannot be views; and few long rows would leave
 * more room between them than they take. */
bool nn_flat_takes(const nn_param *p)
{
    return !p->borrowed && !p->range && !p->dealt && p->ndim > 0 && p->lr_mult != 0 && p->count > 0 &&
           p->count <= NN_MOST_FLAT && (p->count < ALIGN || nn_flat_step(p) <= p->count);
}

static nn_flat *flat_of(nn_net *net, const nn_param *p)
{
    bool rounds = p->rounds && net->type != DM_F32;
    int i = 0;
    while (i < net->flat_count &&
           !(net->flats[i].lr_mult == p->lr_mult && net->flats[i].decay_mult == p->decay_mult &&
             net->flats[i].rounds == rounds)) {
        i++;
    }
    if (i == net->flat_count) {
        net->flats[net->flat_count++] =
            (nn_flat){.lr_mult = p->lr_mult, .decay_mult = p->decay_mult, .rounds = rounds};
    }
    return &net->flats[i];
}

dm_status nn_flat_array(const nn_net *net, const nn_flat *flat, dm_dtype type, dm_array *out)
{
    dm_layout layout = dm_layout_replicated(net->session);
    dm_status status = dm_array_create(net->session, type, 1, &flat->count, &layout, out);
    return status == DM_OK ? dm_fill(net->session, *out, 0) : status; /* what lies between parameters too */
}

static void place(nn_net *net, nn_param *p)
{
    nn_flat *f = flat_of(net, p);
    int64_t step = nn_flat_step(p);
    p->flat = f;
    p->at = (f->count + step - 1) / step * step;
    f->count = p->at + (p->count + ALIGN - 1) / ALIGN * ALIGN; /* so that kernels end without a rest */
}

dm_status nn_flats_make(nn_net *net)
{
    dm_status status = DM_OK;
    net->flats = calloc((size_t)net->param_count + 1, sizeof *net->flats);
    if (!net->flats) {
        return dm_error_no_memory("the places of parameters",
                                  ((size_t)net->param_count + 1) * sizeof *net->flats);
    }
    for (int i = 0; i < net->param_count; i++) {
        nn_param *p = net->params[i];
        const nn_fused *fused = p->number == 0 ? p->owner->fused : NULL;
        if (!p->flat && nn_flat_takes(p)) {
            place(net, p);
            for (int k = 1; fused && k < fused->count; k++) { /* the weights of all, together */
                place(net, fused->layer[k]->param[0]);
            }
        }
    }
    for (int i = 0; status == DM_OK && i < net->flat_count; i++) {
        nn_flat *f = &net->flats[i];
        status = nn_flat_array(net, f, DM_F32, &f->data);
        status = status == DM_OK ? nn_flat_array(net, f, DM_F32, &f->diff) : status;
        status = status == DM_OK && f->rounds ? nn_flat_array(net, f, net->type, &f->rounded) : status;
    }
    return status;
}

dm_status nn_flat_part(const nn_net *net, const nn_param *p, dm_array flat, dm_array *out)
{
    int64_t shape[DM_MAX_DIMS];
    dm_array part = DM_NO_ARRAY;
    int ndim = nn_param_shape(p, shape);
    dm_status status = dm_array_view(net->session, flat, &p->at, &p->count, &part);
    status = status == DM_OK ? dm_array_reshape(net->session, part, ndim, shape, out) : status;
    dm_status end = dm_array_destroy(net->session, part);
    return status == DM_OK ? end : status;
}

/* copied: those that recorded updates write; else all others. */
static dm_status round_some(const nn_net *net, bool copied)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->flat_count; i++) {
        const nn_flat *f = &net->flats[i];
        const bool takes = f->rounds && nn_flat_copied(net, f) == copied;
        status = takes ? dm_copy(net->session, f->data, f->rounded) : status;
    }
    for (int i = 0; status == DM_OK && i < net->param_count; i++) {
        const nn_param *p = net->params[i];
        const bool takes = p->rounded.id && !p->flat && nn_param_copied(net, p) == copied;
        status = takes ? dm_copy(net->session, p->data, p->rounded) : status;
    }
    return status;
}

dm_status nn_params_round(const nn_net *net)
{
    dm_status status = round_some(net, false);
    return status == DM_OK && !net->recording ? round_some(net, true) : status;
}

dm_status nn_params_renew(nn_net *net)
{
    dm_status status = net->current ? DM_OK : round_some(net, true);
    net->current = status == DM_OK && !net->shown;
    return status;
}

void nn_param_written(nn_param *p, bool shown)
{
    for (; p; p = p->lender) {
        p->owner->net->current = false;
        p->owner->net->shown = p->owner->net->shown || shown;
    }
}
