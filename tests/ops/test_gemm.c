/* c = alpha * op(a) * op(b) + beta * c; with forced algorithms: test_gemm_forced.c */
#include "support/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* c = a * a, a times its own transpose, and both operands views of one array. */
static void same_operand_case(dmt_case *c)
{
    dmt_product p = {.trans_a = dmt_chance(&c->random, 50), .alpha = 1};
    p.k = dmt_int(&c->random, 1, 40);
    p.m = p.n = dmt_chance(&c->random, 50) ? p.k : dmt_int(&c->random, 1, 40);
    p.trans_b = p.m == p.k ? dmt_chance(&c->random, 50) : !p.trans_a;
    dm_dtype dtype = dmt_float_random(c);
    dmt_product_fill(c, &p, dtype, dtype, dtype, DMT_SMALL);
    p.b = p.a;
    dmt_operand *a = dmt_operand_make(c, "a, b", p.a, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, 0);
    dmt_product_say(c, &p);
    dmt_status_is(c, dmt_product_call(c, &p, a->array, a->array, out->array), DM_OK,
                  "dm_gemm of an array with itself");
    dmt_product_check(c, &p, true, out);
    dmt_operand_unchanged(c, a);
}

static void overlap_case(dmt_case *c)
{
    const int64_t shape[] = {20, 10}, extent[] = {10, 10};
    int64_t lo[2] = {dmt_int(&c->random, 0, 10), 0}, zero[2] = {0, 0};
    bool apart = lo[0] == 10;
    dm_array a, out;
    dmt_product p = {.m = 10, .n = 10, .k = 10, .alpha = 1, .beta = 1};
    dmt_host *whole_value = dmt_matrix_random(c, DM_F64, shape[0], shape[1], DMT_SMALL);
    dmt_product_fill(c, &p, DM_F64, DM_F64, DM_F64, DMT_SMALL);
    dmt_host_take(whole_value, zero, p.a);
    dmt_host_take(whole_value, lo, p.c);
    dmt_operand *whole = dmt_operand_make(c, "whole", whole_value, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    DMT_OK(c, dm_array_view(c->session, whole->array, zero, extent, &a));
    DMT_OK(c, dm_array_view(c->session, whole->array, lo, extent, &out));
    dmt_say(c, "\n    a: rows 0 to 9 of whole, c: rows %d to %d", (int)lo[0], (int)lo[0] + 9);
    if (dmt_chance(&c->random, 50)) {
        dmt_status_is(c, dmt_product_call(c, &p, a, b->array, out), apart ? DM_OK : DM_ERR_OVERLAP,
                      "dm_gemm, a beside c");
    } else {
        dmt_host *swapped = p.a;
        p.a = p.b;
        p.b = swapped;
        dmt_status_is(c, dmt_product_call(c, &p, b->array, a, out), apart ? DM_OK : DM_ERR_OVERLAP,
                      "dm_gemm, b beside c");
    }
    if (apart) {
        dmt_host *want = dmt_host_make(&c->scratch, DM_F64, 2, extent),
                 *bound = dmt_host_copy(&c->scratch, want);
        dmt_product_expect(&p, true, want, bound);
        dmt_host_put(whole->value, lo, want);
    }
    dmt_operand_unchanged(c, whole);
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

/* NaN and Inf in a and b reach the elements of c that they should, and no others. */
static void propagate_case(dmt_case *c)
{
    dmt_product p = {.m = 11, .n = 7, .k = 9, .alpha = 1};
    dmt_product_fill(c, &p, DM_F32, DM_F32, DM_F32, DMT_SMALL);
    for (int64_t i = 0; i < p.b->count; i++) {
        p.b->v[i] += p.b->v[i] == 0 ? 1 : 0;
    }
    p.a->v[dmt_int(&c->random, 0, p.a->count - 1)] = NAN;
    p.a->v[dmt_int(&c->random, 0, p.a->count - 1)] = INFINITY;
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, 0);
    dmt_status_is(c, dmt_product_call(c, &p, a->array, b->array, out->array), DM_OK, "dm_gemm");
    dmt_product_check(c, &p, true, out);
}

/* A product of 600 x 500 x 700, checked with a vector: c * x against a * (b * x). */
static void large_case(dmt_case *c)
{
    dmt_product p = {.m = 601, .n = 499, .k = 701, .alpha = 1};
    dmt_product_fill(c, &p, DM_F64, DM_F64, DM_F64, DMT_SMOOTH);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, DMT_NO_VIEW);
    dmt_product_say(c, &p);
    dmt_status_is(c, dmt_product_call(c, &p, a->array, b->array, out->array), DM_OK, "dm_gemm");
    dmt_host *got = dmt_read(c, out->array, DM_F64, 2, p.c->shape);
    dmt_host *x = dmt_matrix_random(c, DM_F64, p.n, 1, DMT_SMOOTH),
             *bx = dmt_matrix_random(c, DM_F64, p.k, 1, DMT_SMALL);
    for (int64_t t = 0; t < p.k; t++) {
        bx->v[t] = 0;
        for (int64_t j = 0; j < p.n; j++) {
            bx->v[t] += p.b->v[t * p.n + j] * x->v[j];
        }
    }
    for (int64_t i = 0; i < p.m; i++) {
        long double left = 0, right = 0;
        for (int64_t j = 0; j < p.n; j++) {
            left += got->v[i * p.n + j] * x->v[j];
        }
        for (int64_t t = 0; t < p.k; t++) {
            right += p.a->v[i * p.k + t] * bx->v[t];
        }
        if (!(fabsl(left - right) < 1e-10L)) {
            dmt_fail(c, "row %d times the vector is %.17Lg, not %.17Lg", (int)i, left, right);
        }
    }
}

static void test_gemm(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm", .cases = 1000, .fn = dmt_product_case});
}

static void test_aligned(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_aligned", .cases = 400, .fn = dmt_product_aligned_case});
}

static void test_layouts(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){
        .name = "gemm_layouts", .cases = 1000, .fn = dmt_product_layouts_case, .workers = 3, .each = true});
    dmt_run(&(dmt_suite){
        .name = "gemm_layouts", .cases = 1000, .fn = dmt_product_layouts_case, .workers = 4, .each = true});
}

static void test_same_operand(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_same_operand", .cases = 100, .fn = same_operand_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_overlap", .cases = 60, .fn = overlap_case});
}

static void test_propagate(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_propagate", .cases = 60, .fn = propagate_case});
}

static void test_large(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_large", .cases = 2, .fn = large_case, .workers = 4, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),         cmocka_unit_test(test_aligned), cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_same_operand), cmocka_unit_test(test_overlap), cmocka_unit_test(test_propagate),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
