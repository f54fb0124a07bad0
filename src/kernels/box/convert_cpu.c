/* Rows: conversion of dense ones, movement of strided ones, and both through a buffer. */
#include "kernels/box/convert.h"
#include "kernels/cpu/simd.h"
#include <assert.h>
#if defined(DMI_HAVE_WIDE)
#include <immintrin.h>
#endif

/* A value that is converted is held in a type that holds it exactly: f64, f32 (the shorter floats), i64 (u32),
 * i32 (the shorter integers, and bool) or u64. FROM_x gives that of an x; TO_x_y makes an x of a y, which is
 * one of the five. */
#define FROM_F64(v) (v)
#define FROM_F32(v) (v)
#define FROM_F16(v) dmi_f16_to_f32(v)
#define FROM_BF16(v) dmi_bf16_to_f32(v)
#define FROM_I64(v) (v)
#define FROM_I32(v) (v)
#define FROM_U64(v) (v)
#define FROM_U32(v) ((int64_t)(v))
#define FROM_U8(v) ((int32_t)(v))
#define FROM_I8(v) ((int32_t)(v))
#define FROM_I16(v) ((int32_t)(v))
#define FROM_U16(v) ((int32_t)(v))
#define FROM_F8E4M3(v) dmi_f8e4m3_to_f32(v)
#define FROM_F8E5M2(v) dmi_f8e5m2_to_f32(v)
#define FROM_BOOL(v) ((int32_t)((v) != 0))

