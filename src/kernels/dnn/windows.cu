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

/* An item: one element of x. */
template <typename T, typename S>
static __global__ void __launch_bounds__(THREADS)
    scatter(const dmi_cuda_windows p, int64_t sample, int64_t items, const S *columns, S *x)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    const int64_t pixel = i / p.channels, line = pixel / p.in[1], n = sample + line / p.in[0];
    const int c = (int)(i - pixel * p.channels), v = (int)(pixel - line * p.in[1]), h = (int)(line % p.in[0]);
    T sum = 0;
    for (int r = p.kernel[0] - 1; r >= 0; r--) {
        int at = window_of(h + p.pad[0] - r * p.dilation[0], p.stride[0]);
        if (at < 0 || at >= p.out[0]) {
            continue;
        }
        const int64_t first = (n * p.out[0] + at) * p.out[1] - p.first;
        for (int s = p.kernel[1] - 1; s >= 0; s--) {
            const int q = window_of(v + p.pad[1] - s * p.dilation[1], p.stride[1]);
            const int64_t row = first + q;
            if (q >= 0 && q < p.out[1] && row >= 0 && row < p.rows) {
                sum += opened<T>(columns[((row * p.kernel[0] + r) * p.kernel[1] + s) * p.channels + c]);
            }
        }
    }
    S *to = x + ((n * p.in[0] + h) * p.in[1] + v) * p.pixel + p.channel + c;
    *to = closed<S>(opened<T>(*to) + sum);
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
        gather<T, V><<<blocks_for(items, THREADS), THREADS, 0, stream_of(q)>>>(
            *p, by, (uint32_t)items, p->first + row, (const T *)x, (T *)columns + row * window);
    }
}

void dmi_cuda_launch_windows(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns)
{
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

template <typename T, typename S>
static void launch_scatter(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                           const void *columns, void *x)
{
    int64_t items = samples * p->in[0] * p->in[1] * p->channels;
    scatter<T, S><<<blocks_for(items, THREADS), THREADS, 0, stream_of(q)>>>(*p, sample, items,
                                                                            (const S *)columns, (S *)x);
}

void dmi_cuda_launch_windows_back(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                                  const void *columns, void *x)
{
    auto launch = p->dtype == DM_F64    ? launch_scatter<double, double>
                  : p->dtype == DM_BF16 ? launch_scatter<float, bf16>
                  : p->dtype == DM_F16  ? launch_scatter<float, f16>
                                        : launch_scatter<float, float>;
    launch(q, p, sample, samples, columns, x);
    dmi_cuda_launched(q, "windows_back");
}
