/* Conversions between element types: every 16-bit pattern, every boundary between two 16-bit floats, and the
 * edges of the integers, against long double arithmetic. */
#include "kernel_oracle.h"
#include "kernels/box/convert.h"

static void check_row(dm_dtype from, dm_dtype to, const void *src, int64_t n)
{
    int64_t bytes = width_of(to);
    char *dst = malloc((size_t)(n * bytes));
    assert_non_null(dst);
    dmi_convert_row(from, to, src, dst, n);
    for (int64_t i = 0; i < n; i++) {
        char expected[8];
        convert_one(from, (const char *)src + i * width_of(from), to, expected);
        if (!same_element(to, dst + i * bytes, expected)) {
            fail_msg("%s -> %s, element %lld: %La gives %La, not %La", dmi_dtype_name(from), dmi_dtype_name(to),
                     (long long)i, decode(from, (const char *)src + i * width_of(from)),
                     decode(to, dst + i * bytes), decode(to, expected));
        }
    }
    free(dst);
}

static void test_all_patterns(void **state)
{
    (void)state;
    uint16_t *all = malloc(65536 * sizeof *all);
    uint8_t bytes[256];
    assert_non_null(all);
    for (int i = 0; i < 65536; i++) {
        all[i] = (uint16_t)i;
        bytes[i % 256] = (uint8_t)i;
    }
    for (int t = 0; t < ALL_DTYPES; t++) {
        check_row(DM_F16, all_dtypes[t], all, 65536);
        check_row(DM_BF16, all_dtypes[t], all, 65536);
        check_row(DM_F8E4M3, all_dtypes[t], bytes, 256);
        check_row(DM_F8E5M2, all_dtypes[t], bytes, 256);
    }
    for (int i = 0; i < 65536; i++) {
        float one = dmi_f16_to_f32(all[i]), expected = (float)decode(DM_F16, &all[i]);
        assert_true(same_element(DM_F32, &one, &expected));
    }
    free(all);
}

/* Each 16-bit float, the middle to its neighbour, and what lies just beside both. */
static int64_t boundaries(int fraction, int bias, double *out)
{
    int64_t n = 0;
    for (int h = 0; h < 0x7fff; h++) {
        real a = small_decode((uint16_t)h, fraction, bias), b = small_decode((uint16_t)(h + 1), fraction, bias);
        if (isnan(a) || isnan(b)) {
            continue;
        }
        double next = isinf(b) ? ldexp(2, bias) : (double)b; /* Inf as the number it stands in for */
        double middle = isinf(a) ? INFINITY : ((double)a + next) / 2;
        for (int sign = -1; sign <= 1; sign += 2) {
            out[n++] = sign * (double)a;
            out[n++] = sign * middle;
            out[n++] = sign * nextafter(middle, 0);
            out[n++] = sign * nextafter(middle, INFINITY);
            out[n++] = sign * nextafter((double)a, INFINITY);
            out[n++] = sign * (double)nextafterf((float)middle, 0);
            out[n++] = sign * (double)nextafterf((float)middle, INFINITY);
        }
    }
    return n;
}

static void test_boundaries(void **state)
{
    (void)state;
    double *d = malloc(32768 * 14 * sizeof *d);
    float *f = malloc(32768 * 14 * sizeof *f);
    assert_true(d != NULL && f != NULL);
    for (int which = 0; which < 2; which++) {
        dm_dtype to = which == 0 ? DM_F16 : DM_BF16;
        int64_t n = which == 0 ? boundaries(10, 15, d) : boundaries(7, 127, d);
        for (int64_t i = 0; i < n; i++) {
            f[i] = (float)d[i];
        }
        check_row(DM_F64, to, d, n);
        check_row(DM_F32, to, f, n);
        for (int64_t i = 0; i < n; i++) { /* one at a time: never by an instruction for it */
            uint16_t got = which == 0 ? dmi_f32_to_f16(f[i]) : dmi_f32_to_bf16(f[i]), expected;
            encode_float(to, f[i], &expected);
            assert_true(same_element(to, &got, &expected));
        }
    }
    free(d);
    free(f);
}

