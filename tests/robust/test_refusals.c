/* Calls with bad arguments, a row each: the status, and words of the message. Nothing that was there changes.
 * Rows for what the tests of single operations meet only by chance, or not at all. */
#include "robust.h"

#include "master/session.h"
#include "ops/common_order.h"

#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <dmath/factors.h>
#include <dmath/feed.h>
#include <dmath/group.h>
#include <dmath/index.h>
#include <dmath/layers.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/program.h>
#include <dmath/random.h>
#include <dmath/reduce.h>

#include <math.h>
#include <sys/wait.h>

static dm_session *s;
static int rows, wrong;

static void refused(dm_status got, dm_status want, const char *words, const char *call, int line)
{
    rows++;
    if (got != want || !strstr(dm_error_message(), words)) {
        fprintf(stderr, "line %d: %s: %s, '%s'; not %s with '%s'\n", line, call, dm_status_name(got),
                got == DM_OK ? "" : dm_error_message(), dm_status_name(want), words);
        wrong++;
    }
}
#define REFUSED(want, words, call) refused((call), DM_ERR_##want, (words), #call, __LINE__)

static dm_array make(dm_dtype dtype, int ndim, int64_t n0, int64_t n1, int64_t n2)
{
    const int64_t shape[] = {n0, n1, n2, 1, 1, 1, 1, 1};
    dm_array x;
    OK(dm_array_create(s, dtype, ndim, shape, NULL, &x));
    OK(dtype == DM_BOOL ? dm_fill(s, x, 1) : dm_fill_arange(s, x, 1, 1));
    return x;
}

/* f: 6x5, wide: 6x7, whole: 6x5 of i32, flags: of bool, comp: of c64; square: 5x5; row: 5; cube: 2x3x4; none:
 * 0x5; one: no dims; deep: 8 dims; index: 6 of i32 */
static struct {
    dm_array f, g, wide, whole, flags, comp, comp2, square, square2, row, tall, cube, none, one, deep, index,
        many;
} t;
enum { THINGS = sizeof t / sizeof(dm_array) };

static void make_things(void)
{
    t.f = make(DM_F32, 2, 6, 5, 1);
    t.g = make(DM_F32, 2, 6, 5, 1);
    t.wide = make(DM_F32, 2, 6, 7, 1);
    t.whole = make(DM_I32, 2, 6, 5, 1);
    t.flags = make(DM_BOOL, 2, 6, 5, 1);
    t.comp = make(DM_C64, 2, 5, 5, 1);
    t.comp2 = make(DM_C64, 2, 5, 5, 1);
    t.square = make(DM_F32, 2, 5, 5, 1);
    t.square2 = make(DM_F32, 2, 5, 5, 1);
    t.row = make(DM_F32, 1, 5, 1, 1);
    t.tall = make(DM_F32, 1, 6, 1, 1);
    t.cube = make(DM_F64, 3, 2, 3, 4);
    t.none = make(DM_F32, 2, 0, 5, 1);
    t.one = make(DM_F32, 0, 1, 1, 1);
    t.deep = make(DM_F32, 8, 2, 1, 1);
    t.index = make(DM_I32, 1, 6, 1, 1);
    t.many = make(DM_F32, 1, 30, 1, 1);
}

static void things_are_the_same(void)
{
    const dm_array *all = &t.f;
    for (int i = 0; i < THINGS; i++) {
        dm_array fresh;
        double apart;
        dm_array sum;
        OK(dm_array_like(s, all[i], (dm_dtype)0, &fresh));
        OK(all[i].id == t.flags.id ? dm_fill(s, fresh, 1) : dm_fill_arange(s, fresh, 1, 1));
        const dm_map_arg args[] = {DM_ARG("x", all[i]), DM_ARG("y", fresh)};
        OK(dm_map_new(s, "sum(f64(x != y))", 2, args, NULL, &sum));
        OK(dm_array_read(s, sum, NULL, NULL, &apart, 0));
        if (apart != 0) {
            fail_msg("thing %d has changed", i);
        }
        OK(dm_array_destroy(s, sum));
        OK(dm_array_destroy(s, fresh));
        OK(dm_array_destroy(s, all[i]));
    }
}

