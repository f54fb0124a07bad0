/* A worker's communication thread sleeps through the ends of kernels that nobody waits for, and wakes for all
 * others (src/exec/wakes.c). A missed one costs half a second, so many rounds of each kind must take far
 * less. */
#include "support/cases.h"

#include <time.h>
#include <unistd.h>

enum { ROUNDS = 40, ELEMENTS = 2000, CHAIN = 20 };
#define MOST_SECONDS 10.0 /* ROUNDS missed wakes take twice that */

/* So long that the other threads of the worker sleep when it ends. */
static int doze(const dm_task *t)
{
    (void)t;
    usleep(1500);
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct arrays {
    dm_array rows, same, single, sum;
} arrays;

static void slow(dmt_case *c, const arrays *x)
{
    static const int mode = DM_READWRITE;
    DMT_OK(c, dm_apply(c->session, "wakes_doze", 1, &x->rows, &mode, NULL, 0));
}

/* The end of the command alone. */
static void end_round(dmt_case *c, const arrays *x)
{
    slow(c, x);
}

/* Kernels behind the slow one, of which only the last matters. */
static void chain_round(dmt_case *c, const arrays *x)
{
    slow(c, x);
    for (int i = 0; i < CHAIN; i++) {
        DMT_OK(c, dm_scale(c->session, 1, x->rows, x->rows));
    }
}

/* Payloads, which wait for the slow kernel at one end or at both: what is sent, and the memory that it goes to.
 */
static void payload_round(dmt_case *c, const arrays *x)
{
    slow(c, x);
    DMT_OK(c, dm_copy(c->session, x->rows, x->single));
    slow(c, x);
    DMT_OK(c, dm_copy(c->session, x->single, x->rows));
}

/* Sums, on the lanes of small reductions or (reduce_chunk) of large ones. */
static void sum_round(dmt_case *c, const arrays *x)
{
    static const int rows = 0;
    slow(c, x);
    DMT_OK(c, dm_sum(c->session, x->rows, &rows, 1, 1, 0, x->sum));
}

static void (*const round_of[])(dmt_case *, const arrays *) = {end_round, chain_round, payload_round,
                                                               sum_round};
enum { KINDS = sizeof round_of / sizeof *round_of };

/* In a program, all of a round is one command. */
static void wakes_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t shape[] = {ELEMENTS, 4}, width = 4;
    const dm_layout layout = dm_layout_rows(s), one = dm_layout_single(c->workers - 1),
                    all = dm_layout_replicated(s);
    const bool in_program = c->number >= KINDS;
    arrays x;
    dm_program program;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &layout, &x.rows));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &one, &x.single));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, &width, &all, &x.sum));
    DMT_OK(c, dm_fill(s, x.rows, 1));
    DMT_OK(c, dm_fill(s, x.sum, ELEMENTS));
    if (in_program) {
        DMT_OK(c, dm_program_begin(s));
        round_of[c->number % KINDS](c, &x);
        DMT_OK(c, dm_program_end(s, &program));
    }
    DMT_OK(c, dm_sync(s));
    double begin = seconds();
    for (int i = 0; i < ROUNDS; i++) {
        if (in_program) {
            DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        } else {
            round_of[c->number % KINDS](c, &x);
        }
        DMT_OK(c, dm_sync(s));
    }
    double took = seconds() - begin;
    if (took > MOST_SECONDS) {
        dmt_fail(c, "%d rounds took %.1f s", ROUNDS, took);
    }
    dmt_say(c, "%d rounds took %.3f s", ROUNDS, took);
    double sum[4];
    DMT_OK(c, dm_read(s, x.sum, sum));
    for (int i = 0; i < 4; i++) {
        if (sum[i] != ELEMENTS) {
            dmt_fail(c, "a sum is %g", sum[i]);
        }
    }
    if (in_program) {
        DMT_OK(c, dm_program_destroy(s, program));
    }
    DMT_OK(c, dm_array_destroy(s, x.rows));
    DMT_OK(c, dm_array_destroy(s, x.single));
    DMT_OK(c, dm_array_destroy(s, x.sum));
}

static void run(const char *name, const char *options)
{
    dmt_run(&(dmt_suite){.name = name, .cases = 2 * KINDS, .each = true, .fn = wakes_case, .options = options});
}

static void test_small(void **state)
{
    (void)state;
    run("wakes", "spin_us=0");
}

static void test_large(void **state)
{
    (void)state;
    run("wakes_large", "spin_us=0,reduce_chunk=8");
}

int main(void)
{
    if (dm_register("wakes_doze", doze) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
