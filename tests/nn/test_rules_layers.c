/* Caffe's rules for layers, those that others often have otherwise, against numbers and loops made here. */
#include "rules.h"

/* --- pooling */
static void test_pooling_sizes(void **state)
{
    static const struct {
        const char *shape, *fields;
        int64_t rows, cols;
    } cases[] = {
        {"1, 1, 6, 7", "kernel_size: 3 stride: 2", 3, 3},                   /* rounded up */
        {"1, 1, 6, 7", "kernel_size: 3 stride: 2 round_mode: FLOOR", 2, 3}, /* or down, where it says so */
        {"1, 1, 3, 4", "kernel_size: 2 stride: 2 pad: 1", 2, 3},            /* no window begins behind 3 + 1 */
        {"1, 1, 5, 4", "kernel_size: 1 stride: 3", 3, 2},                   /* but it may without padding */
        {"1, 1, 3, 5", "kernel_h: 2 kernel_w: 1 stride_h: 2 stride_w: 3 pad_h: 1", 2,
         2},                                              /* padding of rows counts for columns */
        {"1, 1, 2, 3", "kernel_size: 4 stride: 3", 1, 1}, /* a kernel larger by less than a stride */
        {"1, 1, 6, 5", "global_pooling: true", 1, 1},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[512];
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [%s] } } }\n"
                 "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { %s } }\n",
                 cases[i].shape, cases[i].fields);
        dm_net *net = open_text(text, DM_PHASE_TEST);
        shape_of(net, "y", shape);
        if (shape[2] != cases[i].rows || shape[3] != cases[i].cols) {
            fail_msg("%s: %lld x %lld", cases[i].fields, (long long)shape[2], (long long)shape[3]);
        }
        CHECK(dm_net_close(net));
    }
}

