/* Layers that share weights but need them under another shape or in another order. Outputs and gradients
 * against loops in f64 over the elements in the order of files, on 1, 2, 3, 5 and 8 workers with the same bits;
 * trainings, files. */
#include "shape_case.h"

enum { WEIGHTS = 72, SAMPLES = 5 };

/* --- each layer is a sum of products: output y gets weight k times input x */
typedef void visitor(int64_t y, int64_t k, int64_t x);

static void inner(visitor *visit, int64_t outputs, int64_t inputs, bool transposed)
{
    for (int64_t n = 0; n < SAMPLES; n++) {
        for (int64_t o = 0; o < outputs; o++) {
            for (int64_t i = 0; i < inputs; i++) {
                visit(n * outputs + o, transposed ? i * outputs + o : o * inputs + i, n * inputs + i);
            }
        }
    }
}

static void inner_12_to_6(visitor *visit)
{
    inner(visit, 6, 12, false);
}

static void inner_6_to_12(visitor *visit)
{
    inner(visit, 12, 6, false);
}

static void transposed_12_to_6(visitor *visit)
{
    inner(visit, 6, 12, true);
}

/* 6 x 3 x 2 x 2 weights over 3 x 3 x 4: 6 x 2 x 3. back: the other way, which is a deconvolution. */
static void windows(visitor *visit, bool back)
{
    for (int64_t n = 0; n < SAMPLES; n++) {
        for (int64_t i = 0; i < 6 * 2 * 3 * WEIGHTS / 6; i++) {
            const int64_t k = i / 12 / 6, c = i / 4 % 3, r = i / 2 % 2, q = i % 2, p = i / 12 % 6;
            const int64_t few = n * 36 + k * 6 + p, many = n * 36 + c * 12 + (p / 3 + r) * 4 + p % 3 + q;
            visit(back ? many : few, (k * 3 + c) * 4 + r * 2 + q, back ? few : many);
        }
    }
}

static void convolution(visitor *visit)
{
    windows(visit, false);
}

static void deconvolution(visitor *visit)
{
    windows(visit, true);
}

static void scale(visitor *visit)
{
    for (int64_t i = 0; i < SAMPLES * WEIGHTS; i++) {
        visit(i, i % WEIGHTS, i);
    }
}

#define INNER(more) "type: 'InnerProduct' inner_product_param { bias_term: false " more FILLER " }"
#define FILLER " weight_filler { type: 'gaussian' std: 1 }"
static const struct kind {
    const char *what, *layer;
    shape x, y, w, folded; /* folded: of its array, where that has the channels last */
    void (*each)(visitor *visit);
    bool cuts;
} kinds[] = {
    {"a convolution",
     "type: 'Convolution' convolution_param { num_output: 6 kernel_size: 2 bias_term: false" FILLER " }",
     {4, {5, 3, 3, 4}},
     {4, {5, 6, 2, 3}},
     {4, {6, 3, 2, 2}},
     {4, {6, 3, 2, 2}},
     convolution,
     true},
    {"a deconvolution",
     "type: 'Deconvolution' convolution_param { num_output: 3 kernel_size: 2 bias_term: false" FILLER " }",
     {4, {5, 6, 2, 3}},
     {4, {5, 3, 3, 4}},
     {4, {6, 3, 2, 2}},
     {4, {6, 3, 2, 2}},
     deconvolution,
     true},
    {"an inner product of images",
     INNER("num_output: 6"),
     {4, {5, 3, 2, 2}},
     {2, {5, 6}},
     {2, {6, 12}},
     {4, {6, 3, 2, 2}},
     inner_12_to_6,
     true},
    {"one of other images",
     INNER("num_output: 6"),
     {4, {5, 2, 3, 2}},
     {2, {5, 6}},
     {2, {6, 12}},
     {4, {6, 2, 3, 2}},
     inner_12_to_6,
     true},
    {"one of vectors",
     INNER("num_output: 6"),
     {2, {5, 12}},
     {2, {5, 6}},
     {2, {6, 12}},
     {0, {0}},
     inner_12_to_6,
     true},
    {"one of fewer inputs",
     INNER("num_output: 12"),
     {2, {5, 6}},
     {2, {5, 12}},
     {2, {12, 6}},
     {0, {0}},
     inner_6_to_12,
     true},
    {"a transposed one of images",
     INNER("num_output: 6 transpose: true"),
     {4, {5, 3, 2, 2}},
     {2, {5, 6}},
     {2, {12, 6}},
     {0, {0}},
     transposed_12_to_6,
     false},
    {"a scale",
     "type: 'Scale' scale_param { num_axes: 3 filler { type: 'gaussian' std: 1 } }",
     {4, {5, 3, 4, 6}},
     {4, {5, 3, 4, 6}},
     {3, {3, 4, 6}},
     {4, {1, 3, 4, 6}},
     scale,
     false},
};

