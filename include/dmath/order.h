/* dmath: scans and order.  BSD-3-Clause, see LICENSE.
 *
 * Of every call, unless its text says otherwise: layouts: any, mixed freely; dim counts from 0; it does not block; it
 * makes no array that the caller must destroy. Errors that the texts do not repeat: DM_ERR_SHAPE, DM_ERR_ARG (dim),
 * DM_ERR_DTYPE, DM_ERR_OVERLAP, DM_ERR_LIMIT. */
#ifndef DMATH_ORDER_H
#define DMATH_ORDER_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scans ----------------------------------------------------------------------------------------------- */
/* out[..., i, ...] = the sum (product, largest, smallest, log(sum(e^x))) of x[..., 0, ...] to x[..., i, ...]
 * along dim. x, out: one shape; they may be the same array, or else may not overlap. Types: sums and products
 * take any x, a complex one with a complex out; the others take real types. Computed as dm_sum and the
 * reductions of <dmath/reduce.h> compute: integers and bool in 64 bits that wrap, so exactly; f64 sums in pairs
 * of doubles (which may leave the range on the way), others in f64; and converted to out's type as dm_copy
 * converts. A NaN makes all results behind it NaN. Cost: x is read once, or twice where dim is split; then each
 * worker sends one accumulator a row, 1 to 32 bytes, to each worker that has later elements of the row. Where x
 * lies cyclically or by a map along dim, its elements come to a temporary first. Results move where out lies
 * otherwise than x. */
