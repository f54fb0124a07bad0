/* dmath: factors that are elements of arrays.  BSD-3-Clause, see LICENSE.
 *
 * The calls of <dmath/dmath.h> take their factors (alpha, beta, a scale, bounds) as numbers of the program. The
 * calls below do the same with factors that are each a number or an element of an array, which the program need
 * not know, so that a loop can go on without a word to the program:
 *
 *     dm_map(s, "rr / pq", 2, (dm_map_arg[]){DM_ARG("rr", rr), DM_ARG("pq", pq)}, step);  -- of one element
 *     dm_axpby_by(s, dm_element(step), p, dm_value(1), x);                                -- x = step * p + x
 *
 * dm_map and dm_map_new take such elements as arrays already, and so do calls whose numbers have an array's
 * form (dm_histogram_edges for the bounds of dm_histogram). Of the calls of <dmath/linalg.h>, dm_scal is
 * dm_scale_by, and dm_axpy is dm_axpby_by. dm_set_item is dm_copy into a view. Numbers alone are: what decides
 * how a call runs (a correction, an order, eps, options of layers, places of dm_quantile, the bound of
 * dm_program_run_until).
 *
 * An element is an array, or a view, of one element, of any number of dims and in any layout. Its type: where
 * the call computes in integers, an integer or bool; where it computes in complex numbers, any; else any real
 * type. It is converted to the type that the call computes in, as a number is, and does not change that type;
 * but a call that computes in c64 may compute in c128 with an element of c128. It may not overlap an output. It
 * is read when the command runs. So its value is not checked (it may be NaN), and an operand is read even where
 * its factor is 0.
 *
 * Of each call: shapes, types and blocking: as the call without _by. Errors: as that, and DM_ERR_SHAPE (a
 * factor has not one element), DM_ERR_DTYPE and DM_ERR_OVERLAP (of a factor), DM_ERR_ARG (a factor was made by
 * none of dm_value, dm_complex, dm_element). Cost: as that; workers that lack an element are sent it;
 * temporaries where the text says so. */
#include <dmath/dmath.h> /* before the guard: it includes this header ahead of others that use dm_factor */

#ifndef DMATH_FACTORS_H
#define DMATH_FACTORS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dm_factor {
    double value;
    dm_array array;
    int element;      /* 1: the element of array; 0: value */
    double imaginary; /* of a value */
} dm_factor;

static inline dm_factor dm_value(double value)
{
    dm_factor f = {value, {0}, 0, 0};
    return f;
}

/* A complex number, for calls that compute in complex numbers: where an operand or the output is complex. Elsewhere
 * DM_ERR_DTYPE, unless im is 0. */
static inline dm_factor dm_complex(double re, double im)
{
    dm_factor f = {re, {0}, 0, im};
    return f;
}

static inline dm_factor dm_element(dm_array array)
{
    dm_factor f = {0, array, 1, 0};
    return f;
}

/* y = alpha * x + beta * y */
DM_API DM_CHECKED dm_status dm_axpby_by(dm_session *session, dm_factor alpha, dm_array x, dm_factor beta,
                                        dm_array y);
/* out = alpha * a + beta * b */
DM_API DM_CHECKED dm_status dm_add_by(dm_session *session, dm_factor alpha, dm_array a, dm_factor beta,
                                      dm_array b, dm_array out);
/* out = alpha * a * b */
DM_API DM_CHECKED dm_status dm_multiply_by(dm_session *session, dm_factor alpha, dm_array a, dm_array b,
                                           dm_array out);
/* out = alpha * a */
DM_API DM_CHECKED dm_status dm_scale_by(dm_session *session, dm_factor alpha, dm_array a, dm_array out);

/* Fills. Elements are converted to x's type as dm_copy converts, so integers wrap and floats saturate, where a number
 * that does not fit is refused. Cost: all but dm_fill_by take a temporary of x's shape where a factor is an element. */
