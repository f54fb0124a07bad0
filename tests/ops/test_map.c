/* map: random expressions of arrays in random layouts, against an evaluator of its own that computes one
 * element at a time; refusals; plans that are kept; results in new arrays. */
#include "support/oracle.h"
#include "support/refusal.h"
#include "support/tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void map_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], own[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    dm_dtype dtype, to;
    do {
        dtype = dmt_dtype_random(c);
    } while (dtype == DM_BOOL); /* whose arithmetic is another */
    to = dmt_chance(&c->random, 60) ? dtype : dmt_dtype_random(c);
    dmt_tree t = dmt_tree_random(c, dtype);
    dmt_host *value[DMT_TREE_ARRAYS];
    dmt_operand *x[DMT_TREE_ARRAYS], *out = NULL;
    dm_map_arg args[DMT_TREE_ARRAYS + 2];
    dmt_say(c, "\n    %s", t.text);
    for (int i = 0; i < t.arrays; i++) {
        bool full = dmt_chance(&c->random, 60);
        int n = full ? ndim : dmt_shape_narrowed(c, ndim, shape, own);
        value[i] = dmt_host_for_ewise(c, dtype, n, full ? shape : own);
        x[i] = dmt_operand_make(c, i == 0 ? "x0" : i == 1 ? "x1" : "x2", value[i], 0);
        bool same = full || (n == ndim && memcmp(own, shape, (size_t)n * sizeof *own) == 0);
        if (same && to == dtype && !out && dmt_chance(&c->random, 40)) { /* in place */
            out = x[i];
        }
    }
    dmt_host *like = dmt_host_for_ewise(c, to, ndim, shape);
    bool in_place = out != NULL;
    out = in_place ? out : dmt_operand_make(c, "out", like, DMT_UNSET);
    int count = dmt_tree_arguments(&t, x, args);
    dmt_status_is(c, dm_map(c->session, t.text, count, args, out->array), DM_OK, "dm_map");
    dmt_host *want = dmt_host_make(&c->scratch, to, ndim, shape);
    dm_dtype result = dmt_is_float(dtype) ? t.carrier : dtype;
    for (int64_t i = 0; i < want->count; i++) {
        want->v[i] = dmt_convert(result, to, dmt_tree_value(&t, value, want, i));
    }
    dmt_operand_check(c, out, want, NULL);
    for (int i = 0; i < t.arrays; i++) {
        if (x[i] != out) {
            dmt_operand_unchanged(c, x[i]);
        }
    }
}

static void overlap_case(dmt_case *c)
{
    dmt_shifted s = dmt_shifted_make(c, DM_F64, dmt_int(&c->random, -1, 3), dmt_int(&c->random, -1, 2));
    dmt_expected e = dmt_expect_scale(c, 2, s.first_value, s.second_value);
    dm_status status = dm_map(c->session, "x + x", 1, (dm_map_arg[]){DM_ARG("x", s.first)}, s.second);
    dmt_shifted_check(c, &s, status, e, "dm_map of overlapping views");
}

static void test_map(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map", .cases = 1500, .fn = map_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_overlap", .cases = 90, .fn = overlap_case});
}

/* The master plans too: for admission under a limit, and to explain. */
static void test_limit(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_limit", .cases = 60, .fn = map_case, .options = "memory_limit=200M"});
}

static void explained(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    char *text = NULL;
    dm_map_arg args[] = {DM_ARG("x", t.f), DM_ARG("y", t.row)};
    DMT_OK(c, dm_explain_begin(c->session));
    DMT_OK(c, dm_map(c->session, "x * y + 1", 2, args, t.g));
    DMT_OK(c, dm_explain_end(c->session, &text));
    if (!strstr(text, "map") || !strstr(text, "operand y: ") || !strstr(text, "operand out: ")) {
        dmt_fail(c, "explained as %s", text);
    }
    free(text);
    dmt_things_end(c, &t); /* nothing was done */
}
DMT_ONE_CASE(explained)

