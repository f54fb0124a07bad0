/* Files and checkpoints where the program has gone to another folder since the session began, which ranks have
 * not. With DMATH_TEST_LAUNCHED=1 the workers are ranks. */
#include "base/config.h"
#include "support/cases.h"

#include <dmath/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKERS = 3, ROWS = 70, COLS = 5 };

#define OK(call) assert_int_equal(call, DM_OK)

static char start[1000], folder[1100]; /* of the process; of this test, below it */

static int begin(void **state)
{
    int failed = dmt_start(state); /* returns in the program alone, not in the ranks of the workers */
    snprintf(folder, sizeof folder, "%s/elsewhere-XXXXXX", getcwd(start, sizeof start) ? start : "");
    return failed || !mkdtemp(folder);
}

static int end(void **state)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir(start) != 0 || system(command) != 0 || dmt_finish(state) != 0;
}

static void go_to(const char *name)
{
    assert_int_equal(chdir(folder), 0);
    (void)mkdir(name, 0777);
    assert_int_equal(chdir(name), 0);
}

static void all_are(dm_session *s, dm_array a, double want)
{
    double x[ROWS * COLS];
    OK(dm_read(s, a, x));
    for (int i = 0; i < ROWS * COLS; i++) {
        if (x[i] != want) {
            fail_msg("element %d is %g, not %g", i, x[i], want);
        }
    }
}

/* Files of the same names are in two folders, with other numbers. */
static void test_folders(void **state)
{
    (void)state;
    static const char *const place[] = {"first", "second"};
    dm_session *s = dmt_session_open(WORKERS, NULL);
    dm_array a, b;
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &a));
    dm_checkpoint_item item[] = {DM_KEEP_ARRAY("a", a)};
    for (int i = 0; i < 2; i++) {
        go_to(place[i]);
        OK(dm_fill(s, a, 1 + i));
        OK(dm_array_save(s, a, "x.npy"));
        OK(dm_checkpoint_save(s, "series", 1, item, NULL, NULL));
        OK(dm_session_save(s, "all", NULL, NULL));
    }
    for (int i = 0; i < 2; i++) {
        go_to(place[i]);
        OK(dm_array_load(s, "x.npy", NULL, &b));
        all_are(s, b, 1 + i);
        OK(dm_array_destroy(s, b));
        OK(dm_array_load_as(s, "../second/x.npy", DM_F64, NULL, &b));
        all_are(s, b, 2);
        OK(dm_array_destroy(s, b));
        OK(dm_checkpoint_load(s, "series", 1, item));
        all_are(s, a, 1 + i);
        OK(dm_checkpoint_array(s, "series", "a", 0, NULL, &b));
        all_are(s, b, 1 + i);
        OK(dm_array_destroy(s, b));
    }
    go_to("gone"); /* and is removed under the program */
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(chdir("gone"), 0);
    assert_int_equal(rmdir("../gone"), 0);
    assert_int_equal(dm_array_save(s, a, "x.npy"), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "x.npy: the working folder: No such file"));
    assert_int_equal(chdir(folder), 0);
    OK(dm_array_destroy(s, a));
    dmt_session_close(s, 0);
}

/* What the options name is written at the end, in the folder of the beginning. */
static void test_options(void **state)
{
    (void)state;
    if (dmt_launched()) {
        return;
    }
    dm_array a;
    dm_config config = DM_CONFIG_INIT;
    char options[DMI_CONFIG_TEXT + 16]; /* a name for which there is room, but not behind the folder's */
    int used = snprintf(options, sizeof options, "profile=");
    memset(options + used, 'n', DMI_CONFIG_TEXT - 2);
    options[used + DMI_CONFIG_TEXT - 2] = 0;
    config.options = options;
    dm_session *none = NULL;
    go_to("begin");
    assert_int_equal(dm_init(&config, &none), DM_ERR_CONFIG);
    assert_non_null(strstr(dm_error_message(), "profile="));
    assert_non_null(strstr(dm_error_message(), "working folder"));
    dm_session *s = dmt_session_open(WORKERS, "trace=line.json,profile=table.txt");
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &a));
    OK(dm_fill(s, a, 1));
    OK(dm_array_destroy(s, a));
    go_to("end");
    dmt_session_close(s, 0);
    assert_int_equal(chdir(folder), 0);
    assert_true(access("begin/line.json", F_OK) == 0 && access("begin/table.txt", F_OK) == 0);
    assert_false(access("end/line.json", F_OK) == 0 || access("end/table.txt", F_OK) == 0);
}

