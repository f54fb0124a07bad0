/* Caffe's rules for files of weights and states: the order of elements, old shapes, layers of one name, shared
 * parameters. */
#include "rules.h"

#include "net/net.h"
#include "proto/text.h"
#include "proto/wire.h"

/* Blob i of a layer of a file, or of the field `history` where layer is NULL; and the document, which owns it.
 */
static const nn_entry *blob_of(const char *path, const char *layer, int64_t i, nn_document **d)
{
    CHECK(nn_wire_read(path, layer ? "NetParameter" : "SolverState", d));
    for (int64_t k = 0; layer && k < nn_count((*d)->root, "layer"); k++) {
        const nn_message *m = nn_sub_at((*d)->root, "layer", k);
        if (strcmp(nn_string(m, "LayerParameter", "name"), layer) == 0 && i < nn_count(m, "blobs")) {
            return nn_entry_of(nn_sub_at(m, "blobs", i), "data");
        }
    }
    assert_true(!layer && i < nn_count((*d)->root, "history"));
    return nn_entry_of(nn_sub_at((*d)->root, "history", i), "data");
}

/* --- An inner product that reads images: rows of its weights are C x H x W in files, and so are their
 * histories. */
enum { M = 2, C = 3, H = 2, W = 4, D = C * H * W };
static const char images[] = "layer { name: 'in' type: 'Input' top: ['x', 't'] input_param { shape { dim: [1, "
                             "3, 2, 4] } shape { dim: [1, 2] } } }\n"
                             "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param "
                             "{ num_output: 2 weight_filler { type: "
                             "'xavier' } bias_term: false } }\n"
                             "layer { name: 'loss' type: 'EuclideanLoss' bottom: ['y', 't'] top: 'loss' "
                             "propagate_down: [true, false] }\n";

static dm_solver *open_solver(const char *net, const char *more)
{
    char text[512];
    dm_solver *solver = NULL;
    write_file("net.prototxt", net);
    snprintf(text, sizeof text,
             "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 100 snapshot_after_train: false "
             "snapshot_prefix: 'r' %s\n",
             more);
    write_file("solver.prototxt", text);
    CHECK(dm_solver_open(session, "solver.prototxt", NULL, &solver));
    return solver;
}

static void test_inner_order(void **state)
{
    float x[D], t[M] = {0.5F, -1};
    double y[M], w[M * D], moved[M * D];
    nn_document *d = NULL;
    (void)state;
    dm_solver *s = open_solver(images, "momentum: 0.5");
    dm_net *net = dm_solver_net(s);
    for (int i = 0; i < D; i++) {
        x[i] = uniform();
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "t", t));
    CHECK(dm_solver_snapshot(s));
    CHECK(dm_net_forward(net, NULL));
    const nn_entry *e = blob_of("r_iter_0.caffemodel", "i", 0, &d);
    assert_int_equal(e->count, M * D);
    for (int m = 0; m < M; m++) {
        y[m] = 0;
        for (int i = 0; i < D; i++) {
            w[m * D + i] = (double)e->at.real32[m * D + i];
            y[m] += w[m * D + i] * (double)x[i];
        }
    }
    nn_document_free(d);
    expect_blob(net, "y", M, y, 1e-5);
    CHECK(dm_solver_step(s, 1));
    CHECK(dm_solver_snapshot(s));
    e = blob_of("r_iter_1.caffemodel", "i", 0, &d);
    for (int i = 0; i < M * D; i++) {
        moved[i] = w[i] - (double)e->at.real32[i];
        assert_true(fabs(moved[i] - 0.1 * (y[i / D] - (double)t[i / D]) * (double)x[i % D]) < 1e-6);
    }
    nn_document_free(d);
    e = blob_of("r_iter_1.solverstate", NULL, 0, &d);
    assert_int_equal(e->count, M * D);
    for (int i = 0; i < M * D; i++) {
        assert_true(fabs((double)e->at.real32[i] - moved[i]) < 1e-6);
    }
    nn_document_free(d);
    CHECK(dm_solver_close(s));
}

/* --- a convolution's weights are K x C x R x S in files */
static void test_conv_order(void **state)
{
    enum { K = 2, R = 2, S = 3 };
    float x[C * R * S], w[K * C * R * S];
    double y[K] = {0};
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    (void)state;
    dm_net *net = open_text(
        X_OF("1, 3, 2, 3") "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { "
                           "num_output: 2 kernel_h: 2 kernel_w: 3 weight_filler { type: 'xavier' } } }\n",
        DM_PHASE_TEST);
    for (int i = 0; i < COUNT(x); i++) {
        x[i] = uniform();
    }
    CHECK(dm_net_param_read(net, "c", 0, &ndim, shape, w));
    assert_true(ndim == 4 && shape[0] == K && shape[1] == C && shape[2] == R && shape[3] == S);
    for (int i = 0; i < COUNT(w); i++) {
        y[i / (C * R * S)] += (double)w[i] * (double)x[i % (C * R * S)];
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "y", K, y, 1e-5);
    CHECK(dm_net_close(net));
}

