/* dmath's side of the comparison: the cases of peer.py, measured as the peers are, in the same lines.
 *
 *   dmath_gemm CASES DTYPES SIZES [SAMPLES [OPTIONS [WORKERS]]]
 *   dmath_gemm rows/rows/rows,remap,chain100 bf16,f32 4096,8192 20 device=cuda 4
 *
 * Under mpirun the ranks are the workers, and WORKERS is left out. The program uses the public interface alone.
 */
#include "../bench_time.h"

#include <dmath/dmath.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICKED = 8, CHAIN = 100, CHAIN_EDGE = 1024, WORD = 32, MOST_SAMPLES = 1000 };

typedef struct test_case {
    const char *name, *dtype_name;
    dm_dtype dtype;
    bool tf32; /* f32 whose products may be rounded to TF32 */
    int64_t n;
    int samples, trans_a;
    dm_array a, b, c;
} test_case;

/* What is measured: commands are given, none is waited for. */
typedef dm_status work(dm_session *s, const test_case *t);

/* A quantile of sorted values, between neighbours in proportion. */
static double quantile(const double *v, int count, double part)
{
    double at = part * (count - 1);
    int low = (int)at;
    return low + 1 < count ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[low];
}

static dm_status timed(dm_session *s, const test_case *t, work *run, int batch, double *ms)
{
    dm_status status = dm_sync(s);
    double begin = now_ms();
    for (int i = 0; i < batch && status == DM_OK; i++) {
        status = run(s, t);
    }
    status = status == DM_OK ? dm_sync(s) : status;
    *ms = (now_ms() - begin) / batch;
    return status;
}

static int batch_for(double ms)
{
    return ms < 1 ? 20 : ms < 10 ? 5 : ms < 25 ? 2 : 1;
}

static dm_status measure(dm_session *s, const test_case *t, work *run, double error, double tolerance)
{
    double batched[MOST_SAMPLES], alone[MOST_SAMPLES], estimate = 0;
    dm_status status = DM_OK;
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        status = timed(s, t, run, i == 2 ? 2 : 1, &estimate);
    }
    int count = t->samples, few = estimate < 50 ? count : 3;
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = timed(s, t, run, batch_for(estimate), &batched[i]);
    }
    for (int i = 0; i < few && status == DM_OK; i++) {
        status = timed(s, t, run, 1, &alone[i]);
    }
    if (status != DM_OK) {
        return status;
    }
    qsort(batched, (size_t)count, sizeof *batched, by_value);
    qsort(alone, (size_t)few, sizeof *alone, by_value);
    printf("{\"peer\": \"dmath\", \"case\": \"%s\", \"dtype\": \"%s\", \"n\": %lld, \"gpus\": %d, "
           "\"ms_median\": %.5f, "
           "\"ms_min\": %.5f, \"iqr\": %.5f, \"alone_ms\": %.5f, \"checked\": %s, \"largest_error\": %.3g, "
           "\"samples\": %d}\n",
           t->name, t->dtype_name, (long long)t->n, dm_workers(s), quantile(batched, count, 0.5), batched[0],
           quantile(batched, count, 0.75) - quantile(batched, count, 0.25), quantile(alone, few, 0.5),
           error <= tolerance ? "true" : "false", error, count);
    fflush(stdout);
    return DM_OK;
}

/* --- products --- */

static dm_status product(dm_session *s, const test_case *t)
{
    dm_gemm_options options = DM_GEMM_OPTIONS_INIT;
    options.compute = t->tf32 ? DM_COMPUTE_TF32 : DM_COMPUTE_F32;
    return dm_gemm_with(s, t->trans_a, DM_N, 1, t->a, t->b, 0, t->c, &options);
}

/* The rectangle at (row, col) in f64. */
static dm_status read_part(dm_session *s, dm_array x, int64_t row, int64_t col, int64_t rows, int64_t cols,
                           double *out)
{
    const int64_t lo[2] = {row, col}, extent[2] = {rows, cols};
    dm_array part = DM_NO_ARRAY, wide = DM_NO_ARRAY;
    dm_layout one = dm_layout_single(0);
    dm_status status = dm_array_view(s, x, lo, extent, &part);
    status = status == DM_OK ? dm_array_create(s, DM_F64, 2, extent, &one, &wide) : status;
    status = status == DM_OK ? dm_copy(s, part, wide) : status;
    status = status == DM_OK ? dm_array_read(s, wide, NULL, NULL, out, 0) : status;
    dm_status freed = dm_array_destroy(s, part), freed_too = dm_array_destroy(s, wide);
    return status != DM_OK ? status : freed != DM_OK ? freed : freed_too;
}

