/* Pooling by the largest and by the mean of 2 x 2 and 3 x 3 windows: a thread takes a strip of windows, one
 * under the other, and keeps the rows that two of them share. Results are those of pooling.cu to the bit, which
 * takes what is not aligned. */
#include "kernels/dnn/pooling.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* The largest of V elements, and which of the window they are; elements are looked at in row-major order. */
template <typename T, typename S, int V> struct largest {
    typedef group<S, V> window_element;
    group<T, V> best;
    int tap[V];
    static __device__ __forceinline__ window_element load(const S *at)
    {
        return *(const window_element *)at;
    }
    template <bool ALL, int COUNT>
    __device__ __forceinline__ void take(const window_element (&value)[COUNT], const bool (&inside)[COUNT])
    {
        int first = ALL ? 0 : -1;
#pragma unroll
        for (int i = COUNT - 1; i >= 0 && !ALL; i--) {
            first = inside[i] ? i : first;
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            best.v[k] = ALL ? opened<T>(value[0].v[k]) : first < 0 ? (T)0 : (T)-INFINITY;
            tap[k] = first;
        }
#pragma unroll
        for (int i = ALL; i < COUNT; i++) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                T v = opened<T>(value[i].v[k]);
                bool better = (ALL || inside[i]) && !(v <= best.v[k]) && best.v[k] == best.v[k];
                best.v[k] = better ? v : best.v[k];
                tap[k] = better ? i : tap[k];
            }
        }
    }
    __device__ __forceinline__ void store(S *y) const
    {
        stored<T, S, V>(y, best);
    }
    __device__ __forceinline__ void store_taps(bool relu, uint8_t *taps) const
    {
        group<uint8_t, V> bytes;
#pragma unroll
        for (int k = 0; k < V; k++) {
            bytes.v[k] = (uint8_t)(!relu || best.v[k] > 0 ? tap[k] : -1);
        }
        *(group<uint8_t, V> *)taps = bytes;
    }
};

template <typename T, typename S, int V> struct mean {
    typedef group<S, V> window_element;
    group<T, V> sum;
    static __device__ __forceinline__ window_element load(const S *at)
    {
        return *(const window_element *)at;
    }
    template <bool ALL, int COUNT>
    __device__ __forceinline__ void take(const window_element (&value)[COUNT], const bool (&inside)[COUNT])
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum.v[k] = 0;
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                sum.v[k] += ALL || inside[i] ? opened<T>(value[i].v[k]) : (T)0;
            }
        }
    }
    __device__ __forceinline__ void divide(int size)
    {
        T by = (T)size, inverse = 1 / by;
#pragma unroll
        for (int k = 0; k < V && size > 0; k++) {
            sum.v[k] = shared_out(sum.v[k], by, inverse);
        }
    }
    __device__ __forceinline__ void store(S *y) const
    {
        stored<T, S, V>(y, sum);
    }
};

/* Windows K x K, of which two, one under the other, share SHARED rows. What the next window needs is loaded
 * before this one is looked at. TAKE: what is taken. */
template <typename TAKE, typename S, int V, int K, int SHARED, bool MEAN, bool Y, bool TAPS>
static __global__ void __launch_bounds__(THREADS)
    forward(const dmi_cuda_pooling p, const dmi_cuda_strips s, const S *x, S *y, uint8_t *taps)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.items) {
        return;
    }
    const int ALL = K * K, KEPT = SHARED * K;
    strip t = strip_of(s, i, V);
    const S *image = x + t.sample * p.in[0] * p.in[1] * p.channels + t.channel;
    int64_t to = ((t.sample * p.out[0] + t.first) * p.out[1] + t.column) * p.channels + t.channel;
    typename TAKE::window_element value[ALL], next[ALL - KEPT];
    int at[2] = {t.first, t.column};
    window w = window_of(p, at);
    auto load = [&](int k, typename TAKE::window_element *element) {
        if (is_inside<K>(w, k)) {
            *element =
                TAKE::load(image + ((int64_t)(w.from[0] + k / K) * p.in[1] + w.from[1] + k % K) * p.channels);
        }
    };
