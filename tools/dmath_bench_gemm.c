/* dmath bench gemm: products, checked with a random vector, against OpenBLAS alone in the same run. */
#include "dmath_bench_gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gemm_bench {
    tool_bench_head head;
    gemm_size size[TOOL_LIST];
    gemm_type type[TOOL_LIST];
    gemm_layouts layouts[TOOL_LIST];
    int nsize, ntype, nlayouts;
} gemm_bench;

static const struct argp_option options[] = {
    {"sizes", 's', "LIST", 0, "extents: N or MxNxK (default 256,512,1024)", 0},
    {"dtypes", 'd', "LIST", 0, "element types: f64, f32, f16, bf16; tf32: f32 whose products may round to TF32 (default f32)", 0},
    {"layouts", 'l', "LIST", 0,
     "one layout for all three matrices, or A/B/C (default rows/cols/rows): " TOOL_LAYOUTS, 0},
    {0},
};

static bool size_entry(const char *entry, int at, void *into)
{
    gemm_size *size = (gemm_size *)into + at;
    long long m, n, k;
    int end = 0;
    if (sscanf(entry, "%lldx%lldx%lld%n", &m, &n, &k, &end) == 3 && entry[end] == 0 && m > 0 && n > 0 &&
        k > 0 && m <= INT32_MAX && n <= INT32_MAX && k <= INT32_MAX) {
        *size = (gemm_size){m, n, k};
        return true;
    }
    int64_t all;
    if (!tool_int_parse(entry, 1, INT32_MAX, &all)) {
        return false;
    }
    *size = (gemm_size){all, all, all};
    return true;
}

static bool float_entry(const char *entry, int at, void *into)
{
    gemm_type *type = (gemm_type *)into + at;
    bool tf32 = strcmp(entry, "tf32") == 0;
    *type = (gemm_type){DM_F32, tf32 ? DM_COMPUTE_TF32 : DM_COMPUTE_F32};
    return tf32 || (dmi_dtype_parse(entry, &type->dtype) && dmi_dtype_is_float(type->dtype));
}

static bool layouts_entry(const char *entry, int at, void *into)
{
    gemm_layouts *l = (gemm_layouts *)into + at;
    char copy[160], *rest = copy;
    snprintf(copy, sizeof copy, "%s", entry);
    if (!strchr(entry, '/')) {
        bool fits = tool_layout_parse(entry, &l->of[0]);
        l->of[1] = l->of[2] = l->of[0];
        return fits;
    }
    for (int i = 0; i < 3; i++) {
        char *one = strsep(&rest, "/");
        if (!one || !tool_layout_parse(one, &l->of[i])) {
            return false;
        }
    }
    return rest == NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    gemm_bench *b = state->input;
    bool fits = true;
    switch (key) {
    case 's':
        fits = tool_list_parse(arg, size_entry, b->size, &b->nsize);
        break;
    case 'd':
        fits = tool_list_parse(arg, float_entry, b->type, &b->ntype);
        break;
    case 'l':
        fits = tool_list_parse(arg, layouts_entry, b->layouts, &b->nlayouts);
        break;
    default:
        return tool_bench_key(key, arg, state);
    }
    return fits ? 0
                : tool_bench_misfit(state,
                                    key == 's'   ? "sizes"
                                    : key == 'd' ? "dtypes"
                                                 : "layouts",
                                    arg, "understood");
}

static const struct argp argp = {options,
                                 parse,
                                 NULL,
                                 "Products of random matrices. Each is checked with a random vector (C x "
                                 "against A (B x)), then measured, alternating with OpenBLAS's product of the "
                                 "same size in this process, with as many "
                                 "threads as there are workers. `ratio' is "
                                 "OpenBLAS's median time over dmath's: above 1, dmath is faster.",
                                 tool_bench_children,
                                 NULL,
                                 NULL};

static dm_status measure(dm_session *s, gemm_bench *b, gemm_case *g)
{
    int64_t repeats = b->head.measure.repeats;
    double *ours = calloc((size_t)repeats, sizeof *ours), *theirs = calloc((size_t)repeats, sizeof *theirs);
    dm_status status = ours && theirs ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for the measurements");
    for (int64_t i = -b->head.measure.warmup; i < repeats && status == DM_OK; i++) {
        double us = 0, them = 0;
        status = tool_gemm_ours(s, g, &us);
        if (status == DM_OK) {
            tool_gemm_theirs(g, &them);
        }
        if (i >= 0) {
            ours[i] = us;
            theirs[i] = them;
        }
    }
    if (status == DM_OK) {
        tool_stats us = tool_stats_of(ours, repeats), them = tool_stats_of(theirs, repeats);
        double flops = 2 * (double)g->size.m * (double)g->size.n * (double)g->size.k;
        tool_table *t = &b->head.table;
        char layouts[160];
        snprintf(layouts, sizeof layouts, "%s/%s/%s", g->layouts->of[0].text, g->layouts->of[1].text,
                 g->layouts->of[2].text);
        tool_row_begin(t);
        tool_row_int(t, "m", 6, g->size.m);
        tool_row_int(t, "n", 6, g->size.n);
        tool_row_int(t, "k", 6, g->size.k);
        tool_row_text(t, "dtype", 5, g->compute == DM_COMPUTE_TF32 ? "tf32" : dm_dtype_name(g->dtype));
        tool_row_text(t, "layouts", 18, layouts);
        tool_row_real(t, "error", 6, 2, g->error);
        tool_row_stats(t, "ms", 9, 3, us, 1e3);
        tool_row_real(t, "gflops", 9, 2, flops / us.median * 1e-9);
        tool_row_stats(t, "openblas_ms", 9, 3, them, 1e3);
        tool_row_real(t, "openblas_gflops", 9, 2, flops / them.median * 1e-9);
        tool_row_real(t, "ratio", 7, 3, them.median / us.median);
        tool_row_end(t);
    }
    free(ours);
    free(theirs);
    return status;
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    gemm_bench *b = (gemm_bench *)head;
    dm_status status = DM_OK;
    tool_table_intro(&head->table);
    for (int i = 0; i < b->nsize; i++) {
        for (int d = 0; d < b->ntype; d++) {
            for (int l = 0; l < b->nlayouts && status == DM_OK; l++) {
                gemm_case g = {.size = b->size[i],
                               .dtype = b->type[d].dtype,
                               .compute = b->type[d].compute,
                               .layouts = &b->layouts[l],
                               .threads = where->workers};
                status = tool_gemm_begin(s, &g);
                if (status == DM_OK) {
                    status = measure(s, b, &g);
                }
                dm_status end = tool_gemm_end(s, &g);
                status = status == DM_OK ? end : status;
            }
        }
    }
    return status;
}

int tool_bench_gemm(int argc, char **argv)
{
    gemm_bench *b = calloc(1, sizeof *b);
    if (!b) {
        return TOOL_FAILED;
    }
    b->head.measure = (tool_measure){.repeats = 10, .warmup = 2};
    (void)tool_list_parse("256,512,1024", size_entry, b->size, &b->nsize);
    (void)tool_list_parse("f32", float_entry, b->type, &b->ntype);
    (void)tool_list_parse("rows/cols/rows", layouts_entry, b->layouts, &b->nlayouts);
    int code = TOOL_USAGE;
    if (tool_bench_options(&argp, argc, argv, "bench gemm", &b->head)) {
        code = tool_bench_runs(&b->head, run);
    }
    free(b);
    return code;
}
