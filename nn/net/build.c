/* A net out of its message. */
#include "net/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char N[] = "NetParameter";

void nn_log(const nn_net *net, const char *format, ...)
{
    char line[1024];
    if (net->log) {
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof line, format, args);
        va_end(args);
        net->log(net->log_context, line);
    }
}

/* Inputs in the form of before Input layers: `input` with `input_shape`, or with four `input_dim` each. */
dm_status nn_net_upgrade_inputs(nn_message *net)
{
    static const char *const old[] = {"input", "input_shape", "input_dim"};
    int64_t names = nn_count(net, "input"), shapes = nn_count(net, "input_shape"),
            dims = nn_count(net, "input_dim");
    if (names == 0 && shapes == 0 && dims == 0) {
        return DM_OK;
    }
    if (shapes && dims) {
        return nn_fail_at(net, nn_line(net, "input_dim"), DM_ERR_FORMAT,
                          "only one of input_shape and input_dim may be there");
    }
    if (shapes != names && dims != 4 * names) {
        return nn_fail_at(
            net, nn_line(net, "input"), DM_ERR_FORMAT,
            "there are %lld inputs, but neither as many input_shape nor four times as many input_dim",
            (long long)names);
    }
    nn_message *layer = NULL, *param = NULL, *shape = NULL;
    dm_status status = nn_set_message(net, "layer", &layer);
    status = status == DM_OK ? nn_set_string(layer, "name", "input") : status;
    status = status == DM_OK ? nn_set_string(layer, "type", "Input") : status;
    status = status == DM_OK ? nn_set_message(layer, "input_param", &param) : status;
    for (int64_t i = 0; status == DM_OK && i < names; i++) {
        status = nn_set_string(layer, "top", nn_string_at(net, "input", i));
        status = status == DM_OK ? nn_set_message(param, "shape", &shape) : status;
        if (status == DM_OK && shapes) {
            status = nn_message_merge(shape, nn_sub_at(net, "input_shape", i));
            nn_use_all(nn_sub_at(net, "input_shape", i));
        }
        for (int d = 0; status == DM_OK && !shapes && d < 4; d++) {
            status = nn_set_int(shape, "dim", nn_int_at(net, "input_dim", 4 * i + d));
        }
    }
    if (status == DM_OK) { /* to the front */
        nn_entry *layers = nn_entry_of(net, "layer");
        layer->line = nn_line(net, "input");
        memmove(layers->at.message + 1, layers->at.message, (size_t)(layers->count - 1) * sizeof layer);
        layers->at.message[0] = layer;
        for (int i = 0; i < NN_COUNT(old); i++) {
            nn_entry *e = nn_entry_of(net, old[i]);
            if (e) {
                nn_entry_clear(e);
            }
        }
    }
    return status;
}

/* Files name parameters by their layer. */
static dm_status refuse_twin(const nn_net *net, const nn_layer *l)
{
    char line[NN_IN_LINE];
    for (const nn_layer *other = net->layers; l->params > 0 && other < l; other++) {
        bool same = other->params == l->params; /* both share all */
        for (int i = 0; same && i < l->params; i++) {
            same = nn_param_itself(other->param[i]) == nn_param_itself(l->param[i]);
        }
        if (other->params > 0 && !same && strcmp(other->name, l->name) == 0) {
            return nn_layer_fail(l, "name", DM_ERR_FORMAT,
                                 "has the name of another layer%s; both have parameters, which files could "
                                 "not tell apart",
                                 nn_in_line(other->message, line));
        }
    }
    return DM_OK;
}

/* Which of its message's bottoms and tops the layer has, where each pair is a layer: the next after the one
 * before. */
static dm_status take_pair(const nn_net *net, nn_layer *l)
{
    const int64_t bottoms = nn_count(l->message, "bottom"), tops = nn_count(l->message, "top");
    l->pairs = 1;
    if (!(l->type->traits & NN_EACH) || bottoms <= 1) {
        return DM_OK;
    }
    l->pairs = (int)bottoms;
    l->pair = l > net->layers && l[-1].message == l->message ? l[-1].pair + 1 : 0;
    return bottoms == tops
               ? DM_OK
               : nn_layer_fail(l, "top", DM_ERR_FORMAT,
                               "has %lld bottoms and %lld tops; %s layers have as many tops as bottoms",
                               (long long)bottoms, (long long)tops, l->type->name);
}

