/* Nets: shared parameters, rules, files, what is refused and where the message points. */
#include "net_case.h"

static void test_shared(void **state)
{
    (void)state;
    static const char *const text =
        "layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param { shape { dim: [6, 9] } shape { "
        "dim: 6 } } }\n"
        "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' param { name: 'w' } param { name: 'b' "
        "lr_mult: 2 }\n"
        " inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'r' type: 'TanH' bottom: 'a' top: 'a' }\n"
        "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { name: 'w' } param { name: 'b' }\n"
        " inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } }\n" LOSS("b");
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    dm_array a, b, diff;
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 9);
    for (int p = 0; p < 2; p++) {
        CHECK(dm_net_param(net, "a", p, &a, &diff));
        CHECK(dm_net_param(net, "b", p, &b, NULL));
        assert_int_equal(a.id, b.id);
        check_direction(net, "shared", a, diff, 2e-2);
    }
    CHECK(dm_net_close(net));
}

/* --- rules of layers, and outputs */
static void test_states(void **state)
{
    (void)state;
    static const char *const text = INPUTS IP("ip", "data", "5")
        SIMPLE("drop", "Dropout", "ip", "ip", "include { phase: TRAIN }") SIMPLE("s", "Softmax", "ip", "s",
                                                                                 "include { stage: 'deploy' }")
            SIMPLE("t", "TanH", "ip", "t", "exclude { stage: 'deploy' min_level: 1 } exclude { phase: TRAIN }")
                SIMPLE("v", "TanH", "ip", "v",
                       "include { max_level: 0 not_stage: 'x' } include { min_level: 2 }") LOSS("ip");
    static const struct {
        int phase, level;
        const char *stages, *outputs;
    } cases[] = {{DM_PHASE_TEST, 0, NULL, "loss t v"},       {DM_PHASE_TEST, 0, "x,deploy", "loss s t"},
                 {DM_PHASE_TEST, 1, "deploy", "loss s"},     {DM_PHASE_TEST, 2, "x", "loss t v"},
                 {DM_PHASE_TEST, 0, "deploy", "loss s t v"}, {DM_PHASE_TRAIN, -1, NULL, "loss v"}};
    write_file("net.prototxt", text);
    for (int i = 0; i < COUNT(cases); i++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        char outputs[64] = "";
        options.phase = cases[i].phase;
        options.level = cases[i].level;
        options.stages = cases[i].stages;
        CHECK(dm_net_open(session, "net.prototxt", &options, &net));
        for (int k = 0; k < dm_net_outputs(net); k++) {
            const char *name = NULL;
            CHECK(dm_net_output(net, k, &name, NULL, NULL));
            snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", k ? " " : "", name);
        }
        assert_string_equal(outputs, cases[i].outputs);
        CHECK(dm_net_close(net));
    }
}

