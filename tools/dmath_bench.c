/* dmath bench: the table of measurements, and their common code. */
#include "dmath_bench.h"

#include <stdlib.h>
#include <string.h>

static const tool_command benches[] = {
    {"gemm", tool_bench_gemm, "products, against OpenBLAS alone"},
    {"dispatch", tool_bench_dispatch, "what a command costs, and what waiting costs"},
    {"transport", tool_bench_transport, "latency and bandwidth between two workers"},
    {"file", tool_bench_file, "loading and saving .npy files, against plain reading and writing"},
    {"op", tool_bench_op, "operations by name, against copying and products; `op' may be left out"},
    {"groups", tool_bench_groups, "two pipelines on two groups of workers: alone, and side by side"},
    {"remap", tool_bench_remap, "from rows to columns, against memcpy"},
    {NULL, NULL, NULL},
};

int tool_bench(int argc, char **argv)
{
    bool known = argc < 2;
    for (const tool_command *c = benches; !known && c->name; c++) {
        known = strcmp(c->name, argv[1]) == 0;
    }
    if (!known && tool_bench_has_op(argv[1])) { /* `dmath bench exp' is `dmath bench op exp' */
        return tool_bench_op(argc, argv);
    }
    return tool_dispatch("dmath bench", benches, argc, argv);
}

const struct argp_child tool_bench_children[] = {
    {&tool_measure_argp, 0, NULL, 0}, {&tool_common_argp, 0, NULL, 0}, {0}};

bool tool_bench_options(const struct argp *argp, int argc, char **argv, const char *command,
                        tool_bench_head *head)
{
    if (argp_parse(argp, argc, argv, 0, NULL, head) != 0) {
        return false;
    }
    head->table = (tool_table){.json = head->common.json, .command = command};
    return true;
}

error_t tool_bench_key(int key, char *arg, struct argp_state *state)
{
    tool_bench_head *head = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &head->measure;
        state->child_inputs[1] = &head->common;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "`%s' is one argument too many", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

error_t tool_bench_misfit(struct argp_state *state, const char *option, const char *arg, const char *wanted)
{
    argp_error(state, "--%s: `%s' is not %s", option, arg, wanted);
    return EINVAL;
}

int tool_bench_runs(tool_bench_head *head,
                    dm_status (*run)(dm_session *s, const tool_where *where, tool_bench_head *head))
{
    int code = 0;
    for (int run_number = 0; run_number < tool_runs(&head->common) && code == 0; run_number++) {
        dm_session *s = NULL;
        tool_where where;
        dm_status status = tool_open(&head->common, run_number, &s);
        if (status == DM_OK) {
            status = tool_where_of(s, &where);
        }
        if (status == DM_OK) {
            head->table.where = &where;
            status = run(s, &where, head);
        }
        code = tool_close(s, status);
    }
    return code;
}

dm_status tool_free_arrays(dm_session *s, const dm_array *arrays, int count, dm_status status)
{
    for (int i = 0; i < count; i++) {
        dm_status freed = dm_array_destroy(s, arrays[i]);
        status = status == DM_OK ? freed : status;
    }
    return status;
}

dm_status tool_same_contents(dm_session *s, dm_array a, dm_array b, bool *same)
{
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(s, a, &info);
    if (status != DM_OK) {
        return status;
    }
    int64_t row = DMI_MAX(info.shape[1] * dm_dtype_bytes(info.dtype), 1);
    int64_t rows = DMI_MAX((8 << 20) / row, 1);
    char *x = malloc((size_t)(row * rows)), *y = malloc((size_t)(row * rows));
    bool equal = true;
    if (!x || !y) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory to compare two arrays");
    }
    for (int64_t i = 0; i < info.shape[0] && status == DM_OK; i += rows) {
        const int64_t lo[2] = {i, 0}, extent[2] = {DMI_MIN(rows, info.shape[0] - i), info.shape[1]};
        status = dm_array_read(s, a, lo, extent, x, 0);
        if (status == DM_OK) {
            status = dm_array_read(s, b, lo, extent, y, 0);
        }
        equal = equal && (status != DM_OK || memcmp(x, y, (size_t)(row * extent[0])) == 0);
    }
    free(x);
    free(y);
    if (status == DM_OK) {
        *same = equal;
    }
    return status;
}
