/* Weights in HDF5 files (.caffemodel.h5): the array data/LAYER/NUMBER for each parameter. */
#include "net/net.h"

#include "data/hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nn_is_hdf5(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".h5") == 0;
}

dm_status nn_param_to_hdf5(const nn_net *net, const nn_param *p, dm_array from, nn_hdf5 *file, const char *name)
{
    float *elements = malloc((size_t)p->count * sizeof *elements);
    dm_status status =
        elements ? nn_param_read(net, p, from, elements)
                 : dm_error_no_memory("the elements of a parameter", (size_t)p->count * sizeof *elements);
    status = status == DM_OK ? nn_hdf5_write(file, name, p->ndim, p->shape, elements) : status;
    free(elements);
    return status;
}

dm_status nn_param_from_hdf5(const nn_net *net, const nn_param *p, dm_array to, nn_hdf5 *file, const char *name)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = nn_hdf5_shape(file, name, &ndim, shape);
    if (status == DM_OK && (ndim != p->ndim || memcmp(shape, p->shape, (size_t)ndim * sizeof *shape) != 0)) {
        char theirs[NN_SHAPE_TEXT], mine[NN_SHAPE_TEXT];
        return dm_error_set(
            DM_ERR_SHAPE,
            "%s: '%s' has another shape than parameter %d of layer '%s': %s, and not %s; a layer of "
            "another name begins anew",
            nn_hdf5_path(file), name, p->number, p->owner->name, nn_shape_text(ndim, shape, theirs),
            nn_shape_text(p->ndim, p->shape, mine));
    }
    float *elements = status == DM_OK ? malloc((size_t)p->count * sizeof *elements) : NULL;
    status = status == DM_OK && !elements
                 ? dm_error_no_memory("the elements of a parameter", (size_t)p->count * sizeof *elements)
                 : status;
    status = status == DM_OK ? nn_hdf5_read(file, name, p->count, elements) : status;
    status = status == DM_OK ? nn_param_write(net, p, to, elements) : status;
    free(elements);
    return status;
}

dm_status nn_net_save_hdf5(nn_net *net, const char *path)
{
    nn_hdf5 *f = NULL;
    dm_status status = nn_hdf5_create(path, &f);
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        for (int k = 0; status == DM_OK && k < l->params && l->pair == 0; k++) {
            const nn_param *p = nn_param_itself(l->param[k]);
            char name[512];
            snprintf(name, sizeof name, "diff/%.400s/%d", l->name, k);
            if (net->save_diffs) { /* of all who share one, as Caffe does */
                status = nn_param_to_hdf5(net, l->param[k], p->diff, f, name);
            }
            snprintf(name, sizeof name, "data/%.400s/%d", l->name, k);
            if (status == DM_OK && p->owner == l && p->number == k) { /* others share it */
                status = nn_param_to_hdf5(net, p, p->data, f, name);
            }
        }
    }
    return nn_hdf5_close(f, status);
}

/* Layers of the file that the net lacks, each by its first array. */
static dm_status say_ignored(const nn_net *net, nn_hdf5 *f)
{
    char *names = NULL;
    dm_status status = nn_hdf5_arrays(f, "data", &names);
    for (char *at = names; status == DM_OK && *at;) {
        char *next = at + strlen(at) + 1, *number = strrchr(at, '/');
        if (number && strcmp(number, "/0") == 0) {
            *number = 0;
            if (!nn_find_layer(net, at)) {
                nn_log(net, "Ignoring source layer %s", at);
            }
        }
        at = next;
    }
    free(names);
    return status;
}

static bool has_param(nn_hdf5 *f, const nn_layer *l, int number, char name[512])
{
    snprintf(name, 512, "data/%.400s/%d", l->name, number);
    return nn_hdf5_has(f, name);
}

/* A layer of the file gives all parameters that the layer of the net has, and no others. Those that are another
 * layer's may be missing. */
static dm_status check_layer(const nn_layer *l, nn_hdf5 *f)
{
    char name[512];
    int there = 0, missing = 0;
    const bool more = has_param(f, l, l->params, name);
    for (int k = 0; k < l->params; k++) {
        const nn_param *p = nn_param_itself(l->param[k]);
        const bool own = p->owner == l && p->number == k, has = has_param(f, l, k, name);
        there += has;
        missing += own && !has;
    }
    return more || (there && missing)
               ? dm_error_set(DM_ERR_SHAPE,
                              "%s: layer '%s' has %s parameters in the file than the %d in the net",
                              nn_hdf5_path(f), l->name, more ? "more" : "fewer", l->params)
               : DM_OK;
}

static dm_status load_layer(const nn_layer *l, nn_hdf5 *f)
{
    char name[512];
    dm_status status = check_layer(l, f);
    for (int k = 0; status == DM_OK && k < l->params; k++) {
        if (has_param(f, l, k, name)) {
            nn_param *p = nn_param_itself(l->param[k]);
            nn_param_written(p, false);
            status = nn_param_from_hdf5(l->net, l->param[k], p->data, f, name);
        }
    }
    return status;
}

dm_status nn_net_load_hdf5(nn_net *net, const char *path)
{
    nn_hdf5 *f = NULL;
    dm_status status = nn_hdf5_open(path, &f);
    if (status == DM_OK && !nn_hdf5_has(f, "data")) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has no group 'data': it holds no weights", path);
    }
    status = status == DM_OK ? say_ignored(net, f) : status;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        status = load_layer(&net->layers[i], f);
    }
    if (status != DM_OK && strncmp(dm_error_message(), path, strlen(path)) != 0) {
        status = dm_error_set(status, "%s: %s", path, dm_error_message());
    }
    return nn_hdf5_close(f, status);
}
