/* Loops without the program, writers of parts of one array, and groups. bench_loops [side]; workers:
 * DMATH_WORKERS. Prints medians: of a run of a small program that is looked at; of an iteration of conjugate
 * gradients beside its product alone; of products into four column ranges and into one; of a pipeline on half
 * of the workers, and of two. */
#include "bench_time.h"
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 11 };

typedef struct bench {
    dm_session *s;
    int64_t side;
    dm_program program;
    dm_array value;
    int64_t times, every;
    dm_array a, b[4], c[4];
    dm_array x[2], y[2];
    int pipelines, first;
} bench;

/* The median time of work(b), in ms. */
static double median(bench *b, void (*work)(bench *))
{
    double ms[RUNS];
    work(b);
    DM_CHECK(dm_sync(b->s));
    for (int i = 0; i < RUNS; i++) {
        double begin = now_ms();
        work(b);
        DM_CHECK(dm_sync(b->s));
        ms[i] = now_ms() - begin;
    }
    qsort(ms, RUNS, sizeof *ms, by_value);
    return ms[RUNS / 2];
}

static void loop(bench *b)
{
    if (b->every > 0) {
        DM_CHECK(dm_program_run_until(b->s, b->program, b->times, b->every, b->value, -1, 0, NULL));
    } else {
        DM_CHECK(dm_program_run(b->s, b->program, b->times, 0, NULL));
    }
}

static void small_loops(bench *b)
{
    DM_CHECK(dm_array_create(b->s, DM_F64, 0, NULL, NULL, &b->value));
    DM_CHECK(dm_fill(b->s, b->value, 1));
    DM_CHECK(dm_program_begin(b->s));
    DM_CHECK(dm_scale(b->s, 1, b->value, b->value));
    DM_CHECK(dm_program_end(b->s, &b->program));
    b->times = 2000;
    static const int64_t every[] = {0, 1, 10};
    for (int i = 0; i < 3; i++) {
        b->every = every[i];
        printf("a run of one scalar operation, looked at every %d runs: %.2f us\n", (int)b->every,
               median(b, loop) * 1e3 / (double)b->times);
    }
    DM_CHECK(dm_program_destroy(b->s, b->program));
    DM_CHECK(dm_array_destroy(b->s, b->value));
}

/* An iteration of conjugate gradients; without: its product alone. */
static void conjugate(bench *b)
{
    dm_session *s = b->s;
    dm_array a, r, p, q, x, rr, pq, next, step, ratio, *scalars[] = {&rr, &pq, &next, &step, &ratio};
    double ms[2];
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, b->side, b->side, &a));
    DM_CHECK(dm_vector(s, DM_F64, b->side, &r));
    DM_CHECK(dm_array_like(s, r, 0, &p));
    DM_CHECK(dm_array_like(s, r, 0, &q));
    DM_CHECK(dm_array_like(s, r, 0, &x));
    for (int i = 0; i < 5; i++) {
        DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, scalars[i]));
        DM_CHECK(dm_fill(s, *scalars[i], 1));
    }
    DM_CHECK(dm_fill_identity(s, a, 2));
    DM_CHECK(dm_fill(s, x, 0));
    DM_CHECK(dm_fill(s, r, 1));
    DM_CHECK(dm_fill(s, p, 1));
    b->times = 50;
    b->every = 10;
    b->value = rr;
    for (int alone = 0; alone < 2; alone++) {
        DM_CHECK(dm_program_begin(s));
        DM_CHECK(dm_matmul(s, a, p, q));
        if (!alone) {
            DM_CHECK(dm_map(s, "sum(p * q)", 2, (dm_map_arg[]){DM_ARG("p", p), DM_ARG("q", q)}, pq));
            DM_CHECK(dm_map(s, "where(pq > 0, rr / pq, 0)", 2,
                            (dm_map_arg[]){DM_ARG("rr", rr), DM_ARG("pq", pq)}, step));
            DM_CHECK(dm_axpby_by(s, dm_element(step), p, dm_value(1), x));
            DM_CHECK(dm_map(s, "r - step * q", 3,
                            (dm_map_arg[]){DM_ARG("r", r), DM_ARG("step", step), DM_ARG("q", q)}, r));
            DM_CHECK(dm_map(s, "sum(r * r)", 1, (dm_map_arg[]){DM_ARG("r", r)}, next));
            DM_CHECK(dm_map(s, "where(rr > 0, next / rr, 0)", 2,
                            (dm_map_arg[]){DM_ARG("next", next), DM_ARG("rr", rr)}, ratio));
            DM_CHECK(dm_axpby_by(s, dm_value(1), r, dm_element(ratio), p));
            DM_CHECK(dm_copy(s, next, rr));
        }
        DM_CHECK(dm_program_end(s, &b->program));
        b->every = alone ? 0 : 10;
        ms[alone] = median(b, loop) / (double)b->times;
        DM_CHECK(dm_program_destroy(s, b->program));
    }
    printf("conjugate gradients, f64 %lld: %.4f ms an iteration, its product alone %.4f ms\n",
           (long long)b->side, ms[0], ms[1]);
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

