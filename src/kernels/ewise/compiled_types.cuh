/* What the sources compiled at run time have in place of the headers of C and CUDA, which may not be there. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#define INT64_C(value) value##L
#define UINT64_C(value) value##UL
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615UL
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535

struct dm_c64 {
    float re, im;
};
struct dm_c128 {
    double re, im;
};

/* The conversions of cuda_fp16.h and cuda_bf16.h that convert.cuh uses, with the same instructions. */
struct __half {
    unsigned short bits;
};
struct __nv_bfloat16 {
    unsigned short bits;
};
static __device__ __forceinline__ __half __ushort_as_half(unsigned short bits)
{
    return {bits};
}
static __device__ __forceinline__ unsigned short __half_as_ushort(__half x)
{
    return x.bits;
}
static __device__ __forceinline__ float __half2float(__half x)
{
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}
static __device__ __forceinline__ __half __float2half_rn(float x)
{
    __half r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
static __device__ __forceinline__ __half __double2half(double x)
{
    __half r;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r.bits) : "d"(x));
    return r;
}
static __device__ __forceinline__ unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}
static __device__ __forceinline__ __nv_bfloat16 __float2bfloat16_rn(float x)
{
    __nv_bfloat16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
