/* Boxes for the kernel `within`. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"

static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    const dmi_kernel_call *call = context;
    const dmi_within *d = call->desc;
    dmi_cuda_box box;
    dmi_cuda_bounds bounds = {.value = {call->number[0].re, call->number[1].re}};
    for (int i = 0; i < 2; i++) {
        bounds.at[i] = d->bound[i] > 0 ? call->at[d->bound[i]] : NULL;
    }
    dmi_cuda_box_make(part, &box);
    dmi_cuda_launch_within(call->queue, d->dtype, &box, dmi_at(call->at[0], at[0] * dmi_dtype_bytes(d->dtype)),
                           &bounds, call->status);
}

dm_status dmi_within_cuda(const dmi_kernel_call *call)
{
    const dmi_within *d = call->desc;
    dmi_kernel_call same = *call;
    dmi_box box = {.ndim = d->ndim, .sides = 1};
    int64_t at[DMI_BOX_SIDES] = {d->offset};
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0) {
            return DM_OK;
        }
        box.extent[k] = d->extent[k];
        box.stride[0][k] = d->stride[k];
    }
    dmi_box_simplify(&box, 0);
    dmi_cuda_split(&box, at, false, launch_part, &same);
    return DM_OK;
}
