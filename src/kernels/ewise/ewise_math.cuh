/* What the expressions of ewise.def use on GPUs; the CPU's side is kernels/ewise/ewise_math_cpu.h. This file, complex.cuh,
 * rows.cuh and ewise.def are also compiled at run time, so they include nothing. */

#define ADD(a, b) ew_add(a, b)
#define SUB(a, b) ew_subtract(a, b)
#define MUL(a, b) ew_multiply(a, b)
#define DIV(a, b) ((a) / (b))
#define NEG(a) ew_negative(a)
#define FN(name) name
#define OWN(name) name
#define TY(name) ew_##name
#define LIT(value) ((NUMBER)(value))
#define ROUND(name, a) ew_##name(a)
#define LARGEST ew_largest((NUMBER)0)

#define EW_FN static __device__ __forceinline__

/* Rounded by themselves: products that feed sums are not contracted. */
EW_FN double ew_add(double a, double b) { return __dadd_rn(a, b); }
EW_FN float ew_add(float a, float b) { return __fadd_rn(a, b); }
EW_FN double ew_subtract(double a, double b) { return __dsub_rn(a, b); }
EW_FN float ew_subtract(float a, float b) { return __fsub_rn(a, b); }
EW_FN double ew_multiply(double a, double b) { return __dmul_rn(a, b); }
EW_FN float ew_multiply(float a, float b) { return __fmul_rn(a, b); }
EW_FN double ew_negative(double a) { return -a; }
EW_FN float ew_negative(float a) { return -a; }
EW_FN double ew_largest(double) { return 0x1.fffffffffffffp+1023; }
EW_FN float ew_largest(float) { return 0x1.fffffep+127f; }
EW_FN bool ew_sign_bit(double a) { return __double_as_longlong(a) < 0; }
EW_FN bool ew_sign_bit(float a) { return __float_as_int(a) < 0; }

/* Integers wrap around; the quotient rounds down, the remainder has the divisor's sign, both are 0 for a divisor of 0. */
#define EW_INTEGER(type, utype, bits)                                                                          \
    EW_FN type ew_add(type a, type b) { return (type)((utype)a + (utype)b); }                                  \
    EW_FN type ew_subtract(type a, type b) { return (type)((utype)a - (utype)b); }                             \
    EW_FN type ew_multiply(type a, type b) { return (type)((utype)a * (utype)b); }                             \
    EW_FN type ew_negative(type a) { return (type)(0 - (utype)a); }                                            \
    EW_FN type ew_absolute(type a) { return a < 0 ? (type)(0 - (utype)a) : a; }                                \
    EW_FN type ew_invert(type a) { return (type)~a; }                                                          \
    EW_FN type ew_floor_divide(type a, type b)                                                                 \
    {                                                                                                          \
        if (b == 0 || (b == (type)-1 && (type)-1 < 0)) {                                                       \
            return b == 0 ? 0 : (type)(0 - (utype)a);                                                          \
        }                                                                                                      \
        return (type)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                                             \
    }                                                                                                          \
    EW_FN type ew_remainder(type a, type b)                                                                    \
    {                                                                                                          \
        if (b == 0 || (b == (type)-1 && (type)-1 < 0)) {                                                       \
            return 0;                                                                                          \
        }                                                                                                      \
        type r = a % b;                                                                                        \
        return (type)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                               \
    }                                                                                                          \
    EW_FN type ew_power(type a, type b)                                                                        \
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
    EW_FN type ew_left_shift(type a, type b) { return b < 0 || b >= (bits) ? 0 : (type)((utype)a << b); }      \
    EW_FN type ew_right_shift(type a, type b)                                                                  \
    {                                                                                                          \
        return b < 0 || b >= (bits) ? (a < 0 ? (type)-1 : 0) : (type)(a >> b);                                 \
    }                                                                                                          \
    EW_FN type ew_floor(type a) { return a; }                                                                  \
    EW_FN type ew_ceil(type a) { return a; }                                                                   \
    EW_FN type ew_trunc(type a) { return a; }                                                                  \
    EW_FN type ew_rint(type a) { return a; }
EW_INTEGER(int, unsigned, 32)
EW_INTEGER(long, unsigned long, 64)
EW_INTEGER(unsigned long, unsigned long, 64)

template <typename T> EW_FN T ew_clip(T x, T low, T high)
{
    T y = x > low || x != x ? x : low;
    y = low != low ? low : y;
    T z = y < high || y != y ? y : high;
    return high != high ? high : z;
}
template <typename T> EW_FN T ew_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
template <typename T> EW_FN T ew_conjugate(T x) { return x; }
template <typename T> EW_FN T ew_real_part(T x) { return x; }
template <typename T> EW_FN T ew_imaginary_part(T) { return (T)0; }

