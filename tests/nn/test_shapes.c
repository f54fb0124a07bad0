/* Layers over other dims than the channels of images: BatchNorm, MVN, Scale, Bias, Flatten, Reshape. Values and
 * gradients against loops in f64 over Caffe's order, on 1, 2, 3, 5 and 8 workers with the same bits; 7 samples
 * in 4 slices. */
#include "weighed_case.h"

static double da[MOST], db[MOST];

/* --- BatchNorm, MVN: elements of one group get mean 0 and deviation 1. group_of: of element k. */
static void test_batch_norm(void **state)
{
    static const shape shapes[] = {
        {2, {7, 3}}, {3, {7, 3, 5}}, {4, {7, 3, 4, 2}}, {5, {7, 3, 2, 2, 2}}, {3, {7, 3, 1}}};
    static const float first[2][3] = {{0.5F, -2, 1}, {3, 0.75F, 2}};
    (void)state;
    for (int i = 0; i < 2 * COUNT(shapes); i++) {
        const shape *s = &shapes[i / 2];
        const bool global = i % 2;
        const int64_t places = product(s, 2, s->ndim), n = 7 * places;
        char what[160], text[96];
        float found[3];
        int ndim = 0;
        int64_t found_shape[DM_MAX_DIMS];
        snprintf(what, sizeof what, "batch norm of [%s]%s", dims(s, text), global ? ", of what was seen" : "");
        dm_net *net =
            open_net("",
                     global ? "layer { name: 'n' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { "
                              "eps: 0.1 use_global_stats: true } }\n" WEIGHED("y")
                            : "layer { name: 'n' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { "
                              "eps: 0.1 moving_average_fraction: 0.75 } }\n" WEIGHED("y"),
                     s, s, DM_PHASE_TRAIN);
        for (int p = 0; p < 3; p++) {
            dm_array a;
            CHECK(dm_net_param(net, "n", p, &a, NULL));
            CHECK(p < 2 ? dm_write(session, a, first[p]) : dm_fill(session, a, 4));
        }
        double seen[2][3];
        for (int64_t c = 0; c < 3; c++) {
            double mean = 0, variance = 0, g = 0, h = 0;
            for (int64_t k = 0; k < elements(s); k++) {
                mean += k / places % 3 == c ? (double)x[k] / (double)n : 0;
            }
            for (int64_t k = 0; k < elements(s); k++) {
                variance += k / places % 3 == c ? pow((double)x[k] - mean, 2) / (double)n : 0;
            }
            seen[0][c] = global ? (double)first[0][c] : 0.75 * (double)first[0][c] + mean;
            seen[1][c] = global ? (double)first[1][c]
                                : 0.75 * (double)first[1][c] + variance * (double)n / (double)(n - 1);
            mean = global ? (double)first[0][c] / 4 : mean;
            variance = global ? (double)first[1][c] / 4 : variance;
            for (int64_t k = 0; k < elements(s); k++) {
                if (k / places % 3 == c) {
                    y[k] = ((double)x[k] - mean) / sqrt(variance + 0.1);
                    g += global ? 0 : (double)w[k] / (double)n;
                    h += global ? 0 : (double)w[k] * y[k] / (double)n;
                }
            }
            for (int64_t k = 0; k < elements(s); k++) {
                dx[k] = k / places % 3 == c ? ((double)w[k] - g - y[k] * h) / sqrt(variance + 0.1) : dx[k];
            }
        }
        run(net);
        expect_values(net, what, "y", y, elements(s));
        expect_diff(net, what, "x", s, dx);
        for (int p = 0; p < 2; p++) {
            CHECK(dm_net_param_read(net, "n", p, &ndim, found_shape, found));
            expect(what, found, seen[p], 3, 1e-5);
        }
        CHECK(dm_net_close(net));
    }
}

