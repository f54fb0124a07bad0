/* Data layers: idx files to databases, and batches with mean, scale, crop and mirror against loops. */
#include <dmath/dmath.h>
#include <dmath/nn.h>

#include "data/record.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define CHECK(call)                                                                                            \
    do {                                                                                                       \
        if ((call) != DM_OK) {                                                                                 \
            fail_msg("%s: %s", #call, dm_error_message());                                                     \
        }                                                                                                      \
    } while (0)

enum { IMAGES = 7, HEIGHT = 6, WIDTH = 5, BATCH = 3, CROP = 4 };

static dm_session *session;
static bool have_lmdb;

static unsigned char pixel(int image, int y, int x)
{
    return (unsigned char)(image * 31 + y * (7 + image) + x * (3 + image * image));
}

static void write_bytes(const char *path, const unsigned char *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static int begin(void **state)
{
    static unsigned char images[16 + IMAGES * HEIGHT * WIDTH] = {0, 0, 8, 3,      0, 0, 0, IMAGES,
                                                                 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    static const unsigned char labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES, 4, 1, 0, 2, 9, 3, 5};
    dm_config config = DM_CONFIG_INIT;
    int64_t count = 0;
    (void)state;
    for (int i = 0; i < IMAGES * HEIGHT * WIDTH; i++) {
        images[16 + i] = pixel(i / (HEIGHT * WIDTH), i / WIDTH % HEIGHT, i % WIDTH);
    }
    write_bytes("images", images, sizeof images);
    write_bytes("labels", labels, sizeof labels);
    if (system("rm -rf records other") != 0) {
        return -1;
    }
    config.workers = 2;
    dm_status status = dm_data_convert_idx("images", "labels", "records", &count);
    have_lmdb = status != DM_ERR_UNSUPPORTED;
    if (have_lmdb && (status != DM_OK || count != IMAGES)) {
        return -1;
    }
    return dm_init(&config, &session) == DM_OK ? 0 : -1;
}

static int end(void **state)
{
    int64_t alive = -1;
    (void)state;
    return dm_finalize(session, &alive) == DM_OK && alive == 0 ? 0 : -1;
}

static dm_status try_net(const char *source, const char *transform, const dm_net_options *options, dm_net **net)
{
    char text[512];
    snprintf(text, sizeof text,
             "layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s' batch_size: %d "
             "backend: LMDB }\n"
             " transform_param { %s } }\n",
             source, BATCH, transform);
    return dm_net_open_text(session, text, "net", options, net);
}

static dm_net *open_net_of(const char *source, const char *transform, int phase)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    options.phase = phase;
    CHECK(try_net(source, transform, &options, &net));
    return net;
}

static dm_net *open_net(const char *transform, int phase)
{
    return open_net_of("records", transform, phase);
}

static void test_plain(void **state)
{
    static const float labels[IMAGES] = {4, 1, 0, 2, 9, 3, 5};
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    dm_net *net = open_net("scale: 0.5 mean_value: 10", DM_PHASE_TRAIN);
    dm_array x, y;
    CHECK(dm_net_blob(net, "x", &x, NULL));
    CHECK(dm_net_blob(net, "y", &y, NULL));
    for (int batch = 0; batch < 5; batch++) { /* more than twice around */
        float got[BATCH][HEIGHT][WIDTH], label[BATCH];
        CHECK(dm_net_forward(net, NULL));
        CHECK(dm_read(session, x, &got[0][0][0]));
        CHECK(dm_read(session, y, label));
        for (int i = 0; i < BATCH; i++) {
            int image = (batch * BATCH + i) % IMAGES;
            assert_true(label[i] == labels[image]);
            for (int k = 0; k < HEIGHT * WIDTH; k++) {
                float expected = ((float)pixel(image, k / WIDTH, k % WIDTH) - 10) * 0.5F;
                assert_true(got[i][k / WIDTH][k % WIDTH] == expected);
            }
        }
    }
    CHECK(dm_net_close(net));
}

/* Is the image the crop at this place, mirrored or not? The mean is that of the place in the record. */
static bool is_crop(float (*got)[CROP], int image, int top, int left, bool mirrored)
{
    for (int k = 0; k < CROP * CROP; k++) {
        int row = k / CROP, col = k % CROP, source = mirrored ? CROP - 1 - col : col;
        if (got[row][col] != (float)pixel(image, top + row, left + source) - 1) {
            return false;
        }
    }
    return true;
}

static void test_crop(void **state)
{
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    for (int train = 0; train < 2; train++) {
        dm_net *net =
            open_net("crop_size: 4 mean_value: 1 mirror: true", train ? DM_PHASE_TRAIN : DM_PHASE_TEST);
        dm_array x;
        int places = 0, mirrored = 0, images = 0;
        CHECK(dm_net_blob(net, "x", &x, NULL));
        for (int batch = 0; batch < 20; batch++) {
            float got[BATCH][CROP][CROP];
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_read(session, x, &got[0][0][0]));
            for (int i = 0; i < BATCH; i++, images++) {
                int found = -1;
                for (int c = 0; c < 12 && found < 0; c++) { /* 3 x 2 places, mirrored or not */
                    found = is_crop(got[i], (batch * BATCH + i) % IMAGES, c % 6 / 2, c % 2, c >= 6) ? c : -1;
                }
                assert_true(found >= 0);
                places |= 1 << found % 6;
                mirrored += found >= 6;
            }
        }
        assert_int_equal(places, train ? 63 : 1 << (1 * 2 + 0)); /* in tests (6 - 4) / 2 and (5 - 4) / 2 */
        assert_in_range(mirrored, images / 4, images * 3 / 4);
        CHECK(dm_net_close(net));
    }
}

