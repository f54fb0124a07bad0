/* Files that come and go in many pieces: every layout, beside other commands, and with a piece that fails. On
 * CPUs the same in one go. */
#include "support/npyfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY_PIECES "file_chunk=4096,file_threads=3"

static dm_layout layout_of(dm_session *s, int which)
{
    const int64_t block[2] = {29, 31};
    static int map[12 * 11];
    for (int i = 0; i < (int)(sizeof map / sizeof *map); i++) {
        map[i] = i * 7 % 5 % dm_workers(s);
    }
    switch (which) {
    case 0:
        return dm_layout_rows(s);
    case 1:
        return dm_layout_cols(s);
    case 2:
        return dm_layout_cyclic(s, 0, 3);
    case 3:
        return dm_layout_cyclic(s, 1, 5);
    case 4:
        return dm_layout_grid(1, dm_workers(s), 17, 9);
    case 5:
        return dm_layout_replicated(s);
    case 6:
        return dm_layout_single(dm_workers(s) - 1);
    default:
        return dm_layout_explicit(2, block, map, (int)(sizeof map / sizeof *map));
    }
}
enum { LAYOUTS = 8 };

/* Elements that differ from their neighbours in every type. */
static dmt_host *values(dmt_scratch *scratch, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(scratch, dtype, ndim, shape);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_from_whole(dtype, (int)(i * 31 % 251 % 127));
    }
    return h;
}

/* A file of a few hundred KB in one layout, and back: all types, both orders of dims, both of bytes. */
static void many_case(dmt_case *c)
{
    const int64_t shape[] = {333, 341};
    char path[300], text[900];
    dm_layout layout = layout_of(c->session, (int)(c->number % LAYOUTS));
    dm_dtype dtype = dmt_dtypes[c->number / LAYOUTS % DMT_DTYPES];
    dmt_npy how = {.version = 1, .fortran_order = dmt_chance(&c->random, 50)};
    how.big_endian = dmt_chance(&c->random, 30);
    dm_array a;
    dmt_host *h = values(&c->scratch, dtype, 2, shape);
    dmt_say(c, "layout %d, %s, %s order, %s endian", (int)(c->number % LAYOUTS), dmt_name(dtype),
            how.fortran_order ? "Fortran" : "C", how.big_endian ? "big" : "little");
    dmt_path(path, "pieces.npy");
    dmt_npy_write(path, h, how);
    DMT_OK(c, dm_array_load(c->session, path, &layout, &a));
    dmt_host *got = dmt_read(c, a, dtype, 2, shape);
    if (!dmt_host_same(got, h, text, sizeof text)) {
        dmt_fail(c, "loaded: %s", text);
    }
    DMT_OK(c, dm_array_save(c->session, a, path));
    if (!dmt_npy_read(path, got, text, sizeof text) || !dmt_host_same(got, h, text, sizeof text)) {
        dmt_fail(c, "saved: %s", text);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* Commands before and after on the same memory: a load comes into memory that has just been given back and may
 * still be written, what is saved is what the commands before have made. */
static void beside_case(dmt_case *c)
{
    const int64_t shape[] = {200, 210};
    char path[300], text[900];
    dm_session *s = c->session;
    dm_array a[4], sum;
    dmt_path(path, "beside.npy");
    for (int i = 0; i < 4; i++) {
        dm_layout layout = layout_of(s, (int)dmt_int(&c->random, 0, LAYOUTS - 2));
        DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &layout, &a[i]));
        DMT_OK(c, dm_fill_arange(s, a[i], i, 1));
    }
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &sum));
    for (int round = 0; round < 6; round++) {
        int from = round % 4, to = (round + 1) % 4;
        dm_layout layout = layout_of(s, (int)dmt_int(&c->random, 0, LAYOUTS - 2));
        DMT_OK(c, dm_axpby(s, 2, a[from], 0, a[to]));
        DMT_OK(c, dm_array_save(s, a[to], path));
        DMT_OK(c, dm_fill(s, a[to], -1)); /* of no concern to the file */
        DMT_OK(c, dm_sum(s, a[from], NULL, 0, 1, 0, sum));
        DMT_OK(c, dm_copy(s, a[from], a[to]));
        DMT_OK(c, dm_array_destroy(s, a[to]));
        DMT_OK(c, dm_array_load(s, path, &layout, &a[to]));
        DMT_OK(c, dm_axpby(s, 0, a[to], 0.5, a[to])); /* halves: what was saved is twice the other */
        dmt_host *got = dmt_read(c, a[to], DM_F64, 2, shape), *want = dmt_read(c, a[from], DM_F64, 2, shape);
        if (!dmt_host_same(got, want, text, sizeof text)) {
            dmt_fail(c, "round %d: %s", round, text);
        }
    }
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, a[i]));
    }
    DMT_OK(c, dm_array_destroy(s, sum));
}

