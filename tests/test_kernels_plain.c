/* The baseline compilation of the loops, which CPUs without AVX2, FMA and F16C run, gives the same bits as the
 * one this CPU chose: the same sources, built a second time under other names. */
#define DMI_CPU_PLAIN
#define dmi_convert_row plain_convert_row
#define dmi_move_row plain_move_row
#define dmi_row_load plain_row_load
#define dmi_row_store plain_row_store
#define dmi_cpu_fill plain_fill
#define dmi_random_init plain_random_init
#define dmi_random_batch plain_random_batch
#define dmi_reduce_cpu plain_reduce
#define dmi_reducer_of plain_reducer_of
#define dmi_cpu_add_across plain_add_across
#define dmi_cpu_thin plain_thin
#define dmi_cpu_thin_pays plain_thin_pays
#include "kernel_oracle.h"
#include "kernels/box/convert_cpu.c"
#include "kernels/direct.h"
#include "kernels/gemm/thin_cpu.c"
#include "kernels/random/fill_cpu.c"
#include "kernels/random/fill_random_cpu.c"
#include "kernels/reduce/reduce_cpu.c"
#undef dmi_convert_row
#undef dmi_cpu_thin
void dmi_convert_row(dm_dtype from, dm_dtype to, const void *src, void *dst, int64_t n);
void dmi_cpu_thin(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c);

static void test_conversions(void **state)
{
    (void)state;
    enum { N = 66000 };
    rng r = {61};
    char *src = malloc(N * 8), *a = malloc(N * 8), *b = malloc(N * 8);
    assert_true(src != NULL && a != NULL && b != NULL);
    for (int from = 0; from < ALL_DTYPES; from++) {
        for (int i = 0; i < N; i++) {
            uint16_t pattern = (uint16_t)i;
            random_element(&r, all_dtypes[from], src + i * width_of(all_dtypes[from]));
            if (width_of(all_dtypes[from]) == 2) {
                memcpy(src + 2 * i, &pattern, 2);
            }
        }
        for (int to = 0; to < ALL_DTYPES; to++) {
            plain_convert_row(all_dtypes[from], all_dtypes[to], src, a, N);
            dmi_convert_row(all_dtypes[from], all_dtypes[to], src, b, N);
            assert_memory_equal(a, b, (size_t)(N * width_of(all_dtypes[to]))); /* payloads of NaNs too */
        }
    }
    free(src);
    free(a);
    free(b);
}

/* From index 0, and across the carry into the second word of the counter (2^32 counters of 2 or 4 elements). */
static void test_fills(void **state)
{
    (void)state;
    enum { N = 60000 };
    static const int64_t begins[] = {0, (INT64_C(1) << 33) - N / 2, (INT64_C(1) << 34) - N / 2};
    char *a = malloc(N * 8), *b = malloc(N * 8);
    assert_true(a != NULL && b != NULL);
    for (int kind = 0; kind < DMI_FILL_KINDS; kind++) {
        for (int c = 0; c < ALL_DTYPES * DMI_COUNT(begins); c++) {
            dm_dtype t = all_dtypes[c % ALL_DTYPES];
            bool skip = kind == DMI_FILL_IDENTITY || (kind == DMI_FILL_NORMAL && !floating(t));
            dmi_fill d = {
                .kind = kind, .dtype = t, .shape = {INT64_C(1) << 40}, .region = {.ndim = 1, .count = N}};
            dmi_fill_values v = {.p0 = 0.3, .p1 = 1.7, .i0 = -5, .i1 = 1000, .seed = 62};
            d.region.dim[0] = dmi_dimset_interval(begins[c / ALL_DTYPES], N);
            d.region.stride[0] = 1;
            if (!skip) {
                plain_fill(&d, &v, a);
                dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, b);
                assert_memory_equal(a, b, (size_t)(N * width_of(t)));
            }
        }
    }
    free(a);
    free(b);
}

/* Of several NaNs a sum may be any, as the compiler orders the addends: all become one. */
static void settle_nans(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = isnan(x[i]) ? NAN : x[i];
    }
}

static void test_sums(void **state)
{
    (void)state;
    enum { N = 200 };
    rng r = {63};
    char *in = malloc(N * N * 8);
    double a[2 * N], b[2 * N];
    assert_non_null(in);
    for (int t = 0; t < ALL_DTYPES; t++) {
        for (int64_t i = 0; i < N * N; i++) {
            double x = (double)rng_in(&r, -1000000, 1000000) / 7;
            plain_convert_row(DM_F64, all_dtypes[t], &x, in + i * width_of(all_dtypes[t]), 1);
        }
        for (unsigned mask = 1; mask < 4; mask++) {
            dmi_reduce d = {
                .ndim = 2, .dtype = all_dtypes[t], .reduced = mask, .extent = {N, N}, .stride = {N, 1}};
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            (void)!plain_reduce(&(dmi_kernel_call){.desc = &d, .at = {in, a}});
            dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, b);
            if (floating(all_dtypes[t]) || dmi_dtype_is_complex(all_dtypes[t])) {
                settle_nans(a, DMI_COUNT(a));
                settle_nans(b, DMI_COUNT(b));
            }
            assert_memory_equal(a, b, sizeof a);
        }
    }
    free(in);
}

static void test_thin_products(void **state)
{
    (void)state;
    enum { N = 150 };
    rng r = {64};
    double *in = malloc(N * N * 8), *a = malloc(N * N * 8), *b = malloc(N * N * 8);
    assert_true(in != NULL && a != NULL && b != NULL);
    for (int t = 0; t < 2; t++) {
        dm_dtype type = t ? DM_F32 : DM_F64;
        for (int64_t i = 0; i < N * N; i++) {
            double x = (double)rng_in(&r, -1000000, 1000000) / 7;
            plain_convert_row(DM_F64, type, &x, (char *)in + i * width_of(type), 1);
        }
        for (int i = 0; i < 8 * DMI_CPU_THIN; i++) {
            int64_t cols = 1 + i / 8;
            dmi_gemm d = {.dtype = type,
                          .trans_a = i & 1,
                          .trans_b = i >> 1 & 1,
                          .m = i & 4 ? N - 1 : cols,
                          .n = i & 4 ? cols : N - 1,
                          .k = N - 2,
                          .lda = N,
                          .ldb = N,
                          .ldc = N};
            memset(a, 0, N * N * 8);
            memset(b, 0, N * N * 8);
            plain_thin(&d, 1.5, in, in, 0, a);
            dmi_cpu_thin(&d, 1.5, in, in, 0, b);
            assert_memory_equal(a, b, N * N * 8);
        }
    }
    free(in);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_thin_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
