/* A step of 30 small operations of many kinds, two of them all-reduces of 64 KiB, as a recorded program.
 *   bench_step [ROWS [RUNS]]    ROWS (256) of 1024 f32 a worker; RUNS (200) steps a measurement, medians of 15
 * Prints, from the same run, the time of a step; of its other 28 operations as a program; of an all-reduce of
 * 64 KiB alone, one behind the other in a program; and, from a second session with the option profile, the
 * kernels' own times: those of the 28, a worker. Then the step beside 1.3 times these and 12 us an all-reduce.
 * Settings from the environment (DMATH_...). As ranks there is no second session. Status 1: the program and the
 * calls one by one differ. */
#include "bench_time.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEASURED = 15,
    COLS = 1024,
    NARROW = 64,
    GRADIENTS = 16384 /* of f32: 64 KiB */,
    REDUCES = 2,
    OTHERS = 28
};
enum { ALL = OTHERS + REDUCES, OWN = 1, SUMS = 2 };

typedef struct step {
    dm_session *s;
    dm_array x, t, noise;      /* by rows */
    dm_array w, b;             /* replicas: a row; COLS x NARROW */
    dm_array z, p, half, sums; /* by rows; NARROW columns, and none */
    dm_array gradients, total; /* a row for each worker; their sum, everywhere */
} step;

static void make(step *k, int64_t rows)
{
    dm_session *s = k->s;
    int64_t all = rows * dm_workers(s), wide[] = {all, COLS}, narrow[] = {all, NARROW},
            weights[] = {COLS, NARROW}, gradients[] = {dm_workers(s), GRADIENTS};
    DM_CHECK(dm_scope_begin(s));
    dm_layout by_rows = dm_layout_rows(s), split = dm_layout_split(s, 0), copies = dm_layout_replicated(s);
    DM_CHECK(dm_array_create(s, DM_F32, 2, wide, &by_rows, &k->x));
    DM_CHECK(dm_array_create(s, DM_F32, 2, wide, &by_rows, &k->t));
    DM_CHECK(dm_array_create(s, DM_F32, 2, wide, &by_rows, &k->noise));
    DM_CHECK(dm_array_create(s, DM_F32, 1, wide + 1, &copies, &k->w));
    DM_CHECK(dm_array_create(s, DM_F32, 2, weights, &copies, &k->b));
    DM_CHECK(dm_array_create(s, DM_F32, 2, narrow, &by_rows, &k->z));
    DM_CHECK(dm_array_create(s, DM_F32, 2, narrow, &by_rows, &k->p));
    DM_CHECK(dm_array_create(s, DM_BF16, 2, narrow, &by_rows, &k->half));
    DM_CHECK(dm_array_create(s, DM_F32, 1, narrow, &split, &k->sums));
    DM_CHECK(dm_array_create(s, DM_F32, 2, gradients, &by_rows, &k->gradients));
    DM_CHECK(dm_array_create(s, DM_F32, 1, gradients + 1, &copies, &k->total));
}

static void end(const step *k)
{
    DM_CHECK(dm_scope_end(k->s, NULL, 0));
    DM_CHECK(dm_finalize(k->s, NULL));
}

static void begin_anew(const step *k)
{
    DM_CHECK(dm_fill_uniform(k->s, k->x, -1, 1, 1));
    DM_CHECK(dm_fill_uniform(k->s, k->w, -1, 1, 2));
    DM_CHECK(dm_fill_uniform(k->s, k->b, -1, 1, 3));
    DM_CHECK(dm_fill_uniform(k->s, k->gradients, -1, 1, 4));
    DM_CHECK(dm_fill(k->s, k->total, 0));
}

static void map(const step *k, const char *text, dm_array x, dm_array y, dm_array out)
{
    DM_CHECK(dm_map(k->s, text, 2, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y)}, out));
}

/* OTHERS / 2 operations that move nothing, then a sum: of the gradients, which depend on the sum before. */
static void half_of(const step *k, int what)
{
    dm_session *s = k->s;
    if (what & OWN) {
        map(k, "tanh(x * y)", k->x, k->w, k->t);
        DM_CHECK(dm_add(s, 0.5, k->t, 0.5, k->x, k->t));
        DM_CHECK(dm_matmul(s, k->t, k->b, k->z));
        DM_CHECK(dm_scale(s, 0.03, k->z, k->z));
        DM_CHECK(dm_softmax(s, k->z, (int[]){1}, 1, k->p));
        DM_CHECK(dm_copy(s, k->p, k->half));
        map(k, "maximum(x, 0) + y", k->z, k->half, k->z);
        DM_CHECK(dm_map(s, "mean(z, 1)", 1, (dm_map_arg[]){DM_ARG("z", k->z)}, k->sums));
        DM_CHECK(dm_axpby(s, 0.5, k->p, 0.75, k->z));
        DM_CHECK(dm_multiply(s, 2, k->z, k->p, k->p));
        DM_CHECK(dm_fill_uniform(s, k->noise, -0.1, 0.1, 7));
        map(k, "clip(x + y, -1, 1)", k->x, k->noise, k->x);
        DM_CHECK(dm_map(s, "sqrt(abs(x))", 1, (dm_map_arg[]){DM_ARG("x", k->sums)}, k->sums));
        map(k, "0.9 * x + 0.01 * y", k->gradients, k->total, k->gradients);
    }
    if (what & SUMS) {
        DM_CHECK(dm_sum(s, k->gradients, (int[]){0}, 1, 1, 0, k->total));
    }
}

