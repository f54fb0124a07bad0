/* dmath: choosing and moving elements.  BSD-3-Clause, see LICENSE.
 *
 * Layouts: any, mixed freely. Types: any; the arrays that elements move between have one type, unless said.
 * dim: of x, from 0, or negative from the end. No call but dm_split, dm_compress and dm_nonzero makes an array.
 *
 * Calls with `indices`: an array of integers of any type. mode says what an index i outside of 0 .. n-1 means,
 * n the extent of that dim: DM_RAISE  -n to -1 count from the end. Any other is DM_ERR_ARG, whose message names
 * the first such index and where it is; nothing has been changed then. The call waits for the indices: it
 * blocks, once (for explain two commands, index_count and read). In programs: DM_ERR_STATE. DM_WRAP   i modulo
 * n. DM_CLIP   0 or n-1, whichever is nearer: negative ones are 0. Errors of all: DM_ERR_ARG (dim, mode,
 * indices), DM_ERR_SHAPE, DM_ERR_DTYPE (indices are no integers; x and out or values have different types),
 * DM_ERR_OVERLAP (what is written shares memory with another operand), DM_ERR_LIMIT and DM_ERR_NOMEM
 * (temporaries). Cost of all: what is written stays, and its workers are sent the indices and the values, or
 * (take) all that indices may name of x. Or, in the calls that are not along_dim, only the rows that the
 * indices name travel, each once, with 16 bytes an index; dm_take on CPUs of rows of 512 bytes and more for
 * each worker: in one copy to where they go, and the indices to all workers. The call takes what moves fewer
 * bytes; the second way needs to know the indices, so it blocks, once, in every mode. It is not taken between
 * dm_explain_begin and dm_explain_end, in programs, and, but for rows in one copy, in groups. dm_take by
 * workers that are threads, on CPUs, of an x that is split along dim alone: each reads what it wants where it
 * is. Only indices are sent, and two words for each pair of workers, and it blocks in DM_RAISE alone. Option
 * index_algorithm forces each. */
#ifndef DMATH_INDEX_H
#define DMATH_INDEX_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DM_RAISE = 0, DM_WRAP = 1, DM_CLIP = 2 };

/* out[.., k, ..] = x[.., indices[k], ..], k and indices[k] at dim (NumPy: take). indices: (m); out: x's shape with m at
 * dim. */
DM_API DM_CHECKED dm_status dm_take(dm_session *session, dm_array x, dm_array indices, int dim, int mode,
                                    dm_array out);
/* x[.., indices[k], ..] = values[.., k, ..]; where an index occurs again, the last one stays. indices: (m); values
 * broadcast to x's shape with m at dim. */
DM_API DM_CHECKED dm_status dm_put(dm_session *session, dm_array x, dm_array indices, dm_array values, int dim,
                                   int mode);
/* x[.., indices[k], ..] += values[.., k, ..], one k after the other, rounded to x's type each time (NumPy: add.at): the
 * same bits on any number of workers, in every type. bool: or. Shapes: as dm_put. */
DM_API DM_CHECKED dm_status dm_scatter_add(dm_session *session, dm_array x, dm_array indices, dm_array values,
                                           int dim, int mode);

/* out[.., k, ..] = x[.., indices[.., k, ..], ..] (NumPy: take_along_axis). indices have x's dims; beside dim each is
 * x's or 1, which repeats. out: x's shape with the indices' extent at dim. */
DM_API DM_CHECKED dm_status dm_take_along_dim(dm_session *session, dm_array x, dm_array indices, int dim,
                                              int mode, dm_array out);
/* x[.., indices[.., k, ..], ..] = values[.., k, ..], or +=: as dm_put and dm_scatter_add (NumPy: put_along_axis).
 * indices: as of dm_take_along_dim; values broadcast to x's shape with the indices' extent at dim. */
DM_API DM_CHECKED dm_status dm_put_along_dim(dm_session *session, dm_array x, dm_array indices, dm_array values,
                                             int dim, int mode);
