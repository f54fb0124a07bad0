/* The arithmetic of random fills, for C and CUDA C++ alike: every backend includes this file, so that the same
 * seed gives the same bits everywhere. Only correctly rounded +, -, *, /, sqrt and explicit fma occur. A
 * product that feeds a sum goes through DMI_MUL or DMI_FMA, so no compiler may fuse what is not fused
 * elsewhere. */
#ifndef DMI_RANDOM_H
#define DMI_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define DMI_RANDOM_FN __host__ __device__ __forceinline__ static
#else
#define DMI_RANDOM_FN static inline __attribute__((always_inline, unused))
#endif

#if defined(__CUDA_ARCH__)
#define DMI_FMA(a, b, c) __fma_rn((a), (b), (c))
#define DMI_FMAF(a, b, c) __fmaf_rn((a), (b), (c))
#define DMI_MUL(a, b) __dmul_rn((a), (b))
#define DMI_MULF(a, b) __fmul_rn((a), (b))
#define DMI_DIV(a, b) __ddiv_rn((a), (b))
#define DMI_DIVF(a, b) __fdiv_rn((a), (b))
#define DMI_SQRT(a) __dsqrt_rn(a)
#define DMI_SQRTF(a) __fsqrt_rn(a)
#define DMI_MULHI64(a, b) __umul64hi((a), (b))
#else
#define DMI_FMA(a, b, c) __builtin_fma((a), (b), (c))
#define DMI_FMAF(a, b, c) __builtin_fmaf((a), (b), (c))
#define DMI_MUL(a, b) ((a) * (b))
#define DMI_MULF(a, b) ((a) * (b))
#define DMI_DIV(a, b) ((a) / (b))
#define DMI_DIVF(a, b) ((a) / (b))
#define DMI_SQRT(a) __builtin_sqrt(a)
#define DMI_SQRTF(a) __builtin_sqrtf(a)
__extension__ typedef unsigned __int128 dmi_uint128;
#define DMI_MULHI64(a, b) ((uint64_t)(((dmi_uint128)(a) * (b)) >> 64))
#endif

/* Streams: the upper 64 bits of the counter. */
#define DMI_STREAM_UNIFORM 0u
#define DMI_STREAM_NORMAL 1u

/* --- bits ------------------------------------------------------------------ */
typedef union dmi_bits64 {
    double d;
    uint64_t u;
} dmi_bits64;
typedef union dmi_bits32 {
    float f;
    uint32_t u;
} dmi_bits32;
DMI_RANDOM_FN double dmi_double_of(uint64_t u)
{
    dmi_bits64 x;
    x.u = u;
    return x.d;
}
DMI_RANDOM_FN uint64_t dmi_bits_of(double d)
{
    dmi_bits64 x;
    x.d = d;
    return x.u;
}
DMI_RANDOM_FN float dmi_float_of(uint32_t u)
{
    dmi_bits32 x;
    x.u = u;
    return x.f;
}
DMI_RANDOM_FN uint32_t dmi_bitsf_of(float f)
{
    dmi_bits32 x;
    x.f = f;
    return x.u;
}

/* yes ? a : b without a branch, for a sum in one arm could become one and a loop then does not vectorise. */
DMI_RANDOM_FN double dmi_select64(int yes, double a, double b)
{
    uint64_t mask = 0 - (uint64_t)(yes != 0);
    return dmi_double_of((dmi_bits_of(a) & mask) | (dmi_bits_of(b) & ~mask));
}
DMI_RANDOM_FN float dmi_select32(int yes, float a, float b)
{
    uint32_t mask = 0 - (uint32_t)(yes != 0);
    return dmi_float_of((dmi_bitsf_of(a) & mask) | (dmi_bitsf_of(b) & ~mask));
}

