/* dmath: reductions.  BSD-3-Clause, see LICENSE.
 *
 * Each line of the list below declares one call:
 *   dm_status dm_<name>(session, x, dims, ndims, out)    out = the reduction of x over dims[ndims]
 * dims count from 0; ndims 0 with dims NULL: over all dims. Shapes: out has x's shape without those dims, or
 * with 1 in their place. x and out may not overlap. Layouts: any, mixed freely. Types: x may have any type,
 * unless the text says which; min, max, argmin and argmax take real types, and one element at least
 * (DM_ERR_SHAPE). The result is converted to out's type as dm_copy converts. Blocking: none. Errors:
 * DM_ERR_SHAPE, DM_ERR_DTYPE (no such reduction of this type, or into this type), DM_ERR_ARG (dims, ndims;
 * order, correction), DM_ERR_OVERLAP. Cost: x is read once. A worker sends what it has found for each element
 * of out to the workers that hold it: one element of x's type for min, max, any and all, 8 bytes for prod
 * (complex: 16) and norm, 16 for argmin, argmax and logsumexp, 24 for var and std; for count_nonzero 1, 2 or 4,
 * as the number of a worker's elements needs, of explicit layouts 8. None move where the reduced dims are not
 * split and out lies as x does. The sum is dm_sum (<dmath/dmath.h>); sums, products and maxima of an
 * expression, such as sum(x * y), are made by dm_map in one pass. */
#ifndef DMATH_REDUCE_H
#define DMATH_REDUCE_H

#include <dmath/dmath.h>

#define DM_REDUCE_MAP(X)                                                                                               \
    X(prod)          /* the product, in f64, c128 or 64 bits that wrap; 1 of no elements */                            \
    X(min)           /* the smallest; NaN where an element is NaN */                                                   \
    X(max)           /* the largest; NaN where an element is NaN */                                                    \
    X(any)           /* bool: is an element not 0? */                                                                  \
    X(all)           /* bool: is no element 0? */                                                                      \
    X(count_nonzero) /* i64: how many elements are not 0 */                                                            \
    X(argmin)        /* i64: where the first smallest is, or the first NaN; row-major number among the reduced dims */ \
    X(argmax)        /* i64: where the first largest is, or the first NaN */                                           \
    X(mean)          /* the sum as dm_sum makes it, divided by n; of integers in f64. out is a float, or complex */   \
    X(logsumexp)     /* log(sum(e^x)) in f64, without overflow. Real types */

#ifdef __cplusplus
extern "C" {
#endif

#define DM_REDUCE_1(name)                                                                                              \
    DM_API DM_CHECKED dm_status dm_##name(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);
DM_REDUCE_MAP(DM_REDUCE_1)
#undef DM_REDUCE_1

/* dm_accumulate_<name>(session, x, dims, ndims, out): out = the reduction over dims of x and of what out has:
 * out times the product, the smaller of out and the smallest (NaN where one is NaN), out or any, out and all,
 * out plus the count. dm_sum does so by its beta. Where x has no elements along dims, out stays. Shapes,
 * layouts and blocking: as above. Types: out's is one that the type of the result holds: of prod f64, i64 or
 * u64 (u64 of unsigned x), of complex x c64 or c128, of min and max x's own or a narrower one (f32 of f16, bf16
 * and 8-bit floats, i32 of integers of up to 16 bits), of any and all bool, of count_nonzero integers but u64.
 * Errors: as above, DM_ERR_DTYPE (another out). Cost: as above, and out is read once. */
#define DM_ACCUMULATE_MAP(X) X(prod) X(min) X(max) X(any) X(all) X(count_nonzero)
#define DM_ACCUMULATE_1(name)                                                                                          \
    DM_API DM_CHECKED dm_status dm_accumulate_##name(dm_session *session, dm_array x, const int *dims, int ndims,      \
                                                     dm_array out);
DM_ACCUMULATE_MAP(DM_ACCUMULATE_1)
#undef DM_ACCUMULATE_1

/* out = sum((x - mean)^2) / (n - correction) over n elements each, and its square root; in f64, in one pass.
 * correction 0: of a population, 1: estimated from a sample. NaN or Inf where n <= correction, and where x -
 * mean is beyond the range of f64: which of them depends on the layout then. x: real; out: a float, or complex.
 * Source: Welford (1962); Chan, Golub & LeVeque (1979) of several workers. */
DM_API DM_CHECKED dm_status dm_var(dm_session *session, dm_array x, const int *dims, int ndims, double correction,
                                   dm_array out);
DM_API DM_CHECKED dm_status dm_std(dm_session *session, dm_array x, const int *dims, int ndims, double correction,
                                   dm_array out);

/* out = the norm of x over dims: order 1: sum |x|, 2: sqrt(sum |x|^2), which overflows where a square does in f64,
 * INFINITY: max |x|. In f64; of all dims of a matrix, 2 is the Frobenius norm. */
DM_API DM_CHECKED dm_status dm_norm(dm_session *session, dm_array x, double order, const int *dims, int ndims,
                                    dm_array out);

/* out = e^(x - m) / sum(e^(x - m)) over dims, m the largest. x: real; out: x's shape, a float; they may be the same
 * array. Computed in f32, of f64, i32, i64, u32, u64 in f64. Cost: x is read three times; two reductions. */
DM_API DM_CHECKED dm_status dm_softmax(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);

#ifdef __cplusplus
}
#endif
#endif
