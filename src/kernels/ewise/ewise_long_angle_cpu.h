/* Trigonometric functions and their inverses in f64 as vector code: see ewise_vector_cpu.h. */
#ifndef DMI_EWISE_LONG_ANGLE_H
#define DMI_EWISE_LONG_ANGLE_H

#include "kernels/ewise/ewise_long_cpu.h"

/* Angles of more radians are rare, and the C library's (ewise_rare_cpu.h). */
static const double dmi_far_angle_f64 = 0x1p30;

/* a, of at most dmi_far_angle_f64, is so many quarter turns (the low bits of *turns) and the returned angle
 * plus *low, of at most one eighth. Pi in three parts; a less the first of them is exact. */
DMI_EWISE_FN double dmi_long_turn(double a, dmi_double_bits *turns, double *low)
{
    turns->d = fma(a, 0x1.45f306dc9c883p-1, 0x1.8p52);
    const double k = turns->d - 0x1.8p52, first = fma(-k, 0x1.921fb54442d18p+0, a);
    const double second = k * 0x1.1a62633145c07p-54, lost = fma(k, 0x1.1a62633145c07p-54, -second);
    const double r = first - second, back = r - first;
    *low = ((first - (r - back)) - (second + back)) - fma(k, -0x1.f1976b7ed8fbcp-110, lost);
    return r;
}

/* sin(r + low) and cos(r + low), |r| <= pi / 4 and a little; the coefficients are those of FreeBSD's k_sin.c
 * and k_cos.c (Sun Microsystems 1993). What the result loses by rounding goes to *rest. */
DMI_EWISE_FN double dmi_long_sine(double r, double low, double *rest)
{
    const double z = r * r;
    double p = fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    p = fma(p, z, 2.75573137070700676789e-06);
    p = fma(p, z, -1.98412698298579493134e-04);
    p = fma(p, z, 8.33333333332248946124e-03);
    p = fma(p, z, -1.66666666666666324348e-01);
    const double by = fma(z * r, p, fma(-0.5 * z, low, low)), sum = r + by;
    *rest = (r - sum) + by;
    return sum;
}
DMI_EWISE_FN double dmi_long_cosine(double r, double low, double *rest)
{
    const double z = r * r, half = 0.5 * z, first = 1 - half;
    double p = fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
    p = fma(p, z, -2.75573143513906633035e-07);
    p = fma(p, z, 2.48015872894767294178e-05);
    p = fma(p, z, -1.38888888888741095749e-03);
    p = fma(p, z, 4.16666666666666019037e-02);
    const double lost = fma(r, r, -z), by = ((1 - first) - half) + fma(z * z, p, -fma(0.5, lost, r * low)),
                 sum = first + by;
    *rest = (first - sum) + by;
    return sum;
}

DMI_EWISE_FN double dmi_turned(double x, uint64_t turns)
{
    dmi_double_bits y = {.d = x};
    y.u ^= (turns & 2) << 62;
    return y.d;
}

DMI_EWISE_FN double dmi_f64_sin(double a)
{
    dmi_double_bits turns;
    double low, lost, r = dmi_long_turn(a, &turns, &low);
    const double s = dmi_long_sine(r, low, &lost), c = dmi_long_cosine(r, low, &lost);
    return a == 0 ? a : dmi_turned((turns.u & 1) != 0 ? c : s, turns.u);
}

DMI_EWISE_FN double dmi_f64_cos(double a)
{
    dmi_double_bits turns;
    double low, lost, r = dmi_long_turn(a, &turns, &low);
    const double s = dmi_long_sine(r, low, &lost), c = dmi_long_cosine(r, low, &lost);
    return dmi_turned((turns.u & 1) != 0 ? s : c, turns.u + 1);
}