static float in[2][MOST], from_above[2][MOST], weights[WEIGHTS];
static double out[2][MOST], gradient[WEIGHTS];
static int now;

static void add_output(int64_t y, int64_t k, int64_t x)
{
    out[now][y] += (double)weights[k] * (double)in[now][x];
}

static void add_gradient(int64_t y, int64_t k, int64_t x)
{
    gradient[k] += (double)from_above[now][y] * (double)in[now][x];
}

static bool same_shape(const shape *a, const shape *b)
{
    return a->ndim == b->ndim && memcmp(a->at, b->at, sizeof a->at) == 0;
}

/* Do both lie alike? Then there is no copy. */
static bool lie_alike(const struct kind *const *of)
{
    return same_shape(&of[0]->w, &of[1]->w) && same_shape(&of[0]->folded, &of[1]->folded);
}

/* Both layers; the loss is the sum of outputs times what `from_above` has. */
static void text_of(const struct kind *const *of, char *text, size_t room)
{
    size_t n = 0;
    *text = 0;
    for (int i = 0; i < 2; i++) {
        const char name = "ab"[i];
        char x[8], g[8];
        snprintf(x, sizeof x, "x%c", name);
        snprintf(g, sizeof g, "g%c", name);
        input(text, room, x, &of[i]->x);
        input(text, room, g, &of[i]->y);
        n = strlen(text);
        snprintf(text + n, room - n,
                 "layer { name: '%c' bottom: 'x%c' top: '%c' param { name: 'w' %s } %s }\n"
                 "layer { name: 'm%c' type: 'Eltwise' bottom: ['%c', 'g%c'] top: 'm%c' eltwise_param { "
                 "operation: PROD "
                 "} "
                 "}\n"
                 "layer { name: 's%c' type: 'Reduction' bottom: 'm%c' top: 's%c' loss_weight: 1 }\n",
                 name, name, name, i && !same_shape(&of[0]->w, &of[1]->w) ? "share_mode: PERMISSIVE" : "",
                 of[i]->layer, name, name, name, name, name, name, name);
    }
}

static void write_bottoms(dm_net *net)
{
    for (int i = 0; i < 2; i++) {
        CHECK(dm_net_write(net, i ? "xb" : "xa", in[i]));
    }
}

/* Writes what the net reads; the weights are those of layer a. */
static void write_inputs(dm_net *net, const struct kind *const *of)
{
    int ndim = 0;
    int64_t found[DM_MAX_DIMS];
    for (int i = 0; i < 2; i++) {
        fill(in[i], elements(&of[i]->x));
        fill(from_above[i], elements(&of[i]->y));
        CHECK(dm_net_write(net, i ? "gb" : "ga", from_above[i]));
    }
    write_bottoms(net);
    CHECK(dm_net_param_read(net, "a", 0, &ndim, found, weights));
    memset(gradient, 0, sizeof gradient);
    for (now = 0; now < 2; now++) {
        of[now]->each(add_gradient);
    }
}

static void expect_outputs(dm_net *net, const char *what, const struct kind *const *of)
{
    memset(out, 0, sizeof out);
    for (now = 0; now < 2; now++) {
        of[now]->each(add_output);
        expect_values(net, what, now ? "b" : "a", out[now], elements(&of[now]->y));
    }
}

/* Both layers tell the same elements. */
static void expect_weights(dm_net *net, const char *what, const struct kind *const *of, const double *want,
                           double tolerance)
{
    for (int i = 0; i < 2; i++) {
        int ndim = 0;
        int64_t found[DM_MAX_DIMS];
        float elements_found[WEIGHTS];
        CHECK(dm_net_param_read(net, i ? "b" : "a", 0, &ndim, found, elements_found));
        assert_int_equal(ndim, of[i]->w.ndim);
        assert_memory_equal(found, of[i]->w.at, (size_t)ndim * sizeof *found);
        expect(what, elements_found, want, WEIGHTS, tolerance);
    }
}

