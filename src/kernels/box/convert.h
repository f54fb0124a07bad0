/* Conversions between element types, by the rules of dmi_copy, one element or one row at a time. */
#ifndef DMI_CPU_CONVERT_H
#define DMI_CPU_CONVERT_H

#include "kernels/reduce/reduce.h"
#include <string.h>

/* --- 16-bit floats ---------------------------------------------------------- */
static inline uint32_t dmi_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float dmi_f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t dmi_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline double dmi_f64_from_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* All candidates are computed and one is selected, so that loops over these vectorise. A NaN becomes quiet and
 * keeps the upper bits of its payload, as the F16C instructions do it. */
static inline float dmi_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t normal = a + (112u << 23);
    /* A subnormal is m * 2^-24: written behind the leading one of 2^-14, which is then taken away. */
    uint32_t small = dmi_f32_bits(dmi_f32_from_bits(a + (113u << 23)) - 0x1p-14f);
    uint32_t special = a | 0x7f800000u | (a > 0x0f800000u ? 0x00400000u : 0u);
    uint32_t r = a >= 0x0f800000u ? special : normal;
    r = a < 0x00800000u ? small : r;
    return dmi_f32_from_bits(sign | r);
}
static inline uint16_t dmi_f32_to_f16(float x)
{
    uint32_t b = dmi_f32_bits(x), sign = b >> 16 & 0x8000u, a = b & 0x7fffffffu;
    uint32_t normal = (a - (112u << 23) + 0xfffu + (a >> 13 & 1u)) >> 13; /* a carry may make it Inf, rightly */
    /* 1/2 has the unit of the subnormals, 2^-24, in its last place: the sum is rounded there. */
    uint32_t small = dmi_f32_bits(dmi_f32_from_bits(a) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | (a >> 13 & 0x3ffu);
    uint32_t r = a < 0x38800000u ? small : normal;
    r = a >= 0x47800000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? nan : r;
    return (uint16_t)(sign | r);
}
static inline uint16_t dmi_f64_to_f16(double x)
{
    uint64_t b = dmi_f64_bits(x), sign = b >> 48 & 0x8000u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (1008ull << 52) + 0x1ffffffffffull + (a >> 42 & 1u)) >> 42;
    uint64_t small = dmi_f64_bits(dmi_f64_from_bits(a) + 0x1p28) - 0x41b0000000000000u;
    uint64_t nan = 0x7e00u | (a >> 42 & 0x3ffu);
    uint64_t r = a < 0x3f10000000000000u ? small : normal;
    r = a >= 0x40f0000000000000u ? 0x7c00u : r;
    r = a > 0x7ff0000000000000u ? nan : r;
    return (uint16_t)(sign | r);
}
static inline float dmi_bf16_to_f32(uint16_t h)
{
    uint32_t a = (uint32_t)h << 16;
    return dmi_f32_from_bits((a & 0x7fffffffu) > 0x7f800000u ? a | 0x00400000u : a);
}
static inline uint16_t dmi_f32_to_bf16(float x)
{
    uint32_t a = dmi_f32_bits(x);
    uint32_t r = (a + 0x7fffu + (a >> 16 & 1u)) >> 16;
    return (uint16_t)((a & 0x7fffffffu) > 0x7f800000u ? a >> 16 | 0x40u : r);
}
static inline uint16_t dmi_f64_to_bf16(double x)
{
    uint64_t b = dmi_f64_bits(x), sign = b >> 48 & 0x8000u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (896ull << 52) + 0xfffffffffffull + (a >> 45 & 1u)) >> 45;
    uint64_t small = dmi_f64_bits(dmi_f64_from_bits(a) + 0x1p-81) - 0x3ae0000000000000u;
    uint64_t nan = 0x7fc0u | (a >> 45 & 0x7fu);
    uint64_t r = a < 0x3810000000000000u ? small : normal;
    r = a >= 0x47f0000000000000u ? 0x7f80u : r;
    r = a > 0x7ff0000000000000u ? nan : r;
    return (uint16_t)(sign | r);
}

