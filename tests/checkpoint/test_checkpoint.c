/* Checkpoints saved by N workers and loaded by M, in any layouts and types, are equal to the bit to what the
 * program wrote; the files are plain .npy. The expected bytes are the program's own. */
#include "io/partial.h"
#include "robust/robust.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { MOST_ARRAYS = 12, MOST_BYTES = 3 << 20 };
static const int workers_of[] = {1, 2, 3, 5, 8};
enum { COUNTS = 5 };

typedef struct saved {
    char name[40];
    dm_dtype dtype;
    int ndim;
    int64_t shape[4], count;
    unsigned char *bytes;
} saved;

static void close_session_of(dm_session *s, dm_array a)
{
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static uint64_t state = 88172645463325252u;
static int pick(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state >> 33) % n;
}

/* Any bits: NaNs with their payloads must come back as well. bool is 0 or 1. */
static void make_bytes(saved *a)
{
    int64_t bytes = a->count * dm_dtype_bytes(a->dtype);
    a->bytes = malloc((size_t)bytes + 1);
    for (int64_t i = 0; i < bytes; i++) {
        a->bytes[i] = (unsigned char)(a->dtype == DM_BOOL ? pick(2) : pick(256));
    }
}

static dm_layout random_layout(dm_session *s, int ndim, const int64_t *shape)
{
    int w = dm_workers(s);
    switch (pick(6)) {
    case 0:
        return dm_layout_default();
    case 1:
        return dm_layout_single(pick(w));
    case 2:
        return dm_layout_replicated(s);
    case 3:
        return ndim > 0 ? dm_layout_split(s, pick(ndim)) : dm_layout_default();
    case 4:
        return ndim > 0 ? dm_layout_cyclic(s, pick(ndim), 1 + pick(3)) : dm_layout_default();
    default:
        break;
    }
    static int map[64];
    int64_t block[4], blocks = 1;
    for (int d = 0; d < ndim; d++) {
        block[d] = shape[d] / 2 + 1;
        blocks *= (shape[d] + block[d] - 1) / block[d];
    }
    for (int i = 0; i < blocks; i++) {
        map[i] = pick(w);
    }
    return dm_layout_explicit(ndim, block, map, blocks);
}

static int random_arrays(saved *a)
{
    static const dm_dtype dtypes[] = {DM_F64,  DM_F32, DM_F16,  DM_BF16, DM_I64, DM_I32, DM_U8,
                                      DM_BOOL, DM_I16, DM_C128, DM_C64,  DM_U64, DM_I8,  DM_F8E4M3};
    int count = 3 + pick(MOST_ARRAYS - 3);
    for (int i = 0; i < count; i++) {
        a[i] = (saved){.dtype = dtypes[pick(14)], .ndim = pick(5), .count = 1};
        snprintf(a[i].name, sizeof a[i].name, i == 1 ? "../a b/%d" : "layer%d.weights", i);
        for (int d = 0; d < a[i].ndim; d++) {
            a[i].shape[d] = pick(12) == 0 ? 0 : 1 + pick(13);
            a[i].count *= a[i].shape[d];
        }
        make_bytes(&a[i]);
    }
    return count;
}

static dm_array put(dm_session *s, const saved *a)
{
    dm_array out;
    dm_layout layout = random_layout(s, a->ndim, a->shape);
    OK(dm_array_create(s, a->dtype, a->ndim, a->shape, &layout, &out));
    OK(dm_array_write(s, out, NULL, NULL, a->bytes, 0));
    return out;
}

static void same_bits(dm_session *s, dm_array got, const saved *want)
{
    int64_t bytes = want->count * dm_dtype_bytes(want->dtype);
    unsigned char *host = malloc((size_t)bytes + 1);
    OK(dm_array_read(s, got, NULL, NULL, host, 0));
    if (memcmp(host, want->bytes, (size_t)bytes) != 0) {
        fail_msg("%s is not what was saved", want->name);
    }
    free(host);
}

