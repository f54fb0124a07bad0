/* Random choices: moments and frequencies, the same numbers on all layouts, permutations that are ones, the
 * generator. */
#include "support/refusal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000, BINS = 10 };

static void near(dmt_case *c, double got, double want, double deviation, const char *what)
{
    if (!(fabs(got - want) <= 5 * deviation)) {
        dmt_fail(c, "%s is %g, not %g (deviation %g)", what, got, want, deviation);
    }
}

static dm_array vector(dmt_case *c, dm_dtype dtype, int64_t n, int kind)
{
    dm_array x;
    dm_layout layout[] = {dm_layout_rows(c->session), dm_layout_cyclic(c->session, 0, 3),
                          dm_layout_replicated(c->session), dm_layout_single(c->workers - 1)};
    DMT_OK(c, dm_array_create(c->session, dtype, 1, &n, &layout[kind % 4], &x));
    return x;
}

/* The numbers of two layouts are equal, and have these moments. */
static void distribution(dmt_case *c, int which)
{
    static const struct {
        double mean, deviation, square, of_square;       /* the second moment, and the square's deviation */
    } known[] = {{0.3, 0.4582575695, 0.3, 0.4582575695}, /* Bernoulli 0.3 */
                 {3, 3, 18, 40.24922359},                /* exponential 3 */
                 {6, 4.242640687, 54, 82.48636251},      /* gamma 2, 3 */
                 {12, 3.464101615, 156, 88.24964589},    /* Poisson 12 */
                 {1, 0.6546536707, 1.428571429, 0.9352195296}}; /* dropout 0.3 */
    static double v[2][N];
    double mean = 0, square = 0;
    for (int i = 0; i < 2; i++) {
        dm_array x = vector(c, DM_F64, N, (int)c->number + i), scale;
        DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &scale));
        DMT_OK(c, dm_fill(c->session, scale, 3));
        DMT_OK(c, which == 0   ? dm_fill_bernoulli(c->session, x, 0.3, 11)
                  : which == 1 ? dm_fill_exponential(c->session, x, 3, 11)
                  : which == 2 ? (i ? dm_fill_gamma_by(c->session, x, dm_value(2), dm_element(scale), 11)
                                    : dm_fill_gamma(c->session, x, 2, 3, 11))
                  : which == 3 ? dm_fill_poisson(c->session, x, 12, 11)
                               : dm_fill_dropout(c->session, x, 0.3, 11));
        DMT_OK(c, dm_read(c->session, x, v[i]));
        DMT_OK(c, dm_array_destroy(c->session, x));
        DMT_OK(c, dm_array_destroy(c->session, scale));
    }
    if (memcmp(v[0], v[1], sizeof v[0]) != 0) {
        dmt_fail(c, "the numbers depend on the layout");
    }
    for (int i = 0; i < N; i++) {
        mean += v[0][i] / N;
        square += v[0][i] * v[0][i] / N;
    }
    near(c, mean, known[which].mean, known[which].deviation / sqrt(N), "the mean");
    near(c, square, known[which].square, known[which].of_square / sqrt(N), "the second moment");
}

/* One array by a number, another by an element: which of the distributions with one. */
static void fill_both(dmt_case *c, int which, dm_array x, double number, dm_array y, dm_factor p)
{
    dm_session *s = c->session;
    const dm_factor two = dm_value(2);
    switch (which) {
    case 0:
        DMT_OK(c, dm_fill_bernoulli(s, x, number, 7));
        DMT_OK(c, dm_fill_bernoulli_by(s, y, p, 7));
        return;
    case 1:
        DMT_OK(c, dm_fill_exponential(s, x, number, 7));
        DMT_OK(c, dm_fill_exponential_by(s, y, p, 7));
        return;
    case 2:
        DMT_OK(c, dm_fill_dropout(s, x, number, 7));
        DMT_OK(c, dm_fill_dropout_by(s, y, p, 7));
        return;
    case 3:
        DMT_OK(c, dm_fill_gamma(s, x, number, 2, 7));
        DMT_OK(c, dm_fill_gamma_by(s, y, p, two, 7));
        return;
    default:
        DMT_OK(c, dm_fill_poisson(s, x, number, 7));
        DMT_OK(c, dm_fill_poisson_by(s, y, p, 7));
        return;
    }
}

