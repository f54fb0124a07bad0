/* Conversions between element types, bit for bit those of the CPU (kernels/box/convert.h), NaNs' payloads
 * included. A value that is converted is held in a carrier that holds it exactly: double, float (for the shorter
 * floats too), int64_t (for u32 too), int32_t (for the shorter integers and bool too) or uint64_t. A complex
 * number is held as its real part, or, if converted to another complex type, as a dm_c128. */
#ifndef DMI_CUDA_CONVERT_CUH
#define DMI_CUDA_CONVERT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/common.cuh"

struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};
struct bool8 {
    uint8_t bits;
};
struct f8e4m3 {
    uint8_t bits;
};
struct f8e5m2 {
    uint8_t bits;
};

/* --- to the carrier ------------------------------------------------------------------ */
static __device__ __forceinline__ double carried(double v)
{
    return v;
}
static __device__ __forceinline__ float carried(float v)
{
    return v;
}
static __device__ __forceinline__ float carried(f16 v)
{
    uint32_t magnitude = v.bits & 0x7fffu;
    float x = __half2float(__ushort_as_half(v.bits));
    uint32_t nan = (uint32_t)(v.bits & 0x8000u) << 16 | magnitude << 13 | 0x7fc00000u;
    return magnitude > 0x7c00u ? __uint_as_float(nan) : x;
}
static __device__ __forceinline__ float carried(bf16 v)
{
    uint32_t a = (uint32_t)v.bits << 16;
    return __uint_as_float((a & 0x7fffffffu) > 0x7f800000u ? a | 0x00400000u : a);
}
static __device__ __forceinline__ int64_t carried(int64_t v)
{
    return v;
}
static __device__ __forceinline__ int32_t carried(int32_t v)
{
    return v;
}
static __device__ __forceinline__ int32_t carried(uint8_t v)
{
    return v;
}

static __device__ __forceinline__ int32_t carried(int8_t v)
{
    return v;
}
static __device__ __forceinline__ int32_t carried(int16_t v)
{
    return v;
}
static __device__ __forceinline__ int32_t carried(uint16_t v)
{
    return v;
}
static __device__ __forceinline__ int64_t carried(uint32_t v)
{
    return v;
}
static __device__ __forceinline__ uint64_t carried(uint64_t v)
{
    return v;
}
static __device__ __forceinline__ int32_t carried(bool8 v)
{
    return v.bits != 0;
}
static __device__ __forceinline__ float carried(f8e5m2 v)
{
    f16 x = {(uint16_t)(v.bits << 8)};
    return carried(x);
}
static __device__ __forceinline__ float carried(f8e4m3 v)
{
    f16 x = {(uint16_t)((v.bits & 0x80u) << 8 | (v.bits & 0x7fu) << 7)}; /* 2^-8 of the value */
    uint32_t nan = (uint32_t)(v.bits & 0x80u) << 24 | 0x7fc00000u;
    return (v.bits & 0x7fu) == 0x7fu ? __uint_as_float(nan) : __fmul_rn(carried(x), 256.0f);
}
static __device__ __forceinline__ float carried(dm_c64 v)
{
    return v.re;
}
static __device__ __forceinline__ double carried(dm_c128 v)
{
    return v.re;
}