/* Bottoms have samples, unless the layer takes numbers of the whole batch. */
static dm_status need_samples(const nn_layer *l)
{
    for (int i = 0; i < l->bottoms && !(l->type->traits & NN_NUMBERS); i++) {
        if (l->bottom[i]->ndim == 0) {
            return nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                                 "reads '%s', a number of the whole batch: %s layers need samples",
                                 l->bottom[i]->name, l->type->name);
        }
    }
    return DM_OK;
}

/* Would the layer do something else in the other phase? */
static bool minds_phase(const nn_net *net, const nn_layer *l)
{
    static const char *const pools[][2] = {{"Pooling", "PoolingParameter"}, {"SPP", "SPPParameter"}};
    const char *type = l->type->name;
    for (int i = 0; i < NN_COUNT(pools); i++) {
        if (strcmp(type, pools[i][0]) == 0) {
            return nn_int(l->own, pools[i][1], "pool") == nn_enum_by_name("PoolMethod", "STOCHASTIC")->number;
        }
    }
    return (l->type->traits & NN_FEED) || nn_user_type_of(net, l->message) || strcmp(type, "Dropout") == 0 ||
           (strcmp(type, "BatchNorm") == 0 && !nn_has(l->own, "use_global_stats"));
}

static dm_status setup_layer(nn_net *net, nn_layer *l, nn_message *message)
{
    const char *type = nn_string(message, "LayerParameter", "type");
    l->net = net;
    l->message = message;
    l->name = nn_string(message, "LayerParameter", "name");
    l->type = nn_user_type_of(net, message);
    l->type = l->type ? l->type : nn_layer_type_of(type);
    if (!l->type && strcmp(type, "Python") == 0) {
        const nn_message *python = nn_sub(message, "python_param");
        return nn_fail_at(
            message, nn_line(message, "type"), DM_ERR_UNSUPPORTED,
            "layer '%s' is the Python layer '%s' of the module '%s': dmath runs no Python; a program "
            "may give a layer type of this name (layer_types)",
            l->name, nn_string(python, "PythonParameter", "layer"),
            nn_string(python, "PythonParameter", "module"));
    }
    if (!l->type) {
        return nn_fail_at(message, nn_line(message, "type"), DM_ERR_UNSUPPORTED,
                          "layer '%s' has the type '%s', which neither dmath nor the program has", l->name,
                          type);
    }
    l->own = l->type->field ? nn_sub(message, l->type->field) : NULL;
    if (nn_has(message, "phase") && nn_int(message, "LayerParameter", "phase") != net->phase &&
        minds_phase(net, l)) {
        return nn_layer_fail(l, "phase", DM_ERR_UNSUPPORTED,
                             "has another phase than its net: use include { phase: ... }");
    }
    dm_status status = take_pair(net, l);
    status = status == DM_OK ? nn_connect(net, l) : status;
    if (status == DM_OK && l->pair > 0) {
        const nn_blob *x = l[-l->pair].bottom[0], *y = l->bottom[0];
        char first[NN_SHAPE_TEXT], mine[NN_SHAPE_TEXT];
        if (x->ndim != y->ndim || memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) != 0) {
            status = nn_layer_fail(l, "bottom", DM_ERR_SHAPE,
                                   "reads '%s' of %s and '%s' of %s: the bottoms of a %s have one shape",
                                   x->name, nn_shape_text(x->ndim, x->shape, first), y->name,
                                   nn_shape_text(y->ndim, y->shape, mine), l->type->name);
        }
    }
    status = status == DM_OK ? need_samples(l) : status;
    status = status == DM_OK ? l->type->setup(l) : status;
    status = status == DM_OK ? nn_filter_follow(l) : status;
    status = status == DM_OK ? refuse_twin(net, l) : status;
    int64_t specs = nn_count(message, "param");
    if (status == DM_OK && specs > l->params) {
        status = nn_layer_fail(l, "param", DM_ERR_FORMAT, "has %lld param fields, but %d parameters",
                               (long long)specs, l->params);
    }
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        l->top[i]->need_backward = l->need_backward && !l->top[i]->numbers;
    }
    return status;
}

