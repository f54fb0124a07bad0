/* Nets and settings made by calls: the same as those of files with the same text, and what calls refuse. */
#include "net_case.h"

static dm_prototxt *begin_net(void)
{
    dm_prototxt *p = NULL;
    CHECK(dm_prototxt_create("NetParameter", &p));
    return p;
}

static void assert_shows(const dm_prototxt *p, const char *expected)
{
    char *text = NULL;
    CHECK(dm_prototxt_show(p, &text));
    assert_string_equal(text, expected);
    free(text);
}

/* --- LeNet, as the published file has it */
static void data_layer(dm_prototxt *p, const char *phase, const char *source, int batch)
{
    CHECK(dm_prototxt_layer(p, "Data", "mnist", NULL, "data,label"));
    CHECK(dm_prototxt_text(p, "mnist", "include.phase", phase));
    CHECK(dm_prototxt_number(p, "mnist", "transform_param.scale", 0.00390625));
    CHECK(dm_prototxt_text(p, "mnist", "data_param.source", source));
    CHECK(dm_prototxt_number(p, "mnist", "data_param.batch_size", batch));
    CHECK(dm_prototxt_text(p, "mnist", "data_param.backend", "LMDB"));
}

static void set_in(dm_prototxt *p, const char *layer, const char *message, const char *field, const char *text,
                   double number)
{
    char path[128];
    snprintf(path, sizeof path, "%s.%s", message, field);
    CHECK(text ? dm_prototxt_text(p, layer, path, text) : dm_prototxt_number(p, layer, path, number));
}

static void product_layer(dm_prototxt *p, const char *type, const char *message, const char *name,
                          const char *bottom, int outputs, int kernel)
{
    CHECK(dm_prototxt_layer(p, type, name, bottom, name));
    CHECK(dm_prototxt_number(p, name, "param[0].lr_mult", 1));
    CHECK(dm_prototxt_number(p, name, "param[1].lr_mult", 2));
    set_in(p, name, message, "num_output", NULL, outputs);
    if (kernel) {
        set_in(p, name, message, "kernel_size", NULL, kernel);
        set_in(p, name, message, "stride", NULL, 1);
    }
    set_in(p, name, message, "weight_filler.type", "xavier", 0);
    set_in(p, name, message, "bias_filler.type", "constant", 0);
}

static void pool_layer(dm_prototxt *p, const char *name, const char *bottom)
{
    CHECK(dm_prototxt_layer(p, "Pooling", name, bottom, name));
    CHECK(dm_prototxt_text(p, name, "pooling_param.pool", "MAX"));
    CHECK(dm_prototxt_number(p, name, "pooling_param.kernel_size", 2));
    CHECK(dm_prototxt_number(p, name, "pooling_param.stride", 2));
}

static void test_lenet(void **state)
{
    char *text = NULL;
    dm_prototxt *p = begin_net();
    (void)state;
    CHECK(dm_prototxt_text(p, NULL, "name", "LeNet"));
    data_layer(p, "TRAIN", "examples/mnist/mnist_train_lmdb", 64);
    data_layer(p, "TEST", "examples/mnist/mnist_test_lmdb", 100);
    product_layer(p, "Convolution", "convolution_param", "conv1", "data", 20, 5);
    pool_layer(p, "pool1", "conv1");
    product_layer(p, "Convolution", "convolution_param", "conv2", "pool1", 50, 5);
    pool_layer(p, "pool2", "conv2");
    product_layer(p, "InnerProduct", "inner_product_param", "ip1", "pool2", 500, 0);
    CHECK(dm_prototxt_layer(p, "ReLU", "relu1", "ip1", "ip1"));
    product_layer(p, "InnerProduct", "inner_product_param", "ip2", "ip1", 10, 0);
    CHECK(dm_prototxt_layer(p, "Accuracy", "accuracy", "ip2,label", "accuracy"));
    CHECK(dm_prototxt_text(p, "accuracy", "include[0].phase", "TEST"));
    CHECK(dm_prototxt_layer(p, "SoftmaxWithLoss", "loss", "ip2,label", "loss"));
    CHECK(dm_prototxt_print(NN_EXAMPLES "/lenet/lenet_train_test.prototxt", "NetParameter", &text));
    assert_shows(p, text);
    free(text);
    CHECK(dm_prototxt_destroy(p));
}

