/* The rows of reduce.def on GPUs. Elements are taken as double (floats), 64-bit integers, complex numbers of doubles, and, by
 * rows of logic, as 0 or 1: all of these hold every element of the types that they stand for. */
#ifndef DMI_REDUCTION_CUH
#define DMI_REDUCTION_CUH

#include "kernels/cuda/dtypes.cuh"

extern "C" {
#include "kernels/ewise/ewise.h"
}

struct wide_complex {
    double re, im;
    wide_complex() = default;
    __host__ __device__ wide_complex(double real) : re(real), im(0) {}
    __host__ __device__ wide_complex(double real, double imaginary) : re(real), im(imaginary) {}
};

enum { NOWHERE = -1 };
template <typename N> struct alignas(8) state_VALUE {
    N v;
};
template <typename N> struct state_WIDE {
    N v;
};
template <typename N> struct state_REAL {
    double v;
};
template <typename N> struct state_COUNT {
    int64_t n;
};
template <typename N> struct state_PLACE {
    N v;
    int64_t at;
};
template <typename N> struct state_MOMENTS {
    double n, mean, squares;
};
template <typename N> struct state_LOGSUM {
    double top, sum;
};
template <typename N> struct result_of {
    typedef N SAME;
    typedef N WIDE;
    typedef int64_t WHOLE;
    typedef double REAL;
};

static __device__ __forceinline__ double highest(double) { return __longlong_as_double(0x7ff0000000000000); }
static __device__ __forceinline__ double lowest(double) { return -highest(0.0); }
static __device__ __forceinline__ int64_t highest(int64_t) { return INT64_MAX; }
static __device__ __forceinline__ int64_t lowest(int64_t) { return INT64_MIN; }
static __device__ __forceinline__ uint64_t highest(uint64_t) { return UINT64_MAX; }
static __device__ __forceinline__ uint64_t lowest(uint64_t) { return 0; }
static __device__ __forceinline__ double multiplied(double a, double b) { return __dmul_rn(a, b); }
static __device__ __forceinline__ int64_t multiplied(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static __device__ __forceinline__ uint64_t multiplied(uint64_t a, uint64_t b) { return a * b; }
static __device__ __forceinline__ wide_complex multiplied(wide_complex a, wide_complex b)
{
    return wide_complex(__dsub_rn(__dmul_rn(a.re, b.re), __dmul_rn(a.im, b.im)),
                        __dadd_rn(__dmul_rn(a.re, b.im), __dmul_rn(a.im, b.re)));
}
static __device__ __forceinline__ double magnitude(double a) { return fabs(a); }
static __device__ __forceinline__ double magnitude(wide_complex a) { return hypot(a.re, a.im); }
static __device__ __forceinline__ double squared(double a) { return __dmul_rn(a, a); }
static __device__ __forceinline__ double squared(wide_complex a)
{
    return __dadd_rn(__dmul_rn(a.re, a.re), __dmul_rn(a.im, a.im));
}

#define HIGHEST highest(NUMBER())
#define LOWEST lowest(NUMBER())
#define WIDE_MUL(a, b) multiplied(a, b)
#define ABSOLUTE(x) magnitude(x)
#define SQUARED(x) squared(x)
#define AHEAD(better, x, i)                                                                                    \
    (A.at == NOWHERE || (better) || (x != x && A.v == A.v) || ((x == A.v || (x != x && A.v != A.v)) && i < A.at))

/* One struct a row: reduction_max<double>::take(A, x, index) and so on. */
#define DMI_REDUCTION(name, row_domain, row_state, row_start, row_take, row_combine, row_result, row_finish)   \
    template <typename NUMBER> struct reduction_##name {                                                       \
        typedef NUMBER number;                                                                                 \
        typedef state_##row_state<NUMBER> state;                                                               \
        typedef typename result_of<NUMBER>::row_result result;                                                 \
        static const bool places = DMI_STATE_##row_state == DMI_STATE_PLACE;                                   \
        static const bool value = DMI_STATE_##row_state == DMI_STATE_VALUE;                                    \
        static const bool moments = DMI_STATE_##row_state == DMI_STATE_MOMENTS;                                \
        static const bool logsum = DMI_STATE_##row_state == DMI_STATE_LOGSUM;                                  \
        static __device__ __forceinline__ state start()                                                        \
        {                                                                                                      \
            state A;                                                                                           \
            row_start;                                                                                         \
            return A;                                                                                          \
        }                                                                                                      \
        static __device__ __forceinline__ void take(state &A, NUMBER X, int64_t INDEX)                         \
        {                                                                                                      \
            (void)INDEX;                                                                                       \
            row_take;                                                                                          \
        }                                                                                                      \
        static __device__ __forceinline__ void combine(state &A, const state &B) { row_combine; }              \
        static __device__ __forceinline__ result finish(const state &A, double S)                              \
        {                                                                                                      \
            (void)S;                                                                                           \
            return row_finish;                                                                                 \
        }                                                                                                      \
    };
#include "kernels/reduce/reduce.def"
#undef DMI_REDUCTION

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
template <> __device__ __forceinline__ uint64_t element<uint64_t>(dm_dtype, const void *p, int64_t at)
{
    return ((const uint64_t *)p)[at];
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
    if constexpr (R::value) {
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
    if constexpr (R::value) {
        put(number, p, at, s.v);
    } else {
        ((typename R::state *)p)[at] = s;
    }
}

#endif
