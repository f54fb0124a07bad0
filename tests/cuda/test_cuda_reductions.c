/* The rows of reduce.def on the GPU against those of the CPU: reduced, combined with another part, finished. */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

/* May the two backends differ in rounding? */
static bool inexact(int row, dm_dtype dtype)
{
    int state = dmi_reductions[row].state;
    return state == DMI_STATE_MOMENTS || state == DMI_STATE_LOGSUM || state == DMI_STATE_REAL ||
           (state == DMI_STATE_WIDE && (floating(dtype) || parts_in(dtype) > 1));
}

static void run(const dmi_backend *on, dmi_queue *q, const dmi_reduce *d, int64_t results, const void *const in[2],
                void *const acc[2], dm_dtype out_dtype, void *out)
{
    int kind = dmi_acc_for(d->row, d->dtype);
    const dmi_run whole = {.len = results};
    dmi_acc_add add = {.acc = kind,
                       .geometry = {.ndim = 1, .nrun = {1}, .run = {&whole}, .src_stride = {1}, .dst_stride = {1},
                                    .count = results}};
    dmi_acc_store store = {
        .acc = kind, .ndim = 1, .out_dtype = out_dtype, .extent = {results}, .out_stride = {1}};
    for (int i = 0; i < 2; i++) {
        dmi_run_reduce(on, q, d, in[i], acc[i]);
    }
    dmi_run_acc_add(on, q, &add, acc[1], acc[0]);
    dmi_run_acc_store(on, q, &store, 0.25, acc[0], 0, out);
    if (dmi_acc_accumulates(kind) && !dmi_dtype_is_complex(dmi_acc_result(kind)) &&
        dmi_dtype_promote(out_dtype, dmi_acc_result(kind)) == dmi_acc_result(kind)) {
        dmi_run_acc_store(on, q, &store, 0.25, acc[0], 1, out);
    }
}

static double shown(dm_dtype type, const void *out, int64_t i)
{
    return type == DM_I64 ? (double)((const int64_t *)out)[i] : ((const double *)out)[i];
}

static void compare(const dmi_reduce *d, int64_t results, int64_t reduced, dm_dtype type, const char *got,
                    const char *expected)
{
    for (int64_t i = 0; i < results; i++) {
        const double *x = (const double *)got, *y = (const double *)expected;
        bool same = same_element(type, got + 8 * i, expected + 8 * i);
        /* what a sum of squares or logarithms loses in another order */
        double bound = 1e-13 * ((double)reduced + 8) * (fabs(y[i]) + 1);
        if (!same && !(inexact(d->row, d->dtype) && type == DM_F64 && fabs(x[i] - y[i]) <= bound)) {
            fail_msg("%s of %s: result %lld of %lld (%lld elements each) is %.20g, not %.20g",
                     dmi_reductions[d->row].name, dmi_dtype_name(d->dtype), (long long)i, (long long)results,
                     (long long)reduced, shown(type, got, i), shown(type, expected, i));
        }
    }
}

static char *make_elements(rng *r, const dmi_reduce *d, int64_t span)
{
    dm_dtype type = part_of(d->dtype);
    int64_t n = span * parts_in(d->dtype);
    char *p = malloc((size_t)(n * width_of(type)) + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        char *at = p + i * width_of(type);
        small_element(r, type, at);
        if (dmi_reductions[d->row].state == DMI_STATE_WIDE && floating(type)) { /* products stay small */
            encode_float(type, rng_in(r, 0, 9) ? 1 : rng_in(r, 0, 1) ? -1 : 0.5L, at);
        } else if (floating(type) && rng_in(r, 0, 5000) == 0) {
            encode_float(type, rng_in(r, 0, 1) ? (real)NAN : -(real)INFINITY, at);
        }
    }
    return p;
}