#define TO_F64_F64(v) (v)
#define TO_F64_F32(v) ((double)(v))
#define TO_F64_I64(v) ((double)(v))
#define TO_F64_I32(v) ((double)(v))
#define TO_F64_U64(v) ((double)(v))
#define TO_F32_F64(v) ((float)(v))
#define TO_F32_F32(v) (v)
#define TO_F32_I64(v) ((float)(v))
#define TO_F32_I32(v) ((float)(v))
#define TO_F32_U64(v) ((float)(v))
#define TO_F16_F64(v) dmi_f64_to_f16(v)
#define TO_F16_F32(v) dmi_f32_to_f16(v)
#define TO_F16_I64(v) dmi_f64_to_f16(dmi_i64_to_sticky(v))
#define TO_F16_I32(v) dmi_f64_to_f16((double)(v))
#define TO_F16_U64(v) dmi_f64_to_f16(dmi_u64_to_sticky(v))
#define TO_BF16_F64(v) dmi_f64_to_bf16(v)
#define TO_BF16_F32(v) dmi_f32_to_bf16(v)
#define TO_BF16_I64(v) dmi_f64_to_bf16(dmi_i64_to_sticky(v))
#define TO_BF16_I32(v) dmi_f64_to_bf16((double)(v))
#define TO_BF16_U64(v) dmi_f64_to_bf16(dmi_u64_to_sticky(v))
#define TO_I64_F64(v) dmi_f64_to_i64(v)
#define TO_I64_F32(v) dmi_f64_to_i64((double)(v))
#define TO_I64_I64(v) (v)
#define TO_I64_I32(v) ((int64_t)(v))
#define TO_I64_U64(v) ((int64_t)(v))
#define TO_I32_F64(v) dmi_f64_to_i32(v)
#define TO_I32_F32(v) dmi_f64_to_i32((double)(v))
#define TO_I32_I64(v) ((int32_t)(v))
#define TO_I32_I32(v) (v)
#define TO_I32_U64(v) ((int32_t)(v))
#define TO_U64_F64(v) dmi_f64_to_u64(v)
#define TO_U64_F32(v) dmi_f64_to_u64((double)(v))
#define TO_U64_I64(v) ((uint64_t)(v))
#define TO_U64_I32(v) ((uint64_t)(v))
#define TO_U64_U64(v) (v)
#define TO_U32_F64(v) dmi_f64_to_u32(v)
#define TO_U32_F32(v) dmi_f64_to_u32((double)(v))
#define TO_U32_I64(v) ((uint32_t)(v))
#define TO_U32_I32(v) ((uint32_t)(v))
#define TO_U32_U64(v) ((uint32_t)(v))
#define TO_U8_F64(v) ((uint8_t)dmi_f64_to_small(v, 0, UINT8_MAX))
#define TO_U8_F32(v) ((uint8_t)dmi_f32_to_small(v, 0, UINT8_MAX))
#define TO_U8_I64(v) ((uint8_t)(v))
#define TO_U8_I32(v) ((uint8_t)(v))
#define TO_U8_U64(v) ((uint8_t)(v))
#define TO_I8_F64(v) ((int8_t)dmi_f64_to_small(v, INT8_MIN, INT8_MAX))
#define TO_I8_F32(v) ((int8_t)dmi_f32_to_small(v, INT8_MIN, INT8_MAX))
#define TO_I8_I64(v) ((int8_t)(v))
#define TO_I8_I32(v) ((int8_t)(v))
#define TO_I8_U64(v) ((int8_t)(v))
#define TO_I16_F64(v) ((int16_t)dmi_f64_to_small(v, INT16_MIN, INT16_MAX))
#define TO_I16_F32(v) ((int16_t)dmi_f32_to_small(v, INT16_MIN, INT16_MAX))
#define TO_I16_I64(v) ((int16_t)(v))
#define TO_I16_I32(v) ((int16_t)(v))
#define TO_I16_U64(v) ((int16_t)(v))
#define TO_U16_F64(v) ((uint16_t)dmi_f64_to_small(v, 0, UINT16_MAX))
#define TO_U16_F32(v) ((uint16_t)dmi_f32_to_small(v, 0, UINT16_MAX))
#define TO_U16_I64(v) ((uint16_t)(v))
#define TO_U16_I32(v) ((uint16_t)(v))
#define TO_U16_U64(v) ((uint16_t)(v))
#define TO_F8E4M3_F64(v) dmi_f64_to_f8e4m3(v)
#define TO_F8E4M3_F32(v) dmi_f64_to_f8e4m3((double)(v))
#define TO_F8E4M3_I64(v) dmi_f64_to_f8e4m3(dmi_i64_to_sticky(v))
#define TO_F8E4M3_I32(v) dmi_f64_to_f8e4m3((double)(v))
#define TO_F8E4M3_U64(v) dmi_f64_to_f8e4m3(dmi_u64_to_sticky(v))
#define TO_F8E5M2_F64(v) dmi_f64_to_f8e5m2(v)
#define TO_F8E5M2_F32(v) dmi_f64_to_f8e5m2((double)(v))
#define TO_F8E5M2_I64(v) dmi_f64_to_f8e5m2(dmi_i64_to_sticky(v))
#define TO_F8E5M2_I32(v) dmi_f64_to_f8e5m2((double)(v))
#define TO_F8E5M2_U64(v) dmi_f64_to_f8e5m2(dmi_u64_to_sticky(v))
#define TO_BOOL_F64(v) ((uint8_t)((v) != 0))
#define TO_BOOL_F32(v) ((uint8_t)((v) != 0))
#define TO_BOOL_I64(v) ((uint8_t)((v) != 0))
#define TO_BOOL_I32(v) ((uint8_t)((v) != 0))
#define TO_BOOL_U64(v) ((uint8_t)((v) != 0))

typedef void row_fn(const void *src, void *dst, int64_t n);

