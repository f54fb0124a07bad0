/* dmath bench dispatch: the costs of a command and of waiting. */
#include "dmath_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FEW = 64 };

typedef struct dispatch_bench {
    tool_bench_head head;
    int64_t count, chain;
    int64_t edge; /* each worker has so many rows and columns of the chain's arrays; 0: 64 numbers in all */
    dm_dtype dtype;
    double idle_s;
} dispatch_bench;

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "empty commands in a row (default 1000000)", 0},
    {"chain", 'c', "N", 0, "dependent additions in a row (default 100)", 0},
    {"size", 's', "N", 0, "the additions are on N x N numbers a worker (default: on 64 in all)", 0},
    {"dtype", 'd', "NAME", 0, "of these numbers: f64 or f32 (default f64)", 0},
    {"idle", 'i', "SECONDS", 0,
     "how long the session idles, and then is watched idling (default 1; 0: not at all)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    dispatch_bench *b = state->input;
    bool fits = true;
    const char *name = key == 'n'   ? "count"
                       : key == 'c' ? "chain"
                       : key == 's' ? "size"
                       : key == 'd' ? "dtype"
                                    : "idle";
    switch (key) {
    case 'n':
    case 'c':
        fits = tool_int_parse(arg, 1, INT64_C(1) << 40, key == 'n' ? &b->count : &b->chain);
        break;
    case 's':
        fits = tool_int_parse(arg, 1, 1 << 20, &b->edge);
        break;
    case 'd':
        fits = dmi_dtype_parse(arg, &b->dtype) && (b->dtype == DM_F32 || b->dtype == DM_F64);
        break;
    case 'i':
        fits = tool_double_parse(arg, &b->idle_s) && b->idle_s >= 0 && b->idle_s <= 3600;
        break;
    default:
        return tool_bench_key(key, arg, state);
    }
    return fits ? 0
                : tool_bench_misfit(state, name, arg, key == 'd' ? "f64 or f32" : "a number that fits there");
}

static const struct argp argp = {
    options,
    parse,
    NULL,
    "The cost of an empty command when many are given in a row and done; the time "
    "of one that is waited for; the time "
    "of an addition in a chain of them, on a small array or a large one, whose result is checked; "
    "and the processor time of the "
    "process while the session idles (under mpirun: of the master).",
    tool_bench_children,
    NULL,
    NULL};

static dm_status drain(dm_session *s, int64_t count, double *seconds)
{
    dm_status status = dm_sync(s);
    int64_t begin = dmi_now_ns();
    for (int64_t i = 0; i < count && status == DM_OK; i++) {
        status = dm_noop(s);
    }
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    *seconds = tool_seconds_since(begin) / (double)count;
    return status;
}

static dm_status add_chain(dm_session *s, const dm_array *x, int64_t count, double *seconds)
{
    dm_status status = dm_sync(s);
    int64_t begin = dmi_now_ns();
    for (int64_t i = 0; i < count && status == DM_OK; i++) {
        status = dm_add(s, 1, x[0], 1, x[1], x[0]);
    }
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    *seconds = tool_seconds_since(begin) / (double)count;
    return status;
}

static dm_status make_chain(dm_session *s, const dispatch_bench *b, dm_array *x)
{
    const int64_t small[1] = {FEW}, large[2] = {b->edge * dm_workers(s), b->edge};
    dm_layout rows = dm_layout_rows(s);
    dm_status status = DM_OK;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = b->edge > 0 ? dm_array_create(s, b->dtype, 2, large, &rows, &x[i])
                             : dm_array_create(s, b->dtype, 1, small, NULL, &x[i]);
    }
    return status;
}

/* Some numbers of every worker: are they `wanted`? */
static dm_status check_some(dm_session *s, const dispatch_bench *b, dm_array x, double wanted)
{
    union {
        double f64[FEW];
        float f32[FEW];
    } got;
    dm_status status = DM_OK;
    int64_t most = b->edge > 0 ? DMI_MIN(b->edge, FEW) : FEW;
    for (int w = 0; w < (b->edge > 0 ? dm_workers(s) : 1) && status == DM_OK; w++) {
        const int64_t lo[2] = {w * b->edge, 0}, extent[2] = {1, most};
        status =
            b->edge > 0 ? dm_array_read(s, x, lo, extent, &got, 0) : dm_array_read(s, x, NULL, NULL, &got, 0);
        for (int i = 0; i < most && status == DM_OK; i++) {
            double value = b->dtype == DM_F32 ? (double)got.f32[i] : got.f64[i];
            if (value != wanted) {
                status = dmi_fail(DM_ERR_INTERNAL, "after %g additions of 1 an element is %g", wanted, value);
            }
        }
    }
    return status;
}

