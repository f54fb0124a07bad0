/* HDF5 files to databases and databases to HDF5 files: against files that the test makes and reads with the
 * library itself, and against what layers read. */
#include "net_case.h"

#if defined(NN_HAVE_HDF5) && defined(NN_HAVE_LMDB)
#include "data/record.h"

#include <hdf5.h>
#include <unistd.h>

enum { CHANNELS = 2, HEIGHT = 3, WIDTH = 4, IMAGE = CHANNELS * HEIGHT * WIDTH, FIRST = 3, ROWS = 8 };

static double element(int row, int k)
{
    return (row * 37 + k * 11) % 256;
}

static int label(int row)
{
    return row * 5 % 7 - 1;
}

static void put(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dims, const void *data)
{
    hid_t space = H5Screate_simple(ndim, dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* a.h5 has the first rows as bytes, b.h5 the others as doubles, whose labels have two dims; more: is added to
 * an element of b. */
static void make_files(double more)
{
    unsigned char bytes[FIRST * IMAGE];
    double reals[(ROWS - FIRST) * IMAGE];
    int labels[ROWS];
    for (int i = 0; i < ROWS * IMAGE; i++) {
        if (i < FIRST * IMAGE) {
            bytes[i] = (unsigned char)element(i / IMAGE, i % IMAGE);
        } else {
            reals[i - FIRST * IMAGE] = element(i / IMAGE, i % IMAGE);
        }
    }
    for (int i = 0; i < ROWS; i++) {
        labels[i] = label(i);
    }
    reals[2 * IMAGE + 5] += more;
    hid_t file = new_file("a.h5");
    put(file, "data", H5T_NATIVE_UCHAR, 4, (hsize_t[]){FIRST, CHANNELS, HEIGHT, WIDTH}, bytes);
    put(file, "label", H5T_NATIVE_INT, 1, (hsize_t[]){FIRST}, labels);
    assert_true(H5Fclose(file) >= 0);
    file = new_file("b.h5");
    put(file, "data", H5T_NATIVE_DOUBLE, 4, (hsize_t[]){ROWS - FIRST, CHANNELS, HEIGHT, WIDTH}, reals);
    put(file, "label", H5T_NATIVE_INT, 2, (hsize_t[]){ROWS - FIRST, 1}, labels + FIRST);
    assert_true(H5Fclose(file) >= 0);
}

static dm_status convert(const char *from, const char *const *inputs, int count, const char *to, int64_t *made)
{
    dm_data_options o = DM_DATA_OPTIONS_INIT;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", to);
    assert_int_equal(system(command), 0);
    o.from = from;
    o.inputs = inputs;
    o.input_count = count;
    o.database = to;
    return dm_data_convert(&o, made);
}

static const char *const both[] = {"a.h5", "b.h5"};

/* What a layer reads is what the files have; more: of row FIRST + 2. */
static void expect_read(const char *layer, double more)
{
    dm_net *net = NULL;
    float x[ROWS][IMAGE], y[ROWS];
    CHECK(dm_net_open_text(session, layer, NULL, NULL, &net));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_read(net, "data", &x[0][0]));
    CHECK(dm_net_read(net, "label", y));
    for (int i = 0; i < ROWS; i++) {
        assert_true(y[i] == (float)label(i));
        for (int k = 0; k < IMAGE; k++) {
            assert_true(x[i][k] == (float)(element(i, k) + (i == FIRST + 2 && k == 5 ? more : 0)));
        }
    }
    CHECK(dm_net_close(net));
}

static const char
    from_lmdb[] =
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: 'rows' batch_size: 8 "
        "backend: LMDB } }\n",
    from_hdf5[] =
        "layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: 'list' "
        "batch_size: 8 } }\n";

static char *shown(const char *path)
{
    char *text = NULL;
    CHECK(dm_data_show(path, 0, 100, &text));
    return text;
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) {
        n++;
    }
    return n;
}

/* From HDF5 to a database and back, as bytes where all are bytes, else as numbers. */
static void test_both_ways(void **state)
{
    static const double mores[] = {0, 0.5, 256, -250};
    (void)state;
    write_file("list", "back.h5\n");
    for (int i = 0; i < COUNT(mores); i++) {
        int64_t count = 0, channels[2];
        double means[2][DM_MAX_CHANNEL_MEANS];
        make_files(mores[i]);
        CHECK(convert("hdf5", both, 2, "rows", &count));
        assert_int_equal(count, ROWS);
        expect_read(from_lmdb, mores[i]);
        CHECK(convert("lmdb", (const char *[]){"rows"}, 1, "back.h5", &count));
        assert_int_equal(count, ROWS);
        expect_read(from_hdf5, mores[i]);
        char *database = shown("rows"), *file = shown("back.h5");
        assert_int_equal(times(database, i == 0 ? "2 x 3 x 4 bytes" : "2 x 3 x 4 numbers"), ROWS);
        assert_int_equal(times(file, "2 x 3 x 4 numbers"), ROWS);
        assert_non_null(strstr(file, "back.h5: 8 records, 0 damaged; of each label: 0: 1 1: 1 2: 1 3: 1 4: 1 "
                                     "5: 1 below 0 or above 999: 2\n"));
        free(database);
        free(file);
        for (int k = 0; k < 2; k++) {
            CHECK(dm_data_mean(k ? "back.h5" : "rows", "mean.binaryproto", means[k], &channels[k]));
        }
        assert_true(channels[0] == CHANNELS && channels[1] == CHANNELS);
        assert_memory_equal(means[0], means[1], CHANNELS * sizeof(double));
    }
}

