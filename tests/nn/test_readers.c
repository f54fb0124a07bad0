/* Workers that read their own records: batches have the bits of those that the program's process reads, and so
 * have damage and what is said of it. In process, and with ranks (the program on all of them). */
#include "net_case.h"

#include "data/hdf5.h"
#include "data/record.h"

#include <dmath/layers.h>

enum { RECORDS = 23, CHANNELS = 2, HEIGHT = 9, WIDTH = 7, ELEMENTS = CHANNELS * HEIGHT * WIDTH };

static bool have_lmdb, have_leveldb, have_hdf5;

static unsigned hash(unsigned x)
{
    x = (x ^ 61) ^ x >> 16;
    x += x << 3;
    x ^= x >> 4;
    return x * 0x27d4eb2d;
}

/* Records of bytes, or of floats; damaged: record number % 5 == 2 is no record. False: there is no such
 * library. */
static bool make_database(const char *path, nn_backend backend, bool floats, bool damaged)
{
    nn_sink *sink = NULL;
    dm_status status = nn_sink_open(path, backend, &sink);
    for (int i = 0; status == DM_OK && i < RECORDS; i++) {
        char key[16];
        unsigned char bytes[ELEMENTS];
        nn_document *d = NULL;
        nn_entry *reals = NULL;
        snprintf(key, sizeof key, "%05d", i);
        if (damaged && i % 5 == 2) {
            status = sink->type->put(sink, key, "\xff\xff no record", 12);
            continue;
        }
        CHECK(nn_document_new("Datum", "record", &d));
        CHECK(nn_set_int(d->root, "channels", CHANNELS));
        CHECK(nn_set_int(d->root, "height", HEIGHT));
        CHECK(nn_set_int(d->root, "width", WIDTH));
        CHECK(nn_set_int(d->root, "label", i % 10));
        for (int k = 0; k < ELEMENTS; k++) {
            bytes[k] = (unsigned char)hash((unsigned)(i * ELEMENTS + k));
        }
        if (floats) {
            CHECK(nn_entry_grow(d->root, nn_schema_by_name("Datum", "float_data"), ELEMENTS, &reals));
            for (int k = 0; k < ELEMENTS; k++) {
                reals->at.real32[k] = (float)bytes[k] / 7;
                reals->count = k + 1;
            }
        } else {
            CHECK(nn_set_text(d->root, "data", (char *)bytes, sizeof bytes));
        }
        status = nn_sink_put(sink, key, d->root);
        nn_document_free(d);
    }
    status = sink ? nn_sink_close(sink, status) : status;
    if (status != DM_OK && status != DM_ERR_UNSUPPORTED) {
        fail_msg("%s: %s", path, dm_error_message());
    }
    return status == DM_OK;
}

/* Images so large that GPUs fetch them whole. mixed: every fifth has another shape, every sixth is damaged. */
enum { LARGE = 130, LARGE_ELEMENTS = 3 * LARGE * LARGE, LARGE_CROP = 100 };
static void make_large(const char *path, bool mixed)
{
    nn_sink *sink = NULL;
    unsigned char *bytes = malloc(2 * LARGE_ELEMENTS);
    assert_non_null(bytes);
    CHECK(nn_sink_open(path, NN_LMDB, &sink));
    for (int i = 0; i < RECORDS; i++) {
        char key[16];
        const int height = mixed && i % 5 == 3 ? LARGE - 17 + i : LARGE,
                  width = mixed && i % 5 == 3 ? LARGE + 7 : LARGE;
        nn_document *d = NULL;
        snprintf(key, sizeof key, "%05d", i);
        if (mixed && i % 6 == 4) {
            CHECK(sink->type->put(sink, key, "\xff\xff no record", 12));
            continue;
        }
        for (int k = 0; k < 3 * height * width; k++) {
            bytes[k] = (unsigned char)hash((unsigned)(i * LARGE_ELEMENTS + k));
        }
        CHECK(nn_document_new("Datum", "record", &d));
        CHECK(nn_set_int(d->root, "channels", 3));
        CHECK(nn_set_int(d->root, "height", height));
        CHECK(nn_set_int(d->root, "width", width));
        CHECK(nn_set_int(d->root, "label", i % 10));
        CHECK(nn_set_text(d->root, "data", (char *)bytes, (size_t)(3 * height * width)));
        CHECK(nn_sink_put(sink, key, d->root));
        nn_document_free(d);
    }
    CHECK(nn_sink_close(sink, DM_OK));
    free(bytes);
}

