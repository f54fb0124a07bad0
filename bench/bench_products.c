/* Square products over all workers in the forms of the benchmarks, beside the local product of the same shape
 * on all workers at once, in turns: medians of ms a product, products one after another. The turns are in
 * another order each round: a GPU at its power limit slows down for some tenths of a second about once in a
 * second, and in a fixed order that met the same form each time.
 *
 *   bench_products DTYPE[:FORMS] ROUNDS N...
 *
 * DTYPE: f64, f32, f16, bf16, or tf32, which is f32 that may be rounded to TF32. FORMS: some of the letters
 * lrcx, for local, rows, columns, contraction; all without; and p for each of them once more inside a program.
 * Started alone or by mpirun; settings from the environment (DMATH_...). */
#include "bench_time.h"

#include <dmath/dmath.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMS = 4, WAYS = 2 /* calls, program */, MOST_ROUNDS = 101, CORNER = 48 };
static const char *const form_names[FORMS] = {"local", "rows*rows->rows", "rows*cols->cols", "contraction"};
static const char form_letters[] = "lrcx";

typedef struct form {
    dm_array a, b, c;
    int trans_a, compute;
    char algorithm[32];
    dm_program program; /* of a row of products; 0: none */
    double ms[MOST_ROUNDS];
} form;

static void check(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "bench_products: %s\n", dm_error_message());
        exit(1);
    }
}

static dm_array matrix(dm_session *s, dm_dtype dtype, int64_t n, dm_layout layout, uint64_t seed)
{
    dm_array a;
    check(dm_array_create(s, dtype, 2, (int64_t[]){n, n}, &layout, &a));
    if (seed) {
        check(dm_fill_uniform(s, a, -1, 1, seed));
    }
    return a;
}

/* One matrix per seed whatever the form, so that all results are the same (the contraction's a is the
 * transpose). */
static void make(dm_session *s, dm_dtype dtype, int64_t n, int which, form *f)
{
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s), all = dm_layout_replicated(s);
    memset(f, 0, sizeof *f);
    f->trans_a = which == 3;
    f->a = matrix(s, dtype, n, rows, f->trans_a ? 0 : 11);
    if (f->trans_a) {
        dm_array t = matrix(s, dtype, n, cols, 11);
        check(dm_transpose(s, t, f->a));
        check(dm_array_destroy(s, t));
    }
    f->b = matrix(s, dtype, n, which == 0 ? all : which == 2 ? cols : rows, 12);
    f->c = matrix(s, dtype, n, which == 2 ? cols : rows, 0);
}

static void multiply_once(dm_session *s, const form *f)
{
    dm_gemm_options options = DM_GEMM_OPTIONS_INIT;
    options.compute = f->compute;
    check(dm_gemm_with(s, f->trans_a ? DM_T : DM_N, DM_N, 1, f->a, f->b, 0, f->c, &options));
}

/* The algorithm that is chosen, "" where nothing moves. */
static void ask_algorithm(dm_session *s, form *f)
{
    char *text = NULL;
    check(dm_explain_begin(s));
    multiply_once(s, f);
    check(dm_explain_end(s, &text));
    const char *at = strstr(text, " algorithm ");
    if (at) {
        (void)sscanf(at, " algorithm %31s", f->algorithm);
    }
    free(text);
}

static void multiply(dm_session *s, const form *f, int times)
{
    if (f->program.id) { /* of `times` products */
        check(dm_program_run(s, f->program, 1, 0, NULL));
    }
    for (int i = 0; i < times && !f->program.id; i++) {
        multiply_once(s, f);
    }
    check(dm_sync(s));
}

static void record(dm_session *s, form *f, int times)
{
    check(dm_program_begin(s));
    for (int i = 0; i < times; i++) {
        multiply_once(s, f);
    }
    check(dm_program_end(s, &f->program));
}

/* Largest difference from the local product in a corner, relative to the largest element there. */
static double differs(dm_session *s, form *reference, form *f, int64_t n)
{
    static float x[CORNER * CORNER], y[CORNER * CORNER];
    int64_t side = n < CORNER ? n : CORNER, lo[2] = {n - side, (n - side) / 2}, extent[2] = {side, side};
    form *of[2] = {reference, f};
    for (int k = 0; k < 2; k++) {
        dm_array part, wide;
        check(dm_array_view(s, of[k]->c, lo, extent, &part));
        check(dm_array_create(s, DM_F32, 2, extent, NULL, &wide));
        check(dm_copy(s, part, wide));
        check(dm_array_read(s, wide, NULL, NULL, k ? y : x, 0));
        check(dm_array_destroy(s, wide));
        check(dm_array_destroy(s, part));
    }
    double most = 0, big = 0;
    for (int64_t i = 0; i < side * side; i++) {
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
        big = fmax(big, fabs((double)x[i]));
    }
    return most / big;
}