/* A net as it was written before 2015 is the net of today. */
static void test_upgrade(void **state)
{
    (void)state;
    static const char *const texts[2] = {
        "layers { name: 'd' type: DUMMY_DATA top: 'x' top: 'label' dummy_data_param { shape { dim: [4, 3, 8, "
        "8] }\n"
        " shape { dim: 4 } } }\n"
        "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' blobs_lr: 1 blobs_lr: 2 weight_decay: 1 "
        "weight_decay: 0\n"
        " param: 'w' param: 'b' convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "
        "'xavier' } } }\n"
        "layers { name: 'r' type: RELU bottom: 'c' top: 'c' include { phase: TRAIN } }\n"
        "layers { name: 'i' type: INNER_PRODUCT bottom: 'c' top: 'i' inner_product_param { num_output: 3 } }\n"
        "layers { name: 'l' type: SOFTMAX_LOSS bottom: 'i' bottom: 'label' top: 'l' loss_weight: 2 }\n",
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: [4, 3, 8, "
        "8] }\n"
        " shape { dim: 4 } } }\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' param { name: 'w' lr_mult: 1 decay_mult: 1 "
        "}\n"
        " param { name: 'b' lr_mult: 2 decay_mult: 0 }\n"
        " convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' include { phase: TRAIN } }\n"
        "layer { name: 'i' type: 'InnerProduct' bottom: 'c' top: 'i' inner_product_param { num_output: 3 } }\n"
        "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'label' top: 'l' loss_weight: 2 }\n"};
    char *shown[2], *files[2];
    for (int i = 0; i < 2; i++) {
        dm_net *net = open_text(texts[i], DM_PHASE_TRAIN);
        CHECK(dm_net_show(net, &shown[i]));
        CHECK(dm_net_save(net, "net.caffemodel"));
        FILE *f = fopen("net.caffemodel", "rb");
        assert_non_null(f);
        files[i] = calloc(1, 1 << 16);
        size_t length = fread(files[i] + sizeof length, 1, (1 << 16) - sizeof length, f);
        memcpy(files[i], &length, sizeof length);
        fclose(f);
        CHECK(dm_net_close(net));
    }
    assert_string_equal(shown[0], shown[1]);
    assert_memory_equal(files[0], files[1], 1 << 16);
    for (int i = 0; i < 2; i++) {
        free(shown[i]);
        free(files[i]);
    }
}

static void test_save_load(void **state)
{
    (void)state;
    static const char *const text =
        INPUTS CONV("conv", "data", "num_output: 4 kernel_size: 3") IP("ip", "conv", "5") LOSS("ip");
    double first = 0, other = 0, again = 0;
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    dm_array w;
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 5);
    CHECK(dm_net_forward(net, &first));
    CHECK(dm_net_save(net, "net.caffemodel"));
    for (int i = 0; i < 2; i++) {
        CHECK(dm_net_param(net, i ? "ip" : "conv", 0, &w, NULL));
        CHECK(dm_fill_normal(session, w, 0, 1, 5));
    }
    CHECK(dm_net_forward(net, &other));
    assert_true(first != other);
    CHECK(dm_net_load(net, "net.caffemodel"));
    CHECK(dm_net_forward(net, &again));
    assert_true(first == again);
    CHECK(dm_net_close(net));
    net = open_text(INPUTS CONV("conv", "data", "num_output: 5 kernel_size: 3") IP("ip", "conv", "5"),
                    DM_PHASE_TEST);
    assert_int_equal(dm_net_load(net, "net.caffemodel"), DM_ERR_SHAPE);
    assert_non_null(
        strstr(dm_error_message(), "net.caffemodel: parameter 0 of layer 'conv' has another shape"));
    CHECK(dm_net_close(net));
}

