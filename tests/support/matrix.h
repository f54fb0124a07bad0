/* Matrices and vectors of f64, f32, c64 and c128 in the memory of the test, for linear algebra, and the arrays,
 * or views of arrays, that hold them. */
#ifndef DMT_MATRIX_H
#define DMT_MATRIX_H

#include "support/cases.h"

#include <complex.h>

typedef long double complex dmt_number;
typedef struct dmt_matrix {
    const char *name;
    dm_dtype dtype;
    int ndim; /* 1: a vector of `rows` elements */
    int64_t rows, cols;
    dmt_number *v; /* [rows * cols] row-major: what the array holds */
    dm_array array, base;
    int64_t lo[2], step[2], base_rows, base_cols; /* where in base */
    dmt_number *base_v;
} dmt_matrix;

bool dmt_is_complex(dm_dtype dtype);
dm_dtype dmt_blas_random(dmt_case *c); /* one of the four */
/* Random numbers of size 1; complex ones if the type is. */
dmt_matrix *dmt_matrix_make(dmt_case *c, const char *name, dm_dtype dtype, int ndim, int64_t rows,
                            int64_t cols);
/* Makes the array from v, which it rounds to the type, in a random layout, often as a view, with steps too;
 * dmt_matrix_end destroys it. */
void dmt_matrix_place(dmt_case *c, dmt_matrix *m);
void dmt_matrix_end(dmt_case *c, dmt_matrix *m);
/* The array's elements as they are now. */
dmt_number *dmt_matrix_read(dmt_case *c, const dmt_matrix *m);
/* Every element is within bound of want (NaN: both are), and the rest of the base as it was. */
void dmt_matrix_check(dmt_case *c, const dmt_matrix *m, const dmt_number *want, const long double *bound);
void dmt_matrix_unchanged(dmt_case *c, const dmt_matrix *m);
/* Element of op(m): trans 0, 1, 2. */
dmt_number dmt_matrix_at(const dmt_matrix *m, int trans, int64_t i, int64_t j);
long double dmt_blas_eps(dm_dtype dtype);

/* Extents: small ones, none, and some for which calls of level 3 cut matrices. */
int64_t dmt_blas_extent(dmt_case *c);
double dmt_blas_factor(dmt_case *c);
/* A factor: a number, given to the call without _by, or one that may be complex or an element of an array,
 * given to the call with it. Elements are not 0. real: it is never complex */
typedef struct dmt_blas_by {
    bool plain;
    double number; /* if plain */
    dm_factor given;
    dmt_number value;
    dmt_matrix *element; /* NULL: none */
} dmt_blas_by;
dmt_blas_by dmt_blas_by_make(dmt_case *c, const char *name, dm_dtype dtype, bool real);
/* Two of one call: both are plain or none. */
void dmt_blas_by_match(dmt_blas_by *a, dmt_blas_by *b);
void dmt_blas_by_end(dmt_case *c, dmt_blas_by *f);
/* Is element i, j in the triangle? unit: without the diagonal */
bool dmt_in_triangle(int uplo, bool unit, int64_t i, int64_t j);
/* What is not in the triangle becomes NaN. */
void dmt_matrix_spoil(dmt_matrix *m, int uplo, bool unit);

/* Sums of products, and the sum of the sizes of what was added up in each. */
typedef struct dmt_matrix_sums {
    dmt_number *v;
    long double *size;
} dmt_matrix_sums;
dmt_matrix_sums dmt_matrix_sums_make(dmt_case *c, int64_t count);
void dmt_matrix_sums_add(dmt_matrix_sums *s, int64_t at, dmt_number v);
/* Makes `size` a bound of the error of sums of k products. */
void dmt_matrix_sums_end(dmt_matrix_sums *s, int64_t count, dm_dtype dtype, int64_t k);

#endif
