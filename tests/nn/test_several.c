/* Convolution and Deconvolution with several bottoms: the same as layers with one each that share their
 * parameters, and one layer in files. */
#include "net_case.h"

#include "net/net.h"
#include "proto/wire.h"

#define BEGIN                                                                                                  \
    INPUTS CONV("a", "data", "num_output: 4 kernel_size: 3 pad: 1")                                            \
        CONV("b", "data", "num_output: 4 kernel_size: 1")
#define FIELDS                                                                                                 \
    "convolution_param { num_output: 6 kernel_size: 3 stride: 2 weight_filler { type: 'msra' } "               \
    "bias_filler { type: 'gaussian' std: 0.1 } } }\n"
#define END                                                                                                    \
    "layer { name: 'r' type: 'ReLU' bottom: 'q' top: 'q' }\n"                                                  \
    "layer { name: 'sum' type: 'Eltwise' bottom: ['p', 'q'] top: 'sum' eltwise_param { coeff: [1, -0.5] } "    \
    "}\n" IP("ip", "sum", "4") LOSS("ip")

static const char *const types[] = {"Convolution", "Deconvolution"};

/* Such a layer, `layer { name: 'c' type: '%s' %s`, or two. */
static const char together[] =
    BEGIN "layer { name: 'c' type: '%s' bottom: ['a', 'b'] top: ['p', 'q'] param { lr_mult: 2 } "
          "param { decay_mult: 0 } propagate_down: [true, %s] " FIELDS END;
static const char apart[] =
    BEGIN "layer { name: 'c' type: '%s' bottom: 'a' top: 'p' param { name: 'w' lr_mult: 2 } "
          "param { name: 'v' decay_mult: 0 } " FIELDS
          "layer { name: 'd' type: '%s' bottom: 'b' top: 'q' param { name: 'w' } "
          "param { name: 'v' } propagate_down: %s " FIELDS END;

static dm_net *open_as(const char *format, const char *type, const char *down)
{
    char text[4096];
    snprintf(text, sizeof text, format, type, format == together ? down : type, down);
    dm_net *net = open_text(text, DM_PHASE_TRAIN);
    random_state = 7;
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 4);
    return net;
}

static void same(dm_array a, dm_array b)
{
    const int64_t n = count_of(a);
    assert_true(n == count_of(b) && n > 0);
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    CHECK(dm_read(session, a, x));
    CHECK(dm_read(session, b, y));
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(x);
    free(y);
}

static void test_as_two(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        static const char *const blobs[] = {"p", "q"}, *const layers[] = {"a", "b", "c", "ip"};
        dm_net *one = open_as(together, types[i % 2], i < 2 ? "true" : "false"),
               *two = open_as(apart, types[i % 2], i < 2 ? "true" : "false");
        double losses[2];
        CHECK(dm_net_forward(one, &losses[0]));
        CHECK(dm_net_forward(two, &losses[1]));
        assert_true(losses[0] == losses[1] && isfinite(losses[0]));
        CHECK(dm_net_backward(one));
        CHECK(dm_net_backward(two));
        for (int k = 0; k < COUNT(blobs); k++) {
            dm_array x[2], d[2];
            CHECK(dm_net_blob(one, blobs[k], &x[0], &d[0]));
            CHECK(dm_net_blob(two, blobs[k], &x[1], &d[1]));
            same(x[0], x[1]);
            same(d[0], d[1]);
        }
        for (int k = 0; k < 2 * COUNT(layers); k++) {
            dm_array x[2], d[2];
            CHECK(dm_net_param(one, layers[k / 2], k % 2, &x[0], &d[0]));
            CHECK(dm_net_param(two, layers[k / 2], k % 2, &x[1], &d[1]));
            same(x[0], x[1]);
            same(d[0], d[1]);
        }
        assert_int_equal(one->param_count, two->param_count);
        assert_true(one->params[4]->lr_mult == 2 && one->params[5]->decay_mult == 0);
        CHECK(dm_net_close(one));
        CHECK(dm_net_close(two));
    }
}

/* The file has the layer once, with all its bottoms; the net that is read from it has the same weights. */
static void test_files(void **state)
{
    (void)state;
    static const char *const paths[] = {"several.caffemodel", "several.h5"};
    for (int i = 0; i < COUNT(paths); i++) {
#ifndef NN_HAVE_HDF5
        if (i == 1) {
            continue;
        }
#endif
        dm_net *net = open_as(together, "Convolution", "true"),
               *other = open_as(together, "Convolution", "true");
        dm_array x, y;
        CHECK(dm_net_param(net, "c", 0, &x, NULL));
        CHECK(dm_net_param(other, "c", 0, &y, NULL));
        CHECK(dm_fill_uniform(session, x, -1, 1, 5));
        CHECK(dm_net_save(net, paths[i]));
        CHECK(dm_net_load(other, paths[i]));
        same(x, y);
        CHECK(dm_net_close(net));
        CHECK(dm_net_close(other));
    }
    nn_document *d = NULL;
    int found = 0;
    CHECK(nn_wire_read(paths[0], "NetParameter", &d));
    for (int64_t i = 0; i < nn_count(d->root, "layer"); i++) {
        const nn_message *l = nn_sub_at(d->root, "layer", i);
        if (strcmp(nn_string(l, "LayerParameter", "name"), "c") == 0) {
            found++;
            assert_true(nn_count(l, "bottom") == 2 && nn_count(l, "top") == 2 && nn_count(l, "blobs") == 2);
        }
    }
    assert_int_equal(found, 1);
    nn_document_free(d);
}

static void refused(const char *layer, dm_status want, const char *text)
{
    char net_text[4096];
    dm_net *net = NULL;
    snprintf(net_text, sizeof net_text, BEGIN CONV("small", "data", "num_output: 4 kernel_size: 3") "%s" FIELDS,
             layer);
    assert_int_equal(dm_net_open_text(session, net_text, "several", NULL, &net), want);
    if (!strstr(dm_error_message(), text)) {
        fail_msg("\"%s\" does not say \"%s\"", dm_error_message(), text);
    }
}

static void test_refused(void **state)
{
    (void)state;
    refused("layer { name: 'c' type: 'Convolution' bottom: ['a', 'b'] top: 'p' ", DM_ERR_FORMAT,
            "has 2 bottoms and 1 tops; Convolution layers have as many tops as bottoms");
    refused("layer { name: 'c' type: 'Deconvolution' bottom: ['a', 'small'] top: ['p', 'q'] ", DM_ERR_SHAPE,
            "reads 'a' of 6 x 4 x 7 x 6 and 'small' of 6 x 4 x 5 x 4: the bottoms of a Deconvolution have one "
            "shape");
    refused("layer { name: 'c' type: 'Convolution' bottom: ['a', 'b'] top: ['p', 'q'] propagate_down: true ",
            DM_ERR_FORMAT, "has 2 bottoms but 1 values of propagate_down");
    refused("layer { name: 'c' type: 'Convolution' bottom: ['a', 'b'] top: ['p', 'q'] loss_weight: 1 ",
            DM_ERR_FORMAT, "has 2 tops but 1 values of loss_weight");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_two), cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_refused)};
    return run_on_workers(tests);
}
