/* What the calls of <dmath/linalg.h> share. They are made of commands on views and temporaries. */
#ifndef DMI_API_BLAS_H
#define DMI_API_BLAS_H

#include "api/parts.h"

#include <dmath/factors.h>
#include <dmath/linalg.h>

/* Matrices of at most so many rows are not cut any more. */
enum { DMI_BLAS_BLOCK = 128 };

/* The operands of a call; the last is its output. */
typedef struct dmi_blas {
    dm_session *session;
    dmi_session *s;
    int count;
    dmi_operand x[3];
    dm_array array[3];
    char name[3];
    dm_dtype dtype; /* of all */
    bool complex;
} dmi_blas;
/* names: a letter each; ndim: of each. They must have one type, f64, f32, c64 or c128, and the output overlap
 * no input. */
DM_CHECKED dm_status dmi_blas_begin(dm_session *session, const char *names, const int *ndim,
                                    const dm_array *arrays, dmi_blas *out);
/* DM_ERR_SHAPE unless operand i is rows x cols (of a vector: rows). */
DM_CHECKED dm_status dmi_blas_shape(const dmi_blas *q, int i, int64_t rows, int64_t cols);
int64_t dmi_blas_extent(const dmi_blas *q, int i, int dim);
/* DM_ERR_ARG unless 0 <= value <= most. */
DM_CHECKED dm_status dmi_blas_flag(const char *what, int value, int most);

/* Errors of a factor, which may not overlap the output; real: nor be complex. */
DM_CHECKED dm_status dmi_blas_factor(const dmi_blas *q, const char *what, const dm_factor *f, bool real);

/* Ends the scope of the call's views and temporaries; returns the call's status. */
DM_CHECKED dm_status dmi_blas_end(dm_session *session, dm_status status);
DM_CHECKED dm_status dmi_blas_temporary(dm_session *session, dm_dtype dtype, int64_t rows, int64_t cols,
                                        dm_array *out);
/* The rectangle of rows [r, r + rows) and columns [c, c + cols). */
DM_CHECKED dm_status dmi_blas_block(dm_session *session, dm_array a, int64_t r, int64_t rows, int64_t c,
                                    int64_t cols, dm_array *out);
/* Where a matrix of n > DMI_BLAS_BLOCK rows is cut. */
int64_t dmi_blas_half(int64_t n);

/* out = text, element by element. Names of the text: `w` is w, i and j are the indices; with a beta, which is
 * settled, that is `beta`, and out's elements are `c`. */
DM_CHECKED dm_status dmi_blas_masked(dm_session *session, const char *text, dm_array w, const dm_factor *beta,
                                     dm_array out);

#endif