static void shuffle(int *order, int count)
{
    static uint32_t state = 1;
    for (int i = count - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        int other = (int)((state >> 16) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void measure(dm_session *s, const char *name, const char *wanted, dm_dtype dtype, int compute, int64_t n,
                    int rounds)
{
    form f[WAYS * FORMS];
    int which[WAYS * FORMS], order[WAYS * FORMS], count = 0;
    bool programs = strchr(wanted, 'p') != NULL, all = strlen(wanted) == (size_t)programs;
    for (int k = 0; k < (1 + programs) * FORMS; k++) {
        if (all || strchr(wanted, form_letters[k % FORMS])) {
            order[count] = count;
            which[count++] = k;
        }
    }
    int times = n <= 4096 ? 40 : n <= 8192 ? 20 : n <= 16384 ? 8 : 3;
    if ((dtype == DM_F32 && compute != DM_COMPUTE_TF32) || dtype == DM_F64) {
        times = times > 8 ? 8 : times > 3 ? 3 : 1;
    }
    for (int k = 0; k < count; k++) {
        make(s, dtype, n, which[k] % FORMS, &f[k]);
        f[k].compute = compute;
        ask_algorithm(s, &f[k]);
        if (which[k] >= FORMS) {
            record(s, &f[k], times);
        }
        multiply(s, &f[k], n > 32768 ? 1 : 3);
    }
    for (int r = 0; r < rounds; r++) {
        shuffle(order, count);
        for (int i = 0; i < count; i++) {
            int k = order[i];
            double begin = now_ms();
            multiply(s, &f[k], times);
            f[k].ms[r] = (now_ms() - begin) / times;
        }
    }
    double local = 0; /* or the first of those asked for */
    for (int k = 0; k < count; k++) {
        double error = differs(s, &f[0], &f[k], n);
        qsort(f[k].ms, (size_t)rounds, sizeof f[k].ms[0], by_value);
        double median = f[k].ms[rounds / 2];
        local = k == 0 ? median : local;
        printf("{\"bench\":\"product\",\"dtype\":\"%s\",\"n\":%lld,\"workers\":%d,\"form\":\"%s%s\","
               "\"algorithm\":\"%s\",\"ms\":%.4f,"
               "\"min\":%.4f,\"max\":%.4f,\"of_local\":%.3f,\"tflops\":%.1f,\"error\":%.1e}\n",
               name, (long long)n, dm_workers(s), form_names[which[k] % FORMS],
               which[k] >= FORMS ? ", in a program" : "", f[k].algorithm, median, f[k].ms[0],
               f[k].ms[rounds - 1], median / local, 2e-9 * (double)n * (double)n * (double)n / median, error);
        fflush(stdout);
        check(dm_program_destroy(s, f[k].program));
        check(dm_array_destroy(s, f[k].a));
        check(dm_array_destroy(s, f[k].b));
    }
    for (int k = 0; k < count; k++) {
        check(dm_array_destroy(s, f[k].c));
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"f64", "f32", "f16", "bf16", "tf32"};
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_F32};
    int at = -1, rounds = argc > 2 ? atoi(argv[2]) : 0;
    char *wanted = argc > 1 ? strchr(argv[1], ':') : NULL;
    if (wanted) {
        *wanted++ = 0;
    }
    for (int i = 0; i < 5; i++) {
        at = argc > 1 && strcmp(argv[1], names[i]) == 0 ? i : at;
    }
    if (at < 0 || rounds < 1 || rounds > MOST_ROUNDS || argc < 4) {
        fprintf(stderr, "bench_products DTYPE[:FORMS] ROUNDS N...\n");
        return 2;
    }
    dm_session *s;
    check(dm_init(NULL, &s));
    for (int i = 3; i < argc; i++) {
        measure(s, argv[1], wanted ? wanted : "", types[at], at == 4 ? DM_COMPUTE_TF32 : DM_COMPUTE_F32,
                atoll(argv[i]), rounds);
    }
    check(dm_finalize(s, NULL));
    return 0;
}
