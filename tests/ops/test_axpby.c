/* y = alpha * x + beta * y */
#include "support/oracle.h"

static void axpby_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *x_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *y_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    bool whole = dmt_all_whole(x_value, y_value, y_value);
    double alpha = dmt_factor_random(c, whole), beta = dmt_factor_random(c, whole);
    dmt_operand *x = dmt_operand_make(c, "x", x_value, 0);
    dmt_operand *y = dmt_operand_make(c, "y", y_value, beta == 0 ? DMT_UNSET : 0);
    dmt_say(c, "\n    alpha %.17g beta %.17g", alpha, beta);
    DMT_OK(c, dm_axpby(c->session, alpha, x->array, beta, y->array));
    dmt_expected e = dmt_expect_add(c, alpha, x_value, beta, y_value, y_value);
    dmt_operand_check(c, y, e.want, e.bound);
    dmt_operand_unchanged(c, x);
}

/* y = alpha * y + beta * y */
static void self_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    bool whole = !dmt_is_float(value->dtype);
    double alpha = dmt_factor_random(c, whole), beta = dmt_factor_random(c, whole);
    dmt_operand *y = dmt_operand_make(c, "y", value, 0);
    dmt_say(c, "\n    x is y, alpha %.17g beta %.17g", alpha, beta);
    DMT_OK(c, dm_axpby(c->session, alpha, y->array, beta, y->array));
    dmt_expected e = dmt_expect_add(c, alpha, value, beta, value, value);
    dmt_operand_check(c, y, e.want, e.bound);
}

/* Many steps one after another, with no call that waits: the commands take effect in order. */
static void chain_case(dmt_case *c)
{
    int64_t shape[2];
    dmt_shape_random(c, 2, 2000, shape);
    dmt_host *x_value = dmt_host_make(&c->scratch, DM_I64, 2, shape);
    dmt_host *y_value = dmt_host_make(&c->scratch, DM_I64, 2, shape);
    dmt_host_random(x_value, &c->random, DMT_SMALL);
    dmt_host_random(y_value, &c->random, DMT_SMALL);
    dmt_operand *x = dmt_operand_make(c, "x", x_value, 0);
    dmt_operand *y = dmt_operand_make(c, "y", y_value, 0);
    for (int step = 0; step < 12; step++) {
        double alpha = dmt_factor_random(c, true), beta = dmt_factor_random(c, true);
        bool forth = step % 2 == 0;
        dmt_say(c, "\n    %s = %g * %s + %g * %s", forth ? "y" : "x", alpha, forth ? "x" : "y", beta,
                forth ? "y" : "x");
        dmt_operand *from = forth ? x : y, *to = forth ? y : x;
        DMT_OK(c, dm_axpby(c->session, alpha, from->array, beta, to->array));
        dmt_host *next = dmt_expect_add(c, alpha, from->value, beta, to->value, to->value).want;
        to->value = next;
    }
    dmt_operand_check(c, x, x->value, NULL);
    dmt_operand_check(c, y, y->value, NULL);
}

static void overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_F64, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    dmt_expected e = dmt_expect_add(c, 2, s.first_value, 1, s.second_value, s.second_value);
    dm_status status = dm_axpby(c->session, 2, s.first, 1, s.second);
    if (s.lo[0] == 1 && s.lo[1] == 1) {
        dmt_status_is(c, status, DM_OK, "dm_axpby of the same elements");
    }
    dmt_shifted_check(c, &s, status, e, "dm_axpby of overlapping views");
}

static void test_axpby(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "axpby", .cases = 1500, .fn = axpby_case});
}

static void test_self(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "axpby_self", .cases = 225, .fn = self_case});
}

static void test_chain(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "axpby_chain", .cases = 150, .fn = chain_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "axpby_overlap", .cases = 150, .fn = overlap_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axpby),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