static void test_parts(void **state)
{
    (void)state;
    const dm_array two[] = {t.f, t.g}, apart[] = {t.f, t.wide}, deep[] = {t.deep, t.deep};
    const int64_t sizes[] = {2, 2}, large[] = {2, 9}, minus[] = {-1, 3}, times[] = {2, -1}, zero[] = {0, 0},
                  some[] = {1, 1};
    dm_array out[3];
    REFUSED(ARG, "arrays is NULL", dm_concatenate(s, 2, NULL, 0, t.wide));
    REFUSED(ARG, "count", dm_concatenate(s, 0, two, 0, t.wide));
    REFUSED(SHAPE, "arrays[1] is 6x7", dm_stack(s, 2, apart, 0, t.cube));
    REFUSED(SHAPE, "9 dims", dm_stack(s, 2, deep, 0, t.cube));
    REFUSED(SHAPE, "the result is", dm_concatenate(s, 2, two, 0, t.wide));
    REFUSED(OVERLAP, "share memory", dm_concatenate(s, 2, two, 0, t.f));
    REFUSED(ARG, "out is NULL", dm_split(s, t.f, 0, 2, sizes, NULL));
    REFUSED(ARG, "count", dm_split(s, t.f, 0, 0, sizes, out));
    REFUSED(ARG, "are left", dm_split(s, t.f, 0, 2, large, out));
    REFUSED(ARG, "are left", dm_split(s, t.f, 0, 2, minus, out));
    REFUSED(ARG, "sizes make 4 of 6", dm_split(s, t.f, 0, 2, sizes, out));
    REFUSED(ARG, "equal parts", dm_split(s, t.f, 1, 2, NULL, out));
    REFUSED(ARG, "dim is 2", dm_split(s, t.f, 2, 2, NULL, out));
    REFUSED(ARG, "dim is -3", dm_flip(s, t.f, -3, t.g));
    REFUSED(ARG, "times is NULL", dm_tile(s, t.f, NULL, t.wide));
    REFUSED(ARG, "times[1] is -1", dm_tile(s, t.f, times, t.wide));
    REFUSED(ARG, "times is -2", dm_repeat(s, t.f, -2, 0, t.wide));
    REFUSED(DTYPE, "flip: x has dtype f32", dm_flip(s, t.f, 0, t.whole));
    REFUSED(ARG, "before is NULL", dm_pad(s, t.f, NULL, some, DM_PAD_EDGE, 0, t.wide));
    REFUSED(ARG, "after is NULL", dm_pad(s, t.f, some, NULL, DM_PAD_EDGE, 0, t.wide));
    REFUSED(ARG, "mode is 5", dm_pad(s, t.f, zero, some, 5, 0, t.wide));
    REFUSED(ARG, "mode is -1", dm_pad(s, t.f, zero, some, -1, 0, t.wide));
    REFUSED(ARG, "before[1] is -1", dm_pad(s, t.f, (const int64_t[]){0, -1}, some, 0, 0, t.wide));
    REFUSED(ARG, "after[0] is -1", dm_pad(s, t.f, zero, minus, 0, 0, t.wide));
    REFUSED(ARG, "before[0] is 9223372036854775807",
            dm_pad(s, t.f, (const int64_t[]){INT64_MAX, 0}, some, 0, 0, t.wide));
    REFUSED(ARG, "after[1] is 9223372036854775807",
            dm_pad(s, t.f, zero, (const int64_t[]){0, INT64_MAX}, 0, 0, t.wide));
    REFUSED(SHAPE, "no elements", dm_pad(s, t.none, some, some, DM_PAD_WRAP, 0, t.wide));
    REFUSED(DTYPE, "pad: x has dtype f32", dm_pad(s, t.f, zero, zero, DM_PAD_EDGE, 0, t.whole));
}

static void test_masks(void **state)
{
    (void)state;
    const dm_array lines[] = {t.row, t.tall}, flat[] = {t.row, t.f}, outs[] = {t.square, t.square2};
    dm_array made, places[2];
    REFUSED(DTYPE, "no integer", dm_one_hot(s, t.row, t.square));
    REFUSED(SHAPE, "one dim more", dm_one_hot(s, t.index, t.square));
    REFUSED(SHAPE, "one dim more", dm_one_hot(s, t.index, t.tall));
    REFUSED(ARG, "count is 0", dm_meshgrid(s, 0, lines, outs));
    REFUSED(ARG, "count is 9", dm_meshgrid(s, 9, lines, outs));
    REFUSED(ARG, "is NULL", dm_meshgrid(s, 2, NULL, outs));
    REFUSED(ARG, "is NULL", dm_meshgrid(s, 2, lines, NULL));
    REFUSED(SHAPE, "arrays[1] has 2 dims", dm_meshgrid(s, 2, flat, outs));
    REFUSED(SHAPE, "the result is 5x6", dm_meshgrid(s, 2, lines, outs));
    REFUSED(SHAPE, "x has 3 dims", dm_diagonal(s, t.cube, 0, t.row));
    REFUSED(SHAPE, "x has 1 dims", dm_set_diagonal(s, t.row, 0, t.row));
    REFUSED(SHAPE, "the diagonal has 5", dm_set_diagonal(s, t.f, 0, t.tall));
    REFUSED(SHAPE, "the diagonal has 5", dm_set_diagonal(s, t.f, 0, t.square));
    dm_array base = make(DM_F32, 1, 25, 1, 1), square, line;
    OK(dm_array_reshape(s, base, 2, (const int64_t[]){5, 5}, &square));
    OK(dm_array_view(s, base, (const int64_t[]){3}, (const int64_t[]){5}, &line));
    REFUSED(OVERLAP, "share memory", dm_set_diagonal(s, square, 0, line));
    REFUSED(ARG, "out is NULL", dm_compress(s, t.f, t.index, 0, NULL, NULL));
    REFUSED(SHAPE, "mask is 5", dm_compress(s, t.f, t.row, 0, NULL, &made));
    REFUSED(SHAPE, "mask is 5x5", dm_compress(s, t.f, t.square, 0, NULL, &made));
    REFUSED(SHAPE, "x is a scalar", dm_nonzero(s, t.one, 0, places));
    REFUSED(ARG, "count is 1, but x has 2 dims", dm_nonzero(s, t.f, 1, places));
    REFUSED(ARG, "out is NULL", dm_nonzero(s, t.f, 2, NULL));
    REFUSED(SHAPE, "out is 5, but the result is 6x5", dm_isin(s, t.f, t.row, 0, t.row));
    REFUSED(OVERLAP, "x and out share memory", dm_isin(s, t.f, t.row, 0, t.f));
    REFUSED(OVERLAP, "test and out share memory", dm_isin(s, t.f, t.g, 0, t.g));
    REFUSED(SHAPE, "x has 3 dims, not 2", dm_tril(s, t.cube, t.f));
    REFUSED(SHAPE, "out has 1 dims, not 2", dm_triu(s, t.f, t.row));
    REFUSED(SHAPE, "x is 6x5, out 6x7", dm_tril(s, t.f, t.wide));
}

