/* dmath map: an elementwise expression of arrays in files. */
#include "dmath.h"

#include "expr/expr.h"
#include "io/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct map_options {
    tool_common common;
    const char *expression, *out;
    int count;
    dm_map_arg arg[DMI_EXPR_VARIABLES];
    const char *file[DMI_EXPR_VARIABLES]; /* of arrays */
    char name[DMI_EXPR_VARIABLES][DMI_EXPR_NAME];
    int ndim;       /* of the arrays, the most */
    dm_dtype dtype; /* 0: the expression's */
    tool_layout layout;
    bool rows;
} map_options;

enum { KEY_ROWS = 256 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where the result goes (needed)", 0},
    {"dtype", 'd', "TYPE", 0, "element type of the result (default: that of the expression)", 0},
    {"layout", 'l', "LAYOUT", 0, "of all arrays, but the result of a reduction: " TOOL_LAYOUTS, 0},
    {"rows", KEY_ROWS, NULL, 0,
     "list the functions and reductions instead: name, kind, number of operands, element types", 0},
    {0},
};

static error_t finish(struct argp_state *state, const map_options *o)
{
    if (!o->rows && (!o->expression || !o->out)) {
        argp_error(state, !o->expression ? "an expression is needed" : "where does the result go? -o FILE");
        return EINVAL;
    }
    if (o->common.nworkers > 1) {
        argp_error(state, "--workers: one number, not a list");
        return EINVAL;
    }
    return 0;
}

/* NAME=FILE or NAME=NUMBER */
static bool parse_argument(map_options *o, const char *text)
{
    const char *equal = strchr(text, '=');
    size_t length = equal ? (size_t)(equal - text) : 0;
    if (length == 0 || length >= DMI_EXPR_NAME || o->count == DMI_EXPR_VARIABLES || !equal[1]) {
        return false;
    }
    dm_map_arg *a = &o->arg[o->count];
    char *end = NULL;
    memcpy(o->name[o->count], text, length);
    errno = 0;
    a->name = o->name[o->count];
    a->integer = strtoll(equal + 1, &end, 10);
    a->kind = DM_MAP_INTEGER;
    if (*end || errno) { /* nan and inf are numbers, too */
        errno = 0;
        a->number = strtod(equal + 1, &end);
        a->kind = *end ? DM_MAP_ARRAY : DM_MAP_NUMBER;
        o->file[o->count] = *end ? equal + 1 : NULL;
        if (*end == 0 && errno == ERANGE && isinf(a->number)) {
            return false;
        }
    }
    o->count++;
    return true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    map_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        break;
    case 'o':
        o->out = arg;
        break;
    case 'd':
        fits = dmi_dtype_parse(arg, &o->dtype);
        break;
    case 'l':
        fits = tool_layout_parse(arg, &o->layout);
        break;
    case KEY_ROWS:
        o->rows = true;
        break;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0) {
            o->expression = arg;
        } else {
            fits = parse_argument(o, arg);
        }
        break;
    case ARGP_KEY_END:
        return finish(state, o);
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg,
                    key == 'd'   ? "is not an element type"
                    : key == 'l' ? "is not a layout (" TOOL_LAYOUTS ")"
                                 : "is not NAME=FILE.npy or NAME=NUMBER");
        return EINVAL;
    }
    return 0;
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {options,
                                 parse,
                                 "EXPRESSION NAME=FILE.npy... NAME=NUMBER...",
                                 "FILE = expression, element by element, as NumPy computes it: "
                                 "\"where(x > 0, a * x + y, 0)\". In process or under mpirun.",
                                 children,
                                 NULL,
                                 NULL};

static void list_row(tool_table *t, const char *name, const char *kind, int operands, const char *types)
{
    tool_row_begin(t);
    tool_row_text(t, "name", 20, name);
    tool_row_text(t, "kind", 9, kind);
    tool_row_int(t, "operands", 8, operands);
    tool_row_text(t, "types", 0, types);
    tool_row_end(t);
}

static bool takes(int row, const dmi_expr_reduction *r, dm_dtype dtype)
{
    dm_dtype d[3] = {dtype, dtype, dtype}, taken, result;
    return r ? dmi_acc_for(r->row, dtype) >= 0 : dmi_ew_types(row, d, &taken, &result);
}

/* The types that an elementwise row takes, or a reduction, if there is one. */
static const char *types_of(int row, const dmi_expr_reduction *r, char types[160])
{
    types[0] = 0;
    for (int dtype = 1; dtype < DMI_DTYPE_END; dtype++) {
        if (takes(row, r, (dm_dtype)dtype)) {
            strcat(strcat(types, types[0] ? " " : ""), dm_dtype_name((dm_dtype)dtype));
        }
    }
    return types;
}

