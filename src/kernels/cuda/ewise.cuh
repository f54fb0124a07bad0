/* The elementwise kernels, for the files that instantiate them: of one type, and of any types. */
#ifndef DMI_CUDA_EWISE_CUH
#define DMI_CUDA_EWISE_CUH

#include "kernels/cuda/convert.cuh"

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
static __device__ __forceinline__ float hyperbolic(float a)
{
    return tanhf(a);
}
static __device__ __forceinline__ int64_t exponential(int64_t)
{
    return 0;
}
static __device__ __forceinline__ int64_t hyperbolic(int64_t)
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

/* --- all operands of type T, N elements an item
 * ------------------------------------------------------------------ */
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

template <int OP, typename T, typename C, int N>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    ewise_same(const __grid_constant__ dmi_cuda_ewise p, const T *a, const T *b, T *out)
{
    const int THREADS = DMI_CUDA_THREADS, DEPTH = N * sizeof(T) >= 16 ? 2 : 4;
    const bool BINARY = OP == DMI_EW_ADD || OP == DMI_EW_MUL;
    const factors<C> f = factors<C>::of(p);
    uint32_t step = gridDim.x * (THREADS * DEPTH);
    for (uint32_t first = blockIdx.x * (THREADS * DEPTH) + threadIdx.x; first < p.box.items; first += step) {
        group<T, N> x[DEPTH] = {}, y[DEPTH] = {};
        int64_t to[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = first + k * THREADS;
            if (i < p.box.items) {
                int64_t at[3];
                locate<3>(p.box, i, at);
                if (OP != DMI_EW_ADD || p.use_a) {
                    x[k] = load_group<T, N>(a, at[0], p.splat_a);
                }
                if (BINARY && (OP == DMI_EW_MUL || p.use_b)) {
                    y[k] = load_group<T, N>(b, at[1], p.splat_b);
                }
                to[k] = at[2];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * THREADS < p.box.items) {
                group<T, N> z;
#pragma unroll
                for (int e = 0; e < N; e++) {
                    z.v[e] =
                        converted<T>(result<OP, C>(p, f, converted<C>(x[k].v[e]), converted<C>(y[k].v[e])));
                }
                *(group<T, N> *)(out + to[k]) = z;
            }
        }
    }
}

/* --- any types, computed in C, N elements an item
 * --------------------------------------------------------------- */
template <typename C, int N>
static __device__ __forceinline__ void load_group_any(dm_dtype dtype, const void *p, int64_t at, bool splat,
                                                      C *v)
{
    if (splat) {
        load_any<C, 1>(dtype, p, at, v);
#pragma unroll
        for (int e = 1; e < N; e++) {
            v[e] = v[0];
        }
    } else {
        load_any<C, N>(dtype, p, at, v);
    }
}

template <int OP, typename C, int N>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS)
    ewise_any(const __grid_constant__ dmi_cuda_ewise p, const void *a, const void *b, void *out)
{
    const int THREADS = DMI_CUDA_THREADS;
    const bool BINARY = OP == DMI_EW_ADD || OP == DMI_EW_MUL;
    const factors<C> f = factors<C>::of(p);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < p.box.items; i += gridDim.x * THREADS) {
        int64_t at[3];
        C x[N] = {}, y[N] = {}, z[N];
        locate<3>(p.box, i, at);
        if (OP != DMI_EW_ADD || p.use_a) {
            load_group_any<C, N>(p.a_dtype, a, at[0], p.splat_a, x);
        }
        if (BINARY && (OP == DMI_EW_MUL || p.use_b)) {
            load_group_any<C, N>(p.b_dtype, b, at[1], p.splat_b, y);
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            z[e] = result<OP, C>(p, f, x[e], y[e]);
        }
        store_any<C, N>(p.out_dtype, out, at[2], z);
    }
}

#endif
