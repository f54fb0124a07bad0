/* A step of gradient descent with a rounded copy: to the bit against the step without, and a copy of its
 * weights */
#include "support/cases.h"
#include "support/refusal.h"

enum { GRADIENT, HISTORY, WEIGHTS, COPY, ARRAYS };

/* A view of a new array in this layout, of zeros around it; *base: what to destroy. */
static dm_array make(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, const dm_layout *layout,
                     bool view, dm_array *base)
{
    int64_t whole[DM_MAX_DIMS], lo[DM_MAX_DIMS], step[DM_MAX_DIMS];
    dm_array out;
    for (int d = 0; d < ndim; d++) {
        step[d] = view ? 1 + (d == ndim - 1) : 1;
        lo[d] = view;
        whole[d] = lo[d] + shape[d] * step[d] + view;
    }
    DMT_OK(c, dm_array_create(c->session, dtype, ndim, whole, layout, base));
    DMT_OK(c, dm_fill(c->session, *base, 3));
    DMT_OK(c, dm_array_slice(c->session, *base, lo, shape, step, &out));
    return out;
}

static bool same(dmt_case *c, dm_array a, dm_array b, dm_dtype dtype, int ndim, const int64_t *shape,
                 char text[400])
{
    dmt_host *bound = dmt_host_make(&c->scratch, DM_F64, ndim, shape);
    return dmt_host_within(dmt_read(c, a, dtype, ndim, shape), dmt_read(c, b, dtype, ndim, shape), bound, text,
                           400);
}

static void rounded_case(dmt_case *c)
{
    static const char *const names[ARRAYS] = {"gradient", "history", "weights", "copy"};
    dmt_random *r = &c->random;
    dm_session *s = c->session;
    int64_t shape[DM_MAX_DIMS], whole[DM_MAX_DIMS];
    char text[400];
    const int ndim = (int)dmt_int(r, 1, 3), l1 = dmt_chance(r, 30);
    const bool view = dmt_chance(r, 40), element = dmt_chance(r, 50);
    const dm_dtype half = dmt_chance(r, 50) ? DM_F16 : DM_BF16;
    const double decay = dmt_chance(r, 70) ? 0.0005 : 0;
    dm_array base[2 * ARRAYS], a[2 * ARRAYS], rates = DM_NO_ARRAY, wide;
    dmt_layout l, own; /* own: of the gradient */
    dmt_shape_random(c, ndim, 60, shape);
    for (int d = 0; d < ndim; d++) {
        whole[d] = shape[d] * (view && d == ndim - 1 ? 2 : 1) + 2 * view;
    }
    dmt_layout_random(&l, &c->scratch, r, s, ndim, whole);
    dmt_layout_random(&own, &c->scratch, r, s, ndim, shape);
    dmt_say(c, "\n    %s l1 %d decay %g element %d view %d", dm_dtype_name(half), l1, decay, element, view);
    for (int i = 0; i < 2 * ARRAYS; i++) {
        const int which = i % ARRAYS;
        a[i] = which == GRADIENT ? make(c, DM_F32, ndim, shape, own.use, false, &base[i])
                                 : make(c, which == COPY ? half : DM_F32, ndim, shape, l.use, view, &base[i]);
        DMT_OK(c, dm_fill_normal(s, a[i], 0, 1, (uint64_t)c->number * ARRAYS + (uint64_t)which));
    }
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &rates));
    DMT_OK(c, dm_fill(s, rates, 0.013));
    const dm_factor rate = element ? dm_element(rates) : dm_value(0.013);
    DMT_OK(c, dm_momentum_step(s, 0.3, decay, l1, 0.9, rate, a[GRADIENT], a[HISTORY], a[WEIGHTS]));
    DMT_OK(c, dm_copy(s, a[WEIGHTS], a[COPY]));
    dm_array *b = a + ARRAYS;
    DMT_OK(c, dm_momentum_step_rounded(s, 0.3, decay, l1, 0.9, rate, b[GRADIENT], b[HISTORY], b[WEIGHTS],
                                       b[COPY]));
    for (int i = 0; i < ARRAYS; i++) {
        if (!same(c, b[i], a[i], i == COPY ? half : DM_F32, ndim, shape, text)) {
            dmt_fail(c, "%s: %s", names[i], text);
        }
    }
    /* and what lies around the copy */
    DMT_OK(c, dm_array_like(s, base[COPY], 0, &wide));
    DMT_OK(c, dm_copy(s, base[ARRAYS + COPY], wide));
    if (view && !same(c, wide, base[COPY], half, ndim, whole, text)) {
        dmt_fail(c, "around the copy: %s", text);
    }
    DMT_OK(c, dm_array_destroy(s, wide));
    for (int i = 0; i < 2 * ARRAYS; i++) {
        DMT_OK(c, dm_array_destroy(s, a[i]));
        DMT_OK(c, dm_array_destroy(s, base[i]));
    }
    DMT_OK(c, dm_array_destroy(s, rates));
}

static dm_status of(dmt_case *c, dm_array h, dm_array w, dm_array to)
{
    return dm_momentum_step_rounded(c->session, 1, 0, 0, 0.9, dm_value(1), h, h, w, to);
}

static void refusals(dmt_case *c)
{
    enum { MADE = 9 };
    dm_session *s = c->session;
    const dm_layout single = dm_layout_single(0), rows = dm_layout_rows(s);
    const int64_t shape[] = {9, 5}, other[] = {5, 9};
    dm_array m[MADE];
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &m[0]));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &m[1]));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, shape, &rows, &m[2]));
    DMT_OK(c, dm_array_create(s, DM_BF16, 2, shape, &rows, &m[3]));
    DMT_OK(c, dm_array_create(s, DM_BF16, 2, shape, &single, &m[4]));
    DMT_OK(c, dm_array_create(s, DM_BF16, 2, other, &rows, &m[5]));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &m[6]));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &m[7]));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &m[8]));
    const dm_factor one = dm_value(1);
    REFUSED(DMT_ONE(SHAPE), "rounded is",
            dm_momentum_step_rounded(s, 1, 0, 0, 0.9, one, m[0], m[1], m[2], m[5]));
    REFUSED(DMT_ONE(DTYPE), "rounded", dm_momentum_step_rounded(s, 1, 0, 0, 0.9, one, m[0], m[1], m[2], m[6]));
    REFUSED(DMT_ONE(DTYPE), "must be f32",
            dm_momentum_step_rounded(s, 1, 0, 0, 0.9, one, m[6], m[7], m[8], m[3]));
    REFUSED(DMT_ONE(OVERLAP), "share", of(c, m[0], m[1], m[3]));
    REFUSED(DMT_ONE(SHAPE), "rate",
            dm_momentum_step_rounded(s, 1, 0, 0, 0.9, dm_element(m[0]), m[0], m[1], m[2], m[3]));
    if (dm_workers(s) > 1) {
        REFUSED(DMT_ONE(LAYOUT), "rounded does not lie",
                dm_momentum_step_rounded(s, 1, 0, 0, 0.9, one, m[0], m[1], m[2], m[4]));
    }
    for (int i = 0; i < MADE; i++) {
        DMT_OK(c, dm_array_destroy(s, m[i]));
    }
}
DMT_ONE_CASE(refusals)

static void test_momentum_rounded(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "momentum_rounded", .cases = 300, .fn = rounded_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_momentum_rounded),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
