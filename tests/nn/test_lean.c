/* Lean solvers: what lies between layers, and what layers prepare, has no arrays of its own. The same bits as
 * without, and as much memory as dm_net_explain says before anything runs. */
#include "net_case.h"

#include "net/net.h"

#define JOIN(type, name, bottoms, rest)                                                                        \
    "layer { name: '" name "' type: '" type "' bottom: " bottoms " top: '" name "' " rest " }\n"
#define DATA(shape)                                                                                            \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { " shape           \
    " } shape { dim: 8 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n"

/* Layers that prepare views of their blobs, or arrays of their own; blobs that several layers read. */
static const char images[] = DATA("dim: [8, 3, 32, 31]") CONV("c1", "data", "num_output: 6 kernel_size: 3")
    SIMPLE("bn", "BatchNorm", "c1", "bn", "") SIMPLE(
        "sc", "Scale", "bn", "sc", "scale_param { bias_term: true }") SIMPLE("pr", "PReLU", "sc", "pr", "")
        SIMPLE("mv", "MVN", "pr", "mv", "") CONV("c2", "mv", "num_output: 6 kernel_size: 1")
            CONV("c3", "mv", "num_output: 6 kernel_size: 3 pad: 1")
                CONV("c4", "mv", "num_output: 6 kernel_size: 1 group: 2")
                    JOIN("Eltwise", "el", "['c2', 'c3', 'c4', 'mv']", "")
                        SIMPLE("sp", "SPP", "el", "sp", "spp_param { pyramid_height: 2 }")
                            SIMPLE("fl", "Flatten", "el", "fl", "") SIMPLE("bi", "Bias", "fl", "bi", "")
                                IP("a", "bi", "24") SIMPLE("re", "ReLU", "a", "a", "")
                                    SIMPLE("dr", "Dropout", "a", "a", "") IP("b", "a", "5") IP("e", "sp", "5")
                                        JOIN("SoftmaxWithLoss", "loss", "['b', 'label']", "")
                                            JOIN("HingeLoss", "hinge", "['e', 'label']", "loss_weight: 0.3")
                                                JOIN("Accuracy", "right", "['b', 'label']", "");
/* LRN before pooling by the largest: behind a ReLU, whose gradient it masks; behind a convolution; and one that
 * something else reads too. */
static const char pooled[] = DATA("dim: [8, 3, 17, 16]") CONV("c1", "data", "num_output: 8 kernel_size: 3")
    SIMPLE("re", "ReLU", "c1", "c1", "")
        SIMPLE("n1", "LRN", "c1", "n1", "lrn_param { local_size: 5 alpha: 0.5 }")
            SIMPLE("p1", "Pooling", "n1", "p1",
                   "pooling_param { kernel_size: 3 "
                   "stride: 2 }") CONV("c2", "p1", "num_output: 7 kernel_size: 3 pad: 1")
                SIMPLE("n2", "LRN", "c2", "n2", "lrn_param { local_size: 3 alpha: 2 }")
                    SIMPLE("p2", "Pooling", "n2", "p2", "pooling_param { kernel_size: 3 stride: 1 pad: 1 }")
                        SIMPLE("n3", "LRN", "p2", "n3", "lrn_param { local_size: 3 }")
                            SIMPLE("p3", "Pooling", "n3", "p3", "pooling_param { kernel_size: 2 stride: 2 }")
                                IP("a", "p3", "5") IP("b", "n3", "5") JOIN("Eltwise", "el", "['a', 'b']", "")
                                    JOIN("SoftmaxWithLoss", "loss", "['el', 'label']", "");
static const char rows[] = DATA("dim: [8, 6, 10]")
    SIMPLE("t", "InnerProduct", "data", "t",
           "inner_product_param { num_output: 9 axis: 2 transpose: true weight_filler { type: 'xavier' } }")
        SIMPLE("s", "Softmax", "t", "s", "softmax_param { axis: 2 }") SIMPLE(
            "r", "Reshape", "s", "r", "reshape_param { shape { dim: [0, 54] } }") IP("a", "r", "40")
            SIMPLE("q", "Reduction", "a", "q", "reduction_param { axis: 1 operation: SUMSQ } loss_weight: 0.1")
                IP("b", "a", "5") SIMPLE("p", "Softmax", "b", "p", "")
                    JOIN("MultinomialLogisticLoss", "loss", "['p', 'label']", "");