static void test_linear(void **state)
{
    (void)state;
    REFUSED(SHAPE, "has 6 elements, not 5", dm_gemv(s, DM_N, 1, t.f, t.tall, 0, t.row));
    REFUSED(SHAPE, "has 30 elements, not 6", dm_gemv(s, DM_N, 1, t.f, t.row, 0, t.many));
    REFUSED(SHAPE, "is 6x5, not", dm_symv(s, DM_UPPER, 1, t.f, t.row, 0, t.tall));
    REFUSED(DTYPE, "must be a float or complex", dm_swap(s, t.f, t.whole));
    REFUSED(DTYPE, "x has dtype c64, y has f32", dm_swap(s, t.comp, t.square));
    REFUSED(SHAPE, "x is 6x5, y 6x7", dm_swap(s, t.f, t.wide));
    REFUSED(OVERLAP, "share memory", dm_swap(s, t.f, t.f));
    REFUSED(ARG, "trans is DM_C", dm_syrk(s, DM_UPPER, DM_C, 1, t.comp, 0, t.comp2));
    REFUSED(ARG, "trans is DM_T", dm_herk(s, DM_UPPER, DM_T, 1, t.comp, 0, t.comp2));
    REFUSED(ARG, "uplo", dm_syrk(s, 9, DM_N, 1, t.square, 0, t.square2));
    REFUSED(SHAPE, "a is 6x5", dm_trsm(s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, t.f, t.g));
    REFUSED(SHAPE, "a is 5x5, not 6x6", dm_trsm(s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, t.square, t.f));
    REFUSED(DTYPE, "has dtype", dm_trsm(s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, t.square, t.comp));
    REFUSED(SHAPE, "0 dims, not 1 or more", dm_matmul(s, t.one, t.f, t.g));
    REFUSED(SHAPE, "0 dims, not 1 or more", dm_matmul(s, t.f, t.one, t.g));
    REFUSED(SHAPE, "has 2 dims", dm_matmul(s, t.f, t.square, t.row));
    REFUSED(SHAPE, "a is 2x3x4, b 2x3x4, c 2x3x3",
            dm_gemm(s, DM_N, DM_N, 1, t.cube, t.cube, 0, make(DM_F64, 3, 2, 3, 3)));
    REFUSED(SHAPE, "a is 2x3x4 (transposed)",
            dm_gemm(s, DM_T, DM_N, 1, t.cube, t.cube, 0, make(DM_F64, 3, 2, 3, 3)));
    REFUSED(DTYPE, "b has dtype c64, but c has f32", dm_matmul(s, t.f, t.comp, t.g));
    REFUSED(OVERLAP, "out shares memory", dm_covariance(s, t.square, 0, 1, t.square));
    REFUSED(SHAPE, "out is 6x5, not 5x5", dm_covariance(s, t.f, DM_BY_COLUMNS, 1, t.g));
    REFUSED(DTYPE, "out has dtype f32, x has c64", dm_covariance(s, t.comp, 0, 1, t.square));
    REFUSED(ARG, "correction is NaN", dm_covariance(s, t.square, 0, NAN, t.square2));
    REFUSED(ARG, "by", dm_covariance(s, t.square, 7, 1, t.square2));
    REFUSED(DTYPE, "a has dtype c64, and must be real", dm_distances(s, t.comp, t.square, t.square2));
    REFUSED(DTYPE, "b has dtype c64, and must be real", dm_distances(s, t.square, t.comp, t.square2));
    REFUSED(SHAPE, "a is 6x5, b 6x7", dm_distances(s, t.f, t.wide, make(DM_F32, 2, 6, 6, 1)));
    REFUSED(DTYPE, "must be a float", dm_distances(s, t.square, t.square2, make(DM_I32, 2, 5, 5, 1)));
}

