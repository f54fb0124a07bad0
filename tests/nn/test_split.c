/* Layers split by features, and by both: the same bits as by batch, on any number of workers; sums against the
 * layer in one piece, and convolutions against loops in f64. In process, with ranks, and on emulated GPUs. */
#include "net/net.h"
#include "net_case.h"

#define DATA(dims)                                                                                             \
    "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {\n"                        \
    "  shape { " dims " } shape { dim: 7 }\n"                                                                  \
    "  data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 1 } } }\n"
#define FILLERS                                                                                                \
    " weight_filler { type: 'gaussian' std: 0.3 } bias_filler { type: 'uniform' min: -1 max: 1 } } }\n"
#define FILTERS(name, type, bottom, rest)                                                                      \
    "layer { name: '" name "' type: '" type "' bottom: '" bottom "' top: '" name                               \
    "' convolution_param { " rest FILLERS
#define NET(outputs)                                                                                           \
    DATA("dim: 7 dim: 2 dim: 6 dim: 5")                                                                        \
    FILTERS("c", "Convolution", "data", "num_output: 3 kernel_size: 3")                                        \
    "layer { name: 'a' type: 'InnerProduct' bottom: 'c' top: 'a' inner_product_param { num_output: " outputs   \
    "  weight_filler { type: 'positive_unitball' } bias_filler { type: 'uniform' min: -1 max: 1 } } }\n"       \
    "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' relu_param { negative_slope: 0.5 } }\n"               \
    "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param { num_output: 5 "         \
    "  weight_filler { type: 'gaussian' std: 0.5 } bias_term: false } }\n"                                     \
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' top: 'l' }\n"
#define RELU(name) SIMPLE(name "r", "ReLU", name, name, "")
#define END                                                                                                    \
    "layer { name: 'z' type: 'InnerProduct' bottom: 'e' top: 'z' inner_product_param { num_output: 3" FILLERS  \
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'z' bottom: 'label' top: 'l' }\n"

/* Odd channels; one filter and two, fewer than workers; groups, whole and in parts; strides; ReLUs that
 * convolutions do, before a pooling too; a Concat whose parts lie where convolutions write; a blob that three
 * layers read. */
static const struct {
    const char *text, *layers;
} nets[] = {
    {NET("1"), "a b"},
    {NET("3"), "a b"},
    {NET("10"), "a b c"},
    {NET("37"), "a b c"},
    {DATA("dim: 7 dim: 3 dim: 7 dim: 6")
         FILTERS("c", "Convolution", "data", "num_output: 13 kernel_size: 3 pad: 1 stride: 2") RELU("c")
             FILTERS("e", "Convolution", "c", "num_output: 2 kernel_h: 2 kernel_w: 1 dilation: 2") END,
     "c e z"},
    {DATA("dim: 7 dim: 6 dim: 5 dim: 6")
         FILTERS("c", "Convolution", "data", "num_output: 15 kernel_size: 3 group: 3") RELU("c")
             SIMPLE("p", "Pooling", "c", "p", "pooling_param { kernel_size: 2 stride: 1 }")
                 FILTERS("f", "Convolution", "p", "num_output: 5 kernel_size: 1 group: 5")
                     FILTERS("e", "Deconvolution", "f", "num_output: 10 kernel_size: 2 group: 5 stride: 2") END,
     "c f e z"},
    {DATA("dim: 7 dim: 4 dim: 5 dim: 4")
         FILTERS("c", "Convolution", "data", "num_output: 16 kernel_size: 3 pad: 1 group: 2") RELU("c")
             FILTERS("f", "Convolution", "c", "num_output: 7 kernel_size: 3 pad: 1") RELU("f")
                 FILTERS("g", "Convolution", "c", "num_output: 1 kernel_size: 1") RELU("g")
                     FILTERS("h", "Deconvolution", "c",
                             "num_output: 5 kernel_size: 3 pad: 1") "layer { name: 'e' type: 'Concat' bottom: "
                                                                    "['f', 'g', 'h'] top: 'e' }\n" END,
     "c f g h z"},
};
enum { NETS = COUNT(nets), MOST = 16384 };

typedef struct result {
    double loss;
    int64_t count;
    float gradient[MOST]; /* of all parameters, one behind the other */
} result;

