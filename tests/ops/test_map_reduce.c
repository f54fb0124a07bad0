/* map: reductions of random expressions, into arrays of any type and into new ones, against loops over the elements in
 * long double; refusals; plans that are kept. */
#include "support/answers.h"
#include "support/oracle.h"
#include "support/reduced.h"
#include "support/refusal.h"
#include "support/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A case: expression, its arrays, and the elements that it makes of them. */
typedef struct job {
    dmt_tree tree;
    dmt_host *value[DMT_TREE_ARRAYS], *elements;
    dmt_operand *x[DMT_TREE_ARRAYS];
    dmt_dims dims;
    char text[1500];
} job;

/* Reductions that expressions have. */
static const dmt_reduction *reduction_random(dmt_case *c)
{
    const dmt_reduction *row;
    do {
        row = dmt_reduction_at((int)dmt_int(&c->random, 0, dmt_reductions() - 1));
    } while (strncmp(row->name, "norm", 4) == 0);
    return row;
}

/* What NumPy gives of elements of this type. */
static dm_dtype type_of(const char *name, dm_dtype dtype)
{
    bool whole = !dmt_is_float(dtype), without_sign = whole && dtype != DM_BOOL && dmt_int_min(dtype) == 0;
    if (strcmp(name, "any") == 0 || strcmp(name, "all") == 0) {
        return DM_BOOL;
    }
    if (strncmp(name, "arg", 3) == 0 || strcmp(name, "count_nonzero") == 0) {
        return DM_I64;
    }
    if (!whole || strcmp(name, "min") == 0 || strcmp(name, "max") == 0) {
        return dtype;
    }
    bool adds = strcmp(name, "sum") == 0 || strcmp(name, "prod") == 0;
    return !adds ? DM_F64 : without_sign ? DM_U64 : DM_I64;
}

/* An expression whose elements have a product that is exact. */
static void make_powers(dmt_case *c, dmt_tree *t)
{
    t->nodes = t->arrays = 1;
    t->node[0] = (dmt_tree_node){0};
    t->uses_given[0] = t->uses_given[1] = false;
    strcpy(t->text, dmt_chance(&c->random, 50) ? "x0" : "1 * x0");
}

static void set_powers(dmt_case *c, dmt_host *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = i % 40 == 3 ? 2 : dmt_chance(&c->random, 50) ? -1 : 1;
        h->v[i] = i > 400 && h->v[i] == 2 ? 1 : h->v[i];
    }
}

/* Arrays of the shape, or of what broadcasts to it; the elements have the shape that they have together. */
static void make_arrays(dmt_case *c, job *j, const dmt_reduction *row)
{
    static const char *const names[] = {"x0", "x1", "x2"};
    int64_t shape[DM_MAX_DIMS], joined[DM_MAX_DIMS], own[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3), most = 0;
    dmt_shape_random(c, ndim, 2000, shape);
    for (int i = 0; i < j->tree.arrays; i++) {
        bool full = dmt_chance(&c->random, 60);
        int n = full ? ndim : dmt_shape_narrowed(c, ndim, shape, own);
        j->value[i] = dmt_host_for_ewise(c, j->tree.dtype, n, full ? shape : own);
        for (int64_t k = 0; k < j->value[i]->count && row->flags & DMT_INEXACT; k++) {
            long double *v = &j->value[i]->v[k];
            *v = isinf(*v) && dmt_chance(&c->random, 90) ? 0 : *v;
        }
        if (row->flags & DMT_POWERS && dmt_is_float(j->tree.dtype)) {
            set_powers(c, j->value[i]);
        }
        most = n > most ? n : most;
        j->x[i] = dmt_operand_make(c, names[i], j->value[i], 0);
    }
    for (int d = 0; d < most; d++) {
        joined[d] = 1;
        for (int i = 0; i < j->tree.arrays; i++) {
            int at = d - (most - j->value[i]->ndim);
            joined[d] = at >= 0 && j->value[i]->shape[at] != 1 ? j->value[i]->shape[at] : joined[d];
        }
    }
    dm_dtype dtype = dmt_is_float(j->tree.dtype) ? j->tree.carrier : j->tree.dtype;
    j->elements = dmt_host_make(&c->scratch, dtype, most, joined);
    for (int64_t i = 0; i < j->elements->count; i++) {
        j->elements->v[i] = dmt_tree_value(&j->tree, j->value, j->elements, i);
    }
}

static void write_text(dmt_case *c, job *j, const char *name)
{
    int ndim = j->elements->ndim;
    int n = snprintf(j->text, sizeof j->text, "%s%s(%s", dmt_chance(&c->random, 30) ? "out = " : "", name, j->tree.text);
    for (int i = 0; i < j->dims.ndims; i++) {
        int d = j->dims.dims[i];
        n += snprintf(j->text + n, sizeof j->text - (size_t)n, ", %d", dmt_chance(&c->random, 40) ? d - ndim : d);
    }
    snprintf(j->text + n, sizeof j->text - (size_t)n, ")");
    dmt_say(c, "\n    %s", j->text);
}

