/* BLAS of level 1, covariances and distances, against loops in long double. */
#include "support/matrix.h"
#include "support/refusal.h"

#include <dmath/linalg.h>
#include <math.h>

static dmt_number *one_number(dmt_case *c)
{
    return dmt_alloc(&c->scratch, (int64_t)sizeof(dmt_number));
}

static long double size_of(dmt_number v)
{
    return fabsl(creall(v)) + fabsl(cimagl(v));
}

/* dot, dotc, asum, nrm2, iamax */
static void number_case(dmt_case *c)
{
    int64_t n = dmt_extent_random(c, 400), best = 0;
    int ndim = dmt_chance(&c->random, 50) ? 1 : 2;
    int64_t cols = ndim == 2 ? dmt_int(&c->random, 1, 9) : 1, count = n * cols;
    int which = (int)dmt_int(&c->random, 0, n == 0 || count == 0 ? 3 : 4);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, ndim, n, cols),
               *y = dmt_matrix_make(c, "y", dtype, ndim, n, cols);
    long double size = 0, squares = 0,
                huge = which == 3 && dtype == DM_F64 && dmt_chance(&c->random, 40) ? 0x1p800L : 1;
    dmt_number *want = one_number(c);
    for (int64_t i = 0; i < count; i++) {
        x->v[i] *= huge;
        dmt_number term = which == 1 ? conjl(x->v[i]) * y->v[i] : x->v[i] * y->v[i];
        *want += which < 2 ? term : which == 2 ? size_of(x->v[i]) : 0;
        size += cabsl(term);
        squares += creall(x->v[i] / huge * conjl(x->v[i] / huge));
        best = size_of(x->v[i]) > size_of(x->v[best]) ? i : best;
    }
    size = which == 2 ? creall(*want) : size;
    if (which == 3) {
        *want = sqrtl(squares) * huge;
        size = creall(*want);
    }
    *want = which == 4 ? best : *want;
    dmt_matrix_place(c, x);
    dmt_matrix_place(c, y);
    dmt_say(c, "\n    call %d", which);
    dm_array out;
    dm_dtype result = which == 4 ? DM_I64 : dtype;
    int dims = dmt_chance(&c->random, 50) ? ndim : 0;
    dmt_say(c, ", out of %d dims", dims);
    DMT_OK(c, dm_array_create(c->session, result, dims, (int64_t[]){1, 1}, NULL, &out));
    dm_session *s = c->session;
    DMT_OK(c, which == 0   ? dm_dot(s, x->array, y->array, out)
              : which == 1 ? dm_dotc(s, x->array, y->array, out)
              : which == 2 ? dm_asum(s, x->array, out)
              : which == 3 ? dm_nrm2(s, x->array, out)
                           : dm_iamax(s, x->array, out));
    dm_c128 got = {0, 0};
    DMT_OK(c, dm_array_read_as(s, out, NULL, NULL, DM_C128, &got, 0));
    long double bound = which == 4 ? 0 : 4 * dmt_blas_eps(dtype) * (size + cabsl(*want));
    if (!(fabsl(got.re - creall(*want)) <= bound && fabsl(got.im - cimagl(*want)) <= bound)) {
        dmt_fail(c, "the result is %.17g%+.17gi, not %.17Lg%+.17Lgi", got.re, got.im, creall(*want),
                 cimagl(*want));
    }
    DMT_OK(c, dm_array_destroy(s, out));
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, y);
}

/* swap, rot, scal, axpy */
static void vector_case(dmt_case *c)
{
    int which = (int)dmt_int(&c->random, 0, 3), ndim = dmt_chance(&c->random, 50) ? 1 : 2;
    int64_t n = dmt_extent_random(c, 400), cols = ndim == 2 ? dmt_int(&c->random, 1, 9) : 1, count = n * cols;
    dm_dtype dtype = dmt_blas_random(c);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, ndim, n, cols),
               *y = dmt_matrix_make(c, "y", dtype, ndim, n, cols);
    dmt_blas_by p = dmt_blas_by_make(c, "c", dtype, true), q = dmt_blas_by_make(c, "s", dtype, true);
    dmt_blas_by_match(&p, &q);
    dmt_number a = p.value, b = q.value;
    dmt_number *wx = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *wx),
               *wy = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *wy);
    long double *bound = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *bound);
    for (int64_t i = 0; i < count; i++) {
        dmt_number u = x->v[i], v = y->v[i];
        wx[i] = which == 0 ? v : which == 1 ? a * u + b * v : which == 2 ? a * u : u;
        wy[i] = which == 0 ? u : which == 1 ? a * v - b * u : which == 2 ? v : a * u + v;
        bound[i] = which == 0 ? 0 : 4 * dmt_blas_eps(dtype) * (cabsl(u) + cabsl(v)) * 2;
    }
    dmt_matrix_place(c, x);
    dmt_matrix_place(c, y);
    dmt_say(c, "\n    call %d", which);
    dm_session *s = c->session;
    DMT_OK(c, which == 0              ? dm_swap(s, x->array, y->array)
              : which == 1 && p.plain ? dm_rot(s, x->array, y->array, p.number, q.number)
              : which == 1            ? dm_rot_by(s, x->array, y->array, p.given, q.given)
              : which == 2            ? dm_scal(s, (double)a, x->array)
                                      : dm_axpy(s, (double)a, x->array, y->array));
    dmt_blas_by_end(c, &p);
    dmt_blas_by_end(c, &q);
    dmt_matrix_check(c, x, wx, bound);
    dmt_matrix_check(c, y, wy, bound);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, y);
}

