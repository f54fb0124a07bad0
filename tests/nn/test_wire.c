/* Gradients that are bf16 between workers: which are, against sums by hand; layers of the program's own; what
 * is refused. Bits of trainings on any number of workers: test_dealt.c; bytes: test_sent.c. In process, and
 * with ranks. */
#include "net_case.h"

enum { SAMPLES = 9, IN = 7, OUT = 5, ROOM = 4096 };

static dm_net *open_with(const char *text, int slices, dm_dtype wire, const char *split, const char *own_loss)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.slices = slices;
    options.wire = wire;
    options.split = split;
    options.own_loss = own_loss;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    return net;
}

/* --- which gradients: of one slice, a weight's gradient is a number of bf16 */
#define RECURRENT(name, type, bottom, n)                                                                       \
    "layer { name: '" name "' type: '" type "' bottom: '" bottom "' bottom: 'cont' top: '" name                \
    "' recurrent_param { num_output: " n                                                                       \
    " weight_filler { type: 'uniform' min: -0.5 max: 0.5 } bias_filler { type: 'uniform' min: -0.5 max: 0.5 "  \
    "} } }\n"
static const char images[] = INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3")
    SIMPLE("s", "Scale", "c", "s", "scale_param { bias_term: true }")
        SIMPLE("u", "Deconvolution", "s", "u",
               "convolution_param { num_output: 3 kernel_size: 2 weight_filler { type: 'xavier' } }")
            CONV("e", "u", "num_output: 4 kernel_size: 1") SIMPLE("r", "ReLU", "e", "e", "") IP("a", "e", "6")
                SIMPLE("p", "PReLU", "a", "p", "") IP("b", "p", "4") LOSS("b");
static const char sequences[] =
    "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' input_param { shape { dim: [4, 3, "
    "5] } shape { dim: [4, 3] } shape { dim: 4 } } }\n" RECURRENT("l", "LSTM", "data", "3")
        RECURRENT("n", "RNN", "l", "4") IP("b", "n", "3") LOSS("b");

static bool all_short(dm_array a)
{
    static uint32_t bits[ROOM];
    bool all = true;
    const int64_t n = count_of(a);
    assert_in_range(n, 1, ROOM);
    CHECK(dm_read(session, a, (float *)(void *)bits));
    for (int64_t i = 0; i < n; i++) {
        all = all && (bits[i] & 0xffff) == 0;
    }
    return all;
}

static void check_layers(const char *text, dm_dtype wire, int weights)
{
    int seen = 0;
    dm_net *net = open_with(text, 1, wire, NULL, NULL);
    random_state = 7;
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 3);
    if (text == sequences) { /* none begins */
        float ones[12];
        for (int i = 0; i < COUNT(ones); i++) {
            ones[i] = 1;
        }
        CHECK(dm_net_write(net, "cont", ones));
    }
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    for (int i = 0; i < dm_net_layers(net); i++) {
        dm_layer_info l = {.size = sizeof l};
        CHECK(dm_net_layer(net, i, &l));
        for (int k = 0; k < l.params; k++) {
            dm_array data, diff;
            dm_array_info info = {.size = sizeof info};
            CHECK(dm_net_param(net, l.name, k, &data, &diff));
            CHECK(dm_array_query(session, diff, &info));
            if (all_short(diff) != (wire != 0 && info.ndim > 1)) {
                fail_msg("layer %s, parameter %d: its gradient is %s", l.name, k, wire ? "wrong" : "short");
            }
            seen += info.ndim > 1;
        }
    }
    assert_int_equal(seen, weights);
    CHECK(dm_net_close(net));
}

static void test_which(void **state)
{
    (void)state;
    check_layers(images, DM_BF16, 5);
    check_layers(images, (dm_dtype)0, 5);
    check_layers(sequences, DM_BF16, 6);
    check_layers(sequences, (dm_dtype)0, 6);
}

/* --- sums by hand, of whole numbers, which are exact in f32 */
static double eight_bits(double v) /* ties to even */
{
    int exponent;
    double part = frexp(v, &exponent);
    return ldexp(rint(ldexp(part, 8)), exponent - 8);
}

static void check_sums(const char *kind, int slices, const char *split)
{
    char text[1024];
    float x[SAMPLES * IN], g[SAMPLES * OUT], got[OUT * IN], bias[OUT];
    dm_array own, data, diff;
    snprintf(
        text, sizeof text,
        "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [%d, %d%s] } } }\n"
        "layer { name: 'q' type: '%s' bottom: 'data' top: 'q' %s { num_output: %d %s weight_filler { type: "
        "'xavier' } } }\n",
        SAMPLES, IN, strcmp(kind, "Convolution") == 0 ? ", 1, 1" : "", kind,
        strcmp(kind, "Convolution") == 0 ? "convolution_param" : "inner_product_param", OUT,
        strcmp(kind, "Convolution") == 0 ? "kernel_size: 1" : "");
    dm_net *net = open_with(text, slices, DM_BF16, split, "q");
    for (int i = 0; i < COUNT(x); i++) {
        x[i] = rintf(300 * uniform());
    }
    for (int i = 0; i < COUNT(g); i++) {
        g[i] = rintf(300 * uniform());
    }
    CHECK(dm_net_own_gradient(net, "q", &own));
    CHECK(dm_net_blob(net, "data", &data, NULL));
    CHECK(dm_write(session, data, x));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_write(session, own, g));
    CHECK(dm_net_backward(net));
    const bool whole = slices == 0 && split && strstr(split, "features"); /* a worker has all samples */
    const int cuts = whole ? 1 : slices > 0 ? slices : worker_count, size = (SAMPLES + cuts - 1) / cuts;
    CHECK(dm_net_param(net, "q", 0, NULL, &diff));
    CHECK(dm_read(session, diff, got));
    CHECK(dm_net_param(net, "q", 1, NULL, &diff));
    CHECK(dm_read(session, diff, bias));
    for (int o = 0; o < OUT; o++) {
        double all = 0;
        for (int n = 0; n < SAMPLES; n++) {
            all += (double)g[n * OUT + o];
        }
        assert_true((double)bias[o] == all);
        for (int k = 0; k < IN; k++) {
            double sum = 0, slice = 0;
            for (int n = 0; n < SAMPLES; n++) {
                slice += (double)g[n * OUT + o] * (double)x[n * IN + k];
                if ((n + 1) % size == 0 || n + 1 == SAMPLES) {
                    sum += eight_bits(slice);
                    slice = 0;
                }
            }
            if ((double)got[o * IN + k] != sum) {
                fail_msg("%s, %d slices, %s, %d workers: element %d, %d of the gradient is %.9g, not %.9g",
                         kind, slices, split ? split : "not split", worker_count, o, k, (double)got[o * IN + k],
                         sum);
            }
        }
    }
    CHECK(dm_net_close(net));
}

