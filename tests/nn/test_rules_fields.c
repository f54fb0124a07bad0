/* Caffe's rules for fields, tops and shapes that few nets have, against loops made here. */
#include "values.h"

#define INPUT(tops, shapes) "layer { name: 'in' type: 'Input' top: [" tops "] input_param { " shapes " } }\n"

static void write_blob(dm_net *net, const char *blob, float *x, int64_t n)
{
    fill_random(x, n, -1, 1);
    CHECK(dm_net_write(net, blob, x));
}

/* --- the filler `bilinear` */
static double tent(int i, int side)
{
    double f = ceil(side / 2.0);
    return 1 - fabs(i / f - (side - 1) / (2 * f));
}

static void test_bilinear(void **state)
{
    enum { MOST = 4 * 4 * 5 * 5 };
    static const struct {
        int channels, outputs, group, side;
    } cases[] = {{3, 3, 3, 4}, {2, 2, 2, 3}, {4, 4, 1, 4}, {2, 4, 1, 5}, {1, 1, 1, 1}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[768];
        static float w[MOST], x[4 * 9];
        static double want[MOST], y[4 * 17 * 17];
        int side = cases[i].side, stride = (side + 1) / 2, ndim = 0, count = 0,
            each = cases[i].outputs / cases[i].group, inner = cases[i].channels / cases[i].group,
            out = 2 * stride + side;
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text,
                 X_OF("1, %d, 3, 3") "layer { name: 'd' type: 'Deconvolution' bottom: 'x' top: 'y' "
                                     "convolution_param { num_output: %d group: %d kernel_size: %d stride: %d "
                                     "bias_term: false weight_filler { type: 'bilinear' } } }\n",
                 cases[i].channels, cases[i].outputs, cases[i].group, side, stride);
        dm_net *net = open_text(text, DM_PHASE_TEST);
        CHECK(dm_net_param_read(net, "d", 0, &ndim, shape, w));
        for (count = 0; count < cases[i].channels * each * side * side; count++) {
            want[count] = tent(count % side, side) * tent(count / side % side, side);
        }
        same("the filler", w, want, count, 1e-7);
        write_blob(net, "x", x, cases[i].channels * 9);
        memset(y, 0, sizeof y);
        for (int c = 0; c < cases[i].channels * each * 9 * side * side; c++) {
            int from = c / (each * 9 * side * side), o = c / (9 * side * side) % each,
                place = c / (side * side) % 9, k = c % (side * side), row = place / 3 * stride + k / side,
                col = place % 3 * stride + k % side;
            y[((from / inner * each + o) * out + row) * out + col] +=
                (double)x[from * 9 + place] * tent(k / side, side) * tent(k % side, side);
        }
        CHECK(dm_net_forward(net, NULL));
        expect_blob(net, "y", cases[i].outputs * out * out, y, 1e-6);
        CHECK(dm_net_close(net));
    }
    dm_net *net =
        open_text("layer { name: 'd' type: 'DummyData' top: 'y' dummy_data_param { shape { dim: [2, 3, 3, 3] } "
                  "data_filler { type: 'bilinear' } } }\n",
                  DM_PHASE_TEST);
    double want[54];
    for (int k = 0; k < 54; k++) {
        want[k] = tent(k % 3, 3) * tent(k / 3 % 3, 3);
    }
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "y", 54, want, 1e-7);
    CHECK(dm_net_close(net));
    refused(X_OF("1, 1, 3, 3")
                SIMPLE("d", "Deconvolution", "x", "y",
                       "convolution_param { num_output: 1 kernel_h: 3 kernel_w: 4 weight_filler { "
                       "type: 'bilinear' } }"),
            DM_PHASE_TEST, "bilinear fillers need 4 dims");
    refused(X_OF("1, 4") SIMPLE("i", "InnerProduct", "x", "y",
                                "inner_product_param { num_output: 4 weight_filler { type: 'bilinear' } }"),
            DM_PHASE_TEST, "bilinear fillers need 4 dims");
}

/* --- Accuracy's second top: the accuracy of each class */
static void test_accuracy_by_class(void **state)
{
    enum { PLACES = 12, C = 4 };
    static const char *const shapes[] = {"shape { dim: [12, 4] } shape { dim: 12 }",
                                         "shape { dim: [3, 4, 2, 2] } shape { dim: [3, 1, 2, 2] }"};
    static const char *const fields[] = {"", "accuracy_param { top_k: 2 }",
                                         "accuracy_param { ignore_label: 1 }"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        int image = i % 2, inner = image ? 4 : 1, top_k = i / 2 == 1 ? 2 : 1, ignored = i / 2 == 2 ? 1 : -1;
        char text[768];
        float x[PLACES * C], labels[PLACES];
        double hits[C] = {0}, counts[C] = {0}, right = 0, all = 0;
        snprintf(text, sizeof text,
                 INPUT("'x', 'l'",
                       "%s") "layer { name: 'a' type: 'Accuracy' bottom: ['x', 'l'] top: ['a', 'b'] %s }\n",
                 shapes[image], fields[i / 2]);
        dm_net *net = open_text(text, DM_PHASE_TEST);
        for (int k = 0; k < PLACES * C; k++) {
            x[k] = roundf(uniform() * 3); /* some are equal */
        }
        for (int k = 0; k < PLACES; k++) {
            labels[k] = (float)(k * 7 % 5 % 3); /* no label is class 3 */
        }
        for (int k = 0; k < PLACES; k++) {
            int label = (int)labels[k], higher = -1;
            for (int c = 0; c < C; c++) {
                const float *of = x + k / inner * C * inner + k % inner;
                higher += of[c * inner] >= of[label * inner];
            }
            if (label != ignored) {
                counts[label]++;
                hits[label] += higher < top_k;
                right += higher < top_k;
                all++;
            }
        }
        for (int c = 0; c < C; c++) {
            hits[c] = counts[c] > 0 ? hits[c] / counts[c] : 0;
        }
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "l", labels));
        CHECK(dm_net_forward(net, NULL));
        expect_number(net, "a", right / all, 1e-6);
        expect_blob(net, "b", C, hits, 1e-6);
        CHECK(dm_net_close(net));
    }
}