static const char recurrent[] =
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'goes' top: 'label' dummy_data_param {\n"
    "  shape { dim: [4, 8, 5] } shape { dim: [4, 8] } shape { dim: 4 } data_filler { type: 'gaussian' std: 1 "
    "}\n"
    "  data_filler { value: 1 } data_filler { value: 2 } } }\n" JOIN(
        "LSTM", "l", "['data', 'goes']", "recurrent_param { num_output: 7 weight_filler { type: 'xavier' } }")
        SIMPLE("f", "Flatten", "l", "f", "") IP("b", "f", "5")
            JOIN("SoftmaxWithLoss", "loss", "['b', 'label']", "");

/* Samples go to other workers, and back. */
static const char sequences[] = DATA("dim: [8, 3, 6, 5]") CONV("c", "data", "num_output: 4 kernel_size: 3")
    SIMPLE("s", "Reshape", "c", "s", "reshape_param { shape { dim: [4, 2, -1] } }")
        SIMPLE("t", "InnerProduct", "s", "t",
               "inner_product_param { num_output: 6 axis: 2 weight_filler { type: 'xavier' } }")
            SIMPLE("f", "Flatten", "t", "f", "flatten_param { axis: 0 end_axis: 1 }") IP("b", "f", "5")
                JOIN("SoftmaxWithLoss", "loss", "['b', 'label']", "");

#define WEIGHTS "convolution_param { weight_filler { type: 'xavier' } "
static const char volumes[] =
    DATA("dim: [8, 2, 9, 8, 7]") CONV("c1", "data", "num_output: 6 kernel_size: 3 pad: 1 stride: [2, 1, 1]")
        SIMPLE("r1", "ReLU", "c1", "c1", "") CONV("c2", "c1", "num_output: 4 kernel_size: [2, 3, 3] group: 2")
            SIMPLE("t2", "TanH", "c2", "t2", "") IP("a", "t2", "5")
                JOIN("SoftmaxWithLoss", "loss", "['a', 'label']", "");
static const char widened[] = DATA("dim: [8, 2, 5, 4, 3]")
    SIMPLE("u1", "Deconvolution", "data", "u1", WEIGHTS "num_output: 3 kernel_size: 2 stride: [2, 1, 1] }")
        SIMPLE("i", "Im2col", "u1", "i", "convolution_param { kernel_size: 2 pad: 1 axis: 2 stride: 2 }")
            SIMPLE("u2", "Deconvolution", "i", "u2", WEIGHTS "num_output: 2 kernel_size: 3 axis: 2 }")
                IP("a", "u2", "5") JOIN("SoftmaxWithLoss", "loss", "['a', 'label']", "");

enum { STEPS = 4, MOST = 1 << 18 };
static const struct {
    const char *net, *split;
    dm_dtype type;
    int slices;
} nets[] = {{images, NULL, DM_F32, 4},    {images, "a=features,c1=batch,c3=both", DM_F32, 4},
            {images, NULL, DM_BF16, 0},   {pooled, NULL, DM_F32, 4},
            {pooled, NULL, DM_BF16, 4},   {pooled, NULL, DM_F16, 0},
            {rows, NULL, DM_F32, 4},      {rows, "a=batch", DM_F16, 3},
            {recurrent, NULL, DM_F32, 4}, {volumes, NULL, DM_F32, 4},
            {sequences, NULL, DM_F32, 4}, {sequences, NULL, DM_BF16, 3},
            {volumes, NULL, DM_BF16, 4},  {widened, NULL, DM_F32, 4},
            {widened, NULL, DM_BF16, 3}};

/* Losses as they are told, that behind the last step too. */
typedef struct losses {
    double at[STEPS];
    int count;
} losses;
static void take_loss(void *context, const dm_train_event *event)
{
    losses *to = context;
    if (event->kind == DM_TRAIN_DISPLAY) {
        assert_true(to->count < STEPS);
        to->at[to->count++] = event->loss;
    }
}

static dm_solver *open_solver(int i, bool lean, losses *told)
{
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *s = NULL;
    write_file("net.prototxt", nets[i].net);
    write_file("solver.prototxt",
               "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 max_iter: 4 display: 2 "
               "snapshot_after_train: false\n");
    options.split = nets[i].split;
    options.type = nets[i].type;
    options.slices = nets[i].slices;
    options.lean = lean;
    options.event = take_loss;
    options.event_context = told;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
    return s;
}

/* All parameters behind the last step; returns how many. */
static int64_t train(int i, bool lean, losses *told, float *params)
{
    int64_t count = 0;
    dm_solver *s = open_solver(i, lean, told);
    if (i == 0) { /* passes call by call before the step is recorded */
        CHECK(dm_net_forward(dm_solver_net(s), NULL));
        CHECK(dm_net_backward(dm_solver_net(s)));
    }
    CHECK(dm_solver_run(s, NULL, NULL));
    nn_net *net = dm_solver_net(s);
    for (int k = 0; k < net->param_count; k++) {
        assert_true(count + net->params[k]->count <= MOST);
        CHECK(nn_param_read(net, net->params[k], net->params[k]->data, params + count));
        count += net->params[k]->count;
    }
    double ms[2][40];
    assert_true(net->layer_count <= 40);
    CHECK(dm_net_measure(net, 1, ms[0], ms[1])); /* passes call by call, whose arrays end too */
    int together = 0;
    for (int k = 0; k < net->layer_count; k++) {
        together += net->layers[k].pooled != NULL;
    }
    assert_int_equal(together, lean && nets[i].net == pooled ? 4 : 0);
    for (int k = 0; k < net->blob_count; k++) { /* but for what the net gives, and what it is given */
        const nn_blob *b = net->blobs[k];
        bool source = b->producer->type->traits & NN_SOURCE,
             held = strcmp(b->producer->type->name, "LSTM") == 0;
        if (!lean || b->whole || !b->reads || source || held) {
            continue;
        }
        assert_true(b->lent || strcmp(nets[i].net, recurrent) == 0);
        assert_true(!b->lent || b->data.id == 0);
    }
    CHECK(dm_solver_close(s));
    return count;
}

static void test_same_bits(void **state)
{
    static float want[MOST], got[MOST];
    (void)state;
    for (int i = 0; i < COUNT(nets); i++) {
        losses told[2] = {{.count = 0}, {.count = 0}};
        int64_t n = train(i, false, &told[0], want), m = train(i, true, &told[1], got);
        assert_int_equal(n, m);
        assert_true(n > 100 && told[0].count == 3 && isfinite(told[0].at[2]));
        assert_memory_equal(told[0].at, told[1].at, 3 * sizeof(double));
        assert_memory_equal(want, got, (size_t)n * sizeof *want);
    }
}

/* Steps call by call leave what they lent to the end of the net, which ends each array once. */
static void no_array_gone(void *context, const char *line)
{
    int *lines = context;
    ++*lines;
    if (strstr(line, "was gone")) {
        fail_msg("%s", line);
    }
}

static void test_call_by_call(void **state)
{
    static const char embed[] =
        "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' top: 'chosen' dummy_data_param { shape { "
        "dim: 8 } shape { dim: 8 } shape { dim: 8 } data_filler { value: 3 } data_filler { value: 1 } "
        "data_filler { value: 2 } } }\n" SIMPLE(
            "e", "Embed", "data", "e",
            "embed_param { input_dim: 5 num_output: 6 weight_filler { type: "
            "'xavier' } }") IP("a", "e", "5") JOIN("BatchReindex", "r", "['a', 'chosen']", "")
            SIMPLE("t", "TanH", "r", "t", "") JOIN("SoftmaxWithLoss", "loss", "['t', 'label']", "");
    static const char *const settings[] = {"iter_size: 2", "clip_gradients: 1", "debug_info: true", ""},
                             *const of[] = {embed, rows, images};
    (void)state;
    for (int i = 0; i < COUNT(of) * COUNT(settings); i++) {
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        dm_solver *s = NULL;
        char text[256];
        int lines = 0;
        snprintf(text, sizeof text,
                 "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 display: 1 "
                 "snapshot_after_train: false %s\n",
                 settings[i % COUNT(settings)]);
        write_file("net.prototxt", of[i / COUNT(settings)]);
        write_file("solver.prototxt", text);
        options.lean = true;
        options.log = no_array_gone;
        options.log_context = &lines;
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &s));
        CHECK(dm_solver_run(s, NULL, NULL));
        CHECK(dm_solver_close(s));
        assert_true(lines > 2);
    }
}

