/* Data sets to databases. */
#include "data/convert.h"

#include "base/base.h"
#include "data/idx.h"
#include "data/image.h"
#include "net/net.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dm_status nn_put_record(nn_sink *sink, int64_t number, const nn_put *r)
{
    char key[24];
    nn_document *datum = NULL;
    const int64_t elements = r->channels * r->height * r->width;
    dm_status status = nn_document_new("Datum", "record", &datum);
    if (status != DM_OK) {
        return status;
    }
    snprintf(key, sizeof key, "%08lld", (long long)number);
    if (r->file) { /* whose size is its own */
        status = nn_set_text(datum->root, "data", r->file, r->file_bytes);
        status = status == DM_OK ? nn_set_int(datum->root, "encoded", 1) : status;
    } else {
        status = nn_set_int(datum->root, "channels", r->channels);
        status = status == DM_OK ? nn_set_int(datum->root, "height", r->height) : status;
        status = status == DM_OK ? nn_set_int(datum->root, "width", r->width) : status;
    }
    if (status == DM_OK && r->bytes) {
        status = nn_set_text(datum->root, "data", (const char *)r->bytes, (size_t)elements);
    } else if (status == DM_OK && r->reals) {
        nn_entry *reals = NULL;
        status = nn_entry_grow(datum->root, nn_schema_by_name("Datum", "float_data"), elements, &reals);
        if (status == DM_OK) {
            memcpy(reals->at.real32, r->reals, (size_t)elements * sizeof(float));
            reals->count = elements;
        }
    }
    status = status == DM_OK ? nn_set_int(datum->root, "label", r->label) : status;
    status = status == DM_OK ? nn_sink_put(sink, key, datum->root) : status;
    nn_document_free(datum);
    return status;
}

/* --- CIFAR-10: a label, 3072 bytes red, green, blue, which stay so, as in Caffe's databases; CIFAR-100: a coarse
 * label before the fine one. */
static dm_status put_cifar(const char *path, int labels, nn_sink *sink, int64_t *count)
{
    enum { IMAGE = 3 * 1024 };
    char *bytes = NULL;
    size_t length = 0, each = (size_t)labels + IMAGE;
    dm_status status = nn_file_read(path, (size_t)1 << 30, &bytes, &length);
    if (status == DM_OK && (length == 0 || length % each != 0)) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has %zu bytes, which is no number of records of %zu", path,
                              length, each);
    }
    for (size_t at = 0; status == DM_OK && at < length; at += each) {
        const unsigned char *image = (unsigned char *)bytes + at + labels;
        nn_put r = {.channels = 3, .height = 32, .width = 32, .label = image[-1], .bytes = image};
        status = nn_put_record(sink, (*count)++, &r);
    }
    free(bytes);
    return status;
}

dm_status nn_convert_cifar(const dm_data_options *o, nn_sink *sink, int64_t *count)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < o->input_count; i++) {
        status = put_cifar(o->inputs[i], strcmp(o->from, "cifar100") == 0 ? 2 : 1, sink, count);
    }
    return status;
}

/* Of a record that could not be read: is it left out? */
static bool skipped(const dm_data_options *o, dm_status status)
{
    char line[2048];
    if (!o->skip_damaged || (status != DM_ERR_FORMAT && status != DM_ERR_SHAPE && status != DM_ERR_IO)) {
        return false;
    }
    if (o->log) {
        snprintf(line, sizeof line, "skipped: %s", dm_error_message());
        o->log(o->log_context, line);
    }
    return true;
}

