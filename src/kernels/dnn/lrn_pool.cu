/* Local response normalisation and pooling by the largest in one kernel, of 16 bits. A thread takes a strip as
 * pooling_strips.cu has it, and normalises the pixels of its windows on the way; backward it gathers what the
 * windows give to its own channels and to those beside them. What lies between the two is rounded as it would
 * be in memory, so results are those of the two kernels to the bit. */
#include "kernels/dnn/lrn.cuh"
#include "kernels/dnn/pooling.cuh"

enum { THREADS = DMI_CUDA_THREADS, V = 8, WORDS = V / 2 };

/* The own channels of a pixel and two on each side, as they lie in memory. */
template <typename S> struct pixel {
    group<uint32_t, WORDS> own;
    uint32_t left, right;
    __device__ __forceinline__ void load(const S *at, int c, int unit)
    {
        own = *(const group<uint32_t, WORDS> *)at;
        left = c > 0 ? *(const uint32_t *)(at - 2) : 0;
        right = c + V < unit ? *(const uint32_t *)(at + V) : 0;
    }
};

/* Rounds a pair to S. */
template <typename S> static __device__ __forceinline__ uint32_t closed_pair(float lo, float hi)
{
    group<S, 2> two = {closed<S>(lo), closed<S>(hi)};
    return *(const uint32_t *)&two;
}

template <typename S, int HALF>
static __device__ __forceinline__ group<uint32_t, WORDS> normalised(const params<float> &p, const pixel<S> &x)
{
    float value[V + 4];
    group<uint32_t, WORDS> out;
    pair<S>::open(x.left, value[0], value[1]);
    pair<S>::open(x.right, value[V + 2], value[V + 3]);
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        pair<S>::open(x.own.v[j], value[2 + 2 * j], value[3 + 2 * j]);
    }
    float made[V], unused;
#pragma unroll
    for (int k = 0; k < V; k++) {
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += value[k + 2 + o] * value[k + 2 + o];
        }
        scaled_by<float, S>(p.k + p.factor * sum, p.beta, value[k + 2], value[k + 2], &made[k], &unused);
    }
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        out.v[j] = closed_pair<S>(made[2 * j], made[2 * j + 1]);
    }
    return out;
}

/* Windows K x K, of which two, one under the other, share SHARED rows. The pixels that the next window needs
 * are loaded before this one is looked at. */
template <typename S, int HALF, int K, int SHARED>
static __global__ void __launch_bounds__(THREADS)
    forward(const params<float> l, const dmi_cuda_pooling p, const dmi_cuda_strips s, const S *x, S *y,
            uint8_t *taps)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.items) {
        return;
    }
    const int ALL = K * K, KEPT = SHARED * K, unit = (int)p.channels;
    strip t = strip_of(s, i, V);
    const S *image = x + t.sample * p.in[0] * p.in[1] * p.channels + t.channel;
    int64_t to = ((t.sample * p.out[0] + t.first) * p.out[1] + t.column) * p.channels + t.channel;
    group<uint32_t, WORDS> value[ALL] = {};
    pixel<S> next[ALL - KEPT] = {};
    int at[2] = {t.first, t.column};
    window w = window_of(p, at);
    auto load = [&](int k, pixel<S> *element) {
        if (is_inside<K>(w, k)) {
            element->load(image + ((int64_t)(w.from[0] + k / K) * p.in[1] + w.from[1] + k % K) * p.channels,
                          (int)t.channel, unit);
        }
    };
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        pixel<S> first = {};
        load(k, &first);
        value[k] = normalised<S, HALF>(l, first);
    }
#pragma unroll
    for (int k = KEPT; k < ALL; k++) {
        load(k, &next[k - KEPT]);
    }
    for (; at[0] < t.last; to += (int64_t)p.out[1] * p.channels) {
        bool inside[ALL], whole = true;
#pragma unroll
        for (int k = 0; k < ALL; k++) {
            inside[k] = is_inside<K>(w, k);
            whole = whole && inside[k];
        }
#pragma unroll
        for (int k = KEPT; k < ALL; k++) {
            value[k] = normalised<S, HALF>(l, next[k - KEPT]);
        }
        at[0]++;
        w = window_of(p, at);
#pragma unroll
        for (int k = KEPT; k < ALL; k++) {
            if (at[0] < t.last) {
                load(k, &next[k - KEPT]);
            }
        }
        largest_short<S> taken;
        if (whole) {
            taken.template take<true>(value, inside);
        } else {
            taken.template take<false>(value, inside);
        }
        taken.store(y + to);
        if (taps != NULL) {
            taken.store_taps(p.relu, taps + to);
        }
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            value[k] = value[k + ALL - KEPT];
        }
    }
}

