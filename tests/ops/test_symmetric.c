/* Products with symmetric matrices, updates of one triangle, products with vectors, against loops. What a call
 * must not read is NaN. */
#include "support/matrix.h"

#include <dmath/linalg.h>
#include <math.h>

static dmt_number symmetric_at(const dmt_matrix *a, int uplo, bool hermitian, int64_t i, int64_t j)
{
    bool named = dmt_in_triangle(uplo, false, i, j);
    dmt_number v = named ? a->v[i * a->cols + j] : a->v[j * a->cols + i];
    return !hermitian ? v : i == j ? creall(v) : named ? v : conjl(v);
}

static void symm_case(dmt_case *c)
{
    int side = (int)dmt_int(&c->random, 0, 1), uplo = (int)dmt_int(&c->random, 0, 1);
    bool hermitian = dmt_chance(&c->random, 50), vector = dmt_chance(&c->random, 30);
    int64_t n = dmt_blas_extent(c), others = vector ? 1 : dmt_int(&c->random, 1, 40);
    side = vector ? DM_LEFT : side;
    int64_t m = side ? others : n, cols = side ? n : others;
    dm_dtype dtype = dmt_blas_random(c);
    dmt_blas_by p = dmt_blas_by_make(c, "alpha", dtype, false), q = dmt_blas_by_make(c, "beta", dtype, false);
    dmt_number alpha = p.value, beta = q.value;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, n, n),
               *b = dmt_matrix_make(c, "b", dtype, vector ? 1 : 2, m, cols);
    dmt_blas_by_match(&p, &q);
    dmt_matrix *out = dmt_matrix_make(c, "c", dtype, vector ? 1 : 2, m, cols);
    dmt_matrix_spoil(a, uplo, false);
    for (int64_t i = 0; i < m * cols && beta == 0; i++) {
        out->v[i] = NAN;
    }
    dmt_matrix_sums s = dmt_matrix_sums_make(c, m * cols);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < cols; j++) {
            for (int64_t k = 0; k < n && alpha != 0; k++) {
                dmt_number e =
                    side ? symmetric_at(a, uplo, hermitian, k, j) : symmetric_at(a, uplo, hermitian, i, k);
                dmt_matrix_sums_add(&s, i * cols + j, alpha * e * b->v[side ? i * cols + k : k * cols + j]);
            }
            dmt_matrix_sums_add(&s, i * cols + j, beta == 0 ? 0 : beta * out->v[i * cols + j]);
        }
    }
    dmt_matrix_sums_end(&s, m * cols, dtype, n);
    dmt_matrix_place(c, a);
    dmt_matrix_place(c, b);
    dmt_matrix_place(c, out);
    dmt_say(c, "\n    side %d uplo %d%s", side, uplo, hermitian ? " hermitian" : "");
    if (vector && p.plain) {
        DMT_OK(c, (hermitian ? dm_hemv : dm_symv)(c->session, uplo, p.number, a->array, b->array, q.number,
                                                  out->array));
    } else if (vector) {
        DMT_OK(c, (hermitian ? dm_hemv_by : dm_symv_by)(c->session, uplo, p.given, a->array, b->array, q.given,
                                                        out->array));
    } else if (p.plain) {
        DMT_OK(c, (hermitian ? dm_hemm : dm_symm)(c->session, side, uplo, p.number, a->array, b->array,
                                                  q.number, out->array));
    } else {
        DMT_OK(c, (hermitian ? dm_hemm_by : dm_symm_by)(c->session, side, uplo, p.given, a->array, b->array,
                                                        q.given, out->array));
    }
    dmt_matrix_check(c, out, s.v, s.size);
    dmt_matrix_unchanged(c, a);
    dmt_matrix_unchanged(c, b);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, b);
    dmt_matrix_end(c, out);
    dmt_blas_by_end(c, &p);
    dmt_blas_by_end(c, &q);
}

/* op(x)[i, k] op(y)[j, k], or with the conjugate of the second */
static dmt_number term(const dmt_matrix *x, const dmt_matrix *y, int trans, bool hermitian, int64_t i,
                       int64_t j, int64_t k)
{
    dmt_number v = dmt_matrix_at(y, trans, j, k);
    return dmt_matrix_at(x, trans, i, k) * (hermitian ? conjl(v) : v);
}

