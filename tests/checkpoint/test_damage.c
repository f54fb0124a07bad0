/* A checkpoint of format version 1 is understood for ever; whatever byte of it changes is noticed, and its file
 * is named. */
#include "robust/robust.h"

#include "io/hash.h"
#include "io/parts.h"

#include <errno.h>
#include <sys/stat.h>

static const char *const files[] = {"manifest.json", "weights.npy", "layers%2F1.npy"};
static const char *whole; /* the folder of the sources */
enum { FILES = 3, MOST_BYTES = 4096 };

static long read_file(const char *folder, const char *name, char *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    long n = (long)fread(bytes, 1, MOST_BYTES, f);
    fclose(f);
    return n;
}

static void write_file(const char *name, const char *bytes, long count)
{
    char path[1024];
    snprintf(path, sizeof path, "damaged/%s", name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, (size_t)count, f), count);
    assert_int_equal(fclose(f), 0);
}

/* What was saved, on any number of workers. */
static void test_version_1(void **state)
{
    (void)state;
    for (int workers = 1; workers < 5; workers++) {
        dm_session *s = open_session(workers, "log=error");
        dm_array a, b, c;
        int64_t step = 0;
        double rate = 0, host[24], vector[5];
        char note[2];
        OK(dm_checkpoint_array(s, whole, "weights", DM_F64, NULL, &a));
        OK(dm_vector(s, DM_F64, 5, &b));
        const dm_checkpoint_item items[] = {DM_KEEP_ARRAY("layers/1", b), DM_KEEP_VALUE("step", &step),
                                            DM_KEEP_VALUE("rate", &rate), DM_KEEP_BYTES("note", note, 2)};
        OK(dm_checkpoint_load(s, whole, 4, items));
        OK(dm_read(s, a, host));
        OK(dm_read(s, b, vector));
        for (int i = 0; i < 24; i++) {
            assert_true(host[i] == 0.5 + 0.25 * i);
        }
        for (int i = 0; i < 5; i++) {
            assert_true(vector[i] == i - 2);
        }
        assert_true(step == 42 && rate == 0.1 && memcmp(note, "v1", 2) == 0);
        OK(dm_checkpoint_array(s, whole, "weights", 0, NULL,
                               &c)); /* by columns, on three workers, as it was saved */
        dm_array_info info = {.size = sizeof info};
        OK(dm_array_query(s, c, &info));
        assert_int_equal(info.dtype, DM_F32);
        assert_int_equal(info.grid[1], workers == 3 ? 3 : 1);
        const dm_array all[] = {a, b, c};
        for (int i = 0; i < 3; i++) {
            OK(dm_array_destroy(s, all[i]));
        }
        close_session(s);
    }
}

static dm_session *loading;
static dm_array weights, layer;

static void is_noticed(const char *file, long at)
{
    const dm_checkpoint_item items[] = {DM_KEEP_ARRAY("layers/1", layer), DM_KEEP_ARRAY("weights", weights)};
    dm_status status = dm_checkpoint_verify("damaged", NULL, NULL);
    if ((status != DM_ERR_FORMAT && status != DM_ERR_IO) || !strstr(dm_error_message(), file)) {
        fail_msg("%s, byte %ld: verify gave %s: %s", file, at, dm_status_name(status), dm_error_message());
    }
    status = dm_checkpoint_load(loading, "damaged", 2, items);
    if ((status != DM_ERR_FORMAT && status != DM_ERR_IO) || !strstr(dm_error_message(), file)) {
        fail_msg("%s, byte %ld: load gave %s: %s", file, at, dm_status_name(status), dm_error_message());
    }
    assert_int_equal(dm_checkpoint_exists("damaged"), strcmp(file, "manifest.json") != 0);
}

static void test_every_byte(void **state)
{
    (void)state;
    char bytes[FILES][MOST_BYTES];
    long count[FILES];
    unsigned seed = 1;
    for (int i = 0; i < FILES; i++) {
        count[i] = read_file(whole, files[i], bytes[i]);
        write_file(files[i], bytes[i], count[i]);
    }
    loading = open_session(2, "log=error");
    dm_layout rows = dm_layout_rows(loading);
    OK(dm_array_create(loading, DM_F32, 2, (int64_t[]){4, 6}, &rows, &weights));
    OK(dm_array_create(loading, DM_BF16, 1, (int64_t[]){5}, NULL, &layer));
    for (int i = 0; i < FILES; i++) {
        for (long at = 0; at < count[i]; at++) {
            seed = seed * 1103515245 + 12345;
            char before = bytes[i][at];
            bytes[i][at] ^= (char)(1 << (seed >> 16) % 8);
            write_file(files[i], bytes[i], count[i]);
            is_noticed(files[i], at);
            bytes[i][at] = before;
        }
        write_file(files[i], bytes[i], count[i] - 1);
        is_noticed(files[i], count[i] - 1);
        bytes[i][count[i]] = ' ';
        write_file(files[i], bytes[i], count[i] + 1);
        is_noticed(files[i], count[i]);
        write_file(files[i], bytes[i], count[i]);
        OK(dm_checkpoint_verify("damaged", NULL, NULL));
    }
    assert_int_equal(unlink("damaged/weights.npy"), 0);
    is_noticed("weights.npy", -1);
    OK(dm_array_destroy(loading, weights));
    OK(dm_array_destroy(loading, layer));
    close_session(loading);
}

