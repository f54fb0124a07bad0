/* The gradient of the sigmoid cross-entropy loss: against loops, and the same bits in all layouts */
#include "support/factors.h"
#include "support/labelled.h"

#include <math.h>

enum { X, TARGET, DX };

static void back_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : 0}, alone;
    dmt_factor scale = dmt_factor_make(c, "scale", false, false);
    dmt_labelled_random(c, &v);
    v.count *= v.classes;
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *t = dmt_layer_add(c, &l, "targets", dmt_chance(&c->random, 30) ? DM_I32 : 0, v.ndim, v.shape);
    dmt_host_random(t, &c->random, DMT_SMALL);
    dmt_layer_add(c, &l, "dx", 0, v.ndim, v.shape);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    for (int64_t i = 0; i < x->count; i++) {
        long double factor = dmt_ignored(&v, t->v[i]) ? 0 : (long double)scale.value / dmt_normaliser(&v, t);
        dmt_sums_add(&sums, i, 1 / (1 + expl(-x->v[i])), factor);
        dmt_sums_add(&sums, i, -t->v[i], factor);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_sigmoid_loss_backward_by(c->session, &v.options, l.array[X], l.array[TARGET], scale.given,
                                          l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_sigmoid_loss_backward_by(c->session, &v.options, alone.array[X], alone.array[TARGET],
                                              scale.given, alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static void test_pair_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pair_back", .cases = 300, .fn = back_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pair_back)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
