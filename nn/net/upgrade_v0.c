/* Layers of before 2014, which stand in a message inside of `layers` and have all fields of all types in one
 * list, in today's form. Padding layers go into the convolutions and poolings that read them. */
#include "net/net.h"

#include <string.h>

static const char V0[] = "V0LayerParameter";

/* Then, now, and today's field for what is the type's own. */
static const struct type {
    const char *old, *name, *own;
} types[] = {{"accuracy", "Accuracy", NULL},
             {"bnll", "BNLL", NULL},
             {"concat", "Concat", "concat_param"},
             {"conv", "Convolution", "convolution_param"},
             {"data", "Data", "data_param"},
             {"dropout", "Dropout", "dropout_param"},
             {"euclidean_loss", "EuclideanLoss", NULL},
             {"flatten", "Flatten", NULL},
             {"hdf5_data", "HDF5Data", "hdf5_data_param"},
             {"hdf5_output", "HDF5Output", NULL},
             {"im2col", "Im2col", "convolution_param"},
             {"images", "ImageData", "image_data_param"},
             {"infogain_loss", "InfogainLoss", "infogain_loss_param"},
             {"innerproduct", "InnerProduct", "inner_product_param"},
             {"lrn", "LRN", "lrn_param"},
             {"multinomial_logistic_loss", "MultinomialLogisticLoss", NULL},
             {"pool", "Pooling", "pooling_param"},
             {"relu", "ReLU", NULL},
             {"sigmoid", "Sigmoid", NULL},
             {"softmax", "Softmax", NULL},
             {"softmax_loss", "SoftmaxWithLoss", NULL},
             {"split", "Split", NULL},
             {"tanh", "TanH", NULL},
             {"window_data", "WindowData", "window_data_param"}};

/* A field then and now, and the types that have it; NULL: it is in transform_param, of any type. */
static const struct {
    const char *old, *name, *types;
} fields[] = {{"num_output", "num_output", " conv innerproduct "},
              {"biasterm", "bias_term", " conv innerproduct "},
              {"weight_filler", "weight_filler", " conv innerproduct "},
              {"bias_filler", "bias_filler", " conv innerproduct "},
              {"pad", "pad", " conv pool im2col "},
              {"kernelsize", "kernel_size", " conv pool im2col "},
              {"group", "group", " conv "},
              {"stride", "stride", " conv pool im2col "},
              {"pool", "pool", " pool "},
              {"dropout_ratio", "dropout_ratio", " dropout "},
              {"local_size", "local_size", " lrn "},
              {"alpha", "alpha", " lrn "},
              {"beta", "beta", " lrn "},
              {"k", "k", " lrn "},
              {"source", "source", " data hdf5_data images window_data infogain_loss "},
              {"scale", "scale", NULL},
              {"meanfile", "mean_file", NULL},
              {"batchsize", "batch_size", " data hdf5_data images window_data "},
              {"cropsize", "crop_size", NULL},
              {"mirror", "mirror", NULL},
              {"rand_skip", "rand_skip", " data images "},
              {"shuffle_images", "shuffle", " images "},
              {"new_height", "new_height", " images "},
              {"new_width", "new_width", " images "},
              {"concat_dim", "concat_dim", " concat "},
              {"det_fg_threshold", "fg_threshold", " window_data "},
              {"det_bg_threshold", "bg_threshold", " window_data "},
              {"det_fg_fraction", "fg_fraction", " window_data "},
              {"det_context_pad", "context_pad", " window_data "},
              {"det_crop_mode", "crop_mode", " window_data "}};

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word)) {
        if (at[-1] == ' ' && at[n] == ' ') { /* a blank begins and ends the words */
            return true;
        }
    }
    return false;
}

static const char *type_of(const nn_message *old)
{
    return nn_string(nn_sub(old, "layer"), V0, "type");
}

/* A message inside of a layer; a new one if there is none. */
static dm_status inside(nn_message *layer, const char *field, nn_message **out)
{
    nn_entry *e = nn_entry_of(layer, field);
    *out = e && e->count ? e->at.message[0] : NULL;
    return *out ? DM_OK : nn_set_message(layer, field, out);
}

static dm_status give_value(const nn_entry *e, nn_message *to, const char *name)
{
    const nn_field *f = nn_schema_by_name(to->type, name);
    if (f->type == e->field->type) {
        return nn_entry_copy(to, f, e);
    }
    if (e->at.integer[0] < 0) {
        return nn_fail_at(to, e->line, DM_ERR_FORMAT, "%s is negative", e->field->name);
    }
    dm_status status = nn_set_int(to, name, e->at.integer[0]);
    if (status == DM_OK) {
        nn_entry_of(to, name)->line = e->line;
    }
    return status;
}

static dm_status give_field(const nn_message *v0, const nn_entry *e, const struct type *type, nn_message *layer)
{
    static const char *const same[] = {"blobs", "hdf5_output_param"};
    const char *name = e->field->name;
    nn_message *to = NULL;
    if (strcmp(name, "name") == 0 || strcmp(name, "type") == 0 || strcmp(name, "blobs_lr") == 0 ||
        strcmp(name, "weight_decay") == 0) {
        return DM_OK; /* given elsewhere */
    }
    for (int i = 0; i < NN_COUNT(same); i++) {
        if (strcmp(name, same[i]) == 0 && (i == 0 || strcmp(type->old, "hdf5_output") == 0)) {
            return nn_entry_copy(layer, nn_schema_by_name("LayerParameter", name), e);
        }
    }
    for (int i = 0; i < NN_COUNT(fields); i++) {
        const char *words = fields[i].types;
        if (strcmp(fields[i].old, name) == 0 && (!words || has_word(words, type->old))) {
            dm_status status = inside(layer, words ? type->own : "transform_param", &to);
            return status == DM_OK ? give_value(e, to, fields[i].name) : status;
        }
    }
    return nn_fail_at(v0, e->line, DM_ERR_FORMAT, "layer '%s': the type '%s' has no use for %s",
                      nn_string(v0, V0, "name"), type->old, name);
}

