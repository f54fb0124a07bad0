/* Softmax with loss, its gradient, and accuracy. */
#include "kernels/dnn/dnn_cpu.h"

#include <dmath/layers.h>
#include <float.h>
#include <math.h>
#include <string.h>

static bool is_ignored(const dmi_labelled *d, int32_t label)
{
    return d->ignores && label == d->ignore_label;
}

static float exponential_f32(float x)
{
    return expf(x);
}

static double exponential_f64(double x)
{
    return exp(x);
}

#define T float
#define FN(name) name##_f32
#include "kernels/dnn/labelled_type_cpu.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "kernels/dnn/labelled_type_cpu.h"
#undef T
#undef FN

double dmi_labelled_divisor(const dmi_labelled *d, int64_t valid)
{
    int64_t n = d->normalize == DM_NORMALIZE_FULL      ? d->batch * d->places
                : d->normalize == DM_NORMALIZE_VALID   ? valid
                : d->normalize == DM_NORMALIZE_SAMPLES ? d->batch
                                                       : 1;
    return (double)DMI_MAX(n, 1);
}

/* The labels of the slice, and the normaliser. */
static const int32_t *labels_of(const dmi_kernel_call *call, double *divisor)
{
    const dmi_labelled *d = call->desc;
    const int32_t *label = dmi_dnn_at(call, 1);
    int64_t valid = d->batch * d->places;
    for (int64_t i = 0; d->whole && i < d->batch * d->places; i++) {
        valid -= is_ignored(d, label[i]);
    }
    *divisor = dmi_labelled_divisor(d, valid);
    return d->whole && label ? label + d->dnn.first * d->places : label;
}

dm_status dmi_softmax_loss_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor, *sum = dmi_dnn_at(call, 2);
    const int32_t *label = labels_of(call, &divisor);
    const void *x = dmi_dnn_at(call, 0);
    void *prob = dmi_dnn_at(call, 3);
    if (d->dnn.dtype == DM_F64) {
        loss_f64(d, x, label, prob, sum);
    } else {
        loss_f32(d, x, label, prob, sum);
    }
    *sum /= divisor;
    return DM_OK;
}

dm_status dmi_softmax_back_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor;
    const int32_t *label = labels_of(call, &divisor);
    const void *prob = dmi_dnn_at(call, 0);
    void *dx = dmi_dnn_at(call, 2);
    double scale = call->number[0].re / divisor;
    if (d->dnn.dtype == DM_F64) {
        gradient_f64(d, prob, label, scale, dx);
    } else {
        gradient_f32(d, prob, label, scale, dx);
    }
    return DM_OK;
}

dm_status dmi_accuracy_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor, *sum = dmi_dnn_at(call, 2);
    const int32_t *label = labels_of(call, &divisor);
    const void *x = dmi_dnn_at(call, 0);
    *sum = (d->dnn.dtype == DM_F64 ? correct_f64(d, x, label) : correct_f32(d, x, label)) / divisor;
    return DM_OK;
}
