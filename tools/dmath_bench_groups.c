/* dmath bench groups: two pipelines, each a program on one half of the workers: alone, and side by side. */
#include "dmath_bench.h"

#include <stdlib.h>
#include <string.h>

enum { PIPELINES = 2 };

typedef struct groups_bench {
    tool_bench_head head;
    int64_t size, runs;
} groups_bench;

static const struct argp_option options[] = {
    {"size", 's', "N", 0, "rows and columns of the matrices (default 256)", 0},
    {"count", 'n', "N", 0, "runs of each pipeline, an even number (default 20)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    groups_bench *b = state->input;
    switch (key) {
    case 's':
        return tool_int_parse(arg, 1, INT32_MAX, &b->size)
                   ? 0
                   : tool_bench_misfit(state, "size", arg, "a number from 1 on");
    case 'n':
        return tool_int_parse(arg, 2, 1000000, &b->runs) && b->runs % 2 == 0
                   ? 0
                   : tool_bench_misfit(state, "count", arg, "an even number from 2 on");
    default:
        return tool_bench_key(key, arg, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    NULL,
    "Two pipelines, each a program on a group of half of the workers: a product with the "
    "identity, and a transpose into the operand. After an even number of runs that is what "
    "it was, which is checked. ratio: the time of both at once as a part of that of the "
    "longer one alone; 1 is the best. With -O trace=FILE the timeline shows it.",
    tool_bench_children,
    NULL,
    NULL};

typedef struct pipeline {
    dm_group group;
    dm_program program;
    dm_array x, y, z, was;
} pipeline;

static dm_status record(dm_session *s, pipeline *p)
{
    dm_status status = dm_program_begin(s);
    if (status == DM_OK) {
        dm_status calls = dm_matmul(s, p->x, p->y, p->z);
        calls = calls == DM_OK ? dm_transpose(s, p->z, p->x) : calls;
        status = dm_program_end(s, calls == DM_OK ? &p->program : NULL);
        status = calls == DM_OK ? status : calls;
    }
    return status;
}

static dm_status make_arrays(dm_session *s, int64_t n, uint64_t seed, pipeline *p)
{
    dm_array *const all[] = {&p->x, &p->y, &p->z, &p->was};
    dm_status status = DM_OK;
    for (int i = 0; i < DMI_COUNT(all) && status == DM_OK; i++) {
        status = dm_matrix(s, DM_F32, n, n, all[i]);
    }
    status = status == DM_OK ? dm_fill_uniform(s, p->x, 0, 1, seed) : status;
    status = status == DM_OK ? dm_copy(s, p->x, p->was) : status;
    return status == DM_OK ? dm_fill_identity(s, p->y, 1) : status;
}

/* Half of the workers: the first ones, or the others. */
static dm_status begin_pipeline(dm_session *s, int which, const groups_bench *b, pipeline *p)
{
    int workers = dm_workers(s), half = workers / PIPELINES, first = which * half;
    int count = which == 0 ? half : workers - half;
    int *worker = calloc((size_t)count, sizeof *worker);
    for (int i = 0; worker && i < count; i++) {
        worker[i] = first + i;
    }
    dm_status status =
        worker ? dm_group_create(s, worker, count, &p->group) : dmi_fail(DM_ERR_NOMEM, "no memory for a group");
    free(worker);
    status = status == DM_OK ? dm_group_begin(s, p->group) : status;
    if (status != DM_OK) {
        return status;
    }
    status = make_arrays(s, b->size, (uint64_t)which + 1, p);
    status = status == DM_OK ? record(s, p) : status;
    dm_status end = dm_group_end(s);
    return status == DM_OK ? end : status;
}

/* Runs of the pipelines first .. last-1, in turns. */
static dm_status time_pipelines(dm_session *s, const pipeline *p, int first, int last, int64_t runs,
                                double *seconds)
{
    dm_status status = dm_sync(s);
    int64_t begin = dmi_now_ns();
    for (int64_t i = 0; i < runs; i++) {
        for (int which = first; which < last && status == DM_OK; which++) {
            status = dm_program_run(s, p[which].program, 1, 0, NULL);
        }
    }
    status = status == DM_OK ? dm_sync(s) : status;
    *seconds = tool_seconds_since(begin);
    return status;
}

static dm_status measure(dm_session *s, groups_bench *b, const pipeline *p, double *times[PIPELINES + 1])
{
    dm_status status = DM_OK;
    for (int64_t i = -b->head.measure.warmup; i < b->head.measure.repeats && status == DM_OK; i++) {
        double t[PIPELINES + 1] = {0};
        for (int j = 0; j <= PIPELINES && status == DM_OK; j++) {
            bool both = j == PIPELINES;
            status = time_pipelines(s, p, both ? 0 : j, both ? PIPELINES : j + 1, b->runs, &t[j]);
        }
        for (int j = 0; j <= PIPELINES && i >= 0; j++) {
            times[j][i] = t[j];
        }
    }
    for (int j = 0; j < PIPELINES && status == DM_OK; j++) {
        bool same = false;
        status = tool_same_contents(s, p[j].x, p[j].was, &same);
        if (status == DM_OK && !same) {
            status =
                dmi_fail(DM_ERR_INTERNAL, "after an even number of runs pipeline %d has another operand", j);
        }
    }
    return status;
}

static void tell(groups_bench *b, double *times[PIPELINES + 1])
{
    tool_stats stats[PIPELINES + 1];
    for (int j = 0; j <= PIPELINES; j++) {
        stats[j] = tool_stats_of(times[j], b->head.measure.repeats);
    }
    tool_table *t = &b->head.table;
    tool_row_begin(t);
    tool_row_int(t, "n", 7, b->size);
    tool_row_int(t, "runs", 6, b->runs);
    tool_row_real(t, "first_ms", 10, 3, stats[0].median * 1e3);
    tool_row_real(t, "second_ms", 10, 3, stats[1].median * 1e3);
    tool_row_stats(t, "both_ms", 10, 3, stats[2], 1e3);
    tool_row_real(t, "ratio", 7, 3, stats[2].median / DMI_MAX(stats[0].median, stats[1].median));
    tool_row_end(t);
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    groups_bench *b = (groups_bench *)head;
    pipeline p[PIPELINES] = {0};
    double *times[PIPELINES + 1];
    bool there = true;
    if (where->workers < PIPELINES) {
        return dmi_fail(DM_ERR_ARG, "two groups need two workers or more");
    }
    for (int j = 0; j <= PIPELINES; j++) {
        times[j] = calloc((size_t)b->head.measure.repeats, sizeof(double));
        there = there && times[j];
    }
    tool_table_intro(&head->table);
    dm_status status = there ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the times");
    for (int j = 0; j < PIPELINES && status == DM_OK; j++) {
        status = begin_pipeline(s, j, b, &p[j]);
    }
    status = status == DM_OK ? measure(s, b, p, times) : status;
    if (status == DM_OK) {
        tell(b, times);
    }
    for (int j = 0; j < PIPELINES; j++) {
        const dm_array all[] = {p[j].x, p[j].y, p[j].z, p[j].was};
        dm_status destroyed = dm_program_destroy(s, p[j].program);
        status = tool_free_arrays(s, all, DMI_COUNT(all), status == DM_OK ? destroyed : status);
    }
    for (int j = 0; j <= PIPELINES; j++) {
        free(times[j]);
    }
    return status;
}

int tool_bench_groups(int argc, char **argv)
{
    groups_bench b = {.head.measure = {.repeats = 10, .warmup = 2}, .size = 256, .runs = 20};
    if (!tool_bench_options(&argp, argc, argv, "bench groups", &b.head)) {
        return TOOL_USAGE;
    }
    return tool_bench_runs(&b.head, run);
}