static void test_lenet_solver(void **state)
{
    char *text = NULL;
    dm_prototxt *p = NULL;
    (void)state;
    CHECK(dm_prototxt_create("SolverParameter", &p));
    CHECK(dm_prototxt_text(p, NULL, "net", "examples/lenet/lenet_train_test.prototxt"));
    CHECK(dm_prototxt_list(p, NULL, "test_iter", 1, (double[]){100}));
    CHECK(dm_prototxt_number(p, NULL, "test_interval", 500));
    CHECK(dm_prototxt_number(p, NULL, "base_lr", 0.01));
    CHECK(dm_prototxt_number(p, NULL, "momentum", 0.9));
    CHECK(dm_prototxt_number(p, NULL, "weight_decay", 0.0005));
    CHECK(dm_prototxt_text(p, NULL, "lr_policy", "inv"));
    CHECK(dm_prototxt_number(p, NULL, "gamma", 0.0001));
    CHECK(dm_prototxt_number(p, NULL, "power", 0.75));
    CHECK(dm_prototxt_number(p, NULL, "display", 100));
    CHECK(dm_prototxt_number(p, NULL, "max_iter", 10000));
    CHECK(dm_prototxt_number(p, NULL, "snapshot", 5000));
    CHECK(dm_prototxt_text(p, NULL, "snapshot_prefix", "examples/lenet/lenet"));
    CHECK(dm_prototxt_text(p, NULL, "solver_mode", "GPU"));
    CHECK(dm_prototxt_print(NN_EXAMPLES "/lenet/lenet_solver.prototxt", "SolverParameter", &text));
    assert_shows(p, text);
    free(text);
    CHECK(dm_prototxt_destroy(p));
}

/* --- values of all types: first, another, a list, one of a list, none */
static void test_values(void **state)
{
    dm_prototxt *p = begin_net();
    (void)state;
    CHECK(dm_prototxt_number(p, NULL, "force_backward", 1));
    CHECK(dm_prototxt_text(p, NULL, "force_backward", "false"));
    CHECK(dm_prototxt_layer(p, "X", "x", "a,b", NULL));
    CHECK(dm_prototxt_text(p, "x", "bottom[1]", "c"));
    CHECK(dm_prototxt_text(p, "x", "bottom[2]", "with, comma \"and\" \n\303\244"));
    CHECK(dm_prototxt_list(p, "x", "loss_weight", 3, (double[]){0.1, -2, 1e-30}));
    CHECK(dm_prototxt_number(p, "x", "loss_weight[1]", INFINITY));
    CHECK(dm_prototxt_number(p, "x", "loss_weight[3]", 4));
    CHECK(dm_prototxt_list(p, "x", "propagate_down", 2, (double[]){1, 0}));
    CHECK(dm_prototxt_text(p, "x", "propagate_down[1]", "true"));
    CHECK(dm_prototxt_list(p, "x", "input_param.shape.dim", 2, (double[]){3, 4503599627370496}));
    CHECK(dm_prototxt_list(p, "x", "input_param.shape[1].dim", 1, (double[]){-1}));
    CHECK(dm_prototxt_number(p, "x", "input_param.shape[1].dim[1]", 7));
    CHECK(dm_prototxt_text(p, "x", "pooling_param.pool", "AVE"));
    CHECK(dm_prototxt_number(p, "x", "pooling_param.pool", 2));
    CHECK(dm_prototxt_number(p, "x", "pooling_param.pad", 4294967295.0));
    CHECK(dm_prototxt_number(p, "x", "relu_param.negative_slope", 5));
    CHECK(dm_prototxt_number(p, "x", "relu_param.negative_slope", 0.1));
    CHECK(dm_prototxt_list(p, "x", "concat_param.axis", 0, NULL) == DM_ERR_ARG ? DM_OK : DM_ERR_INTERNAL);
    CHECK(dm_prototxt_list(p, "x", "include.stage", 0, NULL));
    CHECK(dm_prototxt_number(p, "x", "exclude.min_level", -2147483648.0));
    CHECK(dm_prototxt_list(p, "x", "convolution_param.pad", 2, (double[]){1, 2}));
    CHECK(dm_prototxt_number(p, "x", "convolution_param.pad", 3));
    assert_shows(p, "force_backward: false\n"
                    "layer {\n  name: \"x\"\n  type: \"X\"\n  bottom: \"a\"\n  bottom: \"c\"\n"
                    "  bottom: \"with, comma \\\"and\\\" \\n\\303\\244\"\n"
                    "  loss_weight: 0.1\n  loss_weight: inf\n  loss_weight: 1e-30\n  loss_weight: 4\n"
                    "  include {\n  }\n  exclude {\n    min_level: -2147483648\n  }\n"
                    "  propagate_down: true\n  propagate_down: true\n"
                    "  convolution_param {\n    pad: 3\n  }\n"
                    "  pooling_param {\n    pool: STOCHASTIC\n    pad: 4294967295\n  }\n"
                    "  relu_param {\n    negative_slope: 0.1\n  }\n"
                    "  input_param {\n    shape {\n      dim: 3\n      dim: 4503599627370496\n    }\n"
                    "    shape {\n      dim: -1\n      dim: 7\n    }\n  }\n}\n");
    CHECK(dm_prototxt_destroy(p));
    CHECK(dm_prototxt_destroy(NULL));
}

