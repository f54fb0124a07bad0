/* One round of commands, over and over the same. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

enum { TYPES = 2, FORMS = 3 };
static const dm_dtype types[TYPES] = {DM_BF16, DM_F32};

struct calls_work {
    dm_session *s;
    int64_t n;
    dm_array a[TYPES][FORMS], b[TYPES][FORMS], c[TYPES][FORMS];
    dm_array x, y, z, turned, dealt, sums, total;
};

void work_check(dm_status status)
{
    if (status != DM_OK) {
        fflush(stdout);
        fprintf(stderr, "bench_cuda_calls: %s: %s\n", dm_status_name(status), dm_error_message());
        exit(1);
    }
}

static dm_array matrix(calls_work *w, dm_dtype dtype, dm_layout layout, uint64_t seed)
{
    dm_array a;
    work_check(dm_array_create(w->s, dtype, 2, (int64_t[]){w->n, w->n}, &layout, &a));
    work_check(dm_fill_uniform(w->s, a, -1, 1, seed));
    return a;
}

/* rows * rows -> rows, rows * columns -> columns, and a product that is summed over what both are split by. */
static void make_products(calls_work *w, int t)
{
    dm_layout rows = dm_layout_rows(w->s), cols = dm_layout_cols(w->s);
    for (int f = 0; f < FORMS; f++) {
        w->a[t][f] = matrix(w, types[t], rows, 11);
        w->b[t][f] = matrix(w, types[t], f == 1 ? cols : rows, 12);
        w->c[t][f] = matrix(w, types[t], f == 1 ? cols : rows, 13);
    }
}

calls_work *work_make(dm_session *s, int64_t n)
{
    calls_work *w = calloc(1, sizeof *w);
    if (!w) {
        fprintf(stderr, "bench_cuda_calls: no memory\n");
        exit(1);
    }
    w->s = s;
    w->n = n;
    for (int t = 0; t < TYPES; t++) {
        make_products(w, t);
    }
    w->x = matrix(w, DM_F32, dm_layout_rows(s), 1);
    w->y = matrix(w, DM_F32, dm_layout_rows(s), 2);
    w->z = matrix(w, DM_F32, dm_layout_cols(s), 3);
    w->turned = matrix(w, DM_F32, dm_layout_rows(s), 4);
    w->dealt = matrix(w, DM_F32, dm_layout_cyclic(s, 0, 7), 5); /* rows in turn, seven at a time */
    work_check(dm_array_create(s, DM_F32, 1, &n, NULL, &w->sums));
    work_check(dm_array_create(s, DM_F64, 2, (int64_t[]){1, 1}, NULL, &w->total));
    return w;
}

static void products(calls_work *w)
{
    for (int t = 0; t < TYPES; t++) {
        for (int f = 0; f < FORMS; f++) {
            work_check(dm_gemm(w->s, f == 2 ? DM_T : DM_N, DM_N, 1, w->a[t][f], w->b[t][f], 0, w->c[t][f]));
        }
    }
}

static void others(calls_work *w)
{
    dm_session *s = w->s;
    double total;
    work_check(dm_copy(s, w->x, w->z));
    work_check(dm_copy(s, w->z, w->dealt));
    work_check(dm_transpose(s, w->x, w->turned));
    work_check(dm_copy(s, w->b[0][0], w->z)); /* another type, other owners */
    work_check(dm_sum(s, w->z, (int[]){1}, 1, 1, 0, w->sums));
    work_check(dm_sum(s, w->dealt, NULL, 0, 1, 0, w->total));
    work_check(dm_add(s, 0.5, w->x, 0.5, w->turned, w->y));
    work_check(dm_multiply(s, 1, w->x, w->y, w->y));
    work_check(dm_axpby(s, 0.1, w->z, 0.9, w->y));
    work_check(dm_tanh(s, w->y, w->y));
    dm_array new = matrix(w, DM_F32, dm_layout_rows(s), 6);
    work_check(dm_add(s, 1, new, 1, w->y, new));
    work_check(dm_array_destroy(s, new));
    work_check(dm_array_read(s, w->total, NULL, NULL, &total, 0));
}

void work_round(calls_work *w)
{
    products(w);
    others(w);
    work_check(dm_sync(w->s));
}

void work_free(calls_work *w)
{
    for (int t = 0; t < TYPES; t++) {
        for (int f = 0; f < FORMS; f++) {
            work_check(dm_array_destroy(w->s, w->a[t][f]));
            work_check(dm_array_destroy(w->s, w->b[t][f]));
            work_check(dm_array_destroy(w->s, w->c[t][f]));
        }
    }
    dm_array rest[] = {w->x, w->y, w->z, w->turned, w->dealt, w->sums, w->total};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        work_check(dm_array_destroy(w->s, rest[i]));
    }
    free(w);
}
