/* c = alpha * op(a) * op(b) + beta * c */
#include "support/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Half of the cases have small whole numbers: all sums are exact in every type, so nothing may be off at all.
 */
static bool random_product(dmt_case *c, dmt_product *p)
{
    bool exact = dmt_chance(&c->random, 50), mixed = dmt_chance(&c->random, 40);
    dm_dtype dtype = dmt_float_random(c);
    *p = (dmt_product){.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50)};
    p->m = dmt_extent_random(c, 300);
    p->n = dmt_extent_random(c, 300);
    p->k = dmt_extent_random(c, 300);
    if (p->m * p->n * p->k > 400000) {
        p->k = 400000 / (p->m * p->n);
    }
    p->alpha = dmt_factor_random(c, exact);
    p->beta = dmt_factor_random(c, exact);
    dmt_product_fill(c, p, mixed ? dmt_float_random(c) : dtype, mixed ? dmt_float_random(c) : dtype,
                     mixed ? dmt_float_random(c) : dtype, exact ? DMT_SMALL : DMT_SMOOTH);
    return exact;
}

static void gemm_case(dmt_case *c)
{
    dmt_product p;
    int64_t *skipped = c->user;
    bool exact = random_product(c, &p);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, p.beta == 0 ? DMT_UNSET : 0);
    dmt_product_say(c, &p);
    dm_status status = dmt_product_call(c, &p, a->array, b->array, out->array);
    if (skipped && status == DM_ERR_UNSUPPORTED) {
        ++*skipped;
        dmt_operand_unchanged(c, out);
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_gemm");
    dmt_product_check(c, &p, exact, out);
    if (dmt_chance(&c->random, 25)) {
        dmt_operand_unchanged(c, a);
        dmt_operand_unchanged(c, b);
    }
}

/* 16-bit operands of extents that GPU kernels like, split in one dim each. */
static void aligned_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS, DMT_LAST, DMT_REPLICATED, DMT_GRID_BLOCKS, DMT_SUBSET};
    static const char *const names[] = {"a", "b", "c"};
    dmt_product p = {.trans_a = dmt_chance(&c->random, 30), .trans_b = dmt_chance(&c->random, 30), .alpha = 1};
    dm_dtype dtype = dmt_chance(&c->random, 50) ? DM_BF16 : DM_F16;
    int64_t unit = dmt_chance(&c->random, 70) ? 8 * c->workers : 8; /* parts of whole groups of 16 bytes */
    p.m = unit * dmt_int(&c->random, 1, 160 / unit);
    p.n = unit * dmt_int(&c->random, 1, 320 / unit);
    p.k = unit * dmt_int(&c->random, 1, 240 / unit);
    p.beta = dmt_chance(&c->random, 50) ? 0 : -1;
    dmt_product_fill(c, &p, dtype, dtype, dmt_chance(&c->random, 70) ? dtype : DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape,
                        kinds[dmt_int(&c->random, 0, dmt_chance(&c->random, 70) ? 1 : 4)]);
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
    }
    dmt_product_say(c, &p);
    dm_status status = dmt_product_call(c, &p, o[0]->array, o[1]->array, o[2]->array);
    int64_t *skipped = c->user;
    if (skipped && status == DM_ERR_UNSUPPORTED) {
        ++*skipped;
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_gemm");
    dmt_product_check(c, &p, true, o[2]);
}

/* Every triple of a few layouts, in the deterministic list's order. */
static void layouts_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS,        DMT_LAST,       DMT_CYCLIC_ONE,   DMT_GRID_CYCLIC,
                                DMT_GRID_BLOCKS, DMT_REPLICATED, DMT_TWO_REPLICAS, DMT_SINGLE,
                                DMT_MAP,         DMT_SUBSET};
    const char *names[] = {"a", "b", "c"};
    int64_t *skipped = c->user;
    int64_t pick = c->number * 7 % 1000; /* goes round all triples, and early through all kinds */
    dmt_product p = {
        .trans_a = (int)(c->number % 2), .trans_b = (int)(c->number / 2 % 2), .m = 13, .n = 9, .k = 17};
    p.alpha = 2;
    p.beta = c->number % 3 == 0 ? 0 : -1;
    dmt_product_fill(c, &p, DM_F32, DM_F32, DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *operands[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape, kinds[pick % 10]);
        operands[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
        pick /= 10;
    }
    dmt_product_say(c, &p);
    dm_status status = dmt_product_call(c, &p, operands[0]->array, operands[1]->array, operands[2]->array);
    if (skipped && status == DM_ERR_UNSUPPORTED) {
        ++*skipped;
        return;
    }
    dmt_status_is(c, status, DM_OK, "dm_gemm");
    dmt_product_check(c, &p, true, operands[2]);
}

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
    dmt_run(&(dmt_suite){.name = "gemm", .cases = 1000, .fn = gemm_case});
}

