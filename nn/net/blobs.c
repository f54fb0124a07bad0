/* The arrays of blobs and their gradients, and what layers prepare. Those of a lean net that mean nothing
 * behind a step are made while it is recorded, and end with the recording: the program gives them memory where
 * their lifetimes allow. */
#include "net/net.h"

#include <string.h>

/* The type of a blob: the net's for all that gradients pass through, and for images that layers read as their
 * first bottom. Labels and indices would be rounded. */
static dm_dtype type_of(const nn_net *net, const nn_blob *b)
{
    bool image = (b->producer->type->traits & NN_SOURCE) && b->image;
    for (int k = 0; k < net->layer_count; k++) {
        for (int j = 1; j < net->layers[k].bottoms; j++) {
            image = image && net->layers[k].bottom[j] != b;
        }
    }
    return !b->whole && !b->numbers && (b->has_diff || image) ? net->type : DM_F32;
}

static dm_status make(nn_net *net, nn_blob *b)
{
    int writers = 0;
    for (int k = 0; k < net->layer_count; k++) {
        for (int j = 0; j < net->layers[k].bottoms; j++) {
            writers +=
                net->layers[k].bottom[j] == b && net->layers[k].down[j] && !nn_fused_follows(&net->layers[k]);
        }
    }
    bool diff = writers > 0 || (b->producer->need_backward && !(b->producer->type->traits & NN_LOSS));
    if (writers > 0 && (b->producer->type->traits & NN_LOSS)) {
        return nn_layer_fail(b->producer, "top", DM_ERR_UNSUPPORTED, "makes a loss that other layers read");
    }
    dm_dtype type = type_of(net, b);
    dm_status status = DM_OK;
    b->laid = b->laid && type_of(net, b->laid->top[0]) == type ? b->laid : NULL;
    status = b->shares || b->laid || b->between ? DM_OK : nn_blob_array(net, b, type, &b->data);
    const bool fused = b->producer->fused;
    if (status == DM_OK && fused && !b->diff.id) {
        status = nn_fused_make(b->producer->fused, type);
    } else if (status == DM_OK && diff && !fused && !b->shares_diff && !b->joined && !b->between) {
        status = nn_blob_array(net, b, type, &b->diff);
    }
    status = status == DM_OK && diff && b->picks ? nn_blob_array(net, b, DM_U8, &b->which) : status;
    b->writers = writers;
    if (status == DM_OK && b->own_loss) {
        status = nn_blob_array(net, b, type, &b->given);
        status = status == DM_OK ? dm_fill(net->session, b->given, 0) : status;
    }
    return status == DM_OK ? DM_OK
                           : nn_layer_fail(b->producer, "top", status, "gets no array for '%s': %s", b->name,
                                           dm_error_message());
}

dm_status nn_blob_part(const nn_net *net, dm_array whole, const nn_blob *like, int dim, int64_t at,
                       dm_array *out)
{
    int64_t lo[DM_MAX_DIMS] = {0}, extent[DM_MAX_DIMS];
    for (int d = 0; d < like->ndim; d++) {
        extent[nn_array_dim(like, d)] = like->shape[d];
    }
    lo[nn_array_dim(like, dim)] = at;
    return dm_array_view(net->session, whole, lo, extent, out);
}

nn_blob *nn_laid_of(nn_blob *b, const nn_layer *concat)
{
    nn_blob *x = b->shares ? b->producer->bottom[0] : b;
    return x->laid == concat ? x : NULL;
}

/* What a Concat's bottoms have as views of its top, and of the gradient of that. */
static dm_status make_parts(nn_layer *concat, bool lent)
{
    int64_t at = 0;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < concat->bottoms; i++) {
        nn_blob *b = concat->bottom[i], *x = nn_laid_of(b, concat);
        if (x && x->lent == lent && !x->data.id) {
            status = nn_blob_part(concat->net, concat->top[0]->data, b, concat->u.dim, at, &x->data);
        }
        if (status == DM_OK && b->joined == concat && b->lent == lent && !b->diff.id) {
            status = nn_blob_part(concat->net, concat->top[0]->diff, b, concat->u.dim, at, &b->diff);
        }
        at += b->shape[concat->u.dim];
    }
    return status;
}

dm_status nn_blobs_make(nn_net *net, bool lent)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->blob_count; i++) {
        nn_blob *b = net->blobs[i];
        status = b->lent == lent && !b->data.id ? make(net, b) : DM_OK;
    }
    for (int k = 0; status == DM_OK && k < net->layer_count; k++) {
        nn_layer *l = &net->layers[k];
        if (l->merged_back && l->top[0]->lent == lent) {
            l->bottom[0]->diff = l->top[0]->diff;
        }
        status = strcmp(l->type->name, "Concat") == 0 ? make_parts(l, lent) : status;
    }
    for (int i = 0; i < net->blob_count; i++) {
        nn_blob *b = net->blobs[i];
        b->data = b->shares && b->lent == lent ? b->producer->bottom[0]->data : b->data;
    }
    return status == DM_OK && lent ? nn_layers_prepare(net, true) : status;
}

