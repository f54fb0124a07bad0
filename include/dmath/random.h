/* dmath: random choices and distributions, and a generator that advances. Included by dmath.h. BSD-3-Clause, see
 * LICENSE.
 *
 * All numbers follow from the seed and the index of the element alone, as those of dm_fill_uniform: not from layouts,
 * nor from the number of workers, bit for bit. In programs seeds may advance (dm_program_advance_seeds). Integers from
 * lo to hi - 1 are dm_fill_uniform on an array of integers; uniform() and normal() are functions of dm_map.
 *
 * Of every call, unless its text says otherwise: x and out have any shape and layout; it does not block. Errors that
 * the texts do not repeat: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_LIMIT. Cost: x is written once, where it lies, and
 * nothing is sent. */
#ifndef DMATH_RANDOM_H
#define DMATH_RANDOM_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x = 1 with probability p, else 0. x: real. Errors: DM_ERR_ARG (p is not in 0 to 1). */
DM_API DM_CHECKED dm_status dm_fill_bernoulli(dm_session *session, dm_array x, double p, uint64_t seed);
/* x = -log(1 - u) * scale, u uniform in [0, 1): the exponential distribution of mean `scale`. x: a float. Errors:
 * DM_ERR_ARG (scale < 0, or not finite). */
DM_API DM_CHECKED dm_status dm_fill_exponential(dm_session *session, dm_array x, double scale, uint64_t seed);
/* x = 0 with probability p, else 1 / (1 - p): what an array is multiplied with to drop elements and keep its mean. x:
 * a float. Errors: DM_ERR_ARG (p is not from 0 to below 1). Source: Srivastava et al. (2014), with the scale in
 * training. */
DM_API DM_CHECKED dm_status dm_fill_dropout(dm_session *session, dm_array x, double p, uint64_t seed);
/* x = scale times numbers of the gamma distribution of this shape: mean shape * scale, variance shape * scale^2. x: a
 * float; made in f64 and rounded. Errors: DM_ERR_ARG (shape <= 0, scale < 0, or not finite). Cost: some normal and
 * uniform numbers an element, by rejection: try t of element i takes words of its own, which follow from the seed, i
 * and t. Source: Marsaglia & Tsang (2000); below a shape of 1 with u^(1 / shape). */
DM_API DM_CHECKED dm_status dm_fill_gamma(dm_session *session, dm_array x, double shape, double scale, uint64_t seed);
/* x = how many events of a Poisson process happen where `rate` are expected: mean and variance are rate. x: a float or
 * integers; converted from f64 as dm_copy does. Errors: DM_ERR_ARG (rate is not 0 to 1e15). Cost: below a rate of 10
 * about rate steps an element, else some tries, with words as those of dm_fill_gamma. Source: below 10 inversion
 * (Devroye 1986), else transformed rejection (PTRS, Hörmann 1993). */
DM_API DM_CHECKED dm_status dm_fill_poisson(dm_session *session, dm_array x, double rate, uint64_t seed);
/* x = the numbers 0 to n - 1 in a random order: that of n uniform numbers of 53 bits. x: n elements, i32 or i64, one
 * dim. May block, as dm_sort. Errors: DM_ERR_LIMIT (more elements than i32 counts), those of dm_argsort. Cost:
 * dm_argsort, and a temporary of 8 bytes an element. */
DM_API DM_CHECKED dm_status dm_fill_permutation(dm_session *session, dm_array x, uint64_t seed);
/* out = x with its indices along dim in the order of dm_fill_permutation of this seed. dim: from 0, or negative
 * from the end. x and out: one shape and type, apart. May block, as dm_take with DM_CLIP. Errors: DM_ERR_ARG
 * (dim), DM_ERR_OVERLAP. Cost: dm_fill_permutation of dim's indices, and dm_take. */
DM_API DM_CHECKED dm_status dm_shuffle(dm_session *session, dm_array x, int dim, uint64_t seed, dm_array out);

/* out = indices from 0 to n - 1, chosen at random. replace 0: no index comes twice; then n >= m, and of the weights at
 * least m are positive, which is not checked. out: m elements, i32 or i64, one dim. weights: n numbers of a float type,
 * not negative, with a positive sum, each as likely as its part of that; DM_NO_ARRAY: all alike. dm_take brings the
 * elements. May block where dm_sort does. Errors: DM_ERR_ARG (n < 1 for m > 0, n < m without replacement), DM_ERR_LIMIT
 * (more indices than i32 counts). Cost: without replacement dm_argsort of n numbers, in temporaries of 16 bytes each;
 * with replacement and weights their running sums, which worker 0 makes in f64, and dm_searchsorted; else that of
 * dm_fill_uniform. Source: Efraimidis & Spirakis (2006), without replacement: the m largest of log(u) / weight. */
DM_API DM_CHECKED dm_status dm_choice(dm_session *session, int64_t n, dm_array weights, int replace, uint64_t seed,
                                      dm_array out);

/* *seed = the next seed of the session's generator: number k of a generator with `seed` is a mix of both. A new session
 * has dm_random_set(session, 0, 0). Errors: DM_ERR_ARG (a pointer is NULL). Cost: nothing is sent. */
DM_API DM_CHECKED dm_status dm_random_next(dm_session *session, uint64_t *seed);
/* Where the generator is, and to there: for checkpoints. Otherwise as dm_random_next. */
DM_API DM_CHECKED dm_status dm_random_get(dm_session *session, uint64_t *seed, uint64_t *next);
DM_API DM_CHECKED dm_status dm_random_set(dm_session *session, uint64_t seed, uint64_t next);

#ifdef __cplusplus
}
#endif

#endif
