/* The largest eigenvalues of a symmetric matrix, by power iteration on a block of vectors (subspace iteration).
 * One iteration multiplies the block, makes its columns orthonormal and finds how far they are from
 * eigenvectors. It is a recorded program. The workers run it until the residual is small, and send the master
 * nothing meanwhile.
 *
 *   power [FOLDER]        saves the matrix, the vectors and the values to FOLDER */
#include "common/save.h"
#include "common/told.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>

enum { N = 400, BLOCK = 4, MOST = 500 };

/* A = Q D Qᵀ for Q = 1 - 2 u uᵀ / (uᵀ u) and D = diag(1 / (1 + i)), so that the values are 1, 1/2, 1/3, ... */
static void make_matrix(dm_session *s, dm_array a)
{
    dm_array u, uu, q, scaled, d;
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_vector(s, DM_F64, N, &u));
    DM_CHECK(dm_vector(s, DM_F64, N, &d));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &uu));
    DM_CHECK(dm_array_like(s, a, 0, &q));
    DM_CHECK(dm_array_like(s, a, 0, &scaled));
    DM_CHECK(dm_fill_normal(s, u, 0, 1, 1));
    DM_CHECK(dm_nrm2(s, u, uu));
    DM_CHECK(dm_divide(s, u, uu, u)); /* of length 1 */
    DM_CHECK(dm_fill_identity(s, q, 1));
    DM_CHECK(dm_ger(s, -2, u, u, q));
    DM_CHECK(dm_fill_arange(s, d, 1, 1));
    DM_CHECK(dm_divide(s, q, d, scaled)); /* columns of q by 1, 2, 3, ... */
    DM_CHECK(dm_gemm(s, DM_N, DM_T, 1, scaled, q, 0, a));
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

/* Columns [first, first + count) of a. */
static dm_array columns(dm_session *s, dm_array a, int64_t first, int64_t count)
{
    dm_array view;
    DM_CHECK(dm_array_view(s, a, (int64_t[]){0, first}, (int64_t[]){N, count}, &view));
    return view;
}

/* Makes the columns orthonormal: Gram-Schmidt, each column twice, which is as good as a QR factorisation
 * (Giraud et al., 2005). */
static void orthonormalise(dm_session *s, dm_array v)
{
    dm_array length, along;
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &length));
    for (int64_t j = 0; j < BLOCK; j++) {
        dm_array column = columns(s, v, j, 1), before = columns(s, v, 0, j);
        for (int twice = 0; j > 0 && twice < 2; twice++) {
            DM_CHECK(dm_matrix(s, DM_F64, j, 1, &along));
            DM_CHECK(dm_gemm(s, DM_T, DM_N, 1, before, column, 0, along));
            DM_CHECK(dm_gemm(s, DM_N, DM_N, -1, before, along, 1, column));
        }
        DM_CHECK(dm_nrm2(s, column, length));
        DM_CHECK(dm_divide(s, column, length, column));
    }
}

static dm_program record_iteration(dm_session *s, dm_array a, dm_array v, dm_array values, dm_array residual)
{
    dm_program iteration;
    dm_array w, small;
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_array_like(s, v, 0, &w));
    DM_CHECK(dm_matrix(s, DM_F64, BLOCK, BLOCK, &small));
    DM_CHECK(dm_matmul(s, a, v, w));
    DM_CHECK(dm_gemm(s, DM_T, DM_N, 1, v, w, 0, small)); /* vᵀ a v, which becomes diagonal */
    DM_CHECK(dm_diagonal(s, small, 0, values));
    dm_map_arg args[] = {DM_ARG("w", w), DM_ARG("v", v), DM_ARG("values", values)};
    DM_CHECK(dm_map(s, "max(abs(w - v * values))", 3, args, residual));
    DM_CHECK(dm_copy(s, w, v));
    orthonormalise(s, v);
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_program_end(s, &iteration));
    return iteration;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    dm_session *s;
    dm_array a, v, values, residual;
    double value[BLOCK], left;
    int64_t sent;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, N, N, &a));
    DM_CHECK(dm_matrix(s, DM_F64, N, BLOCK, &v));
    DM_CHECK(dm_vector(s, DM_F64, BLOCK, &values));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &residual));
    make_matrix(s, a);
    DM_CHECK(dm_fill_normal(s, v, 0, 1, 2));
    orthonormalise(s, v);
    dm_program iteration = record_iteration(s, a, v, values, residual);
    int64_t before = bytes_to_program(s, &sent);
    DM_CHECK(dm_program_run_until(s, iteration, MOST, 5, residual, 1e-12, 0, NULL)); /* looks every 5 runs */
    int64_t told = bytes_to_program(s, &sent) - before;
    DM_CHECK(dm_read(s, values, value));
    DM_CHECK(dm_read(s, residual, &left));
    printf("%d workers, values %.9f %.9f %.9f %.9f, residual %.1g\n", dm_workers(s), value[0], value[1],
           value[2], value[3], left);
    save(s, folder, "matrix", a);
    save(s, folder, "vectors", v);
    save(s, folder, "values", values);
    DM_CHECK(dm_program_destroy(s, iteration));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return left < 1e-12 && told == 0 ? 0 : 1;
}
