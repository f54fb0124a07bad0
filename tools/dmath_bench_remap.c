/* dmath bench remap: from rows to columns, against memcpy of the same bytes. */
#include "dmath_bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct remap_bench {
    tool_bench_head head;
    int64_t size[TOOL_LIST];
    int nsize;
    dm_dtype dtype;
} remap_bench;

static const struct argp_option options[] = {
    {"sizes", 's', "LIST", 0, "rows and columns of the matrix (default 512,1024,2048)", 0},
    {"dtype", 'd', "TYPE", 0, "element type (default f32)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    remap_bench *b = state->input;
    switch (key) {
    case 's':
        return tool_list_parse(arg, tool_int_entry, b->size, &b->nsize)
                   ? 0
                   : tool_bench_misfit(state, "sizes", arg, "a list of numbers");
    case 'd':
        return dmi_dtype_parse(arg, &b->dtype) ? 0 : tool_bench_misfit(state, "dtype", arg, "an element type");
    default:
        return tool_bench_key(key, arg, state);
    }
}

static const struct argp argp = {options,
                                 parse,
                                 NULL,
                                 "A square matrix goes from rows to columns. The result is compared with one "
                                 "filled in place, then the time is "
                                 "measured in turns with memcpy of the same bytes, by one thread and by as "
                                 "many as there are workers. Rates count "
                                 "each byte of the matrix once.",
                                 tool_bench_children,
                                 NULL,
                                 NULL};

/* --- memcpy */

typedef struct copier {
    pthread_t thread;
    pthread_barrier_t *gate;
    char *to;
    const char *from;
    size_t bytes;
} copier;

static void *copy_part(void *arg)
{
    copier *c = arg;
    pthread_barrier_wait(c->gate);
    memcpy(c->to, c->from, c->bytes);
    pthread_barrier_wait(c->gate);
    return NULL;
}

/* Seconds from the moment all threads are there until all are done. */
static dm_status time_memcpy(char *to, const char *from, int64_t bytes, int threads, double *seconds)
{
    pthread_barrier_t gate;
    copier *c = calloc((size_t)threads, sizeof *c);
    if (!c || pthread_barrier_init(&gate, NULL, (unsigned)threads) != 0) {
        free(c);
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d threads", threads);
    }
    for (int i = 0; i < threads; i++) { /* the first part is this thread's */
        int64_t begin = bytes / threads * i, end = i == threads - 1 ? bytes : bytes / threads * (i + 1);
        c[i] = (copier){.gate = &gate, .to = to + begin, .from = from + begin, .bytes = (size_t)(end - begin)};
        if (i > 0 && pthread_create(&c[i].thread, NULL, copy_part, &c[i]) != 0) {
            abort(); /* the others wait for it for ever */
        }
    }
    pthread_barrier_wait(&gate);
    int64_t start = dmi_now_ns();
    memcpy(c[0].to, c[0].from, c[0].bytes);
    pthread_barrier_wait(&gate);
    *seconds = tool_seconds_since(start);
    for (int i = 1; i < threads; i++) {
        pthread_join(c[i].thread, NULL);
    }
    pthread_barrier_destroy(&gate);
    free(c);
    return DM_OK;
}

/* --- one size */

typedef struct remap_case {
    dm_array rows, cols, wanted;
    char *host[2];
    int64_t bytes;
    double *times[3]; /* dmath, memcpy by one thread, by all */
} remap_case;

static dm_status time_remap(dm_session *s, const remap_case *c, double *seconds)
{
    int64_t begin = dmi_now_ns();
    dm_status status = dm_copy(s, c->rows, c->cols);
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    *seconds = tool_seconds_since(begin);
    return status;
}

static dm_status begin_case(dm_session *s, remap_bench *b, int64_t n, remap_case *c)
{
    const int64_t shape[2] = {n, n};
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    bool same = false;
    double seconds;
    dm_status status = dm_array_create(s, b->dtype, 2, shape, &rows, &c->rows);
    if (status != DM_OK || (status = dm_array_create(s, b->dtype, 2, shape, &cols, &c->cols)) != DM_OK ||
        (status = dm_array_create(s, b->dtype, 2, shape, &cols, &c->wanted)) != DM_OK ||
        (status = dm_fill_uniform(s, c->rows, 0, 100, 7)) != DM_OK ||
        (status = dm_fill_uniform(s, c->wanted, 0, 100, 7)) != DM_OK ||
        (status = dm_fill(s, c->cols, 0)) != DM_OK || (status = time_remap(s, c, &seconds)) != DM_OK ||
        (status = tool_same_contents(s, c->cols, c->wanted, &same)) != DM_OK) {
        return status;
    }
    if (!same) {
        return dmi_fail(DM_ERR_INTERNAL, "the matrix in columns is not the one that was in rows");
    }
    c->bytes = n * n * dm_dtype_bytes(b->dtype);
    bool there = true;
    for (int i = 0; i < 3; i++) {
        c->times[i] = calloc((size_t)b->head.measure.repeats, sizeof(double));
        there = there && c->times[i];
    }
    for (int i = 0; i < 2; i++) {
        c->host[i] = malloc((size_t)c->bytes);
        there = there && c->host[i];
    }
    if (!there) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %lld bytes", (long long)c->bytes);
    }
    for (int i = 0; i < 2; i++) {
        memset(c->host[i], i + 1, (size_t)c->bytes);
    }
    return DM_OK;
}

