/* dmath: random choices and distributions, and a generator that advances. Included by dmath.h.
 * BSD-3-Clause, see LICENSE.
 *
 * All numbers follow from the seed and the index of the element alone, as those of dm_fill_uniform: not from layouts,
 * nor from the number of workers, bit for bit. In programs seeds may advance (dm_program_advance_seeds). x and out have
 * any layout. Integers from lo to hi - 1 are dm_fill_uniform on an array of integers; uniform() and normal() are
 * functions of dm_map. */
#ifndef DMATH_RANDOM_H
#define DMATH_RANDOM_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x = 1 with probability p, else 0. x: real or bool. Does not block. Errors: DM_ERR_ARG (p is not in 0 to 1),
 * DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_fill_bernoulli(dm_session *session, dm_array x, double p, uint64_t seed);
/* x = -log(1 - u) * scale, u uniform in [0, 1): the exponential distribution of mean `scale`. x: a float. Does not
 * block. Errors: DM_ERR_ARG (scale < 0, or not finite), DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_fill_exponential(dm_session *session, dm_array x, double scale, uint64_t seed);
/* x = 0 with probability p, else 1 / (1 - p): what an array is multiplied with to drop elements and keep its mean
 * (Srivastava et al., 2014, with the scale in training). x: a float. Does not block. Errors: DM_ERR_ARG (p is not from
 * 0 to below 1), DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_fill_dropout(dm_session *session, dm_array x, double p, uint64_t seed);
/* x = scale times numbers of the gamma distribution of this shape: mean shape * scale, variance shape * scale^2. x: a
 * float. The method of Marsaglia & Tsang (2000); below a shape of 1 with u^(1 / shape). Try t of element i takes words
 * of its own, which follow from the seed, i and t. Made in f64 and rounded. Does not block. Errors: DM_ERR_ARG (shape
 * <= 0, scale < 0, or not finite), DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_fill_gamma(dm_session *session, dm_array x, double shape, double scale, uint64_t seed);
/* x = how many events of a Poisson process happen where `rate` are expected: mean and variance are rate. x: a float or
 * integers; converted from f64 as dm_copy does. Below a rate of 10 by inversion (Devroye 1986), else by transformed
 * rejection (PTRS, Hörmann 1993), with words as those of dm_fill_gamma. Does not block. Errors: DM_ERR_ARG (rate is not
 * 0 to 1e15), DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_fill_poisson(dm_session *session, dm_array x, double rate, uint64_t seed);
/* x = the numbers 0 to n - 1 in a random order. x: n elements, i32 or i64, one dim. The order is that of n uniform
 * numbers of 53 bits: dm_argsort, which may block. Errors: DM_ERR_SHAPE, DM_ERR_DTYPE; DM_ERR_LIMIT (more elements than
 * i32 counts). */
DM_API DM_CHECKED dm_status dm_fill_permutation(dm_session *session, dm_array x, uint64_t seed);
/* out = x with its indices along dim in the order of dm_fill_permutation of this seed. x and out: one shape and type,
 * apart. Errors: DM_ERR_ARG (dim), DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP. Cost: a sort, and dm_take. */
DM_API DM_CHECKED dm_status dm_shuffle(dm_session *session, dm_array x, int dim, uint64_t seed, dm_array out);

/* out = indices from 0 to n - 1, chosen at random. out: m elements, i32 or i64, one dim. weights: n numbers of a float
 * type, not negative, with a positive sum, each as likely as its part of that; DM_NO_ARRAY: all alike. replace 0: no
 * index comes twice; then n >= m, and of the weights at least m are positive, which is not checked (Efraimidis &
 * Spirakis 2006: the m largest of log(u) / weight). With replacement: the place of u times the sum in the running sums,
 * which worker 0 makes in f64. May block where dm_sort does. dm_take brings the elements. Errors: DM_ERR_ARG (n < 1 for
 * m > 0, n < m without replacement), DM_ERR_SHAPE (out, weights), DM_ERR_DTYPE. */
DM_API DM_CHECKED dm_status dm_choice(dm_session *session, int64_t n, dm_array weights, int replace, uint64_t seed,
                                      dm_array out);

/* The session's generator gives seeds, one after the other: seed number k of a generator with `seed` is a mix of both.
 * A new session has dm_random_set(session, 0, 0). Blocking: none. Errors: DM_ERR_ARG (a pointer is NULL). */
DM_API DM_CHECKED dm_status dm_random_next(dm_session *session, uint64_t *seed);
/* Where it is, and to there: for checkpoints. */
DM_API DM_CHECKED dm_status dm_random_get(dm_session *session, uint64_t *seed, uint64_t *next);
DM_API DM_CHECKED dm_status dm_random_set(dm_session *session, uint64_t seed, uint64_t next);

#ifdef __cplusplus
}
#endif

#endif
