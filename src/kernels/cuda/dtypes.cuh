/* Elements whose type is known at run time: the branches are the same for a whole grid. */
#ifndef DMI_CUDA_DTYPES_CUH
#define DMI_CUDA_DTYPES_CUH

#include "kernels/box/convert.cuh"

#include <type_traits>

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
    case DM_U8:                                                                                                \
        CALL(uint8_t);                                                                                         \
        break;                                                                                                 \
    default:                                                                                                   \
        assert(false);                                                                                         \
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

/* --- every type ------------------------------------------------------------------------------------
 * The macros above know the seven types in which most data is. Those below know all, and cost more code. */
#define DMI_CUDA_BY_FLOAT(dtype, CALL)                                                                         \
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
    case DM_F8E4M3:                                                                                            \
        CALL(f8e4m3);                                                                                          \
        break;                                                                                                 \
    case DM_F8E5M2:                                                                                            \
        CALL(f8e5m2);                                                                                          \
        break;
#define DMI_CUDA_BY_WHOLE(dtype, CALL)                                                                         \
    case DM_I64:                                                                                               \
        CALL(int64_t);                                                                                         \
        break;                                                                                                 \
    case DM_I32:                                                                                               \
        CALL(int32_t);                                                                                         \
        break;                                                                                                 \
    case DM_I16:                                                                                               \
        CALL(int16_t);                                                                                         \
        break;                                                                                                 \
    case DM_I8:                                                                                                \
        CALL(int8_t);                                                                                          \
        break;                                                                                                 \
    case DM_U32:                                                                                               \
        CALL(uint32_t);                                                                                        \
        break;                                                                                                 \
    case DM_U16:                                                                                               \
        CALL(uint16_t);                                                                                        \
        break;                                                                                                 \
    case DM_U8:                                                                                                \
        CALL(uint8_t);                                                                                         \
        break;                                                                                                 \
    case DM_BOOL:                                                                                              \
        CALL(bool8);                                                                                           \
        break;                                                                                                 \
    case DM_U64:                                                                                               \
        CALL(uint64_t);                                                                                        \
        break;
#define DMI_CUDA_BY_COMPLEX(dtype, CALL)                                                                       \
    case DM_C64:                                                                                               \
        CALL(dm_c64);                                                                                          \
        break;                                                                                                 \
    case DM_C128:                                                                                              \
        CALL(dm_c128);                                                                                         \
        break;

/* The carrier of a conversion's source: double (floats, and complex as its real part), int64_t (integers and
 * bool, U64 by its bits), uint64_t (U64 as a number), dm_c128 (complex, to complex or bool). */
template <typename C>
static __device__ __forceinline__ void load_one(dm_dtype dtype, const void *p, int64_t at, C *v)
{
#define CALL(type) *v = converted<C>(((const type *)p)[at])
    if constexpr (std::is_same<C, dm_c128>::value) {
        if (dtype == DM_C64) {
            dm_c64 x = ((const dm_c64 *)p)[at];
            *v = {widened(x.re), widened(x.im)};
        } else {
            assert(dtype == DM_C128);
            *v = ((const dm_c128 *)p)[at];
        }
    } else if constexpr (std::is_same<C, uint64_t>::value) {
        assert(dtype == DM_U64);
        *v = ((const uint64_t *)p)[at];
    } else if constexpr (std::is_same<C, int64_t>::value) {
        switch (dtype) {
            DMI_CUDA_BY_WHOLE(dtype, CALL)
        default:
            assert(false);
        }
    } else {
        switch (dtype) {
            DMI_CUDA_BY_FLOAT(dtype, CALL)
            DMI_CUDA_BY_COMPLEX(dtype, CALL)
        default:
            assert(false);
        }
    }
#undef CALL
}
template <typename C> static __device__ __forceinline__ void store_one(dm_dtype dtype, void *p, int64_t at, C v)
{
#define CALL(type) ((type *)p)[at] = made<type>::of(v)
    if constexpr (std::is_same<C, dm_c128>::value) {
        switch (dtype) {
            DMI_CUDA_BY_COMPLEX(dtype, CALL)
        case DM_BOOL:
            CALL(bool8);
            break;
        default:
            assert(false);
        }
    } else {
        switch (dtype) {
            DMI_CUDA_BY_FLOAT(dtype, CALL)
            DMI_CUDA_BY_WHOLE(dtype, CALL)
            DMI_CUDA_BY_COMPLEX(dtype, CALL)
        default:
            assert(false);
        }
    }
#undef CALL
}

#endif
