/* Checks of values where they lie, without waiting for them. Included by dmath.h. */
#ifndef DMATH_REQUIRE_H
#define DMATH_REQUIRE_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fails unless low <= x[i] <= high for all elements i; of a complex x for both parts of each. NaN never lies within; so
 * dm_require_range(s, x, -DBL_MAX, DBL_MAX) asks for finite numbers. The check fails as any command that fails on a
 * worker: x is poisoned, and the next call that waits returns DM_ERR_VALUE and names this call. x is not changed else.
 * x: any shape, type and layout. Integers are compared as f64. Does not block. Errors: DM_ERR_ARG (low or high is NaN).
 * Cost: x is read once; nothing moves between workers. */
DM_API DM_CHECKED dm_status dm_require_range(dm_session *session, dm_array x, double low, double high);
/* The same with bounds that may be elements of arrays (<dmath/factors.h>). They are read as f64 when the
 * command runs; with a NaN in one of them no element of x lies within. Errors: as above, and those of factors:
 * DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP, DM_ERR_ARG. Cost: as above; workers that lack a bound are sent
 * it. */
DM_API DM_CHECKED dm_status dm_require_range_by(dm_session *session, dm_array x, dm_factor low, dm_factor high);

#ifdef __cplusplus
}
#endif
#endif