static void test_mvn(void **state)
{
    static const shape shapes[] = {{2, {7, 5}}, {3, {7, 3, 5}}, {4, {7, 3, 4, 2}}, {5, {7, 3, 2, 2, 2}}};
    (void)state;
    for (int i = 0; i < 4 * COUNT(shapes); i++) {
        const shape *s = &shapes[i / 4];
        const bool across = i & 1, variances = i & 2;
        const int64_t n = product(s, across ? 1 : 2, s->ndim);
        char what[160], layers[1024], text[96];
        snprintf(what, sizeof what, "mvn of [%s], across %d, variances %d", dims(s, text), across, variances);
        snprintf(layers, sizeof layers,
                 "layer { name: 'n' type: 'MVN' bottom: 'x' top: 'y' mvn_param { across_channels: %s "
                 "normalize_variance: %s eps: 0.01 } }\n" WEIGHED("y"),
                 across ? "true" : "false", variances ? "true" : "false");
        dm_net *net = open_net("", layers, s, s, DM_PHASE_TRAIN);
        for (int64_t from = 0; from < elements(s); from += n) {
            double mean = 0, variance = 0, g = 0, h = 0;
            for (int64_t k = from; k < from + n; k++) {
                mean += (double)x[k] / (double)n;
            }
            for (int64_t k = from; k < from + n; k++) {
                variance += pow((double)x[k] - mean, 2) / (double)n;
            }
            const double by = variances ? sqrt(variance) + 0.01 : 1;
            for (int64_t k = from; k < from + n; k++) {
                y[k] = ((double)x[k] - mean) / by;
                g += (double)w[k] / (double)n;
                h += variances ? (double)w[k] * y[k] / (double)n : 0;
            }
            for (int64_t k = from; k < from + n; k++) { /* as Caffe has it, eps left out of the derivative */
                dx[k] = ((double)w[k] - g - y[k] * h) / by;
            }
        }
        run(net);
        expect_values(net, what, "y", y, elements(s));
        expect_diff(net, what, "x", s, dx);
        CHECK(dm_net_close(net));
    }
}

/* --- Scale and Bias. other: the second bottom's dims; 0: a parameter of num_axes dims. */
static const struct {
    shape x;
    int axis, num_axes, other;
} affine_cases[] = {
    {{4, {7, 3, 4, 2}}, 1, 1, 0},     {{4, {7, 3, 4, 2}}, 1, 2, 0},
    {{4, {7, 3, 4, 2}}, 1, 3, 0},     {{4, {7, 3, 4, 2}}, 1, -1, 0},
    {{4, {7, 3, 4, 2}}, 2, 1, 0},     {{4, {7, 3, 4, 2}}, 2, 2, 0},
    {{4, {7, 3, 4, 2}}, -2, -1, 0},   {{4, {7, 3, 4, 2}}, 3, 1, 0},
    {{4, {7, 3, 4, 2}}, -1, 1, 0},    {{4, {7, 3, 4, 2}}, 1, 0, 0},
    {{3, {7, 3, 5}}, 1, 1, 0},        {{3, {7, 3, 5}}, 1, 2, 0},
    {{3, {7, 3, 5}}, 2, 1, 0},        {{2, {7, 5}}, 1, -1, 0},
    {{5, {7, 2, 3, 2, 4}}, 1, -1, 0}, {{5, {7, 2, 3, 2, 4}}, 2, 2, 0},
    {{4, {7, 3, 4, 2}}, 0, 1, 1},     {{4, {7, 3, 4, 2}}, 0, 1, 2},
    {{4, {7, 3, 4, 2}}, 0, 1, 3},     {{4, {7, 3, 4, 2}}, 0, 1, 4},
    {{4, {7, 3, 4, 2}}, 1, 1, 1},     {{4, {7, 3, 4, 2}}, 1, 1, 2},
    {{4, {7, 3, 4, 2}}, 1, 1, 3},     {{4, {7, 3, 4, 2}}, 2, 1, 1},
    {{4, {7, 3, 4, 2}}, -2, 1, 2},    {{4, {7, 3, 4, 2}}, 3, 1, 1},
    {{3, {7, 3, 5}}, 0, 1, 2},        {{3, {7, 3, 5}}, 1, 1, 2},
    {{3, {7, 3, 5}}, 2, 1, 1},        {{2, {7, 5}}, 1, 1, 1},
    {{5, {7, 2, 3, 2, 4}}, 0, 1, 4},  {{5, {7, 2, 3, 2, 4}}, 1, 1, 4},
    {{5, {7, 2, 3, 2, 4}}, 1, 1, 3},  {{1, {7}}, 0, 1, 1},
    {{4, {7, 3, 4, 2}}, 0, 1, 0},     {{4, {7, 3, 4, 2}}, 0, 2, 0},
    {{4, {7, 3, 4, 2}}, -4, 3, 0},    {{4, {7, 3, 4, 2}}, 0, -1, 0},
    {{3, {7, 3, 5}}, 0, 2, 0},        {{2, {7, 5}}, 0, -1, 0},
    {{5, {7, 2, 3, 2, 4}}, 0, 3, 0},  {{1, {7}}, 0, 1, 0},
};

