/* The elementwise kernels, for the files that instantiate them: of one type, and of any types. */
#ifndef DMI_CUDA_EWISE_CUH
#define DMI_CUDA_EWISE_CUH

#include "kernels/cuda/dtypes.cuh"

/* --- arithmetic in C: double, float, or int64_t by way of uint64_t, where wrap-around is defined
 * -------------- */
template <typename C> struct factors;
template <> struct factors<double> {
    double alpha, beta;
    static __device__ __forceinline__ factors of(const dmi_cuda_ewise &p)
    {
        return {p.alpha, p.beta};
    }
};
template <> struct factors<float> {
    float alpha, beta;
    static __device__ __forceinline__ factors of(const dmi_cuda_ewise &p)
    {
        return {(float)p.alpha, (float)p.beta};
    }
};
template <> struct factors<int32_t> {
    int32_t alpha, beta;
    static __device__ __forceinline__ factors of(const dmi_cuda_ewise &p)
    {
        return {(int32_t)p.ialpha, (int32_t)p.ibeta};
    }
};
template <> struct factors<int64_t> {
    int64_t alpha, beta;
    static __device__ __forceinline__ factors of(const dmi_cuda_ewise &p)
    {
        return {p.ialpha, p.ibeta};
    }
};

static __device__ __forceinline__ double times(double a, double b)
{
    return __dmul_rn(a, b);
}
static __device__ __forceinline__ float times(float a, float b)
{
    return __fmul_rn(a, b);
}
static __device__ __forceinline__ int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static __device__ __forceinline__ int32_t times(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
static __device__ __forceinline__ double plus(double a, double b)
{
    return __dadd_rn(a, b);
}
static __device__ __forceinline__ float plus(float a, float b)
{
    return __fadd_rn(a, b);
}
static __device__ __forceinline__ int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static __device__ __forceinline__ int32_t plus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static __device__ __forceinline__ double exponential(double a)
{
    return exp(a);
}
static __device__ __forceinline__ float exponential(float a)
{
    return expf(a);
}
static __device__ __forceinline__ double hyperbolic(double a)
{
    return tanh(a);
}
/* By way of double, so that the result is off by little more than half a unit: tanhf may be off by one, and the
 * CPU's by two. (e - 1) / (e + 1) with e = exp(2x), whose relative error is 2^-32; the odd series where e - 1
 * cancels. */
static __device__ __forceinline__ float hyperbolic(float a)
{
    double x = fabs((double)a), y = __dmul_rn(x, x);
    double series = __fma_rn(y, -0x1.ba1ba1ba1ba1cp-5, 0x1.1111111111111p-3); /* -17/315, 2/15, -1/3 */
    series = __fma_rn(y, series, -0x1.5555555555555p-2);
    series = __fma_rn(__dmul_rn(x, y), series, x);
    double t = __dmul_rn(fmin(x, 16.0), 0x1.71547652b82fep+1); /* 2x / ln 2 */
    double shifted = __dadd_rn(t, 0x1.8p52),
           f = __dmul_rn(__dsub_rn(t, __dsub_rn(shifted, 0x1.8p52)), 0x1.62e42fefa39efp-1);
    double e = __fma_rn(f, 1.0 / 40320, 1.0 / 5040);
    e = __fma_rn(f, e, 1.0 / 720);
    e = __fma_rn(f, e, 1.0 / 120);
    e = __fma_rn(f, e, 1.0 / 24);
    e = __fma_rn(f, e, 1.0 / 6);
    e = __fma_rn(f, e, 0.5);
    e = __fma_rn(f, e, 1.0);
    e = __fma_rn(f, e, 1.0);
    e = __hiloint2double(__double2hiint(e) + (__double2loint(shifted) << 20), __double2loint(e));
    double below = __dadd_rn(e, 1.0), inverse = (double)__frcp_rn((float)below);
    inverse = __dmul_rn(inverse, __fma_rn(-below, inverse, 2.0));
    double r = x < 0.0625 ? series : __dmul_rn(__dsub_rn(e, 1.0), inverse);
    return a == a ? copysignf((float)r, a) : a;
}
/* Integers have neither, but their kernels' switch mentions them. */
template <typename C> static __device__ __forceinline__ C exponential(C)
{
    return 0;
}
template <typename C> static __device__ __forceinline__ C hyperbolic(C)
{
    return 0;
}

/* A term that is left out is a 0 that is added, as on the CPU: -0 + 0 is 0. */
template <int OP, typename C>
static __device__ __forceinline__ C result(const dmi_cuda_ewise &p, const factors<C> &f, C a, C b)
{
    switch (OP) {
    case DMI_EW_ADD:
        return plus(p.use_a ? times(f.alpha, a) : (C)0, p.use_b ? times(f.beta, b) : (C)0);
    case DMI_EW_MUL:
        return times(times(f.alpha, a), b);
    case DMI_EW_SCALE:
        return times(f.alpha, a);
    case DMI_EW_EXP:
        return times(f.alpha, exponential(a));
    case DMI_EW_TANH:
        return times(f.alpha, hyperbolic(a));
    default:
        return times(f.alpha, a == a ? (a > (C)0 ? a : (C)0) : a);
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
template <typename T, int N> struct ewise_depth {
    static const int value = N * sizeof(T) >= 16 ? 1 : 4;
};

template <int OP, typename T, typename C, int N>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    ewise_same(const __grid_constant__ dmi_cuda_ewise p, const T *a, const T *b, T *out)
{
    const int DEPTH = ewise_depth<T, N>::value;
    const bool BINARY = OP == DMI_EW_ADD || OP == DMI_EW_MUL;
    const factors<C> f = factors<C>::of(p);
    int64_t at[DEPTH][3];
    bool valid[DEPTH];
    group<T, N> x[DEPTH] = {}, y[DEPTH] = {};
    locate_all<3, DEPTH>(p.box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k] && (OP != DMI_EW_ADD || p.use_a)) {
            x[k] = load_group<T, N>(a, at[k][0], p.splat_a);
        }
        if (valid[k] && BINARY && (OP == DMI_EW_MUL || p.use_b)) {
            y[k] = load_group<T, N>(b, at[k][1], p.splat_b);
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            group<T, N> z;
#pragma unroll
            for (int e = 0; e < N; e++) {
                z.v[e] = closed<T, C>(result<OP, C>(p, f, opened<C, T>(x[k].v[e]), opened<C, T>(y[k].v[e])));
            }
            *(group<T, N> *)(out + at[k][2]) = z;
        }
    }
}

/* --- any types, computed in C, N elements an item --- */
template <typename C, int N, int DEPTH>
static __device__ __forceinline__ void load_operand(dm_dtype dtype, const void *p,
                                                    const int64_t (&at)[DEPTH][3], int side, bool splat,
                                                    const bool (&valid)[DEPTH], C (&v)[DEPTH][N])
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

template <int OP, typename C, int N, int DEPTH>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    ewise_any(const __grid_constant__ dmi_cuda_ewise p, const void *a, const void *b, void *out)
{
    const bool BINARY = OP == DMI_EW_ADD || OP == DMI_EW_MUL;
    const factors<C> f = factors<C>::of(p);
    int64_t at[DEPTH][3];
    bool valid[DEPTH];
    C x[DEPTH][N] = {}, y[DEPTH][N] = {};
    locate_all<3, DEPTH>(p.box, at, valid);
    if (OP != DMI_EW_ADD || p.use_a) {
        load_operand(p.a_dtype, a, at, 0, p.splat_a, valid, x);
    }
    if (BINARY && (OP == DMI_EW_MUL || p.use_b)) {
        load_operand(p.b_dtype, b, at, 1, p.splat_b, valid, y);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int e = 0; e < N; e++) {
            x[k][e] = result<OP, C>(p, f, x[k][e], y[k][e]);
        }
    }
    store_items(p.out_dtype, out, at, 2, valid, x);
}

#endif
