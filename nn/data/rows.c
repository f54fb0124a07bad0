/* Rows of HDF5 files as records, and records as rows of a new one: the arrays `data` and `label`, as HDF5Data
 * reads them and HDF5Output writes them. */
#include "base/base.h"
#include "data/hdf5.h"
#include "data/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char DATA[] = "data", LABEL[] = "label";
enum { BUFFER_BYTES = 1 << 20 };

/* --- reading */
typedef struct rows_file {
    nn_hdf5 *file;
    const char *path;
    int64_t first, count; /* of its rows, over all files */
    int ndim, label_ndim;
    int64_t shape[DM_MAX_DIMS], label_shape[DM_MAX_DIMS];
} rows_file;

typedef struct rows_source {
    nn_source source;
    rows_file *files;
    int count;
    int64_t each; /* elements of a row */
} rows_source;

static void close_rows(nn_source *source)
{
    rows_source *s = (rows_source *)source;
    for (int i = 0; i < s->count; i++) {
        if (nn_hdf5_close(s->files[i].file, DM_OK) != DM_OK) {
            break; /* of a file that is read, nothing can be lost */
        }
    }
    free(s->files);
    free(s->source.path);
    free(s);
}

static int64_t elements(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) { /* files cannot be larger */
        n = shape[d] == 0 ? 0 : n > INT64_MAX / shape[d] ? INT64_MAX : n * shape[d];
    }
    return n;
}

static dm_status open_file(const rows_source *s, const char *path, rows_file *f)
{
    f->path = path;
    dm_status status = nn_hdf5_open(path, &f->file);
    status = status == DM_OK ? nn_hdf5_shape(f->file, DATA, &f->ndim, f->shape) : status;
    status = status == DM_OK ? nn_hdf5_shape(f->file, LABEL, &f->label_ndim, f->label_shape) : status;
    if (status != DM_OK) {
        return status;
    }
    if (f->ndim < 1 || f->ndim > 4 || f->shape[0] < 1 || elements(f->ndim, f->shape) > INT64_C(1) << 40) {
        return dm_error_set(DM_ERR_SHAPE, "%s: 'data' has no rows, or more than 4 dims", path);
    }
    if (f->label_ndim < 1 || f->label_shape[0] != f->shape[0] ||
        elements(f->label_ndim, f->label_shape) != f->shape[0]) {
        return dm_error_set(DM_ERR_SHAPE,
                            "%s: 'label' does not have one number for each of the %lld rows of 'data'", path,
                            (long long)f->shape[0]);
    }
    const rows_file *first = &s->files[0];
    if (f->ndim != first->ndim ||
        memcmp(f->shape + 1, first->shape + 1, (size_t)(f->ndim - 1) * sizeof *f->shape) != 0) {
        return dm_error_set(DM_ERR_SHAPE, "%s: 'data' has other rows than in %s", path, first->path);
    }
    f->count = f->shape[0];
    return DM_OK;
}

static dm_status read_label(const rows_file *f, int64_t row, int64_t *label)
{
    float value = 0;
    dm_status status = nn_hdf5_read_row(f->file, LABEL, f->label_ndim, f->label_shape, row, &value);
    if (status == DM_OK && !(value == floorf(value) && fabsf(value) < 0x1p31F)) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: 'label' of row %lld is %g, no whole number", f->path,
                              (long long)row, (double)value);
    }
    *label = status == DM_OK ? (int64_t)value : 0;
    return status;
}

static dm_status read_row(nn_source *source, int64_t i, nn_record *out)
{
    const rows_source *s = (const rows_source *)source;
    const rows_file *f = s->files;
    while (i >= f->first + f->count) {
        f++;
    }
    nn_record r = {.channels = f->ndim > 1 ? f->shape[1] : 1,
                   .height = f->ndim > 2 ? f->shape[2] : 1,
                   .width = f->ndim > 3 ? f->shape[3] : 1,
                   .copied = malloc((size_t)(s->each + 1) * sizeof *r.copied)};
    if (!r.copied) {
        return dm_error_no_memory("a record", (size_t)(s->each + 1) * sizeof *r.copied);
    }
    dm_status status = nn_hdf5_read_row(f->file, DATA, f->ndim, f->shape, i - f->first, r.copied);
    status = status == DM_OK ? read_label(f, i - f->first, &r.label) : status;
    if (status != DM_OK) {
        nn_record_drop(&r);
        return status;
    }
    r.reals = r.copied;
    *out = r;
    return DM_OK;
}

