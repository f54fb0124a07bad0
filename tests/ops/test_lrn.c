/* Local response normalisation: against loops, and the same bits in all layouts */
#include "support/lrn.h"
#include "support/refusal.h"

enum { X, Y };

static void lrn_case(dmt_case *c)
{
    dmt_lrn v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_lrn_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_layer_add(c, &l, "y", 0, v.ndim, v.shape);
    dmt_layer_make(c, &l, 1u << Y);
    dmt_sums sums = dmt_sums_make(c, l.host[Y]);
    for (int64_t i = 0; i < x->count; i++) {
        dmt_sums_add(&sums, i, x->v[i], powl(dmt_lrn_scale(&v, x, i), -(long double)v.lrn.beta));
    }
    sums.terms += 60 * x->count;
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_lrn_forward(c->session, &v.lrn, l.array[X], l.array[Y]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    if (v.lrn.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_lrn_forward(c->session, &v.lrn, alone.array[X], alone.array[Y]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

static void refusals(dmt_case *c)
{
    dm_lrn v = DM_LRN_INIT, bad = v;
    dmt_things t = dmt_things_make(c);
    bad.local_size = 4;
    REFUSED(DMT_ONE(ARG), "local_size", dm_lrn_forward(c->session, &bad, t.f, t.g));
    bad = v;
    bad.within = 1;
    REFUSED(DMT_ONE(SHAPE), "x has 2 dims", dm_lrn_forward(c->session, &bad, t.f, t.g));
    REFUSED(DMT_ONE(SHAPE), "y is", dm_lrn_forward(c->session, &v, t.f, t.wide));
    REFUSED(DMT_ONE(ARG), "DM_LRN_INIT", dm_lrn_forward(c->session, NULL, t.f, t.g));
    REFUSED(DMT_ONE(OVERLAP), "share", dm_lrn_backward(c->session, &v, t.f, t.g, t.g));
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_lrn(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "lrn", .cases = 200, .fn = lrn_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lrn), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
