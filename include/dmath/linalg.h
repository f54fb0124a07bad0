/* dmath: linear algebra by the names of BLAS, and calls that are made of products, reductions and elementwise
 * functions. BSD-3-Clause, see LICENSE.
 *
 * Layouts: any, mixed freely, views included; ScaLAPACK's are dm_layout_grid. Blocking: none.
 * Errors that the texts do not repeat: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP (an output overlaps an input, unless
 * the text allows it), DM_ERR_ARG (uplo, trans, side, diag, dims), DM_ERR_LIMIT. Shapes, types and overlap are checked
 * before anything is sent. Calls that are made of several commands say so; where memory_limit leaves no room for a
 * later one, the output may have changed. */
#ifndef DMATH_LINALG_H
#define DMATH_LINALG_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation and losses ---------------------------------------------------------------------------- */

/* out = x - m - log(sum(e^(x - m))) over dims, m the largest: the logarithm of dm_softmax without its underflow.
 * Shapes, types and errors: as dm_softmax (<dmath/reduce.h>). x and out may be the same array. */
DM_API DM_CHECKED dm_status dm_log_softmax(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);

/* out = (x - mean) / deviation over dims: mean 0 and deviation 1, with the correction of dm_std. Where the deviation is
 * 0, out is 0. x: real; out: a float, of x's shape. Mean and deviation are found as dm_mean and dm_std find them, and
 * kept in f32, of f64 and integers in f64. x and out may be the same array. Reads x three times. */
DM_API DM_CHECKED dm_status dm_standardise(dm_session *session, dm_array x, const int *dims, int ndims, double correction,
                                           dm_array out);

/* out = (x - mean) / sqrt(variance + eps) * gain + bias over dims (Ba, Kiros & Hinton 2016). gain and bias broadcast to
 * x; either may be DM_NO_ARRAY. Otherwise as dm_standardise with correction 0. Errors: DM_ERR_ARG (eps < 0). */
DM_API DM_CHECKED dm_status dm_layer_norm(dm_session *session, dm_array x, const int *dims, int ndims, dm_array gain,
                                          dm_array bias, double eps, dm_array out);

/* loss[i] = -log(softmax(x[i, :]))[labels[i]] for the rows of x. x: m x n, a float; labels: m integers, 0 to n-1; loss:
 * m, a float. A label outside 0 to n-1 stands for a row that does not count: its loss is 0. The mean over rows is
 * dm_mean of loss. */
DM_API DM_CHECKED dm_status dm_cross_entropy(dm_session *session, dm_array x, dm_array labels, dm_array loss);
/* gradient = scale * (softmax(x) - one where the label is): the derivative of scale * sum(loss) by x; rows that do not
 * count are 0. gradient: m x n, a float; it may be x. */
DM_API DM_CHECKED dm_status dm_cross_entropy_gradient(dm_session *session, dm_array x, dm_array labels, double scale,
                                                      dm_array gradient);

/* ---- statistics and distances ---------------------------------------------------------------------------- */

enum { DM_BY_ROWS = 0, DM_BY_COLUMNS = 1 };

/* out = the covariances of the variables, which are the rows of x or (DM_BY_COLUMNS) its columns: sum((x - mean) (x -
 * mean)^H) / (n - correction) over the n observations, as numpy.cov; NaN or Inf where n <= correction. x: a matrix;
 * out: square, a float, complex if x is. The means come off before the product, which is computed as dm_gemm does, of
 * integers in f64. Two commands, and a temporary of x's size. */
DM_API DM_CHECKED dm_status dm_covariance(dm_session *session, dm_array x, int by, double correction, dm_array out);

/* out[i, j] = |a[i, :] - b[j, :]|, Euclidean. a: m x k, b: n x k, real; out: m x n, a float. Computed in f64 as
 * sqrt(|a|^2 + |b|^2 - 2 a b) after the mean of a's rows has come off both, so that a common offset does not cancel.
 * The error of a squared distance is some 2^-52 (|a[i] - c|^2 + |b[j] - c|^2), c that mean: of rows that are nearly
 * equal the distance is wrong by up to 2^-26 of their distance from c. 2mnk flops; several commands; temporaries in f64
 * of the size of a, b and out. */
DM_API DM_CHECKED dm_status dm_distances(dm_session *session, dm_array a, dm_array b, dm_array out);
/* out[i, j] = 1 - a[i, :] b[j, :] / (|a[i, :]| |b[j, :]|), the same way; the absolute error is some 2^-52 k. NaN where
 * a row is 0. Rows are scaled by their largest element first, so that no square overflows. */
DM_API DM_CHECKED dm_status dm_cosine_distances(dm_session *session, dm_array a, dm_array b, dm_array out);

/* ---- BLAS, level 1 --------------------------------------------------------------------------------------- */
/* x and y of one shape, of any number of dims: all their elements count. Floats and complex types. out: one element. */

/* out = sum(x y); dotc: of the conjugate of x. In f64, of f64 in pairs of f64. */
DM_API DM_CHECKED dm_status dm_dot(dm_session *session, dm_array x, dm_array y, dm_array out);
DM_API DM_CHECKED dm_status dm_dotc(dm_session *session, dm_array x, dm_array y, dm_array out);
/* out = sqrt(sum |x|^2), which overflows only if the result does. */
DM_API DM_CHECKED dm_status dm_nrm2(dm_session *session, dm_array x, dm_array out);
/* out = sum(|re| + |im|). */
DM_API DM_CHECKED dm_status dm_asum(dm_session *session, dm_array x, dm_array out);
/* out = the row-major index, from 0, of the first element of largest |re| + |im|, or of the first NaN; some
 * elements. */