/* The file is a header and the array in C order. */
static void file_is_plain(const char *folder, const char *file, const saved *a)
{
    char path[512], head[7] = {0};
    int64_t bytes = a->count * dm_dtype_bytes(a->dtype);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, 6, f), 6);
    assert_memory_equal(head, "\x93NUMPY", 6);
    unsigned char *data = malloc((size_t)bytes + 1);
    assert_int_equal(fseek(f, -(long)bytes, SEEK_END), 0);
    assert_int_equal(ftell(f) % 64, 0);
    assert_int_equal(fread(data, 1, (size_t)bytes, f), bytes);
    assert_memory_equal(data, a->bytes, bytes);
    free(data);
    fclose(f);
}

static void check_info(const char *path, const saved *a, int count, int workers)
{
    dm_checkpoint_info info = {.size = sizeof info};
    for (int i = 0; i < count; i++) {
        OK(dm_checkpoint_query(path, i, &info));
        assert_string_equal(info.name, a[i].name);
        assert_int_equal(info.dtype, a[i].dtype);
        assert_int_equal(info.ndim, a[i].ndim);
        assert_memory_equal(info.shape, a[i].shape, (size_t)a[i].ndim * sizeof *a[i].shape);
        assert_int_equal(info.workers, workers);
        file_is_plain(info.folder, info.file, &a[i]);
    }
    OK(dm_checkpoint_query(path, count, &info));
    assert_string_equal(info.name, "step");
    assert_int_equal(dm_checkpoint_query(path, count + 2, &info), DM_ERR_ARG);
}

static void load_on(int workers, const char *path, const saved *a, int count, int64_t step)
{
    dm_session *s = open_session(workers, "log=error");
    dm_checkpoint_item items[MOST_ARRAYS + 2];
    dm_array array[MOST_ARRAYS];
    int64_t got = -1;
    char text[5];
    for (int i = 0; i < count; i++) { /* the items in another order */
        dm_layout layout = random_layout(s, a[i].ndim, a[i].shape);
        OK(dm_array_create(s, a[i].dtype, a[i].ndim, a[i].shape, &layout, &array[i]));
        items[count - 1 - i] = (dm_checkpoint_item)DM_KEEP_ARRAY(a[i].name, array[i]);
    }
    items[count] = (dm_checkpoint_item)DM_KEEP_BYTES("text", text, sizeof text);
    items[count + 1] = (dm_checkpoint_item)DM_KEEP_VALUE("step", &got);
    OK(dm_checkpoint_load(s, path, count + 2, items));
    assert_int_equal(got, step);
    assert_memory_equal(text, "a\0b\nc", 5);
    for (int i = 0; i < count; i++) {
        same_bits(s, array[i], &a[i]);
        OK(dm_array_destroy(s, array[i]));
    }
    dm_array made, wide;
    OK(dm_checkpoint_array(s, path, a[0].name, 0, NULL, &made));
    same_bits(s, made, &a[0]);
    OK(dm_array_destroy(s, made));
    if (a[0].dtype == DM_I16 || a[0].dtype == DM_U8 || a[0].dtype == DM_I8 ||
        a[0].dtype == DM_I32) { /* as another type */
        double *host = malloc((size_t)a[0].count * sizeof *host + 1);
        OK(dm_checkpoint_array(s, path, a[0].name, DM_F64, NULL, &wide));
        OK(dm_array_read(s, wide, NULL, NULL, host, 0));
        for (int64_t i = 0; i < a[0].count; i++) {
            int32_t i32;
            int16_t i16;
            memcpy(&i32, a[0].bytes + (a[0].dtype == DM_I32 ? 4 * i : 0), a[0].dtype == DM_I32 ? 4 : 0);
            memcpy(&i16, a[0].bytes + (a[0].dtype == DM_I16 ? 2 * i : 0), a[0].dtype == DM_I16 ? 2 : 0);
            double want = a[0].dtype == DM_I32   ? i32
                          : a[0].dtype == DM_I16 ? i16
                          : a[0].dtype == DM_U8  ? a[0].bytes[i]
                                                 : (signed char)a[0].bytes[i];
            assert_true(host[i] == want);
        }
        free(host);
        OK(dm_array_destroy(s, wide));
    }
    close_session(s);
}

