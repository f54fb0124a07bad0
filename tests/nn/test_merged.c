/* Layers that do the work of a ReLU beside them, and nets in 16 bits: the same losses and gradients as others.
 */
#include "net_case.h"

#define DATA                                                                                                   \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {\n"                        \
    "  shape { dim: 6 dim: 3 dim: 13 dim: 13 } shape { dim: 6 }\n"                                             \
    "  data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 2 } } }\n"
#define CONVOLUTION(name, from, more)                                                                          \
    "layer { name: '" name "' type: 'Convolution' bottom: '" from "' top: '" name                              \
    "' convolution_param { " more                                                                              \
    " weight_filler { type: 'gaussian' std: 0.2 } bias_filler { type: 'uniform' min: -0.3 max: 0.3 } } }\n"
#define LAYER(name, type, from, to, more)                                                                      \
    "layer { name: '" name "' type: '" type "' bottom: '" from "' top: '" to "' " more " }\n"
#define REST(first, second)                                                                                    \
    LAYER("n", "LRN", first, "n", "lrn_param { local_size: 3 alpha: 0.3 }")                                    \
    CONVOLUTION("c2", "n", "num_output: 8 kernel_size: 3 pad: 1 group: 2")                                     \
    LAYER("r2", "ReLU", "c2", second, "")                                                                      \
    LAYER("p", "Pooling", second, "p", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")                 \
    LAYER("i", "InnerProduct", "p", "i",                                                                       \
          "inner_product_param { num_output: 5 weight_filler { type: 'gaussian' std: 0.1 } }")                 \
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'label' top: 'l' }\n"
/* The first ReLUs are in place, which is when layers beside them take over their work. */
static const char in_place[] = DATA CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 5 stride: 2")
    LAYER("r1", "ReLU", "c1", "c1", "") REST("c1", "c2");
static const char apart[] = DATA CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 5 stride: 2")
    LAYER("r1", "ReLU", "c1", "a1", "") REST("a1", "a2");

/* ReLUs that make the gradient of a bias, and read theirs out of that of what is joined behind them. */
#define JOINED(a, b, c)                                                                                        \
    DATA CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 5 stride: 2") LAYER("r1", "ReLU", "c1", a, "")  \
        CONVOLUTION("c2", "data", "num_output: 5 kernel_size: 3 pad: 1 stride: 3")                             \
            LAYER("r2", "ReLU", "c2", b, "") LAYER("j", "Concat", a, "j", "bottom: '" b "'")                   \
                CONVOLUTION("i", "j", "num_output: 6 kernel_size: 3") LAYER("r3", "ReLU", "i", c, "") LAYER(   \
                    "p", "Pooling", c, "p",                                                                    \
                    "pooling_param { pool: AVE kernel_size: 3 }") "layer { name: 'l' type: 'SoftmaxWithLoss' " \
                                                                  "bottom: 'p' bottom: 'label' top: 'l' }\n"
static const char joined_in_place[] = JOINED("c1", "c2", "i");
static const char joined_apart[] = JOINED("a1", "a2", "a3");

/* Six layers read one blob, which gets the sum of their gradients; or a Split layer makes it. */
#define BRANCH(name, from, more) CONVOLUTION(name, from, "kernel_size: 1 num_output: " more)
#define BRANCHES(split, a, b, c, d, e, f)                                                                      \
    DATA CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 5 stride: 2") split BRANCH("c2", a, "4")        \
        BRANCH("b2", b, "3") BRANCH("b3", c, "2") BRANCH("b4", d, "5")                                         \
            BRANCH("b5", e, "4")                                                                               \
                BRANCH("b6", f, "3")                                                                           \
                    LAYER("j", "Concat", "c2", "j", "bottom: ['b2', 'b3', 'b4', 'b5', 'b6']")                  \
                        LAYER("i", "InnerProduct", "j", "i",                                                   \
                              "inner_product_param { num_output: 5 weight_filler { type: 'gaussian' std: 0.1 " \
                              "} }") "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'i' bottom: 'label' "  \
                                     "top: 'l' }\n"
