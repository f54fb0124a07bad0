/* Products and solves with triangular matrices, symmetric products and updates, against loops. What a call must
 * not read is NaN. */
#include "support/matrix.h"
#include "support/refusal.h"

#include <dmath/linalg.h>
#include <math.h>
#include <stdlib.h>

/* Extents: small ones, none, and some for which the calls cut matrices. */
static int64_t extent(dmt_case *c)
{
    int kind = (int)dmt_int(&c->random, 0, 19);
    return kind == 0 ? 0 : kind == 1 ? dmt_int(&c->random, 129, 300) : dmt_int(&c->random, 1, 40);
}

static double factor(dmt_case *c)
{
    static const double some[] = {0, 1, -1, 0.5, -1.25};
    return some[dmt_int(&c->random, 0, 4)];
}

/* Is element i, j in the triangle? unit: without the diagonal */
static bool in_triangle(int uplo, bool unit, int64_t i, int64_t j)
{
    return i == j ? !unit : uplo == DM_LOWER ? i > j : i < j;
}

/* What must not be read becomes NaN. */
static void spoil(dmt_matrix *m, int uplo, bool unit)
{
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            m->v[i * m->cols + j] = in_triangle(uplo, unit, i, j) ? m->v[i * m->cols + j] : (dmt_number)NAN;
        }
    }
}

/* op(a)[i, j] of a triangular a */
static dmt_number triangular_at(const dmt_matrix *a, int uplo, bool unit, int trans, int64_t i, int64_t j)
{
    int64_t r = trans ? j : i, k = trans ? i : j;
    return unit && i == j ? 1 : in_triangle(uplo, unit, r, k) ? dmt_matrix_at(a, trans, i, j) : 0;
}

/* An m x n matrix of numbers with the sum of the sizes of what was added up in each. */
typedef struct sums {
    dmt_number *v;
    long double *size;
} sums;

static sums make_sums(dmt_case *c, int64_t count)
{
    return (sums){dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof(dmt_number)),
                  dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof(long double))};
}

static void add(sums *s, int64_t at, dmt_number v)
{
    s->v[at] += v;
    s->size[at] += cabsl(v);
}

static void finish(sums *s, int64_t count, dm_dtype dtype, int64_t k)
{
    for (int64_t i = 0; i < count; i++) {
        s->size[i] *= (4 + 2 * (long double)k) * dmt_blas_eps(dtype);
    }
}

typedef struct triangular {
    int side, uplo, trans, diag;
    double alpha;
    int64_t n;
    dmt_matrix *a, *b;
} triangular;

static triangular make(dmt_case *c, bool vector)
{
    triangular t = {.side = vector ? DM_LEFT : (int)dmt_int(&c->random, 0, 1),
                    .uplo = (int)dmt_int(&c->random, 0, 1),
                    .trans = (int)dmt_int(&c->random, 0, 2),
                    .diag = (int)dmt_int(&c->random, 0, 1),
                    .alpha = vector ? 1 : factor(c),
                    .n = extent(c)};
    dm_dtype dtype = dmt_blas_random(c);
    int64_t sides = vector ? 1 : dmt_int(&c->random, 0, 9) ? dmt_int(&c->random, 1, 40) : extent(c);
    t.a = dmt_matrix_make(c, "a", dtype, 2, t.n, t.n);
    for (int64_t i = 0; i < t.n * t.n; i++) { /* so that solutions stay small */
        t.a->v[i] = i % (t.n + 1) == 0 ? t.a->v[i] / 4 + 2 : t.a->v[i] / (dmt_number)(1 << 9);
    }
    t.b = vector ? dmt_matrix_make(c, "x", dtype, 1, t.n, 1)
                 : dmt_matrix_make(c, "b", dtype, 2, t.side ? sides : t.n, t.side ? t.n : sides);
    spoil(t.a, t.uplo, t.diag == DM_UNIT);
    dmt_matrix_place(c, t.a);
    dmt_matrix_place(c, t.b);
    dmt_say(c, "\n    side %d uplo %d trans %d diag %d alpha %g", t.side, t.uplo, t.trans, t.diag, t.alpha);
    return t;
}

