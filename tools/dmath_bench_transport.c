/* dmath bench transport: latency and bandwidth between workers 0 and 1. */
#include "dmath_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 40, PAIRS = 4 };

typedef struct transport_bench {
    tool_bench_head head;
    int64_t most;
    bool large;
    int64_t size[SIZES];
    int nsize;
    tool_stats latency[SIZES], rate[SIZES]; /* seconds a block */
} transport_bench;

static const struct argp_option options[] = {
    {"max", 'm', "BYTES", 0, "largest block (default 4M)", 0},
    {"large", 'L', NULL, 0, "up to 1 GiB", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    transport_bench *b = state->input;
    switch (key) {
    case 'm':
        return tool_int_parse(arg, 0, INT64_C(1) << 34, &b->most)
                   ? 0
                   : tool_bench_misfit(state, "max", arg, "a number of bytes up to 16G");
    case 'L':
        b->most = 1 << 30;
        return 0;
    default:
        return tool_bench_key(key, arg, state);
    }
}

static const struct argp argp = {options,
                                 parse,
                                 NULL,
                                 "Blocks between workers 0 and 1, by the session's transport. Latency: copies "
                                 "back and forth, each waiting for the "
                                 "one before. Bandwidth: copies in one direction. What arrives is checked "
                                 "first. A block of 0 bytes sends nothing: "
                                 "its line is the cost of the commands alone.",
                                 tool_bench_children,
                                 NULL,
                                 NULL};

/* Powers of four, and the sizes that the tables of the dMath paper have beside them. */
static void choose_sizes(transport_bench *b)
{
    static const int64_t paper[] = {0, 128, 512, 524288, 2097152};
    b->nsize = 0;
    int next = 0;
    for (int64_t bytes = 1; bytes <= INT64_C(1) << 34; bytes *= 4) {
        for (; next < DMI_COUNT(paper) && paper[next] < bytes; next++) {
            if (paper[next] <= b->most) {
                b->size[b->nsize++] = paper[next];
            }
        }
        if (bytes <= b->most) {
            b->size[b->nsize++] = bytes;
        }
    }
}

/* Blocks of one size on worker 0 and on worker 1. */
typedef struct blocks {
    dm_array at[2][PAIRS];
    int pairs;
} blocks;

static dm_status make_blocks(dm_session *s, int64_t bytes, blocks *k)
{
    const int64_t shape[2] = {bytes > 0, bytes};
    dm_status status = DM_OK;
    k->pairs = bytes <= (16 << 20) ? PAIRS : 1;
    for (int i = 0; i < 2 * k->pairs && status == DM_OK; i++) {
        dm_layout layout = dm_layout_single(i % 2);
        dm_array *a = &k->at[i % 2][i / 2];
        status = dm_array_create(s, DM_U8, 2, shape, &layout, a);
        if (status == DM_OK && i % 2 == 0) { /* the other side gets its contents in the check */
            status = dm_fill_uniform(s, *a, 0, 256, (uint64_t)i + 3);
        }
    }
    return status;
}

/* One direction: what is written over at the target must then be what the source holds. */
static dm_status check_one(dm_session *s, dm_array from, dm_array to, int target)
{
    bool same = false;
    dm_status status = dm_fill(s, to, 0);
    if (status == DM_OK) {
        status = dm_copy(s, from, to);
    }
    if (status == DM_OK) {
        status = tool_same_contents(s, from, to, &same);
    }
    if (status == DM_OK && !same) {
        status = dmi_fail(DM_ERR_INTERNAL, "what arrived at worker %d is not what worker %d has sent", target,
                          1 - target);
    }
    return status;
}

static dm_status check(dm_session *s, const blocks *k)
{
    dm_status status = DM_OK;
    for (int i = 0; i < 2 * k->pairs && status == DM_OK; i++) {
        int from = i % 2;
        status = check_one(s, k->at[from][i / 2], k->at[1 - from][i / 2], 1 - from);
    }
    return status;
}

/* `count` copies: forth and back in turn, or all forth. Seconds a copy. */
static dm_status time_copies(dm_session *s, const blocks *k, bool back, int64_t count, double *seconds)
{
    dm_status status = dm_sync(s);
    int64_t begin = dmi_now_ns();
    for (int64_t i = 0; i < count && status == DM_OK; i++) {
        int from = back ? (int)(i % 2) : 0, pair = back ? 0 : (int)(i % k->pairs);
        status = dm_copy(s, k->at[from][pair], k->at[1 - from][pair]);
    }
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    *seconds = tool_seconds_since(begin) / (double)count;
    return status;
}

/* So many copies that starting and waiting do not count, and so few that it ends soon. */
static int64_t copies_for(int64_t bytes)
{
    int64_t count = (64 << 20) / DMI_MAX(bytes, 1);
    return DMI_MIN(DMI_MAX(count, 4), 1000) / 2 * 2;
}

static dm_status measure(dm_session *s, transport_bench *b, int which, const blocks *k)
{
    int64_t repeats = b->head.measure.repeats, count = copies_for(b->size[which]);
    double *times[2] = {calloc((size_t)repeats, sizeof(double)), calloc((size_t)repeats, sizeof(double))};
    dm_status status = times[0] && times[1] ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the measurements");
    for (int64_t i = -b->head.measure.warmup; i < repeats && status == DM_OK; i++) {
        for (int one_way = 0; one_way < 2 && status == DM_OK; one_way++) {
            double seconds = 0;
            status = time_copies(s, k, !one_way, count, &seconds);
            if (i >= 0) {
                times[one_way][i] = seconds;
            }
        }
    }
    if (status == DM_OK) {
        b->latency[which] = tool_stats_of(times[0], repeats);
        b->rate[which] = tool_stats_of(times[1], repeats);
    }
    free(times[0]);
    free(times[1]);
    return status;
}

static void print_tables(transport_bench *b)
{
    tool_table *t = &b->head.table;
    for (int part = 0; part < (t->json ? 1 : 2); part++) {
        if (!t->json) {
            printf("%s\n", part ? "\nBandwidth, worker 0 to worker 1" : "\nLatency, one way");
        }
        for (int i = 0; i < b->nsize; i++) {
            double mb = (double)b->size[i] * 1e-6;
            const tool_stats *r = &b->rate[i];
            tool_row_begin(t);
            tool_row_int(t, "bytes", 11, b->size[i]);
            if (t->json || part == 0) {
                tool_row_stats(t, "us", 12, 2, b->latency[i], 1e6);
            }
            if (t->json || part == 1) { /* the longest time is the lowest rate */
                tool_row_stats(t, "mbps", 12, 1, (tool_stats){mb / r->max, mb / r->median, mb / r->min}, 1);
            }
            tool_row_end(t);
        }
    }
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    transport_bench *b = (transport_bench *)head;
    dm_status status = DM_OK;
    if (where->workers < 2) {
        return dmi_fail(DM_ERR_ARG, "a transport needs two workers, here is one");
    }
    tool_table_intro(&head->table);
    for (int i = 0; i < b->nsize && status == DM_OK; i++) {
        blocks k = {{{{0}}}};
        status = make_blocks(s, b->size[i], &k);
        if (status == DM_OK) {
            status = check(s, &k);
        }
        if (status == DM_OK) {
            status = measure(s, b, i, &k);
        }
        status = tool_free_arrays(s, k.at[0], PAIRS, status);
        status = tool_free_arrays(s, k.at[1], PAIRS, status);
    }
    if (status == DM_OK) {
        print_tables(b);
    }
    return status;
}

int tool_bench_transport(int argc, char **argv)
{
    transport_bench b = {.head.measure = {.repeats = 10, .warmup = 2}, .most = 4 << 20};
    if (!tool_bench_options(&argp, argc, argv, "bench transport", &b.head)) {
        return TOOL_USAGE;
    }
    choose_sizes(&b);
    if (b.head.common.nworkers == 0 && tool_ranks() <= 1 && dmi_host_cores() < 2) {
        b.head.common.workers[b.head.common.nworkers++] = 2;
    }
    return tool_bench_turns(&b.head, run);
}