/* --- Philox4x32-10 ----------------------------------------------------------
 * J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
typedef struct dmi_words {
    uint32_t w0, w1, w2, w3;
} dmi_words;
DMI_RANDOM_FN dmi_words dmi_philox_block(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                                         uint32_t k1)
{
    dmi_words out;
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)c0 * 0xD2511F53u, q = (uint64_t)c2 * 0xCD9E8D57u;
        uint32_t n0 = (uint32_t)(q >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)q;
        c3 = (uint32_t)p;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out.w0 = c0;
    out.w1 = c1;
    out.w2 = c2;
    out.w3 = c3;
    return out;
}
DMI_RANDOM_FN dmi_words dmi_philox(uint64_t counter, uint32_t stream, uint64_t seed)
{
    return dmi_philox_block((uint32_t)counter, (uint32_t)(counter >> 32), stream, 0, (uint32_t)seed,
                            (uint32_t)(seed >> 32));
}

/* --- uniform ----------------------------------------------------------------
 * (base + width * u) * gain, at most `last`. gain is 1, or 2 with halved base and width where p1 - p0 is beyond
 * the range of the type; `last` is the number before p1 (rounding of the sum could reach p1 itself). */
typedef struct dmi_uniform64 {
    double base, width, gain, last;
} dmi_uniform64;
typedef struct dmi_uniform32 {
    float base, width, gain, last;
} dmi_uniform32;
DMI_RANDOM_FN dmi_uniform64 dmi_uniform64_make(double p0, double p1)
{
    dmi_uniform64 r;
    double width = p1 - p0;
    double half = width - width == 0 ? 1.0 : 0.5;
    uint64_t bits = dmi_bits_of(p1);
    r.base = DMI_MUL(p0, half);
    r.width = DMI_MUL(p1, half) - DMI_MUL(p0, half);
    r.gain = half == 1.0 ? 1.0 : 2.0;
    r.last = p1 == 0 ? dmi_double_of(0x8000000000000001u) : dmi_double_of(p1 > 0 ? bits - 1 : bits + 1);
    if (!(p0 < p1)) {
        r.last = p0; /* an empty interval gives its begin */
        r.width = 0;
    }
    return r;
}
DMI_RANDOM_FN dmi_uniform32 dmi_uniform32_make(double d0, double d1)
{
    dmi_uniform32 r;
    float p0 = (float)d0, p1 = (float)d1;
    float width = p1 - p0;
    float half = width - width == 0 ? 1.0f : 0.5f;
    uint32_t bits = dmi_bitsf_of(p1);
    r.base = DMI_MULF(p0, half);
    r.width = DMI_MULF(p1, half) - DMI_MULF(p0, half);
    r.gain = half == 1.0f ? 1.0f : 2.0f;
    r.last = p1 == 0 ? dmi_float_of(0x80000001u) : dmi_float_of(p1 > 0 ? bits - 1 : bits + 1);
    if (!(p0 < p1)) {
        r.last = p0;
        r.width = 0;
    }
    return r;
}
DMI_RANDOM_FN double dmi_uniform64_at(const dmi_uniform64 *r, uint32_t lo, uint32_t hi)
{
    double u = DMI_MUL(DMI_MUL((double)hi, 0x1p21) + (double)(lo >> 11), 0x1p-53); /* all exact */
    double v = DMI_MUL(r->base + DMI_MUL(r->width, u), r->gain);
    return v < r->last ? v : r->last;
}
DMI_RANDOM_FN float dmi_uniform32_at(const dmi_uniform32 *r, uint32_t w)
{
    float u = DMI_MULF((float)(int32_t)(w >> 8), 0x1p-24f);
    float v = DMI_MULF(r->base + DMI_MULF(r->width, u), r->gain);
    return v < r->last ? v : r->last;
}
/* i1 - i0 as an unsigned number, 0 where i1 <= i0 as numbers with or without sign. */
DMI_RANDOM_FN uint64_t dmi_uniform_width(bool sign, int64_t i0, int64_t i1)
{
    bool some = sign ? i1 > i0 : (uint64_t)i1 > (uint64_t)i0;
    return some ? (uint64_t)i1 - (uint64_t)i0 : 0;
}
/* i0 + floor(width * u), u = the 64 bits / 2^64. */
DMI_RANDOM_FN int64_t dmi_uniform_int_at(int64_t i0, uint64_t width, uint32_t lo, uint32_t hi)
{
    uint64_t bits = (uint64_t)hi << 32 | lo;
    return (int64_t)((uint64_t)i0 + DMI_MULHI64(bits, width));
}

