/* Copies on the GPU against those of the CPU: bit for bit, NaNs' payloads included, but for those of complex
 * numbers. */
#include "copy_cases.h"
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

static void check_bits(const char *what, const dmi_copy *d, const char *got, const char *expected, int64_t n)
{
    bool to = dmi_dtype_is_complex(d->dst_dtype), from = dmi_dtype_is_complex(d->src_dtype);
    dm_dtype part = d->dst_dtype == DM_C64 ? DM_F32 : d->dst_dtype == DM_C128 ? DM_F64 : d->dst_dtype;
    int64_t bytes = width_of(part);
    for (int64_t i = 0; i < n * (to ? 2 : 1); i++) {
        if ((to || from) && same_element(part, got + i * bytes, expected + i * bytes)) {
            continue;
        }
        if (memcmp(got + i * bytes, expected + i * bytes, (size_t)bytes) != 0) {
            uint64_t g = 0, e = 0;
            memcpy(&g, got + i * bytes, (size_t)DMI_MIN(bytes, 8));
            memcpy(&e, expected + i * bytes, (size_t)DMI_MIN(bytes, 8));
            fail_msg("%s, %s to %s, ndim %d: element %lld of %lld: %llx, not %llx", what,
                     dmi_dtype_name(d->src_dtype), dmi_dtype_name(d->dst_dtype), d->ndim, (long long)i,
                     (long long)n, (unsigned long long)g, (unsigned long long)e);
        }
    }
}

static void check_copy(fixture *f, rng *r, geometry *g, dm_dtype from, dm_dtype to, bool look_up)
{
    int64_t src_bytes = g->src_span * width_of(from), dst_bytes = g->dst_span * width_of(to);
    g->d.src_dtype = from;
    g->d.dst_dtype = to;
    char *src = random_array(r, from, g->src_span), *dst = random_array(r, to, g->dst_span);
    void *gpu_src = upload(src, src_bytes), *gpu_dst = upload(dst, dst_bytes);
    tables t = {{NULL}};
    if (look_up) {
        upload_tables(f, &g->d, &t);
    }
    dmi_run_copy(dmi_backend_cuda(), f->q, &g->d, gpu_src, gpu_dst);
    dmi_run_copy(dmi_backend_cpu(), NULL, &g->d, src, dst);
    finish(f);
    char *got = download(gpu_dst, dst_bytes);
    check_bits(look_up ? "copy with tables" : "copy", &g->d, got, dst, g->dst_span);
    free_tables(f, &t);
    CUDA(cudaFree(gpu_src));
    CUDA(cudaFree(gpu_dst));
    free(src);
    free(dst);
    free(got);
}

static void test_all_pairs(void **state)
{
    fixture *f = begin_test(state);
    rng r = {1};
    for (int64_t round = 0; round < rounds(f, 60); round++) {
        for (int ndim = 0; ndim <= 4; ndim++) {
            geometry g;
            int64_t longest = ndim <= 1 ? 2000 : ndim == 2 ? 60 : 6;
            make_geometry(&r, ndim, longest, &g);
            for (int pair = 0; pair < 49; pair++) {
                check_copy(f, &r, &g, all_dtypes[pair / 7], all_dtypes[pair % 7], rng_in(&r, 0, 3) > 0);
                pair += round % 8 == 0 ? 0 : (int)rng_in(&r, 0, 8);
            }
            for (int pair = 0; pair < 6; pair++) { /* the types that share kernels, among all */
                dm_dtype from = any_dtype(&r), to = pair % 3 == 0 ? from : any_dtype(&r);
                check_copy(f, &r, &g, from, to, rng_in(&r, 0, 3) > 0);
            }
            free_geometry(&g);
        }
    }
}

static dm_dtype type_number(int i)
{
    return i < ALL_DTYPES ? all_dtypes[i] : i == ALL_DTYPES ? DM_C64 : DM_C128;
}

