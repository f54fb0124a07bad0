/* Accumulators of sums, as the CPU has them (kernels/cpu/dd.h): double, a pair of doubles, int64 that wraps. */
#ifndef DMI_CUDA_SUMS_CUH
#define DMI_CUDA_SUMS_CUH

#include "kernels/cuda/convert.cuh"

struct sum_f64 {
    double s;
};
struct alignas(16) sum_dd {
    double hi, lo;
};
struct sum_i64 {
    uint64_t s;
};

/* s + e == a + b exactly (D. Knuth, The Art of Computer Programming 2, 4.2.2). */
static __device__ __forceinline__ double two_sum(double a, double b, double *e)
{
    double s = __dadd_rn(a, b), t = __dsub_rn(s, a);
    *e = __dadd_rn(__dsub_rn(a, __dsub_rn(s, t)), __dsub_rn(b, t));
    return s;
}
static __device__ __forceinline__ bool finite_value(double x)
{
    return __dsub_rn(x, x) == 0;
}

static __device__ __forceinline__ void clear(sum_f64 *a)
{
    a->s = 0;
}
static __device__ __forceinline__ void clear(sum_dd *a)
{
    a->hi = 0;
    a->lo = 0;
}
static __device__ __forceinline__ void clear(sum_i64 *a)
{
    a->s = 0;
}

/* An element more. */
template <typename T> static __device__ __forceinline__ void add(sum_f64 *a, T v)
{
    a->s = __dadd_rn(a->s, (double)carried(v));
}
static __device__ __forceinline__ void add(sum_dd *a, double v)
{
    double e;
    a->hi = two_sum(a->hi, v, &e);
    a->lo = __dadd_rn(a->lo, e);
}
template <typename T> static __device__ __forceinline__ void add(sum_i64 *a, T v)
{
    a->s += (uint64_t)(int64_t)v;
}

/* N elements more; those of a byte are added up in 32 bits first. */
template <int N, typename S, typename T> static __device__ __forceinline__ void add_some(S *a, const T (&v)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        add(a, v[k]);
    }
}
template <int N> static __device__ __forceinline__ void add_some(sum_i64 *a, const uint8_t (&v)[N])
{
    uint32_t s = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        s += v[k];
    }
    a->s += s;
}

/* Sums of sums. Where hi is not finite it alone counts. */
static __device__ __forceinline__ sum_dd normal(double hi, double lo)
{
    sum_dd r;
    r.hi = two_sum(hi, lo, &r.lo);
    if (!finite_value(hi)) {
        r.hi = hi;
        r.lo = 0;
    } else if (!finite_value(r.hi)) {
        r.lo = 0;
    }
    return r;
}
static __device__ __forceinline__ sum_f64 joined(sum_f64 a, sum_f64 b)
{
    return {__dadd_rn(a.s, b.s)};
}
static __device__ __forceinline__ sum_dd joined(sum_dd a, sum_dd b)
{
    double e, s = two_sum(a.hi, b.hi, &e);
    return normal(s, __dadd_rn(e, __dadd_rn(a.lo, b.lo)));
}
static __device__ __forceinline__ sum_i64 joined(sum_i64 a, sum_i64 b)
{
    return {a.s + b.s};
}
static __device__ __forceinline__ sum_f64 finished(sum_f64 a)
{
    return a;
}
static __device__ __forceinline__ sum_dd finished(sum_dd a)
{
    return normal(a.hi, a.lo);
}
static __device__ __forceinline__ sum_i64 finished(sum_i64 a)
{
    return a;
}

/* That of the lane `by` further on. */
static __device__ __forceinline__ sum_f64 shuffled(sum_f64 a, int by)
{
    return {__shfl_down_sync(0xffffffffu, a.s, by)};
}
static __device__ __forceinline__ sum_dd shuffled(sum_dd a, int by)
{
    sum_dd r;
    r.hi = __shfl_down_sync(0xffffffffu, a.hi, by);
    r.lo = __shfl_down_sync(0xffffffffu, a.lo, by);
    return r;
}
static __device__ __forceinline__ sum_i64 shuffled(sum_i64 a, int by)
{
    return {(uint64_t)__shfl_down_sync(0xffffffffu, (unsigned long long)a.s, by)};
}

template <typename T> struct sum_of {
    typedef sum_i64 type;
};
template <> struct sum_of<double> {
    typedef sum_dd type;
};
template <> struct sum_of<float> {
    typedef sum_f64 type;
};
template <> struct sum_of<f16> {
    typedef sum_f64 type;
};
template <> struct sum_of<bf16> {
    typedef sum_f64 type;
};

#endif
