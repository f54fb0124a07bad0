/* Functions that are vector code for common operands and the C library's for others
 * (kernels/ewise/ewise_rare_cpu.h), beside the C library's in long double: operands of all sizes, special ones,
 * each beside each, in place too. And those that depend on the numbers of a type, of
 * all numbers of the narrow floats. */
#include "kernel_oracle.h"

#include "kernels/direct.h"
#include "kernels/ewise/ewise_cpu.h"
#include <float.h>

typedef long double one_fn(long double);
typedef long double two_fn(long double, long double);

typedef struct function {
    int row;
    one_fn *one; /* or */
    two_fn *two;
    double ulps; /* of f64; f32's are at most 0.52 */
} function;

static const function functions[] = {
    {DMI_EW_sin, sinl, NULL, 0.8},     {DMI_EW_cos, cosl, NULL, 0.8},     {DMI_EW_tan, tanl, NULL, 0.9},
    {DMI_EW_asin, asinl, NULL, 0.7},   {DMI_EW_acos, acosl, NULL, 0.7},   {DMI_EW_atan, atanl, NULL, 0.7},
    {DMI_EW_asinh, asinhl, NULL, 0.7}, {DMI_EW_acosh, acoshl, NULL, 0.7}, {DMI_EW_atanh, atanhl, NULL, 0.7},
    {DMI_EW_cbrt, cbrtl, NULL, 0.6},   {DMI_EW_pow, NULL, powl, 0.9},     {DMI_EW_atan2, NULL, atan2l, 0.8},
    {DMI_EW_hypot, NULL, hypotl, 0.6},
};
static const double special[] = {0,
                                 0.5,
                                 1,
                                 2,
                                 3,
                                 0.1,
                                 1e-5,
                                 1e-30,
                                 1e-300,
                                 4e-320,
                                 5e-324,
                                 1.5e-45,
                                 1e-40,
                                 0x1p28,
                                 0x1.8p30,
                                 1e15,
                                 1e22,
                                 1e38,
                                 3.4e38,
                                 1e200,
                                 0x1p1020,
                                 1.79e308,
                                 INFINITY,
                                 NAN,
                                 1.5,
                                 0x1p53,
                                 1023,
                                 1074.5,
                                 0.9999999,
                                 1.0000001,
                                 88.8,
                                 709.8,
                                 0.75,
                                 0.499999,
                                 2.000001,
                                 0.3333,
                                 0x1.921fb54442d18p+0,
                                 0x1.921fb54442d18p+1};
enum { SPECIAL = 2 * (int)DMI_COUNT(special), N = SPECIAL * SPECIAL + 3000 };

static double any_special(int k)
{
    return k % 2 ? -special[k / 2] : special[k / 2];
}

static void draw(rng *r, double *a, double *b)
{
    for (int i = 0; i < N; i++) {
        double x = (double)rng_in(r, -1000000, 1000000) / 50000,
               y = (double)rng_in(r, -1000000, 1000000) / 50000;
        if (i < SPECIAL * SPECIAL) {
            a[i] = any_special(i % SPECIAL);
            b[i] = any_special(i / SPECIAL);
        } else {
            a[i] = i % 3 == 0 ? x / 20 : i % 3 == 1 ? ldexp(x, (int)rng_in(r, -40, 40)) : fabs(x);
            b[i] = i % 2 ? y : floor(y);
        }
    }
}

/* Errors of `got` in units of the last of `bits` bits; numbers below 2^least have the same last place. */
static double ulps(double got, long double want, int bits, int least)
{
    int exponent;
    frexpl(want, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - bits));
}

static void compare(const function *f, const char *type, double a, double b, double got, double most)
{
    const bool narrow = strcmp(type, "f32") == 0;
    const long double want = f->one ? f->one((long double)a) : f->two((long double)a, (long double)b);
    const double nearest = narrow ? (double)(float)want : (double)want;
    bool good = isnan(got) == isnan(nearest);
    if (!isnan(nearest) && (isinf(nearest) || isinf(got))) {
        /* Beside the largest number a result may round either way. */
        good = got == nearest ||
               fabsl(want) > (narrow ? (long double)FLT_MAX : (long double)DBL_MAX) * (1 - 0x1p-22L);
    } else if (!isnan(nearest)) {
        good = good && (narrow ? ulps(got, want, 23, -126) : ulps(got, want, 52, -1022)) <= most &&
               (got != 0 || signbit(got) == signbit(nearest));
    }
    if (!good) {
        fail_msg("%s of %s %a, %a is %a, not %La", dmi_ew_rows[f->row].name, type, a, b, got, want);
    }
}

