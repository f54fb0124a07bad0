/* What the expressions of ewise.def use on the CPU: functions that the C library lacks, or has in another form. Each is
 * named after its carrier: TY(remainder) is dmi_remainder_f32 and so on. */
#ifndef DMI_EWISE_MATH_H
#define DMI_EWISE_MATH_H

#include "kernels/ewise/ewise_angle_cpu.h"
#include "kernels/ewise/ewise_long_angle_cpu.h"
#include "kernels/ewise/ewise_long_power_cpu.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The formulas serve unsigned types too, which are never below 0. */
#pragma GCC diagnostic ignored "-Wtype-limits"

/* --- every ordered type */
#define DMI_EWISE_ORDERED(suffix, type)                                                                        \
    DMI_EWISE_FN type dmi_clip_##suffix(type x, type low, type high)                                           \
    {                                                                                                          \
        type y = x > low || x != x ? x : low;                                                                  \
        y = low != low ? low : y;                                                                              \
        type z = y < high || y != y ? y : high;                                                                \
        return high != high ? high : z;                                                                        \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_sign_##suffix(type x)                                                                \
    {                                                                                                          \
        return x != x ? x : (type)((x > 0) - (x < 0));                                                         \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_conjugate_##suffix(type x)                                                           \
    {                                                                                                          \
        return x;                                                                                              \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_real_part_##suffix(type x)                                                           \
    {                                                                                                          \
        return x;                                                                                              \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_imaginary_part_##suffix(type x)                                                      \
    {                                                                                                          \
        return (void)x, (type)0;                                                                               \
    }

/* --- integers: the quotient rounds down, the remainder has the divisor's sign, both are 0 for a divisor of 0 */
#define DMI_EWISE_INTEGER(suffix, type, utype, bits)                                                           \
    DMI_EWISE_FN type dmi_floor_divide_##suffix(type a, type b)                                                \
    {                                                                                                          \
        if (b == 0 || (b == (type)-1 && (type)-1 < 0)) {                                                       \
            return b == 0 ? 0 : (type)(0 - (utype)a);                                                          \
        }                                                                                                      \
        type q = a / b;                                                                                        \
        return (type)(q - (a % b != 0 && (a < 0) != (b < 0)));                                                 \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_remainder_##suffix(type a, type b)                                                   \
    {                                                                                                          \
        if (b == 0 || (b == (type)-1 && (type)-1 < 0)) {                                                       \
            return 0;                                                                                          \
        }                                                                                                      \
        type r = a % b;                                                                                        \
        return (type)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                               \
    }                                                                                                          \
    /* by squaring; with a negative exponent 1 / a^-b, rounded towards zero */                                 \
    DMI_EWISE_FN type dmi_power_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        utype result = 1, base = (utype)a;                                                                     \
        if (b < 0) {                                                                                           \
            return (type)(a == 1 ? 1 : a == (type)-1 ? (b % 2 == 0 ? 1 : -1) : 0);                             \
        }                                                                                                      \
        for (utype e = (utype)b; e > 0; e >>= 1) {                                                             \
            result *= e & 1 ? base : 1;                                                                        \
            base *= base;                                                                                      \
        }                                                                                                      \
        return (type)result;                                                                                   \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_absolute_##suffix(type x) { return x < 0 ? (type)(0 - (utype)x) : x; }               \
    DMI_EWISE_FN type dmi_invert_##suffix(type x) { return (type)~x; }                                         \
    DMI_EWISE_FN type dmi_left_shift_##suffix(type a, type b)                                                  \
    {                                                                                                          \
        return b < 0 || b >= (bits) ? 0 : (type)((utype)a << b);                                               \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_right_shift_##suffix(type a, type b)                                                 \
    {                                                                                                          \
        return b < 0 || b >= (bits) ? (a < 0 ? (type)-1 : 0) : (type)(a >> b);                                 \
    }

/* --- floats */
#define DMI_EWISE_FLOAT(suffix, type, f)                                                                       \
    DMI_EWISE_FN type dmi_remainder_##suffix(type a, type b)                                                   \
    {                                                                                                          \
        type r = fmod##f(a, b);                                                                                \
        if (r == 0) {                                                                                          \
            return copysign##f(0, b);                                                                          \
        }                                                                                                      \
        return (r < 0) != (b < 0) && r == r ? r + b : r;                                                       \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_floor_divide_##suffix(type a, type b)                                                \
    {                                                                                                          \
        if (b == 0) {                                                                                          \
            return a / b;                                                                                      \
        }                                                                                                      \
        type r = fmod##f(a, b), q = (a - r) / b;                                                               \
        q -= r != 0 && (r < 0) != (b < 0);                                                                     \
        if (q == 0) {                                                                                          \
            return copysign##f(0, a / b);                                                                      \
        }                                                                                                      \
        type whole = floor##f(q);                                                                              \
        return whole + (q - whole > (type)0.5);                                                                \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_absolute_##suffix(type x)                                                            \
    {                                                                                                          \
        return fabs##f(x);                                                                                     \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_square_root_##suffix(type x)                                                         \
    {                                                                                                          \
        return sqrt##f(x);                                                                                     \
    }                                                                                                          \
    DMI_EWISE_FN bool dmi_is_infinite_##suffix(type x)                                                         \
    {                                                                                                          \
        return fabs##f(x) == (type)INFINITY;                                                                   \
    }                                                                                                          \
    DMI_EWISE_FN bool dmi_is_finite_##suffix(type x)                                                           \
    {                                                                                                          \
        return fabs##f(x) < (type)INFINITY;                                                                    \
    }                                                                                                          \
    DMI_EWISE_FN bool dmi_sign_bit_##suffix(type x)                                                            \
    {                                                                                                          \
        return signbit(x) != 0;                                                                                \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_log_gamma_##suffix(type x)                                                           \
    {                                                                                                          \
        int sign; /* lgamma would keep it in a variable that all threads share */                              \
        return lgamma##f##_r(x, &sign);                                                                        \
    }

/* Of exp(-|x|), which does not overflow where the result is a subnormal number. */
DMI_EWISE_FN double dmi_sigmoid_f64(double x)
{
    double e = dmi_exponential_f64(x < 0 ? x : -x);
    return (x < 0 ? e : 1) / (1 + e);
}

/* x/2 erfc(-x / sqrt(2)). For large -x, erfc falls so steeply that the rounding of its argument y shows: its slope times what is
 * rounded away mends that. */
DMI_EWISE_FN double dmi_gelu_f64(double x)
{
    const double root = 0x1.6a09e667f3bcdp-1, low = -0x1.bdd3413b26456p-55, y = -x * root;
    const double lost = fma(-x, root, -y) - x * low, slope = -0x1.20dd750429b6dp+0 * dmi_exponential_f64(-y * y);
    return slope == 0 ? 0.5 * x * erfc(y) : 0.5 * x * (erfc(y) + slope * lost);
}
DMI_EWISE_FN float dmi_gelu_f32(float x)
{
    return (float)(0.5 * (double)x * erfc((double)x * -0x1.6a09e667f3bcdp-1));
}

/* --- complex numbers, by the textbook's formulas: infinities may come out as NaN */
#define DMI_EWISE_COMPLEX(suffix, type, real, f)                                                               \
    DMI_EWISE_FN type dmi_pair_##suffix(real re, real im)                                                      \
    {                                                                                                          \
        union {                                                                                                \
            real part[2];                                                                                      \
            type both;                                                                                         \
        } u = {.part = {re, im}};                                                                              \
        return u.both;                                                                                         \
    }                                                                                                          \
    DMI_EWISE_FN type dmi_times_##suffix(type a, type b)                                                       \
    {                                                                                                          \
        real p = creal##f(a), q = cimag##f(a), r = creal##f(b), s = cimag##f(b);                               \
        return dmi_pair_##suffix(p *r - q * s, p *s + q * r);                                                  \
    }                                                                                                          \
    /* Smith's: divides by the larger part first, so that nothing overflows on the way */                      \
    DMI_EWISE_FN type dmi_quotient_##suffix(type a, type b)                                                    \
    {                                                                                                          \
        real p = creal##f(a), q = cimag##f(a), r = creal##f(b), s = cimag##f(b);                               \
        if (fabs##f(r) >= fabs##f(s)) {                                                                        \
            real t = r == 0 && s == 0 ? s : s / r, d = r + s * t;                                              \
            return dmi_pair_##suffix((p + q * t) / d, (q - p * t) / d);                                        \
        }                                                                                                      \
        real t = r / s, d = r * t + s;                                                                         \
        return dmi_pair_##suffix((p * t + q) / d, (q * t - p) / d);                                            \
    }                                                                                                          \
    DMI_EWISE_FN real dmi_absolute_##suffix(type x) { return hypot##f(creal##f(x), cimag##f(x)); }             \
    DMI_EWISE_FN type dmi_conjugate_##suffix(type x) { return dmi_pair_##suffix(creal##f(x), -cimag##f(x)); }  \
    DMI_EWISE_FN real dmi_real_part_##suffix(type x) { return creal##f(x); }                                   \
    DMI_EWISE_FN real dmi_imaginary_part_##suffix(type x) { return cimag##f(x); }

DMI_EWISE_COMPLEX(c64, float _Complex, float, f)
DMI_EWISE_COMPLEX(c128, double _Complex, double, )

#define CX double _Complex
#define CX_OF(re, im) dmi_pair_c128(re, im)
#define CX_RE(z) creal(z)
#define CX_IM(z) cimag(z)
#define CX_MUL(a, b) dmi_times_c128(a, b)
#define CX_DIV(a, b) dmi_quotient_c128(a, b)
#define CX_FN static __attribute__((noinline, unused))
#include "kernels/ewise/complex_math.h"

/* Computed in f64: of c64, too. */
#define DMI_EWISE_COMPLEX_FN(name, function)                                                                   \
    DMI_EWISE_FN double _Complex dmi_##name##_c128(double _Complex z)                                          \
    {                                                                                                          \
        return dmi_cx_##function(z);                                                                           \
    }                                                                                                          \
    DMI_EWISE_FN float _Complex dmi_##name##_c64(float _Complex z)                                             \
    {                                                                                                          \
        return (float _Complex)dmi_cx_##function((double _Complex)z);                                          \
    }
DMI_EWISE_COMPLEX_FN(expm1, expm1)
DMI_EWISE_COMPLEX_FN(log2, log2)
DMI_EWISE_COMPLEX_FN(log10, log10)
DMI_EWISE_COMPLEX_FN(log1p, log1p)
DMI_EWISE_COMPLEX_FN(sin, sin)
DMI_EWISE_COMPLEX_FN(cos, cos)
DMI_EWISE_COMPLEX_FN(tan, tan)
DMI_EWISE_COMPLEX_FN(asin, asin)
DMI_EWISE_COMPLEX_FN(acos, acos)
DMI_EWISE_COMPLEX_FN(atan, atan)
DMI_EWISE_COMPLEX_FN(sinh, sinh)
DMI_EWISE_COMPLEX_FN(cosh, cosh)
DMI_EWISE_COMPLEX_FN(asinh, asinh)
DMI_EWISE_COMPLEX_FN(acosh, acosh)
DMI_EWISE_COMPLEX_FN(atanh, atanh)
DMI_EWISE_COMPLEX_FN(exponential, exp)
DMI_EWISE_COMPLEX_FN(logarithm, log)
DMI_EWISE_COMPLEX_FN(hyperbolic_tangent, tanh)
DMI_EWISE_COMPLEX_FN(square_root, sqrt)
DMI_EWISE_COMPLEX_FN(sign, sign)
DMI_EWISE_FN double _Complex dmi_power_c128(double _Complex z, double _Complex w)
{
    return dmi_cx_pow(z, w);
}
DMI_EWISE_FN float _Complex dmi_power_c64(float _Complex z, float _Complex w)
{
    return (float _Complex)dmi_cx_pow((double _Complex)z, (double _Complex)w);
}
DMI_EWISE_FN bool dmi_is_infinite_c128(double _Complex z)
{
    return dmi_cx_infinite(creal(z)) || dmi_cx_infinite(cimag(z));
}
DMI_EWISE_FN bool dmi_is_infinite_c64(float _Complex z)
{
    return dmi_is_infinite_c128((double _Complex)z);
}
DMI_EWISE_FN bool dmi_is_finite_c128(double _Complex z)
{
    return !dmi_cx_odd(creal(z)) && !dmi_cx_odd(cimag(z));
}
DMI_EWISE_FN bool dmi_is_finite_c64(float _Complex z)
{
    return dmi_is_finite_c128((double _Complex)z);
}

DMI_EWISE_FN uint8_t dmi_clip_boolean(uint8_t x, uint8_t low, uint8_t high)
{
    uint8_t y = x > low ? x : low;
    return y < high ? y : high;
}
DMI_EWISE_FN uint8_t dmi_absolute_boolean(uint8_t x)
{
    return x;
}
DMI_EWISE_FN uint8_t dmi_invert_boolean(uint8_t x)
{
    return x ^ 1;
}
DMI_EWISE_ORDERED(i32, int32_t)
DMI_EWISE_ORDERED(i64, int64_t)
DMI_EWISE_ORDERED(u64, uint64_t)
DMI_EWISE_ORDERED(f32, float)
DMI_EWISE_ORDERED(f64, double)
DMI_EWISE_INTEGER(i32, int32_t, uint32_t, 32)
DMI_EWISE_INTEGER(i64, int64_t, uint64_t, 64)
DMI_EWISE_INTEGER(u64, uint64_t, uint64_t, 64)
DMI_EWISE_FLOAT(f32, float, f)
DMI_EWISE_FLOAT(f64, double, )

#endif