/* --- Files of before 2014 have blobs of four dims: 1 x 1 x M x D, 1 x 1 x 1 x M; some have doubles. */
static void write_old(const char *path, const char *weights)
{
    nn_document *d = NULL;
    char text[1024];
    snprintf(text, sizeof text,
             "layers { name: 'c' type: CONVOLUTION blobs { num: 2 channels: 1 height: 1 width: 2 data: [1, 2, "
             "3, 4] } blobs { num: "
             "1 channels: 1 height: 1 width: 2 data: [5, 6] } }\n"
             "layers { name: 'i' type: INNER_PRODUCT blobs { %s } }\n",
             weights);
    CHECK(nn_text_parse(text, strlen(text), "old", "NetParameter", &d));
    CHECK(nn_wire_write(d->root, path));
    nn_document_free(d);
}

static void test_old_blobs(void **state)
{
    static const struct {
        const char *weights;
        bool fits;
    } cases[] = {{"num: 1 channels: 1 height: 2 width: 4 data: [1, 2, 3, 4, 5, 6, 7, 8]", true},
                 {"num: 1 channels: 1 height: 2 width: 4 double_data: [1, 2, 3, 4, 5, 6, 7, 8]", true},
                 {"num: 2 channels: 4 height: 1 width: 1 data: [1, 2, 3, 4, 5, 6, 7, 8]", false},
                 {"num: 1 channels: 1 height: 4 width: 2 data: [1, 2, 3, 4, 5, 6, 7, 8]", false}};
    (void)state;
    dm_net *net = open_text(
        X_OF("1, 1, 1, 3") "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { "
                           "num_output: 2 kernel_h: 1 kernel_w: 2 } }\n"
                           "layer { name: 'i' type: 'InnerProduct' bottom: 'c' top: 'y' inner_product_param { "
                           "num_output: 2 bias_term: false } }\n",
        DM_PHASE_TEST);
    for (int i = 0; i < COUNT(cases); i++) {
        float x[3] = {1, 10, 100};
        /* c: 1 * 1 + 2 * 10 + 5, 10 + 200 + 5; 3 + 40 + 6, 30 + 400 + 6 */
        double c[4] = {26, 215, 49, 436}, y[2] = {0, 0};
        for (int k = 0; k < 8; k++) {
            y[k / 4] += (k + 1) * c[k % 4];
        }
        write_old("old.caffemodel", cases[i].weights);
        dm_status status = dm_net_load(net, "old.caffemodel");
        if (!cases[i].fits) {
            assert_int_equal(status, DM_ERR_SHAPE);
            continue;
        }
        CHECK(status);
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_forward(net, NULL));
        expect_blob(net, "c", 4, c, 1e-6);
        expect_blob(net, "y", 2, y, 1e-6);
        for (int p = 0; p < 2; p++) { /* nothing stays for the next case */
            dm_array a;
            CHECK(dm_net_param(net, "c", p, &a, NULL));
            CHECK(dm_fill(session, a, 0));
        }
    }
    CHECK(dm_net_close(net));
}

/* --- two layers of one name: those of a file, the last counts; of a net, refused where both have parameters,
 * unless these are the same */
static void test_equal_names(void **state)
{
    static const char text[] = X_OF("1, 2") "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'a' "
                                            "inner_product_param { num_output: 2 } }\n"
                                            "layer { name: 'i' type: 'ReLU' bottom: 'a' top: 'b' }\n";
    static const char shared[] = X_OF("1, 2")
#define SHARE(bottom, top)                                                                                     \
    "layer { name: 'i' type: 'InnerProduct' bottom: '" bottom "' top: '" top                                   \
    "' param { name: 'w' } param { name: '" top "' } inner_product_param { num_output: 2 } }\n"
        SHARE("x", "a") SHARE("a", "b");
    nn_document *d = NULL;
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *other = NULL;
    char one[sizeof shared];
    (void)state;
    write_file("net.prototxt", shared);
    assert_int_equal(dm_net_open(session, "net.prototxt", &options, &other), DM_ERR_FORMAT);
    assert_non_null(strstr(dm_error_message(), "layer 'i' has the name of another layer in line "));
    memcpy(one, shared, sizeof one);
    *strstr(strstr(one, "{ name: 'b' }"), "b") = 'a';
    other = open_text(one, DM_PHASE_TEST);
    CHECK(dm_net_close(other));
    dm_net *net = open_text(text, DM_PHASE_TEST);
    static const char weights[] = "layer { name: 'i' type: 'InnerProduct' blobs { shape { dim: [2, 2] } data: "
                                  "[1, 2, 3, 4] } blobs { shape "
                                  "{ dim: 2 } data: [0, 0] } }\n"
                                  "layer { name: 'i' type: 'InnerProduct' blobs { shape { dim: [2, 2] } data: "
                                  "[5, 6, 7, 8] } blobs { shape "
                                  "{ dim: 2 } data: [1, 1] } }\n";
    CHECK(nn_text_parse(weights, strlen(weights), "weights", "NetParameter", &d));
    CHECK(nn_wire_write(d->root, "two.caffemodel"));
    nn_document_free(d);
    CHECK(dm_net_load(net, "two.caffemodel"));
    CHECK(dm_net_write(net, "x", (float[]){1, 10}));
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "a", 2, (double[]){66, 88}, 1e-6);
    CHECK(dm_net_close(net));
}

