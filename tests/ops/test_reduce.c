/* out = the reduction of x over dims, against loops in long double */
#include "kernels/reduce/reduction.h"
#include "support/answers.h"
#include "support/reduced.h"

#include <math.h>
#include <string.h>

static double correction;

static dm_status call_var(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_var(s, x, dims, ndims, correction, out);
}

static dm_status call_std(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_std(s, x, dims, ndims, correction, out);
}

static dm_status call_norm_1(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 1, dims, ndims, out);
}

static dm_status call_norm_2(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, 2, dims, ndims, out);
}

static dm_status call_norm_inf(dm_session *s, dm_array x, const int *dims, int ndims, dm_array out)
{
    return dm_norm(s, x, (double)INFINITY, dims, ndims, out);
}

static const struct row {
    const char *name;
    dm_status (*call)(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);
} rows[] = {
    {"prod", dm_prod},
    {"min", dm_min},
    {"max", dm_max},
    {"any", dm_any},
    {"all", dm_all},
    {"count_nonzero", dm_count_nonzero},
    {"argmin", dm_argmin},
    {"argmax", dm_argmax},
    {"mean", dm_mean},
    {"logsumexp", dm_logsumexp},
    {"var", call_var},
    {"std", call_std},
    {"norm_1", call_norm_1},
    {"norm_2", call_norm_2},
    {"norm_inf", call_norm_inf},
};

/* Numbers whose product is exact and stays small; now and then one is 0, or not a number. */
static void set_powers(dmt_case *c, dmt_host *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        bool odd = dmt_is_float(h->dtype) && dmt_chance(&c->random, 2);
        h->v[i] = dmt_chance(&c->random, 80) ? 1 : odd ? (dmt_chance(&c->random, 50) ? NAN : 0) : i % 2 == 0 ? 2 : 1;
        h->v[i] *= dmt_is_float(h->dtype) && dmt_chance(&c->random, 50) ? -1 : 1;
        h->v[i] = h->dtype == DM_BOOL ? i % 7 > 0 : dmt_is_float(h->dtype) && i > 400 ? 1 : h->v[i];
    }
}

static void set_elements(dmt_case *c, const dmt_reduction *row, dmt_host *x)
{
    if (row->flags & DMT_POWERS) {
        set_powers(c, x);
        return;
    }
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 25) ? DMT_ODD : dmt_chance(&c->random, 40) ? DMT_SMALL : DMT_SMOOTH);
    for (int64_t i = 0; i < x->count && dmt_is_float(x->dtype) && row->flags & DMT_INEXACT; i++) {
        x->v[i] = isinf(x->v[i]) && dmt_chance(&c->random, 90) ? 0 : x->v[i];
    }
}

static void reduce_case(dmt_case *c)
{
    const struct row *made = &rows[dmt_int(&c->random, 0, (int64_t)(sizeof rows / sizeof rows[0]) - 1)];
    const dmt_reduction *row = dmt_reduction_named(made->name);
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 50) ? from : dmt_dtype_random(c);
    to = row->flags & DMT_INEXACT && !dmt_is_float(to) ? dmt_float_random(c) : to;
    dmt_dims dims;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    set_elements(c, row, x);
    dmt_dims_random(c, x, &dims);
    correction = (double)dmt_int(&c->random, 0, 1);
    dmt_host *want = dmt_reduced_make(c, x, &dims, to), *bound = dmt_host_copy(&c->scratch, want);
    bool empty = false;
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        empty = empty || n == 0;
        if (n == 0 && row->flags & DMT_NEEDS_ELEMENTS) {
            continue;
        }
        dmt_answer a = row->value(from, v, n);
        if (made->call == call_var || made->call == call_std) {
            a = dmt_answer_corrected(a, n, correction, made->call == call_std);
        }
        want->v[i] = a.whole && !dmt_is_float(to) ? dmt_from_whole(to, (int64_t)dmt_wrapped(a.value)) : a.value;
        bound->v[i] = isfinite(a.value) ? a.bound : 0;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say_dims(c, &dims);
    dmt_say(c, ", %s", row->name);
    dm_status status = made->call(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array);
    if (empty && row->flags & DMT_NEEDS_ELEMENTS) {
        dmt_status_is(c, status, DM_ERR_SHAPE, row->name);
        return;
    }
    dmt_status_is(c, status, DM_OK, row->name);
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, in);
}