static dm_net *open_net(const char *text, const char *split, int slices, dm_dtype type)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.split = split;
    options.slices = slices;
    options.type = type;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    return net;
}

static void run(const char *text, const char *split, int slices, dm_dtype type, result *out)
{
    dm_net *net = open_net(text, split, slices, type);
    memset(out, 0, sizeof *out);
    CHECK(dm_net_forward(net, &out->loss));
    CHECK(dm_net_backward(net));
    for (int i = 0; i < net->param_count; i++) {
        assert_true(out->count + net->params[i]->count <= MOST);
        CHECK(dm_read(session, net->params[i]->diff, out->gradient + out->count));
        out->count += net->params[i]->count;
    }
    CHECK(dm_net_close(net));
}

static void check_near(const char *what, const result *a, const result *b, double tolerance)
{
    double apart = 0, length = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t k = 0; k < a->count; k++) {
        double x = (double)a->gradient[k], y = (double)b->gradient[k];
        apart += (x - y) * (x - y);
        length += y * y;
    }
    if (!(fabs(a->loss - b->loss) <= tolerance * fabs(b->loss) && length > 0 &&
          sqrt(apart) <= tolerance * sqrt(length))) {
        fail_msg("%s: losses %g and %g, gradients %g apart, of %g", what, a->loss, b->loss, sqrt(apart),
                 sqrt(length));
    }
}

/* "a=batch,b=features": the layers of a list, with the forms of one after another. */
static void split_of(const char *layers, const char *const *forms, int count, char *out, size_t room)
{
    size_t n = 0;
    for (int i = 0; *layers; i++) {
        int length = (int)strcspn(layers, " ");
        n += (size_t)snprintf(out + n, room - n, "%s%.*s=%s", i ? "," : "", length, layers, forms[i % count]);
        layers += length + (layers[length] == ' ');
    }
}

static const char *const forms[] = {"batch", "features", "both", "batch"};
static const struct {
    int slices;
    dm_dtype type;
} ways[] = {{4, DM_F32}, {11, DM_F32}, {4, DM_BF16}};
enum { WAYS = COUNT(ways) };

static void test_same_bits(void **state)
{
    static result first[NETS][WAYS], whole, one;
    static bool known;
    (void)state;
    for (int t = 0; t < NETS; t++) {
        for (int k = 0; k < WAYS; k++) {
            for (int i = 0; i < 6; i++) { /* batch, features, both; and mixed */
                char split[128], what[256];
                split_of(nets[t].layers, forms + i % 3, i < 3 ? 1 : 2, split, sizeof split);
                snprintf(what, sizeof what, "%d workers, %s, net %d, way %d", worker_count, split, t, k);
                run(nets[t].text, split, ways[k].slices, ways[k].type, known || i > 0 ? &one : &first[t][k]);
                if ((known || i > 0) && memcmp(&one, &first[t][k], sizeof one) != 0) {
                    fail_msg("%s: other bits", what);
                }
                if (k == 0 && i < 3) {
                    run(nets[t].text, split, 0, DM_F32, &one);
                    check_near(what, &one, &first[t][0], 1e-6);
                }
            }
        }
        run(nets[t].text, NULL, 4, DM_F32, &whole);
        check_near("in one piece", &first[t][0], &whole, 1e-6);
        check_near("in one piece, bf16", &first[t][2], &whole, 8e-2);
    }
    known = true;
}

/* --- against loops in f64 */
typedef struct numbers {
    int64_t count;
    double *at;
} numbers;

static numbers zeros(dm_array like)
{
    numbers n = {.count = count_of(like)};
    n.at = calloc((size_t)n.count, sizeof *n.at);
    assert_non_null(n.at);
    return n;
}

static numbers read(dm_array a)
{
    numbers n = zeros(a);
    CHECK(dm_read_as(session, a, n.at));
    return n;
}

static void expect_near(const char *what, const nn_layer *l, dm_array found, numbers wanted)
{
    numbers have = read(found);
    assert_int_equal(have.count, wanted.count);
    for (int64_t i = 0; i < have.count; i++) {
        if (!(fabs(have.at[i] - wanted.at[i]) <= 1e-5 * (1 + fabs(wanted.at[i])))) {
            fail_msg("%d workers, layer %s, form %d: %s %lld is %g, not %g", worker_count, l->name,
                     (int)l->split.form, what, (long long)i, have.at[i], wanted.at[i]);
        }
    }
    free(have.at);
    free(wanted.at);
}

