/* Elements of sums, and sums of a warp. */
#ifndef DMI_CUDA_SUMS_CUH
#define DMI_CUDA_SUMS_CUH

#include "kernels/cuda/dtypes.cuh"
#include "kernels/reduce/last_block.cuh"
#include "kernels/reduce/scaled_sums.h"
#include "kernels/reduce/sum_states.cuh"

/* An element whose type is known at run time. */
struct every_float {
    double v;
};
struct every_whole {
    int64_t v;
};

/* The type that elements are opened to. */
template <typename T> struct summand {
    typedef int64_t type;
};
template <> struct summand<double> {
    typedef double type;
};
template <> struct summand<float> {
    typedef float type;
};
template <> struct summand<f16> {
    typedef float type;
};
template <> struct summand<bf16> {
    typedef float type;
};
template <> struct summand<every_float> {
    typedef float type;
};
template <> __device__ __forceinline__ float opened<float, every_float>(every_float v)
{
    return (float)v.v;
}
template <> __device__ __forceinline__ int64_t opened<int64_t, every_whole>(every_whole v)
{
    return v.v;
}
/* N elements from position `at` on. */
template <typename T, int N> struct fetched {
    static __device__ __forceinline__ group<T, N> from(dm_dtype, const void *p, int64_t at)
    {
        return *(const group<T, N> *)((const T *)p + at);
    }
};
template <> struct fetched<every_float, 1> {
    static __device__ __forceinline__ group<every_float, 1> from(dm_dtype dtype, const void *p, int64_t at)
    {
        group<every_float, 1> g;
        load_one(dtype, p, at, &g.v[0].v);
        return g;
    }
};
template <> struct fetched<every_whole, 1> {
    static __device__ __forceinline__ group<every_whole, 1> from(dm_dtype dtype, const void *p, int64_t at)
    {
        group<every_whole, 1> g;
        load_one(dtype, p, at, &g.v[0].v);
        return g;
    }
};
template <typename S, typename T> static __device__ __forceinline__ void add_element(S *a, T v)
{
    add(a, opened<typename summand<T>::type, T>(v));
}

/* A group of a row more, element e to chain e % CHAINS; bytes are added up in 32 bits first. */
template <int CHAINS, typename S, typename T, int N>
static __device__ __forceinline__ void add_to_chains(S (&s)[CHAINS], const group<T, N> &v)
{
#pragma unroll
    for (int e = 0; e < N; e++) {
        add_element(&s[e % CHAINS], v.v[e]);
    }
}
template <int CHAINS>
static __device__ __forceinline__ void add_to_chains(sum_i64 (&s)[CHAINS], const group<uint8_t, 16> &v)
{
    uint4 words = *(const uint4 *)&v;
    uint32_t sum = __dp4a(words.x, 0x01010101u, 0u);
    sum = __dp4a(words.y, 0x01010101u, sum);
    sum = __dp4a(words.z, 0x01010101u, sum);
    s[0].s += __dp4a(words.w, 0x01010101u, sum);
}

/* Groups of several rows more, those that are valid: element e to sum e. */
template <typename S, typename T, int N, int DEPTH>
static __device__ __forceinline__ void add_rows(S (&s)[N], const group<T, N> (&v)[DEPTH],
                                                const bool (&valid)[DEPTH])
{
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
#pragma unroll
            for (int e = 0; e < N; e++) {
                add_element(&s[e], v[k].v[e]);
            }
        }
    }
}
/* Bytes: every second one of a word at once, in halves of 16 bits. */
template <int DEPTH>
static __device__ __forceinline__ void add_rows(sum_i64 (&s)[16], const group<uint8_t, 16> (&v)[DEPTH],
                                                const bool (&valid)[DEPTH])
{
    uint32_t even[4] = {0}, odd[4] = {0};
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            uint4 x = *(const uint4 *)&v[k];
            const uint32_t word[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
            for (int w = 0; w < 4; w++) {
                even[w] += word[w] & 0x00ff00ffu;
                odd[w] += word[w] >> 8 & 0x00ff00ffu;
            }
        }
    }
#pragma unroll
    for (int w = 0; w < 4; w++) {
        s[4 * w].s += even[w] & 0xffffu;
        s[4 * w + 1].s += odd[w] & 0xffffu;
        s[4 * w + 2].s += even[w] >> 16;
        s[4 * w + 3].s += odd[w] >> 16;
    }
}

/* That of the warp lane `by` further on. */
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
template <> struct sum_of<every_float> {
    typedef sum_f64 type;
};

#endif