/* --- A parameter that two layers share has one gradient, the sum, one history and one update: y = w w x. */
static void test_shared_history(void **state)
{
    static const char text[] = "layer { name: 'in' type: 'Input' top: ['x', 't'] input_param { shape { dim: "
                               "[1, 1] } shape { dim: [1, 1] } } }\n"
                               "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' "
                               "} inner_product_param { num_output: 1 "
                               "bias_term: false weight_filler { value: 0.8 } } }\n"
                               "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { name: 'w' "
                               "} inner_product_param { num_output: 1 "
                               "bias_term: false weight_filler { value: 9 } } }\n" /* the first filler counts */
                               "layer { name: 'loss' type: 'EuclideanLoss' bottom: ['b', 't'] top: 'loss' "
                               "propagate_down: [true, false] }\n";
    (void)state;
    dm_solver *s = open_solver(text, "momentum: 0.5 weight_decay: 0.01");
    dm_net *net = dm_solver_net(s);
    double w = 0.8, h = 0;
    nn_document *d = NULL;
    dm_array a;
    CHECK(dm_net_write(net, "x", (float[]){1.5F}));
    CHECK(dm_net_write(net, "t", (float[]){2}));
    for (int i = 0; i < 4; i++) {
        float found = 0;
        h = 0.5 * h + 0.1 * ((w * w * 1.5 - 2) * 2 * w * 1.5 + 0.01 * w);
        w -= h;
        CHECK(dm_solver_step(s, 1));
        CHECK(dm_net_param(net, "b", 0, &a, NULL));
        CHECK(dm_read(session, a, &found));
        assert_true(fabs((double)found - w) < 1e-6);
    }
    CHECK(dm_solver_snapshot(s));
    const nn_entry *e = blob_of("r_iter_4.solverstate", NULL, 0, &d);
    assert_true(nn_count(d->root, "history") == 1 && fabs((double)e->at.real32[0] - h) < 1e-6);
    nn_document_free(d);
    CHECK(dm_solver_close(s));
}

/* --- Weights in the net's own file: instead of the fillers, in Caffe's order. What a layer shares begins as
 * its owner has it, and what a test net shares as the training net has it. */
static void expect_param(dm_net *net, const char *layer, int number, int64_t count, const double *want)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS], found_count = 1;
    float found[64];
    CHECK(dm_net_param_read(net, layer, number, &ndim, shape, NULL));
    for (int d = 0; d < ndim; d++) {
        found_count *= shape[d];
    }
    assert_true(found_count == count && count <= COUNT(found));
    CHECK(dm_net_param_read(net, layer, number, &ndim, shape, found));
    for (int64_t i = 0; i < count; i++) {
        assert_true((double)found[i] == want[i]);
    }
}

#define GIVEN_CONV                                                                                             \
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' param { name: 'w' } convolution_param { "      \
    "num_output: 1 kernel_h: 1 kernel_w: 2 weight_filler { value: 9 } }\n"
#define GIVEN_INNER                                                                                            \
    "layer { name: 'i' type: 'InnerProduct' bottom: 'c' top: 'y' inner_product_param { num_output: 1 "         \
    "bias_term: false } "

