/* Every type of layer on 1, 2, 3, 5 and 8 workers, with every split that it has: gradients against central
 * differences on 1 and on 5 workers; on all, outputs, gradients and what layers remember have the same bits, by
 * batch and by features. With as many slices as workers (slices 0) they are the same to rounding. */
#include "gradient_nets.h"

#include "data/hdf5.h"
#include "data/record.h"
#include "net/net.h"

/* Layers without gradients, or with another mask in each pass: no central differences, but the same numbers
 * everywhere. */
static const struct {
    const char *what, *text;
} others[] = {
    {"random numbers",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 2") ONE("d", "Dropout", "c", "")
         ONE("a", "AbsVal", "d", "")
             ONE("p", "Pooling", "a", "pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }")
                 IP("ip", "p", "4") LOSS("ip")},
    {"scores",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") ONE("r", "ReLU", "c", "")
         ONE("t", "Threshold", "r", "") ONE("m", "ArgMax", "c", "argmax_param { out_max_val: true top_k: 2 }")
             ONE("p", "Pooling", "r", "pooling_param { kernel_size: 3 stride: 2 }") IP("ip", "p", "4")
                 PAIR("acc", "Accuracy", "'ip', 'label'", "accuracy_param { top_k: 2 }") LOSS("ip")},
    {"samples that pass",
     INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3") "layer { name: 'f' type: 'Filter' bottom: ['c', "
                                                              "'label', 'label'] top: "
                                                              "['u', 'v'] }\n" IP("ip", "u", "4") PAIR(
                                                                  "loss", "SoftmaxWithLoss", "'ip', 'v'", "")},
    {"made data",
     "layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [7, 3, 4, "
     "5] } shape { dim: 7 } "
     "data_filler { type: 'gaussian' std: 1 } data_filler { value: 2 } } }\n" IP("ip", "data", "4") LOSS("ip")},
    {"data of the program", "layer { name: 'd' type: 'MemoryData' top: 'data' top: 'label' memory_data_param { "
                            "batch_size: 7 channels: 2 height: 4 width: 3 } "
                            "}\n" IP("ip", "data", "4") LOSS("ip")},
    {"LSTM", "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' input_param { shape { dim: "
             "[4, 2, 5] } shape { dim: [4, "
             "2] } shape { dim: 4 } } }\n"
             "layer { name: 'l' type: 'LSTM' bottom: ['data', 'cont'] top: 'l' recurrent_param { num_output: 2 "
             "weight_filler { type: "
             "'gaussian' std: 0.7 } } }\n" IP("ip", "l", "4") LOSS("ip")},
    {"RNN", "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' input_param { shape { dim: "
            "[4, 2, 5] } shape { dim: [4, "
            "2] } shape { dim: 4 } } }\n"
            "layer { name: 'l' type: 'RNN' bottom: ['data', 'cont'] top: 'l' recurrent_param { num_output: 2 "
            "weight_filler { type: "
            "'gaussian' std: 0.7 } } }\n" IP("ip", "l", "4") LOSS("ip")},
    {"LSTM and RNN with a fixed input, states that are given",
     "layer { name: 'in' type: 'Input' top: 'data' top: 'cont' top: 'label' top: 'f' top: 's' input_param { "
     "shape { dim: "
     "[4, 2, 5] } shape { dim: [4, 2] } shape { dim: 4 } shape { dim: [2, 3] } shape { dim: [1, 2, 2] } } }\n"
     "layer { name: 'e' type: 'InnerProduct' bottom: 'f' top: 'e' inner_product_param { num_output: 3 "
     "weight_filler { "
     "type: 'xavier' } } }\n"
     "layer { name: 'l' type: 'LSTM' bottom: ['data', 'cont', 'e', 's', 's'] top: ['l', 'h', 'c'] "
     "recurrent_param { "
     "num_output: 2 expose_hidden: true weight_filler { type: 'gaussian' std: 0.7 } } }\n"
     "layer { name: 'r' type: 'RNN' bottom: ['l', 'cont', 'e'] top: 'r' recurrent_param { num_output: 2 "
     "weight_filler { "
     "type: 'gaussian' std: 0.7 } } }\n" IP("ip", "r", "4") LOSS("ip")},
#ifdef NN_HAVE_LMDB
    {"records", "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: 'records' "
                "batch_size: 7 backend: LMDB } "
                "transform_param { crop_size: 4 mirror: true mean_value: 90 scale: 0.01 } }\n" IP(
                    "ip", "data", "4") LOSS("ip")},
#endif
#ifdef NN_HAVE_PNG
    {"images", "layer { name: 'd' type: 'ImageData' top: 'data' top: 'label' image_data_param { source: "
               "'images' batch_size: 7 "
               "new_height: 6 new_width: 5 } transform_param { crop_size: 4 mirror: true scale: 0.01 } }\n" IP(
                   "ip", "data", "4") LOSS("ip")},
    {"windows",
     "layer { name: 'd' type: 'WindowData' top: 'data' top: 'label' window_data_param { source: 'windows' "
     "batch_size: 7 } "
     "transform_param { crop_size: 4 mirror: true scale: 0.01 } }\n" IP("ip", "data", "4") LOSS("ip")},
#endif
#ifdef NN_HAVE_HDF5
    {"rows", "layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: 'rows' "
             "batch_size: 4 } }\n" IP("ip", "data", "4") LOSS("ip")},
    {"rows written",
     INPUTS IP("ip", "data", "4") LOSS("ip") "layer { name: 'o' type: 'HDF5Output' bottom: ['ip', 'label'] "
                                             "hdf5_output_param { file_name: 'rows.h5' } }\n"},
#endif
};

/* --- what a net has made, one number after another */
typedef struct numbers {
    float *at;
    int64_t count, room;
} numbers;

static void take(numbers *to, dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    if (!a.id) {
        return;
    }
    CHECK(dm_array_query(session, a, &info));
    int64_t n = count_of(a);
    if (to->count + n > to->room) {
        to->room = 2 * (to->count + n);
        to->at = realloc(to->at, (size_t)to->room * sizeof *to->at);
        assert_non_null(to->at);
    }
    CHECK(dm_array_read_as(session, a, NULL, NULL, DM_F32, to->at + to->count, 0));
    to->count += n;
}

static void fill_inputs(dm_net *net)
{
    static const float goes_on[8] = {0, 0, 1, 1, 1, 0, 1, 1};
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        for (int k = 0; k < l->tops && (l->type->traits & NN_INPUT); k++) {
            const char *name = l->top[k]->name;
            if (strcmp(name, "cont") == 0) {
                CHECK(dm_net_write(net, name, goes_on));
            } else {
                write_random(net, name, strcmp(name, "label") == 0, 3);
            }
        }
    }
}

static dm_net *open_split(const char *text, const char *split, int slices)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = DM_PHASE_TRAIN;
    options.split = split;
    options.slices = slices;
    CHECK(dm_net_open_text(session, text, NULL, &options, &net));
    random_state = 12345;
    fill_inputs(net);
    return net;
}

