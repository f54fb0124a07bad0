/* Sums of a row a worker into copies at all of them, one after another, as gradients are; and copies of parts
 * to all of them; and sums in a program. One line of JSON a size, as bench/peers prints them. bench_reduce
 * SAMPLES MIB... f32; MIB: size of the result, 0.0625 for 64 KiB. Settings from the environment (DMATH_...) The
 * status is 1 if a result is wrong. */
#include "bench_time.h"

#include <dmath/dmath.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 1001, WINDOW = 512, WINDOWS = 5, PROGRAM_SUMS = 20 };

static void check(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "bench_reduce: %s\n", dm_error_message());
        exit(2);
    }
}

typedef struct job {
    dm_session *s;
    int64_t n;
    dm_array x, part, out; /* (workers, n) by rows; n in parts; n everywhere */
    dm_program sums;       /* PROGRAM_SUMS sums */
} job;

enum { ALL_REDUCE, ACCUMULATE, ALL_GATHER, IN_PROGRAM, CASES };
static const char *const names[CASES] = {"all_reduce", "all_reduce_accumulate", "all_gather",
                                         "all_reduce_in_program"};

static void sum(const job *j, bool accumulate)
{
    check(dm_sum(j->s, j->x, (int[]){0}, 1, 1, accumulate, j->out));
}

static void run(const job *j, int which, int times)
{
    if (which == IN_PROGRAM) {
        check(dm_program_run(j->s, j->sums, times, 0, NULL));
    }
    for (int i = 0; i < times && which != IN_PROGRAM; i++) {
        if (which == ALL_GATHER) {
            check(dm_copy(j->s, j->part, j->out));
        } else {
            sum(j, which == ACCUMULATE);
        }
    }
    check(dm_sync(j->s));
}

/* Elements lo .. lo+WINDOW-1 of row `row` of an array, or of its only dim, as `worker` has them (-1: any). */
static void window(const job *j, dm_array of, int ndim, int64_t row, int64_t lo, int worker, float *to)
{
    int64_t at[2] = {row, lo}, extent[2] = {1, WINDOW};
    dm_array part, there;
    dm_layout single = dm_layout_single(worker < 0 ? 0 : worker);
    check(dm_array_view(j->s, of, at + 2 - ndim, extent + 2 - ndim, &part));
    check(dm_array_create(j->s, DM_F32, ndim, extent + 2 - ndim, &single, &there));
    check(dm_copy(j->s, part, there));
    check(dm_array_read(j->s, there, NULL, NULL, to, 0));
    check(dm_array_destroy(j->s, there));
    check(dm_array_destroy(j->s, part));
}

/* Windows of the result of one call, at every worker, beside what it should be in f64: largest error. NaN:
 * copies differ. */
static double differs(const job *j, int which)
{
    static float row[WINDOW], first[WINDOW], other[WINDOW];
    static double want[WINDOW];
    double most = 0;
    check(dm_fill(j->s, j->out, 1));
    run(j, which, 1);
    for (int w = 0; w < WINDOWS; w++) {
        int64_t lo = (j->n - WINDOW) * w / (WINDOWS - 1);
        memset(want, 0, sizeof want);
        for (int r = 0; r < (which == ALL_GATHER ? 1 : dm_workers(j->s)); r++) {
            window(j, which == ALL_GATHER ? j->part : j->x, which == ALL_GATHER ? 1 : 2, r, lo, -1, row);
            for (int i = 0; i < WINDOW; i++) {
                want[i] += (double)row[i];
            }
        }
        for (int r = 0; r < dm_workers(j->s); r++) {
            window(j, j->out, 1, 0, lo, r, r == 0 ? first : other);
            if (r > 0 && memcmp(first, other, sizeof first) != 0) {
                return NAN;
            }
        }
        for (int i = 0; i < WINDOW; i++) {
            most = fmax(most, fabs(want[i] + (which == ACCUMULATE) - (double)first[i]));
        }
    }
    return most;
}

