/* Layers one by one: values, and gradients for a random gradient from above, against formulas and loops in f64.
 */
#include "values.h"

enum { N = 3, C = 4, H = 2, W = 5, ALL = N * C * H * W, MOST = 17 };
#define SHAPE "3, 4, 2, 5"

static float x[MOST][ALL], d[ALL];
static double want[ALL], down[ALL];

/* --- functions of one element; p, q, r: numbers of the row */
typedef double function(double x, const double *p);

static double abs_value(double v, const double *p)
{
    (void)p;
    return fabs(v);
}
static double abs_slope(double v, const double *p)
{
    (void)p;
    return (v > 0) - (v < 0);
}
static double bnll_value(double v, const double *p)
{
    (void)p;
    return log1p(exp(v));
}
static double bnll_slope(double v, const double *p)
{
    (void)p;
    return 1 / (1 + exp(-v));
}
static double elu_value(double v, const double *p)
{
    return v > 0 ? v : p[0] * (exp(v) - 1);
}
static double elu_slope(double v, const double *p)
{
    return v > 0 ? 1 : p[0] * exp(v);
}
static double exp_value(double v, const double *p) /* base, scale, shift */
{
    return pow(p[0], p[2] + p[1] * v);
}
static double exp_slope(double v, const double *p)
{
    return exp_value(v, p) * log(p[0]) * p[1];
}
static double log_value(double v, const double *p) /* base, scale, shift */
{
    return log(p[1] * v + p[2]) / log(p[0]);
}
static double log_slope(double v, const double *p)
{
    return p[1] / (p[1] * v + p[2]) / log(p[0]);
}
static double power_value(double v, const double *p) /* power, scale, shift */
{
    return pow(p[2] + p[1] * v, p[0]);
}
static double power_slope(double v, const double *p)
{
    return p[0] == 0 ? 0 : p[0] * p[1] * pow(p[2] + p[1] * v, p[0] - 1);
}
static double sigmoid_value(double v, const double *p)
{
    (void)p;
    return 1 / (1 + exp(-v));
}
static double sigmoid_slope(double v, const double *p)
{
    double y = sigmoid_value(v, p);
    return y * (1 - y);
}
static double tanh_value(double v, const double *p)
{
    (void)p;
    return 1 - 2 / (exp(2 * v) + 1);
}
static double tanh_slope(double v, const double *p)
{
    (void)p;
    return 1 / (cosh(v) * cosh(v));
}
static double swish_value(double v, const double *p)
{
    return v / (1 + exp(-p[0] * v));
}
static double swish_slope(double v, const double *p)
{
    double s = 1 / (1 + exp(-p[0] * v));
    return s + p[0] * v * s * (1 - s);
}
static double clip_value(double v, const double *p)
{
    return v < p[0] ? p[0] : v > p[1] ? p[1] : v;
}
static double clip_slope(double v, const double *p)
{
    return v >= p[0] && v <= p[1];
}
static double threshold_value(double v, const double *p)
{
    return v > p[0];
}
static double relu_value(double v, const double *p)
{
    return v > 0 ? v : p[0] * v;
}
static double relu_slope(double v, const double *p)
{
    return v > 0 ? 1 : p[0];
}

