/* Images of bytes as the input of a net. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

enum { THREADS = DMI_CUDA_THREADS, PIXELS = 4 }; /* PIXELS: of a thread of images_of */

struct divisors {
    dmi_cuda_divisor columns, rows;
};

static __device__ __forceinline__ int within(int at, int most)
{
    return at < 0 ? 0 : at > most ? most : at;
}

/* Where a pixel of y comes from: its first channel in x and in the mean. */
struct source {
    int64_t x, mean;
};

static __device__ __forceinline__ source source_of(const dmi_cuda_images &p, const divisors &by, uint32_t pixel,
                                                   const int32_t *places)
{
    const uint32_t line = divided(pixel, by.columns), n = divided(line, by.rows);
    const int j = (int)(pixel - line * by.columns.extent), i = (int)(line - n * by.rows.extent);
    const int row = within(places[3 * (int64_t)n], p.whole[0] - p.out[0]),
              column = within(places[3 * (int64_t)n + 1], p.whole[1] - p.out[1]);
    const int at = places[3 * (int64_t)n + 2] != 0 ? p.out[1] - 1 - j : j;
    return {(int64_t)n * p.channels * p.in[0] * p.in[1] +
                (int64_t)(within(row, p.in[0] - p.out[0]) + i) * p.in[1] + within(column, p.in[1] - p.out[1]) +
                at,
            p.plane ? (int64_t)(row + i) * p.whole[1] + column + at : 0};
}

template <typename T, typename X>
static __device__ __forceinline__ T value_of(const dmi_cuda_images &p, const source &from, int c, T scale,
                                             const X *x, const T *mean)
{
    const int64_t size = (int64_t)p.in[0] * p.in[1], area = p.plane ? (int64_t)p.whole[0] * p.whole[1] : 1;
    return ((T)x[c * size + from.x] - (mean == NULL ? (T)0 : mean[c * area + from.mean])) * scale;
}

/* An item is a pixel of y. */
template <typename S, typename T, typename X>
static __global__ void __launch_bounds__(THREADS)
    images(const dmi_cuda_images p, const divisors by, uint32_t items, T scale, const X *x,
           const int32_t *places, const T *mean, S *y)
{
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= items) {
        return;
    }
    const source from = source_of(p, by, item, places);
    for (int c = 0; c < p.channels; c++) {
        y[(int64_t)item * p.channels + c] = closed<S>(value_of(p, from, c, scale, x, mean));
    }
}

/* C channels, y aligned: neighbours in a warp read neighbours of each channel. They meet in shared memory, and
 * leave as they lie in y, in pieces of 16 bytes. */
template <typename S, typename T, typename X, int C>
static __global__ void __launch_bounds__(THREADS)
    images_of(const dmi_cuda_images p, const divisors by, uint32_t items, T scale, const X *x,
              const int32_t *places, const T *mean, S *y)
{
    enum { EACH = PIXELS * THREADS, WHOLE = 16 / sizeof(S) };
    __shared__ alignas(16) char memory[EACH * C * sizeof(S)];
    S *tile = (S *)memory;
    const uint32_t first = blockIdx.x * EACH, count = items - first < EACH ? items - first : EACH;
    T value[PIXELS][C] = {};
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
        const uint32_t at = k * THREADS + threadIdx.x;
        if (at < count) {
            const source from = source_of(p, by, first + at, places);
#pragma unroll
            for (int c = 0; c < C; c++) {
                value[k][c] = value_of(p, from, c, scale, x, mean);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
            tile[(k * THREADS + threadIdx.x) * C + c] = closed<S>(value[k][c]);
        }
    }
    __syncthreads();
    y += (int64_t)first * C;
    const uint32_t pieces = count * C / WHOLE;
    for (uint32_t i = threadIdx.x; i < pieces; i += THREADS) {
        ((uint4 *)y)[i] = ((const uint4 *)tile)[i];
    }
    for (uint32_t i = pieces * WHOLE + threadIdx.x; i < count * C; i += THREADS) {
        y[i] = tile[i];
    }
}

template <typename S, typename T, typename X>
static void launch(dmi_queue *q, const dmi_cuda_images *p, double scale, const X *x, const int32_t *places,
                   const T *mean, S *y)
{
    const divisors by = {dmi_cuda_divide_by(p->out[1]), dmi_cuda_divide_by(p->out[0])};
    const int64_t pixels = (int64_t)p->out[0] * p->out[1], size = (int64_t)p->in[0] * p->in[1];
    const int64_t most = pixels > 0 && DMI_CUDA_ITEMS > pixels ? DMI_CUDA_ITEMS / pixels : 1;
    for (int64_t n = 0; n < p->samples && pixels > 0; n += most) {
        const int64_t items = (p->samples - n < most ? p->samples - n : most) * pixels;
        S *to = y + n * pixels * p->channels;
        const bool together = (uintptr_t)to % 16 == 0 && (p->channels == 1 || p->channels == 3);
        auto kernel = !together          ? images<S, T, X>
                      : p->channels == 1 ? images_of<S, T, X, 1>
                                         : images_of<S, T, X, 3>;
        kernel<<<blocks_for(items, together ? PIXELS * THREADS : THREADS), THREADS, 0, stream_of(q)>>>(
            *p, by, (uint32_t)items, (T)scale, x + n * p->channels * size, places + 3 * n, mean, to);
    }
    dmi_cuda_launched(q, "images");
}

template <typename S, typename T>
static void launch_from(dmi_queue *q, const dmi_cuda_images *p, double scale, const void *x, const void *places,
                        const void *mean, void *y)
{
    if (p->bytes) {
        launch<S, T, uint8_t>(q, p, scale, (const uint8_t *)x, (const int32_t *)places, (const T *)mean,
                              (S *)y);
    } else {
        launch<S, T, T>(q, p, scale, (const T *)x, (const int32_t *)places, (const T *)mean, (S *)y);
    }
}

void dmi_cuda_launch_images(dmi_queue *q, const dmi_cuda_images *p, double scale, const void *x,
                            const void *places, const void *mean, void *y)
{
    auto launch = p->dtype == DM_F64    ? launch_from<double, double>
                  : p->dtype == DM_BF16 ? launch_from<bf16, float>
                  : p->dtype == DM_F16  ? launch_from<f16, float>
                                        : launch_from<float, float>;
    launch(q, p, scale, x, places, mean, y);
}
