/* program_run_until: a program that halves a value (or doubles an index, or fails) runs as often as a loop here
 * says. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

/* The value lies alone, on every worker, or in a larger array. */
static dm_array value_of(dmt_case *c, dm_dtype dtype, dm_array *whole)
{
    int kind = (int)dmt_int(&c->random, 0, 3);
    int64_t shape[] = {dmt_int(&c->random, 1, 9), 3}, lo[] = {dmt_int(&c->random, 0, shape[0] - 1), 1},
            one[] = {1, 1};
    dm_layout layouts[] = {dm_layout_single(c->workers - 1), dm_layout_replicated(c->session),
                           dm_layout_rows(c->session), dm_layout_cyclic(c->session, 1, 2)};
    dm_array value = {0};
    dmt_say(c, "\n    layout %d", kind);
    if (kind == 0) {
        DMT_OK(c, dm_array_create(c->session, dtype, 1, one, &layouts[0], &value));
        *whole = value;
    } else if (kind == 1) {
        DMT_OK(c, dm_array_create(c->session, dtype, 1, one, &layouts[1], &value));
        *whole = value;
    } else {
        DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, &layouts[kind], whole));
        DMT_OK(c, dm_fill(c->session, *whole, 7));
        DMT_OK(c, dm_array_view(c->session, *whole, lo, one, &value));
    }
    return value;
}

static void drop(dmt_case *c, dm_array value, dm_array whole)
{
    if (value.id != whole.id) {
        DMT_OK(c, dm_array_destroy(c->session, value));
    }
    DMT_OK(c, dm_array_destroy(c->session, whole));
}

/* value *= factor, count += 1 */
static dm_program record(dmt_case *c, dm_array value, double factor, dm_array count)
{
    dm_program program;
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_scale(c->session, factor, value, value));
    DMT_OK(c, dm_map(c->session, "n + 1", 1, (dm_map_arg[]){DM_ARG("n", count)}, count));
    DMT_OK(c, dm_program_end(c->session, &program));
    return program;
}

static int64_t runs_of(dmt_case *c, dm_array count)
{
    int64_t n = -1;
    DMT_OK(c, dm_read(c->session, count, &n));
    return n;
}

static void loop_case(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32};
    dm_dtype dtype = dtypes[dmt_int(&c->random, 0, 5)];
    bool whole_numbers = dtype == DM_I64 || dtype == DM_I32;
    double factor = whole_numbers ? -2 : 0.5, begin = whole_numbers ? 1 : 64;
    double below =
        whole_numbers ? -(double)dmt_int(&c->random, 1, 300) : ldexp(1, (int)dmt_int(&c->random, -5, 7));
    int64_t most = dmt_int(&c->random, 0, 14), every = dmt_int(&c->random, 1, 4), want = 0;
    dm_array whole, count, value = value_of(c, dtype, &whole);
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &count));
    DMT_OK(c, dm_fill(c->session, value, begin));
    DMT_OK(c, dm_fill(c->session, count, 0));
    dm_program program = record(c, value, factor, count);
    for (int again = 0; again < 2; again++) { /* the second time from where it stopped */
        double v = begin;
        for (int64_t i = 0; i < want; i++) {
            v *= factor;
        }
        for (int64_t n = 1; n <= most; n++) {
            v *= factor;
            want++;
            if (n % every == 0 && v < below) {
                break;
            }
        }
        DMT_OK(c, dm_program_run_until(c->session, program, most, every, value, below, 0, NULL));
    }
    int64_t got = runs_of(c, count);
    if (got != want) {
        dmt_fail(c, "type %d, below %g, most %d, every %d: %d runs, not %d", (int)dtype, below, (int)most,
                 (int)every, (int)got, (int)want);
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, count));
    drop(c, value, whole);
}

/* A binding's array is looked at, and NaN ends the runs. */
static void binding_case(dmt_case *c)
{
    dm_array a, b, count;
    dm_layout layout = c->number % 2 ? dm_layout_replicated(c->session) : dm_layout_single(0);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, &layout, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, &layout, &b));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &count));
    dm_program program = record(c, a, 0.5, count);
    DMT_OK(c, dm_fill(c->session, a, 1));
    DMT_OK(c, dm_fill(c->session, b, 16));
    DMT_OK(c, dm_fill(c->session, count, 0));
    DMT_OK(c, dm_program_run_until(c->session, program, 100, 1, a, 1, 1, (dm_program_binding[]){{a, b}}));
    int64_t got = runs_of(c, count);
    if (got != 5) { /* 16, 8, 4, 2, 1, 0.5 */
        dmt_fail(c, "%d runs, not 5", (int)got);
    }
    DMT_OK(c, dm_fill(c->session, a, NAN));
    DMT_OK(c, dm_program_run_until(c->session, program, 100, 2, a, 1, 0, NULL));
    got = runs_of(c, count);
    if (got != 7) {
        dmt_fail(c, "%d runs after NaN, not 7", (int)got);
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
    DMT_OK(c, dm_array_destroy(c->session, count));
}

