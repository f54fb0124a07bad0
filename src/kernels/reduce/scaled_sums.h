/* Sums of doubles beyond their range, on CPUs and GPUs. Compiled at run time too, so that it includes nothing.
 *
 * A sum of finite numbers must not depend on which of them are added first, on one worker or on several. So a
 * pair whose sum is beyond the range is kept scaled: its parts have changed places and are 2^-64 of what they
 * stand for. That hi + lo is not hi says so, for of any other finite pair that is kept it is. 2^64 elements are
 * more than there can be.
 *
 * Loops add elements without a look at the range. Where the lower part of their sum is not finite at the end,
 * an element was not, or what they had added up left the range on the way. Then the elements are taken once
 * more, into a scaled sum. */
#ifndef DMI_SCALED_SUMS_H
#define DMI_SCALED_SUMS_H

#ifndef DMI_SCALED_FN
#define DMI_SCALED_FN static __device__ __forceinline__
#endif
#define DMI_SCALE_UP 18446744073709551616.0 /* 2^64 */

typedef struct dmi_scaled_sum {
    double hi, lo; /* of the finite ones, 2^-64 of it */
    double rest;   /* the sum of the others; 0: there are none */
} dmi_scaled_sum;

/* Of a finite pair that is kept. */
DMI_SCALED_FN bool dmi_is_scaled(double hi, double lo)
{
    return hi + lo != hi;
}

/* A pair that is kept, or an element and 0. */
DMI_SCALED_FN void dmi_scaled_take(dmi_scaled_sum *s, double hi, double lo)
{
    if (hi - hi != 0) {
        s->rest += hi;
        return;
    }
    const bool scaled = dmi_is_scaled(hi, lo);
    const double a = scaled ? lo : hi * (1 / DMI_SCALE_UP), b = scaled ? hi : lo * (1 / DMI_SCALE_UP);
    const double sum = s->hi + a, t = sum - s->hi; /* s->hi + a == sum + what goes to lo, exactly */
    s->lo += ((s->hi - (sum - t)) + (a - t)) + b;
    s->hi = sum;
}

/* The pair to keep. */
DMI_SCALED_FN void dmi_scaled_pair(const dmi_scaled_sum *s, double *hi, double *lo)
{
    const double sum = s->hi + s->lo, t = sum - s->hi, below = (s->hi - (sum - t)) + (s->lo - t);
    const double whole = sum * DMI_SCALE_UP;
    const bool fits = whole - whole == 0, finite = s->rest == 0;
    *hi = !finite ? s->rest : fits ? whole : below;
    *lo = !finite ? 0 : fits ? below * DMI_SCALE_UP : sum;
}

#endif
