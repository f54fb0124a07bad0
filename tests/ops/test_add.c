/* out = alpha * a + beta * b */
#include "support/oracle.h"

static void add_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *a_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *b_value = dmt_broadcast_operand(c, ndim, shape);
    dmt_host *out_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    bool whole = dmt_all_whole(a_value, b_value, out_value);
    double alpha = dmt_factor_random(c, whole), beta = dmt_factor_random(c, whole);
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0);
    dmt_operand *b = dmt_operand_make(c, "b", b_value, 0);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, DMT_UNSET);
    dmt_say(c, "\n    alpha %.17g beta %.17g", alpha, beta);
    DMT_OK(c, dm_add(c->session, alpha, a->array, beta, b->array, out->array));
    dmt_expected e = dmt_expect_add(c, alpha, a_value, beta, b_value, out_value);
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, a);
    dmt_operand_unchanged(c, b);
}

/* The output is the first, the second or both operands, by the same handle or by another view of it. */
static void in_place_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], zero[DM_MAX_DIMS] = {0};
    int ndim = dmt_ewise_shape(c, shape);
    dmt_host *out_value = dmt_host_for_ewise(c, dmt_ewise_random(c), ndim, shape);
    dmt_host *other_value = dmt_broadcast_operand(c, ndim, shape);
    int which = (int)dmt_int(&c->random, 0, 2);
    dmt_host *a_value = which == 1 ? other_value : out_value, *b_value = which == 0 ? other_value : out_value;
    bool whole = dmt_all_whole(a_value, b_value, out_value);
    double alpha = dmt_factor_random(c, whole), beta = dmt_factor_random(c, whole);
    dmt_operand *out = dmt_operand_make(c, "out", out_value, 0);
    dmt_operand *other = dmt_operand_make(c, "other", other_value, 0);
    dm_array again = DM_NO_ARRAY;
    if (ndim > 0 && dmt_chance(&c->random, 40)) {
        DMT_OK(c, dm_array_view(c->session, out->array, zero, shape, &again));
    }
    dm_array a = which == 1 ? other->array : out->array, b = which == 0 ? other->array : out->array;
    dmt_say(c, "\n    out is %s%s, alpha %.17g beta %.17g",
            which == 0   ? "a"
            : which == 1 ? "b"
                         : "a and b",
            again.id ? " (by a second view)" : "", alpha, beta);
    dmt_expected e = dmt_expect_add(c, alpha, a_value, beta, b_value, out_value);
    DMT_OK(c, dm_add(c->session, alpha, a, beta, b, again.id ? again : out->array));
    DMT_OK(c, dm_array_destroy(c->session, again));
    dmt_operand_check(c, out, e.want, e.bound);
    dmt_operand_unchanged(c, other);
}

static void overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_F32, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    bool same = s.lo[0] == 1 && s.lo[1] == 1;
    bool first = dmt_chance(&c->random, 50);
    dmt_host *b_value = dmt_host_make(&c->scratch, DM_F32, 2, s.first_value->shape);
    dmt_host_random(b_value, &c->random, DMT_SMALL);
    dmt_operand *b = dmt_operand_make(c, "b", b_value, 0);
    dmt_expected e = dmt_expect_add(c, 2, s.first_value, 3, b_value, s.second_value);
    dm_status status = first ? dm_add(c->session, 2, s.first, 3, b->array, s.second)
                             : dm_add(c->session, 3, b->array, 2, s.first, s.second);
    if (same) {
        dmt_status_is(c, status, DM_OK, "dm_add of the same elements");
    }
    dmt_shifted_check(c, &s, status, e, "dm_add of overlapping views");
}

/* A row of the output as the operand that is repeated over it. */
static void overlap_broadcast_case(dmt_case *c)
{
    const int64_t shape[] = {9, 7}, extent[] = {1, 7};
    int64_t lo[2] = {dmt_int(&c->random, 0, 8), 0};
    dm_array row;
    dmt_host *value = dmt_host_make(&c->scratch, DM_F64, 2, shape),
             *part = dmt_host_make(&c->scratch, DM_F64, 2, extent);
    dmt_host_random(value, &c->random, DMT_SMALL);
    dmt_host_take(value, lo, part);
    dmt_operand *out = dmt_operand_make(c, "out", value, 0);
    DMT_OK(c, dm_array_view(c->session, out->array, lo, extent, &row));
    dmt_expected e = dmt_expect_add(c, 1, part, 1, value, value);
    dm_status status = dm_add(c->session, 1, row, 1, out->array, out->array);
    if (status == DM_ERR_OVERLAP) {
        dmt_operand_unchanged(c, out);
    } else {
        dmt_status_is(c, status, DM_OK, "dm_add of a row of the output");
        dmt_operand_check(c, out, e.want, e.bound);
    }
    DMT_OK(c, dm_array_destroy(c->session, row));
}

static void test_add(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "add", .cases = 1000, .fn = add_case});
}

static void test_in_place(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "add_in_place", .cases = 300, .fn = in_place_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "add_overlap", .cases = 100, .fn = overlap_case});
}

static void test_overlap_broadcast(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "add_overlap_broadcast", .cases = 50, .fn = overlap_broadcast_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_overlap_broadcast),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