/* --- databases with records of floats: record i has the pixels of image i, as floats where bit i of `floats`
 * is set */
static void make_records(const char *folder, unsigned floats)
{
    char command[128], key[16], bytes[HEIGHT * WIDTH];
    nn_sink *sink = NULL;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    CHECK(nn_sink_open(folder, NN_LMDB, &sink));
    for (int i = 0; i < IMAGES; i++) {
        nn_document *d = NULL;
        CHECK(nn_document_new("Datum", "test", &d));
        CHECK(nn_set_int(d->root, "channels", 1));
        CHECK(nn_set_int(d->root, "height", HEIGHT));
        CHECK(nn_set_int(d->root, "width", WIDTH));
        CHECK(nn_set_int(d->root, "label", i));
        for (int k = 0; k < HEIGHT * WIDTH; k++) {
            unsigned char value = pixel(i, k / WIDTH, k % WIDTH);
            bytes[k] = (char)value;
            if (floats >> i & 1) {
                CHECK(nn_set_real(d->root, "float_data", value));
            }
        }
        if (!(floats >> i & 1)) {
            CHECK(nn_set_text(d->root, "data", bytes, sizeof bytes));
        }
        snprintf(key, sizeof key, "key%05d", i);
        CHECK(nn_sink_put(sink, key, d->root));
        nn_document_free(d);
    }
    CHECK(nn_sink_close(sink, DM_OK));
}

/* The mean image is taken at the place that a pixel has in its record, before scale and mirror; of bytes and
 * floats. */
static void test_mean_image(void **state)
{
    double means[DM_MAX_CHANNEL_MEANS], mean[HEIGHT][WIDTH];
    int64_t channels = 0;
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    CHECK(dm_data_mean("records", "mean.binaryproto", means, &channels));
    for (int k = 0; k < HEIGHT * WIDTH; k++) {
        mean[k / WIDTH][k % WIDTH] = 0;
        for (int i = 0; i < IMAGES; i++) {
            mean[k / WIDTH][k % WIDTH] += (double)pixel(i, k / WIDTH, k % WIDTH) / IMAGES;
        }
    }
    make_records("floats", (1 << IMAGES) - 1);
    for (int floats = 0; floats < 2; floats++) {
        dm_net *net =
            open_net_of(floats ? "floats" : "records",
                        "crop_size: 4 mirror: true scale: 0.5 mean_file: 'mean.binaryproto'", DM_PHASE_TRAIN);
        dm_array x;
        int ways = 0;
        CHECK(dm_net_blob(net, "x", &x, NULL));
        for (int batch = 0; batch < 20; batch++) {
            float got[BATCH][CROP][CROP];
            CHECK(dm_net_forward(net, NULL));
            CHECK(dm_read(session, x, &got[0][0][0]));
            for (int i = 0; i < BATCH; i++) {
                int image = (batch * BATCH + i) % IMAGES, found = -1;
                for (int c = 0; c < 12 && found < 0; c++) { /* 3 x 2 places, mirrored or not */
                    bool same = true;
                    for (int k = 0; k < CROP * CROP; k++) {
                        int row = k / CROP, col = k % CROP;
                        int y = c % 6 / 2 + row, source = c % 2 + (c >= 6 ? CROP - 1 - col : col);
                        double want = ((double)pixel(image, y, source) - mean[y][source]) * 0.5;
                        same = same && fabs((double)got[i][row][col] - want) < 1e-4;
                    }
                    found = same ? c : -1;
                }
                assert_true(found >= 0);
                ways |= 1 << found;
            }
        }
        assert_int_equal(ways, 0xfff);
        CHECK(dm_net_close(net));
    }
}

