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
/* 1 / a, off by a unit or so. */
EW_FN float ew_near_reciprocal(float a)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
/* a times the normal distribution. Near 0 that is 1/2 and an odd series in a. Beyond |a| = 1 the part of the distribution that is outside
 * is e^(-a^2/2) r(|a|), where (t + 2) r(t) is a series in u = 1 / (t + 2); what t + 2, u and a^2 lose by rounding is made good. The
 * power of two is kept 2^64 larger until the last product, whose result may be subnormal. Off by at most 4.32 units. */
EW_FN float ew_gelu(float a)
{
    const float t = fabsf(a), y = __fmul_rn(t, t), lost = __fmaf_rn(t, t, -y);
    float near = __fmaf_rn(y, -0x1.12333p-17f, 0x1.e2720cp-14f);
    near = __fmaf_rn(y, near, -0x1.376eeep-10f);
    near = __fmaf_rn(y, near, 0x1.46d55ap-7f);
    near = __fmaf_rn(y, near, -0x1.105862p-4f);
    near = __fmaf_rn(y, near, 0x1.988454p-2f);
    near = __fmaf_rn(a, near, 0.5f);

    const float d = __fadd_rn(t, 2.0f), u = ew_near_reciprocal(d);
    const float wrong = __fmaf_rn(-__fsub_rn(t, __fsub_rn(d, 2.0f)), u, __fmaf_rn(-d, u, 1.0f));
    float r = __fmaf_rn(u, 0x1.99299p+4f, -0x1.245304p+6f);
    r = __fmaf_rn(u, r, 0x1.2b64f2p+6f);
    r = __fmaf_rn(u, r, -0x1.fbe716p+4f);
    r = __fmaf_rn(u, r, 0x1.2f3530p+1f);
    r = __fmaf_rn(u, r, 0x1.4b76f6p-2f);
    r = __fmaf_rn(u, r, 0x1.3a585ap+0f);
    r = __fmaf_rn(u, r, 0x1.97f0d8p-1f);
    r = __fmaf_rn(u, r, 0x1.9888d6p-2f);
    r = __fmul_rn(u, r);
    r = __fmaf_rn(r, wrong, r);

    const float per_y = 0x1.715476p-1f, shifted = __fmaf_rn(y, per_y, 12582912.0f), whole = __fsub_rn(shifted, 12582912.0f);
    float f = __fmaf_rn(y, per_y, -whole); /* e^(-a^2/2) = 2^-whole 2^-f */
    f = __fmaf_rn(y, 0x1.4ae0cp-27f, f);
    f = __fmaf_rn(lost, per_y, f);
    float e = __fmaf_rn(f, 0x1.4447bp-13f, -0x1.5f096p-10f);
    e = __fmaf_rn(f, e, 0x1.3b2a28p-7f);
    e = __fmaf_rn(f, e, -0x1.c6af7ap-5f);
    e = __fmaf_rn(f, e, 0x1.ebfbep-3f);
    e = __fmaf_rn(f, e, -0x1.62e43p-1f);
    const float power = __int_as_float(0x5f800000 - (int)((unsigned)__float_as_int(shifted) << 23)); /* 2^(64 - whole) */
    float outside = __fmul_rn(__fmaf_rn(__fmul_rn(r, f), e, r), power);
    outside = t < 14.5f ? outside : 0.0f;
    const float far = a > 0 ? __fmaf_rn(-0x1p-64f, outside, 1.0f) : outside;
    return __fmul_rn(__fmul_rn(a, t < 1 ? near : far), a <= -1 ? 0x1p-64f : 1.0f);
}
EW_FN double ew_hyperbolic_tangent(double a) { return tanh(a); }
/* 1 - 2 / (e + 1) with e = e^(2x) = 2^n + 2^n f s(f), whose sum with 1 has two terms; near 0, where that cancels, an odd series. All in
 * f32, for f64 is slower than the memory. Off by less than a unit (0.97). */
EW_FN float ew_hyperbolic_tangent(float a)
{
    const float x = fabsf(a), y = __fmul_rn(x, x), z = x > 10 ? 10.0f : x;
    float series = __fmaf_rn(y, -0x1.9454fp-8f, 0x1.5811f6p-6f);
    series = __fmaf_rn(y, series, -0x1.b905c4p-5f);
    series = __fmaf_rn(y, series, 0x1.110c5ep-3f);
    series = __fmaf_rn(y, series, -0x1.555548p-2f);
    series = __fmaf_rn(__fmul_rn(x, y), series, x);
    const float shifted = __fmaf_rn(z, 0x1.715476p+1f, 12582912.0f), n = __fsub_rn(shifted, 12582912.0f);
    float f = __fmaf_rn(z, 0x1.715476p+1f, -n);
    f = __fmaf_rn(z, 0x1.4ae0cp-25f, f);
    float s = __fmaf_rn(f, 0x1.4447bp-13f, 0x1.5f096p-10f);
    s = __fmaf_rn(f, s, 0x1.3b2a28p-7f);
    s = __fmaf_rn(f, s, 0x1.c6af7ap-5f);
    s = __fmaf_rn(f, s, 0x1.ebfbep-3f);
    s = __fmaf_rn(f, s, 0x1.62e43p-1f);
    const float power = __int_as_float((int)((unsigned)__float_as_int(shifted) << 23) + 0x3f800000);
    s = __fmul_rn(__fmul_rn(f, power), s);
    const float most = __fadd_rn(power, 1.0f), sum = __fadd_rn(most, s), rest = __fadd_rn(__fsub_rn(most, sum), s);
    float inverse = ew_near_reciprocal(sum);
    inverse = __fmaf_rn(inverse, __fmaf_rn(-rest, inverse, __fmaf_rn(-sum, inverse, 1.0f)), inverse);
    return copysignf(x < 0.5625f ? series : __fmaf_rn(-2.0f, inverse, 1.0f), a);
}
