/* The descriptor of fills. */
#ifndef DMI_KERNEL_FILL_H
#define DMI_KERNEL_FILL_H

#include "layout/layout.h"

/* Fills a region of an array of the given shape (caller-visible coordinates); an element depends only on the
 * kind, the parameters and its index, never on the region's memory.
 *   CONST: p0    IDENTITY: p0 where all indices are equal, else 0 (ndim 2)
 *   ARANGE: p0 + p1 * linear index (row-major in shape; computed in f64 for floats, int64 for ints)
 *   UNIFORM: [p0, p1): floats p0 + (p1 - p0) * u, u in [0, 1) of 53 bits (f64) or 24 bits (other floats: made
 *            in f32, then rounded, so a 16-bit value may reach p1); ints: p0 + floor(u64-based
 *            unbiased-enough scaling)
 *   NORMAL: mean p0, standard deviation p1 (floats only)
 *   GAMMA: shape p0, scale p1; POISSON: rate p0. Made in f64 and converted, an element a counter
 *            (distributions.h). With `element` p0 is an f64 in memory, the second reference
 *   CLOCK, the one kind that depends on when and where: the time in ns at which the fill runs (i64 only)
 * UNIFORM and NORMAL: Philox4x32-10, key = seed, counter from the linear index (random.h). Only IEEE +, -, *,
 * /, sqrt and explicit fma are used, no libm, so that every backend gives the same bits. */
enum dmi_fill_kind {
    DMI_FILL_CONST,
    DMI_FILL_IDENTITY,
    DMI_FILL_ARANGE,
    DMI_FILL_UNIFORM,
    DMI_FILL_NORMAL,
    DMI_FILL_GAMMA,
    DMI_FILL_POISSON,
    DMI_FILL_KINDS,
    DMI_FILL_CLOCK = DMI_FILL_KINDS
};
typedef struct dmi_fill {
    int kind;
    int seed; /* 0: p0, p1 and the seed are numbers 0, 1, 2. k: UNIFORM in [0, 1), NORMAL(0, 1), whose seed is number
               * k - 1; IDENTITY of 1; ARANGE from 0 by 1 */
    bool element;
    dm_dtype dtype;
    int64_t shape[DM_MAX_DIMS];
    dmi_region region;
} dmi_fill;
typedef struct dmi_fill_values {
    double p0, p1;     /* floats */
    int64_t i0, i1;    /* the same for integer dtypes (exact) */
    uint64_t seed;
    const double *element; /* p0, in memory of the device; NULL: p0 is above */
} dmi_fill_values;

#endif
