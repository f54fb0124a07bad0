/* .npy files -> arrays: every kind of file on every layout, and files that are none. */
#include "support/npyfile.h"

#include <string.h>

static void load_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 20) ? DM_MAX_DIMS : 3);
    char path[300], text[160];
    dmt_layout layout;
    dm_array a;
    dmt_npy how = {.version = (int)dmt_int(&c->random, 1, 3)};
    how.big_endian = dmt_chance(&c->random, 30);
    how.fortran_order = dmt_chance(&c->random, 40);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, ndim, shape);
    dmt_say(c, "%s %s, version %d %s endian %s order, %s", dmt_name(h->dtype),
            dmt_shape_text(ndim, shape, text), how.version, how.big_endian ? "big" : "little",
            how.fortran_order ? "Fortran" : "C", layout.text);
    dmt_path(path, "load.npy");
    dmt_npy_write(path, h, how);
    DMT_OK(c, dm_array_load(c->session, path, layout.use, &a));
    dm_array_info info = {.size = sizeof info};
    DMT_OK(c, dm_array_query(c->session, a, &info));
    if (info.dtype != h->dtype || info.ndim != ndim ||
        memcmp(info.shape, shape, (size_t)ndim * sizeof *shape) != 0) {
        dmt_fail(c, "loaded as %s with %d dims", dmt_name(info.dtype), info.ndim);
    }
    dmt_host *got = dmt_read(c, a, h->dtype, ndim, shape);
    char where[400];
    if (!dmt_host_same(got, h, where, sizeof where)) {
        dmt_fail(c, "%s", where);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* The file's elements in another type. */
static void load_as_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3);
    char path[300], where[400];
    dm_array a;
    dmt_layout layout;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host *want = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    for (int64_t i = 0; i < h->count; i++) {
        want->v[i] = dmt_convert(h->dtype, want->dtype, h->v[i]);
    }
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, ndim, shape);
    dmt_path(path, "load_as.npy");
    dmt_npy_write(path, h, (dmt_npy){.version = 1});
    DMT_OK(c, dm_array_load_as(c->session, path, want->dtype, layout.use, &a));
    dmt_host *got = dmt_read(c, a, want->dtype, ndim, shape);
    if (!dmt_host_same(got, want, where, sizeof where)) {
        dmt_fail(c, "%s as %s: %s", dmt_name(h->dtype), dmt_name(want->dtype), where);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_array_load_as(c->session, path, (dm_dtype)55, NULL, &a));
}

/* Two million elements, of which each worker must read its own. */
static void large_case(dmt_case *c)
{
    const int64_t shape[] = {1400, 1501};
    char path[300];
    dm_array a, sum;
    int64_t total = 0, want = 0;
    dmt_host *h = dmt_host_make(&c->scratch, DM_I32, 2, shape);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)(i * 31 % 1009);
        want += i * 31 % 1009;
    }
    dmt_path(path, "large.npy");
    dmt_npy_write(path, h, (dmt_npy){.version = 1, .fortran_order = c->number % 2 == 1});
    dm_layout layout = dm_layout_grid(c->workers, 1, 7, 100);
    DMT_OK(c, dm_array_load(c->session, path, c->number < 2 ? NULL : &layout, &a));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &sum));
    DMT_OK(c, dm_sum(c->session, a, NULL, 0, 1, 0, sum));
    DMT_OK(c, dm_array_read(c->session, sum, NULL, NULL, &total, 0));
    dmt_host *got = dmt_read(c, a, DM_I32, 2, shape);
    char where[400];
    if (!dmt_host_same(got, h, where, sizeof where) || total != want) {
        dmt_fail(c, "sum %lld of %lld; %s", (long long)total, (long long)want, total == want ? where : "");
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, sum));
}

#define GOOD_TAIL "'fortran_order': False, 'shape': (2, 3), }"
/* Headers of version 1.0 files that hold 48 bytes of data; NULL ends the list. */
static const char *const bad_headers[] = {
    "",
    "not a dict",
    "{",
    "[]",
    "{}",
    "{'descr': '<f8', 'fortran_order': False, }",
    "{'descr': '<f8', 'shape': (2, 3), }",
    "{" GOOD_TAIL,
    "{'descr': '<f8', 'descr': '<f8', " GOOD_TAIL,
    "{'descr': '<f8', 'other': 1, " GOOD_TAIL,
    "{'descr': '<f3', " GOOD_TAIL,
    "{'descr': '<f16', " GOOD_TAIL,
    "{'descr': '<c16', " GOOD_TAIL,
    "{'descr': '|S8', " GOOD_TAIL,
    "{'descr': '|O', " GOOD_TAIL,
    "{'descr': '<m8', " GOOD_TAIL,
    "{'descr': 'f', " GOOD_TAIL,
    "{'descr': '', " GOOD_TAIL,
    "{'descr': 8, " GOOD_TAIL,
    "{'descr': [('a', '<f4'), ('b', '<f4')], " GOOD_TAIL,
    "{'descr': '<f8', 'fortran_order': 'no', 'shape': (2, 3), }",
    "{'descr': '<f8', 'fortran_order': 0.5, 'shape': (2, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, -3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': 6, }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3.0), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (6), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 6), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } and more",
    NULL,
};