static void test_reductions(void **state)
{
    (void)state;
    const int first[] = {0}, second[] = {1};
    const double half = 0.5;
    dm_array made, broad, flag = make(DM_BOOL, 1, 5, 1, 1);
    REFUSED(ARG, "order is 3", dm_norm(s, t.f, 3, first, 1, t.row));
    REFUSED(ARG, "correction is NaN", dm_var(s, t.f, first, 1, NAN, t.row));
    REFUSED(DTYPE, "the result is a floating-point number", dm_mean(s, t.f, second, 1, t.index));
    REFUSED(DTYPE, "max: does not take x of c64", dm_max(s, t.comp, first, 1, t.row));
    REFUSED(DTYPE, "is taken by a number", dm_prod(s, t.comp, first, 1, flag));
    REFUSED(DTYPE, "and out bool", dm_sum(s, t.comp, first, 1, 1, 0, flag));
    REFUSED(SHAPE, "no elements along", dm_max(s, t.none, first, 1, t.row));
    REFUSED(DTYPE, "x of c64", dm_softmax(s, t.comp, second, 1, t.square));
    REFUSED(DTYPE, "out has dtype i32", dm_softmax(s, t.f, second, 1, t.whole));
    REFUSED(DTYPE, "x has dtype c64", dm_layer_norm(s, t.comp, second, 1, t.row, t.row, 1e-5, t.square));
    REFUSED(DTYPE, "x has dtype", dm_log_softmax(s, t.flags, second, 1, t.f));
    REFUSED(ARG, "layer_norm: dims[0] is 9",
            dm_layer_norm(s, t.square, (int[]){9}, 1, t.row, t.row, 1e-5, t.square2));
    REFUSED(OVERLAP, "symm: a and c share memory",
            dm_symm(s, DM_LEFT, DM_LOWER, 1, t.square, t.square2, 0, t.square));
    REFUSED(SHAPE, "out has 1 dims, but x has 2", dm_quantile(s, t.f, &half, 1, 0, t.row));
    REFUSED(DTYPE, "must be a float", dm_median(s, t.f, 1, make(DM_I32, 2, 6, 1, 1)));
    REFUSED(SHAPE, "no elements along dim 0", dm_median(s, t.none, 0, make(DM_F32, 2, 1, 5, 1)));
    REFUSED(ARG, "q is NULL", dm_quantile(s, t.f, NULL, 2, 0, make(DM_F32, 2, 2, 5, 1)));
    REFUSED(ARG, "dim is", dm_sort(s, t.f, 4, 0, t.g));
    REFUSED(SHAPE, "values have 2 elements along dim 1, and indices 3",
            dm_topk(s, t.f, 1, 1, make(DM_F32, 2, 6, 2, 1), make(DM_I32, 2, 6, 3, 1)));
    const dm_map_arg args[] = {DM_ARG("x", t.f), DM_ARG("w", t.wide)};
    REFUSED(SHAPE, "broadcast", dm_map_new(s, "sum(x * w)", 2, args, NULL, &broad));
    REFUSED(SHAPE, "broadcast", dm_map(s, "sum(x * w)", 2, args, t.one));
    char longer[200] = "prod(w"; /* as many steps as there may be, and one more to the type of the product */
    dm_status status = DM_OK;
    const dm_array bytes = make(DM_U8, 1, 5, 1, 1), product = make(DM_U64, 0, 1, 1, 1);
    for (int i = 0; i < 64 && status == DM_OK; i++) {
        snprintf(longer + 6 + 2 * i, sizeof longer - 6 - 2 * (size_t)i, "*w)");
        status = dm_map(s, longer, 1, (dm_map_arg[]){DM_ARG("w", bytes)}, product);
    }
    REFUSED(ARG, "it takes too many steps", status);
    dm_map_arg many[100];
    for (int i = 0; i < 100; i++) {
        many[i] = args[0];
    }
    REFUSED(ARG, "count is 100, not 0 to", dm_map_new(s, "x", 100, many, NULL, &made));
    REFUSED(DTYPE, "does not take",
            dm_map_new(s, "max(c)", 1, (dm_map_arg[]){DM_ARG("c", t.comp)}, NULL, &made));
    REFUSED(ARG, "map_new: out is NULL", dm_map_new(s, "x", 1, args, NULL, NULL));
    REFUSED(ARG, "map_new: \"x +\"", dm_map_new(s, "x +", 1, args, NULL, &made));
    REFUSED(ARG, "at most",
            dm_map_new(s, "a_result_whose_name_is_much_longer_than_those_of_expressions_may_be = x", 1, args,
                       NULL, &made));
}

static void test_indices(void **state)
{
    (void)state;
    dm_array rows_of = make(DM_I32, 2, 3, 5, 1), long_bytes;
    OK(dm_vector(s, DM_U8, 300, &long_bytes));
    REFUSED(ARG, "dim is 2, but x has 2 dims", dm_take(s, t.f, t.index, 2, DM_WRAP, t.g));
    REFUSED(ARG, "dim is -3", dm_put(s, t.f, t.index, t.g, -3, DM_WRAP));
    REFUSED(ARG, "mode is 3", dm_take(s, t.f, t.index, 0, 3, t.g));
    REFUSED(ARG, "mode is -1", dm_take(s, t.f, t.index, 0, -1, t.g));
    REFUSED(DTYPE, "x has dtype f32, but out has i32", dm_take(s, t.f, t.index, 0, DM_WRAP, t.whole));
    REFUSED(DTYPE, "take: indices has dtype f32, which is not taken; i64, i32, u8, i8, i16, u16, u32, u64 are",
            dm_take(s, t.f, t.row, 0, DM_WRAP, t.g));
    REFUSED(SHAPE, "must have one dim", dm_take(s, t.f, t.whole, 0, DM_WRAP, t.g));
    REFUSED(SHAPE, "does not fit x, 6x5", dm_take_along_dim(s, t.f, rows_of, 1, DM_WRAP, t.g));
    REFUSED(SHAPE, "does not fit x, 6x5", dm_take_along_dim(s, t.f, t.index, 1, DM_WRAP, t.g));
    REFUSED(SHAPE, "the indices name elements of shape 6x5", dm_take(s, t.f, t.index, 0, DM_WRAP, t.wide));
    REFUSED(SHAPE, "the indices name elements of shape 6x5", dm_put(s, t.f, t.index, t.wide, 0, DM_WRAP));
    REFUSED(ARG, "no elements along dim 0", dm_take(s, t.none, t.index, 0, DM_WRAP, t.g));
    REFUSED(DTYPE, "not i32 or i64", dm_fill_permutation(s, t.row, 1));
    REFUSED(SHAPE, "2 dims, not 1", dm_fill_permutation(s, t.whole, 1));
    REFUSED(LIMIT, "i32, but there are", dm_choice(s, INT64_C(5000000000), DM_NO_ARRAY, 1, 1, t.index));
    REFUSED(DTYPE, "no float", dm_choice(s, 6, t.index, 1, 1, make(DM_I64, 1, 3, 1, 1)));
    REFUSED(SHAPE, "weights are 5, not 6", dm_choice(s, 6, t.row, 1, 1, make(DM_I64, 1, 3, 1, 1)));
    REFUSED(DTYPE, "shuffle: x has dtype f32, but out i32", dm_shuffle(s, t.f, 0, 1, t.whole));
    REFUSED(ARG, "the last of 300 elements", dm_fill_arange(s, long_bytes, 0, 1));
    REFUSED(DTYPE, "complex types are not taken",
            dm_fill_uniform_by(s, t.comp, dm_element(t.one), dm_value(1), 1));
    REFUSED(ARG, "extent is NULL", dm_array_view(s, t.f, (const int64_t[]){0, 0}, NULL, &rows_of));
    REFUSED(ARG, "lo is NULL", dm_array_view(s, t.f, NULL, (const int64_t[]){1, 1}, &rows_of));
    REFUSED(ARG, "step is NULL",
            dm_array_slice(s, t.f, (const int64_t[]){0, 0}, (const int64_t[]){1, 1}, NULL, &rows_of));
    REFUSED(ARG, "out is NULL", dm_array_view(s, t.f, (const int64_t[]){0, 0}, (const int64_t[]){1, 1}, NULL));
}