/* --- 8-bit floats -------------------------------------------------------------
 * f8e5m2 is the upper byte of an f16. f8e4m3 with its exponent put into an f16's is 2^-8 of its value. */
static inline float dmi_f8e5m2_to_f32(uint8_t v)
{
    return dmi_f16_to_f32((uint16_t)(v << 8));
}
static inline float dmi_f8e4m3_to_f32(uint8_t v)
{
    uint32_t nan = (uint32_t)(v & 0x80u) << 24 | 0x7fc00000u;
    float x = dmi_f16_to_f32((uint16_t)((v & 0x80u) << 8 | (v & 0x7fu) << 7)) * 0x1p8f;
    return (v & 0x7fu) == 0x7fu ? dmi_f32_from_bits(nan) : x;
}
static inline uint8_t dmi_f64_to_f8e5m2(double x)
{
    uint64_t b = dmi_f64_bits(x), sign = b >> 56 & 0x80u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (1008ull << 52) + 0x1ffffffffffffull + (a >> 50 & 1u)) >> 50;
    uint64_t small = dmi_f64_bits(dmi_f64_from_bits(a) + 0x1p36) - 0x4230000000000000u;
    uint64_t nan = 0x7eu | (a >> 50 & 0x3u);
    uint64_t r = a < 0x3f10000000000000u ? small : normal;
    r = a >= 0x40f0000000000000u ? 0x7cu : r;
    r = a > 0x7ff0000000000000u ? nan : r;
    return (uint8_t)(sign | r);
}
/* There is no infinity: what rounds beyond 448 is NaN. */
static inline uint8_t dmi_f64_to_f8e4m3(double x)
{
    uint64_t b = dmi_f64_bits(x), sign = b >> 56 & 0x80u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (1016ull << 52) + 0xffffffffffffull + (a >> 49 & 1u)) >> 49;
    uint64_t small = dmi_f64_bits(dmi_f64_from_bits(a) + 0x1p43) - 0x42a0000000000000u;
    uint64_t r = a < 0x3f90000000000000u ? small : normal;
    r = a > 0x407d000000000000u ? 0x7fu : r; /* 464, halfway to what would follow */
    return (uint8_t)(sign | r);
}

/* --- integers ---------------------------------------------------------------
 * 64 bits to a shorter float than f32: bits that a double cannot hold are gathered into one that it can, far
 * below the rounding position, so that going through double rounds once. */
static inline double dmi_i64_to_sticky(int64_t v)
{
    bool big = v > INT64_C(1) << 53 || v < -(INT64_C(1) << 53);
    return big ? (double)((v & ~INT64_C(0xfff)) | ((v & 0xfff) != 0 ? 0x800 : 0)) : (double)v;
}
static inline double dmi_u64_to_sticky(uint64_t v)
{
    bool big = v > UINT64_C(1) << 53;
    return big ? (double)((v & ~UINT64_C(0xfff)) | ((v & 0xfff) != 0 ? 0x800 : 0)) : (double)v;
}
static inline int64_t dmi_f64_to_i64(double x)
{
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : x == x ? (int64_t)x : 0;
}
static inline int32_t dmi_f64_to_i32(double x)
{
    double t = x == x ? x : 0;
    t = t > -0x1p31 ? t : -0x1p31;
    t = t < 0x1.fffffffcp30 ? t : 0x1.fffffffcp30;
    return (int32_t)t;
}
static inline uint64_t dmi_f64_to_u64(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}
static inline uint32_t dmi_f64_to_u32(double x)
{
    double t = x > 0 ? x : 0;
    return (uint32_t)(int64_t)(t < 0x1.fffffffep31 ? t : 0x1.fffffffep31);
}
/* To an integer of 16 bits or fewer, which holds lo to hi. */
static inline int32_t dmi_f64_to_small(double x, int32_t lo, int32_t hi)
{
    double t = x == x ? x : 0;
    t = t > lo ? t : lo;
    t = t < hi ? t : hi;
    return (int32_t)t;
}
static inline int32_t dmi_f32_to_small(float x, int32_t lo, int32_t hi)
{
    float t = x == x ? x : 0;
    t = t > (float)lo ? t : (float)lo;
    t = t < (float)hi ? t : (float)hi;
    return (int32_t)t;
}