/* Says once that records have several shapes. first: those of record 0 of the new database, at first 0. */
static void watch_shapes(const dm_data_options *o, const nn_record *r, int64_t number, int64_t first[3],
                         bool *said)
{
    const int64_t shape[3] = {r->channels, r->height, r->width};
    char line[256];
    if (number == 0) {
        memcpy(first, shape, sizeof shape);
    }
    if (o->log && !*said && memcmp(first, shape, sizeof shape) != 0) {
        *said = true;
        snprintf(line, sizeof line,
                 "record %lld is %lld x %lld x %lld, record 0 %lld x %lld x %lld: nets need crop_size to read "
                 "several shapes",
                 (long long)number, (long long)shape[0], (long long)shape[1], (long long)shape[2],
                 (long long)first[0], (long long)first[1], (long long)first[2]);
        o->log(o->log_context, line);
    }
}

dm_status nn_put_all(const dm_data_options *o, nn_source *source, nn_sink *sink, int64_t *count)
{
    dm_status status = DM_OK;
    int64_t first[3];
    bool said = false;
    for (int64_t i = 0; status == DM_OK && i < source->count; i++) {
        nn_record r = {0};
        status = source->type->read(source, i, &r);
        if (status == DM_OK) {
            const bool whole = r.file != NULL;
            nn_put put = {.channels = r.channels,
                          .height = r.height,
                          .width = r.width,
                          .label = r.label,
                          .bytes = whole ? NULL : r.bytes,
                          .reals = r.reals,
                          .file = r.file,
                          .file_bytes = r.file_bytes};
            watch_shapes(o, &r, *count, first, &said);
            status = nn_put_record(sink, (*count)++, &put);
        } else if (skipped(o, status)) {
            status = DM_OK;
        }
        nn_record_drop(&r);
    }
    return status;
}

/* --- another database */
dm_status nn_convert_database(const dm_data_options *o, nn_sink *sink, int64_t *count)
{
    nn_source *source = NULL;
    nn_backend from = strcmp(o->from, "lmdb") == 0 ? NN_LMDB : NN_LEVELDB;
    dm_status status = nn_source_open(o->inputs[0], from, &source);
    status = status == DM_OK ? nn_put_all(o, source, sink, count) : status;
    nn_source_close(source);
    return status;
}

/* --- rows of HDF5 files: records of bytes if all elements of all rows are whole numbers from 0 to 255, else of
 * numbers */
static int64_t to_bytes(const nn_record *r, unsigned char *out)
{
    int64_t k = 0, elements = r->channels * r->height * r->width;
    for (; k < elements && r->reals[k] >= 0 && r->reals[k] <= 255 && r->reals[k] == floorf(r->reals[k]); k++) {
        out[k] = (unsigned char)r->reals[k];
    }
    return elements - k; /* that are left */
}

/* bytes: room for a row; NULL: numbers. *left: elements that are no bytes, at the first row that has any.
 * Without a sink, rows are only looked at. */
static dm_status put_rows(nn_source *source, unsigned char *bytes, nn_sink *sink, int64_t *count, int64_t *left)
{
    dm_status status = DM_OK;
    *left = 0;
    for (int64_t i = 0; status == DM_OK && i < source->count && *left == 0; i++) {
        nn_record r = {0};
        status = source->type->read(source, i, &r);
        if (status == DM_OK) {
            nn_put put = {.channels = r.channels,
                          .height = r.height,
                          .width = r.width,
                          .label = r.label,
                          .bytes = bytes,
                          .reals = bytes ? NULL : r.reals};
            *left = bytes ? to_bytes(&r, bytes) : 0;
            status = !sink   ? DM_OK
                     : *left ? dm_error_set(DM_ERR_IO, "%s: changed while it was read", source->path)
                             : nn_put_record(sink, (*count)++, &put);
        }
        nn_record_drop(&r);
    }
    return status;
}

dm_status nn_convert_rows(const dm_data_options *o, nn_sink *sink, int64_t *count)
{
    nn_source *source = NULL;
    nn_record first = {0};
    unsigned char *bytes = NULL;
    int64_t left = 0;
    dm_status status = nn_rows_open(o->inputs, o->input_count, &source);
    status = status == DM_OK ? source->type->read(source, 0, &first) : status;
    if (status == DM_OK) {
        bytes = malloc((size_t)(first.channels * first.height * first.width) + 1);
        status =
            bytes ? put_rows(source, bytes, NULL, count, &left)
                  : dm_error_no_memory("a record", (size_t)(first.channels * first.height * first.width) + 1);
    }
    status = status == DM_OK ? put_rows(source, left ? NULL : bytes, sink, count, &left) : status;
    free(bytes);
    nn_record_drop(&first);
    nn_source_close(source);
    return status;
}

