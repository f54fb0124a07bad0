/* Arrays -> .npy files, and back; NumPy's opinion of them where it is installed. */
#include "support/npyfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dmt_operand *random_operand(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 20) ? DM_MAX_DIMS : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    return dmt_operand_make(c, "a", h, 0);
}

static void save_case(dmt_case *c)
{
    char path[300], text[900];
    dmt_operand *a = random_operand(c);
    dmt_path(path, "save.npy");
    DMT_OK(c, dm_array_save(c->session, a->array, path));
    dmt_host *got = dmt_host_copy(&c->scratch, a->value);
    if (!dmt_npy_read(path, got, text, sizeof text) || !dmt_host_same(got, a->value, text, sizeof text)) {
        dmt_fail(c, "%s", text);
    }
    if (dmt_folder_count() != 1) {
        dmt_fail(c, "%d files in the folder, not the one that was saved", dmt_folder_count());
    }
    dmt_operand_unchanged(c, a);
}

/* Saved from one layout, loaded in another. */
static void round_trip_case(dmt_case *c)
{
    char path[300], text[400];
    dm_array b;
    dmt_layout layout;
    dmt_operand *a = random_operand(c);
    dmt_host *h = a->value;
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, h->ndim, h->shape);
    dmt_say(c, "\n    loaded in %s", layout.text);
    dmt_path(path, "save.npy");
    DMT_OK(c, dm_array_save(c->session, a->array, path));
    DMT_OK(c, dm_array_load(c->session, path, layout.use, &b));
    dmt_host *got = dmt_read(c, b, h->dtype, h->ndim, h->shape);
    DMT_OK(c, dm_array_destroy(c->session, b));
    if (!dmt_host_same(got, h, text, sizeof text)) {
        dmt_fail(c, "%s", text);
    }
}

/* Saving over a file replaces it as a whole, also where the new one is shorter. */
static void test_replaces(void **state)
{
    (void)state;
    const int64_t large[] = {100, 30}, small[] = {2, 2};
    dmt_scratch scratch = {0};
    char path[300], text[900];
    dm_session *session = dmt_session_open(3, NULL);
    dm_array a, b;
    dmt_path(path, "save.npy");
    assert_int_equal(dm_array_create(session, DM_F64, 2, large, NULL, &a), DM_OK);
    assert_int_equal(dm_array_create(session, DM_F32, 2, small, NULL, &b), DM_OK);
    assert_int_equal(dm_fill(session, a, 1), DM_OK);
    assert_int_equal(dm_fill_arange(session, b, 5, 1), DM_OK);
    assert_int_equal(dm_array_save(session, a, path), DM_OK);
    assert_int_equal(dm_array_save(session, b, path), DM_OK);
    dmt_host *got = dmt_host_make(&scratch, DM_F32, 2, small);
    if (!dmt_npy_read(path, got, text, sizeof text)) {
        fail_msg("%s", text);
    }
    assert_true(got->v[0] == 5 && got->v[3] == 8);
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
    assert_int_equal(dm_array_destroy(session, b), DM_OK);
    dmt_scratch_free(&scratch);
    dmt_session_close(session, 0);
}

/* The longest name that a file can have; a name that is a link, which stays one. */
static void test_names(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    char name[256], path[600], link[300], target[300], text[900];
    struct stat there;
    dm_array a;
    dmt_scratch scratch = {0};
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(path, sizeof path, "%s/%s", dmt_folder(), name);
    assert_int_equal(dm_array_create(session, DM_F32, 1, (int64_t[]){5}, NULL, &a), DM_OK);
    assert_int_equal(dm_fill_arange(session, a, 6, 1), DM_OK);
    assert_int_equal(dm_array_save(session, a, path), DM_OK);
    assert_int_equal(unlink(path), 0);

    dmt_path(link, "link.npy");
    dmt_path(target, "save.npy");
    (void)unlink(target);
    assert_int_equal(symlink("save.npy", link), 0);
    assert_int_equal(dm_array_save(session, a, link), DM_OK); /* to nothing yet */
    assert_int_equal(dm_fill_arange(session, a, 5, 1), DM_OK);
    assert_int_equal(dm_array_save(session, a, link), DM_OK);
    assert_true(lstat(link, &there) == 0 && S_ISLNK(there.st_mode));
    dmt_host *got = dmt_host_make(&scratch, DM_F32, 1, (int64_t[]){5});
    if (!dmt_npy_read(target, got, text, sizeof text)) {
        fail_msg("%s", text);
    }
    assert_true(got->v[0] == 5 && got->v[4] == 9);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("link.npy", link), 0); /* to itself */
    assert_int_equal(dm_array_save(session, a, link), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), link));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
    dmt_scratch_free(&scratch);
    dmt_session_close(session, 0);
}

