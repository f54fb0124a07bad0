/* States of sums, as the CPU has them (kernels/reduce/dd_cpu.h): double, a pair of doubles, int64 that wraps;
 * two of the first or of the second for a complex number. Compiled at run time too, so that it includes
 * nothing. */
#ifndef DMI_SUM_STATES_CUH
#define DMI_SUM_STATES_CUH

struct sum_f64 {
    double s;
};
struct alignas(16) sum_dd {
    double hi, lo;
};
struct sum_i64 {
    uint64_t s;
};
template <typename S> struct sum_complex {
    S re, im;
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

/* A number more. */
static __device__ __forceinline__ void add(sum_f64 *a, float v)
{
    a->s = __dadd_rn(a->s, (double)v);
}
static __device__ __forceinline__ void add(sum_dd *a, double v)
{
    double e;
    a->hi = two_sum(a->hi, v, &e);
    a->lo = __dadd_rn(a->lo, e);
}
static __device__ __forceinline__ void add(sum_i64 *a, int64_t v)
{
    a->s += (uint64_t)v;
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
template <typename S>
static __device__ __forceinline__ sum_complex<S> joined(sum_complex<S> a, sum_complex<S> b)
{
    return {joined(a.re, b.re), joined(a.im, b.im)};
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

#endif
