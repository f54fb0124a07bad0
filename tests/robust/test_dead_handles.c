/* Each array of each call in turn is one that has been destroyed: DM_ERR_HANDLE, and the call is right with all
 * of them alive. */
#include "robust.h"

#include <dmath/factors.h>
#include <dmath/index.h>
#include <dmath/layers.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/random.h>
#include <dmath/reduce.h>
#include <dmath/require.h>

static dm_session *s;
static dm_array dead;
static int calls, wrong;

static void complain(dm_status got, const char *want, const char *call, int position)
{
    fprintf(stderr, "%s, array %d: %s %s, not %s\n", call, position, dm_status_name(got),
            got == DM_OK ? "" : dm_error_message(), want);
    wrong++;
}

/* The arrays are x[0], x[1], ... of the call. */
#define DEAD(call, ...)                                                                                        \
    do {                                                                                                       \
        dm_array x[] = {__VA_ARGS__};                                                                          \
        for (int i_ = -1; i_ < (int)(sizeof x / sizeof *x); i_++) {                                            \
            dm_array kept_ = i_ < 0 ? dead : x[i_];                                                            \
            if (i_ >= 0) {                                                                                     \
                x[i_] = dead;                                                                                  \
            }                                                                                                  \
            dm_status got_ = (call);                                                                           \
            if (i_ >= 0) {                                                                                     \
                x[i_] = kept_;                                                                                 \
            }                                                                                                  \
            if (got_ != (i_ < 0 ? DM_OK : DM_ERR_HANDLE)) {                                                    \
                complain(got_, i_ < 0 ? "OK" : "ERR_HANDLE", #call, i_);                                       \
            }                                                                                                  \
            calls++;                                                                                           \
        }                                                                                                      \
    } while (0)

static dm_array make(dm_dtype dtype, int ndim, int64_t n0, int64_t n1)
{
    const int64_t shape[] = {n0, n1};
    dm_array x;
    OK(dm_array_create(s, dtype, ndim, shape, NULL, &x));
    OK(dm_fill(s, x, 1));
    return x;
}

enum { N = 6 };
static dm_array a, b, c, d;          /* f64, N x N */
static dm_array u, v, w;             /* f64, N */
static dm_array index_of, places;    /* i64: N, N x N */
static dm_array ca, cb, cc, cu, cv;  /* c128 */
static dm_array one, two, long_rows; /* f64: no dims; 2 N x N; N x 2 N */
static const int rows[] = {0}, cols[] = {1};

static void make_all(void)
{
    dm_array *square[] = {&a, &b, &c, &d}, *line[] = {&u, &v, &w}, *complex_square[] = {&ca, &cb, &cc};
    for (int i = 0; i < 4; i++) {
        *square[i] = make(DM_F64, 2, N, N);
    }
    for (int i = 0; i < 3; i++) {
        *line[i] = make(DM_F64, 1, N, 1);
        *complex_square[i] = make(DM_C128, 2, N, N);
    }
    cu = make(DM_C128, 1, N, 1);
    cv = make(DM_C128, 1, N, 1);
    index_of = make(DM_I64, 1, N, 1);
    places = make(DM_I64, 2, N, N);
    one = make(DM_F64, 0, 1, 1);
    two = make(DM_F64, 2, 2 * N, N);
    long_rows = make(DM_F64, 2, N, 2 * N);
    dead = make(DM_F64, 2, N, N);
    OK(dm_array_destroy(s, dead));
}

static void test_parts(void **state)
{
    (void)state;
    const int64_t some[] = {1, 1}, none[] = {0, 0}, times[] = {2, 1};
    dm_array parts[2], made;
    dm_array padded = make(DM_F64, 2, N + 2, N + 2);
    DEAD(dm_concatenate(s, 2, x, 0, x[2]), a, b, two);
    DEAD(dm_stack(s, 2, x, 0, x[2]), u, v, make(DM_F64, 2, 2, N));
    DEAD(dm_split(s, x[0], 0, 2, NULL, parts), a);
    DEAD(dm_tile(s, x[0], times, x[1]), a, two);
    DEAD(dm_repeat(s, x[0], 2, 1, x[1]), a, long_rows);
    DEAD(dm_roll(s, x[0], 3, 0, x[1]), a, b);
    DEAD(dm_flip(s, x[0], 1, x[1]), a, b);
    DEAD(dm_pad(s, x[0], some, some, DM_PAD_WRAP, 0, x[1]), a, padded);
    DEAD(dm_pad(s, x[0], none, none, DM_PAD_CONSTANT, 7, x[1]), a, b);
    DEAD(dm_one_hot(s, x[0], x[1]), index_of, a);
    DEAD(dm_meshgrid(s, 2, x, &x[2]), u, v, a, b);
    DEAD(dm_diagonal(s, x[0], 0, x[1]), a, u);
    DEAD(dm_set_diagonal(s, x[0], 0, x[1]), a, u);
    DEAD(dm_compress(s, x[0], x[1], 0, NULL, &made), a, index_of);
    DEAD(dm_nonzero(s, x[0], 2, parts), a);
    DEAD(dm_tril(s, x[0], x[1]), a, b);
    DEAD(dm_triu(s, x[0], x[1]), ca, cb);
    DEAD(dm_symmetrise(s, DM_UPPER, 1, x[0], x[1]), ca, cb);
    DEAD(dm_take(s, x[0], x[1], 0, DM_RAISE, x[2]), a, index_of, b);
    DEAD(dm_put(s, x[0], x[1], x[2], 1, DM_RAISE), a, index_of, b);
    DEAD(dm_scatter_add(s, x[0], x[1], x[2], 0, DM_CLIP), a, index_of, b);
    DEAD(dm_take_along_dim(s, x[0], x[1], 0, DM_WRAP, x[2]), a, places, b);
    DEAD(dm_put_along_dim(s, x[0], x[1], x[2], 1, DM_WRAP), a, places, b);
    DEAD(dm_scatter_add_along_dim(s, x[0], x[1], x[2], 1, DM_WRAP), a, places, b);
}

static void test_linear(void **state)
{
    (void)state;
    DEAD(dm_swap(s, x[0], x[1]), a, b);
    DEAD(dm_axpy(s, 2, x[0], x[1]), a, b);
    DEAD(dm_rot(s, x[0], x[1], 1, 0), a, b);
    DEAD(dm_scal(s, 2, x[0]), a);
    DEAD(dm_dot(s, x[0], x[1], x[2]), u, v, one);
    DEAD(dm_dotc(s, x[0], x[1], x[2]), cu, cv, make(DM_C128, 0, 1, 1));
    DEAD(dm_asum(s, x[0], x[1]), u, one);
    DEAD(dm_nrm2(s, x[0], x[1]), cu, one);
    DEAD(dm_iamax(s, x[0], x[1]), u, make(DM_I64, 0, 1, 1));
    DEAD(dm_gemv(s, DM_T, 1, x[0], x[1], 1, x[2]), a, u, v);
    DEAD(dm_ger(s, 1, x[0], x[1], x[2]), u, v, a);
    DEAD(dm_gerc(s, 1, x[0], x[1], x[2]), cu, cv, ca);
    DEAD(dm_symv(s, DM_UPPER, 1, x[0], x[1], 1, x[2]), a, u, v);
    DEAD(dm_hemv(s, DM_LOWER, 1, x[0], x[1], 1, x[2]), ca, cu, cv);
    DEAD(dm_syr(s, DM_UPPER, 1, x[0], x[1]), u, a);
    DEAD(dm_her(s, DM_UPPER, 1, x[0], x[1]), cu, ca);
    DEAD(dm_syr2(s, DM_UPPER, 1, x[0], x[1], x[2]), u, v, a);
    DEAD(dm_her2(s, DM_UPPER, 1, x[0], x[1], x[2]), cu, cv, ca);
    DEAD(dm_trmv(s, DM_UPPER, DM_N, DM_UNIT, x[0], x[1]), a, u);
    DEAD(dm_trsv(s, DM_UPPER, DM_N, DM_UNIT, x[0], x[1]), a, u);
    DEAD(dm_syrk(s, DM_UPPER, DM_N, 1, x[0], 0, x[1]), a, b);
    DEAD(dm_herk(s, DM_UPPER, DM_C, 1, x[0], 0, x[1]), ca, cb);
    DEAD(dm_syr2k(s, DM_UPPER, DM_T, 1, x[0], x[1], 0, x[2]), a, b, c);
    DEAD(dm_her2k(s, DM_UPPER, DM_N, 1, x[0], x[1], 0, x[2]), ca, cb, cc);
    DEAD(dm_symm(s, DM_LEFT, DM_UPPER, 1, x[0], x[1], 0, x[2]), a, b, c);
    DEAD(dm_hemm(s, DM_RIGHT, DM_UPPER, 1, x[0], x[1], 0, x[2]), ca, cb, cc);
    DEAD(dm_trmm(s, DM_LEFT, DM_UPPER, DM_N, DM_UNIT, 1, x[0], x[1]), a, b);
    DEAD(dm_trsm(s, DM_RIGHT, DM_LOWER, DM_T, DM_UNIT, 1, x[0], x[1]), a, b);
    DEAD(dm_gemm(s, DM_N, DM_T, 1, x[0], x[1], 0, x[2]), a, b, c);
    DEAD(dm_matmul(s, x[0], x[1], x[2]), a, u, v);
}

static void test_numbers(void **state)
{
    (void)state;
    const double q[] = {0.5};
    dm_array values, counts, inverse, median = make(DM_F64, 2, 1, N), kept = make(DM_F64, 2, N, 2),
                                      of = make(DM_I64, 2, N, 2);
    DEAD(dm_covariance(s, x[0], DM_BY_ROWS, 1, x[1]), a, b);
    DEAD(dm_distances(s, x[0], x[1], x[2]), a, b, c);
    DEAD(dm_cosine_distances(s, x[0], x[1], x[2]), a, b, c);
    DEAD(dm_standardise(s, x[0], rows, 1, 0, x[1]), a, b);
    DEAD(dm_layer_norm(s, x[0], cols, 1, x[1], x[2], 1e-5, x[3]), a, u, v, b);
    DEAD(dm_log_softmax(s, x[0], cols, 1, x[1]), a, b);
    DEAD(dm_softmax(s, x[0], cols, 1, x[1]), a, b);
    DEAD(dm_cross_entropy(s, x[0], x[1], x[2]), a, index_of, u);
    DEAD(dm_cross_entropy_gradient(s, x[0], x[1], 1, x[2]), a, index_of, b);
    DEAD(dm_norm(s, x[0], 2, rows, 1, x[1]), a, u);
    DEAD(dm_var(s, x[0], rows, 1, 1, x[1]), a, u);
    DEAD(dm_std(s, x[0], cols, 1, 0, x[1]), a, u);
    DEAD(dm_mean(s, x[0], rows, 1, x[1]), a, u);
    DEAD(dm_sum(s, x[0], rows, 1, 1, 0, x[1]), a, u);
    DEAD(dm_require_range(s, x[0], -1e9, 1e9), a);
    DEAD(dm_cumulative_sum(s, x[0], 0, x[1]), a, b);
    DEAD(dm_cumulative_max(s, x[0], 1, x[1]), a, b);
    DEAD(dm_sort(s, x[0], 0, 1, x[1]), a, b);
    DEAD(dm_argsort(s, x[0], 0, 1, x[1]), a, places);
    DEAD(dm_topk(s, x[0], 1, 1, x[1], x[2]), a, kept, of);
    DEAD(dm_quantile(s, x[0], q, 1, 0, x[1]), a, median);
    DEAD(dm_median(s, x[0], 0, x[1]), a, median);
    DEAD(dm_unique(s, x[0], &values, &counts, &inverse), a);
    DEAD(dm_isin(s, x[0], x[1], 1, x[2]), a, u, b);
    DEAD(dm_searchsorted(s, x[0], x[1], 1, x[2]), u, v, index_of);
    DEAD(dm_histogram(s, x[0], 0, 1, x[1], x[2]), a, b, u);
    DEAD(dm_histogram_edges(s, x[0], x[1], x[2], x[3]), a, make(DM_F64, 1, N + 1, 1), b, u);
    DEAD(dm_bincount(s, x[0], x[1], x[2]), make(DM_I64, 1, N, 1), u, v);
    DEAD(dm_fill_permutation(s, x[0], 1), make(DM_I64, 1, N, 1));
    DEAD(dm_shuffle(s, x[0], 0, 1, x[1]), a, b);
    DEAD(dm_choice(s, N, x[0], 1, 1, x[1]), w, make(DM_I64, 1, 3, 1));
    DEAD(dm_fill_bernoulli(s, x[0], 0.5, 1), a);
    DEAD(dm_fill_dropout(s, x[0], 0.5, 1), a);
    DEAD(dm_fill_exponential(s, x[0], 2, 1), a);
    DEAD(dm_fill_gamma(s, x[0], 2, 1, 1), a);
    DEAD(dm_fill_poisson(s, x[0], 2, 1), a);
}

#define EL dm_element
static void test_factors(void **state)
{
    (void)state;
    const dm_factor half = dm_value(0.5);
    dm_array other = make(DM_F64, 0, 1, 1), into = make(DM_F64, 0, 1, 1);
    DEAD(dm_axpby_by(s, EL(x[0]), x[1], EL(x[2]), x[3]), one, a, other, b);
    DEAD(dm_add_by(s, EL(x[0]), x[1], EL(x[2]), x[3], x[4]), one, a, other, b, c);
    DEAD(dm_multiply_by(s, EL(x[0]), x[1], x[2], x[3]), one, a, b, c);
    DEAD(dm_scale_by(s, EL(x[0]), x[1], x[2]), one, a, b);
    DEAD(dm_fill_by(s, x[0], EL(x[1])), a, one);
    DEAD(dm_fill_identity_by(s, x[0], EL(x[1])), a, one);
    DEAD(dm_fill_arange_by(s, x[0], EL(x[1]), EL(x[2])), u, one, other);
    DEAD(dm_fill_uniform_by(s, x[0], EL(x[1]), dm_value(1e9), 1), a, one);
    DEAD(dm_fill_uniform_by(s, x[0], dm_value(-1e9), EL(x[1]), 1), a, one);
    DEAD(dm_fill_normal_by(s, x[0], EL(x[1]), EL(x[2]), 1), a, one, other);
    DEAD(dm_sum_by(s, x[0], NULL, 0, EL(x[1]), half, x[2]), into, one, other);
    DEAD(dm_gemm_by(s, DM_N, DM_N, EL(x[0]), x[1], x[2], EL(x[3]), x[4], NULL), one, a, b, other, c);
    DEAD(dm_fill_uniform(s, x[0], 0, 1, 1), a);
    DEAD(dm_copy(s, x[0], x[1]), a, b);
    DEAD(dm_transpose(s, x[0], x[1]), a, b);
    DEAD(dm_add(s, 1, x[0], 1, x[1], x[2]), a, b, c);
}

static int open_all(void **state)
{
    (void)deadline(state);
    s = open_session(3, "log=error");
    OK(dm_scope_begin(s));
    make_all();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    OK(dm_sync(s));
    OK(dm_scope_end(s, NULL, 0));
    OK(dm_finalize(s, NULL));
    printf("%d calls, %d wrong\n", calls, wrong);
    return wrong;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_linear),
                                       cmocka_unit_test(test_numbers), cmocka_unit_test(test_factors)};
    return cmocka_run_group_tests(tests, open_all, close_all) || wrong;
}
