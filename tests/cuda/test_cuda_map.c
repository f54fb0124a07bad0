/* Elementwise programs on the GPU against those of the CPU: the same bits, but for functions of the C library.
 */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"
#include "map_cases.h"

static double worst_ulps[2]; /* of functions in f32 and f64, printed at the end */

/* Steps between two finite numbers of a type; of a part of a complex number, where its larger part is. */
static double ulps_between(dm_dtype t, real x, real y, real larger)
{
    int fraction = t == DM_F64 ? 52 : 23, least = t == DM_F64 ? -1022 : -126;
    int exponent = larger > 0 ? ilogbl(larger) : least;
    return (double)(fabsl(x - y) / ldexpl(1, (exponent < least ? least : exponent) - fraction));
}

/* Signalling NaNs become quiet ones: pow of one and 0 is 1 or NaN, as the library likes. */
static void quieten(dm_dtype t, void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        char *at = (char *)x + i * width_of(t);
        if (isnan(decode(t, at)) && t == DM_F32) {
            ((uint32_t *)x)[i] |= UINT32_C(1) << 22;
        } else if (isnan(decode(t, at)) && t == DM_F64) {
            ((uint64_t *)x)[i] |= UINT64_C(1) << 51;
        }
    }
}

static void check_result(const map_case *c, int side, const char *got, const char *want, double most,
                         const char *what)
{
    dm_dtype type = c->d.dtype[side], part = part_of(type);
    for (int64_t i = 0; i < c->span[side] * parts_in(type); i++) {
        const char *g = got + i * width_of(part), *e = want + i * width_of(part);
        if (same_element(part, g, e)) {
            continue;
        }
        real x = decode(part, g), y = decode(part, e);
        real other = part == type ? 0 : decode(part, want + (i ^ 1) * width_of(part));
        real larger = fmaxl(fmaxl(fabsl(x), fabsl(y)), isfinite(other) ? fabsl(other) : 0);
        double ulps = most > 0 && isfinite(x) && isfinite(y) ? ulps_between(part, x, y, larger) : 1e9;
        if (ulps > most) {
            fail_msg("%s, %d steps, %d inputs of %s -> %s: element %lld is %.20Lg, not %.20Lg", what,
                     c->d.program.steps, c->d.program.inputs, dmi_dtype_name(c->d.dtype[0]),
                     dmi_dtype_name(type), (long long)i, x, y);
        }
        worst_ulps[part == DM_F64] = fmax(worst_ulps[part == DM_F64], ulps);
    }
}

/* most: steps that results may be apart; 0: the same bits. */
static void run_case(fixture *f, rng *r, map_case *c, double most, const char *what)
{
    int out = c->d.program.inputs, sides = dmi_map_sides(&c->d.program);
    void *at[DMI_MAP_SIDES], *gpu[DMI_MAP_SIDES];
    for (int s = 0; s < sides; s++) {
        bool shared = c->span[s] < 0;
        at[s] = shared ? NULL : random_array(r, c->d.dtype[s], c->span[s]);
        if (most > 0 && !shared) {
            quieten(part_of(c->d.dtype[s]), at[s], c->span[s] * parts_in(c->d.dtype[s]));
        }
        gpu[s] = shared ? NULL : upload(at[s], c->span[s] * width_of(c->d.dtype[s]));
    }
    bool shared = out > 0 && c->span[0] < 0;
    if (shared) {
        at[0] = at[out];
        gpu[0] = gpu[out];
    }
    dmi_run_map(dmi_backend_cuda(), f->q, &c->d, c->m.number, c->m.numbers, gpu);
    dmi_run_map(dmi_backend_cpu(), NULL, &c->d, c->m.number, c->m.numbers, at);
    finish(f);
    for (int s = out; s < sides; s++) {
        char *got = download(gpu[s], c->span[s] * width_of(c->d.dtype[s]));
        check_result(c, s, got, at[s], most, what);
        free(got);
    }
    for (int s = shared; s < sides; s++) {
        CUDA(cudaFree(gpu[s]));
        free(at[s]);
    }
}

static void random_box(rng *r, map_case *c, bool share)
{
    int ndim = (int)rng_in(r, 0, 4);
    map_box(r, c, ndim, ndim <= 1 ? 3000 : ndim == 2 ? 70 : 9, share);
}

static void test_one_row(void **state)
{
    fixture *f = begin_test(state);
    rng r = {11};
    for (int64_t round = 0; round < rounds(f, 6000); round++) {
        map_case c;
        map_case_random(&r, &c, 1, false);
        random_box(&r, &c, round % 3 == 0);
        run_case(f, &r, &c, 0, "one row");
    }
}

static void test_programs(void **state)
{
    fixture *f = begin_test(state);
    rng r = {12};
    for (int64_t round = 0; round < rounds(f, 4000); round++) {
        map_case c;
        map_case_random(&r, &c, (int)rng_in(&r, 2, 3), false);
        map_keep(&r, &c);
        random_box(&r, &c, round % 3 == 0);
        run_case(f, &r, &c, 0, "program");
    }
}

