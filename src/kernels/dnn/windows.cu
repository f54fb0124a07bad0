/* The windows of convolutions as the rows of a matrix (im2col), and back: each element of x adds up what its
 * copies have, in the order of the windows. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* What numbers of items are divided by: groups of channels of a pixel, columns and rows of a window, of y. */
struct divisors {
    dmi_cuda_divisor lanes, kernel[2], out[2];
};

/* An item: V channels of one element of a window. first: number of the first window. */
template <typename T, int V>
static __global__ void __launch_bounds__(THREADS)
    gather(const dmi_cuda_windows p, const divisors by, uint32_t items, int64_t first, const T *x, T *columns)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    uint32_t pixel = divided(i, by.lanes), c = (i - pixel * by.lanes.extent) * V,
             row = divided(pixel, by.kernel[1]);
    uint32_t window = divided(row, by.kernel[0]);
    int s = (int)(pixel - row * by.kernel[1].extent), r = (int)(row - window * by.kernel[0].extent);
    int64_t sample = first / ((int64_t)p.out[0] * p.out[1]);
    uint32_t number = window + (uint32_t)(first - sample * p.out[0] * p.out[1]); /* from that sample on */
    uint32_t line = divided(number, by.out[1]), n = divided(line, by.out[0]);
    int q = (int)(number - line * by.out[1].extent), at = (int)(line - n * by.out[0].extent);
    int h = at * p.stride[0] - p.pad[0] + r * p.dilation[0], v = q * p.stride[1] - p.pad[1] + s * p.dilation[1];
    group<T, V> value = {};
    if (h >= 0 && h < p.in[0] && v >= 0 && v < p.in[1]) {
        value =
            *(const group<T, V> *)(x + (((sample + n) * p.in[0] + h) * p.in[1] + v) * p.pixel + p.channel + c);
    }
    *(group<T, V> *)(columns + (int64_t)i * V) = value;
}

/* The window that begins at this place, of those a stride apart; -1: none does. */
static __device__ __forceinline__ int window_of(int from, int stride)
{
    if (stride == 1) {
        return from;
    }
    const int at = from / stride;
    return from >= 0 && at * stride == from ? at : -1;
}

/* What numbers of items are divided by: groups of channels of a pixel, columns and rows of x. */
struct places {
    dmi_cuda_divisor lanes, in[2];
};

/* An item: V channels of one pixel of x, from row `first` of sample `sample` on. */
template <typename T, typename S, int V>
static __global__ void __launch_bounds__(THREADS)
    scatter(const dmi_cuda_windows p, const places by, int64_t sample, uint32_t first, uint32_t items,
            const S *columns, S *x)
{
    after_previous();
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    const uint32_t pixel = divided(i, by.lanes), row = divided(pixel, by.in[1]), line = first + row;
    const uint32_t image = divided(line, by.in[0]);
    const int c = (int)(i - pixel * by.lanes.extent) * V, v = (int)(pixel - row * by.in[1].extent),
              h = (int)(line - image * by.in[0].extent);
    const int64_t n = sample + image;
    group<T, V> sum = {};
    for (int r = p.kernel[0] - 1; r >= 0; r--) {
        int at = window_of(h + p.pad[0] - r * p.dilation[0], p.stride[0]);
        if (at < 0 || at >= p.out[0]) {
            continue;
        }
        const int64_t start = (n * p.out[0] + at) * p.out[1] - p.first;
        /* without a branch, so that several loads are on their way */
#pragma unroll 4
        for (int s = p.kernel[1] - 1; s >= 0; s--) {
            const int q = window_of(v + p.pad[1] - s * p.dilation[1], p.stride[1]);
            const int64_t window = start + q;
            const bool here = q >= 0 && q < p.out[1] && window >= 0 && window < p.rows;
            const group<T, V> one = loaded<T, S, V>(
                columns + (((here ? window : 0) * p.kernel[0] + r) * p.kernel[1] + s) * p.channels + c);
#pragma unroll
            for (int k = 0; k < V; k++) {
                sum.v[k] += here ? one.v[k] : (T)0;
            }
        }
    }
    S *to = x + ((n * p.in[0] + h) * p.in[1] + v) * p.pixel + p.channel + c;
    if (p.adds) {
        const group<T, V> old = loaded<T, S, V>(to);
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum.v[k] = old.v[k] + sum.v[k];
        }
    }
    stored<T, S, V>(to, sum);
}