/* With an element as parameter the bytes are those of the number, in every float type. */
static void by_elements(dmt_case *c)
{
    static const dm_dtype dtypes[] = {DM_F64, DM_F32, DM_F16, DM_BF16};
    static char v[2][8 * N];
    dm_session *s = c->session;
    for (int i = 0; i < 28; i++) {
        static const int which[] = {0, 1, 2, 3, 3, 4, 4};
        static const double numbers[] = {0.25, 3, 0.25, 0.75, 3, 2.5, 40}; /* every type holds them */
        dm_dtype dtype = dtypes[i % 4], type = i % 2 ? DM_F32 : DM_F64;
        dm_array x = vector(c, dtype, N, (int)c->number), y = vector(c, dtype, N, (int)c->number + i), p;
        DMT_OK(c, dm_array_create(s, type, 2, (int64_t[]){1, 1}, NULL, &p));
        DMT_OK(c, dm_fill(s, p, numbers[i / 4]));
        fill_both(c, which[i / 4], x, numbers[i / 4], y, dm_element(p));
        DMT_OK(c, dm_array_read(s, x, NULL, NULL, v[0], 0));
        DMT_OK(c, dm_array_read(s, y, NULL, NULL, v[1], 0));
        if (memcmp(v[0], v[1], (size_t)(dm_dtype_bytes(dtype) * N)) != 0) {
            dmt_fail(c, "distribution %d of %s has other numbers with an element", which[i / 4],
                     dm_dtype_name(dtype));
        }
        DMT_OK(c, dm_array_destroy(s, x));
        DMT_OK(c, dm_array_destroy(s, y));
        DMT_OK(c, dm_array_destroy(s, p));
    }
}

/* Elements that are no parameters: NaN everywhere, or what dm_copy makes of it. */
static void no_parameters(dmt_case *c)
{
    const double bad[] = {NAN, -1, INFINITY, 1e16, 0};
    dm_session *s = c->session;
    for (int i = 0; i < 5; i++) {
        double got[2][40];
        int32_t whole[2][40];
        dm_array p, x = vector(c, DM_F64, 40, i), y = vector(c, DM_I32, 40, i + 1);
        DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &p));
        DMT_OK(c, dm_write(s, p, &bad[i]));
        DMT_OK(c, dm_fill_gamma_by(s, x, dm_element(p), dm_value(1), 3));
        DMT_OK(c, dm_read(s, x, got[0]));
        DMT_OK(c, dm_fill_poisson_by(s, x, dm_element(p), 3));
        DMT_OK(c, dm_read(s, x, got[1]));
        DMT_OK(c, dm_fill_poisson_by(s, y, dm_element(p), 3));
        DMT_OK(c, dm_read(s, y, whole[0]));
        DMT_OK(c, dm_copy(s, x, y));
        DMT_OK(c, dm_read(s, y, whole[1]));
        for (int k = 0; k < 40; k++) {
            bool gamma = isnan(got[0][k]) || i == 3; /* 1e16 is a shape, and 0 a rate */
            if (!gamma || (i == 4 ? got[1][k] != 0 : !isnan(got[1][k])) || whole[0][k] != whole[1][k]) {
                dmt_fail(c, "with the parameter %g: %g, %g, %d", bad[i], got[0][k], got[1][k],
                         (int)whole[0][k]);
                break;
            }
        }
        DMT_OK(c, dm_array_destroy(s, x));
        DMT_OK(c, dm_array_destroy(s, y));
        DMT_OK(c, dm_array_destroy(s, p));
    }
}

/* In a program, with a rate, a shape and a bound that each run finds anew; against calls with numbers. */
static void in_program(dmt_case *c)
{
    enum { M = 300, RUNS = 3 };
    dm_session *s = c->session;
    dm_program program;
    dm_array p, most, x = vector(c, DM_F64, M, (int)c->number), y = vector(c, DM_F64, M, (int)c->number + 1);
    static double got[2][M], want[2][M];
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &p));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &most));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_fill_poisson_by(s, x, dm_element(p), 21));
    DMT_OK(c, dm_fill_gamma_by(s, y, dm_element(p), dm_value(3), 22));
    DMT_OK(c, dm_require_range_by(s, x, dm_value(0), dm_element(most)));
    DMT_OK(c, dm_program_end(s, &program));
    for (int i = 0; i < RUNS; i++) {
        double rate = 0.5 + 20 * i;
        DMT_OK(c, dm_fill(s, p, rate));
        DMT_OK(c, dm_fill(s, most, 10 * rate + 10));
        DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
        DMT_OK(c, dm_read(s, x, got[0]));
        DMT_OK(c, dm_read(s, y, got[1]));
        DMT_OK(c, dm_fill_poisson(s, x, rate, 21));
        DMT_OK(c, dm_fill_gamma(s, y, rate, 3, 22));
        DMT_OK(c, dm_read(s, x, want[0]));
        DMT_OK(c, dm_read(s, y, want[1]));
        if (memcmp(got, want, sizeof want) != 0) {
            dmt_fail(c, "run %d of a program has other numbers", i);
        }
    }
    DMT_OK(c, dm_fill(s, most, 1)); /* of a rate of 40 */
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    dmt_status_is(c, dm_sync(s), DM_ERR_VALUE, "dm_sync");
    DMT_OK(c, dm_program_destroy(s, program));
    const dm_array made[] = {x, y, p, most};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
}

