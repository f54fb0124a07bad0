/* Pooling by the largest, and its gradient, of 16-bit types: two channels in a word, 8 in a thread. Results are
 * those of pooling.cu and pooling_back.cu to the bit, which take what is not aligned. */
#include "kernels/dnn/pooling.cuh"
#include "kernels/dnn/stored.cuh"

enum { THREADS = DMI_CUDA_THREADS, V = 8, WORDS = V / 2 };

/* Two elements in a word. */
template <typename S> struct pair;
template <> struct pair<bf16> {
    static constexpr uint32_t lowest = 0xff80ff80u;
    static __device__ __forceinline__ __nv_bfloat162 of(uint32_t w)
    {
        return *(const __nv_bfloat162 *)&w;
    }
    static __device__ __forceinline__ uint32_t word(__nv_bfloat162 v)
    {
        return *(const uint32_t *)&v;
    }
    static __device__ __forceinline__ void open(uint32_t w, float &lo, float &hi)
    {
        lo = __uint_as_float(w << 16);
        hi = __uint_as_float(w & 0xffff0000u);
    }
    static __device__ __forceinline__ uint32_t close(float lo, float hi)
    {
        return word(__floats2bfloat162_rn(lo, hi));
    }
};
template <> struct pair<f16> {
    static constexpr uint32_t lowest = 0xfc00fc00u;
    static __device__ __forceinline__ __half2 of(uint32_t w)
    {
        return *(const __half2 *)&w;
    }
    static __device__ __forceinline__ uint32_t word(__half2 v)
    {
        return *(const uint32_t *)&v;
    }
    static __device__ __forceinline__ void open(uint32_t w, float &lo, float &hi)
    {
        float2 f = __half22float2(of(w));
        lo = f.x;
        hi = f.y;
    }
    static __device__ __forceinline__ uint32_t close(float lo, float hi)
    {
        return word(__floats2half2_rn(lo, hi));
    }
};

/* An item: 8 channels of a K x K window. Writes y, or the taps, or both. */
template <typename S, int K, bool Y, bool TAPS>
static __global__ void __launch_bounds__(THREADS)
    forward(const dmi_cuda_pooling p, const uint16_t *x, uint16_t *y, uint8_t *taps)
{
    typedef pair<S> two;
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel;
    int at[2];
    int64_t to = place_of(p, i, &sample, at, &channel);
    window w = window_of(p, at);
    const uint16_t *image = x + sample * p.in[0] * p.in[1] * p.channels + channel;
    group<uint32_t, WORDS> value[K * K];
    uint32_t best[WORDS], tap[WORDS];
    bool inside[K * K], any = false;
#pragma unroll
    for (int k = 0; k < K * K; k++) {
        int h = w.from[0] + k / K, v = w.from[1] + k % K;
        inside[k] = h >= w.lo[0] && h < w.hi[0] && v >= w.lo[1] && v < w.hi[1];
        any = any || inside[k];
        if (inside[k]) {
            value[k] = *(const group<uint32_t, WORDS> *)(image + ((int64_t)h * p.in[1] + v) * p.channels);
        }
    }
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        best[j] = two::lowest;
        tap[j] = 0xffffffffu;
    }
#pragma unroll
    for (int k = 0; k < K * K; k++) {
#pragma unroll
        for (int j = 0; j < WORDS && inside[k]; j++) {
            best[j] = two::word(__hmax2_nan(two::of(best[j]), two::of(value[k].v[j])));
        }
    }
    if constexpr (Y) {
        group<uint32_t, WORDS> out;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            out.v[j] = any ? two::word(__hadd2(two::of(best[j]), two::of(0))) : 0; /* no -0 */
        }
        *(group<uint32_t, WORDS> *)(y + to) = out;
    }
    if constexpr (TAPS) {
#pragma unroll
        for (int k = K * K - 1; k >= 0; k--) {
#pragma unroll
            for (int j = 0; j < WORDS && inside[k]; j++) {
                uint32_t same = __heq2_mask(two::of(value[k].v[j]), two::of(best[j])) |
                                __hneu2_mask(two::of(value[k].v[j]), two::of(value[k].v[j]));
                tap[j] = (same & (uint32_t)(k * 0x10001)) | (~same & tap[j]);
            }
        }
        group<uint32_t, 2> bytes;
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            uint32_t passes = p.relu ? __hgt2_mask(two::of(best[j]), two::of(0)) : 0xffffffffu;
            tap[j] |= ~passes;
        }
        bytes.v[0] = __byte_perm(tap[0], tap[1], 0x6420);
        bytes.v[1] = __byte_perm(tap[2], tap[3], 0x6420);
        *(group<uint32_t, 2> *)(taps + to) = bytes;
    }
}

