/* Pooling on GPUs: a thread for some channels of a window; backward, of a pixel, which adds up what the windows
 * give that it is in, in their order. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

#include <dmath/layers.h>

enum { THREADS = DMI_CUDA_THREADS };

struct window {
    int from[2], lo[2], hi[2], size; /* from: with padding; size: elements up to H + pad */
};

static __device__ __forceinline__ window window_of(const dmi_cuda_pooling &p, const int (&at)[2])
{
    window w;
    w.size = 1;
#pragma unroll
    for (int a = 0; a < 2; a++) {
        w.from[a] = at[a] * (int)p.stride[a].extent - p.pad[a];
        int end = min(w.from[a] + p.kernel[a], p.in[a] + p.pad[a]);
        w.size *= max(end - w.from[a], 0);
        w.lo[a] = max(w.from[a], 0);
        w.hi[a] = min(end, p.in[a]);
    }
    return w;
}

/* Where an item is: sample, row and column, first channel. */
static __device__ __forceinline__ void place_of(const dmi_cuda_pooling &p, uint32_t i, int64_t *sample,
                                                int (&at)[2], int64_t *channel)
{
    uint32_t place = divided(i, p.lanes), row = divided(place, p.side[1]), n = divided(row, p.side[0]);
    *channel = (int64_t)(i - place * p.lanes.extent) * p.group;
    at[1] = (int)(place - row * p.side[1].extent);
    at[0] = (int)(row - n * p.side[0].extent);
    *sample = n;
}

static __device__ float uniform_at(uint64_t seed, int64_t at)
{
    dmi_words w = dmi_philox((uint64_t)at / 4, DMI_STREAM_UNIFORM, seed);
    uint32_t word = at % 4 == 0 ? w.w0 : at % 4 == 1 ? w.w1 : at % 4 == 2 ? w.w2 : w.w3;
    dmi_uniform32 range = dmi_uniform32_make(0, 1);
    return dmi_uniform32_at(&range, word);
}

/* The first of the largest elements; the first NaN, where there is one. tap -1: the window has no elements. */
template <typename T, int V>
static __device__ __forceinline__ void largest(const dmi_cuda_pooling &p, const window &w, const T *x,
                                               group<T, V> &best, int (&tap)[V])
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        best.v[k] = 0;
        tap[k] = -1;
    }
    for (int h = w.lo[0]; h < w.hi[0]; h++) {
        for (int v = w.lo[1]; v < w.hi[1]; v++) {
            group<T, V> value = *(const group<T, V> *)(x + ((int64_t)h * p.in[1] + v) * p.channels);
            int here = (h - w.from[0]) * p.kernel[1] + v - w.from[1];
#pragma unroll
            for (int k = 0; k < V; k++) {
                bool stays = tap[k] >= 0 && (value.v[k] <= best.v[k] || best.v[k] != best.v[k]);
                best.v[k] = stays ? best.v[k] : value.v[k];
                tap[k] = stays ? tap[k] : here;
            }
        }
    }
}

/* The element at which the running sum reaches its part of the sum. */
template <typename T, int V>
static __device__ void taken(const dmi_cuda_pooling &p, const window &w, const T *x, int64_t number,
                             group<T, V> &best, int (&tap)[V])
{
    for (int k = 0; k < V; k++) {
        T sum = 0, reached = 0;
        for (int h = w.lo[0]; h < w.hi[0]; h++) {
            for (int v = w.lo[1]; v < w.hi[1]; v++) {
                sum += x[((int64_t)h * p.in[1] + v) * p.channels + k];
            }
        }
        T threshold = sum * (T)uniform_at(p.seed, number + k);
        best.v[k] = 0;
        tap[k] = -1;
        for (int h = w.lo[0]; h < w.hi[0]; h++) {
            for (int v = w.lo[1]; v < w.hi[1] && !(tap[k] >= 0 && reached >= threshold); v++) {
                best.v[k] = x[((int64_t)h * p.in[1] + v) * p.channels + k];
                tap[k] = (h - w.from[0]) * p.kernel[1] + v - w.from[1];
                reached += best.v[k];
            }
        }
    }
}

/* The mean, or the sum of squares divided by the sum. */
template <typename T, int V>
static __device__ __forceinline__ group<T, V> mean(const dmi_cuda_pooling &p, const window &w, const T *x,
                                                   bool weighted)
{
    group<T, V> sum = {}, squares = {};
    for (int h = w.lo[0]; h < w.hi[0]; h++) {
        for (int v = w.lo[1]; v < w.hi[1]; v++) {
            group<T, V> value = *(const group<T, V> *)(x + ((int64_t)h * p.in[1] + v) * p.channels);
#pragma unroll
            for (int k = 0; k < V; k++) {
                sum.v[k] += value.v[k];
                squares.v[k] += weighted ? value.v[k] * value.v[k] : 0;
            }
        }
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        T plain = w.size > 0 ? sum.v[k] / (T)w.size : sum.v[k];
        sum.v[k] = !weighted ? plain : sum.v[k] != 0 ? squares.v[k] / sum.v[k] : (T)0;
    }
    return sum;
}

