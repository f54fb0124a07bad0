/* Views with steps: of views, between all kinds of layouts, and what is refused. Every other test of an
 * operation has them too. */
#include "support/cases.h"

#include <string.h>

/* A slice of a slice, or of a rectangle, is one slice. */
static void nested_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], start[DM_MAX_DIMS], by[DM_MAX_DIMS], part[DM_MAX_DIMS], at[DM_MAX_DIMS],
        index[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 1, 3), levels = (int)dmt_int(&c->random, 1, 3), worker;
    char text[400];
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    dmt_operand *x = dmt_operand_make(c, "x", h, DMT_NO_VIEW);
    dm_array view[3], of = x->array;
    for (int d = 0; d < ndim; d++) {
        start[d] = 0;
        by[d] = 1;
        part[d] = shape[d];
    }
    for (int i = 0; i < levels; i++) {
        int64_t lo[DM_MAX_DIMS], step[DM_MAX_DIMS];
        bool rectangle = dmt_chance(&c->random, 30);
        for (int d = 0; d < ndim; d++) {
            step[d] = rectangle ? 1 : dmt_int(&c->random, 1, 4);
            lo[d] = dmt_int(&c->random, 0, part[d]);
            part[d] = dmt_int(&c->random, 0, (part[d] - lo[d] + step[d] - 1) / step[d]);
            start[d] += lo[d] * by[d];
            by[d] *= step[d];
        }
        if (rectangle) {
            DMT_OK(c, dm_array_view(c->session, of, lo, part, &view[i]));
        } else {
            DMT_OK(c, dm_array_slice(c->session, of, lo, part, step, &view[i]));
        }
        of = view[i];
    }
    dmt_host *want = dmt_host_make(&c->scratch, h->dtype, ndim, part),
             *got = dmt_read(c, of, h->dtype, ndim, part);
    for (int64_t i = 0; i < want->count; i++) {
        for (int d = 0; d < ndim; d++) {
            at[d] = start[d] + index[d] * by[d];
        }
        want->v[i] = h->v[dmt_linear(ndim, shape, at)];
        if (i == 0) {
            int owner;
            DMT_OK(c, dm_array_owner(c->session, of, index, &worker));
            DMT_OK(c, dm_array_owner(c->session, x->array, at, &owner));
            if (owner != worker) {
                dmt_fail(c, "the first element is at worker %d, not %d", worker, owner);
            }
        }
        dmt_next(ndim, part, index);
    }
    if (!dmt_host_same(got, want, text, sizeof text)) {
        dmt_fail(c, "%d levels: %s", levels, text);
    }
    for (int i = 0; i < levels; i++) {
        DMT_OK(c, dm_array_destroy(c->session, view[i]));
    }
}

/* Case k: every second, third, ... of an array of layout kind k / KINDS to as many of one of kind k % KINDS. */
static void pair_case(dmt_case *c)
{
    int64_t shape[2] = {23, 31}, lo[2], step[2], part[2] = {7, 8}, to_lo[2], to_step[2];
    dmt_layout a, b;
    dmt_layout_kind(&a, &c->scratch, c->session, 2, shape, (int)(c->number / DMT_KINDS));
    dmt_layout_kind(&b, &c->scratch, c->session, 2, shape, (int)(c->number % DMT_KINDS));
    dmt_host *h = dmt_host_make(&c->scratch, DM_I32, 2, shape),
             *want = dmt_host_make(&c->scratch, DM_I32, 2, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    dmt_host_random(want, &c->random, DMT_WILD);
    dmt_operand *src = dmt_operand_plain(c, "src", h, a.use, a.text),
                *dst = dmt_operand_plain(c, "dst", want, b.use, b.text);
    for (int d = 0; d < 2; d++) {
        step[d] = dmt_int(&c->random, 1, 3);
        to_step[d] = dmt_int(&c->random, 1, 3);
        lo[d] = dmt_int(&c->random, 0, 1);
        to_lo[d] = dmt_int(&c->random, 0, 1);
    }
    for (int64_t i = 0; i < part[0] * part[1]; i++) {
        int64_t from[2] = {lo[0] + i / part[1] * step[0], lo[1] + i % part[1] * step[1]};
        int64_t to[2] = {to_lo[0] + i / part[1] * to_step[0], to_lo[1] + i % part[1] * to_step[1]};
        want->v[dmt_linear(2, shape, to)] = h->v[dmt_linear(2, shape, from)];
    }
    dm_array x, y;
    DMT_OK(c, dm_array_slice(c->session, src->array, lo, part, step, &x));
    DMT_OK(c, dm_array_slice(c->session, dst->array, to_lo, part, to_step, &y));
    DMT_OK(c, dm_copy(c->session, x, y));
    dst->base_value = want; /* the whole array has changed */
    dmt_operand_check_same(c, dst, want);
    dmt_operand_unchanged(c, src);
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}

static void error_case(dmt_case *c)
{
    int64_t shape[1] = {10};
    dmt_host *h = dmt_host_make(&c->scratch, DM_F32, 1, shape);
    dmt_operand *x = dmt_operand_make(c, "x", h, DMT_NO_VIEW);
    const struct {
        int64_t lo, extent, step;
        bool fine;
    } tries[] = {{0, 5, 2, true},   {1, 5, 2, true},   {2, 5, 2, false},   {0, 10, 1, true},
                 {0, 11, 1, false}, {10, 0, 3, true},  {10, 1, 1, false},  {0, 1, 0, false},
                 {-1, 1, 1, false}, {0, -1, 1, false}, {9, 1, 1000, true}, {0, 2, INT64_MAX, false}};
    for (int i = 0; i < (int)(sizeof tries / sizeof *tries); i++) {
        dm_array view = DM_NO_ARRAY;
        dm_status status =
            dm_array_slice(c->session, x->array, &tries[i].lo, &tries[i].extent, &tries[i].step, &view);
        if ((status == DM_OK) != tries[i].fine || (status != DM_OK && status != DM_ERR_ARG)) {
            dmt_fail(c, "try %d gave %s", i, dm_status_name(status));
        }
        DMT_OK(c, dm_array_destroy(c->session, view));
    }
    dm_array even, odd, third;
    DMT_OK(c, dm_array_slice(c->session, x->array, (int64_t[]){0}, (int64_t[]){5}, (int64_t[]){2}, &even));
    DMT_OK(c, dm_array_slice(c->session, x->array, (int64_t[]){1}, (int64_t[]){5}, (int64_t[]){2}, &odd));
    DMT_OK(c, dm_array_slice(c->session, x->array, (int64_t[]){0}, (int64_t[]){4}, (int64_t[]){3}, &third));
    DMT_OK(c, dm_copy(c->session, even, odd)); /* they share no element */
    dm_array four;
    DMT_OK(c, dm_array_view(c->session, even, (int64_t[]){0}, (int64_t[]){4}, &four));
    DMT_REFUSED(c, DM_ERR_OVERLAP, dm_copy(c->session, third, four));
    DMT_OK(c, dm_sync(c->session));
    dm_array all[] = {even, odd, third, four};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(c->session, all[i]));
    }
}

static void test_nested(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "nested slices", .cases = 500, .fn = nested_case});
}

static void test_pairs(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "slice pairs",
                         .cases = dmt_sweep_count((int64_t)DMT_KINDS * DMT_KINDS),
                         .fn = pair_case,
                         .each = true});
}

static void test_slice_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "slice errors", .cases = 10, .fn = error_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nested), cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_slice_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