/* --- InnerProduct: axis and transpose */
enum { MOST_INNER = 4096 };

static void test_inner(void **state)
{
    static const struct {
        const char *shape, *fields;
        int axis, transpose, rows, inputs, ndim; /* ndim: of the top */
    } cases[] = {
        {"6, 5", "transpose: true", 1, 1, 6, 5, 2},
        {"4, 3, 5", "axis: 2", 2, 0, 12, 5, 3},
        {"4, 3, 5", "axis: -1 transpose: true", 2, 1, 12, 5, 3},
        {"4, 3, 2, 5", "transpose: true", 1, 1, 4, 30, 2},
        {"4, 3, 2, 5", "axis: 2", 2, 0, 12, 10, 3},
        {"4, 3, 2, 5", "axis: 3", 3, 0, 24, 5, 4},
        {"4, 3, 2, 5", "axis: 3 transpose: true bias_term: false", 3, 1, 24, 5, 4},
        {"5, 2, 1, 2, 3", "axis: 3 transpose: true", 3, 1, 10, 6, 4},
    };
    enum { OUT = 7 };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        static float x[MOST_INNER], w[MOST_INNER], d[MOST_INNER], b[OUT];
        static double y[MOST_INNER], dx[MOST_INNER], dw[MOST_INNER], db[OUT];
        char text[768];
        int ndim = 0, m = cases[i].rows, n = cases[i].inputs, turn = cases[i].transpose,
            bias = !strstr(cases[i].fields, "bias_term");
        int64_t shape[DM_MAX_DIMS];
        snprintf(
            text, sizeof text,
            X_OF(
                "%s") "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
                      "num_output: 7 %s weight_filler { type: 'xavier' } bias_filler { type: 'uniform' } } }\n",
            cases[i].shape, cases[i].fields);
        dm_net *net = bias ? with_gradient(text) : NULL;
        if (!bias) { /* a filler of a bias that is not there has no effect, which is an error */
            *strstr(text, "bias_filler") = 0;
            strcat(text, "} }\n");
            net = with_gradient(text);
        }
        CHECK(dm_net_shape(net, "y", &ndim, shape));
        assert_int_equal(ndim, cases[i].ndim);
        assert_int_equal(shape[ndim - 1], OUT);
        CHECK(dm_net_param_read(net, "i", 0, &ndim, shape, w));
        assert_true(shape[0] == (turn ? n : OUT) && shape[1] == (turn ? OUT : n));
        memset(b, 0, sizeof b);
        if (bias) {
            CHECK(dm_net_param_read(net, "i", 1, &ndim, shape, b));
        }
        write_blob(net, "x", x, m * n);
        fill_random(d, m * OUT, -1, 1);
        memset(dx, 0, sizeof dx);
        memset(dw, 0, sizeof dw);
        memset(db, 0, sizeof db);
        for (int r = 0; r < m; r++) {
            for (int o = 0; o < OUT; o++) {
                y[r * OUT + o] = (double)b[o];
                db[o] += (double)d[r * OUT + o];
                for (int k = 0; k < n; k++) {
                    int at = turn ? k * OUT + o : o * n + k;
                    y[r * OUT + o] += (double)x[r * n + k] * (double)w[at];
                    dx[r * n + k] += (double)d[r * OUT + o] * (double)w[at];
                    dw[at] += (double)d[r * OUT + o] * (double)x[r * n + k];
                }
            }
        }
        pass(net, d);
        expect_blob(net, "y", m * OUT, y, 2e-6);
        expect_down(net, "x", m * n, dx, 2e-6);
        expect_param(net, "i", 0, n * OUT, dw, 3e-6);
        if (bias) {
            expect_param(net, "i", 1, OUT, db, 3e-6);
        }
        CHECK(dm_net_close(net));
    }
    refused(X_OF("4, 3") SIMPLE("i", "InnerProduct", "x", "y", "inner_product_param { num_output: 2 axis: 0 }"),
            DM_PHASE_TEST, "axis 0, which would join all samples");
}