static void take_line(void *context, const char *line)
{
    char *last = context;
    if (strstr(line, "skipped")) {
        snprintf(last, 256, "%s", line);
    }
}

/* Where the first record is of bytes, one of floats is an error that names it, or is skipped and counted. */
static void test_mixed_records(void **state)
{
    static const char message[] =
        "net:2: layer 'd' reads a record of floats, others are of bytes (record 4 of mixed)";
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    dm_array y;
    char line[256] = "";
    float labels[BATCH];
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    make_records("mixed", 1U << 4);
    CHECK(try_net("mixed", "scale: 1", NULL, &net));
    CHECK(dm_net_forward(net, NULL));
    for (int again = 0; again < 2; again++) {
        dm_status status = dm_net_forward(net, NULL);
        if (status != DM_ERR_SHAPE || strcmp(dm_error_message(), message) != 0) {
            fail_msg("%s: %s", dm_status_name(status), dm_error_message());
        }
    }
    CHECK(dm_net_close(net));
    options.skip_damaged = 1;
    options.log = take_line;
    options.log_context = line;
    CHECK(try_net("mixed", "scale: 1", &options, &net));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_blob(net, "y", &y, NULL));
    CHECK(dm_read(session, y, labels));
    assert_true(labels[0] == 3 && labels[1] == 5 && labels[2] == 5); /* the next one stands in */
    assert_true(strstr(line, "skipped 1 damaged records so far: ") && strstr(line, message));
    CHECK(dm_net_close(net));
}

/* Where the first one has floats, those of bytes become floats. */
static void test_records_of_floats(void **state)
{
    float x[BATCH][HEIGHT][WIDTH];
    dm_array a;
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    make_records("mixed", 5);
    dm_net *net = open_net_of("mixed", "scale: 1", DM_PHASE_TEST);
    CHECK(dm_net_blob(net, "x", &a, NULL));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_read(session, a, &x[0][0][0]));
    for (int k = 0; k < BATCH * HEIGHT * WIDTH; k++) {
        int i = k / (HEIGHT * WIDTH), row = k / WIDTH % HEIGHT, col = k % WIDTH;
        assert_true(x[i][row][col] == (float)pixel(i, row, col));
    }
    CHECK(dm_net_close(net));
}

static void test_refusals(void **state)
{
    static const unsigned char cut[] = {0, 0, 8, 1, 0, 0, 0, 9, 1, 2},
                               wrong[] = {0, 0, 13, 1, 0, 0, 0, 1, 1, 2, 3, 4};
    static const unsigned char large[] = {0,   0,   8,   3,   255, 255, 255, 255,
                                          255, 255, 255, 255, 255, 255, 255, 255};
    static const struct {
        const char *images, *labels, *message;
    } cases[] = {{"missing", "labels", "missing: cannot be opened"},
                 {"cut", "labels", "cut: does not have the 9 bytes"},
                 {"wrong", "labels", "wrong: is not an idx file"},
                 {"large", "labels", "large: its header asks for more than"},
                 {"labels", "labels", "labels: has 1 dims; images have 3"},
                 {"images", "images", "images: does not have one label for each of the 7 images"},
                 {"images", "labels", "records: the folder cannot be made"}};
    int64_t count = -1;
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    write_bytes("cut", cut, sizeof cut);
    write_bytes("wrong", wrong, sizeof wrong);
    write_bytes("large", large, sizeof large);
    for (int i = 0; i < COUNT(cases); i++) {
        assert_int_not_equal(dm_data_convert_idx(cases[i].images, cases[i].labels, "records", &count), DM_OK);
        if (!strstr(dm_error_message(), cases[i].message)) {
            fail_msg("%s and not %s", dm_error_message(), cases[i].message);
        }
    }
    assert_int_equal(count, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_crop),
        cmocka_unit_test(test_mean_image),
        cmocka_unit_test(test_mixed_records),
        cmocka_unit_test(test_records_of_floats),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
