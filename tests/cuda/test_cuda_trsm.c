/* Triangular solves on the GPU. */
#include "cuda/cuda_case.h"
#include "trsm_cases.h"

static const dm_dtype types[] = {DM_F64, DM_F32, DM_C64, DM_C128};

static void test_solves(void **state)
{
    fixture *f = begin_test(state);
    rng r = {13};
    for (int64_t i = 0; i < rounds(f, 400); i++) {
        trsm_case c;
        dm_dtype type = types[i % 4];
        trsm_make(&r, type, 8, &c);
        void *a = upload(c.a, c.a_count * width_of(type)), *b = upload(c.b, c.b_count * width_of(type));
        dmi_kernel_call call = {.queue = f->q, .desc = &c.d, .at = {a, b}};
        assert_int_equal(dmi_trsm_cuda(&call), DM_OK);
        finish(f);
        void *got = download(b, c.b_count * width_of(type));
        trsm_check(&c, got);
        free(got);
        CUDA(cudaFree(a));
        CUDA(cudaFree(b));
        trsm_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solves)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
