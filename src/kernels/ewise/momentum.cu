/* A step of gradient descent with momentum: one pass over gradient, history and weights, and a copy of them
 * that is rounded. */
#include "kernels/box/convert.cuh"
extern "C" {
#include "kernels/ewise/momentum_args.h"
}

enum { THREADS = DMI_CUDA_THREADS, DEPTH = 4 };

template <typename T> struct params {
    T scale, decay, momentum, rate;
    const void *element;   /* of the rate; NULL: it is `rate` */
    bool wide, decays, l1; /* wide: the element is f64 */
};

template <typename T> static __device__ __forceinline__ T rate_of(const params<T> &p)
{
    return p.element == NULL ? p.rate
           : p.wide          ? (T) * (const double *)p.element
                             : (T) * (const float *)p.element;
}

template <typename T> static __device__ __forceinline__ void step(const params<T> &p, T rate, T g, T *h, T *w)
{
    T made = p.scale * g;
    if (p.decays) {
        T sign = *w > 0 ? (T)1 : *w < 0 ? (T)-1 : *w; /* NaN stays; -0 adds nothing either */
        made += p.decay * (p.l1 ? sign : *w);
    }
    *h = p.momentum * *h + rate * made;
    *w -= *h;
}

/* Whole aligned groups, one behind the other. R: the type of the copy; T where there is none. */
template <typename T, typename R, int V>
static __global__ void __launch_bounds__(THREADS)
    dense(const params<T> p, uint32_t groups, const T *g, T *h, T *w, R *copy)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= groups) {
        return;
    }
    group<T, V> given = ((const group<T, V> *)g)[i], history = ((const group<T, V> *)h)[i],
                weights = ((const group<T, V> *)w)[i];
    T rate = rate_of(p);
#pragma unroll
    for (int k = 0; k < V; k++) {
        step<T>(p, rate, given.v[k], &history.v[k], &weights.v[k]);
    }
    ((group<T, V> *)h)[i] = history;
    ((group<T, V> *)w)[i] = weights;
    if constexpr (sizeof(R) < sizeof(T)) {
        group<R, V> rounded;
#pragma unroll
        for (int k = 0; k < V; k++) {
            rounded.v[k] = closed<R>(weights.v[k]);
        }
        ((group<R, V> *)copy)[i] = rounded;
    }
}

template <typename T, typename R>
static __global__ void __launch_bounds__(THREADS)
    boxes(const __grid_constant__ dmi_cuda_box box, const params<T> p, const T *g, T *h, T *w, R *copy)
{
    after_previous();
    int64_t at[DEPTH][2];
    bool valid[DEPTH];
    T rate = rate_of(p);
    locate_all<2, DEPTH>(box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            T history = h[at[k][1]], weights = w[at[k][1]];
            step<T>(p, rate, g[at[k][0]], &history, &weights);
            h[at[k][1]] = history;
            w[at[k][1]] = weights;
            if constexpr (sizeof(R) < sizeof(T)) {
                copy[at[k][1]] = closed<R>(weights);
            }
        }
    }
}

template <typename T, typename R, int V>
static void launch(dmi_queue *q, const dmi_cuda_momentum *m, const dmi_cuda_box *box, const void *gradient,
                   void *history, void *weights, void *copy)
{
    const T *g = (const T *)gradient;
    T *h = (T *)history, *w = (T *)weights;
    params<T> p = {(T)m->scale, (T)m->decay, (T)m->momentum, (T)m->rate, m->element, m->wide, m->decays, m->l1};
    if (m->count > 0 && m->count % V == 0 &&
        (((uintptr_t)g | (uintptr_t)h | (uintptr_t)w) & (sizeof(T) * V - 1)) == 0 &&
        ((uintptr_t)copy & (sizeof(R) * V - 1)) == 0) {
        launch_after(q, dense<T, R, V>, dim3(blocks_for(m->count / V, THREADS)), p, (uint32_t)(m->count / V), g,
                     h, w, (R *)copy);
        return;
    }
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, DEPTH);
    launch_after(q, boxes<T, R>, dim3(blocks), b, p, g, h, w, (R *)copy);
}

void dmi_cuda_launch_momentum(dmi_queue *q, const dmi_cuda_momentum *m, const dmi_cuda_box *box,
                              const void *gradient, void *history, void *weights, void *copy)
{
    auto of_type = m->dtype == DM_F64      ? launch<double, double, 2>
                   : m->rounded == DM_BF16 ? launch<float, bf16, 4>
                   : m->rounded == DM_F16  ? launch<float, f16, 4>
                                           : launch<float, float, 4>;
    of_type(q, m, box, gradient, history, weights, copy);
    dmi_cuda_launched(q, "momentum");
}