static void test_workers(void **unused)
{
    (void)unused;
    int next = 0;
    for (int n = 0; n < COUNTS; n++) {
        saved a[MOST_ARRAYS];
        dm_array array[MOST_ARRAYS];
        dm_checkpoint_item items[MOST_ARRAYS + 2];
        int count = random_arrays(a);
        int64_t step = 1000 + n;
        char path[32];
        dm_event event;
        snprintf(path, sizeof path, "series%d", n);
        dm_session *s = open_session(workers_of[n], "log=error");
        for (int i = 0; i < count; i++) {
            array[i] = put(s, &a[i]);
            items[i] = (dm_checkpoint_item)DM_KEEP_ARRAY(a[i].name, array[i]);
        }
        items[count] = (dm_checkpoint_item)DM_KEEP_VALUE("step", &step);
        items[count + 1] = (dm_checkpoint_item)DM_KEEP_BYTES("text", "a\0b\nc", 5);
        OK(dm_checkpoint_save(s, path, count + 2, items, NULL, &event));
        step = -1;                        /* read during the call */
        for (int i = 0; i < count; i++) { /* the copies are what is saved */
            OK(dm_fill(s, array[i], 1));
        }
        OK(dm_event_wait(s, event, 60));
        for (int i = 0; i < count; i++) {
            OK(dm_array_destroy(s, array[i]));
        }
        close_session(s);
        assert_int_equal(dm_checkpoint_exists(path), 1);
        OK(dm_checkpoint_verify(path, NULL, NULL));
        check_info(path, a, count, workers_of[n]);
        for (int m = 0; m < COUNTS; m++, next++) {
            load_on(workers_of[m], path, a, count, 1000 + n);
        }
        for (int i = 0; i < count; i++) {
            free(a[i].bytes);
        }
    }
}

/* Files of several parts, whose last parts are shorter, and views. */
static void test_large(void **unused)
{
    (void)unused;
    static const int64_t shapes[][3] = {{3, 700, 401}, {1, 1, 900001}, {517, 1021, 1}, {2, 3, 270000}};
    for (int i = 0; i < 4; i++) {
        saved a = {.name = "large", .dtype = i == 1 ? DM_F32 : DM_F64, .ndim = 3, .count = 1};
        memcpy(a.shape, shapes[i], sizeof shapes[i]);
        for (int d = 0; d < 3; d++) {
            a.count *= a.shape[d];
        }
        make_bytes(&a);
        dm_session *s = open_session(workers_of[1 + i], "log=error");
        dm_array array = put(s, &a);
        char path[32];
        snprintf(path, sizeof path, "large%d", i);
        OK(dm_checkpoint_save(s, path, 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("large", array)}, NULL, NULL));
        close_session_of(s, array);
        dm_checkpoint_info info = {.size = sizeof info};
        OK(dm_checkpoint_query(path, 0, &info));
        assert_true(info.parts > 1);
        file_is_plain(info.folder, info.file, &a);
        s = open_session(workers_of[(i + 3) % COUNTS], i % 2 ? "log=error,ring=8K" : "log=error");
        OK(dm_checkpoint_array(s, path, "large", 0, NULL, &array));
        same_bits(s, array, &a);
        close_session_of(s, array);
        free(a.bytes);
    }
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        count += e->d_name[0] != '.' || strncmp(e->d_name, ".partial-", 9) == 0;
    }
    closedir(dir);
    return count;
}

/* A series keeps the newest; a view is saved as an array; what is given by dm_keep is saved and loaded; kinds
 * and shapes count. */