static void test_layers(void **state)
{
    (void)state;
    const int64_t x[] = {2, 6, 6, 3}, w[] = {4, 3, 3, 3}, less[] = {2, -1, 6, 3};
    int64_t y[4];
    dm_conv conv = DM_CONV_INIT;
    dm_pool pool = DM_POOL_INIT, flat = DM_POOL_INIT, padded = DM_POOL_INIT;
    dm_lrn lrn = DM_LRN_INIT;
    flat.kernel[1] = 0;
    padded.pad[0] = padded.kernel[0];
    REFUSED(ARG, "x is NULL", dm_conv_shape(&conv, NULL, w, y));
    REFUSED(ARG, "w is NULL", dm_conv_shape(&conv, x, NULL, y));
    REFUSED(ARG, "y is NULL", dm_conv_shape(&conv, x, w, NULL));
    REFUSED(ARG, "below 0", dm_conv_shape(&conv, less, w, y));
    REFUSED(ARG, "conv", dm_conv_shape(NULL, x, w, y));
    REFUSED(ARG, "x is NULL", dm_pool_shape(&pool, NULL, y));
    REFUSED(ARG, "y is NULL", dm_pool_shape(&pool, x, NULL));
    REFUSED(ARG, "pool is NULL", dm_pool_shape(NULL, x, y));
    REFUSED(ARG, "kernel[1] is 0", dm_pool_shape(&flat, x, y));
    REFUSED(ARG, "pad[0] is", dm_pool_shape(&padded, x, y));
    REFUSED(SHAPE, "not 2 or more", dm_lrn_forward(s, &lrn, t.row, make(DM_F32, 1, 5, 1, 1)));
    REFUSED(SHAPE, "has 8 dims; layers take 7 at most",
            dm_lrn_forward(s, &lrn, t.deep, make(DM_F32, 8, 2, 1, 1)));
    REFUSED(SHAPE, "x has no dims",
            dm_euclidean_loss(s, 1, t.one, make(DM_F32, 0, 1, 1, 1), make(DM_F32, 0, 1, 1, 1)));
}

static void in_a_program(void)
{
    char *text;
    dm_array made, places[2];
    dm_program p, other;
    const dm_checkpoint_item item = DM_KEEP_ARRAY("f", t.f);
    dm_array third; /* a view with steps */
    OK(dm_array_slice(s, t.f, (const int64_t[]){0, 0}, (const int64_t[]){2, 5}, (const int64_t[]){3, 1},
                      &third));
    OK(dm_program_begin(s));
    OK(dm_fill(s, t.g, 3));
    REFUSED(STATE, "cannot be part of a program", dm_compress(s, t.f, t.tall, 0, NULL, &made));
    REFUSED(STATE, "cannot be part of a program", dm_nonzero(s, t.f, 2, places));
    REFUSED(STATE, "while a program is recorded", dm_checkpoint_save(s, "never", 1, &item, NULL, NULL));
    REFUSED(STATE, "while a program is recorded", dm_checkpoint_load(s, "never", 1, &item));
    REFUSED(STATE, "mode must be DM_WRAP or DM_CLIP", dm_take(s, t.f, t.index, 0, DM_RAISE, t.g));
    REFUSED(STATE, "program", dm_array_read(s, t.f, NULL, NULL, (float[30]){0}, 0));
    REFUSED(STATE, "cannot be part of a program", dm_array_write(s, t.f, NULL, NULL, (float[30]){0}, 0));
    REFUSED(STATE, "cannot be part of a program", dm_array_save(s, t.f, "never.npy"));
    REFUSED(STATE, "cannot be part of a program", dm_array_read(s, third, NULL, NULL, (float[10]){0}, 0));
    REFUSED(STATE, "cannot be part of a program", dm_array_write(s, third, NULL, NULL, (float[10]){0}, 0));
    OK(dm_program_end(s, &p));
    OK(dm_program_begin(s));
    dm_status full = DM_OK;
    for (int i = 0; i < 70000 && full == DM_OK; i++) {
        full = dm_fill(s, t.g, 3);
    }
    REFUSED(LIMIT, "too many calls", full);
    OK(dm_program_end(s, NULL));
    OK(dm_program_begin(s));
    REFUSED(STATE, "a program is being recorded", dm_program_destroy(s, p));
    OK(dm_fill(s, t.g, 4));
    OK(dm_program_end(s, &other));
    OK(dm_program_destroy(s, p));
    OK(dm_program_destroy(s, other));
    OK(dm_explain_begin(s));
    REFUSED(STATE, "explain", dm_checkpoint_save(s, "never", 1, &item, NULL, NULL));
    REFUSED(STATE, "explain", dm_array_load(s, "never.npy", NULL, &made));
    REFUSED(STATE, "explain", dm_array_read(s, t.f, NULL, NULL, (float[30]){0}, 0));
    REFUSED(STATE, "explain", dm_array_write(s, t.f, NULL, NULL, (float[30]){0}, 0));
    REFUSED(STATE, "explain", dm_array_read(s, third, NULL, NULL, (float[10]){0}, 0));
    REFUSED(STATE, "explain", dm_array_write(s, third, NULL, NULL, (float[10]){0}, 0));
    REFUSED(STATE, "explain", dm_array_save(s, third, "never.npy"));
    OK(dm_explain_end(s, &text));
    free(text);
}

