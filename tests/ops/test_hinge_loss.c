/* Hinge losses: against loops, and the same bits in all layouts */
#include "support/labelled.h"

enum { X, LABELS, LOSS };

static void loss_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : 0}, alone;
    int norm = (int)dmt_int(&c->random, 1, 2);
    dmt_labelled_random(c, &v);
    v.options.ignores = 0;
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *labels = dmt_labels_add(c, &l, &v);
    dmt_layer_add(c, &l, "loss", 0, 1, (int64_t[]){1});
    dmt_layer_make(c, &l, 1u << LOSS);
    dmt_say(c, "\n    norm %d", norm);
    dmt_sums sums = dmt_sums_make(c, l.host[LOSS]);
    for (int64_t i = 0; i < x->count; i++) {
        bool here = (long double)(i % v.classes) == labels->v[i / v.classes];
        long double m = here ? 1 - x->v[i] : 1 + x->v[i];
        dmt_sums_add(&sums, 0, m > 0 ? m : 0, (norm == 1 ? 1 : m) / (long double)v.shape[0]);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_hinge_loss(c->session, norm, v.options.slices, l.array[X], l.array[LABELS], l.array[LOSS]));
    dmt_operand_check(c, l.operand[LOSS], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_hinge_loss(c->session, norm, v.options.slices, alone.array[X], alone.array[LABELS],
                                alone.array[LOSS]));
        dmt_layer_same(c, &l, &alone, LOSS);
    }
}

static void test_hinge_loss(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "hinge_loss", .cases = 300, .fn = loss_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hinge_loss)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