#define ROW(from, to, carrier, stype, dtype)                                                                   \
    DMI_BODY void from##_##to##_body(const void *src, void *dst, int64_t n)                                    \
    {                                                                                                          \
        const stype *s = src;                                                                                  \
        dtype *d = dst;                                                                                        \
        DMI_IVDEP                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            d[i] = TO_##to##_##carrier(FROM_##from(s[i]));                                                     \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, from##_##to, (const void *src, void *dst, int64_t n), (src, dst, n))
/* To the seven types in which most data is, and to the others. */
#define ROWS(from, carrier, stype)                                                                             \
    ROW(from, F64, carrier, stype, double)                                                                     \
    ROW(from, F32, carrier, stype, float)                                                                      \
    ROW(from, F16, carrier, stype, uint16_t)                                                                   \
    ROW(from, BF16, carrier, stype, uint16_t)                                                                  \
    ROW(from, I64, carrier, stype, int64_t)                                                                    \
    ROW(from, I32, carrier, stype, int32_t)                                                                    \
    ROW(from, U8, carrier, stype, uint8_t)
#define MORE_ROWS(from, carrier, stype)                                                                        \
    ROW(from, BOOL, carrier, stype, uint8_t)                                                                   \
    ROW(from, I8, carrier, stype, int8_t)                                                                      \
    ROW(from, I16, carrier, stype, int16_t)                                                                    \
    ROW(from, U16, carrier, stype, uint16_t)                                                                   \
    ROW(from, U32, carrier, stype, uint32_t)                                                                   \
    ROW(from, U64, carrier, stype, uint64_t)                                                                   \
    ROW(from, F8E4M3, carrier, stype, uint8_t)                                                                 \
    ROW(from, F8E5M2, carrier, stype, uint8_t)
ROWS(F64, F64, double)
ROWS(F32, F32, float)
ROWS(F16, F32, uint16_t)
ROWS(BF16, F32, uint16_t)
ROWS(I64, I64, int64_t)
ROWS(I32, I32, int32_t)
ROWS(U8, I32, uint8_t)
ROWS(U64, U64, uint64_t)
MORE_ROWS(F64, F64, double)
MORE_ROWS(F32, F32, float)
MORE_ROWS(I64, I64, int64_t)
MORE_ROWS(I32, I32, int32_t)
MORE_ROWS(U64, U64, uint64_t)
ROW(BOOL, I32, I32, uint8_t, int32_t)
ROW(I8, I32, I32, int8_t, int32_t)
ROW(I16, I32, I32, int16_t, int32_t)
ROW(U16, I32, I32, uint16_t, int32_t)
ROW(U32, I64, I64, uint32_t, int64_t)
ROW(F8E4M3, F32, F32, uint8_t, float)
ROW(F8E5M2, F32, F32, uint8_t, float)

/* A complex number as a real one is its real part; a real number has no imaginary part. */
#define COMPLEX_ROW(from, to, stype, dtype, value)                                                             \
    static void from##_##to(const void *src, void *dst, int64_t n)                                             \
    {                                                                                                          \
        const stype *s = src;                                                                                  \
        dtype *d = dst;                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            stype v = s[i];                                                                                    \
            d[i] = value;                                                                                      \
        }                                                                                                      \
    }
COMPLEX_ROW(C64, C128, dm_c64, dm_c128, ((dm_c128){(double)v.re, (double)v.im}))
COMPLEX_ROW(C128, C64, dm_c128, dm_c64, ((dm_c64){(float)v.re, (float)v.im}))
COMPLEX_ROW(C64, F32, dm_c64, float, v.re)
COMPLEX_ROW(C128, F64, dm_c128, double, v.re)
COMPLEX_ROW(F32, C64, float, dm_c64, ((dm_c64){v, 0}))
COMPLEX_ROW(F64, C128, double, dm_c128, ((dm_c128){v, 0}))
COMPLEX_ROW(C64, BOOL, dm_c64, uint8_t, v.re != 0 || v.im != 0)
COMPLEX_ROW(C128, BOOL, dm_c128, uint8_t, v.re != 0 || v.im != 0)

/* NULL: no row leads there directly. */
#define TABLE_ROW(from)                                                                                        \
    [DM_F64] = from##_F64, [DM_F32] = from##_F32, [DM_F16] = from##_F16, [DM_BF16] = from##_BF16,              \
    [DM_I64] = from##_I64, [DM_I32] = from##_I32, [DM_U8] = from##_U8