static void test_states(void **state)
{
    (void)state;
    int number;
    double value = 1;
    dm_array made;
    dm_group half;
    const dm_checkpoint_item item = DM_KEEP_ARRAY("f", t.f),
                             nothing = {.name = "n", .dtype = DM_F64, .count = 1},
                             strange = {.name = "n", .value = &value, .dtype = (dm_dtype)77, .count = 1},
                             minus = {.name = "n", .value = &value, .dtype = DM_F64, .count = -1};
    dm_checkpoint_options options = {.size = sizeof options, .keep = -1};
    in_a_program();
    REFUSED(ARG, "path is NULL", dm_checkpoint_save(s, NULL, 1, &item, NULL, NULL));
    REFUSED(ARG, "path is empty", dm_checkpoint_save(s, "", 1, &item, NULL, NULL));
    REFUSED(ARG, "options.keep is -1", dm_checkpoint_save(s, "never", 1, &item, &options, NULL));
    REFUSED(ARG, "count is negative", dm_checkpoint_save(s, "never", -1, &item, NULL, NULL));
    REFUSED(ARG, "items is NULL", dm_checkpoint_save(s, "never", 1, NULL, NULL, NULL));
    REFUSED(ARG, "value is NULL", dm_checkpoint_save(s, "never", 1, &nothing, NULL, NULL));
    REFUSED(DTYPE, "dtype 77 is unknown", dm_checkpoint_save(s, "never", 1, &strange, NULL, NULL));
    REFUSED(ARG, "0 to 1 MiB", dm_checkpoint_save(s, "never", 1, &minus, NULL, NULL));
    REFUSED(ARG, "name is NULL", dm_checkpoint_array(s, "never", NULL, (dm_dtype)0, NULL, &made));
    REFUSED(ARG, "out is NULL", dm_checkpoint_array(s, "never", "f", (dm_dtype)0, NULL, NULL));
    REFUSED(ARG, "item is NULL", dm_keep(s, NULL));
    REFUSED(ARG, "number is NULL", dm_session_signalled(s, NULL));
    REFUSED(ARG, "leave is NULL", dm_checkpoint_boundary(s, "never", NULL, NULL));
    REFUSED(ARG, "out is NULL", dm_group_create(s, (const int[]){1}, 1, NULL));
    (void)number;
    OK(dm_group_create(s, (const int[]){0, 2}, 2, &half));
    OK(dm_group_begin(s, half));
    const dm_layout layout = dm_layout_explicit(2, (const int64_t[]){6, 5}, (const int[]){2}, 1);
    REFUSED(LAYOUT, "the group has 2 workers",
            dm_array_create(s, DM_F32, 2, (const int64_t[]){6, 5}, &layout, &made));
    const dm_layout second = dm_layout_single(2), before = dm_layout_single(-1);
    REFUSED(LAYOUT, "single is 2, not 0 to 1",
            dm_array_create(s, DM_F32, 2, (const int64_t[]){6, 5}, &second, &made));
    OK(dm_group_end(s));
    REFUSED(LAYOUT, "single is -1, not 0 to",
            dm_array_create(s, DM_F32, 2, (const int64_t[]){6, 5}, &before, &made));
    int begun = 0;
    dm_status status = DM_OK;
    while (begun < 1000 && (status = dm_group_begin(s, half)) == DM_OK) {
        begun++;
    }
    REFUSED(LIMIT, "have begun and not ended", dm_group_begin(s, half));
    while (begun-- > 0) {
        OK(dm_group_end(s));
    }
    OK(dm_group_destroy(s, half));
    OK(dm_fill_arange(s, t.g, 1, 1)); /* the program that was recorded has not run */
}

