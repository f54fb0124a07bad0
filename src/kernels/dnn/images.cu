/* Images of bytes as the input of a net: an item is a pixel of y. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

enum { THREADS = DMI_CUDA_THREADS };

struct divisors {
    dmi_cuda_divisor columns, rows;
};

static __device__ __forceinline__ int within(int at, int most)
{
    return at < 0 ? 0 : at > most ? most : at;
}

template <typename S, typename T, typename X>
static __global__ void __launch_bounds__(THREADS)
    images(const dmi_cuda_images p, const divisors by, uint32_t items, T scale, const X *x,
           const int32_t *places, const T *mean, S *y)
{
    uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= items) {
        return;
    }
    uint32_t line = divided(item, by.columns), n = divided(line, by.rows);
    int j = (int)(item - line * by.columns.extent), i = (int)(line - n * by.rows.extent);
    int row = within(places[3 * (int64_t)n], p.whole[0] - p.out[0]),
        column = within(places[3 * (int64_t)n + 1], p.whole[1] - p.out[1]);
    if (places[3 * (int64_t)n + 2] != 0) {
        j = p.out[1] - 1 - j;
    }
    int64_t size = (int64_t)p.in[0] * p.in[1], area = (int64_t)p.whole[0] * p.whole[1];
    int64_t at =
        (int64_t)(within(row, p.in[0] - p.out[0]) + i) * p.in[1] + within(column, p.in[1] - p.out[1]) + j;
    int64_t of_mean = p.plane ? (int64_t)(row + i) * p.whole[1] + column + j : 0;
    x += (int64_t)n * p.channels * size;
    y += (int64_t)item * p.channels;
    for (int c = 0; c < p.channels; c++) {
        T m = mean == NULL ? (T)0 : p.plane ? mean[c * area + of_mean] : mean[c];
        y[c] = closed<S>(((T)x[c * size + at] - m) * scale);
    }
}

template <typename S, typename T, typename X>
static void launch(dmi_queue *q, const dmi_cuda_images *p, double scale, const X *x, const int32_t *places,
                   const T *mean, S *y)
{
    divisors by = {dmi_cuda_divide_by(p->out[1]), dmi_cuda_divide_by(p->out[0])};
    const int64_t pixels = (int64_t)p->out[0] * p->out[1], size = (int64_t)p->in[0] * p->in[1];
    const int64_t most = pixels > 0 && DMI_CUDA_ITEMS > pixels ? DMI_CUDA_ITEMS / pixels : 1;
    for (int64_t n = 0; n < p->samples && pixels > 0; n += most) {
        int64_t items = (p->samples - n < most ? p->samples - n : most) * pixels;
        images<S, T, X><<<blocks_for(items, THREADS), THREADS, 0, stream_of(q)>>>(
            *p, by, (uint32_t)items, (T)scale, x + n * p->channels * size, places + 3 * n, mean,
            y + n * pixels * p->channels);
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
