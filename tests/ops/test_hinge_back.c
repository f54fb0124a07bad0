/* The gradients of hinge losses: against loops, and the same bits in all layouts */
#include "support/factors.h"
#include "support/labelled.h"

enum { X, LABELS, DX };

static void back_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : 0}, alone;
    int norm = (int)dmt_int(&c->random, 1, 2);
    dmt_factor scale = dmt_factor_make(c, "scale", false, false);
    dmt_labelled_random(c, &v);
    v.options.ignores = 0;
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *labels = dmt_labels_add(c, &l, &v);
    dmt_layer_add(c, &l, "dx", 0, v.ndim, v.shape);
    dmt_layer_make(c, &l, 1u << DX);
    dmt_say(c, "\n    norm %d", norm);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    for (int64_t i = 0; i < x->count; i++) {
        bool here = (long double)(i % v.classes) == labels->v[i / v.classes];
        long double m = here ? 1 - x->v[i] : 1 + x->v[i], g = m <= 0 ? 0 : norm == 1 ? 1 : 2 * m;
        dmt_sums_add(&sums, i, here ? -g : g, (long double)scale.value / (long double)v.shape[0]);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_hinge_loss_backward_by(c->session, norm, v.options.slices, l.array[X], l.array[LABELS],
                                        scale.given, l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_hinge_loss_backward_by(c->session, norm, v.options.slices, alone.array[X],
                                            alone.array[LABELS], scale.given, alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static void test_hinge_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "hinge_back", .cases = 300, .fn = back_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hinge_back)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