/* Tables of a session that are full: as if so many arrays, and so many programs, were alive. */
static void test_full_tables(void **state)
{
    (void)state;
    dm_session *own = open_session(2, "log=error");
    dmi_session *of = NULL;
    dm_array a, b;
    dm_program program, none = {0};
    OK(dm_vector(own, DM_F64, 8, &a));
    OK(dmi_enter(own, &of));
    const uint32_t handles = of->handles, programs = of->programs;
    of->handles = DMI_ID_MOST_SLOTS;
    REFUSED(LIMIT, "can have 16777215 arrays and views at once", dm_vector(own, DM_F64, 8, &b));
    of->handles = handles;
    OK(dm_vector(own, DM_F64, 8, &b));
    OK(dm_program_begin(own));
    OK(dm_copy(own, a, b));
    of->programs = DMI_ID_MOST_SLOTS;
    REFUSED(LIMIT, "can have 16777216 programs and parts of them at once", dm_program_end(own, &none));
    of->programs = programs;
    OK(dm_fill(own, a, 3)); /* nothing is recorded any more */
    OK(dm_program_begin(own));
    OK(dm_copy(own, a, b));
    OK(dm_program_end(own, &program));
    OK(dm_program_run(own, program, 1, 0, NULL));
    double value = 0;
    OK(dm_item(own, b, (const int64_t[]){7}, &value));
    assert_true(value == 3);
    OK(dm_program_destroy(own, program));
    OK(dm_array_destroy(own, a));
    OK(dm_array_destroy(own, b));
    struct dmi_group **groups = of->group, **full = malloc(sizeof *full * DMI_MOST_GROUPS);
    const uint32_t places = of->group_places;
    dm_group group;
    assert_non_null(full);
    for (int i = 0; i < DMI_MOST_GROUPS; i++) {
        full[i] = (struct dmi_group *)(void *)full; /* any: nobody looks at it */
    }
    of->group = full;
    of->group_places = DMI_MOST_GROUPS;
    REFUSED(LIMIT, "the session has 1048576 groups already", dm_group_create(own, (const int[]){1}, 1, &group));
    of->group = groups;
    of->group_places = places;
    free(full);
    OK(dm_group_create(own, (const int[]){1}, 1, &group));
    OK(dm_group_destroy(own, group));
    close_session(own);
}