/* Fills want and bound. False: some result has no elements, which the row refuses. */
static bool answer(dmt_case *c, const job *j, const dmt_reduction *row, dmt_host *want, dmt_host *bound)
{
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, j->elements, &j->dims, i, &n);
        if (n == 0 && row->flags & DMT_NEEDS_ELEMENTS) {
            return false;
        }
        dmt_answer a = row->value(j->elements->dtype, v, n);
        bool whole = a.whole && !dmt_is_float(want->dtype);
        want->v[i] = whole ? dmt_from_whole(want->dtype, (int64_t)dmt_wrapped(a.value)) : a.value;
        bound->v[i] = isfinite(a.value) ? a.bound : 0;
    }
    return true;
}

static job job_random(dmt_case *c, const dmt_reduction *row)
{
    job j;
    dm_dtype dtype;
    do {
        dtype = dmt_dtype_random(c);
    } while (dtype == DM_BOOL); /* whose arithmetic is another */
    j.tree = dmt_tree_random(c, dtype);
    if (row->flags & DMT_POWERS && dmt_is_float(dtype)) {
        make_powers(c, &j.tree);
    }
    make_arrays(c, &j, row);
    dmt_dims_random(c, j.elements, &j.dims);
    write_text(c, &j, row->name);
    return j;
}

/* Inexact results go to floats. A bound that is large has no number in f8e4m3. */
static dm_dtype out_type(dmt_case *c, const dmt_reduction *row, dm_dtype dtype)
{
    dm_dtype to = dmt_chance(&c->random, 50) ? dtype : dmt_dtype_random(c);
    bool inexact = row->flags & DMT_INEXACT && (strcmp(row->name, "sum") != 0 || dmt_is_float(dtype));
    return inexact && (!dmt_is_float(to) || to == DM_F8E4M3) ? dmt_float_random(c) : to;
}

static void reduce_case(dmt_case *c)
{
    const dmt_reduction *row = reduction_random(c);
    job j = job_random(c, row);
    dm_dtype to = out_type(c, row, j.tree.dtype);
    dmt_host *want = dmt_reduced_make(c, j.elements, &j.dims, to), *bound = dmt_host_copy(&c->scratch, want);
    bool fine = answer(c, &j, row, want, bound);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dm_map_arg args[DMT_TREE_ARRAYS + 2];
    int count = dmt_tree_arguments(&j.tree, j.x, args);
    dm_status status = dm_map(c->session, j.text, count, args, out->array);
    dmt_status_is(c, status, fine ? DM_OK : DM_ERR_SHAPE, "dm_map");
    if (fine) {
        dmt_operand_check(c, out, want, bound);
    }
    for (int i = 0; i < j.tree.arrays; i++) {
        dmt_operand_unchanged(c, j.x[i]);
    }
}