/* --- the call */

/* A database that is made when its first record comes: inputs that make no sense leave none behind. */
typedef struct late_sink {
    nn_sink sink, *real;
    bool leveldb;
} late_sink;

static dm_status open_real(late_sink *s)
{
    return nn_is_hdf5(s->sink.path) ? nn_rows_create(s->sink.path, &s->real)
                                    : nn_sink_open(s->sink.path, s->leveldb ? NN_LEVELDB : NN_LMDB, &s->real);
}

static dm_status put_late(nn_sink *sink, const char *key, const char *bytes, size_t length)
{
    late_sink *s = (late_sink *)sink;
    dm_status status = s->real ? DM_OK : open_real(s);
    return status == DM_OK ? s->real->type->put(s->real, key, bytes, length) : status;
}

static dm_status close_late(nn_sink *sink, dm_status status)
{
    late_sink *s = (late_sink *)sink;
    if (!s->real) {
        return status == DM_OK ? dm_error_set(DM_ERR_FORMAT, "%s: there are no records for it", sink->path)
                               : status;
    }
    return nn_sink_close(s->real, status);
}

/* A file, or the files of a folder and then that. */
static void remove_made(const char *path)
{
    char file[4096];
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            unlink(file);
        }
    }
    if (d) {
        closedir(d);
        rmdir(path);
    } else {
        unlink(path);
    }
}

/* Of what was not there before, an error leaves nothing: half a database looks like a whole one. */
static dm_status convert(const dm_data_options *o,
                         dm_status (*how)(const dm_data_options *, nn_sink *, int64_t *), int64_t *count)
{
    static const nn_sink_type type = {put_late, close_late};
    char list[4096], *path = strdup(o->database);
    late_sink late = {{&type, path}, NULL, o->leveldb != 0};
    if (!path) {
        return dm_error_no_memory("a path", strlen(o->database) + 1);
    }
    nn_list_path(path, list, sizeof list);
    const bool had = nn_is_there(path), had_list = nn_is_there(list);
    dm_status status = nn_sink_close(&late.sink, how(o, &late.sink, count));
    if (status != DM_OK && !had) {
        remove_made(path);
    }
    if (status != DM_OK && !had_list) {
        unlink(list);
    }
    free(path);
    return status;
}

/* Options that another form than `from` has. */
static dm_status check_options(const dm_data_options *o)
{
    const bool images = strcmp(o->from, "images") == 0,
               skips = images || strcmp(o->from, "lmdb") == 0 || strcmp(o->from, "leveldb") == 0;
    struct stat about;
    if (o->height < 0 || o->width < 0 || (o->height > 0) != (o->width > 0)) {
        return dm_error_set(DM_ERR_ARG, "dm_data_convert: height is %lld and width %lld: both or neither",
                            (long long)o->height, (long long)o->width);
    }
    const char *other = images                      ? NULL
                        : o->root                   ? "root"
                        : o->height                 ? "height and width"
                        : o->gray                   ? "gray"
                        : o->encoded                ? "encoded"
                        : o->skip_damaged && !skips ? "skip_damaged"
                                                    : NULL;
    if (other) {
        return dm_error_set(DM_ERR_ARG, "dm_data_convert: from is %s, which has no use for %s", o->from, other);
    }
    if (o->encoded && (o->height || o->gray || nn_is_hdf5(o->database))) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_data_convert: encoded keeps the files of images as they are, and fits neither "
                            "height and width nor gray nor an HDF5 file");
    }
    if (images && o->root && stat(o->inputs[0], &about) == 0 && S_ISDIR(about.st_mode)) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_data_convert: %s is a folder: root is put before the paths of a list",
                            o->inputs[0]);
    }
    return DM_OK;
}