static double quartile_range(const double *sorted, int n)
{
    return n < 4 ? 0 : sorted[n - 1 - n / 4] - sorted[n / 4];
}

static bool measure(const job *j, int which, double mib, int samples)
{
    static double row[MOST_SAMPLES], alone[MOST_SAMPLES];
    int workers = dm_workers(j->s), sums = which == IN_PROGRAM ? PROGRAM_SUMS : 1;
    double error = differs(j, which), begin;
    run(j, which, 3);
    begin = now_ms();
    run(j, which, 3);
    double about = (now_ms() - begin) / 3;
    int times = about < 1 ? 20 : about < 10 ? 5 : 1; /* launching is hidden */
    for (int i = 0; i < samples; i++) {
        begin = now_ms();
        run(j, which, times);
        row[i] = (now_ms() - begin) / times / sums;
    }
    for (int i = 0; i < samples; i++) {
        begin = now_ms();
        run(j, which, 1);
        alone[i] = (now_ms() - begin) / sums;
    }
    qsort(row, (size_t)samples, sizeof *row, by_value);
    qsort(alone, (size_t)samples, sizeof *alone, by_value);
    bool right = error < 1e-5;
    char said[32] = "\"copies differ\"";
    if (!isnan(error)) {
        snprintf(said, sizeof said, "%.3g", error);
    }
    /* of a worker's links, each way: what the rate would be that moves the least bytes in this time */
    double least = (double)j->n * 4 * (workers - 1) / workers * (which == ALL_GATHER ? 1 : 2);
    printf("{\"peer\":\"dmath\",\"case\":\"%s\",\"dtype\":\"f32\",\"n\":%g,\"gpus\":%d,\"ms_median\":%.5f,"
           "\"ms_min\":%.5f,\"iqr\":%.5f,\"alone_ms\":%.5f,\"checked\":%s,\"largest_error\":%s,\"samples\":%d,"
           "\"link_gbps\":%.1f}\n",
           names[which], mib, workers, row[samples / 2], row[0], quartile_range(row, samples),
           alone[samples / 2], right ? "true" : "false", said, samples, least / row[samples / 2] * 1e-6);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    int samples = argc > 1 ? atoi(argv[1]) : 0;
    bool right = true;
    if (samples < 1 || samples > MOST_SAMPLES || argc < 3) {
        fprintf(stderr, "bench_reduce SAMPLES MIB...\n");
        return 2;
    }
    job j = {0};
    check(dm_init(NULL, &j.s));
    dm_layout rows = dm_layout_rows(j.s), split = dm_layout_split(j.s, 0), all = dm_layout_replicated(j.s);
    for (int i = 2; i < argc; i++) {
        double mib = atof(argv[i]);
        j.n = (int64_t)(mib * (1 << 18));
        if (j.n < WINDOW) {
            fprintf(stderr, "bench_reduce: %s: at least 0.002 MiB\n", argv[i]);
            return 2;
        }
        check(dm_array_create(j.s, DM_F32, 2, (int64_t[]){dm_workers(j.s), j.n}, &rows, &j.x));
        check(dm_array_create(j.s, DM_F32, 1, &j.n, &split, &j.part));
        check(dm_array_create(j.s, DM_F32, 1, &j.n, &all, &j.out));
        check(dm_fill_uniform(j.s, j.x, -1, 1, 5));
        check(dm_fill_uniform(j.s, j.part, -1, 1, 6));
        check(dm_program_begin(j.s));
        for (int k = 0; k < PROGRAM_SUMS; k++) {
            sum(&j, false);
        }
        check(dm_program_end(j.s, &j.sums));
        for (int which = 0; which < CASES; which++) {
            right = measure(&j, which, mib, samples) && right;
        }
        check(dm_program_destroy(j.s, j.sums));
        check(dm_array_destroy(j.s, j.x));
        check(dm_array_destroy(j.s, j.part));
        check(dm_array_destroy(j.s, j.out));
    }
    check(dm_finalize(j.s, NULL));
    return right ? 0 : 1;
}
