/* dw = beta dw + dy^T x, db = beta db + the sum of dy: against loops, and the same bits in all layouts */
#include "support/factors.h"
#include "support/inner.h"

enum { X, DY, DW, DB };

static void weights_case(dmt_case *c)
{
    dmt_inner v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_factor beta = dmt_factor_make(c, "beta", false, false);
    dmt_inner_random(c, &v);
    dmt_layer_add(c, &l, "x", 0, v.x_dims, v.x);
    dmt_layer_add(c, &l, "dy", 0, 2, v.y);
    dmt_layer_add(c, &l, "dw", 0, v.w_dims, v.w);
    dmt_layer_add(c, &l, "db", 0, 1, v.w);
    l.left_out[DB] = dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, beta.value == 0 ? 1u << DW | 1u << DB : 0);
    dmt_sums w = dmt_sums_make(c, l.host[DW]), b = dmt_sums_make(c, l.host[DB]);
    for (int64_t n = 0; n < v.x[0]; n++) {
        for (int64_t m = 0; m < v.y[1]; m++) {
            for (int64_t k = 0; k < v.in; k++) {
                dmt_sums_add(&w, m * v.in + k, l.host[DY]->v[n * v.y[1] + m], l.host[X]->v[n * v.in + k]);
            }
            dmt_sums_add(&b, m, l.host[DY]->v[n * v.y[1] + m], 1);
        }
    }
    dmt_sums_end(&w, l.host[DW], beta.value, dmt_layer_eps(&l));
    dmt_sums_end(&b, l.host[DB], beta.value, dmt_layer_eps(&l));
    DMT_OK(c, dm_inner_backward_weights_by(c->session, v.slices, l.array[X], l.array[DY], beta.given,
                                           l.array[DW], l.array[DB]));
    dmt_operand_check(c, l.operand[DW], w.want, w.bound);
    if (!l.left_out[DB]) {
        dmt_operand_check(c, l.operand[DB], b.want, b.bound);
    }
    if (v.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_inner_backward_weights_by(c->session, v.slices, alone.array[X], alone.array[DY],
                                               beta.given, alone.array[DW], alone.array[DB]));
        dmt_layer_same(c, &l, &alone, DW);
        dmt_layer_same(c, &l, &alone, DB);
    }
}

static void test_inner_weights(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "inner_weights", .cases = 400, .fn = weights_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inner_weights)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
