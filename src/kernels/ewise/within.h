/* The descriptor of the kernel `within`: fails unless low <= x[...] <= high for every element of a strided box; of a complex
 * type for both parts. NaN never lies within. Reference: x. Numbers of the call: low, high. */
#ifndef DMI_KERNEL_WITHIN_H
#define DMI_KERNEL_WITHIN_H

#include "layout/layout.h"

typedef struct dmi_within {
    dm_dtype dtype;
    int ndim;
    int64_t extent[DM_MAX_DIMS], stride[DM_MAX_DIMS], offset;
} dmi_within;

#endif
