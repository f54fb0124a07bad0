/* Convolution, Deconvolution and Im2col of blobs of any dims and by any axis: values and gradients against
 * loops in f64 over Caffe's order, in f32 and bf16, on 1, 2, 3, 5 and 8 workers with the same bits. */
#include "shape_case.h"
#include "values.h"

enum { SPATIAL = DM_MAX_DIMS - 2 };

typedef struct conv_case {
    shape x;
    int axis, outputs, group, shared, relu, no_bias;
    int64_t kernel[SPATIAL], stride[SPATIAL], pad[SPATIAL], dilation[SPATIAL];
} conv_case;

static const conv_case cases[] = {
    {{3, {7, 3, 9}}, 1, 4, 1, 0, 0, 0, {3}, {2}, {1}, {1}},
    {{3, {7, 4, 8}}, 1, 6, 2, 1, 1, 0, {2}, {1}, {0}, {3}},
    {{3, {3, 1, 1}}, 1, 2, 1, 0, 0, 1, {1}, {1}, {0}, {1}},
    {{5, {7, 2, 4, 3, 3}}, 1, 3, 1, 0, 0, 0, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {{5, {5, 2, 4, 3, 4}}, 1, 4, 2, 1, 1, 0, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 2, 1}},
    {{5, {3, 4, 3, 3, 2}}, 1, 2, 2, 0, 1, 1, {2, 3, 1}, {1, 2, 1}, {2, 1, 0}, {2, 1, 1}},
    {{5, {2, 1, 1, 5, 1}}, 1, 3, 1, 1, 0, 0, {5, 1, 1}, {3, 1, 2}, {2, 0, 0}, {1, 1, 1}}, /* a tap that is
                                                                                             padding alone */
    {{6, {3, 2, 3, 2, 3, 2}}, 1, 2, 1, 0, 0, 0, {2, 2, 2, 1}, {1, 2, 1, 1}, {1, 1, 0, 0}, {1, 1, 2, 1}},
    {{7, {2, 2, 2, 2, 1, 3, 2}},
     1,
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
     1,
     2,
     1,
     0,
     0,
     0,
     {2, 1, 1, 1, 2, 1},
     {1, 1, 1, 1, 1, 1},
     {1, 0, 0, 0, 0, 0},
     {1, 1, 1, 1, 1, 1}},
    /* images, by axis 1 as other layers have them; windows that leave elements out */
    {{4, {3, 4, 5, 4}}, -3, 6, 2, 1, 1, 0, {2, 3}, {3, 4}, {0, 1}, {1, 1}},
    /* other axes: dims before them are of the batch; of 4 dims the arrays have dim 1 last */
    {{4, {5, 3, 2, 7}}, 2, 4, 2, 1, 1, 0, {3}, {2}, {1}, {1}},
    {{4, {7, 2, 3, 4}}, 3, 6, 2, 0, 0, 0, {0}, {0}, {0}, {0}},
    {{2, {7, 4}}, 1, 3, 1, 1, 1, 0, {0}, {0}, {0}, {0}},
    {{5, {3, 2, 3, 5, 4}}, 2, 6, 3, 1, 1, 0, {3, 2}, {1, 2}, {1, 0}, {1, 2}},
    {{5, {3, 2, 2, 2, 6}}, -2, 3, 1, 0, 0, 1, {4}, {3}, {2}, {1}},
    {{6, {3, 2, 2, 3, 3, 2}}, 2, 2, 2, 1, 0, 0, {2, 2, 1}, {2, 1, 1}, {1, 0, 0}, {1, 2, 1}},
    {{7, {2, 2, 1, 2, 3, 2, 2}}, 3, 3, 1, 0, 1, 0, {3, 1, 2}, {1, 1, 1}, {1, 0, 0}, {1, 1, 1}},
};

typedef enum layer_kind { CONV, DECONV, COLUMNS, KINDS } layer_kind;
static const char *const types[] = {"Convolution", "Deconvolution", "Im2col"};

