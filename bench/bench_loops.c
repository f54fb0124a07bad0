/* Loops without the program, writers of parts of one array, and groups. bench_loops [side [turns
 * [iterations]]]; turns: conjugate gradients alone, in so many turns of so many (50) iterations each: short
 * ones, of which some are undisturbed, for a machine that others use. Workers: DMATH_WORKERS. Prints medians:
 * of a run of a small program that is looked at; of an iteration of conjugate gradients beside its product and
 * its vector kernels alone, with its scalars on every worker and on one; of products into four column ranges
 * and into one; of a pipeline on half of the workers, and of two. */
#include "bench_time.h"
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 11, MOST_TURNS = 2001 };

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

static void run_once(bench *b)
{
    DM_CHECK(dm_program_run(b->s, b->program, 1, 0, NULL));
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
    for (int i = 0; i < 3; i++) { /* the same inside a program */
        DM_CHECK(dm_program_begin(b->s));
        DM_CHECK(dm_program_repeat(b->s, b->times));
        DM_CHECK(dm_scale(b->s, 1, b->value, b->value));
        if (every[i] > 0) {
            DM_CHECK(dm_program_repeat_until(b->s, every[i], b->value, -1));
        } else {
            DM_CHECK(dm_program_repeat_end(b->s));
        }
        DM_CHECK(dm_program_end(b->s, &b->program));
        printf("a pass of a loop in a program, looked at every %d passes: %.2f us\n", (int)every[i],
               median(b, run_once) * 1e3 / (double)b->times);
        DM_CHECK(dm_program_destroy(b->s, b->program));
    }
    DM_CHECK(dm_array_destroy(b->s, b->value));
}

/* Records an iteration of conjugate gradients, or a part of it. */
enum { PRODUCT = 1, VECTORS = 2 };

typedef struct solver {
    dm_array a, r, p, q, x, rr, pq, next;
} solver;

static dm_program record(dm_session *s, const solver *v, int what)
{
    dm_program program;
    DM_CHECK(dm_program_begin(s));
    if (what & PRODUCT) {
        DM_CHECK(dm_matmul(s, v->a, v->p, v->q));
    }
    if (what & VECTORS) {
        dm_map_arg products[] = {DM_ARG("p", v->p), DM_ARG("q", v->q)};
        dm_map_arg forward[] = {DM_ARG("x", v->x), DM_ARG("p", v->p), DM_ARG("rr", v->rr), DM_ARG("pq", v->pq)};
        dm_map_arg residual[] = {DM_ARG("r", v->r), DM_ARG("q", v->q), DM_ARG("rr", v->rr),
                                 DM_ARG("pq", v->pq)};
        dm_map_arg squares[] = {DM_ARG("r", v->r)};
        dm_map_arg direction[] = {DM_ARG("r", v->r), DM_ARG("p", v->p), DM_ARG("rr", v->rr),
                                  DM_ARG("next", v->next)};
        DM_CHECK(dm_map(s, "sum(p * q)", 2, products, v->pq));
        DM_CHECK(dm_map(s, "x + where(pq > 0, rr / pq, 0) * p", 4, forward, v->x));
        DM_CHECK(dm_map(s, "r - where(pq > 0, rr / pq, 0) * q", 4, residual, v->r));
        DM_CHECK(dm_map(s, "sum(r * r)", 1, squares, v->next));
        DM_CHECK(dm_map(s, "r + where(rr > 0, next / rr, 0) * p", 4, direction, v->p));
        DM_CHECK(dm_copy(s, v->next, v->rr));
    }
    DM_CHECK(dm_program_end(s, &program));
    return program;
}

/* Ways of a turn: the last one is never looked at. */
enum { WHOLE, ITS_PRODUCT, ITS_VECTORS, UNSEEN, WAYS };

typedef struct turn {
    double ms[WAYS], processor[WAYS]; /* of an iteration */
} turn;

