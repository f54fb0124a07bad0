/* The rows of reduce.def on GPUs. Elements are taken as double (floats), 64-bit integers, complex numbers of doubles, and, by
 * rows of logic, as 0 or 1: all of these hold every element of the types that they stand for. */
#ifndef DMI_REDUCTION_CUH
#define DMI_REDUCTION_CUH

#include "kernels/cuda/dtypes.cuh"
#include "kernels/ewise/made.cuh"
#include "kernels/reduce/last_block.cuh"
#include "kernels/reduce/reduction_rows.cuh"

extern "C" {
#include "kernels/ewise/ewise.h"
}

template <typename N> struct domain_of;
template <> struct domain_of<unsigned char> {
    static const unsigned bits = DMI_EW_BOOL;
};
template <> struct domain_of<int64_t> {
    static const unsigned bits = 1u << DM_I64 | 1u << DM_I32;
};
template <> struct domain_of<uint64_t> {
    static const unsigned bits = 1u << DM_U64;
};
template <> struct domain_of<double> {
    static const unsigned bits = 1u << DM_F64 | 1u << DM_F32;
};
template <> struct domain_of<wide_complex> {
    static const unsigned bits = 1u << DM_C64 | 1u << DM_C128;
};

template <typename R> struct row_tag {
    typedef R row;
};
template <template <typename> class R, unsigned DOMAIN, typename N, typename F> static void use_number(F use)
{
    /* bool is taken as an integer by the rows that compute with it */
    const bool logic = DOMAIN == DMI_EW_BOOL, is_bool = domain_of<N>::bits == DMI_EW_BOOL;
    if constexpr (logic == is_bool && (DOMAIN & domain_of<N>::bits) != 0) {
        use(row_tag<R<N>>());
    } else {
        assert(!"a row does not take this type");
    }
}
template <template <typename> class R, unsigned DOMAIN, typename F> static void use_row(dm_dtype takes, F use)
{
    if (DOMAIN == DMI_EW_BOOL) {
        use_number<R, DOMAIN, unsigned char>(use);
    } else if (dmi_dtype_is_float(takes)) {
        use_number<R, DOMAIN, double>(use);
    } else if (dmi_dtype_is_complex(takes)) {
        use_number<R, DOMAIN, wide_complex>(use);
    } else if (takes == DM_U64) {
        use_number<R, DOMAIN, uint64_t>(use);
    } else {
        use_number<R, DOMAIN, int64_t>(use);
    }
}
/* use(tag) with tag's `row` the row and type of this accumulator. */
template <typename F> static void with_row(int acc, F use)
{
    dm_dtype takes = dmi_acc_takes(acc);
    switch (dmi_acc_row(acc)) {
#define DMI_REDUCTION(name, domain, state, start, take, combine, result, finish)                               \
    case DMI_REDUCTION_##name:                                                                                 \
        use_row<reduction_##name, DMI_DOMAIN_##domain>(takes, use);                                            \
        break;
#include "kernels/reduce/reduce.def"
#undef DMI_REDUCTION
    default:
        assert(!"not a row of reduce.def");
    }
}

/* The element at `at`, of a type whose values N holds (unsigned char: is it not 0?). */
template <typename N> static __device__ __forceinline__ N element(dm_dtype dtype, const void *p, int64_t at);
template <> __device__ __forceinline__ double element<double>(dm_dtype dtype, const void *p, int64_t at)
{
    double v;
    int64_t whole;
    switch (dtype) {
    case DM_F64:
        return ((const double *)p)[at];
    case DM_F32:
        return (double)((const float *)p)[at];
    case DM_U64:
        return (double)((const uint64_t *)p)[at];
    case DM_F16:
    case DM_BF16:
    case DM_F8E4M3:
    case DM_F8E5M2:
        load_one(dtype, p, at, &v);
        return v;
    default:
        load_one(dtype, p, at, &whole);
        return (double)whole;
    }
}
template <> __device__ __forceinline__ int64_t element<int64_t>(dm_dtype dtype, const void *p, int64_t at)
{
    int64_t v;
    load_one(dtype, p, at, &v);
    return v;
}
template <> __device__ __forceinline__ uint64_t element<uint64_t>(dm_dtype dtype, const void *p, int64_t at)
{
    int64_t v; /* of u64 its bits */
    load_one(dtype, p, at, &v);
    return (uint64_t)v;
}
template <> __device__ __forceinline__ wide_complex element<wide_complex>(dm_dtype dtype, const void *p, int64_t at)
{
    dm_c128 v;
    load_one(dtype, p, at, &v);
    return wide_complex(v.re, v.im);
}
template <>
__device__ __forceinline__ unsigned char element<unsigned char>(dm_dtype dtype, const void *p, int64_t at)
{
    if (dtype == DM_C64 || dtype == DM_C128) {
        wide_complex v = element<wide_complex>(dtype, p, at);
        return v.re != 0 || v.im != 0;
    }
    return element<double>(dtype, p, at) != 0; /* no integer becomes 0 */
}

/* A number of type N as an element of any type. */
static __device__ __forceinline__ void put(dm_dtype dtype, void *p, int64_t at, double v) { store_one(dtype, p, at, v); }
static __device__ __forceinline__ void put(dm_dtype dtype, void *p, int64_t at, int64_t v) { store_one(dtype, p, at, v); }
static __device__ __forceinline__ void put(dm_dtype dtype, void *p, int64_t at, uint64_t v) { store_one(dtype, p, at, v); }
static __device__ __forceinline__ void put(dm_dtype dtype, void *p, int64_t at, unsigned char v)
{
    store_one(dtype, p, at, (int64_t)v);
}
static __device__ __forceinline__ void put(dm_dtype dtype, void *p, int64_t at, wide_complex v)
{
    if (dtype == DM_C64 || dtype == DM_C128 || dtype == DM_BOOL) {
        store_one(dtype, p, at, dm_c128{v.re, v.im});
    } else {
        store_one(dtype, p, at, v.re);
    }
}

/* Accumulators in memory: states, or, of VALUE rows, elements of the narrow type. */
template <typename R>
static __device__ __forceinline__ typename R::state read_acc(dm_dtype number, const void *p, int64_t at)
{
    if constexpr (R::kind == KIND_VALUE) {
        typename R::state s;
        s.v = element<typename R::number>(number, p, at);
        return s;
    } else {
        return ((const typename R::state *)p)[at];
    }
}
template <typename R>
static __device__ __forceinline__ void write_acc(dm_dtype number, void *p, int64_t at, const typename R::state &s)
{
    if constexpr (R::kind == KIND_VALUE && same_type<typename R::number, float>::value) {
        put(number, p, at, (double)s.v);
    } else if constexpr (R::kind == KIND_VALUE) {
        put(number, p, at, s.v);
    } else if constexpr (R::kind == KIND_PLACE && same_type<typename R::number, float>::value) {
        ((state_PLACE<double> *)p)[at] = {(double)s.v, s.at};
    } else {
        ((typename R::state *)p)[at] = s;
    }
}

#endif