/* The program writes the first elements of an array, or all of them; what is looked at is one of them, which
 * the program does not use by itself. Elements that it does not write, or that are replaced, are refused. */
static void part_case(dmt_case *c)
{
    const int64_t all = 13, part = dmt_chance(&c->random, 50) ? all : dmt_int(&c->random, 1, all), one = 1,
                  zero = 0;
    const int64_t at = dmt_int(&c->random, 0, part - 1), beyond = part;
    dm_layout dealt = dm_layout_cyclic(c->session, 0, 2);
    const dm_layout *layout = dmt_chance(&c->random, 50) ? &dealt : NULL;
    dm_array a, b, count, halved, in_a, in_b, unwritten;
    dm_program program;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &all, layout, &a));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &all, layout, &b));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &count));
    DMT_OK(c, dm_array_view(c->session, a, &zero, &part, &halved));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_scale(c->session, 0.5, halved, halved));
    DMT_OK(c, dm_map(c->session, "count + 1", 1, (dm_map_arg[]){DM_ARG("count", count)}, count));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c, dm_array_view(c->session, a, &at, &one, &in_a));
    DMT_OK(c, dm_array_view(c->session, b, &at, &one, &in_b));
    DMT_OK(c, dm_fill(c->session, a, 3));
    DMT_OK(c, dm_fill(c->session, b, 3));
    DMT_OK(c, dm_fill(c->session, in_a, 16));
    DMT_OK(c, dm_fill(c->session, in_b, 64));
    DMT_OK(c, dm_fill(c->session, count, 0));
    DMT_OK(c, dm_program_run_until(c->session, program, 100, 1, in_a, 1, 0, NULL));
    int64_t got = runs_of(c, count);
    const dm_program_binding replaced = {a, b};
    DMT_OK(c, dm_program_run_until(c->session, program, 100, 1, in_b, 1, 1, &replaced));
    int64_t again = runs_of(c, count) - got;
    if (got != 5 || again != 7) {
        dmt_fail(c, "%d and %d runs, not 5 and 7", (int)got, (int)again);
    }
    if (part > 1) { /* else in_a may be what the program uses */
        DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, 1, 1, in_a, 1, 1, &replaced));
    }
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, 1, 1, in_b, 1, 0, NULL));
    if (part < all) {
        DMT_OK(c, dm_array_view(c->session, a, &beyond, &one, &unwritten));
        DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, 1, 1, unwritten, 1, 0, NULL));
        DMT_OK(c, dm_program_begin(c->session));
        DMT_OK(c, dm_program_repeat(c->session, 2));
        DMT_OK(c, dm_scale(c->session, 0.5, halved, halved));
        DMT_REFUSED(c, DM_ERR_ARG, dm_program_repeat_until(c->session, 1, unwritten, 1));
        DMT_OK(c, dm_program_repeat_end(c->session));
        DMT_OK(c, dm_program_end(c->session, NULL));
        DMT_OK(c, dm_array_destroy(c->session, unwritten));
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    dm_array gone[] = {in_a, in_b, halved, a, b, count};
    for (int i = 0; i < 6; i++) {
        DMT_OK(c, dm_array_destroy(c->session, gone[i]));
    }
}