static double processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double middle(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void report(const bench *b, bool everywhere, const turn *t, int turns)
{
    static double ms[WAYS][MOST_TURNS], ratio[MOST_TURNS], processor[MOST_TURNS];
    for (int n = 0; n < turns; n++) {
        for (int i = 0; i < WAYS; i++) {
            ms[i][n] = t[n].ms[i];
        }
        ratio[n] = t[n].ms[WHOLE] / (t[n].ms[ITS_PRODUCT] + t[n].ms[ITS_VECTORS]);
        processor[n] = t[n].processor[WHOLE] / (t[n].processor[ITS_PRODUCT] + t[n].processor[ITS_VECTORS]);
    }
    double whole = middle(ms[WHOLE], turns), product = middle(ms[ITS_PRODUCT], turns),
           vectors = middle(ms[ITS_VECTORS], turns), unseen = middle(ms[UNSEEN], turns);
    double of_turns = middle(ratio, turns), of_processor = middle(processor, turns);
    printf("conjugate gradients, f64 %lld, scalars on %s: %.4f ms an iteration, its product alone %.4f ms, its "
           "vector kernels alone %.4f ms: %.3f of both (least times: %.4f, %.4f, %.4f ms: %.3f; of a turn %.3f "
           "in the "
           "median, worst %.3f; of processor time %.3f); never looked at %.4f ms\n",
           (long long)b->side, everywhere ? "every worker" : "one worker", whole, product, vectors,
           whole / (product + vectors), ms[WHOLE][0], ms[ITS_PRODUCT][0], ms[ITS_VECTORS][0],
           ms[WHOLE][0] / (ms[ITS_PRODUCT][0] + ms[ITS_VECTORS][0]), of_turns, ratio[turns - 1], of_processor,
           unseen);
}

static void make_solver(dm_session *s, int64_t side, bool everywhere, solver *v)
{
    dm_array *scalars[] = {&v->rr, &v->pq, &v->next};
    dm_layout one = dm_layout_single(0), all = dm_layout_replicated(s);
    dm_layout rows = dm_layout_rows(s); /* as the vectors: a product has one exchange */
    DM_CHECK(dm_array_create(s, DM_F64, 2, (int64_t[]){side, side}, &rows, &v->a));
    DM_CHECK(dm_vector(s, DM_F64, side, &v->r));
    DM_CHECK(dm_array_like(s, v->r, 0, &v->p));
    DM_CHECK(dm_array_like(s, v->r, 0, &v->q));
    DM_CHECK(dm_array_like(s, v->r, 0, &v->x));
    for (int i = 0; i < 3; i++) {
        DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, everywhere ? &all : &one, scalars[i]));
        DM_CHECK(dm_fill(s, *scalars[i], 1));
    }
    DM_CHECK(dm_fill_identity(s, v->a, 2));
    DM_CHECK(dm_fill(s, v->x, 0));
    DM_CHECK(dm_fill(s, v->q, 0));
    DM_CHECK(dm_fill(s, v->r, 1));
    DM_CHECK(dm_fill(s, v->p, 1));
}

/* An iteration, looked at every 10; its product alone; its vector kernels alone. In turn, as the machine's
 * speed drifts. */
static void conjugate(bench *b, bool everywhere, int turns, int64_t iterations)
{
    static const int what[WAYS] = {PRODUCT | VECTORS, PRODUCT, VECTORS, PRODUCT | VECTORS};
    static turn t[MOST_TURNS];
    dm_session *s = b->s;
    solver v;
    dm_program program[WAYS];
    DM_CHECK(dm_scope_begin(s));
    make_solver(s, b->side, everywhere, &v);
    b->times = iterations;
    b->value = v.rr;
    for (int i = 0; i < WAYS; i++) {
        program[i] = record(s, &v, what[i]);
    }
    for (int n = -1; n < turns; n++) {
        for (int i = 0; i < WAYS; i++) {
            b->program = program[i];
            b->every = i == WHOLE ? 10 : 0;
            double begin = now_ms(), processor = processor_ms();
            loop(b);
            DM_CHECK(dm_sync(s));
            if (n >= 0) {
                t[n].ms[i] = (now_ms() - begin) / (double)b->times;
                t[n].processor[i] = (processor_ms() - processor) / (double)b->times;
            }
        }
    }
    report(b, everywhere, t, turns);
    for (int i = 0; i < WAYS; i++) {
        DM_CHECK(dm_program_destroy(s, program[i]));
    }
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
    const bool alone = argc > 2;
    const int turns = alone ? atoi(argv[2]) : RUNS;
    const int64_t iterations = argc > 3 ? strtoll(argv[3], NULL, 10) : 50;
    if (turns < 1 || turns > MOST_TURNS || iterations < 1) {
        fprintf(stderr, "bench_loops: 1 to %d turns, 1 iteration or more\n", MOST_TURNS);
        return 2;
    }
    DM_CHECK(dm_init(NULL, &b.s));
    printf("%d workers\n", dm_workers(b.s));
    if (!alone) {
        small_loops(&b);
    }
    conjugate(&b, true, turns, iterations);
    conjugate(&b, false, turns, iterations);
    if (!alone) {
        parts(&b);
        groups(&b);
    }
    DM_CHECK(dm_finalize(b.s, NULL));
    return 0;
}
