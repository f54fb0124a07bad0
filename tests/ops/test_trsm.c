/* Products and solves with triangular matrices, against loops. What a call must not read is NaN. */
#include "support/matrix.h"
#include "support/refusal.h"

#include <dmath/linalg.h>
#include <math.h>
#include <string.h>

/* op(a)[i, j] of a triangular a */
static dmt_number triangular_at(const dmt_matrix *a, int uplo, bool unit, int trans, int64_t i, int64_t j)
{
    int64_t r = trans ? j : i, k = trans ? i : j;
    return unit && i == j ? 1 : dmt_in_triangle(uplo, unit, r, k) ? dmt_matrix_at(a, trans, i, j) : 0;
}

typedef struct triangular {
    int side, uplo, trans, diag;
    dmt_blas_by alpha;
    int64_t n;
    dmt_matrix *a, *b;
} triangular;

static triangular make(dmt_case *c, bool vector)
{
    triangular t = {.side = vector ? DM_LEFT : (int)dmt_int(&c->random, 0, 1),
                    .uplo = (int)dmt_int(&c->random, 0, 1),
                    .trans = (int)dmt_int(&c->random, 0, 2),
                    .diag = (int)dmt_int(&c->random, 0, 1),
                    .n = dmt_blas_extent(c)};
    dm_dtype dtype = dmt_blas_random(c);
    t.alpha = vector ? (dmt_blas_by){.plain = true, .number = 1, .value = 1}
                     : dmt_blas_by_make(c, "alpha", dtype, false);
    int64_t sides = vector ? 1 : dmt_int(&c->random, 0, 9) ? dmt_int(&c->random, 1, 40) : dmt_blas_extent(c);
    t.a = dmt_matrix_make(c, "a", dtype, 2, t.n, t.n);
    for (int64_t i = 0; i < t.n * t.n; i++) { /* so that solutions stay small */
        t.a->v[i] = i % (t.n + 1) == 0 ? t.a->v[i] / 4 + 2 : t.a->v[i] / (dmt_number)(1 << 9);
    }
    t.b = vector ? dmt_matrix_make(c, "x", dtype, 1, t.n, 1)
                 : dmt_matrix_make(c, "b", dtype, 2, t.side ? sides : t.n, t.side ? t.n : sides);
    dmt_matrix_spoil(t.a, t.uplo, t.diag == DM_UNIT);
    dmt_matrix_place(c, t.a);
    dmt_matrix_place(c, t.b);
    dmt_say(c, "\n    side %d uplo %d trans %d diag %d", t.side, t.uplo, t.trans, t.diag);
    return t;
}

/* op(a) x or x op(a), x of b's shape */
static dmt_matrix_sums product(dmt_case *c, const triangular *t, const dmt_number *x, dmt_number alpha)
{
    int64_t m = t->b->rows, n = t->b->cols;
    dmt_matrix_sums s = dmt_matrix_sums_make(c, m * n);
    for (int64_t i = 0; i < m && alpha != 0; i++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t k = 0; k < t->n; k++) {
                dmt_number e = t->side ? triangular_at(t->a, t->uplo, t->diag, t->trans, k, j)
                                       : triangular_at(t->a, t->uplo, t->diag, t->trans, i, k);
                dmt_matrix_sums_add(&s, i * n + j, e == 0 ? 0 : alpha * e * x[t->side ? i * n + k : k * n + j]);
            }
        }
    }
    return s;
}

static void end(dmt_case *c, triangular *t)
{
    dmt_blas_by_end(c, &t->alpha);
    dmt_matrix_unchanged(c, t->a);
    dmt_matrix_end(c, t->a);
    dmt_matrix_end(c, t->b);
}

static void multiplied(dmt_case *c, triangular *t)
{
    dmt_matrix_sums s = product(c, t, t->b->v, t->alpha.value);
    dmt_matrix_sums_end(&s, t->b->rows * t->b->cols, t->b->dtype, t->n);
    dmt_matrix_check(c, t->b, s.v, s.size);
    end(c, t);
}

