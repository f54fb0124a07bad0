/* States of sums, as the CPU has them (kernels/reduce/dd_cpu.h): double, a pair of doubles, int64 that wraps;
 * two of the first or of the second for a complex number. Behind kernels/reduce/scaled_sums.h. Compiled at run
 * time too, so that it includes nothing. */
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

/* Pairs beyond the range of doubles, and what adds elements up there. */
static __device__ __forceinline__ void clear(dmi_scaled_sum *a)
{
    a->hi = 0;
    a->lo = 0;
    a->rest = 0;
}
static __device__ __forceinline__ void add(dmi_scaled_sum *a, double v)
{
    dmi_scaled_take(a, v, 0);
}
static __device__ __forceinline__ sum_dd kept(dmi_scaled_sum a)
{
    sum_dd r;
    dmi_scaled_pair(&a, &r.hi, &r.lo);
    return r;
}
static __device__ __noinline__ sum_dd joined_scaled(sum_dd a, sum_dd b)
{
    dmi_scaled_sum s = {0, 0, 0};
    dmi_scaled_take(&s, a.hi, a.lo);
    dmi_scaled_take(&s, b.hi, b.lo);
    return kept(s);
}

template <typename S> static __device__ __forceinline__ void clear(sum_complex<S> *a)
{
    clear(&a->re);
    clear(&a->im);
}
template <typename S, typename C> static __device__ __forceinline__ void add(sum_complex<S> *a, C v)
{
    add(&a->re, v.re);
    add(&a->im, v.im);
}
/* Sums of sums that are kept. */
static __device__ __forceinline__ sum_dd normal(double hi, double lo)
{
    sum_dd r;
    r.hi = two_sum(hi, lo, &r.lo);
    r.lo = finite_value(r.hi) ? r.lo : 0;
    return r;
}
static __device__ __forceinline__ sum_f64 joined(sum_f64 a, sum_f64 b)
{
    return {__dadd_rn(a.s, b.s)};
}
static __device__ __forceinline__ sum_dd joined(sum_dd a, sum_dd b)
{
    double e, s = two_sum(a.hi, b.hi, &e);
    sum_dd sum = normal(s, __dadd_rn(e, __dadd_rn(a.lo, b.lo)));
    bool usual = finite_value(sum.hi) && !dmi_is_scaled(a.hi, a.lo) && !dmi_is_scaled(b.hi, b.lo);
    return usual ? sum : joined_scaled(a, b);
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

/* What elements have been added to, as it is kept. again: elements have to be taken once more, for sums have
 * left the range on the way, or an element is not finite. */
template <typename S> struct scaled_of {
    typedef S type;
};
template <> struct scaled_of<sum_dd> {
    typedef dmi_scaled_sum type;
};
template <> struct scaled_of<sum_complex<sum_dd>> {
    typedef sum_complex<dmi_scaled_sum> type;
};
static __device__ __forceinline__ sum_f64 kept(sum_f64 a)
{
    return a;
}
static __device__ __forceinline__ sum_dd kept(sum_dd a)
{
    return normal(a.hi, a.lo);
}
static __device__ __forceinline__ sum_i64 kept(sum_i64 a)
{
    return a;
}
static __device__ __forceinline__ sum_complex<sum_f64> kept(sum_complex<sum_f64> a)
{
    return a;
}
static __device__ __forceinline__ sum_complex<sum_dd> kept(sum_complex<sum_dd> a)
{
    return {kept(a.re), kept(a.im)};
}
static __device__ __forceinline__ sum_complex<sum_dd> kept(sum_complex<dmi_scaled_sum> a)
{
    return {kept(a.re), kept(a.im)};
}
template <typename S> static __device__ __forceinline__ bool again(const S &)
{
    return false;
}
static __device__ __forceinline__ bool again(const sum_dd &a)
{
    return !finite_value(normal(a.hi, a.lo).hi);
}
static __device__ __forceinline__ bool again(const sum_complex<sum_dd> &a)
{
    return again(a.re) || again(a.im);
}

/* Sums of a thread that belong to one result, as they are kept. visit(take): calls take(element) for all their
 * elements. */
template <typename S, int COUNT, typename VISIT>
static __device__ __forceinline__ void close_sums(S (&s)[COUNT], VISIT visit)
{
    bool once_more = false;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        once_more |= again(s[c]);
        s[c] = kept(s[c]);
    }
    if (once_more) {
        typename scaled_of<S>::type sum;
        clear(&sum);
        visit([&](auto x) { add(&sum, x); });
#pragma unroll
        for (int c = 0; c < COUNT; c++) {
            clear(&s[c]);
        }
        s[0] = kept(sum);
    }
}

#endif
