/* dmath: linear algebra by the names of BLAS, and calls that are made of products, reductions and elementwise
 * functions. BSD-3-Clause, see LICENSE.
 *
 * Layouts: any, mixed freely, views included; ScaLAPACK's are dm_layout_grid. Blocking: none. Errors that the texts do
 * not repeat: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP (an output overlaps an input, unless the text allows it),
 * DM_ERR_ARG (uplo, trans, side, diag, dims), DM_ERR_LIMIT, DM_ERR_UNSUPPORTED (as dm_gemm). Shapes, types and overlap
 * are checked before anything is sent. Calls that are made of several commands say so; where memory_limit leaves no
 * room for a later one, or the forced gemm_algorithm cannot serve it, the output may have changed. Temporaries are the
 * call's own, gone when its commands are done. Flops are of real types: of complex ones four times as many. */
#ifndef DMATH_LINALG_H
#define DMATH_LINALG_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation and losses ---------------------------------------------------------------------------- */

/* out = x - m - log(sum(e^(x - m))) over dims, m the largest: the logarithm of dm_softmax without its underflow. x:
 * integers or floats; out: a float, of x's shape; they may be the same array. Computed in f32, of f64 and integers of 4
 * and 8 bytes in f64. Cost: x is read three times; two reductions, as in <dmath/reduce.h>. */
DM_API DM_CHECKED dm_status dm_log_softmax(dm_session *session, dm_array x, const int *dims, int ndims, dm_array out);

/* out = (x - mean) / deviation over dims: mean 0 and deviation 1, with the correction of dm_std. Where the deviation is
 * 0, out is 0. x: integers or floats; out: a float, of x's shape; they may be the same array. Mean and deviation are
 * found as dm_mean and dm_std find them, and kept in f32, of f64 and integers in f64. Errors: DM_ERR_ARG (correction is
 * NaN). Cost: x is read three times; two reductions. */
DM_API DM_CHECKED dm_status dm_standardise(dm_session *session, dm_array x, const int *dims, int ndims, double correction,
                                           dm_array out);

/* out = (x - mean) / sqrt(variance + eps) * gain + bias over dims. gain and bias: real, broadcast to x; either may be
 * DM_NO_ARRAY. out may be x, gain or bias. Types and cost: as dm_standardise, with correction 0.
 * Errors: DM_ERR_ARG (eps < 0). Source: Ba, Kiros & Hinton (2016). */
DM_API DM_CHECKED dm_status dm_layer_norm(dm_session *session, dm_array x, const int *dims, int ndims, dm_array gain,
                                          dm_array bias, double eps, dm_array out);

/* loss[i] = -log(softmax(x[i, :]))[labels[i]] for the rows of x. A label outside 0 to n-1 stands for a row that does
 * not count: its loss is 0. The mean over rows is dm_mean of loss. x: m x n, a float; labels: m integers; loss: m, or m
 * x 1, a float. Cost: x is read three times; a worker sends a few numbers of each row that it shares with others. */
DM_API DM_CHECKED dm_status dm_cross_entropy(dm_session *session, dm_array x, dm_array labels, dm_array loss);
/* gradient = scale * (softmax(x) - one where the label is): the derivative of scale * sum(loss) by x; rows that do not
 * count are 0. gradient: m x n, a float; it may be x. Cost: as dm_cross_entropy. */
DM_API DM_CHECKED dm_status dm_cross_entropy_gradient(dm_session *session, dm_array x, dm_array labels, double scale,
                                                      dm_array gradient);

/* ---- statistics and distances ---------------------------------------------------------------------------- */

enum { DM_BY_ROWS = 0, DM_BY_COLUMNS = 1 };

/* out = the covariances of the variables, which are the rows of x or (DM_BY_COLUMNS) its columns: sum((x - mean) (x -
 * mean)^H) / (n - correction) over the n observations, as numpy.cov; NaN or Inf where n <= correction. x: a matrix of
 * any type; out: m x m for m variables, f64, f32, f16, bf16, or complex, which it is if x is. The means come off before
 * the product, which is computed as dm_gemm does, of integers in f64. Errors: DM_ERR_ARG (by; correction is NaN). Cost:
 * 2 m^2 n flops, those of dm_gemm. Two commands, and a temporary of x's shape. */
DM_API DM_CHECKED dm_status dm_covariance(dm_session *session, dm_array x, int by, double correction, dm_array out);

/* out[i, j] = |a[i, :] - b[j, :]|, Euclidean. a: m x k, b: n x k, real; out: m x n, a float. Computed in f64 as
 * sqrt(|a|^2 + |b|^2 - 2 a b) after the mean of a's rows has come off both, so that a common offset does not cancel.
 * The error of a squared distance is some 2^-52 (|a[i] - c|^2 + |b[j] - c|^2), c that mean: of rows that are nearly
 * equal the distance is wrong by up to 2^-26 of their distance from c. Cost: 2mnk flops, those of dm_gemm; several
 * commands; temporaries in f64 of the size of a, b and out. */
