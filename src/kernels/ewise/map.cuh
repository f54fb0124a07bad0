/* Elementwise kernels for one row: of operands of one type, and of any types. A HOT row has kernels of its own; WARM and
 * COLD rows share theirs, and which row it is is known when the kernel runs: the branch is the same for the whole grid. Cheap
 * and costly rows are apart, for what costly functions need of registers would slow the cheap ones. */
#ifndef DMI_CUDA_MAP_CUH
#define DMI_CUDA_MAP_CUH

/* The formulas serve unsigned types too, which are never below 0. */
#pragma nv_diag_suppress 186

#include "kernels/cuda/dtypes.cuh"
#include "kernels/ewise/complex.cuh"
#include "kernels/ewise/complex_math.h"
#include "kernels/ewise/ewise_math.cuh"
#include "kernels/ewise/rows.cuh"

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
template <> __device__ __forceinline__ c64 number_in<c64>(const dmi_number &n)
{
    return c64((float)n.re, (float)n.im);
}
template <> __device__ __forceinline__ c128 number_in<c128>(const dmi_number &n)
{
    return c128(n.re, n.im);
}
template <> __device__ __forceinline__ c64 opened<c64, dm_c64>(dm_c64 v)
{
    return c64(v.re, v.im);
}
template <> __device__ __forceinline__ c128 opened<c128, dm_c128>(dm_c128 v)
{
    return c128(v.re, v.im);
}
template <> __device__ __forceinline__ dm_c64 closed<dm_c64, c64>(c64 v)
{
    return {v.re, v.im};
}
template <> __device__ __forceinline__ dm_c128 closed<dm_c128, c128>(c128 v)
{
    return {v.re, v.im};
}

static __host__ __device__ constexpr int operands_of(int form)
{
    return form == DMI_FORM_TERNARY || form == DMI_FORM_CHOOSE    ? 3
           : form == DMI_FORM_BINARY || form == DMI_FORM_COMPARE ? 2
           : form == DMI_FORM_NONE                               ? 0
                                                                 : 1;
}

/* Which rows a kernel has: ROW, or (ROW < 0) all of a class with so many operands. */
template <int ROW, int CLASS, int INPUTS, typename C>
static __host__ __device__ constexpr bool kernel_has(int row, int heat, int form, unsigned domain)
{
    return (ROW < 0 ? heat == CLASS && operands_of(form) == INPUTS : row == ROW) &&
           (domain & carrier_bit<C>::value) != 0;
}

/* out[] = row(x[0][], x[1][], x[2][]); COUNT values of each. */
template <int ROW, int CLASS, int INPUTS, typename C, int COUNT>
static __device__ __forceinline__ void apply_row(int row, C (&x)[INPUTS > 0 ? INPUTS : 1][COUNT], C s, C t)
{
    switch (ROW < 0 ? row : ROW) {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    case DMI_EW_##name:                                                                                        \
        if constexpr (kernel_has<ROW, CLASS, INPUTS, C>(DMI_EW_##name, DMI_##class, DMI_FORM_##form,           \
                                                        DMI_DOMAIN_##domain)) {                                \
            const int B = INPUTS > 1 ? 1 : 0, Z = INPUTS > 2 ? 2 : 0;                                          \
            if constexpr (DMI_##class != DMI_COLD) {                                                           \
                _Pragma("unroll") for (int i = 0; i < COUNT; i++)                                              \
                {                                                                                              \
                    x[0][i] = row_##name<C>(x[0][i], x[B][i], x[Z][i], s, t);                                  \
                }                                                                                              \
            } else {                                                                                           \
                _Pragma("unroll 1") for (int i = 0; i < COUNT; i++)                                            \
                {                                                                                              \
                    x[0][i] = row_##name<C>(x[0][i], x[B][i], x[Z][i], s, t);                                  \
                }                                                                                              \
            }                                                                                                  \
        } else {                                                                                               \
            __trap();                                                                                          \
        }                                                                                                      \
        break;
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
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

/* Items that a thread has in flight. */
template <typename T, int N> struct map_depth {
    static const int value = N * sizeof(T) >= 16 ? 1 : 4;
};

template <int ROW, int INPUTS, typename T, typename C, int N>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS) map_same(const __grid_constant__ dmi_cuda_map p)
{
    const int DEPTH = map_depth<T, N>::value, SOME = INPUTS > 0 ? INPUTS : 1;
    int64_t at[DEPTH][INPUTS + 1];
    bool valid[DEPTH];
    group<T, N> g[SOME][DEPTH] = {};
    locate_all<INPUTS + 1, DEPTH>(p.box, at, valid);
    after_previous();
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int s = 0; s < INPUTS; s++) {
            if (valid[k]) {
                g[s][k] = load_group<T, N>((const T *)p.memory[s], at[k][s], p.splat[s]);
            }
        }
    }
    const C s = number_in<C>(p.number[0]), t = number_in<C>(p.number[1]);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        C x[SOME][N];
#pragma unroll
        for (int o = 0; o < SOME; o++) {
#pragma unroll
            for (int e = 0; e < N; e++) {
                x[o][e] = opened<C, T>(g[o][k].v[e]);
            }
        }
        apply_row<ROW, DMI_WARM, INPUTS, C, N>(p.row, x, s, t);
        if (valid[k]) {
            group<T, N> r;
#pragma unroll
            for (int e = 0; e < N; e++) {
                r.v[e] = closed<T, C>(x[0][e]);
            }
            *(group<T, N> *)((T *)p.memory[INPUTS] + at[k][INPUTS]) = r;
        }
    }
}