/* A layer and one that has its weights transposed, as the two halves of an autoencoder: y = (x w') w. */
static void check_tied(const char *split)
{
    enum { M = 5, D = 6, K = 4 };
    static const char text[] = X_OF("5, 6") SIMPLE(
        "a", "InnerProduct", "x", "a",
        "param { name: 'w' } inner_product_param { num_output: 4 bias_term: false weight_filler { type: "
        "'xavier' } }")
        SIMPLE("b", "InnerProduct", "a", "y",
               "param { name: 'w' } inner_product_param { num_output: 6 bias_term: false transpose: true }");
    float x[M * D], d[M * D], w[K * D];
    double a[M * K] = {0}, da[M * K] = {0}, y[M * D] = {0}, dx[M * D] = {0}, dw[K * D] = {0};
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    split_asked = split;
    dm_net *net = with_gradient(text);
    split_asked = NULL;
    CHECK(dm_net_param_read(net, "a", 0, &ndim, shape, w));
    write_blob(net, "x", x, M * D);
    fill_random(d, M * D, -1, 1);
    for (int i = 0; i < M * K * D; i++) {
        int m = i / (K * D), k = i / D % K, n = i % D;
        a[m * K + k] += (double)x[m * D + n] * (double)w[k * D + n];
        da[m * K + k] += (double)d[m * D + n] * (double)w[k * D + n];
    }
    for (int i = 0; i < M * K * D; i++) {
        int m = i / (K * D), k = i / D % K, n = i % D;
        y[m * D + n] += a[m * K + k] * (double)w[k * D + n];
        dx[m * D + n] += da[m * K + k] * (double)w[k * D + n];
        dw[k * D + n] += da[m * K + k] * (double)x[m * D + n] + a[m * K + k] * (double)d[m * D + n];
    }
    pass(net, d);
    expect_blob(net, "y", M * D, y, 2e-6);
    expect_down(net, "x", M * D, dx, 2e-6);
    expect_param(net, "a", 0, K * D, dw, 3e-6);
    CHECK(dm_net_close(net));
}

static void test_tied(void **state)
{
    (void)state;
    check_tied(NULL);
    check_tied("a=features"); /* the other has them from all workers */
}

static void test_not_by_features(void **state)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    (void)state;
    write_file("net.prototxt", X_OF("4, 3") SIMPLE("i", "InnerProduct", "x", "y",
                                                   "inner_product_param { num_output: 2 transpose: true }"));
    options.split = "i=features";
    assert_int_equal(dm_net_open(session, "net.prototxt", &options, &net), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(dm_error_message(), "layer 'i' has transposed weights"));
    options.split = "i=batch";
    CHECK(dm_net_open(session, "net.prototxt", &options, &net));
    char *plan = NULL;
    CHECK(dm_net_explain(net, &plan));
    free(plan);
    CHECK(dm_net_close(net));
}

