/* Array -> host memory. */
#include "support/part.h"

static dmt_host *random_host(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 15) ? 5 : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    return h;
}

static void read_case(dmt_case *c)
{
    char text[400];
    dmt_host *h = random_host(c);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    for (int i = 0; i < 4; i++) {
        dmt_part p = dmt_part_random(c, h);
        dmt_part_say(c, "read", &p);
        char *memory = dmt_part_spread(c, &p);
        DMT_OK(c, dm_array_read(c->session, a->array, p.lo, p.extent, memory, p.ld));
        if (!dmt_part_gather(&p, memory, p.value)) {
            dmt_fail(c, "something was written between the rows");
        }
        dmt_host *want = dmt_host_copy(&c->scratch, p.value);
        dmt_host_take(h, p.lo, want);
        if (!dmt_host_same(p.value, want, text, sizeof text)) {
            dmt_fail(c, "%s", text);
        }
    }
}

/* A read sees every command before it and none after it. */
static void order_case(dmt_case *c)
{
    const int64_t shape[] = {7, 6};
    dmt_host *h = dmt_host_make(&c->scratch, DM_I64, 2, shape), *other = dmt_host_copy(&c->scratch, h);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    dmt_operand *b = dmt_operand_make(c, "b", other, 0);
    for (int i = 1; i <= 10; i++) {
        DMT_OK(c, dm_fill(c->session, a->array, i));
        DMT_OK(c, dm_copy(c->session, a->array, b->array));
        DMT_OK(c, dm_fill(c->session, a->array, -i));
        dmt_host *got = dmt_read(c, b->array, DM_I64, 2, shape);
        DMT_OK(c, dm_fill(c->session, b->array, 99));
        for (int64_t k = 0; k < got->count; k++) {
            if (got->v[k] != i) {
                dmt_fail(c, "turn %d: element %d is %Lg", i, (int)k, got->v[k]);
            }
        }
    }
}

static void test_read(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "read", .cases = 2000, .fn = read_case});
}

static void test_order(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "read_order", .cases = 200, .fn = order_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
