/* Feeds: arrays take the buffers in the order in which a thread has put them, whatever the workers hold of
 * them. */
#include "support/cases.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MODULUS = 97 };

/* Element i of the buffer of a turn. */
static int element(int64_t turn, int64_t i)
{
    return (int)((turn * 31 + i * 7 + turn * i) % MODULUS);
}

static void fill(void *buffer, dm_dtype dtype, int64_t count, int64_t turn)
{
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case DM_F32:
            ((float *)buffer)[i] = (float)element(turn, i);
            break;
        case DM_F64:
            ((double *)buffer)[i] = element(turn, i);
            break;
        case DM_I32:
            ((int32_t *)buffer)[i] = element(turn, i);
            break;
        default: /* DM_U8 */
            ((uint8_t *)buffer)[i] = (uint8_t)element(turn, i);
        }
    }
}

typedef struct feeder {
    dm_feed *feed;
    dm_dtype dtype;
    int64_t count, turns;
    dm_status status;
    pthread_t thread;
} feeder;

static void *feed_all(void *context)
{
    feeder *f = context;
    void *buffer;
    for (int64_t turn = 0; turn < f->turns && f->status == DM_OK; turn++) {
        f->status = dm_feed_take(f->feed, -1, &buffer);
        if (f->status == DM_OK) {
            fill(buffer, f->dtype, f->count, turn);
            f->status = dm_feed_put(f->feed);
        }
    }
    return NULL;
}

/* A feed; false: this launch cannot have one. */
static bool make_feed(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, int buffers, dm_feed **out)
{
    dm_status status = dm_feed_create(c->session, dtype, ndim, shape, buffers, out);
    if (status != DM_ERR_UNSUPPORTED) { /* workers on other hosts */
        dmt_status_is(c, status, DM_OK, "dm_feed_create");
    }
    return status == DM_OK;
}

/* sum = (2 sum + x) mod 97, which tells one order from another */
static void take_in(dmt_case *c, dm_feed *feed, dm_array x, dm_array sum)
{
    DMT_OK(c, dm_array_feed(c->session, x, feed, -1));
    DMT_OK(c, dm_map(c->session, "(2 * sum + f32(x)) % 97", 2,
                     (dm_map_arg[]){DM_ARG("sum", sum), DM_ARG("x", x)}, sum));
}

static void check_sum(dmt_case *c, dm_array sum, int64_t count, int64_t turns)
{
    float *got = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *got);
    DMT_OK(c, dm_read(c->session, sum, got));
    for (int64_t i = 0; i < count; i++) {
        int want = 0;
        for (int64_t turn = 0; turn < turns; turn++) {
            want = (2 * want + element(turn, i)) % MODULUS;
        }
        if (got[i] != (float)want) {
            dmt_fail(c, "element %lld after %lld turns is %g, not %d", (long long)i, (long long)turns,
                     (double)got[i], want);
        }
    }
}