DM_API DM_CHECKED dm_status dm_scatter_add_along_dim(dm_session *session, dm_array x, dm_array indices,
                                                     dm_array values, int dim, int mode);

/* ---- joining, repeating, shifting --------------------------------------------------------------------------------
 * Copies of parts, converted as dm_copy does unless said. out shares no memory with the other arrays. None blocks,
 * unless said. Errors of all: DM_ERR_ARG (dim, NULL), DM_ERR_SHAPE, DM_ERR_OVERLAP, DM_ERR_LIMIT (too many arrays:
 * views, for the time). Cost of all, unless said: each element of out is written once; each that another worker lacks
 * travels once. */

/* out = arrays[0], arrays[1], ... one behind the other along dim. They may differ in that dim alone; out has the sum
 * there. Errors: DM_ERR_ARG (count < 1). Cost: a copy an array. */
DM_API DM_CHECKED dm_status dm_concatenate(dm_session *session, int count, const dm_array *arrays, int dim, dm_array out);
/* out = the arrays, all of one shape, side by side along a new dim: out[.., i, ..] = arrays[i]. out: one dim more, at
 * most 8. Errors and cost: as dm_concatenate. */
DM_API DM_CHECKED dm_status dm_stack(dm_session *session, int count, const dm_array *arrays, int dim, dm_array out);
/* out[count] = views of a: sizes[i] indices of dim each, one behind the other; sizes NULL: equal ones. The caller
 * destroys the views. Errors: DM_ERR_ARG (count, sizes: negative, or not all of dim; equal parts are impossible). Cost:
 * moves nothing. */
DM_API DM_CHECKED dm_status dm_split(dm_session *session, dm_array a, int dim, int count, const int64_t *sizes, dm_array *out);
/* out = x, times[d] of it along each dim d. out: x's extents times these. Errors: DM_ERR_ARG (times < 0). Cost: what is
 * there is doubled by a copy until it is enough, so elements may travel more than once. */
DM_API DM_CHECKED dm_status dm_tile(dm_session *session, dm_array x, const int64_t *times, dm_array out);
/* out[.., k, ..] = x[.., k / times, ..]: each index of dim so many times in a row. out: x's shape with times as much at
 * dim. Errors: DM_ERR_ARG (times < 0). Cost: `times` copies of x. */
DM_API DM_CHECKED dm_status dm_repeat(dm_session *session, dm_array x, int64_t times, int dim, dm_array out);
/* out[.., (k + shift) mod n, ..] = x[.., k, ..], n the extent of dim; shift of either sign. out: x's shape. Cost: two
 * copies. */
DM_API DM_CHECKED dm_status dm_roll(dm_session *session, dm_array x, int64_t shift, int dim, dm_array out);
/* out[.., n - 1 - k, ..] = x[.., k, ..]. out: x's shape and type. May block, as dm_take. Errors: DM_ERR_DTYPE (x and
 * out have different types). Cost: a dm_take of a part for each worker, with DM_WRAP. */
DM_API DM_CHECKED dm_status dm_flip(dm_session *session, dm_array x, int dim, dm_array out);

/* What stands beside x = (a b c), twice before and twice after: NumPy's names. */
enum {
    DM_PAD_CONSTANT = 0,  /* v v a b c v v */
    DM_PAD_EDGE = 1,      /* a a a b c c c */
    DM_PAD_REFLECT = 2,   /* c b a b c b a */
    DM_PAD_SYMMETRIC = 3, /* b a a b c c b */
    DM_PAD_WRAP = 4       /* b c a b c a b */
};
/* out = x with before[d] and after[d] more indices along each dim d. out: so much larger; x's type, but for CONSTANT.
 * value: of DM_PAD_CONSTANT. REFLECT, SYMMETRIC and WRAP block: they write indices from the host, and use dm_take.
 * before and after are read during the call. Errors: DM_ERR_ARG (before, after, mode; value, in an integer dtype),
 * DM_ERR_DTYPE (x and out have different types, but for CONSTANT), DM_ERR_SHAPE (nothing to repeat), DM_ERR_STATE
 * (modes from REFLECT on, in programs and between dm_explain_begin and dm_explain_end). Cost: a copy of x, and for each
 * dim two fills (CONSTANT), copies (EDGE) or takes of the padding, from out's rows that are there. */