/* --- fields without effect are told */
static void test_told(void **state)
{
#define SCORES INPUT("'x', 'l'", "shape { dim: [4, 3] } shape { dim: 4 }")
#define RECURRENT(type, fields)                                                                                \
    INPUT("'x', 'c'", "shape { dim: [2, 3, 4] } shape { dim: [2, 3] }")                                        \
    "layer { name: 'r' type: '" type "' bottom: ['x', 'c'] top: 'y' recurrent_param { num_output: 2 " fields   \
    " } }\n"
#define CONVOLVED(fields)                                                                                      \
    X_OF("2, 1, 3, 3")                                                                                         \
    SIMPLE("c", "Convolution", "x", "y", "convolution_param { num_output: 1 kernel_size: 2 " fields " }")
#define LOSS_OF(type, second, fields)                                                                          \
    INPUT("'x', 'l'", "shape { dim: [4, 3] } " second)                                                         \
    "layer { name: 'loss' type: '" type "' bottom: ['x', 'l'] top: 'y' " fields " }\n"
#define BOTH "loss_param { normalize: true normalization: BATCH_SIZE }"
#define MEMORY                                                                                                 \
    "layer { name: 'm' type: 'MemoryData' top: ['x', 'l'] memory_data_param { batch_size: 2 channels: 1 "      \
    "height: "                                                                                                 \
    "2 width: 2 } %s }\n"
    static const struct {
        const char *text, *words; /* words NULL: nothing is told */
    } cases[] = {
        {RECURRENT("LSTM", "debug_info: true"), "net.prototxt:2: debug_info of layer 'r' has no effect: "},
        {RECURRENT("RNN", "debug_info: true"), "net.prototxt:2: debug_info of layer 'r' has no effect: "},
        {RECURRENT("RNN", "debug_info: false"), NULL},
        {CONVOLVED("force_nd_im2col: true"), "net.prototxt:2: force_nd_im2col of layer 'c' has no effect: "},
        {CONVOLVED("force_nd_im2col: false"), NULL},
        {X_OF("2, 1, 3, 3") SIMPLE("l", "LRN", "x", "y", "lrn_param { norm_region: WITHIN_CHANNEL k: 2 }"),
         "net.prototxt:2: k of layer 'l' has no effect: within channels it is 1"},
        {X_OF("2, 1, 3, 3") SIMPLE("l", "LRN", "x", "y", "lrn_param { k: 2 }"), NULL},
        {CONVOLVED("bias_term: false bias_filler { type: 'uniform' min: 1 max: 2 }"),
         "net.prototxt:2: bias_filler of layer 'c' has no effect: the layer has no bias"},
        {X_OF("4, 3") SIMPLE("s", "Scale", "x", "y", "scale_param { bias_filler { value: 1 } }"),
         "net.prototxt:2: bias_filler of layer 's' has no effect: the layer has no bias"},
        {X_OF("4")
             SIMPLE("e", "Embed", "x", "y",
                    "embed_param { input_dim: 3 num_output: 2 bias_term: false bias_filler { value: 1 } }"),
         "net.prototxt:2: bias_filler of layer 'e' has no effect: the layer has no bias"},
        {X_OF("4, 3") SIMPLE("i", "InnerProduct", "x", "y",
                             "inner_product_param { num_output: 2 bias_filler { value: 1 } }"),
         NULL},
        {LOSS_OF("SoftmaxWithLoss", "shape { dim: 4 }", BOTH),
         "net.prototxt:2: normalize of layer 'loss' has no effect: normalization is there too"},
        {LOSS_OF("SigmoidCrossEntropyLoss", "shape { dim: [4, 3] }", BOTH),
         "net.prototxt:2: normalize of layer 'loss' has no effect: normalization is there too"},
        {LOSS_OF("SoftmaxWithLoss", "shape { dim: 4 }", "loss_param { normalize: false }"), NULL},
        {INPUT("'x', 'l'",
               "shape { dim: [4, 3] }") "layer { name: 'e' type: 'Eltwise' bottom: ['x', 'l'] top: 'y' "
                                        "eltwise_param { operation: PROD stable_prod_grad: false } }\n",
         "net.prototxt:2: stable_prod_grad of layer 'e' has no effect: "},
        {"layer { name: 'm' type: 'MemoryData' top: ['x', 'l'] memory_data_param { batch_size: 2 channels: 1 "
         "height: 2 "
         "width: 2 }\ntransform_param { scale: 2 mirror: true } }\n",
         "net.prototxt:2: transform_param of layer 'm' has no effect: the program writes"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        dm_net *net = NULL;
        CHECK(open_own(cases[i].text, DM_PHASE_TEST, NULL, &net));
        if (cases[i].words ? !said || !strstr(said, cases[i].words) : said && strstr(said, "no effect")) {
            fail_msg("case %d: the log says '%s'", i, said ? said : "");
        }
        CHECK(dm_net_close(net));
    }
}

/* Where both are there, normalization counts. */
static void test_normalization(void **state)
{
    static const float x[8] = {1, 2, -1, 0.5, 3, 0, 1, 1}, labels[4] = {0, 1, 1, 0};
    static const char *const fields[] = {"normalize: true normalization: NONE", "normalize: true",
                                         "normalize: false ignore_label: 0",
                                         "normalize: false normalization: VALID"};
    double sum[2] = {0};
    (void)state;
    for (int k = 0; k < 4; k++) {
        int label = (int)labels[k];
        double loss = log(1 + exp((double)x[2 * k + 1 - label] - (double)x[2 * k + label]));
        sum[0] += loss;
        sum[1] += label == 0 ? 0 : loss;
    }
    const double want[] = {sum[0], sum[0] / 4, sum[1] / 4, sum[0] / 4};
    for (int i = 0; i < COUNT(fields); i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            INPUT("'x', 'l'", "shape { dim: [4, 2] } shape { dim: 4 }") "layer { name: 'loss' type: "
                                                                        "'SoftmaxWithLoss' bottom: ['x', 'l'] "
                                                                        "top: 'y' loss_param { %s } }\n",
            fields[i]);
        dm_net *net = open_text(text, DM_PHASE_TEST);
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "l", labels));
        CHECK(dm_net_forward(net, NULL));
        expect_number(net, "y", want[i], 1e-6);
        CHECK(dm_net_close(net));
    }
}

