/* The rows of reduce.def as structs: reduction_max<float>::take(A, x, index) and so on. Elements are taken as double or, by
 * rows that keep an element as it is, as float too; as 64-bit integers, as complex numbers of doubles, and, by rows of logic,
 * as 0 or 1: all of these hold every element of the types that they stand for. Compiled at run time too
 * (kernels/reduce/reduce_source.c), behind reduce_args.h, so that it includes nothing but the rows. */
#ifndef DMI_REDUCTION_ROWS_CUH
#define DMI_REDUCTION_ROWS_CUH

template <typename A, typename B> struct same_type {
    static const bool value = false;
};
template <typename A> struct same_type<A, A> {
    static const bool value = true;
};

struct wide_complex {
    double re, im;
    wide_complex() = default;
    __host__ __device__ wide_complex(double real) : re(real), im(0) {}
    __host__ __device__ wide_complex(double real, double imaginary) : re(real), im(imaginary) {}
};

enum { NOWHERE = -1 };
enum reduction_kind { KIND_VALUE, KIND_WIDE, KIND_REAL, KIND_COUNT, KIND_PLACE, KIND_MOMENTS, KIND_LOGSUM, KIND_SUM };
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
static __device__ __forceinline__ float highest(float) { return __uint_as_float(0x7f800000u); }
static __device__ __forceinline__ float lowest(float) { return -highest(0.0f); }
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

#define DMI_REDUCTION(name, row_domain, row_state, row_start, row_take, row_combine, row_result, row_finish)   \
    template <typename NUMBER> struct reduction_##name {                                                       \
        typedef NUMBER number;                                                                                 \
        typedef state_##row_state<NUMBER> state;                                                               \
        typedef typename result_of<NUMBER>::row_result result;                                                 \
        static const int kind = KIND_##row_state;                                                              \
        template <typename M> struct of {                                                                      \
            typedef reduction_##name<M> row;                                                                   \
        };                                                                                                     \
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

/* Of a row that keeps places. better: the better one of two values, NaN where one is. behind: is a, which comes later, not
 * taken beside b? Neither is NaN then. worst: what no value is behind. */
static __device__ __forceinline__ float larger_or_nan(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a > b || a != a ? a : b;
#endif
}
static __device__ __forceinline__ float smaller_or_nan(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a < b || a != a ? a : b;
#endif
}
template <typename R> struct value_row;
template <typename N> struct value_row<reduction_argmin<N>> {
    static __device__ __forceinline__ float better(float a, float b) { return smaller_or_nan(a, b); }
    template <typename T> static __device__ __forceinline__ T better(T a, T b) { return b < a || b != b ? b : a; }
    template <typename T, typename V> static __device__ __forceinline__ bool behind(T a, V b) { return (V)a >= b; }
    template <typename T> static __device__ __forceinline__ T worst(T) { return highest(T()); }
};
template <typename N> struct value_row<reduction_argmax<N>> {
    static __device__ __forceinline__ float better(float a, float b) { return larger_or_nan(a, b); }
    template <typename T> static __device__ __forceinline__ T better(T a, T b) { return b > a || b != b ? b : a; }
    template <typename T, typename V> static __device__ __forceinline__ bool behind(T a, V b) { return (V)a <= b; }
    template <typename T> static __device__ __forceinline__ T worst(T) { return lowest(T()); }
};

#endif
