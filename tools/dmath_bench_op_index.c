/* Choosing, joining and moving elements for `dmath bench`, beside plain loops. x is slot 1, a matrix; indices
 * are slot 2. */
#include "dmath_bench_op.h"

#include <string.h>

enum { COPIES = 2, CLASSES = 8, PAD = 3 };

#define CALL(name, call)                                                                                       \
    static dm_status call_##name(tool_op *o)                                                                   \
    {                                                                                                          \
        return (call);                                                                                         \
    }
/* want[i, j] of `cols` columns; x(i, j) is slot 1, index(i) slot 2. */
#define ENTRIES(name, cols, value)                                                                             \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        const int64_t n = o->side, width = (cols);                                                             \
        for (int64_t i = 0; i < o->count[o->result] / width; i++) {                                            \
            for (int64_t j = 0; j < width; j++) {                                                              \
                o->want[i * width + j] = (value);                                                              \
            }                                                                                                  \
        }                                                                                                      \
        (void)n;                                                                                               \
    }
#define X(i, j) (o->h[1][(i)*n + (j)])
#define INDEX(i) ((int64_t)o->h[2][i])

static dm_status matrix_to(tool_op *o, int64_t rows, int64_t cols)
{
    dm_status status = tool_op_matrix(o, 1, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 2, (int64_t[]){rows, cols}));
}

static dm_status prepare_same(tool_op *o)
{
    return matrix_to(o, o->side, o->side);
}

static dm_status prepare_twice(tool_op *o)
{
    return matrix_to(o, COPIES * o->side, o->side);
}

static dm_status prepare_padded(tool_op *o)
{
    return matrix_to(o, o->side + 2 * PAD, o->side + 2 * PAD);
}

/* By indices, one a row, or (along) one an element. */
static dm_status indices(tool_op *o, bool along)
{
    const int64_t shape[] = {o->side, o->side};
    return tool_op_fill(o, 2, DM_I32, along ? 2 : 1, shape, 0, (double)o->side);
}

static dm_status prepare_take(tool_op *o)
{
    dm_status status = prepare_same(o);
    return TOOL_TRY(status, indices(o, strcmp(o->row->name, "take") != 0));
}

/* What is put is slot 1; it goes to slot 0, which has contents. Indices that come once make the order of puts
 * of no matter. */
static dm_status prepare_put(tool_op *o)
{
    bool along = strstr(o->row->name, "along") != NULL, once = strncmp(o->row->name, "put", 3) == 0;
    dm_status status = tool_op_matrix(o, 0, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_matrix(o, 1, o->dtype, -1, 1));
    status = TOOL_TRY(status, indices(o, along));
    if (once && status == DM_OK) { /* rows, or elements of each column, in reverse */
        dm_map_arg args[] = {DM_ARG("k", o->a[2]), DM_INTEGER("n", o->side)};
        status = dm_map(o->s, "n - 1 - i32(index(0)) + 0 * k", 2, args, o->a[2]);
        status = TOOL_TRY(status, dm_array_read_as(o->s, o->a[2], NULL, NULL, DM_F64, o->h[2], 0));
    }
    o->result = 0;
    o->tolerance = 1e-4;
    return status;
}

CALL(take, dm_take(o->s, o->a[1], o->a[2], 0, DM_RAISE, o->a[0]))
CALL(take_along_dim, dm_take_along_dim(o->s, o->a[1], o->a[2], 0, DM_RAISE, o->a[0]))
CALL(put, dm_put(o->s, o->a[0], o->a[2], o->a[1], 0, DM_RAISE))
CALL(scatter_add, dm_scatter_add(o->s, o->a[0], o->a[2], o->a[1], 0, DM_RAISE))
CALL(put_along_dim, dm_put_along_dim(o->s, o->a[0], o->a[2], o->a[1], 0, DM_RAISE))
CALL(scatter_add_along_dim, dm_scatter_add_along_dim(o->s, o->a[0], o->a[2], o->a[1], 0, DM_RAISE))
ENTRIES(take, n, X(INDEX(i), j))
ENTRIES(take_along_dim, n, X(INDEX(i *n + j), j))

