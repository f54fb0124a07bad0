/* Convolutions of blobs of 3 dims, and of 5 and more: values and gradients against loops in f64 over Caffe's
 * order, on 1, 2, 3, 5 and 8 workers with the same bits. */
#include "shape_case.h"

enum { SPATIAL = DM_MAX_DIMS - 2 };

typedef struct conv_case {
    shape x;
    int outputs, group, shared, relu, no_bias;
    int64_t kernel[SPATIAL], stride[SPATIAL], pad[SPATIAL], dilation[SPATIAL];
} conv_case;

static const conv_case cases[] = {
    {{3, {7, 3, 9}}, 4, 1, 0, 0, 0, {3}, {2}, {1}, {1}},
    {{3, {7, 4, 8}}, 6, 2, 1, 1, 0, {2}, {1}, {0}, {3}},
    {{3, {3, 1, 1}}, 2, 1, 0, 0, 1, {1}, {1}, {0}, {1}},
    {{5, {7, 2, 4, 3, 3}}, 3, 1, 0, 0, 0, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {{5, {5, 2, 4, 3, 4}}, 4, 2, 1, 1, 0, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 2, 1}},
    {{5, {3, 4, 3, 3, 2}}, 2, 2, 0, 1, 1, {2, 3, 1}, {1, 2, 1}, {2, 1, 0}, {2, 1, 1}},
    {{5, {2, 1, 1, 5, 1}}, 3, 1, 1, 0, 0, {5, 1, 1}, {3, 1, 2}, {2, 0, 0}, {1, 1, 1}}, /* a tap that is padding
                                                                                          alone */
    {{6, {3, 2, 3, 2, 3, 2}}, 2, 1, 0, 0, 0, {2, 2, 2, 1}, {1, 2, 1, 1}, {1, 1, 0, 0}, {1, 1, 2, 1}},
    {{7, {2, 2, 2, 2, 1, 3, 2}},
     4,
     2,
     0,
     1,
     0,
     {2, 1, 1, 2, 2},
     {1, 1, 1, 1, 1},
     {0, 0, 0, 1, 0},
     {1, 1, 1, 1, 1}},
    {{8, {2, 1, 2, 1, 2, 1, 2, 2}},
     2,
     1,
     0,
     0,
     0,
     {2, 1, 1, 1, 2, 1},
     {1, 1, 1, 1, 1, 1},
     {1, 0, 0, 0, 0, 0},
     {1, 1, 1, 1, 1, 1}},
};

static float x[MOST], w[MOST], weights[MOST], bias[MOST], found[MOST];
static double y[MOST], dx[MOST], dw[MOST], db[MOST];

static const char *values(const int64_t *v, int count, char text[96])
{
    shape s = {.ndim = count};
    memcpy(s.at, v, (size_t)count * sizeof *v);
    return dims(&s, text);
}

/* The place in a shape of index i of `count` dims, counted in row-major order. */
static void places(int64_t i, const int64_t *extent, int count, int64_t *at)
{
    for (int d = count - 1; d >= 0; d--) {
        at[d] = i % extent[d];
        i /= extent[d];
    }
}

/* The element of a channel of x that tap `tap` of place `at` reads; -1: padding. */
static int64_t reads(const conv_case *c, const int64_t *at, const int64_t *tap)
{
    int64_t element = 0;
    for (int d = 0; d < c->x.ndim - 2; d++) {
        int64_t place = at[d] * c->stride[d] + tap[d] * c->dilation[d] - c->pad[d];
        if (place < 0 || place >= c->x.at[2 + d]) {
            return -1;
        }
        element = element * c->x.at[2 + d] + place;
    }
    return element;
}

static void loops(const conv_case *c, const shape *sy)
{
    const int spatial = c->x.ndim - 2;
    const int64_t inner = c->x.at[1] / c->group, each = c->outputs / c->group,
                  size = product(&c->x, 2, c->x.ndim);
    const int64_t out = product(sy, 2, sy->ndim), times = 1 + c->shared;
    shape kernel = {.ndim = spatial};
    memcpy(kernel.at, c->kernel, sizeof c->kernel);
    const int64_t taps = elements(&kernel);
    memset(dx, 0, sizeof dx);
    memset(dw, 0, sizeof dw);
    memset(db, 0, sizeof db);
    for (int64_t i = 0; i < elements(sy); i++) {
        const int64_t n = i / out / c->outputs, k = i / out % c->outputs;
        int64_t at[SPATIAL], tap[SPATIAL];
        places(i % out, sy->at + 2, spatial, at);
        y[i] = c->no_bias ? 0 : bias[k];
        for (int back = 0; back < 2; back++) {
            const double d = c->relu && y[i] <= 0 ? 0 : (double)w[i] * (double)times;
            db[k] += back * d;
            for (int64_t t = 0; t < inner * taps; t++) {
                places(t % taps, c->kernel, spatial, tap);
                const int64_t from = reads(c, at, tap), channel = k / each * inner + t / taps;
                const int64_t of_x = (n * c->x.at[1] + channel) * size + from, of_w = k * inner * taps + t;
                if (from >= 0 && !back) {
                    y[i] += (double)x[of_x] * (double)weights[of_w];
                } else if (from >= 0) {
                    dx[of_x] += d * (double)weights[of_w];
                    dw[of_w] += d * (double)x[of_x];
                }
            }
        }
        y[i] = c->relu && y[i] < 0 ? 0 : y[i];
    }
}

