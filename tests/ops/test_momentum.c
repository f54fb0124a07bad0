/* A step of gradient descent with momentum: against loops */
#include "support/cases.h"
#include "support/refusal.h"

#include <math.h>
#include <string.h>

enum { GRADIENT, HISTORY, WEIGHTS };

/* An array or a view of one in the layout of `like` (0: a random one), with these elements; *base: what to
 * destroy. */
static dm_array make(dmt_case *c, const dmt_host *value, const dm_layout *layout, bool view, dm_array *base)
{
    int64_t whole[DM_MAX_DIMS], lo[DM_MAX_DIMS], step[DM_MAX_DIMS];
    dm_array from, out;
    for (int d = 0; d < value->ndim; d++) {
        step[d] = view ? 1 + (d == value->ndim - 1) : 1;
        lo[d] = view;
        whole[d] = lo[d] + value->shape[d] * step[d] + view;
    }
    dmt_operand *given = dmt_operand_plain(c, "given", value, NULL, "default");
    DMT_OK(c, dm_array_create(c->session, value->dtype, value->ndim, whole, layout, base));
    DMT_OK(c, dm_fill(c->session, *base, 3));
    DMT_OK(c, dm_array_slice(c->session, *base, lo, value->shape, step, &out));
    from = given->array;
    DMT_OK(c, dm_copy(c->session, from, out));
    return out;
}

static void step_case(dmt_case *c)
{
    dmt_random *r = &c->random;
    int64_t shape[DM_MAX_DIMS];
    dmt_host *host[3], *want[2], *bound[2];
    const int ndim = (int)dmt_int(r, 1, 3);
    const dm_dtype dtype = dmt_chance(r, 70) ? DM_F32 : DM_F64;
    const bool l1 = dmt_chance(r, 30), decays = dmt_chance(r, 70), element = dmt_chance(r, 50),
               view = dmt_chance(r, 40);
    const double scale = dmt_chance(r, 30) ? 1 : 0.5, decay = decays ? 0.125 : 0, momentum = 0.875,
                 rate = 0.0625;
    dmt_shape_random(c, ndim, 40, shape);
    for (int i = 0; i < 3; i++) {
        host[i] = dmt_host_make(&c->scratch, dtype, ndim, shape);
        dmt_host_random(host[i], r, DMT_SMOOTH);
    }
    for (int i = 0; i < 2; i++) {
        want[i] = dmt_host_make(&c->scratch, dtype, ndim, shape);
        bound[i] = dmt_host_make(&c->scratch, DM_F64, ndim, shape);
    }
    for (int64_t i = 0; i < host[0]->count; i++) {
        const long double g = host[GRADIENT]->v[i], h = host[HISTORY]->v[i], w = host[WEIGHTS]->v[i];
        const long double add = decay * (l1 ? (w > 0) - (w < 0) : w);
        want[0]->v[i] = momentum * h + rate * (scale * g + add);
        want[1]->v[i] = w - want[0]->v[i];
        bound[0]->v[i] = 4 * dmt_eps(dtype) * (fabsl(h) + fabsl(g) + fabsl(add));
        bound[1]->v[i] = bound[0]->v[i] + 4 * dmt_eps(dtype) * (fabsl(w) + fabsl(want[0]->v[i]));
    }
    int64_t whole[DM_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        whole[d] = shape[d] * (view && d == ndim - 1 ? 2 : 1) + 2 * view;
    }
    dmt_layout l;
    dmt_layout_random(&l, &c->scratch, r, c->session, ndim, whole);
    dmt_say(c, "\n    %s l1 %d decay %g element %d view %d", dm_dtype_name(dtype), l1, decay, element, view);
    dm_array base[2], kept[2], rates = DM_NO_ARRAY;
    for (int i = 0; i < 2; i++) {
        kept[i] = make(c, host[1 + i], l.use, view, &base[i]);
    }
    if (element) {
        DMT_OK(c, dm_array_create(c->session, dmt_chance(r, 50) ? DM_F32 : DM_F64, 0, NULL, NULL, &rates));
        DMT_OK(c, dm_fill(c->session, rates, rate));
    }
    dmt_operand *g = dmt_operand_make(c, "gradient", host[GRADIENT], 0);
    DMT_OK(c, dm_momentum_step(c->session, scale, decay, l1, momentum,
                               element ? dm_element(rates) : dm_value(rate), g->array, kept[0], kept[1]));
    for (int i = 0; i < 2; i++) {
        char text[400];
        if (!dmt_host_within(dmt_read(c, kept[i], dtype, ndim, shape), want[i], bound[i], text, sizeof text)) {
            dmt_fail(c, "%s: %s", i ? "weights" : "history", text);
        }
    }
    dmt_operand_unchanged(c, g);
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_array_destroy(c->session, kept[i]));
        DMT_OK(c, dm_array_destroy(c->session, base[i]));
    }
    if (element) {
        DMT_OK(c, dm_array_destroy(c->session, rates));
    }
}