static void order_case(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F32, DM_F64, DM_I32, DM_U8};
    const int ndim = (int)dmt_int(&c->random, 0, 3);
    int64_t shape[3], count = 1;
    dmt_shape_random(c, ndim, 2000, shape);
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    feeder f = {.dtype = dtypes[dmt_int(&c->random, 0, 3)], .count = count};
    const int uses = (int)dmt_int(&c->random, 1, 2), runs = (int)dmt_int(&c->random, 1, 4);
    const int64_t times = dmt_int(&c->random, 1, 5), single = dmt_int(&c->random, 0, 2);
    f.turns = uses * runs * times + single;
    dmt_layout layout;
    dm_array x, sum;
    dm_program program;
    if (!make_feed(c, f.dtype, ndim, shape, (int)dmt_int(&c->random, 1, 4), &f.feed)) {
        return;
    }
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, ndim, shape);
    DMT_OK(c, dm_array_create(c->session, f.dtype, ndim, shape, layout.use, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F32, ndim, shape, NULL, &sum));
    DMT_OK(c, dm_fill(c->session, sum, 0));
    dmt_say(c, "\n    %s, dtype %d, %d uses, %d times %d runs", layout.text, (int)f.dtype, uses, runs,
            (int)times);
    assert_int_equal(pthread_create(&f.thread, NULL, feed_all, &f), 0);
    for (int64_t i = 0; i < single; i++) { /* call by call */
        take_in(c, f.feed, x, sum);
    }
    DMT_OK(c, dm_program_begin(c->session));
    for (int i = 0; i < uses; i++) {
        take_in(c, f.feed, x, sum);
    }
    DMT_OK(c, dm_program_end(c->session, &program));
    for (int i = 0; i < runs; i++) {
        DMT_OK(c, dm_program_run(c->session, program, times, 0, NULL));
    }
    check_sum(c, sum, count, f.turns);
    pthread_join(f.thread, NULL);
    dmt_status_is(c, f.status, DM_OK, "the feeding thread");
    DMT_OK(c, dm_feed_destroy(f.feed));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_program_run(c->session, program, 1, 0, NULL));
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, sum));
}

/* The session's thread fills the buffers: before the run, and after it. An array that is a view. */
static void alone_case(dmt_case *c)
{
    enum { BUFFERS = 3, COUNT = 40 };
    const int64_t shape[] = {COUNT}, whole[] = {COUNT + 5}, lo[] = {3};
    dm_feed *feed;
    dm_array base, x, sum;
    dm_program program;
    void *buffer, *again;
    if (!make_feed(c, DM_F32, 1, shape, BUFFERS, &feed)) {
        return;
    }
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, whole, NULL, &base));
    DMT_OK(c, dm_fill(c->session, base, -1));
    DMT_OK(c, dm_array_view(c->session, base, lo, shape, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, shape, NULL, &sum));
    DMT_OK(c, dm_fill(c->session, sum, 0));
    DMT_OK(c, dm_program_begin(c->session));
    take_in(c, feed, x, sum);
    DMT_OK(c, dm_program_end(c->session, &program));
    for (int64_t turn = 0; turn < BUFFERS; turn++) {
        DMT_OK(c, dm_feed_take(feed, 0, &buffer));
        DMT_OK(c, dm_feed_take(feed, 0, &again));
        assert_ptr_equal(buffer, again);
        fill(buffer, DM_F32, COUNT, turn);
        DMT_OK(c, dm_feed_put(feed));
    }
    DMT_REFUSED(c, DM_ERR_PENDING, dm_feed_take(feed, 0, &buffer)); /* all wait for a run */
    DMT_OK(c, dm_program_run(c->session, program, 2 * BUFFERS, 0, NULL));
    for (int64_t turn = BUFFERS; turn < 2 * BUFFERS; turn++) {
        DMT_OK(c, dm_feed_take(feed, -1, &buffer));
        fill(buffer, DM_F32, COUNT, turn);
        DMT_OK(c, dm_feed_put(feed));
    }
    check_sum(c, sum, COUNT, 2 * BUFFERS);
    float got[COUNT + 5];
    DMT_OK(c, dm_read(c->session, base, got));
    if (got[2] != -1 || got[3] != (float)element(2 * BUFFERS - 1, 0) || got[COUNT + 3] != -1) {
        dmt_fail(c, "around the view: %g %g %g", (double)got[2], (double)got[3], (double)got[COUNT + 3]);
    }
    DMT_OK(c, dm_feed_destroy(feed));
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, base));
    DMT_OK(c, dm_array_destroy(c->session, sum));
}

