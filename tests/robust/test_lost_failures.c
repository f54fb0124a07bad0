/* Commands that fail where there is no memory to keep what failed, at the worker or at the master: all failures
 * are known all the same, or the session has failed, which says so. */
#include "robust.h"

#include "base/fault.h"

#include <dmath/control.h>

enum { SIDE = 24, MOST_POINTS = 2000, MASTER = -1 };

/* At the worker that has the array. */
static int fails(const dm_task *task)
{
    return task->blocks[0] > 0 ? dm_task_fail(task, "as was asked") : 0;
}

/* No memory for one allocation of a thread, while more commands fail than a worker has places to report: each
 * failure is known, or the session has failed. Returns whether the fault was met. */
static bool failures_are_known(int thread, int at)
{
    enum { COMMANDS = 8 };
    char fault[64], text[2048];
    double got[SIDE];
    dm_event event[COMMANDS];
    dm_array x;
    int given = 0;
    dm_session *s = open_session(2, "device=cpu,log=error,fault=''");
    dm_layout there = dm_layout_single(0);
    OK(dm_array_create(s, DM_F64, 1, (const int64_t[]){SIDE}, &there, &x));
    OK(dm_sync(s));
    snprintf(fault, sizeof fault, "malloc:%d:worker=%d", at, thread);
    dmi_fault_plant(fault);
    for (int i = 0; i < COMMANDS; i++) {
        bool ok =
            dm_fill(s, x, i) == DM_OK && dm_apply(s, "fails", 1, &x, (int[]){DM_READWRITE}, NULL, 0) == DM_OK;
        OK(dm_event_record(s, &event[given]));
        given += ok;
    }
    dm_status end = dm_sync(s);
    snprintf(text, sizeof text, "%s", dm_error_message());
    bool met = dmi_fault_calls() >= at;
    dmi_fault_plant("");
    if (end == DM_OK) {
        fail_msg("%s: %d commands have failed, and nothing is said", fault, given);
    }
    for (int i = 0; i < given && !strstr(text, "The session has failed"); i++) {
        dm_status status = DM_OK;
        OK(dm_event_error(s, event[i], 0, &status, NULL, 0));
        if (status == DM_OK) {
            fail_msg("%s: the failure of command %d of %d is not known, only: %s", fault, i, given, text);
        }
    }
    assert_int_not_equal(dm_read(s, x, got), DM_OK);
    (void)!dm_finalize(s, NULL);
    return met;
}

static void test_failures(void **state)
{
    (void)state;
    for (int thread = MASTER; thread <= 0; thread++) {
        int at = 1;
        while (at < MOST_POINTS && failures_are_known(thread, at)) {
            at++;
        }
        assert_in_range(at, thread == MASTER ? 1 : 2, MOST_POINTS - 1); /* the master needs none for them */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_failures, deadline)};
    OK(dm_register("fails", fails));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