static dm_status give_fields(const nn_message *old, const struct type *type, nn_message *layer)
{
    const nn_message *v0 = nn_sub(old, "layer");
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < v0->count; i++) {
        status = v0->entries[i].count ? give_field(v0, &v0->entries[i], type, layer) : DM_OK;
    }
    return status == DM_OK ? nn_upgrade_multipliers(v0, layer) : status;
}

/* The layer before layer `to` that made a blob; NULL: it is an input, or there is none. */
static const nn_message *maker(const nn_message *net, int64_t to, const char *blob)
{
    for (int64_t i = to - 1; i >= 0; i--) {
        const nn_message *old = nn_sub_at(net, "layers", i);
        for (int64_t k = 0; k < nn_count(old, "top"); k++) {
            if (strcmp(nn_string_at(old, "top", k), blob) == 0) {
                return old;
            }
        }
    }
    return NULL;
}

/* The layer reads a padding layer: it reads that one's bottom, and pads itself. */
static dm_status fold_padding(const nn_message *old, const nn_message *padding, nn_message *layer)
{
    const nn_message *v0 = nn_sub(old, "layer"), *p = nn_sub(padding, "layer");
    nn_message *to = NULL;
    bool conv = strcmp(type_of(old), "conv") == 0, pool = strcmp(type_of(old), "pool") == 0;
    if (!(conv || pool) || nn_count(old, "bottom") != 1 || nn_count(padding, "bottom") != 1 ||
        nn_count(padding, "top") != 1 || nn_has(v0, "pad")) {
        return nn_fail_at(
            v0, v0->line, DM_ERR_FORMAT,
            "layer '%s' reads the padding layer '%s': only conv and pool with one bottom and no pad do so, and "
            "padding layers have one bottom and one top",
            nn_string(v0, V0, "name"), nn_string(p, V0, "name"));
    }
    dm_status status = inside(layer, conv ? "convolution_param" : "pooling_param", &to);
    status = status == DM_OK ? nn_set_int(to, "pad", nn_int(p, V0, "pad")) : status;
    return status == DM_OK ? nn_set_string(layer, "bottom", nn_string_at(padding, "bottom", 0)) : status;
}

static dm_status give_bottoms(const nn_message *net, int64_t i, nn_message *layer)
{
    const nn_message *old = nn_sub_at(net, "layers", i);
    dm_status status = DM_OK;
    for (int64_t k = 0; status == DM_OK && k < nn_count(old, "bottom"); k++) {
        const char *blob = nn_string_at(old, "bottom", k);
        const nn_message *from = maker(net, i, blob);
        status = from && strcmp(type_of(from), "padding") == 0 ? fold_padding(old, from, layer)
                                                               : nn_set_string(layer, "bottom", blob);
    }
    return status;
}

static dm_status upgrade_layer(const nn_message *net, int64_t number, nn_message *layer)
{
    const nn_message *old = nn_sub_at(net, "layers", number), *v0 = nn_sub(old, "layer");
    const struct type *type = NULL;
    for (int i = 0; i < NN_COUNT(types); i++) {
        type = strcmp(types[i].old, type_of(old)) == 0 ? &types[i] : type;
    }
    if (!type) {
        return nn_fail_at(v0, nn_line(v0, "type"), DM_ERR_FORMAT,
                          "layer '%s' has the type '%s', which no layer of before 2014 has",
                          nn_string(v0, V0, "name"), type_of(old));
    }
    layer->line = old->line;
    dm_status status = nn_set_string(layer, "name", nn_string(v0, V0, "name"));
    status = status == DM_OK ? nn_set_string(layer, "type", type->name) : status;
    status = status == DM_OK ? give_bottoms(net, number, layer) : status;
    for (int64_t i = 0; status == DM_OK && i < nn_count(old, "top"); i++) {
        status = nn_set_string(layer, "top", nn_string_at(old, "top", i));
    }
    return status == DM_OK ? give_fields(old, type, layer) : status;
}

/* Has the layer nothing but what layers of before 2014 had? */
static dm_status check(const nn_message *old)
{
    static const char *const allowed[] = {"layer", "bottom", "top"};
    if (!nn_has(old, "layer")) {
        return nn_fail_at(old, old->line, DM_ERR_FORMAT,
                          "a net has layers of before 2014 ('layers { layer') or of before 2015, not both");
    }
    for (int i = 0; i < old->count; i++) {
        bool good = old->entries[i].count == 0;
        for (int k = 0; k < NN_COUNT(allowed); k++) {
            good = good || strcmp(old->entries[i].field->name, allowed[k]) == 0;
        }
        if (!good) {
            return nn_fail_at(old, old->entries[i].line, DM_ERR_FORMAT, "%s has no meaning beside 'layer {'",
                              old->entries[i].field->name);
        }
    }
    return DM_OK;
}

dm_status nn_net_upgrade_v0(nn_message *net)
{
    dm_status status = DM_OK;
    for (int64_t i = 0; status == DM_OK && i < nn_count(net, "layers"); i++) {
        status = check(nn_sub_at(net, "layers", i));
    }
    for (int64_t i = 0; status == DM_OK && i < nn_count(net, "layers"); i++) {
        nn_message *layer = NULL;
        if (strcmp(type_of(nn_sub_at(net, "layers", i)), "padding") == 0) {
            continue;
        }
        status = nn_set_message(net, "layer", &layer);
        status = status == DM_OK ? upgrade_layer(net, i, layer) : status;
    }
    return status;
}