/* Two passes: outputs and all gradients of both, then all parameters, which have what layers remember. */
static void run_net(const char *text, const char *split, int slices, numbers *out)
{
    dm_net *net = open_split(text, split, slices);
    bool divided = !split || strstr(split, "=batch");
    for (int i = 0; i < net->layer_count; i++) {
        divided = divided || (net->layers[i].ranges > 0 && net->layers[i].split.form != NN_BATCH);
    }
    assert_true(divided);
    out->count = 0;
    for (int pass = 0; pass < 2; pass++) {
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_net_backward(net));
        for (int i = 0; i < net->output_count; i++) {
            take(out, net->blobs[net->output[i]]->data);
        }
        for (int i = 0; i < net->param_count; i++) {
            take(out, net->params[i]->diff);
        }
    }
    for (int i = 0; i < net->param_count; i++) {
        take(out, net->params[i]->data);
    }
    CHECK(dm_net_close(net));
}

/* "ip=features,fc=features": all layers of a text whose outputs can be cut; "" where it has none. */
static void splits_of(const char *text, const char *form, char *out, size_t room)
{
    dm_net *net = open_split(text, NULL, 4);
    size_t n = 0;
    *out = 0;
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        if ((l->type->traits & NN_CUTS) && l->param[0]->owner == l && !nn_inner_by_rows(l)) {
            n += (size_t)snprintf(out + n, room - n, "%s%s=%s", n ? "," : "", l->name, form);
        }
    }
    CHECK(dm_net_close(net));
}

