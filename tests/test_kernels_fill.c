/* Random fills: Philox against its published vectors, every value against its formula, statistics. */
#include "kernel_oracle.h"
#include "kernels/direct.h"
#include "kernels/random/random.h"

/* --- an independent generator, written down from the definition ------------------------------- */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4], k[2] = {key[0], key[1]};
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t left = UINT64_C(0xD2511F53) * c[0], right = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(right >> 32) ^ c[1] ^ k[0], (uint32_t)(right & 0xffffffffu),
                            (uint32_t)(left >> 32) ^ c[3] ^ k[1], (uint32_t)(left & 0xffffffffu)};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

static void test_known_answers(void **state)
{
    (void)state;
    static const uint32_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
         0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
         0x5001e420, 0x24126ea1},
    };
    for (int v = 0; v < 3; v++) {
        const uint32_t *x = vectors[v];
        uint32_t mine[4];
        dmi_words w = dmi_philox_block(x[0], x[1], x[2], x[3], x[4], x[5]);
        philox(x, x + 4, mine);
        assert_memory_equal(mine, x + 6, sizeof mine);
        assert_true(w.w0 == x[6] && w.w1 == x[7] && w.w2 == x[8] && w.w3 == x[9]);
    }
}

static real word64(const uint32_t *low)
{
    return (real)((uint64_t)low[1] << 32 | low[0]);
}

/* (v + 1/2) / 2^bits turns as quarters and a rest of at most an eighth, close to which the functions are exact.
 */
static real quarters(uint64_t v, int bits, int *quarter)
{
    uint64_t one = UINT64_C(1) << (bits - 2), q = v / one + (v % one >= one / 2 ? 1 : 0);
    int64_t rest = (int64_t)(v % one) - (v % one >= one / 2 ? (int64_t)one : 0);
    *quarter = (int)(q % 4);
    return ldexpl((real)rest + 0.5L, -bits);
}

/* What element i gets: exactly, except NORMAL, which is given as the exact number. */
static void expect_random(int kind, dm_dtype t, const dmi_fill_values *v, int64_t i, real *normal, void *out)
{
    int per = t == DM_F64 || !floating(t) ? 2 : 4;
    uint64_t number = (uint64_t)(i / per);
    int which = (int)(i % per);
    uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), kind == DMI_FILL_NORMAL, 0}, w[4];
    uint32_t key[2] = {(uint32_t)v->seed, (uint32_t)(v->seed >> 32)};
    philox(counter, key, w);
    if (kind == DMI_FILL_NORMAL) {
        int quarter;
        real pi = 3.14159265358979323846264338327950288L;
        const uint32_t *pair = t == DM_F64 ? w : w + which / 2 * 2;
        real u = t == DM_F64 ? ldexpl(word64(w), -64) + 0x1p-65L : ldexpl(pair[0] + 0.5L, -32);
        int bits = t == DM_F64 ? 64 : 32;
        real turn = quarters(t == DM_F64 ? (uint64_t)w[3] << 32 | w[2] : pair[1], bits, &quarter);
        real radius = sqrtl(
            -2 * (u > 0.5L ? log1pl(t == DM_F64 ? -ldexpl((real) ~(uint64_t)word64(w) + 0.5L, -64) : u - 1)
                           : logl(u)));
        quarter = (quarter + (which % 2 == 0 ? 1 : 0)) % 4; /* cos is sin a quarter later */
        real angle = 2 * pi * turn, x = quarter % 2 == 0 ? sinl(angle) : cosl(angle);
        *normal = radius * (quarter < 2 ? x : -x);
        return;
    }
    if (!floating(t)) {
        uint64_t span = (uint64_t)v->i1 - (uint64_t)v->i0,
                 bits = (uint64_t)w[2 * which + 1] << 32 | w[2 * which];
        bool less = t == DM_U64 ? (uint64_t)v->i0 < (uint64_t)v->i1 : v->i0 < v->i1;
        __extension__ unsigned __int128 product = (unsigned __int128)span * bits;
        encode_int(t, (int64_t)((uint64_t)v->i0 + (less ? (uint64_t)(product >> 64) : 0)), out);
    } else if (t == DM_F64) {
        double u = (double)(((uint64_t)w[2 * which + 1] << 32 | w[2 * which]) >> 11) / 0x1p53;
        double x = v->p0 + (v->p1 - v->p0) * u;
        encode_float(t, x < v->p1 ? x : nextafter(v->p1, -INFINITY), out);
    } else {
        float u = (float)(w[which] >> 8) / 0x1p24f, p0 = (float)v->p0, p1 = (float)v->p1;
        float x = p0 + (p1 - p0) * u;
        encode_float(t, x < p1 ? x : nextafterf(p1, -INFINITY), out);
        if (width_of(t) <= 2) { /* nor does rounding reach the end */
            uint16_t from = 0, to = 0, here = 0, sign = width_of(t) == 2 ? 0x8000 : 0x80;
            encode_float(t, p0, &from);
            encode_float(t, p1, &to);
            memcpy(&here, out, (size_t)width_of(t));
            bool zeros = ((here | to) & (sign - 1)) == 0, same = ((from | to) & (sign - 1)) == 0 || from == to;
            if ((here == to || zeros) && !same) {
                here = zeros ? sign | 1 : (uint16_t)(to & sign ? to + 1 : to - 1);
                memcpy(out, &here, (size_t)width_of(t));
            }
        }
    }
}