/* The gradient of a parameter in Caffe's order: that of several dims of an image lies with the channels last.
 */
static void expect_param_diff(dm_net *net, const char *what, int p, const shape *s, int axis, bool image,
                              const double *want)
{
    static float lying[MOST], found[MOST];
    dm_array diff = DM_NO_ARRAY;
    char text[256];
    shape folded = {4, {1, 1, 1, 1}};
    for (int d = 0; image && d < s->ndim; d++) {
        folded.at[axis + d] = s->at[d];
    }
    CHECK(dm_net_param(net, "s", p, NULL, &diff));
    assert_int_equal(count_of(diff), elements(s));
    CHECK(dm_read(session, diff, lying));
    if (image) {
        to_caffe(&folded, lying, found);
    } else {
        memcpy(found, lying, (size_t)elements(s) * sizeof *found);
    }
    snprintf(text, sizeof text, "%s: gradient of parameter %d", what, p);
    expect(text, found, want, elements(s), 2e-5);
}

static void test_affine(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * COUNT(affine_cases); i++) {
        const shape *s = &affine_cases[i / 3].x;
        const int given = affine_cases[i / 3].axis, axis = given < 0 ? given + s->ndim : given;
        const int other = affine_cases[i / 3].other, asked = affine_cases[i / 3].num_axes;
        const int n = other ? other : asked < 0 ? s->ndim - axis : asked;
        const bool scale = i % 3 != 2, biased = i % 3 == 1;
        const int64_t inner = product(s, axis + n, s->ndim);
        shape sa = {n, {0}};
        char what[160], layers[1024], more[256] = "", text[96];
        static float a[MOST], b[MOST];
        memcpy(sa.at, s->at + axis, (size_t)n * sizeof *sa.at);
        if (other) {
            input(more, sizeof more, "a", &sa);
        }
        snprintf(what, sizeof what, "%s of [%s] from dim %d, %d dims, %s", scale ? "scale" : "bias",
                 dims(s, text), given, n, other ? "a bottom" : "a parameter");
        snprintf(layers, sizeof layers,
                 "layer { name: 's' type: '%s' bottom: [%s] top: 'y' %s_param { axis: %d num_axes: %d filler { "
                 "type: "
                 "'gaussian' std: 1 } %s } }\n" WEIGHED("y"),
                 scale ? "Scale" : "Bias", other ? "'x', 'a'" : "'x'", scale ? "scale" : "bias", given, asked,
                 biased ? "bias_term: true bias_filler { type: 'gaussian' std: 1 }" : "");
        if (other) { /* a filler has no effect there */
            char *from = strstr(layers, "filler { type: 'gaussian' std: 1 }");
            memset(from, ' ', strlen("filler { type: 'gaussian' std: 1 }"));
        }
        dm_net *net = open_net(more, layers, s, s, DM_PHASE_TRAIN);
        int ndim = 0, params = 0;
        int64_t found_shape[DM_MAX_DIMS];
        if (other) {
            fill(a, elements(&sa));
            CHECK(dm_net_write(net, "a", a));
        } else {
            CHECK(dm_net_param_read(net, "s", params++, &ndim, found_shape, a));
            assert_int_equal(ndim, n);
            assert_memory_equal(found_shape, sa.at, (size_t)n * sizeof *sa.at);
        }
        if (biased) {
            CHECK(dm_net_param_read(net, "s", params, &ndim, found_shape, b));
        }
        memset(da, 0, sizeof da);
        memset(db, 0, sizeof db);
        for (int64_t k = 0; k < elements(s); k++) {
            const int64_t j = k / inner % elements(&sa);
            const double factor = scale ? (double)a[j] : 1;
            y[k] = (double)x[k] * factor + (scale ? biased ? (double)b[j] : 0 : (double)a[j]);
            dx[k] = (double)w[k] * factor;
            da[j] += (double)w[k] * (scale ? (double)x[k] : 1);
            db[j] += (double)w[k];
        }
        const bool turned = s->ndim == 4 && axis < 2 && axis + n > 2;
        run(net);
        expect_values(net, what, "y", y, elements(s));
        expect_diff(net, what, "x", s, dx);
        if (other) {
            expect_diff(net, what, "a", &sa, da);
        } else {
            expect_param_diff(net, what, 0, &sa, axis, turned, da);
        }
        if (biased) {
            expect_param_diff(net, what, params, &sa, axis, turned, db);
        }
        CHECK(dm_net_close(net));
    }
}