template <typename T, int V, int METHOD>
static __global__ void __launch_bounds__(THREADS)
    forward(const dmi_cuda_pooling p, const T *x, T *y, int32_t *which, void *taps)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel, to = (int64_t)i * V;
    int at[2], tap[V];
    place_of(p, i, &sample, at, &channel);
    window w = window_of(p, at);
    const T *image = x + sample * p.in[0] * p.in[1] * p.channels + channel;
    if (METHOD == DM_POOL_AVERAGE || METHOD == DM_POOL_WEIGHTED) {
        *(group<T, V> *)(y + to) = mean<T, V>(p, w, image, METHOD == DM_POOL_WEIGHTED);
        return;
    }
    group<T, V> best;
    if (METHOD == DM_POOL_MAX) {
        largest<T, V>(p, w, image, best, tap);
    } else {
        taken<T, V>(p, w, image, p.first + to, best, tap);
    }
    if (y != NULL) {
        *(group<T, V> *)(y + to) = best;
    }
    group<int32_t, V> places;
    group<uint8_t, V> bytes;
#pragma unroll
    for (int k = 0; k < V; k++) {
        int row = tap[k] / p.kernel[1];
        bytes.v[k] = (uint8_t)tap[k];
        places.v[k] = which == NULL || tap[k] < 0
                          ? tap[k]
                          : (w.from[0] + row) * p.in[1] + w.from[1] + tap[k] - row * p.kernel[1];
    }
    if (which != NULL) {
        *(group<int32_t, V> *)(which + to) = places;
    }
    if (taps != NULL && p.wide) {
#pragma unroll
        for (int k = 0; k < V; k++) {
            ((int32_t *)taps)[to + k] = tap[k];
        }
    } else if (taps != NULL) {
        *(group<uint8_t, V> *)((uint8_t *)taps + to) = bytes;
    }
}

/* The windows that row or column `at` is in: lo .. hi. */
static __device__ __forceinline__ void windows_at(const dmi_cuda_pooling &p, int a, int at, int *lo, int *hi)
{
    uint32_t last = (uint32_t)(at + p.pad[a]);
    *lo = last < (uint32_t)p.kernel[a] ? 0 : (int)divided(last - (uint32_t)p.kernel[a], p.stride[a]) + 1;
    *hi = min((int)divided(last, p.stride[a]) + 1, p.out[a]);
}

template <typename T, int V, typename TAP>
static __global__ void __launch_bounds__(THREADS)
    backward(const dmi_cuda_pooling p, const TAP *taps, const T *dy, T *dx)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel;
    int at[2], lo[2], hi[2];
    place_of(p, i, &sample, at, &channel);
    windows_at(p, 0, at[0], &lo[0], &hi[0]);
    windows_at(p, 1, at[1], &lo[1], &hi[1]);
    group<T, V> sum = {};
    for (int h = lo[0]; h < hi[0]; h++) {
        for (int v = lo[1]; v < hi[1]; v++) {
            int64_t from = ((sample * p.out[0] + h) * p.out[1] + v) * p.channels + channel;
            group<T, V> given = *(const group<T, V> *)(dy + from);
            int corner[2] = {h, v};
            window w = window_of(p, corner);
            if (taps == NULL) {
#pragma unroll
                for (int k = 0; k < V; k++) {
                    sum.v[k] += given.v[k] / (T)w.size;
                }
                continue;
            }
            group<TAP, V> tap = *(const group<TAP, V> *)(taps + from);
            TAP here = (TAP)((at[0] - w.from[0]) * p.kernel[1] + at[1] - w.from[1]);
#pragma unroll
            for (int k = 0; k < V; k++) {
                sum.v[k] += tap.v[k] == here ? given.v[k] : (T)0;
            }
        }
    }
    *(group<T, V> *)(dx + (int64_t)i * V) = sum;
}

template <typename T, int V>
static void launch_forward(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                           void *taps)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    auto kernel = p->method == DM_POOL_MAX          ? forward<T, V, DM_POOL_MAX>
                  : p->method == DM_POOL_AVERAGE    ? forward<T, V, DM_POOL_AVERAGE>
                  : p->method == DM_POOL_STOCHASTIC ? forward<T, V, DM_POOL_STOCHASTIC>
                                                    : forward<T, V, DM_POOL_WEIGHTED>;
    kernel<<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const T *)x, (T *)y, which, taps);
}

void dmi_cuda_launch_pooling(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, int32_t *which,
                             void *taps)
{
    auto launch = p->dtype == DM_F64 ? (p->group == 1 ? launch_forward<double, 1> : launch_forward<double, 2>)
                                     : (p->group == 1 ? launch_forward<float, 1> : launch_forward<float, 4>);
    launch(q, p, x, y, which, taps);
    dmi_cuda_launched(q, "pooling");
}

template <typename T, int V>
static void launch_backward(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy, void *dx)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    if (p->wide) {
        backward<T, V><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const int32_t *)taps, (const T *)dy, (T *)dx);
    } else {
        backward<T, V><<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const uint8_t *)taps, (const T *)dy, (T *)dx);
    }
}

void dmi_cuda_launch_pooling_back(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy,
                                  void *dx)
{
    auto launch = p->dtype == DM_F64 ? (p->group == 1 ? launch_backward<double, 1> : launch_backward<double, 2>)
                                     : (p->group == 1 ? launch_backward<float, 1> : launch_backward<float, 4>);
    launch(q, p, taps, dy, dx);
    dmi_cuda_launched(q, "pooling_back");
}
