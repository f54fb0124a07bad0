/* The gradient of pooling on GPUs: a thread for some channels of a pixel adds up what the windows give that it
 * is in, in their order. */
#include "kernels/dnn/pooling.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* The windows that row or column `at` is in: lo .. hi. */
static __device__ __forceinline__ void windows_at(const dmi_cuda_pooling &p, int a, int at, int *lo, int *hi)
{
    uint32_t last = (uint32_t)(at + p.pad[a]);
    *lo = last < (uint32_t)p.kernel[a] ? 0 : (int)divided(last - (uint32_t)p.kernel[a], p.stride[a]) + 1;
    *hi = min((int)divided(last, p.stride[a]) + 1, p.out[a]);
}

/* A window that the pixel is in: where its results are, the pixel's place in it, by what its mean is divided.
 */
struct giver {
    int64_t offset;
    int tap, size;
};

static __device__ __forceinline__ giver giver_at(const dmi_cuda_pooling &p, const int (&at)[2], int h, int v)
{
    int corner[2] = {h, v};
    window w = window_of(p, corner);
    giver g;
    g.offset = ((int64_t)h * p.out[1] + v) * p.channels;
    g.tap = (at[0] - w.from[0]) * p.kernel[1] + at[1] - w.from[1];
    g.size = w.size;
    return g;
}

/* What the window gives to the pixel is added. */
template <typename T, int V, typename TAP, bool MEAN>
static __device__ __forceinline__ void add_given(const giver &g, const group<T, V> &given,
                                                 const group<TAP, V> &tap, group<T, V> &sum)
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        sum.v[k] += MEAN ? given.v[k] / (T)g.size : tap.v[k] == (TAP)g.tap ? given.v[k] : (T)0;
    }
}

template <typename T, typename S, int V, typename TAP, bool MEAN>
static __global__ void __launch_bounds__(THREADS)
    backward(const dmi_cuda_pooling p, const TAP *taps, const S *dy, S *dx)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.items) {
        return;
    }
    int64_t sample, channel;
    int at[2], lo[2], hi[2];
    int64_t to = place_of(p, i, &sample, at, &channel), step = (int64_t)p.lanes.extent * V;
    windows_at(p, 0, at[0], &lo[0], &hi[0]);
    windows_at(p, 1, at[1], &lo[1], &hi[1]);
    int64_t from = sample * p.out[0] * p.out[1] * p.channels + channel;
    for (int r = 0; r < p.repeat; r++, from += step, to += step) {
        group<T, V> sum = {};
        group<TAP, V> tap = {};
        for (int h = lo[0]; h < hi[0]; h++) {
            for (int v = lo[1]; v < hi[1]; v++) {
                giver g = giver_at(p, at, h, v);
                if (!MEAN) {
                    tap = *(const group<TAP, V> *)(taps + from + g.offset);
                }
                add_given<T, V, TAP, MEAN>(g, loaded<T, S, V>(dy + from + g.offset), tap, sum);
            }
        }
        stored<T, S, V>(dx + to, sum);
    }
}

template <typename T, typename S, int V, typename TAP, bool MEAN>
static void launch_taps(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy, void *dx)
{
    unsigned blocks = blocks_for((int64_t)p->items, THREADS);
    launch_after(q, backward<T, S, V, TAP, MEAN>, dim3(blocks), *p, (const TAP *)taps, (const S *)dy, (S *)dx);
}

template <typename T, typename S, int V>
static void launch_backward(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy, void *dx)
{
    auto launch = taps == NULL ? launch_taps<T, S, V, uint8_t, true>
                  : p->wide    ? launch_taps<T, S, V, int32_t, false>
                               : launch_taps<T, S, V, uint8_t, false>;
    launch(q, p, taps, dy, dx);
}

void dmi_cuda_launch_pooling_back(dmi_queue *q, const dmi_cuda_pooling *p, const void *taps, const void *dy,
                                  void *dx)
{
    if (dmi_cuda_launch_pooling_back_strips(q, p, taps, dy, dx)) {
        return;
    }
    bool one = p->group == 1;
    auto launch =
        p->dtype == DM_F64    ? (one ? launch_backward<double, double, 1> : launch_backward<double, double, 2>)
        : p->dtype == DM_BF16 ? (one ? launch_backward<float, bf16, 1> : launch_backward<float, bf16, 8>)
        : p->dtype == DM_F16  ? (one ? launch_backward<float, f16, 1> : launch_backward<float, f16, 8>)
                              : (one ? launch_backward<float, float, 1> : launch_backward<float, float, 4>);
    launch(q, p, taps, dy, dx);
    dmi_cuda_launched(q, "pooling_back");
}
