/* Numbers of programs: random sequences of runs and new numbers give what a loop here gives. All elements stay
 * small whole numbers, so that every type is exact. */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, COLS = 3, COUNT = ROWS * COLS };

/* y = a x + b mod 100; z = c z, by a copy of the number c that the program has doubled. */
typedef struct loop {
    double x[COUNT], y[COUNT], z;
    double a, b, c;
} loop;

static void step(loop *l)
{
    for (int i = 0; i < COUNT; i++) {
        l->y[i] = fmod(l->a * l->x[i] + l->b + l->y[i], 100);
    }
    l->z = fmod(2 * l->c + l->z, 50);
}

/* Elements of the host, in f64. */
static dm_array make(dmt_case *c, dm_dtype dtype, const double *value)
{
    const int64_t shape[] = {ROWS, COLS};
    dmt_layout layout;
    dm_array a;
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, 2, shape);
    DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, layout.use, &a));
    DMT_OK(c, dm_array_write_as(c->session, a, NULL, NULL, DM_F64, value, 0));
    return a;
}

static dm_program record(dmt_case *c, dm_dtype dtype, const loop *l, dm_array x, dm_array y, dm_array z)
{
    dm_session *s = c->session;
    dm_array a, b, twice;
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "a", dtype, l->a, &a));
    DMT_OK(c, dm_program_number(s, "b", dtype, l->b, &b));
    DMT_OK(c, dm_axpby_by(s, dm_element(a), x, dm_value(1), y));
    DMT_OK(c, dm_map(s, "(y + b) % 100", 2, (dm_map_arg[]){DM_ARG("y", y), DM_ARG("b", b)}, y));
    if (c->number % 2) { /* or the recording ends it */
        DMT_OK(c, dm_array_destroy(s, b));
    }
    DMT_OK(c, dm_program_number(s, "c", dtype, l->c, &twice));
    DMT_OK(c, dm_scale(s, 2, twice, twice)); /* the next run begins with c again */
    DMT_OK(c, dm_map(s, "(z + twice) % 50", 2, (dm_map_arg[]){DM_ARG("z", z), DM_ARG("twice", twice)}, z));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_fill(s, a, 1)); /* it has ended */
    return program;
}

static void check(dmt_case *c, dm_array y, dm_array z, const loop *l)
{
    double got[COUNT], end = -1;
    DMT_OK(c, dm_array_read_as(c->session, y, NULL, NULL, DM_F64, got, 0));
    DMT_OK(c, dm_array_read_as(c->session, z, NULL, NULL, DM_F64, &end, 0));
    for (int i = 0; i < COUNT; i++) {
        if (got[i] != l->y[i]) {
            dmt_fail(c, "y[%d] is %g, not %g (a %g, b %g)", i, got[i], l->y[i], l->a, l->b);
        }
    }
    if (end != l->z) {
        dmt_fail(c, "z is %g, not %g (c %g)", end, l->z, l->c);
    }
}

static void sequence_case(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F32, DM_F64, DM_I64, DM_I32, DM_BF16};
    static const char *const name[] = {"a", "b", "c"};
    dm_dtype dtype = dtypes[dmt_int(&c->random, 0, 4)];
    bool small = dtype == DM_BF16; /* 8 bits */
    loop l = {.z = 1};
    double *number[] = {&l.a, &l.b, &l.c};
    for (int i = 0; i < COUNT; i++) {
        l.x[i] = (double)dmt_int(&c->random, 0, 9);
        l.y[i] = (double)dmt_int(&c->random, 0, 9);
    }
    for (int i = 0; i < 3; i++) {
        *number[i] = (double)dmt_int(&c->random, 0, small ? 3 : 9);
    }
    dm_array x = make(c, dtype, l.x), y = make(c, dtype, l.y), z;
    DMT_OK(c, dm_array_create(c->session, dtype, 0, NULL, NULL, &z));
    DMT_OK(c, dm_fill(c->session, z, 1));
    dm_program program = record(c, dtype, &l, x, y, z), other = record(c, dtype, &l, x, y, z);
    for (int turn = (int)dmt_int(&c->random, 1, 6); turn > 0; turn--) {
        for (int k = (int)dmt_int(&c->random, 0, 4); k > 0; k--) { /* some of them twice */
            int which = (int)dmt_int(&c->random, 0, 2);
            *number[which] = (double)dmt_int(&c->random, 0, small ? 3 : 9);
            DMT_OK(c, dm_program_set_number(c->session, program, name[which], *number[which]));
            DMT_OK(c, dm_program_set_number(c->session, other, name[which], *number[which]));
        }
        int64_t times = dmt_int(&c->random, 0, 3);
        DMT_OK(c, dm_program_run(c->session, dmt_int(&c->random, 0, 1) ? program : other, times, 0, NULL));
        for (int64_t i = 0; i < times; i++) {
            step(&l);
        }
    }
    check(c, y, z, &l);
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_program_destroy(c->session, other));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
    DMT_OK(c, dm_array_destroy(c->session, z));
}

