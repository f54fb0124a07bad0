/* Trigonometric functions in f32 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_ANGLE_H
#define DMI_EWISE_ANGLE_H

#include "kernels/ewise/ewise_vector_cpu.h"

/* atan(y / x) of y, x >= 0: the interpolating polynomial of n / d, which is at most a half in size, and so many
 * eighths of a turn */
DMI_EWISE_FN double dmi_short_angle(double y, double x)
{
    const bool endless = (y == x) & (y > DBL_MAX), steep = y > 2 * x,
               middle = (!steep & (y > 0.5 * x)) | endless;
    const double n = steep ? -x : middle ? y - x : y, d = steep ? y : middle ? y + x : x == 0 ? 1 : x;
    const double w = endless ? 0 : n / d, q = w * w;
    double p = fma(q, 0x1.a6c6fad583814p-6, -0x1.c5d6bf841debdp-5);
    p = fma(p, q, 0x1.321dd6d863431p-4);
    p = fma(p, q, -0x1.735ced515af99p-4);
    p = fma(p, q, 0x1.c70c9aef0f951p-4);
    p = fma(p, q, -0x1.24920ad95fe5bp-3);
    p = fma(p, q, 0x1.999998dd5c199p-3);
    p = fma(p, q, -0x1.5555555526564p-2);
    return (steep ? 0x1.921fb54442d18p+0 : middle ? 0x1.921fb54442d18p-1 : 0) + fma(w * q, p, w);
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

/* asin of 0 <= x <= 1/2; beyond a half the angle that asin(x) is short of a right one */
DMI_EWISE_FN double dmi_short_arc(double x)
{
    const double z = x > 0.5 ? 0.5 * (1 - x) : x * x, w = x > 0.5 ? 2 * sqrt(z) : x;
    double p = fma(z, 0x1.e055c6ab71d4cp-6, 0x1.64157dc57bfbap-8);
    p = fma(p, z, 0x1.3c5d44991a0f2p-6);
    p = fma(p, z, 0x1.6a9c2ffd8a6d0p-6);
    p = fma(p, z, 0x1.f20913ba8d370p-6);
    p = fma(p, z, 0x1.6db5cef583cefp-5);
    p = fma(p, z, 0x1.333334d009e10p-4);
    p = fma(p, z, 0x1.55555554ede81p-3);
    return fma(w * z, p, w);
}

DMI_EWISE_FN float dmi_f32_asin(float a)
{
    const double x = (double)fabsf(a), r = dmi_short_arc(x);
    const float y = copysignf((float)(x > 0.5 ? 0x1.921fb54442d18p+0 - r : r), a);
    return x > 1 ? NAN : a != a ? a : y;
}

DMI_EWISE_FN float dmi_f32_acos(float a)
{
    const double x = (double)fabsf(a), r = dmi_short_arc(x);
    const double near = 0x1.921fb54442d18p+0 - (a < 0 ? -r : r), far = a < 0 ? 0x1.921fb54442d18p+1 - r : r;
    const float y = (float)(x > 0.5 ? far : near);
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

DMI_EWISE_FN float dmi_far_sine_f32(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    const float y = (float)((dmi_odd_quarter(q) != 0 ? c : s) * dmi_sign_of_turn(q));
    return a == 0 ? a : y;
}

DMI_EWISE_FN float dmi_far_cosine_f32(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    return (float)((dmi_odd_quarter(q) != 0 ? s : c) * dmi_sign_of_turn(q + 1));
}

DMI_EWISE_FN float dmi_far_tangent_f32(float a)
{
    double q, x = dmi_short_turn(a, &q);
    const double s = dmi_short_sine(x), c = dmi_short_cosine(x);
    const bool odd = dmi_odd_quarter(q) != 0;
    const float y = (float)((odd ? -c : s) / (odd ? s : c));
    return a == 0 ? a : y;
}

/* f64's atan2 has rare operands. */
DMI_EWISE_FN bool dmi_is_near_angle_f32(float y, float x)
{
    return (void)y, (void)x, true;
}
DMI_EWISE_FN float dmi_far_angle_of_f32(float y, float x)
{
    return dmi_f32_atan2(y, x);
}

/* Larger angles are rare (ewise_rare_cpu.h). Of the others a whole number of times pi is taken off in two
 * steps, of which the first is exact. */
static const float dmi_far_angle_f32 = 0x1p28f;

/* The sine of x - k pi, |.| <= pi / 2, with k's sign; k is a whole number and `part`, and turns has its low
 * bits */
DMI_EWISE_FN double dmi_sine_of_turn(double x, dmi_double_bits turns, double part)
{
    const double k = (turns.d - 0x1.8p52) + part;
    const double r = fma(-k, 0x1.1a62633145c07p-53, fma(-k, 0x1.921fb54442d18p+1, x)), y = r * r;
    double p = fma(y, 0x1.54e73e70229a1p-33, -0x1.ae20c38063741p-26);
    p = fma(p, y, 0x1.71dd8dddb60eep-19);
    p = fma(p, y, -0x1.a01a0011ad051p-13);
    p = fma(p, y, 0x1.1111110fc0382p-7);
    p = fma(p, y, -0x1.55555555549cap-3);
    dmi_double_bits s = {.d = fma(r * y, p, r)};
    s.u ^= turns.u << 63;
    return s.d;
}

DMI_EWISE_FN float dmi_f32_sin(float a)
{
    const dmi_double_bits turns = {.d = fma((double)a, 0x1.45f306dc9c883p-2, 0x1.8p52)};
    const float y = (float)dmi_sine_of_turn((double)a, turns, 0);
    return a == 0 ? a : y;
}

DMI_EWISE_FN float dmi_f32_cos(float a)
{
    const dmi_double_bits turns = {.d = fma((double)a, 0x1.45f306dc9c883p-2, -0.5) + 0x1.8p52};
    return -(float)dmi_sine_of_turn((double)a, turns, 0.5);
}

DMI_EWISE_FN float dmi_f32_tan(float a)
{
    const double x = (double)a;
    const dmi_double_bits turns = {.d = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52)};
    const double k = turns.d - 0x1.8p52;
    const double r = fma(-k, 0x1.1a62633145c07p-54, fma(-k, 0x1.921fb54442d18p+0, x));
    const double s = dmi_short_sine(r), c = dmi_short_cosine(r);
    const bool odd = (turns.u & 1) != 0;
    const float y = (float)((odd ? -c : s) / (odd ? s : c));
    return a == 0 ? a : y;
}

#endif
