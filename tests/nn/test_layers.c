/* Layers: values against loops in f64, on several numbers of workers. Gradients: test_gradients.c. */
#include "net_case.h"

#define ONE(name, type, bottom, rest) SIMPLE(name, type, bottom, name, rest)
#define PAIR(name, type, bottoms, rest)                                                                        \
    "layer { name: '" name "' type: '" type "' bottom: [" bottoms "] top: '" name "' " rest " }\n"

enum { N = 6, C = 3, H = 7, W = 6, ALL = N * C * H * W };

/* A blob in Caffe's order; the shape as arrays have it tells whether it is an image. */
static int64_t read_blob(dm_net *net, const char *name, double *out)
{
    dm_array a;
    dm_array_info info = {.size = sizeof info};
    CHECK(dm_net_blob(net, name, &a, NULL));
    CHECK(dm_array_query(session, a, &info));
    int64_t n = count_of(a);
    double *x = malloc((size_t)n * sizeof *x);
    CHECK(dm_array_read_as(session, a, NULL, NULL, DM_F64, x, 0));
    int64_t s = info.ndim == 4 ? info.shape[0] : 1, h = info.ndim == 4 ? info.shape[1] * info.shape[2] : 1,
            c = info.ndim == 4 ? info.shape[3] : n;
    for (int64_t i = 0; i < s; i++) {
        for (int64_t j = 0; j < h; j++) {
            for (int64_t k = 0; k < c; k++) {
                out[(i * c + k) * h + j] = x[(i * h + j) * c + k];
            }
        }
    }
    free(x);
    return n;
}

static double x[ALL], labels[N];
static double at(int n, int c, int h, int w)
{
    return x[((n * C + c) * H + h) * W + w];
}

static void expect(dm_net *net, const char *blob, int64_t count, const double *want)
{
    double *found = malloc((size_t)count * 8 * sizeof *found);
    assert_int_equal(read_blob(net, blob, found), count);
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(found[i] - want[i]) <= 2e-5 * (1 + fabs(want[i])))) {
            fail_msg("'%s', element %lld: %g, not %g", blob, (long long)i, found[i], want[i]);
        }
    }
    free(found);
}

static dm_net *given(const char *text)
{
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 3);
    CHECK(dm_net_forward(net, NULL));
    read_blob(net, "data", x);
    read_blob(net, "label", labels);
    return net;
}

static void test_norms(void **state)
{
    (void)state;
    static double want[ALL], across[ALL];
    dm_net *net =
        given(INPUTS ONE("n", "BatchNorm", "data", "batch_norm_param { moving_average_fraction: 0.9 }")
                  ONE("m", "MVN", "data", "") ONE("a", "MVN", "data", "mvn_param { across_channels: true }"));
    double mean[C] = {0}, var[C] = {0};
    const int n = N * H * W;
    for (int i = 0; i < ALL; i++) {
        mean[i / (H * W) % C] += x[i] / n;
    }
    for (int i = 0; i < ALL; i++) {
        var[i / (H * W) % C] += pow(x[i] - mean[i / (H * W) % C], 2) / n;
    }
    for (int i = 0; i < ALL; i++) {
        int c = i / (H * W) % C;
        want[i] = (x[i] - mean[c]) / sqrt(var[c] + 1e-5);
    }
    expect(net, "n", ALL, want);
    CHECK(dm_net_forward(net, NULL));
    for (int p = 0; p < 3; p++) { /* after two passes */
        dm_array a;
        float seen[C];
        CHECK(dm_net_param(net, "n", p, &a, NULL));
        CHECK(dm_read(session, a, seen));
        for (int c = 0; c < (p < 2 ? C : 1); c++) {
            double one = p == 0 ? mean[c] : p == 1 ? var[c] * n / (n - 1) : 1;
            assert_true(fabs(seen[c] - 1.9 * one) < 1e-5);
        }
    }
    for (int k = 0; k < 2; k++) {
        int size = k ? C * H * W : H * W;
        for (int i = 0; i < ALL; i += size) {
            double m = 0, v = 0;
            for (int j = i; j < i + size; j++) {
                m += x[j] / size;
            }
            for (int j = i; j < i + size; j++) {
                v += (x[j] - m) * (x[j] - m) / size;
            }
            for (int j = i; j < i + size; j++) {
                across[j] = (x[j] - m) / (sqrt(v) + 1e-9);
            }
        }
        expect(net, k ? "a" : "m", ALL, across);
    }
    CHECK(dm_net_close(net));
}