static void expect_same(const char *what, const char *way, const numbers *a, const numbers *b, double tolerance)
{
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        bool same = tolerance == 0
                        ? memcmp(&a->at[i], &b->at[i], sizeof(float)) == 0
                        : fabs((double)a->at[i] - (double)b->at[i]) <= tolerance * (1 + fabs((double)b->at[i]));
        if (!same) {
            fail_msg("%s, %d workers, %s: number %lld is %.9g, not %.9g", what, worker_count, way, (long long)i,
                     (double)a->at[i], (double)b->at[i]);
        }
    }
}

/* --- all nets on all workers; what the first session made is kept */
enum { NETS = COUNT(gradients) + COUNT(others) };
static numbers whole[NETS], cut[NETS];
static bool seen[256]; /* types of layers */

static const char *text_of(int i)
{
    return i < COUNT(gradients) ? gradients[i].text : others[i - COUNT(gradients)].text;
}

static const char *name_of(int i)
{
    return i < COUNT(gradients) ? gradients[i].what : others[i - COUNT(gradients)].what;
}

static void test_same(void **state)
{
    numbers now = {NULL, 0, 0};
    (void)state;
    for (int i = 0; i < NETS; i++) {
        static const char *const forms[] = {"batch", "features", "both"};
        const bool first = worker_count == 1;
        run_net(text_of(i), NULL, 4, first ? &whole[i] : &now);
        if (!first) {
            expect_same(name_of(i), "by batch", &now, &whole[i], 0);
        }
        assert_true(whole[i].count > 0);
        run_net(text_of(i), NULL, 0, &now);
        expect_same(name_of(i), "a slice each", &now, &whole[i], 1e-4);
        for (int k = 0; k < COUNT(forms); k++) {
            char split[512];
            numbers *to = first && k == 0 ? &cut[i] : &now;
            splits_of(text_of(i), forms[k], split, sizeof split);
            if (*split) {
                run_net(text_of(i), split, 4, to);
                expect_same(name_of(i), split, to, &cut[i], 0);
                expect_same(name_of(i), "cut, against the whole", &cut[i], &whole[i], 1e-4);
                run_net(text_of(i), split, 0, &now);
                expect_same(name_of(i), "cut, a slice each", &now, &whole[i], 1e-4);
            }
        }
    }
    free(now.at);
}

/* By batch, by features and by both. */
static void test_central_differences(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(gradients) && worker_count != 2 && worker_count != 3; i++) {
        char split[512] = "";
        if (worker_count > 1) {
            splits_of(gradients[i].text, worker_count == 5 ? "features" : "both", split, sizeof split);
        }
        dm_net *net = open_split(gradients[i].text, *split ? split : NULL, 4);
        for (int k = 0; k < 4 && gradients[i].params[k]; k++) {
            for (int p = 0; p < gradients[i].numbers; p++) {
                char what[128];
                dm_array data, diff;
                snprintf(what, sizeof what, "%s: parameter %d of %s", gradients[i].what, p,
                         gradients[i].params[k]);
                CHECK(dm_net_param(net, gradients[i].params[k], p, &data, &diff));
                check_direction(net, what, data, diff, 2e-2);
            }
        }
        CHECK(dm_net_close(net));
    }
}

/* The nets above have every row of layers.def. */
static void test_all_types(void **state)
{
    int count = 0;
    const nn_layer_type *types = nn_layer_types(&count);
    char missing[512] = "";
    (void)state;
    assert_true(count <= COUNT(seen));
    for (int i = 0; i < NETS && worker_count == 1; i++) {
        dm_net *net = open_split(text_of(i), NULL, 4);
        for (int k = 0; k < net->layer_count; k++) {
            seen[net->layers[k].type - types] = true;
        }
        CHECK(dm_net_close(net));
    }
    for (int i = 0; i < count; i++) {
        size_t n = strlen(missing);
        snprintf(missing + n, sizeof missing - n, "%s%s", seen[i] ? "" : " ", seen[i] ? "" : types[i].name);
    }
#if defined(NN_HAVE_LMDB) && defined(NN_HAVE_PNG) && defined(NN_HAVE_HDF5)
    assert_string_equal(missing, "");
#endif
}

