/* dmath: choosing and moving elements.  BSD-3-Clause, see LICENSE.
 *
 * Layouts: any, mixed freely. Types: any; the arrays that elements move between have one type.
 *
 * Calls with `indices`: an array of integers of any type. dim: of x, from 0, or negative from the end. mode
 * says what an index i outside of 0 .. n-1 means, n the extent of that dim: DM_RAISE  -n to -1 count from the
 * end. Any other is DM_ERR_ARG, whose message names the first such index and where it is; nothing has been
 * changed then. The call waits for the indices: it blocks, once DM_WRAP   i modulo n DM_CLIP   0 or n-1,
 * whichever is nearer: negative ones are 0 Where x has many rows and few are named, rows are exchanged (by
 * rows: not the calls along_dim): the call then waits for the indices in every mode. Otherwise the elements
 * that are written stay, and what each worker needs for them comes to it. Option index_algorithm forces either.
 * While explaining (dm_explain_begin) indices are not looked at, and nothing is exchanged. Errors of all:
 * DM_ERR_ARG (dim, mode, indices), DM_ERR_SHAPE, DM_ERR_DTYPE (indices are no integers; x and out or values
 * have different types), DM_ERR_OVERLAP (what is written shares memory with another operand), DM_ERR_LIMIT and
 * DM_ERR_NOMEM (temporaries). */
#ifndef DMATH_INDEX_H
#define DMATH_INDEX_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DM_RAISE = 0, DM_WRAP = 1, DM_CLIP = 2 };

/* out[.., k, ..] = x[.., indices[k], ..], k and indices[k] at dim (NumPy: take). indices: (m); out: x's shape
 * with m at dim. */
DM_API DM_CHECKED dm_status dm_take(dm_session *session, dm_array x, dm_array indices, int dim, int mode,
                                    dm_array out);
/* x[.., indices[k], ..] = values[.., k, ..]. values broadcast to x's shape with m at dim. Where an index occurs
 * again, the last one stays. */
DM_API DM_CHECKED dm_status dm_put(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim,
                                   int mode);
/* x[.., indices[k], ..] += values[.., k, ..], one k after the other, rounded to x's type each time (NumPy:
 * add.at): the same bits on any number of workers, in every type. bool: or. */
DM_API DM_CHECKED dm_status dm_scatter_add(dm_session *session, dm_array x, dm_array indices, dm_array values,
                                           int dim, int mode);

/* out[.., k, ..] = x[.., indices[.., k, ..], ..] (NumPy: take_along_axis). indices have x's dims; beside dim
 * each is x's or 1, which repeats. out: x's shape with the indices' extent at dim. */
DM_API DM_CHECKED dm_status dm_take_along_dim(dm_session *session, dm_array x, dm_array indices, int dim,
                                              int mode, dm_array out);
/* x[.., indices[.., k, ..], ..] = values[.., k, ..], or +=: as dm_put and dm_scatter_add (NumPy:
 * put_along_axis). */
DM_API DM_CHECKED dm_status dm_put_along_dim(dm_session *session, dm_array x, dm_array indices, dm_array values,
                                             int dim, int mode);
DM_API DM_CHECKED dm_status dm_scatter_add_along_dim(dm_session *session, dm_array x, dm_array indices,
                                                     dm_array values, int dim, int mode);

#ifdef __cplusplus
}
#endif
#endif
