/* Do all elements lie in a range? And what is said where they do not. */
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

/* n elements that are `stride` apart, n at most DMI_CHUNK. */
static bool inside(dm_dtype dtype, const void *x, int64_t stride, int64_t n, double low, double high)
{
    bool complex = dmi_dtype_is_complex(dtype), all = true;
    dmi_chunk buffer;
    const double *v = dmi_row_load(dtype, x, stride, complex ? DM_C128 : DM_F64, &buffer, n);
    for (int64_t i = 0; i < (complex ? 2 * n : n); i++) {
        all = all && v[i] >= low && v[i] <= high;
    }
    return all;
}

dm_status dmi_within_cpu(const dmi_kernel_call *call)
{
    const dmi_within *d = call->desc;
    dmi_box box = {.ndim = d->ndim, .sides = 1};
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {d->offset}, bytes = dmi_dtype_bytes(d->dtype);
    double bound[2];
    for (int k = 0; k < d->ndim; k++) {
        if (d->extent[k] == 0) {
            return DM_OK;
        }
        box.extent[k] = d->extent[k];
        box.stride[0][k] = d->stride[k];
    }
    for (int i = 0; i < 2; i++) {
        bound[i] = d->bound[i] > 0 ? *(const double *)call->at[d->bound[i]] : call->number[i].re;
    }
    dmi_box_simplify(&box, 0);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], stride = box.stride[0][inner];
    do {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            if (!inside(d->dtype, dmi_at(call->at[0], (at[0] + i * stride) * bytes), stride,
                        DMI_MIN(DMI_CHUNK, n - i), bound[0], bound[1])) {
                *call->status = 1;
                return DM_OK;
            }
        }
    } while (dmi_box_next(&box, inner, index, at));
    return DM_OK;
}

dm_status dmi_within_failed(const void *desc, uint32_t status)
{
    (void)desc, (void)status;
    return dmi_fail(DM_ERR_VALUE, "x has elements that are NaN or outside the range");
}
