/* Trigonometric functions in f32 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_ANGLE_H
#define DMI_EWISE_ANGLE_H

#include "kernels/ewise/ewise_vector_cpu.h"

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

#endif
