/* Gradients of convolutions by the weights on Hopper GPUs: which of them, in which form and in how many parts.
 */
#include "kernels/dnn/hopper_cuda.h"
#include "kernels/gemm/fused_job.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>

/* Sums are cut for so many multiprocessors, whatever the GPU has: the order of a sum follows from the
 * descriptor. Parts that are written and added up cost as much as PART_STEPS. USED: percent of the time that
 * must be of use, else cuDNN is no slower; it copies the channels of groups. */
enum { MULTIPROCESSORS = 132, PART_STEPS = 16, USED = 55, USED_OF_GROUPS = 40 };

static int64_t units_of(int64_t length, int64_t unit)
{
    return (length + unit - 1) / unit;
}

/* May boxes of x be loaded for this convolution? The copy engine counts pixels beyond an image in 8 bits. */
static bool fits(const dmi_convolution *d)
{
    bool one = true, fits = d->group <= DMI_WEIGHTS_GROUPS && d->out[2] / d->group % 8 == 0 &&
                            d->dnn.samples > 0 && d->dnn.samples * d->in[0] * d->in[1] < INT32_MAX / 2 &&
                            d->dnn.samples * d->out[0] * d->out[1] < INT32_MAX / 2;
    for (int a = 0; a < 2; a++) {
        int64_t reach = d->dilation[a] * (d->kernel[a] - 1);
        fits = fits && d->stride[a] == 1 && d->pad[a] <= 127 && reach - d->pad[a] <= 128 && reach <= 255;
        one = one && d->kernel[a] == 1;
    }
    return fits && !one && dmi_dtype_bytes(d->dnn.dtype) == 2;
}

int64_t dmi_weights_plan(const dmi_convolution *d, int form, dmi_weights_job *job)
{
    const dmi_weights_form *f = &dmi_weights_forms[form];
    int64_t in = d->in[2] / d->group, out = d->out[2] / d->group, least = 0;
    if (in % f->width != 0) {
        return 0;
    }
    *job =
        (dmi_weights_job){.form = form,
                          .steps = (int32_t)units_of(d->dnn.samples * d->out[0] * d->out[1], DMI_WEIGHTS_STEP),
                          .outputs = (int32_t)out,
                          .channels = (int32_t)in,
                          .places = (int32_t)(d->kernel[0] * d->kernel[1]),
                          .columns = (int32_t)d->kernel[1],
                          .chunks = (int32_t)(in / f->width)};
    job->units = job->places * job->chunks;
    job->across = (int32_t)units_of(job->units, f->wide);
    job->down = (int32_t)units_of(out, (int64_t)f->high * DMI_WEIGHTS_BOX);
    job->tiles = (int32_t)d->group * job->across * job->down;
    for (int a = 0; a < 2; a++) {
        job->out[a] = (int32_t)d->out[a];
        job->pad[a] = (int32_t)d->pad[a];
        job->dilation[a] = (int32_t)d->dilation[a];
    }
    for (int32_t ranges = 1; ranges <= DMI_WEIGHTS_RANGES && ranges <= job->steps; ranges++) {
        int64_t rounds = units_of((int64_t)job->tiles * ranges, MULTIPROCESSORS),
                time = rounds * (units_of(job->steps, ranges) + PART_STEPS) * dmi_weights_part(f);
        if (least == 0 || time < least) {
            least = time;
            job->ranges = ranges;
        }
    }
    return least;
}

/* The form that takes least time, if enough of it is of use. */
static bool choose(const dmi_convolution *d, dmi_weights_job *job)
{
    int64_t least = 0, in = d->in[2] / d->group, out = d->out[2] / d->group;
    for (int form = 0; form < DMI_WEIGHTS_FORMS; form++) {
        dmi_weights_job made;
        int64_t time = dmi_weights_plan(d, form, &made);
        if (time > 0 && (least == 0 || time < least)) {
            least = time;
            *job = made;
        }
    }
    return least > 0 && d->group * out * in * job->places * job->steps >=
                            least * MULTIPROCESSORS / 100 * (d->group > 1 ? USED_OF_GROUPS : USED);
}

typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
                                 const cuuint64_t *extent, const cuuint64_t *stride, const int *lower,
                                 const int *upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *step, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill);

void dmi_cuda_make_image_map(dmi_queue *q, CUtensorMap *map, const dmi_convolution *d, const void *at,
                             int64_t channels, int64_t pitch, int pixels)
{
    static _Atomic(void *) entry; /* the driver's function: the same for all */
    void *f = atomic_load_explicit(&entry, memory_order_relaxed);
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    if (f == NULL &&
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &f, 12000, cudaEnableDefault, &found) ==
            cudaSuccess &&
        found == cudaDriverEntryPointSuccess) {
        atomic_store_explicit(&entry, f, memory_order_relaxed);
    }
    const cuuint64_t pixel = (cuuint64_t)pitch * 2, row = pixel * (cuuint64_t)d->in[1];
    const cuuint64_t extent[4] = {(cuuint64_t)channels, (cuuint64_t)d->in[1], (cuuint64_t)d->in[0],
                                  (cuuint64_t)d->dnn.samples},
                     stride[3] = {pixel, row, row * (cuuint64_t)d->in[0]};
    const cuuint32_t step[4] = {1, 1, 1, 1};
    int lower[2], upper[2]; /* columns first */
    for (int a = 0; a < 2; a++) {
        lower[1 - a] = -(int)d->pad[a];
        upper[1 - a] = (int)(d->pad[a] - d->dilation[a] * (d->kernel[a] - 1));
    }
    CUresult code =
        f == NULL
            ? CUDA_ERROR_NOT_FOUND
            : ((encode_function *)f)(
                  map,
                  d->dnn.dtype == DM_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                  4, (void *)(uintptr_t)at, extent, stride, lower, upper, DMI_WEIGHTS_BOX, (cuuint32_t)pixels,
                  step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) {
        dmi_cuda_failed(q, "cuTensorMapEncodeIm2col", (int)code, "a convolution's map of images");
    }
}

bool dmi_cuda_hopper_serves(const dmi_queue *q, const dmi_convolution *d)
{
    return fits(d) && q->capability == 90 && dmi_cuda_hopper_built();
}

int64_t dmi_weights_bytes(const dmi_weights_job *job)
{
    return (int64_t)job->tiles * job->ranges * dmi_weights_part(&dmi_weights_forms[job->form]) *
           (int64_t)sizeof(float);
}

void dmi_cuda_run_weights_job(dmi_queue *q, const dmi_convolution *d, dmi_weights_job *job, const void *x,
                              int64_t x_pitch, const void *dy)
{
    for (int64_t g = 0; g < d->group; g++) {
        dmi_cuda_make_map(q, &job->dy[g], d->dnn.dtype, (const char *)dy + g * job->outputs * 2,
                          d->dnn.samples * d->out[0] * d->out[1], job->outputs, d->out[2], DMI_WEIGHTS_STEP);
        dmi_cuda_make_image_map(q, &job->x[g], d, (const char *)x + g * job->channels * 2, job->channels,
                                x_pitch, DMI_WEIGHTS_STEP);
    }
    if (q->error == 0) {
        dmi_cuda_launch_weights(q, job, d->dnn.dtype);
    }
}

bool dmi_cuda_weights_takes(const dmi_queue *q, const dmi_convolution *d, int64_t room)
{
    dmi_weights_job job;
    return dmi_cuda_hopper_serves(q, d) && choose(d, &job) && dmi_weights_bytes(&job) <= room;
}

void dmi_cuda_run_weights(dmi_queue *q, const dmi_convolution *d, const void *x, int64_t x_pitch,
                          const void *dy, void *w, void *workspace)
{
    dmi_weights_job job;
    if (choose(d, &job)) {
        job.parts = workspace;
        job.w = w;
        dmi_cuda_run_weights_job(q, d, &job, x, x_pitch, dy);
    }
}