/* A child by fork has the session's handle, and nothing behind it. */
static void test_child(void **state)
{
    (void)state;
    dm_session *own = open_session(1, "log=error");
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool said =
            dm_sync(own) == DM_ERR_STATE && strstr(dm_error_message(), "this process was forked from it");
        _exit(said ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close_session(own);
}

/* An operation of the library's own that is given what does not fit: nothing is sent. */
static void test_own_check(void **state)
{
    (void)state;
    enum { WORKERS = 2, N = 8 };
    static const int64_t all_to_one[WORKERS * WORKERS] = {N / WORKERS, 0, N / WORKERS, 0};
    dm_session *own = open_session(WORKERS, "device=cpu,log=error");
    dm_array x, out;
    dm_layout rows_of = dm_layout_rows(own);
    const int64_t n = N;
    OK(dm_array_create(own, DM_F64, 1, &n, &rows_of, &x));
    OK(dm_array_create(own, DM_F64, 1, &n, &rows_of, &out));
    OK(dm_fill_arange(own, x, 0, 1));
    REFUSED(INTERNAL, "merge: worker 0 gets 8 elements, and holds 4",
            dmi_merge(own, false, 0, all_to_one, WORKERS, x, DM_NO_ARRAY, out));
    OK(dm_array_destroy(own, x));
    OK(dm_array_destroy(own, out));
    close_session(own);
}

/* Arrays that are not like the recorded one in what a short text of both does not show. */
static void test_bindings(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    static const int map[] = {0, 1, 0}, other_map[] = {1, 1, 0};
    const int64_t count = COUNT, four = 4, lo = 2;
    dm_layout layout[] = {dm_layout_single(0),
                          dm_layout_single(1),
                          dm_layout_split(s, 0),
                          dm_layout_split(s, 0),
                          dm_layout_explicit(1, &four, map, 3),
                          dm_layout_explicit(1, &four, other_map, 3)};
    static const char *const differ[] = {"has a part on worker 1, not on worker 0",
                                         "has blocks of 7 along dim 0, not of 6",
                                         "has block 0 on worker 1, not on worker 0"};
    layout[2].block[0] = 6;
    layout[3].block[0] = 7;
    for (int i = 0; i < 3; i++) {
        dm_array x, y, part, rest, all[4];
        dm_program program;
        OK(dm_array_create(s, DM_F64, 1, &count, &layout[2 * i], &x));
        OK(dm_array_create(s, DM_F64, 1, &count, &layout[2 * i + 1], &y));
        OK(dm_array_view(s, x, &lo, &four, &part));
        OK(dm_array_view(s, x, &four, &four, &rest));
        memcpy(all, (dm_array[]){part, rest, x, y}, sizeof all);
        OK(dm_program_begin(s));
        OK(dm_fill(s, x, 1));
        OK(dm_fill(s, part, 1));
        OK(dm_program_end(s, &program));
        REFUSED(LAYOUT, differ[i], dm_program_run(s, program, 1, 1, (dm_program_binding[]){{x, y}}));
        REFUSED(LAYOUT, "is another part of such an array",
                dm_program_run(s, program, 1, 1, (dm_program_binding[]){{part, rest}}));
        OK(dm_program_destroy(s, program));
        for (int k = 0; k < 4; k++) {
            OK(dm_array_destroy(s, all[k]));
        }
    }
}

static void test_feeds(void **state)
{
    (void)state;
    const int64_t shape[] = {6};
    dm_feed *feed, *other_feed;
    char *text;
    void *buffer;
    dm_session *other = open_session(1, "log=error");
    OK(dm_feed_create(s, DM_F32, 1, shape, 2, &feed));
    OK(dm_explain_begin(s));
    REFUSED(STATE, "feed_create: calls are being explained",
            dm_feed_create(s, DM_F32, 1, shape, 2, &other_feed));
    OK(dm_explain_end(s, &text));
    free(text);
    OK(dm_feed_create(other, DM_F32, 1, shape, 2, &other_feed));
    REFUSED(HANDLE, "array_feed: the feed belongs to another session", dm_array_feed(s, t.tall, other_feed, 1));
    REFUSED(HANDLE, "feed_restart: the feed belongs to another session", dm_feed_restart(s, other_feed));
    OK(dm_feed_stop(feed));
    REFUSED(STATE, "feed_take: the feed was stopped", dm_feed_take(feed, 1, &buffer));
    OK(dm_feed_destroy(feed));
    OK(dm_feed_destroy(other_feed));
    close_session(other);
    /* rings that no memory holds: of more bytes than there are addresses, and than numbers */
    REFUSED(NOMEM, "buffers of", dm_feed_create(s, DM_U8, 1, (const int64_t[]){INT64_C(1) << 60}, 2, &feed));
    REFUSED(ARG, "more than 2^63 bytes",
            dm_feed_create(s, DM_U8, 1, (const int64_t[]){INT64_C(1) << 60}, 9, &feed));
}

static int nothing(const dm_task *task)
{
    (void)task;
    return 0;
}

/* A program that had the memory when it was recorded, and has it no more. */
static void test_little_memory(void **state)
{
    (void)state;
    dm_session *little = open_session(2, "memory_limit=1M,pool_debug=0,log=error,ring=4096");
    const int64_t shape[] = {64, 64};
    dm_array a, b, c, more[200];
    dm_program p;
    dm_layout columns = dm_layout_cols(little);
    OK(dm_array_create(little, DM_F64, 2, shape, NULL, &a));
    OK(dm_array_create(little, DM_F64, 2, shape, &columns, &b));
    OK(dm_array_create(little, DM_F64, 2, shape, NULL, &c));
    OK(dm_fill(little, a, 1));
    OK(dm_fill(little, b, 1));
    OK(dm_program_begin(little));
    OK(dm_gemm(little, DM_T, DM_N, 1, a, b, 0, c));
    OK(dm_program_end(little, &p));
    int made = 0;
    while (made < 200 && dm_vector(little, DM_F64, 2048, &more[made]) == DM_OK) {
        made++;
    }
    assert_in_range(made, 1, 199);
    REFUSED(LIMIT, "bytes of workspace", dm_program_run(little, p, 1, 0, NULL));
    while (made-- > 0) {
        OK(dm_array_destroy(little, more[made]));
    }
    const char many[600] = {0}; /* the ring has 4096 */
    REFUSED(ARG, "its arguments take 600 bytes, more than a command can hold",
            dm_apply(little, "nothing", 1, &a, (const int[]){DM_READ}, many, sizeof many));
    OK(dm_program_run(little, p, 1, 0, NULL));
    double one;
    OK(dm_array_read(little, c, (const int64_t[]){63, 0}, (const int64_t[]){1, 1}, &one, 0));
    assert_true(one == 64);
    OK(dm_program_destroy(little, p));
    OK(dm_array_destroy(little, a));
    OK(dm_array_destroy(little, b));
    OK(dm_array_destroy(little, c));
    close_session(little);
}

static void test_many_workers(void **state)
{
    (void)state;
    dm_session *wide = open_session(65, "log=error,ring=1M");
    const int members[] = {0, 64}, mode = DM_READ;
    dm_group pair;
    dm_array x;
    OK(dm_vector(wide, DM_F32, 130, &x));
    OK(dm_group_create(wide, members, 2, &pair));
    OK(dm_group_begin(wide, pair));
    REFUSED(UNSUPPORTED, "65 workers, more than 64", dm_apply(wide, "nothing", 1, &x, &mode, NULL, 0));
    OK(dm_group_end(wide));
    OK(dm_group_destroy(wide, pair));
    OK(dm_fill(wide, x, 1));
    OK(dm_array_destroy(wide, x));
    close_session(wide);
}

static int open_all(void **state)
{
    (void)deadline(state);
    OK(dm_register("nothing", nothing));
    s = open_session(3, "log=error");
    make_things();
    OK(dm_scope_begin(s));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    OK(dm_sync(s));
    OK(dm_scope_end(s, NULL, 0));
    things_are_the_same();
    close_session(s);
    dm_status full = DM_OK;
    for (int i = 0; i < 100000 && full == DM_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        full = dm_register(name, nothing);
    }
    REFUSED(ARG, "operations already", full);
    printf("%d calls, %d wrong\n", rows, wrong);
    return wrong;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_indices),      cmocka_unit_test(test_layers),
        cmocka_unit_test(test_states),       cmocka_unit_test(test_bindings),
        cmocka_unit_test(test_feeds),        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_many_workers), cmocka_unit_test(test_full_tables),
        cmocka_unit_test(test_own_check),    cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, open_all, close_all) || wrong;
}
