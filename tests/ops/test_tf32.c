/* Products that may round their operands to TF32: what may be rounded, where, and that nothing else is. */
#include "support/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dm_gemm_options computing(int compute)
{
    dm_gemm_options options = DM_GEMM_OPTIONS_INIT;
    options.compute = compute;
    return options;
}

static bool emulated(void)
{
    const char *device = getenv("DMATH_DEVICE");
    return device && strcmp(device, "emulated") == 0;
}

/* Small whole numbers have no more than 10 bits: exact in any type, any layouts, any mixture of types. */
static void exact_case(dmt_case *c)
{
    dmt_product p = {.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50)};
    dm_gemm_options options = computing(dmt_chance(&c->random, 70) ? DM_COMPUTE_TF32 : DM_COMPUTE_F32);
    bool plain = dmt_chance(&c->random, 60);
    p.m = dmt_extent_random(c, 100);
    p.n = dmt_extent_random(c, 100);
    p.k = dmt_extent_random(c, 100);
    p.alpha = dmt_factor_random(c, true);
    p.beta = dmt_factor_random(c, true);
    dmt_product_fill(c, &p, plain ? DM_F32 : dmt_float_random(c), plain ? DM_F32 : dmt_float_random(c),
                     plain ? DM_F32 : dmt_float_random(c), DMT_SMALL);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0), *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, p.beta == 0 ? DMT_UNSET : 0);
    dmt_product_say(c, &p);
    DMT_OK(c, dm_gemm_with(c->session, p.trans_a, p.trans_b, p.alpha, a->array, b->array, p.beta, out->array,
                           &options));
    dmt_product_check(c, &p, true, out);
}

/* The largest and smallest element of the product of N x N matrices, all of a and all of 1. */
enum { N = 64 };
static void product_of(dmt_case *c, dm_dtype dtype, double a, const dm_gemm_options *options, double out[2])
{
    const int64_t shape[] = {N, N};
    dm_layout layout[3]; /* by columns and rows: a and b are split along k, and partial products are added */
    for (int i = 0; i < 3; i++) {
        layout[i] = dm_layout_split(c->session, dmt_int(&c->random, 0, 1));
    }
    dm_array x[3];
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, &layout[i], &x[i]));
        DMT_OK(c, dm_fill(c->session, x[i], i == 0 ? a : i == 1 ? 1 : NAN));
    }
    DMT_OK(c, dm_gemm_with(c->session, DM_N, DM_N, 1, x[0], x[1], 0, x[2], options));
    dmt_host *got = dmt_read(c, x[2], dtype, 2, shape);
    out[0] = out[1] = (double)got->v[0];
    for (int64_t i = 0; i < N * N; i++) {
        out[0] = fmin(out[0], (double)got->v[i]);
        out[1] = fmax(out[1], (double)got->v[i]);
    }
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_destroy(c->session, x[i]));
    }
}

/* 1 + 2^-14 is 1 in TF32. The same call with another option is another plan, whatever comes first. */
static void rounding_case(dmt_case *c)
{
    const double a = 1 + 0x1p-14, kept = N * a, rounded = N;
    const bool by_option = c->user != NULL; /* the session's option says TF32 */
    double got[2];
    for (int i = 0; i < 8; i++) {
        int compute = dmt_int(&c->random, 0, 2);
        dm_gemm_options options = computing(compute);
        bool plain = compute == DM_COMPUTE_DEFAULT && dmt_chance(&c->random, 50);
        bool tf32 = compute == DM_COMPUTE_TF32 || (compute == DM_COMPUTE_DEFAULT && by_option);
        dm_dtype dtype = dmt_chance(&c->random, 20) ? DM_F64 : DM_F32;
        product_of(c, dtype, a, plain ? NULL : &options, got);
        bool as_f32 = got[0] == kept && got[1] == kept, as_tf32 = got[0] == rounded && got[1] == rounded;
        bool right = !tf32 || dtype == DM_F64 || dmt_on_cpu() ? as_f32
                     : emulated()                             ? as_tf32
                                                              : as_f32 || as_tf32;
        if (!right) {
            dmt_fail(c, "turn %d, %s, compute %d: %.17g to %.17g", i, dm_dtype_name(dtype), compute, got[0],
                     got[1]);
        }
        if (tf32 && dtype == DM_F32 && c->number == 0 && !dmt_on_cpu() && !emulated()) {
            print_message("a GPU has computed by %s\n", as_tf32 ? "tf32" : "f32");
        }
    }
}

