/* Scans, sorting, searching and counting on the GPU against the CPU: long rows, many rows, rows across memory.
 */
#include "cuda/cuda_case.h"
#include "kernels/order/order.h"

enum { SHAPES = 12 };
static const struct shape {
    int64_t extent[3];
    int dim;
} shapes[SHAPES] = {{{1, 1, 3000000}, 2}, {{3, 1, 400001}, 2},  {{700, 3, 900}, 2},   {{5000, 1, 70}, 0},
                    {{2, 90000, 3}, 1},   {{70000, 2, 5}, 2},   {{1, 1, 8388608}, 2}, {{3, 1, 400000}, 2},
                    {{1, 150000, 33}, 1}, {{450, 1, 20480}, 2}, {{2501, 1, 1024}, 2}, {{4000, 3, 200}, 2}};

static void strides_of(const int64_t *extent, int64_t *stride)
{
    stride[2] = 1;
    stride[1] = extent[2];
    stride[0] = extent[1] * extent[2];
}

static int64_t count_of(const int64_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

static char *make_elements(rng *r, dm_dtype dtype, int64_t n)
{
    int64_t bytes = width_of(dtype);
    char *p = malloc((size_t)(n * bytes));
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        small_element(r, dtype, p + i * bytes);
        if (floating(dtype) && rng_in(r, 0, 9999) == 0) {
            encode_float(dtype, rng_in(r, 0, 1) ? (real)NAN : (real)-0.0, p + i * bytes);
        }
    }
    return p;
}

/* Runs the kernel on both; at[]: host memory of `bytes` each, which the CPU changes; the GPU's is returned in
 * got[]. */
static void run(fixture *f, int kernel, const void *desc, int refs, char *const *at, const int64_t *bytes,
                char **got)
{
    dmi_kernel_call cpu = {.desc = desc, .refs = refs}, gpu = {.queue = f->q, .desc = desc, .refs = refs};
    for (int i = 0; i < refs; i++) {
        cpu.at[i] = at[i];
        gpu.at[i] = upload(at[i], bytes[i]);
    }
    assert_int_equal(dmi_backend_cuda()->run(kernel, &gpu), DM_OK);
    assert_int_equal(dmi_backend_cpu()->run(kernel, &cpu), DM_OK);
    finish(f);
    for (int i = 0; i < refs; i++) {
        got[i] = download(gpu.at[i], bytes[i]);
        CUDA(cudaFree(gpu.at[i]));
    }
}

static void free_all(char **a, int n)
{
    for (int i = 0; i < n; i++) {
        free(a[i]);
    }
}

/* Results near one another: of a type of fewer bits than f64, up to its rounding. */
static bool near_scan(dm_dtype out, const char *a, const char *b)
{
    real x = decode(out, a), y = decode(out, b);
    real most = out == DM_F64 ? 1e-10 : out == DM_F32 ? 2e-7 : out == DM_F16 ? 1e-3 : 8e-3;
    return fabsl(x - y) <= most * (fabsl(y) + (out == DM_F64));
}

/* same: results of the type of the elements. huge: elements of f64 whose sums leave the range on the way, and
 * zeros. */
static void check_scan(fixture *f, rng *r, const struct shape *shape, int row, dm_dtype dtype, bool same,
                       bool starts, bool huge)
{
    int acc = dmi_acc_for(row, dtype);
    int64_t n = count_of(shape->extent), rows = n / shape->extent[shape->dim];
    dm_dtype out = same ? dtype : floating(dtype) ? DM_F64 : DM_I64;
    const int64_t width = width_of(out);
    dmi_scan d = {.ndim = 3, .dim = shape->dim, .row = row, .dtype = dtype, .out_dtype = out, .starts = starts};
    int64_t bytes[3] = {n * width_of(dtype), n * 8, rows * dmi_acc_bytes(acc)};
    char *at[3] = {make_elements(r, dtype, n), calloc((size_t)n, 8),
                   calloc((size_t)rows, (size_t)dmi_acc_bytes(acc))};
    char *got[3] = {NULL};
    memcpy(d.extent, shape->extent, sizeof shape->extent);
    strides_of(shape->extent, d.stride);
    strides_of(shape->extent, d.out_stride);
    for (int64_t i = 0; i < n && row == DMI_REDUCTION_prod; i++) { /* products stay small */
        if (floating(dtype)) {
            encode_float(dtype, rng_in(r, 0, 1) ? 1 : -1, at[0] + i * width_of(dtype));
        }
    }
    for (int64_t i = 0; i < n && huge; i++) {
        double v = i / 5000 % 3 == 0 ? (double)rng_in(r, -9, 9) * 0x1p1015 : 0;
        memcpy(at[0] + i * 8, &v, 8);
    }
    run(f, DMI_KERNEL_scan, &d, starts ? 3 : 2, at, bytes, got);
    for (int64_t i = 0; i < n; i++) {
        const char *x = got[1] + width * i, *y = at[1] + width * i;
        if (!same_element(out, x, y) && !(floating(out) && near_scan(out, x, y))) {
            fail_msg("scan %s of %s to %s, %lld %lld %lld along %d: element %lld differs",
                     dmi_reductions[row].name, dmi_dtype_name(dtype), dmi_dtype_name(out),
                     (long long)shape->extent[0], (long long)shape->extent[1], (long long)shape->extent[2],
                     shape->dim, (long long)i);
        }
    }
    /* the order of sums does not depend on which thread block is first */
    char *again[3] = {NULL};
    memset(at[1], 0, (size_t)(n * width));
    run(f, DMI_KERNEL_scan, &d, starts ? 3 : 2, at, bytes, again);
    assert_memory_equal(again[1], got[1], (size_t)(n * width));
    free_all(again, starts ? 3 : 2);
    free_all(at, 3);
    free_all(got, starts ? 3 : 2);
}

