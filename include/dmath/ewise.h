/* dmath: elementwise functions.  BSD-3-Clause, see LICENSE.
 *
 * Each line of the lists below declares one call:
 *   dm_status dm_<name>(session, a, out)          out = f(a)
 *   dm_status dm_<name>(session, a, b, out)       out = f(a, b)
 *   dm_status dm_<name>(session, a, b, c, out)    out = f(a, b, c)
 * Shapes: the operands broadcast to out, as NumPy's do; out may be one of the operands itself. Layouts: any, mixed
 * freely. Types: the operands are promoted as NumPy's promote_types says, and the function is computed in that type:
 * f16, bf16 and 8-bit floats in f32; integers wrap around. Functions that only floats have take an integer of 1, 2, or
 * 4 and more bytes as f16, f32, or f64. The result (of that type; of comparisons and tests bool) is converted to out's
 * type as dm_copy converts. Complex operands are taken where the line says so: principal values, computed in f64, with
 * the branch cuts and the values at infinities, NaN and zeros of both signs of C99, annex G; 0 to any power but 0 and
 * positive real ones is NaN, as in NumPy. Errors in ulps: docs/accuracy.md.
 * Blocking: none. Errors: DM_ERR_SHAPE (an operand does not broadcast to out), DM_ERR_DTYPE (the function does not take
 * such operands), DM_ERR_OVERLAP (any other overlap of out and an operand). Cost: each operand is read once and out
 * written once; operands that lie elsewhere move to where out lies. */
#ifndef DMATH_EWISE_H
#define DMATH_EWISE_H

#include <dmath/dmath.h>

/* X1(name): of one operand. */
#define DM_EWISE_1_MAP(X1)                                                                                             \
    X1(negative)       /* -a; complex too */                                                                           \
    X1(positive)       /* a; complex too */                                                                            \
    X1(abs)            /* |a|; of a complex a its modulus, a real number */                                            \
    X1(sign)           /* -1, 0 or 1; NaN of NaN; of a complex a, a / |a| */                                           \
    X1(square)         /* a a; complex too */                                                                          \
    X1(reciprocal)     /* 1 / a in floating point; complex too */                                                      \
    X1(conj)           /* the complex conjugate; a itself where a is real */                                           \
    X1(real)           /* the real part */                                                                             \
    X1(imag)           /* the imaginary part; 0 where a is real */                                                     \
    X1(sqrt)           /* the square root; NaN of a negative number; complex too */                                    \
    X1(rsqrt)          /* 1 / sqrt(a) */                                                                               \
    X1(cbrt)           /* the cube root, of negative numbers too */                                                    \
    X1(exp)            /* e^a; complex too */                                                                          \
    X1(exp2)           /* 2^a */                                                                                       \
    X1(expm1)          /* e^a - 1, exact for small a; complex too */                                                   \
    X1(log)            /* the natural logarithm; complex too */                                                        \
    X1(log2)           /* the logarithm to base 2; complex too */                                                      \
    X1(log10)          /* the logarithm to base 10; complex too */                                                     \
    X1(log1p)          /* log(1 + a), exact for small a; complex too */                                                \
    X1(sin)            /* of radians; complex too */                                                                   \
    X1(cos)            /* of radians; complex too */                                                                   \
    X1(tan)            /* of radians; complex too */                                                                   \
    X1(asin)           /* inverse sine, in [-pi/2, pi/2]; complex too */                                               \
    X1(acos)           /* inverse cosine, in [0, pi]; complex too */                                                   \
    X1(atan)           /* inverse tangent, in [-pi/2, pi/2]; complex too */                                            \
    X1(sinh)           /* hyperbolic sine; complex too */                                                              \
    X1(cosh)           /* hyperbolic cosine; complex too */                                                            \
    X1(tanh)           /* hyperbolic tangent; complex too */                                                           \
    X1(asinh)          /* inverse hyperbolic sine; complex too */                                                      \
    X1(acosh)          /* inverse hyperbolic cosine; complex too */                                                    \
    X1(atanh)          /* inverse hyperbolic tangent; complex too */                                                   \
    X1(erf)            /* the error function */                                                                        \
    X1(erfc)           /* 1 - erf(a) */                                                                                \
    X1(gamma)          /* the gamma function */                                                                        \
    X1(lgamma)         /* log |gamma(a)| */                                                                            \
    X1(sigmoid)        /* 1 / (1 + e^-a) */                                                                            \
    X1(softplus)       /* log(1 + e^a) */                                                                              \
    X1(gelu)           /* a (1 + erf(a / sqrt 2)) / 2 */                                                               \
    X1(relu)           /* max(a, 0); NaN of NaN */                                                                     \
    X1(nan_to_num)     /* 0 for NaN, the largest finite number for infinities */                                       \
    X1(floor)          /* the integer below, of integers themselves */                                                 \
    X1(ceil)           /* the integer above */                                                                         \
    X1(trunc)          /* the integer towards zero */                                                                  \
    X1(round)          /* the nearest integer, halves to even */                                                       \
    X1(isnan)          /* bool; complex too */                                                                         \
    X1(isinf)          /* bool; complex too */                                                                         \
    X1(isfinite)       /* bool; complex too */                                                                         \
    X1(signbit)        /* bool: is the sign bit set? */                                                                \
    X1(logical_not)    /* bool; operands count as true where they are not 0 */                                         \
    X1(bitwise_invert) /* integers and bool */