static void expect_pair(const struct kind *const *of, const char *split)
{
    char text[4096], what[256];
    float lying[WEIGHTS], found[WEIGHTS];
    double kept_weights[WEIGHTS];
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    dm_array diff = DM_NO_ARRAY, data = DM_NO_ARRAY;
    snprintf(what, sizeof what, "%s, and with its weights %s%s", of[0]->what, of[1]->what,
             split ? ", split" : "");
    text_of(of, text, sizeof text);
    options.phase = DM_PHASE_TRAIN;
    options.split = split;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    write_inputs(net, of);
    for (int pass = 0; pass < 2; pass++) { /* gradients of the first are gone */
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
    }
    expect_outputs(net, what, of);
    CHECK(dm_net_param(net, "a", 0, NULL, &diff));
    assert_int_equal(count_of(diff), WEIGHTS);
    CHECK(dm_read(session, diff, lying));
    if (of[0]->folded.ndim) {
        to_caffe(&of[0]->folded, lying, found);
    } else {
        memcpy(found, lying, sizeof found);
    }
    expect(what, found, gradient, WEIGHTS, 1e-5);
    for (int k = 0; k < WEIGHTS; k++) {
        kept_weights[k] = (double)weights[k];
    }
    expect_weights(net, what, of, kept_weights, 0);
    assert_int_equal(dm_net_param(net, "b", 0, &data, NULL), lie_alike(of) ? DM_OK : DM_ERR_UNSUPPORTED);
    CHECK(dm_net_close(net));
}

static void test_pairs(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(kinds) * COUNT(kinds); i++) {
        const struct kind *const of[] = {&kinds[i / COUNT(kinds)], &kinds[i % COUNT(kinds)]};
        expect_pair(of, NULL);
        if (of[0]->cuts && of[1]->cuts) {
            expect_pair(of, lie_alike(of) ? "a=features" : "a=features,b=features");
        }
    }
}

/* A layer with a pair of bottoms and tops has one copy for both. */
static void test_pair_of_bottoms(void **state)
{
    const struct kind *const of[] = {&kinds[4], &kinds[0]};
    static const char from[] = "bottom: 'xb' top: 'b'", to[] = "bottom: ['xb', 'xb'] top: ['b', 'c'] ";
    char text[4096];
    float found[WEIGHTS];
    dm_net *net = NULL;
    dm_array diff = DM_NO_ARRAY;
    (void)state;
    text_of(of, text, sizeof text);
    char *at = strstr(text, from);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
    size_t n = strlen(text);
    snprintf(
        text + n, sizeof text - n,
        "layer { name: 'mc' type: 'Eltwise' bottom: ['c', 'gb'] top: 'mc' eltwise_param { operation: PROD } }\n"
        "layer { name: 'sc' type: 'Reduction' bottom: 'mc' top: 'sc' loss_weight: 1 }\n");
    net = open_text(text, DM_PHASE_TRAIN);
    write_inputs(net, of);
    now = 1;
    of[1]->each(add_gradient);
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    expect_outputs(net, "two bottoms", of);
    CHECK(dm_net_param(net, "a", 0, NULL, &diff));
    CHECK(dm_read(session, diff, found));
    expect("two bottoms", found, gradient, WEIGHTS, 1e-5);
    CHECK(dm_net_close(net));
}

/* --- trainings: steps that are recorded, and those that are not; test nets; files */
static const struct kind *const pairs_trained[][2] = {{&kinds[0], &kinds[6]}, {&kinds[4], &kinds[0]}};