/* A run that finds no buffer fails, by time or because the feed was stopped; then the feed begins anew. */
static void starved_case(dmt_case *c)
{
    const int64_t shape[] = {c->workers + 2};
    const bool stopped = c->number % 2;
    const dm_layout rows = dm_layout_rows(c->session);
    dm_feed *feed;
    dm_array x;
    dm_program program;
    void *buffer;
    if (!make_feed(c, DM_F32, 1, shape, 2, &feed)) {
        return;
    }
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, shape, &rows, &x));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_array_feed(c->session, x, feed, stopped ? -1 : 0.001));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_feed_take(feed, 0, &buffer));
    fill(buffer, DM_F32, shape[0], 0);
    DMT_OK(c, dm_feed_put(feed));
    DMT_OK(c, dm_program_run(c->session, program, 3, 0, NULL));
    if (stopped) {
        DMT_OK(c, dm_feed_stop(feed));
    }
    dmt_status_is(c, dm_sync(c->session), DM_ERR_TASK, "dm_sync");
    if (!strstr(dm_error_message(),
                stopped ? "feed: the feed was stopped" : "feed: no buffer was put in time")) {
        dmt_fail(c, "the message: %s", dm_error_message());
    }
    if (stopped) {
        DMT_REFUSED(c, DM_ERR_STATE, dm_feed_take(feed, 0, &buffer));
    }
    DMT_OK(c, dm_feed_restart(c->session, feed));
    for (int64_t turn = 5; turn < 7; turn++) {
        DMT_OK(c, dm_feed_take(feed, 0, &buffer));
        fill(buffer, DM_F32, shape[0], turn);
        DMT_OK(c, dm_feed_put(feed));
    }
    DMT_OK(c, dm_program_run(c->session, program, 2, 0, NULL));
    float *got = dmt_alloc(&c->scratch, shape[0] * (int64_t)sizeof *got);
    DMT_OK(c, dm_read(c->session, x, got));
    for (int64_t i = 0; i < shape[0]; i++) {
        if (got[i] != (float)element(6, i)) {
            dmt_fail(c, "element %lld is %g, not %d", (long long)i, (double)got[i], element(6, i));
        }
    }
    DMT_OK(c,
           dm_program_run(c->session, program, 1, 0, NULL)); /* with nothing to come: the destruction ends it */
    DMT_OK(c, dm_feed_destroy(feed));
    dmt_status_is(c, dm_sync(c->session), DM_ERR_TASK, "dm_sync");
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, x));
}

/* A worker that waits for a buffer holds up no earlier all-reduce, and a cancelled run waits no more. */
static void cancel_case(dmt_case *c)
{
    enum { COUNT = 70000 }; /* a large sum: it has lanes of its own */
    const int64_t shape[] = {8}, rows[] = {c->workers, COUNT}, one[] = {COUNT};
    const dm_layout everywhere = dm_layout_replicated(c->session), split = dm_layout_rows(c->session);
    dm_feed *feed;
    dm_array x, addends, sum;
    dm_program program;
    dm_event summed;
    double got = 0;
    if (!make_feed(c, DM_F32, 1, shape, 1, &feed)) {
        return;
    }
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, shape, &everywhere, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, rows, &split, &addends));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, one, &everywhere, &sum));
    DMT_OK(c, dm_fill(c->session, addends, 3));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_array_feed(c->session, x, feed, -1));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_event_record(c->session, &summed)); /* those before have failed elsewhere */
    DMT_OK(c, dm_sum_dim(c->session, addends, 0, sum));
    DMT_OK(c, dm_event_record(c->session, &summed));
    DMT_OK(c, dm_program_run(c->session, program, 5, 0, NULL));
    DMT_OK(c, dm_event_wait(c->session, summed, -1));
    DMT_OK(c, dm_cancel(c->session));
    dmt_status_is(c, dm_sync(c->session), DM_ERR_CANCELLED, "dm_sync");
    DMT_OK(c, dm_feed_destroy(feed));
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_item(c->session, sum, (int64_t[]){COUNT - 1}, &got));
    if (got != 3 * c->workers) {
        dmt_fail(c, "the sum is %g", got);
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, addends));
    DMT_OK(c, dm_array_destroy(c->session, sum));
}

