/* Functions of ewise.def without branches or calls, so that loops over them take several numbers at once:
 * exponentials and logarithms in f32, and dmi_f32_<name>, which is OWN(name) in f32. They are computed in double
 * and rounded once: errors are below 0.52 ulp. fma is one rounding on every processor, so bits do not depend on
 * the width of the vectors. */
#ifndef DMI_EWISE_VECTOR_H
#define DMI_EWISE_VECTOR_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define DMI_EWISE_FN static inline __attribute__((always_inline, unused))

typedef union dmi_double_bits {
    double d;
    uint64_t u;
} dmi_double_bits;

/* e^x of |x| < 700, with a relative error of 2^-32. x is k log(2) + r of a whole number k, the low bits of
 * x / log(2) + 1.5 * 2^52; e^r is a series. */
DMI_EWISE_FN double dmi_short_exponential(double x)
{
    dmi_double_bits power, e;
    power.d = fma(x, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = fma(power.d - 0x1.8p52, -0x1.62e42fefa39efp-1, x);
    e.d = fma(r, 1.0 / 40320, 1.0 / 5040);
    e.d = fma(e.d, r, 1.0 / 720);
    e.d = fma(e.d, r, 1.0 / 120);
    e.d = fma(e.d, r, 1.0 / 24);
    e.d = fma(e.d, r, 1.0 / 6);
    e.d = fma(e.d, r, 0.5);
    e.d = fma(e.d, r, 1.0);
    e.d = fma(e.d, r, 1.0);
    e.u += power.u << 52;
    return e.d;
}

/* Beyond these e^a is 0 or infinite in float, and 1 + e^a has one value. A NaN stays. */
DMI_EWISE_FN double dmi_between_f32(float a)
{
    const float b = a > 110.0f ? 110.0f : a;
    return (double)(b < -110.0f ? -110.0f : b);
}

DMI_EWISE_FN float dmi_exponential_f32(float a)
{
    return (float)dmi_short_exponential(dmi_between_f32(a));
}

DMI_EWISE_FN float dmi_sigmoid_f32(float a)
{
    return (float)(1 / (1 + dmi_short_exponential(dmi_between_f32(-a))));
}

/* (e - 1) / (e + 1) with e = exp(2x); the odd series where e - 1 cancels */
DMI_EWISE_FN float dmi_hyperbolic_tangent_f32(float a)
{
    const float size = fabsf(a);
    const double x = (double)(size > 16.0f ? 16.0f : size), y = x * x, e = dmi_short_exponential(2 * x);
    double series = fma(y, -17.0 / 315, 2.0 / 15);
    series = fma(y, series, -1.0 / 3);
    series = fma(x * y, series, x);
    return copysignf((float)(x < 0.0625 ? series : (e - 1) / (e + 1)), a);
}

/* log(x) of a normal x > 0 is *k log(2) plus what it returns, the odd series of (m - 1) / (m + 1), m between
 * the roots of 1/2 and 2; the relative error is 2^-43. */
DMI_EWISE_FN double dmi_short_logarithm(double x, double *k)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu, bias = 1024;
    dmi_double_bits m = {.d = x}, whole;
    const uint64_t power = (m.u - root + (bias << 52)) >> 52;
    m.u -= (power - bias) << 52;
    whole.u = 0x4330000000000000u | power; /* 2^52 + power */
    *k = whole.d - (0x1p52 + 1024);
    const double s = (m.d - 1) / (m.d + 1), z = s * s;
    double p = fma(z, 2.0 / 15, 2.0 / 13);
    p = fma(p, z, 2.0 / 11);
    p = fma(p, z, 2.0 / 9);
    p = fma(p, z, 2.0 / 7);
    p = fma(p, z, 2.0 / 5);
    p = fma(p, z, 2.0 / 3);
    p = fma(p, z, 2.0);
    return s * p;
}

/* The logarithm r of x, where that is no number > 0 or infinite. */
DMI_EWISE_FN float dmi_logarithm_ends(float x, double r)
{
    float y = x < 0 ? NAN : (float)r;
    y = x == 0 ? -INFINITY : y;
    return (x > FLT_MAX) | (x != x) ? x : y;
}

DMI_EWISE_FN float dmi_logarithm_f32(float a)
{
    double k, r = dmi_short_logarithm((double)a, &k);
    return dmi_logarithm_ends(a, fma(k, 0x1.62e42fefa39efp-1, r));
}

DMI_EWISE_FN float dmi_f32_log2(float a)
{
    double k, r = dmi_short_logarithm((double)a, &k);
    return dmi_logarithm_ends(a, fma(r, 0x1.71547652b82fep+0, k));
}

DMI_EWISE_FN float dmi_f32_log10(float a)
{
    double k, r = dmi_short_logarithm((double)a, &k);
    return dmi_logarithm_ends(a, fma(k, 0x1.34413509f79ffp-2, r * 0x1.bcb7b1526e50ep-2));
}

/* log(1 + a), and what 1 + a loses by rounding */
DMI_EWISE_FN float dmi_f32_log1p(float a)
{
    const double x = (double)a, u = 1 + x, lost = x - (u - 1);
    double k, r = dmi_short_logarithm(u, &k);
    const float y = a < -1 ? NAN : (float)(fma(k, 0x1.62e42fefa39efp-1, r) + lost / u);
    const float z = a == -1 ? -INFINITY : y;
    return (a > FLT_MAX) | (a != a) | (a == 0) ? a : z;
}