/* x = 0, then `count` times x = x + 1. */
static dm_status check_chain(dm_session *s, const dispatch_bench *b, const dm_array *x)
{
    double seconds;
    dm_status status = dm_fill(s, x[0], 0);
    if (status == DM_OK) {
        status = dm_fill(s, x[1], 1);
    }
    if (status == DM_OK) {
        status = add_chain(s, x, b->chain, &seconds);
    }
    return status == DM_OK ? check_some(s, b, x[0], (double)b->chain) : status;
}

static void row(dispatch_bench *b, const char *what, int64_t count, tool_stats stats)
{
    tool_row_begin(&b->head.table);
    tool_row_text(&b->head.table, "what", 41, what);
    tool_row_int(&b->head.table, "count", 9, count);
    tool_row_stats(&b->head.table, "us", 10, 3, stats, 1e6);
    tool_row_end(&b->head.table);
}

enum { DRAIN, ROUND_TRIP, CHAIN, KINDS };

static dm_status measure(dm_session *s, dispatch_bench *b, int kind, const dm_array *x)
{
    static const char *const names[] = {"empty command, of many", "empty command and wait",
                                        "addition in a chain"};
    /* One that is waited for is measured singly, so it takes more of them. */
    int64_t repeats = kind == ROUND_TRIP ? DMI_MAX(b->head.measure.repeats, DMI_MIN(b->count, 1000))
                                         : b->head.measure.repeats;
    int64_t count = kind == DRAIN ? b->count : kind == CHAIN ? b->chain : 1;
    double *times = calloc((size_t)repeats, sizeof *times);
    dm_status status = times ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the measurements");
    for (int64_t i = -b->head.measure.warmup; i < repeats && status == DM_OK; i++) {
        double seconds = 0;
        status = kind == CHAIN ? add_chain(s, x, count, &seconds) : drain(s, count, &seconds);
        if (i >= 0) {
            times[i] = seconds;
        }
    }
    if (status == DM_OK) {
        char name[64], numbers[40] = "";
        if (b->edge > 0 && kind == CHAIN) {
            snprintf(numbers, sizeof numbers, ", %lldx%lld %s a worker", (long long)b->edge, (long long)b->edge,
                     dm_dtype_name(b->dtype));
        }
        snprintf(name, sizeof name, "%s%s", names[kind], numbers);
        row(b, name, count, tool_stats_of(times, repeats));
    }
    free(times);
    return status;
}

static double processor_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void idle(dispatch_bench *b)
{
    usleep((useconds_t)(b->idle_s * 1e6));
    double before = processor_seconds();
    int64_t begin = dmi_now_ns();
    usleep((useconds_t)(b->idle_s * 1e6));
    double seconds = tool_seconds_since(begin), used = processor_seconds() - before;
    tool_row_begin(&b->head.table);
    tool_row_text(&b->head.table, "what", 41, "idle");
    tool_row_real(&b->head.table, "idle_s", 9, 3, seconds);
    tool_row_real(&b->head.table, "processor_percent", 10, 3, 100 * used / seconds);
    tool_row_end(&b->head.table);
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    (void)where;
    dispatch_bench *b = (dispatch_bench *)head;
    dm_array x[2] = {DM_NO_ARRAY, DM_NO_ARRAY};
    head->table.last_head[0] = 0;
    tool_table_intro(&head->table);
    dm_status status = make_chain(s, b, x);
    if (status == DM_OK) {
        status = check_chain(s, b, x);
    }
    for (int kind = 0; kind < KINDS && status == DM_OK; kind++) {
        status = measure(s, b, kind, x);
    }
    if (status == DM_OK && b->idle_s > 0) {
        idle(b);
    }
    return tool_free_arrays(s, x, 2, status);
}

int tool_bench_dispatch(int argc, char **argv)
{
    dispatch_bench b = {.head.measure = {.repeats = 5, .warmup = 1},
                        .count = 1000000,
                        .chain = 100,
                        .dtype = DM_F64,
                        .idle_s = 1};
    dmi_config config;
    if (!tool_bench_options(&argp, argc, argv, "bench dispatch", &b.head)) {
        return TOOL_USAGE;
    }
    /* In one process: with one worker and with all, unless told otherwise. */
    if (b.head.common.nworkers == 0 && tool_ranks() <= 1 &&
        dmi_config_load(&config, b.head.common.options) == DM_OK) {
        int all = dmi_thread_workers(&config);
        b.head.common.workers[b.head.common.nworkers++] = 1;
        if (all > 1) {
            b.head.common.workers[b.head.common.nworkers++] = all;
        }
    }
    return tool_bench_runs(&b.head, run);
}
