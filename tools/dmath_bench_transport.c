/* dmath bench transport: latency and bandwidth between workers 0 and 1, and of all workers at once; by one
 * transport, or by several, one after another. */
#include "dmath_bench_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 4, KEY_TRANSPORTS = 256 };

static const struct argp_option options[] = {
    {"max", 'm', "BYTES", 0, "largest block (default 4M)", 0},
    {"large", 'L', NULL, 0, "up to 1 GiB", 0},
    {"transports", KEY_TRANSPORTS, "LIST", 0,
     "these transports one after another, a session each, side by side in one table: direct, cuda_mpi, staged, "
     "mpi; or "
     "all, which leaves out those that cannot be had here (under mpirun all ranks must run this program)",
     0},
    {"ring", 'R', "BYTES,...", OPTION_ARG_OPTIONAL,
     "also blocks of these sizes from every worker to the next, all at once (default 2M,256M), beside bare "
     "copies between "
     "the GPUs",
     0},
    {0},
};

static const char *const transports[] = {"direct", "cuda_mpi", "staged", "mpi"};

static bool transport_entry(const char *entry, int at, void *into)
{
    transport_run *transport = into;
    for (int i = 0; i < DMI_COUNT(transports) && at < TOOL_TRANSPORTS; i++) {
        if (strcmp(entry, transports[i]) == 0) {
            transport[at].name = transports[i];
            return true;
        }
    }
    return false;
}

static bool parse_tiers(const char *arg, transport_bench *b)
{
    b->every = strcmp(arg, "all") == 0;
    if (!b->every) {
        return tool_list_parse(arg, transport_entry, b->transport, &b->ntransport);
    }
    bool ranks = tool_ranks() > 1;
    b->ntransport = 0;
    for (int i = 0; i < DMI_COUNT(transports); i++) {
        if (ranks || strcmp(transports[i], "mpi") != 0) { /* threads send no messages */
            b->transport[b->ntransport++].name = transports[i];
        }
    }
    return true;
}

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
    case KEY_TRANSPORTS:
        return parse_tiers(arg, b) ? 0
                                   : tool_bench_misfit(state, "transports", arg,
                                                       "all, or a list of direct, cuda_mpi, staged, mpi");
    case 'R':
        if (!arg) {
            b->ring[0] = 2 << 20;
            b->ring[1] = 256 << 20;
            b->nring = 2;
            return 0;
        }
        return tool_list_parse(arg, tool_int_entry, b->ring, &b->nring)
                   ? 0
                   : tool_bench_misfit(state, "ring", arg, "a list of sizes in bytes");
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

/* One direction: overwrites the target and checks that it equals the source. */
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

/* Enough copies to hide the start and the wait, few enough to end soon. */
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
        b->now->latency[which] = tool_stats_of(times[0], repeats);
        b->now->rate[which] = tool_stats_of(times[1], repeats);
    }
    free(times[0]);
    free(times[1]);
    return status;
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    transport_bench *b = (transport_bench *)head;
    dm_status status = DM_OK;
    if (where->workers < 2) {
        return dmi_fail(DM_ERR_ARG, "a transport needs two workers, here is one");
    }
    b->now->where = *where;
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
    for (int i = 0; i < b->nring && status == DM_OK; i++) {
        status = tool_ring_measure(s, &head->measure, b->ring[i], &b->now->ring[i]);
    }
    if (status == DM_OK) {
        b->now->done = true;
        tool_transport_table(b, b->now);
    }
    return status;
}

/* A session for each transport. All of them are opened whatever becomes of one, as the other ranks count them.
 */
static int run_tiers(transport_bench *b)
{
    const tool_common common = b->head.common;
    int runs = tool_runs(&common), code = 0;
    dm_status status = tool_series_begin(&common, runs * b->ntransport);
    if (status != DM_OK) {
        tool_complain(status);
        return TOOL_FAILED;
    }
    for (int run_number = 0; run_number < runs; run_number++) {
        for (int k = 0; k < b->ntransport; k++) {
            dm_session *s = NULL;
            tool_common one = common;
            b->now = &b->transport[k];
            b->now->done = false;
            b->head.table.last_head[0] = 0;
            size_t n = strlen(one.options);
            snprintf(one.options + n, sizeof one.options - n, "%stransport=%s", n ? "," : "", b->now->name);
            status = tool_open(&one, run_number, &s);
            if (status == DM_ERR_TRANSPORT && b->every) {
                fprintf(stderr, "%s: not here: %s\n", b->now->name, dm_error_message());
                continue;
            }
            if (status == DM_OK) {
                status = tool_where_of(s, &b->now->where);
            }
            if (status == DM_OK) {
                b->head.table.where = &b->now->where;
                status = run(s, &b->now->where, &b->head);
            }
            int closed = tool_close(s, status);
            code = DMI_MAX(code, closed);
        }
        bool any = false;
        for (int k = 0; k < b->ntransport; k++) {
            any = any || b->transport[k].done;
        }
        if (any && !b->head.table.json) {
            tool_transport_compare(b);
        }
    }
    tool_series_end();
    return code;
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
    if (b.ntransport > 0) {
        return run_tiers(&b);
    }
    b.now = &b.transport[0];
    return tool_bench_runs(&b.head, run);
}