/* The value of a loss of the program's own. */
static dm_status make_value(nn_net *net)
{
    const dm_layout one = dm_layout_single(0);
    dm_status status = dm_array_create(net->session, DM_F32, 0, NULL, &one, &net->value);
    return status == DM_OK ? dm_fill(net->session, net->value, 0) : status;
}

static dm_status build(nn_net *net, const nn_net_setup *setup)
{
    nn_net *share = setup->share;
    nn_message *root = net->document->root;
    net->name = nn_string(root, N, "name");
    net->phase = (int)nn_int(nn_sub(root, "state"), "NetState", "phase");
    net->debug = nn_int(root, N, "debug_info") || setup->debug;
    net->force = nn_int(root, N, "force_backward") != 0;
    dm_status status = nn_user_types(net, setup->types, setup->type_count);
    status = status == DM_OK ? nn_net_upgrade(root) : status;
    status = status == DM_OK ? nn_net_upgrade_inputs(root) : status;
    if (status == DM_OK) {
        status = nn_net_filter(root, &net->left, &net->left_count);
    }
    int64_t count = status == DM_OK ? nn_count(root, "layer") : 0, room = count + 1;
    for (int64_t i = 0; i < count; i++) {
        room += nn_count(nn_sub_at(root, "layer", i), "bottom"); /* NN_EACH */
    }
    net->layers = calloc((size_t)room, sizeof *net->layers);
    if (!net->layers) {
        return dm_error_no_memory("the layers of a net", (size_t)room * sizeof *net->layers);
    }
    for (int64_t i = 0; status == DM_OK && i < count; i++) {
        nn_layer *l = NULL;
        do {
            l = &net->layers[net->layer_count];
            l->index = net->layer_count++;
            status = setup_layer(net, l, nn_sub_at(root, "layer", i));
        } while (status == DM_OK && l->pair + 1 < l->pairs);
    }
    if (status == DM_OK) {
        status = nn_find_outputs(net);
    }
    status = status == DM_OK ? nn_mark_own_losses(net, net->own.blobs) : status;
    if (status == DM_OK) {
        status = nn_mark_backward(net);
    }
    if (status == DM_OK) {
        nn_merge(net);
        status = nn_split_choose(net, setup->split, share, setup->apart);
        status =
            status == DM_OK && net->phase == NN_TRAIN && !share && !net->debug ? nn_fused_find(net) : status;
        nn_blobs_lend(net, setup->lean);
        nn_merge_lent(net);
        status = status == DM_OK ? nn_blobs_make(net, false) : status;
    }
    status = status == DM_OK ? nn_params_place(net, share, setup->apart) : status;
    status = status == DM_OK ? nn_params_fill(net) : status;
    status = status == DM_OK ? nn_params_given(net) : status;
    status = status == DM_OK ? nn_layers_prepare(net, false) : status;
    status = status == DM_OK && net->own.function ? make_value(net) : status;
    return status == DM_OK ? nn_unused(root) : status;
}

dm_status nn_net_enter(const nn_net *net)
{
    return net->group.id ? dm_group_begin(net->session, net->group) : DM_OK;
}

dm_status nn_net_leave(const nn_net *net, dm_status status)
{
    dm_status end = net->group.id ? dm_group_end(net->session) : DM_OK;
    return status == DM_OK ? end : status;
}