static void test_reduce(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "reduce", .cases = 6000, .fn = reduce_case});
}

static const struct row onto[] = {
    {"prod", dm_accumulate_prod}, {"min", dm_accumulate_min}, {"max", dm_accumulate_max},
    {"any", dm_accumulate_any},   {"all", dm_accumulate_all}, {"count_nonzero", dm_accumulate_count_nonzero},
};

static bool is_small(dm_dtype dtype)
{
    return dtype == DM_I8 || dtype == DM_U8 || dtype == DM_I16 || dtype == DM_U16;
}

/* A type of out that the result's holds. */
static dm_dtype dtype_onto(dmt_case *c, const char *name, dm_dtype from)
{
    if (strcmp(name, "count_nonzero") == 0) {
        return dmt_chance(&c->random, 50) ? DM_I64 : DM_I32;
    }
    if (name[0] == 'a') { /* any, all */
        return DM_BOOL;
    }
    if (strcmp(name, "prod") == 0) {
        bool without_sign = from == DM_U8 || from == DM_U16 || from == DM_U32 || from == DM_U64;
        return dmt_is_float(from) ? (dmt_chance(&c->random, 50) ? DM_F64 : from)
               : without_sign     ? DM_U64
                                  : DM_I64;
    }
    return is_small(from) && dmt_chance(&c->random, 30) ? DM_I32 : from;
}

/* What out has is one element more. */
static void onto_case(dmt_case *c)
{
    const struct row *made = &onto[dmt_int(&c->random, 0, (int64_t)(sizeof onto / sizeof onto[0]) - 1)];
    const dmt_reduction *row = dmt_reduction_named(made->name);
    const bool counts = strcmp(made->name, "count_nonzero") == 0;
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3);
    dm_dtype from = dmt_dtype_random(c), to = dtype_onto(c, made->name, from);
    dmt_dims dims;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *x = dmt_host_make(&c->scratch, from, ndim, shape);
    set_elements(c, row, x);
    dmt_dims_random(c, x, &dims);
    dmt_host *had = dmt_reduced_make(c, x, &dims, to), *want = dmt_host_copy(&c->scratch, had),
             *bound = dmt_host_copy(&c->scratch, had);
    dmt_host_random(had, &c->random, DMT_SMALL);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        long double *all = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *all);
        if (row->flags & DMT_POWERS) {
            had->v[i] = (long double)dmt_int(&c->random, 1, 2);
        }
        memcpy(all + 1, v, (size_t)n * sizeof *all);
        all[0] = had->v[i];
        dmt_answer a = counts ? row->value(from, v, n) : row->value(from, all, n + 1);
        a.value += counts ? had->v[i] : 0;
        want->v[i] = a.whole && !dmt_is_float(to) ? dmt_from_whole(to, (int64_t)dmt_wrapped(a.value)) : a.value;
        bound->v[i] = isfinite(a.value) ? a.bound : 0;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", had, 0);
    dmt_say_dims(c, &dims);
    dmt_say(c, ", accumulate_%s", row->name);
    DMT_OK(c, made->call(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array));
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, in);
}