static void test_aligned(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "gemm_aligned", .cases = 400, .fn = aligned_case});
}

/* Only GPUs have it; on CPUs every case is refused. */
static void test_fused(void **state)
{
    (void)state;
    const char *device = getenv("DMATH_DEVICE");
    int64_t skipped = 0, ran = dmt_run(&(dmt_suite){.name = "gemm_fused",
                                                    .cases = 400,
                                                    .fn = aligned_case,
                                                    .options = "gemm_algorithm=fused",
                                                    .user = &skipped});
    print_message("gemm_fused: %d of %d cases not served\n", (int)skipped, (int)ran);
    assert_true(ran < 20 || !device || strcmp(device, "cpu") == 0 || getenv("DMATH_PRETEND_HOSTS") ||
                skipped < ran);
}

/* The same, and in f32 that may be rounded to TF32, which small whole numbers stand. */
static void test_panels(void **state)
{
    (void)state;
    const char *device = getenv("DMATH_DEVICE"), *workers = getenv("DMATH_TEST_WORKERS");
    int64_t skipped = 0, ran = dmt_run(&(dmt_suite){.name = "gemm_panels",
                                                    .cases = 400,
                                                    .fn = aligned_case,
                                                    .options = "gemm_algorithm=panels",
                                                    .user = &skipped});
    ran += dmt_run(&(dmt_suite){.name = "gemm_panels_layouts",
                                .cases = 1000,
                                .fn = layouts_case,
                                .options = "gemm_algorithm=panels,gemm_compute=tf32",
                                .workers = 3,
                                .each = true,
                                .user = &skipped});
    print_message("gemm_panels: %d of %d cases not served\n", (int)skipped, (int)ran);
    assert_true(ran < 20 || !device || strcmp(device, "cpu") == 0 || skipped < ran ||
                (workers && strcmp(workers, "1") == 0));
}

static void test_layouts(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "gemm_layouts", .cases = 1000, .fn = layouts_case, .workers = 3, .each = true});
    dmt_run(
        &(dmt_suite){.name = "gemm_layouts", .cases = 1000, .fn = layouts_case, .workers = 4, .each = true});
}

static void run_forced(const char *options, const char *name, const char *layouts_name)
{
    int64_t skipped = 0, ran;
    ran = dmt_run(
        &(dmt_suite){.name = name, .cases = 250, .fn = gemm_case, .options = options, .user = &skipped});
    ran += dmt_run(&(dmt_suite){.name = layouts_name,
                                .cases = 300,
                                .fn = layouts_case,
                                .options = options,
                                .workers = 3,
                                .each = true,
                                .user = &skipped});
    print_message("%s: %d of %d cases not served\n", name, (int)skipped, (int)ran);
    const char *workers = getenv("DMATH_TEST_WORKERS"); /* one: nothing rolls */
    assert_true(ran < 20 || skipped < ran || (workers && strcmp(workers, "1") == 0));
}

static void test_cyclic(void **state)
{
    (void)state;
    run_forced("gemm_algorithm=cyclic", "gemm_cyclic", "gemm_cyclic_layouts");
}

static void test_stationary(void **state)
{
    (void)state;
    run_forced("gemm_algorithm=stationary", "gemm_stationary", "gemm_stationary_layouts");
}

static void test_contract(void **state)
{
    (void)state;
    run_forced("gemm_algorithm=contract", "gemm_contract", "gemm_contract_layouts");
}

static void test_two_block(void **state)
{
    (void)state;
    run_forced("gemm_algorithm=two_block", "gemm_two_block", "gemm_two_block_layouts");
}

static void test_ring(void **state)
{
    (void)state;
    run_forced("gemm_algorithm=ring", "gemm_ring", "gemm_ring_layouts");
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
        cmocka_unit_test(test_gemm),         cmocka_unit_test(test_layouts),  cmocka_unit_test(test_cyclic),
        cmocka_unit_test(test_stationary),   cmocka_unit_test(test_contract), cmocka_unit_test(test_two_block),
        cmocka_unit_test(test_same_operand), cmocka_unit_test(test_overlap),  cmocka_unit_test(test_propagate),
        cmocka_unit_test(test_large),        cmocka_unit_test(test_aligned),  cmocka_unit_test(test_fused),
        cmocka_unit_test(test_panels),       cmocka_unit_test(test_ring),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