/* op(a) x or x op(a), x of b's shape */
static sums product(dmt_case *c, const triangular *t, const dmt_number *x, double alpha)
{
    int64_t m = t->b->rows, n = t->b->cols;
    sums s = make_sums(c, m * n);
    for (int64_t i = 0; i < m && alpha != 0; i++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t k = 0; k < t->n; k++) {
                dmt_number e = t->side ? triangular_at(t->a, t->uplo, t->diag, t->trans, k, j)
                                       : triangular_at(t->a, t->uplo, t->diag, t->trans, i, k);
                add(&s, i * n + j, e == 0 ? 0 : alpha * e * x[t->side ? i * n + k : k * n + j]);
            }
        }
    }
    return s;
}

static void end(dmt_case *c, triangular *t)
{
    dmt_matrix_unchanged(c, t->a);
    dmt_matrix_end(c, t->a);
    dmt_matrix_end(c, t->b);
}

static void multiplied(dmt_case *c, triangular *t)
{
    sums s = product(c, t, t->b->v, t->alpha);
    finish(&s, t->b->rows * t->b->cols, t->b->dtype, t->n);
    dmt_matrix_check(c, t->b, s.v, s.size);
    end(c, t);
}

static void trmm_case(dmt_case *c)
{
    triangular t = make(c, false);
    DMT_OK(c, dm_trmm(c->session, t.side, t.uplo, t.trans, t.diag, t.alpha, t.a->array, t.b->array));
    multiplied(c, &t);
}

static void trmv_case(dmt_case *c)
{
    triangular t = make(c, true);
    DMT_OK(c, dm_trmv(c->session, t.uplo, t.trans, t.diag, t.a->array, t.b->array));
    multiplied(c, &t);
}

/* The residual: op(a) x against alpha b. */
static void solved(dmt_case *c, triangular *t)
{
    int64_t count = t->b->rows * t->b->cols;
    dmt_number *x = dmt_matrix_read(c, t->b);
    sums s = product(c, t, x, 1);
    finish(&s, count, t->b->dtype, t->n);
    for (int64_t i = 0; i < count; i++) {
        dmt_number want = t->alpha * t->b->v[i];
        if (!(cabsl(s.v[i] - want) <= s.size[i] + 4 * dmt_blas_eps(t->b->dtype) * cabsl(want))) {
            dmt_fail(c, "element %d of op(a) x is %Lg%+Lgi, not %Lg%+Lgi", (int)i, creall(s.v[i]),
                     cimagl(s.v[i]), creall(want), cimagl(want));
        }
    }
    dmt_matrix_check(c, t->b, x, NULL); /* nothing else of the base */
    end(c, t);
}

static void trsm_case(dmt_case *c)
{
    triangular t = make(c, false);
    DMT_OK(c, dm_trsm(c->session, t.side, t.uplo, t.trans, t.diag, t.alpha, t.a->array, t.b->array));
    solved(c, &t);
}

static void trsv_case(dmt_case *c)
{
    triangular t = make(c, true);
    DMT_OK(c, dm_trsv(c->session, t.uplo, t.trans, t.diag, t.a->array, t.b->array));
    solved(c, &t);
}

/* --- symmetric */
static dmt_number symmetric_at(const dmt_matrix *a, int uplo, bool hermitian, int64_t i, int64_t j)
{
    bool named = in_triangle(uplo, false, i, j);
    dmt_number v = named ? a->v[i * a->cols + j] : a->v[j * a->cols + i];
    return !hermitian ? v : i == j ? creall(v) : named ? v : conjl(v);
}