/* A scale of one number that another layer makes. */
static void test_one_number(void **state)
{
    static const shape s = {4, {7, 3, 4, 2}};
    const int64_t count = elements(&s);
    double sum = 0, dot = 0;
    (void)state;
    dm_net *net = open_net("",
                           "layer { name: 'm' type: 'Reduction' bottom: 'x' top: 'm' }\n"
                           "layer { name: 's' type: 'Scale' bottom: ['x', 'm'] top: 'y' }\n" WEIGHED("y"),
                           &s, &s, DM_PHASE_TRAIN);
    for (int64_t k = 0; k < count; k++) {
        sum += (double)x[k];
        dot += (double)x[k] * (double)w[k];
    }
    for (int64_t k = 0; k < count; k++) {
        y[k] = (double)x[k] * sum;
        dx[k] = (double)w[k] * sum + dot;
    }
    run(net);
    expect_values(net, "scale by a sum", "y", y, count);
    expect_diff(net, "scale by a sum", "x", &s, dx);
    CHECK(dm_net_close(net));
}

/* Channels gated by what is made of them, as in squeeze-and-excitation nets: two ways to write it, one result.
 */
static void test_gates(void **state)
{
    static const shape s = {4, {7, 3, 4, 2}};
    static const char pooled[] =
        "layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'pool' pooling_param { pool: AVE "
        "global_pooling: true } }\nlayer { name: 'gate' type: 'Sigmoid' bottom: 'pool' top: "
        "'gate' }\n";
    static const char *const ways[] = {
        "layer { name: 'flat' type: 'Flatten' bottom: 'gate' top: 'flat' }\n"
        "layer { name: 's' type: 'Scale' bottom: ['x', 'flat'] top: 'y' scale_param { axis: 0 } }\n" WEIGHED(
            "y"),
        "layer { name: 'flat' type: 'Reshape' bottom: 'gate' top: 'flat' reshape_param { shape { dim: [0, -1] "
        "} } }\n"
        "layer { name: 's' type: 'Scale' bottom: ['x', 'flat'] top: 'y' scale_param { axis: 0 } }\n" WEIGHED(
            "y")};
    (void)state;
    for (int i = 0; i < 2; i++) {
        dm_net *net = open_net(pooled, ways[i], &s, &s, DM_PHASE_TRAIN);
        for (int64_t from = 0; from < elements(&s); from += 8) {
            double mean = 0, dot = 0;
            for (int64_t k = from; k < from + 8; k++) {
                mean += (double)x[k] / 8;
                dot += (double)x[k] * (double)w[k];
            }
            const double gate = 1 / (1 + exp(-mean));
            for (int64_t k = from; k < from + 8; k++) {
                y[k] = (double)x[k] * gate;
                dx[k] = (double)w[k] * gate + dot * gate * (1 - gate) / 8;
            }
        }
        run(net);
        expect_values(net, "gates", "y", y, elements(&s));
        expect_diff(net, "gates", "x", &s, dx);
        CHECK(dm_net_close(net));
    }
}