static void distributions_case(dmt_case *c)
{
    by_elements(c);
    no_parameters(c);
    in_program(c);
    dm_array x;
    _Bool b[50];
    for (int which = 0; which < 5; which++) {
        distribution(c, which);
    }
    x = vector(c, DM_BOOL, 50, 1);
    DMT_OK(c, dm_fill_bernoulli(c->session, x, 1, 5));
    DMT_OK(c, dm_read(c->session, x, b));
    DMT_OK(c, dm_array_destroy(c->session, x));
    for (int i = 0; i < 50; i++) {
        if (!b[i]) {
            dmt_fail(c, "p = 1 gives 0");
        }
    }
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void permutation_case(dmt_case *c)
{
    enum { ROWS = 37 };
    static int64_t p[2][ROWS];
    double rows[ROWS][2], out[ROWS][2];
    int64_t shape[] = {ROWS, 2};
    for (int i = 0; i < 2; i++) {
        dm_array x = vector(c, DM_I64, ROWS, (int)c->number + i);
        DMT_OK(c, dm_fill_permutation(c->session, x, 3));
        DMT_OK(c, dm_read(c->session, x, p[i]));
        DMT_OK(c, dm_array_destroy(c->session, x));
    }
    if (memcmp(p[0], p[1], sizeof p[0]) != 0) {
        dmt_fail(c, "the order depends on the layout");
    }
    dm_array x, y;
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_like(c->session, x, 0, &y));
    for (int i = 0; i < ROWS; i++) {
        rows[i][0] = i;
        rows[i][1] = -i;
    }
    DMT_OK(c, dm_write(c->session, x, &rows[0][0]));
    DMT_OK(c, dm_shuffle(c->session, x, 0, 3, y));
    DMT_OK(c, dm_read(c->session, y, &out[0][0]));
    for (int i = 0; i < ROWS; i++) {
        if (out[i][0] != (double)p[0][i] || out[i][1] != -out[i][0]) {
            dmt_fail(c, "row %d is row %g of x, not %d", i, out[i][0], (int)p[0][i]);
        }
    }
    qsort(p[0], ROWS, sizeof p[0][0], ascending);
    for (int i = 0; i < ROWS; i++) {
        if (p[0][i] != i) {
            dmt_fail(c, "it is no permutation");
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}

/* How often each index comes. */
static void choices_case(dmt_case *c)
{
    double weight[BINS], sum = 0;
    static int32_t index[N];
    int64_t few[4], count[BINS];
    dm_array w = vector(c, DM_F64, BINS, (int)c->number), x = vector(c, DM_I32, N, (int)c->number + 1),
             y = vector(c, DM_I64, 4, (int)c->number + 2);
    for (int i = 0; i < BINS; i++) {
        weight[i] = i == 3 ? 0 : i + 1;
        sum += weight[i];
    }
    DMT_OK(c, dm_write(c->session, w, weight));
    for (int weighted = 0; weighted < 2; weighted++) {
        memset(count, 0, sizeof count);
        DMT_OK(c, dm_choice(c->session, BINS, weighted ? w : DM_NO_ARRAY, 1, 17, x));
        DMT_OK(c, dm_read(c->session, x, index));
        for (int i = 0; i < N; i++) {
            if (index[i] < 0 || index[i] >= BINS) {
                dmt_fail(c, "index %d", (int)index[i]);
                return;
            }
            count[index[i]]++;
        }
        for (int i = 0; i < BINS; i++) {
            double p = weighted ? weight[i] / sum : 1.0 / BINS;
            near(c, (double)count[i] / N, p, sqrt(p * (1 - p) / N), "a frequency");
        }
    }
    double awkward[700]; /* whose sums are rounded */
    static int32_t same[2][N];
    for (int i = 0; i < 700; i++) {
        awkward[i] = 1.0 / (3 + i);
    }
    for (int i = 0; i < 2; i++) {
        dm_array v = vector(c, DM_F64, 700, (int)c->number + i);
        DMT_OK(c, dm_write(c->session, v, awkward));
        DMT_OK(c, dm_choice(c->session, 700, v, 1, 5, x));
        DMT_OK(c, dm_read(c->session, x, same[i]));
        DMT_OK(c, dm_array_destroy(c->session, v));
    }
    if (memcmp(same[0], same[1], sizeof same[0]) != 0) {
        dmt_fail(c, "weighted choices depend on the layout");
    }
    memset(count, 0, sizeof count);
    for (int i = 0; i < 60; i++) { /* the first of four, none twice */
        DMT_OK(c, dm_choice(c->session, BINS, i % 2 ? w : DM_NO_ARRAY, 0, 100 + (uint64_t)i, y));
        DMT_OK(c, dm_read(c->session, y, few));
        for (int k = 0; k < 4; k++) {
            for (int j = 0; j < k; j++) {
                if (few[j] == few[k]) {
                    dmt_fail(c, "an index comes twice");
                }
            }
        }
        count[few[0]] += i % 2;
    }
    if (count[3] > 0 || count[9] == 0) {
        dmt_fail(c, "weights do not count");
    }
    DMT_OK(c, dm_array_destroy(c->session, w));
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, y));
}

