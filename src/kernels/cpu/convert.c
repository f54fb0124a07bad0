/* Rows: conversion of dense ones, movement of strided ones, and both through a buffer. */
#include "kernels/cpu/convert.h"
#include "kernels/cpu/simd.h"
#include <assert.h>
#if defined(DMI_HAVE_WIDE)
#include <immintrin.h>
#endif

/* A value on its way is held in a carrier that holds it exactly: f64, f32 (for the 16-bit floats too), i64 or
 * i32 (for u8 too). FROM_x gives the carrier of an x; TO_x_y makes an x of carrier y. */
#define FROM_F64(v) (v)
#define FROM_F32(v) (v)
#define FROM_F16(v) dmi_f16_to_f32(v)
#define FROM_BF16(v) dmi_bf16_to_f32(v)
#define FROM_I64(v) (v)
#define FROM_I32(v) (v)
#define FROM_U8(v) ((int32_t)(v))

#define TO_F64_F64(v) (v)
#define TO_F64_F32(v) ((double)(v))
#define TO_F64_I64(v) ((double)(v))
#define TO_F64_I32(v) ((double)(v))
#define TO_F32_F64(v) ((float)(v))
#define TO_F32_F32(v) (v)
#define TO_F32_I64(v) ((float)(v))
#define TO_F32_I32(v) ((float)(v))
#define TO_F16_F64(v) dmi_f64_to_f16(v)
#define TO_F16_F32(v) dmi_f32_to_f16(v)
#define TO_F16_I64(v) dmi_f64_to_f16(dmi_i64_to_sticky(v))
#define TO_F16_I32(v) dmi_f64_to_f16((double)(v))
#define TO_BF16_F64(v) dmi_f64_to_bf16(v)
#define TO_BF16_F32(v) dmi_f32_to_bf16(v)
#define TO_BF16_I64(v) dmi_f64_to_bf16(dmi_i64_to_sticky(v))
#define TO_BF16_I32(v) dmi_f64_to_bf16((double)(v))
#define TO_I64_F64(v) dmi_f64_to_i64(v)
#define TO_I64_F32(v) dmi_f64_to_i64((double)(v))
#define TO_I64_I64(v) (v)
#define TO_I64_I32(v) ((int64_t)(v))
#define TO_I32_F64(v) dmi_f64_to_i32(v)
#define TO_I32_F32(v) dmi_f64_to_i32((double)(v))
#define TO_I32_I64(v) ((int32_t)(v))
#define TO_I32_I32(v) (v)
#define TO_U8_F64(v) dmi_f64_to_u8(v)
#define TO_U8_F32(v) dmi_f32_to_u8(v)
#define TO_U8_I64(v) ((uint8_t)(v))
#define TO_U8_I32(v) ((uint8_t)(v))

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
#define ROWS(from, carrier, stype)                                                                             \
    ROW(from, F64, carrier, stype, double)                                                                     \
    ROW(from, F32, carrier, stype, float)                                                                      \
    ROW(from, F16, carrier, stype, uint16_t)                                                                   \
    ROW(from, BF16, carrier, stype, uint16_t)                                                                  \
    ROW(from, I64, carrier, stype, int64_t)                                                                    \
    ROW(from, I32, carrier, stype, int32_t)                                                                    \
    ROW(from, U8, carrier, stype, uint8_t)
ROWS(F64, F64, double)
ROWS(F32, F32, float)
ROWS(F16, F32, uint16_t)
ROWS(BF16, F32, uint16_t)
ROWS(I64, I64, int64_t)
ROWS(I32, I32, int32_t)
ROWS(U8, I32, uint8_t)

#define TABLE_ROW(from)                                                                                        \
    {                                                                                                          \
        0, from##_F64, from##_F32, from##_F16, from##_BF16, from##_I64, from##_I32, from##_U8                  \
    }
static row_fn *const table[8][8] = {
    {0},
    TABLE_ROW(F64),
    TABLE_ROW(F32),
    TABLE_ROW(F16),
    TABLE_ROW(BF16),
    TABLE_ROW(I64),
    TABLE_ROW(I32),
    TABLE_ROW(U8),
};

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
    assert(from >= DM_F64 && from <= DM_U8 && to >= DM_F64 && to <= DM_U8);
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
    default:
        assert(bytes == 8);
        MOVE(dmi_raw64);
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