/* A convolution takes `big` to `small`, a deconvolution the other way; the same pairs of elements meet. */
typedef struct loops {
    bool back;
    numbers x, w, dy, y, dw, dx;
} loops;

static void meet(loops *o, int64_t big, int64_t small, int64_t w)
{
    int64_t in = o->back ? small : big, out = o->back ? big : small;
    o->y.at[out] += o->w.at[w] * o->x.at[in];
    o->dw.at[w] += o->dy.at[out] * o->x.at[in];
    o->dx.at[in] += o->dy.at[out] * o->w.at[w];
}

static void all_pairs(loops *o, const nn_layer *l)
{
    const dm_conv *c = &l->u.conv;
    const int64_t *big = (o->back ? l->top : l->bottom)[0]->shape,
                  *small = (o->back ? l->bottom : l->top)[0]->shape,
                  *w = l->param[0]->shape; /* N, C, H, W; K, C of a group, R, S */
    for (int64_t i = 0; i < small[0] * small[2] * small[3] * w[0]; i++) {
        int64_t k = i % w[0], q = i / w[0] % small[3], p = i / w[0] / small[3] % small[2],
                n = i / w[0] / small[3] / small[2];
        for (int64_t j = 0; j < w[2] * w[3] * w[1]; j++) {
            int64_t channel = j % w[1], s = j / w[1] % w[3], r = j / w[1] / w[3];
            int64_t row = p * c->stride[0] + r * c->dilation[0] - c->pad[0],
                    col = q * c->stride[1] + s * c->dilation[1] - c->pad[1];
            int64_t at = k / (w[0] / c->group) * w[1] + channel;
            if (row >= 0 && row < big[2] && col >= 0 && col < big[3]) {
                meet(o, ((n * big[2] + row) * big[3] + col) * big[1] + at,
                     ((n * small[2] + p) * small[3] + q) * small[1] + k, k * w[2] * w[3] * w[1] + j);
            }
        }
    }
}

static void check_layer(const nn_layer *l)
{
    const nn_blob *x = l->bottom[0], *y = l->top[0];
    const int64_t channels = y->shape[1];
    loops o = {.back = strcmp(l->type->name, "Deconvolution") == 0,
               .x = read(x->data),
               .w = read(l->param[0]->data),
               .dy = read(y->diff),
               .y = zeros(y->data),
               .dw = zeros(l->param[0]->data),
               .dx = zeros(x->data)};
    all_pairs(&o, l);
    numbers bias = {0}, db = {0};
    if (l->params > 1) {
        bias = read(l->param[1]->data);
        db = zeros(l->param[1]->data);
    }
    for (int64_t i = 0; i < o.y.count; i++) {
        o.y.at[i] += bias.at ? bias.at[i % channels] : 0;
        o.y.at[i] = l->u.conv.relu && o.y.at[i] < 0 ? 0 : o.y.at[i];
        if (db.at) {
            db.at[i % channels] += o.dy.at[i];
        }
    }
    expect_near("y", l, y->data, o.y);
    expect_near("dw", l, l->param[0]->diff, o.dw);
    if (db.at) {
        expect_near("db", l, l->param[1]->diff, db);
    }
    if (l->down[0] && x->writers == 1) {
        expect_near("dx", l, x->diff, o.dx);
    } else {
        free(o.dx.at);
    }
    free(bias.at);
    free(o.x.at);
    free(o.w.at);
    free(o.dy.at);
}

static void test_loops(void **state)
{
    int checked = 0;
    (void)state;
    for (int t = 0; t < NETS; t++) {
        for (int i = 0; i < 3; i++) {
            char split[128];
            split_of(nets[t].layers, forms + i, 1, split, sizeof split);
            dm_net *net = open_net(nets[t].text, split, 4, DM_F32);
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_net_backward(net));
            for (int k = 0; k < net->layer_count; k++) {
                const nn_layer *l = &net->layers[k];
                if (l->ranges > 0 && strcmp(l->type->name, "InnerProduct") != 0) {
                    assert_true(l->ranges <= 5);
                    check_layer(l);
                    checked++;
                }
            }
            CHECK(dm_net_close(net));
        }
    }
    assert_int_equal(checked, 3 * (1 + 1 + 2 + 3 + 4));
}