/* x = value */
DM_API DM_CHECKED dm_status dm_fill_by(dm_session *session, dm_array x, dm_factor value);
/* x[i, j] = value where i = j, else 0 */
DM_API DM_CHECKED dm_status dm_fill_identity_by(dm_session *session, dm_array x, dm_factor value);
/* x[i] = start + step * i, i the row-major index. Computed in f64, or where x, start and step are integers in
 * 64 bits that wrap. */
DM_API DM_CHECKED dm_status dm_fill_arange_by(dm_session *session, dm_array x, dm_factor start, dm_factor step);
/* x[i] = lo + (hi - lo) * u, u what dm_fill_uniform gives with lo 0 and hi 1; for integers, rounded down. All lo unless
 * lo < hi. Computed in f32 for f32 and shorter floats, else in f64: of f32 and f64 they are the numbers of
 * dm_fill_uniform. */
DM_API DM_CHECKED dm_status dm_fill_uniform_by(dm_session *session, dm_array x, dm_factor lo, dm_factor hi,
                                               uint64_t seed);
/* x[i] = mean + deviation * z, z what dm_fill_normal gives with mean 0 and deviation 1 */
DM_API DM_CHECKED dm_status dm_fill_normal_by(dm_session *session, dm_array x, dm_factor mean,
                                              dm_factor deviation, uint64_t seed);

/* out = scale * (sum of x over dims) + beta * out. Cost: with elements the sum is made in a temporary of its own type
 * (f64, c128, or 64-bit integers), of out's shape, but in none where beta is the number 0 and out has that type. */
DM_API DM_CHECKED dm_status dm_sum_by(dm_session *session, dm_array x, const int *dims, int ndims,
                                      dm_factor scale, dm_factor beta, dm_array out);

/* c = alpha * op(a) * op(b) + beta * c; options NULL: none. Cost: with elements the product is made in a temporary of
 * the computing type, of c's shape, but in none where beta is the number 0 and c has that type. Cached replicas take no
 * part. */
DM_API DM_CHECKED dm_status dm_gemm_by(dm_session *session, int trans_a, int trans_b, dm_factor alpha,
                                       dm_array a, dm_array b, dm_factor beta, dm_array c,
                                       const dm_gemm_options *options);

/* ---- padding, random numbers ----------------------------------------------------------------------------- */

/* dm_pad; value is read in mode DM_PAD_CONSTANT alone. */
DM_API DM_CHECKED dm_status dm_pad_by(dm_session *session, dm_array x, const int64_t *before,
                                      const int64_t *after, int mode, dm_factor value, dm_array out);
/* As the calls without _by, whose numbers they give, but for gamma with an element as scale: x is rounded
 * before it is scaled and once more after it. An element goes into the formula as it is: bernoulli u < p,
 * dropout u < p ? 0 : 1 / (1 - p), exponential -log(1 - u) * scale. With a shape or rate that a number may not
 * be (see the calls without _by) all of x is NaN, which integers take as in dm_copy. */
DM_API DM_CHECKED dm_status dm_fill_bernoulli_by(dm_session *session, dm_array x, dm_factor p, uint64_t seed);
DM_API DM_CHECKED dm_status dm_fill_dropout_by(dm_session *session, dm_array x, dm_factor p, uint64_t seed);
DM_API DM_CHECKED dm_status dm_fill_exponential_by(dm_session *session, dm_array x, dm_factor scale,
                                                   uint64_t seed);
DM_API DM_CHECKED dm_status dm_fill_gamma_by(dm_session *session, dm_array x, dm_factor shape, dm_factor scale,
                                             uint64_t seed);
DM_API DM_CHECKED dm_status dm_fill_poisson_by(dm_session *session, dm_array x, dm_factor rate, uint64_t seed);

/* ---- linear algebra: as the calls of <dmath/linalg.h> without _by ---------------------------------------- */
/* Factors may be complex where matrices are, but for alpha and beta of herk, beta of her2k and alpha of her. her2
 * and her2k multiply their second product by the conjugate of alpha. With elements, products take a temporary of
 * the size of the output as dm_gemm_by does, and trmm and trsm scale b first. */