static bool make_hdf5(void)
{
    static const int rows[] = {5, 1, 8};
    FILE *list = fopen("list", "w");
    assert_non_null(list);
    for (int f = 0; f < COUNT(rows); f++) {
        float x[8 * ELEMENTS], y[8];
        char path[16];
        nn_hdf5 *file = NULL;
        snprintf(path, sizeof path, "%d.h5", f);
        fprintf(list, "%s\n", path);
        for (int k = 0; k < rows[f] * ELEMENTS; k++) {
            x[k] = (float)hash((unsigned)(f * 10000 + k)) / 1e9F;
        }
        for (int k = 0; k < rows[f]; k++) {
            y[k] = (float)(f * 10 + k);
        }
        dm_status status = nn_hdf5_create(path, &file);
        if (status == DM_ERR_UNSUPPORTED) {
            fclose(list);
            return false;
        }
        CHECK(status);
        CHECK(nn_hdf5_write(file, "x", 4, (int64_t[]){rows[f], CHANNELS, HEIGHT, WIDTH}, x));
        CHECK(nn_hdf5_write(file, "y", 1, (int64_t[]){rows[f]}, y));
        CHECK(nn_hdf5_close(file, DM_OK));
    }
    assert_int_equal(fclose(list), 0);
    return true;
}

/* Behind dm_init, which returns on rank 0 alone. */
static int begin_all(void **state)
{
    if (begin(state) != 0 || system("rm -rf bytes floats damaged level large mixed *.h5") != 0) {
        return -1;
    }
    have_lmdb = make_database("bytes", NN_LMDB, false, false) &&
                make_database("floats", NN_LMDB, true, false) && make_database("damaged", NN_LMDB, false, true);
    if (have_lmdb) {
        double means[DM_MAX_CHANNEL_MEANS];
        int64_t channels;
        make_large("large", false);
        make_large("mixed", true);
        CHECK(dm_data_mean("large", "mean.binaryproto", means, &channels));
    }
    have_leveldb = make_database("level", NN_LEVELDB, false, false);
    have_hdf5 = make_hdf5();
    return 0;
}

/* What a net has said. */
typedef struct said {
    char text[8192];
} said;

static void note(void *context, const char *line)
{
    said *s = context;
    if (strstr(line, "skipped") || strstr(line, "reads")) {
        strncat(s->text, line, sizeof s->text - strlen(s->text) - 2);
        strcat(s->text, "\n");
    }
}

static dm_status open_reading(const char *text, int read, dm_net_options options, said *log, dm_net **net)
{
    options.phase = DM_PHASE_TRAIN;
    options.read = read;
    options.seed = 7;
    options.log = note;
    options.log_context = log;
    log->text[0] = 0;
    return dm_net_open_text(session, text, "net", &options, net);
}

enum { MOST_ELEMENTS = 12 * LARGE_ELEMENTS };

static void read_blob(dm_net *net, const char *name, float *out, int64_t *count)
{
    dm_array a;
    dm_array_info info = {.size = sizeof info};
    CHECK(dm_net_blob(net, name, &a, NULL));
    CHECK(dm_array_query(session, a, &info));
    *count = 1;
    for (int d = 0; d < info.ndim; d++) {
        *count *= info.shape[d];
    }
    assert_true(*count <= MOST_ELEMENTS);
    CHECK(dm_read_as(session, a, out));
}