/* --- any types, computed in C, N elements an item --- */
template <typename C, int N, int DEPTH, int SIDES>
static __device__ __forceinline__ void load_operand(dm_dtype dtype, const void *p, const int64_t (&at)[DEPTH][SIDES],
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

template <int ROW, int CLASS, int INPUTS, typename C, int N, int DEPTH>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS) map_any(const __grid_constant__ dmi_cuda_map p)
{
    const int SOME = INPUTS > 0 ? INPUTS : 1;
    int64_t at[DEPTH][INPUTS + 1];
    bool valid[DEPTH];
    C x[SOME][DEPTH][N] = {};
    locate_all<INPUTS + 1, DEPTH>(p.box, at, valid);
    after_previous();
#pragma unroll
    for (int s = 0; s < INPUTS; s++) {
        if (INPUTS == 3 && s == 0 && p.choice) { /* it counts as true where it is not 0 */
            double v[DEPTH][N] = {};
            load_operand(p.dtype[0], p.memory[0], at, 0, p.splat[0], valid, v);
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
#pragma unroll
                for (int e = 0; e < N; e++) {
                    x[0][k][e] = (C)(v[k][e] != 0);
                }
            }
        } else {
            load_operand(p.dtype[s], p.memory[s], at, s, p.splat[s], valid, x[s]);
        }
    }
    const C s = number_in<C>(p.number[0]), t = number_in<C>(p.number[1]);
    C r[DEPTH][N];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        C y[SOME][N];
#pragma unroll
        for (int o = 0; o < SOME; o++) {
#pragma unroll
            for (int e = 0; e < N; e++) {
                y[o][e] = x[o][k][e];
            }
        }
        apply_row<ROW, CLASS, INPUTS, C, N>(p.row, y, s, t);
#pragma unroll
        for (int e = 0; e < N; e++) {
            r[k][e] = y[0][e];
        }
    }
    store_items(p.dtype[INPUTS], p.memory[INPUTS], at, INPUTS, valid, r);
}

typedef dmi_cuda_map_launcher map_launcher;

template <int ROW, int INPUTS, typename T, typename C, int N> static void launch_same(dmi_queue *q, dmi_cuda_map *p)
{
    unsigned blocks = blocks_for(&p->box, map_depth<T, N>::value);
    launch_after(q, map_same<ROW, INPUTS, T, C, N>, blocks, *p);
}

static constexpr bool takes_complex(int row)
{
    switch (row) {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    case DMI_EW_##name:                                                                                        \
        return (DMI_DOMAIN_##domain & DMI_DOMAIN_COMPLEX) != 0;
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
    case -1: /* rows that share kernels */
        return true;
    default:
        return false;
    }
}

/* groups: 16 bytes of elements an item, else one element, which only F64, F32 and complex types offer. NULL: there is no such
 * kernel. */
template <int ROW, int INPUTS> static map_launcher *same_launcher(dm_dtype dtype, bool groups)
{
    if constexpr (takes_complex(ROW)) {
        if (dtype == DM_C64) {
            return groups ? launch_same<ROW, INPUTS, dm_c64, c64, 2> : launch_same<ROW, INPUTS, dm_c64, c64, 1>;
        }
        if (dtype == DM_C128) {
            return launch_same<ROW, INPUTS, dm_c128, c128, 1>;
        }
    }
    switch ((int)dtype) {
    case DM_F64:
        return groups ? launch_same<ROW, INPUTS, double, double, 2> : launch_same<ROW, INPUTS, double, double, 1>;
    case DM_F32:
        return groups ? launch_same<ROW, INPUTS, float, float, 4> : launch_same<ROW, INPUTS, float, float, 1>;
    case DM_F16:
        return groups ? launch_same<ROW, INPUTS, f16, float, 8> : NULL;
    case DM_BF16:
        return groups ? launch_same<ROW, INPUTS, bf16, float, 8> : NULL;
    case DM_I64:
        return groups ? launch_same<ROW, INPUTS, int64_t, int64_t, 2> : NULL;
    case DM_I32:
        return groups ? launch_same<ROW, INPUTS, int32_t, int32_t, 4> : NULL;
    case DM_U8:
        return groups ? launch_same<ROW, INPUTS, uint8_t, int32_t, 16> : NULL;
    default:
        return NULL;
    }
}

template <int ROW, int CLASS, int INPUTS, typename C> static void launch_any(dmi_queue *q, dmi_cuda_map *p, bool groups)
{
    unsigned blocks = blocks_for(&p->box, groups ? 2 : 4);
    if (groups) {
        launch_after(q, map_any<ROW, CLASS, INPUTS, C, 4, 2>, blocks, *p);
    } else {
        launch_after(q, map_any<ROW, CLASS, INPUTS, C, 1, 4>, blocks, *p);
    }
}

template <int ROW, int CLASS, int INPUTS> static void launch_any_in(dmi_queue *q, dmi_cuda_map *p, bool groups)
{
    switch ((int)p->compute) {
    case DM_F64:
        launch_any<ROW, CLASS, INPUTS, double>(q, p, groups);
        break;
    case DM_F32:
        launch_any<ROW, CLASS, INPUTS, float>(q, p, groups);
        break;
    case DM_I32:
        launch_any<ROW, CLASS, INPUTS, int32_t>(q, p, groups);
        break;
    case DM_I64:
        launch_any<ROW, CLASS, INPUTS, int64_t>(q, p, groups);
        break;
    default:
        dmi_cuda_failed(q, "elementwise kernel", -1, "no kernel for this type");
    }
}

#endif
