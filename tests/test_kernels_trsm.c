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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
