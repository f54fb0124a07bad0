/* The descriptor of triangular solves. */
#ifndef DMI_KERNEL_TRSM_H
#define DMI_KERNEL_TRSM_H

#include "layout/layout.h"

/* op(a) x = b, or (right) x op(a) = b, row-major; b, m x n, becomes x. a is triangular, of order m, or (right)
 * n; only the named triangle is used. F64, F32, C64 or C128. */
typedef struct dmi_trsm {
    dm_dtype dtype;
    bool right, upper, unit;
    int trans; /* 0, 1; 2: the conjugate of the transpose */
    int64_t m, n, lda, ldb, a_offset, b_offset;
} dmi_trsm;

#endif