/* X2(name): of two operands. */
#define DM_EWISE_2_MAP(X2)                                                                                             \
    X2(subtract)            /* a - b; complex too */                                                                   \
    X2(divide)              /* a / b in floating point; complex too */                                                 \
    X2(floor_divide)        /* a / b rounded down; of integers 0 where b is 0 */                                       \
    X2(remainder)           /* a - b floor(a / b), with b's sign; of integers 0 where b is 0 */                        \
    X2(pow)                 /* a^b; of integers with b < 0 rounded towards 0; complex too */                           \
    X2(minimum)             /* NaN where an operand is NaN */                                                          \
    X2(maximum)             /* NaN where an operand is NaN */                                                          \
    X2(atan2)               /* the angle of (b, a), in [-pi, pi] */                                                    \
    X2(hypot)               /* sqrt(a a + b b) without overflow */                                                     \
    X2(logaddexp)           /* log(e^a + e^b) */                                                                       \
    X2(copysign)            /* |a| with b's sign */                                                                    \
    X2(nextafter)           /* the number beside a in the direction of b: of f16 the next f16 */                       \
    X2(equal)               /* bool; complex too */                                                                    \
    X2(not_equal)           /* bool; complex too */                                                                    \
    X2(less)                /* bool */                                                                                 \
    X2(less_equal)          /* bool */                                                                                 \
    X2(greater)             /* bool */                                                                                 \
    X2(greater_equal)       /* bool */                                                                                 \
    X2(logical_and)         /* bool; operands count as true where they are not 0 */                                    \
    X2(logical_or)          /* bool */                                                                                 \
    X2(logical_xor)         /* bool */                                                                                 \
    X2(bitwise_and)         /* integers and bool */                                                                    \
    X2(bitwise_or)          /* integers and bool */                                                                    \
    X2(bitwise_xor)         /* integers and bool */                                                                    \
    X2(bitwise_left_shift)  /* integers; 0 where b is negative or has no bits left */                                  \
    X2(bitwise_right_shift) /* integers; fills with the sign */

/* X3(name): of three operands. */
#define DM_EWISE_3_MAP(X3)                                                                                             \
    X3(where) /* b where a is not 0, else c; complex b and c too */                                                    \
    X3(clip)  /* a, but b where it is below b, and c where it is above c */

#define DM_EWISE_MAP(X1, X2, X3) DM_EWISE_1_MAP(X1) DM_EWISE_2_MAP(X2) DM_EWISE_3_MAP(X3)

#ifdef __cplusplus
extern "C" {
#endif

#define DM_EWISE_1(name) DM_API DM_CHECKED dm_status dm_##name(dm_session *session, dm_array a, dm_array out);
#define DM_EWISE_2(name) DM_API DM_CHECKED dm_status dm_##name(dm_session *session, dm_array a, dm_array b, dm_array out);
#define DM_EWISE_3(name)                                                                                               \
    DM_API DM_CHECKED dm_status dm_##name(dm_session *session, dm_array a, dm_array b, dm_array c, dm_array out);
DM_EWISE_MAP(DM_EWISE_1, DM_EWISE_2, DM_EWISE_3)
#undef DM_EWISE_1
#undef DM_EWISE_2
#undef DM_EWISE_3

#ifdef __cplusplus
}
#endif
#endif