/* What is made has f32, as HDF5Output and Caffe's layer have it; many rows are more than one buffer. */
static void test_many_rows(void **state)
{
    enum { MANY = 1500, SIDE = 28, BYTES = SIDE * SIDE };
    static unsigned char images[16 + MANY * BYTES] = {0, 0, 8, 3,    0, 0, MANY >> 8, MANY & 255,
                                                      0, 0, 0, SIDE, 0, 0, 0,         SIDE};
    static unsigned char labels[8 + MANY] = {0, 0, 8, 1, 0, 0, MANY >> 8, MANY & 255};
    static float x[MANY][BYTES], y[MANY];
    hsize_t dims[4];
    int64_t count = 0;
    (void)state;
    for (int i = 0; i < MANY * BYTES; i++) {
        images[16 + i] = (unsigned char)(i * 7 + i / BYTES);
    }
    for (int i = 0; i < MANY; i++) {
        labels[8 + i] = (unsigned char)(i % 10);
    }
    for (int k = 0; k < 2; k++) {
        FILE *f = fopen(k ? "labels" : "images", "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(k ? labels : images, 1, k ? sizeof labels : sizeof images, f),
                         k ? sizeof labels : sizeof images);
        assert_int_equal(fclose(f), 0);
    }
    CHECK(convert("idx", (const char *[]){"images", "labels"}, 2, "many.h5", &count));
    assert_int_equal(count, MANY);
    hid_t file = H5Fopen("many.h5", H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "data", H5P_DEFAULT),
          space = H5Dget_space(set), type = H5Dget_type(set);
    assert_true(H5Tequal(type, H5T_NATIVE_FLOAT) > 0 && H5Sget_simple_extent_dims(space, dims, NULL) == 4);
    assert_true(dims[0] == MANY && dims[1] == 1 && dims[2] == SIDE && dims[3] == SIDE);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    set = H5Dopen2(file, "label", H5P_DEFAULT);
    space = H5Dget_space(set);
    assert_true(H5Sget_simple_extent_dims(space, dims, NULL) == 1 && dims[0] == MANY);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, y) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    for (int i = 0; i < MANY * BYTES; i++) {
        assert_true(x[i / BYTES][i % BYTES] == (float)images[16 + i]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_true(y[i] == (float)(i % 10));
    }
}

/* Fewer dims: channels first. */
static void test_dims(void **state)
{
    static const struct {
        int ndim;
        const char *shown;
    } cases[] = {{1, "1 x 1 x 1 bytes"}, {2, "3 x 1 x 1 bytes"}, {3, "3 x 2 x 1 bytes"}};
    const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, y[2] = {0, 1};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        int64_t count = 0;
        hid_t file = new_file("few.h5");
        put(file, "data", H5T_NATIVE_FLOAT, cases[i].ndim, (hsize_t[]){2, 3, 2}, x);
        put(file, "label", H5T_NATIVE_FLOAT, 1, (hsize_t[]){2}, y);
        H5Fclose(file);
        CHECK(convert("hdf5", (const char *[]){"few.h5"}, 1, "few", &count));
        char *text = shown("few");
        assert_int_equal(times(text, cases[i].shown), 2);
        free(text);
    }
}