/* --- what is refused: nothing changes, and the message names the call, the layer and the field */
static const struct {
    const char *layer, *field, *text; /* text NULL: the number */
    double number;
    int64_t count; /* of a list; 0: no list */
    const char *says;
} refused[] = {
    {"c", "convolution_param.num_outputs", NULL, 1, 0,
     "dm_prototxt_number: layer 'c', field 'convolution_param.num_outputs': ConvolutionParameter has no field "
     "'num_outputs'"},
    {"c", "nonsense", "x", 0, 0,
     "dm_prototxt_text: layer 'c', field 'nonsense': LayerParameter has no field 'nonsense'"},
    {NULL, "convolution_param.pad", NULL, 1, 0,
     "dm_prototxt_number: field 'convolution_param.pad': NetParameter has no field"},
    {"nobody", "type", "x", 0, 0, "dm_prototxt_text: field 'type': there is no layer 'nobody'"},
    {"c", "convolution_param", NULL, 1, 0, "LayerParameter.convolution_param is a message: name a field in it"},
    {"c", "type.x", NULL, 1, 0, "LayerParameter.type is no message"},
    {"c", "", NULL, 1, 0, "this is no path"},
    {"c", "convolution_param.", NULL, 1, 0, "this is no path"},
    {"c", ".type", NULL, 1, 0, "this is no path"},
    {"c", "convolution_param..pad", NULL, 1, 0, "this is no path"},
    {"c", "param[].lr_mult", NULL, 1, 0, "this is no path"},
    {"c", "param[-1].lr_mult", NULL, 1, 0, "this is no path"},
    {"c", "param[1", NULL, 1, 0, "this is no path"},
    {"c", "param[0]lr_mult", NULL, 1, 0, "this is no path"},
    {"c", "param[99999999999].lr_mult", NULL, 1, 0, "this is no path"},
    {"c", "a_name_that_is_longer_than_sixty_three_characters_which_no_field_has", NULL, 1, 0,
     "this is no path"},
    {"c", "param[1].lr_mult", NULL, 1, 0, "param[1] would leave a gap: there are 0 before it"},
    {"c", "bottom[2]", "x", 0, 0, "bottom[2] would leave a gap: there are 1 before it"},
    {"c", "convolution_param.num_output[0]", NULL, 1, 0, "ConvolutionParameter.num_output has one value"},
    {"c", "convolution_param[0].num_output", NULL, 1, 0, "LayerParameter.convolution_param has one value"},
    {"c", "convolution_param.num_output", NULL, 1.5, 0, "1.5 does not fit the type uint32"},
    {"c", "convolution_param.num_output", NULL, -1, 0, "-1 does not fit the type uint32"},
    {"c", "convolution_param.num_output", NULL, 4294967296.0, 0, "4294967296 does not fit the type uint32"},
    {"c", "convolution_param.num_output", NULL, NAN, 0, "does not fit the type uint32"},
    {"c", "convolution_param.axis", NULL, 2147483648.0, 0, "2147483648 does not fit the type int32"},
    {"c", "convolution_param.axis", NULL, -2147483649.0, 0, "-2147483649 does not fit the type int32"},
    {"c", "input_param.shape.dim", NULL, 1e16, 0, "does not fit the type int64"},
    {"c", "relu_param.negative_slope", NULL, 1e39, 0, "1e+39 does not fit the type float"},
    {"c", "convolution_param.bias_term", NULL, 2, 0, "2 is no bool: 0 or 1"},
    {"c", "convolution_param.bias_term", "yes", 0, 0, "'yes' is no bool: true or false"},
    {"c", "pooling_param.pool", NULL, 9, 0, "PoolMethod has no value 9"},
    {"c", "pooling_param.pool", "max", 0, 0, "PoolMethod has no value 'max'"},
    {"c", "type", NULL, 1, 0, "LayerParameter.type takes text"},
    {"c", "convolution_param.pad", "1", 0, 0, "ConvolutionParameter.pad takes numbers (uint32)"},
    {"c", "convolution_param.num_output", NULL, 1, 1,
     "ConvolutionParameter.num_output has one value and takes no list"},
    {"c", "convolution_param.pad[0]", NULL, 1, 1, "ConvolutionParameter.pad has one value and takes no list"},
    {"c", "convolution_param.pad", NULL, 0.5, 2,
     "dm_prototxt_list: layer 'c', field 'convolution_param.pad': 0.5 does not fit"},
};

