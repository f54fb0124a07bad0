/* Passes through a net. */
#include "net/net.h"

#include <stdio.h>
#include <string.h>

/* dmath's own errors get the place of the layer; those that have one stay. */
static dm_status at_layer(const nn_layer *l, dm_status status)
{
    if (status == DM_OK || strncmp(dm_error_message(), l->message->file, strlen(l->message->file)) == 0) {
        return status;
    }
    return nn_layer_fail(l, "name", status, "failed: %s", dm_error_message());
}

dm_status nn_forward_part(nn_net *net, bool sources)
{
    dm_status status = sources ? DM_OK : nn_params_round(net);
    status = status == DM_OK && !sources ? nn_turned_read(net) : status;
    status = status == DM_OK ? nn_time_begin(net, sources) : status;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        nn_layer *l = &net->layers[i];
        if (((l->type->traits & NN_SOURCE) != 0) == sources) {
            status = at_layer(l, l->type->forward(l));
            status = status == DM_OK && net->debug ? nn_debug_forward(l) : status;
            status = status == DM_OK ? nn_time_end(l, false) : status;
        }
    }
    if (status == DM_OK && !sources && net->own.function) {
        net->own.called = true;
        status = net->own.function(net->own.context, net, net->value);
        net->own.called = false;
    }
    return status;
}

dm_status nn_forward(nn_net *net)
{
    dm_status status = net->lean ? nn_blobs_make(net, true) : DM_OK;
    status = status == DM_OK ? nn_forward_part(net, true) : status;
    status = status == DM_OK ? nn_forward_part(net, false) : status;
    net->pass++;
    return status;
}

/* The gradient of a top as its layer needs it: what came from above, 0 if nothing did, and its weight in the
 * loss. */
static dm_status complete_top(const nn_layer *l, nn_blob *b)
{
    dm_session *s = l->net->session;
    if (!b->diff.id || (l->type->traits & NN_LOSS)) {
        return DM_OK;
    }
    if (b->given.id) {
        dm_status status =
            b->gradients == 0 ? dm_copy(s, b->given, b->diff) : dm_axpby(s, 1, b->given, 1, b->diff);
        if (status != DM_OK || b->loss_weight == 0) {
            return status;
        }
    } else if (b->gradients == 0) {
        return dm_fill(s, b->diff, b->loss_weight);
    }
    if (b->loss_weight == 0) {
        return DM_OK;
    }
    dm_map_arg args[] = {DM_ARG("d", b->diff), DM_NUMBER("w", b->loss_weight)};
    return dm_map(s, "d + w", 2, args, b->diff);
}

dm_status nn_backward(nn_net *net, bool accumulate)
{
    dm_status status = nn_spares_make(net);
    for (int i = 0; i < net->blob_count; i++) {
        net->blobs[i]->gradients = 0;
    }
    for (int i = 0; i < net->param_count; i++) {
        net->params[i]->gradients = accumulate;
    }
    for (int i = 0; i < net->turned_count; i++) {
        net->turned[i]->gradients = 0;
    }
    for (int k = net->layer_count - 1; status == DM_OK && k >= 0; k--) {
        nn_layer *l = &net->layers[k];
        if (!l->need_backward) {
            continue;
        }
        for (int i = 0; status == DM_OK && i < l->tops; i++) {
            status = complete_top(l, l->top[i]);
        }
        if (status == DM_OK) {
            status = at_layer(l, l->type->backward(l));
            status = status == DM_OK ? nn_turned_add(l) : status;
        }
        status = status == DM_OK && net->debug ? nn_debug_backward(l) : status;
        status = status == DM_OK ? nn_time_end(l, true) : status;
    }
    return status == DM_OK && net->debug ? nn_debug_params(net) : status;
}

bool nn_recordable(const nn_net *net)
{
    bool can = !net->debug && !(net->own.function && net->own.waits);
    for (int i = 0; can && i < net->layer_count; i++) {
        can = !(net->layers[i].type->traits & NN_WAITS);
    }
    return can;
}

dm_status nn_program_record(nn_net *net, dm_status (*calls)(void *context), void *context, dm_program *out)
{
    dm_status status = nn_spares_end(net); /* of passes call by call */
    status = status == DM_OK && net->lean ? nn_blobs_end(net, true) : status;
    status = status == DM_OK ? dm_program_begin(net->session) : status;
    if (status != DM_OK) {
        return status;
    }
    net->recording = true;
    status = dm_program_advance_seeds(net->session);
    status = status == DM_OK && net->lean ? nn_blobs_make(net, true) : status;
    status = status == DM_OK ? calls(context) : status;
    status = status == DM_OK ? nn_spares_end(net) : status;
    status = status == DM_OK && net->lean ? nn_blobs_end(net, true) : status;
    net->recording = false;
    if (status == DM_OK) {
        return dm_program_end(net->session, out);
    }
    char text[2048];
    snprintf(text, sizeof text, "%s", dm_error_message());
    return dm_program_end(net->session, NULL) == DM_OK ? dm_error_set(status, "%s", text) : status;
}

dm_array nn_down(nn_layer *l, int bottom)
{
    nn_blob *b = l->bottom[bottom];
    return b->gradients == 0 ? b->diff : b->spare[(b->gradients - 1) % nn_spares(l->net)];
}

/* Adds the last `count` gradients to those before them: one pass reads each once. */
static dm_status add_up(const nn_net *net, const nn_blob *b, int count)
{
    static const char *const text[NN_SPARES] = {"d + a", "d + a + b", "d + a + b + c"};
    dm_map_arg args[] = {DM_ARG("d", b->diff), DM_ARG("a", b->spare[0]), DM_ARG("b", b->spare[1]),
                         DM_ARG("c", b->spare[2])};
    return dm_map(net->session, text[count - 1], 1 + count, args, b->diff);
}

dm_status nn_down_done(nn_layer *l, int bottom, dm_status status)
{
    nn_blob *b = l->bottom[bottom];
    int spares = nn_spares(l->net);
    int waiting = b->gradients > 0 ? (b->gradients - 1) % spares + 1 : 0; /* with this one */
    if (status != DM_OK) {
        return status;
    }
    bool all = ++b->gradients == b->writers || waiting == spares;
    return all && waiting > 0 ? add_up(l->net, b, waiting) : DM_OK;
}

double nn_param_beta(nn_layer *l, int param)
{
    return l->param[param]->gradients++ > 0 ? 1 : 0;
}

static dm_status sum_of(nn_net *net, const nn_blob *b, double *out)
{
    dm_array sum = DM_NO_ARRAY;
    dm_status status = dm_array_create(net->session, DM_F32, 0, NULL, NULL, &sum);
    if (status == DM_OK) {
        status = dm_sum(net->session, b->data, NULL, 0, 1, 0, sum);
    }
    if (status == DM_OK) {
        status = dm_item(net->session, sum, NULL, out);
    }
    dm_status end = dm_array_destroy(net->session, sum);
    return status == DM_OK ? end : status;
}

dm_status nn_loss(nn_net *net, double *loss)
{
    double total = 0;
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->blob_count; i++) {
        const nn_blob *b = net->blobs[i];
        double value = 0;
        if (b->loss_weight != 0) {
            status = b->whole && b->count == 1 ? dm_item(net->session, b->data, (int64_t[]){0}, &value)
                                               : sum_of(net, b, &value);
            total += b->loss_weight * value;
        }
    }
    if (status == DM_OK && net->own.function) {
        double value = 0;
        status = dm_item(net->session, net->value, NULL, &value);
        total += value;
    }
    if (status == DM_OK) {
        *loss = total;
    }
    return status;
}
