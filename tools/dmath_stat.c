/* dmath stat: what arrays in files hold, without reading them into one place. */
#include "dmath.h"

#include "io/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BINS = 100, BAR = 50, KEY_BINS = 256 };

typedef struct stat_options {
    tool_common common;
    const char *file[TOOL_LIST];
    int files;
    int64_t bins;
    tool_layout layout;
} stat_options;

static const struct argp_option options[] = {
    {"bins", KEY_BINS, "N", 0,
     "bins of the histogram, from the smallest to the largest number (default 10; 0: none)", 0},
    {"layout", 'l', "LAYOUT", 0, "how the arrays are spread: " TOOL_LAYOUTS, 0},
    {0},
};

static error_t finish(struct argp_state *state, const stat_options *o)
{
    if (o->files == 0 || o->common.nworkers > 1) {
        argp_error(state, o->files == 0 ? "which file?" : "--workers: one number, not a list");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    stat_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        return 0;
    case KEY_BINS:
        fits = tool_int_parse(arg, 0, MOST_BINS, &o->bins);
        break;
    case 'l':
        fits = tool_layout_parse(arg, &o->layout);
        break;
    case ARGP_KEY_ARG:
        fits = o->files < TOOL_LIST;
        o->file[fits ? o->files++ : 0] = arg;
        break;
    case ARGP_KEY_END:
        return finish(state, o);
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg,
                    key == 'l'        ? "is not a layout (" TOOL_LAYOUTS ")"
                    : key == KEY_BINS ? "is not a number from 0 to 100"
                                      : "is not taken: too many files");
        return EINVAL;
    }
    return 0;
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    "FILE.npy...",
    "Shape, element type, smallest and largest number, mean, standard deviation, how many NaN and "
    "infinities, and a histogram. NaN and infinities count for nothing else; of complex numbers the "
    "moduli are meant. The workers read the files, each its part.",
    children,
    NULL,
    NULL};

/* What is known of one array. */
typedef struct findings {
    dm_array_info info;
    int64_t count, nan, inf;
    double min, max, mean, std;
    int64_t bin[MOST_BINS];
} findings;

/* *value = an expression of x, and of the number m, which ends in a reduction of all elements. */
static dm_status reduce(dm_session *s, dm_array x, const char *expression, double m, double *value)
{
    dm_array out;
    dm_map_arg args[] = {DM_ARG("x", x), DM_NUMBER("m", m)};
    dm_status status = dm_array_create(s, DM_F64, 0, NULL, NULL, &out);
    if (status != DM_OK) {
        return status;
    }
    status = dm_map(s, expression, strstr(expression, "m)") ? 2 : 1, args, out);
    status = status == DM_OK ? dm_item(s, out, NULL, value) : status;
    dm_status destroyed = dm_array_destroy(s, out);
    return status == DM_OK ? destroyed : status;
}

/* Of numbers that may be NaN or infinite. */
static dm_status look_at_floats(dm_session *s, dm_array x, findings *f)
{
    double nan = 0, inf = 0, sum = 0, squares = 0;
    dm_status status = reduce(s, x, "count_nonzero(isnan(x))", 0, &nan);
    status = status == DM_OK ? reduce(s, x, "count_nonzero(isinf(x))", 0, &inf) : status;
    f->nan = (int64_t)nan;
    f->inf = (int64_t)inf;
    double finite = (double)(f->count - f->nan - f->inf);
    if (status != DM_OK || finite == 0) {
        return status;
    }
    status = reduce(s, x, "min(where(isfinite(x), f64(x), inf))", 0, &f->min);
    status = status == DM_OK ? reduce(s, x, "max(where(isfinite(x), f64(x), -inf))", 0, &f->max) : status;
    status = status == DM_OK ? reduce(s, x, "sum(where(isfinite(x), f64(x), 0))", 0, &sum) : status;
    f->mean = sum / finite;
    status = status == DM_OK ? reduce(s, x, "sum(where(isfinite(x), square(f64(x) - m), 0))", f->mean, &squares)
                             : status;
    f->std = sqrt(squares / finite);
    return status;
}

static dm_status look_at_integers(dm_session *s, dm_array x, findings *f)
{
    dm_status status = reduce(s, x, "min(f64(x))", 0, &f->min);
    status = status == DM_OK ? reduce(s, x, "max(f64(x))", 0, &f->max) : status;
    status = status == DM_OK ? reduce(s, x, "mean(f64(x))", 0, &f->mean) : status;
    return status == DM_OK ? reduce(s, x, "std(f64(x))", 0, &f->std) : status;
}

static dm_status count_bins(dm_session *s, dm_array x, int64_t bins, findings *f)
{
    dm_array out;
    dm_status status = dm_array_create(s, DM_I64, 1, &bins, NULL, &out);
    if (status == DM_OK) {
        status = dm_histogram(s, x, f->min, f->max, DM_NO_ARRAY, out);
        status = status == DM_OK ? dm_read(s, out, f->bin) : status;
        dm_status destroyed = dm_array_destroy(s, out);
        status = status == DM_OK ? destroyed : status;
    }
    return status;
}

