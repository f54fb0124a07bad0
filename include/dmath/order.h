/* dmath: scans and order.  BSD-3-Clause, see LICENSE.
 *
 * Layouts: any, mixed freely. Blocking: none, unless a call says so.
 * Errors that the texts do not repeat: DM_ERR_SHAPE, DM_ERR_ARG (dim), DM_ERR_DTYPE, DM_ERR_OVERLAP. */
#ifndef DMATH_ORDER_H
#define DMATH_ORDER_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scans ----------------------------------------------------------------------------------------------- */
/* out[..., i, ...] = the sum (product, largest, smallest, log(sum(e^x))) of x[..., 0, ...] to x[..., i, ...] along dim. Of
 * out's shape, which is x's. The result is converted to out's type as dm_copy converts.
 * Types: sums and products take any type, and a complex x needs a complex out; the others take real types, and logsumexp
 * floats and integers. Computed as dm_sum and the reductions of <dmath/reduce.h> compute: integers and bool in 64 bits that
 * wrap, so exactly; f64 sums in pairs of doubles, others in f64. A NaN makes all results behind it NaN.
 * x and out may be the same array, or else may not overlap.
 * Cost: x is read once, or twice where dim is split; then each worker sends one accumulator a row, 1 to 32 bytes, to each
 * worker that has later elements of the row. Where x lies cyclically or by a map along dim, its elements come to a temporary
 * first. Results move where out lies otherwise than x. */
DM_API DM_CHECKED dm_status dm_cumulative_sum(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_prod(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_max(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_min(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_logsumexp(dm_session *session, dm_array x, int dim, dm_array out);

#ifdef __cplusplus
}
#endif
#endif