/* Every value of the 8-bit and 16-bit types, and many bits of the others, dense: the kernels for groups. */
static void test_values(void **state)
{
    fixture *f = begin_test(state);
    rng r = {2};
    const int types = ALL_DTYPES + 2;
    for (int pair = 0; pair < types * types; pair++) {
        dm_dtype from = type_number(pair / types), to = type_number(pair % types);
        int64_t n = 65536 + 3;
        dmi_run run = {.len = n};
        dmi_copy d = {.ndim = 1,
                      .src_dtype = from,
                      .dst_dtype = to,
                      .nrun = {1},
                      .run = {&run},
                      .src_stride = {1},
                      .dst_stride = {1},
                      .count = n};
        char *src = random_array(&r, from, n), *dst = calloc((size_t)n, (size_t)width_of(to));
        assert_non_null(dst);
        for (int64_t i = 0; i < 65536 && width_of(from) <= 2; i++) {
            uint16_t bits = from == DM_BOOL ? i % 2 : (uint16_t)i;
            memcpy(src + width_of(from) * i, &bits, (size_t)width_of(from));
        }
        void *gpu_src = upload(src, n * width_of(from)), *gpu_dst = upload(dst, n * width_of(to));
        dmi_run_copy(dmi_backend_cuda(), f->q, &d, gpu_src, gpu_dst);
        dmi_run_copy(dmi_backend_cpu(), NULL, &d, src, dst);
        finish(f);
        char *got = download(gpu_dst, n * width_of(to));
        check_bits("values", &d, got, dst, n);
        CUDA(cudaFree(gpu_src));
        CUDA(cudaFree(gpu_dst));
        free(src);
        free(dst);
        free(got);
    }
}

/* Whole matrices, transposed or not, around the sizes of tiles, dense or with a pitch, in one plane or several.
 */
static void test_matrices(void **state)
{
    fixture *f = begin_test(state);
    static const int64_t sizes[] = {1, 7, 8, 16, 17, 31, 32, 48, 64, 65, 96, 127, 128, 129, 256, 300};
    rng r = {3};
    int64_t all = DMI_COUNT(sizes) * DMI_COUNT(sizes), step = DMI_MAX((int64_t)(1 / f->scale), 1);
    for (int64_t k = 0; k < all; k += step) {
        int64_t rows = sizes[k / DMI_COUNT(sizes)], cols = sizes[k % DMI_COUNT(sizes)],
                planes = k % 3 == 0 ? 3 : 1;
        for (int form = 0; form < 4; form++) {
            geometry g;
            make_matrix(planes, rows, cols, form, rng_in(&r, 0, 2) == 0 ? 16 : 0, &g);
            g.d.src_offset = rng_in(&r, 0, 2) == 0 ? rng_in(&r, 0, 3) : 0;
            g.d.dst_offset = rng_in(&r, 0, 2) == 0 ? rng_in(&r, 0, 3) : 0;
            g.src_span += g.d.src_offset;
            g.dst_span += g.d.dst_offset;
            dm_dtype t = all_dtypes[(k + form) % 7];
            check_copy(f, &r, &g, t, t, true);
            check_copy(f, &r, &g, t, all_dtypes[(k * 3 + form) % 7], true);
            dm_dtype any = any_dtype(&r);
            check_copy(f, &r, &g, any, rng_in(&r, 0, 1) ? any : any_dtype(&r), true);
            free_geometry(&g);
        }
    }
}

/* Short runs, and one long run among them. */
static void test_many_runs(void **state)
{
    fixture *f = begin_test(state);
    rng r = {4};
    for (int64_t round = 0; round < rounds(f, 40); round++) {
        geometry g;
        make_short_runs(&r, 30, 300, round % 2 == 0 ? 1 : 4, 2000, &g);
        check_copy(f, &r, &g, DM_F32, DM_F32, true);
        check_copy(f, &r, &g, DM_F16, DM_F64, true);
        free_geometry(&g);
    }
}

/* Large enough for the driver's copy, for every block of a grid to take more than one turn, and from any
 * address. */
static void test_large(void **state)
{
    fixture *f = begin_test(state);
    rng r = {5};
    for (int64_t round = 0; round < rounds(f, 12); round++) {
        int64_t rows = rng_in(&r, 1000, 3000), cols = rng_in(&r, 1000, 3000);
        dmi_run run[2] = {{.len = rows}, {.len = cols}};
        geometry g = {.d = {.ndim = 2, .nrun = {1, 1}, .run = {&run[0], &run[1]}, .count = rows * cols}};
        int64_t form = round % 4;
        g.d.src_offset = rng_in(&r, 0, 1);
        g.d.src_stride[0] = cols;
        g.d.src_stride[1] = 1;
        g.d.dst_stride[0] = form == 0 ? cols : form == 1 ? cols + 5 : 1;
        g.d.dst_stride[1] = form < 2 ? 1 : rows;
        g.src_span = g.d.src_offset + rows * cols;
        g.dst_span = rows * cols + (form == 1 ? rows * 5 : 0);
        dm_dtype t = all_dtypes[round % 7];
        check_copy(f, &r, &g, t, t, true);
        check_copy(f, &r, &g, t, all_dtypes[(round * 5 + 3) % 7], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_values), cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_many_runs), cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
