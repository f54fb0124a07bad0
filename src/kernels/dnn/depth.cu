/* Space to depth: blocks of pixels become channels, so that a convolution of few channels by strides becomes
 * one of many channels without strides. Weights are turned in the same way: once for each column of y that a
 * block serves, as far to the right as its window lies. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/dnn/stored.cuh"

enum { THREADS = DMI_CUDA_THREADS, V = 8 };

struct divisors {
    dmi_cuda_divisor lanes, out[2], line, samples; /* line: elements of a row of a block */
};

/* An item: V channels of a folded pixel. Elements beyond the image and the channels that fill up are 0. EVEN:
 * they are of one row of the block. */
template <bool EVEN>
static __global__ void __launch_bounds__(THREADS)
    fold(const dmi_cuda_depth p, const divisors by, uint32_t items, uint32_t sample, const uint16_t *x,
         uint16_t *folded)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    uint32_t pixel = divided(i, by.lanes), e = (i - pixel * by.lanes.extent) * V,
             row = divided(pixel, by.out[1]);
    uint32_t of = divided(row, by.out[0]), turn = divided(of + sample, by.samples);
    int v = (int)(pixel - row * by.out[1].extent), h = (int)(row - of * by.out[0].extent);
    int first = (v * p.block[1] - p.pad[1] - (int)turn * p.shift) * p.channels, width = p.in[1] * p.channels;
    int64_t n = of + sample - turn * by.samples.extent;
    group<uint16_t, V> made;
    uint32_t a = divided(e, by.line);
#pragma unroll
    for (int k = 0; k < V; k++) {
        a = EVEN ? a : divided(e + k, by.line);
        int line = h * p.block[0] + (int)a - p.pad[0], at = first + (int)(e + k - a * by.line.extent);
        bool inside = (int)a < p.block[0] && line >= 0 && line < p.in[0] && at >= 0 && at < width;
        made.v[k] = inside ? x[(n * p.in[0] + line) * width + at] : (uint16_t)0;
    }
    *(group<uint16_t, V> *)(folded + (int64_t)pixel * p.pitch + e) = made;
}

void dmi_cuda_launch_depth(dmi_queue *q, const dmi_cuda_depth *p, const void *x, void *folded)
{
    divisors by = {};
    int64_t lanes = p->depth / V, sample = (int64_t)p->out[0] * p->out[1] * lanes, all = p->samples * p->turns;
    int64_t most = DMI_CUDA_ITEMS / (sample > 0 ? sample : 1), line = (int64_t)p->block[1] * p->channels;
    by.lanes = dmi_cuda_divide_by(lanes);
    by.line = dmi_cuda_divide_by(line);
    by.samples = dmi_cuda_divide_by(p->samples);
    for (int a = 0; a < 2; a++) {
        by.out[a] = dmi_cuda_divide_by(p->out[a]);
    }
    for (int64_t n = 0; n < all; n += most) {
        int64_t items = (all - n < most ? all - n : most) * sample;
        launch_after(q, line % V == 0 ? fold<true> : fold<false>, dim3(blocks_for(items, THREADS)), *p, by,
                     (uint32_t)items, (uint32_t)n, (const uint16_t *)x,
                     (uint16_t *)folded + n * p->out[0] * p->out[1] * p->pitch);
    }
    dmi_cuda_launched(q, "depth");
}

/* An item: an element of x. */
template <typename S>
static __global__ void __launch_bounds__(THREADS)
    unfold(const dmi_cuda_depth p, int64_t items, const S *folded, S *x)
{
    after_previous();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    int64_t c = i % p.channels, column = i / p.channels % p.in[1] + p.pad[1],
            h = i / p.channels / p.in[1] % p.in[0] + p.pad[0], n = i / p.channels / p.in[1] / p.in[0];
    float sum = 0;
    for (int t = 0; t < p.turns; t++) {
        int64_t v = column + t * p.shift, sample = t * p.samples + n;
        int64_t e = (h % p.block[0] * p.block[1] + v % p.block[1]) * p.channels + c;
        float part = opened<float>(
            folded[((sample * p.out[0] + h / p.block[0]) * p.out[1] + v / p.block[1]) * p.depth + e]);
        sum = t == 0 ? part : sum + part;
    }
    x[i] = closed<S>(sum);
}

template <typename S>
static void launch_back(dmi_queue *q, const dmi_cuda_depth *p, const void *folded, void *x)
{
    int64_t items = p->samples * p->in[0] * p->in[1] * p->channels;
    launch_after(q, unfold<S>, dim3(blocks_for(items, THREADS)), *p, items, (const S *)folded, (S *)x);
}

void dmi_cuda_launch_depth_back(dmi_queue *q, const dmi_cuda_depth *p, dm_dtype dtype, const void *folded,
                                void *x)
{
    (dtype == DM_F16 ? launch_back<f16> : launch_back<bf16>)(q, p, folded, x);
    dmi_cuda_launched(q, "depth_back");
}

static __global__ void __launch_bounds__(THREADS) repeat(int64_t items, int64_t count, const float *x, float *y)
{
    after_previous();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < items) {
        y[i] = x[i % count];
    }
}

void dmi_cuda_launch_turns(dmi_queue *q, int64_t count, int64_t turns, const float *x, float *y)
{
    launch_after(q, repeat, dim3(blocks_for(count * turns, THREADS)), count * turns, count, x, y);
    dmi_cuda_launched(q, "turns");
}