static dm_status multiply(dm_session *s, const triangular *t)
{
    return t->alpha.plain
               ? dm_trmm(s, t->side, t->uplo, t->trans, t->diag, t->alpha.number, t->a->array, t->b->array)
               : dm_trmm_by(s, t->side, t->uplo, t->trans, t->diag, t->alpha.given, t->a->array, t->b->array);
}

static dm_status solve(dm_session *s, const triangular *t, dm_array b)
{
    return t->alpha.plain ? dm_trsm(s, t->side, t->uplo, t->trans, t->diag, t->alpha.number, t->a->array, b)
                          : dm_trsm_by(s, t->side, t->uplo, t->trans, t->diag, t->alpha.given, t->a->array, b);
}

static void trmm_case(dmt_case *c)
{
    triangular t = make(c, false);
    DMT_OK(c, multiply(c->session, &t));
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
    dmt_matrix_sums s = product(c, t, x, 1);
    dmt_matrix_sums_end(&s, count, t->b->dtype, t->n);
    for (int64_t i = 0; i < count; i++) {
        dmt_number want = t->alpha.value * t->b->v[i];
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
    DMT_OK(c, solve(c->session, &t, t.b->array));
    solved(c, &t);
}

static void trsv_case(dmt_case *c)
{
    triangular t = make(c, true);
    DMT_OK(c, dm_trsv(c->session, t.uplo, t.trans, t.diag, t.a->array, t.b->array));
    solved(c, &t);
}

/* Recorded in a program, a solve gives the same bits. */
static void recorded_case(dmt_case *c)
{
    triangular t = make(c, false);
    dm_array again, alone;
    dm_program program;
    int64_t shape[] = {t.b->rows, t.b->cols};
    void *x = dmt_alloc(&c->scratch, (shape[0] * shape[1] + 1) * 16),
         *y = dmt_alloc(&c->scratch, (shape[0] * shape[1] + 1) * 16);
    dm_session *s = c->session;
    DMT_OK(c, dm_array_like(s, t.b->array, 0, &again));
    DMT_OK(c, dm_copy(s, t.b->array, again));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, solve(s, &t, again));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_array_like(s, again, 0, &alone));
    DMT_OK(c, dm_copy(s, t.b->array, alone));
    DMT_OK(c, solve(s, &t, alone));
    DMT_OK(c, dm_array_read(s, again, NULL, NULL, x, 0));
    DMT_OK(c, dm_array_read(s, alone, NULL, NULL, y, 0));
    if (memcmp(x, y, (size_t)(shape[0] * shape[1] * dm_dtype_bytes(t.b->dtype))) != 0) {
        dmt_fail(c, "a recorded solve gives other bits");
    }
    DMT_OK(c, dm_array_destroy(s, again));
    DMT_OK(c, dm_array_destroy(s, alone));
    dmt_blas_by_end(c, &t.alpha);
    dmt_matrix_end(c, t.a);
    dmt_matrix_end(c, t.b);
}

static void tril_case(dmt_case *c)
{
    int uplo = (int)dmt_int(&c->random, 0, 1);
    int64_t m = dmt_blas_extent(c), n = dmt_blas_extent(c);
    bool in_place = dmt_chance(&c->random, 50);
    dmt_matrix *x = dmt_matrix_make(c, "x", dmt_blas_random(c), 2, m, n),
               *out = in_place ? x : dmt_matrix_make(c, "out", x->dtype, 2, m, n);
    dmt_number *want = dmt_matrix_sums_make(c, m * n).v;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            want[i * n + j] = dmt_in_triangle(uplo, false, i, j) ? x->v[i * n + j] : 0;
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
TEST(tril, 60)
TEST(recorded, 40)

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "blas_errors", .cases = 1, .fn = errors_case, .workers = 3, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trsm),  cmocka_unit_test(test_trmm),
                                       cmocka_unit_test(test_trsv),  cmocka_unit_test(test_trmv),
                                       cmocka_unit_test(test_tril),  cmocka_unit_test(test_recorded),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
