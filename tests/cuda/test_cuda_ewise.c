/* Elementwise operations on the GPU against those of the CPU: the same bits, but for exp and tanh. */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

static double worst_ulps[2]; /* of exp and tanh in f32 and f64, printed at the end */

/* Steps between two finite numbers, of the shorter of the type that was computed in and the type of the result.
 */
static double ulps_between(dm_dtype t, dm_dtype compute, const void *a, const void *b)
{
    real x = decode(t, a), y = decode(t, b), larger = fmaxl(fabsl(x), fabsl(y));
    bool wide = t == DM_F64 && compute == DM_F64;
    int fraction = wide ? 52 : t == DM_F16 ? 10 : t == DM_BF16 ? 7 : 23;
    int least = wide ? -1022 : t == DM_F16 ? -14 : -126;
    int exponent = larger > 0 ? ilogbl(larger) : least;
    return (double)(fabsl(x - y) / ldexpl(1, (exponent < least ? least : exponent) - fraction));
}

/* A factor adds a rounding of its own to either side. */
static void check_function(dm_dtype t, dm_dtype compute, double alpha, const char *got, const char *expected,
                           int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const char *g = got + i * width_of(t), *e = expected + i * width_of(t);
        if (same_element(t, g, e)) {
            continue;
        }
        real x = decode(t, g), y = decode(t, e);
        if (!floating(t)) { /* either side of a whole number */
            real slack = 1 + fabsl(y) * (compute == DM_F64 ? 0x1p-50L : 0x1p-21L);
            assert_true(fabsl(x - y) <= slack);
            continue;
        }
        double ulps = isinf(x) || isinf(y) ? 1e9 : ulps_between(t, compute, g, e);
        if (t == compute && alpha == 1) {
            worst_ulps[t == DM_F64] = fmax(worst_ulps[t == DM_F64], ulps);
        }
        if (ulps >
            (alpha == 1 ? 2 : 4) + (compute == DM_F64)) { /* the CPU's f64 tanh is off by up to two itself */
            fail_msg("%s: element %lld: %.20Lg, not %.20Lg", dmi_dtype_name(t), (long long)i, x, y);
        }
    }
}

typedef struct operand {
    dm_dtype dtype;
    int64_t offset, span, *stride;
    char *host;
    void *gpu;
} operand;

static void make_operand(rng *r, int ndim, const int64_t *extent, operand *o)
{
    o->offset = rng_in(r, 0, 2) == 0 ? rng_in(r, 0, 5) : 0;
    o->span = o->offset + random_strides(r, ndim, extent, o->stride);
    for (int k = 0; k < ndim; k++) {
        o->stride[k] = rng_in(r, 0, 7) == 0 ? 0 : o->stride[k];
    }
    o->host = random_array(r, o->dtype, o->span);
    o->gpu = upload(o->host, o->span * width_of(o->dtype));
}

static dm_dtype compute_of(const dmi_ewise *d)
{
    bool binary = d->op == DMI_EW_ADD || d->op == DMI_EW_MUL;
    dm_dtype t = binary ? dmi_dtype_promote(d->a_dtype, d->b_dtype) : d->a_dtype;
    return t == DM_F64 || !floating(t) ? DM_F64 : DM_F32;
}