static void one_step(const step *k, int what)
{
    half_of(k, what);
    half_of(k, what);
}

static dm_program record(const step *k, int what)
{
    dm_program program;
    DM_CHECK(dm_program_begin(k->s));
    one_step(k, what);
    DM_CHECK(dm_program_end(k->s, &program));
    return program;
}

static double median(double *v)
{
    qsort(v, MEASURED, sizeof *v, by_value);
    return v[MEASURED / 2];
}

/* us a run of each program; in turn, as the machine's speed drifts. */
static void measure(const step *k, int runs, const int *what, int programs, double *us)
{
    double each[3][MEASURED];
    dm_program program[3];
    for (int i = 0; i < programs; i++) {
        program[i] = record(k, what[i]);
        DM_CHECK(dm_program_run(k->s, program[i], 50, 0, NULL)); /* graphs, compiled expressions */
    }
    DM_CHECK(dm_sync(k->s));
    for (int n = 0; n < MEASURED; n++) {
        for (int i = 0; i < programs; i++) {
            double begin = now_ms();
            DM_CHECK(dm_program_run(k->s, program[i], runs, 0, NULL));
            DM_CHECK(dm_sync(k->s));
            each[i][n] = (now_ms() - begin) * 1e3 / runs;
        }
    }
    for (int i = 0; i < programs; i++) {
        us[i] = median(each[i]);
        DM_CHECK(dm_program_destroy(k->s, program[i]));
    }
}

/* Does a program give what the calls give? */
static bool same(const step *k)
{
    static float got[2][GRADIENTS];
    dm_program program = record(k, OWN | SUMS);
    begin_anew(k);
    for (int i = 0; i < 3; i++) {
        one_step(k, OWN | SUMS);
    }
    DM_CHECK(dm_read(k->s, k->total, got[0]));
    begin_anew(k);
    DM_CHECK(dm_program_run(k->s, program, 3, 0, NULL));
    DM_CHECK(dm_read(k->s, k->total, got[1]));
    DM_CHECK(dm_program_destroy(k->s, program));
    return memcmp(got[0], got[1], sizeof got[0]) == 0;
}

/* us of a step that a worker is in kernels of the OTHERS: all but those of the op `sum`. */
static double kernel_us(const step *k, int runs)
{
    dm_program program = record(k, OWN | SUMS);
    dm_profile_row row[64];
    int rows;
    double sum = 0;
    DM_CHECK(dm_program_run(k->s, program, 50, 0, NULL));
    DM_CHECK(dm_profile_reset(k->s));
    DM_CHECK(dm_program_run(k->s, program, runs, 0, NULL));
    row[0].size = sizeof row[0];
    DM_CHECK(dm_profile_rows(k->s, 64, row, &rows));
    for (int i = 0; i < rows && i < 64; i++) {
        sum += strcmp(row[i].op, "sum") == 0 ? 0 : row[i].kernel_s;
    }
    return sum * 1e6 / runs / dm_workers(k->s);
}

int main(int argc, char **argv)
{
    int64_t rows = argc > 1 ? strtoll(argv[1], NULL, 10) : 256;
    int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 200;
    step k = {0};
    double us[3];
    if (rows < 1 || runs < 1) {
        fprintf(stderr, "bench_step [ROWS [RUNS]]: both are at least 1\n");
        return 2;
    }
    DM_CHECK(dm_init(NULL, &k.s));
    int workers = dm_workers(k.s);
    make(&k, rows);
    bool right = same(&k);
    measure(&k, runs, (int[]){OWN | SUMS, OWN, SUMS}, 3, us);
    double reduce = us[2] / REDUCES;
    printf("%d workers, %lld rows of %d a worker: a step of %d operations %.1f us, its %d others alone %.1f "
           "us, an all-reduce of "
           "64 KiB alone %.1f us\n",
           workers, (long long)rows, COLS, ALL, us[0], OTHERS, us[1], reduce);
    end(&k);
    dm_config config = DM_CONFIG_INIT;
    config.options = "profile=/dev/null"; /* the table itself */
    if (getenv("OMPI_COMM_WORLD_SIZE") || dm_init(&config, &k.s) != DM_OK) {
        printf("the kernels' own times: not measured as ranks\n");
        return right ? 0 : 1;
    }
    make(&k, rows);
    begin_anew(&k);
    double own = kernel_us(&k, runs), limit = 1.3 * own + 12 * REDUCES;
    printf("kernels' own times %.1f us; 1.3 times these and 12 us an all-reduce %.1f us: the step takes %.2f "
           "of it\n",
           own, limit, us[0] / limit);
    end(&k);
    if (!right) {
        fprintf(stderr, "the program and the calls one by one differ\n");
    }
    return right ? 0 : 1;
}