/* Some entries against sums in f64, as a part of what a typical entry has. */
static dm_status check_product(dm_session *s, const test_case *t, double *error)
{
    int64_t n = t->n, picked = n < PICKED ? n : PICKED;
    double *row = malloc((size_t)n * sizeof *row), *col = malloc((size_t)n * sizeof *col);
    dm_status status = row && col ? DM_OK : DM_ERR_NOMEM;
    *error = 0;
    for (int64_t p = 0; p < picked && status == DM_OK; p++) {
        int64_t i = p * n / picked + p, j = n - 1 - (p * n / picked + 2 * p) % n;
        double got = 0, wanted = 0;
        i = i < n ? i : n - 1;
        status = t->trans_a ? read_part(s, t->a, 0, i, n, 1, row) : read_part(s, t->a, i, 0, 1, n, row);
        status = status == DM_OK ? read_part(s, t->b, 0, j, n, 1, col) : status;
        status = status == DM_OK ? read_part(s, t->c, i, j, 1, 1, &got) : status;
        for (int64_t k = 0; k < n; k++) {
            wanted += row[k] * col[k];
        }
        double off = fabs(got - wanted) / sqrt((double)n);
        *error = off <= *error ? *error : off; /* NaN counts as wrong */
    }
    free(row);
    free(col);
    return status;
}

static dm_layout layout_of(const dm_session *s, const char *word)
{
    return strncmp(word, "cols", 4) == 0 ? dm_layout_cols(s) : dm_layout_rows(s);
}

static dm_status free_all(dm_session *s, const test_case *t, dm_status status)
{
    const dm_array all[3] = {t->a, t->b, t->c};
    for (int i = 0; i < 3; i++) {
        dm_status freed = dm_array_destroy(s, all[i]);
        status = status == DM_OK ? freed : status;
    }
    return status;
}

static dm_status run_product(dm_session *s, test_case *t)
{
    const char *second = strchr(t->name, '/'), *third = second ? strchr(second + 1, '/') : NULL;
    const int64_t shape[2] = {t->n, t->n};
    double error = NAN, tolerance = t->dtype == DM_BF16  ? 3e-2
                                    : t->dtype == DM_F16 ? 4e-3
                                    : t->tf32            ? 5e-3
                                    : t->dtype == DM_F32 ? 1e-4
                                                         : 1e-12;
    if (!third) {
        return DM_ERR_ARG;
    }
    dm_layout la = layout_of(s, t->name), lb = layout_of(s, second + 1), lc = layout_of(s, third + 1);
    t->trans_a = strncmp(t->name, "rowsT", 5) == 0 ? DM_T : DM_N;
    dm_status status = dm_array_create(s, t->dtype, 2, shape, &la, &t->a);
    status = status == DM_OK ? dm_array_create(s, t->dtype, 2, shape, &lb, &t->b) : status;
    status = status == DM_OK ? dm_array_create(s, t->dtype, 2, shape, &lc, &t->c) : status;
    status = status == DM_OK ? dm_fill_normal(s, t->a, 0, 1, 1) : status;
    status = status == DM_OK ? dm_fill_normal(s, t->b, 0, 1, 2) : status;
    status = status == DM_OK ? product(s, t) : status;
    status = status == DM_OK ? check_product(s, t, &error) : status;
    status = status == DM_OK ? measure(s, t, product, error, tolerance) : status;
    return free_all(s, t, status);
}

/* --- rows to columns, and small operations in a chain --- */

static dm_status move(dm_session *s, const test_case *t)
{
    return dm_copy(s, t->a, t->b);
}

static dm_status run_remap(dm_session *s, test_case *t)
{
    const int64_t shape[2] = {t->n, t->n}, zero[2] = {0, 0};
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    dm_array sum = DM_NO_ARRAY;
    double off = NAN;
    dm_status status = dm_array_create(s, DM_F32, 2, shape, &rows, &t->a);
    status = status == DM_OK ? dm_array_create(s, DM_F32, 2, shape, &cols, &t->b) : status;
    status = status == DM_OK ? dm_array_create(s, DM_F32, 2, shape, &cols, &t->c) : status;
    status = status == DM_OK ? dm_array_create(s, DM_F64, 0, zero, NULL, &sum) : status;
    status = status == DM_OK ? dm_fill_uniform(s, t->a, -1, 1, 7) : status;
    /* The same numbers whatever the layout. */
    status = status == DM_OK ? dm_fill_uniform(s, t->c, -1, 1, 7) : status;
    status = status == DM_OK ? move(s, t) : status;
    status = status == DM_OK ? dm_add(s, 1, t->b, -1, t->c, t->c) : status;
    status = status == DM_OK ? dm_multiply(s, 1, t->c, t->c, t->c) : status;
    status = status == DM_OK ? dm_sum(s, t->c, NULL, 0, 1, 0, sum) : status;
    status = status == DM_OK ? dm_array_read(s, sum, NULL, NULL, &off, 0) : status;
    status = status == DM_OK ? measure(s, t, move, off, 0) : status;
    dm_status freed = dm_array_destroy(s, sum);
    return free_all(s, t, status == DM_OK ? freed : status);
}