/* --- what is asked for */

/* Layers that share weights are split together, where they have as many groups; sums over a pass and the next
 * are kept. */
static void test_shared(void **state)
{
    static const char inner[] =
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' top: 'label' dummy_data_param { shape { dim: "
        "[6, 9] } "
        "  shape { dim: [6, 9] } shape { dim: 6 } data_filler { type: 'gaussian' std: 1 } "
        "  data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
        "layer { name: 'c' type: 'InnerProduct' bottom: 'x' top: 'c' inner_product_param { num_output: 4 "
        "  weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' } param { name: 'v' } "
        "  inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { name: 'w' } param { name: 'v' } "
        "  inner_product_param { num_output: 9 } }\n"
        "layer { name: 's' type: 'Concat' bottom: ['b', 'c'] top: 's' }\n"
        "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 's' bottom: 'label' top: 'l' }\n"
        "layer { name: 'z' type: 'Silence' bottom: 'y' }\n";
#define SHARED(name, bottom, rest)                                                                             \
    "layer { name: '" name "' type: 'Convolution' bottom: '" bottom "' top: '" name                            \
    "' param { name: 'w' } param { name: 'v' } convolution_param { num_output: 6 kernel_size: 3 pad: 1 " rest  \
    " weight_filler { type: 'xavier' } } }\n"
    static const char filters[] = DATA("dim: 7 dim: 6 dim: 4 dim: 5") SHARED("a", "data", "group: 2") SHARED(
        "b", "a", "group: 2") "layer { name: 'k' type: 'Slice' bottom: 'b' top: 'k' top: 'k2' slice_param { "
                              "slice_point: 3 } }\n" SHARED("e", "k", "") END;
    static const char *const texts[] = {inner, filters};
    static result a, b;
    (void)state;
    for (int t = 0; t < COUNT(texts); t++) {
        run(texts[t], "a=batch", 4, DM_F32, &a);
        run(texts[t], "a=features", 4, DM_F32, &b);
        assert_memory_equal(&a, &b, sizeof a);
        run(texts[t], "a=both", 4, DM_F32, &b);
        assert_memory_equal(&a, &b, sizeof a);
    }
    dm_net *net = open_net(filters, "a=features", 4, DM_F32);
    assert_int_equal(net->params[0]->range, 1); /* three filters of a group cannot be halved */
    CHECK(dm_net_close(net));
    static const char *const bad[] = {"b=features",      "s=features", "a",         "a=", "=batch",
                                      "a=batch,a=batch", "a=x",        "a=batch,,", "a=", "a=bothfeatures",
                                      "l=both",          "measure",    "measured=a"};
    for (int i = 0; i < COUNT(bad); i++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        options.split = bad[i];
        if (dm_net_open_text(session, inner, NULL, &options, &net) != DM_ERR_ARG) {
            fail_msg("'%s' is accepted", bad[i]);
        }
        assert_non_null(strstr(dm_error_message(), "split: "));
    }
}

/* What the estimate says is sent is about what the plans send; the table and the line say how a layer is split.
 */
