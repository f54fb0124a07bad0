/* Sigmoid cross-entropy and Euclidean losses: against loops, and the same bits in all layouts */
#include "support/labelled.h"
#include "support/refusal.h"

#include <math.h>

enum { X, TARGET, LOSS };

static dm_status run(dmt_case *c, const dmt_labelled *v, bool euclidean, const dm_array *a)
{
    return euclidean ? dm_euclidean_loss(c->session, v->options.slices, a[X], a[TARGET], a[LOSS])
                     : dm_sigmoid_loss(c->session, &v->options, a[X], a[TARGET], a[LOSS]);
}

static void loss_case(dmt_case *c)
{
    dmt_labelled v;
    dmt_layer l = {.all = dmt_chance(&c->random, 50) ? DM_F32 : 0}, alone;
    bool euclidean = dmt_chance(&c->random, 40);
    dmt_labelled_random(c, &v);
    v.count *= v.classes; /* each element is a label */
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, v.ndim, v.shape);
    dmt_host *t = dmt_layer_add(c, &l, "targets", dmt_chance(&c->random, 30) ? DM_I32 : 0, v.ndim, v.shape);
    dmt_host_random(t, &c->random, DMT_SMALL);
    dmt_layer_add(c, &l, "loss", 0, 1, (int64_t[]){1});
    dmt_layer_make(c, &l, 1u << LOSS);
    dmt_say(c, "\n    euclidean %d", euclidean);
    dmt_sums sums = dmt_sums_make(c, l.host[LOSS]);
    long double divisor =
        euclidean ? 2 * (long double)(v.shape[0] > 1 ? v.shape[0] : 1) : dmt_normaliser(&v, t);
    for (int64_t i = 0; i < x->count; i++) {
        long double s = 1 / (1 + expl(-x->v[i])), d = x->v[i] - t->v[i];
        if (euclidean) {
            dmt_sums_add(&sums, 0, d, d / divisor);
        } else if (!dmt_ignored(&v, t->v[i])) {
            dmt_sums_add(&sums, 0, -t->v[i] * logl(s), 1 / divisor);
            dmt_sums_add(&sums, 0, -(1 - t->v[i]) * logl(1 / (1 + expl(x->v[i]))), 1 / divisor);
        }
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, run(c, &v, euclidean, l.array));
    dmt_operand_check(c, l.operand[LOSS], sums.want, sums.bound);
    if (v.options.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, run(c, &v, euclidean, alone.array));
        dmt_layer_same(c, &l, &alone, LOSS);
    }
}

static void refusals(dmt_case *c)
{
    dm_loss options = DM_LOSS_INIT;
    dmt_things t = dmt_things_make(c);
    dm_array loss = dmt_thing_make(c, DM_F32, 0, NULL);
    REFUSED(DMT_ONE(SHAPE), "targets is", dm_sigmoid_loss(c->session, &options, t.f, t.wide, loss));
    REFUSED(DMT_ONE(SHAPE), "loss is", dm_euclidean_loss(c->session, 4, t.f, t.g, t.row));
    REFUSED(DMT_ONE(ARG), "slices", dm_euclidean_loss(c->session, -4, t.f, t.g, loss));
    REFUSED(DMT_ONE(SHAPE), "dx is", dm_sigmoid_loss_backward(c->session, &options, t.f, t.g, 1, t.wide));
    REFUSED(DMT_ONE(ARG), "norm", dm_hinge_loss(c->session, 3, 4, t.f, t.g, loss));
    dmt_thing_end(c, loss, DM_F32, 0, NULL);
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_pair_loss(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pair_loss", .cases = 400, .fn = loss_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pair_loss), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