static void test_pieces(void **state)
{
    (void)state;
    static double want[4 * ALL];
    dm_net *net = given(
        INPUTS
        "layer { name: 's' type: 'Slice' bottom: 'data' top: ['s1', 's2'] slice_param { axis: 1 slice_point: 1 "
        "} }\n"
        "layer { name: 'l' type: 'Input' top: 'like' input_param { shape { dim: [6, 3, 4, 3] } } }\n" PAIR(
            "c", "Crop", "'data', 'like'", "crop_param { offset: [2, 1] }")
            ONE("t", "Tile", "data", "tile_param { tiles: 2 }")
                ONE("r", "Reshape", "data", "reshape_param { shape { dim: [0, -1, 3] } }")
                    ONE("i", "Im2col", "data", "convolution_param { kernel_size: 2 stride: 2 pad: 1 }"));
    int k = 0;
    for (int n = 0; n < N; n++) {
        for (int c = 1; c < C; c++) {
            for (int h = 0; h < H * W; h++) {
                want[k++] = at(n, c, h / W, h % W);
            }
        }
    }
    expect(net, "s2", k, want);
    k = 0;
    for (int i = 0; i < N * C * 12; i++) {
        want[k++] = at(i / 12 / C, i / 12 % C, i % 12 / 3 + 2, i % 3 + 1);
    }
    expect(net, "c", k, want);
    for (int i = 0; i < 2 * ALL; i++) {
        want[i] = at(i / (2 * C * H * W), i / (H * W) % C, i / W % H, i % W);
    }
    expect(net, "t", (int64_t)2 * ALL, want);
    expect(net, "r", ALL, x);
    k = 0;
    for (int i = 0; i < N * C * 4; i++) { /* samples, channels, places of the kernel */
        for (int p = 0; p < 16; p++) {
            int h = p / 4 * 2 + i % 4 / 2 - 1, w = p % 4 * 2 + i % 2 - 1;
            want[k++] = h >= 0 && h < H && w >= 0 && w < W ? at(i / 4 / C, i / 4 % C, h, w) : 0;
        }
    }
    expect(net, "i", k, want);
    CHECK(dm_net_close(net));
}