static void test_random_values(void **state)
{
    (void)state;
    const int64_t n = 2003;
    static const double ranges[][2] = {{0, 1}, {1, 2}, {-3, 5}, {-1e-3, 0}, {0.1, 0.1000001}, {-7, -6.5}};
    char *out = malloc((size_t)n * 8);
    assert_non_null(out);
    for (int t = 0; t < ALL_DTYPES; t++) {
        for (int c = 0; c < DMI_COUNT(ranges); c++) {
            dmi_fill d;
            dmi_fill_values v = {.p0 = ranges[c][0],
                                 .p1 = ranges[c][1],
                                 .i0 = all_dtypes[t] == DM_U64 ? INT64_MAX - c : c * 10 - 20,
                                 .i1 = all_dtypes[t] == DM_U64 ? INT64_MIN + c * 77 : c * 77,
                                 .seed = UINT64_C(0x123456789abcdef) * (uint64_t)(c + 1)};
            whole_fill(DMI_FILL_UNIFORM, all_dtypes[t], 1, &n, &d);
            dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, out);
            for (int64_t i = 0; i < n; i++) {
                char expected[8];
                expect_random(DMI_FILL_UNIFORM, all_dtypes[t], &v, i, NULL, expected);
                assert_memory_equal(out + i * width_of(all_dtypes[t]), expected,
                                    (size_t)width_of(all_dtypes[t]));
            }
        }
    }
    free(out);
}

static void test_integer_ranges(void **state)
{
    (void)state;
    const int64_t n = 1001;
    static const int64_t ranges[][2] = {
        {INT64_MIN, INT64_MAX}, {5, 5}, {5, -5}, {-1, 1}, {INT64_MAX - 1, INT64_MAX}};
    int64_t out[1001];
    for (int c = 0; c < DMI_COUNT(ranges); c++) {
        dmi_fill d;
        dmi_fill_values v = {.i0 = ranges[c][0], .i1 = ranges[c][1], .seed = 9};
        bool low = false, high = false;
        whole_fill(DMI_FILL_UNIFORM, DM_I64, 1, &n, &d);
        dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, out);
        for (int64_t i = 0; i < n; i++) {
            int64_t expected;
            expect_random(DMI_FILL_UNIFORM, DM_I64, &v, i, NULL, &expected);
            assert_true(out[i] == expected);
            assert_true(v.i1 <= v.i0 ? out[i] == v.i0 : out[i] >= v.i0 && out[i] < v.i1);
            low = low || out[i] < 0;
            high = high || out[i] >= 0;
        }
        assert_true(c != 0 || (low && high));
    }
}

