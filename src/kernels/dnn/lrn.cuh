/* What local response normalisation and its form with pooling share: numbers, powers, channels beside others. */
#ifndef DMI_DNN_LRN_CUH
#define DMI_DNN_LRN_CUH

extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

static __device__ __forceinline__ float power(float s, float beta)
{
    return powf(s, -beta);
}
static __device__ __forceinline__ double power(double s, double beta)
{
    return pow(s, -beta);
}

/* s^-beta */
template <typename T> static __device__ __forceinline__ T lowered(T s, double beta)
{
    if (beta == 0.75) {
        T root = rsqrt(s);
        return root * sqrt(root);
    }
    return power(s, (T)beta);
}

/* x s^-beta, and that times x / s. Results of 16 bits need no more than the fast functions give. */
template <typename T, typename S>
static __device__ __forceinline__ void scaled_by(T s, double beta, T dy, T x, T *made, T *ratio)
{
    if constexpr (sizeof(S) == 2) {
        if (beta == 0.75) {
            float root, low;
            asm("rsqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(s));
            asm("sqrt.approx.f32 %0, %1;" : "=f"(low) : "f"(root));
            *made = dy * (root * low);
            *ratio = *made * x * (root * root);
        } else {
            *made = dy * __powf(s, -(float)beta);
            *ratio = __fdividef(*made * x, s);
        }
    } else {
        *made = dy * lowered<T>(s, beta);
        *ratio = *made * x / s;
    }
}

template <typename T> struct params {
    T k, factor, gradient; /* gradient: 2 factor beta */
    double beta;
    int64_t count, pixels;
    uint32_t tile; /* elements of whole units */
    dmi_cuda_divisor unit;
    int half;
    bool relu;
};

/* Elements j of a pixel's channels, from `first` on, COUNT of them; V at once where `first` is a multiple of V.
 * 0 where the pixel has none. */
template <typename S, int COUNT>
static __device__ __forceinline__ void pick(const S *pixel, int first, int unit, float (&v)[COUNT])
{
#pragma unroll
    for (int k = 0; k < COUNT; k += 2) {
        group<S, 2> two = {};
        if (first + k >= 0 && first + k < unit) {
            two = *(const group<S, 2> *)(pixel + first + k);
        }
        v[k] = opened<float>(two.v[0]);
        v[k + 1] = opened<float>(two.v[1]);
    }
}

template <typename T> static params<T> params_of(const dmi_cuda_lrn *p)
{
    params<T> out = {};
    out.k = (T)p->k;
    out.factor = (T)p->factor;
    out.gradient = (T)(2 * p->factor * p->beta);
    out.beta = p->beta;
    out.count = p->count;
    out.relu = p->relu;
    out.half = (int)(p->size / 2 < p->unit ? p->size / 2 : p->unit); /* no window reaches farther */
    return out;
}

#endif
