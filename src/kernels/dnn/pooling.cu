/* Pooling on GPUs: a thread for some channels of a window. */
#include "kernels/dnn/pooling.cuh"

enum { THREADS = DMI_CUDA_THREADS };

static __device__ float uniform_at(uint64_t seed, int64_t at)
{
    dmi_words w = dmi_philox((uint64_t)at / 4, DMI_STREAM_UNIFORM, seed);
    uint32_t word = at % 4 == 0 ? w.w0 : at % 4 == 1 ? w.w1 : at % 4 == 2 ? w.w2 : w.w3;
    dmi_uniform32 range = dmi_uniform32_make(0, 1);
    return dmi_uniform32_at(&range, word);
}

/* Calls take(element, place in the window) for the elements of a window, in row-major order. */
template <typename T, typename S, int V, typename F>
static __device__ __forceinline__ void each_of_window(const dmi_cuda_pooling &p, const window &w, const S *x,
                                                      F take)
{
    for (int h = w.lo[0]; h < w.hi[0]; h++) {
        for (int v = w.lo[1]; v < w.hi[1]; v++) {
            take(loaded<T, S, V>(x + ((int64_t)h * p.in[1] + v) * p.channels),
                 (h - w.from[0]) * p.kernel[1] + v - w.from[1]);
        }
    }
}

/* The first of the largest elements; the first NaN, where there is one. tap -1: the window has no elements. */
template <typename T, typename S, int V>
static __device__ __forceinline__ void largest(const dmi_cuda_pooling &p, const window &w, const S *x,
                                               group<T, V> &best, int (&tap)[V])
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        best.v[k] = 0;
        tap[k] = -1;
    }
    each_of_window<T, S, V>(p, w, x, [&](const group<T, V> &value, int here) {
#pragma unroll
        for (int k = 0; k < V; k++) {
            bool stays = tap[k] >= 0 && (value.v[k] <= best.v[k] || best.v[k] != best.v[k]);
            best.v[k] = stays ? best.v[k] : value.v[k];
            tap[k] = stays ? tap[k] : here;
        }
    });
}

/* The element at which the running sum reaches its part of the sum. */
template <typename T, typename S, int V>
static __device__ void taken(const dmi_cuda_pooling &p, const window &w, const S *x, int64_t number,
                             group<T, V> &best, int (&tap)[V])
{
    for (int k = 0; k < V; k++) {
        T sum = 0, reached = 0;
        for (int h = w.lo[0]; h < w.hi[0]; h++) {
            for (int v = w.lo[1]; v < w.hi[1]; v++) {
                sum += opened<T>(x[((int64_t)h * p.in[1] + v) * p.channels + k]);
            }
        }
        T threshold = sum * (T)uniform_at(p.seed, number + k);
        best.v[k] = 0;
        tap[k] = -1;
        for (int h = w.lo[0]; h < w.hi[0]; h++) {
            for (int v = w.lo[1]; v < w.hi[1] && !(tap[k] >= 0 && reached >= threshold); v++) {
                best.v[k] = opened<T>(x[((int64_t)h * p.in[1] + v) * p.channels + k]);
                tap[k] = (h - w.from[0]) * p.kernel[1] + v - w.from[1];
                reached += best.v[k];
            }
        }
    }
}

/* The mean, or the sum of squares divided by the sum. */
template <typename T, typename S, int V>
static __device__ __forceinline__ group<T, V> mean(const dmi_cuda_pooling &p, const window &w, const S *x,
                                                   bool weighted)
{
    group<T, V> sum = {}, squares = {};
    each_of_window<T, S, V>(p, w, x, [&](const group<T, V> &value, int) {
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum.v[k] += value.v[k];
            squares.v[k] += weighted ? value.v[k] * value.v[k] : 0;
        }
    });
#pragma unroll
    for (int k = 0; k < V; k++) {
        T plain = w.size > 0 ? sum.v[k] / (T)w.size : sum.v[k];
        sum.v[k] = !weighted ? plain : sum.v[k] != 0 ? squares.v[k] / sum.v[k] : (T)0;
    }
    return sum;
}

