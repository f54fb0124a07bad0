/* Data layers: idx files to databases, and batches with mean, scale, crop and mirror against loops. */
#include <dmath/dmath.h>
#include <dmath/nn.h>

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
    return (unsigned char)(image * 31 + y * 7 + x * 3);
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

static dm_net *open_net(const char *transform, int phase)
{
    dm_net_options options = DM_NET_OPTIONS_INIT;
    dm_net *net = NULL;
    FILE *f = fopen("net.prototxt", "w");
    assert_non_null(f);
    fprintf(f,
            "layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'records' batch_size: %d "
            "backend: LMDB }\n"
            " transform_param { %s } }\n",
            BATCH, transform);
    assert_int_equal(fclose(f), 0);
    options.phase = phase;
    CHECK(dm_net_open(session, "net.prototxt", &options, &net));
    return net;
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
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
