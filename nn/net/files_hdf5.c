/* Weights in HDF5 files (.caffemodel.h5) as messages, without a net: what nn_net_save_hdf5 writes, to binary
 * files and back. */
#include "net/net.h"

#include "data/hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 512 };

/* --- to HDF5 */
static dm_status put_blob(nn_message *blob, const char *field, const char *layer, int64_t i, nn_hdf5 *file)
{
    static const char *const old[] = {"num", "channels", "height", "width"};
    const nn_entry *data = NULL;
    dm_status status = nn_blob_singles(blob, &data);
    if (status != DM_OK) {
        return status;
    }
    data = nn_entry_of(blob, field);
    const nn_message *given = nn_sub(blob, "shape");
    int64_t shape[DM_MAX_DIMS], count = 1, ndim = given ? nn_count(given, "dim") : 4;
    bool good = ndim <= DM_MAX_DIMS;
    for (int64_t d = 0; good && d < ndim; d++) {
        shape[d] = given ? nn_int_at(given, "dim", d) : nn_int(blob, "BlobProto", old[d]);
        good = shape[d] > 0 && shape[d] <= (INT64_C(1) << 40) / count;
        count *= good ? shape[d] : 1;
    }
    if (!good || !data || data->count != count) {
        return nn_fail_at(blob, 0, DM_ERR_FORMAT,
                          "parameter %lld of layer '%s' does not have the elements of its shape", (long long)i,
                          layer);
    }
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s/%.400s/%lld", field, layer, (long long)i);
    return nn_hdf5_write(file, name, (int)ndim, shape, data->at.real32);
}

dm_status nn_weights_to_hdf5(const nn_message *net, const char *path)
{
    nn_hdf5 *f = NULL;
    dm_status status = nn_hdf5_create(path, &f);
    for (int64_t i = 0; status == DM_OK && i < nn_count(net, "layer"); i++) {
        const nn_message *layer = nn_sub_at(net, "layer", i);
        const char *name = nn_string(layer, "LayerParameter", "name");
        for (int64_t k = 0; status == DM_OK && k < nn_count(layer, "blobs"); k++) {
            nn_message *blob = nn_sub_at(layer, "blobs", k);
            status = put_blob(blob, "data", name, k, f);
            status = status == DM_OK && nn_has(blob, "diff") ? put_blob(blob, "diff", name, k, f) : status;
        }
    }
    return nn_hdf5_close(f, status);
}

/* --- from HDF5 */
static dm_status take_blob(nn_hdf5 *f, const char *field, const char *name, nn_message *blob)
{
    int ndim = 0;
    int64_t dims[DM_MAX_DIMS], count = 1;
    nn_message *shape = NULL;
    nn_entry *data = NULL;
    dm_status status = nn_hdf5_shape(f, name, &ndim, dims);
    bool shaped = nn_has(blob, "shape");
    status = status == DM_OK && !shaped ? nn_set_message(blob, "shape", &shape) : status;
    for (int d = 0; status == DM_OK && d < ndim; d++) {
        if (dims[d] < 1 || dims[d] > (INT64_C(1) << 40) / count) {
            return dm_error_set(DM_ERR_FORMAT, "%s: '%s' has extent %lld in dim %d", nn_hdf5_path(f), name,
                                (long long)dims[d], d);
        }
        count *= dims[d];
        status = shaped ? DM_OK : nn_set_int(shape, "dim", dims[d]);
    }
    status =
        status == DM_OK ? nn_entry_grow(blob, nn_schema_by_name("BlobProto", field), count, &data) : status;
    status = status == DM_OK ? nn_hdf5_read(f, name, count, data->at.real32) : status;
    if (status == DM_OK) {
        data->count = count;
    }
    return status;
}

/* Parameters 0, 1, ... of a layer, as many as there are. */
static dm_status take_layer(nn_hdf5 *f, const char *layer, nn_message *net)
{
    nn_message *message = NULL, *blob = NULL;
    dm_status status = nn_set_message(net, "layer", &message);
    status = status == DM_OK ? nn_set_string(message, "name", layer) : status;
    for (int k = 0; status == DM_OK; k++) {
        char name[MOST_NAME];
        snprintf(name, sizeof name, "data/%.400s/%d", layer, k);
        if (!nn_hdf5_has(f, name)) {
            break;
        }
        status = nn_set_message(message, "blobs", &blob);
        status = status == DM_OK ? take_blob(f, "data", name, blob) : status;
        memcpy(name, "diff", 4);
        status = status == DM_OK && nn_hdf5_has(f, name) ? take_blob(f, "diff", name, blob) : status;
    }
    return status;
}

/* An array below the group `data`: LAYER/NUMBER, of which the first of each layer brings all. A layer that
 * shares the first parameter of another has the others alone. */
static dm_status take_array(nn_hdf5 *f, char *path, nn_message *net)
{
    char *number = strrchr(path, '/'), *end = NULL;
    const long k = number ? strtol(number + 1, &end, 10) : -1;
    if (k < 0 || end == number + 1 || *end || (size_t)(number - path) > 400) {
        return dm_error_set(DM_ERR_FORMAT, "%s: 'data/%s' is no parameter of a layer", nn_hdf5_path(f), path);
    }
    char before[MOST_NAME];
    snprintf(before, sizeof before, "data/%.*s/%ld", (int)(number - path), path, k - 1);
    if (k > 0 && !nn_hdf5_has(f, before)) {
        return dm_error_set(
            DM_ERR_UNSUPPORTED,
            "%s: layer '%.*s' has parameter %ld and not %ld, which it shares: only HDF5 files leave "
            "such out. A net that has loaded the file can save it in another form",
            nn_hdf5_path(f), (int)(number - path), path, k, k - 1);
    }
    *number = 0;
    return k == 0 ? take_layer(f, path, net) : DM_OK;
}

dm_status nn_weights_from_hdf5(const char *path, nn_document **out)
{
    nn_hdf5 *f = NULL;
    nn_document *d = NULL;
    char *names = NULL;
    dm_status status = nn_hdf5_open(path, &f);
    if (status == DM_OK && !nn_hdf5_has(f, "data")) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has no group 'data': it holds no weights", path);
    }
    status = status == DM_OK ? nn_document_new("NetParameter", path, &d) : status;
    status = status == DM_OK ? nn_hdf5_arrays(f, "data", &names) : status;
    for (char *at = names, *next = NULL; status == DM_OK && *at; at = next) {
        next = at + strlen(at) + 1;
        status = take_array(f, at, d->root);
    }
    free(names);
    status = nn_hdf5_close(f, status);
    if (status != DM_OK) {
        nn_document_free(d);
        return status;
    }
    *out = d;
    return DM_OK;
}