static void test_series(void **unused)
{
    (void)unused;
    dm_session *s = open_session(3, "log=error");
    dm_array a, view;
    double host[6], number = 0;
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    options.keep = 3;
    OK(dm_matrix(s, DM_F64, 4, 5, &a));
    OK(dm_array_view(s, a, (int64_t[]){1, 1}, (int64_t[]){2, 3}, &view));
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_ARRAY("view", view)));
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_ARRAY("gone", a)));
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("number", &number)));
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_BYTES("gone", NULL, 0)));
    for (int i = 1; i <= 7; i++) {
        dm_event event;
        OK(dm_fill_arange(s, a, i, 1));
        number = i / 2.0;
        OK(dm_checkpoint_save(s, "series", 0, NULL, &options, &event)); /* waits for the one before */
    }
    OK(dm_checkpoint_save(s, "series", 0, NULL, &options, NULL));
    assert_int_equal(entries("series"), 3);
    char tag[100], live[120];
    dmi_partial_tag(tag, sizeof tag); /* what this program, which lives, is writing stays */
    snprintf(live, sizeof live, "series/%s", tag);
    assert_int_equal(mkdir(live, 0777), 0);
    OK(dm_checkpoint_save(s, "series", 0, NULL, &options, NULL));
    assert_int_equal(rmdir(live), 0);
    for (int i = 6; i <= 9; i++) {
        char path[32];
        double want = i < 7 ? i : 7;
        snprintf(path, sizeof path, i == 9 ? "series" : "series/%08d", i);
        if (i == 6) {
            assert_int_equal(dm_checkpoint_exists(path), 0);
            continue;
        }
        OK(dm_fill(s, a, 0));
        number = -1;
        OK(dm_checkpoint_load(s, path, 0, NULL));
        OK(dm_read(s, view, host));
        assert_true(number == want / 2 && host[0] == want + 6 && host[5] == want + 13);
    }
    int32_t other;
    dm_array b;
    OK(dm_matrix(s, DM_F64, 3, 2, &b));
    assert_int_equal(
        dm_checkpoint_load(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_VALUE("number", &other)}),
        DM_ERR_DTYPE);
    assert_int_equal(dm_checkpoint_load(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_VALUE("view", &number)}),
                     DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_load(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("number", b)}),
                     DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_load(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("none", b)}),
                     DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_load(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("view", b)}),
                     DM_ERR_SHAPE);
    assert_int_equal(dm_checkpoint_load(s, "nowhere", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("view", b)}),
                     DM_ERR_IO);
    assert_int_equal(
        dm_checkpoint_save(s, "no/where", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("view", b)}, NULL, NULL),
        DM_ERR_IO);
    assert_int_equal(
        dm_checkpoint_save(s, "series", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("\xff", b)}, NULL, NULL),
        DM_ERR_ARG);
    const dm_checkpoint_item twice[] = {DM_KEEP_ARRAY("x", b), DM_KEEP_VALUE("x", &number)};
    assert_int_equal(dm_checkpoint_save(s, "series", 2, twice, NULL, NULL), DM_ERR_ARG);
    assert_int_equal(entries("series"), 3);
    OK(dm_array_destroy(s, view));
    assert_int_equal(dm_checkpoint_save(s, "series", 0, NULL, NULL, NULL), DM_ERR_HANDLE);
    OK(dm_array_destroy(s, b));
    close_session_of(s, a);
}

static atomic_int held;

static int wait_for(const dm_task *task)
{
    (void)task;
    while (atomic_load(&held)) {
        usleep(1000);
    }
    return 0;
}