/* --- refusals */
static const struct {
    const char *text, *message;
} bad[] = {
    {"layer { name: 'x' type: 'Silence' }\nlayers { type: RELU }",
     "net.prototxt:2: a net has layers in the field 'layer' or"},
    {"layers {\n name: 'x' }", "net.prototxt:1: layer 'x' has no type"},
    {"layers { name: 'x' type: POWER bottom: 'y' top: 'x' }",
     "net.prototxt:1: layer 'x' reads the blob 'y', which no layer"},
    {"layer { name: 'x'\n type: 'Convolve' }",
     "net.prototxt:2: layer 'x' has the type 'Convolve', which neither dmath nor the program has"},
    {INPUTS "layer { name: 'f' type: 'Filter' bottom: ['data', 'label'] top: 'u' }\n" SIMPLE("n", "BatchNorm",
                                                                                             "u", "n", ""),
     "net.prototxt:3: layer 'n' reads what the Filter layer 'f' passes"},
    {INPUTS "layer { name: 'f' type: 'Filter' bottom: ['data', 'label'] top: 'u' }\n" IP("i", "u", "3")
         LOSS("i"),
     "net.prototxt:4: layer 'loss' reads what the Filter layer 'f' passes"},
    {INPUTS SIMPLE("x", "ReLU", "nothing", "x", ""),
     "net.prototxt:2: layer 'x' reads the blob 'nothing', which no layer before"},
    {INPUTS SIMPLE("x", "ReLU", "data", "label", ""),
     "net.prototxt:2: layer 'x' makes the blob 'label', which another"},
    {INPUTS "layer { name: 'x' type: 'ReLU' top: 'x' }",
     "net.prototxt:2: layer 'x' has 0 bottoms; ReLU layers have 1"},
    {INPUTS SIMPLE("x", "Convolution", "data", "x", "\nconvolution_param { num_output: 4 }"),
     "net.prototxt:3: layer 'x' has no kernel"},
    {INPUTS SIMPLE("x", "Convolution", "data", "x", "convolution_param { kernel_size: 3\n num_output: 0 }"),
     "net.prototxt:3: layer 'x' has num_output 0; it must be at least 1"},
    {INPUTS SIMPLE("x", "Convolution", "data", "x",
                   "convolution_param { kernel_size: 3 num_output: 4\n group: 2 }"),
     "net.prototxt:3: layer 'x' has 2 groups"},
    {INPUTS SIMPLE("x", "Convolution", "data", "x", "convolution_param { kernel_size: 30 num_output: 4 }"),
     "net.prototxt:2: layer 'x' has a kernel of 30 along dim 2, which has "},
    {INPUTS SIMPLE("x", "ReLU", "data", "x", "\n\npooling_param { pool: MAX }"),
     "net.prototxt:4: field 'pooling_param' of LayerParameter has no effect here"},
    {INPUTS SIMPLE("x", "Pooling", "data", "x", "pooling_param {\n pool: STOCHASTIC kernel_size: 2\n pad: 1 }"),
     "net.prototxt:4: layer 'x' has padding and stochastic"},
    {INPUTS SIMPLE("x", "ReLU", "data", "x", "include { phase: TEST }\nexclude { phase: TRAIN }"),
     "net.prototxt:3: layer 'x' has include and exclude rules"},
    {INPUTS SIMPLE("x", "ReLU", "data", "x", "\nparam { lr_mult: 1 }"),
     "net.prototxt:3: layer 'x' has 1 param fields, but 0 parameters"},
    {INPUTS IP("x", "data", "4\n axis: 9"), "net.prototxt:3: layer 'x' has axis 9, but its bottom has 4 dims"},
    {INPUTS SIMPLE("x", "InnerProduct", "data", "x",
                   "inner_product_param { num_output: 4 weight_filler {\n type: 'good' } }"),
     "net.prototxt:3: there is no filler 'good'"},
    {INPUTS SIMPLE("x", "Dropout", "data", "x", "\ndropout_param { dropout_ratio: 1 }"),
     "net.prototxt:3: layer 'x' has dropout_ratio 1"},
    {INPUTS LOSS("data") SIMPLE("y", "TanH", "loss", "y", "loss_weight: 1"), NULL},
    {"layer { name: 'd' type: 'Data' top: 'd'\n data_param { source: '/no/such' batch_size: 2 backend: LMDB } "
     "}",
     "net.prototxt:2: layer 'd' cannot read its data: /no/such"},
    {"layer { name: 'd' type: 'Data' top: 'd'\n data_param { source: 'x' batch_size: 2 } }",
     "net.prototxt:2: layer 'd' cannot read its data: x:"},
    {"layer { name: 'd' type: 'DummyData' top: 'd' dummy_data_param {\n shape { dim: [2, 0] } } }",
     "layer 'd' makes 'd' with extent 0"},
    {"layer { name: 'd' type: 'Input' top: 'd' input_param {\n shape { dim: [2, 4000000000, 4000000000] } } }",
     "layer 'd' makes 'd' with extent 4000000000"},
    {"input: 'a' input_dim: [1, 2, 3]", "net.prototxt:1: there are 1 inputs, but neither"},
};

/* Structures of programs that were built with an older or a newer header. */
static void test_sizes(void **state)
{
    (void)state;
    enum { MORE = 24 };
    struct {
        dm_net_options known;
        char more[MORE];
    } newer = {.known = DM_NET_OPTIONS_INIT};
    struct {
        dm_layer_info known;
        char more[MORE];
    } info;
    dm_net_options older = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    write_file(
        "net.prototxt",
        "input: 'x' input_shape { dim: 2 dim: 3 } layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }");
    older.size = offsetof(dm_net_options, shuffle);
    older.shuffle = older.skip_damaged = 77; /* lies behind what such a program has */
    CHECK(dm_net_open(session, "net.prototxt", &older, &net));
    memset(&info, 7, sizeof info);
    info.known.size = sizeof info;
    CHECK(dm_net_layer(net, dm_net_layers(net) - 1, &info.known));
    assert_true(info.known.size == sizeof info && info.known.tops == 1 && info.more[0] == 0 &&
                info.more[MORE - 1] == 0);
    info.known.size = offsetof(dm_layer_info, waited);
    info.known.waited = -1;
    CHECK(dm_net_layer(net, 0, &info.known));
    assert_true(info.known.waited == -1 && info.known.size == offsetof(dm_layer_info, waited));
    info.known.size = 8;
    assert_int_equal(dm_net_layer(net, 0, &info.known), DM_ERR_ARG);
    CHECK(dm_net_close(net));
    newer.known.size = sizeof newer;
    CHECK(dm_net_open(session, "net.prototxt", &newer.known, &net));
    CHECK(dm_net_close(net));
    newer.more[3] = 1; /* an option that is not known here */
    assert_int_equal(dm_net_open(session, "net.prototxt", &newer.known, &net), DM_ERR_ARG);
    older.size = 8;
    assert_int_equal(dm_net_open(session, "net.prototxt", &older, &net), DM_ERR_ARG);
}

