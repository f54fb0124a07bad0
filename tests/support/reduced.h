/* What the tests of reductions share: which dims, and the shape that is left. */
#ifndef DMT_REDUCED_H
#define DMT_REDUCED_H

#include "support/cases.h"

typedef struct dmt_dims {
    int dims[DM_MAX_DIMS], ndims; /* as calls take them; ndims 0: all */
    bool reduced[DM_MAX_DIMS];
} dmt_dims;

/* Some dims of x, in any order. */
void dmt_dims_random(dmt_case *c, const dmt_host *x, dmt_dims *q);
const int *dmt_dims_given(const dmt_dims *q); /* NULL for all */
void dmt_say_dims(dmt_case *c, const dmt_dims *q);
/* Zeros of the shape without them, or (sometimes) with 1 in their place. */
dmt_host *dmt_reduced_make(dmt_case *c, const dmt_host *x, const dmt_dims *q, dm_dtype dtype);
/* The elements of x that belong to element `at` of that, in row-major order; n: how many. */
const long double *dmt_reduced_take(dmt_case *c, const dmt_host *x, const dmt_dims *q, int64_t at, int64_t *n);

#endif