static void test_explain(void **state)
{
#define SECOND(type, rest)                                                                                     \
    "layer { name: 'second' type: '" type "' bottom: 'first' top: 'e' " rest                                   \
    " weight_filler { type: 'xavier' } } }\n"
#define IMAGES(channels)                                                                                       \
    "layer { name: 'd' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: [18, 4, 9, 8] " \
    "} "                                                                                                       \
    "  shape { dim: 18 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"               \
    "layer { name: 'first' type: 'Convolution' bottom: 'x' top: 'first' convolution_param { "                  \
    "num_output: " channels "  kernel_size: 1 weight_filler { type: 'xavier' } } }\n"
    static const char *const texts[] = {
        "layer { name: 'd' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: [64, 300] } "
        "  shape { dim: 64 } data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }\n"
        "layer { name: 'first' type: 'InnerProduct' bottom: 'x' top: 'first' inner_product_param { num_output: "
        "160 "
        "  weight_filler { type: 'xavier' } } }\n" SECOND("InnerProduct",
                                                          "inner_product_param { num_output: 300") END,
        IMAGES("60") SECOND("Convolution", "convolution_param { num_output: 90 kernel_size: 3") END,
        IMAGES("64")
            SECOND("Convolution", "convolution_param { num_output: 96 kernel_size: 3 group: 2 stride: 2") END,
        IMAGES("48") SECOND("Deconvolution", "convolution_param { num_output: 60 kernel_size: 3 group: 2") END};
    (void)state;
    for (int t = 0; t < COUNT(texts); t++) {
        for (int i = 0; i < 3; i++) {
            char split[64], wanted[64], *said = NULL;
            double forward = -1, backward = -1, estimate = -1;
            snprintf(split, sizeof split, "second=%s", forms[i]);
            dm_net *net = open_net(texts[t], split, 4, DM_F32);
            CHECK(dm_net_explain(net, &said));
            const char *row = strstr(said, "\nsecond "), *line = strstr(said, "\nsecond: ");
            assert_non_null(row);
            assert_non_null(line);
            snprintf(wanted, sizeof wanted, "\nsecond %%*s %s %%*f %%*d %%lf %%*d %%lf", forms[i]);
            assert_int_equal(sscanf(row, wanted, &forward, &backward), 2);
            snprintf(wanted, sizeof wanted, "split by %s, as asked", forms[i]);
            assert_non_null(strstr(line, wanted));
            assert_int_equal(sscanf(strstr(line, "about "), "about %lf KiB", &estimate), 1);
            if (fabs(forward + backward - estimate) > 0.15 * estimate + 1) {
                fail_msg("%d workers, net %d, %s: %g KiB by the plans, %g by the estimate", worker_count, t,
                         split, forward + backward, estimate);
            }
            free(said);
            CHECK(dm_net_close(net));
        }
    }
}

/* Layers that nobody names: large ones as the shortest estimated time says, with many filters over small images
 * not by batch; small ones by batch. */
static void chosen(const char *split)
{
    static const char text[] = DATA("dim: 7 dim: 2 dim: 3 dim: 2")
        CONV("c", "data", "num_output: 700 kernel_size: 1") "layer { name: 'large' type: 'Convolution' bottom: "
                                                            "'c' top: 'e' convolution_param { num_output: 640 "
                                                            "kernel_size: 3 pad: 1 weight_filler { type: "
                                                            "'constant' value: 0.01 } } }\n" END;
    char *said = NULL, form[16] = "";
    double ms = -1, other[2] = {-1, -1};
    const bool measured = split != NULL;
    dm_net *net = open_net(text, split, 4, DM_F32);
    assert_int_equal(measured && worker_count > 1, net->speed.flops != 50e9 && net->speed.link != 5e9);
    assert_true(net->speed.flops > 0 && net->speed.memory > 0 && net->speed.link > 0);
    CHECK(dm_net_explain(net, &said));
    const char *line = strstr(said, "\nlarge: split by ");
    assert_non_null(line);
    assert_non_null(strstr(said, "\nc: split by batch, as it is small; "));
    assert_int_equal(sscanf(line, "\nlarge: split by %15[a-z], as estimated; ", form), 1);
    assert_int_equal(sscanf(strstr(line, "about "),
                            "about %*f KiB sent by a worker, %lf ms; by %*s %*f KiB, %lf ms; "
                            "by %*s %*f KiB, %lf ms\n",
                            &ms, &other[0], &other[1]),
                     3);
    assert_true(measured || (strcmp(form, "batch") == 0) == (worker_count == 1));
    assert_true(measured || worker_count < 8 || strcmp(form, "both") == 0); /* each has work then */
    assert_true(ms > 0 && ms <= other[0] && ms <= other[1]);
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
    free(said);
    CHECK(dm_net_close(net));
}

static void test_chosen(void **state)
{
    (void)state;
    chosen(NULL);
    if (worker_count <= 3) { /* it takes 112 MiB a worker */
        chosen("measured");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_loops),
                                       cmocka_unit_test(test_shared), cmocka_unit_test(test_explain),
                                       cmocka_unit_test(test_chosen)};
    return run_on_workers_or_ranks(tests);
}