static void test_sums(void **state)
{
    static const char *const splits[] = {NULL, "q=batch", "q=features"};
    (void)state;
    for (int slices = 0; slices < 5; slices += 2) {
        for (int i = 0; i < COUNT(splits); i++) {
            check_sums("InnerProduct", slices, splits[i]);
        }
        check_sums("Convolution", slices, NULL);
    }
}

/* --- layers of the program's own */
static dm_status shape_of(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x};
    CHECK(dm_layer_bottom(l, 0, &x));
    *(dm_dtype *)context = dm_layer_wire(l);
    return dm_layer_set_top(l, 0, x.ndim, x.shape);
}

static dm_status copies(dm_layer *l, void *context)
{
    dm_layer_blob x = {.size = sizeof x}, y = {.size = sizeof y};
    (void)context;
    CHECK(dm_layer_bottom(l, 0, &x));
    CHECK(dm_layer_top(l, 0, &y));
    return dm_copy(dm_layer_session(l), x.data, y.data);
}

static void test_user(void **state)
{
    dm_dtype seen = DM_F64;
    dm_layer_type type = DM_LAYER_TYPE_INIT;
    (void)state;
    type.name = "Same";
    type.setup = shape_of;
    type.forward = copies;
    type.context = &seen;
    type.gradients = 0;
    for (int i = 0; i < 2; i++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        options.layer_types = &type;
        options.layer_type_count = 1;
        options.wire = i ? DM_BF16 : (dm_dtype)0;
        CHECK(dm_net_open_text(session, INPUTS SIMPLE("s", "Same", "data", "s", ""), NULL, &options, &net));
        assert_int_equal(seen, options.wire);
        CHECK(dm_net_close(net));
    }
    assert_int_equal(dm_layer_wire(NULL), 0);
}

/* --- refusals */
static void refused(const char *text, dm_dtype type, dm_dtype wire, dm_status want, const char *word)
{
    for (int i = 0; i < 2; i++) {
        dm_status status;
        if (i) {
            dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
            dm_solver *solver = NULL;
            write_file("net.prototxt", text);
            write_file("solver.prototxt", "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 "
                                          "snapshot_after_train: false");
            options.type = type;
            options.wire = wire;
            status = dm_solver_open(session, "solver.prototxt", &options, &solver);
            if (status == DM_OK) {
                CHECK(dm_solver_close(solver));
            }
        } else {
            dm_net_options options = DM_NET_OPTIONS_INIT;
            dm_net *net = NULL;
            options.phase = DM_PHASE_TRAIN;
            options.type = type;
            options.wire = wire;
            status = dm_net_open_text(session, text, NULL, &options, &net);
            if (status == DM_OK) {
                CHECK(dm_net_close(net));
            }
        }
        assert_int_equal(status, want);
        if (want != DM_OK && !strstr(dm_error_message(), word)) {
            fail_msg("'%s' does not say '%s'", dm_error_message(), word);
        }
    }
}

#define EMBED(rate)                                                                                            \
    INPUTS "layer { name: 'e' type: 'Embed' bottom: 'label' top: 'e' param { lr_mult: " rate                   \
           " } embed_param { input_dim: 3 num_output: 4 bias_term: false } }\n" IP("a", "e", "3") LOSS("a")

static void test_refused(void **state)
{
    static const char plain[] = INPUTS IP("a", "data", "4") LOSS("a");
    static const char parameter[] = INPUTS
        "layer { name: 'x' type: 'Parameter' top: 'x' parameter_param { shape { dim: [6, 4] } } }\n" LOSS("x");
    (void)state;
    refused(plain, DM_F32, DM_BF16, DM_OK, "");
    refused(plain, DM_BF16, DM_BF16, DM_OK, "");
    refused(plain, DM_F16, DM_BF16, DM_ERR_ARG, "open");
    refused(plain, DM_F16, DM_BF16, DM_ERR_ARG, "wire is DM_BF16, which nets of the type DM_F16 do not take");
    refused(plain, DM_F32, DM_F16, DM_ERR_ARG, "not 0 or DM_BF16");
    refused(EMBED("1"), DM_F32, DM_BF16, DM_ERR_UNSUPPORTED, "'e' is of the type Embed");
    refused(EMBED("0"), DM_F32, DM_BF16, DM_OK, "");
    refused(EMBED("1"), DM_F32, (dm_dtype)0, DM_OK, "");
    refused(parameter, DM_F32, DM_BF16, DM_ERR_UNSUPPORTED, "'x' is of the type Parameter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_user), cmocka_unit_test(test_refused)};
    return run_on_workers_or_ranks(tests);
}