/* What a window gives to its own channels and to two on each side: pair 0, pairs 1 to WORDS, pair WORDS + 1. */
template <typename S> struct wide_window {
    uint32_t given[WORDS + 2], tap[3]; /* tap: of the own; and of the others */
    __device__ __forceinline__ void none()
    {
#pragma unroll
        for (int j = 0; j < WORDS + 2; j++) {
            given[j] = 0;
            tap[j / 2] = 0xffffffffu;
        }
    }
    __device__ __forceinline__ void load(const S *dy, const uint8_t *taps, int c, int unit)
    {
        group<uint32_t, WORDS> own = *(const group<uint32_t, WORDS> *)dy;
        group<uint32_t, 2> mine = *(const group<uint32_t, 2> *)taps;
        bool before = c > 0, behind = c + V < unit;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            given[1 + j] = own.v[j];
        }
        given[0] = before ? *(const uint32_t *)(dy - 2) : 0;
        given[WORDS + 1] = behind ? *(const uint32_t *)(dy + V) : 0;
        tap[0] = mine.v[0];
        tap[1] = mine.v[1];
        tap[2] = (before ? *(const uint16_t *)(taps - 2) : 0xffffu) |
                 (behind ? (uint32_t) * (const uint16_t *)(taps + V) : 0xffffu) << 16;
    }
    __device__ __forceinline__ void add(int element, float (&sum)[V + 4]) const
    {
        uint32_t same[3];
#pragma unroll
        for (int j = 0; j < 3; j++) {
            same[j] = __vcmpeq4(tap[j], (uint32_t)element * 0x01010101u);
        }
#pragma unroll
        for (int j = 0; j < WORDS + 2; j++) {
            const bool own = j > 0 && j <= WORDS;
            const bool upper = own ? (j - 1) % 2 != 0 : j > 0;
            uint32_t mask = __byte_perm(own ? same[(j - 1) / 2] : same[2], 0, upper ? 0x3322 : 0x1100);
            float a, b;
            pair<S>::open(given[j] & mask, a, b);
            sum[2 * j] += a;
            sum[2 * j + 1] += b;
        }
    }
};

/* dx of a pixel's own channels; dy: the gradient by what LRN makes, of two more on each side. */
template <typename S, int HALF>
static __device__ __forceinline__ group<float, V> gradient(const params<float> &p, const S *x, int c, int unit,
                                                           const float (&dy)[V + 4])
{
    float left[4], right[4], value[V + 8], made[V + 4], ratio[V + 4];
    group<float, V> own = loaded<float, S, V>(x), out;
    pick<S, 4>(x - c, c - 4, unit, left);
    pick<S, 4>(x - c, c + V, unit, right);
#pragma unroll
    for (int k = 0; k < V + 8; k++) {
        value[k] = k < 4 ? left[k] : k < 4 + V ? own.v[k - 4] : right[k - 4 - V];
    }
#pragma unroll
    for (int k = 0; k < V + 4; k++) {
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += value[k + 2 + o] * value[k + 2 + o];
        }
        scaled_by<float, S>(p.k + p.factor * sum, p.beta, dy[k], value[k + 2], &made[k], &ratio[k]);
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        float sum = 0;
#pragma unroll
        for (int o = -HALF; o <= HALF; o++) {
            sum += ratio[k + 2 + o];
        }
        out.v[k] = made[k + 2] - p.gradient * own.v[k] * sum;
        out.v[k] = p.relu && !(own.v[k] > 0) ? 0.0f : out.v[k];
    }
    return out;
}

/* Windows K x K, STRIDE apart: blocks of pixels as in pooling_strips_back.cu. */
template <typename S, int HALF, int K, int STRIDE>
static __global__ void __launch_bounds__(THREADS)
    backward(const params<float> l, const dmi_cuda_pooling p, const dmi_cuda_strips s, const S *x,
             const uint8_t *taps, const S *dy, S *dx)
{
    after_previous();
    const int N = (K + STRIDE - 1) / STRIDE, unit = (int)p.channels;
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.items) {
        return;
    }
    strip t = strip_of(s, i, V);
    const int channel = (int)t.channel;
    int64_t from = t.sample * p.out[0] * p.out[1] * p.channels + t.channel,
            image = t.sample * p.in[0] * p.in[1] * p.channels + t.channel;
    wide_window<S> given[N][N], next[N];
    auto load = [&](int h, int c, wide_window<S> *window) {
        int column = t.column - (N - 1) + c;
        if (h >= 0 && h < p.out[0] && column >= 0 && column < p.out[1]) {
            int64_t at = from + ((int64_t)h * p.out[1] + column) * p.channels;
            window->load(dy + at, taps + at, channel, unit);
        } else {
            window->none();
        }
    };