static void write_headed(const char *path, const char *header, int version, int claimed, int data)
{
    unsigned char file[800] = "\x93NUMPY";
    int length = (int)strlen(header);
    int declared = claimed >= 0 ? claimed : length;
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)(declared & 255);
    file[9] = (unsigned char)(declared >> 8);
    memcpy(file + 10, header, (size_t)length);
    dmt_bytes_write(path, file, (size_t)(10 + length + data));
}

static void refused(dm_session *session, const char *path, dm_status want, const char *what)
{
    dm_array a = {55};
    dm_status status = dm_array_load(session, path, NULL, &a);
    if (status != want) {
        fail_msg("%s gave %s, not %s: %s", what, dm_status_name(status), dm_status_name(want),
                 status ? dm_error_message() : "-");
    }
    if (!strstr(dm_error_message(), path)) {
        fail_msg("%s: the message does not name the file: %s", what, dm_error_message());
    }
    assert_true(a.id == 55);
    assert_int_equal(dm_sync(session), DM_OK);
}

static const char good_header[] = "{'descr': '<f8', " GOOD_TAIL "\n";

static void test_malformed(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    char path[300];
    dm_array a;
    dmt_path(path, "bad.npy");
    for (int i = 0; bad_headers[i]; i++) {
        write_headed(path, bad_headers[i], 1, -1, 48);
        refused(session, path, DM_ERR_FORMAT, bad_headers[i]);
    }
    write_headed(path, good_header, 0, -1, 48);
    refused(session, path, DM_ERR_FORMAT, "version 0");
    write_headed(path, good_header, 4, -1, 48);
    refused(session, path, DM_ERR_FORMAT, "version 4");
    write_headed(path, good_header, 1, 60000, 48);
    refused(session, path, DM_ERR_FORMAT, "a header longer than the file");
    write_headed(path, good_header, 1, 10, 48);
    refused(session, path, DM_ERR_FORMAT, "a header cut short");
    write_headed(path, good_header, 1, -1, 47);
    refused(session, path, DM_ERR_FORMAT, "data short of a byte");
    write_headed(path, good_header, 1, -1, 0);
    refused(session, path, DM_ERR_FORMAT, "no data");
    for (size_t count = 0; count < 10; count++) {
        dmt_bytes_write(path, "\x93NUMPY\x01\x00\x40\x00", count);
        refused(session, path, DM_ERR_FORMAT, "a file of a few bytes");
    }
    dmt_bytes_write(path, "PK\003\004 this is some other kind of file altogether", 48);
    refused(session, path, DM_ERR_FORMAT, "no magic");
    write_headed(path, good_header, 1, -1, 48);
    assert_int_equal(dm_array_load(session, path, NULL, &a), DM_OK);
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
    dmt_session_close(session, 0);
}

static void test_unreadable(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(2, NULL);
    char path[300];
    dmt_path(path, "there-is-no-such-file.npy");
    refused(session, path, DM_ERR_IO, "a file that is not there");
    refused(session, dmt_folder(), DM_ERR_IO, "a directory");
    dmt_session_close(session, 0);
}

/* A file with some bytes of its header changed is loaded or refused; the session works on in either case. */
static void damaged_case(dmt_case *c)
{
    char path[300], header[200];
    dm_array a;
    int length = (int)strlen(good_header);
    memcpy(header, good_header, sizeof good_header);
    for (int64_t i = dmt_int(&c->random, 1, 4); i > 0; i--) {
        header[dmt_int(&c->random, 0, length - 1)] =
            (char)(dmt_chance(&c->random, 50) ? dmt_int(&c->random, 1, 255)
                                              : "0123456789'(){},: -"[dmt_int(&c->random, 0, 18)]);
    }
    dmt_say(c, "header %s", header);
    dmt_path(path, "damaged.npy");
    write_headed(path, header, 1, -1, 48);
    dm_status status = dm_array_load(c->session, path, NULL, &a);
    if (status == DM_OK) {
        DMT_OK(c, dm_array_destroy(c->session, a));
    } else if (status != DM_ERR_FORMAT) {
        dmt_status_is(c, status, DM_ERR_FORMAT, "dm_array_load");
    }
    DMT_OK(c, dm_sync(c->session));
}

static void test_load(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load", .cases = 1000, .fn = load_case});
}

static void test_load_as(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load_as", .cases = 400, .fn = load_as_case});
}

static void test_large(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load_large", .cases = 4, .fn = large_case, .workers = 3, .each = true});
}

static void test_damaged(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load_damaged", .cases = 500, .fn = damaged_case, .workers = 2, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),      cmocka_unit_test(test_load_as),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_unreadable), cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_folder_remove);
}