/* gradient = scale (softmax(x) - [j is the label]) */
DM_API DM_CHECKED dm_status dm_cross_entropy_gradient_by(dm_session *session, dm_array x, dm_array labels,
                                                         dm_factor scale, dm_array gradient);
/* (x, y) = (c x + s y, c y - s x); c and s are real. */
DM_API DM_CHECKED dm_status dm_rot_by(dm_session *session, dm_array x, dm_array y, dm_factor c, dm_factor s);
/* y = alpha op(a) x + beta y */
DM_API DM_CHECKED dm_status dm_gemv_by(dm_session *session, int trans, dm_factor alpha, dm_array a, dm_array x,
                                       dm_factor beta, dm_array y);
/* a = alpha x y^T + a; gerc: y^H */
DM_API DM_CHECKED dm_status dm_ger_by(dm_session *session, dm_factor alpha, dm_array x, dm_array y, dm_array a);
DM_API DM_CHECKED dm_status dm_gerc_by(dm_session *session, dm_factor alpha, dm_array x, dm_array y,
                                       dm_array a);
/* y = alpha a x + beta y, a symmetric or Hermitian */
DM_API DM_CHECKED dm_status dm_symv_by(dm_session *session, int uplo, dm_factor alpha, dm_array a, dm_array x,
                                       dm_factor beta, dm_array y);
DM_API DM_CHECKED dm_status dm_hemv_by(dm_session *session, int uplo, dm_factor alpha, dm_array a, dm_array x,
                                       dm_factor beta, dm_array y);
/* a = alpha x x^T + a; her: x^H */
DM_API DM_CHECKED dm_status dm_syr_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array a);
DM_API DM_CHECKED dm_status dm_her_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array a);
/* a = alpha (x y^T + y x^T) + a; her2: alpha x y^H + conj(alpha) y x^H + a */
DM_API DM_CHECKED dm_status dm_syr2_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array y,
                                       dm_array a);
DM_API DM_CHECKED dm_status dm_her2_by(dm_session *session, int uplo, dm_factor alpha, dm_array x, dm_array y,
                                       dm_array a);
/* c = alpha op(a) op(a)^T + beta c; herk: ^H */
DM_API DM_CHECKED dm_status dm_syrk_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a,
                                       dm_factor beta, dm_array c);
DM_API DM_CHECKED dm_status dm_herk_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a,
                                       dm_factor beta, dm_array c);
/* c = alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c; her2k: c = alpha op(a) op(b)^H + conj(alpha) op(b) op(a)^H +
 * beta c */
DM_API DM_CHECKED dm_status dm_syr2k_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a,
                                        dm_array b, dm_factor beta, dm_array c);
DM_API DM_CHECKED dm_status dm_her2k_by(dm_session *session, int uplo, int trans, dm_factor alpha, dm_array a,
                                        dm_array b, dm_factor beta, dm_array c);
/* c = alpha a b + beta c, or (DM_RIGHT) alpha b a + beta c, a symmetric or Hermitian */
DM_API DM_CHECKED dm_status dm_symm_by(dm_session *session, int side, int uplo, dm_factor alpha, dm_array a,
                                       dm_array b, dm_factor beta, dm_array c);
DM_API DM_CHECKED dm_status dm_hemm_by(dm_session *session, int side, int uplo, dm_factor alpha, dm_array a,
                                       dm_array b, dm_factor beta, dm_array c);
/* b = alpha op(a) b, or (DM_RIGHT) alpha b op(a), a triangular */
DM_API DM_CHECKED dm_status dm_trmm_by(dm_session *session, int side, int uplo, int trans, int diag,
                                       dm_factor alpha, dm_array a, dm_array b);
/* op(a) x = alpha b, or (DM_RIGHT) x op(a) = alpha b, a triangular; b becomes x. */
DM_API DM_CHECKED dm_status dm_trsm_by(dm_session *session, int side, int uplo, int trans, int diag,
                                       dm_factor alpha, dm_array a, dm_array b);

#ifdef __cplusplus
}
#endif
#endif