static void test_refused(void **state)
{
    dm_prototxt *p = begin_net();
    char *before = NULL;
    (void)state;
    CHECK(dm_prototxt_layer(p, "Convolution", "c", "data", "c"));
    CHECK(dm_prototxt_show(p, &before));
    for (int i = 0; i < COUNT(refused); i++) {
        const char *layer = refused[i].layer, *field = refused[i].field;
        double list[] = {refused[i].number, refused[i].number};
        dm_status status = refused[i].text    ? dm_prototxt_text(p, layer, field, refused[i].text)
                           : refused[i].count ? dm_prototxt_list(p, layer, field, refused[i].count, list)
                                              : dm_prototxt_number(p, layer, field, list[0]);
        if (status != DM_ERR_ARG || !strstr(dm_error_message(), refused[i].says)) {
            fail_msg("%s: %s: %s", field, dm_status_name(status), dm_error_message());
        }
        assert_shows(p, before);
    }
    free(before);
    CHECK(dm_prototxt_destroy(p));
}

static void refuses(dm_status status, const char *says)
{
    if (status != DM_ERR_ARG || !strstr(dm_error_message(), says)) {
        fail_msg("not \"%s\" but %s: %s", says, dm_status_name(status), dm_error_message());
    }
}

static void test_arguments(void **state)
{
    dm_prototxt *p = begin_net(), *settings = NULL, *none = NULL;
    dm_net *net = NULL;
    dm_solver *solver = NULL;
    char *text = NULL;
    (void)state;
    CHECK(dm_prototxt_create("SolverParameter", &settings));
    refuses(dm_prototxt_create("LayerParameter", &none), "dm_prototxt_create");
    refuses(dm_prototxt_create(NULL, &none), "dm_prototxt_create");
    refuses(dm_prototxt_create("NetParameter", NULL), "dm_prototxt_create");
    refuses(dm_prototxt_layer(NULL, "ReLU", "r", "a", "b"), "dm_prototxt_layer");
    refuses(dm_prototxt_layer(p, "", "r", "a", "b"), "dm_prototxt_layer");
    refuses(dm_prototxt_layer(p, "ReLU", NULL, "a", "b"), "dm_prototxt_layer");
    refuses(dm_prototxt_layer(p, "ReLU", "r", "a,,b", "b"), "layer 'r': a name is empty in the bottoms 'a,,b'");
    refuses(dm_prototxt_layer(p, "ReLU", "r", "a", "b,"), "layer 'r': a name is empty in the tops 'b,'");
    refuses(dm_prototxt_layer(settings, "ReLU", "r", "a", "b"), "layer 'r': a SolverParameter has no layers");
    refuses(dm_prototxt_number(NULL, "c", "name", 1), "dm_prototxt_number");
    refuses(dm_prototxt_number(p, "c", NULL, 1), "dm_prototxt_number");
    refuses(dm_prototxt_number(settings, "c", "base_lr", 1), "there is no layer 'c'");
    refuses(dm_prototxt_text(p, NULL, "name", NULL), "dm_prototxt_text");
    refuses(dm_prototxt_list(p, NULL, "input_dim", 2, NULL), "dm_prototxt_list");
    refuses(dm_prototxt_list(p, NULL, "input_dim", -1, (double[]){1}), "dm_prototxt_list");
    refuses(dm_prototxt_show(NULL, &text), "dm_prototxt_show");
    refuses(dm_prototxt_show(p, NULL), "dm_prototxt_show");
    refuses(dm_net_create(session, NULL, NULL, &net), "dm_net_create");
    refuses(dm_net_create(session, p, NULL, NULL), "dm_net_create");
    refuses(dm_net_create(session, settings, NULL, &net), "dm_net_create: the prototxt is no NetParameter");
    refuses(dm_solver_create(session, NULL, p, NULL, &solver), "dm_solver_create");
    refuses(dm_solver_create(session, settings, settings, NULL, &solver), "dm_solver_create");
    refuses(dm_solver_create(session, p, NULL, NULL, &solver), "dm_solver_create");
    assert_null(net);
    assert_null(solver);
    CHECK(dm_prototxt_destroy(p));
    CHECK(dm_prototxt_destroy(settings));
}

