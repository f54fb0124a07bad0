/* An expression of seven operations beside what moves the same bytes, an addition of the same arrays and the
 * triad of STREAM (McCalpin) in plain threads, and a copy; the sum of a product beside the sum of one array of
 * the same bytes. All take turns. Medians, of the time that passes and of that of the processors, which others
 * who use the machine disturb less. bench_map [MiB an array] workers, and threads of the triad: DMATH_WORKERS
 */
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9 };
enum { MAP, TRIAD, ADDITION, COPY, SUM_OF_PRODUCT, SUM, CASES };
enum { THREADS = 64 };
static const struct {
    const char *name;
    int arrays; /* that are read or written */
} cases[CASES] = {[MAP] = {"map of 7 operations", 3},   [TRIAD] = {"triad of STREAM", 3},
                  [ADDITION] = {"addition", 3},         [COPY] = {"copy", 2},
                  [SUM_OF_PRODUCT] = {"sum(x * y)", 2}, [SUM] = {"sum of twice as many", 2}};

typedef struct arrays {
    dm_array x, y, out, twice, one; /* twice: as long as x and y together; one: a result */
} arrays;

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- the triad: each thread has the block that it has touched first */
typedef struct block {
    float *a, *b, *c;
    int64_t from, to;
    pthread_t thread;
} block;

static void *touch(void *block_of)
{
    const block *k = block_of;
    for (int64_t i = k->from; i < k->to; i++) {
        k->a[i] = 0;
        k->b[i] = 1;
        k->c[i] = 2;
    }
    return NULL;
}

static void *triad(void *block_of)
{
    const block *k = block_of;
    float *restrict a = k->a;
    const float *restrict b = k->b, *restrict c = k->c;
    for (int64_t i = k->from; i < k->to; i++) {
        a[i] = b[i] + 3.0f * c[i];
    }
    return NULL;
}

static void in_threads(int threads, block *blocks, void *(*work)(void *))
{
    for (int t = 0; t < threads; t++) {
        if (pthread_create(&blocks[t].thread, NULL, work, &blocks[t]) != 0) {
            fprintf(stderr, "bench_map: no thread\n");
            exit(1);
        }
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(blocks[t].thread, NULL);
    }
}

static int make_blocks(int threads, int64_t n, block *blocks)
{
    threads = threads < THREADS ? threads : THREADS;
    float *memory[3];
    for (int i = 0; i < 3; i++) {
        memory[i] = aligned_alloc(4096, (size_t)n * sizeof(float));
        if (!memory[i]) {
            fprintf(stderr, "bench_map: no memory\n");
            exit(1);
        }
    }
    for (int t = 0; t < threads; t++) {
        blocks[t] = (block){memory[0], memory[1], memory[2], n * t / threads, n * (t + 1) / threads, 0};
    }
    in_threads(threads, blocks, touch);
    return threads;
}

static void run(dm_session *s, int what, const arrays *a)
{
    dm_map_arg args[] = {DM_ARG("x", a->x), DM_ARG("y", a->y), DM_NUMBER("a", 2), DM_NUMBER("b", 3)};
    if (what == MAP) {
        DM_CHECK(dm_map(s, "where(x > 0, a * x + y * y, y - b * x)", 4, args, a->out));
    } else if (what == ADDITION) {
        DM_CHECK(dm_add(s, 1, a->x, 3, a->y, a->out));
    } else if (what == COPY) {
        DM_CHECK(dm_copy(s, a->x, a->out));
    } else if (what == SUM_OF_PRODUCT) {
        DM_CHECK(dm_map(s, "sum(x * y)", 2, args, a->one));
    } else {
        DM_CHECK(dm_sum(s, a->twice, NULL, 0, 1, 0, a->one));
    }
    DM_CHECK(dm_sync(s));
}

static arrays make(dm_session *s, int64_t n)
{
    arrays a;
    DM_CHECK(dm_vector(s, DM_F32, n, &a.x));
    DM_CHECK(dm_vector(s, DM_F32, n, &a.y));
    DM_CHECK(dm_vector(s, DM_F32, n, &a.out));
    DM_CHECK(dm_vector(s, DM_F32, 2 * n, &a.twice));
    DM_CHECK(dm_array_create(s, DM_F32, 0, NULL, NULL, &a.one));
    DM_CHECK(dm_fill_uniform(s, a.x, -1, 1, 1));
    DM_CHECK(dm_fill_uniform(s, a.y, -1, 1, 2));
    DM_CHECK(dm_fill(s, a.out, 0));
    DM_CHECK(dm_fill_uniform(s, a.twice, -1, 1, 3));
    DM_CHECK(dm_sync(s));
    return a;
}

int main(int argc, char **argv)
{
    int64_t mib = argc > 1 ? strtoll(argv[1], NULL, 10) : 512, n = mib * 262144;
    double ms[CASES][RUNS], cpu[CASES][RUNS];
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
    arrays a = make(s, n);
    block blocks[THREADS];
    int threads = make_blocks(dm_workers(s), n, blocks);
    for (int i = 0; i < RUNS; i++) {
        for (int k = MAP; k < CASES; k++) {
            double begin = now_ms(CLOCK_MONOTONIC), used = now_ms(CLOCK_PROCESS_CPUTIME_ID);
            if (k == TRIAD) {
                in_threads(threads, blocks, triad);
            } else {
                run(s, k, &a);
            }
            ms[k][i] = now_ms(CLOCK_MONOTONIC) - begin;
            cpu[k][i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - used;
        }
    }
    for (int k = MAP; k < CASES; k++) {
        qsort(ms[k], RUNS, sizeof ms[k][0], by_size);
        qsort(cpu[k], RUNS, sizeof cpu[k][0], by_size);
    }
    for (int k = MAP; k < CASES; k++) {
        double bytes = 4.0 * cases[k].arrays * (double)n;
        printf("%-22s %8.2f ms  %6.2f GB/s", cases[k].name, ms[k][RUNS / 2], bytes / ms[k][RUNS / 2] * 1e-6);
        printf("  best %8.2f ms", ms[k][0]);
        if (cases[k].arrays == 3) { /* of the triad's rate */
            printf("  %5.2f of the triad, by processor time %5.2f", ms[TRIAD][RUNS / 2] / ms[k][RUNS / 2],
                   cpu[TRIAD][RUNS / 2] / cpu[k][RUNS / 2]);
        }
        printf("\n");
    }
    for (int i = 0; i < 3; i++) {
        free(i == 0 ? blocks[0].a : i == 1 ? blocks[0].b : blocks[0].c);
    }
    int64_t alive;
    DM_CHECK(dm_finalize(s, &alive));
    return 0;
}