/* The windows that row or column `at` is in: lo .. hi. */
static __device__ __forceinline__ void windows_at(const dmi_cuda_pooling &p, int a, int at, int *lo, int *hi)
{
    uint32_t last = (uint32_t)(at + p.pad[a]);
    *lo = last < (uint32_t)p.kernel[a] ? 0 : (int)divided(last - (uint32_t)p.kernel[a], p.stride[a]) + 1;
    *hi = min((int)divided(last, p.stride[a]) + 1, p.out[a]);
}

/* An item: 8 channels of a pixel of x, which is in at most N x N windows. */
template <typename S, int N>
static __global__ void __launch_bounds__(THREADS)
    backward(const dmi_cuda_pooling p, const uint8_t *taps, const uint16_t *dy, uint16_t *dx)
{
    typedef pair<S> two;
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel;
    int at[2], lo[2], hi[2];
    int64_t to = place_of(p, i, &sample, at, &channel);
    windows_at(p, 0, at[0], &lo[0], &hi[0]);
    windows_at(p, 1, at[1], &lo[1], &hi[1]);
    int64_t from = sample * p.out[0] * p.out[1] * p.channels + channel;
    group<uint32_t, WORDS> given[N * N];
    group<uint32_t, 2> tap[N * N];
#pragma unroll
    for (int n = 0; n < N * N; n++) {
        int h = lo[0] + n / N, v = lo[1] + n % N;
        if (h < hi[0] && v < hi[1]) {
            int64_t where = from + ((int64_t)h * p.out[1] + v) * p.channels;
            given[n] = *(const group<uint32_t, WORDS> *)(dy + where);
            tap[n] = *(const group<uint32_t, 2> *)(taps + where);
        }
    }
    float sum[V] = {};
#pragma unroll
    for (int n = 0; n < N * N; n++) {
        int h = lo[0] + n / N, v = lo[1] + n % N;
        int mine = (at[0] + p.pad[0] - h * (int)p.stride[0].extent) * p.kernel[1] + at[1] + p.pad[1] -
                   v * (int)p.stride[1].extent;
        if (h < hi[0] && v < hi[1]) {
#pragma unroll
            for (int j = 0; j < WORDS; j++) {
                uint32_t same = __vcmpeq4(tap[n].v[j / 2], (uint32_t)mine * 0x01010101u);
                uint32_t mask = __byte_perm(same, 0, j % 2 == 0 ? 0x1100 : 0x3322);
                float a, b;
                two::open(given[n].v[j] & mask, a, b);
                sum[2 * j] += a;
                sum[2 * j + 1] += b;
            }
        }
    }
    group<uint32_t, WORDS> out;
#pragma unroll
    for (int j = 0; j < WORDS; j++) {
        out.v[j] = two::close(sum[2 * j], sum[2 * j + 1]);
    }
    *(group<uint32_t, WORDS> *)(dx + to) = out;
}

template <typename S, int K>
static void launch_forward(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, void *taps)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    auto kernel = taps == NULL ? forward<S, K, true, false> : y == NULL ? forward<S, K, false, true> : forward<S, K, true, true>;
    kernel<<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const uint16_t *)x, (uint16_t *)y, (uint8_t *)taps);
}

bool dmi_cuda_launch_pooling_short(dmi_queue *q, const dmi_cuda_pooling *p, const void *x, void *y, void *taps)
{
    int k = p->kernel[0];
    bool fits =
        p->group == V && p->repeat == 1 && p->method == DM_POOL_MAX && k == p->kernel[1] && (k == 2 || k == 3);
    if (!fits) {
        return false;
    }
    bool bf = p->dtype == DM_BF16;
    auto launch = k == 2 ? (bf ? launch_forward<bf16, 2> : launch_forward<f16, 2>)
                         : (bf ? launch_forward<bf16, 3> : launch_forward<f16, 3>);
    launch(q, p, x, y, taps);
    dmi_cuda_launched(q, "pooling");
    return true;
}

bool dmi_cuda_launch_pooling_back_short(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps,
                                        const void *dy, void *dx)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    int most = 0;
    for (int a = 0; a < 2; a++) {
        int stride = (int)p->stride[a].extent, windows = (p->kernel[a] + stride - 1) / stride;
        most = windows > most ? windows : most;
    }
    if (p->group != V || p->repeat != 1 || taps == NULL || p->wide || most > 2) {
        return false;
    }
    bool bf = p->dtype == DM_BF16;
    auto kernel =
        most == 1 ? (bf ? backward<bf16, 1> : backward<f16, 1>) : (bf ? backward<bf16, 2> : backward<f16, 2>);
    kernel<<<blocks, THREADS, 0, stream_of(q)>>>(*p, (const uint8_t *)taps, (const uint16_t *)dy,
                                                 (uint16_t *)dx);
    dmi_cuda_launched(q, "pooling_back");
    return true;
}