DMI_EWISE_FN float dmi_f32_exp2(float a)
{
    const float b = a > 160.0f ? 160.0f : a;
    return (float)dmi_short_exponential((double)(b < -160.0f ? -160.0f : b) * 0x1.62e42fefa39efp-1);
}

/* e^a - 1; the series where that cancels */
DMI_EWISE_FN float dmi_f32_expm1(float a)
{
    const double x = dmi_between_f32(a);
    double p = fma(x, 1.0 / 40320, 1.0 / 5040);
    p = fma(p, x, 1.0 / 720);
    p = fma(p, x, 1.0 / 120);
    p = fma(p, x, 1.0 / 24);
    p = fma(p, x, 1.0 / 6);
    p = fma(p, x, 0.5);
    const double small = fma(x * x, p, x), r = fabs(x) < 0.25 ? small : dmi_short_exponential(x) - 1;
    return a == 0 ? a : (float)r;
}

DMI_EWISE_FN float dmi_f32_sinh(float a)
{
    const double x = fabs(dmi_between_f32(a)), y = x * x, e = dmi_short_exponential(x);
    double p = fma(y, 1.0 / 362880, 1.0 / 5040);
    p = fma(p, y, 1.0 / 120);
    p = fma(p, y, 1.0 / 6);
    return copysignf((float)(x < 0.25 ? fma(x * y, p, x) : 0.5 * (e - 1 / e)), a);
}

DMI_EWISE_FN float dmi_f32_cosh(float a)
{
    const double e = dmi_short_exponential(dmi_between_f32(a));
    return (float)(0.5 * (e + 1 / e));
}

/* The cube root's logarithm is a third. */
DMI_EWISE_FN float dmi_f32_cbrt(float a)
{
    const float size = fabsf(a);
    double k, r = dmi_short_logarithm((double)size, &k);
    const float y = copysignf((float)dmi_short_exponential(fma(k, 0x1.62e42fefa39efp-1, r) * (1.0 / 3)), a);
    return (a == 0) | (size > FLT_MAX) | (a != a) ? a : y;
}

/* x^y of finite x but 0 and finite y; others are the C library's (ewise_rare_cpu.h) */
DMI_EWISE_FN float dmi_power_f32(float x, float y)
{
    double k, r = dmi_short_logarithm((double)fabsf(x), &k);
    const double by = (double)y, half = 0.5 * by;
    const double product = fma(k, 0x1.62e42fefa39efp-1, r) * by, most = product > 200 ? 200 : product;
    const double size = dmi_short_exponential(most < -200 ? -200 : most);
    const double odd = rint(half) != half ? -size : size, of_negative = rint(by) == by ? odd : NAN;
    return (float)(x < 0 ? of_negative : size);
}
DMI_EWISE_FN bool dmi_is_near_power_f32(float x, float y)
{
    return (x != 0) & (fabsf(x) <= FLT_MAX) & (fabsf(y) <= FLT_MAX);
}
DMI_EWISE_FN float dmi_far_power_f32(float x, float y)
{
    return powf(x, y);
}

/* log(1 + e^x) */
DMI_EWISE_FN double dmi_short_softplus(double x)
{
    const double e = dmi_short_exponential(-fabs(x)), u = 1 + e;
    double k, r = dmi_short_logarithm(u, &k);
    return (x > 0 ? x : 0) + (fma(k, 0x1.62e42fefa39efp-1, r) + (e - (u - 1)) / u);
}

DMI_EWISE_FN float dmi_log_add_exp_f32(float a, float b)
{
    const float high = a > b ? a : b, low = a > b ? b : a;
    const double d = (double)low - (double)high, x = d < -200.0 ? -200.0 : d;
    const float y = (float)((double)high + dmi_short_softplus(high == low ? 0 : x));
    const float z = fabsf(high) > FLT_MAX ? high : y;
    return (a != a) | (b != b) ? a + b : z;
}

/* log(1 + x) of x >= 0 */
DMI_EWISE_FN double dmi_short_logarithm_1_plus(double x)
{
    const double u = 1 + x;
    double k, r = dmi_short_logarithm(u, &k);
    return fma(k, 0x1.62e42fefa39efp-1, r) + (x - (u - 1)) / u;
}

DMI_EWISE_FN float dmi_f32_asinh(float a)
{
    const double x = (double)fabsf(a), y = x * x;
    const float r = copysignf((float)dmi_short_logarithm_1_plus(x + y / (1 + sqrt(1 + y))), a);
    return (fabsf(a) > FLT_MAX) | (a != a) ? a : r;
}

DMI_EWISE_FN float dmi_f32_acosh(float a)
{
    const double x = (double)a - 1;
    const float r = (float)dmi_short_logarithm_1_plus(x + sqrt(x * (x + 2)));
    return a < 1 ? NAN : (a > FLT_MAX) | (a != a) ? a : r;
}

DMI_EWISE_FN float dmi_f32_atanh(float a)
{
    const double x = (double)fabsf(a);
    const float r = copysignf((float)(0.5 * dmi_short_logarithm_1_plus(2 * x / (1 - x))), a),
                s = x == 1 ? copysignf(INFINITY, a) : r;
    return x > 1 ? NAN : a != a ? a : s;
}

/* By the names that OWN(name) asks for. */
DMI_EWISE_FN float dmi_f32_exp(float a)
{
    return dmi_exponential_f32(a);
}
DMI_EWISE_FN float dmi_f32_hypot(float a, float b)
{
    return hypotf(a, b);
}
DMI_EWISE_FN float dmi_f32_fmax(float a, float b)
{
    return (a > b) | (b != b) ? a : b;
}

#endif
