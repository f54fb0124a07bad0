/* The exponential and the logarithm in f64 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_LONG_H
#define DMI_EWISE_LONG_H

#include "kernels/ewise/ewise_vector_cpu.h"

/* x is k log(2) + r + low; 1 + r is exact as one + rest; 2^k in two steps, of which the second rounds where the
 * result is subnormal. Errors are below 0.7 ulp, and below 0.8 of a subnormal result. */
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

/* log(x) as what it returns and *low; x > 0. The exponent k, log(2) in two parts, and f - f f / 2 + s (f f / 2
 * + R(s s)) of f = m - 1, s = f / (2 + f), with the coefficients of FreeBSD's e_log.c (Sun Microsystems 1993);
 * the first two terms are kept exactly. log's errors are below
 * 0.7 ulp. */
DMI_EWISE_FN double dmi_long_logarithm(double x, double *low)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu, bias = 1024;
    const bool small = x < DBL_MIN;
    dmi_double_bits m = {.d = small ? x * 0x1p54 : x}, whole;
    const uint64_t power = (m.u - root + (bias << 52)) >> 52;
    m.u -= (power - bias) << 52;
    whole.u = 0x4330000000000000u | power; /* 2^52 + power */
    const double k = whole.d - (small ? 0x1p52 + 1024 + 54 : 0x1p52 + 1024), f = m.d - 1, s = f / (2 + f),
                 z = s * s;
    double r = fma(z, 1.479819860511658591e-01, 1.531383769920937332e-01);
    r = fma(r, z, 1.818357216161805012e-01);
    r = fma(r, z, 2.222219843214978396e-01);
    r = fma(r, z, 2.857142874366239149e-01);
    r = fma(r, z, 3.999999999940941908e-01);
    r = fma(r, z, 6.666666666666735130e-01);
    const double half = 0.5 * f * f, lost = fma(0.5 * f, f, -half), first = f - half;
    const double of_k = k * 0x1.62e42fee00000p-1, high = of_k + first;
    *low = (first - (high - of_k)) +
           (((f - first) - half - lost) + fma(s, fma(r, z, half), k * 0x1.a39ef35793c76p-33));
    return high;
}

DMI_EWISE_FN double dmi_logarithm_f64(double a)
{
    double low, high = dmi_long_logarithm(a, &low), r = a < 0 ? NAN : high + low;
    r = a == 0 ? -INFINITY : r;
    return (a > DBL_MAX) | (a != a) ? a : r;
}

#endif