/* --- Flatten, Reshape: the same elements in Caffe's order */
static void expect_same_elements(const char *layer, const shape *s, const shape *top)
{
    char layers[1024];
    int64_t found[DM_MAX_DIMS];
    int ndim = 0;
    snprintf(layers, sizeof layers, "%s" WEIGHED("y"), layer);
    dm_net *net = open_net("", layers, s, top, DM_PHASE_TRAIN);
    CHECK(dm_net_shape(net, "y", &ndim, found));
    assert_int_equal(ndim, top->ndim);
    assert_memory_equal(found, top->at, (size_t)ndim * sizeof *found);
    for (int64_t k = 0; k < elements(s); k++) {
        y[k] = (double)x[k];
        dx[k] = (double)w[k];
    }
    run(net);
    expect_values(net, layer, "y", y, elements(s));
    expect_diff(net, layer, "x", s, dx);
    CHECK(dm_net_close(net));
}

static void test_flatten(void **state)
{
    static const shape shapes[] = {{2, {7, 5}}, {3, {7, 3, 5}}, {4, {7, 3, 4, 2}}, {5, {7, 3, 2, 2, 4}}};
    (void)state;
    for (int i = 0; i < COUNT(shapes); i++) {
        const shape *s = &shapes[i];
        for (int first = 0; first < s->ndim; first++) {
            for (int last = first; last < s->ndim; last++) {
                char layer[256];
                shape top = {0, {0}};
                snprintf(layer, sizeof layer,
                         "layer { name: 'f' type: 'Flatten' bottom: 'x' top: 'y' flatten_param { axis: %d "
                         "end_axis: %d "
                         "} }\n",
                         first % 2 ? first : first - s->ndim, last - s->ndim);
                for (int d = 0; d < s->ndim; d++) {
                    if (d > first && d <= last) {
                        top.at[top.ndim - 1] *= s->at[d];
                    } else {
                        top.at[top.ndim++] = s->at[d];
                    }
                }
                expect_same_elements(layer, s, &top);
            }
        }
    }
}

static void test_reshape(void **state)
{
    static const struct {
        shape x;
        const char *fields;
        shape top;
    } cases[] = {
        {{4, {7, 3, 4, 2}}, "shape { dim: [0, -1] }", {2, {7, 24}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: [0, 0, -1] }", {3, {7, 3, 8}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: [7, 4, 2, 3] }", {4, {7, 4, 2, 3}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: [-1, 2, 3, 2, 2] }", {5, {7, 2, 3, 2, 2}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: 12 } axis: 1 num_axes: 2", {3, {7, 12, 2}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: [2, 2] } axis: 2 num_axes: 1", {5, {7, 3, 2, 2, 2}}},
        {{4, {7, 3, 4, 2}}, "shape { dim: [0, 2, 0, -1] } axis: 1", {5, {7, 3, 2, 2, 2}}},
        {{3, {7, 3, 8}}, "shape { dim: [1, 1] } axis: -1 num_axes: 0", {5, {7, 3, 8, 1, 1}}},
        {{3, {7, 3, 8}}, "shape { dim: 1 } axis: 1 num_axes: 0", {4, {7, 1, 3, 8}}},
        {{4, {7, 1, 3, 8}}, "shape { } axis: 1 num_axes: 1", {3, {7, 3, 8}}},
        {{3, {7, 3, 8}}, "shape { dim: [2, -1] } axis: -2", {4, {7, 3, 2, 4}}},
        {{2, {7, 24}}, "shape { dim: [0, 2, 3, -1] }", {4, {7, 2, 3, 4}}},
        /* samples lie elsewhere then */
        {{2, {12, 5}}, "shape { dim: [3, 4, 5] }", {3, {3, 4, 5}}},
        {{3, {3, 4, 5}}, "shape { dim: [-1, 5] }", {2, {12, 5}}},
        {{2, {6, 5}}, "shape { dim: [10, 3] }", {2, {10, 3}}},
        {{2, {7, 5}}, "shape { dim: [5, 7] }", {2, {5, 7}}},
        {{4, {4, 6, 2, 3}}, "shape { dim: [8, 3, 0, 0] }", {4, {8, 3, 2, 3}}},
        {{4, {4, 6, 2, 3}}, "shape { dim: [3, 2, 4, 6] }", {4, {3, 2, 4, 6}}},
        {{4, {4, 6, 2, 3}}, "shape { dim: 1 } axis: 0 num_axes: 0", {5, {1, 4, 6, 2, 3}}},
        {{5, {1, 4, 3, 2, 2}}, "shape { } axis: 0 num_axes: 1", {4, {4, 3, 2, 2}}},
        {{2, {64, 60}}, "shape { dim: [16, 4, -1] }", {3, {16, 4, 60}}},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char layer[256];
        snprintf(layer, sizeof layer,
                 "layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'y' reshape_param { %s } }\n",
                 cases[i].fields);
        expect_same_elements(layer, &cases[i].x, &cases[i].top);
    }
}

/* --- nets of 16 bits: as nets of f32, to their rounding */
static const char all_layers[] = FORCED INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3 pad: 1") SIMPLE(
    "h", "Scale", "c", "h",
    "scale_param { num_axes: -1 filler { type: 'gaussian' std: 1 } bias_term: true }") SIMPLE("t", "Reshape",
                                                                                              "h", "t",
                                                                                              "reshape_param { "
                                                                                              "shape { dim: "
                                                                                              "[0, 0, -1] } }")
    SIMPLE("n", "BatchNorm", "t", "n", "batch_norm_param { eps: 0.1 }") SIMPLE(
        "q", "Softmax", "n", "q",
        "softmax_param { axis: 2 }") "layer { name: 'v' type: 'Parameter' top: 'v' "
                                     "parameter_param { shape { dim: [4, 42] } } }\n"
                                     "layer { name: 'g' type: 'Bias' bottom: ['q', "
                                     "'v'] top: 'g' }\n" IP("ip", "g", "12") SIMPLE(
                                         "r", "Reshape", "ip", "r",
                                         "reshape_param { shape { dim: [0, 4, 3, 1] } }")
                                         SIMPLE("k", "Reshape", "label", "k",
                                                "reshape_param { shape { dim: [0, 1, 1] } }")
                                             SIMPLE(
                                                 "u", "Tile", "k", "u",
                                                 "tile_param { axis: 1 tiles: 4 }") "layer { name: 'loss' "
                                                                                    "type: "
                                                                                    "'SoftmaxWithLoss' bottom: "
                                                                                    "['r', 'u'] top: 'loss' "
                                                                                    "propagate_down: [true, "
                                                                                    "false] softmax_param { "
                                                                                    "axis: "
                                                                                    "2 } }\n";

