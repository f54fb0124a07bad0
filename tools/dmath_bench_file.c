/* dmath bench file: loading and saving .npy files, against threads that only read and write. */
#include "dmath_bench.h"
#include "dmath_plain_file.h"
#include "io/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 4096, FEW_COLUMNS = 64, SAMPLES = 500 };
enum { LOAD, SAVE, READ, WRITE, TIMES };

typedef struct file_bench {
    tool_bench_head head;
    int64_t size, threads;
    dm_dtype dtype;
    const char *folder, *file;
    tool_layout layout;
    double least;
    bool no_save;
} file_bench;

static const struct argp_option options[] = {
    {"size", 's', "BYTES", 0, "bytes of data in the file that is made (default 256M)", 0},
    {"folder", 'f', "DIR", 0, "where files are made, the same place for all workers (default .)", 0},
    {"file", 'i', "FILE", 0, "load this .npy file; none is made but the one that is saved", 0},
    {"dtype", 'd', "TYPE", 0, "element type of the file that is made (default f32)", 0},
    {"layout", 'l', "LAYOUT", 0, TOOL_LAYOUTS " (default rows)", 0},
    {"threads", 'n', "N", 0, "of plain reading and writing (default: as many as all workers have)", 0},
    {"no-save", 'S', NULL, 0, "only load: for files that take long to write", 0},
    {"least", 'm', "RATIO", 0, "fail if the ratio is lower than this", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    file_bench *b = state->input;
    switch (key) {
    case 's':
        return tool_int_parse(arg, 1, INT64_C(1) << 44, &b->size)
                   ? 0
                   : tool_bench_misfit(state, "size", arg, "a number of bytes");
    case 'f':
        b->folder = arg;
        return 0;
    case 'i':
        b->file = arg;
        return 0;
    case 'd':
        return dmi_dtype_parse(arg, &b->dtype) ? 0 : tool_bench_misfit(state, "dtype", arg, "an element type");
    case 'l':
        return tool_layout_parse(arg, &b->layout) ? 0 : tool_bench_misfit(state, "layout", arg, "a layout");
    case 'n':
        return tool_int_parse(arg, 1, 4096, &b->threads)
                   ? 0
                   : tool_bench_misfit(state, "threads", arg, "a number from 1 to 4096");
    case 'S':
        b->no_save = true;
        return 0;
    case 'm':
        return tool_double_parse(arg, &b->least) ? 0 : tool_bench_misfit(state, "least", arg, "a number");
    default:
        return tool_bench_key(key, arg, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    NULL,
    "A .npy file is loaded by the workers, and saved. What was loaded is compared with "
    "the file, and what was saved with what was loaded. Then it measures loading and "
    "saving, alternating with threads of this process that only read and write the same bytes. `ratio' is the "
    "median time of plain reading over that of loading, "
    "`save_ratio' the same of writing and saving: above 1, dmath is faster. The file is "
    "in the page cache, if it fits.",
    tool_bench_children,
    NULL,
    NULL};

typedef struct file_case {
    char made[300], saved[300];
    const char *path; /* loaded */
    dmi_npy_info info;
    dm_layout layout;
    tool_plain_file read, write;
    uint64_t *sums[2]; /* over each dim of what the file must hold, f64 or i64; NULL: not known */
    double *times[TIMES];
} file_case;

/* --- checks --- */

/* Sums over each of two dims, in the order of the elements whatever the layout; 2-D arrays. */
static dm_status sums_of(dm_session *s, const file_case *c, dm_array a, uint64_t *sums[2])
{
    dm_status status = DM_OK;
    for (int d = 0; d < 2 && status == DM_OK; d++) {
        dm_array sum = DM_NO_ARRAY;
        bool whole = !dmi_dtype_is_float(c->info.dtype);
        status = dm_array_create(s, whole ? DM_I64 : DM_F64, 1, &c->info.shape[1 - d], NULL, &sum);
        status = status == DM_OK ? dm_sum(s, a, &d, 1, 1, 0, sum) : status;
        sums[d] = calloc((size_t)c->info.shape[1 - d] + 1, sizeof(uint64_t));
        if (status == DM_OK && !sums[d]) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for sums");
        }
        status = status == DM_OK ? dm_array_read(s, sum, NULL, NULL, sums[d], 0) : status;
        status = tool_free_arrays(s, &sum, 1, status);
    }
    return status;
}

static dm_status same_sums(dm_session *s, const file_case *c, dm_array a, uint64_t *const wanted[2],
                           const char *what)
{
    uint64_t *sums[2] = {NULL, NULL};
    dm_status status = sums_of(s, c, a, sums);
    for (int d = 0; d < 2 && status == DM_OK; d++) {
        if (memcmp(sums[d], wanted[d], (size_t)c->info.shape[1 - d] * sizeof(uint64_t)) != 0) {
            status = dmi_fail(DM_ERR_INTERNAL, "%s: the sums over dim %d are not those of the array", what, d);
        }
    }
    free(sums[0]);
    free(sums[1]);
    return status;
}

/* Compares some elements, the last one among them, with the file. */
static dm_status same_samples(dm_session *s, const file_case *c, dm_array a)
{
    const dmi_npy_info *info = &c->info;
    int64_t elem = dmi_dtype_bytes(info->dtype), one[DM_MAX_DIMS];
    int fd = open(c->path, O_RDONLY | O_CLOEXEC);
    dm_status status = fd >= 0 ? DM_OK : dmi_fail(DM_ERR_IO, "%s: %s", c->path, strerror(errno));
    for (int i = 0; i < SAMPLES && status == DM_OK && info->count > 0; i++) {
        int64_t lo[DM_MAX_DIMS], at = (int64_t)((double)i / (SAMPLES - 1) * (double)(info->count - 1));
        unsigned char file[8], got[8] = {0};
        if (pread(fd, file, (size_t)elem, (off_t)(info->data_offset + at * elem)) != elem) {
            status = dmi_fail(DM_ERR_IO, "%s: element %lld cannot be read", c->path, (long long)at);
            break;
        }
        for (int k = 0; k < info->ndim; k++) {
            int d = info->fortran_order ? k : info->ndim - 1 - k;
            lo[d] = at % info->shape[d];
            at /= info->shape[d];
            one[d] = 1;
        }
        status = dm_array_read(s, a, lo, one, got, 0);
        for (int64_t k = 0; k < elem && status == DM_OK; k++) {
            if (got[k] != file[info->big_endian ? elem - 1 - k : k]) {
                status =
                    dmi_fail(DM_ERR_INTERNAL, "%s: a loaded element is not the file's (sample %d)", c->path, i);
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* --- one case --- */

static dm_status make_file(dm_session *s, const file_bench *b, file_case *c)
{
    int64_t elem = dmi_dtype_bytes(b->dtype), columns = b->size >= COLUMNS * 64 * elem ? COLUMNS : FEW_COLUMNS;
    const int64_t shape[2] = {DMI_MAX(b->size / (columns * elem), 1), columns};
    dm_array a = DM_NO_ARRAY;
    c->info = (dmi_npy_info){.dtype = b->dtype, .ndim = 2, .shape = {shape[0], shape[1]}};
    snprintf(c->made, sizeof c->made, "%s/dmath-bench-%ld.npy", b->folder, (long)getpid());
    c->path = c->made;
    dm_status status = dm_array_create(s, b->dtype, 2, shape, &c->layout, &a);
    status = status == DM_OK ? dm_fill_uniform(s, a, 0, 100, 11) : status;
    status = status == DM_OK ? dm_array_save(s, a, c->path) : status;
    status = status == DM_OK ? sums_of(s, c, a, c->sums) : status;
    return tool_free_arrays(s, &a, 1, status);
}

static dm_status check(dm_session *s, const file_bench *bench, file_case *c)
{
    dm_array a = DM_NO_ARRAY, b = DM_NO_ARRAY;
    dm_status status = dm_array_load(s, c->path, &c->layout, &a);
    status = status == DM_OK ? same_samples(s, c, a) : status;
    if (status == DM_OK && c->sums[0]) {
        status = same_sums(s, c, a, c->sums, "the loaded file");
    } else if (status == DM_OK && c->info.ndim == 2) {
        status = sums_of(s, c, a, c->sums);
    }
    status = status == DM_OK && !bench->no_save ? dm_array_save(s, a, c->saved) : status;
    status = tool_free_arrays(s, &a, 1, status);
    if (status == DM_OK && c->sums[0] && !bench->no_save) {
        status = dm_array_load(s, c->saved, &c->layout, &b);
        status = status == DM_OK ? same_sums(s, c, b, c->sums, "the saved file") : status;
        status = tool_free_arrays(s, &b, 1, status);
    }
    return status;
}

static dm_status begin_case(dm_session *s, const tool_where *where, file_bench *b, file_case *c)
{
    dmi_session *own = NULL;
    dm_status status = dmi_enter(s, &own);
    c->layout = tool_layout_make(&b->layout, where->workers);
    snprintf(c->saved, sizeof c->saved, "%s/dmath-bench-%ld-saved.npy", b->folder, (long)getpid());
    c->path = b->file;
    status = status == DM_OK && !b->file ? make_file(s, b, c) : status;
    status = status == DM_OK ? dmi_npy_read_header(c->path, &c->info) : status;
    status = status == DM_OK ? check(s, b, c) : status;
    if (status != DM_OK) {
        return status;
    }
    c->read =
        (tool_plain_file){.path = c->path, .offset = c->info.data_offset, .piece = own->config.file_chunk};
    c->read.bytes = c->info.count * dmi_dtype_bytes(c->info.dtype);
    c->read.threads = (int)(b->threads         ? b->threads
                            : own->profile.gpu ? where->workers * own->config.file_threads
                                               : where->workers);
    status = tool_plain_begin(&c->read);
    c->write = c->read;
    c->write.path = c->saved;
    bool all = true;
    for (int i = 0; i < TIMES; i++) {
        c->times[i] = calloc((size_t)b->head.measure.repeats, sizeof(double));
        all = all && c->times[i];
    }
    double seconds; /* touches the memory */
    status = status == DM_OK && !all ? dmi_fail(DM_ERR_NOMEM, "no memory for the measurements") : status;
    return status == DM_OK ? tool_plain_time(&c->read, true, &seconds) : status;
}

static dm_status end_case(file_case *c, dm_status status)
{
    tool_plain_end(&c->read);
    for (int i = 0; i < TIMES; i++) {
        free(c->times[i]);
    }
    free(c->sums[0]);
    free(c->sums[1]);
    (void)unlink(c->saved);
    if (c->made[0]) {
        (void)unlink(c->made);
    }
    return status;
}

/* --- measuring --- */

/* Runs all four. The output file is removed before each, so that all start alike. */
static dm_status one_round(dm_session *s, const file_bench *b, const file_case *c, double t[TIMES])
{
    dm_array a = DM_NO_ARRAY;
    dm_status status = tool_plain_time(&c->read, true, &t[READ]);
    if (status != DM_OK) {
        return status;
    }
    int64_t begin = dmi_now_ns();
    status = dm_array_load(s, c->path, &c->layout, &a);
    t[LOAD] = tool_seconds_since(begin);
    if (b->no_save) {
        return tool_free_arrays(s, &a, 1, status);
    }
    (void)unlink(c->saved);
    if (status == DM_OK) {
        begin = dmi_now_ns();
        status = dm_array_save(s, a, c->saved);
        t[SAVE] = tool_seconds_since(begin);
    }
    status = tool_free_arrays(s, &a, 1, status);
    (void)unlink(c->saved);
    return status == DM_OK ? tool_plain_time(&c->write, false, &t[WRITE]) : status;
}

static dm_status measure(dm_session *s, file_bench *b, const file_case *c)
{
    tool_stats stats[TIMES];
    dm_status status = DM_OK;
    for (int64_t i = -b->head.measure.warmup; i < b->head.measure.repeats && status == DM_OK; i++) {
        double t[TIMES] = {0};
        status = one_round(s, b, c, t);
        for (int j = 0; j < TIMES && i >= 0; j++) {
            c->times[j][i] = t[j];
        }
    }
    if (status != DM_OK) {
        return status;
    }
    for (int j = 0; j < TIMES; j++) {
        stats[j] = tool_stats_of(c->times[j], b->head.measure.repeats);
    }
    double gigabytes = (double)c->read.bytes * 1e-9, ratio = stats[READ].median / stats[LOAD].median;
    tool_table *t = &b->head.table;
    tool_row_begin(t);
    tool_row_int(t, "bytes", 12, c->read.bytes);
    tool_row_text(t, "dtype", 5, dm_dtype_name(c->info.dtype));
    tool_row_text(t, "layout", 10, b->layout.text);
    tool_row_int(t, "threads", 7, c->read.threads);
    tool_row_stats(t, "load_ms", 11, 3, stats[LOAD], 1e3);
    tool_row_real(t, "load_gbps", 9, 3, gigabytes / stats[LOAD].median);
    tool_row_real(t, "read_gbps", 9, 3, gigabytes / stats[READ].median);
    tool_row_real(t, "ratio", 6, 3, ratio);
    if (!b->no_save) {
        tool_row_stats(t, "save_ms", 11, 3, stats[SAVE], 1e3);
        tool_row_real(t, "save_gbps", 9, 3, gigabytes / stats[SAVE].median);
        tool_row_real(t, "write_gbps", 10, 3, gigabytes / stats[WRITE].median);
        tool_row_real(t, "save_ratio", 10, 3, stats[WRITE].median / stats[SAVE].median);
    }
    tool_row_end(t);
    return ratio >= b->least
               ? DM_OK
               : dmi_fail(DM_ERR_LIMIT,
                          "loading reaches %.3f of the rate of plain reading; --least asks for %.3f", ratio,
                          b->least);
}

static dm_status run(dm_session *s, const tool_where *where, tool_bench_head *head)
{
    file_bench *b = (file_bench *)head;
    file_case c = {0};
    tool_table_intro(&head->table);
    dm_status status = begin_case(s, where, b, &c);
    status = status == DM_OK ? measure(s, b, &c) : status;
    return end_case(&c, status);
}

int tool_bench_file(int argc, char **argv)
{
    file_bench b = {.head.measure = {.repeats = 5, .warmup = 1},
                    .size = 256 << 20,
                    .dtype = DM_F32,
                    .folder = ".",
                    .layout = {.text = "rows", .kind = TOOL_SPLIT}};
    if (!tool_bench_options(&argp, argc, argv, "bench file", &b.head)) {
        return TOOL_USAGE;
    }
    return tool_bench_runs(&b.head, run);
}
