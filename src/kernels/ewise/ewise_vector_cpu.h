/* Functions of ewise.def without branches or calls, so that loops over them take several numbers at once. The
 * float ones are computed in double and rounded once: their errors are below 0.51 ulp. fma is one rounding on
 * every processor, so bits do not depend on the width of the vectors. */
#ifndef DMI_EWISE_VECTOR_H
#define DMI_EWISE_VECTOR_H

#include <float.h>
#include <math.h>
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

/* log(a) is k log(2) + log(m), m between the roots of 1/2 and 2, and log(m) the odd series of (m - 1) / (m +
 * 1). */
DMI_EWISE_FN float dmi_logarithm_f32(float a)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu, bias = 1024;
    dmi_double_bits m = {.d = (double)a}, k;
    const uint64_t power = (m.u - root + (bias << 52)) >> 52;
    m.u -= (power - bias) << 52;
    k.u = 0x4330000000000000u | power; /* 2^52 + power */
    const double s = (m.d - 1) / (m.d + 1), z = s * s;
    double p = fma(z, 2.0 / 15, 2.0 / 13);
    p = fma(p, z, 2.0 / 11);
    p = fma(p, z, 2.0 / 9);
    p = fma(p, z, 2.0 / 7);
    p = fma(p, z, 2.0 / 5);
    p = fma(p, z, 2.0 / 3);
    p = fma(p, z, 2.0);
    float r = (float)fma(k.d - (0x1p52 + 1024), 0x1.62e42fefa39efp-1, s * p);
    r = a < 0 ? NAN : r;
    r = a == 0 ? -INFINITY : r;
    return (a > FLT_MAX) | (a != a) ? a : r;
}

/* x is k log(2) + r + low; 1 + r is exact as one + rest; 2^k in two steps, of which the second rounds where the
 * result is subnormal: errors are below 0.53 ulp there where it is not, and below 0.8 where it is. */
DMI_EWISE_FN double dmi_exponential_f64(double a)
{
    const double b = a > 800.0 ? 800.0 : a, x = b < -800.0 ? -800.0 : b;
    dmi_double_bits power, half, rest_of_it;
    power.d = fma(x, 0x1.71547652b82fep+0, 0x1.8p52);
    const double k = power.d - 0x1.8p52, high = fma(k, -0x1.62e42fefa39efp-1, x);
    const double r = fma(k, -0x1.abc9e3b39803fp-56, high), low = fma(k, -0x1.abc9e3b39803fp-56, high - r);
    double p = fma(r, 1.0 / 6227020800, 1.0 / 479001600);
    p = fma(p, r, 1.0 / 39916800);
    p = fma(p, r, 1.0 / 3628800);
    p = fma(p, r, 1.0 / 362880);
    p = fma(p, r, 1.0 / 40320);
    p = fma(p, r, 1.0 / 5040);
    p = fma(p, r, 1.0 / 720);
    p = fma(p, r, 1.0 / 120);
    p = fma(p, r, 1.0 / 24);
    p = fma(p, r, 1.0 / 6);
    p = fma(p, r, 0.5);
    const double one = 1 + r, rest = r - (one - 1), e = one + (rest + fma(r * r, p, low));
    half.d = fma(k, 0.5, 0x1.8p52);
    rest_of_it.d = (k - (half.d - 0x1.8p52)) + 0x1.8p52;
    half.u = (half.u << 52) + 0x3ff0000000000000u;
    rest_of_it.u = (rest_of_it.u << 52) + 0x3ff0000000000000u;
    return e * half.d * rest_of_it.d;
}

#endif