DM_API DM_CHECKED dm_status dm_distances(dm_session *session, dm_array a, dm_array b, dm_array out);
/* out[i, j] = 1 - a[i, :] b[j, :] / (|a[i, :]| |b[j, :]|), the same way; the absolute error is some 2^-52 k. NaN where
 * a row is 0. Rows are scaled by their largest element first, so that no square overflows. Shapes, types and cost: as
 * dm_distances. */
DM_API DM_CHECKED dm_status dm_cosine_distances(dm_session *session, dm_array a, dm_array b, dm_array out);

/* ---- BLAS, level 1 --------------------------------------------------------------------------------------- */
/* x and y: one shape, of any number of dims: all their elements count; floats and complex types, mixed unless said.
 * out: one element: no dims, or x's dims of 1 each; it may overlap neither. Cost, unless said: x and y are read once, y
 * where x is; what has been found goes from each worker to out's, some 8 to 32 bytes. */

/* out = sum(x y); dotc: of the conjugate of x. In f64, of f64 in pairs of f64; partial sums beyond f64: as in
 * dm_sum. out: any type, converted as dm_copy does. Cost: 2 flops an element. */
DM_API DM_CHECKED dm_status dm_dot(dm_session *session, dm_array x, dm_array y, dm_array out);
DM_API DM_CHECKED dm_status dm_dotc(dm_session *session, dm_array x, dm_array y, dm_array out);
/* out = sqrt(sum |x|^2), in f64. It overflows only if the result does. out: a float or complex. Cost: f64 and c128 are
 * read twice. */
DM_API DM_CHECKED dm_status dm_nrm2(dm_session *session, dm_array x, dm_array out);
/* out = sum(|re| + |im|), as dm_sum computes. out: any type. */
DM_API DM_CHECKED dm_status dm_asum(dm_session *session, dm_array x, dm_array out);
/* out = the row-major index, from 0, of the first element of largest |re| + |im|, or of the first NaN. x: one element
 * at least; out: any type. */
DM_API DM_CHECKED dm_status dm_iamax(dm_session *session, dm_array x, dm_array out);
/* x = alpha x: dm_scale, with its cost. */
DM_API DM_CHECKED dm_status dm_scal(dm_session *session, double alpha, dm_array x);
/* y = alpha x + y: dm_axpby, with its cost. y may be x. */
DM_API DM_CHECKED dm_status dm_axpy(dm_session *session, double alpha, dm_array x, dm_array y);
/* x and y change places. They have one type, and share no memory. Cost: three copies; a temporary of x's size. */
DM_API DM_CHECKED dm_status dm_swap(dm_session *session, dm_array x, dm_array y);
/* (x, y) = (c x + s y, c y - s x): a plane rotation. They have one type, and share no memory. Cost: x and y are read
 * twice and written once; a temporary of x's size. */
DM_API DM_CHECKED dm_status dm_rot(dm_session *session, dm_array x, dm_array y, double c, double s);

/* ---- triangles ------------------------------------------------------------------------------------------- */

enum { DM_LOWER = 0, DM_UPPER = 1 };
enum { DM_LEFT = 0, DM_RIGHT = 1 };
enum { DM_NONUNIT = 0, DM_UNIT = 1 };

/* out = the lower or upper triangle of a matrix, with the diagonal, and 0 elsewhere. x, out: one shape, square or not,
 * any types, converted as dm_copy does; they may be the same array. Cost: as of an elementwise function. */
DM_API DM_CHECKED dm_status dm_tril(dm_session *session, dm_array x, dm_array out);
DM_API DM_CHECKED dm_status dm_triu(dm_session *session, dm_array x, dm_array out);
/* out = the symmetric (hermitian: Hermitian) matrix of which x has the triangle `uplo`; the other one is not used, nor
 * are the imaginary parts of the diagonal of a Hermitian one. x, out: square, any types, converted as dm_copy does; out
 * may not overlap x. Cost: a temporary of out's size for the transpose, whose elements travel where x is not split
 * alike in both dims. */
DM_API DM_CHECKED dm_status dm_symmetrise(dm_session *session, int uplo, int hermitian, dm_array x, dm_array out);

/* ---- BLAS, levels 2 and 3 -------------------------------------------------------------------------------- */
/* Matrices have one type: f64, f32, c64 or c128, and vectors that of their matrix. alpha and beta are real. With beta 0
 * the output is not read, with alpha 0 the inputs are not. op(a) is a, its transpose (DM_T) or its conjugate transpose
 * (DM_C). Of a triangular, symmetric or Hermitian matrix only the triangle `uplo` is read, or written; with DM_UNIT the
 * diagonal counts as ones and is not read. The two forms of a call, symmetric and Hermitian, are the same for real
 * types. Outputs overlap no input. General products are dm_gemm and, of stacks, dm_gemm of operands of more than two
 * dims.
 *
 * Costs: calls of level 2 are elementwise or dm_gemm, in one command unless said. Calls of level 3 are made of products
 * of blocks, by halves: some commands for each 128 of n, the extent of the triangle; flops are those of BLAS, which the
 * texts name, and some 128 n k more, k the other extent; temporaries are blocks of 128 rows. What moves is what dm_gemm
 * moves for each block. */

