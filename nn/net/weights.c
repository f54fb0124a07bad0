/* Parameters to files and back. Files have Caffe's order of elements. */
#include "net/net.h"

#include "proto/text.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between K x C x R x S (file) and K x R x S x C (array). */
static void turn(const nn_param *p, bool to_file, const float *in, float *out)
{
    int64_t k = p->folded[0], c = p->folded[1], n = p->folded[2] * p->folded[3];
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < c; j++) {
            for (int64_t q = 0; q < n; q++) {
                int64_t file = (i * c + j) * n + q, array = (i * n + q) * c + j;
                out[to_file ? file : array] = in[to_file ? array : file];
            }
        }
    }
}

dm_status nn_param_read(const nn_net *net, const nn_param *p, dm_array from, float *out)
{
    p = p->of ? p->of : p;
    float *lying = p->order == NN_PLAIN ? out : malloc((size_t)p->count * sizeof *lying);
    if (!lying) {
        return dm_error_no_memory("the elements of a parameter", (size_t)p->count * sizeof *lying);
    }
    dm_status status = dm_read(net->session, from, lying);
    if (lying != out) {
        if (status == DM_OK) {
            turn(p, true, lying, out);
        }
        free(lying);
    }
    return status;
}

dm_status nn_param_write(const nn_net *net, const nn_param *p, dm_array to, const float *in)
{
    p = p->of ? p->of : p;
    if (p->order == NN_PLAIN) {
        return dm_write(net->session, to, in);
    }
    float *lying = malloc((size_t)p->count * sizeof *lying);
    if (!lying) {
        return dm_error_no_memory("the elements of a parameter", (size_t)p->count * sizeof *lying);
    }
    turn(p, false, in, lying);
    dm_status status = dm_write(net->session, to, lying);
    free(lying);
    return status;
}

dm_status nn_param_to_message(const nn_net *net, const nn_param *p, dm_array from, const char *field,
                              nn_message *blob)
{
    nn_message *shape = NULL;
    nn_entry *data = NULL;
    bool shaped = nn_has(blob, "shape");
    dm_status status = shaped ? DM_OK : nn_set_message(blob, "shape", &shape);
    for (int d = 0; status == DM_OK && d < p->ndim && !shaped; d++) {
        status = nn_set_int(shape, "dim", p->shape[d]);
    }
    if (status == DM_OK) {
        status = nn_entry_grow(blob, nn_schema_by_name("BlobProto", field), p->count, &data);
    }
    if (status == DM_OK) {
        status = nn_param_read(net, p, from, data->at.real32);
        data->count = p->count;
    }
    return status;
}

const char *nn_shape_text(int ndim, const int64_t *shape, char out[NN_SHAPE_TEXT])
{
    size_t n = (size_t)snprintf(out, NN_SHAPE_TEXT, "%s", ndim ? "" : "1");
    for (int d = 0; d < ndim; d++) {
        n += (size_t)snprintf(out + n, NN_SHAPE_TEXT - n, "%s%lld", d ? " x " : "", (long long)shape[d]);
    }
    return out;
}

/* The extents of a blob of a file, up to DM_MAX_DIMS; returns how many. */
static int shape_of(const nn_message *blob, int64_t out[DM_MAX_DIMS])
{
    static const char *const old[] = {"num", "channels", "height", "width"};
    const nn_message *shape = nn_sub(blob, "shape");
    int ndim = 4;
    if (shape) {
        ndim = nn_count(shape, "dim") < DM_MAX_DIMS ? (int)nn_count(shape, "dim") : DM_MAX_DIMS;
    }
    for (int d = 0; d < ndim; d++) {
        out[d] = shape ? nn_int_at(shape, "dim", d) : nn_int(blob, "BlobProto", old[d]);
    }
    return ndim;
}

/* Has a blob of a file the shape of a parameter? Blobs of old files have four dims, the first of them 1. */
static bool fits(const nn_message *blob, const nn_param *p)
{
    static const char *const old[] = {"num", "channels", "height", "width"};
    const nn_message *shape = nn_sub(blob, "shape");
    if (shape) {
        bool same = nn_count(shape, "dim") == p->ndim;
        for (int d = 0; same && d < p->ndim; d++) {
            same = nn_int_at(shape, "dim", d) == p->shape[d];
        }
        return same;
    }
    bool same = p->ndim <= 4;
    for (int i = 0; same && i < 4; i++) {
        int d = i - (4 - p->ndim);
        same = nn_int(blob, "BlobProto", old[i]) == (d < 0 ? 1 : p->shape[d]);
    }
    return same;
}

dm_status nn_blob_singles(nn_message *blob, const nn_entry **out)
{
    nn_entry *doubles = nn_entry_of(blob, "double_data"), *data = nn_entry_of(blob, "data");
    if (doubles && doubles->count) {
        const int64_t count = doubles->count;
        if (data) {
            nn_entry_clear(data);
        }
        dm_status status = nn_entry_grow(blob, nn_schema_by_name("BlobProto", "data"), count, &data);
        if (status != DM_OK) {
            return status;
        }
        doubles = nn_entry_of(blob, "double_data"); /* a new entry may have moved it */
        for (int64_t i = 0; i < count; i++) {
            data->at.real32[i] = (float)doubles->at.real[i];
        }
        data->count = count;
        nn_entry_clear(doubles);
    }
    *out = data;
    return DM_OK;
}

