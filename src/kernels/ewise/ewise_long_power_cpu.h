/* Roots, powers and inverse hyperbolic functions in f64 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_LONG_POWER_H
#define DMI_EWISE_LONG_POWER_H

#include "kernels/ewise/ewise_long_cpu.h"

/* log(m) of m between the roots of 1/2 and 2, as what it returns and *low, of 70 bits: 2 s + s^3 (2/3 + 2/5 s^2
 * + ...) with s = (m - 1) / (m + 1), whose first terms are sums of two numbers each. */
DMI_EWISE_FN double dmi_double_logarithm(double m, double *low)
{
    const double f = m - 1, d = m + 1, d_lost = m - (d - 1), by = 1 / d, s = f * by;
    const double s_low = (fma(-s, d, f) - s * d_lost) * by;
    const double z = s * s, z_low = fma(2 * s, s_low, fma(s, s, -z));
    double p = fma(z, 2.0 / 25, 2.0 / 23);
    p = fma(p, z, 2.0 / 21);
    p = fma(p, z, 2.0 / 19);
    p = fma(p, z, 2.0 / 17);
    p = fma(p, z, 2.0 / 15);
    p = fma(p, z, 2.0 / 13);
    p = fma(p, z, 2.0 / 11);
    p = fma(p, z, 2.0 / 9);
    p = fma(p, z, 2.0 / 7);
    const double of_z = z * p, fifth = 0x1.999999999999ap-2 + of_z;
    const double fifth_low = ((0x1.999999999999ap-2 - fifth) + of_z) - 0x1.999999999999ap-56;
    const double third_part = z * fifth,
                 part_low = fma(z, fifth_low, fma(z_low, fifth, fma(z, fifth, -third_part)));
    const double third = 0x1.5555555555555p-1 + third_part;
    const double third_low = ((0x1.5555555555555p-1 - third) + third_part) + (0x1.5555555555555p-55 + part_low);
    const double cube = s * z, cube_low = fma(s, z_low, fma(s_low, z, fma(s, z, -cube)));
    const double more = cube * third,
                 more_low = fma(cube, third_low, fma(cube_low, third, fma(cube, third, -more)));
    const double high = 2 * s + more;
    *low = ((2 * s - high) + more) + fma(2, s_low, more_low);
    return high;
}

/* x^y of normal x and finite y, by e^(y log |x|); others are the C library's (ewise_rare_cpu.h). */
DMI_EWISE_FN double dmi_power_f64(double x, double y)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu, bias = 1024;
    dmi_double_bits m = {.d = fabs(x)}, whole;
    const uint64_t power = (m.u - root + (bias << 52)) >> 52;
    m.u -= (power - bias) << 52;
    whole.u = 0x4330000000000000u | power; /* 2^52 + power */
    const double k = whole.d - (0x1p52 + 1024), of_k = k * 0x1.62e42fee00000p-1;
    double log_low, log = dmi_double_logarithm(m.d, &log_low);
    const double high = of_k + log, low = ((of_k - high) + log) + fma(k, 0x1.a39ef35793c76p-33, log_low);
    const double exact = y * high, product = dmi_at_most(exact, 800);
    const double rest = fabs(exact) > 800 ? 0 : fma(y, low, fma(y, high, -exact));
    double turns, lost, r = dmi_long_split(product, &turns, &lost);
    const double sum = r + rest, size = dmi_long_power(turns, sum, lost + ((r - sum) + rest));
    const double half = 0.5 * y;
    const bool is_whole = rint(y) == y, odd = is_whole & (rint(half) != half);
    const double of_negative = is_whole ? (odd ? -size : size) : NAN;
    return x < 0 ? of_negative : size;
}

DMI_EWISE_FN bool dmi_is_near_power_f64(double x, double y)
{
    return (fabs(x) >= DBL_MIN) & (fabs(x) <= DBL_MAX) & (fabs(y) <= DBL_MAX);
}
DMI_EWISE_FN double dmi_far_power_f64(double x, double y)
{
    return pow(x, y);
}

/* By e^(log(x) / 3), and a step of Newton's method whose x - y^3 is exact */
DMI_EWISE_FN double dmi_f64_cbrt(double a)
{
    const double size = fabs(a);
    const bool small = size < DBL_MIN;
    const double x = small ? size * 0x1p54 : size;
    double k, r = dmi_short_logarithm(x, &k);
    const double y = dmi_short_exponential(fma(k, 0x1.62e42fefa39efp-1, r) * (1.0 / 3));
    const double square = y * y, square_lost = fma(y, y, -square), cube = square * y;
    const double over = (cube - x) + fma(square, y, -cube) + square_lost * y;
    const double z = (y - over / (3 * square)) * (small ? 0x1p-18 : 1);
    return (a == 0) | (size > DBL_MAX) | (a != a) ? a : copysign(z, a);
}