static void test_functions(void **state)
{
    (void)state;
    static double a[N], b[N], out[N], in_place[N];
    static float fa[N], fb[N], fout[N];
    rng r = {83};
    draw(&r, a, b);
    for (int i = 0; i < N; i++) {
        fa[i] = (float)a[i];
        fb[i] = (float)b[i];
    }
    for (size_t k = 0; k < DMI_COUNT(functions); k++) {
        const function *f = &functions[k];
        const dmi_number none = dmi_number_of(0);
        dmi_ewise_f64[f->row](out, a, f->two ? b : NULL, NULL, &none, &none, N);
        dmi_ewise_f32[f->row](fout, fa, f->two ? fb : NULL, NULL, &none, &none, N);
        for (int i = 0; i < N; i++) {
            compare(f, "f64", a[i], b[i], out[i], f->ulps);
            compare(f, "f32", (double)fa[i], (double)fb[i], (double)fout[i], 0.52);
        }
        memcpy(in_place, a, sizeof a);
        dmi_ewise_f64[f->row](in_place, in_place, f->two ? b : NULL, NULL, &none, &none, N);
        for (int i = 0; i < N; i++) {
            assert_true(in_place[i] == out[i] || (isnan(in_place[i]) && isnan(out[i])));
        }
    }
}

/* --- functions that depend on which numbers the type has, of all numbers of the narrow floats, by their bits:
 * as whole numbers these are in the order of the magnitudes, and the number behind the largest is infinity or
 * NaN */
typedef struct narrow {
    dm_dtype dtype;
    unsigned sign, most, largest; /* most: of all but NaN */
} narrow;
static const narrow narrows[] = {{DM_F16, 0x8000, 0x7c00, 0x7bff},
                                 {DM_BF16, 0x8000, 0x7f80, 0x7f7f},
                                 {DM_F8E4M3, 0x80, 0x7e, 0x7e},
                                 {DM_F8E5M2, 0x80, 0x7c, 0x7b}};

static unsigned next_bits(const narrow *t, unsigned a, unsigned b)
{
    unsigned x = a & (t->sign - 1), y = b & (t->sign - 1);
    if (x > t->most || y > t->most) {
        return t->most + 1;
    }
    if (a == b || (x == 0 && y == 0)) {
        return b;
    }
    if (x == 0) {
        return (b & t->sign) | 1;
    }
    return (a & t->sign) == (b & t->sign) && y > x ? a + 1 : a - 1;
}

static unsigned finite_bits(const narrow *t, unsigned a, unsigned b)
{
    unsigned x = a & (t->sign - 1);
    (void)b;
    return x > t->most ? 0 : x > t->largest ? (a & t->sign) | t->largest : a;
}

static void check_bits(const narrow *t, int row, unsigned (*want_of)(const narrow *, unsigned, unsigned),
                       unsigned b)
{
    static uint16_t wide[65536], out[65536];
    static uint8_t short_[256];
    bool is_wide = t->sign == 0x8000;
    unsigned numbers = 2 * t->sign;
    for (unsigned i = 0; i < numbers; i++) {
        wide[i] = (uint16_t)i;
        short_[i % 256] = (uint8_t)i;
    }
    uint16_t other = (uint16_t)b;
    bool two = dmi_ew_rows[row].operands == 2;
    void *memory[3] = {is_wide ? (void *)wide : short_, two ? (void *)&other : out, out};
    dmi_map d = {
        .ndim = 1, .extent = {numbers}, .dtype = {t->dtype, t->dtype, t->dtype}, .stride = {{1}, {!two}, {1}}};
    assert_int_equal(dmi_map_row(row, d.dtype, NULL, t->dtype, &d.program), DM_OK);
    dmi_run_map(dmi_backend_cpu(), NULL, &d, NULL, 0, memory);
    for (unsigned i = 0; i < numbers; i++) {
        unsigned got = is_wide ? out[i] : ((uint8_t *)out)[i], want = want_of(t, i, b);
        bool nan = (want & (t->sign - 1)) > t->most;
        if (nan ? (got & (t->sign - 1)) <= t->most : got != want) {
            fail_msg("%s of %s 0x%x, 0x%x is 0x%x, not 0x%x", dmi_ew_rows[row].name, dmi_dtype_name(t->dtype),
                     i, b, got, want);
        }
    }
}

/* What is beside the largest number is infinity in a wider type too, not the number that a longer exponent
 * would have. */
static void check_above(const narrow *t)
{
    uint16_t a = (uint16_t)t->largest, b = (uint16_t)t->most;
    float out = 0;
    dmi_map d = {.dtype = {t->dtype, t->dtype, DM_F32}};
    assert_int_equal(dmi_map_row(DMI_EW_nextafter, d.dtype, NULL, DM_F32, &d.program), DM_OK);
    dmi_run_map(dmi_backend_cpu(), NULL, &d, NULL, 0, (void *[]){&a, &b, &out});
    assert_true(t->most == t->largest ? isfinite(out) : isinf(out)); /* f8e4m3 has no infinity to go towards */
}

static void test_narrow(void **state)
{
    (void)state;
    for (int k = 0; k < (int)DMI_COUNT(narrows); k++) {
        const narrow *t = &narrows[k];
        const unsigned others[] = {0, 1, t->largest / 3, t->largest - 1, t->largest, t->most, t->sign - 1};
        check_bits(t, DMI_EW_nan_to_num, finite_bits, 0);
        check_above(t);
        for (int i = 0; i < (int)DMI_COUNT(others); i++) {
            check_bits(t, DMI_EW_nextafter, next_bits, others[i]);
            check_bits(t, DMI_EW_nextafter, next_bits, others[i] | t->sign);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions), cmocka_unit_test(test_narrow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
