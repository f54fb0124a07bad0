/* An all-reduce beside products: how much of the shorter one is hidden behind the longer one.
 *   bench_beside [SIDE] [MIB] [TURNS]    products of SIDE x SIDE (4096) in bf16 on GPUs, f32 on CPUs; sums of MIB (64) of f32
 * A turn has as many products as take about as long as the sum. "moving": b is spread, so the products have transfers too.
 * Settings from the environment (DMATH_...). Status 1: a result is wrong. */
#include "bench_time.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 101 };

typedef struct job {
    dm_session *s;
    dm_array a, b, c; /* c = a b */
    dm_array x, sum;  /* rows of addends, one a worker; their sum, everywhere */
    int products;
} job;
enum { SUM = 1, PRODUCTS = 2 };

static double ms_of(const job *j, int what)
{
    double begin = now_ms();
    if (what & SUM) {
        DM_CHECK(dm_sum(j->s, j->x, (int[]){0}, 1, 1, 0, j->sum));
    }
    for (int i = 0; i < j->products && what & PRODUCTS; i++) {
        DM_CHECK(dm_gemm(j->s, DM_N, DM_N, 1, j->a, j->b, 0, j->c));
    }
    DM_CHECK(dm_sync(j->s));
    return now_ms() - begin;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

static void measure(job *j, const char *name, int64_t side, double mib, int turns)
{
    double sum[MOST_TURNS], products[MOST_TURNS], both[MOST_TURNS];
    j->products = 1;
    for (int i = 0; i < 3; i++) { /* plans, memory, clocks */
        sum[0] = ms_of(j, SUM);
        products[0] = ms_of(j, PRODUCTS);
    }
    j->products = (int)fmax(1, ceil(sum[0] / products[0]));
    (void)ms_of(j, SUM | PRODUCTS);
    for (int i = 0; i < turns; i++) { /* in turn, as the machine's speed drifts */
        sum[i] = ms_of(j, SUM);
        products[i] = ms_of(j, PRODUCTS);
        both[i] = ms_of(j, SUM | PRODUCTS);
    }
    double s = median(sum, turns), p = median(products, turns), t = median(both, turns);
    printf("%d workers, %s: sum of %g MiB %.3f ms, %d products of %lld %.3f ms, both %.3f ms: %.2f hidden\n", dm_workers(j->s), name,
           mib, s, j->products, (long long)side, p, t, (s + p - t) / fmin(s, p));
}

static bool right(const job *j, int64_t n)
{
    float value[2];
    DM_CHECK(dm_array_read(j->s, j->sum, (int64_t[]){n - 2}, (int64_t[]){2}, value, 0));
    return value[0] == (float)dm_workers(j->s) && value[1] == value[0];
}

int main(int argc, char **argv)
{
    int64_t side = argc > 1 ? strtoll(argv[1], NULL, 10) : 4096;
    double mib = argc > 2 ? strtod(argv[2], NULL) : 64;
    int turns = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 21;
    int64_t n = (int64_t)(mib * (1 << 18));
    job j = {0};
    if (turns < 1 || turns > MOST_TURNS) {
        fprintf(stderr, "bench_beside: TURNS is 1 to %d\n", MOST_TURNS);
        return 2;
    }
    DM_CHECK(dm_init(NULL, &j.s));
    dm_layout rows = dm_layout_rows(j.s), all = dm_layout_replicated(j.s);
    dm_dtype dtype = getenv("DMATH_DEVICE") && strcmp(getenv("DMATH_DEVICE"), "cuda") == 0 ? DM_BF16 : DM_F32;
    const int64_t shape[2] = {side, side}, addends[2] = {dm_workers(j.s), n};
    DM_CHECK(dm_array_create(j.s, DM_F32, 2, addends, &rows, &j.x));
    DM_CHECK(dm_array_create(j.s, DM_F32, 1, &n, &all, &j.sum));
    DM_CHECK(dm_array_create(j.s, dtype, 2, shape, &rows, &j.a));
    DM_CHECK(dm_array_create(j.s, dtype, 2, shape, &rows, &j.c));
    DM_CHECK(dm_fill(j.s, j.x, 1));
    DM_CHECK(dm_fill_uniform(j.s, j.a, -1, 1, 1));
    bool good = true;
    for (int moving = 0; moving < 2; moving++) {
        DM_CHECK(dm_array_create(j.s, dtype, 2, shape, moving ? &rows : &all, &j.b));
        DM_CHECK(dm_fill_uniform(j.s, j.b, -1, 1, 2));
        measure(&j, moving ? "moving" : "local", side, mib, turns);
        good = good && right(&j, n);
        DM_CHECK(dm_array_destroy(j.s, j.b));
    }
    DM_CHECK(dm_array_destroy(j.s, j.x));
    DM_CHECK(dm_array_destroy(j.s, j.sum));
    DM_CHECK(dm_array_destroy(j.s, j.a));
    DM_CHECK(dm_array_destroy(j.s, j.c));
    DM_CHECK(dm_finalize(j.s, NULL));
    return good ? 0 : 1;
}