template <typename T, int V>
static void launch_gather(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns)
{
    int64_t window = p->kernel[0] * p->kernel[1] * p->channels, most = DMI_CUDA_ITEMS / (window / V);
    divisors by = {};
    by.lanes = dmi_cuda_divide_by(p->channels / V);
    for (int a = 0; a < 2; a++) {
        by.kernel[a] = dmi_cuda_divide_by(p->kernel[a]);
        by.out[a] = dmi_cuda_divide_by(p->out[a]);
    }
    for (int64_t row = 0; row < p->rows; row += most) {
        int64_t items = (p->rows - row < most ? p->rows - row : most) * (window / V);
        launch_after(q, gather<T, V>, dim3(blocks_for(items, THREADS)), *p, by, (uint32_t)items, p->first + row,
                     (const T *)x, (T *)columns + row * window);
    }
}

void dmi_cuda_launch_windows(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns)
{
    if (p->channels == 0) {
        return;
    }
    int64_t group = 16 / dmi_dtype_bytes(p->dtype);
    bool grouped =
        (((uintptr_t)x | (uintptr_t)columns) & 15) == 0 && p->channels % group == 0 && p->pixel % group == 0;
    auto launch = p->dtype == DM_F64 ? (grouped ? launch_gather<double, 2> : launch_gather<double, 1>)
                  : dmi_dtype_bytes(p->dtype) == 2
                      ? (grouped ? launch_gather<uint16_t, 8> : launch_gather<uint16_t, 1>)
                      : (grouped ? launch_gather<float, 4> : launch_gather<float, 1>);
    launch(q, p, x, columns);
    dmi_cuda_launched(q, "windows");
}

template <typename T, typename S, int V>
static void launch_scatter(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                           const void *columns, void *x)
{
    const int64_t each = p->in[1] * (p->channels / V), most = DMI_CUDA_ITEMS / each, lines = samples * p->in[0];
    places by = {};
    by.lanes = dmi_cuda_divide_by(p->channels / V);
    for (int a = 0; a < 2; a++) {
        by.in[a] = dmi_cuda_divide_by(p->in[a]);
    }
    for (int64_t line = 0; line < lines; line += most) {
        const int64_t items = (lines - line < most ? lines - line : most) * each;
        launch_after(q, scatter<T, S, V>, dim3(blocks_for(items, THREADS)), *p, by, sample + line / p->in[0],
                     (uint32_t)(line % p->in[0]), (uint32_t)items, (const S *)columns, (S *)x);
    }
}

/* V channels at once where all are aligned. */
template <typename T, typename S, int V>
static void launch_back(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                        const void *columns, void *x)
{
    const bool grouped = (((uintptr_t)x | (uintptr_t)columns) & 15) == 0 && p->channels % V == 0 &&
                         p->pixel % V == 0 && p->channel % V == 0;
    (grouped ? launch_scatter<T, S, V> : launch_scatter<T, S, 1>)(q, p, sample, samples, columns, x);
}

void dmi_cuda_launch_windows_back(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                                  const void *columns, void *x)
{
    if (p->channels == 0) {
        return;
    }
    auto launch = p->dtype == DM_F64    ? launch_back<double, double, 2>
                  : p->dtype == DM_BF16 ? launch_back<float, bf16, 8>
                  : p->dtype == DM_F16  ? launch_back<float, f16, 8>
                                        : launch_back<float, float, 4>;
    launch(q, p, sample, samples, columns, x);
    dmi_cuda_launched(q, "windows_back");
}