/* --- between floats -------------------------------------------------------------------- */
static __device__ __forceinline__ double widened(float v)
{
    uint32_t b = __float_as_uint(v);
    uint64_t nan = (uint64_t)(b & 0x80000000u) << 32 | 0x7ff8000000000000u | (uint64_t)(b & 0x007fffffu) << 29;
    return v == v ? (double)v : __longlong_as_double((long long)nan);
}
static __device__ __forceinline__ float narrowed(double v)
{
    uint64_t b = (uint64_t)__double_as_longlong(v);
    uint32_t nan = (uint32_t)(b >> 32 & 0x80000000u) | 0x7fc00000u | (uint32_t)(b >> 29 & 0x007fffffu);
    return v == v ? __double2float_rn(v) : __uint_as_float(nan);
}
static __device__ __forceinline__ f16 to_f16(float v)
{
    uint32_t b = __float_as_uint(v);
    f16 r = {__half_as_ushort(__float2half_rn(v))};
    uint32_t nan = (b >> 16 & 0x8000u) | 0x7e00u | (b >> 13 & 0x3ffu);
    r.bits = v == v ? r.bits : (uint16_t)nan;
    return r;
}
static __device__ __forceinline__ f16 to_f16(double v)
{
    uint64_t b = (uint64_t)__double_as_longlong(v);
    f16 r = {__half_as_ushort(__double2half(v))};
    uint64_t nan = (b >> 48 & 0x8000u) | 0x7e00u | (b >> 42 & 0x3ffu);
    r.bits = v == v ? r.bits : (uint16_t)nan;
    return r;
}
static __device__ __forceinline__ bf16 to_bf16(float v)
{
    uint32_t a = __float_as_uint(v), r = (a + 0x7fffu + (a >> 16 & 1u)) >> 16;
    bf16 x = {(uint16_t)(v == v ? r : (a >> 16 | 0x40u))};
    return x;
}
static __device__ __forceinline__ bf16 to_bf16(double v)
{
    uint64_t b = (uint64_t)__double_as_longlong(v), sign = b >> 48 & 0x8000u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (896ull << 52) + 0xfffffffffffull + (a >> 45 & 1u)) >> 45;
    double sum = __dadd_rn(__longlong_as_double((long long)a), 0x1p-81);
    uint64_t small = (uint64_t)__double_as_longlong(sum) - 0x3ae0000000000000u;
    uint64_t nan = 0x7fc0u | (a >> 45 & 0x7fu);
    uint64_t r = a < 0x3810000000000000u ? small : normal;
    r = a >= 0x47f0000000000000u ? 0x7f80u : r;
    r = a > 0x7ff0000000000000u ? nan : r;
    bf16 x = {(uint16_t)(sign | r)};
    return x;
}
/* An i64 as a double that rounds to a 16-bit float as the i64 itself would. */
static __device__ __forceinline__ double sticky(int64_t v)
{
    bool big = v > INT64_C(1) << 53 || v < -(INT64_C(1) << 53);
    return big ? (double)((v & ~INT64_C(0xfff)) | ((v & 0xfff) != 0 ? 0x800 : 0)) : (double)v;
}

static __device__ __forceinline__ double sticky(uint64_t v)
{
    bool big = v > UINT64_C(1) << 53;
    return big ? (double)((v & ~UINT64_C(0xfff)) | ((v & 0xfff) != 0 ? 0x800 : 0)) : (double)v;
}
static __device__ __forceinline__ f8e5m2 to_f8e5m2(double v)
{
    uint64_t b = (uint64_t)__double_as_longlong(v), sign = b >> 56 & 0x80u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (1008ull << 52) + 0x1ffffffffffffull + (a >> 50 & 1u)) >> 50;
    double sum = __dadd_rn(__longlong_as_double((long long)a), 0x1p36);
    uint64_t small = (uint64_t)__double_as_longlong(sum) - 0x4230000000000000u;
    uint64_t nan = 0x7eu | (a >> 50 & 0x3u);
    uint64_t r = a < 0x3f10000000000000u ? small : normal;
    r = a >= 0x40f0000000000000u ? 0x7cu : r;
    r = a > 0x7ff0000000000000u ? nan : r;
    return {(uint8_t)(sign | r)};
}
static __device__ __forceinline__ f8e4m3 to_f8e4m3(double v)
{
    uint64_t b = (uint64_t)__double_as_longlong(v), sign = b >> 56 & 0x80u, a = b & 0x7fffffffffffffffu;
    uint64_t normal = (a - (1016ull << 52) + 0xffffffffffffull + (a >> 49 & 1u)) >> 49;
    double sum = __dadd_rn(__longlong_as_double((long long)a), 0x1p43);
    uint64_t small = (uint64_t)__double_as_longlong(sum) - 0x42a0000000000000u;
    uint64_t r = a < 0x3f90000000000000u ? small : normal;
    r = a > 0x407d000000000000u ? 0x7fu : r;
    return {(uint8_t)(sign | r)};
}