/* --- normal -----------------------------------------------------------------
 * Box-Muller: sqrt(-2 ln u) * (cos, sin)(2 pi v). u = (W + 1/2) / 2^n and v = (V + 1/2) / 2^n for n-bit words
 * W, V (n = 64 for f64, 32 for the others), so neither 0 nor 1 occurs and the signs are balanced. ln: u 2^n = m
 * 2^k, m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s), s = f / (2 + f), f = m - 1, an odd polynomial. Close to u
 * = 1, f is taken from the complement of W, so it keeps its relative precision there. sin, cos: the nearest
 * quarter turn is split off W's bits exactly; polynomials in turns on [-1/8, 1/8]. Polynomials: interpolation
 * at Chebyshev nodes, relative errors below 2^-55 and 2^-26. */
typedef struct dmi_pair64 {
    double c, s;
} dmi_pair64;
typedef struct dmi_pair32 {
    float c, s;
} dmi_pair32;

/* -2 ln((hi:lo + 1/2) / 2^64) */
DMI_RANDOM_FN double dmi_radius2_64(uint32_t lo, uint32_t hi)
{
    double x = DMI_FMA((double)hi, 0x1p32, (double)lo + 0.5);
    double rest = DMI_MUL(DMI_FMA((double)~hi, 0x1p32, (double)~lo + 0.5), -0x1p-64);
    uint64_t ix = dmi_bits_of(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double k = dmi_double_of(0x4330000000000000u | ix >> 52) - (0x1p52 + 1023);
    double m = dmi_double_of((ix & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double f = dmi_select64(x >= 0x1.6a09e667f3bcdp+63, rest, m - 1);
    double s = DMI_DIV(f, 2 + f);
    double z = DMI_MUL(s, s);
    double p = 0x1.0c04394f7e564p-3;
    p = DMI_FMA(p, z, 0x1.0fbe86d326548p-3);
    p = DMI_FMA(p, z, 0x1.3b1c35ea195d1p-3);
    p = DMI_FMA(p, z, 0x1.745cf901ea3e6p-3);
    p = DMI_FMA(p, z, 0x1.c71c72015f6a2p-3);
    p = DMI_FMA(p, z, 0x1.2492492476c92p-2);
    p = DMI_FMA(p, z, 0x1.9999999999a38p-2);
    p = DMI_FMA(p, z, 0x1.5555555555555p-1);
    p = DMI_FMA(s, DMI_MUL(z, p), s + s); /* ln m */
    return DMI_MUL(DMI_FMA(64 - k, 0x1.62e42fefa39efp-1, -p), 2.0);
}
/* cos and sin of 2 pi (hi:lo + 1/2) / 2^64 */
DMI_RANDOM_FN dmi_pair64 dmi_turn_64(uint32_t lo, uint32_t hi)
{
    dmi_pair64 out;
    uint32_t q = (hi + 0x20000000u) >> 30;
    int32_t rem = (int32_t)(hi - (q << 30));
    double x = DMI_MUL(DMI_FMA((double)rem, 0x1p32, (double)lo + 0.5), 0x1p-64);
    double y = DMI_MUL(x, x);
    double s = -0x1.6cc577dadd922p-1, c = -0x1.b2f3eb054afcdp+0;
    s = DMI_FMA(s, y, 0x1.e8f036bcd3237p+1);
    s = DMI_FMA(s, y, -0x1.e3074d2614b2dp+3);
    s = DMI_FMA(s, y, 0x1.50783486facaap+5);
    s = DMI_FMA(s, y, -0x1.32d2cce62b872p+6);
    s = DMI_FMA(s, y, 0x1.466bc6775aae1p+6);
    s = DMI_FMA(s, y, -0x1.4abbce625be53p+5);
    s = DMI_MUL(x, DMI_FMA(s, y, 0x1.921fb54442d18p+2));
    c = DMI_FMA(c, y, 0x1.f9ce245cada0bp+2);
    c = DMI_FMA(c, y, -0x1.a6d1eef479be1p+4);
    c = DMI_FMA(c, y, 0x1.e1f5068688d5bp+5);
    c = DMI_FMA(c, y, -0x1.55d3c7e3cb241p+6);
    c = DMI_FMA(c, y, 0x1.03c1f081b5ac0p+6);
    c = DMI_FMA(c, y, -0x1.3bd3cc9be45dep+4);
    c = DMI_FMA(c, y, 1.0);
    out.c = dmi_double_of(dmi_bits_of(q & 1 ? s : c) ^ (uint64_t)((q + 1) & 2) << 62);
    out.s = dmi_double_of(dmi_bits_of(q & 1 ? c : s) ^ (uint64_t)(q & 2) << 62);
    return out;
}
/* Two normals from the four words of one counter. */
DMI_RANDOM_FN dmi_pair64 dmi_normal64(dmi_words w)
{
    double r = DMI_SQRT(dmi_radius2_64(w.w0, w.w1));
    dmi_pair64 t = dmi_turn_64(w.w2, w.w3);
    t.c = DMI_MUL(r, t.c);
    t.s = DMI_MUL(r, t.s);
    return t;
}

/* A 32-bit word as a float: halves first, for the sum is then rounded once, and signed conversions are cheap.
 */
DMI_RANDOM_FN float dmi_float_of_word(uint32_t w)
{
    return DMI_FMAF((float)(int32_t)(w >> 16), 65536.0f, (float)(int32_t)(w & 0xffffu));
}
DMI_RANDOM_FN float dmi_radius2_32(uint32_t w)
{
    float x = dmi_float_of_word(w) + 0.5f;
    float rest = DMI_MULF(dmi_float_of_word(~w) + 0.5f, -0x1p-32f);
    uint32_t ix = dmi_bitsf_of(x) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(ix >> 23) - 127);
    float m = dmi_float_of((ix & 0x007fffffu) + 0x3f3504f3u);
    float f = dmi_select32(x >= 0x1.6a09e6p+31f, rest, m - 1);
    float s = DMI_DIVF(f, 2 + f);
    float z = DMI_MULF(s, s);
    float p = 0x1.ddcf56p-3f;
    p = DMI_FMAF(p, z, 0x1.245c42p-2f);
    p = DMI_FMAF(p, z, 0x1.9999ecp-2f);
    p = DMI_FMAF(p, z, 0x1.555556p-1f);
    p = DMI_FMAF(s, DMI_MULF(z, p), s + s);
    return DMI_MULF(DMI_FMAF(32 - k, 0x1.62e430p-1f, -p), 2.0f);
}
DMI_RANDOM_FN dmi_pair32 dmi_turn_32(uint32_t w)
{
    dmi_pair32 out;
    uint32_t q = (w + 0x20000000u) >> 30;
    float x = DMI_MULF((float)(int32_t)(w - (q << 30)) + 0.5f, 0x1p-32f);
    float y = DMI_MULF(x, x);
    float s = 0x1.4cb762p+5f, c = 0x1.db6492p+5f;
    s = DMI_FMAF(s, y, -0x1.32ce1ep+6f);
    s = DMI_FMAF(s, y, 0x1.466bc2p+6f);
    s = DMI_FMAF(s, y, -0x1.4abbcep+5f);
    s = DMI_MULF(x, DMI_FMAF(s, y, 0x1.921fb6p+2f));
    c = DMI_FMAF(c, y, -0x1.55cb98p+6f);
    c = DMI_FMAF(c, y, 0x1.03c1eap+6f);
    c = DMI_FMAF(c, y, -0x1.3bd3ccp+4f);
    c = DMI_FMAF(c, y, 1.0f);
    out.c = dmi_float_of(dmi_bitsf_of(q & 1 ? s : c) ^ ((q + 1) & 2) << 30);
    out.s = dmi_float_of(dmi_bitsf_of(q & 1 ? c : s) ^ (q & 2) << 30);
    return out;
}
/* Two normals from a pair of words; a counter holds two such pairs. */
DMI_RANDOM_FN dmi_pair32 dmi_normal32(uint32_t w0, uint32_t w1)
{
    float r = DMI_SQRTF(dmi_radius2_32(w0));
    dmi_pair32 t = dmi_turn_32(w1);
    t.c = DMI_MULF(r, t.c);
    t.s = DMI_MULF(r, t.s);
    return t;
}

/* p0 + p1 * index, two roundings */
DMI_RANDOM_FN double dmi_arange_at(double p0, double p1, int64_t index)
{
    return p0 + DMI_MUL(p1, (double)index);
}

#endif
