/* Sums on the GPU against those of the CPU: exact where the numbers allow, else within the accuracy of the
 * accumulators; partial sums added up; sums written as results. */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

typedef struct pair {
    double hi, lo;
} pair;

/* |a - b| of two accumulators. */
static real distance(int acc, const void *a, const void *b, int64_t i)
{
    if (acc == DMI_ACC_DD) {
        const pair *x = (const pair *)a + i, *y = (const pair *)b + i;
        return fabsl(((real)x->hi - y->hi) + ((real)x->lo - y->lo));
    }
    return fabsl((real)((const double *)a)[i] - ((const double *)b)[i]);
}

/* Bound on the error of a sum of n elements of magnitude `most` each. */
static real tolerance(int acc, int64_t n, real most)
{
    return (real)n * (real)n * most * (acc == DMI_ACC_DD ? 0x1p-104L : 0x1p-52L);
}

enum { SMALL, WIDE, SPECIAL }; /* whole numbers; any magnitude; with one Inf or NaN */

static char *make_input(rng *r, dm_dtype t, int64_t n, int kind, real *most)
{
    char *p = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(p);
    *most = 0;
    for (int64_t i = 0; i < n; i++) {
        char *at = p + i * width_of(t);
        if (kind == WIDE && !floating(t)) {
            uint64_t bits = rng_next(r);
            memcpy(at, &bits, (size_t)width_of(t));
        } else if (kind == WIDE) {
            real x = ldexpl((real)rng_in(r, -(INT64_C(1) << 40), INT64_C(1) << 40), (int)rng_in(r, -60, -36));
            encode_float(t, x, at);
            *most = fmaxl(*most, fabsl(x));
        } else {
            small_element(r, t, at);
        }
    }
    if (kind == SPECIAL && n > 0) {
        encode_float(t, rng_in(r, 0, 1) ? (real)INFINITY : (real)NAN, p + rng_in(r, 0, n - 1) * width_of(t));
    }
    return p;
}

static void check_reduce(fixture *f, rng *r, dmi_reduce *d, int64_t span, int kind)
{
    int acc = dmi_acc_part(dmi_acc_of(d->dtype)), parts = parts_in(d->dtype); /* part by part */
    dm_dtype type = part_of(d->dtype);
    int64_t results = parts, summed = 1;
    real most;
    kind = (kind == SPECIAL && !floating(type)) || (kind == WIDE && width_of(type) == 1) ? SMALL : kind;
    for (int k = 0; k < d->ndim; k++) {
        *(d->reduced >> k & 1 ? &summed : &results) *= d->extent[k];
    }
    int64_t bytes = results * dmi_acc_bytes(acc);
    char *in = make_input(r, type, span * parts, kind, &most), *expected = malloc((size_t)bytes + 1);
    assert_non_null(expected);
    memset(expected, 0x5a, (size_t)bytes);
    void *gpu_in = upload(in, span * width_of(d->dtype)), *gpu_acc = upload(expected, bytes);
    dmi_run_reduce(dmi_backend_cuda(), f->q, d, gpu_in, gpu_acc);
    dmi_run_reduce(dmi_backend_cpu(), NULL, d, in, expected);
    finish(f);
    char *got = download(gpu_acc, bytes);
    for (int64_t i = 0; i < results; i++) {
        bool exact = dmi_acc_whole(acc) || kind != WIDE;
        bool same = acc == DMI_ACC_DD
                        ? same_element(DM_F64, &((pair *)got)[i].hi, &((pair *)expected)[i].hi) &&
                              same_element(DM_F64, &((pair *)got)[i].lo, &((pair *)expected)[i].lo)
                        : same_element(acc == DMI_ACC_F64 ? DM_F64 : DM_I64, got + 8 * i, expected + 8 * i);
        if (!same && (exact || distance(acc, got, expected, i) > tolerance(acc, summed, most))) {
            fail_msg("sum %lld of %lld (%s, %lld summed, kind %d): %.20g, not %.20g", (long long)i,
                     (long long)results, dmi_dtype_name(d->dtype), (long long)summed, kind,
                     *(double *)(got + i * dmi_acc_bytes(acc)), *(double *)(expected + i * dmi_acc_bytes(acc)));
        }
    }
    CUDA(cudaFree(gpu_in));
    CUDA(cudaFree(gpu_acc));
    free(in);
    free(expected);
    free(got);
}