/* Where the elements are that were taken; taps of those that pass nothing back are left out. */
template <int V>
static __device__ __forceinline__ void store_places(const dmi_cuda_pooling &p, const window &w,
                                                    const int (&tap)[V], const bool (&passes)[V], int64_t to,
                                                    int32_t *which, void *taps)
{
    group<int32_t, V> places, wide;
    group<uint8_t, V> bytes;
#pragma unroll
    for (int k = 0; k < V; k++) {
        int row = tap[k] / p.kernel[1], kept = passes[k] ? tap[k] : -1;
        bytes.v[k] = (uint8_t)kept;
        wide.v[k] = kept;
        places.v[k] = tap[k] < 0 ? -1 : (w.from[0] + row) * p.in[1] + w.from[1] + tap[k] - row * p.kernel[1];
    }
    if (which != NULL) {
        *(group<int32_t, V> *)(which + to) = places;
    }
    if (taps != NULL && p.wide) {
        *(group<int32_t, V> *)((int32_t *)taps + to) = wide;
    } else if (taps != NULL) {
        *(group<uint8_t, V> *)((uint8_t *)taps + to) = bytes;
    }
}

template <typename T, typename S, int V, int METHOD, bool PLACES>
static __global__ void __launch_bounds__(THREADS)
    forward(const dmi_cuda_pooling p, const S *x, S *y, int32_t *which, void *taps)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel;
    int at[2];
    int64_t first = place_of(p, i, &sample, at, &channel), step = (int64_t)p.lanes.extent * V;
    window w = window_of(p, at);
    const S *image = x + sample * p.in[0] * p.in[1] * p.channels + channel;
    for (int r = 0; r < p.repeat; r++, image += step) {
        int64_t to = first + r * step;
        int tap[V];
        group<T, V> best;
        if constexpr (METHOD == DM_POOL_AVERAGE || METHOD == DM_POOL_WEIGHTED) {
            best = mean<T, S, V>(p, w, image, METHOD == DM_POOL_WEIGHTED);
        } else if constexpr (METHOD == DM_POOL_MAX) {
            largest<T, S, V>(p, w, image, best, tap);
#pragma unroll
            for (int k = 0; k < V && sizeof(S) == 2; k++) {
                best.v[k] += 0; /* no -0: as two elements at once are compared */
            }
        } else {
            taken<T, S, V>(p, w, image, p.first + to, best, tap);
        }
        if (y != NULL) {
            stored<T, S, V>(y + to, best);
        }
        if constexpr (PLACES) {
            bool passes[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                passes[k] = !p.relu || best.v[k] > 0;
            }
            store_places<V>(p, w, tap, passes, to, which, taps);
        }
    }
}

template <typename T, typename S, int V, int METHOD>
static void launch_places(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                          void *taps)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    if constexpr (METHOD == DM_POOL_MAX || METHOD == DM_POOL_STOCHASTIC) {
        if (which != NULL || taps != NULL) {
            launch_after(q, forward<T, S, V, METHOD, true>, dim3(blocks), *p, (const S *)x, (S *)y, which,
                         taps);
            return;
        }
    }
    launch_after(q, forward<T, S, V, METHOD, false>, dim3(blocks), *p, (const S *)x, (S *)y, which, taps);
}

template <typename T, typename S, int V>
static void launch_forward(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                           void *taps)
{
    auto launch = p->method == DM_POOL_MAX          ? launch_places<T, S, V, DM_POOL_MAX>
                  : p->method == DM_POOL_AVERAGE    ? launch_places<T, S, V, DM_POOL_AVERAGE>
                  : p->method == DM_POOL_STOCHASTIC ? launch_places<T, S, V, DM_POOL_STOCHASTIC>
                                                    : launch_places<T, S, V, DM_POOL_WEIGHTED>;
    launch(q, p, x, y, which, taps);
}

void dmi_cuda_launch_pooling(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                             void *taps)
{
    if (which == NULL && dmi_cuda_launch_pooling_strips(q, p, x, y, taps)) {
        return;
    }
    bool one = p->group == 1;
    auto launch =
        p->dtype == DM_F64    ? (one ? launch_forward<double, double, 1> : launch_forward<double, double, 2>)
        : p->dtype == DM_BF16 ? (one ? launch_forward<float, bf16, 1> : launch_forward<float, bf16, 8>)
        : p->dtype == DM_F16  ? (one ? launch_forward<float, f16, 1> : launch_forward<float, f16, 8>)
                              : (one ? launch_forward<float, float, 1> : launch_forward<float, float, 4>);
    launch(q, p, x, y, which, taps);
    dmi_cuda_launched(q, "pooling");
}
