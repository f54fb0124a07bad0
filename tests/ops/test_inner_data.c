/* dx = dy w over flattened samples: against loops, and the same bits in all layouts */
#include "support/inner.h"

enum { DY, W, DX };

static void data_case(dmt_case *c)
{
    dmt_inner v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_inner_random(c, &v);
    dmt_layer_add(c, &l, "dy", 0, 2, v.y);
    dmt_layer_add(c, &l, "w", 0, v.w_dims, v.w);
    dmt_layer_add(c, &l, "dx", 0, v.x_dims, v.x);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    for (int64_t i = 0; i < sums.want->count; i++) {
        for (int64_t k = 0; k < v.y[1]; k++) {
            dmt_sums_add(&sums, i, l.host[DY]->v[i / v.in * v.y[1] + k], l.host[W]->v[k * v.in + i % v.in]);
        }
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_inner_backward_data(c->session, v.slices, l.array[DY], l.array[W], l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c,
               dm_inner_backward_data(c->session, v.slices, alone.array[DY], alone.array[W], alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static void test_inner_data(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "inner_data", .cases = 400, .fn = data_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inner_data)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