/* alias: 0 none, 1 out is a, 2 out is b. */
static void check_ewise(fixture *f, rng *r, dmi_ewise *d, int alias, double alpha, double beta)
{
    int64_t out_stride[DM_MAX_DIMS], count = 1;
    operand a = {.dtype = d->a_dtype, .stride = d->a_stride}, b = {.dtype = d->b_dtype, .stride = d->b_stride};
    int64_t out_offset = rng_in(r, 0, 2) == 0 ? rng_in(r, 0, 3) : 0;
    int64_t out_span = out_offset + random_strides(r, d->ndim, d->extent, out_stride);
    for (int k = 0; k < d->ndim; k++) {
        count *= d->extent[k];
    }
    make_operand(r, d->ndim, d->extent, &a);
    make_operand(r, d->ndim, d->extent, &b);
    d->a_offset = a.offset;
    d->b_offset = b.offset;
    d->out_offset = out_offset;
    memcpy(d->out_stride, out_stride, sizeof out_stride);
    char *out = random_array(r, d->out_dtype, out_span), *expected = out;
    void *gpu_out = upload(out, out_span * width_of(d->out_dtype));
    operand *other = alias == 1 ? &a : &b;
    if (alias > 0) { /* that operand is where out is, in out's place */
        memcpy(other->stride, out_stride, sizeof out_stride);
        *(alias == 1 ? &d->a_offset : &d->b_offset) = out_offset;
        CUDA(cudaFree(other->gpu));
        free(other->host);
        other->host = out;
        other->gpu = gpu_out;
    }
    dmi_run_ewise(dmi_backend_cuda(), f->q, d, alpha, a.gpu, beta, b.gpu, gpu_out);
    dmi_run_ewise(dmi_backend_cpu(), NULL, d, alpha, a.host, beta, b.host, out);
    finish(f);
    char *got = download(gpu_out, out_span * width_of(d->out_dtype));
    if (d->op == DMI_EW_EXP || d->op == DMI_EW_TANH) {
        check_function(d->out_dtype, compute_of(d), alpha, got, expected, out_span);
    } else {
        check_same("ewise", d->out_dtype, got, expected, out_span);
    }
    if (alias != 1) {
        CUDA(cudaFree(a.gpu));
        free(a.host);
    }
    if (alias != 2) {
        CUDA(cudaFree(b.gpu));
        free(b.host);
    }
    CUDA(cudaFree(gpu_out));
    free(out);
    free(got);
}

static void random_case(fixture *f, rng *r, int ndim, const int64_t *extent, bool one_type)
{
    static const double whole[] = {1, 0, -1, 2, -7}, any[] = {1, 0, -0.75, 1e-3, 3.5};
    dmi_ewise d = {.op = (int)rng_in(r, 0, DMI_EW_OPS - 1), .ndim = ndim};
    bool function = d.op == DMI_EW_EXP || d.op == DMI_EW_TANH, binary = d.op <= DMI_EW_MUL;
    memcpy(d.extent, extent, (size_t)ndim * sizeof *extent);
    d.a_dtype = all_dtypes[rng_in(r, 0, function ? 3 : 6)];
    d.b_dtype = one_type ? d.a_dtype : all_dtypes[rng_in(r, 0, 6)];
    d.out_dtype = one_type ? d.a_dtype : all_dtypes[rng_in(r, 0, 6)];
    bool integers = !floating(d.a_dtype) && (!binary || !floating(d.b_dtype)) && !floating(d.out_dtype);
    int alias = rng_in(r, 0, 3) > 0                  ? 0
                : d.out_dtype == d.a_dtype           ? 1
                : d.out_dtype == d.b_dtype && binary ? 2
                                                     : 0;
    const double *values = integers ? whole : any;
    check_ewise(f, r, &d, alias, values[rng_in(r, 0, 4)], values[rng_in(r, 0, 4)]);
}

static void test_random(void **state)
{
    fixture *f = begin_test(state);
    rng r = {11};
    for (int64_t round = 0; round < rounds(f, 6000); round++) {
        int ndim = (int)rng_in(&r, 0, 4);
        int64_t extent[4], longest = ndim <= 1 ? 3000 : ndim == 2 ? 70 : 9;
        for (int k = 0; k < ndim; k++) {
            extent[k] = rng_in(&r, 0, 30) == 0 ? 0 : rng_in(&r, 1, longest);
        }
        random_case(f, &r, ndim, extent, round % 2 == 0);
    }
    printf("exp and tanh: at most %.2f ulp in f32 and %.2f in f64 from the CPU's\n", worst_ulps[0],
           worst_ulps[1]);
}

/* Dense and aligned rows, which go in groups, of lengths around the groups'. */
static void test_dense(void **state)
{
    fixture *f = begin_test(state);
    rng r = {12};
    for (int64_t round = 0; round < rounds(f, 400); round++) {
        int64_t extent[2] = {rng_in(&r, 1, 3),
                             64 * rng_in(&r, 1, 100) + (round % 4 == 0 ? rng_in(&r, 0, 63) : 0)};
        random_case(f, &r, (int)(1 + round % 2), extent + (1 - round % 2), round % 3 > 0);
    }
}

/* More than a grid does in one turn. */
static void test_large(void **state)
{
    fixture *f = begin_test(state);
    rng r = {13};
    for (int64_t round = 0; round < rounds(f, 8); round++) {
        int64_t extent[2] = {rng_in(&r, 1500, 2500), 4 * rng_in(&r, 400, 600)};
        random_case(f, &r, 2, extent, round % 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