/* The update of one triangle of out; the other is NaN, and stays so. added: beta is an element */
static dmt_matrix_sums update(dmt_case *c, const dmt_matrix *a, const dmt_matrix *b, int uplo, int trans,
                              bool hermitian, dmt_number alpha, dmt_number beta, bool added, int64_t k,
                              dmt_matrix *out)
{
    int64_t n = out->rows;
    bool nothing = (alpha == 0 || k == 0) && beta == 1 && !added;
    dmt_number mirrored = hermitian ? conjl(alpha) : alpha;
    dmt_matrix_sums s = dmt_matrix_sums_make(c, n * n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t at = i * n + j;
            bool named = dmt_in_triangle(uplo, false, i, j);
            out->v[at] = !named || (beta == 0 && !nothing) ? (dmt_number)NAN : out->v[at];
            s.v[at] = named && beta != 0 ? beta * out->v[at] : named ? 0 : NAN;
            s.size[at] = named && beta != 0 ? cabsl(s.v[at]) : 0;
            for (int64_t p = 0; named && p < k && alpha != 0; p++) {
                dmt_matrix_sums_add(&s, at, alpha * term(a, b, trans, hermitian, i, j, p));
                dmt_matrix_sums_add(&s, at, a == b ? 0 : mirrored * term(b, a, trans, hermitian, i, j, p));
            }
            s.v[at] = hermitian && i == j && !nothing ? creall(s.v[at]) : s.v[at];
        }
    }
    dmt_matrix_sums_end(&s, n * n, out->dtype, k);
    return s;
}

static void syrk_case(dmt_case *c)
{
    int uplo = (int)dmt_int(&c->random, 0, 1), trans = dmt_chance(&c->random, 50) ? DM_N : DM_T;
    bool hermitian = dmt_chance(&c->random, 50), two = dmt_chance(&c->random, 50);
    int64_t n = dmt_blas_extent(c), k = dmt_int(&c->random, 0, 30);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_blas_by p = dmt_blas_by_make(c, "alpha", dtype, hermitian && !two),
                q = dmt_blas_by_make(c, "beta", dtype, hermitian);
    dmt_blas_by_match(&p, &q);
    trans = hermitian && trans ? DM_C : trans;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, trans ? k : n, trans ? n : k), *b = a;
    b = two ? dmt_matrix_make(c, "b", dtype, 2, trans ? k : n, trans ? n : k) : a;
    dmt_matrix *out = dmt_matrix_make(c, "c", dtype, 2, n, n);
    dmt_matrix_sums s = update(c, a, b, uplo, trans, hermitian && dmt_is_complex(dtype), p.value, q.value,
                               q.element != NULL, k, out);
    dmt_matrix_place(c, a);
    if (two) {
        dmt_matrix_place(c, b);
    }
    dmt_matrix_place(c, out);
    dmt_say(c, "\n    uplo %d trans %d%s", uplo, trans, hermitian ? " hermitian" : "");
    if (two && p.plain) {
        DMT_OK(c, (hermitian ? dm_her2k : dm_syr2k)(c->session, uplo, trans, p.number, a->array, b->array,
                                                    q.number, out->array));
    } else if (two) {
        DMT_OK(c, (hermitian ? dm_her2k_by : dm_syr2k_by)(c->session, uplo, trans, p.given, a->array, b->array,
                                                          q.given, out->array));
    } else if (p.plain) {
        DMT_OK(c, (hermitian ? dm_herk : dm_syrk)(c->session, uplo, trans, p.number, a->array, q.number,
                                                  out->array));
    } else {
        DMT_OK(c, (hermitian ? dm_herk_by : dm_syrk_by)(c->session, uplo, trans, p.given, a->array, q.given,
                                                        out->array));
    }
    if (two) {
        dmt_matrix_unchanged(c, b);
        dmt_matrix_end(c, b);
    }
    dmt_blas_by_end(c, &p);
    dmt_blas_by_end(c, &q);
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
    int64_t n = dmt_blas_extent(c);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_blas_by p = dmt_blas_by_make(c, "alpha", dtype, hermitian && !two);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, 1, n, 1),
               *y = two ? dmt_matrix_make(c, "y", dtype, 1, n, 1) : x;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, n, n);
    dmt_matrix_sums s =
        update(c, x, y, uplo, DM_N, hermitian && dmt_is_complex(dtype), p.value, 1, false, 1, a);
    dmt_matrix_place(c, x);
    if (two) {
        dmt_matrix_place(c, y);
    }
    dmt_matrix_place(c, a);
    dmt_say(c, "\n    uplo %d%s", uplo, hermitian ? " hermitian" : "");
    if (two && p.plain) {
        DMT_OK(c, (hermitian ? dm_her2 : dm_syr2)(c->session, uplo, p.number, x->array, y->array, a->array));
    } else if (two) {
        DMT_OK(c,
               (hermitian ? dm_her2_by : dm_syr2_by)(c->session, uplo, p.given, x->array, y->array, a->array));
    } else if (p.plain) {
        DMT_OK(c, (hermitian ? dm_her : dm_syr)(c->session, uplo, p.number, x->array, a->array));
    } else {
        DMT_OK(c, (hermitian ? dm_her_by : dm_syr_by)(c->session, uplo, p.given, x->array, a->array));
    }
    if (two) {
        dmt_matrix_end(c, y);
    }
    dmt_blas_by_end(c, &p);
    dmt_matrix_check(c, a, s.v, s.size);
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, a);
}

