/* The exponential and the logarithm in f64 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_LONG_H
#define DMI_EWISE_LONG_H

#include "kernels/ewise/ewise_vector_cpu.h"

/* e^(r + low) - 1 - r, |r| <= log(2) / 2, as r r / 2 in *half and what it returns */
DMI_EWISE_FN double dmi_long_rest(double r, double low, double *half)
{
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
    *half = 0.5 * r * r;
    return fma(2 * r * *half, p, low + fma(0.5 * r, r, -*half));
}

/* 2^k e^(r + low). 1 + r is exact as one and what that loses; 2^k comes in two steps, of which the second
 * rounds where the result is subnormal. */
DMI_EWISE_FN double dmi_long_power(double k, double r, double low)
{
    double square, rest = dmi_long_rest(r, low, &square);
    const double one = 1 + r, e = one + (square + ((r - (one - 1)) + rest));
    dmi_double_bits half = {.d = fma(k, 0.5, 0x1.8p52)}, other;
    other.d = (k - (half.d - 0x1.8p52)) + 0x1.8p52;
    half.u = (half.u << 52) + 0x3ff0000000000000u;
    other.u = (other.u << 52) + 0x3ff0000000000000u;
    return e * half.d * other.d;
}

/* x of at most 800 in size is k log(2) + r + low. */
DMI_EWISE_FN double dmi_long_split(double x, double *k, double *low)
{
    *k = fma(x, 0x1.71547652b82fep+0, 0x1.8p52) - 0x1.8p52;
    const double high = fma(*k, -0x1.62e42fefa39efp-1, x), r = fma(*k, -0x1.abc9e3b39803fp-56, high);
    *low = fma(*k, -0x1.abc9e3b39803fp-56, high - r);
    return r;
}

DMI_EWISE_FN double dmi_at_most(double a, double most)
{
    const double b = a > most ? most : a;
    return b < -most ? -most : b;
}

/* Errors are below 0.6 ulp, and below 0.8 of a subnormal result. */
DMI_EWISE_FN double dmi_exponential_f64(double a)
{
    double k, low, r = dmi_long_split(dmi_at_most(a, 800), &k, &low);
    return dmi_long_power(k, r, low);
}

DMI_EWISE_FN double dmi_f64_exp2(double a)
{
    const double x = dmi_at_most(a, 1200), k = (x + 0x1.8p52) - 0x1.8p52, f = x - k;
    const double r = f * 0x1.62e42fefa39efp-1,
                 low = fma(f, 0x1.62e42fefa39efp-1, -r) + f * 0x1.abc9e3b39803fp-56;
    return dmi_long_power(k, r, low);
}

/* 2^k - 1 + 2^k r + 2^k r r / 2 + 2^k rest, of which the first two sums are kept exactly. From 35 on the 1 is
 * rounded away. */
DMI_EWISE_FN double dmi_f64_expm1(double a)
{
    double k, low, square, x = dmi_at_most(a, 800), r = dmi_long_split(x, &k, &low);
    const double rest = dmi_long_rest(r, low, &square), whole = dmi_long_power(k, r, low) - 1;
    dmi_double_bits power = {.d = k + 0x1.8p52};
    power.u = (power.u << 52) + 0x3ff0000000000000u;
    const double less = power.d - 1, by_r = power.d * r, first = k == 0 ? r : less + by_r;
    const double lost = k == 0 ? 0 : by_r - (first - less) + ((power.d - less) - 1),
                 by_square = power.d * square, sum = first + by_square;
    const double y = sum + ((by_square - (sum - first)) + (lost + power.d * rest));
    return a == 0 ? a : fabs(x) > 45 ? whole : y;
}

DMI_EWISE_FN double dmi_hyperbolic_tangent_f64(double a)
{
    const double x = fabs(a), e = dmi_f64_expm1(2 * (x > 22 ? 22 : x));
    return copysign(e / (e + 2), a);
}

/* Half of e^x, also where e^x is infinite */
DMI_EWISE_FN double dmi_long_half(double x)
{
    double k, low, r = dmi_long_split(dmi_at_most(x, 800), &k, &low);
    return dmi_long_power(k - 1, r, low);
}

DMI_EWISE_FN double dmi_f64_sinh(double a)
{
    const double x = fabs(a), e = dmi_f64_expm1(x);
    return copysign(x > 35 ? dmi_long_half(x) : 0.5 * (e + e / (e + 1)), a);
}

DMI_EWISE_FN double dmi_f64_cosh(double a)
{
    const double x = fabs(a), e = dmi_exponential_f64(x);
    return x > 35 ? dmi_long_half(x) : 0.5 * e + 0.5 / e;
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

/* The logarithm r of x, where that is no number > 0 or infinite. */
DMI_EWISE_FN double dmi_long_ends(double x, double r)
{
    double y = x < 0 ? NAN : r;
    y = x == 0 ? -INFINITY : y;
    return (x > DBL_MAX) | (x != x) ? x : y;
}

DMI_EWISE_FN double dmi_logarithm_f64(double a)
{
    double low, high = dmi_long_logarithm(a, &low);
    return dmi_long_ends(a, high + low);
}

/* (high + low) times `by` + rest */
DMI_EWISE_FN double dmi_long_times(double high, double low, double by, double rest)
{
    const double product = high * by;
    return product + (fma(high, by, -product) + fma(high, rest, low * by));
}

DMI_EWISE_FN double dmi_f64_log2(double a)
{
    double low, high = dmi_long_logarithm(a, &low);
    return dmi_long_ends(a, dmi_long_times(high, low, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56));
}

DMI_EWISE_FN double dmi_f64_log10(double a)
{
    double low, high = dmi_long_logarithm(a, &low);
    return dmi_long_ends(a, dmi_long_times(high, low, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57));
}

DMI_EWISE_FN double dmi_f64_log1p(double a)
{
    const double u = 1 + a, lost = a > 1 ? 1 - (u - a) : a - (u - 1);
    double low, high = dmi_long_logarithm(u, &low);
    const double y = a < -1 ? NAN : high + (low + lost / u), z = a == -1 ? -INFINITY : y;
    return (a > DBL_MAX) | (a != a) | (a == 0) ? a : z;
}

/* By the names that OWN(name) asks for. */
DMI_EWISE_FN double dmi_f64_exp(double a)
{
    return dmi_exponential_f64(a);
}
DMI_EWISE_FN double dmi_f64_fmax(double a, double b)
{
    return (a > b) | (b != b) ? a : b;
}

#endif