/* Many runs in flight, each with a number of its own; one that was only explained, or refused, keeps it for the
 * next. */
static void flight_case(dmt_case *c)
{
    enum { RUNS = 200 };
    dm_session *s = c->session;
    dm_array sum, step_by;
    dm_program program;
    double want = 0, got = 0;
    char *text = NULL;
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &sum));
    DMT_OK(c, dm_fill(s, sum, 0));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "step", DM_F64, 1, &step_by));
    DMT_OK(c, dm_axpby_by(s, dm_value(1), step_by, dm_element(step_by), sum)); /* sum = step + step sum */
    DMT_OK(c, dm_program_end(s, &program));
    for (int i = 0; i < RUNS; i++) {
        double number = (double)(i % 3) - 1;
        DMT_OK(c, dm_program_set_number(s, program, "step", number));
        DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        want = number + number * want;
    }
    DMT_OK(c, dm_program_set_number(s, program, "step", 7));
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(s, &text));
    free(text);
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_run(s, program, -1, 0, NULL));
    DMT_OK(c, dm_program_run(s, program, 0, 0, NULL));
    DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
    want = 7 + 7 * (7 + 7 * want);
    DMT_OK(c, dm_read(s, sum, &got));
    if (got != want) {
        dmt_fail(c, "the sum is %g, not %g", got, want);
    }
    dm_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    DMT_OK(c, dm_counters_get(s, 0, &before));
    DMT_OK(c, dm_program_set_number(s, program, "step", 3));
    DMT_OK(c, dm_program_run(s, program, 5, 0, NULL));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_counters_get(s, 0, &after));
    if (after.plans_made != before.plans_made) {
        dmt_fail(c, "a new number made a plan");
    }
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_array_destroy(s, sum));
}

static void misuse_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array a, x;
    dm_program program, none;
    char longer[65];
    memset(longer, 'n', 64);
    longer[64] = '\0';
    DMT_REFUSED(c, DM_ERR_STATE, dm_program_number(s, "a", DM_F32, 1, &a));
    DMT_OK(c, dm_vector(s, DM_F32, 7, &x));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "a", DM_I32, 1, &a));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, "a", DM_F32, 1, &a));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, NULL, DM_F32, 1, &a));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, "", DM_F32, 1, &a));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, longer, DM_F32, 1, &a));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, "b", DM_F32, 1, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_number(s, "b", DM_I32, 0.5, &a));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_program_number(s, "b", (dm_dtype)99, 1, &a));
    DMT_OK(c, dm_fill_by(s, x, dm_element(a)));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_set_number(s, program, "b", 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_set_number(s, program, NULL, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_set_number(s, program, "a", 0.5));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_program_set_number(s, (dm_program){77}, "a", 1));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "a", DM_F32, 1, &a)); /* dropped */
    DMT_REFUSED(c, DM_ERR_STATE, dm_program_set_number(s, program, "a", 1));
    DMT_OK(c, dm_program_end(s, NULL));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_fill(s, a, 1));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_end(s, &none));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_set_number(s, none, "a", 1));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    float got[7];
    DMT_OK(c, dm_read(s, x, got));
    if (got[6] != 1) {
        dmt_fail(c, "refused numbers changed one: %g", (double)got[6]);
    }
    DMT_OK(c, dm_program_destroy(s, none));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_program_set_number(s, program, "a", 1));
    DMT_OK(c, dm_array_destroy(s, x));
}

/* A number of a group is on its workers alone. */
static void group_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_group group;
    dm_array x, a;
    dm_program program;
    const int member = c->workers - 1;
    double got[3] = {0};
    DMT_OK(c, dm_group_create(s, &member, 1, &group));
    DMT_OK(c, dm_group_begin(s, group));
    DMT_OK(c, dm_vector(s, DM_F64, 3, &x));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_program_number(s, "a", DM_F64, 1, &a));
    DMT_OK(c, dm_fill_by(s, x, dm_element(a)));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_group_end(s));
    dm_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_counters_get(s, 0, &before));
    DMT_OK(c, dm_program_set_number(s, program, "a", 5));
    DMT_OK(c, dm_program_run(s, program, 4, 0, NULL));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_counters_get(s, 0, &after));
    if (member > 0 && after.steps != before.steps) {
        dmt_fail(c, "worker 0 has run steps of a program of another");
    }
    DMT_OK(c, dm_read(s, x, got));
    if (got[2] != 5) {
        dmt_fail(c, "x is %g, not 5", got[2]);
    }
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_group_destroy(s, group));
}

static void test_sequence(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "numbers", .cases = 60, .fn = sequence_case});
}

static void test_flight(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "numbers in flight", .cases = 5, .fn = flight_case});
}

static void test_misuse(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "numbers misuse", .cases = 1, .fn = misuse_case});
}

static void test_group(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "numbers group", .cases = 5, .fn = group_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequence), cmocka_unit_test(test_flight),
                                       cmocka_unit_test(test_misuse), cmocka_unit_test(test_group)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