dm_status dm_data_convert(const dm_data_options *options, int64_t *count)
{
    dm_data_options known = DM_DATA_OPTIONS_INIT;
    const dm_data_options *o = &known;
    static const struct {
        const char *name;
        int least, most;
        dm_status (*convert)(const dm_data_options *, nn_sink *, int64_t *);
    } all[] = {{"idx", 2, 2, nn_convert_idx},           {"cifar10", 1, 1000, nn_convert_cifar},
               {"cifar100", 1, 1000, nn_convert_cifar}, {"images", 1, 1, nn_convert_images},
               {"lmdb", 1, 1, nn_convert_database},     {"leveldb", 1, 1, nn_convert_database},
               {"hdf5", 1, 1000, nn_convert_rows}};
    if (!options || !nn_sized_take(options, offsetof(dm_data_options, gray), &known, sizeof known) ||
        !o->from || !o->inputs || !o->database || !count) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_data_convert: from, inputs, database and count must be there, options be made "
                            "with DM_DATA_OPTIONS_INIT");
    }
    if (o->leveldb && nn_is_hdf5(o->database)) {
        return dm_error_set(DM_ERR_ARG, "dm_data_convert: %s is to be an HDF5 file, by its name, and a LevelDB",
                            o->database);
    }
    for (int i = 0; i < NN_COUNT(all); i++) {
        int64_t n = 0;
        if (strcmp(o->from, all[i].name) != 0) {
            continue;
        }
        for (int k = 0; k < o->input_count; k++) {
            if (!o->inputs[k]) {
                return dm_error_set(DM_ERR_ARG, "dm_data_convert: input %d is NULL", k);
            }
        }
        if (o->input_count < all[i].least || o->input_count > all[i].most) {
            return dm_error_set(DM_ERR_ARG, "dm_data_convert: %s needs %d input%s, not %d", o->from,
                                all[i].least, all[i].least > 1 ? "s" : "", o->input_count);
        }
        dm_status status = check_options(o);
        status = status == DM_OK ? convert(o, all[i].convert, &n) : status;
        *count = status == DM_OK ? n : *count;
        return status;
    }
    return dm_error_set(
        DM_ERR_ARG,
        "dm_data_convert: from is '%s': it may be idx, cifar10, cifar100, images, lmdb, leveldb or hdf5",
        o->from);
}

dm_status dm_data_convert_idx(const char *images, const char *labels, const char *database, int64_t *count)
{
    const char *const inputs[] = {images, labels};
    dm_data_options o = DM_DATA_OPTIONS_INIT;
    if (!images || !labels || !database || !count) {
        return dm_error_set(DM_ERR_ARG, "dm_data_convert_idx: an argument is NULL");
    }
    o.from = "idx";
    o.inputs = inputs;
    o.input_count = 2;
    o.database = database;
    return dm_data_convert(&o, count);
}

dm_status dm_image_read(const char *path, int color, int64_t height, int64_t width, unsigned char **bytes,
                        int64_t shape[3])
{
    nn_image image = {0};
    if (!path || !bytes || !shape || height < 0 || width < 0 || (height > 0) != (width > 0)) {
        return dm_error_set(
            DM_ERR_ARG, "dm_image_read: path, bytes and shape must be there, height and width both or neither");
    }
    dm_status status = nn_image_read(path, color ? NN_COLOUR : NN_GRAY, &image, NULL, NULL);
    if (status == DM_OK && height > 0) {
        status = nn_image_resize(&image, height, width);
    }
    if (status != DM_OK) {
        free(image.bytes);
        return status;
    }
    shape[0] = image.channels;
    shape[1] = image.height;
    shape[2] = image.width;
    *bytes = image.bytes;
    return DM_OK;
}