/* --- refusals */
static void refusals(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_map_arg x[] = {DM_ARG("x", t.f)}, both[] = {DM_ARG("x", t.f), DM_ARG("w", t.wide)},
               none[] = {DM_ARG("x", DM_NO_ARRAY)}, wide[] = {DM_ARG("w", t.wide)},
               kind[] = {{"x", t.f, 7, 0, 0}}, nameless[] = {DM_ARG(NULL, t.f)},
               twice[] = {DM_ARG("x", t.f), DM_NUMBER("x", 1)}, many[12];
    dm_array made = DM_NO_ARRAY;
    for (int i = 0; i < 12; i++) {
        many[i] = (dm_map_arg)DM_ARG("x", t.f);
    }
    REFUSED(DMT_ONE(ARG), "expression", dm_map(s, NULL, 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "args", dm_map(s, "x", 1, NULL, t.g));
    REFUSED(DMT_ONE(ARG), "count", dm_map(s, "x", -1, x, t.g));
    REFUSED(DMT_ONE(ARG), "11", dm_map(s, "x", 12, many, t.g));
    REFUSED(DMT_ONE(ARG), "kind", dm_map(s, "x", 1, kind, t.g));
    REFUSED(DMT_ONE(ARG), "NULL", dm_map(s, "x", 1, nameless, t.g));
    REFUSED(DMT_ONE(ARG), "twice", dm_map(s, "x", 2, twice, t.g));
    REFUSED(DMT_ONE(HANDLE), "x", dm_map(s, "x", 1, none, t.g));
    REFUSED(DMT_ONE(HANDLE), "out", dm_map(s, "x", 1, x, DM_NO_ARRAY));
    REFUSED(DMT_ONE(ARG), "w", dm_map(s, "x", 2, both, t.g));
    REFUSED(DMT_ONE(ARG), "y", dm_map(s, "x + y", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "column", dm_map(s, "x +", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "x", dm_map(s, "x = 2 * x", 1, x, t.g)); /* x is not g */
    REFUSED(DMT_ONE(SHAPE), "w", dm_map(s, "2 * w", 1, wide, t.g));
    REFUSED(DMT_ONE(SHAPE), "x", dm_map(s, "2 * x", 1, x, t.row));
    REFUSED(DMT_ONE(SHAPE), "w", dm_map_new(s, "x + w", 2, both, NULL, &made));
    REFUSED(DMT_ONE(DTYPE), "bitwise_and", dm_map(s, "x & 1", 1, x, t.g));
    REFUSED(DMT_ONE(UNSUPPORTED), "sum", dm_map(s, "sum(x) + 1", 1, x, t.g));
    char places[400] = "x"; /* dims from the front and from the back are different ones */
    for (int d = -8; d < 8; d++) {
        snprintf(places + strlen(places), sizeof places - strlen(places), " + index(%d)", d);
    }
    REFUSED(DMT_ONE(ARG), "indices of more than", dm_map(s, places, 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "seed", dm_map(s, "uniform(x)", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "out", dm_map_new(s, "x", 1, x, NULL, NULL));
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

/* --- plans are kept for other numbers, and not for other texts */
static int64_t plans_of(dmt_case *c)
{
    dm_counters n = {.size = sizeof n};
    DMT_OK(c, dm_counters_get(c->session, 0, &n));
    return n.plans_made;
}

static void plans(dmt_case *c)
{
    const int64_t shape[] = {40, 3};
    dm_array x, y;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &y));
    DMT_OK(c, dm_fill_arange(c->session, x, 0, 1));
    int64_t before = 0;
    for (int i = 0; i < 5; i++) {
        dm_map_arg args[] = {DM_ARG("x", x), DM_NUMBER("a", i), DM_NUMBER("b", i % 2)};
        DMT_OK(c, dm_map(c->session, "a * x + (b + 2 * a) - x ** b", 3, args, y));
        before = i == 0 ? plans_of(c) : before;
    }
    if (plans_of(c) != before) {
        dmt_fail(c, "other numbers made %d plans", (int)(plans_of(c) - before));
    }
    DMT_OK(c, dm_map(c->session, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, y));
    DMT_OK(c, dm_map(c->session, "x - 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, y));
    if (plans_of(c) != before + 2) {
        dmt_fail(c, "two texts made %d plans", (int)(plans_of(c) - before));
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}
DMT_ONE_CASE(plans)

/* --- results in new arrays */
static void new_array(dmt_case *c, const char *text, dm_array x, dm_array y, dm_dtype dtype, int64_t rows,
                      int64_t cols)
{
    dm_array made;
    dm_array_info info = {.size = sizeof info};
    dm_map_arg args[2] = {DM_ARG("x", x), DM_ARG("y", y)};
    DMT_OK(c, dm_map_new(c->session, text, y.id ? 2 : 1, args, NULL, &made));
    DMT_OK(c, dm_array_query(c->session, made, &info));
    if (info.dtype != dtype || info.ndim != 2 || info.shape[0] != rows || info.shape[1] != cols) {
        dmt_fail(c, "%s: %s, %d dims, %d x %d", text, dm_dtype_name(info.dtype), info.ndim, (int)info.shape[0],
                 (int)info.shape[1]);
    }
    DMT_OK(c, dm_array_destroy(c->session, made));
}

static void new_arrays(dmt_case *c)
{
    dmt_things t = dmt_things_make(c);
    const int64_t down[] = {6, 1}, square[] = {30, 30};
    dm_array column = dmt_thing_make(c, DM_F64, 2, down), x, made;
    new_array(c, "2 * x", t.f, DM_NO_ARRAY, DM_F32, 6, 5);
    new_array(c, "x > 2", t.f, DM_NO_ARRAY, DM_BOOL, 6, 5);
    new_array(c, "x / 2", t.whole, DM_NO_ARRAY, DM_F64, 6, 5);
    new_array(c, "x + y", t.row, column, DM_F64, 6, 5);
    new_array(c, "x + y", t.byte, t.whole, DM_I32, 6, 5);
    /* Where an array has the result's shape, its layout is the result's: nothing moves. */
    dm_layout cols = dm_layout_cols(c->session);
    dm_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, square, &cols, &x));
    DMT_OK(c, dm_fill(c->session, x, 3));
    DMT_OK(c, dm_counters_get(c->session, 0, &before));
    DMT_OK(c, dm_map_new(c->session, "x * x + 1", 1, (dm_map_arg[]){DM_ARG("x", x)}, NULL, &made));
    DMT_OK(c, dm_counters_get(c->session, 0, &after));
    if (after.bytes_sent != before.bytes_sent) {
        dmt_fail(c, "a result in its operand's layout made workers send bytes");
    }
    /* Another layout on demand; an expression without arrays is a scalar. */
    dm_array other, scalar;
    double value = 0;
    DMT_OK(c, dm_map_new(c->session, "made = x", 1, (dm_map_arg[]){DM_ARG("x", made)},
                         &(dm_layout){.size = sizeof(dm_layout), .kind = 2}, &other));
    DMT_OK(c, dm_map_new(c->session, "2 * a", 1, (dm_map_arg[]){DM_NUMBER("a", 1.5)}, NULL, &scalar));
    DMT_OK(c, dm_array_read(c->session, scalar, NULL, NULL, &value, 0));
    dmt_host *got = dmt_read(c, other, DM_F32, 2, square);
    for (int64_t i = 0; i < got->count; i++) {
        if (got->v[i] != 10 || value != 3) {
            dmt_fail(c, "element %d is %Lg, the scalar %g", (int)i, got->v[i], value);
        }
    }
    DMT_OK(c, dm_map(c->session, "7", 0, NULL, x)); /* fills */
    dmt_host *filled = dmt_read(c, x, DM_F32, 2, square);
    if (filled->count != 900 || filled->v[899] != 7) {
        dmt_fail(c, "an expression of a number alone does not fill");
    }
    dm_array all[] = {x, made, other, scalar};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(c->session, all[i]));
    }
    dmt_thing_end(c, column, DM_F64, 2, down);
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(new_arrays)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),        cmocka_unit_test(test_overlap),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_explained),  cmocka_unit_test(test_refusals), cmocka_unit_test(test_plans),
        cmocka_unit_test(test_new_arrays),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