static void test_random(void **state)
{
    fixture *f = begin_test(state);
    rng r = {21};
    for (int64_t round = 0; round < rounds(f, 4000); round++) {
        dmi_reduce d = {.ndim = (int)rng_in(&r, 0, 5), .dtype = any_dtype(&r)};
        int64_t longest = d.ndim <= 1 ? 5000 : d.ndim == 2 ? 90 : d.ndim == 3 ? 20 : 7;
        for (int k = 0; k < d.ndim; k++) {
            d.extent[k] = rng_in(&r, 0, 30) == 0 ? 0 : rng_in(&r, 1, longest);
        }
        d.reduced = (unsigned)rng_in(&r, 0, (1 << d.ndim) - 1);
        d.offset = rng_in(&r, 0, 2) == 0 ? rng_in(&r, 0, 5) : 0;
        int64_t span = d.offset + random_strides(&r, d.ndim, d.extent, d.stride);
        if (d.ndim > 0 && rng_in(&r, 0, 9) == 0) {
            d.stride[rng_in(&r, 0, d.ndim - 1)] = 0;
        }
        check_reduce(f, &r, &d, span, (int)rng_in(&r, 0, 2));
    }
}

/* Dense matrices from one column to one row, summed over either dim or both: teams, parts and tails. */
static void test_matrices(void **state)
{
    fixture *f = begin_test(state);
    static const int64_t shapes[][2] = {
        {1, 600001}, {600001, 1}, {2, 200000}, {200000, 2}, {3, 70001}, {70001, 3}, {300, 1000}, {1024, 256},
        {5000, 100}, {100, 5000}, {17, 20003}, {20003, 17}, {64, 4096}, {4096, 64}, {2000, 96},  {3000, 257}};
    rng r = {22};
    int64_t step = DMI_MAX((int64_t)(1 / f->scale), 1);
    for (int64_t i = 0; i < DMI_COUNT(shapes) * 21; i += step) {
        const int64_t *shape = shapes[i % DMI_COUNT(shapes)];
        int64_t form = i / DMI_COUNT(shapes);
        dmi_reduce d = {.ndim = 2, .dtype = all_dtypes[form % 7], .reduced = (unsigned)(1 + form / 7)};
        d.dtype = i % 3 ? d.dtype : any_dtype(&r);
        d.extent[0] = shape[0];
        d.extent[1] = shape[1];
        d.stride[0] = shape[1];
        d.stride[1] = 1;
        d.offset = i % 5 == 0 ? 1 : 0;
        check_reduce(f, &r, &d, d.offset + shape[0] * shape[1], form % 2 == 0 ? SMALL : WIDE);
    }
}

static char *random_accs(rng *r, int acc, int64_t n)
{
    char *p = random_array(r, dmi_acc_whole(acc) ? DM_I64 : DM_F64, n * dmi_acc_bytes(acc) / 8);
    for (int64_t i = 0; dmi_acc_part(acc) == DMI_ACC_DD && i < n * dmi_acc_parts(acc); i++) {
        pair *x = (pair *)p + i;
        double half = isfinite(x->hi) ? fabs(nextafter(x->hi, INFINITY) - x->hi) / 2 : 0;
        x->lo = isfinite(half) ? half * (double)rng_in(r, -8, 8) / 8 : 0;
    }
    return p;
}

static void test_acc_add(void **state)
{
    fixture *f = begin_test(state);
    rng r = {23};
    for (int64_t round = 0; round < rounds(f, 600); round++) {
        geometry g;
        dmi_acc_add d = {.acc = (int)rng_in(&r, 0, DMI_ACC_SUMS - 1)};
        int ndim = (int)rng_in(&r, 0, 4);
        make_geometry(&r, ndim, ndim <= 1 ? 1000 : ndim == 2 ? 40 : 6, &g);
        d.geometry = g.d;
        int64_t part_bytes = g.src_span * dmi_acc_bytes(d.acc), bytes = g.dst_span * dmi_acc_bytes(d.acc);
        char *part = random_accs(&r, d.acc, g.src_span), *acc = random_accs(&r, d.acc, g.dst_span);
        void *gpu_part = upload(part, part_bytes), *gpu_acc = upload(acc, bytes);
        tables t = {{NULL}};
        if (rng_in(&r, 0, 3) > 0) {
            upload_tables(f, &d.geometry, &t);
        }
        dmi_run_acc_add(dmi_backend_cuda(), f->q, &d, gpu_part, gpu_acc);
        dmi_run_acc_add(dmi_backend_cpu(), NULL, &d, part, acc);
        finish(f);
        char *got = download(gpu_acc, bytes);
        check_same("acc_add", dmi_acc_whole(d.acc) ? DM_I64 : DM_F64, got, acc, bytes / 8);
        free_tables(f, &t);
        CUDA(cudaFree(gpu_part));
        CUDA(cudaFree(gpu_acc));
        free(part);
        free(acc);
        free(got);
        free_geometry(&g);
    }
}

