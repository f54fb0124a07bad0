/* Host memory -> array. */
#include "support/part.h"

#include <string.h>

static dmt_host *random_host(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 15) ? 5 : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    return h;
}

static void write_parts(dmt_case *c, const dmt_host *h, dmt_operand *a)
{
    for (int i = 0; i < 3; i++) {
        dmt_part p = dmt_part_random(c, h);
        dmt_part_say(c, "write", &p);
        dmt_host_random(p.value, &c->random, DMT_WILD);
        char *memory = dmt_part_spread(c, &p);
        DMT_OK(c, dm_array_write(c->session, a->array, p.lo, p.extent, memory, p.ld));
        memset(memory, 0x77, (size_t)p.bytes); /* it may be reused at once */
        dmt_host_put(a->value, p.lo, p.value);
    }
}

static void write_case(dmt_case *c)
{
    dmt_host *h = random_host(c);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    write_parts(c, h, a);
    dmt_operand_unchanged(c, a);
}

/* Element by element, each a write of its own: many small commands in a row, none of which waits for the last.
 */
static void elements_case(dmt_case *c)
{
    const int64_t shape[] = {5, 9}, one[] = {1, 1};
    dmt_host *h = dmt_host_make(&c->scratch, DM_I32, 2, shape);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    int64_t index[2] = {0, 0}, i = 0;
    do {
        int32_t value = (int32_t)(1000 + i);
        a->value->v[i++] = value;
        DMT_OK(c, dm_array_write(c->session, a->array, index, one, &value, 0));
    } while (dmt_next(2, shape, index));
    dmt_operand_unchanged(c, a);
}

/* Several MiB, so that it goes in more than one piece, and GPU workers fetch it. */
static void large_case(dmt_case *c)
{
    const int64_t flat[] = {1231, 977}, deep[] = {7, 1231, 13, 11};
    const bool two = dmt_chance(&c->random, 50);
    dmt_host *h = dmt_host_make(&c->scratch, two ? DM_F64 : DM_F32, two ? 2 : 4, two ? flat : deep);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)(i * 7 % 100003);
    }
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    write_parts(c, h, a);
    dmt_operand_unchanged(c, a);
}

static void test_write(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "write", .cases = 1500, .fn = write_case});
}

static void test_elements(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "write_elements", .cases = 150, .fn = elements_case});
}

static void test_large(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "write_large", .cases = 4, .fn = large_case, .workers = 3, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
