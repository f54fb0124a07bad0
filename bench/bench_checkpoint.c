/* Checkpoints beside a loop, and beside plain writing of as many bytes by threads to the same folder in the
 * same run.
 *
 *     bench_checkpoint FOLDER [MiB for each worker (8192)] [threads that write plainly (the number of cores)]
 *
 * in process (DMATH_WORKERS; one worker for each GPU) or under mpirun, with workers of one host: the plain
 * threads are those of rank 0's process. Takes turns: steps of the loop alone; a checkpoint with an event while
 * the loop goes on; plain writing; a checkpoint that blocks; loading. All that is written is brought to the
 * disk (fsync) within the time that is given; what is read may come from memory. Needs twice the arrays'
 * memory, and disk for three times as much. Prints the median, the least and the most of the runs. */
#include "bench_time.h"
#include <dmath/check.h>
#include <dmath/dmath.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RUNS = 3,
    ARRAYS = 4,
    STEPS = 20,
    SIDE = 1024,
    MOST_THREADS = 256,
    PIECE = 2 << 20,
    MOST_STEPS = 1 << 20
};

typedef struct bench {
    dm_session *s;
    const char *folder;
    char series[512];
    int64_t mib; /* for each worker */
    double bytes;
    int threads;
    dm_array state[ARRAYS], a, b, c;
    dm_checkpoint_item item[ARRAYS];
    double step_ms; /* of the loop alone */
} bench;

typedef struct numbers {
    const char *name, *unit;
    double value[RUNS];
} numbers;

static void print(numbers *n)
{
    qsort(n->value, RUNS, sizeof *n->value, by_value);
    printf("%-52s %10.3f  (%.3f to %.3f) %s\n", n->name, n->value[RUNS / 2], n->value[0], n->value[RUNS - 1],
           n->unit);
}

/* A product, and each array of the state changes, as in training. */
static double step_ms(bench *b)
{
    double begin = now_ms();
    DM_CHECK(dm_matmul(b->s, b->a, b->b, b->c));
    for (int i = 0; i < ARRAYS; i++) {
        DM_CHECK(dm_scale(b->s, 1, b->state[i], b->state[i]));
    }
    DM_CHECK(dm_sync(b->s));
    return now_ms() - begin;
}

static void steps_alone(bench *b)
{
    double ms[STEPS];
    for (int i = 0; i < STEPS; i++) {
        ms[i] = step_ms(b);
    }
    qsort(ms, STEPS, sizeof *ms, by_value);
    b->step_ms = ms[STEPS / 2];
}

static double rate(const bench *b, double ms)
{
    return b->bytes / ms / 1e6;
}

/* The loop goes on while the checkpoint is written. */
static void beside_the_loop(bench *b, double *call_ms, double *stall_ms, double *lost_ms, double *gbps)
{
    const dm_checkpoint_options options = {.size = sizeof options, .keep = 1};
    double begin = now_ms(), most = 0, sum = 0;
    int done = 0, steps = 0;
    dm_event event;
    DM_CHECK(dm_checkpoint_save(b->s, b->series, ARRAYS, b->item, &options, &event));
    *call_ms = now_ms() - begin;
    while (!done && steps < MOST_STEPS) {
        double ms = step_ms(b);
        most = ms > most ? ms : most;
        sum += ms;
        steps++;
        DM_CHECK(dm_event_done(b->s, event, &done));
    }
    DM_CHECK(dm_event_wait(b->s, event, -1));
    *gbps = rate(b, now_ms() - begin);
    *stall_ms = *call_ms + most - b->step_ms;
    *lost_ms = *call_ms + sum - steps * b->step_ms;
}

static double blocking_gbps(bench *b)
{
    const dm_checkpoint_options options = {.size = sizeof options, .keep = 1};
    double begin = now_ms();
    DM_CHECK(dm_checkpoint_save(b->s, b->series, ARRAYS, b->item, &options, NULL));
    return rate(b, now_ms() - begin);
}

static double loading_gbps(bench *b)
{
    double begin = now_ms();
    DM_CHECK(dm_checkpoint_load(b->s, b->series, ARRAYS, b->item));
    return rate(b, now_ms() - begin);
}

typedef struct writer {
    int file, failed;
    int64_t first, bytes;
    const char *piece;
} writer;

static void *write_plainly(void *context)
{
    writer *w = context;
    for (int64_t at = 0; at < w->bytes && !w->failed; at += PIECE) {
        int64_t n = w->bytes - at < PIECE ? w->bytes - at : PIECE;
        w->failed = pwrite(w->file, w->piece, (size_t)n, (off_t)(w->first + at)) != n;
    }
    w->failed = w->failed || fsync(w->file) != 0;
    return NULL;
}