static void train(const struct kind *const *of, const char *more, bool lean, dm_dtype type)
{
    char text[4096], what[256];
    double moved[WEIGHTS];
    dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    dm_net *other = NULL, *tested = NULL;
    snprintf(what, sizeof what, "%s, and with its weights %s, trained %s%s", of[0]->what, of[1]->what, more,
             lean ? ", lean" : "");
    text_of(of, text, sizeof text);
    write_file("net.prototxt", text);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' test_iter: 1 test_interval: 100 test_initialization: false base_lr: 0.125 "
             "lr_policy: 'fixed' max_iter: 3 snapshot_after_train: false %s\n",
             more);
    write_file("solver.prototxt", text);
    options.lean = lean;
    options.type = type;
    CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
    dm_net *net = dm_solver_net(solver);
    write_inputs(net, of);
    CHECK(dm_solver_step(solver, 3));
    const double tolerance = type == DM_F32 ? 1e-5 : 0.02;
    for (int k = 0; k < WEIGHTS; k++) { /* the gradient does not depend on the weights */
        moved[k] = (double)weights[k] - 3 * 0.125 * gradient[k];
    }
    expect_weights(net, what, of, moved, tolerance);
    int ndim = 0;
    int64_t found[DM_MAX_DIMS];
    CHECK(dm_net_param_read(net, "a", 0, &ndim, found, weights));
    if (type == DM_F32) {
        if (!lean) {
            CHECK(dm_net_forward(net, NULL));
            expect_outputs(net, what, of);
        }
        tested = dm_solver_test_net(solver, 0);
        write_bottoms(tested);
        CHECK(dm_net_forward(tested, NULL));
        expect_outputs(tested, what, of);
        for (int k = 0; k < WEIGHTS; k++) {
            moved[k] = (double)weights[k];
        }
        const char *const files[] = {"w.caffemodel", "w.caffemodel.h5"};
        for (int i = 0; i < COUNT(files); i++) {
#ifndef NN_HAVE_HDF5
            if (i == 1) {
                break;
            }
#endif
            CHECK(dm_net_save(net, files[i]));
            text_of(of, text, sizeof text);
            CHECK(dm_net_open_text(session, text, NULL, NULL, &other));
            CHECK(dm_net_load(other, files[i]));
            expect_weights(other, files[i], of, moved, 0);
            write_bottoms(other);
            CHECK(dm_net_forward(other, NULL));
            expect_outputs(other, files[i], of);
            CHECK(dm_net_close(other));
        }
    }
    CHECK(dm_solver_close(solver));
}

static void test_training(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(pairs_trained); i++) {
        train(pairs_trained[i], "", false, DM_F32);
        train(pairs_trained[i], "", true, DM_F32);
        train(pairs_trained[i], "iter_size: 2", false, DM_F32);
        train(pairs_trained[i], "debug_info: true", false, DM_F32);
        train(pairs_trained[i], "", false, DM_BF16);
    }
}

/* --- what is refused */
static void test_refusals(void **state)
{
    const struct kind *const of[] = {&kinds[0], &kinds[4]};
    char text[4096];
    (void)state;
    text_of(of, text, sizeof text);
    char *mode = strstr(text, "share_mode: PERMISSIVE");
    memset(mode, ' ', strlen("share_mode: PERMISSIVE"));
    expect_refusal(text, "b", DM_ERR_SHAPE, "needs another shape: 6 x 12, and not 6 x 3 x 2 x 2");
    text_of(of, text, sizeof text);
    char *outputs = strstr(strstr(text, "InnerProduct"), "num_output: 6");
    outputs[strlen("num_output: ")] = '7';
    expect_refusal(text, "b", DM_ERR_SHAPE, "needs another shape: 7 x 12, and not 6 x 3 x 2 x 2");
}

/* The test net lacks the layer whose weights the training net's layer has a copy of. */
static void test_owner_missing(void **state)
{
    const struct kind *const of[] = {&kinds[0], &kinds[4]};
    char text[4096];
    dm_solver *solver = NULL;
    (void)state;
    text_of(of, text, sizeof text);
    for (char *at = text; (at = strstr(at, "layer { name: ")); at++) {
        const char *name = strchr(at, '\'') + 1;
        if (strchr(name, '\'')[-1] == 'a') {
            memmove(at + strlen("layer { include { phase: TRAIN } "), at + strlen("layer { "),
                    strlen(at + 8) + 1);
            memcpy(at, "layer { include { phase: TRAIN } ", strlen("layer { include { phase: TRAIN } "));
        }
    }
    write_file("net.prototxt", text);
    write_file("solver.prototxt",
               "net: 'net.prototxt' test_iter: 1 test_interval: 100 base_lr: 0.1 lr_policy: 'fixed' "
               "max_iter: 3\n");
    assert_int_equal(dm_solver_open(session, "solver.prototxt", NULL, &solver), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(dm_error_message(), "which is a copy of that of layer 'a'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pairs, begin_again),
        cmocka_unit_test_setup(test_training, begin_again),
        cmocka_unit_test_setup(test_pair_of_bottoms, begin_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_owner_missing),
        cmocka_unit_test(test_all_compared),
    };
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
