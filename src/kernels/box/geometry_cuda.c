/* Strided boxes as kernels take them. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include <assert.h>

dmi_cuda_divisor dmi_cuda_divide_by(int64_t extent)
{
    dmi_cuda_divisor r = {.extent = (uint32_t)extent};
    assert(extent >= 1 && extent <= INT32_MAX);
    while (INT64_C(1) << r.shift < extent) {
        r.shift++;
    }
    /* Rounded up, it errs by less than 2^shift in 2^(31 + shift): too little to reach the next i below 2^31. */
    r.factor = (uint32_t)(((UINT64_C(1) << (31 + r.shift)) + (uint64_t)extent - 1) / (uint64_t)extent);
    return r;
}

void dmi_cuda_box_make(const dmi_box *box, dmi_cuda_box *out)
{
    int64_t items = 1;
    memset(out, 0, sizeof *out);
    assert(box->ndim >= 1 && box->ndim <= DMI_CUDA_DIMS);
    for (int d = 0; d < box->ndim; d++) {
        int from = box->ndim - 1 - d;
        out->extent[d] = dmi_cuda_divide_by(box->extent[from]);
        for (int s = 0; s < box->sides; s++) {
            out->stride[s][d] = box->stride[s][from];
        }
        items *= box->extent[from];
    }
    assert(items <= DMI_CUDA_ITEMS);
    out->items = (uint32_t)items;
    out->ndim = box->ndim;
}

void dmi_cuda_split(const dmi_box *box, const int64_t *at, bool in_order, dmi_cuda_part_fn *fn, void *context)
{
    int64_t items = 1;
    int dim = 0;
    for (int d = 0; d < box->ndim; d++) {
        items *= box->extent[d];
        bool better = in_order ? box->extent[dim] == 1 : box->extent[d] > box->extent[dim];
        dim = better ? d : dim;
    }
    if (items <= DMI_CUDA_ITEMS) {
        fn(context, box, at);
        return;
    }
    dmi_box half = *box;
    int64_t beside[DMI_BOX_SIDES];
    half.extent[dim] = box->extent[dim] / 2;
    dmi_cuda_split(&half, at, in_order, fn, context);
    for (int s = 0; s < box->sides; s++) {
        beside[s] = at[s] + half.extent[dim] * box->stride[s][dim];
    }
    half.extent[dim] = box->extent[dim] - half.extent[dim];
    dmi_cuda_split(&half, beside, in_order, fn, context);
}

bool dmi_cuda_grouped(const dmi_box *box, int side, const void *base, int64_t at, int64_t bytes, int64_t group)
{
    int inner = box->ndim - 1;
    uintptr_t address = (uintptr_t)base + (uintptr_t)(at * bytes);
    if (box->stride[side][inner] != 1 || address % (uintptr_t)(bytes * group) != 0) {
        return false;
    }
    for (int d = 0; d < inner; d++) {
        if (box->stride[side][d] % group != 0) {
            return false;
        }
    }
    return true;
}

int64_t dmi_cuda_row_unit(const dmi_box *box, const uintptr_t *address, int64_t bytes)
{
    uint64_t bits = 16;
    for (int s = 0; s < box->sides; s++) {
        assert(box->stride[s][box->ndim - 1] == 1);
        bits |= address[s];
        for (int d = 0; d < box->ndim - 1; d++) {
            bits |= (uint64_t)(box->stride[s][d] * bytes);
        }
    }
    return (int64_t)(bits & (0 - bits));
}

void dmi_cuda_in_units(const dmi_box *box, int64_t group, dmi_box *out)
{
    int inner = box->ndim - 1;
    *out = *box;
    out->extent[inner] /= group;
    for (int s = 0; s < box->sides; s++) {
        for (int d = 0; d < inner; d++) {
            out->stride[s][d] /= group;
        }
    }
}