/* --- a net of calls and one of a file are the same net */
#define RIGHT                                                                                                  \
    "name: 'small'\n"                                                                                          \
    "layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { shape { dim: [6, 3, 7, 6] } "     \
    "shape { dim: 6 } } }\n"                                                                                   \
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { num_output: 4 "         \
    "kernel_size: 3 weight_filler { type: 'msra' } } param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } " \
    "}\n"                                                                                                      \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param { num_output: 5 "       \
    "weight_filler { type: 'xavier' } } }\n"                                                                   \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"                \
    "layer { name: 'acc' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'acc' include { phase: TEST } }\n"

static dm_prototxt *small_net(void)
{
    dm_prototxt *p = begin_net();
    CHECK(dm_prototxt_text(p, NULL, "name", "small"));
    CHECK(dm_prototxt_layer(p, "Input", "in", NULL, "data,label"));
    CHECK(dm_prototxt_list(p, "in", "input_param.shape[0].dim", 4, (double[]){6, 3, 7, 6}));
    CHECK(dm_prototxt_list(p, "in", "input_param.shape[1].dim", 1, (double[]){6}));
    CHECK(dm_prototxt_layer(p, "Convolution", "c", "data", "c"));
    CHECK(dm_prototxt_number(p, "c", "convolution_param.num_output", 4));
    CHECK(dm_prototxt_number(p, "c", "convolution_param.kernel_size", 3));
    CHECK(dm_prototxt_text(p, "c", "convolution_param.weight_filler.type", "msra"));
    CHECK(dm_prototxt_number(p, "c", "param[0].lr_mult", 1));
    CHECK(dm_prototxt_number(p, "c", "param[1].lr_mult", 2));
    CHECK(dm_prototxt_number(p, "c", "param[1].decay_mult", 0));
    CHECK(dm_prototxt_layer(p, "InnerProduct", "ip", "c", "ip"));
    CHECK(dm_prototxt_number(p, "ip", "inner_product_param.num_output", 5));
    CHECK(dm_prototxt_text(p, "ip", "inner_product_param.weight_filler.type", "xavier"));
    CHECK(dm_prototxt_layer(p, "SoftmaxWithLoss", "loss", "ip,label", "loss"));
    CHECK(dm_prototxt_layer(p, "Accuracy", "acc", "ip,label", "acc"));
    CHECK(dm_prototxt_text(p, "acc", "include.phase", "TEST"));
    return p;
}