static void test_scores(void **state)
{
    (void)state;
    static double want[4 * ALL];
    dm_net *net =
        given(INPUTS ONE("a", "ArgMax", "data", "argmax_param { top_k: 2 out_max_val: true }")
                  ONE("b", "ArgMax", "data", "argmax_param { axis: 1 }")
                      ONE("h", "Reduction", "data", "reduction_param { axis: 3 operation: ASUM coeff: 2 }")
                          ONE("m", "Reduction", "data", "reduction_param { operation: MEAN }")
                              ONE("g", "Pooling", "data", "pooling_param { pool: AVE global_pooling: true }")
                                  ONE("f", "Reshape", "g", "reshape_param { shape { dim: [0, 3] } }")
                                      ONE("s", "Softmax", "f", "")
                                          PAIR("l", "MultinomialLogisticLoss", "'s', 'label'", "")
                                              PAIR("c", "ContrastiveLoss", "'s', 'f', 'label'", ""));
    double soft[N * C], flat[N * C], sum = 0, loss = 0, pairs = 0;
    for (int n = 0; n < N; n++) {
        int best[2] = {-1, -1};
        for (int i = 0; i < C * H * W; i++) {
            double v = x[n * C * H * W + i];
            sum += v;
            if (best[0] < 0 || v > x[n * C * H * W + best[0]]) {
                best[1] = best[0];
                best[0] = i;
            } else if (best[1] < 0 || v > x[n * C * H * W + best[1]]) {
                best[1] = i;
            }
        }
        for (int k = 0; k < 2; k++) {
            want[n * 4 + k] = best[k];
            want[n * 4 + 2 + k] = x[n * C * H * W + best[k]];
        }
    }
    expect(net, "a", N * 4, want);
    for (int i = 0; i < N * H * W; i++) {
        want[i] = 0;
        for (int c = 1; c < C; c++) {
            want[i] = at(i / (H * W), c, i / W % H, i % W) > at(i / (H * W), (int)want[i], i / W % H, i % W)
                          ? c
                          : want[i];
        }
    }
    expect(net, "b", N * H * W, want);
    for (int i = 0; i < ALL / W; i++) {
        want[i] = 0;
        for (int w = 0; w < W; w++) {
            want[i] += 2 * fabs(x[i * W + w]);
        }
    }
    expect(net, "h", ALL / W, want);
    expect(net, "m", 1, (double[]){sum / ALL});
    assert_int_equal(read_blob(net, "s", soft), N * C);
    assert_int_equal(read_blob(net, "f", flat), N * C);
    for (int n = 0; n < N; n++) {
        double square = 0;
        loss -= log(soft[n * C + (int)labels[n]]) / N;
        for (int c = 0; c < C; c++) {
            square += pow(soft[n * C + c] - flat[n * C + c], 2);
        }
        pairs += (labels[n] != 0 ? square : pow(fmax(1 - sqrt(square), 0), 2)) / (2 * N);
    }
    expect(net, "l", 1, &loss);
    expect(net, "c", 1, &pairs);
    CHECK(dm_net_close(net));
}

/* A pyramid takes the largest of windows, and the matrix of InfogainLoss weighs the logarithms. */
static void test_gains(void **state)
{
    (void)state;
    dm_net *net = given(
        INPUTS
        "layer { name: 'm' type: 'DummyData' top: 'm' dummy_data_param { shape { dim: [3, 3] } data_filler { "
        "type: 'uniform' } } }\n" ONE("p", "SPP", "data", "spp_param { pyramid_height: 2 }")
            ONE("g", "Pooling", "data", "pooling_param { pool: AVE global_pooling: true }")
                ONE("f", "Reshape", "g", "reshape_param { shape { dim: [0, 3] } }") ONE("s", "Softmax", "f", "")
                    PAIR("l", "InfogainLoss", "'f', 'label', 'm'", "loss_param { ignore_label: 1 }"));
    static double want[N * C * 5];
    double soft[N * C], matrix[9], loss = 0;
    int counted = 0;
    for (int i = 0; i < N * C * 5; i++) {
        want[i] = -9;
    }
    for (int i = 0; i < ALL; i++) { /* 7 x 6: windows of 4 x 3 behind a padding of 1 x 0 */
        int n = i / (C * H * W), c = i / (H * W) % C, h = i / W % H, w = i % W;
        double *one = want + n * C * 5 + c, *four = want + n * C * 5 + C + c * 4 + (h + 1) / 4 * 2 + w / 3;
        *one = fmax(*one, x[i]);
        *four = fmax(*four, x[i]);
    }
    expect(net, "p", N * C * 5, want);
    assert_int_equal(read_blob(net, "s", soft), N * C);
    assert_int_equal(read_blob(net, "m", matrix), 9);
    for (int n = 0; n < N; n++) {
        for (int c = 0; c < C && (int)labels[n] != 1; c++) {
            loss -= matrix[(int)labels[n] * C + c] * log(soft[n * C + c]);
        }
        counted += (int)labels[n] != 1;
    }
    loss /= counted > 1 ? counted : 1;
    expect(net, "l", 1, &loss);
    CHECK(dm_net_close(net));
}

