/* Boxes for the kernel `momentum`. */
#include "kernels/box/convert.h"
#include "kernels/ewise/momentum_args.h"

static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    const dmi_kernel_call *call = context;
    const dmi_momentum *d = call->desc;
    const dmi_number *number = call->number;
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    bool dense = part->ndim == 1 && part->stride[0][0] == 1 && part->stride[1][0] == 1;
    dmi_cuda_momentum m = {.dtype = d->dtype,
                           .rounded = d->rounded,
                           .scale = number[DMI_MOMENTUM_SCALE].re,
                           .decay = number[DMI_MOMENTUM_DECAY].re,
                           .momentum = number[DMI_MOMENTUM_MOMENTUM].re,
                           .rate = number[DMI_MOMENTUM_RATE].re,
                           .wide = d->rate == DM_F64,
                           .decays = d->decays,
                           .l1 = d->l1,
                           .count = dense ? part->extent[0] : 0};
    dmi_cuda_box box;
    void *copy = NULL;
    if (d->rounded != 0) {
        copy = dmi_at_mut(call->at[dmi_momentum_copy(d)], at[1] * dmi_dtype_bytes(d->rounded));
    }
    if (d->rate != 0) {
        m.element = dmi_at(call->at[3], d->rate_offset * dmi_dtype_bytes(d->rate));
    }
    dmi_cuda_box_make(part, &box);
    dmi_cuda_launch_momentum(call->queue, &m, &box, dmi_at(call->at[0], at[0] * bytes),
                             dmi_at_mut(call->at[1], at[1] * bytes), dmi_at_mut(call->at[2], at[1] * bytes),
                             copy);
}

dm_status dmi_momentum_cuda(const dmi_kernel_call *call)
{
    dmi_kernel_call same = *call;
    dmi_box box;
    int64_t at[DMI_BOX_SIDES];
    if (dmi_momentum_box(call->desc, &box, at)) {
        dmi_cuda_split(&box, at, false, launch_part, &same);
    }
    return DM_OK;
}