#pragma unroll
    for (int k = 0; k < ALL; k++) {
        load(k, &value[k]);
    }
    for (; at[0] < t.last; to += (int64_t)p.out[1] * p.channels) {
        bool inside[ALL], whole = true;
        int size = w.size;
#pragma unroll
        for (int k = 0; k < ALL; k++) {
            inside[k] = is_inside<K>(w, k);
            whole = whole && inside[k];
        }
        at[0]++;
        w = window_of(p, at);
#pragma unroll
        for (int k = KEPT; k < ALL; k++) {
            if (at[0] < t.last) {
                load(k, &next[k - KEPT]);
            }
        }
        TAKE taken;
        if (whole) {
            taken.template take<true>(value, inside);
        } else {
            taken.template take<false>(value, inside);
        }
        if constexpr (MEAN) {
            taken.divide(size);
        }
        if constexpr (Y) {
            taken.store(y + to);
        }
        if constexpr (TAPS) {
            taken.store_taps(p.relu, taps + to);
        }
#pragma unroll
        for (int k = 0; k < ALL; k++) {
            value[k] = k < KEPT ? value[k + ALL - KEPT] : next[k < KEPT ? 0 : k - KEPT];
        }
    }
}

template <typename TAKE, typename S, int V, int K, int SHARED, bool MEAN>
static void launch(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, void *taps)
{
    dmi_cuda_strips s = dmi_cuda_strips_of(p, V, p->out[0], p->out[1]);
    unsigned blocks = blocks_for((int64_t)s.items, THREADS);
    auto kernel = forward<TAKE, S, V, K, SHARED, MEAN, true, false>;
    if constexpr (!MEAN) {
        kernel = taps == NULL ? kernel
                 : y == NULL  ? forward<TAKE, S, V, K, SHARED, MEAN, false, true>
                              : forward<TAKE, S, V, K, SHARED, MEAN, true, true>;
    }
    launch_after(q, kernel, dim3(blocks), *p, s, (const S *)x, (S *)y, (uint8_t *)taps);
}

template <typename TAKE, typename S, int V, bool MEAN>
static void launch_windows(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, void *taps)
{
    int shared = p->kernel[0] - (int)p->stride[0].extent;
    auto by_shape = p->kernel[0] == 2 ? launch<TAKE, S, V, 2, 0, MEAN>
                    : shared == 2     ? launch<TAKE, S, V, 3, 2, MEAN>
                    : shared == 1     ? launch<TAKE, S, V, 3, 1, MEAN>
                                      : launch<TAKE, S, V, 3, 0, MEAN>;
    by_shape(q, p, x, y, taps);
}

bool dmi_cuda_launch_pooling_strips(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, void *taps)
{
    bool mean_of = p->method == DM_POOL_AVERAGE, small = p->kernel[0] == 2 || p->kernel[0] == 3;
    if (p->group == 1 || p->kernel[0] != p->kernel[1] || !small || (!mean_of && p->method != DM_POOL_MAX)) {
        return false;
    }
    auto launch_max = p->dtype == DM_F64    ? launch_windows<largest<double, double, 2>, double, 2, false>
                      : p->dtype == DM_BF16 ? launch_windows<largest_short<bf16>, bf16, 8, false>
                      : p->dtype == DM_F16  ? launch_windows<largest_short<f16>, f16, 8, false>
                                            : launch_windows<largest<float, float, 4>, float, 4, false>;
    auto launch_mean = p->dtype == DM_F64    ? launch_windows<mean<double, double, 2>, double, 2, true>
                       : p->dtype == DM_BF16 ? launch_windows<mean<float, bf16, 8>, bf16, 8, true>
                       : p->dtype == DM_F16  ? launch_windows<mean<float, f16, 8>, f16, 8, true>
                                             : launch_windows<mean<float, float, 4>, float, 4, true>;
    (mean_of ? launch_mean : launch_max)(q, p, x, y, taps);
    dmi_cuda_launched(q, "pooling");
    return true;
}
