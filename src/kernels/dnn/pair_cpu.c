/* Losses between two arrays, and hinge losses. */
#include "kernels/dnn/dnn_cpu.h"

#include <dmath/layers.h>
#include <math.h>

#define IGNORED(name, type)                                                                                    \
    static bool is_ignored_##name(const dmi_labelled *d, type target)                                          \
    {                                                                                                          \
        return d->ignores && target == (type)d->ignore_label;                                                  \
    }
IGNORED(f32, float)
IGNORED(f64, double)

#define T float
#define FN(name) name##_f32
#include "kernels/dnn/pair_type_cpu.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "kernels/dnn/pair_type_cpu.h"
#undef T
#undef FN

/* The targets of the slice, and the normaliser. */
static const void *targets_of(const dmi_kernel_call *call, double *divisor)
{
    const dmi_labelled *d = call->desc;
    const char *target = dmi_dnn_at(call, 1);
    bool wide = d->dnn.dtype == DM_F64;
    int64_t valid = d->batch * d->places;
    for (int64_t i = 0; d->whole && i < d->batch * d->places; i++) {
        valid -= wide ? is_ignored_f64(d, ((const double *)(const void *)target)[i])
                      : is_ignored_f32(d, ((const float *)(const void *)target)[i]);
    }
    *divisor = dmi_labelled_divisor(d, valid);
    return d->whole && target ? target + d->dnn.first * d->places * (wide ? 8 : 4) : target;
}

dm_status dmi_pair_loss_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor, *sum = dmi_dnn_at(call, 2);
    const void *x = dmi_dnn_at(call, 0), *target = targets_of(call, &divisor);
    *sum = (d->dnn.dtype == DM_F64 ? pair_loss_f64(d, x, target) : pair_loss_f32(d, x, target)) / divisor;
    if (d->loss == DMI_LOSS_EUCLIDEAN) {
        *sum /= 2;
    }
    return DM_OK;
}

dm_status dmi_pair_back_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor;
    const void *x = dmi_dnn_at(call, 0), *target = targets_of(call, &divisor);
    void *dx = dmi_dnn_at(call, 2);
    if (d->dnn.dtype == DM_F64) {
        pair_gradient_f64(d, x, target, call->number[0].re / divisor, dx);
    } else {
        pair_gradient_f32(d, x, target, call->number[0].re / divisor, dx);
    }
    return DM_OK;
}

dm_status dmi_hinge_loss_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double divisor = dmi_labelled_divisor(d, 0), *sum = dmi_dnn_at(call, 2);
    const void *x = dmi_dnn_at(call, 0);
    const int32_t *label = dmi_dnn_at(call, 1);
    *sum = (d->dnn.dtype == DM_F64 ? hinge_loss_f64(d, x, label) : hinge_loss_f32(d, x, label)) / divisor;
    return DM_OK;
}

dm_status dmi_hinge_back_cpu(const dmi_kernel_call *call)
{
    const dmi_labelled *d = call->desc;
    double scale = call->number[0].re / dmi_labelled_divisor(d, 0);
    const void *x = dmi_dnn_at(call, 0);
    const int32_t *label = dmi_dnn_at(call, 1);
    void *dx = dmi_dnn_at(call, 2);
    if (d->dnn.dtype == DM_F64) {
        hinge_gradient_f64(d, x, label, scale, dx);
    } else {
        hinge_gradient_f32(d, x, label, scale, dx);
    }
    return DM_OK;
}