static void gradients_of(dm_dtype type, double *loss, float *at, int64_t *count)
{
    static const char *const layers[] = {"c", "h", "h", "v", "ip"};
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.type = type;
    random_state = 3;
    CHECK(dm_net_open_text(session, all_layers, NULL, &options, &net));
    fill(x, 6 * 3 * 7 * 6);
    CHECK(dm_net_write(net, "data", x));
    CHECK(dm_net_write(net, "label", (const float[]){0, 1, 2, 2, 0, 1}));
    CHECK(dm_net_forward(net, loss));
    CHECK(dm_net_backward(net));
    *count = 0;
    for (int i = 0; i < COUNT(layers); i++) {
        dm_array diff;
        CHECK(dm_net_param(net, layers[i], i == 2, NULL, &diff));
        CHECK(dm_read(session, diff, at + *count));
        *count += count_of(diff);
        assert_true(*count <= MOST);
    }
    CHECK(dm_net_close(net));
}

static void test_short_types(void **state)
{
    static const struct {
        dm_dtype type;
        double most;
    } types[] = {{DM_BF16, 0.06}, {DM_F16, 0.01}};
    static float want[MOST], got[MOST];
    double loss = 0, close = 0;
    int64_t count = 0, same = 0;
    (void)state;
    gradients_of(DM_F32, &loss, want, &count);
    keep("all layers", want, count);
    for (int t = 0; t < COUNT(types); t++) {
        double error = 0, size = 0;
        gradients_of(types[t].type, &close, got, &same);
        assert_int_equal(same, count);
        for (int64_t k = 0; k < count; k++) {
            error += pow((double)got[k] - (double)want[k], 2);
            size += pow((double)want[k], 2);
        }
        if (!(fabs(close - loss) <= types[t].most / 4 * loss) || !(sqrt(error) <= types[t].most * sqrt(size))) {
            fail_msg("type %d: loss %g, not %g; gradients are off by %g of %g", t, close, loss, sqrt(error),
                     sqrt(size));
        }
        keep("all layers in 16 bits", got, count);
    }
}