dm_status nn_rows_open(const char *const *paths, int count, nn_source **out)
{
    static const nn_source_type type = {read_row, close_rows};
    rows_source *s = calloc(1, sizeof *s);
    if (!s) {
        return dm_error_no_memory("a list of files", sizeof *s);
    }
    s->source.type = &type;
    s->source.path = strdup(paths[0]);
    s->files = calloc((size_t)count, sizeof *s->files);
    dm_status status =
        s->source.path && s->files
            ? DM_OK
            : dm_error_no_memory("a list of files", strlen(paths[0]) + 1 + (size_t)count * sizeof *s->files);
    for (int i = 0; status == DM_OK && i < count; i++) {
        s->count++;
        status = open_file(s, paths[i], &s->files[i]);
        s->files[i].first = s->source.count;
        s->source.count += s->files[i].count;
    }
    if (status != DM_OK) {
        close_rows(&s->source);
        return status;
    }
    s->each = elements(s->files[0].ndim - 1, s->files[0].shape + 1);
    *out = &s->source;
    return DM_OK;
}

/* --- writing: some rows at a time */
typedef struct rows_sink {
    nn_sink sink;
    nn_hdf5 *file;
    int64_t shape[4], each; /* shape[0]: rows that are in the buffer */
    int64_t room;           /* rows */
    float *data, *labels;
} rows_sink;

static dm_status flush(rows_sink *s)
{
    dm_status status = s->shape[0] > 0 ? nn_hdf5_append(s->file, DATA, 4, s->shape, s->data) : DM_OK;
    status =
        status == DM_OK && s->shape[0] > 0 ? nn_hdf5_append(s->file, LABEL, 1, s->shape, s->labels) : status;
    s->shape[0] = 0;
    return status;
}

static dm_status make_room(rows_sink *s, const nn_record *r)
{
    memcpy(s->shape + 1, (int64_t[]){r->channels, r->height, r->width}, 3 * sizeof *s->shape);
    s->each = elements(3, s->shape + 1);
    s->room = BUFFER_BYTES / (s->each * (int64_t)sizeof *s->data) + 1;
    s->data = malloc((size_t)(s->room * s->each) * sizeof *s->data);
    s->labels = malloc((size_t)s->room * sizeof *s->labels);
    return s->data && s->labels
               ? DM_OK
               : dm_error_no_memory("a buffer of rows", (size_t)(s->room * s->each) * sizeof *s->data +
                                                            (size_t)s->room * sizeof *s->labels);
}

static dm_status put_row(rows_sink *s, const nn_record *r, const char *key)
{
    dm_status status = s->data ? DM_OK : make_room(s, r);
    if (status == DM_OK &&
        (r->channels != s->shape[1] || r->height != s->shape[2] || r->width != s->shape[3])) {
        return dm_error_set(
            DM_ERR_SHAPE,
            "%s: record '%s' is %lld x %lld x %lld, the first %lld x %lld x %lld: rows have one shape",
            s->sink.path, key, (long long)r->channels, (long long)r->height, (long long)r->width,
            (long long)s->shape[1], (long long)s->shape[2], (long long)s->shape[3]);
    }
    if (status == DM_OK && (int64_t)(float)r->label != r->label) {
        return dm_error_set(DM_ERR_UNSUPPORTED, "%s: record '%s' has the label %lld, which no f32 is",
                            s->sink.path, key, (long long)r->label);
    }
    for (int64_t k = 0; status == DM_OK && k < s->each; k++) {
        s->data[s->shape[0] * s->each + k] = r->bytes ? (float)r->bytes[k] : r->reals[k];
    }
    if (status == DM_OK) {
        s->labels[s->shape[0]++] = (float)r->label;
        status = s->shape[0] == s->room ? flush(s) : DM_OK;
    }
    return status;
}

static dm_status put(nn_sink *sink, const char *key, const char *bytes, size_t length)
{
    nn_record r = {0};
    dm_status status = nn_record_parse(bytes, length, key, NN_AS_IS, true, &r);
    status = status == DM_OK ? put_row((rows_sink *)sink, &r, key) : status;
    nn_record_drop(&r);
    return status;
}

static dm_status close_sink(nn_sink *sink, dm_status status)
{
    rows_sink *s = (rows_sink *)sink;
    status = status == DM_OK ? flush(s) : status;
    status = nn_hdf5_close(s->file, status);
    free(s->data);
    free(s->labels);
    free(s->sink.path);
    free(s);
    return status;
}

dm_status nn_rows_create(const char *path, nn_sink **out)
{
    static const nn_sink_type type = {put, close_sink};
    if (access(path, F_OK) == 0) {
        return dm_error_set(DM_ERR_IO, "%s: the file is there already", path);
    }
    rows_sink *s = calloc(1, sizeof *s);
    if (!s || !(s->sink.path = strdup(path))) {
        free(s);
        return dm_error_no_memory("a file of rows", sizeof *s + strlen(path) + 1);
    }
    s->sink.type = &type;
    dm_status status = nn_hdf5_create(path, &s->file);
    if (status != DM_OK) {
        free(s->sink.path);
        free(s);
        return status;
    }
    *out = &s->sink;
    return DM_OK;
}