static void test_scan(void **state)
{
    static const int rows[] = {DMI_REDUCTION_sum, DMI_REDUCTION_prod, DMI_REDUCTION_max,
                               DMI_REDUCTION_logsumexp};
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_BF16, DM_F16, DM_I32, DM_U8, DM_U64, DM_BOOL};
    fixture *f = begin_test(state);
    rng r = {7};
    const int64_t workspace = f->q->workspace_bytes;
    for (int64_t i = 0; i < rounds(f, (int64_t)SHAPES * 6); i++) {
        f->q->workspace_bytes =
            rng_in(&r, 0, 1) ? workspace : 256 << 10; /* of less, scans are made piece by piece */
        int row = rows[rng_in(&r, 0, 3)];
        dm_dtype dtype = types[row == DMI_REDUCTION_logsumexp ? rng_in(&r, 0, 1) : rng_in(&r, 0, 7)];
        bool huge = row == DMI_REDUCTION_sum && i % 4 == 0;
        dtype = huge ? DM_F64 : dtype;
        check_scan(f, &r, &shapes[i % SHAPES], row, dtype,
                   dtype != DM_BOOL && dtype != DM_U8 && rng_in(&r, 0, 2) > 0,
                   row == DMI_REDUCTION_sum && rng_in(&r, 0, 1), huge);
    }
    f->q->workspace_bytes = workspace;
}

static void check_sort(fixture *f, rng *r, const struct shape *shape, dm_dtype dtype, bool descending,
                       int64_t most, bool indices)
{
    int64_t n = count_of(shape->extent), made[3], size = width_of(dtype);
    dmi_sort d = {.ndim = 3,
                  .dim = shape->dim,
                  .dtype = dtype,
                  .descending = descending,
                  .values = true,
                  .indices = indices,
                  .wide = rng_in(r, 0, 1),
                  .first = 11};
    memcpy(made, shape->extent, sizeof made);
    memcpy(d.extent, shape->extent, sizeof shape->extent);
    d.most = made[shape->dim] = most < made[shape->dim] ? most : made[shape->dim];
    strides_of(shape->extent, d.stride);
    strides_of(made, d.value_stride);
    strides_of(made, d.index_stride);
    d.scratch = dmi_sort_scratch(&d, true);
    const int refs = indices ? 4 : 3;
    int64_t bytes[4] = {n * size, d.scratch, count_of(made) * size, count_of(made) * 8};
    char *at[4] = {make_elements(r, dtype, n), calloc((size_t)bytes[1], 1), calloc((size_t)bytes[2] + 1, 1),
                   calloc((size_t)bytes[3] + 1, 1)};
    char *got[4];
    run(f, DMI_KERNEL_sort, &d, refs, at, bytes, got);
    for (int i = 2; i < refs; i++) {
        if (memcmp(got[i], at[i], (size_t)bytes[i]) != 0) {
            fail_msg("sort of %s along %d: %s differ", dmi_dtype_name(dtype), shape->dim,
                     i == 2 ? "elements" : "indices");
        }
    }
    free_all(at, 4);
    free_all(got, refs);
}

static void test_sort(void **state)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_I64, DM_I32, DM_U8, DM_I16};
    fixture *f = begin_test(state);
    rng r = {8};
    for (int64_t i = 0; i < rounds(f, (int64_t)SHAPES * 4); i++) {
        check_sort(f, &r, &shapes[i % SHAPES], types[rng_in(&r, 0, 6)], rng_in(&r, 0, 1),
                   rng_in(&r, 0, 1) ? 50 : INT64_MAX, rng_in(&r, 0, 1));
    }
}

