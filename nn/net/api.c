/* The calls of <dmath/nn.h> on nets. */
#include "net/net.h"

#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

dm_status nn_net_stages(nn_message *state, const char *stages)
{
    dm_status status = DM_OK;
    while (status == DM_OK && stages && *stages) {
        size_t n = strcspn(stages, ",");
        status = nn_set_text(state, "stage", stages, n);
        stages += n + (stages[n] == ',');
    }
    return status;
}

static dm_status take_options(const char *call, bool there, const dm_net_options *options, dm_net_options *o)
{
    bool sized = !options || nn_sized_take(options, offsetof(dm_net_options, shuffle), o, sizeof *o);
    return there && sized && o->slices >= 0 && o->store_bytes >= 0 && o->phase >= 0 && o->phase <= 1 &&
                   nn_type_fits(o->type) && o->read >= DM_READ_DEFAULT && o->read <= DM_READ_BY_WORKERS
               ? nn_wire_check(call, o->wire, o->type)
               : dm_error_set(
                     DM_ERR_ARG,
                     "%s: session, path, text or prototxt, and net must be there, options be made with "
                     "DM_NET_OPTIONS_INIT, slices and store_bytes not negative, phase DM_PHASE_TRAIN or "
                     "DM_PHASE_TEST, "
                     "type DM_F32, DM_F16 or DM_BF16, read DM_READ_DEFAULT, DM_READ_BY_PROGRAM or "
                     "DM_READ_BY_WORKERS",
                     call);
}

/* Takes the document. */
static dm_status open_net(dm_session *session, nn_document *d, const dm_net_options *given, dm_net **net)
{
    const dm_net_options o = *given;
    nn_net_setup setup = {.session = session,
                          .slices = o.slices,
                          .type = o.type,
                          .wire = o.wire,
                          .seed = o.seed,
                          .log = o.log,
                          .log_context = o.log_context,
                          .shuffle = o.shuffle != 0,
                          .skip_damaged = o.skip_damaged != 0,
                          .split = o.split,
                          .own = {.blobs = o.own_loss},
                          .types = o.layer_types,
                          .type_count = o.layer_type_count,
                          .store_bytes = o.store_bytes,
                          .store_folder = o.store_folder,
                          .read = o.read,
                          .update = DM_UPDATE_WHOLE};
    nn_document *asked = NULL;
    dm_status status = nn_document_new("NetState", "options", &asked);
    status = status == DM_OK ? nn_set_int(asked->root, "phase", o.phase) : status;
    status = status == DM_OK ? nn_set_int(asked->root, "level", o.level) : status;
    status = status == DM_OK ? nn_net_stages(asked->root, o.stages) : status;
    status = status == DM_OK ? nn_net_state(d->root, o.phase, asked->root) : status;
    if (status == DM_OK) {
        status = nn_net_build(&setup, d, net);
    } else {
        nn_document_free(d);
    }
    nn_document_free(asked);
    return status;
}

dm_status dm_net_open(dm_session *session, const char *path, const dm_net_options *options, dm_net **net)
{
    dm_net_options o = DM_NET_OPTIONS_INIT;
    nn_document *d = NULL;
    dm_status status = take_options("dm_net_open", session && path && net, options, &o);
    status = status == DM_OK ? nn_net_read(path, &d) : status;
    return status == DM_OK ? open_net(session, d, &o, net) : status;
}

dm_status dm_net_open_text(dm_session *session, const char *text, const char *name,
                           const dm_net_options *options, dm_net **net)
{
    dm_net_options o = DM_NET_OPTIONS_INIT;
    nn_document *d = NULL;
    dm_status status = take_options("dm_net_open_text", session && text && net, options, &o);
    status =
        status == DM_OK ? nn_text_parse(text, strlen(text), name ? name : "net", "NetParameter", &d) : status;
    return status == DM_OK ? open_net(session, d, &o, net) : status;
}

dm_status dm_net_create(dm_session *session, const dm_prototxt *prototxt, const dm_net_options *options,
                        dm_net **net)
{
    dm_net_options o = DM_NET_OPTIONS_INIT;
    nn_document *d = NULL;
    dm_status status = take_options("dm_net_create", session && prototxt && net, options, &o);
    if (status == DM_OK && !nn_prototxt_is(prototxt, "NetParameter")) {
        return dm_error_set(DM_ERR_ARG, "dm_net_create: the prototxt is no NetParameter");
    }
    status = status == DM_OK ? nn_prototxt_document(prototxt, &d) : status;
    return status == DM_OK ? open_net(session, d, &o, net) : status;
}

dm_status dm_net_close(dm_net *net)
{
    nn_net_free(net);
    return DM_OK;
}

static dm_status given(const void *what, const char *call)
{
    return what ? DM_OK : dm_error_set(DM_ERR_ARG, "%s: an argument is NULL", call);
}

dm_status dm_net_load(dm_net *net, const char *path)
{
    dm_status status = given(net && path ? net : NULL, "dm_net_load");
    status = status == DM_OK ? nn_net_enter(net) : status;
    return status == DM_OK ? nn_net_leave(net, nn_net_load(net, path)) : status;
}

dm_status dm_net_save(dm_net *net, const char *path)
{
    dm_status status = given(net && path ? net : NULL, "dm_net_save");
    status = status == DM_OK ? nn_net_enter(net) : status;
    if (status != DM_OK) {
        return status;
    }
    status = nn_params_follow(net);
    return nn_net_leave(net, status == DM_OK ? nn_net_save(net, path) : status);
}

