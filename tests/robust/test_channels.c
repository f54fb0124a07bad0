/* Large reductions, and sums of gradients over slices of any size, have lanes of their own: what comes behind
 * one does not wait for its transfers. Measured over links that are pretended to be slow, beside the same
 * commands with every reduction counted as small. */
#include "robust.h"

#include <dmath/layers.h>

#include <stdatomic.h>

enum { WORKERS = 3, ATTEMPTS = 6, MS = 20 }; /* MS: of a link; of each attempt twice that of the one before */
static const int64_t LENGTH = 48 << 10; /* addends of 384 KiB */
static atomic_llong ran_at_us;          /* the task, at the last worker that ran it */

static int note_time(const dm_task *task)
{
    (void)task;
    atomic_store(&ran_at_us, (long long)(seconds() * 1e6));
    return 0;
}

typedef struct times {
    double task, all, reduction,
        copy; /* seconds from the first call on, for each of these alone or all three together */
} times;

static void check(dm_session *s, dm_array x, double want)
{
    double *values = malloc((size_t)LENGTH * sizeof *values);
    assert_non_null(values);
    OK(dm_array_read(s, x, NULL, NULL, values, 0));
    for (int64_t i = 0; i < LENGTH; i++) {
        assert_true(values[i] == want * (double)(i % 7 + 1));
    }
    free(values);
}

static dm_array ramp(dm_session *s, int ndim, const int64_t *shape, const dm_layout *layout)
{
    dm_array x;
    double *values = malloc((size_t)(WORKERS * LENGTH) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < WORKERS * LENGTH; i++) {
        values[i] = (double)(i % LENGTH % 7 + 1);
    }
    OK(dm_array_create(s, DM_F64, ndim, shape, layout, &x));
    OK(dm_array_write(s, x, NULL, NULL, values, 0));
    free(values);
    return x;
}

/* An all-reduce, or the gradient of an inner product with as many slices as workers, then a copy between
 * layouts and a task, which touch other arrays. */
static times measure(const char *options, bool gradient)
{
    dm_session *s = open_session(WORKERS, options);
    const int64_t shape[2] = {WORKERS, LENGTH}, length[1] = {LENGTH};
    const int dims[1] = {0};
    dm_layout rows = dm_layout_rows(s), all = dm_layout_replicated(s), cyclic = dm_layout_cyclic(s, 0, 1024);
    dm_layout block = dm_layout_cyclic(s, 0, LENGTH / WORKERS);
    dm_array x = ramp(s, 2, shape, &rows), from = ramp(s, 1, length, &block), sum, to, own, ones;
    OK(dm_array_create(s, DM_F64, gradient ? 2 : 1, gradient ? (int64_t[]){1, LENGTH} : length, &all, &sum));
    OK(dm_array_create(s, DM_F64, 2, (int64_t[]){WORKERS, 1}, &rows, &ones));
    OK(dm_fill(s, ones, 1));
    OK(dm_array_create(s, DM_F64, 1, length, &cyclic, &to));
    OK(dm_array_create(s, DM_F64, 1, length, &block, &own));
    times t;
    double begin = 0;
    for (int turn = 0; turn < 4; turn++) { /* the first makes the plans */
        OK(dm_sync(s));
        begin = seconds();
        if (turn != 2 && gradient) {
            OK(dm_inner_backward_weights(s, WORKERS, x, ones, 0, sum, DM_NO_ARRAY));
        } else if (turn != 2) {
            OK(dm_sum(s, x, dims, 1, 1, 0, sum));
        }
        if (turn == 0 || turn >= 2) {
            OK(dm_copy(s, from, to));
        }
        OK(dm_apply(s, "note the time", 1, &own, (int[]){DM_WRITE}, NULL, 0));
        OK(dm_sync(s));
        *(turn == 1 ? &t.reduction : turn == 2 ? &t.copy : &t.all) = seconds() - begin;
    }
    t.task = (double)atomic_load(&ran_at_us) * 1e-6 - begin;
    check(s, sum, WORKERS);
    check(s, to, 1);
    OK(dm_array_destroy(s, x));
    OK(dm_array_destroy(s, from));
    OK(dm_array_destroy(s, sum));
    OK(dm_array_destroy(s, to));
    OK(dm_array_destroy(s, own));
    OK(dm_array_destroy(s, ones));
    close_session(s);
    return t;
}

static bool waits(const times *t)
{
    return t->task >= 0.5 * t->reduction || t->all >= 0.8 * (t->reduction + t->copy);
}

static void nothing_waits(bool gradient)
{
    char apart[96], together[96];
    bool shown = false;
    for (int i = 0; i < ATTEMPTS && !shown; i++) { /* on a slow machine, or beside other programs, links must be slower */
        snprintf(apart, sizeof apart, "link_latency_us=%d", (MS << i) * 1000);
        snprintf(together, sizeof together, "link_latency_us=%d,reduce_chunk=1G", (MS << i) * 1000);
        times t = measure(apart, gradient), one = measure(together, gradient);
        print_message("reduction %.0f ms, copy %.0f ms; all: %.0f ms, the task after %.0f ms; counted as small "
                      "%.0f, %.0f ms\n",
                      t.reduction * 1e3, t.copy * 1e3, t.all * 1e3, t.task * 1e3, one.all * 1e3,
                      one.task * 1e3);
        shown = !waits(&t) &&
                (gradient ? !waits(&one)
                          : one.task > 0.3 * one.reduction && one.all > 0.8 * (one.reduction + one.copy));
    }
    assert_true(shown);
}

static void test_reductions(void **state)
{
    (void)state;
    nothing_waits(false);
}

static void test_gradients(void **state)
{
    (void)state;
    nothing_waits(true);
}

int main(void)
{
    if (dm_register("note the time", note_time) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_reductions, deadline),
                                       cmocka_unit_test_setup(test_gradients, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
