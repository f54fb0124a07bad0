/* Events and time limits: what is done and what is not, whose failure it was, and that nothing is lost when the
 * time is over. One session for all, so that it can run as ranks too. */
#include "robust.h"

#include <math.h>

enum { N = 8, FAILING = 40 };
static dm_session *s;
static dm_array a;

static int holds;
static char here[200]; /* the folder; workers may be other processes of this host */

typedef struct order {
    int fail;             /* a number for the text; 0: goes well */
    char wait_while[240]; /* this file exists */
} order;

static int obey(const dm_task *task)
{
    const order *o = task->args;
    double begin = seconds();
    while (o->wait_while[0] && access(o->wait_while, F_OK) == 0 && seconds() - begin < 90) {
        usleep(1000);
    }
    return o->fail ? dm_task_fail(task, "failure number %d.", o->fail) : 0;
}

static void give(int fail)
{
    const order o = {.fail = fail};
    OK(dm_apply(s, "obey", 1, &a, (int[]){DM_READWRITE}, &o, sizeof o));
}

/* A command that is not done before let_go. */
static void hold(int fail)
{
    order o = {.fail = fail};
    snprintf(o.wait_while, sizeof o.wait_while, "%s/held-%d-%d", here, (int)getpid(), ++holds);
    FILE *f = fopen(o.wait_while, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    OK(dm_apply(s, "obey", 1, &a, (int[]){DM_READWRITE}, &o, sizeof o));
}

static void let_go(void)
{
    char path[240];
    snprintf(path, sizeof path, "%s/held-%d-%d", here, (int)getpid(), holds);
    assert_int_equal(unlink(path), 0);
}

static int done(dm_event event)
{
    int is = -1;
    OK(dm_event_done(s, event, &is));
    return is;
}

static void heal(void)
{
    OK(dm_fill(s, a, 3));
}

static void test_done(void **state)
{
    (void)state;
    dm_event before, event;
    OK(dm_sync(s));
    OK(dm_event_record(s, &before));
    OK(dm_event_wait(s, before, 60));
    hold(0);
    OK(dm_event_record(s, &event));
    double begin = seconds();
    assert_int_equal(done(event), 0);
    assert_int_equal(done(before), 1);
    assert_int_equal(dm_event_wait(s, event, 0), DM_ERR_PENDING);
    assert_int_equal(dm_event_wait(s, event, 0.05), DM_ERR_PENDING);
    assert_true(seconds() - begin > 0.05);
    assert_int_equal(dm_sync_within(s, 0.01), DM_ERR_PENDING);
    assert_int_equal(done(event), 0);
    let_go();
    OK(dm_event_wait(s, event, -1));
    assert_int_equal(done(event), 1);
    OK(dm_sync_within(s, 60));
    assert_int_equal(dm_event_wait(s, event, NAN), DM_ERR_ARG);
    assert_int_equal(dm_sync_within(s, NAN), DM_ERR_ARG);
    assert_int_equal(dm_array_read_within(s, (dm_array){0}, NULL, NULL, NULL, 0, NAN), DM_ERR_ARG);
}

static void has_error(dm_event event, int index, dm_status want, const char *part)
{
    dm_status status = DM_ERR_INTERNAL;
    char text[512] = "?";
    OK(dm_event_error(s, event, index, &status, text, sizeof text));
    assert_int_equal(status, want);
    if (part ? !strstr(text, part) : text[0] != 0) {
        fail_msg("'%s' is not about '%s'", text, part ? part : "nothing");
    }
}

static void test_whose_failure(void **state)
{
    (void)state;
    dm_event good, bad, two, last;
    give(0);
    OK(dm_event_record(s, &good));
    give(1001);
    OK(dm_event_record(s, &bad));
    heal();
    give(1002);
    heal();
    give(1003);
    OK(dm_event_record(s, &two));
    heal();
    give(1004);
    OK(dm_event_record(s, &last));
    OK(dm_event_wait(s, good, -1));
    assert_int_equal(dm_event_wait(s, two, -1), DM_ERR_TASK);
    assert_non_null(strstr(dm_error_message(), "number 1002."));
    has_error(good, 0, DM_OK, NULL);
    has_error(bad, 0, DM_ERR_TASK, "number 1001.");
    has_error(bad, 1, DM_OK, NULL);
    has_error(two, 0, DM_ERR_TASK, "number 1002.");
    has_error(two, 1, DM_ERR_TASK, "number 1003.");
    has_error(two, 2, DM_OK, NULL);
    /* the rest, which no event was waited for, is the next wait's */
    assert_int_equal(dm_sync(s), DM_ERR_TASK);
    assert_non_null(strstr(dm_error_message(), "number 1001."));
    assert_non_null(strstr(dm_error_message(), "Other commands failed"));
    assert_null(strstr(dm_error_message(), "1002"));
    OK(dm_sync(s));
    assert_int_equal(dm_event_wait(s, bad, 0), DM_ERR_TASK); /* as often as it is asked */
    assert_int_equal(dm_event_wait(s, last, 0), DM_ERR_TASK);
    assert_non_null(strstr(dm_error_message(), "number 1004."));
    heal();
    OK(dm_sync(s));
}

/* More failures than a worker has places to report them. */
static void test_all_are_kept(void **state)
{
    (void)state;
    dm_event event[FAILING];
    for (int i = 0; i < FAILING; i++) {
        heal();
        give(2000 + i);
        OK(dm_event_record(s, &event[i]));
    }
    assert_int_equal(dm_event_wait(s, event[FAILING - 1], -1), DM_ERR_TASK);
    for (int i = 0; i < FAILING; i++) {
        char want[32];
        snprintf(want, sizeof want, "number %d.", 2000 + i);
        has_error(event[i], 0, DM_ERR_TASK, want);
        has_error(event[i], 1, DM_OK, NULL);
    }
    assert_int_equal(dm_sync(s), DM_ERR_TASK);
    heal();
    OK(dm_sync(s));
}

static void test_late_read(void **state)
{
    (void)state;
    double host[N * N];
    memset(host, 0, sizeof host);
    heal();
    hold(0);
    assert_int_equal(dm_array_read_within(s, a, NULL, NULL, host, 0, 0.02), DM_ERR_PENDING);
    OK(dm_fill(s, a, 4)); /* behind the read */
    let_go();
    dm_event event;
    OK(dm_event_record(s, &event));
    OK(dm_event_wait(s, event, -1));
    for (int i = 0; i < N * N; i++) {
        assert_true(host[i] == 3);
    }
    OK(dm_array_read_within(s, a, (int64_t[]){1, 1}, (int64_t[]){2, 2}, host, 0, 60));
    assert_true(host[0] == 4 && host[3] == 4 && host[4] == 3);
    OK(dm_array_read_within(s, a, NULL, NULL, host, 0, -1));
    assert_true(host[N * N - 1] == 4);
}

static void test_late_poison(void **state)
{
    (void)state;
    double host[N * N];
    hold(3001);
    assert_int_equal(dm_array_read_within(s, a, NULL, NULL, host, 0, 0.01), DM_ERR_PENDING);
    let_go();
    dm_event event;
    OK(dm_event_record(s, &event));
    assert_int_equal(dm_event_wait(s, event, -1), DM_ERR_TASK);
    has_error(event, 1, DM_ERR_POISONED, "(array_read_within)");
    heal();
    OK(dm_sync(s));
    OK(dm_array_read(s, a, NULL, NULL, host, 0));
}

static void test_bad(void **state)
{
    (void)state;
    dm_event event, none = {0};
    int is;
    dm_status status;
    OK(dm_event_record(s, &event));
    assert_int_equal(dm_event_record(s, NULL), DM_ERR_ARG);
    assert_int_equal(dm_event_done(s, none, &is), DM_ERR_HANDLE);
    assert_int_equal(dm_event_done(s, event, NULL), DM_ERR_ARG);
    assert_int_equal(dm_event_wait(s, none, 0), DM_ERR_HANDLE);
    assert_int_equal(dm_event_error(s, event, -1, &status, NULL, 0), DM_ERR_ARG);
    assert_int_equal(dm_event_error(s, event, 0, NULL, NULL, 0), DM_ERR_ARG);
    OK(dm_event_error(s, event, 0, &status, NULL, 0));
    assert_int_equal(status, DM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done),         cmocka_unit_test(test_whose_failure),
        cmocka_unit_test(test_all_are_kept), cmocka_unit_test(test_late_read),
        cmocka_unit_test(test_late_poison),  cmocka_unit_test(test_bad)};
    assert_non_null(getcwd(here, sizeof here));
    OK(dm_register("obey", obey));
    s = open_session(getenv("DMATH_TEST_LAUNCHED") ? 0 : 3, "log=error");
    dm_layout rows = dm_layout_rows(s);
    (void)deadline(NULL);
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){N, N}, &rows, &a));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    OK(dm_array_destroy(s, a));
    close_session(s);
    return failed;
}