/* --- files that the nets read */
static void make_records(void)
{
#ifdef NN_HAVE_LMDB
    nn_sink *sink = NULL;
    char key[16], bytes[3 * 6 * 5];
    assert_int_equal(system("rm -rf records"), 0);
    CHECK(nn_sink_open("records", NN_LMDB, &sink));
    for (int i = 0; i < 9; i++) {
        nn_document *d = NULL;
        CHECK(nn_document_new("Datum", "test", &d));
        CHECK(nn_set_int(d->root, "channels", 3));
        CHECK(nn_set_int(d->root, "height", 6));
        CHECK(nn_set_int(d->root, "width", 5));
        CHECK(nn_set_int(d->root, "label", i % 4));
        for (int k = 0; k < COUNT(bytes); k++) {
            bytes[k] = (char)(i * 31 + k * 7);
        }
        CHECK(nn_set_text(d->root, "data", bytes, sizeof bytes));
        snprintf(key, sizeof key, "%05d", i);
        CHECK(nn_sink_put(sink, key, d->root));
        nn_document_free(d);
    }
    CHECK(nn_sink_close(sink, DM_OK));
#endif
}

/* A PNG of 9 x 8 pixels of random colours, listed five times, and with windows. */
static void make_images(void)
{
    static const unsigned char png[] = {
        137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,   9,   0,
        0,   0,   8,   8,   2,   0,   0,   0,   164, 175, 66,  226, 0,   0,   0,   235, 73,  68,  65,  84,  120,
        156, 1,   224, 0,   31,  255, 0,   207, 21,  45,  60,  46,  205, 222, 149, 10,  24,  85,  110, 159, 122,
        67,  40,  177, 188, 8,   29,  115, 100, 227, 132, 107, 110, 170, 1,   150, 44,  188, 43,  200, 13,  135,
        93,  221, 94,  97,  56,  164, 62,  34,  201, 9,   241, 57,  42,  95,  191, 193, 89,  138, 90,  207, 2,
        154, 153, 189, 70,  77,  235, 61,  14,  154, 113, 233, 203, 59,  254, 237, 34,  162, 176, 243, 41,  44,
        178, 102, 15,  18,  249, 235, 3,   188, 117, 108, 148, 34,  139, 142, 99,  49,  128, 0,   200, 36,  138,
        122, 13,  91,  75,  249, 84,  232, 210, 141, 157, 46,  158, 254, 4,   204, 8,   125, 69,  216, 106, 148,
        184, 146, 55,  136, 17,  48,  204, 241, 40,  85,  24,  189, 99,  72,  151, 84,  186, 85,  13,  76,  0,
        43,  226, 246, 248, 159, 249, 155, 128, 248, 154, 201, 86,  202, 249, 13,  137, 94,  13,  21,  68,  49,
        183, 54,  160, 219, 126, 32,  1,   17,  75,  105, 109, 3,   112, 19,  169, 22,  36,  16,  71,  10,  132,
        187, 245, 70,  28,  151, 221, 149, 19,  122, 244, 184, 131, 55,  2,   154, 197, 28,  207, 64,  213, 161,
        18,  143, 233, 25,  182, 188, 108, 152, 6,   245, 114, 25,  252, 99,  64,  95,  144, 30,  93,  240, 77,
        123, 102, 1,   165, 139, 234, 84,  0,   0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130};
    FILE *f = fopen("shot.png", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(png, 1, sizeof png, f), sizeof png);
    assert_int_equal(fclose(f), 0);
    write_file("images", "shot.png 0\nshot.png 1\nshot.png 2\nshot.png 3\nshot.png 0\n");
    write_file("windows",
               "# 0\nshot.png\n3\n8\n9\n4\n1 0.9 0 0 5 6\n2 0.8 1 2 8 7\n0 0.1 3 3 8 6\n0 0.2 0 1 4 4\n");
}

static void make_rows(void)
{
#ifdef NN_HAVE_HDF5
    nn_hdf5 *f = NULL;
    float x[9 * 2 * 3 * 4], labels[9];
    for (int i = 0; i < COUNT(x); i++) {
        x[i] = uniform();
    }
    for (int i = 0; i < 9; i++) {
        labels[i] = (float)(i % 4);
    }
    CHECK(nn_hdf5_create("source.h5", &f));
    CHECK(nn_hdf5_write(f, "data", 4, (int64_t[]){9, 2, 3, 4}, x));
    CHECK(nn_hdf5_write(f, "label", 1, (int64_t[]){9}, labels));
    CHECK(nn_hdf5_close(f, DM_OK));
    write_file("rows", "source.h5\n");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_central_differences),
                                       cmocka_unit_test(test_all_types)};
    make_records();
    make_images();
    make_rows();
    int failed = run_on_workers(tests);
    for (int i = 0; i < NETS; i++) {
        free(whole[i].at);
        free(cut[i].at);
    }
    return failed;
}