static void test_weights_in_nets(void **state)
{
    static const char text[] = X_OF("1, 2, 1, 4") GIVEN_CONV
        "blobs { shape { dim: [1, 2, 1, 2] } data: [1, 2, 3, 4] } blobs { num: 1 channels: 1 height: 1 width: "
        "1 "
        "double_data: 5 } }\n" /* the other layer shares the weights, and has a bias of its own */
        "layer { name: 'd' type: 'Convolution' bottom: 'x' top: 'd' param { name: 'w' } convolution_param { "
        "num_output: 1 kernel_h: 1 kernel_w: 2 } blobs { shape { dim: [1, 2, 1, 2] } data: [6, 6, 6, 6] } "
        "blobs "
        "{ shape { dim: 1 } data: 7 } }\n" GIVEN_INNER "blobs { shape { dim: [1, 3] } data: [1, 10, 100] } }\n";
    static const struct {
        const char *blobs, *message;
    } bad[] = {
        {"blobs { shape { dim: [1, 2, 1, 2] } data: [1, 2, 3, 4] } }", "net:2: layer 'c' has 1 parameters"},
        {"\nblobs { shape { dim: [1, 2, 2, 1] } data: [1, 2, 3, 4] } blobs { shape { dim: 1 } data: 5 } }",
         "net:4: parameter 0 of layer 'c' has another shape"},
        {"blobs { shape { dim: [1, 2, 1, 2] } data: [1, 2, 3] } blobs { shape { dim: 1 } data: 5 } }",
         "net:3: parameter 0 of layer 'c' does not have the elements"}};
    const double w[] = {1, 2, 3, 4}, b[] = {5}, own[] = {7};
    dm_net *net = open_text(text, DM_PHASE_TEST), *other = NULL;
    (void)state;
    expect_param(net, "c", 0, 4, w);
    expect_param(net, "c", 1, 1, b);
    expect_param(net, "d", 0, 4, w);
    expect_param(net, "d", 1, 1, own);
    CHECK(dm_net_write(net, "x", (float[]){1, 0, 0, 0, 0, 0, 0, 1})); /* c: 1 + 5, 5, 4 + 5 */
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "y", 1, (double[]){6 + 50 + 900}, 1e-6);
    CHECK(dm_net_save(net, "given.txt")); /* a text, by its name, and read as one */
    dm_array a;
    CHECK(dm_net_param(net, "c", 0, &a, NULL));
    CHECK(dm_fill(session, a, 0));
    CHECK(dm_net_load(net, "given.txt"));
    expect_param(net, "c", 0, 4, w);
    CHECK(dm_net_save(net, "given.caffemodel"));
    CHECK(dm_net_close(net));
    for (int i = 0; i < 2; i++) { /* files of weights are nets, too, of the other phase as well */
        dm_net_options training = DM_NET_OPTIONS_INIT;
        training.phase = DM_PHASE_TRAIN;
        CHECK(dm_net_open(session, i == 0 ? "given.txt" : "given.caffemodel", &training, &other));
        expect_param(other, "c", 0, 4, w);
        CHECK(dm_net_close(other));
    }
    for (int i = 0; i < COUNT(bad); i++) {
        char one[1024];
        snprintf(one, sizeof one, "%s%s%s", X_OF("1, 2, 1, 4"), GIVEN_CONV, bad[i].blobs);
        assert_true(dm_net_open_text(session, one, "net", NULL, &other) != DM_OK);
        if (!strstr(dm_error_message(), bad[i].message)) {
            fail_msg("%s", dm_error_message());
        }
    }
}

/* The training net's weights, also where the test net's own text has others; and those of a layer that only the
 * test net has. */
static void test_weights_in_test_nets(void **state)
{
#define ONE_INNER(name, top, fields, value)                                                                    \
    "layer { name: '" name "' type: 'InnerProduct' bottom: 'x' top: '" top "' " fields                         \
    " inner_product_param { num_output: 1 bias_term: false } blobs { shape { dim: [1, 1] } data: " value       \
    " } }\n"
    static const char text[] =
        "layer { name: 'in' type: 'Input' top: ['x', 't'] input_param { shape { dim: [1, 1] } shape { dim: [1, "
        "1] } } }\n" ONE_INNER("a", "a", "include { phase: TRAIN }", "3")
            ONE_INNER("a", "a", "include { phase: TEST }", "4") ONE_INNER(
                "z", "z", "include { phase: TEST }", "5") "layer { name: 'loss' type: 'EuclideanLoss' bottom: "
                                                          "['a', 't'] top: 'loss' propagate_down: [true, "
                                                          "false] }\n";
    (void)state;
    dm_solver *s = open_solver(text, "test_iter: 1 test_interval: 10");
    expect_param(dm_solver_net(s), "a", 0, 1, (double[]){3});
    expect_param(dm_solver_test_net(s, 0), "a", 0, 1, (double[]){3});
    expect_param(dm_solver_test_net(s, 0), "z", 0, 1, (double[]){5});
    CHECK(dm_solver_close(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inner_order),     cmocka_unit_test(test_conv_order),
        cmocka_unit_test(test_old_blobs),       cmocka_unit_test(test_equal_names),
        cmocka_unit_test(test_weights_in_nets), cmocka_unit_test(test_weights_in_test_nets),
        cmocka_unit_test(test_shared_history),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
