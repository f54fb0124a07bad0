/* A chain of additions one by one, and the same chain as a program. bench_program [side [operations]]; workers:
 * DMATH_WORKERS. Prints the median time of an operation. */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include "bench_time.h"

enum { RUNS = 15, REPEATS = 20 };

static void chain(dm_session *s, dm_array x, dm_array y, int operations)
{
    for (int i = 0; i < operations; i++) {
        DM_CHECK(dm_add(s, 0.5, x, 0.5, y, i % 2 ? x : y));
    }
}

int main(int argc, char **argv)
{
    int64_t side = argc > 1 ? strtoll(argv[1], NULL, 10) : 1024;
    int operations = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100;
    double ms[2][RUNS];
    dm_session *s;
    dm_array x, y;
    dm_program program;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_matrix(s, DM_F32, side, side, &x));
    DM_CHECK(dm_matrix(s, DM_F32, side, side, &y));
    DM_CHECK(dm_fill(s, x, 1));
    DM_CHECK(dm_fill(s, y, 2));
    DM_CHECK(dm_program_begin(s));
    chain(s, x, y, operations);
    DM_CHECK(dm_program_end(s, &program));
    DM_CHECK(dm_sync(s));
    for (int i = 0; i < RUNS; i++) {
        double begin = now_ms();
        for (int k = 0; k < REPEATS; k++) {
            chain(s, x, y, operations);
        }
        DM_CHECK(dm_sync(s));
        double between = now_ms();
        DM_CHECK(dm_program_run(s, program, REPEATS, 0, NULL));
        DM_CHECK(dm_sync(s));
        ms[0][i] = between - begin;
        ms[1][i] = now_ms() - between;
    }
    for (int way = 0; way < 2; way++) {
        qsort(ms[way], RUNS, sizeof ms[way][0], by_value);
        printf("%d additions of %lldx%lld f32 in a chain, %s: %.2f us each\n", operations, (long long)side,
               (long long)side, way ? "as a program" : "one by one", ms[way][RUNS / 2] * 1e3 / REPEATS / operations);
    }
    int64_t alive;
    DM_CHECK(dm_finalize(s, &alive));
    return 0;
}