/* Elements alone: of both signs, zeros and NaN of several bits, in place too. */
static void test_sort_elements(void **state)
{
    enum { N = 200001 };
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U64, DM_U32, DM_I16};
    fixture *f = begin_test(state);
    rng r = {10};
    for (int64_t i = 0; i < rounds(f, (int64_t)DMI_COUNT(types) * 4); i++) {
        dm_dtype dtype = types[i % DMI_COUNT(types)];
        bool in_place = rng_in(&r, 0, 1);
        int64_t size = width_of(dtype), seldom = rng_in(&r, 0, 2);
        dmi_sort d = {.ndim = 1,
                      .dtype = dtype,
                      .descending = rng_in(&r, 0, 1),
                      .values = true,
                      .wide = rng_in(&r, 0, 1),
                      .most = N,
                      .extent = {N},
                      .stride = {1},
                      .value_stride = {1}};
        d.scratch = dmi_sort_scratch(&d, true);
        char *at[3] = {malloc((size_t)(N * size)), calloc((size_t)d.scratch, 1), malloc((size_t)(N * size))};
        assert_true(at[0] && at[1] && at[2]);
        for (int64_t k = 0; k < N * size; k++) {
            at[0][k] = (char)rng_in(&r, 0, 255);
        }
        for (int64_t k = 0; k < N && floating(dtype);
             k++) { /* zeros of both signs; of few bits there are NaN already */
            if (rng_in(&r, 0, 9) == 0) {
                encode_float(dtype, rng_in(&r, 0, 1) ? (real)0 : (real)-0.0, at[0] + k * size);
            } else if (seldom == 0 && isnan(decode(dtype, at[0] + k * size))) {
                encode_float(dtype, 1, at[0] + k * size);
            }
        }
        int64_t bytes[3] = {N * size, d.scratch, N * size};
        dmi_kernel_call cpu = {.desc = &d, .refs = 3}, gpu = {.queue = f->q, .desc = &d, .refs = 3};
        for (int k = 0; k < 3; k++) {
            gpu.at[k] = k == 2 && in_place ? gpu.at[0] : upload(at[k], bytes[k]);
            cpu.at[k] = at[k];
        }
        assert_int_equal(dmi_backend_cuda()->run(DMI_KERNEL_sort, &gpu), DM_OK);
        assert_int_equal(dmi_backend_cpu()->run(DMI_KERNEL_sort, &cpu), DM_OK);
        finish(f);
        char *got = download(gpu.at[2], bytes[2]);
        if (memcmp(got, at[2], (size_t)bytes[2]) != 0) {
            fail_msg("sort of the elements of %s alone, in place %d, descending %d, NaN %lld",
                     dmi_dtype_name(dtype), in_place, d.descending, (long long)seldom);
        }
        free(got);
        for (int k = 0; k < (in_place ? 2 : 3); k++) {
            CUDA(cudaFree(gpu.at[k]));
        }
        free_all(at, 3);
    }
}

static void test_count(void **state)
{
    fixture *f = begin_test(state);
    rng r = {9};
    for (int64_t i = 0; i < rounds(f, 12); i++) {
        enum { N = 500000, EDGES = 1001 };
        dm_dtype dtype = i % 3 == 0 ? DM_F32 : i % 3 == 1 ? DM_F64 : DM_I32;
        dm_dtype type = i % 3 == 0 ? DM_F32 : i % 3 == 1 ? DM_F64 : DM_I32;
        int64_t bytes[3] = {EDGES * width_of(type), N * width_of(dtype), N * 8};
        char *at[3] = {make_elements(&r, type, EDGES), make_elements(&r, dtype, N), calloc(N, 8)}, *got[3];
        char *swapped[3] = {at[1], calloc(EDGES, 8), at[0]};
        int64_t swapped_bytes[3] = {bytes[1], (EDGES - 1) * 8, bytes[0]};
        for (int64_t k = 0; k < EDGES; k++) { /* in order */
            if (floating(type)) {
                encode_float(type, (real)(k / 3) / 8 - 20, at[0] + k * width_of(type));
            } else {
                ((int32_t *)(void *)at[0])[k] = (int32_t)(k / 3 - 100);
            }
        }
        dmi_search s = {.ndim = 1,
                        .type = type,
                        .stored = type,
                        .dtype = dtype,
                        .right = i % 2,
                        .count = EDGES,
                        .extent = {N},
                        .stride = {1},
                        .out_stride = {1}};
        run(f, DMI_KERNEL_search, &s, 3, at, bytes, got);
        assert_memory_equal(got[2], at[2], (size_t)bytes[2]);
        free_all(got, 3);
        dmi_histogram h = {.ndim = 1,
                           .kind = i % 2 ? DMI_BINS_RANGE : DMI_BINS_EDGES,
                           .dtype = dtype,
                           .type = i % 2 ? DM_F64 : type,
                           .bins = EDGES - 1,
                           .lo = -3,
                           .hi = 4,
                           .extent = {N},
                           .stride = {1}};
        run(f, DMI_KERNEL_histogram, &h, i % 2 ? 2 : 3, swapped, swapped_bytes, got);
        assert_memory_equal(got[1], swapped[1], (size_t)swapped_bytes[1]);
        free_all(got, i % 2 ? 2 : 3);
        free_all(at, 3);
        free(swapped[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_scan, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_sort, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_sort_elements, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_count, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