static void new_case(dmt_case *c)
{
    const dmt_reduction *row = reduction_random(c);
    job j = job_random(c, row);
    int64_t shape[DM_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < j.elements->ndim; d++) {
        if (!j.dims.reduced[d]) {
            shape[ndim++] = j.elements->shape[d];
        }
    }
    dmt_host *want = dmt_host_make(&c->scratch, type_of(row->name, j.tree.dtype), ndim, shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    bool fine = answer(c, &j, row, want, bound);
    dm_map_arg args[DMT_TREE_ARRAYS + 2];
    int count = dmt_tree_arguments(&j.tree, j.x, args);
    dm_array made = DM_NO_ARRAY;
    dm_array_info info = {.size = sizeof info};
    dmt_status_is(c, dm_map_new(c->session, j.text, count, args, NULL, &made), fine ? DM_OK : DM_ERR_SHAPE, "dm_map_new");
    if (!fine) {
        return;
    }
    DMT_OK(c, dm_array_query(c->session, made, &info));
    if (info.dtype != want->dtype || info.ndim != ndim || memcmp(info.shape, shape, (size_t)ndim * sizeof *shape) != 0) {
        dmt_fail(c, "the result is %s with %d dims, not %s with %d", dm_dtype_name(info.dtype), info.ndim,
                 dm_dtype_name(want->dtype), ndim);
    }
    char text[400];
    if (!dmt_host_within(dmt_read(c, made, want->dtype, ndim, shape), want, bound, text, sizeof text)) {
        dmt_fail(c, "the result: %s", text);
    }
    DMT_OK(c, dm_array_destroy(c->session, made));
}

static void test_reduce(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_reduce", .cases = 3000, .fn = reduce_case});
}

static void test_new(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_reduce_new", .cases = 800, .fn = new_case});
}

static void test_limit(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_reduce_limit", .cases = 60, .fn = reduce_case, .options = "memory_limit=200M"});
}

/* --- refusals */
static void refusals(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t row[] = {5}, cell[] = {1, 1};
    dm_array whole = dmt_thing_make(c, DM_I32, 1, row), one = dmt_thing_make(c, DM_F32, 2, cell), made = DM_NO_ARRAY;
    /* four along as many dims: together too many elements, though each is small */
    enum { LONG = 1 << 16 };
    dm_array apart[4], total = dmt_thing_make(c, DM_U64, 0, row);
    dm_map_arg four[4];
    for (int i = 0; i < 4; i++) {
        int64_t shape[4] = {1, 1, 1, 1};
        shape[i] = LONG;
        DMT_OK(c, dm_array_create(s, DM_U8, 4, shape, NULL, &apart[i]));
        four[i] = (dm_map_arg){.name = (const char *[]){"a", "b", "c", "d"}[i], .array = apart[i]};
    }
    REFUSED(DMT_ONE(SHAPE), "is too large", dm_map(s, "sum(a + b + c + d)", 4, four, total));
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, apart[i]));
    }
    DMT_OK(c, dm_array_destroy(s, total));
    dm_map_arg x[] = {DM_ARG("x", t.f)}, both[] = {DM_ARG("x", t.f), DM_ARG("w", t.wide)},
               across[] = {DM_ARG("x", t.f), DM_ARG("r", t.row)}, own[] = {DM_ARG("one", one)};
    REFUSED(DMT_ONE(SHAPE), "the elements are 6x5, and scalar without the reduced dims; out is",
            dm_map(s, "sum(2 * x)", 1, x, t.g));
    REFUSED(DMT_ONE(SHAPE), "x is 6x5, and 5 without", dm_sum_dim(s, t.f, 0, t.g));
    REFUSED(DMT_ONE(SHAPE), "x is 6x5", dm_map(s, "sum(x, 0)", 1, x, t.g));
    REFUSED(DMT_ONE(SHAPE), "w", dm_map(s, "sum(x + w)", 2, both, t.row));
    REFUSED(DMT_ONE(ARG), "the elements have 2 dims (column 12)", dm_map(s, "sum(2 * x, 2)", 1, x, t.row));
    REFUSED(DMT_ONE(ARG), "twice (column 11)", dm_map_new(s, "sum(x, 0, -2)", 1, x, NULL, &made));
    REFUSED(DMT_ONE(ARG), "x", dm_map(s, "x = sum(2 * x, 0)", 1, x, t.row)); /* x is not row */
    REFUSED(DMT_ONE(ARG), "r", dm_map(s, "sum(x, 0)", 2, across, whole));
    REFUSED(DMT_ONE(DTYPE), "floating-point", dm_map(s, "mean(2 * x, 0)", 1, x, whole));
    REFUSED(DMT_ONE(OVERLAP), "r", dm_map(s, "sum(x * r, 0)", 2, across, t.row));
    REFUSED(DMT_ONE(OVERLAP), "one", dm_map(s, "one = sum(one, 0)", 1, own, one));
    REFUSED(DMT_ONE(HANDLE), "out", dm_map(s, "sum(x)", 1, x, DM_NO_ARRAY));
    if (made.id != DM_NO_ARRAY.id) {
        dmt_fail(c, "a refused call made an array");
    }
    dmt_thing_end(c, whole, DM_I32, 1, row);
    dmt_thing_end(c, one, DM_F32, 2, cell);
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

/* --- plans are kept for other numbers; a program may take all of them, and the scale one more */
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
    char text[400] = "mean(x";
    double got = 0, numbers = 0;
    int64_t before = 0;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &y));
    DMT_OK(c, dm_fill_arange(c->session, x, 0, 1));
    for (int i = 0; i < 15; i++) { /* and `a` below is the 16th */
        sprintf(text + strlen(text), " - %d", 1 << i);
        numbers += 1 << i;
    }
    strcat(text, " + 1 * a)");
    for (int i = 0; i < 5; i++) {
        dm_map_arg args[] = {DM_ARG("x", x), DM_NUMBER("a", i)};
        DMT_OK(c, dm_map(c->session, text, 2, args, y));
        DMT_OK(c, dm_array_read(c->session, y, NULL, NULL, &got, 0));
        before = i == 0 ? plans_of(c) : before;
        if (fabs(got - (59.5 - numbers + i)) > 1e-9) {
            dmt_fail(c, "the mean with %d is %g, not %g", i, got, 59.5 - numbers + i);
        }
    }
    if (plans_of(c) != before) {
        dmt_fail(c, "other numbers made %d plans", (int)(plans_of(c) - before));
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}
DMT_ONE_CASE(plans)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),   cmocka_unit_test(test_new),   cmocka_unit_test(test_limit),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_plans),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