static void symm_case(dmt_case *c)
{
    int side = (int)dmt_int(&c->random, 0, 1), uplo = (int)dmt_int(&c->random, 0, 1);
    bool hermitian = dmt_chance(&c->random, 50), vector = dmt_chance(&c->random, 30);
    double alpha = factor(c), beta = factor(c);
    int64_t n = extent(c), others = vector ? 1 : dmt_int(&c->random, 1, 40);
    side = vector ? DM_LEFT : side;
    int64_t m = side ? others : n, cols = side ? n : others;
    dm_dtype dtype = dmt_blas_random(c);
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, n, n),
               *b = dmt_matrix_make(c, "b", dtype, vector ? 1 : 2, m, cols);
    dmt_matrix *out = dmt_matrix_make(c, "c", dtype, vector ? 1 : 2, m, cols);
    spoil(a, uplo, false);
    for (int64_t i = 0; i < m * cols && beta == 0; i++) {
        out->v[i] = NAN;
    }
    sums s = make_sums(c, m * cols);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < cols; j++) {
            for (int64_t k = 0; k < n && alpha != 0; k++) {
                dmt_number e =
                    side ? symmetric_at(a, uplo, hermitian, k, j) : symmetric_at(a, uplo, hermitian, i, k);
                add(&s, i * cols + j, alpha * e * b->v[side ? i * cols + k : k * cols + j]);
            }
            add(&s, i * cols + j, beta == 0 ? 0 : beta * out->v[i * cols + j]);
        }
    }
    finish(&s, m * cols, dtype, n);
    dmt_matrix_place(c, a);
    dmt_matrix_place(c, b);
    dmt_matrix_place(c, out);
    dmt_say(c, "\n    side %d uplo %d alpha %g beta %g%s", side, uplo, alpha, beta,
            hermitian ? " hermitian" : "");
    if (vector) {
        DMT_OK(c,
               (hermitian ? dm_hemv : dm_symv)(c->session, uplo, alpha, a->array, b->array, beta, out->array));
    } else {
        DMT_OK(c, (hermitian ? dm_hemm : dm_symm)(c->session, side, uplo, alpha, a->array, b->array, beta,
                                                  out->array));
    }
    dmt_matrix_check(c, out, s.v, s.size);
    dmt_matrix_unchanged(c, a);
    dmt_matrix_unchanged(c, b);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, b);
    dmt_matrix_end(c, out);
}

/* op(x)[i, k] op(y)[j, k], or with the conjugate of the second */
static dmt_number term(const dmt_matrix *x, const dmt_matrix *y, int trans, bool hermitian, int64_t i,
                       int64_t j, int64_t k)
{
    dmt_number v = dmt_matrix_at(y, trans, j, k);
    return dmt_matrix_at(x, trans, i, k) * (hermitian ? conjl(v) : v);
}

/* The update of one triangle of out; the other is NaN, and stays so. */
static sums update(dmt_case *c, const dmt_matrix *a, const dmt_matrix *b, int uplo, int trans, bool hermitian,
                   double alpha, double beta, int64_t k, dmt_matrix *out)
{
    int64_t n = out->rows;
    bool nothing = (alpha == 0 || k == 0) && beta == 1;
    sums s = make_sums(c, n * n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t at = i * n + j;
            bool named = in_triangle(uplo, false, i, j);
            out->v[at] = !named || (beta == 0 && !nothing) ? (dmt_number)NAN : out->v[at];
            s.v[at] = named && beta != 0 ? beta * out->v[at] : named ? 0 : NAN;
            s.size[at] = named && beta != 0 ? cabsl(s.v[at]) : 0;
            for (int64_t p = 0; named && p < k && alpha != 0; p++) {
                add(&s, at, alpha * term(a, b, trans, hermitian, i, j, p));
                add(&s, at, a == b ? 0 : alpha * term(b, a, trans, hermitian, i, j, p));
            }
            s.v[at] = hermitian && i == j && !nothing ? creall(s.v[at]) : s.v[at];
        }
    }
    finish(&s, n * n, out->dtype, k);
    return s;
}

static void syrk_case(dmt_case *c)
{
    int uplo = (int)dmt_int(&c->random, 0, 1), trans = dmt_chance(&c->random, 50) ? DM_N : DM_T;
    bool hermitian = dmt_chance(&c->random, 50), two = dmt_chance(&c->random, 50);
    double alpha = factor(c), beta = factor(c);
    int64_t n = extent(c), k = dmt_int(&c->random, 0, 30);
    dm_dtype dtype = dmt_blas_random(c);
    trans = hermitian && trans ? DM_C : trans;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, trans ? k : n, trans ? n : k), *b = a;
    b = two ? dmt_matrix_make(c, "b", dtype, 2, trans ? k : n, trans ? n : k) : a;
    dmt_matrix *out = dmt_matrix_make(c, "c", dtype, 2, n, n);
    sums s = update(c, a, b, uplo, trans, hermitian && dmt_is_complex(dtype), alpha, beta, k, out);
    dmt_matrix_place(c, a);
    if (two) {
        dmt_matrix_place(c, b);
    }
    dmt_matrix_place(c, out);
    dmt_say(c, "\n    uplo %d trans %d alpha %g beta %g%s", uplo, trans, alpha, beta,
            hermitian ? " hermitian" : "");
    if (two) {
        DMT_OK(c, (hermitian ? dm_her2k : dm_syr2k)(c->session, uplo, trans, alpha, a->array, b->array, beta,
                                                    out->array));
        dmt_matrix_unchanged(c, b);
        dmt_matrix_end(c, b);
    } else {
        DMT_OK(c, (hermitian ? dm_herk : dm_syrk)(c->session, uplo, trans, alpha, a->array, beta, out->array));
    }
    dmt_matrix_check(c, out, s.v, s.size);
    dmt_matrix_unchanged(c, a);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, out);
}

