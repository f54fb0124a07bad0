/* Products of a large matrix by a vector, or by few columns, compared with what the machine can do. In turn with the product,
 * one thread per worker reads the same bytes, or calls BLAS for its share of the rows. Medians of ms.
 *
 *   bench_gemv DTYPE[:FORMS] ROUNDS M K [N]
 *
 * DTYPE: f64 or f32. N: columns of the thin operand, 1 without. FORMS, some of the letters nts, all without:
 *   n   c (M x N) = a (M x K) * b, all split by rows
 *   t   c (M x N) = a^T * b, a (K x M) split by rows
 *   s   as n, b and c columns 1 .. N of wider matrices
 * of_read: time to read over time of the product, median over the rounds. Run it alone, on CPUs. */
#include "bench_time.h"

#include <cblas.h>
#include <dmath/dmath.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 301, MOST_THREADS = 256, TIMES = 16, WIDER = 5 };

typedef struct crew crew;
typedef struct hand {
    crew *c;
    int number;
    pthread_t thread;
    char *a, *b, *out; /* its part of the large operand, the thin one, its result */
    volatile double sum;
} hand;

/* Threads that do what workers would, without dmath. */
struct crew {
    int threads;
    pthread_barrier_t gate;
    bool blas, stop, f64, trans;
    int64_t rows, m, n, k; /* rows of a of each hand */
    hand hand[MOST_THREADS];
};

static void check(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "bench_gemv: %s\n", dm_error_message());
        exit(1);
    }
}

static void *room(int64_t bytes)
{
    void *p = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096 + 4096));
    if (!p) {
        fprintf(stderr, "bench_gemv: no memory\n");
        exit(1);
    }
    memset(p, 0, (size_t)bytes);
    return p;
}

/* Reads all bytes, in four streams of the type's additions. */
static double read_all(const char *p, int64_t bytes)
{
    typedef double vec __attribute__((vector_size(64)));
    vec s[4] = {{0}};
    for (int64_t i = 0; i + 256 <= bytes; i += 256) {
        for (int j = 0; j < 4; j++) {
            vec v;
            memcpy(&v, p + i + 64 * j, sizeof v);
            s[j] += v;
        }
    }
    s[0] += s[1] + s[2] + s[3];
    return s[0][0] + s[0][7];
}

static void multiply_part(const crew *c, hand *h)
{
    CBLAS_TRANSPOSE t = c->trans ? CblasTrans : CblasNoTrans;
    int rows = (int)c->rows, cols = (int)(c->trans ? c->m : c->k), n = (int)c->n;
    int m = c->trans ? cols : rows, k = c->trans ? rows : cols;
    if (c->n == 1 && c->f64) {
        cblas_dgemv(CblasRowMajor, t, rows, cols, 1, (double *)h->a, cols, (double *)h->b, 1, 0,
                    (double *)h->out, 1);
    } else if (c->n == 1) {
        cblas_sgemv(CblasRowMajor, t, rows, cols, 1, (float *)h->a, cols, (float *)h->b, 1, 0, (float *)h->out,
                    1);
    } else if (c->f64) {
        cblas_dgemm(CblasRowMajor, t, CblasNoTrans, m, n, k, 1, (double *)h->a, cols, (double *)h->b, n, 0,
                    (double *)h->out, n);
    } else {
        cblas_sgemm(CblasRowMajor, t, CblasNoTrans, m, n, k, 1, (float *)h->a, cols, (float *)h->b, n, 0,
                    (float *)h->out, n);
    }
}

static void *hand_main(void *context)
{
    hand *h = context;
    crew *c = h->c;
    int64_t elem = c->f64 ? 8 : 4, bytes = c->rows * (c->trans ? c->m : c->k) * elem;
    h->a = room(bytes);
    h->b = room(c->k * c->n * elem);
    h->out = room(c->m * c->n * elem);
    for (;;) {
        pthread_barrier_wait(&c->gate);
        if (c->stop) {
            break;
        }
        for (int i = 0; i < TIMES; i++) {
            if (c->blas) {
                multiply_part(c, h);
            } else {
                h->sum = read_all(h->a, bytes);
            }
        }
        pthread_barrier_wait(&c->gate);
    }
    free(h->a);
    free(h->b);
    free(h->out);
    return NULL;
}

static void crew_start(crew *c)
{
    pthread_barrier_init(&c->gate, NULL, (unsigned)c->threads + 1);
    for (int i = 0; i < c->threads; i++) {
        c->hand[i] = (hand){.c = c, .number = i};
        if (pthread_create(&c->hand[i].thread, NULL, hand_main, &c->hand[i]) != 0) {
            fprintf(stderr, "bench_gemv: no thread\n");
            exit(1);
        }
    }
}