/* --- Pooling's second top: where in the plane the largest element is */
static void test_places(void **state)
{
    enum { PLANES = 6, H = 5, W = 7 };
    static const struct {
        const char *fields;
        int kernel, stride, pad;
    } cases[] = {{"kernel_size: 3 stride: 2", 3, 2, 0}, {"kernel_size: 3 stride: 2 pad: 1", 3, 2, 1}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        static float x[PLANES * H * W], d[PLANES * H * W];
        static double y[PLANES * H * W], places[PLANES * H * W], down[PLANES * H * W];
        const int relu = i / 2, kernel = cases[i % 2].kernel, stride = cases[i % 2].stride,
                  pad = cases[i % 2].pad;
        char text[768];
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text,
                 X_OF("3, 2, 5, 7") SIMPLE(
                     "i", "Power", "x", "r",
                     "") "%s"
                         "layer { name: 'p' type: 'Pooling' bottom: 'r' top: ['y', 'm'] pooling_param { %s "
                         "} }\n",
                 relu ? SIMPLE("r", "ReLU", "r", "r", "") : "", cases[i % 2].fields);
        dm_net *net = with_gradient(text);
        int64_t count = shape_of(net, "y", shape);
        const int rows = (int)shape[2], cols = (int)shape[3];
        fill_random(x, COUNT(x), -2, 0.7);
        fill_random(d, count, -1, 1);
        memset(down, 0, sizeof down);
        for (int k = 0; k < count; k++) {
            int plane = k / (rows * cols), top = k / cols % rows * stride - pad, left = k % cols * stride - pad;
            int best = -1;
            for (int q = 0; q < kernel * kernel; q++) {
                int h = top + q / kernel, w = left + q % kernel;
                if (h >= 0 && h < H && w >= 0 && w < W) {
                    const float *p = x + plane * H * W;
                    float a = relu ? fmaxf(p[h * W + w], 0) : p[h * W + w], b = best < 0 ? -9
                                                                                : relu   ? fmaxf(p[best], 0)
                                                                                         : p[best];
                    best = a > b ? h * W + w : best;
                }
            }
            float largest = x[plane * H * W + best];
            y[k] = relu ? fmax((double)largest, 0) : (double)largest;
            places[k] = best;
            down[plane * H * W + best] += relu && largest <= 0 ? 0 : (double)d[k];
        }
        CHECK(dm_net_write(net, "x", x));
        pass(net, d);
        expect_blob(net, "y", count, y, 0);
        expect_blob(net, "m", count, places, 0);
        expect_down(net, "x", COUNT(x), down, 1e-6);
        CHECK(dm_net_close(net));
    }
    refused(X_OF("1, 1, 4, 4") "layer { name: 'p' type: 'Pooling' bottom: 'x' top: ['y', 'm'] pooling_param { "
                               "pool: AVE "
                               "kernel_size: 2 } }\n",
            DM_PHASE_TEST, "only pooling by the largest element tells which it was");
}

/* A plane of more elements than a byte counts. */
static void test_places_of_planes(void **state)
{
    enum { SIDE = 20, PLANES = 4 };
    static float x[PLANES * SIDE * SIDE];
    double y[PLANES], places[PLANES];
    (void)state;
    dm_net *net =
        open_text(X_OF("2, 2, 20, 20") "layer { name: 'p' type: 'Pooling' bottom: 'x' top: ['y', 'm'] "
                                       "pooling_param { global_pooling: true } }\n",
                  DM_PHASE_TEST);
    write_blob(net, "x", x, COUNT(x));
    for (int k = 0; k < PLANES; k++) {
        int best = 0;
        for (int q = 0; q < SIDE * SIDE; q++) {
            best = x[k * SIDE * SIDE + q] > x[k * SIDE * SIDE + best] ? q : best;
        }
        y[k] = (double)x[k * SIDE * SIDE + best];
        places[k] = best;
    }
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "y", PLANES, y, 0);
    expect_blob(net, "m", PLANES, places, 0);
    CHECK(dm_net_close(net));
}

/* --- Dropout that drops nothing */
static void test_no_dropout(void **state)
{
    float x[40], d[40];
    double y[40], down[40];
    (void)state;
    dm_net *net =
        with_gradient(X_OF("4, 10") SIMPLE("l", "Dropout", "x", "y", "dropout_param { dropout_ratio: 0 }"));
    write_blob(net, "x", x, 40);
    fill_random(d, 40, -1, 1);
    for (int k = 0; k < 40; k++) {
        y[k] = (double)x[k];
        down[k] = (double)d[k];
    }
    pass(net, d);
    expect_blob(net, "y", 40, y, 0);
    expect_down(net, "x", 40, down, 0);
    CHECK(dm_net_close(net));
    refused(X_OF("4, 10") SIMPLE("l", "Dropout", "x", "y", "dropout_param { dropout_ratio: 1 }"), DM_PHASE_TEST,
            "at least 0 and below 1");
}

/* --- SPP at random: each element of the top is one of its window, to which its gradient goes */
static void test_random_pyramid(void **state)
{
    enum { PLANES = 6, SIDE = 4, EACH = SIDE * SIDE, BINS = 1 + 4 + 16, OUT = PLANES * BINS };
    static const char text[] =
        X_OF("3, 2, 4, 4") SIMPLE("s", "SPP", "x", "y", "spp_param { pyramid_height: 3 pool: STOCHASTIC }");
    static float x[PLANES * EACH], d[OUT], y[2][OUT];
    static double down[PLANES * EACH], want[OUT];
    (void)state;
    fill_random(x, COUNT(x), 0.1, 1);
    fill_random(d, OUT, -1, 1);
    dm_net *net = with_gradient(text);
    CHECK(dm_net_write(net, "x", x));
    for (int turn = 0; turn < 2; turn++) {
        int64_t at = 0;
        pass(net, d);
        CHECK(dm_net_read(net, "y", y[turn]));
        memset(down, 0, sizeof down);
        for (int n = 0; n < PLANES / 2; n++) {
            for (int bins = 1; bins <= SIDE; bins *= 2) {
                for (int k = 0; k < 2 * bins * bins; k++, at++) {
                    int plane = 2 * n + k / (bins * bins), row = k / bins % bins, col = k % bins,
                        side = SIDE / bins, found = -1;
                    double sum = 0, squares = 0;
                    for (int q = 0; q < side * side; q++) {
                        int place = plane * EACH + (row * side + q / side) * SIDE + col * side + q % side;
                        found = x[place] == y[turn][at] ? place : found;
                        sum += (double)x[place];
                        squares += (double)x[place] * (double)x[place];
                    }
                    assert_true(found >= 0);
                    down[found] += (double)d[at];
                    want[at] = squares / sum;
                }
            }
        }
        expect_down(net, "x", COUNT(x), down, 1e-6);
    }
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    CHECK(dm_net_close(net));
    net = open_text(text, DM_PHASE_TEST);
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "y", OUT, want, 1e-6);
    CHECK(dm_net_close(net));
    refused(X_OF("1, 1, 6, 6") SIMPLE("s", "SPP", "x", "y", "spp_param { pyramid_height: 3 pool: STOCHASTIC }"),
            DM_PHASE_TEST, "do not cut 6 x 6 pixels in equal parts");
}