#define E 2.718281828459045
static const struct {
    const char *type, *fields;
    function *value, *slope; /* slope NULL: none */
    double p[3], low, high;  /* of the bottom's elements */
} functions[] = {
    {"AbsVal", "", abs_value, abs_slope, {0}, -3, 3},
    {"BNLL", "", bnll_value, bnll_slope, {0}, -6, 6},
    {"ELU", "", elu_value, elu_slope, {1}, -3, 3},
    {"ELU", "elu_param { alpha: 0.7 }", elu_value, elu_slope, {0.7}, -3, 3},
    {"Exp", "", exp_value, exp_slope, {E, 1, 0}, -3, 3},
    {"Exp", "exp_param { base: 2 scale: 0.5 shift: -1 }", exp_value, exp_slope, {2, 0.5, -1}, -3, 3},
    {"Exp", "exp_param { base: 10 }", exp_value, exp_slope, {10, 1, 0}, -2, 2},
    {"Log", "", log_value, log_slope, {E, 1, 0}, 0.1, 5},
    {"Log", "log_param { base: 3 scale: 2 shift: 1.5 }", log_value, log_slope, {3, 2, 1.5}, -0.5, 4},
    {"Power", "", power_value, power_slope, {1, 1, 0}, -3, 3},
    {"Power", "power_param { scale: -2 shift: 0.5 }", power_value, power_slope, {1, -2, 0.5}, -3, 3},
    {"Power", "power_param { power: 2 scale: 3 shift: -1 }", power_value, power_slope, {2, 3, -1}, -3, 3},
    {"Power", "power_param { power: 3 scale: 0.5 shift: 0.2 }", power_value, power_slope, {3, 0.5, 0.2}, -3, 3},
    {"Power", "power_param { power: 1.5 scale: 2 shift: 0.3 }", power_value, power_slope, {1.5, 2, 0.3}, 0, 3},
    {"Power", "power_param { power: -1 shift: 0.5 }", power_value, power_slope, {-1, 1, 0.5}, 0, 3},
    {"Power", "power_param { power: 0 shift: 0.5 }", power_value, power_slope, {0, 1, 0.5}, 0, 3},
    {"Sigmoid", "", sigmoid_value, sigmoid_slope, {0}, -5, 5},
    {"TanH", "", tanh_value, tanh_slope, {0}, -3, 3},
    {"Swish", "", swish_value, swish_slope, {1}, -4, 4},
    {"Swish", "swish_param { beta: 1.5 }", swish_value, swish_slope, {1.5}, -4, 4},
    {"Clip", "clip_param { min: -0.5 max: 0.75 }", clip_value, clip_slope, {-0.5, 0.75}, -1, 1},
    {"Threshold", "", threshold_value, NULL, {0}, -1, 1},
    {"Threshold", "threshold_param { threshold: 0.25 }", threshold_value, NULL, {0.25}, -1, 1},
    {"ReLU", "", relu_value, relu_slope, {0}, -1, 1},
    {"ReLU", "relu_param { negative_slope: 0.1 }", relu_value, relu_slope, {0.1}, -1, 1},
    {"ReLU", "relu_param { negative_slope: -0.5 }", relu_value, relu_slope, {-0.5}, -1, 1},
};

static void test_functions(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(functions); i++) {
        char text[512];
        snprintf(text, sizeof text, X_OF(SHAPE) "layer { name: 'l' type: '%s' bottom: 'x' top: 'y' %s }\n",
                 functions[i].type, functions[i].fields);
        dm_net *net = functions[i].slope ? with_gradient(text) : open_text(text, DM_PHASE_TRAIN);
        fill_random(x[0], ALL, functions[i].low, functions[i].high);
        if (functions[i].low <= 0 && functions[i].value != log_value) {
            x[0][7] = 0;
        }
        fill_random(d, ALL, -1, 1);
        for (int k = 0; k < ALL; k++) {
            want[k] = functions[i].value((double)x[0][k], functions[i].p);
            down[k] =
                functions[i].slope ? (double)d[k] * functions[i].slope((double)x[0][k], functions[i].p) : 0;
        }
        CHECK(dm_net_write(net, "x", x[0]));
        if (functions[i].slope) {
            pass(net, d);
            expect_down(net, "x", ALL, down, 2e-6);
        } else {
            CHECK(dm_net_forward(net, NULL));
        }
        expect_blob(net, "y", ALL, want, 2e-6);
        CHECK(dm_net_close(net));
    }
}

/* --- Eltwise: of bottoms for one expression, for two and for three */
enum { SUM, WEIGHTED, PRODUCT, LARGEST };

static double coeff(int how, int i)
{
    return how == WEIGHTED ? (i % 2 ? -0.5 - 0.25 * i : 1 + 0.5 * i) : 1;
}

/* Which of equal largest elements counts: of the first two the second, behind them the first. */
static int largest(int bottoms, int k)
{
    int best = x[1][k] >= x[0][k];
    for (int i = 2; i < bottoms; i++) {
        best = x[i][k] > x[best][k] ? i : best;
    }
    return best;
}

static double joined(int how, int bottoms, int k)
{
    double y = how == PRODUCT ? 1 : 0;
    for (int i = 0; i < bottoms; i++) {
        y = how == PRODUCT ? y * (double)x[i][k] : y + coeff(how, i) * (double)x[i][k];
    }
    return how == LARGEST ? (double)x[largest(bottoms, k)][k] : y;
}

