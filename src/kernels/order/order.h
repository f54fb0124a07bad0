/* The descriptors of kernels that go along one dim in order: scans. */
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

#endif