/* --- floats to integers: towards zero, saturating, NaN gives 0 --------------------------- */
static __device__ __forceinline__ int64_t to_i64(double v)
{
    return v == v ? (int64_t)__double2ll_rz(v) : 0;
}
static __device__ __forceinline__ int32_t to_i32(double v)
{
    return v == v ? __double2int_rz(v) : 0;
}
static __device__ __forceinline__ uint8_t to_u8(double v)
{
    double t = v == v ? v : 0;
    t = t > 0 ? t : 0;
    t = t < 255 ? t : 255;
    return (uint8_t)__double2int_rz(t);
}
static __device__ __forceinline__ int64_t to_i64(float v)
{
    return v == v ? (int64_t)__float2ll_rz(v) : 0;
}
static __device__ __forceinline__ int32_t to_i32(float v)
{
    return v == v ? __float2int_rz(v) : 0;
}
static __device__ __forceinline__ uint8_t to_u8(float v)
{
    float t = v == v ? v : 0;
    t = t > 0 ? t : 0;
    t = t < 255 ? t : 255;
    return (uint8_t)__float2int_rz(t);
}

static __device__ __forceinline__ uint32_t to_u32(double v)
{
    return v == v ? __double2uint_rz(v) : 0;
}
static __device__ __forceinline__ uint64_t to_u64(double v)
{
    return v == v ? (uint64_t)__double2ull_rz(v) : 0;
}
static __device__ __forceinline__ int32_t to_small(double v, int32_t lo, int32_t hi)
{
    int32_t i = to_i32(v);
    return i < lo ? lo : i > hi ? hi : i;
}

/* --- from a carrier ------------------------------------------------------------------------ */
template <typename To> struct made;
template <> struct made<double> {
    static __device__ __forceinline__ double of(double v)
    {
        return v;
    }
    static __device__ __forceinline__ double of(float v)
    {
        return widened(v);
    }
    static __device__ __forceinline__ double of(int64_t v)
    {
        return (double)v;
    }
    static __device__ __forceinline__ double of(int32_t v)
    {
        return (double)v;
    }
    static __device__ __forceinline__ double of(uint64_t v)
    {
        return (double)v;
    }
};
template <> struct made<float> {
    static __device__ __forceinline__ float of(double v)
    {
        return narrowed(v);
    }
    static __device__ __forceinline__ float of(float v)
    {
        return v;
    }
    static __device__ __forceinline__ float of(int64_t v)
    {
        return (float)v;
    }
    static __device__ __forceinline__ float of(int32_t v)
    {
        return (float)v;
    }
    static __device__ __forceinline__ float of(uint64_t v)
    {
        return (float)v;
    }
};
template <> struct made<f16> {
    static __device__ __forceinline__ f16 of(double v)
    {
        return to_f16(v);
    }
    static __device__ __forceinline__ f16 of(float v)
    {
        return to_f16(v);
    }
    static __device__ __forceinline__ f16 of(int64_t v)
    {
        return to_f16(sticky(v));
    }
    static __device__ __forceinline__ f16 of(int32_t v)
    {
        return to_f16((double)v);
    }
    static __device__ __forceinline__ f16 of(uint64_t v)
    {
        return to_f16(sticky(v));
    }
};
template <> struct made<bf16> {
    static __device__ __forceinline__ bf16 of(double v)
    {
        return to_bf16(v);
    }
    static __device__ __forceinline__ bf16 of(float v)
    {
        return to_bf16(v);
    }
    static __device__ __forceinline__ bf16 of(int64_t v)
    {
        return to_bf16(sticky(v));
    }
    static __device__ __forceinline__ bf16 of(int32_t v)
    {
        return to_bf16((double)v);
    }
    static __device__ __forceinline__ bf16 of(uint64_t v)
    {
        return to_bf16(sticky(v));
    }
};
template <> struct made<int64_t> {
    static __device__ __forceinline__ int64_t of(double v)
    {
        return to_i64(v);
    }
    static __device__ __forceinline__ int64_t of(float v)
    {
        return to_i64(v);
    }
    static __device__ __forceinline__ int64_t of(int64_t v)
    {
        return v;
    }
    static __device__ __forceinline__ int64_t of(int32_t v)
    {
        return v;
    }
    static __device__ __forceinline__ int64_t of(uint64_t v)
    {
        return (int64_t)v;
    }
};
template <> struct made<int32_t> {
    static __device__ __forceinline__ int32_t of(double v)
    {
        return to_i32(v);
    }
    static __device__ __forceinline__ int32_t of(float v)
    {
        return to_i32(v);
    }
    static __device__ __forceinline__ int32_t of(int64_t v)
    {
        return (int32_t)v;
    }
    static __device__ __forceinline__ int32_t of(int32_t v)
    {
        return v;
    }
    static __device__ __forceinline__ int32_t of(uint64_t v)
    {
        return (int32_t)v;
    }
};
template <> struct made<uint8_t> {
    static __device__ __forceinline__ uint8_t of(double v)
    {
        return to_u8(v);
    }
    static __device__ __forceinline__ uint8_t of(float v)
    {
        return to_u8(v);
    }
    static __device__ __forceinline__ uint8_t of(int64_t v)
    {
        return (uint8_t)v;
    }
    static __device__ __forceinline__ uint8_t of(int32_t v)
    {
        return (uint8_t)v;
    }
    static __device__ __forceinline__ uint8_t of(uint64_t v)
    {
        return (uint8_t)v;
    }
};