DMI_EWISE_FN double dmi_f64_hypot(double a, double b)
{
    const double p = fabs(a), q = fabs(b), high = p > q ? p : q, low = p > q ? q : p;
    const double by = high > 0x1p500 ? 0x1p-600 : high < 0x1p-400 ? 0x1p600 : 1;
    const double back = high > 0x1p500 ? 0x1p600 : high < 0x1p-400 ? 0x1p-600 : 1;
    const double x = high * by, y = low * by, xx = x * x, yy = y * y, sum = xx + yy, root = sqrt(sum);
    const double lost = (fma(x, x, -xx) + fma(y, y, -yy)) + ((xx - sum) + yy);
    const double z = root == 0 ? 0 : root + 0.5 * (fma(-root, root, sum) + lost) / root;
    const double r = (a != a) | (b != b) ? a + b : high > DBL_MAX ? high : z * back;
    return (p > DBL_MAX) | (q > DBL_MAX) ? INFINITY : r;
}

/* log(1 + x + low) of x > -1, plus `more` */
DMI_EWISE_FN double dmi_long_logarithm_1_plus(double x, double low, double more)
{
    const double u = 1 + x, lost = (x > 1 ? 1 - (u - x) : x - (u - 1)) + low;
    double log_low, high = dmi_long_logarithm(u, &log_low);
    return high + (more + (log_low + lost / u));
}

/* log(x + sqrt(x x + 1)); for large x log(2 x) */
DMI_EWISE_FN double dmi_f64_asinh(double a)
{
    const double size = fabs(a);
    const bool large = size > 0x1p30;
    const double x = large ? 1 : size, y = x * x, y_low = fma(x, x, -y), s = 1 + y, root = sqrt(s);
    const double s_low = (y > 1 ? 1 - (s - y) : y - (s - 1)) + y_low;
    const double root_low = 0.5 * (fma(-root, root, s) + s_low) / root;
    const double d = 1 + root, q = y / d,
                 q_low = (fma(-q, d, y) + y_low - q * (root_low + ((1 - d) + root))) / d;
    const double sum = x + q, sum_low = ((x - sum) + q) + q_low;
    const double r = dmi_long_logarithm_1_plus(large ? size - 1 : sum, large ? 0 : sum_low,
                                               large ? 0x1.62e42fefa39efp-1 : 0);
    return (size > DBL_MAX) | (a != a) | (a == 0) ? a : copysign(r, a);
}

DMI_EWISE_FN double dmi_f64_acosh(double a)
{
    const bool large = a > 0x1p30;
    const double x = large ? 2 : a, y = x - 1, y_low = (x - y) - 1, z = x + 1, z_low = x - (z - 1);
    const double p = y * z, p_low = fma(y, z, -p) + fma(y, z_low, y_low * z), root = sqrt(p);
    const double root_low = p > 0 ? 0.5 * (fma(-root, root, p) + p_low) / root : 0;
    const double sum = root + y, sum_low = ((root - sum) + y) + (root_low + y_low);
    const double r =
        dmi_long_logarithm_1_plus(large ? a - 1 : sum, large ? 0 : sum_low, large ? 0x1.62e42fefa39efp-1 : 0);
    return a < 1 ? NAN : (a > DBL_MAX) | (a != a) ? a : r;
}

/* Half of log(1 + 2 x / (1 - x)) */
DMI_EWISE_FN double dmi_f64_atanh(double a)
{
    const double x = fabs(a), d = 1 - x, d_low = (1 - d) - x, q = 2 * x / d,
                 q_low = (fma(-q, d, 2 * x) - q * d_low) / d;
    const double r = copysign(0.5 * dmi_long_logarithm_1_plus(q, q_low, 0), a);
    const double s = x == 1 ? copysign(INFINITY, a) : r;
    return x > 1 ? NAN : (a != a) | (a == 0) ? a : s;
}

DMI_EWISE_FN double dmi_log_add_exp_f64(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a, d = high == low ? 0 : low - high;
    const double y = high + dmi_f64_log1p(dmi_exponential_f64(d));
    return (a != a) | (b != b) ? a + b : y;
}

#endif