static void compare_blobs(dm_net *a, dm_net *b, const char *name)
{
    static float x[MOST_ELEMENTS], y[MOST_ELEMENTS];
    int64_t n = 0, m = 0;
    read_blob(a, name, x, &n);
    read_blob(b, name, y, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
}

static void compare_and_close(dm_net *a, dm_net *b, int batches)
{
    for (int i = 0; i < batches; i++) {
        CHECK(dm_net_forward(a, NULL));
        CHECK(dm_net_forward(b, NULL));
        compare_blobs(a, b, "x");
        compare_blobs(a, b, "y");
    }
    CHECK(dm_net_close(a));
    CHECK(dm_net_close(b));
}

/* Two nets in one session, batch by batch; with a hole, as a resumed run has. */
static void compare_nets(const char *text, dm_net_options options, int batches)
{
    said log[2];
    dm_net *by_program = NULL, *by_workers = NULL;
    CHECK(open_reading(text, DM_READ_BY_PROGRAM, options, &log[0], &by_program));
    CHECK(open_reading(text, DM_READ_BY_WORKERS, options, &log[1], &by_workers));
    assert_string_equal(log[0].text, "");
    assert_non_null(strstr(log[1].text, "layer 'd': each worker reads its own records"));
    compare_and_close(by_program, by_workers, batches);
}

static const char *data(const char *source, int batch, const char *transform)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: '%s' batch_size: %d "
             "backend: LMDB "
             "rand_skip: 9 } transform_param { %s } }\n"
             "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { num_output: "
             "10 } }\n"
             "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }\n",
             source, batch, transform);
    return text;
}

static void test_bits(void **state)
{
    static const char *const transforms[] = {"", "crop_size: 5 mirror: true",
                                             "crop_size: 4 mirror: true scale: 0.3 mean_value: 5",
                                             "mean_value: 5 mean_value: 6 mirror: true"};
    static const char *const sources[] = {"bytes", "floats"};
    static const int batches[] = {1, 2, 7, 40}; /* fewer than workers; uneven; more than records */
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    for (int i = 0; i < COUNT(transforms) * COUNT(sources) * COUNT(batches); i++) {
        dm_net_options options = DM_NET_OPTIONS_INIT;
        const int n = i / COUNT(transforms) / COUNT(sources);
        options.shuffle = i % 3 != 0;
        options.slices = i % 5 == 0 ? 0 : 4;
        options.type = i % 4 == 1 ? DM_BF16 : DM_F32;
        compare_nets(data(sources[i / COUNT(transforms) % COUNT(sources)], batches[n],
                          transforms[i % COUNT(transforms)]),
                     options, 9);
    }
}

static void test_hdf5(void **state)
{
    (void)state;
    if (!have_hdf5) {
        skip();
    }
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        for (int batch = 1; batch < 20; batch += 5) {
            char text[512];
            dm_net_options options = DM_NET_OPTIONS_INIT;
            options.shuffle = shuffle;
            snprintf(text, sizeof text,
                     "layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'y' hdf5_data_param { source: 'list' "
                     "batch_size: "
                     "%d } }\n",
                     batch);
            compare_nets(text, options, 7);
        }
    }
}

static bool on_gpus(void)
{
    const char *device = getenv("DMATH_DEVICE");
    return device && strcmp(device, "cpu") != 0;
}

/* GPUs fetch whole records from the database; what has another shape or is damaged is brought by the host. */
static void test_large(void **state)
{
    static const struct {
        const char *source, *transform;
    } cases[] = {{"large", ""},
                 {"large", "crop_size: 100 mirror: true mean_file: 'mean.binaryproto'"},
                 {"large", "mirror: true mean_file: 'mean.binaryproto' scale: 0.1"},
                 {"mixed", "crop_size: 100 mirror: true mean_value: 5 mean_value: 6 mean_value: 7"}};
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    for (int i = 0; i < COUNT(cases); i++) {
        for (int batch = 1; batch <= 12; batch += 11) {
            said log[2];
            dm_net *net[2] = {NULL, NULL};
            dm_net_options options = DM_NET_OPTIONS_INIT;
            options.skip_damaged = 1;
            options.shuffle = i % 2;
            for (int k = 0; k < 2; k++) {
                CHECK(open_reading(data(cases[i].source, batch, cases[i].transform),
                                   k ? DM_READ_BY_WORKERS : DM_READ_BY_PROGRAM, options, &log[k], &net[k]));
            }
            const bool fetched = strstr(log[1].text, "and its GPU fetches them from") != NULL;
            if (fetched != on_gpus()) {
                fail_msg("%s", log[1].text);
            }
            compare_and_close(net[0], net[1], 5);
        }
    }
}

