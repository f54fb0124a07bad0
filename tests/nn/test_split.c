/* Inner products split by features: the same bits as by batch, on any number of workers; sums against the layer
 * in one piece. */
#include "net_case.h"

#define NET(outputs)                                                                                           \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {\n"                        \
    "  shape { dim: 7 dim: 2 dim: 6 dim: 5 } shape { dim: 7 }\n"                                               \
    "  data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 1 } } }\n"                \
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { num_output: 3 "         \
    "  kernel_size: 3 weight_filler { type: 'gaussian' std: 0.2 } } }\n"                                       \
    "layer { name: 'a' type: 'InnerProduct' bottom: 'c' top: 'a' inner_product_param { num_output: " outputs   \
    "  weight_filler { type: 'positive_unitball' } bias_filler { type: 'uniform' min: -1 max: 1 } } }\n"       \
    "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' relu_param { negative_slope: 0.5 } }\n"               \
    "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param { num_output: 5 "         \
    "  weight_filler { type: 'gaussian' std: 0.5 } bias_term: false } }\n"                                     \
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'l' }\n"

enum { PARAMS = 5, MOST = 4096 };
static const struct {
    const char *layer;
    int number;
} params[PARAMS] = {{"c", 0}, {"c", 1}, {"a", 0}, {"a", 1}, {"b", 0}};

typedef struct result {
    double loss;
    int64_t count[PARAMS];
    float gradient[PARAMS][MOST];
} result;

static void open_session(int workers)
{
    dm_config config = DM_CONFIG_INIT;
    config.workers = workers;
    CHECK(dm_init(&config, &session));
}

static void close_session(void)
{
    int64_t alive = -1;
    CHECK(dm_finalize(session, &alive));
    assert_int_equal(alive, 0);
}

static void run(const char *text, const char *split, int slices, dm_dtype type, result *out)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.split = split;
    options.slices = slices;
    options.type = type;
    memset(out, 0, sizeof *out);
    write_file("net.prototxt", text);
    CHECK(dm_net_open(session, "net.prototxt", &options, &net));
    CHECK(dm_net_forward(net, &out->loss));
    CHECK(dm_net_backward(net));
    for (int i = 0; i < PARAMS; i++) {
        dm_array diff = DM_NO_ARRAY;
        CHECK(dm_net_param(net, params[i].layer, params[i].number, NULL, &diff));
        out->count[i] = count_of(diff);
        assert_true(out->count[i] <= MOST);
        CHECK(dm_read(session, diff, out->gradient[i]));
    }
    CHECK(dm_net_close(net));
}

static void check_near(const result *a, const result *b, double tolerance)
{
    assert_true(fabs(a->loss - b->loss) <= tolerance * fabs(b->loss));
    for (int i = 0; i < PARAMS; i++) {
        double apart = 0, length = 0;
        for (int64_t k = 0; k < a->count[i]; k++) {
            double x = (double)a->gradient[i][k], y = (double)b->gradient[i][k];
            apart += (x - y) * (x - y);
            length += y * y;
        }
        if (!(length > 0 && sqrt(apart) <= tolerance * sqrt(length))) {
            fail_msg("gradient %d of '%s' is %g away, of %g", params[i].number, params[i].layer, sqrt(apart),
                     sqrt(length));
        }
    }
}

static const char *const texts[] = {NET("1"), NET("3"), NET("10"), NET("37")};
static const char *const splits[] = {"a=batch,b=batch", "a=features,b=features", "a=features,b=batch",
                                     "b=features,a=batch"};
enum { TEXTS = 4, WAYS = 3 };
static const struct {
    int slices;
    dm_dtype type;
} ways[WAYS] = {{4, DM_F32}, {11, DM_F32}, {4, DM_BF16}};