/* A run fails: the workers stop together, and what comes next is right. */
static void failure_case(dmt_case *c)
{
    int64_t size = dmt_int(&c->random, 1, 40), last = size - 1, one = 1;
    dm_array x, whole, y, end, value = value_of(c, DM_F64, &whole);
    dm_program program;
    DMT_OK(c, dm_vector(c->session, DM_F64, size, &x));
    DMT_OK(c, dm_array_like(c->session, value, (dm_dtype)0, &y));
    DMT_OK(c, dm_fill(c->session, x, 0));
    DMT_OK(c, dm_fill(c->session, value, 100));
    DMT_OK(c, dm_array_view(c->session, x, &last, &one, &end));
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_map(c->session, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", end)}, end));
    DMT_OK(c, dm_require_range(c->session, x, 0, 4)); /* at one worker only */
    DMT_OK(c,
           dm_map(c->session, "v - 1 - 0 * x", 2, (dm_map_arg[]){DM_ARG("v", value), DM_ARG("x", end)}, value));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_OK(c,
           dm_program_run_until(c->session, program, 1000000000, dmt_int(&c->random, 1, 3), value, 0, 0, NULL));
    dmt_status_is(c, dm_sync(c->session), DM_ERR_VALUE, "dm_sync");
    double v = 0;
    DMT_OK(c, dm_fill(c->session, whole, 2));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_copy(c->session, value, y));
    DMT_OK(c, dm_program_run_until(c->session, program, 2, 1, value, 0, 0, NULL));
    DMT_OK(c, dm_read(c->session, y, &v));
    if (v != 2) {
        dmt_fail(c, "y is %g", v);
    }
    DMT_OK(c, dm_read(c->session, value, &v));
    if (v != 0) {
        dmt_fail(c, "value is %g", v);
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, end));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
    drop(c, value, whole);
}

/* A cancelled loop ends, wherever the workers are. */
static void cancel_case(dmt_case *c)
{
    dm_array whole, count, value = value_of(c, DM_F64, &whole);
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &count));
    DMT_OK(c, dm_fill(c->session, value, 1));
    DMT_OK(c, dm_fill(c->session, count, 0));
    dm_program program = record(c, value, 1, count);
    DMT_OK(c, dm_program_run_until(c->session, program, INT64_MAX, dmt_int(&c->random, 1, 3), value, 0.5, 0,
                                   NULL));
    for (volatile int64_t i = dmt_int(&c->random, 0, 300000); i > 0; i--) {
    }
    DMT_OK(c, dm_cancel(c->session));
    dmt_status_is(c, dm_sync(c->session), DM_ERR_CANCELLED, "dm_sync");
    DMT_OK(c, dm_fill(c->session, whole, 1));
    DMT_OK(c, dm_fill(c->session, count, 0));
    DMT_OK(c, dm_program_run_until(c->session, program, 3, 1, value, 0.5, 0, NULL));
    if (runs_of(c, count) != 3) {
        dmt_fail(c, "not three runs");
    }
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_OK(c, dm_array_destroy(c->session, count));
    drop(c, value, whole);
}

static void misuse_case(dmt_case *c)
{
    dm_array x, value, count, z;
    DMT_OK(c, dm_vector(c->session, DM_F64, 3, &x));
    DMT_OK(c, dm_vector(c->session, DM_C128, 1, &z));
    DMT_OK(c, dm_vector(c->session, DM_F64, 1, &value));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 0, NULL, NULL, &count));
    DMT_OK(c, dm_fill(c->session, count, 0));
    dm_program program;
    DMT_OK(c, dm_program_begin(c->session));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_fill(c->session, z, 1));
    DMT_OK(c, dm_add(c->session, 1, value, 0, value, x));
    DMT_OK(c, dm_program_end(c->session, &program));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, -1, 1, value, 0, 0, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, 1, 0, value, 0, 0, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_program_run_until(c->session, program, 1, 1, value, NAN, 0, NULL));
    DMT_REFUSED(c, DM_ERR_ARG,
                dm_program_run_until(c->session, program, 1, 1, value, 0, 0, NULL)); /* only read */
    DMT_REFUSED(c, DM_ERR_ARG,
                dm_program_run_until(c->session, program, 1, 1, count, 0, 0, NULL)); /* not used */
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_program_run_until(c->session, program, 1, 1, x, 0, 0, NULL));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_program_run_until(c->session, program, 1, 1, z, 0, 0, NULL));
    DMT_OK(c, dm_program_destroy(c->session, program));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_program_run_until(c->session, program, 1, 1, x, 0, 0, NULL));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, z));
    DMT_OK(c, dm_array_destroy(c->session, value));
    DMT_OK(c, dm_array_destroy(c->session, count));
}

static void test_loop(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until", .cases = 80, .fn = loop_case});
}

static void test_binding(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until binding", .cases = 8, .fn = binding_case});
}

static void test_part(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until part", .cases = 12, .fn = part_case});
}

static void test_failure(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until failure", .cases = 24, .fn = failure_case});
}

static void test_cancel(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until cancel", .cases = 24, .fn = cancel_case});
}

static void test_misuse(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "until misuse", .cases = 1, .fn = misuse_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loop),   cmocka_unit_test(test_binding),
                                       cmocka_unit_test(test_part),   cmocka_unit_test(test_failure),
                                       cmocka_unit_test(test_cancel), cmocka_unit_test(test_misuse)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
