/* scale */
#include "support/oracle.h"

static void scale_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *a_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *out_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    double alpha = dmt_factor_random(c, dmt_all_whole(a_value, a_value, out_value));
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, DMT_UNSET);
    dmt_say(c, "\n    alpha %.17g", alpha);
    DMT_OK(c, dm_scale(c->session, alpha, a->array, out->array));
    dmt_expected e = dmt_expect_scale(c, alpha, a_value, out_value);
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, a);
}

static void scale_in_place_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    double alpha = dmt_factor_random(c, !dmt_is_float(value->dtype));
    dmt_operand *x = dmt_operand_make(c, "x", value, 0);
    dmt_say(c, "\n    alpha %.17g", alpha);
    DMT_OK(c, dm_scale(c->session, alpha, x->array, x->array));
    dmt_expected e = dmt_expect_scale(c, alpha, value, value);
    dmt_operand_check(c, x, e.want, e.bound);
}

static void overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_F64, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    dmt_expected e = dmt_expect_scale(c, 2, s.first_value, s.second_value);
    dm_status status = dm_scale(c->session, 2, s.first, s.second);
    dmt_shifted_check(c, &s, status, e, "dm_scale of overlapping views");
}

static void test_scale(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scale", .cases = 750, .fn = scale_case});
}

static void test_scale_in_place(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scale_in_place", .cases = 150, .fn = scale_in_place_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "scale_overlap", .cases = 90, .fn = overlap_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_scale_in_place),
        cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