/* --- what is refused, and that nothing is left behind */
static void make_bad(const char *path, int ndim, const hsize_t *dims, int64_t labels, double last)
{
    static double x[4096], y[64];
    hid_t file = new_file(path);
    put(file, "data", H5T_NATIVE_DOUBLE, ndim, dims, x);
    for (int64_t i = 0; i < labels; i++) {
        y[i] = i == labels - 1 ? last : 1;
    }
    if (labels > 0) {
        put(file, "label", H5T_NATIVE_DOUBLE, 1, (hsize_t[]){(hsize_t)labels}, y);
    }
    H5Fclose(file);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *inputs[2], *says;
    } cases[] = {
        {{"missing.h5"}, "missing.h5: cannot be read"},
        {{"wrong.h5"}, "wrong.h5: is no HDF5 file"},
        {{"unlabelled.h5"}, "unlabelled.h5: 'label' is not there"},
        {{"short.h5"}, "short.h5: 'label' does not have one number for each of the 3 rows"},
        {{"half.h5"}, "half.h5: 'label' of row 2 is 0.5, no whole number"},
        {{"large.h5"}, "large.h5: 'label' of row 2 is 3e+09, no whole number"},
        {{"five.h5"}, "five.h5: 'data' has no rows, or more than 4 dims"},
        {{"empty.h5"}, "empty.h5: 'data' has no rows"},
        {{"a.h5", "other.h5"}, "other.h5: 'data' has other rows than in a.h5"},
    };
    int64_t count = -1;
    (void)state;
    make_files(0);
    write_file("wrong.h5", "wrong\n");
    make_bad("unlabelled.h5", 2, (hsize_t[]){3, 4}, 0, 0);
    make_bad("short.h5", 2, (hsize_t[]){3, 4}, 2, 1);
    make_bad("half.h5", 2, (hsize_t[]){3, 4}, 3, 0.5);
    make_bad("large.h5", 2, (hsize_t[]){3, 4}, 3, 3e9);
    make_bad("five.h5", 5, (hsize_t[]){3, 1, 1, 1, 1}, 3, 1);
    make_bad("empty.h5", 2, (hsize_t[]){0, 4}, 0, 0);
    hid_t file = H5Fopen("empty.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    put(file, "label", H5T_NATIVE_DOUBLE, 1, (hsize_t[]){0}, (double[]){0});
    H5Fclose(file);
    make_bad("other.h5", 4, (hsize_t[]){3, CHANNELS, HEIGHT, WIDTH + 1}, 3, 1);
    for (int i = 0; i < COUNT(cases); i++) {
        for (int to_hdf5 = 0; to_hdf5 < 2; to_hdf5++) {
            const char *to = to_hdf5 ? "made.h5" : "made";
            dm_status status = convert("hdf5", cases[i].inputs, cases[i].inputs[1] ? 2 : 1, to, &count);
            if (status == DM_OK || !strstr(dm_error_message(), cases[i].says)) {
                fail_msg("%s: %s, not %s", dm_status_name(status), dm_error_message(), cases[i].says);
            }
            assert_int_not_equal(access(to, F_OK), 0);
        }
    }
    assert_int_equal(count, -1);
    char *text = shown("half.h5");
    assert_non_null(strstr(text, "       2  half.h5: 'label' of row 2 is 0.5"));
    assert_non_null(strstr(text, "half.h5: 3 records, 1 damaged; of each label: 1: 2\n"));
    free(text);
}

/* A target that is there, a LevelDB by option and HDF5 by name, records that cannot be rows of one array. */
static void test_bad_targets(void **state)
{
    dm_data_options o = DM_DATA_OPTIONS_INIT;
    int64_t count = -1;
    nn_sink *sink = NULL;
    (void)state;
    make_files(0);
    o.from = "hdf5";
    o.inputs = both;
    o.input_count = 2;
    o.database = "a.h5";
    assert_int_equal(dm_data_convert(&o, &count), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "a.h5: the file is there already"));
    o.database = "new.h5";
    o.leveldb = 1;
    assert_int_equal(dm_data_convert(&o, &count), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "new.h5 is to be an HDF5 file, by its name, and a LevelDB"));
    for (int way = 0; way < 2; way++) {
        assert_int_equal(system("rm -rf odd"), 0);
        CHECK(nn_sink_open("odd", NN_LMDB, &sink));
        for (int i = 0; i < 2; i++) {
            nn_document *d = NULL;
            CHECK(nn_document_new("Datum", "test", &d));
            CHECK(nn_set_int(d->root, "channels", 1));
            CHECK(nn_set_int(d->root, "height", 1));
            CHECK(nn_set_int(d->root, "width", way == 0 ? 1 + i : 1));
            CHECK(nn_set_int(d->root, "label", way == 1 && i == 1 ? (1 << 24) + 1 : 0));
            CHECK(nn_set_text(d->root, "data", "ab", way == 0 ? (size_t)(1 + i) : 1));
            CHECK(nn_sink_put(sink, i ? "second" : "first", d->root));
            nn_document_free(d);
        }
        CHECK(nn_sink_close(sink, DM_OK));
        dm_status status = convert("lmdb", (const char *[]){"odd"}, 1, "odd.h5", &count);
        assert_int_equal(status, way == 0 ? DM_ERR_SHAPE : DM_ERR_UNSUPPORTED);
        assert_non_null(
            strstr(dm_error_message(), way == 0 ? "odd.h5: record '00000001' is 1 x 1 x 2, the first 1 x 1 x 1"
                                                : "odd.h5: record '00000001' has the label 16777217"));
        assert_int_not_equal(access("odd.h5", F_OK), 0);
    }
    assert_int_equal(count, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways), cmocka_unit_test(test_many_rows),   cmocka_unit_test(test_dims),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_bad_targets),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

#else

int main(void)
{
    puts("a build without HDF5 or LMDB");
    return 0;
}
#endif
