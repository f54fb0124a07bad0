/* Elements in memory, of type S, and in registers, of type T: the same, or f16 and bf16 as float. */
#ifndef DMI_DNN_STORED_CUH
#define DMI_DNN_STORED_CUH

#include "kernels/box/convert.cuh"

/* V elements that are aligned. */
template <typename T, typename S, int V> static __device__ __forceinline__ group<T, V> loaded(const S *at)
{
    group<S, V> g = *(const group<S, V> *)at;
    group<T, V> out;
#pragma unroll
    for (int k = 0; k < V; k++) {
        out.v[k] = opened<T>(g.v[k]);
    }
    return out;
}
/* Or that are not. */
template <typename T, typename S, int V> static __device__ __forceinline__ group<T, V> gathered(const S *at)
{
    group<T, V> out;
#pragma unroll
    for (int k = 0; k < V; k++) {
        out.v[k] = opened<T>(at[k]);
    }
    return out;
}
template <typename T, typename S, int V>
static __device__ __forceinline__ void stored(S *at, const group<T, V> &value)
{
    group<S, V> g;
#pragma unroll
    for (int k = 0; k < V; k++) {
        g.v[k] = closed<S>(value.v[k]);
    }
    *(group<S, V> *)at = g;
}

#endif