DMI_EWISE_FN double dmi_f64_tan(double a)
{
    dmi_double_bits turns;
    double low, sine_lost, cosine_lost, r = dmi_long_turn(a, &turns, &low);
    const double s = dmi_long_sine(r, low, &sine_lost), c = dmi_long_cosine(r, low, &cosine_lost);
    const bool odd = (turns.u & 1) != 0;
    const double n = odd ? -c : s, n_lost = odd ? -cosine_lost : sine_lost, d = odd ? s : c,
                 d_lost = odd ? sine_lost : cosine_lost;
    const double by = 1 / d, q = n * by, y = fma((fma(-q, d, n) + n_lost) - q * d_lost, by, q);
    return a == 0 ? a : fabs(y) <= DBL_MAX ? y : q;
}

/* (atan(w) - w) / w of q = w w, |w| <= 1/2: interpolates at Chebyshev's points */
DMI_EWISE_FN double dmi_long_atan_rest(double q)
{
    double p = fma(q, -0x1.2dd40041c2c27p-7, 0x1.99984c3613cd5p-6);
    p = fma(p, q, -0x1.37ce51c509047p-5);
    p = fma(p, q, 0x1.7b1d7856d14a5p-5);
    p = fma(p, q, -0x1.ad441c37157fap-5);
    p = fma(p, q, 0x1.e1a795c3fb24fp-5);
    p = fma(p, q, -0x1.110ea393fffe2p-4);
    p = fma(p, q, 0x1.3b138e4b5b747p-4);
    p = fma(p, q, -0x1.745d16016ea5fp-4);
    p = fma(p, q, 0x1.c71c71c014e0dp-4);
    p = fma(p, q, -0x1.24924924881f5p-3);
    p = fma(p, q, 0x1.99999999998e0p-3);
    return q * fma(p, q, -0x1.5555555555555p-2);
}

/* The angle of (a, b): n / d plus so many eighths of a turn; n is y, y - x (which is exact then) or -x,
 * whichever makes |n / d| at most a half. */
DMI_EWISE_FN double dmi_f64_atan2(double b, double a)
{
    const double y = fabs(b), x = fabs(a), high = y > x ? y : x, small = y > x ? x : y, sum = high + small;
    const double over = y > 0.5 * x ? 1 : 0, eighths = y > 2 * x ? 2 : over;
    const double n = eighths == 0 ? y : eighths == 1 ? y - x : -x;
    const double d = eighths == 1 ? sum : high, d_lost = eighths == 1 ? (high - sum) + small : 0;
    const double w = n / d, low = (fma(-w, d, n) - w * d_lost) / d, back = a < 0 ? -1 : 1;
    const double v = w * back, r = fma(v, dmi_long_atan_rest(w * w), low * back);
    const double turn = a < 0 ? 4 - eighths : eighths, of_turn = turn * 0x1.921fb54442d18p-1;
    const double lost = fma(turn, 0x1.1a62633145c07p-55, fma(turn, 0x1.921fb54442d18p-1, -of_turn));
    const double first = of_turn + v;
    return copysign(first + (((of_turn - first) + v) + (lost + r)), b);
}
/* Of zeros, infinities and what sums to them it is the C library's (ewise_rare_cpu.h). */
DMI_EWISE_FN bool dmi_is_near_angle_f64(double y, double x)
{
    return (fabs(y) <= 0x1p1020) & (fabs(x) <= 0x1p1020) & ((y != 0) | (x != 0));
}
DMI_EWISE_FN double dmi_far_angle_of_f64(double y, double x)
{
    return atan2(y, x);
}

DMI_EWISE_FN double dmi_f64_atan(double a)
{
    const double x = fabs(a);
    const bool steep = x > 2, middle = !steep & (x > 0.5);
    const double n = steep ? -1 : middle ? x - 1 : x, d = steep ? x : middle ? x + 1 : 1, by = 1 / d;
    const double d_lost = middle ? x - (d - 1) : 0, w = n * by,
                 low = steep & (x > 0x1p60) ? 0 : fma(-w, d, n) - w * d_lost;
    const double of_turn = steep ? 0x1.921fb54442d18p+0 : middle ? 0x1.921fb54442d18p-1 : 0;
    const double lost = steep ? 0x1.1a62633145c07p-54 : middle ? 0x1.1a62633145c07p-55 : 0;
    const double r = fma(w, dmi_long_atan_rest(w * w), low * by);
    const double first = of_turn + w, result = first + (((of_turn - first) + w) + (lost + r));
    return a != a ? a : copysign(result, a);
}