static dm_status measure(dm_session *s, remap_bench *b, int64_t n, remap_case *c)
{
    dm_status status = DM_OK;
    int workers = dm_workers(s);
    for (int64_t i = -b->head.measure.warmup; i < b->head.measure.repeats && status == DM_OK; i++) {
        double t[3] = {0};
        status = time_remap(s, c, &t[0]);
        for (int j = 1; j < 3 && status == DM_OK; j++) {
            status = time_memcpy(c->host[0], c->host[1], c->bytes, j == 1 ? 1 : workers, &t[j]);
        }
        for (int j = 0; j < 3 && i >= 0; j++) {
            c->times[j][i] = t[j];
        }
    }
    if (status != DM_OK) {
        return status;
    }
    tool_stats stats[3];
    for (int j = 0; j < 3; j++) {
        stats[j] = tool_stats_of(c->times[j], b->head.measure.repeats);
    }
    tool_table *t = &b->head.table;
    double gigabytes = (double)c->bytes * 1e-9;
    tool_row_begin(t);
    tool_row_int(t, "n", 7, n);
    tool_row_text(t, "dtype", 5, dm_dtype_name(b->dtype));
    tool_row_int(t, "bytes", 12, c->bytes);
    tool_row_stats(t, "ms", 9, 3, stats[0], 1e3);
    tool_row_real(t, "gbps", 8, 3, gigabytes / stats[0].median);
    tool_row_real(t, "memcpy_1_gbps", 13, 3, gigabytes / stats[1].median);
    tool_row_real(t, "memcpy_all_gbps", 15, 3, gigabytes / stats[2].median);
    tool_row_real(t, "ratio", 7, 3, stats[2].median / stats[0].median);
    tool_row_end(t);
    return DM_OK;
}

static dm_status end_case(dm_session *s, remap_case *c, dm_status status)
{
    const dm_array all[] = {c->rows, c->cols, c->wanted};
    for (int i = 0; i < 3; i++) {
        free(c->times[i]);
    }
    free(c->host[0]);
    free(c->host[1]);
    return tool_free_arrays(s, all, 3, status);
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    (void)where;
    remap_bench *b = (remap_bench *)head;
    dm_status status = DM_OK;
    tool_table_intro(&head->table);
    for (int i = 0; i < b->nsize && status == DM_OK; i++) {
        remap_case c = {.rows = DM_NO_ARRAY};
        status = begin_case(s, b, b->size[i], &c);
        if (status == DM_OK) {
            status = measure(s, b, b->size[i], &c);
        }
        status = end_case(s, &c, status);
    }
    return status;
}

int tool_bench_remap(int argc, char **argv)
{
    remap_bench b = {
        .head.measure = {.repeats = 10, .warmup = 2}, .size = {512, 1024, 2048}, .nsize = 3, .dtype = DM_F32};
    if (!tool_bench_options(&argp, argc, argv, "bench remap", &b.head)) {
        return TOOL_USAGE;
    }
    return tool_bench_runs(&b.head, run);
}