#define EW_COMPLEX(type, part)                                                                                 \
    EW_FN type ew_add(type a, type b) { return a + b; }                                                        \
    EW_FN type ew_subtract(type a, type b) { return a - b; }                                                   \
    EW_FN type ew_multiply(type a, type b) { return a * b; }                                                   \
    EW_FN type ew_negative(type a) { return -a; }                                                              \
    EW_FN part ew_absolute(type a) { return hypot(a.re, a.im); }                                               \
    EW_FN type ew_conjugate(type a) { return type(a.re, -a.im); }                                              \
    EW_FN part ew_real_part(type a) { return a.re; }                                                           \
    EW_FN part ew_imaginary_part(type a) { return a.im; }
EW_COMPLEX(c64, float)
EW_COMPLEX(c128, double)

/* Computed in f64: of c64, too. */
#define EW_COMPLEX_FN(name, function)                                                                          \
    EW_FN c128 name(c128 z) { return dmi_cx_##function(z); }                                                   \
    EW_FN c64 name(c64 z)                                                                                      \
    {                                                                                                          \
        c128 w = dmi_cx_##function(c128(z.re, z.im));                                                          \
        return c64((float)w.re, (float)w.im);                                                                  \
    }
EW_COMPLEX_FN(expm1, expm1)
EW_COMPLEX_FN(log2, log2)
EW_COMPLEX_FN(log10, log10)
EW_COMPLEX_FN(log1p, log1p)
EW_COMPLEX_FN(sin, sin)
EW_COMPLEX_FN(cos, cos)
EW_COMPLEX_FN(tan, tan)
EW_COMPLEX_FN(asin, asin)
EW_COMPLEX_FN(acos, acos)
EW_COMPLEX_FN(atan, atan)
EW_COMPLEX_FN(sinh, sinh)
EW_COMPLEX_FN(cosh, cosh)
EW_COMPLEX_FN(asinh, asinh)
EW_COMPLEX_FN(acosh, acosh)
EW_COMPLEX_FN(atanh, atanh)
EW_COMPLEX_FN(ew_exponential, exp)
EW_COMPLEX_FN(ew_logarithm, log)
EW_COMPLEX_FN(ew_hyperbolic_tangent, tanh)
EW_COMPLEX_FN(ew_square_root, sqrt)
EW_COMPLEX_FN(ew_sign, sign)
EW_FN c128 ew_power(c128 z, c128 w) { return dmi_cx_pow(z, w); }
EW_FN c64 ew_power(c64 z, c64 w)
{
    c128 r = dmi_cx_pow(c128(z.re, z.im), c128(w.re, w.im));
    return c64((float)r.re, (float)r.im);
}
template <typename P> EW_FN bool ew_is_infinite(complex_number<P> z)
{
    return dmi_cx_infinite(z.re) || dmi_cx_infinite(z.im);
}
template <typename P> EW_FN bool ew_is_finite(complex_number<P> z) { return !dmi_cx_odd(z.re) && !dmi_cx_odd(z.im); }

/* bool, 0 or 1: a sum is "or", a product "and" */
EW_FN unsigned char ew_add(unsigned char a, unsigned char b) { return a | b; }
EW_FN unsigned char ew_multiply(unsigned char a, unsigned char b) { return a & b; }
EW_FN unsigned char ew_absolute(unsigned char a) { return a; }
EW_FN unsigned char ew_invert(unsigned char a) { return a ^ 1; }

#define EW_FLOAT(type)                                                                                         \
    EW_FN type ew_absolute(type x) { return fabs(x); }                                                         \
    EW_FN type ew_square_root(type x) { return sqrt(x); }                                                      \
    EW_FN bool ew_is_infinite(type x) { return x > ew_largest(x) || x < -ew_largest(x); }                      \
    EW_FN bool ew_is_finite(type x) { return x >= -ew_largest(x) && x <= ew_largest(x); }                      \
    EW_FN type ew_power(type a, type b) { return pow(a, b); }                                                  \
    EW_FN type ew_floor(type a) { return floor(a); }                                                           \
    EW_FN type ew_ceil(type a) { return ceil(a); }                                                             \
    EW_FN type ew_trunc(type a) { return trunc(a); }                                                           \
    EW_FN type ew_rint(type a) { return rint(a); }                                                             \
    EW_FN type ew_log_gamma(type a) { return lgamma(a); }                                                      \
    EW_FN type ew_remainder(type a, type b)                                                                    \
    {                                                                                                          \
        type r = fmod(a, b);                                                                                   \
        if (r == 0) {                                                                                          \
            return copysign((type)0, b);                                                                       \
        }                                                                                                      \
        return (r < 0) != (b < 0) && r == r ? r + b : r;                                                       \
    }                                                                                                          \
    EW_FN type ew_floor_divide(type a, type b)                                                                 \
    {                                                                                                          \
        if (b == 0) {                                                                                          \
            return a / b;                                                                                      \
        }                                                                                                      \
        type r = fmod(a, b), q = (a - r) / b;                                                                  \
        q -= r != 0 && (r < 0) != (b < 0);                                                                     \
        if (q == 0) {                                                                                          \
            return copysign((type)0, a / b);                                                                   \
        }                                                                                                      \
        type whole = floor(q);                                                                                 \
        return whole + (q - whole > (type)0.5);                                                                \
    }                                                                                                          \
    EW_FN type ew_log_add_exp(type a, type b)                                                                  \
    {                                                                                                          \
        type high = a > b ? a : b, low = a > b ? b : a;                                                        \
        return a != a || b != b ? a + b : high == low ? high + log((type)2) : high + log1p(exp(low - high));   \
    }
EW_FLOAT(float)
EW_FLOAT(double)

EW_FN double ew_exponential(double a) { return exp(a); }
EW_FN float ew_exponential(float a) { return exp(a); }
EW_FN double ew_logarithm(double a) { return log(a); }
EW_FN float ew_logarithm(float a) { return log(a); }
/* Of exp(-|a|), which does not overflow where the result is a subnormal number. */
EW_FN double ew_sigmoid(double a)
{
    double e = exp(a < 0 ? a : -a);
    return (a < 0 ? e : 1) / (1 + e);
}
EW_FN float ew_sigmoid(float a)
{
    float e = exp(a < 0 ? a : -a);
    return (a < 0 ? e : 1) / (1 + e);
}
/* As on CPUs: erfc's slope times what its argument y loses by rounding. */
EW_FN double ew_gelu(double a)
{
    double root = 0x1.6a09e667f3bcdp-1, y = __dmul_rn(-a, root);
    double lost = __fma_rn(-a, root, -y) - a * -0x1.bdd3413b26456p-55, slope = -0x1.20dd750429b6dp+0 * exp(-y * y);
    return slope == 0 ? 0.5 * a * erfc(y) : 0.5 * a * (erfc(y) + slope * lost);
}
EW_FN float ew_gelu(float a)
{
    double exact = (double)a * -0x1.6a09e667f3bcdp-1;
    float y = (float)exact, lost = (float)(exact - y), slope = -0x1.20dd76p+0f * exp(-y * y);
    return slope == 0 ? 0.5f * a * erfc(y) : 0.5f * a * (erfc(y) + slope * lost);
}
EW_FN double ew_hyperbolic_tangent(double a) { return tanh(a); }
/* By way of double, so that the result is off by little more than half a unit: tanhf may be off by one, and the
 * CPU's by two. (e - 1) / (e + 1) with e = exp(2x), whose relative error is 2^-32; the odd series where e - 1
 * cancels. */
EW_FN float ew_hyperbolic_tangent(float a)
{
    double x = fabs((double)a), y = __dmul_rn(x, x);
    double series = __fma_rn(y, -0x1.ba1ba1ba1ba1cp-5, 0x1.1111111111111p-3); /* -17/315, 2/15, -1/3 */
    series = __fma_rn(y, series, -0x1.5555555555555p-2);
    series = __fma_rn(__dmul_rn(x, y), series, x);
    double t = __dmul_rn(fmin(x, 16.0), 0x1.71547652b82fep+1); /* 2x / ln 2 */
    double shifted = __dadd_rn(t, 0x1.8p52),
           f = __dmul_rn(__dsub_rn(t, __dsub_rn(shifted, 0x1.8p52)), 0x1.62e42fefa39efp-1);
    double e = __fma_rn(f, 1.0 / 40320, 1.0 / 5040);
    e = __fma_rn(f, e, 1.0 / 720);
    e = __fma_rn(f, e, 1.0 / 120);
    e = __fma_rn(f, e, 1.0 / 24);
    e = __fma_rn(f, e, 1.0 / 6);
    e = __fma_rn(f, e, 0.5);
    e = __fma_rn(f, e, 1.0);
    e = __fma_rn(f, e, 1.0);
    e = __hiloint2double(__double2hiint(e) + (__double2loint(shifted) << 20), __double2loint(e));
    double below = __dadd_rn(e, 1.0), inverse = (double)__frcp_rn((float)below);
    inverse = __dmul_rn(inverse, __fma_rn(-below, inverse, 2.0));
    double r = x < 0.0625 ? series : __dmul_rn(__dsub_rn(e, 1.0), inverse);
    return a == a ? copysignf((float)r, a) : a;
}
