/* Convolutions forward on Hopper GPUs: which of them, and in which tiles. */
#include "kernels/dnn/hopper_cuda.h"
#include "kernels/gemm/fused_job.h"

#include <cuda_runtime_api.h>

/* NARROW: channels of a step, where they are no multiple of DMI_WEIGHTS_BOX: cuDNN's engines take 64 then too.
 * TILES: as many as fill a GPU. */
enum { NARROW = 48, TILES = 132, WIDE = 128, LESS_WIDE = 96 };

static int64_t units_of(int64_t length, int64_t unit)
{
    return (length + unit - 1) / unit;
}

static int64_t wide_of(const dmi_convolution *d)
{
    return d->out[2] <= LESS_WIDE ? LESS_WIDE : WIDE;
}

static int64_t tiles_of(const dmi_convolution *d)
{
    return units_of(d->dnn.samples * d->out[0] * d->out[1], DMI_FORWARD_PIXELS) *
           units_of(d->out[2], wide_of(d));
}

/* One tile has all outputs, for x is loaded for each tile, and most of a tile is of use. */
bool dmi_cuda_forward_takes(const dmi_queue *q, const dmi_convolution *d)
{
    return d->group == 1 && d->in[2] % NARROW == 0 && d->in[2] % DMI_WEIGHTS_BOX != 0 &&
           d->dnn.pitch[DMI_CUDNN_X] % 8 == 0 && d->dnn.pitch[DMI_CUDNN_Y] % 8 == 0 && d->out[2] <= WIDE &&
           d->out[2] * 4 >= wide_of(d) * 3 && tiles_of(d) >= TILES && dmi_cuda_hopper_serves(q, d);
}

void dmi_cuda_run_forward(dmi_queue *q, const dmi_convolution *d, const void *x, const void *w,
                          const void *bias, void *y)
{
    int64_t pixels = d->dnn.samples * d->out[0] * d->out[1], places = d->kernel[0] * d->kernel[1],
            pitch = dmi_cudnn_lines(d->in[2]);
    dmi_forward_job job = {.bias = bias,
                           .relu = d->relu && bias != NULL,
                           .wide = (int)wide_of(d),
                           .width = d->in[2] % DMI_WEIGHTS_BOX == 0 ? DMI_WEIGHTS_BOX : NARROW,
                           .outputs = (int32_t)d->out[2],
                           .pitch = (int32_t)pitch,
                           .columns = (int32_t)d->kernel[1]};
    job.across = (int32_t)units_of(d->out[2], job.wide);
    job.tiles = (int32_t)tiles_of(d);
    job.chunks = (int32_t)(d->in[2] / job.width);
    job.steps = (int32_t)places * job.chunks;
    for (int a = 0; a < 2; a++) {
        job.out[a] = (int32_t)d->out[a];
        job.pad[a] = (int32_t)d->pad[a];
        job.dilation[a] = (int32_t)d->dilation[a];
    }
    cudaError_t e = cudaDeviceGetAttribute(&job.blocks, cudaDevAttrMultiProcessorCount, q->device);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaDeviceGetAttribute", (int)e, cudaGetErrorString(e));
        return;
    }
    dmi_cuda_make_image_map(q, &job.x, d, x, d->in[2], d->dnn.pitch[DMI_CUDNN_X], DMI_FORWARD_PIXELS);
    dmi_cuda_make_map(q, &job.w, d->dnn.dtype, w, d->out[2], places * pitch, places * pitch, job.wide);
    dmi_cuda_make_map(q, &job.y, d->dnn.dtype, y, pixels, d->out[2], d->dnn.pitch[DMI_CUDNN_Y],
                      DMI_FORWARD_ROWS);
    if (q->error == 0) {
        dmi_cuda_launch_forward(q, &job, d->dnn.dtype);
    }
}