static void test_refusals(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        dm_net *net = NULL;
        dm_net_options options = DM_NET_OPTIONS_INIT;
        options.phase = DM_PHASE_TRAIN;
        write_file("net.prototxt", bad[i].text);
        dm_status status = dm_net_open(session, "net.prototxt", &options, &net);
        if (status == DM_OK || (bad[i].message && !strstr(dm_error_message(), bad[i].message))) {
            fail_msg("%s\n  says    %s\n  and not %s", bad[i].text,
                     status == DM_OK ? "nothing" : dm_error_message(),
                     bad[i].message ? bad[i].message : "something");
        }
    }
}

/* A net that is read, with some bytes changed: it is built, or the message has the file. */
static void test_mutations(void **state)
{
    (void)state;
    static const char pieces[] = "{}:'0123456789-. \n";
    static const char *const seed = INPUTS CONV("c", "data", "num_output: 6 kernel_size: 3 pad: 1")
        SIMPLE("p", "Pooling", "c", "p", "pooling_param { kernel_size: 2 }") SIMPLE("r", "ReLU", "p", "p", "")
            IP("ip", "p", "5") LOSS("ip");
    size_t length = strlen(seed);
    int built = 0;
    for (int i = 0; i < 150; i++) {
        char *text = strdup(seed);
        for (int edits = 1 + (int)(fabsf(uniform()) * 2); edits > 0; edits--) {
            size_t at = (size_t)(fabsf(uniform()) * (float)(length - 1));
            text[at] = pieces[(size_t)(fabsf(uniform()) * (float)(sizeof pieces - 2))];
        }
        dm_net *net = NULL;
        dm_net_options options = DM_NET_OPTIONS_INIT;
        options.phase = DM_PHASE_TRAIN;
        write_file("net.prototxt", text);
        if (dm_net_open(session, "net.prototxt", &options, &net) == DM_OK) {
            built++;
            CHECK(dm_net_close(net));
        } else if (strncmp(dm_error_message(), "net.prototxt:", 13) != 0) {
            fail_msg("%s\n  says %s", text, dm_error_message());
        }
        free(text);
    }
    assert_true(built > 0);
}

/* Trains a net for three steps and returns its loss then. more: fields of the solver. */
static double trained(const char *net, const char *more, dm_dtype type)
{
    char text[512];
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    dm_array loss;
    double value;
    write_file("net.prototxt", net);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.1 momentum: 0.9 weight_decay: 0.01 lr_policy: 'fixed' max_iter: 3 "
             "snapshot_after_train: false %s\n",
             more);
    write_file("solver.prototxt", text);
    options.type = type;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    CHECK(dm_solver_run(solver, NULL, NULL));
    CHECK(dm_net_blob(dm_solver_net(solver), "loss", &loss, NULL));
    CHECK(dm_item(session, loss, (int64_t[]){0}, &value));
    CHECK(dm_solver_close(solver));
    return value;
}

#define DATA                                                                                                   \
    "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: [8, 6] } shape { "  \
    "dim: 8 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
#define INNER(name, from, more)                                                                                \
    "layer { name: '" name "' type: 'InnerProduct' bottom: '" from "' top: '" name "' " more                   \
    " inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }\n"
#define LOSS_OF(from)                                                                                          \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" from "' bottom: 'y' top: 'loss' }\n"