/* What the workers hold at most, in a session of its own; *said: what is printed before. */
static int64_t peak_of(int i, bool lean, double *said)
{
    char *text = NULL;
    int64_t peak = 0;
    for (int run = 0; run < 2; run++) {
        losses told = {.count = 0};
        dm_config config = DM_CONFIG_INIT;
        config.workers = worker_count;
        config.options = "pool_debug=off";
        CHECK(dm_init(&config, &session));
        dm_solver *s = open_solver(i, lean, &told);
        if (run == 0) {
            CHECK(dm_net_explain(dm_solver_net(s), &text));
            const char *line = strstr(text, "A recorded step holds ");
            assert_non_null(line);
            assert_int_equal(sscanf(line, "A recorded step holds %lf MiB", said), 1);
            free(text);
        } else {
            CHECK(dm_solver_step(s, STEPS));
            for (int w = 0; w < worker_count; w++) {
                dm_memory m = {.size = sizeof m};
                CHECK(dm_memory_report(session, w, &m));
                peak = m.peak > peak ? m.peak : peak;
            }
        }
        CHECK(dm_solver_close(s));
        CHECK(dm_finalize(session, NULL));
    }
    return peak;
}

/* Printed to 0.01 MiB; each of some places is rounded up. On GPUs workers that receive have the workspace twice
 * (adr/0011). */
static void test_memory(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(nets); i++) {
        double said[2];
        int64_t peak[2];
        for (int lean = 0; lean < 2; lean++) {
            peak[lean] = peak_of(i, lean, &said[lean]);
            if (fabs((double)peak[lean] - said[lean] * (1 << 20)) > 0.01 * (1 << 20) + 20 * 256) {
                fail_msg("net %d, lean %d, %d workers: %lld bytes, not %.2f MiB", i, lean, worker_count,
                         (long long)peak[lean], said[lean]);
            }
        }
        assert_true(peak[1] <= peak[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_call_by_call)};
    int failed = run_on_workers(tests);
    for (worker_count = 1; worker_count <= (getenv("DMATH_DEVICE") ? 1 : 5); worker_count += 2) {
        const struct CMUnitTest memory[] = {cmocka_unit_test(test_memory)};
        failed += cmocka_run_group_tests(memory, NULL, NULL);
    }
    return failed;
}