/* Each 8-bit float, the middle to its neighbour, and what lies just beside both. */
static void test_short_boundaries(void **state)
{
    (void)state;
    static const dm_dtype types[] = {DM_F8E4M3, DM_F8E5M2};
    for (int t = 0; t < 2; t++) {
        double v[128 * 12];
        float f[128 * 12];
        int n = 0;
        for (int i = 0; i < 127; i++) {
            uint8_t here = (uint8_t)i, next = (uint8_t)(i + 1);
            double a = (double)decode(types[t], &here), b = (double)decode(types[t], &next);
            b = isnan(b) ? 480 : isinf(b) ? 65536 : b;
            for (int k = 0; k < 6 && isfinite(a); k++) {
                double middle = (a + b) / 2, x = k < 3 ? a : middle;
                double near = k % 3 == 0 ? x : nextafter(x, k % 3 == 1 ? INFINITY : -INFINITY);
                v[n] = near;
                f[n++] = (float)near;
                v[n] = -near;
                f[n++] = k % 3 == 0 ? -(float)x : nextafterf((float)-x, k % 3 == 1 ? INFINITY : -INFINITY);
            }
        }
        check_row(DM_F64, types[t], v, n);
        check_row(DM_F32, types[t], f, n);
    }
}

static void test_integers(void **state)
{
    (void)state;
    enum { MAX = 64 * 64 * 4 };
    int64_t *v = malloc(MAX * sizeof *v), n = 0;
    assert_non_null(v);
    for (int high = 0; high < 63;
         high++) { /* two bits set, and neighbours: all ties of all types are among these */
        for (int low = 0; low <= high; low++) {
            for (int off = -1; off <= 1; off++) {
                uint64_t u =
                    (UINT64_C(1) << high) + (low < high ? UINT64_C(1) << low : 0) + (uint64_t)(int64_t)off;
                v[n] = n % 2 == 0 ? (int64_t)u : (int64_t)(0 - u);
                n++;
            }
        }
    }
    v[n++] = INT64_MIN;
    v[n++] = INT64_MAX;
    assert_true(n <= MAX);
    for (int t = 0; t < ALL_DTYPES; t++) {
        check_row(DM_I64, all_dtypes[t], v, n);
        check_row(DM_U64, all_dtypes[t], v, n);
    }
    free(v);
}

static void test_random_rows(void **state)
{
    (void)state;
    rng r = {11};
    for (int a = 0; a < ALL_DTYPES; a++) {
        for (int b = 0; b < ALL_DTYPES; b++) {
            for (int n = (a + b) % 3; n < 40; n += 3) {
                char *src = malloc((size_t)(n * width_of(all_dtypes[a])) + 1);
                assert_non_null(src);
                for (int i = 0; i < n; i++) {
                    random_element(&r, all_dtypes[a], src + i * width_of(all_dtypes[a]));
                }
                check_row(all_dtypes[a], all_dtypes[b], src, n);
                free(src);
            }
        }
    }
}

/* More than one chunk by way of a third type, in place too. */
static void test_long_rows(void **state)
{
    (void)state;
    enum { N = 3 * DMI_CHUNK + 5 };
    rng r = {12};
    for (int pair = 0; pair < ALL_DTYPES * ALL_DTYPES; pair++) {
        dm_dtype from = all_dtypes[pair / ALL_DTYPES], to = all_dtypes[pair % ALL_DTYPES];
        int64_t bytes = width_of(from);
        char *src = random_array(&r, from, N), *dst = malloc(N * 8);
        assert_non_null(dst);
        check_row(from, to, src, N);
        if (bytes == width_of(to)) {
            dmi_convert_row(from, to, src, dst, N);
            dmi_convert_row(from, to, src, src, N);
            assert_memory_equal(src, dst, (size_t)(N * bytes));
        }
        free(src);
        free(dst);
    }
}

static void test_saturation(void **state)
{
    (void)state;
    const double v[] = {NAN,           -NAN,
                        INFINITY,      -INFINITY,
                        0x1p63,        0x1.fffffffffffffp62,
                        -0x1p63,       -0x1.0000000000001p63,
                        2147483647.0,  2147483647.5,
                        2147483648.0,  -2147483648.0,
                        -2147483648.9, -2147483649.0,
                        255.9,         256.0,
                        -0.9,          -1.0,
                        0.9999999,     1e308,
                        -1e308,        5e-324,
                        65535.5,       65536.0,
                        32767.9,       -32768.5,
                        4294967295.5,  4294967296.0,
                        0x1p64,        0x1.fffffffffffffp63,
                        127.9,         -128.9};
    for (int t = 0; t < ALL_DTYPES; t++) {
        check_row(DM_F64, all_dtypes[t], v, DMI_COUNT(v));
    }
    int64_t i;
    int32_t w;
    uint8_t u;
    dmi_convert_row(DM_F64, DM_I64, &v[4], &i, 1);
    dmi_convert_row(DM_F64, DM_I32, &v[12], &w, 1);
    dmi_convert_row(DM_F64, DM_U8, &v[14], &u, 1);
    assert_true(i == INT64_MAX && w == INT32_MIN && u == 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_patterns), cmocka_unit_test(test_short_boundaries),
        cmocka_unit_test(test_boundaries),   cmocka_unit_test(test_integers),
        cmocka_unit_test(test_random_rows),  cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