/* --- Embed of more dims */
static void test_embed(void **state)
{
    enum { ROWS = 5, K = 3, MOST = 96 };
    static const char *const shapes[] = {"7", "4, 3", "4, 3, 2", "4, 3, 2, 4", "2, 3, 2, 2, 2"};
    static const int counts[] = {7, 12, 24, 96, 48};
    (void)state;
    for (int i = 0; i < COUNT(counts); i++) {
        static float x[MOST], d[MOST * K], w[ROWS * K], b[K];
        static double y[MOST * K], dw[ROWS * K], db[K];
        char text[512];
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text,
                 X_OF("%s") "layer { name: 'e' type: 'Embed' bottom: 'x' top: 'y' embed_param { input_dim: 5 "
                            "num_output: "
                            "3 weight_filler { type: 'uniform' } bias_filler { type: 'uniform' } } }\n",
                 shapes[i]);
        dm_net *net = with_gradient(text);
        CHECK(dm_net_param_read(net, "e", 0, &ndim, shape, w));
        CHECK(dm_net_param_read(net, "e", 1, &ndim, shape, b));
        fill_random(d, counts[i] * K, -1, 1);
        memset(dw, 0, sizeof dw);
        memset(db, 0, sizeof db);
        for (int k = 0; k < counts[i]; k++) {
            int row = (k * k + 3 * k) % 11 % ROWS;
            x[k] = (float)row;
            for (int j = 0; j < K; j++) {
                y[k * K + j] = (double)w[row * K + j] + (double)b[j];
                dw[row * K + j] += (double)d[k * K + j];
                db[j] += (double)d[k * K + j];
            }
        }
        CHECK(dm_net_write(net, "x", x));
        pass(net, d);
        expect_blob(net, "y", counts[i] * K, y, 1e-6);
        expect_param(net, "e", 0, ROWS * K, dw, 2e-6);
        expect_param(net, "e", 1, K, db, 2e-6);
        CHECK(dm_net_close(net));
    }
    refused(X_OF("1, 1, 1, 1, 1, 1, 1, 1")
                SIMPLE("e", "Embed", "x", "y", "embed_param { input_dim: 5 num_output: 3 }"),
            DM_PHASE_TEST, "would have more than 8");
}

/* --- HingeLoss of images: a label counts through all elements of its sample */
static void test_hinge(void **state)
{
    enum { N = 5, MOST = 60 };
    static const struct {
        const char *shape;
        int each;
    } cases[] = {{"5, 4", 4}, {"5, 4, 1, 1", 4}, {"5, 2, 3", 6}, {"5, 3, 2, 2", 12}};
    (void)state;
    for (int i = 0; i < 2 * COUNT(cases); i++) {
        const int each = cases[i / 2].each, norm = i % 2 + 1;
        static float x[MOST], labels[N];
        static double down[MOST];
        double loss = 0;
        char text[512];
        snprintf(
            text, sizeof text,
            FORCED INPUT(
                "'x', 'l'",
                "shape { dim: [%s] } shape { dim: 5 }") "layer { name: 'h' type: 'HingeLoss' bottom: ['x', "
                                                        "'l'] top: 'y' loss_weight: 1.5 "
                                                        "hinge_loss_param { norm: L%d } }\n",
            cases[i / 2].shape, norm);
        dm_net *net = open_text(text, DM_PHASE_TRAIN);
        write_blob(net, "x", x, N * each);
        for (int n = 0; n < N; n++) {
            labels[n] = (float)((n * 5 + 1) % each);
        }
        for (int k = 0; k < N * each; k++) {
            double sign = k % each == (int)labels[k / each] ? -1 : 1, m = fmax(0, 1 + sign * (double)x[k]);
            loss += (norm == 1 ? m : m * m) / N;
            down[k] = 1.5 * sign * (norm == 1 ? m > 0 : 2 * m) / N;
        }
        CHECK(dm_net_write(net, "l", labels));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        expect_number(net, "y", loss, 1e-6);
        expect_down(net, "x", N * each, down, 1e-6);
        CHECK(dm_net_close(net));
    }
}

