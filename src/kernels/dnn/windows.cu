/* The windows of convolutions as the rows of a matrix (im2col), and back: each element of x adds up what its
 * copies have, in the order of the windows. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

enum { THREADS = DMI_CUDA_THREADS };

/* An item: V channels of one element of a window. */
template <typename T, int V>
static __global__ void __launch_bounds__(THREADS)
    gather(const dmi_cuda_windows p, int64_t items, const T *x, T *columns)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, lanes = p.channels / V;
    if (i >= items) {
        return;
    }
    int64_t c = i % lanes * V, s = i / lanes % p.kernel[1], r = i / lanes / p.kernel[1] % p.kernel[0],
            window = p.first + i / lanes / p.kernel[1] / p.kernel[0];
    int64_t q = window % p.out[1], at = window / p.out[1] % p.out[0], sample = window / p.out[1] / p.out[0];
    int64_t h = at * p.stride[0] - p.pad[0] + r * p.dilation[0],
            v = q * p.stride[1] - p.pad[1] + s * p.dilation[1];
    group<T, V> value = {};
    if (h >= 0 && h < p.in[0] && v >= 0 && v < p.in[1]) {
        value = *(const group<T, V> *)(x + ((sample * p.in[0] + h) * p.in[1] + v) * p.pixel + p.channel + c);
    }
    *(group<T, V> *)(columns + i * V) = value;
}

/* An item: one element of x. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    scatter(const dmi_cuda_windows p, int64_t sample, int64_t items, const T *columns, T *x)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    int64_t c = i % p.channels, v = i / p.channels % p.in[1], h = i / p.channels / p.in[1] % p.in[0],
            n = sample + i / p.channels / p.in[1] / p.in[0];
    T sum = 0;
    for (int r = p.kernel[0] - 1; r >= 0; r--) {
        int64_t from = h + p.pad[0] - (int64_t)r * p.dilation[0], at = from / p.stride[0];
        if (from < 0 || from % p.stride[0] != 0 || at >= p.out[0]) {
            continue;
        }
        for (int s = p.kernel[1] - 1; s >= 0; s--) {
            int64_t left = v + p.pad[1] - (int64_t)s * p.dilation[1], q = left / p.stride[1];
            int64_t row = (n * p.out[0] + at) * p.out[1] + q - p.first;
            if (left >= 0 && left % p.stride[1] == 0 && q < p.out[1] && row >= 0 && row < p.rows) {
                sum += columns[((row * p.kernel[0] + r) * p.kernel[1] + s) * p.channels + c];
            }
        }
    }
    x[((n * p.in[0] + h) * p.in[1] + v) * p.pixel + p.channel + c] += sum;
}

template <typename T, int V>
static void launch_gather(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns)
{
    int64_t items = p->rows * p->kernel[0] * p->kernel[1] * p->channels / V;
    gather<T, V>
        <<<blocks_for(items, THREADS), THREADS, 0, stream_of(q)>>>(*p, items, (const T *)x, (T *)columns);
}

void dmi_cuda_launch_windows(dmi_queue *q, const dmi_cuda_windows *p, const void *x, void *columns)
{
    int64_t group = p->dtype == DM_F64 ? 2 : 4;
    bool grouped =
        (((uintptr_t)x | (uintptr_t)columns) & 15) == 0 && p->channels % group == 0 && p->pixel % group == 0;
    auto launch = p->dtype == DM_F64 ? (grouped ? launch_gather<double, 2> : launch_gather<double, 1>)
                                     : (grouped ? launch_gather<float, 4> : launch_gather<float, 1>);
    launch(q, p, x, columns);
    dmi_cuda_launched(q, "windows");
}

template <typename T>
static void launch_scatter(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                           const void *columns, void *x)
{
    int64_t items = samples * p->in[0] * p->in[1] * p->channels;
    scatter<T><<<blocks_for(items, THREADS), THREADS, 0, stream_of(q)>>>(*p, sample, items, (const T *)columns,
                                                                         (T *)x);
}

void dmi_cuda_launch_windows_back(dmi_queue *q, const dmi_cuda_windows *p, int64_t sample, int64_t samples,
                                  const void *columns, void *x)
{
    (p->dtype == DM_F64 ? launch_scatter<double> : launch_scatter<float>)(q, p, sample, samples, columns, x);
    dmi_cuda_launched(q, "windows_back");
}
