/* The planner of load and save: the elements of an array and those of a file. */
#include "io/file.h"
#include "ops/common.h"

/* The file's elements as a region: all indices, dims by decreasing stride. */
static void file_region(const dmi_desc *a, bool reversed, dmi_region *out)
{
    *out = (dmi_region){.ndim = a->ndim};
    int64_t stride = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        int64_t extent = a->extent[reversed ? a->ndim - 1 - d : d];
        out->dim[d] = dmi_dimset_interval(0, extent);
        out->stride[d] = stride;
        stride *= extent;
    }
    out->count = stride;
}

static void reverse_dims(dmi_region *region)
{
    for (int lo = 0, hi = region->ndim - 1; lo < hi; lo++, hi--) {
        dmi_dimset dim = region->dim[lo];
        int64_t stride = region->stride[lo];
        region->dim[lo] = region->dim[hi];
        region->stride[lo] = region->stride[hi];
        region->dim[hi] = dim;
        region->stride[hi] = stride;
    }
}

typedef struct filing {
    dmi_builder *b;
    bool reading;
    dmi_file_range range;
} filing;

static void add_part(void *context, const dmi_copy *geometry)
{
    filing *f = context;
    dmi_ref ref = dmi_ref_operand(0, f->reading ? DMI_WRITE : DMI_READ);
    f->range.geometry = *geometry;
    if (f->b->profile->gpu) { /* row-major in the plan's order of dims is the order of the file */
        dmi_build_pack(f->b, geometry, f->reading ? &f->range.packed : &f->range.rest);
        dmi_build_unpack(f->b, geometry, f->reading ? &f->range.rest : &f->range.packed);
    }
    dmi_build_kernel(f->b, f->reading ? DMI_KERNEL_file_read : DMI_KERNEL_file_write, &f->range,
                     sizeof f->range, &ref, 1, NULL);
}

/* The number of the part that a region is, from 0 on, and where it begins: io/parts.h. */
static int64_t part_of(const dmi_desc *a, const dmi_region *region, int64_t *begin)
{
    const dmi_layout *y = a->layout;
    int64_t number = 0, element = 0;
    for (int d = 0; d < a->ndim; d++) {
        int64_t lo = region->dim[d].lo;
        number = y->kind == DMI_LAYOUT_EXPLICIT ? number * y->nblock[d] + lo / y->block[d] : 0;
        element = element * a->extent[d] + lo;
    }
    *begin = element * dmi_dtype_bytes(a->dtype);
    return number;
}

/* Dims are ordered by decreasing stride in the file. So a file range is contiguous where the layout allows, and
 * a staging buffer is filled from front to back. The device transposes the elements. */
dm_status dmi_plan_file(dmi_builder *b, const dmi_call *call, const dmi_file_plan *plan)
{
    const dmi_desc *a = &call->operand[0].desc;
    dmi_region file, region;
    file_region(a, plan->fortran, &file);
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(a, b->me); i++) {
        filing f = {.b = b, .reading = plan->reading};
        dmi_copy copy;
        f.range.data_offset = plan->data_offset;
        f.range.swap = plan->swap;
        dmi_desc_region(a, b->me, i, &region);
        if (plan->first > 0) {
            f.range.part = part_of(a, &region, &f.range.begin) + 1;
            f.range.first = plan->first - 1;
            if (f.range.part < plan->first || f.range.part > plan->last) {
                continue;
            }
        }
        if (plan->fortran) {
            reverse_dims(&region);
        }
        if (region.count > 0 && dmi_region_copy(b, plan->reading ? &file : &region,
                                                plan->reading ? &region : &file, a->dtype, a->dtype, &copy)) {
            dmi_copy_split(b, &copy, b->profile->gpu ? b->profile->file_chunk : INT64_MAX, add_part, &f);
        }
    }
    return DM_OK;
}