static void plain_put(tool_op *o)
{
    int64_t n = o->side;
    bool along = strstr(o->row->name, "along") != NULL, adds = strncmp(o->row->name, "scatter", 7) == 0;
    memcpy(o->want, o->h[0], (size_t)o->count[0] * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double *to = &o->want[INDEX(along ? i * n + j : i) * n + j];
            *to = adds ? *to + X(i, j) : X(i, j);
        }
    }
}

CALL(concatenate, dm_concatenate(o->s, COPIES, (dm_array[]){o->a[1], o->a[1]}, 0, o->a[0]))
CALL(tile, dm_tile(o->s, o->a[1], (int64_t[]){COPIES, 1}, o->a[0]))
CALL(repeat, dm_repeat(o->s, o->a[1], COPIES, 0, o->a[0]))
CALL(roll, dm_roll(o->s, o->a[1], 1, 0, o->a[0]))
CALL(flip, dm_flip(o->s, o->a[1], 0, o->a[0]))
CALL(pad, dm_pad(o->s, o->a[1], (int64_t[]){PAD, PAD}, (int64_t[]){PAD, PAD}, DM_PAD_CONSTANT, 7, o->a[0]))
CALL(pad_by, dm_pad_by(o->s, o->a[1], (int64_t[]){PAD, PAD}, (int64_t[]){PAD, PAD}, DM_PAD_CONSTANT,
                       tool_op_element(o, 4, 7), o->a[0]))
ENTRIES(concatenate, n, X(i % n, j))
ENTRIES(repeat, n, X(i / COPIES, j))
ENTRIES(roll, n, X((i + n - 1) % n, j))
ENTRIES(flip, n, X(n - 1 - i, j))
ENTRIES(pad, n + 2 * PAD, i < PAD || j < PAD || i >= n + PAD || j >= n + PAD ? 7 : X(i - PAD, j - PAD))

static dm_status prepare_stack(tool_op *o)
{
    dm_status status = tool_op_matrix(o, 1, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 3, (int64_t[]){COPIES, o->side, o->side}));
}
CALL(stack, dm_stack(o->s, COPIES, (dm_array[]){o->a[1], o->a[1]}, 0, o->a[0]))

static dm_status prepare_one_hot(tool_op *o)
{
    dm_status status = tool_op_vector(o, 2, DM_I32, 0, CLASSES);
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 2, (int64_t[]){o->n, CLASSES}));
}
CALL(one_hot, dm_one_hot(o->s, o->a[2], o->a[0]))
ENTRIES(one_hot, CLASSES, INDEX(i) == j)

static dm_status prepare_meshgrid(tool_op *o)
{
    dm_status status = tool_op_fill(o, 2, o->dtype, 1, &o->side, -1, 1);
    status = TOOL_TRY(status, tool_op_result(o, 1, o->dtype, 2, (int64_t[]){o->side, o->side}));
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 2, (int64_t[]){o->side, o->side}));
}
CALL(meshgrid, dm_meshgrid(o->s, 2, (dm_array[]){o->a[2], o->a[2]}, (dm_array[]){o->a[0], o->a[1]}))
ENTRIES(meshgrid, n, o->h[2][i])

static dm_status prepare_diagonal(tool_op *o)
{
    dm_status status = tool_op_matrix(o, 1, o->dtype, -1, 1);
    o->bytes = 2.0 * (double)o->side * (double)dm_dtype_bytes(o->dtype);
    return TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 1, &o->side));
}
CALL(diagonal, dm_diagonal(o->s, o->a[1], 0, o->a[0]))
ENTRIES(diagonal, 1, X(i, i))