static dm_prototxt *small_settings(void)
{
    dm_prototxt *p = NULL;
    CHECK(dm_prototxt_create("SolverParameter", &p));
    CHECK(dm_prototxt_number(p, NULL, "base_lr", 0.1));
    CHECK(dm_prototxt_text(p, NULL, "lr_policy", "multistep"));
    CHECK(dm_prototxt_list(p, NULL, "stepvalue", 2, (double[]){2, 3}));
    CHECK(dm_prototxt_number(p, NULL, "gamma", 0.5));
    CHECK(dm_prototxt_number(p, NULL, "momentum", 0.9));
    CHECK(dm_prototxt_number(p, NULL, "weight_decay", 0.01));
    CHECK(dm_prototxt_number(p, NULL, "max_iter", 5));
    CHECK(dm_prototxt_list(p, NULL, "test_iter", 1, (double[]){1}));
    CHECK(dm_prototxt_number(p, NULL, "test_interval", 100));
    CHECK(dm_prototxt_text(p, NULL, "test_initialization", "false"));
    CHECK(dm_prototxt_text(p, NULL, "snapshot_after_train", "false"));
    return p;
}

/* Trains for 5 iterations, always from the same data; loss and a score of the test net. */
static void train(dm_solver *solver, double found[2])
{
    int64_t before = random_state;
    dm_net *nets[] = {dm_solver_net(solver), dm_solver_test_net(solver, 0)};
    assert_non_null(nets[1]);
    for (int i = 0; i < 2; i++) {
        random_state = 77;
        write_random(nets[i], "data", false, 0);
        write_random(nets[i], "label", true, 5);
    }
    random_state = before;
    CHECK(dm_solver_run(solver, NULL, NULL));
    CHECK(dm_net_forward(nets[0], &found[0]));
    CHECK(dm_net_forward(nets[1], NULL));
    found[1] = -1;
    for (int i = 0; i < dm_net_outputs(nets[1]); i++) {
        const char *name = NULL;
        double value = 0;
        CHECK(dm_net_output(nets[1], i, &name, NULL, &value));
        found[1] = strcmp(name, "acc") == 0 ? value : found[1];
    }
    CHECK(dm_solver_close(solver));
}

static void test_same_training(void **state)
{
    dm_prototxt *net = small_net(), *settings = small_settings();
    dm_solver *solver = NULL;
    double by_file[2], by_calls[2], again[2];
    (void)state;
    write_file("small.prototxt", RIGHT);
    write_file("solver.prototxt",
               "net: 'small.prototxt' base_lr: 0.1 lr_policy: 'multistep' stepvalue: [2, 3] gamma: 0.5 "
               "momentum: 0.9 weight_decay: 0.01 max_iter: 5 test_iter: 1 test_interval: 100 "
               "test_initialization: false snapshot_after_train: false\n");
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &solver));
    train(solver, by_file);
    CHECK(dm_solver_create(session, settings, net, NULL, &solver));
    train(solver, by_calls);
    assert_true(by_file[0] == by_calls[0] && by_file[1] == by_calls[1] && by_file[1] >= 0);

    CHECK(dm_prototxt_number(net, "ip", "inner_product_param.num_output",
                             6)); /* it may be changed and used again */
    CHECK(dm_solver_create(session, settings, net, NULL, &solver));
    train(solver, again);
    assert_true(again[0] != by_calls[0]);
    CHECK(dm_prototxt_number(net, "ip", "inner_product_param.num_output", 5));

    CHECK(dm_prototxt_text(settings, NULL, "net", "small.prototxt")); /* a file as the net, and two nets */
    CHECK(dm_solver_create(session, settings, NULL, NULL, &solver));
    train(solver, again);
    assert_true(again[0] == by_calls[0]);
    assert_int_equal(dm_solver_create(session, settings, net, NULL, &solver), DM_ERR_FORMAT);
    assert_non_null(strstr(dm_error_message(), "solver:1: a solver has one of net, net_param"));
    CHECK(dm_prototxt_destroy(net));
    CHECK(dm_prototxt_destroy(settings));
}