static void gemv_case(dmt_case *c)
{
    int trans = (int)dmt_int(&c->random, 0, 2);
    bool ger = dmt_chance(&c->random, 50), conjugate = dmt_chance(&c->random, 50);
    int64_t m = dmt_blas_extent(c), n = dmt_blas_extent(c);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_blas_by p = dmt_blas_by_make(c, "alpha", dtype, false), q = p;
    if (!ger) {
        q = dmt_blas_by_make(c, "beta", dtype, false);
        dmt_blas_by_match(&p, &q);
    }
    dmt_number alpha = p.value, beta = q.value;
    trans = ger ? DM_N : trans;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, trans ? n : m, trans ? m : n);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, 1, n, 1), *y = dmt_matrix_make(c, "y", dtype, 1, m, 1);
    dmt_matrix_sums s = dmt_matrix_sums_make(c, ger ? m * n : m);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            dmt_number v = x->v[j];
            if (ger) {
                dmt_matrix_sums_add(&s, i * n + j, a->v[i * n + j]);
                dmt_matrix_sums_add(&s, i * n + j, alpha * y->v[i] * (conjugate ? conjl(v) : v));
            } else if (alpha != 0) {
                dmt_matrix_sums_add(&s, i, alpha * dmt_matrix_at(a, trans, i, j) * v);
            }
        }
        if (!ger) {
            dmt_matrix_sums_add(&s, i, beta == 0 ? 0 : beta * y->v[i]);
            y->v[i] = beta == 0 ? (dmt_number)NAN : y->v[i];
        }
    }
    dmt_matrix_sums_end(&s, ger ? m * n : m, dtype, ger ? 1 : n);
    dmt_matrix_place(c, a);
    dmt_matrix_place(c, x);
    dmt_matrix_place(c, y);
    dmt_say(c, "\n    %s trans %d", ger ? "ger" : "gemv", trans);
    if (ger) {
        if (p.plain) {
            DMT_OK(c, (conjugate ? dm_gerc : dm_ger)(c->session, p.number, y->array, x->array, a->array));
        } else {
            DMT_OK(c, (conjugate ? dm_gerc_by : dm_ger_by)(c->session, p.given, y->array, x->array, a->array));
        }
        dmt_matrix_check(c, a, s.v, s.size);
        dmt_matrix_unchanged(c, y);
    } else {
        if (p.plain) {
            DMT_OK(c, dm_gemv(c->session, trans, p.number, a->array, x->array, q.number, y->array));
        } else {
            DMT_OK(c, dm_gemv_by(c->session, trans, p.given, a->array, x->array, q.given, y->array));
        }
        dmt_blas_by_end(c, &q);
        dmt_matrix_check(c, y, s.v, s.size);
        dmt_matrix_unchanged(c, a);
    }
    dmt_blas_by_end(c, &p);
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, y);
}

#define TEST(test, cases_of)                                                                                   \
    static void test_##test(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #test, .cases = (cases_of), .fn = test##_case});                          \
    }
TEST(symm, 200)
TEST(syrk, 200)
TEST(syr, 150)
TEST(gemv, 150)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_symm), cmocka_unit_test(test_syrk),
                                       cmocka_unit_test(test_syr), cmocka_unit_test(test_gemv)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