static dm_status prepare_set_diagonal(tool_op *o)
{
    dm_status status = tool_op_fill(o, 2, o->dtype, 1, &o->side, -1, 1);
    o->result = 1;
    o->bytes = 2.0 * (double)o->side * (double)dm_dtype_bytes(o->dtype);
    return TOOL_TRY(status, tool_op_matrix(o, 1, o->dtype, -1, 1));
}
CALL(set_diagonal, dm_set_diagonal(o->s, o->a[1], 0, o->a[2]))
ENTRIES(set_diagonal, n, i == j ? o->h[2][i] : X(i, j))

/* Slot 0 becomes the rows whose mask is set. */
static dm_status prepare_compress(tool_op *o)
{
    dm_status status = prepare_same(o);
    return TOOL_TRY(status, tool_op_fill(o, 2, DM_I32, 1, &o->side, 0, 2));
}

static dm_status call_compress(tool_op *o)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_destroy(o->s, o->a[0]);
    o->a[0] = DM_NO_ARRAY;
    status = TOOL_TRY(status, dm_compress(o->s, o->a[1], o->a[2], 0, NULL, &o->a[0]));
    status = TOOL_TRY(status, dm_array_query(o->s, o->a[0], &info));
    o->count[0] = status == DM_OK ? info.shape[0] * o->side : 0;
    return status;
}

static void plain_compress(tool_op *o)
{
    int64_t n = o->side, at = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n && INDEX(i) != 0 && at < o->count[0]; j++) {
            o->want[at++] = X(i, j);
        }
    }
}

/* Slot 0 becomes the indices of a vector's elements that are not 0. */
static dm_status prepare_nonzero(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, DM_I32, 0, 2);
    return TOOL_TRY(status, tool_op_result(o, 0, DM_I64, 1, (int64_t[]){1}));
}

static dm_status call_nonzero(tool_op *o)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_destroy(o->s, o->a[0]);
    o->a[0] = DM_NO_ARRAY;
    status = TOOL_TRY(status, dm_nonzero(o->s, o->a[1], 1, &o->a[0]));
    status = TOOL_TRY(status, dm_array_query(o->s, o->a[0], &info));
    o->count[0] = status == DM_OK ? info.shape[0] : 0;
    return status;
}

static void plain_nonzero(tool_op *o)
{
    for (int64_t i = 0, at = 0; i < o->n && at < o->count[0]; i++) {
        if (o->h[1][i] != 0) {
            o->want[at++] = (double)i;
        }
    }
}

#define ROW(name, prepare, call, plain)                                                                        \
    {                                                                                                          \
#name, "index", prepare_##prepare, call_##call, plain_##plain, NULL, NULL                              \
    }
const tool_op_row tool_ops_index[] = {
    ROW(take, take, take, take),
    ROW(take_along_dim, take, take_along_dim, take_along_dim),
    ROW(put, put, put, put),
    ROW(put_along_dim, put, put_along_dim, put),
    ROW(scatter_add, put, scatter_add, put),
    ROW(scatter_add_along_dim, put, scatter_add_along_dim, put),
    ROW(concatenate, twice, concatenate, concatenate),
    ROW(stack, stack, stack, concatenate),
    ROW(tile, twice, tile, concatenate),
    ROW(repeat, twice, repeat, repeat),
    ROW(roll, same, roll, roll),
    ROW(flip, same, flip, flip),
    ROW(pad, padded, pad, pad),
    ROW(pad_by, padded, pad_by, pad),
    ROW(one_hot, one_hot, one_hot, one_hot),
    ROW(meshgrid, meshgrid, meshgrid, meshgrid),
    ROW(diagonal, diagonal, diagonal, diagonal),
    ROW(set_diagonal, set_diagonal, set_diagonal, set_diagonal),
    ROW(compress, compress, compress, compress),
    ROW(nonzero, nonzero, nonzero, nonzero),
    {0},
};
