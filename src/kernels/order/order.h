/* The descriptors of kernels that go along one dim in order: scans, sorting. */
#ifndef DMI_KERNEL_ORDER_H
#define DMI_KERNEL_ORDER_H

#include "kernels/reduce/reduction.h"

/* out[..., i, ...] = what the row of reduce.def makes of the elements 0 .. i of x along dim `dim`. Rows that
 * keep indices are not scanned. starts: a third reference has the states of the elements before, accumulators
 * as dmi_reduce writes them, dense row-major over the other dims. x and out may be the same elements. */
typedef struct dmi_scan {
    int ndim, dim;
    int row; /* DMI_REDUCTION_* */
    dm_dtype dtype, out_dtype;
    bool starts;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t out_stride[DM_MAX_DIMS], out_offset;
} dmi_scan;

/* Each row of x along dim in order, NaN as the largest, -0 as 0, equal elements as they stand (descending ones
 * too). Of each row the first `most` are wanted: their elements, as their bits are, or their indices, or both.
 * The index of an element is `first` and its place in the row, or what `carried` has for it. References: x,
 * scratch, elements (where values), indices (where indices: i64), carried (where carried: i64). x and the
 * elements may be the same. */
typedef struct dmi_sort {
    int ndim, dim;
    dm_dtype dtype;
    bool descending, values, indices, carried;
    int64_t most, first;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
    int64_t value_stride[DM_MAX_DIMS], value_offset;
    int64_t index_stride[DM_MAX_DIMS], index_offset;
    int64_t carried_stride[DM_MAX_DIMS], carried_offset;
    int runs; /* 0, or each row consists of so many that are in order already, which begin at run[0 .. runs-1]
               */
    const int64_t *run; /* [runs + 1] */
    int64_t scratch;    /* bytes: dmi_sort_scratch */
} dmi_sort;
enum { DMI_SORT_SELECT = 1 << 16 }; /* rows with fewer elements are sorted even where few of them are wanted */
static inline bool dmi_sort_selects(const dmi_sort *s)
{
    return s->runs == 0 && s->extent[s->dim] >= DMI_SORT_SELECT && s->most < s->extent[s->dim] / 4 &&
           dmi_dtype_bytes(s->dtype) > 1;
}
int64_t dmi_sort_scratch(const dmi_sort *s, bool gpu);

#endif