static void test_same_bits(void **state)
{
    static result first[TEXTS][WAYS], whole, one;
    static const int workers[] = {1, 2, 3, 5, 8};
    (void)state;
    for (int w = 0; w < COUNT(workers); w++) {
        open_session(workers[w]);
        for (int t = 0; t < TEXTS; t++) {
            for (int k = 0; k < WAYS; k++) {
                for (int i = 0; i < COUNT(splits); i++) {
                    result *to = w == 0 && i == 0 ? &first[t][k] : &one;
                    run(texts[t], splits[i], ways[k].slices, ways[k].type, to);
                    if (memcmp(to, &first[t][k], sizeof one) != 0) {
                        fail_msg("%d workers, %s, net %d, way %d: other bits", workers[w], splits[i], t, k);
                    }
                }
            }
            if (workers[w] == 3) {
                run(texts[t], NULL, 4, DM_F32, &whole);
                check_near(&first[t][0], &whole, 1e-6);
                check_near(&first[t][2], &whole, 4e-2);
                run(texts[t], splits[1], 0, DM_F32, &one);
                check_near(&one, &whole, 1e-6);
            }
        }
        close_session();
    }
}

/* Layers that share weights are split together; sums over a pass and the next are kept. */
static void test_shared(void **state)
{
    static const char text[] =
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' top: 'label' dummy_data_param { shape { dim: "
        "[6, 9] } "
        "  shape { dim: [6, 9] } shape { dim: 6 } data_filler { type: 'gaussian' std: 1 } "
        "  data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
        "layer { name: 'c' type: 'InnerProduct' bottom: 'x' top: 'c' inner_product_param { num_output: 4 "
        "  weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' } param { name: 'v' } "
        "  inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { name: 'w' } param { name: 'v' } "
        "  inner_product_param { num_output: 9 } }\n"
        "layer { name: 's' type: 'Concat' bottom: ['b', 'c'] top: 's' }\n"
        "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 's' bottom: 'label' top: 'l' }\n"
        "layer { name: 'z' type: 'Silence' bottom: 'y' }\n";
    static result a, b;
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    (void)state;
    open_session(3);
    run(text, "a=batch", 4, DM_F32, &a);
    run(text, "a=features", 4, DM_F32, &b);
    assert_memory_equal(&a, &b, sizeof a);
    static const char *const bad[] = {
        "b=features", "s=features", "a", "a=", "=batch", "a=batch,a=batch", "a=x", "a=batch,,"};
    for (int i = 0; i < COUNT(bad); i++) {
        options.split = bad[i];
        if (dm_net_open(session, "net.prototxt", &options, &net) != DM_ERR_ARG) {
            fail_msg("'%s' is accepted", bad[i]);
        }
        assert_non_null(strstr(dm_error_message(), "split: "));
    }
    close_session();
}

/* What the estimate says is sent is about what the plans send. */
static void test_explain(void **state)
{
    static const char text[] =
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: [64, 300] } "
        "  shape { dim: 64 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
        "layer { name: 'first' type: 'InnerProduct' bottom: 'x' top: 'first' inner_product_param { num_output: "
        "160 "
        "  weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'second' type: 'InnerProduct' bottom: 'first' top: 'b' inner_product_param { "
        "num_output: 300 "
        "  weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'l' }\n";
    static const int workers[] = {1, 2, 3, 4, 6};
    static const char *const forms[] = {"batch", "features"};
    (void)state;
    write_file("net.prototxt", text);
    for (int w = 0; w < 2 * COUNT(workers); w++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        char split[64], wanted[64], *said = NULL;
        double forward = -1, backward = -1, estimate = -1;
        open_session(workers[w / 2]);
        snprintf(split, sizeof split, "second=%s", forms[w % 2]);
        options.split = split;
        options.phase = DM_PHASE_TRAIN;
        CHECK(dm_net_open(session, "net.prototxt", &options, &net));
        CHECK(dm_net_explain(net, &said));
        const char *row = strstr(said, "\nsecond "), *line = strstr(said, "\nsecond: ");
        assert_non_null(row);
        assert_non_null(line);
        snprintf(wanted, sizeof wanted, "\nsecond InnerProduct %s %%*f %%*d %%lf %%*d %%lf", forms[w % 2]);
        assert_int_equal(sscanf(row, wanted, &forward, &backward), 2);
        snprintf(wanted, sizeof wanted, "split by %s, as asked", forms[w % 2]);
        assert_non_null(strstr(line, wanted));
        assert_int_equal(sscanf(strstr(line, "about "), "about %lf KiB", &estimate), 1);
        if (fabs(forward + backward - estimate) > 0.15 * estimate + 1) {
            fail_msg("%d workers, %s: %g KiB by the plans, %g by the estimate", workers[w / 2], split,
                     forward + backward, estimate);
        }
        free(said);
        CHECK(dm_net_close(net));
        close_session();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_explain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
