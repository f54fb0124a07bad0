/* Transfers of a command do not queue behind those of one before it: not where that one's source is late, and
 * not where its destination is in use. A task holds what it has until a later command, which has nothing to do
 * with it, is done. So where the later one waited, the task would hold for ever; it gives up. */
#include "robust.h"

#include <stdatomic.h>

enum { FROM, TO, THIRD, WORKERS };
enum { LENGTH = 1000, GIVE_UP_S = 20 };
static atomic_int passed, gave_up;

static int hold(const dm_task *task)
{
    double until = seconds() + GIVE_UP_S;
    while (task->blocks[0] > 0 && !atomic_load(&passed) && !atomic_load(&gave_up)) {
        usleep(200);
        if (seconds() > until) {
            atomic_store(&gave_up, 1);
        }
    }
    return 0;
}

static int pass(const dm_task *task)
{
    if (task->blocks[0] > 0) {
        atomic_store(&passed, 1);
    }
    return 0;
}

static dm_array make(dm_session *s, int worker, double value)
{
    const int64_t shape[1] = {LENGTH};
    dm_array x;
    dm_layout single = dm_layout_single(worker);
    OK(dm_array_create(s, DM_F64, 1, shape, &single, &x));
    OK(dm_fill(s, x, value));
    return x;
}

static void check(dm_session *s, dm_array x, double want)
{
    double got[LENGTH];
    OK(dm_read(s, x, got));
    for (int i = 0; i < LENGTH; i++) {
        assert_true(got[i] == want);
    }
    OK(dm_array_destroy(s, x));
}

static dm_session *begin(void)
{
    dm_session *s = open_session(WORKERS, "");
    atomic_store(&passed, 0);
    atomic_store(&gave_up, 0);
    return s;
}

/* The push of `late` waits for the task that writes it; that of another array to the same worker passes. */
static void test_late_source(void **state)
{
    (void)state;
    dm_session *s = begin();
    dm_array late = make(s, FROM, 1), late_to = make(s, TO, 0), other = make(s, FROM, 2),
             other_to = make(s, TO, 0);
    OK(dm_sync(s));
    OK(dm_apply(s, "hold", 1, &late, (int[]){DM_READWRITE}, NULL, 0));
    OK(dm_copy(s, late, late_to));
    OK(dm_copy(s, other, other_to));
    OK(dm_apply(s, "pass", 1, &other_to, (int[]){DM_READ}, NULL, 0));
    OK(dm_sync(s));
    assert_int_equal(atomic_load(&gave_up), 0);
    check(s, late, 1);
    check(s, late_to, 1);
    check(s, other, 2);
    check(s, other_to, 2);
    close_session(s);
}

/* The grant of `busy` waits for the task that reads it; those of another array, from and to other workers,
 * pass. */
static void test_busy_destination(void **state)
{
    (void)state;
    dm_session *s = begin();
    dm_array from = make(s, FROM, 1), busy = make(s, TO, 0), other = make(s, FROM, 2), there = make(s, TO, 0),
             third = make(s, THIRD, 0);
    OK(dm_sync(s));
    OK(dm_apply(s, "hold", 1, &busy, (int[]){DM_READ}, NULL, 0));
    OK(dm_copy(s, from, busy));
    OK(dm_copy(s, other, there));
    OK(dm_copy(s, there, third));
    OK(dm_apply(s, "pass", 1, &third, (int[]){DM_READ}, NULL, 0));
    OK(dm_sync(s));
    assert_int_equal(atomic_load(&gave_up), 0);
    check(s, from, 1);
    check(s, busy, 1);
    check(s, other, 2);
    check(s, there, 2);
    check(s, third, 2);
    close_session(s);
}

int main(void)
{
    if (dm_register("hold", hold) != DM_OK || dm_register("pass", pass) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_late_source, deadline),
                                       cmocka_unit_test_setup(test_busy_destination, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