DM_API DM_CHECKED dm_status dm_iamax(dm_session *session, dm_array x, dm_array out);
/* x = alpha x: dm_scale. */
DM_API DM_CHECKED dm_status dm_scal(dm_session *session, double alpha, dm_array x);
/* y = alpha x + y: dm_axpby. */
DM_API DM_CHECKED dm_status dm_axpy(dm_session *session, double alpha, dm_array x, dm_array y);
/* x and y change places. They have one type. */
DM_API DM_CHECKED dm_status dm_swap(dm_session *session, dm_array x, dm_array y);
/* (x, y) = (c x + s y, c y - s x): a plane rotation. They have one type. */
DM_API DM_CHECKED dm_status dm_rot(dm_session *session, dm_array x, dm_array y, double c, double s);

/* ---- triangles ------------------------------------------------------------------------------------------- */

enum { DM_LOWER = 0, DM_UPPER = 1 };
enum { DM_LEFT = 0, DM_RIGHT = 1 };
enum { DM_NONUNIT = 0, DM_UNIT = 1 };

/* out = the lower or upper triangle of a matrix of any shape, with the diagonal, and 0 elsewhere. x and out may be the
 * same array. */
DM_API DM_CHECKED dm_status dm_tril(dm_session *session, dm_array x, dm_array out);
DM_API DM_CHECKED dm_status dm_triu(dm_session *session, dm_array x, dm_array out);
/* out = the symmetric (hermitian: Hermitian) matrix of which x has the triangle `uplo`; the other one is not read, nor
 * are the imaginary parts of the diagonal of a Hermitian one. */
DM_API DM_CHECKED dm_status dm_symmetrise(dm_session *session, int uplo, int hermitian, dm_array x, dm_array out);

/* ---- BLAS, levels 2 and 3 -------------------------------------------------------------------------------- */
/* Matrices have one type: f64, f32, c64 or c128, and vectors that of their matrix. alpha and beta are real. With beta 0
 * the output is not read, with alpha 0 the inputs are not. op(a) is a, its transpose (DM_T) or that's conjugate (DM_C).
 * Of a triangular, symmetric or Hermitian matrix only the triangle `uplo` is read, or written; with DM_UNIT the
 * diagonal counts as ones and is not read. The two forms of a call, symmetric and Hermitian, are the same for real
 * types. General products are dm_gemm and, of stacks, dm_gemm of operands of more than two dims. Calls of level 3 are
 * made of products of blocks, by halves: commands grow with n / 128, flops are those of BLAS and some 128 n k more. */

/* y = alpha op(a) x + beta y. */
DM_API DM_CHECKED dm_status dm_gemv(dm_session *session, int trans, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
/* a = alpha x y^T + a; gerc: y^H. One command. */
DM_API DM_CHECKED dm_status dm_ger(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a);
DM_API DM_CHECKED dm_status dm_gerc(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a);
/* y = alpha a x + beta y, a symmetric or Hermitian. A temporary of a's size. */
DM_API DM_CHECKED dm_status dm_symv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
DM_API DM_CHECKED dm_status dm_hemv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
/* a = alpha x x^T + a, and of her x^H, whose diagonal becomes real. One command. */
DM_API DM_CHECKED dm_status dm_syr(dm_session *session, int uplo, double alpha, dm_array x, dm_array a);
DM_API DM_CHECKED dm_status dm_her(dm_session *session, int uplo, double alpha, dm_array x, dm_array a);
/* a = alpha (x y^T + y x^T) + a; her2: with ^H. One command. */
DM_API DM_CHECKED dm_status dm_syr2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a);
DM_API DM_CHECKED dm_status dm_her2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a);
/* x = op(a) x, a triangular. A temporary of a's size. */
DM_API DM_CHECKED dm_status dm_trmv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x);
/* op(a) x' = x, x becomes x'. As dm_trsm. */
DM_API DM_CHECKED dm_status dm_trsv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x);

/* c = alpha op(a) op(a)^T + beta c; herk: ^H, and the diagonal of c becomes real. c: n x n; op(a): n x k. trans: DM_N
 * or DM_T; of herk DM_N or DM_C; of real types all three. */
DM_API DM_CHECKED dm_status dm_syrk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta,
                                    dm_array c);
DM_API DM_CHECKED dm_status dm_herk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta,
                                    dm_array c);
/* c = alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c; her2k: with ^H. */
DM_API DM_CHECKED dm_status dm_syr2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                                     dm_array c);
DM_API DM_CHECKED dm_status dm_her2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                                     dm_array c);
/* c = alpha a b + beta c, or (DM_RIGHT) alpha b a + beta c, a symmetric or Hermitian. A temporary of a's size. */
DM_API DM_CHECKED dm_status dm_symm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                                    dm_array c);
DM_API DM_CHECKED dm_status dm_hemm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                                    dm_array c);
/* b = alpha op(a) b, or (DM_RIGHT) alpha b op(a), a triangular. */
DM_API DM_CHECKED dm_status dm_trmm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                                    dm_array b);
/* op(a) x = alpha b, or (DM_RIGHT) x op(a) = alpha b, a triangular; b becomes x. Nothing looks for zeros on the
 * diagonal: they make Inf and NaN. */
DM_API DM_CHECKED dm_status dm_trsm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                                    dm_array b);

#ifdef __cplusplus
}
#endif
#endif