/* Work goes on while files are written: a file whose writing does not end holds nothing up but its event. */
static void test_goes_on(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error");
    dm_array a, b;
    dm_event event;
    int done = 0;
    double host[64];
    dm_layout rows = dm_layout_rows(s);
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){8, 8}, &rows, &a));
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){8, 8}, &rows, &b));
    OK(dm_fill(s, a, 1));
    atomic_store(&held, 1);
    OK(dm_apply(s, "wait", 1, &a, (int[]){DM_READWRITE}, NULL, 0));
    OK(dm_checkpoint_save(s, "goes_on", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, &event));
    OK(dm_fill(s, a, 2)); /* behind the copy */
    OK(dm_event_done(s, event, &done));
    assert_int_equal(done, 0);
    assert_int_equal(dm_event_wait(s, event, 0.01), DM_ERR_PENDING);
    atomic_store(&held, 0);
    OK(dm_read(s, a, host));
    assert_true(host[63] == 2);
    OK(dm_event_wait(s, event, -1));
    OK(dm_checkpoint_load(s, "goes_on", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", b)}));
    OK(dm_read(s, b, host));
    assert_true(host[0] == 1 && host[63] == 1);
    OK(dm_array_destroy(s, b));
    close_session_of(s, a);
}

/* This program stands between the library and the system: writing can be made to take its time. */
static atomic_int slow;

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    while (atomic_load(&slow)) {
        usleep(1000);
    }
    return syscall(SYS_pwrite64, fd, data, bytes, at);
}

/* The files are not written at all for a while: commands and reads go on, and dm_sync does not wait. */
static void test_slow_disk(void **unused)
{
    (void)unused;
    dm_session *s = open_session(3, "log=error");
    dm_array a, b, c;
    dm_event event;
    double host[64 * 64];
    dm_layout rows = dm_layout_rows(s);
    dm_array *arrays[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){64, 64}, &rows, arrays[i]));
        OK(dm_fill(s, *arrays[i], i + 1));
    }
    OK(dm_sync(s));
    for (int i = 0; i < 2; i++) { /* from the second on, the first one is waited for */
        OK(dm_checkpoint_save(s, "slow", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, &event));
        atomic_store(&slow, 1); /* the files are there; their contents are not, until this is taken back */
        for (int k = 0; k < 20; k++) {
            OK(dm_matmul(s, a, b, c));
            OK(dm_fill(s, a, k));
        }
        OK(dm_sync(s));
        OK(dm_read(s, c, host));
        assert_true(host[0] == 64 * 2 * 18);
        if (i == 1) {
            assert_int_equal(dm_event_wait(s, event, 0.05), DM_ERR_PENDING);
        }
        atomic_store(&slow, 0);
        OK(dm_event_wait(s, event, 60));
        OK(dm_fill(s, a, 1));
    }
    OK(dm_checkpoint_load(s, "slow", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}));
    OK(dm_read(s, a, host));
    assert_true(host[0] == 1);
    for (int i = 0; i < 3; i++) {
        OK(dm_array_destroy(s, *arrays[i]));
    }
    close_session(s);
}

/* A checkpoint of a poisoned array fails, says so once, and leaves the one before. */
static void test_failures(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error,fault=compute:3");
    dm_array a;
    dm_event event;
    dm_status status;
    dm_layout rows = dm_layout_rows(s);
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){64, 64}, &rows, &a));
    OK(dm_fill(s, a, 1));
    OK(dm_sync(s));
    OK(dm_fill(s, a, 2));
    OK(dm_sync(s));
    OK(dm_fill(s, a, 3));
    OK(dm_checkpoint_save(s, "failing", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, &event));
    assert_int_equal(dm_event_wait(s, event, -1), DM_ERR_POISONED);
    OK(dm_event_error(s, event, 0, &status, NULL, 0));
    assert_int_equal(status, DM_ERR_POISONED);
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL); /* the fill's */
    assert_int_equal(dm_checkpoint_exists("failing"), 0);
    assert_int_equal(entries("failing"), 0);
    OK(dm_fill(s, a, 4));
    OK(dm_checkpoint_save(s, "failing", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, NULL));
    assert_int_equal(dm_checkpoint_exists("failing"), 1);
    close_session_of(s, a);
}

/* A checkpoint that is cancelled, does not fit into memory or onto the disk is none, and the one before is
 * there. */