static void test_acc_store(void **state)
{
    fixture *f = begin_test(state);
    static const double scales[] = {1, -2, 0.3, 0}, betas[] = {0, 0, 1, -0.7};
    rng r = {24};
    for (int64_t round = 0; round < rounds(f, 1500); round++) {
        dmi_acc_store d = {.acc = (int)rng_in(&r, 0, DMI_ACC_SUMS - 1), .ndim = (int)rng_in(&r, 0, 3)};
        int64_t results = 1, longest = d.ndim <= 1 ? 2000 : d.ndim == 2 ? 50 : 9;
        d.out_dtype = any_dtype(&r);
        for (int k = 0; k < d.ndim; k++) {
            d.extent[k] = rng_in(&r, 0, 20) == 0 ? 0 : rng_in(&r, 1, longest);
            results *= d.extent[k];
        }
        d.out_offset = rng_in(&r, 0, 3);
        int64_t span = d.out_offset + random_strides(&r, d.ndim, d.extent, d.out_stride);
        int64_t acc_bytes = results * dmi_acc_bytes(d.acc), bytes = span * width_of(d.out_dtype);
        double scale = scales[rng_in(&r, 0, 3)], beta = betas[rng_in(&r, 0, 3)];
        if (!floating(part_of(d.out_dtype)) || dmi_acc_whole(d.acc)) {
            scale = trunc(scale);
            beta = trunc(beta);
        }
        d.divides = scale != 0 && floating(part_of(d.out_dtype)) && rng_in(&r, 0, 1);
        char *acc = random_accs(&r, d.acc, results), *out = random_array(&r, d.out_dtype, span);
        void *gpu_acc = upload(acc, acc_bytes), *gpu_out = upload(out, bytes);
        dmi_run_acc_store(dmi_backend_cuda(), f->q, &d, scale, gpu_acc, beta, gpu_out);
        dmi_run_acc_store(dmi_backend_cpu(), NULL, &d, scale, acc, beta, out);
        finish(f);
        char *got = download(gpu_out, bytes);
        check_same("acc_store", part_of(d.out_dtype), got, out, span * parts_in(d.out_dtype));
        CUDA(cudaFree(gpu_acc));
        CUDA(cudaFree(gpu_out));
        free(acc);
        free(out);
        free(got);
    }
}

static void test_fold(void **state)
{
    fixture *f = begin_test(state);
    static const double scales[] = {1, -2, 0.3, 0}, betas[] = {0, 0, 1, -0.7};
    rng r = {25};
    for (int64_t round = 0; round < rounds(f, 3000); round++) {
        bool few = rng_in(&r, 0, 1); /* of the types that have kernels of their own */
        dm_dtype type = few ? all_dtypes[rng_in(&r, 0, 6)] : any_dtype(&r);
        dm_dtype out_type = few ? all_dtypes[rng_in(&r, 0, 6)] : any_dtype(&r);
        double scale = scales[rng_in(&r, 0, 3)], beta = betas[rng_in(&r, 0, 3)];
        dmi_fold d;
        int64_t span[3];
        random_fold(&r, type, out_type, &d, span);
        if (!floating(part_of(type)) || !floating(part_of(out_type))) {
            scale = trunc(scale);
            beta = trunc(beta);
        }
        d.store.divides = scale != 0 && floating(part_of(out_type)) && rng_in(&r, 0, 1);
        char *rows = random_array(&r, type, span[0]), *own = random_array(&r, type, span[2]);
        char *out = random_array(&r, out_type, span[1]);
        int64_t out_bytes = span[1] * width_of(out_type);
        void *gpu_rows = upload(rows, span[0] * width_of(type)),
             *gpu_own = upload(own, span[2] * width_of(type));
        void *gpu_out = upload(out, out_bytes);
        dmi_run_fold(dmi_backend_cuda(), f->q, &d, scale, gpu_rows, d.own >= 0 ? gpu_own : NULL, beta, gpu_out);
        dmi_run_fold(dmi_backend_cpu(), NULL, &d, scale, rows, d.own >= 0 ? own : NULL, beta, out);
        finish(f);
        char *got = download(gpu_out, out_bytes);
        check_same("fold", part_of(out_type), got, out, span[1] * parts_in(out_type));
        CUDA(cudaFree(gpu_rows));
        CUDA(cudaFree(gpu_own));
        CUDA(cudaFree(gpu_out));
        free(rows);
        free(own);
        free(out);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),    cmocka_unit_test(test_matrices), cmocka_unit_test(test_acc_add),
        cmocka_unit_test(test_acc_store), cmocka_unit_test(test_fold),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