static void conv_layer(char *text, size_t room, const conv_case *c, const char *name)
{
    const int spatial = c->x.ndim - 2;
    char kernel[96], stride[96], pad[96], dilation[96];
    size_t n = strlen(text);
    n += (size_t)snprintf(
        text + n, room - n,
        "layer { name: '%s' type: 'Convolution' bottom: 'x' top: '%s' param { name: 'w' } %s convolution_param "
        "{ "
        "num_output: %d group: %d kernel_size: [%s] stride: [%s] pad: [%s] dilation: [%s] bias_term: %s "
        "weight_filler { type: 'gaussian' std: 0.5 } %s } }\n",
        name, name, c->no_bias ? "" : "param { name: 'b' }", c->outputs, c->group,
        values(c->kernel, spatial, kernel), values(c->stride, spatial, stride), values(c->pad, spatial, pad),
        values(c->dilation, spatial, dilation), c->no_bias ? "false" : "true",
        c->no_bias ? "" : "bias_filler { type: 'uniform' min: -1 max: 1 }");
    snprintf(text + n, room - n,
             "%slayer { name: 'm%s' type: 'Eltwise' bottom: ['%s', 'w'] top: 'm%s' eltwise_param { operation: "
             "PROD } "
             "propagate_down: [true, false] }\n"
             "layer { name: 's%s' type: 'Reduction' bottom: 'm%s' top: 's%s' loss_weight: 1 reduction_param { "
             "operation: SUM } }\n",
             c->relu ? (name[0] == 'y' ? "layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'y' }\n"
                                       : "layer { name: 'q' type: 'ReLU' bottom: 'z' top: 'z' }\n")
                     : "",
             name, name, name, name, name, name);
}

static void expect_param(dm_net *net, const char *what, int number, const double *want, int64_t count)
{
    dm_array diff = DM_NO_ARRAY;
    char text[128];
    CHECK(dm_net_param(net, "y", number, NULL, &diff));
    assert_int_equal(count_of(diff), count);
    CHECK(dm_read(session, diff, found));
    snprintf(text, sizeof text, "%s: gradient of parameter %d", what, number);
    expect(text, found, want, count, 5e-5);
}

static void test_values(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        const conv_case *c = &cases[i];
        shape sy = {c->x.ndim, {c->x.at[0], c->outputs}};
        char text[4096] = "force_backward: true\n", what[64];
        int64_t count = c->outputs * c->x.at[1] / c->group, wanted[DM_MAX_DIMS];
        int ndim = 0;
        for (int d = 0; d < c->x.ndim - 2; d++) {
            sy.at[2 + d] =
                (c->x.at[2 + d] + 2 * c->pad[d] - c->dilation[d] * (c->kernel[d] - 1) - 1) / c->stride[d] + 1;
            count *= c->kernel[d];
        }
        input(text, sizeof text, "x", &c->x);
        input(text, sizeof text, "w", &sy);
        conv_layer(text, sizeof text, c, "y");
        if (c->shared) {
            conv_layer(text, sizeof text, c, "z");
        }
        dm_net *net = open_text(text, DM_PHASE_TRAIN);
        fill(x, elements(&c->x));
        fill(w, elements(&sy));
        CHECK(dm_net_write(net, "x", x));
        CHECK(dm_net_write(net, "w", w));
        CHECK(dm_net_param_read(net, "y", 0, &ndim, wanted, weights));
        assert_int_equal(ndim, c->x.ndim);
        if (!c->no_bias) {
            CHECK(dm_net_param_read(net, "y", 1, &ndim, wanted, bias));
        }
        loops(c, &sy);
        for (int pass = 0; pass < 2; pass++) { /* what the first leaves behind is no part of the second */
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_net_backward(net));
        }
        snprintf(what, sizeof what, "case %d", i);
        expect_values(net, what, "y", y, elements(&sy));
        expect_diff(net, what, "x", &c->x, dx);
        expect_param(net, what, 0, dw, count);
        if (!c->no_bias) {
            expect_param(net, what, 1, db, c->outputs);
        }
        CHECK(dm_net_close(net));
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *dims, *fields;
        dm_status status;
        const char *message;
    } bad[] = {
        {"7, 3", "num_output: 2 kernel_size: 1", DM_ERR_SHAPE, "which has 2 dims; it needs 3 or more"},
        {"7, 3, 4, 4, 4", "num_output: 2 kernel_size: [2, 2]", DM_ERR_FORMAT,
         "has 2 values of kernel_size; its bottom has 3 spatial dims"},
        {"7, 3, 4, 4, 4", "num_output: 2 kernel_h: 2 kernel_w: 2", DM_ERR_FORMAT,
         "has kernel_h, but its bottom has 3 spatial dims"},
        {"7, 3, 4", "num_output: 2", DM_ERR_FORMAT, "has no kernel_size"},
        {"7, 3, 4", "num_output: 2 kernel_size: 5", DM_ERR_SHAPE, "has a kernel of 5 along dim 2, which has 4"},
        {"7, 3, 4", "num_output: 2 kernel_size: 2 group: 2", DM_ERR_SHAPE, "has 2 groups"},
        {"7, 3, 4", "num_output: 2 kernel_size: 2 stride: 0", DM_ERR_FORMAT, "has stride 0"},
        {"7, 3, 4", "num_output: 2 kernel_size: 2 axis: 2", DM_ERR_UNSUPPORTED, "has axis 2"},
    };
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [%s] } } }\n"
                 "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { %s } }\n",
                 bad[i].dims, bad[i].fields);
        expect_refusal(text, bad[i].fields, bad[i].status, bad[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_values, begin_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_all_compared),
    };
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