/* syr, her, syr2, her2: updates with vectors, k = 1 and beta = 1 */
static void syr_case(dmt_case *c)
{
    int uplo = (int)dmt_int(&c->random, 0, 1);
    bool hermitian = dmt_chance(&c->random, 50), two = dmt_chance(&c->random, 50);
    double alpha = factor(c);
    int64_t n = extent(c);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, 1, n, 1),
               *y = two ? dmt_matrix_make(c, "y", dtype, 1, n, 1) : x;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, n, n);
    sums s = update(c, x, y, uplo, DM_N, hermitian && dmt_is_complex(dtype), alpha, 1, 1, a);
    dmt_matrix_place(c, x);
    if (two) {
        dmt_matrix_place(c, y);
    }
    dmt_matrix_place(c, a);
    dmt_say(c, "\n    uplo %d alpha %g%s", uplo, alpha, hermitian ? " hermitian" : "");
    if (two) {
        DMT_OK(c, (hermitian ? dm_her2 : dm_syr2)(c->session, uplo, alpha, x->array, y->array, a->array));
        dmt_matrix_end(c, y);
    } else {
        DMT_OK(c, (hermitian ? dm_her : dm_syr)(c->session, uplo, alpha, x->array, a->array));
    }
    dmt_matrix_check(c, a, s.v, s.size);
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, a);
}

static void gemv_case(dmt_case *c)
{
    int trans = (int)dmt_int(&c->random, 0, 2);
    bool ger = dmt_chance(&c->random, 50), conjugate = dmt_chance(&c->random, 50);
    double alpha = factor(c), beta = ger ? 1 : factor(c);
    int64_t m = extent(c), n = extent(c);
    dm_dtype dtype = dmt_blas_random(c);
    trans = ger ? DM_N : trans;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, trans ? n : m, trans ? m : n);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, 1, n, 1), *y = dmt_matrix_make(c, "y", dtype, 1, m, 1);
    sums s = make_sums(c, ger ? m * n : m);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            dmt_number v = x->v[j];
            if (ger) {
                add(&s, i * n + j, a->v[i * n + j]);
                add(&s, i * n + j, alpha * y->v[i] * (conjugate ? conjl(v) : v));
            } else if (alpha != 0) {
                add(&s, i, alpha * dmt_matrix_at(a, trans, i, j) * v);
            }
        }
        if (!ger) {
            add(&s, i, beta == 0 ? 0 : beta * y->v[i]);
            y->v[i] = beta == 0 ? (dmt_number)NAN : y->v[i];
        }
    }
    finish(&s, ger ? m * n : m, dtype, ger ? 1 : n);
    dmt_matrix_place(c, a);
    dmt_matrix_place(c, x);
    dmt_matrix_place(c, y);
    dmt_say(c, "\n    %s trans %d alpha %g beta %g", ger ? "ger" : "gemv", trans, alpha, beta);
    if (ger) {
        DMT_OK(c, (conjugate ? dm_gerc : dm_ger)(c->session, alpha, y->array, x->array, a->array));
        dmt_matrix_check(c, a, s.v, s.size);
        dmt_matrix_unchanged(c, y);
    } else {
        DMT_OK(c, dm_gemv(c->session, trans, alpha, a->array, x->array, beta, y->array));
        dmt_matrix_check(c, y, s.v, s.size);
        dmt_matrix_unchanged(c, a);
    }
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, y);
}