static int list_rows(const map_options *o)
{
    tool_table t = {.json = o->common.json, .command = "map --rows"};
    char types[160];
    for (int row = 0; row < DMI_EW_ROWS; row++) {
        if (!dmi_ew_rows[row].inner) {
            list_row(&t, dmi_ew_rows[row].name, "function", dmi_ew_rows[row].operands,
                     types_of(row, NULL, types));
        }
    }
    for (int i = 0; i < dmi_expr_reduction_count; i++) {
        const dmi_expr_reduction *r = &dmi_expr_reductions[i];
        list_row(&t, r->name, "reduction", 1, types_of(0, r, types));
    }
    return 0;
}

static void report(const map_options *o, const tool_where *where, const dm_array_info *info, double seconds)
{
    int64_t count = 1;
    for (int d = 0; d < info->ndim; d++) {
        count *= info->shape[d];
    }
    tool_table t = {.json = o->common.json, .command = "map", .where = where};
    tool_table_intro(&t);
    tool_row_begin(&t);
    tool_row_int(&t, "elements", 12, count);
    tool_row_text(&t, "dtype", 5, dm_dtype_name(info->dtype));
    tool_row_text(&t, "layout", 12, o->layout.text);
    tool_row_real(&t, "time_ms", 12, 3, seconds * 1e3);
    tool_row_end(&t);
}

static dm_status load_all(dm_session *s, map_options *o)
{
    dm_status status = DM_OK;
    for (int i = 0; i < o->count && status == DM_OK; i++) {
        dmi_npy_info file;
        if (o->arg[i].kind != DM_MAP_ARRAY || (status = dmi_npy_read_header(o->file[i], &file)) != DM_OK) {
            continue;
        }
        dm_layout layout = tool_layout_for(&o->layout, dm_workers(s), file.ndim);
        tool_stage(o->file[i], i, o->count + 2);
        status =
            dm_array_load(s, o->file[i], o->layout.kind == TOOL_DEFAULT ? NULL : &layout, &o->arg[i].array);
        o->ndim = DMI_MAX(o->ndim, file.ndim);
    }
    return status == DM_OK ? dm_sync(s) : status;
}

/* Has the result the layout of the arrays? That of a reduction has fewer dims. */
static bool has_layout(const map_options *o)
{
    return o->layout.kind != TOOL_DEFAULT && !dmi_expr_reduces(o->expression);
}

/* The result in another type. */
static dm_status convert(dm_session *s, const map_options *o, dm_array_info *info, dm_array *out)
{
    dm_layout layout = tool_layout_for(&o->layout, dm_workers(s), info->ndim);
    dm_array converted;
    dm_status status =
        dm_array_create(s, o->dtype, info->ndim, info->shape, has_layout(o) ? &layout : NULL, &converted);
    if (status == DM_OK && (status = dm_copy(s, *out, converted)) == DM_OK) {
        status = dm_array_destroy(s, *out);
        *out = converted;
        info->dtype = o->dtype;
    }
    return status;
}

static dm_status run(dm_session *s, map_options *o, dm_array *made)
{
    dm_array out = DM_NO_ARRAY;
    dm_array_info info = {.size = sizeof info};
    tool_where where;
    dm_status status = tool_where_of(s, &where);
    if (status != DM_OK || (status = load_all(s, o)) != DM_OK) {
        return status;
    }
    dm_layout layout = tool_layout_for(&o->layout, dm_workers(s), o->ndim);
    tool_stage(o->expression, o->count, o->count + 2);
    int64_t begin = dmi_now_ns();
    status = dm_map_new(s, o->expression, o->count, o->arg, has_layout(o) ? &layout : NULL, &out);
    if (status == DM_OK) {
        status = dm_sync(s);
    }
    double seconds = (double)(dmi_now_ns() - begin) * 1e-9;
    *made = out;
    if (status != DM_OK || (status = dm_array_query(s, out, &info)) != DM_OK) {
        return status;
    }
    if (o->dtype && o->dtype != info.dtype) {
        status = convert(s, o, &info, made);
    }
    tool_stage(o->out, o->count + 1, o->count + 2);
    if (status == DM_OK && (status = dm_array_save(s, *made, o->out)) == DM_OK) {
        tool_progress(NULL, 0, 0);
        report(o, &where, &info, seconds);
    }
    return status;
}

static dm_status run_and_free(dm_session *s, map_options *o)
{
    dm_array made = DM_NO_ARRAY;
    dm_status status = run(s, o, &made), freed = dm_array_destroy(s, made);
    tool_progress(NULL, 0, 0);
    for (int i = 0; i < o->count; i++) { /* those that are numbers have none */
        dm_status next = dm_array_destroy(s, o->arg[i].array);
        freed = freed == DM_OK ? next : freed;
    }
    return status == DM_OK ? freed : status;
}

int tool_map(int argc, char **argv)
{
    map_options o = {0};
    dm_session *s = NULL;
    (void)tool_layout_parse("default", &o.layout);
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    if (o.rows) {
        return list_rows(&o);
    }
    dm_status status = tool_open(&o.common, 0, &s);
    return tool_close(s, status == DM_OK ? run_and_free(s, &o) : status);
}