#define TABLE_ROW_MORE(from)                                                                                   \
    TABLE_ROW(from), [DM_BOOL] = from##_BOOL, [DM_I8] = from##_I8, [DM_I16] = from##_I16,                      \
                     [DM_U16] = from##_U16, [DM_U32] = from##_U32, [DM_U64] = from##_U64,                      \
                     [DM_F8E4M3] = from##_F8E4M3, [DM_F8E5M2] = from##_F8E5M2
static row_fn *const table[DMI_DTYPE_END][DMI_DTYPE_END] = {
    [DM_F64] = {TABLE_ROW_MORE(F64), [DM_C128] = F64_C128},
    [DM_F32] = {TABLE_ROW_MORE(F32), [DM_C64] = F32_C64},
    [DM_F16] = {TABLE_ROW(F16)},
    [DM_BF16] = {TABLE_ROW(BF16)},
    [DM_I64] = {TABLE_ROW_MORE(I64)},
    [DM_I32] = {TABLE_ROW_MORE(I32)},
    [DM_U8] = {TABLE_ROW(U8)},
    [DM_U64] = {TABLE_ROW_MORE(U64)},
    [DM_BOOL] = {[DM_I32] = BOOL_I32},
    [DM_I8] = {[DM_I32] = I8_I32},
    [DM_I16] = {[DM_I32] = I16_I32},
    [DM_U16] = {[DM_I32] = U16_I32},
    [DM_U32] = {[DM_I64] = U32_I64},
    [DM_C64] = {[DM_F32] = C64_F32, [DM_C128] = C64_C128, [DM_BOOL] = C64_BOOL},
    [DM_C128] = {[DM_F64] = C128_F64, [DM_C64] = C128_C64, [DM_BOOL] = C128_BOOL},
    [DM_F8E4M3] = {[DM_F32] = F8E4M3_F32},
    [DM_F8E5M2] = {[DM_F32] = F8E5M2_F32},
};

/* A type between two that no row joins: the one that a value of `from` is held in, or the real part
 * of a complex type. */
static dm_dtype half_way(dm_dtype from, dm_dtype to)
{
    if (dmi_dtype_is_complex(from)) {
        return dmi_dtype_part(from);
    }
    if (dmi_dtype_is_complex(to)) {
        return dmi_dtype_part(to);
    }
    return from == DM_BOOL ? DM_I32 : dmi_dtype_carrier(from);
}

static void convert_twice(dm_dtype from, dm_dtype to, const void *src, void *dst, int64_t n)
{
    dm_dtype middle = half_way(from, to);
    int64_t src_bytes = dmi_dtype_bytes(from), dst_bytes = dmi_dtype_bytes(to);
    dmi_chunk held;
    assert(middle != from && middle != to);
    for (int64_t i = 0; i < n; i += DMI_CHUNK) {
        int64_t m = DMI_MIN(DMI_CHUNK, n - i);
        dmi_convert_row(from, middle, dmi_at(src, i * src_bytes), &held, m);
        dmi_convert_row(middle, to, &held, dmi_at_mut(dst, i * dst_bytes), m);
    }
}

#if defined(DMI_HAVE_WIDE)
DMI_WIDE static void f16_to_f32_f16c(const void *src, void *dst, int64_t n)
{
    const uint16_t *s = src;
    float *d = dst;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
    }
    for (; i < n; i++) {
        d[i] = dmi_f16_to_f32(s[i]);
    }
}

