/* The descriptor of the kernel `within`: fails unless low <= x[...] <= high for every element of a strided box;
 * of a complex type for both parts. NaN never lies within. References: x, and those of low and high that are
 * f64 in memory; the others are numbers 0 and 1 of the call. */
#ifndef DMI_KERNEL_WITHIN_H
#define DMI_KERNEL_WITHIN_H

#include "layout/layout.h"

typedef struct dmi_within {
    dm_dtype dtype;
    int ndim;
    int bound[2]; /* number of the reference of low, of high; 0: it is a number of the call */
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
} dmi_within;

#endif