/* A mean divides by what the window has up to H + pad, padding included, forward and backward. */
static void test_average(void **state)
{
    enum { H = 4, K = 3, STRIDE = 2, PAD = 1, OUT = 3 };
    float x[H * H];
    double want[OUT * OUT], gradient[H * H] = {0};
    (void)state;
    dm_net *net =
        open_text(FORCED X_OF("1, 1, 4, 4")
                      SIMPLE("p", "Pooling", "x", "y",
                             "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }") SUM_OF("y"),
                  DM_PHASE_TRAIN);
    for (int i = 0; i < H * H; i++) {
        x[i] = uniform();
    }
    for (int i = 0; i < OUT * OUT; i++) {
        int top = i / OUT * STRIDE - PAD, left = i % OUT * STRIDE - PAD;
        int bottom = top + K < H + PAD ? top + K : H + PAD, right = left + K < H + PAD ? left + K : H + PAD;
        double size = (bottom - top) * (right - left);
        want[i] = 0;
        for (int h = top; h < bottom; h++) {
            for (int w = left; w < right; w++) {
                if (h >= 0 && h < H && w >= 0 && w < H) {
                    want[i] += (double)x[h * H + w] / size;
                    gradient[h * H + w] += 1 / size;
                }
            }
        }
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    expect_blob(net, "y", OUT * OUT, want, 1e-6);
    expect_gradient(net, "x", H * H, gradient, 1e-6);
    CHECK(dm_net_close(net));
}

/* Of equal elements the first gets the gradient; of Eltwise's first two bottoms the second. */
static void test_ties(void **state)
{
    static const double first[16] = {1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0};
    static const float same[16] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    static const double none[4] = {0, 0, 0, 0}, all[4] = {1, 1, 1, 1};
    (void)state;
    dm_net *net = open_text(FORCED X_OF("1, 1, 4, 4")
                                SIMPLE("p", "Pooling", "x", "y", "pooling_param { kernel_size: 2 stride: 2 }")
                                    SUM_OF("y"),
                            DM_PHASE_TRAIN);
    CHECK(dm_net_write(net, "x", same));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    expect_gradient(net, "x", 16, first, 0);
    CHECK(dm_net_close(net));
    net = open_text(
        FORCED "layer { name: 'in' type: 'Input' top: ['a', 'b', 'c'] input_param { shape { dim: [2, 2] } } }\n"
               "layer { name: 'm' type: 'Eltwise' bottom: ['a', 'b', 'c'] top: 'y' eltwise_param { operation: "
               "MAX } }\n" SUM_OF("y"),
        DM_PHASE_TRAIN);
    for (int i = 0; i < 3; i++) {
        CHECK(dm_net_write(net, (const char *[]){"a", "b", "c"}[i], same));
    }
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    for (int i = 0; i < 3; i++) {
        expect_gradient(net, (const char *[]){"a", "b", "c"}[i], 4, i == 1 ? all : none, 0);
    }
    CHECK(dm_net_close(net));
}

/* --- LRN: alpha is divided by the elements of a window; within channels k is 1 */
static void test_lrn(void **state)
{
    enum { C = 5, H = 4, SIZE = 3 };
    static const double alpha = 2, beta = 0.6, k = 1.5;
    float x[C * H * H];
    double across[C * H * H], within[C * H * H];
    (void)state;
    dm_net *net = open_text(
        X_OF("1, 5, 4, 4") SIMPLE("a", "LRN", "x", "a", "lrn_param { local_size: 3 alpha: 2 beta: 0.6 k: 1.5 }")
            SIMPLE("w", "LRN", "x", "w",
                   "lrn_param { local_size: 3 alpha: 2 beta: 0.6 k: 7 norm_region: WITHIN_CHANNEL }"),
        DM_PHASE_TEST);
    for (int i = 0; i < COUNT(x); i++) {
        x[i] = uniform();
    }
    for (int i = 0; i < COUNT(x); i++) {
        int c = i / (H * H), h = i / H % H, w = i % H;
        double over_channels = 0, over_places = 0;
        for (int d = -1; d <= 1; d++) {
            over_channels += c + d >= 0 && c + d < C ? pow((double)x[i + d * H * H], 2) : 0;
            for (int e = -1; e <= 1; e++) {
                bool inside = h + d >= 0 && h + d < H && w + e >= 0 && w + e < H;
                over_places += inside ? pow((double)x[i + d * H + e], 2) : 0;
            }
        }
        across[i] = (double)x[i] * pow(k + alpha / SIZE * over_channels, -beta);
        within[i] = (double)x[i] * pow(1 + alpha / (SIZE * SIZE) * over_places, -beta);
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_forward(net, NULL));
    expect_blob(net, "a", COUNT(x), across, 1e-5);
    expect_blob(net, "w", COUNT(x), within, 1e-5);
    CHECK(dm_net_close(net));
}

/* --- Dropout: scaled in training, untouched in tests; the gradient has the mask of its pass */
static void test_dropout(void **state)
{
    enum { N = 400 };
    static const char text[] = FORCED X_OF("20, 20")
        SIMPLE("d", "Dropout", "x", "y", "dropout_param { dropout_ratio: 0.2 }") SUM_OF("y");
    float x[N], y[N];
    double want[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = 1 + fabsf(uniform());
    }
    for (int phase = 0; phase < 2; phase++) {
        dm_net *net = open_text(text, phase);
        CHECK(dm_net_write(net, "x", x));
        for (int pass = 0; pass < 2; pass++) {
            int kept = 0;
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_net_read(net, "y", y));
            for (int i = 0; i < N; i++) {
                double factor = phase == DM_PHASE_TEST ? 1 : 1 / 0.8;
                want[i] = y[i] != 0 ? factor : 0;
                kept += y[i] != 0;
                assert_true(fabs((double)y[i] - want[i] * (double)x[i]) < 1e-6);
            }
            assert_true(phase == DM_PHASE_TEST ? kept == N : kept > 280 && kept < 360);
            if (phase == DM_PHASE_TRAIN) {
                CHECK(dm_net_backward(net));
                expect_gradient(net, "x", N, want, 1e-6);
            }
        }
        CHECK(dm_net_close(net));
    }
}

/* --- BatchNorm in tests: what it has seen, divided by the third parameter; 0 while that is 0 */
static void test_batch_norm(void **state)
{
    static const float x[4] = {1, -2, 3, 5}, mean[2] = {4, -6}, variance[2] = {8, 2};
    (void)state;
    dm_net *net = open_text(X_OF("2, 2") SIMPLE("n", "BatchNorm", "x", "y", "batch_norm_param { eps: 0.5 }"),
                            DM_PHASE_TEST);
    dm_array a;
    double want[4];
    CHECK(dm_net_write(net, "x", x));
    for (int p = 0; p < 2; p++) {
        CHECK(dm_net_param(net, "n", p, &a, NULL));
        CHECK(dm_write(session, a, p ? variance : mean));
    }
    for (int factor = 0; factor <= 4; factor += 2) {
        CHECK(dm_net_param(net, "n", 2, &a, NULL));
        CHECK(dm_fill(session, a, factor));
        CHECK(dm_net_forward(net, NULL));
        for (int i = 0; i < 4; i++) {
            double m = factor ? (double)mean[i % 2] / factor : 0,
                   v = factor ? (double)variance[i % 2] / factor : 0;
            want[i] = ((double)x[i] - m) / sqrt(v + 0.5);
        }
        expect_blob(net, "y", 4, want, 1e-6);
    }
    CHECK(dm_net_close(net));
}