/* A save that fails leaves nothing behind, names the path, and the session works on. */
static void test_fails(void **state)
{
    (void)state;
    dm_session *session = dmt_session_open(3, NULL);
    char path[300];
    dm_array a;
    int before = dmt_folder_count();
    assert_int_equal(dm_matrix(session, DM_F64, 9, 9, &a), DM_OK);
    assert_int_equal(dm_fill(session, a, 1), DM_OK);
    dmt_path(path, "no-such-folder/a.npy");
    assert_int_equal(dm_array_save(session, a, path), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), path));
    assert_int_equal(dm_array_save(session, a, dmt_folder()), DM_ERR_IO);
    assert_int_equal(dm_sync(session), DM_OK);
    assert_int_equal(dmt_folder_count(), before);
    dmt_path(path, "save.npy");
    assert_int_equal(dm_array_save(session, a, path), DM_OK);
    assert_int_equal(dm_array_destroy(session, a), DM_OK);
    dmt_session_close(session, 0);
}

/* Runs NumPy on both files: what was saved must be arange + 1 of that type and shape; the other gets its double
 * in Fortran order and big-endian. Returns false where there is no NumPy. */
static bool numpy(const char *script, const char *in, const char *out, const char *descr)
{
    char command[1500];
    if (access("/usr/bin/python3", X_OK) != 0 ||
        system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        return false;
    }
    snprintf(command, sizeof command, "/usr/bin/python3 -c \"%s\" '%s' '%s' '%s'", script, in, out, descr);
    if (system(command) != 0) {
        fail_msg("NumPy does not agree: %s", command);
    }
    return true;
}

static const char script[] = "import sys, numpy as np\n"
                             "a = np.load(sys.argv[1])\n"
                             "want = np.arange(1, 1 + 7 * 5 * 3).astype(sys.argv[3]).reshape(7, 5, 3)\n"
                             "assert a.dtype == want.dtype and a.shape == want.shape, (a.dtype, a.shape)\n"
                             "assert (a == want).all()\n"
                             "b = np.asfortranarray((a * 2).astype(a.dtype.newbyteorder('>')))\n"
                             "np.save(sys.argv[2], b)\n";

/* One type: to NumPy and back. */
static void numpy_case(dmt_case *c)
{
    const int64_t shape[] = {7, 5, 3};
    dm_dtype dtype = dmt_dtypes[c->number];
    dm_layout layout = dm_layout_cyclic(c->session, 1, 2);
    char in[300], out[300];
    dm_array a, b;
    if (dtype == DM_BF16 || dtype == DM_F8E4M3 || dtype == DM_F8E5M2) {
        return; /* NumPy has none */
    }
    dmt_path(in, "in.npy");
    dmt_path(out, "out.npy");
    DMT_OK(c, dm_array_create(c->session, dtype, 3, shape, &layout, &a));
    if (dtype == DM_BOOL) { /* an arange would leave it */
        DMT_OK(c, dm_fill(c->session, a, 1));
    } else {
        DMT_OK(c, dm_fill_arange(c->session, a, 1, 1));
    }
    DMT_OK(c, dm_array_save(c->session, a, in));
    DMT_OK(c, dm_array_destroy(c->session, a));
    if (!numpy(script, in, out, dmt_npy_descr(dtype, false))) {
        print_message("no NumPy: skipped\n");
        return;
    }
    DMT_OK(c, dm_array_load(c->session, out, NULL, &b));
    dmt_host *got = dmt_read(c, b, dtype, 3, shape);
    DMT_OK(c, dm_array_destroy(c->session, b));
    for (int64_t k = 0; k < got->count; k++) {
        long double want = dmt_from_whole(dtype, 2 * (k + 1));
        if (got->v[k] != want) {
            dmt_fail(c, "%s element %d: %Lg, not %Lg", dmt_name(dtype), (int)k, got->v[k], want);
        }
    }
}

static void test_numpy(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "save_numpy", .cases = DMT_DTYPES, .fn = numpy_case, .workers = 3, .each = true});
}

static void test_save(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "save", .cases = 300, .fn = save_case});
}

static void test_round_trip(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "save_load", .cases = 300, .fn = round_trip_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save),  cmocka_unit_test(test_round_trip), cmocka_unit_test(test_replaces),
        cmocka_unit_test(test_names), cmocka_unit_test(test_fails),      cmocka_unit_test(test_numpy),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_folder_remove);
}