static dm_status chain(dm_session *s, const test_case *t)
{
    dm_status status = dm_fill(s, t->a, 1);
    for (int i = 0; i < CHAIN && status == DM_OK; i++) {
        status = dm_add(s, 1, t->a, 1, t->b, t->a);
    }
    return status;
}

static dm_status run_chain(dm_session *s, test_case *t)
{
    const int64_t shape[2] = {(int64_t)CHAIN_EDGE * dm_workers(s), CHAIN_EDGE};
    double last = NAN;
    t->n = CHAIN_EDGE;
    dm_status status = dm_matrix(s, DM_F32, shape[0], shape[1], &t->a);
    status = status == DM_OK ? dm_matrix(s, DM_F32, shape[0], shape[1], &t->b) : status;
    status = status == DM_OK ? dm_fill(s, t->b, 2) : status;
    status = status == DM_OK ? chain(s, t) : status;
    status = status == DM_OK ? read_part(s, t->a, shape[0] - 1, shape[1] - 1, 1, 1, &last) : status;
    status = status == DM_OK ? measure(s, t, chain, fabs(last - (1 + 2 * CHAIN)), 0) : status;
    return free_all(s, t, status);
}

/* --- the command line --- */

static bool next_word(const char **list, char *word)
{
    size_t n = strcspn(*list, ",");
    if (n == 0 || n >= WORD) {
        return false;
    }
    memcpy(word, *list, n);
    word[n] = 0;
    *list += n + ((*list)[n] == ',');
    return true;
}

static bool dtype_of(const char *word, dm_dtype *out)
{
    static const dm_dtype all[] = {DM_BF16, DM_F16, DM_F32, DM_F64};
    for (int i = 0; i < 4; i++) {
        if (strcmp(word, dm_dtype_name(all[i])) == 0) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

static int report(const test_case *t, int gpus, dm_status status)
{
    if (status != DM_OK) {
        printf("{\"peer\": \"dmath\", \"case\": \"%s\", \"dtype\": \"%s\", \"n\": %lld, \"gpus\": %d, "
               "\"checked\": false, \"error\": \"%s\"}\n",
               t->name, t->dtype_name, (long long)t->n, gpus, dm_status_name(status));
        fprintf(stderr, "dmath_gemm: %s %s %lld: %s\n", t->name, t->dtype_name, (long long)t->n,
                dm_error_message());
    }
    return status != DM_OK;
}

static int run_one(dm_session *s, const char *name, const char *type, int64_t n, int samples)
{
    test_case t = {.name = name, .dtype_name = type, .dtype = DM_F32, .n = n, .samples = samples};
    dm_status status;
    if (strcmp(name, "remap") == 0) {
        status = run_remap(s, &t);
    } else if (strcmp(name, "chain100") == 0) {
        status = run_chain(s, &t);
    } else {
        t.tf32 = strcmp(type, "tf32") == 0;
        if (!t.tf32 && !dtype_of(type, &t.dtype)) {
            return 0;
        }
        status = run_product(s, &t);
    }
    return report(&t, dm_workers(s), status);
}

/* The products in every type and size; rows to columns in every size, the chain once, both in f32. */
static int run_all(dm_session *s, char **argv, int samples)
{
    char name[WORD], type[WORD], size[WORD];
    int failed = 0;
    for (const char *cases = argv[1]; next_word(&cases, name);) {
        bool remap = strcmp(name, "remap") == 0, chained = strcmp(name, "chain100") == 0;
        for (const char *sizes = chained ? "1024" : argv[3]; next_word(&sizes, size);) {
            for (const char *types = remap || chained ? "f32" : argv[2]; next_word(&types, type);) {
                failed |= run_one(s, name, type, strtoll(size, NULL, 10), samples);
            }
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    int samples = argc > 4 ? atoi(argv[4]) : 20;
    if (argc < 4 || samples < 1 || samples > MOST_SAMPLES) {
        fprintf(stderr, "usage: dmath_gemm CASES DTYPES SIZES [SAMPLES [OPTIONS [WORKERS]]]\n");
        return 2;
    }
    config.options = argc > 5 ? argv[5] : NULL;
    config.workers = argc > 6 ? atoi(argv[6]) : 0;
    if (dm_init(&config, &s) != DM_OK) {
        fprintf(stderr, "dmath_gemm: %s\n", dm_error_message());
        return 1;
    }
    int failed = run_all(s, argv, samples);
    if (dm_finalize(s, NULL) != DM_OK) {
        fprintf(stderr, "dmath_gemm: %s\n", dm_error_message());
        failed = 1;
    }
    return failed;
}