#pragma unroll
    for (int n = 0; n < N * N; n++) {
        load(t.first - (N - 1) + n / N, n % N, &given[n / N][n % N]);
    }
    for (int b = t.first; b < t.last; b++) {
#pragma unroll
        for (int c = 0; c < N; c++) {
            if (b + 1 < t.last) {
                load(b + 1, c, &next[c]);
            }
        }
#pragma unroll
        for (int e = 0; e < STRIDE * STRIDE; e++) {
            const int row = e / STRIDE, column = e % STRIDE;
            int h = b * STRIDE + row - p.pad[0], v = t.column * STRIDE + column - p.pad[1];
            if (h < 0 || h >= p.in[0] || v < 0 || v >= p.in[1]) {
                continue;
            }
            float sum[V + 4] = {};
#pragma unroll
            for (int r = 0; r < N; r++) {
#pragma unroll
                for (int c = 0; c < N; c++) {
                    const int in_row = (N - 1 - r) * STRIDE + row, in_column = (N - 1 - c) * STRIDE + column;
                    if (in_row < K && in_column < K) {
                        given[r][c].add(in_row * K + in_column, sum);
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < V + 4; k++) {
                sum[k] = opened<float>(closed<S>(sum[k]));
            }
            int64_t at = image + ((int64_t)h * p.in[1] + v) * p.channels;
            stored<float, S, V>(dx + at, gradient<S, HALF>(l, x + at, channel, unit, sum));
        }
#pragma unroll
        for (int n = 0; n < N * N; n++) {
            given[n / N][n % N] = n / N + 1 < N ? given[n / N + 1 < N ? n / N + 1 : 0][n % N] : next[n % N];
        }
    }
}

template <typename S, int HALF, int K, int STRIDE>
static void launch(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x, void *y,
                   void *taps)
{
    dmi_cuda_strips s = dmi_cuda_strips_of(p, V, p->out[0], p->out[1]);
    launch_after(q, forward<S, HALF, K, K - STRIDE>, dim3(blocks_for((int64_t)s.items, THREADS)),
                 params_of<float>(l), *p, s, (const S *)x, (S *)y, (uint8_t *)taps);
}

template <typename S, int HALF, int K, int STRIDE>
static void launch_back(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                        const void *taps, const void *dy, void *dx)
{
    int blocks[2];
    for (int a = 0; a < 2; a++) {
        blocks[a] = (p->in[a] + p->pad[a] + STRIDE - 1) / STRIDE;
    }
    dmi_cuda_strips s = dmi_cuda_strips_of(p, V, blocks[0], blocks[1]);
    launch_after(q, backward<S, HALF, K, STRIDE>, dim3(blocks_for((int64_t)s.items, THREADS)),
                 params_of<float>(l), *p, s, (const S *)x, (const uint8_t *)taps, (const S *)dy, (S *)dx);
}

template <typename S, int HALF>
static void launch_of(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x, void *y,
                      void *taps)
{
    auto by_shape = p->kernel[0] == 2          ? launch<S, HALF, 2, 2>
                    : p->stride[0].extent == 1 ? launch<S, HALF, 3, 1>
                                               : launch<S, HALF, 3, 2>;
    by_shape(q, l, p, x, y, taps);
}

template <typename S, int HALF>
static void launch_back_of(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                           const void *taps, const void *dy, void *dx)
{
    auto by_shape = p->kernel[0] == 2          ? launch_back<S, HALF, 2, 2>
                    : p->stride[0].extent == 1 ? launch_back<S, HALF, 3, 1>
                                               : launch_back<S, HALF, 3, 2>;
    by_shape(q, l, p, x, taps, dy, dx);
}

void dmi_cuda_launch_lrn_pool(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p, const void *x,
                              void *y, void *taps)
{
    auto of = p->dtype == DM_BF16 ? (l->size == 3 ? launch_of<bf16, 1> : launch_of<bf16, 2>)
                                  : (l->size == 3 ? launch_of<f16, 1> : launch_of<f16, 2>);
    of(q, l, p, x, y, taps);
    dmi_cuda_launched(q, "lrn_pool");
}

void dmi_cuda_launch_lrn_pool_back(dmi_queue *q, const dmi_cuda_lrn *l, const dmi_cuda_pooling *p,
                                   const void *x, const void *taps, const void *dy, void *dx)
{
    auto of = p->dtype == DM_BF16 ? (l->size == 3 ? launch_back_of<bf16, 1> : launch_back_of<bf16, 2>)
                                  : (l->size == 3 ? launch_back_of<f16, 1> : launch_back_of<f16, 2>);
    of(q, l, p, x, taps, dy, dx);
    dmi_cuda_launched(q, "lrn_pool_back");
}