/* Nets of 16 bits are near those of f32; places, which other layers read here, are not rounded. */
static void test_types(void **state)
{
    static const char text[] =
        INPUT("'x', 'f', 'l'", "shape { dim: [4, 3, 20, 20] } shape { dim: [4, 2, 3] } shape { dim: 4 }") CONV(
            "c", "x",
            "num_output: 4 kernel_size: 3") "layer { name: 'p' type: 'Pooling' bottom: 'c' top: ['p', "
                                            "'places'] pooling_param { global_pooling: true } }\n"
                                            "layer { name: 's' type: 'Eltwise' bottom: ['p', 'places'] top: "
                                            "'s' eltwise_param { coeff: [1, 0] } }\n" SIMPLE(
                                                "g", "Power", "f", "g", "power_param { scale: 2 shift: 2.4 }")
                                                SIMPLE("e", "Embed", "g", "e",
                                                       "embed_param { input_dim: 5 num_output: 4 weight_filler "
                                                       "{ type: 'gaussian' std: 1 } }") IP("k", "e", "4")
                                                    SIMPLE("i", "InnerProduct", "c", "i",
                                                           "inner_product_param { num_output: 5 axis: 3 "
                                                           "transpose: true weight_filler { type: 'xavier' } }")
                                                        IP("j", "i",
                                                           "4") "layer { name: 'm' type: 'Eltwise' bottom: "
                                                                "['j', 'j', 'k', 'j', 'k', 'j', 'k', 'j', 'j', "
                                                                "'k'] top: 'm' }\n"
                                                                "layer { name: 'a' type: 'Accuracy' bottom: "
                                                                "['m', 'l'] top: ['a', 'b'] }\n"
                                                                "layer { name: 'n' type: 'HingeLoss' bottom: "
                                                                "['s', 'l'] top: 'n' }\n"
                                                                "layer { name: 'loss' type: 'SoftmaxWithLoss' "
                                                                "bottom: ['m', 'l'] top: 'loss' }\n";
    static const char *const blobs[] = {"e", "i", "m", "n"}, *const layers[] = {"c", "e", "i", "j"};
    enum { MOST = 4 * 4 * 18 * 18, PLANE = 18 * 18 };
    static const dm_dtype types[] = {DM_F32, DM_BF16, DM_F16};
    static float first[COUNT(blobs) + COUNT(layers)][MOST], now[MOST], p[16], places[16];
    static float x[4 * 3 * 20 * 20], f[24];
    static const float labels[4] = {0, 3, 1, 2};
    (void)state;
    fill_random(x, COUNT(x), -1, 1);
    fill_random(f, COUNT(f), -1, 1);
    for (int t = 0; t < COUNT(types); t++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        int64_t shape[DM_MAX_DIMS], count;
        options.phase = DM_PHASE_TRAIN;
        options.type = types[t];
        CHECK(dm_net_open_text(session, text, NULL, &options, &net));
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "f", f));
        CHECK(dm_net_write(net, "l", labels));
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        for (int i = 0; i < COUNT(blobs) + COUNT(layers); i++) {
            bool blob = i < COUNT(blobs);
            dm_array diff = DM_NO_ARRAY;
            if (blob) {
                count = shape_of(net, blobs[i], shape);
                CHECK(dm_net_read(net, blobs[i], now));
            } else {
                CHECK(dm_net_param(net, layers[i - COUNT(blobs)], 0, NULL, &diff));
                count = count_of(diff);
                CHECK(dm_read(session, diff, now));
            }
            double square = 0, off = 0;
            if (t == 0) {
                memcpy(first[i], now, (size_t)count * sizeof *now);
            }
            for (int64_t k = 0; k < count; k++) {
                square += pow((double)first[i][k], 2);
                off += pow((double)now[k] - (double)first[i][k], 2);
            }
            if (!(sqrt(off) <= 0.03 * sqrt(square) && square > 0)) {
                fail_msg("type %d, %s: off by %g of %g", t, blob ? blobs[i] : layers[i - COUNT(blobs)],
                         sqrt(off), sqrt(square));
            }
        }
        CHECK(dm_net_read(net, "c", now));
        CHECK(dm_net_read(net, "p", p));
        CHECK(dm_net_read(net, "places", places));
        for (int k = 0; k < 16; k++) {
            assert_true(places[k] == truncf(places[k]) && places[k] >= 0 && places[k] < PLANE);
            assert_true(now[k * PLANE + (int)places[k]] == p[k]);
        }
        CHECK(dm_net_close(net));
    }
}

/* BatchReindex in nets of 16 bits, where its bottom has them and its top has not, as nobody reads that. */
static void test_reindex_types(void **state)
{
    static const char text[] =
        FORCED INPUT("'x', 'i'", "shape { dim: [3, 2] } shape { dim: 5 }") SIMPLE("g", "Power", "x", "g", "")
            SIMPLE("z", "Power", "g", "z",
                   "") "layer { name: 'r' type: 'BatchReindex' bottom: ['g', 'i'] top: 'r' }\n";
    static const dm_dtype types[] = {DM_F32, DM_BF16, DM_F16};
    static const float x[] = {1, 2, 3, 4, 5, 6}, rows[] = {2, 0, 0, 2, 1};
    static const double taken[] = {5, 6, 1, 2, 1, 2, 5, 6, 3, 4}, down[] = {2.5, 2.5, 1.5, 1.5, 2.5, 2.5};
    (void)state;
    for (int t = 0; t < COUNT(types); t++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        dm_net *net = NULL;
        dm_array given;
        options.phase = DM_PHASE_TRAIN;
        options.type = types[t];
        options.own_loss = "r,z";
        CHECK(dm_net_open_text(session, text, NULL, &options, &net));
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "i", rows));
        CHECK(dm_net_forward(net, NULL));
        expect_blob(net, "r", COUNT(taken), taken, 0);
        CHECK(dm_net_own_gradient(net, "r", &given));
        CHECK(dm_fill(session, given, 1));
        CHECK(dm_net_own_gradient(net, "z", &given));
        CHECK(dm_fill(session, given, 0.5));
        CHECK(dm_net_backward(net));
        expect_down(net, "x", COUNT(down), down, 0);
        CHECK(dm_net_close(net));
    }
}