/* The numbers of the two expressions, to the bit; many elements, and a decay and rate that round. */
static void expressions_case(dmt_case *c)
{
    const int64_t n = dmt_int(&c->random, 1, 3000);
    dm_session *s = c->session;
    dm_array a[5], one;
    const dm_layout layout = dmt_chance(&c->random, 50) ? dm_layout_replicated(s) : dm_layout_rows(s);
    double apart[2];
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_create(s, DM_F32, 1, &n, &layout, &a[i]));
        DMT_OK(c, dm_fill_normal(s, a[i], 0, 1, (uint64_t)c->number + (i > 2 ? i - 2 : i)));
    }
    const dm_map_arg all[] = {DM_ARG("d", a[0]),    DM_ARG("h", a[1]),      DM_ARG("w", a[2]),
                              DM_NUMBER("c", 0.3),  DM_NUMBER("x", 0.0005), DM_NUMBER("m", 0.9),
                              DM_NUMBER("r", 0.013)};
    DMT_OK(c, dm_momentum_step(s, 0.3, 0.0005, 0, 0.9, dm_value(0.013), a[0], a[3], a[4]));
    DMT_OK(c, dm_map(s, "m * h + r * (c * d + x * w)", 7, all, a[1]));
    DMT_OK(c, dm_map(s, "w - h", 2, all + 1, a[2]));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &one));
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_map(s, "sum(abs(a - b))", 2, (dm_map_arg[]){DM_ARG("a", a[1 + i]), DM_ARG("b", a[3 + i])},
                         one));
        DMT_OK(c, dm_item(s, one, NULL, &apart[i]));
    }
    if (apart[0] != 0 || apart[1] != 0) {
        dmt_fail(c, "history differs by %g, weights by %g", apart[0], apart[1]);
    }
    for (int i = 0; i < 5; i++) {
        DMT_OK(c, dm_array_destroy(s, a[i]));
    }
    DMT_OK(c, dm_array_destroy(s, one));
}

static dm_status of(dmt_case *c, dm_factor rate, dm_array g, dm_array h, dm_array w)
{
    return dm_momentum_step(c->session, 1, 0, 0, 0.9, rate, g, h, w);
}

static void refusals(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    dm_array h, w, wide, apart;
    const dm_layout single = dm_layout_single(0), rows = dm_layout_rows(c->session);
    const int64_t shape[] = {9, 5};
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &h));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &rows, &w));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, &rows, &wide));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, &single, &apart));
    REFUSED(DMT_ONE(SHAPE), "gradient is", of(c, dm_value(1), t.row, h, w));
    REFUSED(DMT_ONE(DTYPE), "history has dtype f64", of(c, dm_value(1), h, wide, w));
    REFUSED(DMT_ONE(OVERLAP), "share", of(c, dm_value(1), w, h, w));
    REFUSED(DMT_ONE(OVERLAP), "share", of(c, dm_value(1), apart, w, w));
    REFUSED(DMT_ONE(SHAPE), "rate", of(c, dm_element(t.f), apart, h, w));
    REFUSED(DMT_ONE(ARG), "rate is no factor", of(c, (dm_factor){0, h, 7, 0}, apart, h, w));
    if (dm_workers(c->session) > 1) {
        REFUSED(DMT_ONE(LAYOUT), "history does not lie", of(c, dm_value(1), h, apart, w));
    }
    dm_array made[] = {h, w, wide, apart};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(c->session, made[i]));
    }
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

static void test_momentum(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "momentum", .cases = 400, .fn = step_case});
    dmt_run(&(dmt_suite){.name = "momentum_expressions", .cases = 60, .fn = expressions_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_momentum), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