/* Parameters of every kind beside one another: with no dims, one row, few long rows, other multipliers. As a
 * recorded program, and call by call (clip_gradients), where each has its own update. */
static void test_updates(void **state)
{
    static const char net[] =
        DATA "layer { name: 'p' type: 'PReLU' bottom: 'x' top: 'p' prelu_param { channel_shared: true } "
             "}\n" INNER("a", "p", "") "layer { name: 's' type: 'Scale' bottom: 'a' top: 's' scale_param { "
                                       "bias_term: true } }\n" INNER(
                                           "b", "s",
                                           "param { lr_mult: 2 decay_mult: 0 } param { lr_mult: 2 decay_mult: "
                                           "0 }") "layer { name: 'c' type: 'InnerProduct' bottom: 's' top: 'c' "
                                                  "inner_product_param { num_output: 1 "
                                                  "weight_filler { type: 'xavier' } } }\n"
                                                  "layer { name: 'cc' type: 'Tile' bottom: 'c' top: 'cc' "
                                                  "tile_param { axis: 1 tiles: 5 } }\n"
                                                  "layer { name: 'e' type: 'Eltwise' bottom: ['b', 'cc'] top: "
                                                  "'e' }\n" LOSS_OF("e");
    (void)state;
    double program = trained(net, "", DM_F32), calls = trained(net, "clip_gradients: 1e6", DM_F32);
    assert_true(program == calls && program < 1.6);
    assert_true(trained(net, "type: 'Adam' momentum2: 0.99", DM_F32) ==
                trained(net, "type: 'Adam' momentum2: 0.99 clip_gradients: 1e6", DM_F32));
}

static void test_embed(void **state)
{
    static const char net[] =
        DATA "layer { name: 'e' type: 'Embed' bottom: 'y' top: 'e' embed_param { input_dim: 5 num_output: 5 "
             "weight_filler { type: 'xavier' } } }\n" LOSS_OF("e");
    (void)state;
    double want = trained(net, "", DM_F32);
    assert_true(want < 1.6);
    assert_true(fabs(trained(net, "", DM_BF16) - want) < 0.02 && fabs(trained(net, "", DM_F16) - want) < 0.004);
}

/* Times of what dm_net_explain_at prints, at rates that are given: a product of 2 * 4 * 5 * 3 operations, on
 * each of which the layer reads and writes 4 * 5 + 4 * 3 numbers, and 18 parameters. */
static void test_rates(void **state)
{
    static const char text[] =
        "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [4, 5] } } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 3 } "
        "}\n";
    static const double wrong[][2] = {{-1, 1}, {1, 0}, {0, 1}, {1, -1}, {INFINITY, 1}, {1, NAN}};
    static const double rates[][2] = {{1e6, 1e12}, {1e12, 1e6}};
    dm_net *net = NULL;
    char *said = NULL;
    (void)state;
    CHECK(dm_net_open_text(session, text, "net", NULL, &net));
    for (int i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(dm_net_explain_at(net, wrong[i][0], wrong[i][1], &said), DM_ERR_ARG);
    }
    assert_int_equal(dm_net_explain_at(NULL, 1, 1, &said), DM_ERR_ARG);
    assert_int_equal(dm_net_explain_at(net, 1, 1, NULL), DM_ERR_ARG);
    for (int i = 0; i < COUNT(rates); i++) {
        double ms = -1, expected = 0.12;
        char back[8] = "";
        CHECK(dm_net_explain_at(net, rates[i][0], rates[i][1], &said));
        const char *row = strstr(said, "\nip ");
        assert_non_null(row);
        int found = sscanf(row, " ip InnerProduct batch %*f %*d %*f %*s %*s %*f %*f %*f %lf %7s", &ms, back);
        assert_int_equal(found, 2);
        if (i == 1) { /* each worker reads the parameters */
            expected = 4e-3 * (4 * 5 + 4 * 3 + 18 * dm_workers(session));
        }
        assert_true(fabs(ms - expected) < 1e-3 * expected);
        assert_string_equal(back, "-");
        free(said);
        CHECK(dm_net_explain(net, &said));
        assert_null(strstr(said, "forward ms"));
        free(said);
    }
    CHECK(dm_net_close(net));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_states),   cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_save_load), cmocka_unit_test(test_refusals), cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_updates),  cmocka_unit_test(test_embed),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