/* What is said of the call, by whether it is asked for and heeded. */
static void explain_case(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F32, DM_F64, DM_BF16};
    for (int i = 0; i < 6; i++) {
        const int64_t shape[] = {N, N};
        dm_gemm_options options = computing(i < 3 ? DM_COMPUTE_TF32 : DM_COMPUTE_F32);
        dm_array a;
        char *text = NULL;
        DMT_OK(c, dm_array_create(c->session, dtypes[i % 3], 2, shape, NULL, &a));
        DMT_OK(c, dm_explain_begin(c->session));
        dm_array b, out;
        DMT_OK(c, dm_array_create(c->session, dtypes[i % 3], 2, shape, NULL, &b));
        DMT_OK(c, dm_array_create(c->session, dtypes[i % 3], 2, shape, NULL, &out));
        DMT_OK(c, dm_gemm_with(c->session, DM_N, DM_N, 1, a, b, 0, out, &options));
        DMT_OK(c, dm_array_destroy(c->session, b));
        DMT_OK(c, dm_array_destroy(c->session, out));
        DMT_OK(c, dm_explain_end(c->session, &text));
        const char *want = dmt_on_cpu() ? " in f32 (tf32 only on GPUs)\n" : " in tf32\n";
        bool said = i == 0 ? strstr(text, want) != NULL : strstr(text, "tf32") == NULL;
        dmt_say(c, "%s", text);
        free(text);
        if (!said) {
            dmt_fail(c, "case %d", i);
        }
        DMT_OK(c, dm_array_destroy(c->session, a));
    }
}

static void refused_case(dmt_case *c)
{
    const int64_t shape[] = {4, 4};
    dm_array x[3];
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, NULL, &x[i]));
        DMT_OK(c, dm_fill(c->session, x[i], 1));
    }
    static const int bad[] = {3, -1, 7, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        dm_gemm_options options = computing(bad[i]);
        DMT_REFUSED(c, DM_ERR_ARG, dm_gemm_with(c->session, DM_N, DM_N, 1, x[0], x[1], 0, x[2], &options));
        if (!strstr(dm_error_message(), "compute is") || !strstr(dm_error_message(), "DM_COMPUTE_TF32")) {
            dmt_fail(c, "%s", dm_error_message());
        }
    }
    dm_gemm_options small = {sizeof(size_t), DM_COMPUTE_TF32}, none = {0, 0};
    DMT_REFUSED(c, DM_ERR_ARG, dm_gemm_with(c->session, DM_N, DM_N, 1, x[0], x[1], 0, x[2], &small));
    DMT_REFUSED(c, DM_ERR_ARG, dm_gemm_with(c->session, DM_N, DM_N, 1, x[0], x[1], 0, x[2], &none));
    if (!strstr(dm_error_message(), "size")) {
        dmt_fail(c, "%s", dm_error_message());
    }
    for (int i = 0; i < 3; i++) {
        dmt_host *got = dmt_read(c, x[i], DM_F32, 2, shape);
        if (got->v[0] != 1 || got->v[15] != 1) {
            dmt_fail(c, "a refused call has written to operand %d", i);
        }
        DMT_OK(c, dm_array_destroy(c->session, x[i]));
    }
}

static void test_exact(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "tf32_exact", .cases = 400, .fn = exact_case});
}

static void test_rounding(void **state)
{
    (void)state;
    int by_option = 1;
    dmt_run(&(dmt_suite){.name = "tf32_rounding", .cases = 20, .fn = rounding_case});
    dmt_run(&(dmt_suite){.name = "tf32_option",
                         .cases = 20,
                         .fn = rounding_case,
                         .options = "gemm_compute=tf32",
                         .user = &by_option});
}

static void test_explain(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "tf32_explain", .cases = 5, .fn = explain_case});
}

static void test_refused(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "tf32_refused", .cases = 5, .fn = refused_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