/* Dense and aligned rows, which go in groups, of lengths around the groups'; and more than a grid does in one
 * turn. */
static void test_dense(void **state)
{
    fixture *f = begin_test(state);
    rng r = {13};
    for (int64_t round = 0; round < rounds(f, 600); round++) {
        map_case c;
        map_case_random(&r, &c, 1 + (round % 8 == 0), false);
        int64_t n =
            64 * rng_in(&r, 1, round % 100 == 0 ? 100000 : 100) + (round % 4 == 0 ? rng_in(&r, 0, 63) : 0);
        c.d.ndim = 1;
        c.d.extent[0] = n;
        for (int s = 0; s <= c.d.program.inputs; s++) {
            c.d.stride[s][0] = 1;
            c.d.offset[s] = 0;
            c.span[s] = n;
        }
        run_case(f, &r, &c, 0, "dense");
    }
}

/* Every row in f32, f64, c64 and c128 on dense operands: within a few units of the CPU's library. */
static void test_functions(void **state)
{
    fixture *f = begin_test(state);
    rng r = {14};
    for (int row = 0; row < DMI_EW_ROWS; row++) {
        for (int t = 0; t < 4; t++) {
            static const dm_dtype types[] = {DM_F32, DM_F64, DM_C64, DM_C128};
            dm_dtype type = types[t], in[3] = {type, type, type}, taken, result;
            bool complex_power =
                row == DMI_EW_pow && t >= 2; /* e^(w log z) has few digits where |w log z| is large */
            if (!dmi_ew_types(row, in, &taken, &result) || row == DMI_EW_gamma || row == DMI_EW_lgamma ||
                complex_power) {
                continue;
            }
            map_case c = {.m.numbers = 2, .m.number = {dmi_number_of(2), dmi_number_of(-1)}};
            assert_int_equal(dmi_map_row(row, in, (int[]){0, 1}, result, &c.d.program), DM_OK);
            c.d.ndim = 1;
            c.d.extent[0] = 5000;
            for (int s = 0; s <= c.d.program.inputs; s++) {
                c.d.dtype[s] = s == c.d.program.inputs ? result : type;
                c.d.stride[s][0] = 1;
                c.span[s] = 5000;
            }
            run_case(f, &r, &c, result == DM_BOOL ? 0 : 6, dmi_ew_rows[row].name);
        }
    }
    printf("functions: at most %.2f units of f32 and %.2f of f64 from the CPU's\n", worst_ulps[0],
           worst_ulps[1]);
}

/* The kernel within: any box, with one element or none outside the range. */
static void test_within(void **state)
{
    fixture *f = begin_test(state);
    rng r = {15};
    uint32_t *word = NULL;
    CUDA(cudaMallocHost((void **)&word, sizeof *word));
    for (int64_t round = 0; round < rounds(f, 800); round++) {
        map_case c;
        dm_dtype type = any_dtype(&r);
        memset(&c, 0, sizeof c);
        int ndim = (int)rng_in(&r, 0, 4);
        map_box(&r, &c, ndim, ndim <= 1 ? 3000 : ndim == 2 ? 70 : 9, false);
        dmi_within d = {.dtype = type, .ndim = ndim, .offset = c.d.offset[0]};
        memcpy(d.extent, c.d.extent, sizeof d.extent);
        memcpy(d.stride, c.d.stride[0], sizeof d.stride);
        char *x = calloc((size_t)c.span[0] + 1, (size_t)width_of(type));
        assert_non_null(x);
        for (int64_t i = 0; i < c.span[0] * parts_in(type); i++) { /* mostly 1 */
            encode_float(part_of(type), rng_in(&r, 0, c.span[0]) == 0 ? 2 : 1, x + i * width_of(part_of(type)));
        }
        void *gpu = upload(x, c.span[0] * width_of(type));
        dmi_number range[2] = {{.re = 1}, {.re = type == DM_BOOL ? 0.5 + (double)rng_in(&r, 0, 1) : 1}};
        uint32_t want = 0;
        dmi_kernel_call call = {.desc = &d, .at = {x}, .number = range, .numbers = 2, .status = &want};
        assert_int_equal(dmi_backend_cpu()->run(DMI_KERNEL_within, &call), DM_OK);
        *word = 0;
        call.queue = f->q;
        call.at[0] = gpu;
        call.status = word;
        (void)!dmi_backend_cuda()->run(DMI_KERNEL_within, &call);
        finish(f);
        assert_int_equal(*word, want);
        CUDA(cudaFree(gpu));
        free(x);
    }
    CUDA(cudaFreeHost(word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_row),   cmocka_unit_test(test_programs), cmocka_unit_test(test_dense),
        cmocka_unit_test(test_functions), cmocka_unit_test(test_within),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
