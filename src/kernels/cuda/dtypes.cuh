/* Elements whose type is known at run time: the branches are the same for a whole grid. */
#ifndef DMI_CUDA_DTYPES_CUH
#define DMI_CUDA_DTYPES_CUH

#include "kernels/cuda/convert.cuh"

/* N elements from position `at` on, as C (double, float or int64_t). */
template <typename C, typename T, int N>
static __device__ __forceinline__ void load_typed(const void *p, int64_t at, C *v)
{
    group<T, N> g = *(const group<T, N> *)((const T *)p + at);
#pragma unroll
    for (int k = 0; k < N; k++) {
        v[k] = converted<C>(g.v[k]);
    }
}
template <typename C, typename T, int N>
static __device__ __forceinline__ void store_typed(void *p, int64_t at, const C *v)
{
    group<T, N> g;
#pragma unroll
    for (int k = 0; k < N; k++) {
        g.v[k] = converted<T>(v[k]);
    }
    *(group<T, N> *)((T *)p + at) = g;
}
#define DMI_CUDA_BY_TYPE(dtype, CALL)                                                                          \
    switch (dtype) {                                                                                           \
    case DM_F64:                                                                                               \
        CALL(double);                                                                                          \
        break;                                                                                                 \
    case DM_F32:                                                                                               \
        CALL(float);                                                                                           \
        break;                                                                                                 \
    case DM_F16:                                                                                               \
        CALL(f16);                                                                                             \
        break;                                                                                                 \
    case DM_BF16:                                                                                              \
        CALL(bf16);                                                                                            \
        break;                                                                                                 \
    case DM_I64:                                                                                               \
        CALL(int64_t);                                                                                         \
        break;                                                                                                 \
    case DM_I32:                                                                                               \
        CALL(int32_t);                                                                                         \
        break;                                                                                                 \
    default:                                                                                                   \
        CALL(uint8_t);                                                                                         \
        break;                                                                                                 \
    }

template <typename C, int N>
static __device__ __forceinline__ void load_any(dm_dtype dtype, const void *p, int64_t at, C *v)
{
#define CALL(type) load_typed<C, type, N>(p, at, v)
    DMI_CUDA_BY_TYPE(dtype, CALL)
#undef CALL
}
template <typename C, int N>
static __device__ __forceinline__ void store_any(dm_dtype dtype, void *p, int64_t at, const C *v)
{
#define CALL(type) store_typed<C, type, N>(p, at, v)
    DMI_CUDA_BY_TYPE(dtype, CALL)
#undef CALL
}

/* The same for the items of a thread that are valid, at position at[][side]. */
template <typename C, int N, typename T, int DEPTH, int SIDES>
static __device__ __forceinline__ void load_items_typed(const void *p, const int64_t (&at)[DEPTH][SIDES],
                                                        int side, const bool (&valid)[DEPTH], C (&v)[DEPTH][N])
{
    group<T, N> g[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            g[k] = *(const group<T, N> *)((const T *)p + at[k][side]);
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            v[k][e] = converted<C>(g[k].v[e]);
        }
    }
}
template <typename C, int N, typename T, int DEPTH, int SIDES>
static __device__ __forceinline__ void store_items_typed(void *p, const int64_t (&at)[DEPTH][SIDES], int side,
                                                         const bool (&valid)[DEPTH], const C (&v)[DEPTH][N])
{
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            store_typed<C, T, N>(p, at[k][side], v[k]);
        }
    }
}
template <typename C, int N, int DEPTH, int SIDES>
static __device__ __forceinline__ void load_items(dm_dtype dtype, const void *p,
                                                  const int64_t (&at)[DEPTH][SIDES], int side,
                                                  const bool (&valid)[DEPTH], C (&v)[DEPTH][N])
{
#define CALL(type) load_items_typed<C, N, type>(p, at, side, valid, v)
    DMI_CUDA_BY_TYPE(dtype, CALL)
#undef CALL
}
template <typename C, int N, int DEPTH, int SIDES>
static __device__ __forceinline__ void store_items(dm_dtype dtype, void *p, const int64_t (&at)[DEPTH][SIDES],
                                                   int side, const bool (&valid)[DEPTH], const C (&v)[DEPTH][N])
{
#define CALL(type) store_items_typed<C, N, type>(p, at, side, valid, v)
    DMI_CUDA_BY_TYPE(dtype, CALL)
#undef CALL
}

#endif
