/* Sums by channel: against loops, and the same bits in all layouts */
#include "support/factors.h"
#include "support/layers.h"
#include "support/refusal.h"

#include <math.h>

enum { X, Y, OUT };

static void sums_case(dmt_case *c)
{
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 2, 5), slices = dmt_layer_slices(c);
    dmt_factor scale = dmt_factor_make(c, "scale", false, false),
               beta = dmt_factor_make(c, "beta", false, false);
    dmt_shape_random(c, ndim, 3000, shape);
    dmt_layer_add(c, &l, "x", 0, ndim, shape);
    dmt_layer_add(c, &l, "y", 0, ndim, shape);
    dmt_layer_add(c, &l, "out", 0, 1, &shape[ndim - 1]);
    l.left_out[Y] = dmt_chance(&c->random, 50);
    dmt_layer_make(c, &l, beta.value == 0 ? 1u << OUT : 0);
    dmt_say(c, "\n    slices %d", slices);
    dmt_sums sums = dmt_sums_make(c, l.host[OUT]);
    for (int64_t i = 0; i < l.host[X]->count; i++) {
        dmt_sums_add(&sums, i % shape[ndim - 1], (long double)scale.value * l.host[X]->v[i],
                     l.left_out[Y] ? 1 : l.host[Y]->v[i]);
    }
    dmt_sums_end(&sums, l.host[OUT], beta.value, dmt_layer_eps(&l));
    DMT_OK(c, dm_channel_sums_by(c->session, slices, scale.given, l.array[X], l.array[Y], beta.given,
                                 l.array[OUT]));
    dmt_operand_check(c, l.operand[OUT], sums.want, sums.bound);
    if (slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_channel_sums_by(c->session, slices, scale.given, alone.array[X], alone.array[Y],
                                     beta.given, alone.array[OUT]));
        dmt_layer_same(c, &l, &alone, OUT);
    }
}

/* A scale of 0 reads x, whether beta is a number or an element. */
static void zero_scale(dmt_case *c)
{
    const int64_t shape[2] = {3, 2}, channels[1] = {2};
    const double x_value[6] = {1, 2, NAN, 3, 4, 5}, before[2] = {6, 7}, half = 0.5;
    dm_session *s = c->session;
    dm_array x, beta, out;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &beta));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, channels, NULL, &out));
    DMT_OK(c, dm_write(s, x, x_value));
    DMT_OK(c, dm_write(s, beta, &half));
    for (int element = 0; element < 2; element++) {
        double got[2];
        DMT_OK(c, dm_write(s, out, before));
        DMT_OK(c, dm_channel_sums_by(s, 4, dm_value(0), x, DM_NO_ARRAY,
                                     element ? dm_element(beta) : dm_value(half), out));
        DMT_OK(c, dm_read(s, out, got));
        if (!isnan(got[0]) || got[1] != 3.5) {
            dmt_fail(c, "%s: %g %g", element ? "element" : "number", got[0], got[1]);
        }
    }
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, beta));
    DMT_OK(c, dm_array_destroy(s, out));
}
DMT_ONE_CASE(zero_scale)

static void refusals(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    REFUSED(DMT_ONE(SHAPE), "out", dm_channel_sums(c->session, 4, 1, t.wide, DM_NO_ARRAY, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "y is", dm_channel_sums(c->session, 4, 1, t.f, t.wide, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "x has 1 dims", dm_channel_sums(c->session, 4, 1, t.row, DM_NO_ARRAY, 0, t.row));
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_channel_sums(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "channel_sums", .cases = 500, .fn = sums_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_channel_sums), cmocka_unit_test(test_zero_scale),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
