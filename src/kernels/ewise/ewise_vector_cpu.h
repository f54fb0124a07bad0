/* Functions of ewise.def without branches or calls, so that loops over them take several numbers at once. The
 * float ones are computed in double and rounded once: their errors are below 0.51 ulp. fma is one rounding on
 * every processor, so bits do not depend on the width of the vectors. */
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

/* atan(y / x) of y, x >= 0, by the series of (z - 1) / (z + 1) where z is above tan(pi / 8) */
DMI_EWISE_FN double dmi_short_angle(double y, double x)
{
    const double low = y < x ? y : x, high = y < x ? x : y;
    const double z = low == high ? (high == 0 ? 0 : 1) : low / high;
    const double turned = (z - 1) / (z + 1), w = z > 0x1.a8279ap-2 ? turned : z, q = w * w;
    double p = -1.0 / 27;
    p = fma(p, q, 1.0 / 25);
    p = fma(p, q, -1.0 / 23);
    p = fma(p, q, 1.0 / 21);
    p = fma(p, q, -1.0 / 19);
    p = fma(p, q, 1.0 / 17);
    p = fma(p, q, -1.0 / 15);
    p = fma(p, q, 1.0 / 13);
    p = fma(p, q, -1.0 / 11);
    p = fma(p, q, 1.0 / 9);
    p = fma(p, q, -1.0 / 7);
    p = fma(p, q, 1.0 / 5);
    p = fma(p, q, -1.0 / 3);
    const double r = fma(w * q, p, w), part = z > 0x1.a8279ap-2 ? 0x1.921fb54442d18p-1 + r : r;
    return y > x ? 0x1.921fb54442d18p+0 - part : part;
}

DMI_EWISE_FN float dmi_f32_atan2(float y, float x)
{
    const double r = dmi_short_angle((double)fabsf(y), (double)fabsf(x));
    const float a = copysignf((float)(copysignf(1, x) < 0 ? 0x1.921fb54442d18p+1 - r : r), y);
    return (y != y) | (x != x) ? y + x : a;
}

DMI_EWISE_FN float dmi_f32_atan(float a)
{
    const float y = copysignf((float)dmi_short_angle((double)fabsf(a), 1), a);
    return a != a ? a : y;
}

DMI_EWISE_FN float dmi_f32_asin(float a)
{
    const double x = (double)fabsf(a), other = sqrt((1 - x) * (1 + x));
    const float y = copysignf((float)dmi_short_angle(x, other), a);
    return x > 1 ? NAN : a != a ? a : y;
}

DMI_EWISE_FN float dmi_f32_acos(float a)
{
    const double x = (double)fabsf(a), r = dmi_short_angle(sqrt((1 - x) * (1 + x)), x);
    const float y = (float)(a < 0 ? 0x1.921fb54442d18p+1 - r : r);
    return x > 1 ? NAN : a != a ? a : y;
}

/* a is q quarter turns (modulo 4) and the returned angle of at most one eighth. Products of a and 29 bits of 2
 * / pi each are exact, and so is what is left of them beyond whole turns; seven of them serve the largest a. */
DMI_EWISE_FN double dmi_short_turn(float a, double *q)
{
    const double x = (double)a;
    double part[8];
    part[0] = x * 0x1.45f306d000000p-1;
    part[1] = x * 0x1.9391054000000p-30;
    part[2] = x * 0x1.4fe13ab000000p-59;
    part[3] = x * 0x1.d1f534d000000p-88;
    part[4] = x * 0x1.b81b6c5000000p-117;
    part[5] = x * 0x1.5993c40000000p-148;
    part[6] = x * 0x1.c820ff2000000p-175;
    part[7] = x * 0x1.163abde000000p-204;
    for (int i = 0; i < 8; i++) {
        part[i] -= 4 * rint(part[i] * 0.25);
    }
    double sum = part[7];
    for (int i = 6; i >= 0; i--) {
        sum += part[i];
    }
    *q = rint(sum);
    sum = part[0] - *q;
    for (int i = 1; i < 8; i++) {
        sum += part[i];
    }
    return sum * 0x1.921fb54442d18p+0;
}

/* The sine of x, |x| <= pi / 4 and a little, and its cosine. */
DMI_EWISE_FN double dmi_short_sine(double x)
{
    const double y = x * x;
    double p = fma(y, -1.0 / 39916800, 1.0 / 362880);
    p = fma(p, y, -1.0 / 5040);
    p = fma(p, y, 1.0 / 120);
    p = fma(p, y, -1.0 / 6);
    return fma(x * y, p, x);
}
DMI_EWISE_FN double dmi_short_cosine(double x)
{
    const double y = x * x;
    double p = fma(y, 1.0 / 479001600, -1.0 / 3628800);
    p = fma(p, y, 1.0 / 40320);
    p = fma(p, y, -1.0 / 720);
    p = fma(p, y, 1.0 / 24);
    p = fma(p, y, -0.5);
    return fma(p, y, 1.0);
}

/* Of a quarter turn q: is it odd? Does the sine change its sign in it? q is a whole number between -8 and 8. */
DMI_EWISE_FN double dmi_odd_quarter(double q)
{
    return fabs(q - 2 * rint(q * 0.5));
}
DMI_EWISE_FN double dmi_sign_of_turn(double q)
{
    const double half = floor(q * 0.5);
    return 1 - 2 * fabs(half - 2 * rint(half * 0.5));
}

DMI_EWISE_FN float dmi_f32_sin(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    const float y = (float)((dmi_odd_quarter(q) != 0 ? c : s) * dmi_sign_of_turn(q));
    return a == 0 ? a : y;
}

DMI_EWISE_FN float dmi_f32_cos(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    return (float)((dmi_odd_quarter(q) != 0 ? s : c) * dmi_sign_of_turn(q + 1));
}

DMI_EWISE_FN float dmi_f32_tan(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    const bool odd = dmi_odd_quarter(q) != 0;
    const float y = (float)((odd ? -c : s) / (odd ? s : c));
    return a == 0 ? a : y;
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

/* The others of the C library, by the same names. */
DMI_EWISE_FN float dmi_f32_exp(float a)
{
    return dmi_exponential_f32(a);
}
DMI_EWISE_FN float dmi_f32_sqrt(float a)
{
    return sqrtf(a);
}
DMI_EWISE_FN float dmi_f32_fabs(float a)
{
    return fabsf(a);
}
DMI_EWISE_FN float dmi_f32_floor(float a)
{
    return floorf(a);
}
DMI_EWISE_FN float dmi_f32_ceil(float a)
{
    return ceilf(a);
}
DMI_EWISE_FN float dmi_f32_trunc(float a)
{
    return truncf(a);
}
DMI_EWISE_FN float dmi_f32_rint(float a)
{
    return rintf(a);
}
DMI_EWISE_FN float dmi_f32_erf(float a)
{
    return erff(a);
}
DMI_EWISE_FN float dmi_f32_erfc(float a)
{
    return erfcf(a);
}
DMI_EWISE_FN float dmi_f32_tgamma(float a)
{
    return tgammaf(a);
}
DMI_EWISE_FN float dmi_f32_hypot(float a, float b)
{
    return hypotf(a, b);
}
DMI_EWISE_FN float dmi_f32_fmax(float a, float b)
{
    return (a > b) | (b != b) ? a : b;
}
DMI_EWISE_FN float dmi_f32_copysign(float a, float b)
{
    return copysignf(a, b);
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
