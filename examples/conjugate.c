/* Solves A x = b by conjugate gradients (Hestenes & Stiefel, 1952). The scalars of an iteration stay in arrays,
 * which the expressions that follow read. So an iteration is a recorded program, which the workers run until
 * the residual is small: no worker sends this program a word, nor waits for one. conjugate [n [iterations
 * [folder]]] */
#include "common/save.h"
#include "common/told.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

/* A = M Mᵀ / n + 1, and b = A x for an x that is known. */
static void make_problem(dm_session *s, int64_t n, dm_array a, dm_array known, dm_array b)
{
    dm_array m;
    DM_CHECK(dm_array_like(s, a, 0, &m));
    DM_CHECK(dm_fill_normal(s, m, 0, 1, 1));
    DM_CHECK(dm_fill_identity(s, a, 1));
    DM_CHECK(dm_gemm(s, DM_N, DM_T, 1.0 / (double)n, m, m, 1, a));
    DM_CHECK(dm_fill_normal(s, known, 0, 1, 2));
    DM_CHECK(dm_matmul(s, a, known, b));
    DM_CHECK(dm_array_destroy(s, m));
}

static void solve(dm_session *s, int most, dm_array a, dm_array b, dm_array x, dm_array runs)
{
    dm_program iteration;
    dm_array r, p, q, rr, pq, next, *scalars[] = {&rr, &pq, &next};
    dm_layout everywhere = dm_layout_replicated(s); /* a copy on each worker: none fetches them from another */
    DM_CHECK(dm_array_like(s, b, 0, &r));
    DM_CHECK(dm_array_like(s, b, 0, &p));
    DM_CHECK(dm_array_like(s, b, 0, &q));
    for (int i = 0; i < 3; i++) {
        DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, &everywhere, scalars[i]));
    }
    DM_CHECK(dm_fill(s, x, 0));
    DM_CHECK(dm_fill(s, runs, 0));
    DM_CHECK(dm_copy(s, b, r));
    DM_CHECK(dm_copy(s, b, p));
    DM_CHECK(dm_map(s, "sum(r * r)", 1, (dm_map_arg[]){DM_ARG("r", r)}, rr));
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_matmul(s, a, p, q));
    dm_map_arg products[] = {DM_ARG("p", p), DM_ARG("q", q)};
    dm_map_arg forward[] = {DM_ARG("x", x), DM_ARG("p", p), DM_ARG("rr", rr), DM_ARG("pq", pq)};
    dm_map_arg residual[] = {DM_ARG("r", r), DM_ARG("q", q), DM_ARG("rr", rr), DM_ARG("pq", pq)};
    dm_map_arg squares[] = {DM_ARG("r", r)};
    dm_map_arg direction[] = {DM_ARG("r", r), DM_ARG("p", p), DM_ARG("rr", rr), DM_ARG("next", next)};
    DM_CHECK(dm_map(s, "sum(p * q)", 2, products, pq));
    DM_CHECK(dm_map(s, "x + where(pq > 0, rr / pq, 0) * p", 4, forward, x));
    DM_CHECK(dm_map(s, "r - where(pq > 0, rr / pq, 0) * q", 4, residual, r));
    DM_CHECK(dm_map(s, "sum(r * r)", 1, squares, next));
    DM_CHECK(dm_map(s, "r + where(rr > 0, next / rr, 0) * p", 4, direction, p));
    DM_CHECK(dm_copy(s, next, rr));
    DM_CHECK(dm_map(s, "runs + 1", 1, (dm_map_arg[]){DM_ARG("runs", runs)}, runs));
    DM_CHECK(dm_program_end(s, &iteration));
    DM_CHECK(
        dm_program_run_until(s, iteration, most, 5, rr, 1e-22, 0, NULL)); /* the workers look every 5 runs */
    DM_CHECK(dm_program_destroy(s, iteration));
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atoll(argv[1]) : 1000, before_sent, sent, count;
    int most = argc > 2 ? atoi(argv[2]) : 40;
    const char *folder = argc > 3 ? argv[3] : NULL;
    dm_session *s;
    dm_array a, b, x, known, error, runs;
    double largest;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, n, n, &a));
    DM_CHECK(dm_vector(s, DM_F64, n, &b));
    DM_CHECK(dm_array_like(s, b, 0, &x));
    DM_CHECK(dm_array_like(s, b, 0, &known));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &error));
    DM_CHECK(dm_array_create(s, DM_I64, 0, NULL, NULL, &runs));
    make_problem(s, n, a, known, b);

    int64_t before = bytes_to_program(s, &before_sent);
    solve(s, most, a, b, x, runs);
    int64_t told = bytes_to_program(s, &sent) - before;

    DM_CHECK(
        dm_map(s, "max(abs(x - known))", 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("known", known)}, error));
    DM_CHECK(dm_read(s, error, &largest));
    DM_CHECK(dm_read(s, runs, &count));
    printf("%d workers, %d iterations: largest error %.3g; workers sent one another %lld bytes, the program "
           "%lld\n",
           dm_workers(s), (int)count, largest, (long long)(sent - before_sent), (long long)told);
    save(s, folder, "matrix", a);
    save(s, folder, "right", b);
    save(s, folder, "solution", x);
    save(s, folder, "runs", runs);
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return largest < 1e-9 && told == 0 ? 0 : 1;
}