static void covariance_case(dmt_case *c)
{
    int by = (int)dmt_int(&c->random, 0, 1);
    double correction = dmt_chance(&c->random, 50);
    int64_t n = dmt_int(&c->random, 0, 30), p = dmt_int(&c->random, (int)correction + 1, 60);
    dm_dtype dtype = dmt_blas_random(c);
    dmt_matrix *x = dmt_matrix_make(c, "x", dtype, 2, by ? p : n, by ? n : p),
               *out = dmt_matrix_make(c, "out", dtype, 2, n, n);
    long double offset = dmt_chance(&c->random, 30) ? 100 : 0;
    for (int64_t i = 0; i < n * p; i++) {
        x->v[i] += offset;
    }
    dmt_matrix_place(c, x);
    dmt_matrix_place(c, out);
    dmt_say(c, "\n    by %d correction %g", by, correction);
    dmt_number *want = dmt_alloc(&c->scratch, (n * n + 1) * (int64_t)sizeof *want),
               *mean = dmt_alloc(&c->scratch, (n + 1) * (int64_t)sizeof *mean);
    long double *bound = dmt_alloc(&c->scratch, (n * n + 1) * (int64_t)sizeof *bound);
    for (int64_t i = 0; i < n * p; i++) {
        mean[by ? i % n : i / p] += x->v[i] / (long double)p;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t k = 0; k < p; k++) {
                dmt_number u = dmt_matrix_at(x, by, i, k) - mean[i], v = dmt_matrix_at(x, by, j, k) - mean[j];
                want[i * n + j] += u * conjl(v) / (p - correction);
                bound[i * n + j] += (cabsl(u) + 1) * (cabsl(v) + 1) / (p - correction);
            }
            bound[i * n + j] *= dmt_blas_eps(dtype) * (4 + (long double)p) * (1 + offset);
        }
    }
    DMT_OK(c, dm_covariance(c->session, x->array, by, correction, out->array));
    dmt_matrix_check(c, out, want, bound);
    dmt_matrix_unchanged(c, x);
    dmt_matrix_end(c, x);
    dmt_matrix_end(c, out);
}