/* Elements moved as bits, whatever their type. */
#if defined(__GNUC__)
#define DMI_ALIAS __attribute__((may_alias))
#else
#define DMI_ALIAS
#endif
typedef uint8_t DMI_ALIAS dmi_raw8;
typedef uint16_t DMI_ALIAS dmi_raw16;
typedef uint32_t DMI_ALIAS dmi_raw32;
typedef uint64_t DMI_ALIAS dmi_raw64;
typedef struct DMI_ALIAS dmi_raw128 {
    uint64_t half[2];
} dmi_raw128;

/* --- rows (convert_cpu.c) --------------------------------------------------------- */
/* dst[0..n) = convert(src[0..n)), both dense, not overlapping unless the types are the same size and the
 * addresses equal. */
void dmi_convert_row(dm_dtype from, dm_dtype to, const void *src, void *dst, int64_t n);
/* Elements of `bytes` (1, 2, 4, 8 or 16) moved between strided rows. */
void dmi_move_row(int64_t bytes, const void *src, int64_t src_stride, void *dst, int64_t dst_stride, int64_t n);

enum { DMI_CHUNK = 512 }; /* elements that rows are worked on in, where they need a buffer */
typedef union dmi_chunk {
    double f64[DMI_CHUNK];
    float f32[DMI_CHUNK];
    int64_t i64[DMI_CHUNK];
    dm_c128 c128[DMI_CHUNK];
    unsigned char bytes[DMI_CHUNK * 16];
} dmi_chunk;
/* n elements (at most DMI_CHUNK) of a strided row as a dense row of type `to`: in buffer, or, where nothing has
 * to be done, src itself. */
const void *dmi_row_load(dm_dtype from, const void *src, int64_t stride, dm_dtype to, dmi_chunk *buffer,
                         int64_t n);
/* The reverse: n (at most DMI_CHUNK) dense elements of type `from` into a strided row. src == dst is fine where
 * dmi_row_direct. */
void dmi_row_store(dm_dtype from, const void *src, dm_dtype to, void *dst, int64_t stride, int64_t n);
static inline bool dmi_row_direct(dm_dtype from, int64_t stride, dm_dtype to, int64_t n)
{
    return from == to && (stride == 1 || n == 1);
}
static inline const void *dmi_at(const void *base, int64_t bytes)
{
    return (const char *)base + bytes;
}
static inline void *dmi_at_mut(void *base, int64_t bytes)
{
    return (char *)base + bytes;
}

/* A strided box of up to DMI_BOX_DIMS dims seen by up to DMI_BOX_SIDES operands. */
enum { DMI_BOX_DIMS = 2 * DM_MAX_DIMS, DMI_BOX_SIDES = 12 };
typedef struct dmi_box {
    int ndim, sides;
    int64_t extent[DMI_BOX_DIMS];
    int64_t stride[DMI_BOX_SIDES][DMI_BOX_DIMS];
} dmi_box;
/* Drops dims of extent 1, orders dims by decreasing stride of side `by`, joins neighbours that are one run for
 * every side. Afterwards ndim >= 1. The box must not be empty. */
void dmi_box_simplify(dmi_box *box, int by);
void dmi_box_swap(dmi_box *box, int a, int b); /* two dims */
/* The boxes of these, simplified. Sides 0: accumulators or rows, dense over the extents, 1: out, 2: the addend
 * that is no row (as side 0 where there is none). False: it has no element. */
bool dmi_box_of_store(const dmi_acc_store *d, dmi_box *box);
bool dmi_box_of_fold(const dmi_fold *d, dmi_box *box);
/* Steps index[] over dims [0, ndim) and at[] (elements) with it; false after the last. */
bool dmi_box_next(const dmi_box *box, int ndim, int64_t *index, int64_t *at);

#endif