static void generator_case(dmt_case *c)
{
    dm_session *s = c->session;
    uint64_t a[3], b, seed, next;
    DMT_OK(c, dm_random_set(s, 9, 0));
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_random_next(s, &a[i]));
    }
    DMT_OK(c, dm_random_get(s, &seed, &next));
    if (seed != 9 || next != 3 || a[0] == a[1] || a[1] == a[2]) {
        dmt_fail(c, "the generator is at %d, %d", (int)seed, (int)next);
    }
    DMT_OK(c, dm_random_set(s, 9, 2));
    DMT_OK(c, dm_random_next(s, &b));
    if (b != a[2]) {
        dmt_fail(c, "set does not bring it back");
    }
    DMT_REFUSED(c, DM_ERR_ARG, dm_random_next(s, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_random_get(s, NULL, &next));
}

static void refusals_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_array x = vector(c, DM_F64, 4, 0), i = vector(c, DM_I32, 4, 0), z = vector(c, DM_C128, 4, 0), m;
    DMT_OK(c, dm_matrix(s, DM_I64, 2, 2, &m));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_bernoulli(s, x, 1.5, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_bernoulli(s, x, NAN, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_bernoulli(s, z, 0.5, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_bernoulli_by(s, x, dm_complex(0, 1), 1));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_fill_bernoulli_by(s, x, dm_element(i), 1));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_fill_gamma_by(s, x, dm_value(1), dm_element(x), 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_exponential(s, x, -1, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_exponential(s, i, 1, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_gamma(s, x, 0, 1, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_gamma(s, x, 1, -1, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_gamma(s, i, 1, 1, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_poisson(s, x, -1, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_poisson(s, i, NAN, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_poisson(s, x, 1e16, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_poisson(s, z, 1, 1));
    DMT_REFUSED(c, DM_ERR_ARG, dm_fill_dropout(s, x, 1, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_dropout(s, i, 0.5, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_permutation(s, x, 1));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_fill_permutation(s, m, 1));
    DMT_REFUSED(c, DM_ERR_OVERLAP, dm_shuffle(s, x, 0, 1, x));
    DMT_REFUSED(c, DM_ERR_ARG, dm_choice(s, 3, DM_NO_ARRAY, 0, 1, i));
    DMT_REFUSED(c, DM_ERR_ARG, dm_choice(s, 0, DM_NO_ARRAY, 1, 1, i));
    DMT_REFUSED(c, DM_ERR_SHAPE, dm_choice(s, 9, x, 1, 1, i));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_choice(s, 9, DM_NO_ARRAY, 1, 1, x));
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, i));
    DMT_OK(c, dm_array_destroy(s, z));
    DMT_OK(c, dm_array_destroy(s, m));
}

static void test_all(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*fn)(dmt_case *c);
        int cases;
    } part[] = {{"random_distributions", distributions_case, 2},
                {"random_permutations", permutation_case, 3},
                {"random_choices", choices_case, 2},
                {"random_generator", generator_case, 1},
                {"random_refusals", refusals_case, 1}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        dmt_run(&(dmt_suite){.name = part[i].name, .cases = part[i].cases, .fn = part[i].fn});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