static float x[MOST], w[MOST], weights[MOST], bias[MOST], found[MOST];
static double y[MOST], dx[MOST], dw[MOST], db[MOST], d[MOST];

static const char *values(const int64_t *v, int count, char text[96])
{
    shape s = {.ndim = count};
    memcpy(s.at, v, (size_t)count * sizeof *v);
    return dims(&s, text);
}

static int axis_of(const conv_case *c)
{
    return c->axis < 0 ? c->axis + c->x.ndim : c->axis;
}

/* The place in a shape of index i of `count` dims, counted in row-major order. */
static void places(int64_t i, const int64_t *extent, int count, int64_t *at)
{
    for (int k = count - 1; k >= 0; k--) {
        at[k] = i % extent[k];
        i /= extent[k];
    }
}

/* The element of a channel that tap `tap` of window `at` takes; -1: padding. */
static int64_t takes(const conv_case *c, const int64_t *from, int spatial, const int64_t *at,
                     const int64_t *tap)
{
    int64_t element = 0;
    for (int k = 0; k < spatial; k++) {
        int64_t place = at[k] * c->stride[k] + tap[k] * c->dilation[k] - c->pad[k];
        if (place < 0 || place >= from[k]) {
            return -1;
        }
        element = element * from[k] + place;
    }
    return element;
}

typedef struct reach {
    int spatial;
    int64_t batch, taps, from, windows; /* numbers of elements; from, windows: of a channel */
    const int64_t *extents, *counts;    /* of these */
} reach;

static reach reach_of(const conv_case *c, layer_kind kind, const shape *sy)
{
    const int axis = axis_of(c), spatial = c->x.ndim - axis - 1;
    const shape *from = kind == DECONV ? sy : &c->x, *windows = kind == DECONV ? &c->x : sy;
    reach r = {.spatial = spatial, .batch = product(&c->x, 0, axis), .taps = 1};
    for (int k = 0; k < spatial; k++) {
        r.taps *= c->kernel[k];
    }
    r.from = product(from, axis + 1, from->ndim);
    r.windows = product(windows, axis + 1, windows->ndim);
    r.extents = from->at + axis + 1;
    r.counts = windows->at + axis + 1;
    return r;
}

/* For each window, tap and pair of channels that meet: y += ..., or the gradients += .... */
static void visit(const conv_case *c, layer_kind kind, const shape *sy, bool back)
{
    const reach r = reach_of(c, kind, sy);
    const int64_t channels = c->x.at[axis_of(c)], by = kind == DECONV ? c->outputs : channels,
                  of = kind == DECONV ? channels : c->outputs, inner = by / c->group, each = of / c->group;
    for (int64_t i = 0; i < r.batch * of * r.windows * inner * r.taps; i++) {
        const int64_t t = i % r.taps, in = i / r.taps % inner, window = i / r.taps / inner % r.windows,
                      o = i / r.taps / inner / r.windows % of, n = i / r.taps / inner / r.windows / of;
        int64_t at[SPATIAL], tap[SPATIAL];
        places(window, r.counts, r.spatial, at);
        places(t, c->kernel, r.spatial, tap);
        const int64_t element = takes(c, r.extents, r.spatial, at, tap);
        const int64_t far = (n * by + o / each * inner + in) * r.from + element,
                      near = (n * of + o) * r.windows + window, of_w = (o * inner + in) * r.taps + t,
                      of_x = kind == DECONV ? near : far, of_y = kind == DECONV ? far : near;
        if (element < 0) {
            continue;
        }
        if (!back) {
            y[of_y] += (double)x[of_x] * (double)weights[of_w];
        } else {
            dx[of_x] += d[of_y] * (double)weights[of_w];
            dw[of_w] += d[of_y] * (double)x[of_x];
        }
    }
}