/* A feed of one worker, where the others neither wait nor count; arrays that lie elsewhere are refused. */
static void misuse_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t shape[] = {6}, minus[] = {-1};
    const int member = c->workers - 1;
    dm_group group;
    dm_feed *feed, *none;
    dm_array x, wide, whole, all;
    dm_program program;
    void *buffer;
    if (!make_feed(c, DM_F32, 1, shape, 1, &none)) {
        return;
    }
    DMT_OK(c, dm_feed_destroy(none));
    DMT_OK(c, dm_feed_destroy(NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_create(s, DM_F32, 1, shape, 0, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_create(s, DM_F32, 1, minus, 1, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_create(s, DM_F32, 9, shape, 1, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_create(s, DM_F32, 1, NULL, 1, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_create(s, DM_F32, 1, shape, 1, NULL));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_feed_create(s, (dm_dtype)99, 1, shape, 1, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_take(NULL, 0, &buffer));
    DMT_OK(c, dm_feed_create(s, DM_F32, 1, shape, 1, &feed));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_take(feed, 0, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_take(feed, NAN, &buffer));
    DMT_OK(c, dm_feed_destroy(feed));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_put(NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_stop(NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_feed_restart(s, NULL));
    DMT_OK(c, dm_group_create(s, &member, 1, &group));
    DMT_OK(c, dm_group_begin(s, group));
    DMT_OK(c, dm_feed_create(s, DM_F32, 1, shape, 1, &feed));
    DMT_OK(c, dm_array_create(s, DM_F32, 1, shape, NULL, &x));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_vector(s, DM_F32, 7, &wide));
    DMT_OK(c, dm_vector(s, DM_I32, 6, &whole));
    dm_layout everywhere = dm_layout_replicated(s);
    DMT_OK(c, dm_array_create(s, DM_F32, 1, shape, &everywhere, &all));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_array_feed(s, wide, feed, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_array_feed(s, whole, feed, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_array_feed(s, x, NULL, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_array_feed(s, x, feed, 0.0 / 0.0));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_array_feed(s, DM_NO_ARRAY, feed, 1));
    if (c->workers > 1) {
        DMT_REFUSED(c, DM_ERR_LAYOUT, dm_array_feed(s, all, feed, 1));
    }
    DMT_REFUSED(c, DM_ERR_STATE, dm_feed_put(feed));
    DMT_OK(c, dm_program_begin(s));
    DMT_REFUSED(c, DM_ERR_STATE, dm_feed_restart(s, feed));
    DMT_REFUSED(c, DM_ERR_STATE, dm_feed_create(s, DM_F32, 1, shape, 1, &none));
    DMT_OK(c, dm_array_feed(s, x, feed, -1));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 3, 0, NULL));
    DMT_OK(c, dm_fill(s, all, 1)); /* the other workers go on */
    for (int64_t turn = 0; turn < 3; turn++) {
        DMT_OK(c, dm_feed_take(feed, -1, &buffer));
        fill(buffer, DM_F32, shape[0], turn);
        DMT_OK(c, dm_feed_put(feed));
    }
    float got[6];
    DMT_OK(c, dm_read(s, x, got));
    if (got[5] != (float)element(2, 5)) {
        dmt_fail(c, "x is %g, not %d", (double)got[5], element(2, 5));
    }
    DMT_OK(c, dm_feed_destroy(feed));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_group_destroy(s, group));
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, wide));
    DMT_OK(c, dm_array_destroy(s, whole));
    DMT_OK(c, dm_array_destroy(s, all));
}

static void test_order(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "feed order", .cases = 40, .fn = order_case});
}

static void test_alone(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "feed alone", .cases = 5, .fn = alone_case});
}

static void test_starved(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "feed starved", .cases = 10, .fn = starved_case});
}

static void test_cancel(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "feed cancel", .cases = 5, .fn = cancel_case});
}

static void test_misuse(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "feed misuse", .cases = 5, .fn = misuse_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_starved), cmocka_unit_test(test_cancel),
                                       cmocka_unit_test(test_misuse)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