DM_API DM_CHECKED dm_status dm_cumulative_sum(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_prod(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_max(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_min(dm_session *session, dm_array x, int dim, dm_array out);
DM_API DM_CHECKED dm_status dm_cumulative_logsumexp(dm_session *session, dm_array x, int dim, dm_array out);

/* ---- sorting --------------------------------------------------------------------------------------------- */
/* x is real. NaN counts as larger than all numbers, -0 as 0. Sorting is stable: equal elements stay in their order,
 * also where it is descending, and elements keep their bits. Rows may be as long as arrays may be.
 *
 * Cost: a row is sorted by one worker, to which it comes whole; rows lie where x or out has them whole, or else are
 * dealt out. Radix sort: for each byte of an element the row is read and written once, with 4 bytes an element more
 * where indices are wanted, 8 where the worker has more than 2^32 - 1 elements of the row; workspace for two rows of
 * both. On CPUs elements of one byte are counted: the row is read twice and written once, with workspace for one. If
 * there are fewer rows than workers, and they are split and have 64 KiB or more (option sort_exchange), dm_sort and
 * dm_argsort *block*: each worker sorts its part, rounds of small messages find where to cut the parts (two, and one
 * for each byte of an element, or two for each byte with more than 32 workers), and each element moves once to where
 * the sorted row has it, with its index, of 8 bytes, for dm_argsort; temporaries take some times the row, spread over
 * the workers. Between dm_explain_begin and dm_explain_end, and in programs, they never do that. */

/* out = x with each row along dim in ascending order; descending != 0: the largest first. out: x's shape, any type,
 * converted as dm_copy converts; it may be x, or else may not overlap it. */
DM_API DM_CHECKED dm_status dm_sort(dm_session *session, dm_array x, int dim, int descending, dm_array out);
/* out = the indices along dim in the order in which they sort each row of x. out: x's shape, integers; it may not
 * overlap x. */
DM_API DM_CHECKED dm_status dm_argsort(dm_session *session, dm_array x, int dim, int descending, dm_array out);
/* values = the k largest (largest != 0) or smallest elements of each row along dim, the outermost first; indices:
 * theirs along dim. k is the outputs' extent along dim. values: any type; indices: integers; one of the two may be
 * DM_NO_ARRAY. None may overlap another. Errors: DM_ERR_HANDLE (both are DM_NO_ARRAY). Cost: as dm_sort, but on CPUs of
 * a long row only elements that may be among the first are sorted. Few long rows that are split: each worker finds the
 * first of its part, and only these move. */
DM_API DM_CHECKED dm_status dm_topk(dm_session *session, dm_array x, int dim, int largest, dm_array values,
                                    dm_array indices);

/* ---- searching and counting ------------------------------------------------------------------------------ */
/* x, sorted, v, edges and weights are real; two arrays are compared in the type that NumPy's promote_types gives for
 * theirs. */

/* out = where each element of v would go into `sorted`: before elements that equal it (right 0), or behind them (else).
 * sorted: one dim, ascending, NaN last; out of order its results are undefined, and nothing worse. out: v's shape,
 * integers; it may overlap neither. Cost: log2 of sorted's extent comparisons for each element of v. `sorted` comes
 * whole to each worker; or, where it is split and has more bytes than v, v does, and the results of all parts are
 * summed. */
DM_API DM_CHECKED dm_status dm_searchsorted(dm_session *session, dm_array sorted, dm_array v, int right, dm_array out);
/* out[k] = how many elements of x are in bin k of n, or the sum of their weights: in f64 of floats, in 64 bits that
 * wrap of integers. The bins have equal widths from lo to hi, and the last one holds hi too: their edges are lo + k
 * ((hi - lo) / n) in f64, as those of numpy.histogram. Elements elsewhere do not count, nor does NaN. lo == hi: from lo
 * - 0.5 to hi + 0.5. weights: x's shape, or DM_NO_ARRAY. out: n elements, one dim, real, converted as dm_copy converts;
 * it may overlap no operand. Errors: DM_ERR_ARG (lo, hi: not finite, lo > hi). Cost: x is read once, where it is, and
 * weights come to it; each worker sends its counts, 8 bytes a bin. */
DM_API DM_CHECKED dm_status dm_histogram(dm_session *session, dm_array x, double lo, double hi, dm_array weights,
                                         dm_array out);
/* The same with bins from edges[k] to edges[k + 1]; the last one holds its upper edge too. edges: n + 1 elements, one
 * dim, ascending; out of order the counts are undefined, and nothing worse. Errors: but for DM_ERR_ARG as above. Cost:
 * besides, edges come whole to each worker, and log2(n) comparisons for each element of x. */
DM_API DM_CHECKED dm_status dm_histogram_edges(dm_session *session, dm_array x, dm_array edges, dm_array weights,
                                               dm_array out);
/* out[k] = how many elements of x are k, or the sum of their weights. x: integers or bool; those that are no index of
 * out do not count. weights, out, errors and cost: as dm_histogram, but for DM_ERR_ARG. */
DM_API DM_CHECKED dm_status dm_bincount(dm_session *session, dm_array x, dm_array weights, dm_array out);

/* ---- quantiles, distinct elements ------------------------------------------------------------------------ */
/* Made of the calls above: they block where dm_sort does, and have its errors. */

/* out[..., k, ...] = the q[k]-quantile of each row of x along dim, q from 0 (the smallest) to 1 (the largest): between
 * the two elements next to it on a straight line, as numpy.quantile. NaN where the row has a NaN. x: real; out: x's
 * shape with `count` along dim, a float; it may overlap x. The line is computed in f32, of f64 and integers in f64. q
 * is read during the call. Errors: DM_ERR_SHAPE (no elements along dim, too), DM_ERR_ARG (q, count, dim). Cost: dm_sort
 * into a temporary of x's size, and for each q an expression of three elements a row. */
DM_API DM_CHECKED dm_status dm_quantile(dm_session *session, dm_array x, const double *q, int count, int dim, dm_array out);
/* The 0.5-quantile: dm_quantile with one q, so out has an extent of 1 along dim; types, errors and cost as there. */
DM_API DM_CHECKED dm_status dm_median(dm_session *session, dm_array x, int dim, dm_array out);
/* *values = the distinct elements of all of x, ascending. *counts (or NULL) = how often each occurs; *inverse (or NULL)
 * = which of them each element of x is, in row-major order. All NaN are one element, -0 and 0 are one too: the first of
 * them. x: real, any shape. New arrays of one dim in the default layout, values of x's type, the others i64: the caller
 * destroys them. Blocks. Errors: DM_ERR_ARG (values is NULL), DM_ERR_STATE (between dm_explain_begin and
 * dm_explain_end, and in programs), those of dm_array_create. Cost: dm_sort, dm_cumulative_sum, dm_searchsorted and
 * dm_take, and for inverse dm_argsort and dm_put; temporaries of x's size, and of 8 bytes an element. */
DM_API DM_CHECKED dm_status dm_unique(dm_session *session, dm_array x, dm_array *values, dm_array *counts, dm_array *inverse);
/* out[..] = does x[..] occur in test? (NumPy: isin.) invert != 0: does it not? Elements are compared in the type that
 * NumPy's promote_types gives, and occur where they are equal: NaN never, -0 where 0 does. x, test: any type, complex
 * too, and any shape; out: x's shape, any type, converted as dm_copy converts; it may overlap neither. Blocks where
 * dm_sort does, and where it looks for a table. Cost: dm_sort of test, two dm_searchsorted and an expression;
 * temporaries of test's size, and of 16 bytes an element of x. Complex: three times that. Integers of x and test (not
 * u64) on CPUs, 32768 or more of x: a table on every worker with a byte for each integer from the least to the greatest
 * of test, where all tables take 8 bytes or fewer for each element of both arrays; and 4 or 8 bytes an element. That
 * waits for the least and the greatest; it is not done in programs, nor for explain. */
DM_API DM_CHECKED dm_status dm_isin(dm_session *session, dm_array x, dm_array test, int invert, dm_array out);

#ifdef __cplusplus
}
#endif
#endif