static bool on_gpus(void)
{
    const char *device = getenv("DMATH_DEVICE");
    return device && (strcmp(device, "emulated") == 0 || strcmp(device, "cuda") == 0) && !dmt_launched();
}

/* One part of a file cannot be read on every worker: the load fails with the name of the file, and the next one
 * does not. The same with writing, where nothing is left of the file. */
static void one_fault(int nth, bool saving)
{
    const int64_t shape[] = {150, 160};
    char path[300], options[120], text[900];
    dmt_scratch scratch = {0};
    dm_array a = {0};
    snprintf(options, sizeof options, MANY_PIECES ",fault=file:%d,log=error", nth);
    dm_session *s = dmt_session_open(3, options);
    dmt_host *h = values(&scratch, DM_F32, 2, shape);
    dmt_path(path, "fault.npy");
    dmt_npy_write(path, h, (dmt_npy){.version = 1});
    int files = dmt_folder_count();
    if (saving) {
        assert_int_equal(dm_array_create(s, DM_F32, 2, shape, NULL, &a), DM_OK);
        assert_int_equal(dm_fill(s, a, 3), DM_OK);
    }
    dm_status status = saving ? dm_array_save(s, a, path) : dm_array_load(s, path, NULL, &a);
    if (status != DM_ERR_IO || !strstr(dm_error_message(), path) || !strstr(dm_error_message(), "planted")) {
        fail_msg("part %d: %s: %s", nth, dm_status_name(status), status ? dm_error_message() : "-");
    }
    assert_int_equal(dm_sync(s), DM_OK);
    assert_int_equal(dmt_folder_count(), files);
    dmt_host *got = dmt_host_copy(&scratch, h);
    if (saving) {
        assert_int_equal(dm_array_destroy(s, a), DM_OK);
    }
    assert_int_equal(dm_array_load(s, path, NULL, &a), DM_OK); /* the file is what it was */
    assert_int_equal(dm_array_save(s, a, path), DM_OK);
    assert_true(dmt_npy_read(path, got, text, sizeof text) && dmt_host_same(got, h, text, sizeof text));
    assert_int_equal(dm_array_destroy(s, a), DM_OK);
    dmt_scratch_free(&scratch);
    dmt_session_close(s, 0);
}

static void test_faults(void **state)
{
    (void)state;
    if (!on_gpus()) {
        skip(); /* a CPU reads its part in one go: see test_load */
    }
    for (int nth = 1; nth <= 8; nth++) { /* each worker has eight parts */
        one_fault(nth, false);
        one_fault(nth, true);
    }
}

/* An array that holds the result of a failed command is not saved, in part or in whole. */
static void test_poisoned(void **state)
{
    (void)state;
    if (!on_gpus()) {
        skip();
    }
    const int64_t shape[] = {150, 160};
    char path[300];
    dm_array a;
    dm_session *s = dmt_session_open(3, MANY_PIECES ",fault=compute:2,log=error");
    dmt_path(path, "poisoned.npy");
    int files = dmt_folder_count();
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, NULL, &a), DM_OK);
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_fill(s, a, 2), DM_OK);
    assert_int_not_equal(dm_array_save(s, a, path), DM_OK);
    assert_int_equal(dm_array_save(s, a, path), DM_ERR_POISONED);
    assert_int_equal(dmt_folder_count(), files);
    assert_int_equal(dm_fill(s, a, 3), DM_OK);
    assert_int_equal(dm_array_save(s, a, path), DM_OK);
    assert_int_equal(dmt_folder_count(), files + 1);
    assert_int_equal(dm_array_destroy(s, a), DM_OK);
    dmt_session_close(s, 0);
}

static void test_many(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load_many",
                         .cases = LAYOUTS * DMT_DTYPES,
                         .fn = many_case,
                         .options = MANY_PIECES,
                         .workers = 3,
                         .each = true});
}

static void test_beside(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "load_beside",
                         .cases = 10,
                         .fn = beside_case,
                         .options = MANY_PIECES,
                         .workers = 3,
                         .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_poisoned),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_folder_remove);
}
