/* Sums of doubles as an unevaluated pair: what hi rounds away, lo collects. Where hi is not finite it alone
 * counts, and lo, which is then a NaN by its formula, is set to 0 at the end. */
#ifndef DMI_CPU_DD_H
#define DMI_CPU_DD_H

#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"

typedef struct dmi_dd {
    double hi, lo;
} dmi_dd;

/* D. Knuth, The Art of Computer Programming 2, 4.2.2: s + e == a + b exactly. */
DMI_BODY double dmi_two_sum(double a, double b, double *e)
{
    double s = a + b, t = s - a;
    *e = (a - (s - t)) + (b - t);
    return s;
}

DMI_BODY bool dmi_finite(double x)
{
    return x - x == 0;
}

/* The pair with |lo| at most half a unit of hi. */
DMI_BODY dmi_dd dmi_dd_normal(double hi, double lo)
{
    dmi_dd r;
    r.hi = dmi_two_sum(hi, lo, &r.lo);
    if (!dmi_finite(hi)) {
        r.hi = hi;
        r.lo = 0;
    } else if (!dmi_finite(r.hi)) {
        r.lo = 0;
    }
    return r;
}

DMI_BODY dmi_dd dmi_dd_add(dmi_dd a, dmi_dd b)
{
    double e, s = dmi_two_sum(a.hi, b.hi, &e);
    return dmi_dd_normal(s, e + (a.lo + b.lo));
}

/* hi + lo rounded to odd: a further rounding to a shorter type then gives what rounding the pair once would. */
DMI_BODY double dmi_dd_odd(dmi_dd a)
{
    double e, s = dmi_two_sum(a.hi, a.lo, &e);
    if (!dmi_finite(a.hi)) {
        return a.hi;
    }
    if (dmi_finite(s) && e != 0) {
        uint64_t bits = dmi_f64_bits(s);
        if ((bits & 1) == 0) {
            bits = (e > 0) == (s > 0) ? bits + 1 : bits - 1;
        }
        return dmi_f64_from_bits(bits);
    }
    return s;
}

#endif