/* (asin(x) - x) / x of z = x x, |x| <= 1/2: interpolates at Chebyshev's points */
DMI_EWISE_FN double dmi_long_asin_rest(double z)
{
    double p = fma(z, 0x1.d78189767524dp-6, -0x1.e7a24f548c99cp-7);
    p = fma(p, z, 0x1.1d661531b222dp-6);
    p = fma(p, z, 0x1.653a8f8cfd43dp-8);
    p = fma(p, z, 0x1.524ea8b3aad30p-7);
    p = fma(p, z, 0x1.78246f32d075cp-7);
    p = fma(p, z, 0x1.c9cf3759fd8ffp-7);
    p = fma(p, z, 0x1.1c4d343fa57f6p-6);
    p = fma(p, z, 0x1.6e8bb1d89492bp-6);
    p = fma(p, z, 0x1.f1c71c1d4aa0dp-6);
    p = fma(p, z, 0x1.6db6db6e3292ep-5);
    p = fma(p, z, 0x1.3333333332ec4p-4);
    return z * fma(p, z, 0x1.5555555555556p-3);
}

/* asin(x) of 0 <= x <= 1 is of_turn plus `times` (w + low) with asin's series of w: beyond a half asin(x) is pi
 * / 2 - 2 asin(sqrt((1 - x) / 2)). */
DMI_EWISE_FN double dmi_long_arc(double x, bool *far, double *rest)
{
    *far = x > 0.5;
    const double half = 0.5 * (1 - x), z = *far ? half : x * x, root = sqrt(z);
    const double w = *far ? root : x, low = *far & (root > 0) ? 0.5 * fma(-root, root, z) / root : 0;
    *rest = fma(w, dmi_long_asin_rest(z), low);
    return w;
}

DMI_EWISE_FN double dmi_f64_asin(double a)
{
    bool far;
    double rest, w = dmi_long_arc(fabs(a), &far, &rest);
    const double first = 0x1.921fb54442d18p+0 - 2 * w;
    const double turned =
        first + (((0x1.921fb54442d18p+0 - first) - 2 * w) + fma(-2, rest, 0x1.1a62633145c07p-54));
    return fabs(a) > 1 ? NAN : a != a ? a : copysign(far ? turned : w + rest, a);
}

DMI_EWISE_FN double dmi_f64_acos(double a)
{
    bool far;
    double rest, w = dmi_long_arc(fabs(a), &far, &rest);
    const double sign = copysign(1, a), less = far ? 2 * w : -(sign * w),
                 less_rest = far ? 2 * rest : -(sign * rest);
    const double of_turn = far ? (a < 0 ? 0x1.921fb54442d18p+1 : 0) : 0x1.921fb54442d18p+0;
    const double lost = far ? (a < 0 ? 0x1.1a62633145c07p-53 : 0) : 0x1.1a62633145c07p-54;
    const bool turned = far & (a < 0);
    const double v = turned ? -less : less, first = of_turn + v;
    const double y = first + (((of_turn - first) + v) + ((turned ? -less_rest : less_rest) + lost));
    return fabs(a) > 1 ? NAN : a != a ? a : y;
}

DMI_EWISE_FN double dmi_far_sine_f64(double a)
{
    return sin(a);
}
DMI_EWISE_FN double dmi_far_cosine_f64(double a)
{
    return cos(a);
}
DMI_EWISE_FN double dmi_far_tangent_f64(double a)
{
    return tan(a);
}

#endif
