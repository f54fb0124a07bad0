/* dmath gemm: a product of matrices in files. */
#include "dmath.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct gemm_options {
    tool_common common;
    const char *file[2], *out;
    int trans_a, trans_b;
    double alpha, beta;
    dm_dtype dtype; /* 0: as the files say */
    tool_layout layout;
} gemm_options;

enum { KEY_TA = 256, KEY_TB, KEY_ALPHA, KEY_BETA };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where the product goes (needed)", 0},
    {"trans-a", KEY_TA, NULL, 0, "the transpose of A", 0},
    {"trans-b", KEY_TB, NULL, 0, "the transpose of B", 0},
    {"alpha", KEY_ALPHA, "X", 0, "factor of the product (default 1)", 0},
    {"beta", KEY_BETA, "X", 0, "factor of what the output file holds before (default 0: it is not read)", 0},
    {"dtype", 'd', "TYPE", 0,
     "f64, f32, f16 or bf16: A, B and the output file's old contents are converted to it", 0},
    {"layout", 'l', "LAYOUT", 0, "of all matrices: " TOOL_LAYOUTS, 0},
    {0},
};

static error_t finish(struct argp_state *state, const gemm_options *o)
{
    if (!o->file[1] || !o->out) {
        argp_error(state, !o->file[1] ? "two matrices are needed" : "where does the product go? -o FILE");
        return EINVAL;
    }
    if (o->common.nworkers > 1) {
        argp_error(state, "--workers: one number, not a list");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    gemm_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        break;
    case 'o':
        o->out = arg;
        break;
    case KEY_TA:
        o->trans_a = DM_T;
        break;
    case KEY_TB:
        o->trans_b = DM_T;
        break;
    case KEY_ALPHA:
    case KEY_BETA:
        fits = tool_double_parse(arg, key == KEY_ALPHA ? &o->alpha : &o->beta);
        break;
    case 'd':
        fits = dmi_dtype_parse(arg, &o->dtype) && dmi_dtype_is_float(o->dtype);
        break;
    case 'l':
        fits = tool_layout_parse(arg, &o->layout);
        break;
    case ARGP_KEY_ARG:
        fits = state->arg_num < 2;
        if (fits) {
            o->file[state->arg_num] = arg;
        }
        break;
    case ARGP_KEY_END:
        return finish(state, o);
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg,
                    key == 'd'            ? "is not a floating element type"
                    : key == 'l'          ? "is not a layout (" TOOL_LAYOUTS ")"
                    : key == ARGP_KEY_ARG ? "is one argument too many"
                                          : "is not a number");
        return EINVAL;
    }
    return 0;
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,  parse, "A.npy B.npy", "FILE = alpha * op(A) * op(B) + beta * FILE, in process or under mpirun.",
    children, NULL,  NULL};

enum { READ_A, READ_B, READ_C, MULTIPLY, SAVE, STAGES };

/* Loads a matrix; converts it where a type is asked for. */
static dm_status load(dm_session *s, const gemm_options *o, const char *path, dm_array *out,
                      dm_array_info *info, int stage)
{
    tool_stage(path, stage, STAGES);
    dm_layout layout = tool_layout_make(&o->layout, dm_workers(s));
    dm_array loaded = DM_NO_ARRAY, converted = DM_NO_ARRAY;
    dm_status status = dm_array_load(s, path, &layout, &loaded);
    if (status != DM_OK) {
        return status;
    }
    *info = (dm_array_info){.size = sizeof *info};
    status = dm_array_query(s, loaded, info);
    if (status == DM_OK && info->ndim != 2) {
        status = dmi_fail(DM_ERR_SHAPE, "%s holds an array of %d dims, not a matrix", path, info->ndim);
    }
    if (status == DM_OK && o->dtype && o->dtype != info->dtype) {
        info->dtype = o->dtype;
        status = dm_array_create(s, o->dtype, 2, info->shape, &layout, &converted);
        if (status == DM_OK) {
            status = dm_copy(s, loaded, converted);
        }
        dm_status freed = dm_array_destroy(s, loaded);
        loaded = converted;
        status = status == DM_OK ? freed : status;
    }
    if (status == DM_OK) {
        *out = loaded;
    }
    return status;
}

static void report(const gemm_options *o, const tool_where *where, const dm_array_info *a,
                   const dm_array_info *b, dm_dtype dtype, double seconds)
{
    int64_t m = a->shape[o->trans_a], k = a->shape[!o->trans_a], n = b->shape[!o->trans_b];
    tool_table t = {.json = o->common.json, .command = "gemm", .where = where};
    tool_table_intro(&t);
    tool_row_begin(&t);
    tool_row_int(&t, "m", 8, m);
    tool_row_int(&t, "n", 8, n);
    tool_row_int(&t, "k", 8, k);
    tool_row_text(&t, "dtype", 5, dm_dtype_name(dtype));
    tool_row_text(&t, "layout", 12, o->layout.text);
    tool_row_real(&t, "time_ms", 12, 3, seconds * 1e3);
    double flops = (dmi_dtype_is_complex(dtype) ? 8.0 : 2.0) * (double)m * (double)n * (double)k;
    tool_row_real(&t, "gflops", 10, 3, flops * 1e-9 / seconds);
    tool_row_end(&t);
}

static dm_status run(dm_session *s, const gemm_options *o)
{
    dm_array a, b, c;
    dm_array_info ai, bi, ci;
    tool_where where;
    dm_layout layout = tool_layout_make(&o->layout, dm_workers(s));
    dm_status status = tool_where_of(s, &where);
    if (status != DM_OK || (status = load(s, o, o->file[0], &a, &ai, READ_A)) != DM_OK ||
        (status = load(s, o, o->file[1], &b, &bi, READ_B)) != DM_OK) {
        return status;
    }
    dm_dtype dtype = o->dtype               ? o->dtype
                     : ai.dtype == bi.dtype ? ai.dtype
                                            : dmi_dtype_promote(ai.dtype, bi.dtype);
    if (o->beta != 0) {
        status = load(s, o, o->out, &c, &ci, READ_C);
        dtype = status == DM_OK ? ci.dtype : dtype;
    } else {
        const int64_t shape[2] = {ai.shape[o->trans_a], bi.shape[!o->trans_b]};
        status = dm_array_create(s, dtype, 2, shape, &layout, &c);
    }
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    tool_stage("product", MULTIPLY, STAGES);
    int64_t begin = dmi_now_ns();
    if (status == DM_OK) {
        status = dm_gemm(s, o->trans_a, o->trans_b, o->alpha, a, b, o->beta, c);
    }
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    double seconds = (double)(dmi_now_ns() - begin) * 1e-9;
    if (status == DM_OK) {
        tool_stage(o->out, SAVE, STAGES);
        status = dm_array_save(s, c, o->out);
    }
    if (status != DM_OK) {
        return status;
    }
    tool_progress(NULL, 0, 0);
    report(o, &where, &ai, &bi, dtype, seconds);
    dm_array all[] = {a, b, c};
    for (int i = 0; i < 3 && status == DM_OK; i++) {
        status = dm_array_destroy(s, all[i]);
    }
    return status;
}

int tool_gemm(int argc, char **argv)
{
    gemm_options o = {.alpha = 1};
    dm_session *s = NULL;
    (void)tool_layout_parse("default", &o.layout);
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    dm_status status = tool_open(&o.common, 0, &s);
    status = status == DM_OK ? run(s, &o) : status;
    tool_progress(NULL, 0, 0);
    return tool_close(s, status);
}
