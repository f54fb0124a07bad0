/* Sorting and taking of rows at random over all workers: time, bytes that moved, and the least that must.
 *   bench_sort [KEYS [ROWS [RUNS]]]    KEYS (2^22) of f32, ROWS (2^14) of 256 f32, both a worker; RUNS (5)
 * Medians. KEYS 0 or ROWS 0: not that part. Each call is waited for. Checked: no key is less than the one
 * before, and their sum stays; rows hold what their indices say. Settings from the environment (DMATH_...).
 * Status 1: a result is wrong. */
#include "bench_time.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 101, COLS = 256 };

static int64_t bytes_moved(dm_session *s)
{
    int64_t sum = 0;
    for (int w = 0; w < dm_workers(s); w++) {
        dm_counters c = {.size = sizeof c};
        DM_CHECK(dm_counters_get(s, w, &c));
        sum += c.bytes_sent;
    }
    return sum;
}

static double item(dm_session *s, const char *text, int args, const dm_map_arg *arg)
{
    dm_array value;
    double out;
    dm_layout copies = dm_layout_replicated(s);
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, &copies, &value));
    DM_CHECK(dm_map(s, text, args, arg, value));
    DM_CHECK(dm_item(s, value, NULL, &out));
    DM_CHECK(dm_array_destroy(s, value));
    return out;
}

/* moved: bytes of a run. least: of which those are that must move. */
static void print(dm_session *s, const char *what, double *ms, int runs, int64_t moved, double least)
{
    qsort(ms, (size_t)runs, sizeof *ms, by_value);
    int workers = dm_workers(s);
    printf("%d workers, %s: %.3f ms (%.3f to %.3f), %.4g GB moved, %.2f of the least; %.4g GB/s out of each\n",
           workers, what, ms[runs / 2], ms[0], ms[runs - 1], 1e-9 * (double)moved,
           least > 0 ? (double)moved / least : 1, 1e-6 * (double)moved / workers / ms[runs / 2]);
}

static bool sorting(dm_session *s, int64_t keys, int runs)
{
    double ms[MOST_RUNS], before, after;
    int64_t n = keys * dm_workers(s), moved = 0;
    dm_array x, sorted, low, high;
    DM_CHECK(dm_vector(s, DM_F32, n, &x));
    DM_CHECK(dm_vector(s, DM_F32, n, &sorted));
    DM_CHECK(dm_fill_uniform(s, x, -1, 1, 7));
    for (int i = -1; i < runs; i++) {
        DM_CHECK(dm_sync(s));
        int64_t until_now = bytes_moved(s);
        double begin = now_ms();
        DM_CHECK(dm_sort(s, x, 0, 0, sorted));
        DM_CHECK(dm_sync(s));
        ms[i < 0 ? 0 : i] = now_ms() - begin;
        moved = bytes_moved(s) - until_now;
    }
    char text[64];
    snprintf(text, sizeof text, "sort of %lld f32", (long long)n);
    print(s, text, ms, runs, moved, 4. * (double)n * (dm_workers(s) - 1) / dm_workers(s));
    DM_CHECK(dm_array_slice(s, sorted, (int64_t[]){0}, (int64_t[]){n - 1}, (int64_t[]){1}, &low));
    DM_CHECK(dm_array_slice(s, sorted, (int64_t[]){1}, (int64_t[]){n - 1}, (int64_t[]){1}, &high));
    double descents =
        item(s, "sum(where(b < a, 1, 0))", 2, (dm_map_arg[]){DM_ARG("a", low), DM_ARG("b", high)});
    before = item(s, "sum(x)", 1, (dm_map_arg[]){DM_ARG("x", x)});
    after = item(s, "sum(x)", 1, (dm_map_arg[]){DM_ARG("x", sorted)});
    bool right = descents == 0 && fabs(before - after) <= 1e-9 * (double)n;
    if (!right) {
        fprintf(stderr, "bench_sort: %g keys are less than the one before; sums %.9g and %.9g\n", descents,
                before, after);
    }
    DM_CHECK(dm_array_destroy(s, low));
    DM_CHECK(dm_array_destroy(s, high));
    DM_CHECK(dm_array_destroy(s, x));
    DM_CHECK(dm_array_destroy(s, sorted));
    return right;
}

static bool taking(dm_session *s, int64_t rows, int runs)
{
    double ms[MOST_RUNS];
    int64_t n = rows * dm_workers(s), moved = 0;
    dm_array x, taken, number, index, wanted;
    dm_layout by_rows = dm_layout_rows(s);
    DM_CHECK(dm_array_create(s, DM_F32, 2, (int64_t[]){n, COLS}, &by_rows, &x));
    DM_CHECK(dm_array_like(s, x, DM_F32, &taken));
    DM_CHECK(dm_array_create(s, DM_I64, 2, (int64_t[]){n, 1}, &by_rows, &number));
    DM_CHECK(dm_vector(s, DM_I64, n, &index));
    DM_CHECK(dm_fill_uniform(s, index, 0, (double)n, 7));
    DM_CHECK(dm_fill_arange(s, number, 0, 1));
    DM_CHECK(
        dm_map(s, "i % 65536", 1, (dm_map_arg[]){DM_ARG("i", number)}, x)); /* a number that f32 can hold */
    for (int i = -1; i < runs; i++) {
        DM_CHECK(dm_sync(s));
        int64_t until_now = bytes_moved(s);
        double begin = now_ms();
        DM_CHECK(dm_take(s, x, index, 0, DM_WRAP, taken));
        DM_CHECK(dm_sync(s));
        ms[i < 0 ? 0 : i] = now_ms() - begin;
        moved = bytes_moved(s) - until_now;
    }
    char text[64];
    snprintf(text, sizeof text, "take of %lld rows of 1 KiB", (long long)n);
    print(s, text, ms, runs, moved, 4. * COLS * (double)n * (dm_workers(s) - 1) / dm_workers(s));
    DM_CHECK(dm_array_reshape(s, index, 2, (int64_t[]){n, 1}, &wanted));
    double wrong =
        item(s, "sum(where(t != i % 65536, 1, 0))", 2, (dm_map_arg[]){DM_ARG("t", taken), DM_ARG("i", wanted)});
    if (wrong != 0) {
        fprintf(stderr, "bench_sort: %g elements are not of the row that was asked for\n", wrong);
    }
    return wrong == 0;
}

int main(int argc, char **argv)
{
    int64_t keys = argc > 1 ? strtoll(argv[1], NULL, 10) : 1 << 22,
            rows = argc > 2 ? strtoll(argv[2], NULL, 10) : 1 << 14;
    int runs = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    if (keys < 0 || rows < 0 || runs < 1 || runs > MOST_RUNS) {
        fprintf(stderr, "bench_sort: KEYS and ROWS are 0 or more, RUNS is 1 to %d\n", MOST_RUNS);
        return 2;
    }
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    bool right = (keys == 0 || sorting(s, keys, runs)) & (rows == 0 || taking(s, rows, runs));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return right ? 0 : 1;
}
