#include "io/parts.h"

#include <string.h>

static int64_t blocks_of(const dmi_parts *p, int d)
{
    return (p->shape[d] + p->block[d] - 1) / p->block[d];
}

static void count_parts(dmi_parts *p)
{
    p->count = 1;
    for (int d = 0; d < p->ndim; d++) {
        p->count *= blocks_of(p, d);
    }
}

void dmi_parts_choose(dm_dtype dtype, int ndim, const int64_t *shape, int64_t bytes, dmi_parts *out)
{
    int64_t have = dmi_dtype_bytes(dtype);
    bool cut = false;
    *out = (dmi_parts){.dtype = dtype, .ndim = ndim};
    for (int d = ndim - 1; d >= 0; d--) {
        out->shape[d] = shape[d];
        out->block[d] = cut ? 1 : DMI_MAX(DMI_MIN(shape[d], bytes / have), 1);
        cut = cut || out->block[d] < shape[d];
        have *= out->block[d];
    }
    count_parts(out);
}

bool dmi_parts_of(dm_dtype dtype, int ndim, const int64_t *shape, const int64_t *block, dmi_parts *out)
{
    bool cut = false, ok = dmi_dtype_bytes(dtype) > 0 && ndim >= 0 && ndim <= DM_MAX_DIMS;
    int64_t bytes = dmi_dtype_bytes(dtype);
    *out = (dmi_parts){.dtype = dtype, .ndim = ndim};
    for (int d = ndim - 1; d >= 0 && ok; d--) {
        out->shape[d] = shape[d];
        out->block[d] = block[d];
        ok = shape[d] >= 0 && block[d] >= 1 && block[d] <= DMI_MAX(shape[d], 1) && (!cut || block[d] == 1) &&
             dmi_mul_fits(bytes, DMI_MAX(shape[d], 1), &bytes);
        cut = cut || block[d] < shape[d];
    }
    if (ok) {
        count_parts(out);
    }
    return ok;
}

void dmi_parts_range(const dmi_parts *p, int64_t which, int64_t *offset, int64_t *bytes)
{
    int64_t stride = dmi_dtype_bytes(p->dtype);
    *offset = 0;
    *bytes = stride;
    for (int d = p->ndim - 1; d >= 0; d--) {
        int64_t lo = which % blocks_of(p, d) * p->block[d];
        which /= blocks_of(p, d);
        *offset += lo * stride;
        *bytes *= DMI_MIN(p->block[d], p->shape[d] - lo);
        stride *= p->shape[d];
    }
}

int64_t dmi_parts_bytes(const dmi_parts *p)
{
    int64_t bytes = dmi_dtype_bytes(p->dtype);
    for (int d = 0; d < p->ndim; d++) {
        bytes *= p->shape[d];
    }
    return bytes;
}