/* Damaged records are counted and named alike, and the same others stand in for them. */
static void test_damage(void **state)
{
    said log[2];
    dm_net *net[2] = {NULL, NULL};
    dm_net_options options = DM_NET_OPTIONS_INIT;
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    options.skip_damaged = 1;
    options.shuffle = 1;
    for (int i = 0; i < 2; i++) {
        CHECK(open_reading(data("damaged", 6, "crop_size: 5 mirror: true"),
                           i ? DM_READ_BY_WORKERS : DM_READ_BY_PROGRAM, options, &log[i], &net[i]));
        log[i].text[0] = 0;
    }
    compare_and_close(net[0], net[1], 8);
    assert_non_null(strstr(log[0].text, "skipped"));
    assert_string_equal(log[0].text, log[1].text);
}

/* A damaged record fails the command at the worker that needs it. The session goes on. */
static void test_refused(void **state)
{
    said log;
    dm_net *net = NULL;
    dm_array x;
    float *elements = malloc((size_t)6 * ELEMENTS * sizeof *elements);
    dm_net_options options = DM_NET_OPTIONS_INIT;
    (void)state;
    if (!have_lmdb) {
        free(elements);
        skip();
    }
    assert_non_null(elements);
    CHECK(open_reading(data("damaged", 6, ""), DM_READ_BY_WORKERS, options, &log, &net));
    CHECK(dm_net_blob(net, "x", &x, NULL));
    dm_status status = DM_OK;
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        status = dm_net_forward(net, NULL);
        status = status == DM_OK ? dm_read(session, x, elements) : status;
    }
    assert_int_equal(status, DM_ERR_TASK);
    static const char *const parts[] = {"dmath.nn.read", "worker", "damaged: ", "record '000"};
    for (int i = 0; i < COUNT(parts); i++) {
        if (!strstr(dm_error_message(), parts[i])) {
            fail_msg("%s and not %s", dm_error_message(), parts[i]);
        }
    }
    CHECK(dm_net_close(net));
    free(elements);
    CHECK(open_reading(data("bytes", 6, ""), DM_READ_BY_WORKERS, options, &log, &net));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_sync(session));
    CHECK(dm_net_close(net));
}

static void test_leveldb(void **state)
{
    static const char text[] =
        "layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'level' batch_size: 3 } }";
    said log;
    dm_net *net = NULL;
    const dm_net_options options = DM_NET_OPTIONS_INIT;
    (void)state;
    if (!have_leveldb) {
        skip();
    }
    assert_int_equal(open_reading(text, DM_READ_BY_WORKERS, options, &log, &net), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(dm_error_message(), "a LevelDB is open in one process only"));
    CHECK(open_reading(text, DM_READ_DEFAULT, options, &log, &net));
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_close(net));
}

static int64_t bytes_received(void)
{
    int64_t sum = 0;
    for (int w = 0; w < dm_workers(session); w++) {
        dm_counters c = {.size = sizeof c};
        CHECK(dm_counters_get(session, w, &c));
        sum += c.bytes_received;
    }
    return sum;
}

/* The program's process sends no records. */
static void test_bytes(void **state)
{
    enum { BATCHES = 10, BATCH = 21 };
    dm_net_options options = DM_NET_OPTIONS_INIT;
    int64_t bytes[2];
    (void)state;
    if (!have_lmdb) {
        skip();
    }
    for (int i = 0; i < 2; i++) {
        char text[512];
        said log;
        dm_net *net = NULL;
        snprintf(text, sizeof text,
                 "layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'bytes' batch_size: %d "
                 "backend: "
                 "LMDB } }\n",
                 BATCH);
        CHECK(open_reading(text, i ? DM_READ_BY_WORKERS : DM_READ_BY_PROGRAM, options, &log, &net));
        CHECK(dm_net_forward(net, NULL)); /* makes arrays */
        const int64_t before = bytes_received();
        for (int k = 0; k < BATCHES; k++) {
            CHECK(dm_net_forward(net, NULL));
        }
        bytes[i] = bytes_received() - before;
        CHECK(dm_net_close(net));
    }
    assert_true(bytes[0] >= BATCHES * BATCH * ELEMENTS);
    assert_int_equal(bytes[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),   cmocka_unit_test(test_large),   cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_refused), cmocka_unit_test(test_leveldb),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, begin_all, end);
}