dm_status nn_net_build(const nn_net_setup *setup, nn_document *document, nn_net **out)
{
    nn_net *net = calloc(1, sizeof *net);
    if (!net) {
        nn_document_free(document);
        return dm_error_no_memory("a net", sizeof *net);
    }
    net->document = document;
    net->session = setup->session;
    net->group = setup->group;
    net->cores_taken = setup->workers > 0 ? setup->workers : dm_workers(setup->session);
    net->slices = setup->slices;
    net->type = setup->type;
    net->wire = setup->wire;
    net->seed = setup->seed;
    net->log = setup->log;
    net->log_context = setup->log_context;
    net->shuffle = setup->shuffle;
    net->skip_damaged = setup->skip_damaged;
    net->store_bytes = setup->store_bytes;
    net->store_folder = setup->store_folder;
    net->read = setup->read;
    net->update = setup->update;
    net->own = setup->own;
    dm_status status = nn_net_enter(net);
    status = status == DM_OK ? nn_net_leave(net, build(net, setup)) : status;
    status = status == DM_OK ? dm_sync(net->session) : status; /* arrays that find no memory say so here */
    if (status != DM_OK) {
        char text[2048], file[512]; /* ending arrays may not change what is said */
        snprintf(text, sizeof text, "%s", dm_error_message());
        snprintf(file, sizeof file, "%s: ", net->document->file);
        const bool named = status != DM_ERR_NOMEM || strncmp(text, file, strlen(file) - 2) == 0;
        nn_net_free(net);
        return dm_error_set(status, "%s%s", named ? "" : file, text);
    }
    *out = net;
    return DM_OK;
}

static void destroy(nn_net *net, dm_array a)
{
    if (dm_array_destroy(net->session, a) != DM_OK) {
        nn_log(net, "an array was gone before its net ended: %s", dm_error_message());
    }
}

void nn_net_free(nn_net *net)
{
    if (!net) {
        return;
    }
    for (int i = 0; i < net->layer_count; i++) {
        nn_layer *l = &net->layers[i];
        if (l->type && l->type->drop) {
            l->type->drop(l);
        }
        for (int k = 0; k < NN_COUNT(l->scratch) && !l->lent; k++) { /* of others below, with lent blobs */
            destroy(net, l->scratch[k]);
        }
        free(l->bottom);
        free(l->top);
        free(l->down);
    }
    for (int lent = 0; lent < 2; lent++) {
        dm_status spares = nn_spares_end(net);
        if (nn_blobs_end(net, lent) != DM_OK || spares != DM_OK) {
            nn_log(net, "an array was gone before its net ended: %s", dm_error_message());
        }
    }
    for (int i = 0; i < net->blob_count; i++) {
        free(net->blobs[i]->name);
        free(net->blobs[i]);
    }
    for (int i = 0; i < net->param_count; i++) {
        if (!net->params[i]->borrowed) {
            destroy(net, net->params[i]->data);
        }
        destroy(net, net->params[i]->diff);
        destroy(net, net->params[i]->rounded);
        free(net->params[i]->name);
        free(net->params[i]);
    }
    for (int i = 0; i < net->turned_count; i++) {
        const nn_param *p = net->turned[i];
        const dm_array arrays[] = {p->theirs, p->mine, p->elements, p->sum, p->data, p->diff, p->rounded};
        for (int k = 0; k < NN_COUNT(arrays); k++) {
            destroy(net, arrays[k]);
        }
        free(net->turned[i]);
    }
    free(net->turned);
    destroy(net, net->value);
    for (int i = 0; i < net->flat_count; i++) {
        destroy(net, net->flats[i].data);
        destroy(net, net->flats[i].diff);
        destroy(net, net->flats[i].rounded);
    }
    free(net->flats);
    for (int i = 0; i < net->fused_count; i++) {
        destroy(net, net->fused[i]->w);
        destroy(net, net->fused[i]->dw);
        free(net->fused[i]->layer);
        free(net->fused[i]);
    }
    free(net->fused);
    for (int i = 0; i < net->left_count; i++) {
        nn_message_free(net->left[i]);
    }
    free(net->left);
    nn_document_free(net->document);
    free(net->layers);
    free(net->blobs);
    free(net->params);
    free(net->output);
    free(net->types);
    free(net);
}