static void check(fixture *f, rng *r, dmi_reduce *d, int64_t span)
{
    int64_t results = 1, reduced = 1, elem = width_of(part_of(d->dtype)) * parts_in(d->dtype);
    for (int k = 0; k < d->ndim; k++) {
        *(d->reduced >> k & 1 ? &reduced : &results) *= d->extent[k];
    }
    int64_t bytes = results * dmi_acc_bytes(dmi_acc_for(d->row, d->dtype));
    bool whole = dmi_reductions[d->row].result == DMI_RESULT_WHOLE ||
                 (!inexact(d->row, d->dtype) && !floating(part_of(d->dtype)));
    dm_dtype type = whole ? DM_I64 : DM_F64;
    void *in[2], *gpu_in[2], *acc[2], *gpu_acc[2];
    for (int i = 0; i < 2; i++) {
        in[i] = make_elements(r, d, span);
        acc[i] = calloc(1, (size_t)bytes + 1);
        assert_non_null(acc[i]);
        gpu_in[i] = upload(in[i], span * elem);
        gpu_acc[i] = upload(acc[i], bytes);
    }
    char *expected = calloc(1, (size_t)results * 8 + 1);
    assert_non_null(expected);
    void *gpu_out = upload(expected, results * 8);
    run(dmi_backend_cuda(), f->q, d, results, (const void *const *)gpu_in, gpu_acc, type, gpu_out);
    run(dmi_backend_cpu(), NULL, d, results, (const void *const *)in, acc, type, expected);
    finish(f);
    char *got = download(gpu_out, results * 8);
    compare(d, results, reduced, type, got, expected);
    for (int i = 0; i < 2; i++) {
        CUDA(cudaFree(gpu_in[i]));
        CUDA(cudaFree(gpu_acc[i]));
        free(in[i]);
        free(acc[i]);
    }
    CUDA(cudaFree(gpu_out));
    free(expected);
    free(got);
}

/* Index sets of those extents: whole dims, or every g-th block. */
static void make_indices(rng *r, const dmi_reduce *d, dmi_dimset *index, int64_t *whole)
{
    for (int k = 0; k < d->ndim; k++) {
        int64_t block = rng_in(r, 1, 5), g = rng_in(r, 1, 3), c = rng_in(r, 0, g - 1);
        whole[k] = g == 1 ? d->extent[k] : (d->extent[k] + block - 1) / block * block * g;
        index[k] = (dmi_dimset){.lo = 0, .hi = whole[k], .block = block, .g = (int32_t)g, .c = (int32_t)c,
                                .count = d->extent[k]};
    }
}

static void check_row(fixture *f, rng *r, dmi_reduce *d)
{
    dmi_dimset index[DM_MAX_DIMS] = {{0}};
    do {
        d->row = (int)rng_in(r, 1, DMI_REDUCTIONS - 1);
        d->dtype = any_dtype(r);
    } while (dmi_acc_for(d->row, d->dtype) < 0);
    make_indices(r, d, index, d->whole);
    d->index = index;
    d->offset = rng_in(r, 0, 3);
    int64_t span = d->offset + random_strides(r, d->ndim, d->extent, d->stride);
    check(f, r, d, span);
}

static void test_random(void **state)
{
    fixture *f = begin_test(state);
    rng r = {31};
    for (int64_t round = 0; round < rounds(f, 3000); round++) {
        dmi_reduce d = {.ndim = (int)rng_in(&r, 0, 4)};
        int64_t longest = d.ndim <= 1 ? 5000 : d.ndim == 2 ? 90 : d.ndim == 3 ? 20 : 7;
        for (int k = 0; k < d.ndim; k++) {
            d.extent[k] = rng_in(&r, 0, 30) == 0 ? 0 : rng_in(&r, 1, longest);
        }
        d.reduced = (unsigned)rng_in(&r, 0, (1 << d.ndim) - 1);
        check_row(f, &r, &d);
    }
}

/* Teams, parts, and joins. */
static void test_matrices(void **state)
{
    fixture *f = begin_test(state);
    static const int64_t shapes[][2] = {{1, 300001}, {300001, 1}, {2, 100000}, {100000, 2}, {3000, 100},
                                        {100, 3000}, {17, 20003}, {20003, 17}, {1024, 256}, {64, 4096}};
    rng r = {32};
    for (int64_t i = 0; i < rounds(f, 300); i++) {
        const int64_t *shape = shapes[i % DMI_COUNT(shapes)];
        dmi_reduce d = {.ndim = 2, .extent = {shape[0], shape[1]}, .reduced = (unsigned)rng_in(&r, 1, 3)};
        check_row(f, &r, &d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_matrices)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
