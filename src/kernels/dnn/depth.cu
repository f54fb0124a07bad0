/* Space to depth: blocks of pixels become channels, so that a convolution of few channels by strides becomes
 * one of many channels without strides. Weights are turned in the same way. */
extern "C" {
#include "kernels/dnn/dnn_cuda.h"
}
#include "kernels/cuda/common.cuh"

enum { THREADS = DMI_CUDA_THREADS, V = 8 };

struct divisors {
    dmi_cuda_divisor lanes, out[2], line; /* line: elements of a row of a block */
};

/* An item: V channels of a folded pixel. Elements beyond the image and the channels that fill up are 0. */
static __global__ void __launch_bounds__(THREADS)
    fold(const dmi_cuda_depth p, const divisors by, uint32_t items, const uint16_t *x, uint16_t *folded)
{
    after_previous();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    uint32_t pixel = divided(i, by.lanes), e = (i - pixel * by.lanes.extent) * V,
             row = divided(pixel, by.out[1]);
    uint32_t n = divided(row, by.out[0]);
    int v = (int)(pixel - row * by.out[1].extent), h = (int)(row - n * by.out[0].extent);
    int first = (v * p.block[1] - p.pad[1]) * p.channels, width = p.in[1] * p.channels;
    group<uint16_t, V> made;
#pragma unroll
    for (int k = 0; k < V; k++) {
        uint32_t a = divided(e + k, by.line);
        int line = h * p.block[0] + (int)a - p.pad[0], at = first + (int)(e + k - a * by.line.extent);
        bool inside = (int)a < p.block[0] && line >= 0 && line < p.in[0] && at >= 0 && at < width;
        made.v[k] = inside ? x[((int64_t)n * p.in[0] + line) * width + at] : (uint16_t)0;
    }
    *(group<uint16_t, V> *)(folded + (int64_t)i * V) = made;
}

void dmi_cuda_launch_depth(dmi_queue *q, const dmi_cuda_depth *p, const void *x, void *folded)
{
    divisors by = {};
    int64_t lanes = p->depth / V, sample = (int64_t)p->out[0] * p->out[1] * lanes;
    int64_t most = DMI_CUDA_ITEMS / (sample > 0 ? sample : 1),
            size = (int64_t)p->in[0] * p->in[1] * p->channels;
    by.lanes = dmi_cuda_divide_by(lanes);
    by.line = dmi_cuda_divide_by((int64_t)p->block[1] * p->channels);
    for (int a = 0; a < 2; a++) {
        by.out[a] = dmi_cuda_divide_by(p->out[a]);
    }
    for (int64_t n = 0; n < p->samples; n += most) {
        int64_t items = (p->samples - n < most ? p->samples - n : most) * sample;
        launch_after(q, fold, dim3(blocks_for(items, THREADS)), *p, by, (uint32_t)items,
                     (const uint16_t *)x + n * size, (uint16_t *)folded + n * sample * V);
    }
    dmi_cuda_launched(q, "depth");
}

/* An item: an element of x. */
static __global__ void __launch_bounds__(THREADS)
    unfold(const dmi_cuda_depth p, int64_t items, const uint16_t *folded, uint16_t *x)
{
    after_previous();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= items) {
        return;
    }
    int64_t c = i % p.channels, v = i / p.channels % p.in[1] + p.pad[1],
            h = i / p.channels / p.in[1] % p.in[0] + p.pad[0], n = i / p.channels / p.in[1] / p.in[0];
    int64_t e = (h % p.block[0] * p.block[1] + v % p.block[1]) * p.channels + c;
    x[i] = folded[((n * p.out[0] + h / p.block[0]) * p.out[1] + v / p.block[1]) * p.depth + e];
}

void dmi_cuda_launch_depth_back(dmi_queue *q, const dmi_cuda_depth *p, const void *folded, void *x)
{
    int64_t items = p->samples * p->in[0] * p->in[1] * p->channels;
    launch_after(q, unfold, dim3(blocks_for(items, THREADS)), *p, items, (const uint16_t *)folded,
                 (uint16_t *)x);
    dmi_cuda_launched(q, "depth_back");
}