DMI_WIDE static void f32_to_f16_f16c(const void *src, void *dst, int64_t n)
{
    const float *s = src;
    uint16_t *d = dst;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((__m128i *)(d + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++) {
        d[i] = dmi_f32_to_f16(s[i]);
    }
}
#endif

void dmi_convert_row(dm_dtype from, dm_dtype to, const void *src, void *dst, int64_t n)
{
    assert(dmi_dtype_bytes(from) > 0 && dmi_dtype_bytes(to) > 0);
    if (from == to) {
        memmove(dst, src, (size_t)(n * dmi_dtype_bytes(from)));
        return;
    }
#if defined(DMI_HAVE_WIDE)
    if (dmi_cpu_wide() && from == DM_F16 && to == DM_F32) {
        f16_to_f32_f16c(src, dst, n);
        return;
    }
    if (dmi_cpu_wide() && from == DM_F32 && to == DM_F16) {
        f32_to_f16_f16c(src, dst, n);
        return;
    }
#endif
    if (table[from][to] == NULL) {
        convert_twice(from, to, src, dst, n);
        return;
    }
    table[from][to](src, dst, n);
}

#define MOVE(type)                                                                                             \
    do {                                                                                                       \
        const type *s = src;                                                                                   \
        type *d = dst;                                                                                         \
        if (src_stride == 0) {                                                                                 \
            type v = s[0];                                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                d[i * dst_stride] = v;                                                                         \
            }                                                                                                  \
        } else if (dst_stride == 1) {                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                d[i] = s[i * src_stride];                                                                      \
            }                                                                                                  \
        } else if (src_stride == 1) {                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                d[i * dst_stride] = s[i];                                                                      \
            }                                                                                                  \
        } else {                                                                                               \
            for (int64_t i = 0; i < n; i++) {                                                                  \
                d[i * dst_stride] = s[i * src_stride];                                                         \
            }                                                                                                  \
        }                                                                                                      \
    } while (0)

void dmi_move_row(int64_t bytes, const void *src, int64_t src_stride, void *dst, int64_t dst_stride, int64_t n)
{
    if (src_stride == 1 && dst_stride == 1) {
        memcpy(dst, src, (size_t)(n * bytes));
        return;
    }
    switch (bytes) {
    case 1:
        MOVE(dmi_raw8);
        break;
    case 2:
        MOVE(dmi_raw16);
        break;
    case 4:
        MOVE(dmi_raw32);
        break;
    case 8:
        MOVE(dmi_raw64);
        break;
    default:
        assert(bytes == 16);
        MOVE(dmi_raw128);
        break;
    }
}

const void *dmi_row_load(dm_dtype from, const void *src, int64_t stride, dm_dtype to, dmi_chunk *buffer,
                         int64_t n)
{
    assert(n <= DMI_CHUNK);
    if (stride == 1 || n == 1) {
        if (from == to) {
            return src;
        }
        dmi_convert_row(from, to, src, buffer, n);
        return buffer;
    }
    if (stride == 0) {
        dmi_convert_row(from, to, src, buffer, 1);
        dmi_move_row(dmi_dtype_bytes(to), buffer, 0, buffer, 1, n);
        return buffer;
    }
    if (from == to) {
        dmi_move_row(dmi_dtype_bytes(from), src, stride, buffer, 1, n);
        return buffer;
    }
    dmi_chunk packed;
    dmi_move_row(dmi_dtype_bytes(from), src, stride, &packed, 1, n);
    dmi_convert_row(from, to, &packed, buffer, n);
    return buffer;
}

void dmi_row_store(dm_dtype from, const void *src, dm_dtype to, void *dst, int64_t stride, int64_t n)
{
    if (stride == 1 || n == 1) {
        if (from != to || src != dst) {
            dmi_convert_row(from, to, src, dst, n);
        }
        return;
    }
    if (from == to) {
        dmi_move_row(dmi_dtype_bytes(to), src, 1, dst, stride, n);
        return;
    }
    assert(n <= DMI_CHUNK);
    dmi_chunk packed;
    dmi_convert_row(from, to, src, &packed, n);
    dmi_move_row(dmi_dtype_bytes(to), &packed, 1, dst, stride, n);
}