static void test_same_net(void **state)
{
    dm_prototxt *p = small_net();
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *nets[2];
    char *text[2];
    (void)state;
    options.phase = DM_PHASE_TRAIN;
    CHECK(dm_net_create(session, p, &options, &nets[0]));
    nets[1] = open_text(RIGHT, DM_PHASE_TRAIN);
    for (int i = 0; i < 2; i++) {
        CHECK(dm_net_show(nets[i], &text[i]));
    }
    assert_string_equal(text[0], text[1]);
    float w[2][4 * 3 * 3 * 3];
    for (int i = 0; i < 2; i++) {
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        CHECK(dm_net_param_read(nets[i], "c", 0, &ndim, shape, w[i]));
        CHECK(dm_net_close(nets[i]));
        free(text[i]);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    CHECK(dm_prototxt_destroy(p));
}

/* --- what a net cannot take: the line of the text that dm_prototxt_show prints */
static int line_of(const dm_prototxt *p, const char *what)
{
    char *text = NULL;
    int line = 1;
    CHECK(dm_prototxt_show(p, &text));
    const char *at = strstr(text, what);
    assert_non_null(at);
    for (const char *c = text; c < at; c++) {
        line += *c == '\n';
    }
    free(text);
    return line;
}

static void assert_said(const char *name, int line, const char *what)
{
    char start[64];
    snprintf(start, sizeof start, "%s:%d: ", name, line);
    if (!strstr(dm_error_message(), start) || !strstr(dm_error_message(), what)) {
        fail_msg("%s is not in line %d with '%s'", dm_error_message(), line, what);
    }
}

static void test_lines(void **state)
{
    dm_prototxt *p = small_net(), *settings = small_settings();
    dm_solver *solver = NULL;
    dm_net *net = NULL;
    (void)state;
    CHECK(dm_prototxt_number(p, "ip", "pooling_param.stride", 2)); /* of another layer */
    assert_int_equal(dm_net_create(session, p, NULL, &net), DM_ERR_UNSUPPORTED);
    assert_said("small", line_of(p, "pooling_param"), "pooling_param");
    assert_int_equal(dm_solver_create(session, settings, p, NULL, &solver), DM_ERR_UNSUPPORTED);
    assert_said("small", line_of(p, "pooling_param"), "pooling_param");
    CHECK(dm_prototxt_destroy(p));

    p = small_net();
    CHECK(dm_prototxt_number(p, "acc", "pooling_param.stride", 2)); /* of a layer of test nets alone */
    assert_int_equal(dm_solver_create(session, settings, p, NULL, &solver), DM_ERR_UNSUPPORTED);
    assert_said("small", line_of(p, "pooling_param"), "pooling_param");
    CHECK(dm_prototxt_destroy(p));

    p = begin_net();
    CHECK(dm_prototxt_layer(p, "Input", "in", NULL, "data"));
    CHECK(dm_prototxt_list(p, "in", "input_param.shape.dim", 2, (double[]){3, 4}));
    CHECK(dm_prototxt_layer(p, "Clip", "clip", "data", "y"));
    CHECK(dm_prototxt_number(p, "clip", "clip_param.min", 0));
    assert_int_equal(dm_net_create(session, p, NULL, &net), DM_ERR_FORMAT); /* max is required */
    assert_said("net", line_of(p, "clip_param"), "ClipParameter lacks the field 'max'");
    CHECK(dm_prototxt_number(settings, NULL, "rms_decay", 0.5));
    CHECK(dm_prototxt_number(p, "clip", "clip_param.max", 1));
    CHECK(dm_net_create(session, p, NULL, &net));
    CHECK(dm_net_close(net));
    CHECK(dm_prototxt_destroy(p));
    p = small_net();
    assert_int_equal(dm_solver_create(session, settings, p, NULL, &solver), DM_ERR_FORMAT);
    assert_said("solver", line_of(settings, "rms_decay"), "the solver SGD has no use for rms_decay");
    CHECK(dm_prototxt_destroy(p));
    CHECK(dm_prototxt_destroy(settings));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lenet),     cmocka_unit_test(test_lenet_solver),
        cmocka_unit_test(test_values),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_same_training),
        cmocka_unit_test(test_same_net),  cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