/* y = alpha op(a) x + beta y. a: m x n; x, y: one dim, of n and m elements, transposed m and n. Cost: 2mn flops:
 * dm_gemm. a stays where it is if it is split along one dim and has more than 64 KiB. */
DM_API DM_CHECKED dm_status dm_gemv(dm_session *session, int trans, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
/* a = alpha x y^T + a; gerc: y^H. a: m x n; x: m; y: n. Cost: 2mn flops; a stays. */
DM_API DM_CHECKED dm_status dm_ger(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a);
DM_API DM_CHECKED dm_status dm_gerc(dm_session *session, double alpha, dm_array x, dm_array y, dm_array a);
/* y = alpha a x + beta y, a symmetric or Hermitian. a: n x n; x, y: n. Cost: 2 n^2 flops; dm_symmetrise and dm_gemm,
 * and two temporaries of a's size. */
DM_API DM_CHECKED dm_status dm_symv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
DM_API DM_CHECKED dm_status dm_hemv(dm_session *session, int uplo, double alpha, dm_array a, dm_array x, double beta,
                                    dm_array y);
/* a = alpha x x^T + a, and of her x^H, whose diagonal becomes real. a: n x n; x: n. Cost: 2 n^2 flops; a stays. */
DM_API DM_CHECKED dm_status dm_syr(dm_session *session, int uplo, double alpha, dm_array x, dm_array a);
DM_API DM_CHECKED dm_status dm_her(dm_session *session, int uplo, double alpha, dm_array x, dm_array a);
/* a = alpha (x y^T + y x^T) + a; her2: with ^H. a: n x n; x, y: n. Cost: 4 n^2 flops; a stays. */
DM_API DM_CHECKED dm_status dm_syr2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a);
DM_API DM_CHECKED dm_status dm_her2(dm_session *session, int uplo, double alpha, dm_array x, dm_array y, dm_array a);
/* x = op(a) x, a triangular. a: n x n; x: n. Cost: n^2 flops: dm_trmm of a copy of x. */
DM_API DM_CHECKED dm_status dm_trmv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x);
/* op(a) x' = x, x becomes x'. The same way, by dm_trsm. */
DM_API DM_CHECKED dm_status dm_trsv(dm_session *session, int uplo, int trans, int diag, dm_array a, dm_array x);

/* c = alpha op(a) op(a)^T + beta c; herk: ^H, and the diagonal of c becomes real. c: n x n; op(a): n x k. trans: DM_N
 * or DM_T; of herk DM_N or DM_C; of real types all three. Cost: n^2 k flops. */
DM_API DM_CHECKED dm_status dm_syrk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta,
                                    dm_array c);
DM_API DM_CHECKED dm_status dm_herk(dm_session *session, int uplo, int trans, double alpha, dm_array a, double beta,
                                    dm_array c);
/* c = alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c; her2k: with ^H. op(b): n x k. Otherwise as dm_syrk and dm_herk.
 * Cost: 2 n^2 k flops. */
DM_API DM_CHECKED dm_status dm_syr2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                                     dm_array c);
DM_API DM_CHECKED dm_status dm_her2k(dm_session *session, int uplo, int trans, double alpha, dm_array a, dm_array b, double beta,
                                     dm_array c);
/* c = alpha a b + beta c, or (DM_RIGHT) alpha b a + beta c, a symmetric or Hermitian. b, c: m x n; a: m x m, or n x n.
 * Cost: 2 m^2 n flops, or 2 m n^2; dm_symmetrise and dm_gemm, and two temporaries of a's size. */
DM_API DM_CHECKED dm_status dm_symm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                                    dm_array c);
DM_API DM_CHECKED dm_status dm_hemm(dm_session *session, int side, int uplo, double alpha, dm_array a, dm_array b, double beta,
                                    dm_array c);
/* b = alpha op(a) b, or (DM_RIGHT) alpha b op(a), a triangular. b: m x n; a: m x m, or n x n. Cost: m^2 n flops, or m
 * n^2. */
DM_API DM_CHECKED dm_status dm_trmm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                                    dm_array b);
/* op(a) x = alpha b, or (DM_RIGHT) x op(a) = alpha b, a triangular; b becomes x. b: m x n; a: m x m, or n x n. Nothing
 * looks for zeros on the diagonal: they make Inf and NaN. Cost: m^2 n flops, or m n^2. Each block of the diagonal comes
 * to all workers, and where b is split along the dim of a, what the block solves for is dealt out by the other dim and
 * comes back. */
DM_API DM_CHECKED dm_status dm_trsm(dm_session *session, int side, int uplo, int trans, int diag, double alpha, dm_array a,
                                    dm_array b);

#ifdef __cplusplus
}
#endif
#endif
