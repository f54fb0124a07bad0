/* Local response normalisation: A. Krizhevsky et al., "ImageNet classification with deep convolutional neural
 * networks", 2012, with Caffe's factors. */
#include "kernels/dnn/dnn_cpu.h"

#include <math.h>
#include <string.h>

typedef struct numbers {
    double k, factor, beta; /* factor: alpha by the elements of a window */
} numbers;

static float root_f32(float x)
{
    return sqrtf(x);
}

static double root_f64(double x)
{
    return sqrt(x);
}

static float power_f32(float x, float y)
{
    return powf(x, y);
}

static double power_f64(double x, double y)
{
    return pow(x, y);
}

#define T float
#define FN(name) name##_f32
#include "kernels/dnn/lrn_type_cpu.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "kernels/dnn/lrn_type_cpu.h"
#undef T
#undef FN

static numbers numbers_of(const dmi_kernel_call *call)
{
    const dmi_lrn *d = call->desc;
    double window = (double)d->size * (double)(d->within ? d->size : 1);
    return (numbers){.k = d->within ? 1 : call->number[2].re,
                     .factor = call->number[0].re / window,
                     .beta = call->number[1].re};
}

dm_status dmi_lrn_cpu(const dmi_kernel_call *call)
{
    const dmi_lrn *d = call->desc;
    numbers p = numbers_of(call);
    const void *x = dmi_dnn_at(call, 0);
    void *y = dmi_dnn_at(call, 1), *scratch = dmi_dnn_at(call, 2);
    for (int64_t i = 0; i < d->dnn.count[0]; i += d->unit) {
        if (d->dnn.dtype == DM_F64) {
            forward_f64(d, &p, (const double *)x + i, (double *)y + i, scratch);
        } else {
            forward_f32(d, &p, (const float *)x + i, (float *)y + i, scratch);
        }
    }
    return DM_OK;
}

dm_status dmi_lrn_back_cpu(const dmi_kernel_call *call)
{
    const dmi_lrn *d = call->desc;
    numbers p = numbers_of(call);
    const void *x = dmi_dnn_at(call, 0), *dy = dmi_dnn_at(call, 1);
    void *dx = dmi_dnn_at(call, 2), *scratch = dmi_dnn_at(call, 3);
    for (int64_t i = 0; i < d->dnn.count[0]; i += d->unit) {
        if (d->dnn.dtype == DM_F64) {
            backward_f64(d, &p, (const double *)x + i, (const double *)dy + i, (double *)dx + i, scratch);
        } else {
            backward_f32(d, &p, (const float *)x + i, (const float *)dy + i, (float *)dx + i, scratch);
        }
    }
    return DM_OK;
}