/* A manifest with a right hash at its end, and something else wrong: the field is named. */
static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *here, *put, *word;
    } rows[] = {
        {"\"dmath_checkpoint\": 1", "\"dmath_checkpoint\": 2", "version 2 of the format is unknown"},
        {"\"dmath_checkpoint\": 1", "\"dmath_checkpoint\": \"1\"", "\"dmath_checkpoint\""},
        {"\"workers\": 3", "\"workers\": 0", "\"workers\""},
        {"\"workers\": 3", "\"workers\": 1e3", "\"workers\""},
        {"\"items\": [", "\"item\": [", "\"items\""},
        {"{\n \"dmath", "[\n \"dmath", "is not JSON"},
        {"\"replicas\": 1", "\"replicas\": 1, \"replicas\": 1", "is not JSON"},
        {"\"name\": \"weights\"", "\"name\": 7", "\"name\""},
        {"\"weights.npy\"", "\"../weights.npy\"", "\"file\""},
        {"\"weights.npy\"", "\"a/weights.npy\"", "\"file\""},
        {"\"weights.npy\"", "\"\"", "\"file\""},
        {"\"f32\"", "\"f33\"", "\"dtype\""},
        {"\"shape\": [\n    4", "\"shape\": [\n    -4", "\"shape\""},
        {"\"shape\": [\n    4", "\"shape\": [\n    4.5", "\"shape\""},
        {"\"shape\": [", "\"shape\": [1, 1, 1, 1, 1, 1, 1,", "\"shape\""},
        {"\"kind\": \"grid\"", "\"kind\": \"net\"", "\"kind\""},
        {"\"kind\": \"grid\"", "\"kind\": \"explicit\"", "\"map\""},
        {"\"block\": [\n     4", "\"block\": [4, \n     4", "\"block\""},
        {"\"block\": [", "\"black\": [", "\"block\""},
        {"\"grid\": [\n     1", "\"grid\": [\n     100000000", "\"grid\""},
        {"\"replicas\": 1", "\"replicas\": -1", "\"replicas\""},
        {"\"workers\": [\n     0", "\"workers\": [\n     -1", "\"workers\""},
        {"\"bytes\": 224", "\"bytes\": 225", "\"parts_xxh3\""},
        {"\"bytes\": 224", "\"bytes\": 10", "\"bytes\""},
        {"\"header_bytes\": 128", "\"header_bytes\": 0", "\"header_bytes\""},
        {"\"5d1e4e4d260be40b\"", "\"5d1e\"", "\"header_xxh3\""},
        {"\"5d1e4e4d260be40b\"", "\"5D1E4E4D260BE40B\"", "\"header_xxh3\""},
        {"\"5d1e4e4d260be40b\"", "5", "\"header_xxh3\""},
        {"\"part_shape\": [\n    4", "\"part_shape\": [\n    0", "\"part_shape\""},
        {"\"part_shape\": [\n    4,\n    6", "\"part_shape\": [2, 2", "\"part_shape\""},
        {"\"d02d311e6e6108e4\"", "\"d02d311e6e6108e\"", "\"parts_xxh3\""},
        {"\"d02d311e6e6108e4\"", "\"d02d311e6e6108e4\", \"d02d311e6e6108e4\"", "\"parts_xxh3\""},
        {"\"i64\"", "\"i65\"", "\"dtype\""},
        {"\"count\": 1", "\"count\": 2", "\"hex\""},
        {"\"count\": 1", "\"count\": 10000000", "\"count\""},
        {"\"2a000", "\"2x000", "\"hex\""},
        {"\"2a000", "\"x2000", "\"hex\""},
    };
    static char text[MOST_BYTES + 1], made[2 * MOST_BYTES];
    long count = read_file(whole, "manifest.json", text);
    text[count] = 0;
    char *tail = strstr(text, ",\n \"manifest_xxh3\"");
    assert_non_null(tail);
    *tail = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = strstr(text, rows[i].here);
        assert_non_null(at);
        int n = snprintf(made, sizeof made, "%.*s%s%s", (int)(at - text), text, rows[i].put,
                         at + strlen(rows[i].here));
        n += snprintf(made + n, sizeof made - (size_t)n, ",\n \"manifest_xxh3\": \"%016llx\"\n}\n",
                      (unsigned long long)dmi_hash64(made, n));
        write_file("manifest.json", made, n);
        dm_status status = dm_checkpoint_verify("damaged", NULL, NULL);
        if (status != DM_ERR_FORMAT || !strstr(dm_error_message(), rows[i].word)) {
            fail_msg("%s: %s: %s", rows[i].put, dm_status_name(status), dm_error_message());
        }
    }
    /* Every hash is right, but the file's header names another type than the manifest. */
    char *type = strstr(text, "\"f32\"");
    assert_non_null(type);
    type[1] = 'i';
    int n = snprintf(made, sizeof made, "%s", text);
    n += snprintf(made + n, sizeof made - (size_t)n, ",\n \"manifest_xxh3\": \"%016llx\"\n}\n",
                  (unsigned long long)dmi_hash64(made, n));
    write_file("manifest.json", made, n);
    count = read_file(whole, files[1], made);
    write_file(files[1], made, count);
    dm_session *s = open_session(2, "log=error");
    dm_array a;
    assert_int_equal(dm_checkpoint_array(s, "damaged", "weights", 0, NULL, &a), DM_ERR_FORMAT);
    assert_non_null(strstr(dm_error_message(), "its header and the manifest do not agree"));
    close_session(s);
}