/* A pass begins: not within another one. */
static dm_status not_within(const dm_net *net, const char *call)
{
    dm_status status = given(net, call);
    return status == DM_OK && net->own.called
               ? dm_error_set(DM_ERR_STATE, "%s: the function own of a solver called it for the solver's net",
                              call)
               : status;
}

dm_status dm_net_forward(dm_net *net, double *loss)
{
    dm_status status = not_within(net, "dm_net_forward");
    status = status == DM_OK ? nn_net_enter(net) : status;
    if (status != DM_OK) {
        return status;
    }
    status = nn_params_follow(net);
    status = status == DM_OK ? nn_forward(net) : status;
    return nn_net_leave(net, status == DM_OK && loss ? nn_loss(net, loss) : status);
}

dm_status dm_net_backward(dm_net *net)
{
    dm_status status = not_within(net, "dm_net_backward");
    if (status == DM_OK && net->phase != NN_TRAIN) {
        return dm_error_set(DM_ERR_STATE, "dm_net_backward: the net has the phase TEST and no gradients");
    }
    if (status == DM_OK && net->pass == 0) {
        return dm_error_set(DM_ERR_STATE, "dm_net_backward: no forward pass came before");
    }
    status = status == DM_OK ? nn_net_enter(net) : status;
    return status == DM_OK ? nn_net_leave(net, nn_backward(net, false)) : status;
}

dm_status dm_net_blob(dm_net *net, const char *name, dm_array *data, dm_array *diff)
{
    dm_status status = given(net && name ? net : NULL, "dm_net_blob");
    for (int i = status == DM_OK ? net->blob_count - 1 : -1; i >= 0; i--) {
        if (strcmp(net->blobs[i]->name, name) == 0) {
            if (net->blobs[i]->lent) {
                return dm_error_set(DM_ERR_STATE,
                                    "dm_net_blob: '%s' has no memory of its own: the solver was opened "
                                    "with the option lean",
                                    name);
            }
            if (data) {
                *data = net->blobs[i]->data;
            }
            if (diff) {
                *diff = net->blobs[i]->diff;
            }
            return DM_OK;
        }
    }
    return status == DM_OK ? dm_error_set(DM_ERR_ARG, "dm_net_blob: the net has no blob '%s'", name) : status;
}

dm_status dm_net_own_gradient(dm_net *net, const char *blob, dm_array *gradient)
{
    dm_status status = given(net && blob && gradient ? net : NULL, "dm_net_own_gradient");
    for (int i = status == DM_OK ? net->blob_count - 1 : -1; i >= 0; i--) {
        if (net->blobs[i]->own_loss && strcmp(net->blobs[i]->name, blob) == 0) {
            *gradient = net->blobs[i]->given;
            return DM_OK;
        }
    }
    return status == DM_OK
               ? dm_error_set(DM_ERR_ARG, "dm_net_own_gradient: the option own_loss does not name '%s'", blob)
               : status;
}

dm_status dm_net_param(dm_net *net, const char *layer, int number, dm_array *data, dm_array *diff)
{
    dm_status status = given(net && layer ? net : NULL, "dm_net_param");
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        if (strcmp(l->name, layer) == 0 && number >= 0 && number < l->params) {
            const nn_param *of = l->param[number]->of;
            if (of) {
                return dm_error_set(
                    DM_ERR_UNSUPPORTED,
                    "dm_net_param: layer '%s' has a copy of parameter %d of layer '%s', under another "
                    "shape or in another order: ask for that one",
                    layer, of->number, of->owner->name);
            }
            if (data) {
                *data = l->param[number]->data;
                nn_param_written(l->param[number], true);
            }
            if (diff) {
                *diff = l->param[number]->diff;
            }
            return DM_OK;
        }
    }
    return status == DM_OK
               ? dm_error_set(DM_ERR_ARG, "dm_net_param: the net has no parameter %d of a layer '%s'", number,
                              layer)
               : status;
}

int dm_net_outputs(const dm_net *net)
{
    return net ? net->output_count : 0;
}

dm_status dm_net_output(dm_net *net, int i, const char **name, double *weight, double *value)
{
    if (!net || i < 0 || i >= net->output_count) {
        return dm_error_set(DM_ERR_ARG, "dm_net_output: i is %d, and the net has %d outputs", i,
                            net ? net->output_count : 0);
    }
    const nn_blob *b = net->blobs[net->output[i]];
    if (value && b->count != 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_output: '%s' has %lld elements", b->name, (long long)b->count);
    }
    dm_status status = value ? dm_item(net->session, b->data, (int64_t[DM_MAX_DIMS]){0}, value) : DM_OK;
    if (name) {
        *name = b->name;
    }
    if (weight) {
        *weight = b->loss_weight;
    }
    return status;
}

dm_status dm_prototxt_print(const char *path, const char *type, char **text)
{
    int count = 0;
    nn_document *d = NULL;
    if (!path || !type || !text || !nn_schema_fields(type, &count)) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_prototxt_print: an argument is NULL, or the schema has no message '%s'",
                            type ? type : "");
    }
    dm_status status = nn_text_read(path, type, &d);
    status = status == DM_OK ? nn_text_print(d->root, text) : status;
    nn_document_free(d);
    return status;
}