dm_status nn_param_from_message(const nn_net *net, const nn_param *p, dm_array to, nn_message *blob)
{
    const nn_entry *data = NULL;
    if (!fits(blob, p)) {
        char theirs[NN_SHAPE_TEXT], mine[NN_SHAPE_TEXT];
        int64_t shape[DM_MAX_DIMS];
        return nn_fail_at(
            blob, blob->line, DM_ERR_SHAPE,
            "parameter %d of layer '%s' has another shape in the file than in the net: %s, and not %s; "
            "a layer of another name begins anew",
            p->number, p->owner->name, nn_shape_text(shape_of(blob, shape), shape, theirs),
            nn_shape_text(p->ndim, p->shape, mine));
    }
    dm_status status = nn_blob_singles(blob, &data);
    if (status != DM_OK) {
        return status;
    }
    if (!data || data->count != p->count) {
        return nn_fail_at(blob, blob->line, DM_ERR_FORMAT,
                          "parameter %d of layer '%s' does not have the elements of its shape", p->number,
                          p->owner->name);
    }
    return nn_param_write(net, p, to, data->at.real32);
}

dm_status nn_net_save(nn_net *net, const char *path)
{
    if (nn_is_hdf5(path)) {
        return nn_net_save_hdf5(net, path);
    }
    nn_document *d = NULL;
    dm_status status = nn_document_new("NetParameter", path, &d);
    if (status == DM_OK) {
        status = nn_set_string(d->root, "name", net->name);
    }
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        nn_message *layer = NULL, *blob = NULL;
        if (l->pair > 0) { /* the first has the message of all */
            continue;
        }
        status = nn_set_message(d->root, "layer", &layer);
        status = status == DM_OK ? nn_message_merge(layer, l->message) : status;
        status = status == DM_OK ? nn_set_int(layer, "phase", net->phase) : status;
        nn_entry *old = status == DM_OK ? nn_entry_of(layer, "blobs") : NULL;
        if (old) {
            nn_entry_clear(old);
        }
        for (int k = 0; status == DM_OK && k < l->params; k++) {
            const nn_param *p = nn_param_itself(l->param[k]);
            status = nn_set_message(layer, "blobs", &blob);
            status = status == DM_OK ? nn_param_to_message(net, l->param[k], p->data, "data", blob) : status;
            if (status == DM_OK && net->save_diffs) {
                status = nn_param_to_message(net, l->param[k], p->diff, "diff", blob);
            }
        }
    }
    if (status == DM_OK) {
        status = nn_is_text(path) ? nn_text_write(d->root, path) : nn_wire_write(d->root, path);
    }
    nn_document_free(d);
    return status;
}

const nn_layer *nn_find_layer(const nn_net *net, const char *name)
{
    for (int i = 0; i < net->layer_count; i++) {
        if (strcmp(net->layers[i].name, name) == 0) {
            return &net->layers[i];
        }
    }
    return NULL;
}

static dm_status check_count(const nn_layer *l, const nn_message *layer)
{
    const int64_t blobs = nn_count(layer, "blobs");
    return blobs == l->params ? DM_OK
                              : nn_fail_at(layer, layer->line, DM_ERR_SHAPE,
                                           "layer '%s' has %lld parameters in the file, %d in the net", l->name,
                                           (long long)blobs, l->params);
}

static dm_status load_layer(nn_net *net, const nn_message *layer)
{
    const char *name = nn_string(layer, "LayerParameter", "name");
    const nn_layer *l = nn_find_layer(net, name);
    if (!l) {
        nn_log(net, "Ignoring source layer %s", name);
        return DM_OK;
    }
    dm_status status = check_count(l, layer);
    for (int k = 0; status == DM_OK && k < l->params; k++) {
        nn_param *p = nn_param_itself(l->param[k]);
        nn_param_written(p, false);
        status = nn_param_from_message(net, l->param[k], p->data, nn_sub_at(layer, "blobs", k));
    }
    return status;
}

dm_status nn_params_given(nn_net *net)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        nn_entry *blobs = l->pair == 0 && nn_has(l->message, "blobs") ? nn_entry_of(l->message, "blobs") : NULL;
        status = blobs ? check_count(l, l->message) : DM_OK;
        for (int k = 0; status == DM_OK && blobs && k < l->params; k++) {
            nn_param *p = nn_param_itself(l->param[k]);
            if (p->owner == l && !p->borrowed && !p->follows) {
                nn_param_written(p, false);
                status = nn_param_from_message(net, p, p->data, blobs->at.message[k]);
            }
        }
        if (status == DM_OK && blobs) {
            nn_entry_clear(blobs); /* nobody needs them in memory any more */
        }
    }
    return status;
}

dm_status nn_net_load(nn_net *net, const char *path)
{
    if (nn_is_hdf5(path)) {
        return nn_net_load_hdf5(net, path);
    }
    nn_document *d = NULL;
    dm_status status =
        nn_is_text(path) ? nn_text_read(path, "NetParameter", &d) : nn_wire_read(path, "NetParameter", &d);
    status = status == DM_OK ? nn_net_upgrade(d->root) : status;
    if (status == DM_OK && nn_count(d->root, "layer") == 0) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has no layers: it holds no weights", path);
    }
    for (int64_t i = 0; status == DM_OK && i < nn_count(d->root, "layer"); i++) {
        status = load_layer(net, nn_sub_at(d->root, "layer", i));
    }
    nn_document_free(d);
    return status;
}