static void visit_columns(const conv_case *c, const shape *sy, bool back)
{
    const reach r = reach_of(c, COLUMNS, sy);
    for (int64_t i = 0; i < elements(sy); i++) {
        int64_t at[SPATIAL], tap[SPATIAL];
        const int64_t row = i / r.windows; /* of the batch, a channel and a tap */
        places(i % r.windows, r.counts, r.spatial, at);
        places(row % r.taps, c->kernel, r.spatial, tap);
        const int64_t element = takes(c, r.extents, r.spatial, at, tap);
        const int64_t of_x = row / r.taps * r.from + element;
        if (element >= 0 && back) {
            dx[of_x] += d[i];
        } else if (element >= 0) {
            y[i] += (double)x[of_x];
        }
    }
}

static void forward_loops(const conv_case *c, layer_kind kind, const shape *sy)
{
    const reach r = reach_of(c, kind, sy);
    const int64_t size = kind == DECONV ? r.from : r.windows;
    for (int64_t i = 0; i < elements(sy); i++) {
        y[i] = kind != COLUMNS && !c->no_bias ? bias[i / size % c->outputs] : 0;
    }
    if (kind == COLUMNS) {
        visit_columns(c, sy, false);
        return;
    }
    visit(c, kind, sy, false);
    for (int64_t i = 0; c->relu && i < elements(sy); i++) {
        y[i] = y[i] < 0 ? 0 : y[i];
    }
}

/* made: y as the net has it. A sum of numbers that were rounded may have the other sign, which ReLU looks at.
 */
static void backward_loops(const conv_case *c, layer_kind kind, const shape *sy, const float *made)
{
    const reach r = reach_of(c, kind, sy);
    const int64_t size = kind == DECONV ? r.from : r.windows;
    const bool relu = kind != COLUMNS && c->relu, shared = kind != COLUMNS && c->shared;
    memset(dx, 0, sizeof dx);
    memset(dw, 0, sizeof dw);
    memset(db, 0, sizeof db);
    for (int64_t i = 0; i < elements(sy); i++) {
        d[i] = relu && made[i] <= 0 ? 0 : (double)w[i] * (1 + shared);
        db[kind == COLUMNS ? 0 : i / size % c->outputs] += d[i];
    }
    if (kind == COLUMNS) {
        visit_columns(c, sy, true);
    } else {
        visit(c, kind, sy, true);
    }
}

static void fields(char *text, size_t room, const conv_case *c, layer_kind kind)
{
    const int spatial = c->x.ndim - axis_of(c) - 1;
    char kernel[96], stride[96], pad[96], dilation[96];
    size_t n = (size_t)snprintf(text, room, "axis: %d ", c->axis);
    if (spatial > 0) {
        n += (size_t)snprintf(text + n, room - n, "kernel_size: [%s] stride: [%s] pad: [%s] dilation: [%s] ",
                              values(c->kernel, spatial, kernel), values(c->stride, spatial, stride),
                              values(c->pad, spatial, pad), values(c->dilation, spatial, dilation));
    }
    if (kind != COLUMNS) {
        snprintf(text + n, room - n,
                 "num_output: %d group: %d bias_term: %s weight_filler { type: 'gaussian' std: 0.5 } %s",
                 c->outputs, c->group, c->no_bias ? "false" : "true",
                 c->no_bias ? "" : "bias_filler { type: 'uniform' min: -1 max: 1 }");
    }
}

static void conv_layer(char *text, size_t room, const conv_case *c, layer_kind kind, const char *name)
{
    char own[1024];
    size_t n = strlen(text);
    fields(own, sizeof own, c, kind);
    n += (size_t)snprintf(
        text + n, room - n,
        "layer { name: '%s' type: '%s' bottom: 'x' top: '%s' %s %s convolution_param { %s } }\n", name,
        types[kind], name, kind == COLUMNS ? "" : "param { name: 'w' }",
        kind == COLUMNS || c->no_bias ? "" : "param { name: 'b' }", own);
    if (c->relu && kind != COLUMNS) {
        n += (size_t)snprintf(text + n, room - n, "layer { name: 'r%s' type: 'ReLU' bottom: '%s' top: '%s' }\n",
                              name, name, name);
    }
    snprintf(
        text + n, room - n,
        "layer { name: 'm%s' type: 'Eltwise' bottom: ['%s', 'w'] top: 'm%s' eltwise_param { operation: PROD } "
        "propagate_down: [true, false] }\n"
        "layer { name: 's%s' type: 'Reduction' bottom: 'm%s' top: 's%s' loss_weight: 1 reduction_param { "
        "operation: SUM } }\n",
        name, name, name, name, name, name);
}