/* The moduli of complex numbers in their place. */
static dm_status make_real(dm_session *s, dm_array *x, const dm_array_info *info)
{
    dm_array moduli;
    dm_status status = dm_array_like(s, *x, info->dtype == DM_C64 ? DM_F32 : DM_F64, &moduli);
    if (status == DM_OK) {
        status = dm_abs(s, *x, moduli);
        dm_status destroyed = dm_array_destroy(s, *x);
        status = status == DM_OK ? destroyed : status;
        *x = moduli;
    }
    return status;
}

static dm_status look(dm_session *s, const stat_options *o, dm_array *x, findings *f)
{
    f->info = (dm_array_info){.size = sizeof f->info};
    dm_status status = dm_array_query(s, *x, &f->info);
    f->count = 1;
    for (int d = 0; d < f->info.ndim; d++) {
        f->count *= f->info.shape[d];
    }
    if (status != DM_OK || f->count == 0) {
        return status;
    }
    if (dmi_dtype_is_complex(f->info.dtype)) {
        status = make_real(s, x, &f->info);
    }
    if (status == DM_OK) {
        status = dmi_dtype_is_float(f->info.dtype) || dmi_dtype_is_complex(f->info.dtype)
                     ? look_at_floats(s, *x, f)
                     : look_at_integers(s, *x, f);
    }
    bool some = f->count > f->nan + f->inf && isfinite(f->max - f->min);
    return status == DM_OK && some && o->bins > 0 ? count_bins(s, *x, o->bins, f) : status;
}

static void tell(const stat_options *o, tool_table *t, const char *file, const findings *f)
{
    char shape[DM_MAX_DIMS * 22] = "";
    for (int d = 0; d < f->info.ndim; d++) {
        size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%" PRId64, d ? "x" : "", f->info.shape[d]);
    }
    bool some = f->count > f->nan + f->inf;
    tool_row_begin(t);
    tool_row_text(t, "file", 16, file);
    tool_row_text(t, "dtype", 6, dm_dtype_name(f->info.dtype));
    tool_row_text(t, "shape", 12, f->info.ndim > 0 ? shape : "()");
    tool_row_int(t, "elements", 11, f->count);
    tool_row_number(t, "min", 13, some ? f->min : NAN);
    tool_row_number(t, "max", 13, some ? f->max : NAN);
    tool_row_number(t, "mean", 13, some ? f->mean : NAN);
    tool_row_number(t, "std", 13, some ? f->std : NAN);
    tool_row_int(t, "nan", 6, f->nan);
    tool_row_int(t, "inf", 6, f->inf);
    if (t->json && some) {
        tool_row_list(t, "histogram", f->bin, (int)o->bins);
    }
    tool_row_end(t);
    int64_t most = 1;
    for (int i = 0; i < o->bins; i++) {
        most = DMI_MAX(most, f->bin[i]);
    }
    for (int i = 0; i < o->bins && !t->json && some; i++) {
        double width = (f->max - f->min) / (double)o->bins;
        int bar = (int)((double)BAR * (double)f->bin[i] / (double)most + 0.5);
        printf("  %13.6g %13" PRId64 " %.*s\n", f->min + width * i, f->bin[i], bar,
               "##################################################");
    }
}

static dm_status stat_file(dm_session *s, const stat_options *o, const char *file, tool_table *t)
{
    dm_array x;
    dmi_npy_info header;
    findings *f = calloc(1, sizeof *f);
    dm_status status =
        f ? dmi_npy_read_header(file, &header) : dmi_fail(DM_ERR_NOMEM, "no memory for what is found");
    if (status == DM_OK) {
        dm_layout layout = tool_layout_for(&o->layout, dm_workers(s), header.ndim);
        status = dm_array_load(s, file, o->layout.kind == TOOL_DEFAULT ? NULL : &layout, &x);
    }
    if (status == DM_OK) {
        status = look(s, o, &x, f);
        dm_status destroyed = dm_array_destroy(s, x);
        status = status == DM_OK ? destroyed : status;
    }
    if (status == DM_OK) {
        tell(o, t, file, f);
    }
    free(f);
    return status;
}

static dm_status run(dm_session *s, const stat_options *o)
{
    tool_where where;
    tool_table t = {.json = o->common.json, .command = "stat", .where = &where};
    dm_status status = tool_where_of(s, &where);
    for (int i = 0; i < o->files && status == DM_OK; i++) {
        tool_progress(o->file[i], i, o->files);
        status = stat_file(s, o, o->file[i], &t);
    }
    tool_progress(NULL, 0, 0);
    return status;
}

int tool_stat(int argc, char **argv)
{
    stat_options o = {.bins = 10};
    dm_session *s = NULL;
    (void)tool_layout_parse("default", &o.layout);
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    dm_status status = tool_open(&o.common, 0, &s);
    return tool_close(s, status == DM_OK ? run(s, &o) : status);
}
