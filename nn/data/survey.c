/* What is in a database: its mean image, and a table of records. */
#include "base/base.h"
#include "data/record.h"
#include "data/transform.h"
#include "proto/wire.h"

#include <dmath/nn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A LevelDB has a file CURRENT. */
static dm_status open_any(const char *path, nn_source **out)
{
    char file[4096];
    struct stat about;
    if (nn_is_hdf5(path)) {
        return nn_rows_open(&path, 1, out);
    }
    snprintf(file, sizeof file, "%s/CURRENT", path);
    return nn_source_open(path, stat(file, &about) == 0 ? NN_LEVELDB : NN_LMDB, out);
}

static dm_status add(double *sums, const nn_record *r, const int64_t shape[3], const char *path, int64_t i)
{
    if (r->channels != shape[0] || r->height != shape[1] || r->width != shape[2]) {
        return dm_error_set(DM_ERR_SHAPE, "%s: record %lld is %lld x %lld x %lld, the first %lld x %lld x %lld",
                            path, (long long)i, (long long)r->channels, (long long)r->height,
                            (long long)r->width, (long long)shape[0], (long long)shape[1], (long long)shape[2]);
    }
    for (int64_t k = 0; k < shape[0] * shape[1] * shape[2]; k++) {
        sums[k] += r->bytes ? (double)r->bytes[k] : (double)r->reals[k];
    }
    return DM_OK;
}

static dm_status write_mean(const char *path, const double *sums, const int64_t shape[3], int64_t count)
{
    static const char *const fields[] = {"channels", "height", "width"};
    nn_document *d = NULL;
    nn_entry *data = NULL;
    int64_t n = shape[0] * shape[1] * shape[2];
    dm_status status = nn_document_new("BlobProto", path, &d);
    status = status == DM_OK ? nn_set_int(d->root, "num", 1) : status;
    for (int i = 0; status == DM_OK && i < 3; i++) {
        status = nn_set_int(d->root, fields[i], shape[i]);
    }
    status =
        status == DM_OK ? nn_entry_grow(d->root, nn_schema_by_name("BlobProto", "data"), n, &data) : status;
    for (int64_t k = 0; status == DM_OK && k < n; k++) {
        data->at.real32[k] = (float)(sums[k] / (double)count);
        data->count = k + 1;
    }
    status = status == DM_OK ? nn_wire_write(d->root, path) : status;
    nn_document_free(d);
    return status;
}

dm_status dm_data_mean(const char *database, const char *path, double means[DM_MAX_CHANNEL_MEANS],
                       int64_t *channels)
{
    nn_source *source = NULL;
    double *sums = NULL;
    int64_t shape[3] = {0, 0, 0};
    if (!database || !path || !means || !channels) {
        return dm_error_set(DM_ERR_ARG, "dm_data_mean: an argument is NULL");
    }
    dm_status status = open_any(database, &source);
    for (int64_t i = 0; status == DM_OK && i < source->count; i++) {
        nn_record r = {0};
        status = source->type->read(source, i, &r);
        if (status == DM_OK && !sums) {
            memcpy(shape, (int64_t[]){r.channels, r.height, r.width}, sizeof shape);
            sums = calloc((size_t)(r.channels * r.height * r.width), sizeof *sums);
            status = sums ? DM_OK
                          : dm_error_no_memory("the mean of images",
                                               (size_t)(r.channels * r.height * r.width) * sizeof *sums);
        }
        status = status == DM_OK ? add(sums, &r, shape, database, i) : status;
        nn_record_drop(&r);
    }
    status = status == DM_OK ? write_mean(path, sums, shape, source->count) : status;
    if (status == DM_OK) {
        int64_t n = shape[1] * shape[2];
        *channels = shape[0] < DM_MAX_CHANNEL_MEANS ? shape[0] : DM_MAX_CHANNEL_MEANS;
        for (int64_t c = 0; c < *channels; c++) {
            means[c] = 0;
            for (int64_t k = 0; k < n; k++) {
                means[c] += sums[c * n + k] / (double)(n * source->count);
            }
        }
    }
    free(sums);
    nn_source_close(source);
    return status;
}

