/* out = alpha * a * b */
#include "support/oracle.h"

static void multiply_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *a_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *b_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *out_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    double alpha = dmt_factor_random(c, dmt_all_whole(a_value, b_value, out_value));
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0);
    dmt_operand *b = dmt_operand_make(c, "b", b_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, DMT_UNSET);
    dmt_say(c, "\n    alpha %.17g", alpha);
    DMT_OK(c, dm_multiply(c->session, alpha, a->array, b->array, out->array));
    dmt_expected e = dmt_expect_multiply(c, alpha, a_value, b_value, out_value);
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, a);
    dmt_operand_unchanged(c, b);
}

static void in_place_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *out_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    dmt_host *other_value = dmt_broadcast_operand(c, ndim, shape);
    int which = (int)dmt_int(&c->random, 0, 2);
    dmt_host *a_value = which == 1 ? other_value : out_value, *b_value = which == 0 ? other_value : out_value;
    double alpha = dmt_factor_random(c, dmt_all_whole(a_value, b_value, out_value));
    dmt_operand *out = dmt_operand_make(c, "out", out_value, 0);
    dmt_operand *other = dmt_operand_make(c, "other", other_value, 0);
    dmt_say(c, "\n    out is %s, alpha %.17g", which == 0 ? "a" : which == 1 ? "b" : "a and b", alpha);
    dmt_expected e = dmt_expect_multiply(c, alpha, a_value, b_value, out_value);
    DMT_OK(c, dm_multiply(c->session, alpha, which == 1 ? other->array : out->array,
                          which == 0 ? other->array : out->array, out->array));
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, other);
}

/* a times itself, from two overlapping views: inputs may overlap as they like. */
static void inputs_overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_I32, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    dmt_operand *out = dmt_operand_make(c, "out", s.first_value, 0);
    dmt_expected e = dmt_expect_multiply(c, 1, s.first_value, s.second_value, s.first_value);
    DMT_OK(c, dm_multiply(c->session, 1, s.first, s.second, out->array));
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, s.whole);
    DMT_OK(c, dm_array_destroy(c->session, s.first));
    DMT_OK(c, dm_array_destroy(c->session, s.second));
}

static void overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_F64, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    dmt_expected e = dmt_expect_multiply(c, 2, s.first_value, s.first_value, s.second_value);
    dm_status status = dm_multiply(c->session, 2, s.first, s.first, s.second);
    dmt_shifted_check(c, &s, status, e, "dm_multiply of overlapping views");
}

static void test_multiply(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "multiply", .cases = 1500, .fn = multiply_case});
}

static void test_in_place(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "multiply_in_place", .cases = 300, .fn = in_place_case});
}

static void test_inputs_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "multiply_inputs_overlap", .cases = 90, .fn = inputs_overlap_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "multiply_overlap", .cases = 90, .fn = overlap_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_inputs_overlap),
        cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