/* Of a large file the part is named, and every part that is damaged. */
typedef struct found {
    int count;
    char text[4][512];
} found;

static void find(void *context, const char *text)
{
    found *f = context;
    snprintf(f->text[f->count++ % 4], sizeof f->text[0], "%s", text);
    assert_int_equal(dm_sync(NULL), DM_ERR_HANDLE); /* a call inside a call, which is named all the same */
    assert_int_equal(strncmp(dm_error_message(), "sync: ", 6), 0);
}

static void test_parts(void **state)
{
    (void)state;
    dm_session *s = open_session(3, "log=error");
    dm_array a;
    enum { N = 5 << 20, FIRST = 7, SECOND = (4 << 20) + 99 };
    OK(dm_vector(s, DM_U8, N, &a));
    OK(dm_fill(s, a, 7));
    OK(dm_checkpoint_save(s, "large", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, NULL));
    FILE *f = fopen("large/00000001/a.npy", "r+b");
    assert_non_null(f);
    const long places[] = {128 + FIRST, 128 + SECOND};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fseek(f, places[i], SEEK_SET), 0);
        assert_int_equal(fputc(6, f), 6);
    }
    fclose(f);
    found damaged = {0};
    assert_int_equal(dm_checkpoint_verify("large", find, &damaged), DM_ERR_FORMAT);
    assert_int_equal(strncmp(dm_error_message(), "checkpoint_verify: ", 19), 0);
    assert_int_equal(damaged.count, 2);
    assert_non_null(strstr(damaged.text[0], "large/00000001/a.npy: part 0 (bytes 128 to 2097279)"));
    assert_non_null(strstr(damaged.text[1], "large/00000001/a.npy: part 2 (bytes 4194432 to 5243007)"));
    assert_int_equal(dm_checkpoint_load(s, "large", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}),
                     DM_ERR_FORMAT);
    /* Two workers each meet a damaged part; the one that reports first is named. */
    assert_true(strstr(dm_error_message(), "large/00000001/a.npy: part 0 (bytes 128 to 2097279)") ||
                strstr(dm_error_message(), "large/00000001/a.npy: part 2 (bytes 4194432 to 5243007)"));
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* Values that the authors of XXH3 publish. */
static void test_hash(void **state)
{
    (void)state;
    assert_true(dmi_hash64("", 0) == 0x2d06800538d394c2u);
    assert_true(dmi_hash64("abc", 3) == 0x78af5f94892f3950u);
}

/* Parts cover the file, each byte once, in order. */
static void test_cover(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{3, 5, 7, 2},   {1, 1, 1, 1000}, {1000, 1, 1, 1},
                                        {4, 300, 3, 1}, {0, 3, 2, 1},    {17, 19, 23, 1}};
    for (int i = 0; i < 6; i++) {
        for (int64_t bytes = 1; bytes < 3000; bytes = bytes * 3 + 1) {
            dmi_parts p, again;
            int64_t end = 0;
            dmi_parts_choose(DM_F32, 4, shapes[i], bytes, &p);
            for (int64_t part = 0; part < p.count; part++) {
                int64_t offset, length;
                dmi_parts_range(&p, part, &offset, &length);
                assert_true(offset == end && length > 0 && (length <= bytes || length == 4));
                end = offset + length;
            }
            assert_int_equal(end, 4 * shapes[i][0] * shapes[i][1] * shapes[i][2] * shapes[i][3]);
            assert_true(dmi_parts_of(DM_F32, 4, shapes[i], p.block, &again));
            assert_int_equal(again.count, p.count);
        }
    }
    assert_false(dmi_parts_of(DM_F32, 2, (int64_t[]){4, 4}, (int64_t[]){2, 2}, &(dmi_parts){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_version_1, deadline),
                                       cmocka_unit_test_setup(test_every_byte, deadline),
                                       cmocka_unit_test_setup(test_fields, deadline),
                                       cmocka_unit_test_setup(test_parts, deadline),
                                       cmocka_unit_test(test_hash),
                                       cmocka_unit_test(test_cover)};
    char folder[] = "damage-XXXXXX", command[64];
    whole = DMATH_TEST_VERSION_1;
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("damaged", 0777) != 0) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || chdir("..") != 0 || system(command) != 0;
}
