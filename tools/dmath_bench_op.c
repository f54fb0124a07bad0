/* dmath bench OP: any operation, checked once against a plain loop or in f64, then its rate beside the machine's. */
#include "dmath_bench_op.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct op_bench {
    tool_bench_head head;
    int64_t n, side;
    dm_dtype dtype;
    const char *name[TOOL_LIST];
    int names;
    bool list;
    double copy_gbps, product_gflops; /* of this session: the limits */
} op_bench;

enum { KEY_SIDE = 256, KEY_LIST };

static const struct argp_option options[] = {
    {"size", 's', "N", 0, "elements of vectors (default 4M)", 0},
    {"side", KEY_SIDE, "N", 0, "rows and columns of matrices (default 512)", 0},
    {"dtype", 'd', "TYPE", 0, "element type of floats: f32 (default), f64", 0},
    {"list", KEY_LIST, NULL, 0, "list the operations and their families instead", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    op_bench *b = state->input;
    switch (key) {
    case 's':
        return tool_int_parse(arg, 1, INT32_MAX, &b->n)
                   ? 0
                   : tool_bench_misfit(state, "size", arg, "a number from 1 on");
    case KEY_SIDE:
        return tool_int_parse(arg, 1, 1 << 20, &b->side)
                   ? 0
                   : tool_bench_misfit(state, "side", arg, "a number from 1 on");
    case 'd':
        return dmi_dtype_parse(arg, &b->dtype) && (b->dtype == DM_F32 || b->dtype == DM_F64)
                   ? 0
                   : tool_bench_misfit(state, "dtype", arg, "f32 or f64");
    case KEY_LIST:
        b->list = true;
        return 0;
    case ARGP_KEY_ARG:
        if (b->names == TOOL_LIST) {
            return tool_bench_key(key, arg, state);
        }
        b->name[b->names++] = arg;
        return 0;
    default:
        return tool_bench_key(key, arg, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    "OP...",
    "Operations by name (of a call, or as `dmath info' lists them), by family (elementwise, reduction, "
    "order, index, linalg, fill, layers, host), or `every'. Each is checked once, against a plain loop or in "
    "f64. Then its rate is shown beside the limit, "
    "measured in the same session: of bytes that of copying, of products that of a matrix product.",
    tool_bench_children,
    NULL,
    NULL};

/* --- slots --- */

static dm_status make(tool_op *o, int slot, dm_dtype dtype, int ndim, const int64_t *shape)
{
    o->count[slot] = 1;
    for (int d = 0; d < ndim; d++) {
        o->count[slot] *= shape[d];
    }
    return dm_array_create(o->s, dtype, ndim, shape, NULL, &o->a[slot]);
}

static dm_status keep(tool_op *o, int slot)
{
    o->h[slot] = malloc((size_t)o->count[slot] * sizeof(double));
    return o->h[slot] ? dm_array_read_as(o->s, o->a[slot], NULL, NULL, DM_F64, o->h[slot], 0)
                      : dmi_fail(DM_ERR_NOMEM, "no memory for %lld numbers", (long long)o->count[slot]);
}

dm_status tool_op_fill(tool_op *o, int slot, dm_dtype dtype, int ndim, const int64_t *shape, double lo,
                       double hi)
{
    dm_status status = make(o, slot, dtype, ndim, shape);
    status = TOOL_TRY(status, dm_fill_uniform(o->s, o->a[slot], lo, hi, (uint64_t)slot + 11));
    return TOOL_TRY(status, keep(o, slot));
}

dm_status tool_op_result(tool_op *o, int slot, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dm_status status = make(o, slot, dtype, ndim, shape);
    o->result = slot;
    return TOOL_TRY(status, dm_fill(o->s, o->a[slot], 0));
}

dm_status tool_op_vector(tool_op *o, int slot, dm_dtype dtype, double lo, double hi)
{
    return tool_op_fill(o, slot, dtype, 1, &o->n, lo, hi);
}

dm_status tool_op_matrix(tool_op *o, int slot, dm_dtype dtype, double lo, double hi)
{
    return tool_op_fill(o, slot, dtype, 2, (int64_t[]){o->side, o->side}, lo, hi);
}

dm_factor tool_op_element(tool_op *o, int slot, double value)
{
    dm_status status = o->a[slot].id ? DM_OK : make(o, slot, DM_F64, 0, NULL);
    if (status == DM_OK && !o->want) { /* before the check: the first call */
        status = dm_fill(o->s, o->a[slot], value);
    }
    return dm_element(status == DM_OK ? o->a[slot] : DM_NO_ARRAY); /* the call that takes it fails */
}

/* --- the check --- */

static bool near(double got, double want, double tolerance)
{
    return got == want || (got != got && want != want) || fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

static dm_status compare(tool_op *o)
{
    int64_t count = o->count[o->result];
    double *got = malloc((size_t)(count + 1) * sizeof *got);
    o->want = calloc((size_t)count + 1, sizeof *o->want);
    dm_status status = got && o->want ? dm_array_read_as(o->s, o->a[o->result], NULL, NULL, DM_F64, got, 0)
                                      : dmi_fail(DM_ERR_NOMEM, "no memory for %lld numbers", (long long)count);
    if (status == DM_OK && o->row->plain) {
        o->row->plain(o);
        for (int64_t i = 0; i < count && status == DM_OK; i++) {
            if (!near(got[i], o->want[i], o->tolerance)) {
                status = dmi_fail(DM_ERR_INTERNAL, "%s: element %lld is %.17g, not %.17g",
                                  o->row->name, (long long)i, got[i], o->want[i]);
            }
        }
    } else if (status == DM_OK && !o->row->check(o, got)) {
        status = dmi_fail(DM_ERR_INTERNAL, "%s: the result is not what it should be", o->row->name);
    }
    free(got);
    return status;
}

/* --- the measurement --- */

static dm_status time_call(tool_op *o, double *seconds)
{
    dm_status status = dm_sync(o->s);
    int64_t begin = dmi_now_ns();
    status = TOOL_TRY(status, o->row->call(o));
    status = TOOL_TRY(status, dm_sync(o->s));
    *seconds = tool_seconds_since(begin);
    return status;
}

static dm_status measure(tool_op *o, const tool_measure *m, tool_stats *out)
{
    double *times = calloc((size_t)m->repeats, sizeof *times), once;
    dm_status status = times ? o->row->prepare(o) : dmi_fail(DM_ERR_NOMEM, "no memory for the times");
    status = TOOL_TRY(status, time_call(o, &once));
    status = TOOL_TRY(status, compare(o));
    for (int64_t i = -m->warmup; i < m->repeats && status == DM_OK; i++) {
        status = time_call(o, &once);
        times[DMI_MAX(i, 0)] = once;
    }
    if (status == DM_OK) {
        *out = tool_stats_of(times, m->repeats);
    }
    free(times);
    return status;
}

static dm_status bytes_of(tool_op *o)
{
    dm_status status = DM_OK;
    double bytes = 0;
    for (int i = 0; i < TOOL_OP_ARRAYS; i++) {
        dm_array_info info = {.size = sizeof info};
        status = o->a[i].id ? TOOL_TRY(status, dm_array_query(o->s, o->a[i], &info)) : status;
        int times = i == o->result && o->h[i] ? 2 : 1; /* read and written */
        bytes += o->a[i].id && status == DM_OK
                     ? times * (double)o->count[i] * (double)dm_dtype_bytes(info.dtype)
                     : 0;
    }
    o->bytes = o->bytes > 0 ? o->bytes : bytes;
    return status;
}

static dm_status end_row(tool_op *o, dm_status status)
{
    for (int i = 0; i < TOOL_OP_ARRAYS; i++) {
        free(o->h[i]);
    }
    free(o->want);
    free(o->host);
    if (o->program.id) {
        dm_status freed = dm_program_destroy(o->s, o->program);
        status = status == DM_OK ? freed : status;
    }
    if (o->file[0]) {
        (void)remove(o->file);
    }
    return tool_free_arrays(o->s, o->a, TOOL_OP_ARRAYS, status);
}

static void tell(op_bench *b, const tool_op *o, tool_stats stats)
{
    tool_table *t = &b->head.table;
    bool flops = o->flops > 0;
    double rate = (flops ? o->flops : o->bytes) / stats.median * 1e-9;
    double limit = flops ? b->product_gflops : b->copy_gbps;
    tool_row_begin(t);
    tool_row_text(t, "op", 24, o->row->name);
    tool_row_text(t, "family", 11, o->row->family);
    tool_row_text(t, "dtype", 5, dm_dtype_name(b->dtype));
    tool_row_stats(t, "ms", 9, 3, stats, 1e3);
    tool_row_real(t, "rate", 9, 3, rate);
    tool_row_text(t, "unit", 7, flops ? "Gflop/s" : "GB/s");
    tool_row_real(t, "limit", 9, 3, limit);
    tool_row_real(t, "ratio", 7, 3, limit > 0 ? rate / limit : 0);
    tool_row_end(t);
}

static dm_status run_row(dm_session *s, op_bench *b, const tool_op_row *row, bool show, tool_op *out,
                         tool_stats *stats)
{
    tool_op o = {.s = s, .row = row, .n = b->n, .side = b->side, .dtype = b->dtype};
    o.tolerance = b->dtype == DM_F64 ? 1e-9 : 2e-5;
    dm_status status = measure(&o, &b->head.measure, stats);
    status = TOOL_TRY(status, bytes_of(&o));
    if (status == DM_OK && show) {
        tell(b, &o, *stats);
    }
    *out = o;
    return end_row(&o, status);
}

/* --- which rows --- */

enum { FAMILIES = 9 };
static const tool_op_row *family_of(int which)
{
    switch (which) {
    case 0:
        return tool_ops_ewise();
    case 1:
        return tool_ops_reduce;
    case 2:
        return tool_ops_order;
    case 3:
        return tool_ops_index;
    case 4:
        return tool_ops_linalg;
    case 5:
        return tool_ops_layers;
    case 6:
        return tool_ops_losses;
    case 7:
        return tool_ops_host;
    default:
        return tool_ops_fill;
    }
}

/* The rows that make an operation of the table (`dmath info` lists it), where none has its name. */
static const struct {
    const char *op, *rows;
} of_op[] = {
    {"ewise", "exp,subtract,where"},
    {"index_count", "take,put"},
    {"reduce", "prod,min,max,any,all,count_nonzero,argmin,argmax,mean,var,std,norm_1"},
    {"require", "require_range"},
    {"scan", "cumulative_sum,cumulative_prod,cumulative_max,cumulative_min,cumulative_logsumexp"},
    {"merge", "sort,argsort"},
    {"program", "program_run"},
    {"joined", "program_run"},
    {"until", "program_run_until"},
    {"chain", "log_softmax,standardise,layer_norm,cross_entropy"},
    {"conv", "conv_forward"},
    {"conv_data", "conv_backward_data"},
    {"conv_weights", "conv_backward_weights"},
    {"pooling", "pool_forward,pool_forward_average,pool_forward_stochastic"},
    {"pooling_back", "pool_backward,pool_backward_which"},
    {"inner", "inner_forward"},
    {"inner_data", "inner_backward_data"},
    {"inner_weights", "inner_backward_weights"},
    {"relu_sums", "relu_backward_sums"},
    {"softmax_back", "softmax_loss_backward"},
    {"lrn", "lrn_forward,lrn_forward_within"},
    {"lrn_back", "lrn_backward,lrn_backward_within"},
    {"lrn_pool", "lrn_pool_forward"},
    {"lrn_pool_back", "lrn_pool_backward"},
    {"momentum", "momentum_step"},
    {"momentum_rounded", "momentum_step_rounded"},
    {"images", "images_forward"},
    {"pair_loss", "euclidean_loss,sigmoid_loss"},
    {"pair_back", "sigmoid_loss_backward"},
    {"hinge_back", "hinge_loss_backward"},
};

/* Is the row in the list of an operation with that name? row NULL: is there one? */
static bool makes(const char *op, const char *row)
{
    const char *rows = NULL;
    for (int i = 0; i < DMI_COUNT(of_op) && !rows; i++) {
        rows = strcmp(of_op[i].op, op) == 0 ? of_op[i].rows : NULL;
    }
    size_t length = row ? strlen(row) : 0;
    for (const char *at = rows; at && row; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, row, length) == 0 && (at[length] == ',' || at[length] == 0)) {
            return true;
        }
    }
    return rows && !row;
}

static bool named(const op_bench *b, const tool_op_row *row, int *which)
{
    for (int i = 0; i < b->names; i++) {
        if (strcmp(b->name[i], "every") == 0 || strcmp(b->name[i], row->name) == 0 ||
            strcmp(b->name[i], row->family) == 0 || makes(b->name[i], row->name)) {
            *which = i;
            return true;
        }
    }
    return false;
}

static const tool_op_row *find(const char *name)
{
    for (int f = 0; f < FAMILIES; f++) {
        for (const tool_op_row *row = family_of(f); row->name; row++) {
            if (strcmp(row->name, name) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

bool tool_bench_has_op(const char *name)
{
    bool family = strcmp(name, "every") == 0 || strcmp(name, "--list") == 0;
    for (int f = 0; f < FAMILIES; f++) {
        family = family || strcmp(name, family_of(f)->family) == 0;
    }
    return family || find(name) != NULL || makes(name, NULL);
}

static void list(void)
{
    for (int f = 0; f < FAMILIES; f++) {
        for (const tool_op_row *row = family_of(f); row->name; row++) {
            printf("%-24s %s\n", row->name, row->family);
        }
    }
}

/* Copying as many bytes as two vectors have, and a product of matrices. */
static dm_status find_limits(dm_session *s, op_bench *b)
{
    tool_op o = {0};
    tool_stats stats = {0};
    dm_status status = run_row(s, b, find("copy"), false, &o, &stats);
    if (status == DM_OK) {
        b->copy_gbps = o.bytes / stats.median * 1e-9;
        status = run_row(s, b, find("matmul"), false, &o, &stats);
    }
    if (status == DM_OK) {
        b->product_gflops = o.flops / stats.median * 1e-9;
    }
    return status;
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    (void)where;
    op_bench *b = (op_bench *)head;
    tool_op o;
    tool_stats stats;
    int chosen = 0, done = 0, which;
    tool_table_intro(&head->table);
    for (int f = 0; f < FAMILIES; f++) {
        for (const tool_op_row *row = family_of(f); row->name; row++) {
            chosen += named(b, row, &which);
        }
    }
    dm_status status = find_limits(s, b);
    for (int f = 0; f < FAMILIES && status == DM_OK; f++) {
        for (const tool_op_row *row = family_of(f); row->name && status == DM_OK; row++) {
            if (named(b, row, &which)) {
                tool_progress(row->name, done++, chosen);
                status = run_row(s, b, row, true, &o, &stats);
            }
        }
    }
    tool_progress(NULL, chosen, chosen);
    return status;
}

int tool_bench_op(int argc, char **argv)
{
    op_bench b = {.head.measure = {.repeats = 10, .warmup = 2}, .n = 4 << 20, .side = 512, .dtype = DM_F32};
    if (!tool_bench_options(&argp, argc, argv, "bench op", &b.head)) {
        return TOOL_USAGE;
    }
    if (b.list) {
        list();
        return 0;
    }
    for (int i = 0; i < b.names; i++) {
        if (!tool_bench_has_op(b.name[i])) {
            fprintf(stderr, "%s: there is no operation `%s'; --list lists them\n", argv[0], b.name[i]);
            return TOOL_USAGE;
        }
    }
    if (b.names == 0) {
        fprintf(stderr, "%s: which operations? --list lists them, `every' means all\n", argv[0]);
        return TOOL_USAGE;
    }
    return tool_bench_runs(&b.head, run);
}