/* --- Accuracy: an equal score counts against the label */
static void test_accuracy(void **state)
{
    static const float scores[12] = {1, 1, 0, 2, 3, 1, 0, 5, 5, 7, 7, 7}, labels[4] = {0, 1, 2, 1};
    (void)state;
    dm_net *net = open_text(
        "layer { name: 'in' type: 'Input' top: ['x', 'l'] input_param { shape { dim: [4, 3] } shape { dim: 4 } "
        "} "
        "}\n"
        "layer { name: 'a' type: 'Accuracy' bottom: ['x', 'l'] top: 'a' }\n"
        "layer { name: 'b' type: 'Accuracy' bottom: ['x', 'l'] top: 'b' accuracy_param { top_k: 2 } }\n"
        "layer { name: 'c' type: 'Accuracy' bottom: ['x', 'l'] top: 'c' accuracy_param { ignore_label: 1 } }\n",
        DM_PHASE_TEST);
    CHECK(dm_net_write(net, "x", scores));
    CHECK(dm_net_write(net, "l", labels));
    CHECK(dm_net_forward(net, NULL));
    expect_number(net, "a", 0.25, 1e-7); /* the second sample alone */
    expect_number(net, "b", 0.75, 1e-7); /* all but the last, which has two scores as high */
    expect_number(net, "c", 0, 1e-7);    /* of two samples none */
    CHECK(dm_net_close(net));
}

/* --- fillers: what their numbers depend on */
static void test_fillers(void **state)
{
    enum { K = 30, C = 20, R = 3 }; /* in: 180 elements, out: 270 */
    static const struct {
        const char *filler;
        double least, most, deviation; /* 0: of no interest */
    } cases[] = {
        {"type: 'xavier'", 0.12909944, 0.12909944, 0}, /* sqrt(3 / 180) */
        {"type: 'xavier' variance_norm: FAN_OUT", 0.10540926, 0.10540926, 0},
        {"type: 'xavier' variance_norm: AVERAGE", 0.11547005, 0.11547005, 0},
        {"type: 'msra'", 0, 0, 0.10540926}, /* sqrt(2 / 180) */
        {"type: 'msra' variance_norm: FAN_OUT", 0, 0, 0.08606630},
        {"type: 'gaussian' std: 0.3", 0, 0, 0.3},
        {"type: 'gaussian'", 0, 0, 1},
        {"type: 'uniform'", 0, 1, 0},
        {"type: 'constant'", 0, 0, 0},
        {"value: 0.5", 0.5, 0.5, 0},
    };
    static float w[K * C * R * R];
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[512];
        double low = 1e9, high = -1e9, squares = 0;
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [1, 20, 4, 4] } } }\n"
                 "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: "
                 "30 kernel_size: 3 "
                 "weight_filler { %s } } }\n",
                 cases[i].filler);
        dm_net *net = open_text(text, DM_PHASE_TEST);
        CHECK(dm_net_param_read(net, "c", 0, &ndim, shape, w));
        for (int k = 0; k < COUNT(w); k++) {
            low = fmin(low, (double)w[k]);
            high = fmax(high, (double)w[k]);
            squares += (double)w[k] * (double)w[k] / COUNT(w);
        }
        CHECK(dm_net_close(net));
        bool both = cases[i].least > 0 && strstr(cases[i].filler, "xavier");
        bool well = cases[i].deviation > 0 ? fabs(sqrt(squares) / cases[i].deviation - 1) < 0.04
                    : both
                        ? high <= cases[i].most && high > 0.99 * cases[i].most && low >= -cases[i].most &&
                              low < -0.99 * cases[i].most
                        : low >= cases[i].least && high <= cases[i].most && high > 0.99 * cases[i].most - 1e-9;
        if (!well) {
            fail_msg("%s: from %g to %g, deviation %g", cases[i].filler, low, high, sqrt(squares));
        }
    }
}

/* Sparse fillers keep `sparse` of num_output weights; the rows of a unit ball sum to 1. */
static void test_rows_of_fillers(void **state)
{
    enum { M = 50, D = 400 };
    static float w[M * D];
    (void)state;
    for (int ball = 0; ball < 2; ball++) {
        int ndim = 0, there = 0;
        int64_t shape[DM_MAX_DIMS];
        char text[512];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [1, 400] } } }\n"
                 "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
                 "num_output: 50 weight_filler { "
                 "%s } } }\n",
                 ball ? "type: 'positive_unitball'" : "type: 'gaussian' sparse: 5");
        dm_net *net = open_text(text, DM_PHASE_TEST);
        CHECK(dm_net_param_read(net, "i", 0, &ndim, shape, w));
        for (int m = 0; m < M; m++) {
            double sum = 0;
            for (int d = 0; d < D; d++) {
                sum += (double)w[m * D + d];
                there += w[m * D + d] != 0;
                assert_true(!ball || w[m * D + d] >= 0);
            }
            assert_true(!ball || fabs(sum - 1) < 1e-5);
        }
        assert_true(ball || (there > 1800 && there < 2200)); /* 5 / 50 of 20 000 */
        CHECK(dm_net_close(net));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling_sizes),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_lrn),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_fillers),
        cmocka_unit_test(test_rows_of_fillers),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
