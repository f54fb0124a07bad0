/* Layers that share a parameter, but need its elements under another shape or in another order, each have a
 * copy of it, with a gradient of its own. Files, updates and histories know nothing of copies. */
#include "net/net.h"

#include <string.h>

/* A view of the elements, which have the order of files, with the dims that the array of p has in its own
 * order. */
static dm_status view(const nn_net *net, const nn_param *p, dm_array elements, dm_array *out)
{
    const bool plain = p->order == NN_PLAIN;
    return dm_array_reshape(net->session, elements, plain ? p->ndim : 4, plain ? p->shape : p->folded, out);
}

static dm_status place(const nn_net *net, nn_param *p)
{
    const dm_layout everywhere = dm_layout_replicated(net->session);
    int64_t shape[DM_MAX_DIMS];
    p->lr_mult = p->of->lr_mult; /* layers behind it may have said more */
    dm_status status = nn_param_place(net, p);
    status = status == DM_OK ? dm_array_create(net->session, DM_F32, 1, &p->count, &everywhere, &p->elements)
                             : status;
    status = status == DM_OK ? view(net, p->of, p->elements, &p->theirs) : status;
    status = status == DM_OK ? view(net, p, p->elements, &p->mine) : status;
    const int ndim = nn_param_shape(p->of, shape);
    return status == DM_OK && p->diff.id
               ? dm_array_create(net->session, DM_F32, ndim, shape, &everywhere, &p->sum)
               : status;
}

dm_status nn_turned_place(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->turned_count; i++) {
        status = place(net, net->turned[i]);
    }
    return status;
}

/* Between an array of p and the view of the elements that has its dims. */
static dm_status turn(const nn_net *net, const nn_param *p, bool to_file, dm_array from, dm_array to)
{
    static const int order[2][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}};
    return p->order == NN_PLAIN ? dm_copy(net->session, from, to)
                                : dm_permute(net->session, from, order[to_file], to);
}

dm_status nn_turned_read(const nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->turned_count; i++) {
        const nn_param *p = net->turned[i];
        status = turn(net, p->of, true, p->of->data, p->theirs);
        status = status == DM_OK ? turn(net, p, false, p->mine, p->data) : status;
        status = status == DM_OK && p->rounded.id ? dm_copy(net->session, p->data, p->rounded) : status;
    }
    return status;
}

dm_status nn_turned_add(nn_layer *l)
{
    const nn_net *net = l->net;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->params; i++) {
        nn_param *p = l->param[i];
        if (!p->of || p->owner != l) { /* of several pairs the first is the last one here */
            continue;
        }
        const bool first = p->of->gradients++ == 0;
        status = turn(net, p, true, p->diff, p->mine);
        status = status == DM_OK ? turn(net, p->of, false, p->theirs, first ? p->of->diff : p->sum) : status;
        status = status == DM_OK && !first ? dm_axpby(net->session, 1, p->sum, 1, p->of->diff) : status;
    }
    return status;
}