static void owner_is(dm_session *s, dm_array a, int64_t row, int want)
{
    int worker = -1;
    OK(dm_array_owner(s, a, (int64_t[]){row, 0}, &worker));
    assert_int_equal(worker, want);
}

/* In a group a checkpoint is as outside: of arrays of the group and of all workers, which come back where they
 * were. */
static void test_groups(void **state)
{
    (void)state;
    enum { ARRAYS = 5, LARGE = 700000 };
    static const char *const name[ARRAYS] = {"inside", "large", "outside", "blocks", "twin"};
    const int64_t shape[] = {ROWS, COLS}, row[] = {1, COLS}, large[] = {LARGE, 1}, last[] = {LARGE - 1, 0};
    int map[ROWS];
    double value = 3, x;
    go_to("groups");
    dm_session *s = dmt_session_open(WORKERS, NULL);
    dm_group group;
    dm_array a[ARRAYS], back;
    dm_event event;
    for (int i = 0; i < ROWS; i++) {
        map[i] = i % WORKERS;
    }
    dm_layout blocks = dm_layout_explicit(2, row, map, ROWS);
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &a[2]));
    OK(dm_array_create(s, DM_F64, 2, shape, &blocks, &a[3]));
    OK(dm_group_create(s, (int[]){2, 1}, 2, &group));
    OK(dm_group_begin(s, group));
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &a[0]));
    OK(dm_array_create(s, DM_F64, 2, large, NULL, &a[1]));
    OK(dm_matrix(s, DM_F64, ROWS, COLS, &a[4]));
    dm_checkpoint_item item[ARRAYS + 1] = {[ARRAYS] = DM_KEEP_VALUE("value", &value)};
    for (int inside = 1; inside >= 0; inside--) { /* written in the group, and outside; both are read in it */
        for (int i = 0; i < ARRAYS; i++) {
            item[i] = (dm_checkpoint_item)DM_KEEP_ARRAY(name[i], a[i]);
            OK(dm_fill(s, a[i], 1 + i));
        }
        value = 3;
        OK(inside ? DM_OK : dm_group_end(s));
        OK(dm_checkpoint_save(s, "series", ARRAYS + 1, item, NULL, NULL));
        OK(dm_checkpoint_save(s, "series", ARRAYS + 1, item, NULL, &event));
        OK(dm_event_wait(s, event, -1));
        OK(inside ? DM_OK : dm_group_begin(s, group));
        for (int i = 0; i < ARRAYS; i++) {
            OK(dm_fill(s, a[i], 0));
        }
        value = 0;
        OK(dm_checkpoint_load(s, "series", ARRAYS + 1, item));
        assert_true(value == 3);
        OK(dm_item(s, a[1], last, &x));
        assert_true(x == 2);
        for (int i = 0; i < ARRAYS; i++) {
            if (i != 1) {
                all_are(s, a[i], 1 + i);
            }
        }
        OK(dm_checkpoint_array(s, "series", "blocks", 0, NULL, &back));
        all_are(s, back, 4);
        for (int i = 0; i < ROWS; i++) {
            owner_is(s, back, i, map[i]);
        }
        OK(dm_array_destroy(s, back));
        OK(dm_checkpoint_array(s, "series", "inside", 0, NULL, &back)); /* small: on the group's first worker */
        all_are(s, back, 1);
        owner_is(s, back, 0, 2);
        OK(dm_array_destroy(s, back));
        dm_layout rows = dm_layout_rows(s); /* which counts in the group */
        OK(dm_checkpoint_array(s, "series", "outside", 0, &rows, &back));
        all_are(s, back, 3);
        owner_is(s, back, 0, 2);
        owner_is(s, back, ROWS - 1, 1);
        OK(dm_array_destroy(s, back));
    }
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_keep(s, &item[i]));
    }
    OK(dm_session_save(s, "all", NULL, NULL));
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_fill(s, a[i], 0));
    }
    OK(dm_session_load(s, "all"));
    all_are(s, a[0], 1);
    all_are(s, a[3], 4);
    OK(dm_group_end(s));
    OK(dm_group_destroy(s, group));
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_array_destroy(s, a[i]));
    }
    dmt_session_close(s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders), cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, begin, end);
}