static void tril_case(dmt_case *c)
{
    int uplo = (int)dmt_int(&c->random, 0, 1);
    int64_t m = extent(c), n = extent(c);
    bool in_place = dmt_chance(&c->random, 50);
    dmt_matrix *x = dmt_matrix_make(c, "x", dmt_blas_random(c), 2, m, n),
               *out = in_place ? x : dmt_matrix_make(c, "out", x->dtype, 2, m, n);
    dmt_number *want = make_sums(c, m * n).v;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            want[i * n + j] = in_triangle(uplo, false, i, j) ? x->v[i * n + j] : 0;
        }
    }
    dmt_matrix_place(c, x);
    if (!in_place) {
        dmt_matrix_place(c, out);
    }
    DMT_OK(c, (uplo == DM_LOWER ? dm_tril : dm_triu)(c->session, x->array, out->array));
    dmt_matrix_check(c, out, want, NULL);
    if (!in_place) {
        dmt_matrix_unchanged(c, x);
        dmt_matrix_end(c, x);
    }
    dmt_matrix_end(c, out);
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t lo[2] = {0, 0}, extents[2] = {5, 5};
    dm_array square, wide;
    DMT_OK(c, dm_array_view(s, t.f, lo, extents, &square));
    DMT_OK(c, dm_matrix(s, DM_F64, 5, 5, &wide));
    REFUSED(DMT_ONE(ARG), "side", dm_trsm(s, 2, 0, 0, 0, 1, square, t.g));
    REFUSED(DMT_ONE(ARG), "uplo", dm_trsm(s, 1, -1, 0, 0, 1, square, t.g));
    REFUSED(DMT_ONE(ARG), "trans", dm_trmm(s, 1, 0, 3, 0, 1, square, t.g));
    REFUSED(DMT_ONE(ARG), "diag", dm_trmm(s, 1, 0, 0, 2, 1, square, t.g));
    REFUSED(DMT_ONE(SHAPE), "a", dm_trsm(s, 0, 0, 0, 0, 1, square, t.g));
    REFUSED(DMT_ONE(SHAPE), "a", dm_trsm(s, 1, 0, 0, 0, 1, t.row, t.g));
    REFUSED(DMT_ONE(DTYPE), "b", dm_trsm(s, 1, 0, 0, 0, 1, square, wide));
    REFUSED(DMT_ONE(OVERLAP), "a", dm_trsm(s, 1, 0, 0, 0, 1, square, t.f));
    REFUSED(DMT_ONE(HANDLE), "b", dm_trmm(s, 1, 0, 0, 0, 1, square, DM_NO_ARRAY));
    REFUSED(DMT_ONE(SHAPE), "c", dm_syrk(s, 0, 0, 1, t.f, 0, t.g));
    REFUSED(DMT_ONE(DTYPE), "a", dm_syrk(s, 0, 0, 1, t.whole, 0, t.g));
    REFUSED(DMT_ONE(SHAPE), "b", dm_symm(s, 1, 0, 1, square, t.wide, 0, t.g));
    REFUSED(DMT_ONE(OVERLAP), "x", dm_gemv(s, 1, 1, t.g, t.row, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "x", dm_trmv(s, 0, 0, 0, t.f, t.f));
    DMT_OK(c, dm_array_destroy(s, square));
    DMT_OK(c, dm_array_destroy(s, wide));
    dmt_things_end(c, &t);
}

#define TEST(test, cases_of)                                                                                   \
    static void test_##test(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #test, .cases = (cases_of), .fn = test##_case});                          \
    }
TEST(trsm, 200)
TEST(trmm, 200)
TEST(trsv, 60)
TEST(trmv, 60)
TEST(symm, 200)
TEST(syrk, 200)
TEST(syr, 150)
TEST(gemv, 150)
TEST(tril, 60)

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "blas_errors", .cases = 1, .fn = errors_case, .workers = 3, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trsm), cmocka_unit_test(test_trmm),
                                       cmocka_unit_test(test_trsv), cmocka_unit_test(test_trmv),
                                       cmocka_unit_test(test_symm), cmocka_unit_test(test_syrk),
                                       cmocka_unit_test(test_syr),  cmocka_unit_test(test_gemv),
                                       cmocka_unit_test(test_tril), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
