/* Does a transfer wait for another one that it does not depend on? bench_channels [MIB [RUNS]]; workers:
 * DMATH_WORKERS, 4 or more; links: DMATH_LINK_GBPS. For pairs of jobs, a long transfer and a short one with
 * work behind it: least times of each alone, of both, and which part of the shorter one is hidden: 1 where
 * neither waits for the other, 0 where they take their times one behind the other. */
#include "bench_time.h"
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 101, SHORT = 64 /* times less bytes */ };

typedef struct job {
    dm_array from, to; /* a copy, .. */
    bool sums;         /* .. or a sum of a row a worker into copies at all of them */
    int chain;         /* maps on what has come, or products */
    bool products;     /* of each worker's own, without transfers */
    dm_array a, b, c;
} job;

static void submit(dm_session *s, const job *j)
{
    if (j->sums) {
        DM_CHECK(dm_sum(s, j->from, (int[]){0}, 1, 1, 0, j->to));
    } else if (!j->products) {
        DM_CHECK(dm_copy(s, j->from, j->to));
    }
    for (int i = 0; i < j->chain; i++) {
        if (j->products) {
            DM_CHECK(dm_matmul(s, j->a, j->b, j->c));
        } else {
            DM_CHECK(dm_map(s, "sin(3 * x) + 0.25 * x", 1, (dm_map_arg[]){DM_ARG("x", j->to)}, j->to));
        }
    }
}

static double least(dm_session *s, const job *first, const job *second, int runs)
{
    double ms[MOST_RUNS];
    for (int i = -1; i < runs; i++) {
        DM_CHECK(dm_sync(s));
        double begin = now_ms();
        if (first) {
            submit(s, first);
        }
        if (second) {
            submit(s, second);
        }
        DM_CHECK(dm_sync(s));
        if (i >= 0) {
            ms[i] = now_ms() - begin;
        }
    }
    qsort(ms, (size_t)runs, sizeof *ms, by_value);
    return ms[0];
}

static void measure(dm_session *s, const char *what, const job *first, const job *second, int runs)
{
    double a = least(s, first, NULL, runs), b = least(s, second, NULL, runs),
           both = least(s, first, second, runs);
    printf("%-62s %8.3f %8.3f %8.3f ms, hidden %.2f\n", what, a, b, both, (a + b - both) / (a < b ? a : b));
}

static dm_array array(dm_session *s, int64_t rows, int64_t cols, const dm_layout *layout)
{
    dm_array x;
    DM_CHECK(dm_array_create(s, DM_F32, 2, (int64_t[]){rows, cols}, layout, &x));
    DM_CHECK(dm_fill_uniform(s, x, -1, 1, 1));
    return x;
}

/* From one worker to another. */
static job move(dm_session *s, int64_t elements, int from, int to, int chain)
{
    dm_layout there = dm_layout_single(from), here = dm_layout_single(to);
    return (job){.from = array(s, 1, elements, &there), .to = array(s, 1, elements, &here), .chain = chain};
}

/* From rows to columns. */
static job turn(dm_session *s, int64_t side, int chain)
{
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    return (job){.from = array(s, side, side, &rows), .to = array(s, side, side, &cols), .chain = chain};
}

static job sum(dm_session *s, int64_t elements, int chain)
{
    dm_layout rows = dm_layout_rows(s), all = dm_layout_replicated(s);
    job j = {.from = array(s, dm_workers(s), elements, &rows), .sums = true, .chain = chain};
    DM_CHECK(dm_array_create(s, DM_F32, 1, &elements, &all, &j.to));
    return j;
}

static job product(dm_session *s, int64_t side, int chain)
{
    dm_layout rows = dm_layout_rows(s), all = dm_layout_replicated(s);
    return (job){.a = array(s, side * dm_workers(s), side, &rows),
                 .b = array(s, side, side, &all),
                 .c = array(s, side * dm_workers(s), side, &rows),
                 .products = true,
                 .chain = chain};
}

int main(int argc, char **argv)
{
    enum { CHAIN = 400 };
    const int64_t elements = (argc > 1 ? strtoll(argv[1], NULL, 10) : 8) << 18, few = elements / SHORT;
    const int runs = argc > 2 ? atoi(argv[2]) : 7;
    int64_t side = 64;
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
    if (dm_workers(s) < 4 || runs < 1 || runs > MOST_RUNS) {
        fprintf(stderr, "bench_channels: 4 workers or more, 1 to %d runs\n", MOST_RUNS);
        return 2;
    }
    while (side * side < elements) {
        side *= 2;
    }
    printf(
        "%d workers, %lld MiB and a part of %d; the long one alone, the short one with its chain alone, both\n",
        dm_workers(s), (long long)(elements >> 18), SHORT);
    job far = move(s, elements, 0, 1, 0), turned = turn(s, side, 0), summed = sum(s, elements, 0),
        again = sum(s, elements, 0);
    job other = move(s, few, 2, 3, CHAIN), sender = move(s, few, 0, 2, CHAIN),
        receiver = move(s, few, 2, 1, CHAIN), relay = move(s, few, 1, 2, CHAIN),
        back = move(s, few, 1, 0, CHAIN), small = turn(s, side / 8, CHAIN), little = sum(s, few / 4, CHAIN),
        own = product(s, 256, 12);
    measure(s, "copy 0 to 1; copy 2 to 3", &far, &other, runs);
    measure(s, "copy 0 to 1; copy 0 to 2 (one sender)", &far, &sender, runs);
    measure(s, "copy 0 to 1; copy 2 to 1 (one receiver)", &far, &receiver, runs);
    measure(s, "copy 0 to 1; copy 1 to 2 (who receives sends)", &far, &relay, runs);
    measure(s, "copy 0 to 1; copy 1 to 0 (the other way)", &far, &back, runs);
    measure(s, "rows to columns; the same, small", &turned, &small, runs);
    measure(s, "rows to columns; small sum", &turned, &little, runs);
    measure(s, "rows to columns; products without transfers", &turned, &own, runs);
    measure(s, "large sum; rows to columns, small", &summed, &small, runs);
    measure(s, "large sum; small sum", &summed, &little, runs);
    measure(s, "large sum; products without transfers", &summed, &own, runs);
    measure(s, "large sum; another", &summed, &again, runs);
    measure(s, "large sum; rows to columns", &summed, &turned, runs);
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