/* Least, mean and greatest element. */
static void show_record(FILE *to, int64_t i, const nn_record *r)
{
    double least = 0, most = 0, sum = 0;
    int64_t n = r->channels * r->height * r->width;
    for (int64_t k = 0; k < n; k++) {
        double x = r->bytes ? (double)r->bytes[k] : (double)r->reals[k];
        least = k == 0 || x < least ? x : least;
        most = k == 0 || x > most ? x : most;
        sum += x;
    }
    fprintf(to, "%8lld  %lld x %lld x %lld %s  label %lld  least %g mean %g most %g%s\n", (long long)i,
            (long long)r->channels, (long long)r->height, (long long)r->width, r->bytes ? "bytes" : "numbers",
            (long long)r->label, least, sum / (double)n, most, r->decoded ? "  encoded" : "");
}

dm_status dm_data_show(const char *database, int64_t first, int64_t records, char **text)
{
    enum { LABELS = 1000 };
    nn_source *source = NULL;
    size_t length = 0;
    int64_t labels[LABELS] = {0}, other = 0, damaged = 0;
    if (!database || !text || first < 0 || records < 0) {
        return dm_error_set(DM_ERR_ARG, "dm_data_show: database and text must be there, numbers not negative");
    }
    dm_status status = open_any(database, &source);
    FILE *to = status == DM_OK ? open_memstream(text, &length) : NULL;
    if (!to) {
        nn_source_close(source);
        return status == DM_OK ? dm_error_no_memory("a text", BUFSIZ) : status;
    }
    for (int64_t i = 0; i < source->count; i++) {
        nn_record r = {0};
        bool shown = i >= first && i < first + records;
        if (source->type->read(source, i, &r) != DM_OK) {
            damaged++;
            fprintf(to, "%8lld  %s\n", (long long)i, dm_error_message());
            continue;
        }
        if (shown) {
            show_record(to, i, &r);
        }
        if (r.label >= 0 && r.label < LABELS) {
            labels[r.label]++;
        } else {
            other++;
        }
        nn_record_drop(&r);
    }
    fprintf(to, "%s: %lld records, %lld damaged; of each label:", database, (long long)source->count,
            (long long)damaged);
    for (int i = 0; i < LABELS; i++) {
        if (labels[i]) {
            fprintf(to, " %d: %lld", i, (long long)labels[i]);
        }
    }
    if (other) {
        fprintf(to, " below 0 or above %d: %lld", LABELS - 1, (long long)other);
    }
    fputc('\n', to);
    nn_source_close(source);
    return fclose(to) == 0 ? DM_OK : dm_error_no_memory("a text", length);
}

dm_status dm_data_mean_read(const char *path, double means[DM_MAX_CHANNEL_MEANS], int64_t *channels)
{
    float *mean = NULL;
    int64_t shape[3] = {0, 0, 0};
    if (!path || !means || !channels) {
        return dm_error_set(DM_ERR_ARG, "dm_data_mean_read: an argument is NULL");
    }
    dm_status status = nn_mean_read(path, &mean, shape);
    if (status == DM_OK && shape[0] > DM_MAX_CHANNEL_MEANS) {
        status = dm_error_set(DM_ERR_LIMIT, "%s: has %lld channels, more than %d", path, (long long)shape[0],
                              DM_MAX_CHANNEL_MEANS);
    }
    for (int64_t c = 0; status == DM_OK && c < shape[0]; c++) {
        int64_t n = shape[1] * shape[2];
        means[c] = 0;
        for (int64_t k = 0; k < n; k++) {
            means[c] += (double)mean[c * n + k] / (double)n;
        }
    }
    *channels = status == DM_OK ? shape[0] : *channels;
    free(mean);
    return status;
}