/* Floating ranges: the end is excluded whatever rounds, and a width beyond the type is no Inf. */
static void test_uniform_ends(void **state)
{
    (void)state;
    static const double ranges[][2] = {{1, 1 + 0x1p-52},
                                       {0, 5e-324},
                                       {-1e308, 1e308},
                                       {-1, 0},
                                       {3, 3},
                                       {-5e-324, 0},
                                       {0x1p53, 0x1p53 + 4},
                                       {-1.7976931348623157e308, 1.7976931348623157e308}};
    for (int c = 0; c < DMI_COUNT(ranges); c++) {
        dmi_uniform64 r = dmi_uniform64_make(ranges[c][0], ranges[c][1]);
        double first = dmi_uniform64_at(&r, 0, 0), last = dmi_uniform64_at(&r, 0xffffffffu, 0xffffffffu);
        double middle = dmi_uniform64_at(&r, 0, 0x80000000u);
        assert_true(first == ranges[c][0]);
        assert_true(last < ranges[c][1] || ranges[c][0] == ranges[c][1]);
        assert_true(first <= middle && middle <= last && isfinite(middle));
    }
    dmi_uniform32 f = dmi_uniform32_make(1, 2);
    assert_true(dmi_uniform32_at(&f, 0) == 1 && dmi_uniform32_at(&f, 0xffffffffu) < 2);
    f = dmi_uniform32_make(-3e38, 3e38);
    assert_true(dmi_uniform32_at(&f, 0) == -3e38f && isfinite(dmi_uniform32_at(&f, 0xffffffffu)));
}

static void test_normal_values(void **state)
{
    (void)state;
    const int64_t n = 400000;
    double *d64 = malloc((size_t)n * 8), worst64 = 0, worst32 = 0;
    float *f32 = malloc((size_t)n * 4);
    uint16_t *h = malloc((size_t)n * 2), rounded;
    assert_true(d64 != NULL && f32 != NULL && h != NULL);
    dmi_fill d;
    dmi_fill_values v = {.p0 = 0, .p1 = 1, .seed = 77};
    whole_fill(DMI_FILL_NORMAL, DM_F64, 1, &n, &d);
    dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, d64);
    d.dtype = DM_F32;
    dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, f32);
    for (int64_t i = 0; i < n; i++) {
        real z = 0;
        expect_random(DMI_FILL_NORMAL, DM_F64, &v, i, &z, NULL);
        worst64 = fmax(worst64, (double)(fabsl(d64[i] - z) / (fabsl(z) + 1e-18L)));
        expect_random(DMI_FILL_NORMAL, DM_F32, &v, i, &z, NULL);
        worst32 = fmax(worst32, (double)(fabsl(f32[i] - z) / (fabsl(z) + 1e-9L)));
    }
    print_message("normals: worst relative error %.2g (f64), %.2g (f32)\n", worst64, worst32);
    assert_true(worst64 < 2e-15 && worst32 < 1e-6);
    for (int t = 0; t < 2; t++) { /* the 16-bit floats are the f32 values, rounded */
        d.dtype = t == 0 ? DM_F16 : DM_BF16;
        dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, h);
        for (int64_t i = 0; i < n; i++) {
            encode_float(d.dtype, f32[i], &rounded);
            assert_true(h[i] == rounded);
        }
    }
    v.p0 = 3;
    v.p1 = 0.5;
    d.dtype = DM_F64;
    double moved[64];
    d.region.dim[0] = dmi_dimset_interval(0, 64);
    d.region.count = 64;
    dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, moved);
    for (int i = 0; i < 64; i++) {
        assert_true(moved[i] == fma(0.5, d64[i], 3));
    }
    free(d64);
    free(f32);
    free(h);
}

/* The words that make the extremes: nothing infinite, and relative precision near u = 1. */
static void test_normal_extremes(void **state)
{
    (void)state;
    dmi_words ends[3] = {
        {0, 0, 0, 0}, {0xffffffffu, 0xffffffffu, 0, 0}, {0xffffffffu, 0xffffffffu, 0, 0x80000000u}};
    dmi_pair64 far = dmi_normal64(ends[0]), near = dmi_normal64(ends[1]), back = dmi_normal64(ends[2]);
    assert_true(fabs(far.c - sqrt(130 * log(2))) < 1e-12);
    assert_true(near.c > 0 && fabs(near.c / sqrt(0x1p-64) - 1) < 1e-12 && back.c < 0);
    dmi_pair32 f = dmi_normal32(0, 0), g = dmi_normal32(0xffffffffu, 0);
    assert_true(fabs(f.c - sqrt(66 * log(2))) < 1e-6 && fabsf(g.c / 0x1p-16f - 1) < 1e-5f);
}

