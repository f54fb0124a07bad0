/* Sums of doubles as an unevaluated pair: what hi rounds away, lo collects. Where an element is not finite hi
 * alone counts, and lo is 0. A pair beyond the range of doubles is scaled (kernels/reduce/scaled_sums.h). */
#ifndef DMI_CPU_DD_H
#define DMI_CPU_DD_H

#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"

#define DMI_SCALED_FN DMI_BODY
#include "kernels/reduce/scaled_sums.h"

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

/* The pair with |lo| at most half a unit of hi; hi is not finite if hi or lo is not, or if their sum is beyond
 * the range. */
DMI_BODY dmi_dd dmi_dd_normal(double hi, double lo)
{
    dmi_dd r;
    r.hi = dmi_two_sum(hi, lo, &r.lo);
    r.lo = dmi_finite(r.hi) ? r.lo : 0;
    return r;
}

/* Of pairs as loops have them, neither normal nor scaled. */
DMI_BODY dmi_dd dmi_dd_join(dmi_dd a, dmi_dd b)
{
    double e, s = dmi_two_sum(a.hi, b.hi, &e);
    return dmi_dd_normal(s, e + (a.lo + b.lo));
}

DMI_BODY bool dmi_dd_scaled(dmi_dd a)
{
    return dmi_is_scaled(a.hi, a.lo);
}

DMI_BODY dmi_dd dmi_dd_of_scaled(const dmi_scaled_sum *s)
{
    dmi_dd r;
    dmi_scaled_pair(s, &r.hi, &r.lo);
    return r;
}

static __attribute__((noinline, unused)) dmi_dd dmi_dd_add_scaled(dmi_dd a, dmi_dd b)
{
    dmi_scaled_sum s = {0, 0, 0};
    dmi_scaled_take(&s, a.hi, a.lo);
    dmi_scaled_take(&s, b.hi, b.lo);
    return dmi_dd_of_scaled(&s);
}

/* Of pairs that are kept. */
DMI_BODY dmi_dd dmi_dd_add(dmi_dd a, dmi_dd b)
{
    dmi_dd sum = dmi_dd_join(a, b);
    bool usual = dmi_finite(sum.hi) & !dmi_dd_scaled(a) & !dmi_dd_scaled(b);
    return __builtin_expect(usual, 1) ? sum : dmi_dd_add_scaled(a, b);
}

/* hi + lo rounded to odd: a further rounding to a shorter type then gives what rounding the pair once would. */
DMI_BODY double dmi_dd_odd(dmi_dd a)
{
    double e, s = dmi_two_sum(a.hi, a.lo, &e);
    if (dmi_finite(s) && e != 0) {
        uint64_t bits = dmi_f64_bits(s);
        if ((bits & 1) == 0) {
            bits = (e > 0) == (s > 0) ? bits + 1 : bits - 1;
        }
        return dmi_f64_from_bits(bits);
    }
    return s;
}

/* scale times the sum that a pair stands for, which is kept or as loops have it and finite. odd: see above. */
DMI_BODY double dmi_dd_value(dmi_dd a, bool odd, double scale)
{
    if (!dmi_finite(a.hi)) {
        return scale * a.hi;
    }
    return scale * (odd ? dmi_dd_odd(a) : a.hi + a.lo);
}

/* The same of a pair that is kept. */
DMI_BODY double dmi_dd_kept_value(dmi_dd a, bool odd, double scale)
{
    bool scaled = dmi_finite(a.hi) && dmi_dd_scaled(a);
    return scaled ? scale * a.lo * DMI_SCALE_UP : dmi_dd_value(a, odd, scale);
}

#endif