static void products(bench *b)
{
    for (int i = 0; i < 64; i++) {
        DM_CHECK(dm_matmul(b->s, b->a, b->b[i % 4], b->c[i % 4]));
    }
}

/* Products that fill a part of a GPU each. */
static void parts(bench *b)
{
    dm_session *s = b->s;
    dm_array out;
    double ms[2];
    dm_layout here = dm_layout_single(0);
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_array_create(s, DM_F32, 2, (int64_t[]){256, 8192}, &here, &b->a));
    DM_CHECK(dm_array_create(s, DM_F32, 2, (int64_t[]){256, 256}, &here, &out));
    DM_CHECK(dm_fill(s, b->a, 1));
    for (int i = 0; i < 4; i++) {
        DM_CHECK(dm_array_create(s, DM_F32, 2, (int64_t[]){8192, 64}, &here, &b->b[i]));
        DM_CHECK(dm_fill(s, b->b[i], 1));
    }
    for (int same = 0; same < 2; same++) {
        for (int i = 0; i < 4; i++) {
            DM_CHECK(dm_array_view(s, out, (int64_t[]){0, same ? 0 : 64 * i}, (int64_t[]){256, 64}, &b->c[i]));
        }
        ms[same] = median(b, products) / 64;
    }
    printf("products of 256x8192 and 8192x64, f32, into four column ranges of one array: %.4f ms each, into "
           "one range %.4f "
           "ms\n",
           ms[0], ms[1]);
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

static void pipelines(bench *b)
{
    for (int i = 0; i < 20; i++) {
        for (int k = b->first; k < b->first + b->pipelines; k++) {
            DM_CHECK(dm_matmul(b->s, b->x[k], b->x[k], b->y[k]));
            DM_CHECK(dm_scale(b->s, 0.5, b->y[k], b->y[k]));
        }
    }
}

static void groups(bench *b)
{
    dm_session *s = b->s;
    int n = dm_workers(s), worker[64];
    if (n < 2 || n > 64) {
        return;
    }
    double ms[3];
    DM_CHECK(dm_scope_begin(s));
    for (int k = 0; k < 2; k++) {
        dm_group group;
        int count = k ? n - n / 2 : n / 2;
        for (int i = 0; i < count; i++) {
            worker[i] = k ? n / 2 + i : i;
        }
        DM_CHECK(dm_group_create(s, worker, count, &group));
        DM_CHECK(dm_group_begin(s, group));
        DM_CHECK(dm_matrix(s, DM_F32, b->side / 4, b->side / 4, &b->x[k]));
        DM_CHECK(dm_array_like(s, b->x[k], 0, &b->y[k]));
        DM_CHECK(dm_fill(s, b->x[k], 1));
        DM_CHECK(dm_group_end(s));
    }
    for (int i = 0; i < 3; i++) {
        b->first = i == 1;
        b->pipelines = 1 + (i == 2);
        ms[i] = median(b, pipelines) / 20;
    }
    printf("a pipeline of products and scales on half of the workers: %.4f and %.4f ms a step; two on two "
           "groups: %.4f ms\n",
           ms[0], ms[1], ms[2]);
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

int main(int argc, char **argv)
{
    bench b = {.side = argc > 1 ? strtoll(argv[1], NULL, 10) : 4096};
    DM_CHECK(dm_init(NULL, &b.s));
    printf("%d workers\n", dm_workers(b.s));
    small_loops(&b);
    conjugate(&b);
    parts(&b);
    groups(&b);
    DM_CHECK(dm_finalize(b.s, NULL));
    return 0;
}
