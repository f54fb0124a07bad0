/* Who holds the elements that indices name: counts, and the indices in the order of their holders. */
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

#include <string.h>

/* Row-major number, in the whole array, of the element of a region at these ordinals. */
static int64_t number_of(const dmi_index_count *d, const int64_t *ordinal)
{
    int64_t number = 0;
    for (int k = 0; k < d->region.ndim; k++) {
        number = number * d->shape[k] + dmi_dimset_index(&d->region.dim[k], ordinal[k]);
    }
    return number;
}

/* Are they all inside, as they mostly are? Of dense indices of two types. False: some may be outside. */
#define ALL_INSIDE(type)                                                                                       \
    for (int64_t k = 0; k < d->region.count; k++) {                                                            \
        const type i = ((const type *)indices)[k];                                                             \
        outside |= (i < -n) | (i >= n);                                                                        \
    }
static bool all_inside(const dmi_index_count *d, const void *indices)
{
    const int64_t n = d->owner.n;
    bool outside = d->region.ndim != 1 || d->region.stride[0] != 1 || d->owner.mode != DMI_INDEX_RAISE;
    if (!outside && d->dtype == DM_I64) {
        ALL_INSIDE(int64_t)
    } else if (!outside && d->dtype == DM_I32) {
        ALL_INSIDE(int32_t)
    } else {
        return false;
    }
    return !outside;
}

dm_status dmi_index_count_cpu(const dmi_kernel_call *call)
{
    const dmi_index_count *d = call->desc;
    int64_t *row = call->at[0], ordinal[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {0};
    dmi_box box = {.ndim = d->region.ndim, .sides = 1};
    if (d->first) {
        memset(row, 0, (size_t)(1 + d->owner.g) * sizeof *row);
        row[0] = INT64_MAX;
    }
    if (d->region.count == 0) {
        return DM_OK;
    }
    for (int k = 0; k < box.ndim; k++) {
        box.extent[k] = d->region.dim[k].count;
        box.stride[0][k] = d->region.stride[k];
    }
    at[0] = dmi_region_start(&d->region);
    if (d->owner.g == 1 && all_inside(d, dmi_at(call->at[1], at[0] * dmi_dtype_bytes(d->dtype)))) {
        row[1] += d->region.count;
        return DM_OK;
    }
    do {
        const void *p = dmi_at(call->at[1], at[0] * dmi_dtype_bytes(d->dtype));
        int64_t i = dmi_index_read(d->dtype, p, d->owner.mode, d->owner.n);
        if (i < 0) {
            row[0] = DMI_MIN(row[0], number_of(d, ordinal));
        } else {
            row[1 + dmi_index_holder(&d->owner, i)]++;
        }
    } while (dmi_box_next(&box, box.ndim, ordinal, at));
    return DM_OK;
}

dm_status dmi_index_sort_cpu(const dmi_kernel_call *call)
{
    const dmi_index_sort *d = call->desc;
    int64_t *sorted = call->at[1], *place = call->at[2], *start = call->at[3], sum = 0;
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    memset(start, 0, (size_t)d->owner.g * sizeof *start);
    for (int64_t k = 0; k < d->count; k++) {
        const void *p = dmi_at(call->at[0], (d->offset + k * d->stride) * bytes);
        start[dmi_index_holder(&d->owner, dmi_index_read(d->dtype, p, d->owner.mode, d->owner.n))]++;
    }
    for (int64_t c = 0; c < d->owner.g; c++) {
        int64_t here = start[c];
        start[c] = sum;
        sum += here;
    }
    for (int64_t k = 0; k < d->count; k++) {
        const void *p = dmi_at(call->at[0], (d->offset + k * d->stride) * bytes);
        int64_t i = dmi_index_read(d->dtype, p, d->owner.mode, d->owner.n);
        int64_t to = start[dmi_index_holder(&d->owner, i)]++;
        sorted[to] = i;
        place[to] = k;
    }
    return DM_OK;
}