/* --- what is refused, and why */
static void test_refusals(void **state)
{
    static const struct {
        const char *dims, *labels, *layer;
        dm_status status;
        const char *message;
    } cases[] = {
        {"7, 3, 5", "3, 7", "type: 'SoftmaxWithLoss' bottom: ['x', 'l'] softmax_param { axis: -3 }",
         DM_ERR_SHAPE, "reads 21 labels 'l', but 'x' has 15 vectors of scores along dim 0"},
        {"7, 3, 5", "7, 5", "type: 'Softmax' bottom: 'x' softmax_param { axis: 3 }", DM_ERR_SHAPE,
         "has axis 3, but its bottom has 3 dims"},
        {"7, 3, 5", "7, 3", "type: 'SoftmaxWithLoss' bottom: ['x', 'l']", DM_ERR_SHAPE,
         "reads 21 labels 'l', but 'x' has 35 vectors of scores along dim 1"},
        {"7, 3, 5", "34", "type: 'Accuracy' bottom: ['x', 'l']", DM_ERR_SHAPE, "reads 34 labels 'l'"},
        {"7, 3, 5", "7, 5", "type: 'Accuracy' bottom: ['x', 'l'] accuracy_param { top_k: 4 }", DM_ERR_FORMAT,
         "has top_k 4, but there are 3 scores"},
        {"7, 3, 5", "7, 3, 4", "type: 'SigmoidCrossEntropyLoss' bottom: ['x', 'l']", DM_ERR_SHAPE,
         "reads 7 samples with 105 scores 'x', but 7 samples with 84 targets 'l'"},
        {"7, 3", "3, 7", "type: 'SigmoidCrossEntropyLoss' bottom: ['x', 'l']", DM_ERR_SHAPE,
         "but 3 samples with 21 targets"},
        {"7", "7", "type: 'BatchNorm' bottom: 'x'", DM_ERR_SHAPE, "reads 'x', which has no channels"},
        {"7", "7", "type: 'MVN' bottom: 'x'", DM_ERR_SHAPE, "reads 'x', which has no channels"},
        {"7, 3, 5", "7", "type: 'Bias' bottom: 'x' bias_param { axis: 1 num_axes: 3 }", DM_ERR_SHAPE,
         "takes 3 dims from 1 on, which 'x' does not have so"},
        {"7, 3, 5", "7", "type: 'Scale' bottom: 'x' scale_param { num_axes: -2 }", DM_ERR_SHAPE,
         "dims from 1 on"},
        {"7, 3, 5", "5", "type: 'Scale' bottom: ['x', 'l']", DM_ERR_SHAPE, "takes 1 dims from 1 on"},
        {"7, 3, 5, 2", "7",
         "type: 'Scale' bottom: 'x' scale_param { num_axes: 2 filler { type: 'positive_unitball' } }",
         DM_ERR_UNSUPPORTED, "has the filler positive_unitball"},
        {"7, 3, 5", "7", "type: 'Flatten' bottom: 'x' flatten_param { axis: 1 end_axis: 0 }", DM_ERR_SHAPE,
         "flattens dims 1 to 0"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: ['x', 'l'] input_param { shape { dim: [%s] } shape { "
                 "dim: [%s] "
                 "} } }\nlayer { name: 'it' top: 'y' %s }\n",
                 cases[i].dims, cases[i].labels, cases[i].layer);
        expect_refusal(text, cases[i].layer, cases[i].status, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_batch_norm, begin_again),
        cmocka_unit_test_setup(test_mvn, begin_again),
        cmocka_unit_test_setup(test_affine, begin_again),
        cmocka_unit_test_setup(test_one_number, begin_again),
        cmocka_unit_test_setup(test_gates, begin_again),
        cmocka_unit_test_setup(test_flatten, begin_again),
        cmocka_unit_test_setup(test_reshape, begin_again),
        cmocka_unit_test_setup(test_short_types, begin_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_all_compared),
    };
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