/* A deconvolution adds each element times the kernel; BatchReindex and Embed copy rows. */
static void test_weighted(void **state)
{
    (void)state;
    enum { K = 4, R = 3, P = 15, Q = 13 }; /* stride 2, pad 0 */
    static double want[N * K * P * Q];
    dm_net *net = given(
        INPUTS "layer { name: 'd' type: 'Deconvolution' bottom: 'data' top: 'd' convolution_param { "
               "num_output: 4 kernel_size: 3 stride: 2 "
               "weight_filler { type: 'gaussian' std: 1 } bias_filler { value: 0.5 } } }\n"
               "layer { name: 'e' type: 'Embed' bottom: 'label' top: 'e' embed_param { input_dim: 3 "
               "num_output: 2 weight_filler { type: 'gaussian' "
               "std: 1 } bias_filler { value: 0.25 } } }\n" PAIR("b", "BatchReindex", "'data', 'label'", "")
                   ONE("s", "Scale", "data", "scale_param { bias_term: true bias_filler { value: 2 } }")
                       ONE("p", "PReLU", "data", ""));
    float w[C * R * R * K], rows[6]; /* C x R x R x K: the channels last */
    dm_array a;
    CHECK(dm_net_param(net, "d", 0, &a, NULL));
    CHECK(dm_read(session, a, w));
    for (int i = 0; i < N * K * P * Q; i++) {
        want[i] = 0.5;
    }
    for (int i = 0; i < ALL; i++) {
        int n = i / (C * H * W), c = i / (H * W) % C, h = i / W % H, v = i % W;
        for (int j = 0; j < K * R * R; j++) {
            int k = j % K, r = j / K / R, s = j / K % R;
            want[((n * K + k) * P + 2 * h + r) * Q + 2 * v + s] += x[i] * (double)w[c * R * R * K + j];
        }
    }
    expect(net, "d", (int64_t)N * K * P * Q, want);
    CHECK(dm_net_param(net, "e", 0, &a, NULL));
    CHECK(dm_read(session, a, rows));
    for (int n = 0; n < N; n++) {
        want[2 * n] = (double)rows[2 * (int)labels[n]] + 0.25;
        want[2 * n + 1] = (double)rows[2 * (int)labels[n] + 1] + 0.25;
    }
    expect(net, "e", 2 * N, want);
    for (int i = 0; i < ALL; i++) {
        want[i] = x[(int)labels[i / (C * H * W)] * C * H * W + i % (C * H * W)];
    }
    expect(net, "b", ALL, want);
    for (int i = 0; i < ALL; i++) {
        want[i] = x[i] + 2;
    }
    expect(net, "s", ALL, want);
    for (int i = 0; i < ALL; i++) {
        want[i] = x[i] > 0 ? x[i] : x[i] / 4;
    }
    expect(net, "p", ALL, want);
    CHECK(dm_net_close(net));
}

