/* Triangular solves on the CPU. */
#include "trsm_cases.h"

static const dm_dtype types[] = {DM_F64, DM_F32, DM_C64, DM_C128};

static void test_solves(void **state)
{
    (void)state;
    rng r = {11};
    for (int i = 0; i < 1500; i++) {
        trsm_case c;
        trsm_make(&r, types[i % 4], 8, &c);
        dmi_kernel_call call = {.desc = &c.d, .at = {c.a, c.b}};
        assert_int_equal(dmi_kernels[DMI_KERNEL_trsm].cpu(&call), DM_OK);
        trsm_check(&c, c.b);
        trsm_free(&c);
    }
}

/* More than LAPACK can count: refused before anything is touched. */
static void test_too_large(void **state)
{
    (void)state;
    static const dmi_trsm large[] = {
        {.dtype = DM_F64, .m = INT64_C(1) << 31, .n = 1, .lda = 1, .ldb = 1},
        {.dtype = DM_F64, .m = 1, .n = 1, .lda = INT64_C(1) << 31, .ldb = 1},
        {.dtype = DM_F64, .m = 1, .n = 1, .lda = 1, .ldb = INT64_C(1) << 31},
    };
    for (int i = 0; i < 3; i++) {
        dmi_kernel_call call = {.desc = &large[i]};
        assert_int_equal(dmi_kernels[DMI_KERNEL_trsm].cpu(&call), DM_ERR_UNSUPPORTED);
        assert_non_null(strstr(dmi_error_text(), "more than 2^31 - 1"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solves), cmocka_unit_test(test_too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