static void onto_errors_case(dmt_case *c)
{
    int64_t shape[2] = {4, 5}, n = 4;
    const int dim = 1;
    dm_array x, u, wide, real, part;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_U64, 1, &n, NULL, &u));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 1, &n, NULL, &wide));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 1, &n, NULL, &real));
    const dm_c128 factors[4][2] = {{{1, 1}, {2, -1}}, {{0, 1}, {0, 1}}, {{2, 0}, {3, 0}}, {{1, -1}, {1, -1}}};
    const dm_c128 had[4] = {{3, 0}, {0, 2}, {1, 1}, {1, 0}}, want[4] = {{9, 3}, {0, -2}, {6, 6}, {0, -2}};
    dm_c128 got[4];
    dm_array z, product;
    DMT_OK(c, dm_array_create(c->session, DM_C128, 2, (int64_t[]){4, 2}, NULL, &z));
    DMT_OK(c, dm_array_create(c->session, DM_C128, 1, &n, NULL, &product));
    DMT_OK(c, dm_array_write(c->session, z, NULL, NULL, factors, 0));
    DMT_OK(c, dm_array_write(c->session, product, NULL, NULL, had, 0));
    DMT_OK(c, dm_accumulate_prod(c->session, z, &dim, 1, product));
    DMT_OK(c, dm_array_read(c->session, product, NULL, NULL, got, 0));
    for (int i = 0; i < 4; i++) {
        if (got[i].re != want[i].re || got[i].im != want[i].im) {
            dmt_fail(c, "complex product %d is %g%+gi", i, got[i].re, got[i].im);
        }
    }
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_accumulate_prod(c->session, z, &dim, 1, wide));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_accumulate_prod(c->session, x, &dim, 1, product));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_accumulate_max(c->session, x, &dim, 1, wide));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_accumulate_count_nonzero(c->session, x, &dim, 1, u));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_accumulate_any(c->session, x, &dim, 1, real));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_accumulate_min(c->session, x, NULL, 0, real));
    DMT_OK(c, dm_array_view(c->session, x, (int64_t[]){0, 2}, (int64_t[]){4, 1}, &part));
    DMT_REFUSED(c, DM_ERR_OVERLAP, dm_accumulate_prod(c->session, x, &dim, 1, part));
    dm_array made[] = {part, x, u, wide, real, z, product};
    for (int i = 0; i < 7; i++) {
        DMT_OK(c, dm_array_destroy(c->session, made[i]));
    }
}

static void test_accumulate(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "accumulate", .cases = 2500, .fn = onto_case});
    dmt_run(&(dmt_suite){.name = "accumulate_errors", .cases = 5, .fn = onto_errors_case});
}

/* Of equal elements the first counts, wherever it is. */
static void tie_case(dmt_case *c)
{
    int64_t shape[2] = {dmt_int(&c->random, 1, 60), dmt_int(&c->random, 1, 60)};
    dmt_host *x = dmt_host_make(&c->scratch, DM_I32, 2, shape);
    dmt_dims dims;
    for (int64_t i = 0; i < x->count; i++) {
        x->v[i] = (long double)dmt_int(&c->random, 0, 2);
    }
    dmt_dims_random(c, x, &dims);
    dmt_host *want = dmt_reduced_make(c, x, &dims, DM_I64), *bound = dmt_host_copy(&c->scratch, want);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, x, &dims, i, &n);
        want->v[i] = dmt_reduction_named("argmax")->value(DM_I32, v, n).value;
    }
    dmt_operand *in = dmt_operand_make(c, "x", x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    DMT_OK(c, dm_argmax(c->session, in->array, dmt_dims_given(&dims), dims.ndims, out->array));
    dmt_operand_check(c, out, want, bound);
}

static void test_ties(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "reduce_ties", .cases = 400, .fn = tie_case});
}

/* Every row of reduce.def has its loop here. */
static void test_table(void **state)
{
    (void)state;
    for (int i = DMI_REDUCTION_sum + 1; i < DMI_REDUCTIONS; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            known = known || (strcmp(rows[k].name, dmi_reductions[i].name) == 0 && dmt_reduction_named(rows[k].name));
        }
        if (!known) {
            fail_msg("reduce.def has a row %s: tests/support/answers.c has no loop for it, or this file no row", dmi_reductions[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_reduce),
                                       cmocka_unit_test(test_accumulate), cmocka_unit_test(test_ties)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