static dm_status end_one(const nn_net *net, dm_status before, bool mine, dm_array *a)
{
    dm_status status = mine ? dm_array_destroy(net->session, *a) : DM_OK;
    *a = DM_NO_ARRAY;
    return before == DM_OK ? status : before;
}

dm_status nn_spares_make(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->blob_count; i++) {
        nn_blob *b = net->blobs[i];
        for (int k = 0; status == DM_OK && k < NN_SPARES && k + 1 < b->writers;
             k++) { /* debug may come and go */
            status = b->spare[k].id ? DM_OK : nn_blob_array(net, b, type_of(net, b), &b->spare[k]);
        }
    }
    return status;
}

dm_status nn_spares_end(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; i < net->blob_count; i++) {
        for (int k = 0; k < NN_SPARES; k++) {
            status = end_one(net, status, true, &net->blobs[i]->spare[k]);
        }
    }
    return status;
}

dm_status nn_layers_prepare(nn_net *net, bool lent)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        nn_layer *l = &net->layers[i];
        if (l->type->prepare && l->lent == lent && !l->prepared) {
            l->prepared = true;
            status = l->type->prepare(l);
        }
    }
    return status;
}

static dm_status end_prepared(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; i < net->layer_count; i++) {
        nn_layer *l = &net->layers[i];
        if (l->lent) {
            nn_ranges_drop(l);
            for (int k = 0; k < NN_SCRATCH; k++) {
                status = end_one(net, status, true, &l->scratch[k]);
            }
            l->prepared = false;
        }
    }
    return status;
}

dm_status nn_blobs_end(nn_net *net, bool lent)
{
    dm_status status = lent ? end_prepared(net) : DM_OK;
    for (int i = 0; i < net->blob_count; i++) {
        nn_blob *b = net->blobs[i];
        if (b->lent == lent) {
            status = end_one(net, status, !b->shares, &b->data);
            status = end_one(net, status, !b->shares_diff, &b->diff);
            status = end_one(net, status, true, &b->which);
            status = end_one(net, status, true, &b->given);
            if (b->producer->fused) {
                status = end_one(net, status, true, &b->producer->fused->diff);
            }
        }
    }
    return status;
}

/* Layers that keep what they prepare may hold views of their blobs; those that wait are not recorded. */
static bool holds(const nn_layer *l)
{
    return (l->type->traits & NN_KEEPS && l->type->prepare) ||
           (l->type->traits & (NN_SOURCE | NN_INPUT | NN_WAITS));
}

void nn_blobs_lend(nn_net *net, bool lean)
{
    net->lean = lean;
    for (int k = 0; k < net->layer_count; k++) {
        net->layers[k].lent = lean && !holds(&net->layers[k]);
    }
    for (int i = 0; i < net->blob_count && lean; i++) {
        nn_blob *b = net->blobs[i];
        b->lent = b->reads && !b->whole && b->loss_weight == 0 && !b->own_loss && !holds(b->producer);
    }
    for (int k = 0; k < net->layer_count && lean; k++) {
        for (int j = 0; j < net->layers[k].bottoms; j++) {
            net->layers[k].bottom[j]->lent = net->layers[k].bottom[j]->lent && !holds(&net->layers[k]);
        }
    }
    bool again = lean;
    while (again) { /* one array, one fate */
        again = false;
        for (int i = 0; i < net->blob_count; i++) {
            nn_blob *b = net->blobs[i], *x = b->shares || b->producer->merged_back ? b->producer->bottom[0] : b,
                    *top = b->joined ? b->joined->top[0] : b, *laid = b->laid ? b->laid->top[0] : b;
            bool all = b->lent && x->lent && top->lent && laid->lent;
            again = again || b->lent != all || x->lent != all || top->lent != all || laid->lent != all;
            b->lent = x->lent = top->lent = laid->lent = all;
        }
        for (int i = 0; i < net->fused_count; i++) {
            const nn_fused *f = net->fused[i];
            bool all = true;
            for (int k = 0; k < f->count; k++) {
                all = all && f->layer[k]->top[0]->lent;
            }
            for (int k = 0; k < f->count; k++) {
                again = again || f->layer[k]->top[0]->lent != all;
                f->layer[k]->top[0]->lent = all;
            }
        }
    }
}