/* Steps that are recorded, also with places in the workspace for blobs, and steps call by call leave the same
 * weights. */
static void test_in_programs(void **state)
{
    static const char net_text[] =
        "layer { name: 'd' type: 'DummyData' top: ['x', 'l'] dummy_data_param { shape { dim: [5, 3, 10, 10] } "
        "shape { "
        "dim: 5 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" CONV(
            "c", "x", "num_output: 4 kernel_size: 3")
            SIMPLE(
                "r", "ReLU", "c", "c",
                "") "layer { name: 'p' type: 'Pooling' bottom: 'c' top: ['p', 'places'] pooling_param { "
                    "kernel_size: 2 stride: 2 } "
                    "}\n"
                    "layer { name: 'q' type: 'Silence' bottom: 'places' }\n"
                    "layer { name: 'u' type: 'Deconvolution' bottom: 'p' top: 'u' convolution_param { "
                    "num_output: 4 group: 4 "
                    "kernel_size: 4 stride: 2 pad: 1 bias_term: false weight_filler { type: 'bilinear' } } }\n"
                    "layer { name: 'e' type: 'Eltwise' bottom: ['u', 'c', 'u', 'c', 'u', 'c', 'u', 'c', 'u', "
                    "'c'] top: 'e' "
                    "eltwise_param { operation: MAX } }\n" SIMPLE("b", "Sigmoid", "e", "b", "")
                        SIMPLE("s", "SPP", "b", "s", "spp_param { pyramid_height: 3 pool: STOCHASTIC }")
                            SIMPLE("i", "InnerProduct", "u", "i",
                                   "inner_product_param { num_output: 3 axis: 3 transpose: true weight_filler "
                                   "{ type: 'xavier' } }") IP("j", "i", "6")
                                IP("k", "s",
                                   "6") "layer { name: 'm' type: 'Eltwise' bottom: ['j', 'k'] top: 'm' }\n"
                                        "layer { name: 'n' type: 'HingeLoss' bottom: ['u', 'l'] top: 'n' "
                                        "loss_weight: 0.1 }\n"
                                        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: ['m', 'l'] top: "
                                        "'loss' }\n";
    static const char *const ways[] = {"", "", "clip_gradients: 1e9",
                                       "debug_info: true"}; /* the last two: call by call */
    enum { MOST = 4096 };
    static float first[MOST], now[MOST];
    (void)state;
    write_file("net.prototxt", net_text);
    for (int w = 0; w < COUNT(ways); w++) {
        char text[512];
        dm_solver_options options = DM_SOLVER_OPTIONS_INIT;
        dm_solver *solver = NULL;
        int64_t at = 0;
        options.lean = w == 1;
        snprintf(text, sizeof text,
                 "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: 5 random_seed: "
                 "5 %s\n",
                 ways[w]);
        write_file("solver.prototxt", text);
        CHECK(dm_solver_open(session, "solver.prototxt", &options, &solver));
        CHECK(dm_solver_step(solver, 5));
        for (int i = 0; i < 5; i++) {
            int ndim = 0;
            int64_t shape[DM_MAX_DIMS], n = 1;
            const char *layer = (const char *[]){"c", "u", "i", "j", "k"}[i];
            CHECK(dm_net_param_read(dm_solver_net(solver), layer, 0, &ndim, shape, NULL));
            for (int d = 0; d < ndim; d++) {
                n *= shape[d];
            }
            assert_true(at + n <= MOST);
            CHECK(dm_net_param_read(dm_solver_net(solver), layer, 0, &ndim, shape, now + at));
            at += n;
        }
        for (int64_t k = 0; k < at; k++) {
            double bound =
                w < 3 ? 0 : 1e-5; /* with debug_info, layers do nothing for others: sums have another order */
            if (!isfinite(now[k]) || (w && fabs((double)now[k] - (double)first[k]) > bound)) {
                fail_msg("way %d: weight %lld is %.9g, not %.9g", w, (long long)k, (double)now[k],
                         (double)first[k]);
            }
        }
        if (w == 0) {
            memcpy(first, now, sizeof first);
        }
        CHECK(dm_solver_close(solver));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bilinear),
        cmocka_unit_test(test_accuracy_by_class),
        cmocka_unit_test(test_inner),
        cmocka_unit_test(test_tied),
        cmocka_unit_test(test_not_by_features),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_normalization),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_of_planes),
        cmocka_unit_test(test_no_dropout),
        cmocka_unit_test(test_random_pyramid),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_hinge),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_reindex_types),
        cmocka_unit_test(test_in_programs),
    };
    int failed = run_on_workers(tests);
    free(said);
    return failed;
}