/* --- statistics --------------------------------------------------------------------------------- */
static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_statistics(double *x, int64_t n, bool is_normal, double grain)
{
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag1 = 0, lag2 = 0, root = sqrt((double)n), worst = 0;
    double scale = is_normal ? 1 : sqrt(12), shift = is_normal ? 0 : 0.5, kurtosis = is_normal ? 3 : 1.8;
    for (int64_t i = 0; i < n; i++) {
        double z = (x[i] - shift) * scale;
        m1 += z;
        m2 += z * z;
        m3 += z * z * z;
        m4 += z * z * z * z;
        lag1 += i > 0 ? z * (x[i - 1] - shift) * scale : 0;
        lag2 += i > 1 ? z * (x[i - 2] - shift) * scale : 0;
    }
    double nn = (double)n;
    assert_true(fabs(m1 / nn) < 4.5 / root + grain);
    assert_true(fabs(m2 / nn - 1) < 4.5 * sqrt(kurtosis - 1) / root + grain);
    assert_true(fabs(m3 / nn) < 4.5 * sqrt(is_normal ? 15 : 27.0 / 7) / root + grain);
    assert_true(fabs(m4 / nn - kurtosis) < 4.5 * sqrt(is_normal ? 96 : 9 - 3.24) / root + grain);
    assert_true(fabs(lag1 / nn) < 4.5 / root && fabs(lag2 / nn) < 4.5 / root);
    int64_t tail = 0;
    for (int64_t i = 0; i < n; i++) {
        tail += fabs(x[i]) > 4;
    }
    double expected_tail = nn * 6.334248366623996e-5;
    assert_true(!is_normal || fabs((double)tail - expected_tail) < 4.5 * sqrt(expected_tail));
    qsort(x, (size_t)n, sizeof *x, by_value);
    for (int64_t i = 0; i < n; i += 7) {
        double cdf = is_normal ? 0.5 * erfc(-x[i] / sqrt(2)) : x[i];
        worst = fmax(worst, fmax(fabs(cdf - (double)i / nn), fabs(cdf - (double)(i + 1) / nn)));
    }
    assert_true(worst < 2.2 / root + grain);
}

static void test_statistics(void **state)
{
    (void)state;
    const int64_t n = 1000000;
    double *x = malloc((size_t)n * 8);
    char *raw = malloc((size_t)n * 8);
    assert_true(x != NULL && raw != NULL);
    for (int t = 0; t < 4; t++) {
        for (int kind = DMI_FILL_UNIFORM; kind <= DMI_FILL_NORMAL; kind++) {
            dm_dtype type = all_dtypes[t];
            dmi_fill d;
            dmi_fill_values v = {.p0 = 0, .p1 = 1, .seed = 2024};
            whole_fill(kind, type, 1, &n, &d);
            dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, raw);
            for (int64_t i = 0; i < n; i++) {
                x[i] = (double)decode(type, raw + i * width_of(type));
            }
            /* A 16-bit float stands for an interval: its width blurs moments and distribution. */
            check_statistics(x, n, kind == DMI_FILL_NORMAL,
                             type == DM_BF16  ? 0.01
                             : type == DM_F16 ? 0.001
                                              : 0);
        }
    }
    free(x);
    free(raw);
}

/* A linear index beyond 2^33 carries into the second counter word. */
static void test_far_index(void **state)
{
    (void)state;
    const int64_t n = 3000, first = (INT64_C(1) << 33) - 1501;
    float out[3000];
    double wide_out[3000];
    dmi_fill d = {.kind = DMI_FILL_UNIFORM, .dtype = DM_F64, .shape = {INT64_C(1) << 50}};
    dmi_fill_values v = {.p0 = 0, .p1 = 1, .seed = UINT64_C(0xfedcba9876543210)};
    d.region.ndim = 1;
    d.region.stride[0] = 1;
    for (int t = 0; t < 2; t++) {
        int64_t from = t == 0 ? first : 2 * first;
        d.region.dim[0] = dmi_dimset_interval(from, n);
        d.region.count = n;
        d.dtype = t == 0 ? DM_F64 : DM_F32;
        dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, t == 0 ? (void *)wide_out : (void *)out);
        for (int64_t i = 0; i < n; i++) {
            char expected[8];
            expect_random(DMI_FILL_UNIFORM, d.dtype, &v, from + i, NULL, expected);
            assert_memory_equal(t == 0 ? (void *)&wide_out[i] : (void *)&out[i], expected,
                                (size_t)width_of(d.dtype));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_random_values),
        cmocka_unit_test(test_integer_ranges), cmocka_unit_test(test_uniform_ends),
        cmocka_unit_test(test_normal_values),  cmocka_unit_test(test_normal_extremes),
        cmocka_unit_test(test_statistics),     cmocka_unit_test(test_far_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
