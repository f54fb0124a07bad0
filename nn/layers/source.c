/* DummyData, Input, MemoryData: layers without bottoms that read no files. */
#include "layers/layers.h"

#include <string.h>

/* --- DummyData */
dm_status nn_dummy_setup(nn_layer *l)
{
    static const char *const dims[] = {"num", "channels", "height", "width"};
    int64_t shapes = nn_count(l->own, "shape"), fillers = nn_count(l->own, "data_filler"), tops = l->tops;
    bool old = nn_count(l->own, "num") > 0;
    if (fillers > 1 && fillers != tops) {
        return nn_layer_fail(l, "data_filler", DM_ERR_FORMAT, "has %lld fillers for %lld tops",
                             (long long)fillers, (long long)tops);
    }
    if (old ? shapes != 0 : shapes != 1 && shapes != tops) {
        return nn_layer_fail(l, "dummy_data_param", DM_ERR_FORMAT, "has %lld shapes for %lld tops",
                             (long long)shapes, (long long)tops);
    }
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        int64_t shape[DM_MAX_DIMS], ndim = 4;
        if (old) {
            for (int d = 0; d < 4; d++) {
                int64_t n = nn_count(l->own, dims[d]);
                if (n != 1 && n != tops) {
                    return nn_layer_fail(l, dims[d], DM_ERR_FORMAT, "has %lld values of %s for %lld tops",
                                         (long long)n, dims[d], (long long)tops);
                }
                shape[d] = nn_int_at(l->own, dims[d], n == 1 ? 0 : i);
            }
        } else {
            const nn_message *m = nn_sub_at(l->own, "shape", shapes == 1 ? 0 : i);
            ndim = nn_count(m, "dim");
            if (ndim < 1 || ndim > DM_MAX_DIMS) {
                return nn_layer_fail(l, "shape", DM_ERR_FORMAT, "has a shape of %lld dims; there may be 1 to 8",
                                     (long long)ndim);
            }
            for (int d = 0; d < ndim; d++) {
                shape[d] = nn_int_at(m, "dim", d);
            }
        }
        status = nn_top_shape(l, i, (int)ndim, shape);
    }
    return status;
}

/* Fills the tops; in a pass only those whose numbers are random. */
static dm_status fill_dummies(nn_layer *l, bool all)
{
    int64_t fillers = nn_count(l->own, "data_filler");
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        const nn_message *filler = fillers ? nn_sub_at(l->own, "data_filler", fillers == 1 ? 0 : i) : NULL;
        uint64_t number = (uint64_t)(l->index + 100) * 64 + (uint64_t)i;
        uint64_t seed = nn_pass_seed(l->net, nn_hash(l->net->seed, number), l->net->pass);
        if (all || strcmp(nn_string(filler, "FillerParameter", "type"), "constant") != 0) {
            status =
                nn_fill(l, filler, l->top[i]->ndim, l->top[i]->shape, l->top[i]->image, seed, l->top[i]->data);
        }
    }
    return status;
}

dm_status nn_dummy_prepare(nn_layer *l)
{
    return fill_dummies(l, true);
}

dm_status nn_dummy_forward(nn_layer *l)
{
    return fill_dummies(l, false);
}

/* --- Input: the program writes the arrays of its tops, which are 0 before. */
dm_status nn_input_setup(nn_layer *l)
{
    int64_t shapes = nn_count(l->own, "shape");
    if (shapes != 1 && shapes != l->tops) {
        return nn_layer_fail(l, "input_param", DM_ERR_FORMAT, "has %lld shapes for %d tops", (long long)shapes,
                             l->tops);
    }
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        int64_t shape[DM_MAX_DIMS];
        const nn_message *m = nn_sub_at(l->own, "shape", shapes == 1 ? 0 : i);
        int64_t ndim = nn_count(m, "dim");
        if (ndim < 1 || ndim > DM_MAX_DIMS) {
            return nn_layer_fail(l, "shape", DM_ERR_FORMAT, "has a shape of %lld dims; there may be 1 to 8",
                                 (long long)ndim);
        }
        for (int d = 0; d < ndim; d++) {
            shape[d] = nn_int_at(m, "dim", d);
        }
        status = nn_top_shape(l, i, (int)ndim, shape);
    }
    return status;
}

static dm_status zero_tops(nn_layer *l)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        status = dm_fill(l->net->session, l->top[i]->data, 0);
    }
    return status;
}

dm_status nn_input_prepare(nn_layer *l)
{
    return zero_tops(l);
}

dm_status nn_input_forward(nn_layer *l)
{
    (void)l;
    return DM_OK;
}

/* --- MemoryData: as Input, with the shapes of images and their labels. */
dm_status nn_memory_setup(nn_layer *l)
{
    static const char *const dims[] = {"batch_size", "channels", "height", "width"};
    int64_t shape[4];
    for (int d = 0; d < 4; d++) {
        shape[d] = nn_int(l->own, "MemoryDataParameter", dims[d]);
        if (shape[d] < 1) {
            return nn_layer_fail(l, "memory_data_param", DM_ERR_FORMAT, "has %s %lld; it must be at least 1",
                                 dims[d], (long long)shape[d]);
        }
    }
    if (nn_has(l->message, "transform_param")) { /* as in Caffe, where arrays are not transformed either */
        nn_say_unused(l, l->message, "transform_param", "the program writes what the next layer reads");
        nn_use_all((nn_message *)(uintptr_t)nn_sub(l->message, "transform_param"));
    }
    dm_status status = nn_top_shape(l, 0, 4, shape);
    return status == DM_OK ? nn_top_shape(l, 1, 1, shape) : status;
}

dm_status nn_memory_prepare(nn_layer *l)
{
    return zero_tops(l);
}

dm_status nn_memory_forward(nn_layer *l)
{
    (void)l;
    return DM_OK;
}
