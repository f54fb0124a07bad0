/* dx = dy where x > 0, db = beta db + its sum by channel: against loops, and the same bits in all layouts */
#include "support/factors.h"
#include "support/layers.h"
#include "support/refusal.h"

#include <math.h>

enum { X, DY, DX, DB };

static void relu_case(dmt_case *c)
{
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 2, 5), slices = dmt_layer_slices(c);
    dmt_factor beta = dmt_factor_make(c, "beta", false, false);
    dmt_shape_random(c, ndim, 3000, shape);
    int64_t channels = shape[ndim - 1];
    dmt_layer_add(c, &l, "x", 0, ndim, shape);
    dmt_layer_add(c, &l, "dy", 0, ndim, shape);
    dmt_layer_add(c, &l, "dx", 0, ndim, shape);
    dmt_layer_add(c, &l, "db", 0, 1, &channels);
    for (int64_t i = 0; i < l.host[X]->count; i += 7) { /* 0 and NaN are not above 0 */
        l.host[X]->v[i] = i % 2 ? 0 : NAN;
    }
    dmt_layer_make(c, &l, 1u << DX | (beta.value == 0 ? 1u << DB : 0));
    dmt_say(c, "\n    slices %d", slices);
    dmt_host *want = dmt_host_copy(&c->scratch, l.host[DX]), *bound = dmt_host_copy(&c->scratch, want);
    dmt_sums sums = dmt_sums_make(c, l.host[DB]);
    for (int64_t i = 0; i < want->count; i++) {
        want->v[i] = l.host[X]->v[i] > 0 ? l.host[DY]->v[i] : 0;
        bound->v[i] = dmt_layer_eps(&l) * fabsl(want->v[i]);
        dmt_sums_add(&sums, i % channels, want->v[i], 1);
    }
    dmt_sums_end(&sums, l.host[DB], beta.value, dmt_layer_eps(&l));
    DMT_OK(c, dm_relu_backward_sums_by(c->session, slices, l.array[X], l.array[DY], l.array[DX], beta.given,
                                       l.array[DB]));
    dmt_operand_check(c, l.operand[DX], want, bound);
    dmt_operand_check(c, l.operand[DB], sums.want, sums.bound);
    if (slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_relu_backward_sums_by(c->session, slices, alone.array[X], alone.array[DY], alone.array[DX],
                                           beta.given, alone.array[DB]));
        dmt_layer_same(c, &l, &alone, DX);
        dmt_layer_same(c, &l, &alone, DB);
    }
}

/* The gradient, and perhaps x and dx, is some channels of a wider array, as before a concatenation: it is read
 * or written where it is, and nothing moves. */
