/* Nets of before 2015, whose layers stand in the field `layers`, in today's form. */
#include "net/net.h"

#include <string.h>

static const char V1[] = "V1LayerParameter", V2[] = "LayerParameter";

/* The types' names then and now. */
static const char *const types[][2] = {{"ABSVAL", "AbsVal"},
                                       {"ACCURACY", "Accuracy"},
                                       {"ARGMAX", "ArgMax"},
                                       {"BNLL", "BNLL"},
                                       {"CONCAT", "Concat"},
                                       {"CONTRASTIVE_LOSS", "ContrastiveLoss"},
                                       {"CONVOLUTION", "Convolution"},
                                       {"DATA", "Data"},
                                       {"DECONVOLUTION", "Deconvolution"},
                                       {"DROPOUT", "Dropout"},
                                       {"DUMMY_DATA", "DummyData"},
                                       {"EUCLIDEAN_LOSS", "EuclideanLoss"},
                                       {"ELTWISE", "Eltwise"},
                                       {"EXP", "Exp"},
                                       {"FLATTEN", "Flatten"},
                                       {"HDF5_DATA", "HDF5Data"},
                                       {"HDF5_OUTPUT", "HDF5Output"},
                                       {"HINGE_LOSS", "HingeLoss"},
                                       {"IM2COL", "Im2col"},
                                       {"IMAGE_DATA", "ImageData"},
                                       {"INFOGAIN_LOSS", "InfogainLoss"},
                                       {"INNER_PRODUCT", "InnerProduct"},
                                       {"LRN", "LRN"},
                                       {"MEMORY_DATA", "MemoryData"},
                                       {"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
                                       {"MVN", "MVN"},
                                       {"POOLING", "Pooling"},
                                       {"POWER", "Power"},
                                       {"RELU", "ReLU"},
                                       {"SIGMOID", "Sigmoid"},
                                       {"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
                                       {"SILENCE", "Silence"},
                                       {"SOFTMAX", "Softmax"},
                                       {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
                                       {"SPLIT", "Split"},
                                       {"SLICE", "Slice"},
                                       {"TANH", "TanH"},
                                       {"WINDOW_DATA", "WindowData"},
                                       {"THRESHOLD", "Threshold"}};

static dm_status give_type(const nn_message *old, nn_message *layer)
{
    const nn_enum *type = nn_enum_by_number("LayerType", nn_int(old, V1, "type"));
    for (int i = 0; i < NN_COUNT(types); i++) {
        if (type && strcmp(type->name, types[i][0]) == 0) {
            return nn_set_string(layer, "type", types[i][1]);
        }
    }
    return nn_fail_at(old, nn_line(old, "type"), DM_ERR_FORMAT, "layer '%s' has no type",
                      nn_string(old, V1, "name"));
}

/* A field that had one value a parameter goes to the messages of the parameters. */
static dm_status give_each(const nn_message *old, const char *from, nn_message *layer, const char *to)
{
    dm_status status = DM_OK;
    for (int64_t i = 0; status == DM_OK && i < nn_count(old, from); i++) {
        nn_message *spec = NULL;
        status = i < nn_count(layer, "param") ? DM_OK : nn_set_message(layer, "param", &spec);
        if (status == DM_OK) {
            const nn_field *f = nn_schema_by_name(old->type, from);
            spec = nn_sub_at(layer, "param", i);
            spec->line = nn_line(old, from);
            status = f->type == NN_STRING ? nn_set_string(spec, to, nn_string_at(old, from, i))
                     : f->type == NN_ENUM ? nn_set_int(spec, to, nn_int_at(old, from, i))
                                          : nn_set_real(spec, to, nn_real_at(old, from, i));
        }
    }
    return status;
}

dm_status nn_upgrade_multipliers(const nn_message *old, nn_message *layer)
{
    dm_status status = give_each(old, "blobs_lr", layer, "lr_mult");
    return status == DM_OK ? give_each(old, "weight_decay", layer, "decay_mult") : status;
}

static dm_status give_params(const nn_message *old, nn_message *layer)
{
    dm_status status = give_each(old, "param", layer, "name");
    status = status == DM_OK ? give_each(old, "blob_share_mode", layer, "share_mode") : status;
    return status == DM_OK ? nn_upgrade_multipliers(old, layer) : status;
}

/* Scale, mean, crop and mirror stood in the message of the data layer. */
static dm_status give_transform(nn_message *layer)
{
    static const char *const data[] = {"data_param", "image_data_param", "window_data_param"};
    static const char *const fields[] = {"scale", "mean_file", "crop_size", "mirror"};
    dm_status status = DM_OK;
    for (int i = 0; i < NN_COUNT(data); i++) {
        nn_message *own = nn_has(layer, data[i]) ? nn_entry_of(layer, data[i])->at.message[0] : NULL;
        for (int k = 0; status == DM_OK && k < NN_COUNT(fields); k++) {
            nn_message *transform = NULL;
            nn_entry *e = nn_entry_of(own, fields[k]);
            if (!e || e->count == 0) {
                continue;
            }
            if (nn_has(layer, "transform_param")) {
                transform = nn_entry_of(layer, "transform_param")->at.message[0];
            } else {
                status = nn_set_message(layer, "transform_param", &transform);
            }
            if (status == DM_OK) {
                status = nn_entry_copy(transform, nn_schema_by_name("TransformationParameter", fields[k]), e);
                nn_entry_clear(e);
            }
        }
    }
    return status;
}

static dm_status upgrade_layer(const nn_message *old, nn_message *layer)
{
    layer->line = old->line;
    dm_status status = give_type(old, layer);
    for (int i = 0; status == DM_OK && i < old->count; i++) { /* what has the name that it has today */
        const nn_entry *e = &old->entries[i];
        const nn_field *f = nn_schema_by_name(V2, e->field->name);
        if (f && f->type == e->field->type && strcmp(f->of, e->field->of) == 0) {
            status = nn_entry_copy(layer, f, e);
        }
    }
    status = status == DM_OK ? give_params(old, layer) : status;
    return status == DM_OK ? give_transform(layer) : status;
}

/* The parameters of BatchNorm are no weights: Caffe's files of before 2017 gave them multipliers. */
static dm_status fix_batch_norm(nn_message *layer)
{
    dm_status status = DM_OK;
    bool old = strcmp(nn_string(layer, V2, "type"), "BatchNorm") == 0 && nn_count(layer, "param") == 3;
    for (int64_t i = 0; status == DM_OK && old && i < 3; i++) {
        nn_message *spec = nn_sub_at(layer, "param", i);
        status = nn_set_real(spec, "lr_mult", 0);
        status = status == DM_OK ? nn_set_real(spec, "decay_mult", 0) : status;
    }
    return status;
}

/* Layers of before 2015, or of before 2014. */
static dm_status upgrade_old(nn_message *net)
{
    dm_status status = DM_OK;
    bool v0 = false;
    if (nn_has(net, "layer")) {
        return nn_fail_at(net, nn_line(net, "layers"), DM_ERR_FORMAT,
                          "a net has layers in the field 'layer' or in 'layers', not in both");
    }
    for (int64_t i = 0; i < nn_count(net, "layers"); i++) {
        v0 = v0 || nn_has(nn_sub_at(net, "layers", i), "layer");
    }
    if (v0) {
        status = nn_net_upgrade_v0(net);
    }
    for (int64_t i = 0; status == DM_OK && !v0 && i < nn_count(net, "layers"); i++) {
        nn_message *layer = NULL;
        status = nn_set_message(net, "layer", &layer);
        status = status == DM_OK ? upgrade_layer(nn_sub_at(net, "layers", i), layer) : status;
    }
    if (status == DM_OK) {
        nn_entry_clear(nn_entry_of(net, "layers"));
    }
    return status;
}

dm_status nn_solver_upgrade(nn_message *solver)
{
    static const char *const names[] = {"SGD",     "Nesterov", "AdaGrad",
                                        "RMSProp", "AdaDelta", "Adam"}; /* in the order of SolverType */
    nn_entry *old = nn_entry_of(solver, "solver_type");
    if (!old || old->count == 0) {
        return DM_OK;
    }
    const int line = nn_line(solver, "solver_type");
    if (nn_has(solver, "type")) {
        return nn_fail_at(solver, line, DM_ERR_FORMAT, "only one of type and solver_type may be there");
    }
    dm_status status = nn_set_string(solver, "type", names[nn_int(solver, "SolverParameter", "solver_type")]);
    nn_entry *type = status == DM_OK ? nn_entry_of(solver, "type") : NULL;
    if (type) {
        type->line = line;
        nn_entry_clear(nn_entry_of(solver, "solver_type"));
    }
    return status;
}

dm_status nn_net_upgrade(nn_message *net)
{
    const nn_entry *old = nn_entry_of(net, "layers");
    dm_status status = old && old->count ? upgrade_old(net) : DM_OK;
    for (int64_t i = 0; status == DM_OK && i < nn_count(net, "layer"); i++) {
        status = fix_batch_norm(nn_sub_at(net, "layer", i));
    }
    return status;
}