static double share(int how, int bottoms, int i, int k)
{
    double g = how == LARGEST ? largest(bottoms, k) == i : how == PRODUCT ? 1 : coeff(how, i);
    for (int j = 0; j < bottoms && how == PRODUCT; j++) {
        g *= j == i ? 1 : (double)x[j][k];
    }
    return g;
}

/* The inputs x0, x1, ... of one shape, and a layer that reads them. */
static void several(char *text, size_t room, int bottoms, const char *type, const char *fields)
{
    char tops[256] = "";
    for (int i = 0; i < bottoms; i++) {
        snprintf(tops + strlen(tops), sizeof tops - strlen(tops), "%s'x%d'", i ? ", " : "", i);
    }
    snprintf(text, room,
             "layer { name: 'in' type: 'Input' top: [%s] input_param { shape { dim: [" SHAPE "] } } }\n"
             "layer { name: 'l' type: '%s' bottom: [%s] top: 'y' %s }\n",
             tops, type, tops, fields);
}

static void test_eltwise(void **state)
{
    static const char *const operations[] = {"SUM", "SUM", "PROD", "MAX"};
    static const int counts[] = {2, 3, 8, 9, MOST};
    (void)state;
    for (int c = 0; c < COUNT(counts) * 4; c++) {
        int bottoms = counts[c / 4], how = c % 4;
        char text[2048], fields[512];
        size_t n = (size_t)snprintf(fields, sizeof fields, "eltwise_param { operation: %s", operations[how]);
        for (int i = 0; i < bottoms && how == WEIGHTED; i++) {
            n += (size_t)snprintf(fields + n, sizeof fields - n, " coeff: %g", coeff(how, i));
        }
        snprintf(fields + n, sizeof fields - n, " }");
        several(text, sizeof text, bottoms, "Eltwise", fields);
        dm_net *net = with_gradient(text);
        for (int i = 0; i < bottoms; i++) {
            char name[16];
            fill_random(x[i], ALL, -1.5, 1.5);
            for (int k = 0; k < ALL / 2 && how == LARGEST; k++) {
                x[i][k] = roundf(x[i][k]); /* many are equal */
            }
            snprintf(name, sizeof name, "x%d", i);
            CHECK(dm_net_write(net, name, x[i]));
        }
        fill_random(d, ALL, -1, 1);
        pass(net, d);
        for (int k = 0; k < ALL; k++) {
            want[k] = joined(how, bottoms, k);
        }
        expect_blob(net, "y", ALL, want, 3e-6);
        for (int i = 0; i < bottoms; i++) {
            char name[16];
            snprintf(name, sizeof name, "x%d", i);
            for (int k = 0; k < ALL; k++) {
                down[k] = (double)d[k] * share(how, bottoms, i, k);
            }
            expect_down(net, name, ALL, down, 3e-6);
        }
        CHECK(dm_net_close(net));
    }
}

/* --- Concat: element (outer, j, inner) of bottom i is (outer, where the bottom begins + j, inner) of the top.
 */
static void test_concat(void **state)
{
    static const int dims[] = {N, C, H, W};
    (void)state;
    for (int axis = 0; axis < 4; axis++) {
        static float above[3 * ALL];
        static double all[3 * ALL];
        char text[1024], fields[64];
        int inner = 1, along = dims[axis];
        for (int a = axis + 1; a < 4; a++) {
            inner *= dims[a];
        }
        snprintf(fields, sizeof fields, "concat_param { axis: %d }", axis - (axis == 3 ? 4 : 0));
        several(text, sizeof text, 3, "Concat", fields);
        dm_net *net = with_gradient(text);
        for (int i = 0; i < 3; i++) {
            fill_random(x[i], ALL, -1, 1);
            CHECK(dm_net_write(net, (const char *[]){"x0", "x1", "x2"}[i], x[i]));
            for (int k = 0; k < ALL; k++) {
                int outer = k / (along * inner), j = k / inner % along;
                all[(outer * 3 * along + i * along + j) * inner + k % inner] = (double)x[i][k];
            }
        }
        fill_random(above, 3 * ALL, -1, 1);
        pass(net, above);
        expect_blob(net, "y", 3 * ALL, all, 0);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < ALL; k++) {
                int outer = k / (along * inner), j = k / inner % along;
                down[k] = (double)above[(outer * 3 * along + i * along + j) * inner + k % inner];
            }
            expect_down(net, (const char *[]){"x0", "x1", "x2"}[i], ALL, down, 0);
        }
        CHECK(dm_net_close(net));
    }
}