static void crew_stop(crew *c)
{
    c->stop = true;
    pthread_barrier_wait(&c->gate);
    for (int i = 0; i < c->threads; i++) {
        pthread_join(c->hand[i].thread, NULL);
    }
    pthread_barrier_destroy(&c->gate);
}

/* Until those who wait for work sleep, and do not spin beside what is measured next. */
static void settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static double crew_run(crew *c, bool blas)
{
    c->blas = blas;
    settle();
    double begin = now_ms();
    pthread_barrier_wait(&c->gate);
    pthread_barrier_wait(&c->gate);
    return (now_ms() - begin) / TIMES;
}

static dm_array matrix(dm_session *s, dm_dtype dtype, int64_t rows, int64_t cols, bool inside, uint64_t seed)
{
    dm_array a, view;
    check(dm_array_create(s, dtype, 2, (int64_t[]){rows, cols + (inside ? WIDER : 0)}, NULL, &a));
    check(dm_fill_uniform(s, a, -1, 1, seed));
    if (inside) {
        check(dm_array_view(s, a, (int64_t[]){0, 1}, (int64_t[]){rows, cols}, &view));
        check(dm_array_destroy(s, a));
        return view;
    }
    return a;
}

static double median(double *x, int count)
{
    qsort(x, (size_t)count, sizeof *x, by_value);
    return x[count / 2];
}

static void measure(dm_session *s, const char *name, char form, dm_dtype dtype, int rounds, int64_t m,
                    int64_t k, int64_t n)
{
    static double read[MOST_ROUNDS], blas[MOST_ROUNDS], ours[MOST_ROUNDS], of_read[MOST_ROUNDS],
        blas_of_read[MOST_ROUNDS];
    static crew c;
    bool trans = form == 't';
    int workers = dm_workers(s);
    c = (crew){.threads = workers, .f64 = dtype == DM_F64, .trans = trans, .m = m, .n = n, .k = k};
    c.rows = (trans ? k : m) / workers;
    dm_array a = matrix(s, dtype, trans ? k : m, trans ? m : k, false, 1);
    dm_array b = matrix(s, dtype, k, n, form == 's', 2), out = matrix(s, dtype, m, n, form == 's', 3);
    crew_start(&c);
    for (int r = -1; r < rounds; r++) { /* the first time does not count */
        double t[3];
        t[0] = crew_run(&c, false);
        settle();
        double begin = now_ms();
        for (int i = 0; i < TIMES; i++) {
            check(dm_gemm(s, trans ? DM_T : DM_N, DM_N, 1, a, b, 0, out));
        }
        check(dm_sync(s));
        t[1] = (now_ms() - begin) / TIMES;
        t[2] = crew_run(&c, true);
        if (r >= 0) {
            read[r] = t[0];
            ours[r] = t[1];
            blas[r] = t[2];
            of_read[r] = t[0] / t[1];
            blas_of_read[r] = t[0] / t[2];
        }
    }
    crew_stop(&c);
    double bytes = (double)m * (double)k * (c.f64 ? 8 : 4), ms = median(ours, rounds);
    printf(
        "{\"bench\":\"gemv\",\"dtype\":\"%s\",\"form\":\"%c\",\"m\":%lld,\"k\":%lld,\"n\":%lld,\"workers\":%d,"
        "\"ms\":%.4f,\"read_ms\":%.4f,\"blas_ms\":%.4f,\"of_read\":%.3f,\"blas_of_read\":%.3f,\"gb_s\":%.1f}\n",
        name, form, (long long)m, (long long)k, (long long)n, workers, ms, median(read, rounds),
        median(blas, rounds), median(of_read, rounds), median(blas_of_read, rounds), bytes * 1e-6 / ms);
    fflush(stdout);
    check(dm_array_destroy(s, a));
    check(dm_array_destroy(s, b));
    check(dm_array_destroy(s, out));
}

int main(int argc, char **argv)
{
    char *forms = argc > 1 ? strchr(argv[1], ':') : NULL;
    if (forms) {
        *forms++ = 0;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    bool f64 = argc > 1 && strcmp(argv[1], "f64") == 0, f32 = argc > 1 && strcmp(argv[1], "f32") == 0;
    if (argc < 5 || (!f64 && !f32) || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "bench_gemv DTYPE[:FORMS] ROUNDS M K [N]\n");
        return 2;
    }
    dm_session *s;
    check(dm_init(NULL, &s));
    if (dm_workers(s) <= MOST_THREADS) {
        for (const char *f = forms ? forms : "nts"; *f; f++) {
            measure(s, argv[1], *f, f64 ? DM_F64 : DM_F32, rounds, atoll(argv[3]), atoll(argv[4]),
                    argc > 5 ? atoll(argv[5]) : 1);
        }
    }
    check(dm_finalize(s, NULL));
    return 0;
}