static void view_case(dmt_case *c)
{
    enum { SAMPLES = 24, SIDE = 3, WIDE = 48 };
    static const dm_dtype types[] = {DM_F32, DM_F64, DM_BF16, DM_F16};
    const int64_t lo = dmt_int(&c->random, 0, 4) * 8,
                  channels = dmt_int(&c->random, 1, 2) * 8 - (c->number % 2);
    const int64_t wide[4] = {SAMPLES, SIDE, SIDE, WIDE}, shape[4] = {SAMPLES, SIDE, SIDE, channels};
    dm_dtype type = types[c->number / 2 % 4];
    dm_session *s = c->session;
    dm_array x, all, other, into, dy, dx, db, want, sums;
    dm_layout rows = dm_layout_rows(s);
    dm_array *four[] = {&x, &dx, &want};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_create(s, type, 4, shape, &rows, four[i]));
    }
    DMT_OK(c, dm_array_create(s, type, 4, wide, &rows, &all));
    DMT_OK(c, dm_array_create(s, type, 4, (int64_t[]){SAMPLES, SIDE, SIDE, WIDE + lo}, &rows, &other));
    if (c->number / 8 % 2) {
        DMT_OK(c, dm_array_destroy(s, x));
        DMT_OK(c, dm_array_view(s, other, (int64_t[]){0, 0, 0, lo / 2}, shape, &x));
    }
    DMT_OK(c, dm_array_create(s, type, 4, wide, &rows, &into));
    DMT_OK(c, dm_fill(s, into, 3));
    if (c->number / 16 % 2) {
        DMT_OK(c, dm_array_destroy(s, dx));
        DMT_OK(c, dm_array_view(s, into, (int64_t[]){0, 0, 0, lo}, shape, &dx));
    }
    DMT_OK(c, dm_array_create(s, DM_F32, 1, &channels, NULL, &db));
    DMT_OK(c, dm_array_create(s, DM_F32, 1, &channels, NULL, &sums));
    DMT_OK(c, dm_map(s, "floor(5 * uniform(1)) - 2", 0, NULL, x));
    DMT_OK(c, dm_map(s, "floor(17 * uniform(2)) - 8", 0, NULL, all));
    DMT_OK(c, dm_array_view(s, all, (int64_t[]){0, 0, 0, lo}, shape, &dy));
    DMT_OK(c, dm_map(s, "where(x > 0, d, 0)", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("d", dy)}, want));
    DMT_OK(c, dm_channel_sums(s, 4, 1, want, DM_NO_ARRAY, 0, sums));
    DMT_OK(c, dm_relu_backward_sums(s, 4, x, dy, dx, 0, db));
    double apart[3];
    dm_array one;
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &one));
    DMT_OK(c, dm_map(s, "sum(abs(a - b))", 2, (dm_map_arg[]){DM_ARG("a", want), DM_ARG("b", dx)}, one));
    DMT_OK(c, dm_item(s, one, NULL, &apart[0]));
    DMT_OK(c, dm_map(s, "sum(abs(a - b))", 2, (dm_map_arg[]){DM_ARG("a", sums), DM_ARG("b", db)}, one));
    DMT_OK(c, dm_item(s, one, NULL, &apart[1]));
    DMT_OK(c, dm_fill(s, dx, 3)); /* what lies beside it is as it was */
    DMT_OK(c, dm_map(s, "sum(abs(a - 3))", 1, (dm_map_arg[]){DM_ARG("a", into)}, one));
    DMT_OK(c, dm_item(s, one, NULL, &apart[2]));
    if (apart[0] != 0 || apart[1] != 0 || apart[2] != 0) { /* small integers: no sum rounds */
        dmt_fail(c, "channels %d to %d of %d: dx differs by %g, db by %g, and what lies beside dx by %g",
                 (int)lo, (int)(lo + channels), WIDE, apart[0], apart[1], apart[2]);
    }
    dm_array made[] = {dy, x, dx, want, all, db, sums, one, other, into};
    for (int i = 0; i < 10; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

static void refusals(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    dm_array same;
    DMT_OK(c, dm_array_like(c->session, t.f, DM_F32, &same));
    REFUSED(DMT_ONE(SHAPE), "dy is", dm_relu_backward_sums(c->session, 4, t.f, t.wide, same, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "db is", dm_relu_backward_sums(c->session, 4, t.wide, t.wide, same, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "x has 1 dims", dm_relu_backward_sums(c->session, 4, t.row, t.row, same, 0, t.row));
    REFUSED(DMT_ONE(OVERLAP), "dx", dm_relu_backward_sums(c->session, 4, t.f, same, same, 0, t.row));
    dm_array first;
    DMT_OK(c, dm_array_view(c->session, same, (int64_t[]){0, 0}, (int64_t[]){1, 1}, &first));
    REFUSED(DMT_ONE(OVERLAP), "beta",
            dm_relu_backward_sums_by(c->session, 4, t.f, t.f, same, dm_element(first), t.row));
    DMT_OK(c, dm_array_destroy(c->session, first));
    REFUSED(DMT_ONE(ARG), "slices is -1", dm_relu_backward_sums(c->session, -1, t.f, t.f, same, 0, t.row));
    DMT_OK(c, dm_array_destroy(c->session, same));
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_relu_sums(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "relu_sums", .cases = 500, .fn = relu_case});
    dmt_run(&(dmt_suite){.name = "relu_sums_views", .cases = 80, .fn = view_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_relu_sums), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
