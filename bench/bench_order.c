/* A program in which a large transfer is recorded before a small one that a long chain waits for, in the order
 * as recorded and in the one that dmath finds. bench_order [side [chain [way]]]; way: 0 or 1, for ranks,
 * which have one session; workers: DMATH_WORKERS. Prints
 * median and least times of a run. */
#include "bench_time.h"
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 15, WAYS = 2 };

typedef struct way {
    dm_session *s;
    dm_program program;
} way;

/* large: side x side, small: an eighth of it. */
static void make(const char *options, int64_t side, int chain, way *out)
{
    dm_config config = DM_CONFIG_INIT;
    dm_array large, large_turned, small, turned;
    config.options = options;
    DM_CHECK(dm_init(&config, &out->s));
    dm_session *s = out->s;
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    const int64_t shape[] = {side, side}, few[] = {side / 8, side / 8};
    DM_CHECK(dm_array_create(s, DM_F32, 2, shape, &rows, &large));
    DM_CHECK(dm_array_create(s, DM_F32, 2, shape, &cols, &large_turned));
    DM_CHECK(dm_array_create(s, DM_F32, 2, few, &rows, &small));
    DM_CHECK(dm_array_create(s, DM_F32, 2, few, &cols, &turned));
    DM_CHECK(dm_fill_uniform(s, large, -1, 1, 1));
    DM_CHECK(dm_fill_uniform(s, small, -1, 1, 2));
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_copy(s, large, large_turned));
    DM_CHECK(dm_copy(s, small, turned));
    for (int i = 0; i < chain; i++) {
        DM_CHECK(dm_map(s, "sin(3 * x) + 0.25 * x", 1, (dm_map_arg[]){DM_ARG("x", turned)}, turned));
    }
    DM_CHECK(dm_program_end(s, &out->program));
}

static double once(const way *w)
{
    double begin = now_ms();
    DM_CHECK(dm_program_run(w->s, w->program, 1, 0, NULL));
    DM_CHECK(dm_sync(w->s));
    return now_ms() - begin;
}

int main(int argc, char **argv)
{
    static const char *const orders[WAYS] = {"program_order=recorded", "program_order=critical"};
    int64_t side = argc > 1 ? strtoll(argv[1], NULL, 10) : 2048;
    int chain = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 60;
    int from = argc > 3 ? atoi(argv[3]) != 0 : 0, to = argc > 3 ? from + 1 : WAYS;
    double ms[WAYS][RUNS];
    for (int i = from; i < to; i++) { /* one session at a time: it has all workers */
        way w;
        make(orders[i], side, chain, &w);
        for (int k = -2; k < RUNS; k++) {
            double took = once(&w);
            if (k >= 0) {
                ms[i][k] = took;
            }
        }
        qsort(ms[i], RUNS, sizeof *ms[i], by_value);
        printf("%d workers, f32 %lld x %lld before a chain of %d on %lld x %lld, %s: %.3f ms, at least %.3f\n",
               dm_workers(w.s), (long long)side, (long long)side, chain, (long long)side / 8,
               (long long)side / 8, orders[i], ms[i][RUNS / 2], ms[i][0]);
        DM_CHECK(dm_finalize(w.s, NULL));
    }
    return 0;
}