static void distances_case(dmt_case *c)
{
    bool cosine = dmt_chance(&c->random, 50);
    int64_t m = dmt_int(&c->random, 0, 40), n = dmt_int(&c->random, 0, 40), k = dmt_int(&c->random, 1, 30);
    dm_dtype dtype = dmt_chance(&c->random, 50) ? DM_F64 : DM_F32;
    dmt_matrix *a = dmt_matrix_make(c, "a", dtype, 2, m, k), *b = dmt_matrix_make(c, "b", dtype, 2, n, k);
    dmt_matrix *out = dmt_matrix_make(c, "out", dmt_chance(&c->random, 50) ? DM_F64 : DM_F32, 2, m, n);
    long double offset = dmt_chance(&c->random, 30) ? 1000 : 0;
    for (int64_t i = 0; i < m * k; i++) {
        a->v[i] += cosine ? 0 : offset;
    }
    for (int64_t i = 0; i < n * k; i++) {
        b->v[i] += cosine ? 0 : offset;
    }
    if (m > 0 && n > 0 && dmt_chance(&c->random, 30)) { /* the same row twice */
        for (int64_t i = 0; i < k; i++) {
            b->v[i] = a->v[i];
        }
    }
    int64_t odd = m > 1 && dmt_chance(&c->random, 30) ? m - 1 : -1; /* a row with NaN */
    for (int64_t i = 0; odd >= 0 && i < k; i++) {
        a->v[odd * k + i] = (dmt_number)NAN;
    }
    dmt_matrix_place(c, a);
    dmt_matrix_place(c, b);
    dmt_matrix_place(c, out);
    dmt_number *want = dmt_alloc(&c->scratch, (m * n + 1) * (int64_t)sizeof *want);
    long double *bound = dmt_alloc(&c->scratch, (m * n + 1) * (int64_t)sizeof *bound);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            long double square = 0, dot = 0, aa = 0, bb = 0;
            for (int64_t p = 0; p < k; p++) {
                long double u = creall(a->v[i * k + p]), v = creall(b->v[j * k + p]);
                square += (u - v) * (u - v);
                dot += u * v;
                aa += u * u;
                bb += v * v;
            }
            long double d = cosine ? 1 - dot / sqrtl(aa * bb) : sqrtl(square),
                        off = 64 * (long double)k * 0x1p-52L;
            want[i * n + j] = d;
            bound[i * n + j] = (cosine ? off : fminl(sqrtl(off), d > 0 ? off / d : 1)) +
                               dmt_blas_eps(out->dtype) * (fabsl(d) + cosine);
        }
    }
    DMT_OK(c, (cosine ? dm_cosine_distances : dm_distances)(c->session, a->array, b->array, out->array));
    dmt_matrix_check(c, out, want, bound);
    dmt_matrix_unchanged(c, a);
    dmt_matrix_unchanged(c, b);
    dmt_matrix_end(c, a);
    dmt_matrix_end(c, b);
    dmt_matrix_end(c, out);
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_array out;
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &out));
    REFUSED(DMT_ONE(SHAPE), "x", dm_dot(s, t.f, t.wide, out));
    REFUSED(DMT_ONE(DTYPE), "x", dm_dot(s, t.whole, t.f, out));
    REFUSED(DMT_ONE(OVERLAP), "x", dm_swap(s, t.f, t.f));
    dm_array corner, one, point;
    DMT_OK(c, dm_array_view(s, t.cube, (int64_t[]){0, 0, 0}, (int64_t[]){1, 1, 1}, &corner));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, (int64_t[]){1}, NULL, &one));
    DMT_OK(c, dm_array_reshape(s, one, 0, NULL, &point));
    REFUSED(DMT_ONE(OVERLAP), "x", dm_nrm2(s, t.cube, corner));
    REFUSED(DMT_ONE(OVERLAP), "x", dm_nrm2(s, one, point));
    REFUSED(DMT_ONE(SHAPE), "out", dm_nrm2(s, t.cube, one));
    DMT_OK(c, dm_array_destroy(s, point));
    DMT_OK(c, dm_array_destroy(s, one));
    DMT_OK(c, dm_array_destroy(s, corner));
    REFUSED(DMT_ONE(DTYPE), "x", dm_scal(s, 2, t.byte));
    REFUSED(DMT_ONE(ARG), "by", dm_covariance(s, t.f, 2, 0, t.g));
    REFUSED(DMT_ONE(SHAPE), "out", dm_covariance(s, t.f, DM_BY_ROWS, 0, t.g));
    REFUSED(DMT_ONE(SHAPE), "x", dm_covariance(s, t.cube, DM_BY_ROWS, 0, t.g));
    REFUSED(DMT_ONE(SHAPE), "out", dm_distances(s, t.f, t.g, t.f));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_cosine_distances(s, t.f, t.wide, t.wide));
    DMT_OK(c, dm_array_destroy(s, out));
    dmt_things_end(c, &t);
}

static int64_t commands_so_far(dmt_case *c)
{
    dm_counters counters = {.size = sizeof counters};
    DMT_OK(c, dm_counters_get(c->session, 0, &counters));
    return counters.commands;
}

/* Covariances of every type into every type: refused ones name out, and send nothing. */
static void types_case(dmt_case *c)
{
    dm_session *s = c->session;
    for (int from = DM_F64; from <= DM_F8E5M2; from++) {
        for (int into = DM_F64; into <= DM_F8E5M2; into++) {
            dm_array x, out;
            DMT_OK(c, dm_array_create(s, (dm_dtype)from, 2, (int64_t[]){3, 4}, NULL, &x));
            DMT_OK(c, dm_array_create(s, (dm_dtype)into, 2, (int64_t[]){3, 3}, NULL, &out));
            DMT_OK(c, dm_fill(s, x, 1));
            DMT_OK(c, dm_fill(s, out, 1));
            bool wide = into == DM_C64 || into == DM_C128;
            bool good = wide || ((into == DM_F64 || into == DM_F32 || into == DM_F16 || into == DM_BF16) &&
                                 from != DM_C64 && from != DM_C128);
            int64_t before = commands_so_far(c);
            dm_status status = dm_covariance(s, x, DM_BY_ROWS, 1, out);
            if (good) {
                DMT_OK(c, status);
            } else {
                dmt_refused(c, status, DMT_ONE(DTYPE), "out", "dm_covariance");
            }
            if (!good && commands_so_far(c) != before) {
                dmt_fail(c, "covariance of %s into %s sent a command before it was refused",
                         dmt_name((dm_dtype)from), dmt_name((dm_dtype)into));
            }
            DMT_OK(c, dm_array_destroy(s, x));
            DMT_OK(c, dm_array_destroy(s, out));
        }
    }
}

#define TEST(test, cases_of)                                                                                   \
    static void test_##test(void **state)                                                                      \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #test, .cases = (cases_of), .fn = test##_case});                          \
    }
TEST(number, 400)
TEST(vector, 200)
TEST(covariance, 200)
TEST(distances, 200)

static void test_errors(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "linalg_errors", .cases = 1, .fn = errors_case, .workers = 3, .each = true});
}

static void test_types(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "covariance_types", .cases = 1, .fn = types_case, .workers = 2, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_number),     cmocka_unit_test(test_vector),
                                       cmocka_unit_test(test_covariance), cmocka_unit_test(test_distances),
                                       cmocka_unit_test(test_errors),     cmocka_unit_test(test_types)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