/* --- Flatten: the elements stay in their order, and so do gradients. */
static void test_flatten(void **state)
{
    static const struct {
        const char *from, *fields;
        int ndim;
        int64_t shape[4];
    } cases[] = {{SHAPE, "", 2, {N, C * H * W}},
                 {SHAPE, "flatten_param { axis: 2 }", 3, {N, C, H * W}},
                 {SHAPE, "flatten_param { axis: 1 end_axis: 2 }", 3, {N, C * H, W}},
                 {SHAPE, "flatten_param { axis: -1 }", 4, {N, C, H, W}},
                 {"3, 2, 2, 2, 5", "flatten_param { axis: 1 end_axis: 2 }", 4, {N, C, H, W}},
                 {"3, 2, 2, 2, 5", "flatten_param { axis: 2 }", 3, {N, 2, 20}}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        char text[512];
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        snprintf(text, sizeof text, X_OF("%s") "layer { name: 'l' type: 'Flatten' bottom: 'x' top: 'y' %s }\n",
                 cases[i].from, cases[i].fields);
        dm_net *net = with_gradient(text);
        fill_random(x[0], ALL, -1, 1);
        fill_random(d, ALL, -1, 1);
        for (int k = 0; k < ALL; k++) {
            want[k] = (double)x[0][k];
            down[k] = (double)d[k];
        }
        CHECK(dm_net_write(net, "x", x[0]));
        pass(net, d);
        CHECK(dm_net_shape(net, "y", &ndim, shape));
        assert_int_equal(ndim, cases[i].ndim);
        assert_memory_equal(shape, cases[i].shape, (size_t)ndim * sizeof *shape);
        expect_blob(net, "y", ALL, want, 0);
        expect_down(net, "x", ALL, down, 0);
        CHECK(dm_net_close(net));
    }
}

/* --- Bias: a number for each channel, of the layer or of a blob; for each sample of a blob. */
static void test_bias(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        static const int counts[] = {C, N * C, N}; /* of what is added */
        static const char *const texts[] = {
            X_OF(SHAPE) SIMPLE("l", "Bias", "x", "y", "bias_param { filler { type: 'uniform' } }"),
            "layer { name: 'in' type: 'Input' top: ['x', 'b'] input_param { shape { dim: [" SHAPE
            "] } shape { dim: [3, 4] } } }\n"
            "layer { name: 'l' type: 'Bias' bottom: ['x', 'b'] top: 'y' bias_param { axis: 0 } }\n",
            "layer { name: 'in' type: 'Input' top: ['x', 'b'] input_param { shape { dim: [" SHAPE
            "] } shape { dim: 3 } } }\n"
            "layer { name: 'l' type: 'Bias' bottom: ['x', 'b'] top: 'y' bias_param { axis: 0 } }\n"};
        dm_net *net = with_gradient(texts[kind]);
        float b[N * C];
        double sums[N * C] = {0};
        int ndim = 0;
        int64_t shape[DM_MAX_DIMS];
        fill_random(x[0], ALL, -1, 1);
        fill_random(d, ALL, -1, 1);
        fill_random(b, N * C, -1, 1);
        CHECK(dm_net_write(net, "x", x[0]));
        if (kind == 0) {
            CHECK(dm_net_param_read(net, "l", 0, &ndim, shape, b));
        } else {
            CHECK(dm_net_write(net, "b", b));
        }
        for (int k = 0; k < ALL; k++) {
            int sample = k / (C * H * W), channel = k / (H * W) % C,
                at = kind == 0   ? channel
                     : kind == 1 ? sample * C + channel
                                 : sample;
            want[k] = (double)x[0][k] + (double)b[at];
            down[k] = (double)d[k];
            sums[at] += (double)d[k];
        }
        pass(net, d);
        expect_blob(net, "y", ALL, want, 1e-6);
        expect_down(net, "x", ALL, down, 0);
        if (kind == 0) {
            expect_param(net, "l", 0, counts[kind], sums, 2e-6);
        } else {
            expect_down(net, "b", counts[kind], sums, 2e-6);
        }
        CHECK(dm_net_close(net));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions), cmocka_unit_test(test_eltwise),
                                       cmocka_unit_test(test_concat), cmocka_unit_test(test_flatten),
                                       cmocka_unit_test(test_bias)};
    int failed = run_on_workers(tests);
    free(said);
    return failed;
}
