/* y = x w^T + bias over flattened samples: against loops, and the same bits in all layouts */
#include "support/inner.h"
#include "support/refusal.h"

enum { X, W, BIAS, Y };

static void inner_case(dmt_case *c)
{
    dmt_inner v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_inner_random(c, &v);
    dmt_layer_add(c, &l, "x", 0, v.x_dims, v.x);
    dmt_layer_add(c, &l, "w", 0, v.w_dims, v.w);
    dmt_layer_add(c, &l, "bias", 0, 1, v.w);
    dmt_layer_add(c, &l, "y", 0, 2, v.y);
    l.left_out[BIAS] = dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, 1u << Y);
    dmt_sums sums = dmt_sums_make(c, l.host[Y]);
    for (int64_t i = 0; i < sums.want->count; i++) {
        for (int64_t k = 0; k < v.in; k++) {
            dmt_sums_add(&sums, i, l.host[X]->v[i / v.y[1] * v.in + k], l.host[W]->v[i % v.y[1] * v.in + k]);
        }
        dmt_sums_add(&sums, i, l.left_out[BIAS] ? 0 : l.host[BIAS]->v[i % v.y[1]], 1);
    }
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_inner_forward(c->session, v.slices, l.array[X], l.array[W], l.array[BIAS], l.array[Y]));
    dmt_operand_check(c, l.operand[Y], sums.want, sums.bound);
    if (v.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_inner_forward(c->session, v.slices, alone.array[X], alone.array[W], alone.array[BIAS],
                                   alone.array[Y]));
        dmt_layer_same(c, &l, &alone, Y);
    }
}

static void refusals(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    dm_array w = dmt_thing_make(c, DM_F32, 2, (int64_t[]){7, 5});
    REFUSED(DMT_ONE(SHAPE), "M x D", dm_inner_forward(c->session, 4, t.f, t.wide, DM_NO_ARRAY, t.g));
    REFUSED(DMT_ONE(SHAPE), "M x D", dm_inner_forward(c->session, 4, t.row, w, DM_NO_ARRAY, t.wide));
    REFUSED(DMT_ONE(SHAPE), "bias", dm_inner_forward(c->session, 4, t.f, w, t.row, t.wide));
    REFUSED(DMT_ONE(ARG), "slices", dm_inner_forward(c->session, -1, t.f, w, DM_NO_ARRAY, t.wide));
    REFUSED(DMT_ONE(DTYPE), "x has", dm_inner_forward(c->session, 1, t.whole, w, DM_NO_ARRAY, t.wide));
    dmt_thing_end(c, w, DM_F32, 2, (int64_t[]){7, 5});
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_inner(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "inner", .cases = 400, .fn = inner_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inner), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