/* Numbers that bf16 holds. */
static void fill_short(float *to, int64_t count)
{
    fill(to, count);
    for (int64_t i = 0; i < count; i++) {
        to[i] = rintf(to[i] * 32) / 32;
    }
}

/* As layers round weights for nets of bf16: to nearest, ties to even. */
static float rounded(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void expect_learned(dm_net *net, const char *what, int number, const double *want, int64_t count,
                           double tolerance)
{
    dm_array diff = DM_NO_ARRAY;
    char text[128];
    CHECK(dm_net_param(net, "y", number, NULL, &diff));
    assert_int_equal(count_of(diff), count);
    float *order = read_in_order(diff);
    snprintf(text, sizeof text, "%s: gradient of parameter %d", what, number);
    expect(text, order, want, count, tolerance);
    free(order);
}

static shape shape_of_top(const conv_case *c, layer_kind kind)
{
    const int axis = axis_of(c);
    shape sy = c->x;
    sy.at[axis] = kind == COLUMNS ? sy.at[axis] : c->outputs;
    for (int k = 0; k < c->x.ndim - axis - 1; k++) {
        const int64_t window = c->dilation[k] * (c->kernel[k] - 1) + 1, extent = c->x.at[axis + 1 + k];
        sy.at[axis] *= kind == COLUMNS ? c->kernel[k] : 1;
        sy.at[axis + 1 + k] = kind == DECONV ? c->stride[k] * (extent - 1) + window - 2 * c->pad[k]
                                             : (extent + 2 * c->pad[k] - window) / c->stride[k] + 1;
    }
    return sy;
}

static void check(const conv_case *c, layer_kind kind, dm_dtype type, const char *what)
{
    const shape sy = shape_of_top(c, kind);
    const bool narrow = type == DM_BF16;
    const double near = narrow ? 0.012 : 1e-5;
    char text[4096] = "force_backward: true\n";
    int64_t of_weights = c->outputs * c->x.at[axis_of(c)] / c->group, wanted[DM_MAX_DIMS];
    int ndim = 0;
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    dm_array diff = DM_NO_ARRAY;
    for (int k = 0; k < c->x.ndim - axis_of(c) - 1; k++) {
        of_weights *= c->kernel[k];
    }
    input(text, sizeof text, "x", &c->x);
    input(text, sizeof text, "w", &sy);
    conv_layer(text, sizeof text, c, kind, "y");
    if (c->shared && kind != COLUMNS) {
        conv_layer(text, sizeof text, c, kind, "z");
    }
    options.phase = DM_PHASE_TRAIN;
    options.type = type;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    fill_short(x, elements(&c->x));
    fill_short(w, elements(&sy));
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "w", w));
    if (kind != COLUMNS) {
        CHECK(dm_net_param_read(net, "y", 0, &ndim, wanted, weights));
        assert_int_equal(ndim, c->x.ndim - axis_of(c) + 1);
        for (int64_t i = 0; narrow && i < of_weights; i++) {
            weights[i] = rounded(weights[i]);
        }
    }
    if (kind != COLUMNS && !c->no_bias) {
        CHECK(dm_net_param_read(net, "y", 1, &ndim, wanted, bias));
    }
    forward_loops(c, kind, &sy);
    for (int pass = 0; pass < 2; pass++) { /* what the first leaves behind is no part of the second */
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
    }
    char name[128];
    snprintf(name, sizeof name, "%s: 'y'", what);
    assert_int_equal(shape_of(net, "y", wanted), elements(&sy));
    assert_memory_equal(wanted, sy.at, (size_t)sy.ndim * sizeof *wanted);
    CHECK(dm_net_read(net, "y", found));
    expect(name, found, y, elements(&sy), near);
    backward_loops(c, kind, &sy, found);
    snprintf(name, sizeof name, "%s: gradient of 'x'", what);
    CHECK(dm_net_blob(net, "x", NULL, &diff));
    assert_int_equal(count_of(diff), elements(&c->x));
    float *down = read_in_order(diff);
    expect(name, down, dx, elements(&c->x), 2 * near);
    free(down);
    if (kind != COLUMNS) {
        expect_learned(net, what, 0, dw, of_weights, 5e-5);
    }
    if (kind != COLUMNS && !c->no_bias) {
        expect_learned(net, what, 1, db, c->outputs, 5e-5);
    }
    CHECK(dm_net_close(net));
}

