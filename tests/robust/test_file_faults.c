/* The K-th access to a file fails, for every K, in saves, loads and checkpoints, in a journal and a timeline:
 * an error that names a call, or all is right; the file or checkpoint that was there, or the new one, is whole;
 * nothing half-written is left. */
#include "robust.h"

#include "base/fault.h"
#include "support/folder.h"

#include <dirent.h>
#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <sys/stat.h>

enum { SIDE = 12, MOST_CALLS = 400 };
static const char *const kinds[] = {"open",         "close",       "read",  "write",
                                    "write:enospc", "write:short", "fsync", "rename"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static char folder[] = "/tmp/dmath-file-faults-XXXXXX", now[64];
static int points, failures;

/* "write:enospc" and 3: "write:3:enospc" */
static void plant(const char *kind, int at)
{
    const char *how = strchr(kind, ':');
    snprintf(now, sizeof now, "%.*s:%d%s", (int)strcspn(kind, ":"), kind, at, how ? how : "");
    dmi_fault_plant(now);
}

static bool met(int at)
{
    bool is = dmi_fault_calls() >= at;
    dmi_fault_plant("");
    points++;
    return is;
}

static void named(dm_status status)
{
    const char *text = dm_error_message();
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (status != DM_OK && !(length > 0 && strncmp(text + length, ": ", 2) == 0) &&
        strncmp(text, "command ", 8) != 0 && !strstr(text, folder)) {
        fail_msg("%s: %s names no call and no file: %s", now, dm_status_name(status), text);
    }
    failures += status != DM_OK;
}

static int partials_in(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        count += strstr(e->d_name, "partial") != NULL;
    }
    closedir(dir);
    return count;
}

/* One of two values everywhere. */
static int64_t value_of(dm_session *s, dm_array a)
{
    double x[SIDE * SIDE];
    OK(dm_array_read(s, a, NULL, NULL, x, 0));
    for (int i = 1; i < SIDE * SIDE; i++) {
        assert_true(x[i] == x[0]);
    }
    return (int64_t)x[0];
}

static void test_arrays(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s/a.npy", folder);
    dm_session *s = open_session(3, "log=error,fault=''");
    dm_array a = make_matrix(s, SIDE, NULL, 1), b;
    for (int k = 0; k < KINDS; k++) {
        bool more = true;
        for (int at = 1; more && at < MOST_CALLS; at++) {
            OK(dm_fill(s, a, 1));
            OK(dm_array_save(s, a, path));
            OK(dm_fill(s, a, 2));
            plant(kinds[k], at);
            dm_status saved = dm_array_save(s, a, path);
            named(saved);
            dm_status loaded = dm_array_load(s, path, NULL, &b);
            named(loaded);
            more = met(at);
            if (loaded == DM_OK) {
                int64_t value = value_of(s, b);
                assert_true(saved == DM_OK ? value == 2 : value == 1 || value == 2);
                OK(dm_array_destroy(s, b));
            }
            OK(dm_sync(s));
            OK(dm_array_load(s, path, NULL, &b));
            assert_true(saved == DM_OK ? value_of(s, b) == 2 : value_of(s, b) <= 2);
            OK(dm_array_destroy(s, b));
            assert_int_equal(partials_in(folder), 0);
        }
        assert_false(more);
    }
    assert_int_equal(unlink(path), 0);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* The status of all of it; step: as loaded. */
static dm_status keep_and_load(dm_session *s, const char *path, dm_array a, dm_array b, int64_t *step,
                               bool *sure)
{
    const dm_checkpoint_options options = {.size = sizeof options, .keep = 2};
    dm_event event;
    int64_t two = 2;
    dm_status status = dm_checkpoint_save(
        s, path, 2, (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a), DM_KEEP_VALUE("step", &two)}, &options,
        &event);
    named(status);
    status = status == DM_OK ? dm_event_wait(s, event, 60) : status;
    named(status);
    *sure = status == DM_OK;
    status = dm_checkpoint_load(s, path, 2,
                                (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", b), DM_KEEP_VALUE("step", step)});
    named(status);
    dm_status verified = dm_checkpoint_verify(path, NULL, NULL);
    named(verified);
    return status == DM_OK ? verified : status;
}

static void test_checkpoints(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s/series", folder);
    dm_session *s = open_session(2, "log=error,fault=''");
    dm_array a = make_matrix(s, SIDE, NULL, 1), b = make_matrix(s, SIDE, NULL, 1);
    for (int k = 0; k < KINDS; k++) {
        bool more = true;
        for (int at = 1; more && at < MOST_CALLS; at++) {
            int64_t step = 1;
            bool sure = false;
            OK(dm_fill(s, a, 1));
            OK(dm_checkpoint_save(s, path, 2,
                                  (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", a), DM_KEEP_VALUE("step", &step)},
                                  NULL, NULL));
            OK(dm_fill(s, a, 2));
            plant(kinds[k], at);
            dm_status status = keep_and_load(s, path, a, b, &step, &sure);
            more = met(at);
            (void)!dm_sync(s);
            assert_true(status != DM_OK || !sure || step == 2);
            step = 0;
            OK(dm_checkpoint_verify(path, NULL, NULL));
            OK(dm_fill(s, b, 0));
            OK(dm_checkpoint_load(s, path, 2,
                                  (dm_checkpoint_item[]){DM_KEEP_ARRAY("a", b), DM_KEEP_VALUE("step", &step)}));
            assert_true(sure ? step == 2 : step == 1 || step == 2);
            assert_int_equal(value_of(s, b), step);
            (void)dmt_remove_folder(path);
        }
        assert_false(more);
    }
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
}

/* Files of the session itself: a journal, a timeline, a profile. */
static void test_sessions(void **state)
{
    (void)state;
    char path[96];
    static const char *const files[] = {"journal", "trace", "profile"};
    snprintf(path, sizeof path, "%s/file", folder);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < KINDS; k++) {
            bool more = true;
            for (int at = 1; more && at < MOST_CALLS; at++) {
                char options[256];
                dm_session *s = NULL;
                dm_array a;
                snprintf(options, sizeof options, "log=error,%s=%s", files[i], path);
                dm_config config = {sizeof config, 2, options};
                plant(kinds[k], at);
                setenv("DMATH_FAULT", now, 1); /* dm_init plants what it says */
                dm_status status = dm_init(&config, &s);
                named(status);
                if (status == DM_OK) {
                    OK(dm_matrix(s, DM_F64, SIDE, SIDE, &a));
                    OK(dm_fill(s, a, 3));
                    assert_int_equal(value_of(s, a), 3);
                    OK(dm_array_destroy(s, a));
                    named(dm_finalize(s, NULL));
                }
                more = met(at);
                unsetenv("DMATH_FAULT");
            }
            assert_false(more);
        }
        (void)unlink(path);
    }
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    print_message("%d points, %d errors\n", points, failures);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_arrays, deadline),
                                       cmocka_unit_test_setup(test_checkpoints, deadline),
                                       cmocka_unit_test_setup(test_sessions, deadline)};
    return cmocka_run_group_tests(tests, begin, end);
}