static double plain_gbps(const bench *b)
{
    char path[600];
    pthread_t thread[MOST_THREADS];
    writer w[MOST_THREADS];
    char *piece = malloc(PIECE);
    snprintf(path, sizeof path, "%s/plain", b->folder);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600), failed = !piece || file < 0;
    for (int i = 0; i < PIECE && piece; i++) {
        piece[i] = (char)(i * 7 + i / 251);
    }
    double begin = now_ms();
    int64_t share = ((int64_t)b->bytes / b->threads + PIECE - 1) / PIECE * PIECE;
    int started = 0;
    for (; started < b->threads && !failed; started++) {
        int64_t first = share * started, left = (int64_t)b->bytes - first;
        w[started] = (writer){file, 0, first, left < 0 ? 0 : left < share ? left : share, piece};
        failed = pthread_create(&thread[started], NULL, write_plainly, &w[started]) != 0;
        started -= failed;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        failed = failed || w[i].failed;
    }
    double ms = now_ms() - begin;
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    free(piece);
    if (failed) {
        fprintf(stderr, "bench_checkpoint: %s cannot be written\n", path);
        exit(1);
    }
    return rate(b, ms);
}

static int remove_one(const char *path, const struct stat *is, int type, struct FTW *at)
{
    (void)is;
    (void)type;
    (void)at;
    return remove(path);
}

static void begin(bench *b)
{
    static const char *const names[ARRAYS] = {"weights", "history", "mean", "variance"};
    int workers = dm_workers(b->s);
    int64_t rows = (b->mib << 20) * workers / ARRAYS / 4 / SIDE;
    b->bytes = (double)rows * SIDE * 4 * ARRAYS;
    for (int i = 0; i < ARRAYS; i++) {
        DM_CHECK(dm_matrix(b->s, DM_F32, rows, SIDE, &b->state[i]));
        DM_CHECK(dm_fill_uniform(b->s, b->state[i], 0, 1, (uint64_t)i));
        b->item[i] = (dm_checkpoint_item){.name = names[i], .array = b->state[i]};
    }
    DM_CHECK(dm_matrix(b->s, DM_F32, SIDE, SIDE, &b->a));
    DM_CHECK(dm_matrix(b->s, DM_F32, SIDE, SIDE, &b->b));
    DM_CHECK(dm_matrix(b->s, DM_F32, SIDE, SIDE, &b->c));
    DM_CHECK(dm_fill(b->s, b->a, 1));
    DM_CHECK(dm_fill(b->s, b->b, 1));
    snprintf(b->series, sizeof b->series, "%s/series", b->folder);
    printf("%d workers, %.3f GB in %d arrays, %d plain threads, %s\n", workers, b->bytes / 1e9, ARRAYS,
           b->threads, b->folder);
}

int main(int argc, char **argv)
{
    bench b = {.folder = argc > 1 ? argv[1] : NULL, .mib = argc > 2 ? atoll(argv[2]) : 8192};
    b.threads = argc > 3 ? atoi(argv[3]) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct stat is;
    if (!b.folder || stat(b.folder, &is) != 0 || !S_ISDIR(is.st_mode) || b.mib < 1 || b.threads < 1 ||
        b.threads > MOST_THREADS) {
        fprintf(stderr, "usage: bench_checkpoint FOLDER [MiB for each worker] [threads, at most %d]\n",
                MOST_THREADS);
        return 2;
    }
    numbers n[] = {{"step of the loop alone", "ms", {0}},
                   {"checkpoint beside the loop: the call", "ms", {0}},
                   {"  stall: the call and the longest step, less a step", "ms", {0}},
                   {"  the loop is later by", "ms", {0}},
                   {"  written and on the disk", "GB/s", {0}},
                   {"plain writing by threads, to the disk", "GB/s", {0}},
                   {"checkpoint that blocks", "GB/s", {0}},
                   {"loading it", "GB/s", {0}}};
    DM_CHECK(dm_init(NULL, &b.s));
    begin(&b);
    (void)blocking_gbps(&b); /* warm: staging buffers, code, and the folder */
    (void)step_ms(&b);
    for (int i = 0; i < RUNS; i++) {
        steps_alone(&b);
        n[0].value[i] = b.step_ms;
        beside_the_loop(&b, &n[1].value[i], &n[2].value[i], &n[3].value[i], &n[4].value[i]);
        n[5].value[i] = plain_gbps(&b);
        n[6].value[i] = blocking_gbps(&b);
        n[7].value[i] = loading_gbps(&b);
    }
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        print(&n[i]);
    }
    DM_CHECK(dm_finalize(b.s, &(int64_t){0}));
    (void)nftw(b.series, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