static void test_values(void **state)
{
    static const dm_dtype dtypes[] = {DM_F32, DM_BF16};
    (void)state;
    for (int i = 0; i < COUNT(cases) * KINDS * COUNT(dtypes); i++) {
        const conv_case *c = &cases[i / KINDS / COUNT(dtypes)];
        const layer_kind kind = (layer_kind)(i / COUNT(dtypes) % KINDS);
        const dm_dtype type = dtypes[i % COUNT(dtypes)];
        char what[96];
        snprintf(what, sizeof what, "case %d, %s, %s", i / KINDS / COUNT(dtypes), types[kind],
                 type == DM_F32 ? "f32" : "bf16");
        if (kind != COLUMNS || axis_of(c) < c->x.ndim - 1) { /* columns need a spatial dim */
            check(c, kind, type, what);
        }
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *dims, *type, *fields;
        dm_status status;
        const char *message;
    } bad[] = {
        {"7", "Convolution", "num_output: 2 kernel_size: 1", DM_ERR_SHAPE,
         "has axis 1, but its bottom has 1 dims"},
        {"7, 3", "Convolution", "num_output: 2 kernel_size: 2", DM_ERR_FORMAT,
         "has kernel_size 2, but its bottom has no spatial dims"},
        {"7, 3", "Convolution", "num_output: 2 kernel_size: 1 stride: 1", DM_ERR_UNSUPPORTED,
         "field 'stride' of ConvolutionParameter has no effect here"},
        {"7, 3", "Convolution", "num_output: 2 kernel_h: 1", DM_ERR_FORMAT,
         "has kernel_h, but its bottom has 0 spatial dims"},
        {"7, 3, 4, 4, 4", "Convolution", "num_output: 2 kernel_size: [2, 2]", DM_ERR_FORMAT,
         "has 2 values of kernel_size; its bottom has 3 spatial dims"},
        {"7, 3, 4, 4, 4", "Convolution", "num_output: 2 kernel_h: 2 kernel_w: 2", DM_ERR_FORMAT,
         "has kernel_h, but its bottom has 3 spatial dims"},
        {"7, 3, 4", "Convolution", "num_output: 2", DM_ERR_FORMAT, "has no kernel_size"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 5", DM_ERR_SHAPE,
         "has a kernel of 5 along dim 2, which has 4"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 2 group: 2", DM_ERR_SHAPE, "has 2 groups"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 2 stride: 0", DM_ERR_FORMAT, "has stride 0"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 2 axis: 3", DM_ERR_SHAPE,
         "has axis 3, but its bottom has 3 dims"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 2 axis: 0", DM_ERR_UNSUPPORTED, "has axis 0"},
        {"7, 3, 4", "Convolution", "num_output: 2 kernel_size: 2 axis: -3", DM_ERR_UNSUPPORTED, "has axis 0"},
        {"7, 3, 4, 4, 4", "Convolution", "num_output: 2 kernel_size: 2 axis: 2 stride: [1, 1, 1]",
         DM_ERR_FORMAT, "has 3 values of stride; its bottom has 2 spatial dims"},
        {"7, 3, 4, 4, 4", "Convolution", "num_output: 2 kernel_size: 2 kernel_w: 2 axis: 2", DM_ERR_FORMAT,
         "has kernel_size and kernel_w"},
        {"7, 3, 4", "Deconvolution", "num_output: 2", DM_ERR_FORMAT, "has no kernel_size"},
        {"7, 3, 4", "Deconvolution", "num_output: 2 kernel_size: 2 pad: 3", DM_ERR_SHAPE, "extent -1 in dim 2"},
        {"7, 3, 4", "Deconvolution", "num_output: 2 kernel_size: 2 group: 2", DM_ERR_SHAPE, "has 2 groups"},
        {"7, 3, 4, 5, 6", "Deconvolution", "num_output: 2 kernel_size: 2 dilation: [1, 2]", DM_ERR_FORMAT,
         "has 2 values of dilation; its bottom has 3 spatial dims"},
        {"7, 3, 4", "Deconvolution",
         "num_output: 2 kernel_size: 2147483647 stride: 2147483647 dilation: 2147483647", DM_ERR_SHAPE,
         "there must be 1 to 2^40 elements"},
        {"7, 3, 4", "Deconvolution", "num_output: 2 kernel_size: 2 axis: 0", DM_ERR_UNSUPPORTED, "has axis 0"},
        {"7, 3, 4", "Deconvolution", "num_output: 2 kernel_size: 2 weight_filler { type: 'bilinear' }",
         DM_ERR_SHAPE, "bilinear fillers need 4 dims"},
        {"7, 3", "Im2col", "", DM_ERR_SHAPE, "has no spatial dims"},
        {"7, 3, 4", "Im2col", "", DM_ERR_FORMAT, "has no kernel_size"},
        {"7, 3, 4", "Im2col", "kernel_size: 5", DM_ERR_SHAPE, "has a kernel of 5 along dim 2, which has 4"},
        {"7, 3, 4", "Im2col", "kernel_size: 2 axis: 0", DM_ERR_UNSUPPORTED, "has axis 0"},
        {"7, 3, 4, 4", "Im2col", "kernel_size: 1000000 pad: 1000000", DM_ERR_SHAPE, "more than 2^40 elements"},
    };
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [%s] } } }\n"
                 "layer { name: 'c' type: '%s' bottom: 'x' top: 'c' convolution_param { %s } }\n",
                 bad[i].dims, bad[i].type, bad[i].fields);
        expect_refusal(text, bad[i].fields, bad[i].status, bad[i].message);
    }
}