static __device__ __forceinline__ double wide(float v)
{
    return widened(v);
}
static __device__ __forceinline__ double wide(double v)
{
    return v;
}
static __device__ __forceinline__ int64_t whole(int32_t v)
{
    return v;
}
static __device__ __forceinline__ int64_t whole(int64_t v)
{
    return v;
}
static __device__ __forceinline__ uint64_t whole(uint64_t v)
{
    return v;
}
#define MADE(type, from_real, from_integer)                                                                    \
    template <> struct made<type> {                                                                            \
        template <typename C> static __device__ __forceinline__ type of(C v)                                   \
        {                                                                                                      \
            if constexpr ((C)0.5 != 0) {                                                                       \
                return from_real;                                                                              \
            } else {                                                                                           \
                return from_integer;                                                                           \
            }                                                                                                  \
        }                                                                                                      \
    };
MADE(int8_t, (int8_t)to_small(wide(v), INT8_MIN, INT8_MAX), (int8_t)v)
MADE(int16_t, (int16_t)to_small(wide(v), INT16_MIN, INT16_MAX), (int16_t)v)
MADE(uint16_t, (uint16_t)to_small(wide(v), 0, UINT16_MAX), (uint16_t)v)
MADE(uint32_t, to_u32(wide(v)), (uint32_t)v)
MADE(uint64_t, to_u64(wide(v)), (uint64_t)v)
MADE(f8e4m3, to_f8e4m3(wide(v)), to_f8e4m3(sticky(whole(v))))
MADE(f8e5m2, to_f8e5m2(wide(v)), to_f8e5m2(sticky(whole(v))))
#undef MADE
template <> struct made<bool8> {
    template <typename C> static __device__ __forceinline__ bool8 of(C v)
    {
        return {(uint8_t)(v != 0)};
    }
    static __device__ __forceinline__ bool8 of(dm_c128 v)
    {
        return {(uint8_t)(v.re != 0 || v.im != 0)};
    }
};
template <> struct made<dm_c64> {
    template <typename C> static __device__ __forceinline__ dm_c64 of(C v)
    {
        return {made<float>::of(v), 0.0f};
    }
    static __device__ __forceinline__ dm_c64 of(dm_c128 v)
    {
        return {narrowed(v.re), narrowed(v.im)};
    }
};
template <> struct made<dm_c128> {
    template <typename C> static __device__ __forceinline__ dm_c128 of(C v)
    {
        return {made<double>::of(v), 0.0};
    }
    static __device__ __forceinline__ dm_c128 of(dm_c128 v)
    {
        return v;
    }
};

template <typename To, typename From> static __device__ __forceinline__ To converted(From v)
{
    return made<To>::of(carried(v));
}

/* --- to and from a type to compute in -------------------------------------------------------
 * The payload of a NaN does not outlast arithmetic: these leave it to the
 * instructions. */
template <typename C, typename T> static __device__ __forceinline__ C opened(T v)
{
    return (C)v;
}
template <> __device__ __forceinline__ float opened<float, f16>(f16 v)
{
    return __half2float(__ushort_as_half(v.bits));
}
template <> __device__ __forceinline__ float opened<float, bf16>(bf16 v)
{
    return __uint_as_float((uint32_t)v.bits << 16);
}
template <typename T, typename C> static __device__ __forceinline__ T closed(C v)
{
    return (T)v;
}
template <> __device__ __forceinline__ f16 closed<f16, float>(float v)
{
    return {__half_as_ushort(__float2half_rn(v))};
}
template <> __device__ __forceinline__ bf16 closed<bf16, float>(float v)
{
    return {__bfloat16_as_ushort(__float2bfloat16_rn(v))};
}

#endif