DM_API DM_CHECKED dm_status dm_pad(dm_session *session, dm_array x, const int64_t *before, const int64_t *after, int mode,
                                   double value, dm_array out);

/* ---- by place, by mask ---------------------------------------------------------------------------------------------
 * Elements chosen by a condition alone: dm_where (<dmath/ewise.h>), or an expression (dm_map: "where(mask, value, x)").
 * Results are converted as dm_copy does, unless said. None blocks, but dm_compress and dm_nonzero. Errors of all:
 * DM_ERR_SHAPE, DM_ERR_OVERLAP (an output shares memory with an input), DM_ERR_LIMIT and DM_ERR_NOMEM (temporaries). */

/* out[.., c] = is indices[..] equal to c? An index that is no class has none. indices: integers; out has one dim more,
 * with an index for each class, and any type. Errors: DM_ERR_DTYPE (indices are no integers). Cost: indices are copied
 * to a temporary, and out is written once. */
DM_API DM_CHECKED dm_status dm_one_hot(dm_session *session, dm_array indices, dm_array out);
/* outs[i][k0, k1, ..] = arrays[i][ki] of `count` arrays of one dim each (NumPy: meshgrid with indexing 'ij'). outs have
 * a dim for each array. Errors: DM_ERR_ARG (count is not 1 to 8; NULL). Cost: each of outs is written once. */
DM_API DM_CHECKED dm_status dm_meshgrid(dm_session *session, int count, const dm_array *arrays, const dm_array *outs);
/* out[k] = x[k, k + offset]; offset < 0: x[k - offset, k]. x: a matrix; out: one dim, as many as x has. Cost:
 * dm_take_along_dim in the rows that the diagonal passes. */
DM_API DM_CHECKED dm_status dm_diagonal(dm_session *session, dm_array x, int64_t offset, dm_array out);
/* The same places of x = values, one each. values: one dim. Cost: dm_put_along_dim. */
DM_API DM_CHECKED dm_status dm_set_diagonal(dm_session *session, dm_array x, int64_t offset, dm_array values);
/* *out = x with the indices along dim at which mask is not 0 (NumPy: compress). mask: one dim, of any type. A new array
 * of x's type, which the caller destroys; layout: its own; NULL: the default. Blocks, once, for how many there are.
 * Errors: DM_ERR_ARG (dim, out), those of dm_array_create, DM_ERR_STATE (between dm_explain_begin and dm_explain_end,
 * and in programs). Cost: that of dm_nonzero of mask, and dm_take. */
DM_API DM_CHECKED dm_status dm_compress(dm_session *session, dm_array x, dm_array mask, int dim, const dm_layout *layout,
                                        dm_array *out);
/* out[d][k] = the index along dim d of the k-th element of x that is not 0, in row-major order (NumPy: nonzero). NaN is
 * not 0. x: any type, one dim or more; count: its dims; out[count]: new arrays of i64, one dim and the default layout,
 * which the caller destroys. Blocks, once, for how many there are. Errors: DM_ERR_ARG (count, out), DM_ERR_SHAPE (x is a
 * scalar), those of dm_array_create, DM_ERR_STATE (between dm_explain_begin and dm_explain_end, and in programs). Cost:
 * on CPUs x is read twice where it is, if it is split along its first dim in the order of the workers, else a mask of it,
 * which moves; each of out is written once. On GPUs, and in a group: a mask, its sum along its order and a put of indices,
 * in temporaries of 8 bytes an element of x, and an expression for each of out. */
DM_API DM_CHECKED dm_status dm_nonzero(dm_session *session, dm_array x, int count, dm_array *out);

#ifdef __cplusplus
}
#endif
#endif
