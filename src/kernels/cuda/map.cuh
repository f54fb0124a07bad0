/* Elementwise kernels for one row: of operands of one type, and of any types. Which row is known when the kernel runs:
 * the branch is the same for the whole grid. Rows that are HOT and rows that are COLD have kernels of their own, for what
 * the costly functions need of registers would slow the cheap ones. */
#ifndef DMI_CUDA_MAP_CUH
#define DMI_CUDA_MAP_CUH

/* The formulas serve unsigned types too, which are never below 0. */
#pragma nv_diag_suppress 186

#include "kernels/cuda/dtypes.cuh"
#include "kernels/cuda/ewise_math.cuh"
#include "kernels/cuda/rows.cuh"

#define DMI_CLASS_HOT true
#define DMI_CLASS_COLD false

/* A number of the call in a carrier. */
template <typename C> static __device__ __forceinline__ C number_in(const dmi_number &n)
{
    return (C)n.whole;
}
template <> __device__ __forceinline__ double number_in<double>(const dmi_number &n)
{
    return n.re;
}
template <> __device__ __forceinline__ float number_in<float>(const dmi_number &n)
{
    return (float)n.re;
}
template <> __device__ __forceinline__ unsigned char number_in<unsigned char>(const dmi_number &n)
{
    return n.re != 0;
}

/* x[] = row(x[], y[], z[]). */
template <bool HOT, typename C, int COUNT>
static __device__ __forceinline__ void apply_row(int row, C (&x)[COUNT], const C (&y)[COUNT], const C (&z)[COUNT], C s,
                                                 C t)
{
    switch (row) {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    case DMI_EW_##name:                                                                                        \
        if constexpr (DMI_CLASS_##class == HOT && (DMI_DOMAIN_##domain & carrier_bit<C>::value) != 0) {        \
            if constexpr (HOT) {                                                                               \
                _Pragma("unroll") for (int i = 0; i < COUNT; i++)                                              \
                {                                                                                              \
                    x[i] = row_##name<C>(x[i], y[i], z[i], s, t);                                              \
                }                                                                                              \
            } else {                                                                                           \
                _Pragma("unroll 1") for (int i = 0; i < COUNT; i++)                                            \
                {                                                                                              \
                    x[i] = row_##name<C>(x[i], y[i], z[i], s, t);                                              \
                }                                                                                              \
            }                                                                                                  \
        } else {                                                                                               \
            __trap();                                                                                          \
        }                                                                                                      \
        break;
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
    }
}

/* --- all operands of type T, N elements an item --- */
template <typename T, int N>
static __device__ __forceinline__ group<T, N> load_group(const T *p, int64_t at, bool splat)
{
    group<T, N> g;
    if (splat) {
        T v = p[at];
#pragma unroll
        for (int e = 0; e < N; e++) {
            g.v[e] = v;
        }
        return g;
    }
    return *(const group<T, N> *)(p + at);
}

/* Items a thread has under way at once. */
template <typename T, int N> struct map_depth {
    static const int value = N * sizeof(T) >= 16 ? 1 : 4;
};

template <typename T, typename C, int N>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    map_same(const __grid_constant__ dmi_cuda_map p, const T *a, const T *b, const T *c, T *out)
{
    const int DEPTH = map_depth<T, N>::value;
    int64_t at[DEPTH][4];
    bool valid[DEPTH];
    group<T, N> g[3][DEPTH] = {};
    locate_all<4, DEPTH>(p.box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k] && p.inputs > 0) {
            g[0][k] = load_group<T, N>(a, at[k][0], p.splat[0]);
        }
        if (valid[k] && p.inputs > 1) {
            g[1][k] = load_group<T, N>(b, at[k][1], p.splat[1]);
        }
        if (valid[k] && p.inputs > 2) {
            g[2][k] = load_group<T, N>(c, at[k][2], p.splat[2]);
        }
    }
    const C s = number_in<C>(p.number[0]), t = number_in<C>(p.number[1]);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        C x[N], y[N], z[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            x[e] = opened<C, T>(g[0][k].v[e]);
            y[e] = opened<C, T>(g[1][k].v[e]);
            z[e] = opened<C, T>(g[2][k].v[e]);
        }
        apply_row<true, C, N>(p.row, x, y, z, s, t);
        if (valid[k]) {
            group<T, N> r;
#pragma unroll
            for (int e = 0; e < N; e++) {
                r.v[e] = closed<T, C>(x[e]);
            }
            *(group<T, N> *)(out + at[k][3]) = r;
        }
    }
}

/* --- any types, computed in C, N elements an item --- */
template <typename C, int N, int DEPTH>
static __device__ __forceinline__ void load_operand(dm_dtype dtype, const void *p, const int64_t (&at)[DEPTH][4],
                                                    int side, bool splat, const bool (&valid)[DEPTH],
                                                    C (&v)[DEPTH][N])
{
    if (N > 1 && splat) {
        C one[DEPTH][1];
        load_items(dtype, p, at, side, valid, one);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
#pragma unroll
            for (int e = 0; e < N; e++) {
                v[k][e] = one[k][0];
            }
        }
    } else {
        load_items(dtype, p, at, side, valid, v);
    }
}

template <bool HOT, typename C, int N, int DEPTH>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    map_any(const __grid_constant__ dmi_cuda_map p, const void *a, const void *b, const void *c, void *out)
{
    int64_t at[DEPTH][4];
    bool valid[DEPTH];
    C x[DEPTH][N] = {}, y[DEPTH][N] = {}, z[DEPTH][N] = {};
    locate_all<4, DEPTH>(p.box, at, valid);
    if (p.choice) { /* its first operand counts as true where it is not 0 */
        double v[DEPTH][N] = {};
        load_operand(p.dtype[0], a, at, 0, p.splat[0], valid, v);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
#pragma unroll
            for (int e = 0; e < N; e++) {
                x[k][e] = (C)(v[k][e] != 0);
            }
        }
    } else if (p.inputs > 0) {
        load_operand(p.dtype[0], a, at, 0, p.splat[0], valid, x);
    }
    if (p.inputs > 1) {
        load_operand(p.dtype[1], b, at, 1, p.splat[1], valid, y);
    }
    if (p.inputs > 2) {
        load_operand(p.dtype[2], c, at, 2, p.splat[2], valid, z);
    }
    const C s = number_in<C>(p.number[0]), t = number_in<C>(p.number[1]);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        apply_row<HOT, C, N>(p.row, x[k], y[k], z[k], s, t);
    }
    store_items(p.dtype[3], out, at, 3, valid, x);
}

#endif