/* LSTM: two sequences, the second of which begins anew in the middle; values against loops, then gradients. */
static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static void test_lstm(void **state)
{
    (void)state;
    enum { T = 4, M = 2, D = 3, K = 2 };
    static const float goes_on[T * M] = {0, 0, 1, 1, 1, 0, 1, 1};
    float wx[4 * K * D], b[4 * K], wh[4 * K * K], *const to[] = {wx, b, wh};
    double in[T * M * D], h[M][K] = {{0}}, c[M][K] = {{0}}, want[T * M * K];
    dm_array a, diff;
    dm_net *net = open_text(
        "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' input_param { shape { dim: [4, "
        "2, 5] } shape { dim: [4, 2] } shape { dim: 4 } } }\n"
        "layer { name: 'i' type: 'InnerProduct' bottom: 'data' top: 'i' inner_product_param { num_output: 6 "
        "weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'r' type: 'Reshape' bottom: 'i' top: 'r' reshape_param { shape { dim: [0, 2, 3] } } }\n"
        "layer { name: 'l' type: 'LSTM' bottom: ['r', 'cont'] top: 'l' recurrent_param { num_output: 2 "
        "weight_filler { type: 'gaussian' std: 0.7 }\n"
        " bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } }\n" IP("ip", "l", "4") LOSS("ip"),
        DM_PHASE_TRAIN);
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 4);
    CHECK(dm_net_blob(net, "cont", &a, NULL));
    CHECK(dm_write(session, a, goes_on));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_forward(net, NULL)); /* what the first pass left does not count here */
    for (int p = 0; p < 3; p++) {
        CHECK(dm_net_param(net, "l", p, &a, NULL));
        CHECK(dm_read(session, a, to[p]));
    }
    read_blob(net, "r", in);
    for (int tm = 0; tm < T * M; tm++) {
        double gate[4 * K], k = (double)goes_on[tm], next[K];
        int m = tm % M;
        for (int j = 0; j < 4 * K; j++) {
            gate[j] = (double)b[j];
            for (int d = 0; d < D; d++) {
                gate[j] += (double)wx[j * D + d] * in[tm * D + d];
            }
            for (int d = 0; d < K; d++) {
                gate[j] += (double)wh[j * K + d] * h[m][d] * k;
            }
        }
        for (int d = 0; d < K; d++) {
            c[m][d] = k * sigmoid(gate[K + d]) * c[m][d] + sigmoid(gate[d]) * tanh(gate[3 * K + d]);
            next[d] = want[tm * K + d] = sigmoid(gate[2 * K + d]) * tanh(c[m][d]);
        }
        memcpy(h[m], next, sizeof next);
    }
    expect(net, "l", T * M * K, want);
    for (int p = 0; p < 4; p++) {
        CHECK(dm_net_param(net, p < 3 ? "l" : "i", p % 3, &a, &diff));
        check_direction(net, "LSTM", a, diff, 2e-2);
    }
    CHECK(dm_net_close(net));
}

/* RNN: values against loops, then gradients. */
static void test_rnn(void **state)
{
    (void)state;
    enum { T = 4, M = 2, D = 3, K = 2 };
    static const float goes_on[T * M] = {0, 0, 1, 1, 1, 0, 1, 1};
    float wx[K * D], b[K], wh[K * K], wo[K * K], bo[K], *const to[] = {wx, b, wh, wo, bo};
    double in[T * M * D], h[M][K] = {{0}}, want[T * M * K];
    dm_array a, diff;
    dm_net *net = open_text(
        "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' input_param { shape { dim: [4, "
        "2, 5] } shape { dim: [4, 2] } shape { dim: 4 } } }\n"
        "layer { name: 'i' type: 'InnerProduct' bottom: 'data' top: 'i' inner_product_param { num_output: 6 "
        "weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'r' type: 'Reshape' bottom: 'i' top: 'r' reshape_param { shape { dim: [0, 2, 3] } } }\n"
        "layer { name: 'l' type: 'RNN' bottom: ['r', 'cont'] top: 'l' recurrent_param { num_output: 2 "
        "weight_filler { type: 'gaussian' std: 0.7 }\n"
        " bias_filler { type: 'uniform' min: -0.5 max: 0.5 } } }\n" IP("ip", "l", "4") LOSS("ip"),
        DM_PHASE_TRAIN);
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 4);
    CHECK(dm_net_blob(net, "cont", &a, NULL));
    CHECK(dm_write(session, a, goes_on));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_forward(net, NULL)); /* what the first pass left does not count here */
    for (int p = 0; p < COUNT(to); p++) {
        CHECK(dm_net_param(net, "l", p, &a, NULL));
        CHECK(dm_read(session, a, to[p]));
    }
    read_blob(net, "r", in);
    for (int tm = 0; tm < T * M; tm++) {
        double next[K];
        int m = tm % M;
        for (int j = 0; j < K; j++) {
            next[j] = (double)b[j];
            for (int d = 0; d < D; d++) {
                next[j] += (double)wx[j * D + d] * in[tm * D + d];
            }
            for (int d = 0; d < K; d++) {
                next[j] += (double)wh[j * K + d] * h[m][d] * (double)goes_on[tm];
            }
            next[j] = tanh(next[j]);
        }
        memcpy(h[m], next, sizeof next);
        for (int j = 0; j < K; j++) {
            double sum = (double)bo[j];
            for (int d = 0; d < K; d++) {
                sum += (double)wo[j * K + d] * h[m][d];
            }
            want[tm * K + j] = tanh(sum);
        }
    }
    expect(net, "l", T * M * K, want);
    for (int p = 0; p < 6; p++) {
        CHECK(dm_net_param(net, p < 5 ? "l" : "i", p % 5, &a, &diff));
        check_direction(net, "RNN", a, diff, 2e-2);
    }
    CHECK(dm_net_close(net));
}