/* One layer's weights in another with another axis. */
static void test_sharing(void **state)
{
    static const char layers[] =
        "layer { name: 'in' type: 'Input' top: 'x' top: 'z' input_param { shape { dim: [5, 4, 5, 4] } shape { "
        "dim: [5, 2, 4, 5, 4] } } }\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' param { name: 'w' } convolution_param { "
        "num_output: 3 kernel_size: 2 bias_term: false weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'd' type: 'Convolution' bottom: 'z' top: 'd' param { name: 'w' share_mode: PERMISSIVE "
        "} "
        "convolution_param { num_output: 3 kernel_size: 2 bias_term: false axis: 2 } }\n";
    float both[5 * 2 * 3 * 4 * 3];
    char text[2048];
    dm_net *net = NULL;
    (void)state;
    snprintf(text, sizeof text, "%s", layers);
    CHECK(dm_net_open_text(session, text, NULL, NULL, &net));
    fill(x, 5 * 2 * 80);
    CHECK(dm_net_write(net, "z", x));
    for (int i = 0; i < 5; i++) { /* the first half of each sample to x */
        memmove(x + (size_t)i * 80, x + (size_t)i * 160, 80 * sizeof *x);
    }
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_read(net, "c", found));
    CHECK(dm_net_read(net, "d", both));
    for (int i = 0; i < 5 * 36; i++) {
        const double want = (double)both[i / 36 * 72 + i % 36];
        assert_true(fabs((double)found[i] - want) <= 1e-5 * (1 + fabs(want)));
    }
    CHECK(dm_net_close(net));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_values, begin_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_all_compared),
    };
    int failed = run_on_workers(tests);
    free(kept);
    return failed;
}