static void test_none(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error,memory_limit=20M");
    dm_array a, wide;
    dm_event event;
    double number = 1;
    dm_layout rows = dm_layout_rows(s);
    const dm_checkpoint_item fits[] = {DM_KEEP_VALUE("number", &number)};
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){512, 1024}, &rows, &a));
    OK(dm_fill(s, a, 1));
    const dm_checkpoint_item items[] = {DM_KEEP_ARRAY("a", a)};
    OK(dm_checkpoint_save(s, "none", 1, items, NULL, NULL));
    for (int i = 0; i < 20; i++) {
        OK(dm_fill(s, a, 2));
        OK(dm_checkpoint_save(s, "none", 1, items, NULL, &event));
        usleep((useconds_t)(i * 50));
        OK(dm_cancel(s));
        dm_status cancelled = dm_event_wait(s, event, -1);
        assert_true(cancelled == DM_OK || cancelled == DM_ERR_CANCELLED || cancelled == DM_ERR_POISONED);
        OK(dm_checkpoint_verify("none", NULL, NULL));
        (void)!dm_sync(s);
    }
    int before = entries("none");
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){3072, 1024}, &rows, &wide)); /* 12 MiB on each, beside 2 */
    assert_int_equal(
        dm_checkpoint_save(s, "none", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("wide", wide)}, NULL, NULL),
        DM_ERR_LIMIT);
    assert_int_equal(entries("none"), before);
    OK(dm_array_destroy(s, wide));
    struct rlimit limit, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    little = limit;
    little.rlim_cur = 4096;
    OK(dm_fill(s, a, 1));
    OK(dm_sync(s));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(dm_checkpoint_save(s, "none", 1, items, NULL, NULL), DM_ERR_IO);
    dm_checkpoint_item many[200]; /* their manifest does not fit, at the end */
    char names[200][16];
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        many[i] = fits[0];
        many[i].name = names[i];
    }
    OK(dm_checkpoint_save(s, "none", 200, many, NULL, &event));
    assert_int_equal(dm_event_wait(s, event, -1), DM_ERR_IO);
    OK(dm_sync(s));
    OK(dm_checkpoint_save(s, "none", 200, many, NULL, &event));
    dm_status status = DM_OK; /* as of any command, where the event is not asked */
    for (int i = 0; i < 1000 && status == DM_OK; i++) {
        usleep(10000);
        status = dm_sync(s);
    }
    assert_int_equal(status, DM_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(entries("none"), before);
    OK(dm_checkpoint_verify("none", NULL, NULL));
    OK(dm_checkpoint_save(s, "none", 1, fits, NULL, NULL));
    close_session_of(s, a);
}

/* A relative path is that of the call, and dm_finalize waits. */
static void test_elsewhere(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error");
    dm_array a;
    dm_event event;
    OK(dm_vector(s, DM_F32, 3000000, &a));
    OK(dm_fill(s, a, 1));
    OK(dm_checkpoint_save(s, "elsewhere", 1, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a)}, NULL, &event));
    assert_int_equal(mkdir("other", 0777), 0);
    assert_int_equal(chdir("other"), 0);
    close_session_of(s, a);
    assert_int_equal(chdir(".."), 0);
    OK(dm_checkpoint_verify("elsewhere", NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_workers, deadline),   cmocka_unit_test_setup(test_large, deadline),
        cmocka_unit_test_setup(test_series, deadline),    cmocka_unit_test_setup(test_goes_on, deadline),
        cmocka_unit_test_setup(test_failures, deadline),  cmocka_unit_test_setup(test_none, deadline),
        cmocka_unit_test_setup(test_elsewhere, deadline), cmocka_unit_test_setup(test_slow_disk, deadline)};
    char folder[] = "checkpoints-XXXXXX", command[64];
    if (getenv("DMATH_TEST_SEED")) {
        state ^= strtoull(getenv("DMATH_TEST_SEED"), NULL, 10) * 2654435761u;
    }
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        return 1;
    }
    OK(dm_register("wait", wait_for));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return failed || chdir("..") != 0 || system(command) != 0;
}
