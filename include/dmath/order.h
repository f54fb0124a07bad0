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
/* out[..., i, ...] = the sum (product, largest, smallest, log(sum(e^x))) of x[..., 0, ...] to x[..., i, ...] along dim.
 * Of out's shape, which is x's. The result is converted to out's type as dm_copy converts. Types: sums and products
 * take any type, and a complex x needs a complex out; the others take real types, and logsumexp floats and integers.
 * Computed as dm_sum and the reductions of <dmath/reduce.h> compute: integers and bool in 64 bits that wrap, so
 * exactly; f64 sums in pairs of doubles, others in f64. A NaN makes all results behind it NaN. x and out may be the
 * same array, or else may not overlap. Cost: x is read once, or twice where dim is split; then each worker sends one
 * accumulator a row, 1 to 32 bytes, to each worker that has later elements of the row. Where x lies cyclically or by a
 * map along dim, its elements come to a temporary first. Results move where out lies otherwise than x. */
DM_API DM_CHECKED dm_status dm_cumulative_sum(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_prod(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_max(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_min(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_logsumexp(dm_session *session, dm_array x, int dim, dm_array out);

/* ---- sorting --------------------------------------------------------------------------------------------- */
/* Real types. NaN counts as larger than all numbers, -0 as 0. Sorting is stable: equal elements stay in their order,
 * also where it is descending, and elements keep their bits. Rows of more than 2^32 - 1 elements are
 * DM_ERR_UNSUPPORTED. */

/* A row is sorted by one worker, to which it comes whole; rows lie where x or out has them whole, or else are dealt
 * out. If there are fewer rows than workers, and they are split and have 64 KiB or more (option sort_exchange), dm_sort
 * and dm_argsort *block*: each worker sorts its part, some small questions find where the parts are cut (one for each
 * byte of an element, and two), and each element moves once to where the sorted row has it, with its index for
 * dm_argsort. Between dm_explain_begin and dm_explain_end, and in programs, they never do that. */

/* out = x with each row along dim in ascending order; descending != 0: the largest first. out may be x, or else may not
 * overlap it. */
DM_API DM_CHECKED dm_status dm_sort(dm_session *session, dm_array x, int dim, int descending, dm_array out);
/* out = the indices along dim in the order in which they sort each row of x. out may not overlap x. */
DM_API DM_CHECKED dm_status dm_argsort(dm_session *session, dm_array x, int dim, int descending, dm_array out);
/* values = the k largest (largest != 0) or smallest elements of each row along dim, the outermost first; indices:
 * theirs along dim. k is the outputs' extent along dim. One of the two may be DM_NO_ARRAY. Neither may overlap x. Few
 * long rows that are split: each worker finds those of its part, and only these move. */
DM_API DM_CHECKED dm_status dm_topk(dm_session *session, dm_array x, int dim, int largest, dm_array values,
                                    dm_array indices);

/* ---- searching and counting ------------------------------------------------------------------------------ */
/* Real types; two arrays are compared in the type that NumPy's promote_types gives for theirs. */

/* out = where each element of v would go into `sorted`, which has one dim and ascending elements, NaN last: before
 * elements that equal it (right 0), or behind them (else). out has v's shape and an integer type, and may overlap
 * neither. What `sorted` holds where it is not in order is undefined, and so is the result, but nothing worse. Cost:
 * `sorted` comes whole to each worker; or, where it is split and has more bytes than v, v does, and the results of all
 * parts are summed. */
DM_API DM_CHECKED dm_status dm_searchsorted(dm_session *session, dm_array sorted, dm_array v, int right, dm_array out);
/* out[k] = how many elements of x are in bin k of n, n the extent of out, which has one dim; or the sum of their
 * weights, which has x's shape: in f64 of floats, in 64 bits that wrap of integers. weights may be DM_NO_ARRAY. The
 * bins have equal widths from lo to hi, and the last one holds hi too: their edges are lo + k ((hi - lo) / n) in f64,
 * as those of numpy.histogram. Elements elsewhere do not count, nor does NaN. lo == hi: from lo - 0.5 to hi + 0.5.
 * Errors: DM_ERR_ARG (lo, hi: not finite, lo > hi). Cost: x is read once, where it is; each worker sends 8 bytes a
 * bin. */
DM_API DM_CHECKED dm_status dm_histogram(dm_session *session, dm_array x, double lo, double hi, dm_array weights,
                                         dm_array out);
/* The same with bins between edges[k] and edges[k + 1]: an array of one dim and n + 1 ascending elements. */
DM_API DM_CHECKED dm_status dm_histogram_edges(dm_session *session, dm_array x, dm_array edges, dm_array weights,
                                               dm_array out);
/* out[k] = how many elements of x, of integers or bool, are k; or the sum of their weights. Elements that are no index
 * of out do not count. */
DM_API DM_CHECKED dm_status dm_bincount(dm_session *session, dm_array x, dm_array weights, dm_array out);

/* ---- quantiles, distinct elements ------------------------------------------------------------------------ */
/* Made of the calls above: they may block where dm_sort does. */

/* out[..., k, ...] = the q[k]-quantile of each row of x along dim, q from 0 (the smallest) to 1 (the largest): between
 * the two elements next to it on a straight line, as numpy.quantile. NaN where the row has a NaN. out: x's shape with
 * `count` along dim, a float. Of integers in f64. Errors: DM_ERR_SHAPE (no elements along dim, too), DM_ERR_ARG (q,
 * count, dim). */
DM_API DM_CHECKED dm_status dm_quantile(dm_session *session, dm_array x, const double *q, int count, int dim, dm_array out);
/* The 0.5-quantile; out has an extent of 1 along dim. */
DM_API DM_CHECKED dm_status dm_median(dm_session *session, dm_array x, int dim, dm_array out);
/* *values = the distinct elements of all of x, ascending: a new array with one dim. *counts (or NULL) = how often each
 * occurs, i64; *inverse (or NULL) = which of them each element of x is, in row-major order: i64, of one dim. All NaN
 * are one element, -0 and 0 are one too: the first of them. Blocks. The caller destroys the arrays. */
DM_API DM_CHECKED dm_status dm_unique(dm_session *session, dm_array x, dm_array *values, dm_array *counts, dm_array *inverse);

#ifdef __cplusplus
}
#endif
#endif