static const char six_readers[] = BRANCHES("", "c1", "c1", "c1", "c1", "c1", "c1");
static const char split_in_six[] = BRANCHES(
    LAYER("s", "Split", "c1", "s1", "top: ['s2', 's3', 's4', 's5', 's6']"), "s1", "s2", "s3", "s4", "s5", "s6");

enum { MOST = 4096, PARAMS = 6 };
typedef struct result {
    double loss;
    int64_t count[PARAMS];
    float gradient[PARAMS][MOST];
} result;

static void run(const char *text, dm_dtype type, result *out)
{
    static const char *const layers[] = {"c1", "c2", "i"};
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.type = type;
    write_file("net.prototxt", text);
    CHECK(dm_net_open(session, "net.prototxt", &options, &net));
    CHECK(dm_net_forward(net, &out->loss));
    CHECK(dm_net_backward(net));
    for (int i = 0; i < PARAMS; i++) {
        dm_array diff = DM_NO_ARRAY;
        CHECK(dm_net_param(net, layers[i / 2], i % 2, NULL, &diff));
        out->count[i] = count_of(diff);
        assert_true(out->count[i] <= MOST);
        CHECK(dm_read(session, diff, out->gradient[i]));
    }
    CHECK(dm_net_close(net));
}

static void test_same_bits(void **state)
{
    static result a, b;
    (void)state;
    run(in_place, DM_F32, &a);
    run(apart, DM_F32, &b);
    assert_true(a.loss == b.loss);
    for (int i = 0; i < PARAMS; i++) {
        assert_int_equal(a.count[i], b.count[i]);
        assert_memory_equal(a.gradient[i], b.gradient[i], (size_t)a.count[i] * sizeof(float));
    }
}

/* The same but for the order of sums: biases' in all layers, or all gradients of the first `firsts` layers. */
static void same_but_sums(const char *one, const char *other, int firsts)
{
    static result a, b;
    run(one, DM_F32, &a);
    run(other, DM_F32, &b);
    assert_true(a.loss == b.loss);
    for (int i = 0; i < PARAMS; i++) {
        double size = 0;
        assert_true(a.count[i] > 0 && a.count[i] == b.count[i]);
        for (int64_t k = 0; k < a.count[i]; k++) {
            double off = fabs((double)a.gradient[i][k] - (double)b.gradient[i][k]);
            size = fmax(size, fabs((double)a.gradient[i][k]));
            if (off > (i % 2 || i < 2 * firsts ? 1e-6 : 0)) {
                fail_msg("parameter %d, element %d: %g and %g", i, (int)k, (double)a.gradient[i][k],
                         (double)b.gradient[i][k]);
            }
        }
        assert_true(size > 1e-4);
    }
}

/* Biases are summed in f64 over all samples, or in f32 over slices. */
static void test_joined(void **state)
{
    (void)state;
    same_but_sums(joined_in_place, joined_apart, 0);
}

static void test_readers(void **state)
{
    (void)state;
    same_but_sums(six_readers, split_in_six, 1);
}

/* Differences of gradients, as a part of their length. bf16 has 8 bits, f16 11. */
static void test_short_types(void **state)
{
    static const struct {
        dm_dtype type;
        double most;
    } types[] = {{DM_BF16, 0.06}, {DM_F16, 0.01}};
    static result want, got;
    (void)state;
    run(apart, DM_F32, &want);
    for (int t = 0; t < COUNT(types); t++) {
        run(in_place, types[t].type, &got);
        assert_true(fabs(got.loss - want.loss) <= types[t].most / 4 * fabs(want.loss));
        for (int i = 0; i < PARAMS; i++) {
            double error = 0, size = 0;
            for (int64_t k = 0; k < want.count[i]; k++) {
                error += pow(got.gradient[i][k] - want.gradient[i][k], 2);
                size += pow(want.gradient[i][k], 2);
            }
            if (!(sqrt(error) <= types[t].most * sqrt(size)) || size == 0) {
                fail_msg("parameter %d, type %d: %g of %g", i, t, sqrt(error), sqrt(size));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_readers), cmocka_unit_test(test_short_types)};
    return cmocka_run_group_tests(tests, begin, end);
}
