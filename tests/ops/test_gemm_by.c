/* c = alpha * op(a) * op(b) + beta * c, with factors that are elements of arrays */
#include "support/factors.h"
#include "support/product.h"

#include <math.h>

static void gemm_by_case(dmt_case *c)
{
    bool exact = dmt_chance(&c->random, 50), mixed = dmt_chance(&c->random, 40);
    dm_dtype dtype = dmt_float_random(c);
    dmt_product p = {.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50)};
    p.m = dmt_extent_random(c, 60);
    p.n = dmt_extent_random(c, 60);
    p.k = dmt_extent_random(c, 60);
    dmt_factor alpha = dmt_factor_make(c, "alpha", exact, false),
               beta = dmt_factor_make(c, "beta", exact, false);
    p.alpha = alpha.value;
    p.beta = beta.value;
    dmt_product_fill(c, &p, mixed ? dmt_float_random(c) : dtype, mixed ? dmt_float_random(c) : dtype,
                     mixed ? dmt_float_random(c) : dtype, exact ? DMT_SMALL : DMT_SMOOTH);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, p.beta == 0 ? DMT_UNSET : 0);
    dmt_product_say(c, &p);
    DMT_OK(c, dm_gemm_by(c->session, p.trans_a ? DM_T : DM_N, p.trans_b ? DM_T : DM_N, alpha.given, a->array,
                         b->array, beta.given, out->array, NULL));
    dmt_product_check(c, &p, exact, out);
    dmt_factor_unchanged(c, &alpha);
    dmt_factor_unchanged(c, &beta);
}

/* Every triple of a few layouts, among them explicit maps and replicas. */
static void layouts_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS,       DMT_LAST,         DMT_CYCLIC_ONE, DMT_GRID_CYCLIC,
                                DMT_REPLICATED, DMT_TWO_REPLICAS, DMT_SINGLE,     DMT_MAP};
    const char *names[] = {"a", "b", "c"};
    int64_t pick = c->number * 7 % 512;
    dmt_product p = {
        .trans_a = (int)(c->number % 2), .trans_b = (int)(c->number / 2 % 2), .m = 13, .n = 9, .k = 17};
    dmt_factor alpha = dmt_factor_make(c, "alpha", true, false), beta = dmt_factor_make(c, "beta", true, false);
    p.alpha = alpha.value;
    p.beta = beta.value;
    dmt_product_fill(c, &p, DM_F32, DM_F32, c->number % 3 ? DM_F32 : DM_F64, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *operands[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape, kinds[pick % 8]);
        operands[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
        pick /= 8;
    }
    dmt_product_say(c, &p);
    DMT_OK(c, dm_gemm_by(c->session, p.trans_a ? DM_T : DM_N, p.trans_b ? DM_T : DM_N, alpha.given,
                         operands[0]->array, operands[1]->array, beta.given, operands[2]->array, NULL));
    dmt_product_check(c, &p, true, operands[2]);
}

/* A matrix times a vector, and a product of stacks. */
static void dims_case(dmt_case *c)
{
    int64_t m = dmt_extent_random(c, 40), k = dmt_extent_random(c, 40), stack = dmt_int(&c->random, 1, 4);
    bool vector = dmt_chance(&c->random, 50);
    dm_dtype dtype = dmt_float_random(c);
    int64_t a_shape[3] = {stack, m, k}, b_shape[3] = {stack, k, 3}, c_shape[3] = {stack, m, 3};
    dmt_host *a_value = dmt_host_make(&c->scratch, dtype, vector ? 2 : 3, vector ? a_shape + 1 : a_shape);
    dmt_host *b_value = dmt_host_make(&c->scratch, dtype, vector ? 1 : 3, vector ? b_shape + 1 : b_shape);
    dmt_host *c_value = dmt_host_make(&c->scratch, dtype, vector ? 1 : 3, vector ? c_shape + 1 : c_shape);
    dmt_host_random(a_value, &c->random, DMT_SMALL);
    dmt_host_random(b_value, &c->random, DMT_SMALL);
    dmt_host_random(c_value, &c->random, DMT_SMALL);
    dmt_factor alpha = dmt_factor_make(c, "alpha", true, true), beta = dmt_factor_make(c, "beta", true, true);
    dmt_operand *a = dmt_operand_make(c, "a", a_value, 0), *b = dmt_operand_make(c, "b", b_value, 0);
    dmt_operand *out = dmt_operand_make(c, "c", c_value, 0);
    dmt_host *want = dmt_host_copy(&c->scratch, c_value);
    int64_t cols = vector ? 1 : 3;
    for (int64_t i = 0; i < want->count; i++) {
        int64_t s = i / (m * cols), row = i / cols % m, col = i % cols;
        long double sum = 0;
        for (int64_t t = 0; t < k; t++) {
            sum += a_value->v[(s * m + row) * k + t] * b_value->v[(s * k + t) * cols + col];
        }
        want->v[i] = alpha.value * sum + beta.value * c_value->v[i];
    }
    DMT_OK(c,
           dm_gemm_by(c->session, DM_N, DM_N, alpha.given, a->array, b->array, beta.given, out->array, NULL));
    dmt_operand_check(c, out, want, NULL);
}

static void test_gemm_by(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_by", .cases = 600, .fn = gemm_by_case});
}

static void test_layouts(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "gemm_by_layouts", .cases = 512, .fn = layouts_case, .workers = 3, .each = true});
    dmt_run(
        &(dmt_suite){.name = "gemm_by_layouts", .cases = 256, .fn = layouts_case, .workers = 4, .each = true});
}

static void test_dims(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_by_dims", .cases = 200, .fn = dims_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm_by),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_dims),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