/* Stochastic pooling: in training one element of each window, at random, to which the gradient goes; else the
 * weighted mean. */
static void test_stochastic(void **state)
{
    (void)state;
    enum { IMAGES = 3, ROWS = 6, COLS = 4, PLANES = 2 };
    static const char text[] =
        "layer { name: 'x' type: 'Parameter' top: 'x' parameter_param { shape { dim: [3, 2, 6, 4] } } }\n"
        "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param { pool: STOCHASTIC kernel_size: "
        "2 stride: 2 } }\n"
        "layer { name: 's' type: 'Reduction' bottom: 'p' top: 's' loss_weight: 1 }\n";
    float in[IMAGES][ROWS][COLS][PLANES], p[IMAGES][ROWS / 2][COLS / 2][PLANES], g[IMAGES][ROWS][COLS][PLANES];
    int places = 0;
    dm_array a, diff, pooled;
    for (int k = 0; k < IMAGES * ROWS * COLS * PLANES; k++) {
        (&in[0][0][0][0])[k] = fabsf(uniform()) + 0.01F;
    }
    for (int phase = 0; phase < 2; phase++) {
        dm_net *net = open_text(text, phase);
        CHECK(dm_net_param(net, "x", 0, &a, &diff));
        CHECK(dm_net_blob(net, "p", &pooled, NULL));
        CHECK(dm_write(session, a, &in[0][0][0][0]));
        for (int pass = 0; pass < 4; pass++) {
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_read(session, pooled, &p[0][0][0][0]));
            if (phase == DM_PHASE_TRAIN) {
                CHECK(dm_net_backward(net));
                CHECK(dm_read(session, diff, &g[0][0][0][0]));
            }
            for (int i = 0; i < IMAGES * (ROWS / 2) * (COLS / 2) * PLANES; i++) {
                int n = i / (ROWS / 2 * COLS / 2 * PLANES), y = i / (COLS / 2 * PLANES) % (ROWS / 2),
                    col = i / PLANES % (COLS / 2), c = i % PLANES, taken = -1;
                double sum = 0, squares = 0;
                for (int q = 0; q < 4; q++) {
                    double v = (double)in[n][2 * y + q / 2][2 * col + q % 2][c];
                    float d = g[n][2 * y + q / 2][2 * col + q % 2][c];
                    sum += v;
                    squares += v * v;
                    if (phase == DM_PHASE_TRAIN && d != 0) {
                        assert_true(d == 1 && taken < 0 && p[n][y][col][c] == (float)v);
                        taken = q;
                    }
                }
                if (phase == DM_PHASE_TRAIN) {
                    assert_true(taken >= 0);
                    places |= 1 << (taken + 4 * pass);
                } else {
                    assert_true(fabs((double)p[n][y][col][c] - squares / sum) < 1e-6);
                }
            }
        }
        CHECK(dm_net_close(net));
    }
    assert_int_equal(places, 0xffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norms),  cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_scores), cmocka_unit_test(test_weighted),
                                       cmocka_unit_test(test_rnn),    cmocka_unit_test(test_stochastic),
                                       cmocka_unit_test(test_lstm),   cmocka_unit_test(test_gains)};
    return run_on_workers(tests);
}
