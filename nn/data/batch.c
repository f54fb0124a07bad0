/* Batches of records. */
#include "data/batch.h"

#include "data/record.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

static const char T[] = "TransformationParameter";

struct nn_batch {
    nn_layer *layer;
    nn_source *source;
    int64_t size, channels, height, width; /* of a batch; of an image as it leaves here */
    int64_t crop;
    bool mirror;
    double scale;
    float *mean; /* channels x mean_height x mean_width, or NULL */
    int64_t mean_channels, mean_height, mean_width;
    float *images, *labels;
    int64_t done;    /* records that were read, since the first iteration */
    nn_record first; /* read at the start, to see its shape */
    bool has_first;
};

void nn_batch_close(nn_batch *b)
{
    if (b) {
        nn_record_drop(&b->first);
        nn_source_close(b->source);
        free(b->mean);
        free(b->images);
        free(b->labels);
        free(b);
    }
}

/* The mean image of a file. */
static dm_status read_mean_file(nn_batch *b, const char *path)
{
    nn_document *d = NULL;
    dm_status status = nn_wire_read(path, "BlobProto", &d);
    if (status != DM_OK) {
        return nn_layer_fail(b->layer, "transform_param", status, "cannot read its mean: %s",
                             dm_error_message());
    }
    const nn_message *shape = nn_sub(d->root, "shape"), *m = d->root;
    int64_t dims = nn_count(shape, "dim"), n[3];
    for (int i = 0; i < 3; i++) {
        static const char *const old[] = {"channels", "height", "width"};
        n[i] = dims >= 3 ? nn_int_at(shape, "dim", dims - 3 + i) : nn_int(m, "BlobProto", old[i]);
    }
    const nn_entry *data = nn_entry_of(m, "data");
    bool sane = n[0] > 0 && n[1] > 0 && n[2] > 0 && n[0] < 1 << 20 && n[1] < 1 << 20 && n[2] < 1 << 20;
    if (!sane || !data || data->count != n[0] * n[1] * n[2]) {
        status =
            nn_layer_fail(b->layer, "transform_param", DM_ERR_FORMAT,
                          "has the mean file %s, which is no image with as many elements as it says", path);
    } else if (!(b->mean = malloc((size_t)data->count * sizeof(float)))) {
        status = nn_no_memory();
    } else {
        memcpy(b->mean, data->at.real32, (size_t)data->count * sizeof(float));
        b->mean_channels = n[0];
        b->mean_height = n[1];
        b->mean_width = n[2];
    }
    nn_document_free(d);
    return status;
}

static dm_status read_mean_values(nn_batch *b, const nn_message *t)
{
    int64_t count = nn_count(t, "mean_value");
    if (!(b->mean = malloc((size_t)count * sizeof(float)))) {
        return nn_no_memory();
    }
    for (int64_t i = 0; i < count; i++) {
        b->mean[i] = (float)nn_real_at(t, "mean_value", i);
    }
    b->mean_channels = count;
    b->mean_height = b->mean_width = 1;
    return DM_OK;
}

static dm_status read_transform(nn_batch *b)
{
    const nn_message *t = nn_sub(b->layer->message, "transform_param");
    bool file = nn_has(t, "mean_file");
    b->scale = nn_real(t, T, "scale");
    b->mirror = nn_int(t, T, "mirror") != 0;
    b->crop = nn_int(t, T, "crop_size");
    if (nn_int(t, T, "force_color") || nn_int(t, T, "force_gray")) {
        return nn_fail_at(t, t->line, DM_ERR_UNSUPPORTED,
                          "force_color and force_gray are for encoded images, which are not "
                          "supported");
    }
    if (file && nn_count(t, "mean_value")) {
        return nn_fail_at(t, nn_line(t, "mean_value"), DM_ERR_FORMAT,
                          "only one of mean_file and mean_value may be there");
    }
    if (file) {
        return read_mean_file(b, nn_string(t, T, "mean_file"));
    }
    return nn_count(t, "mean_value") ? read_mean_values(b, t) : DM_OK;
}

static dm_status check_shape(nn_batch *b, const nn_record *r)
{
    bool whole = b->mean && b->mean_height * b->mean_width > 1;
    if (r->height < b->crop || r->width < b->crop) {
        return nn_layer_fail(b->layer, "transform_param", DM_ERR_SHAPE,
                             "crops %lld, but a record is %lld x %lld", (long long)b->crop,
                             (long long)r->height, (long long)r->width);
    }
    if (r->channels != b->channels || (!b->crop && (r->height != b->height || r->width != b->width))) {
        return nn_layer_fail(b->layer, "data_param", DM_ERR_SHAPE,
                             "reads a record of %lld x %lld x %lld, others are %lld x %lld x %lld",
                             (long long)r->channels, (long long)r->height, (long long)r->width,
                             (long long)b->channels, (long long)b->height, (long long)b->width);
    }
    if (b->mean && ((b->mean_channels != r->channels && b->mean_channels != 1) ||
                    (whole && (b->mean_channels != r->channels || b->mean_height != r->height ||
                               b->mean_width != r->width)))) {
        return nn_layer_fail(b->layer, "transform_param", DM_ERR_SHAPE,
                             "has a mean of another shape than its records");
    }
    return DM_OK;
}

dm_status nn_batch_open(nn_layer *layer, const char *source, int64_t size, nn_batch **out)
{
    nn_batch *b = calloc(1, sizeof *b);
    if (!b) {
        return nn_no_memory();
    }
    b->layer = layer;
    b->size = size;
    dm_status status = read_transform(b);
    if (status == DM_OK) {
        status = nn_source_open(source, &b->source);
        status = status == DM_OK ? nn_source_next(b->source, &b->first) : status;
        if (status != DM_OK) {
            status = nn_layer_fail(layer, "source", status, "cannot read its data: %s", dm_error_message());
        }
    }
    if (status == DM_OK) {
        b->has_first = true;
        b->channels = b->first.channels;
        b->height = b->crop ? b->crop : b->first.height;
        b->width = b->crop ? b->crop : b->first.width;
        status = check_shape(b, &b->first);
    }
    int64_t each = b->channels * b->height * b->width;
    if (status == DM_OK && size > (INT64_C(1) << 40) / each) {
        status = nn_layer_fail(layer, "batch_size", DM_ERR_LIMIT, "has a batch of more than 2^40 elements");
    }
    if (status == DM_OK) {
        b->images = malloc((size_t)(size * each) * sizeof(float));
        b->labels = malloc((size_t)size * sizeof(float));
        status = b->images && b->labels ? DM_OK : nn_no_memory();
    }
    if (status != DM_OK) {
        nn_batch_close(b);
        return status;
    }
    *out = b;
    return DM_OK;
}

void nn_batch_shape(const nn_batch *b, int64_t *shape)
{
    memcpy(shape, (int64_t[]){b->size, b->channels, b->height, b->width}, 4 * sizeof *shape);
}

/* (element - mean at its place in the record) * scale; crop: at random in training, else the middle; then
 * mirror. */
static void transform(const nn_batch *b, const nn_record *r, float *out)
{
    uint64_t random =
        nn_hash(nn_hash(b->layer->net->seed, (uint64_t)b->layer->index + 2000003), (uint64_t)b->done);
    bool train = b->layer->net->phase == NN_TRAIN, mirrored = b->mirror && random >> 63;
    int64_t top = r->height - b->height, left = r->width - b->width;
    top = train ? (int64_t)((random & 0xffffffff) % (uint64_t)(top + 1)) : top / 2;
    left = train ? (int64_t)((random >> 32 & 0x7fffffff) % (uint64_t)(left + 1)) : left / 2;
    float scale = (float)b->scale;
    bool plane = b->mean_height * b->mean_width > 1;
    for (int64_t c = 0; c < b->channels; c++) {
        int64_t mean_channel = b->mean_channels == 1 ? 0 : c;
        for (int64_t y = 0; y < b->height; y++) {
            for (int64_t x = 0; x < b->width; x++) {
                int64_t place = (y + top) * r->width + x + left, at = c * r->height * r->width + place;
                float value = r->bytes ? (float)r->bytes[at] : r->reals[at];
                if (b->mean) {
                    value -= b->mean[plane ? at : mean_channel];
                }
                int64_t to = mirrored ? b->width - 1 - x : x;
                out[(y * b->width + to) * b->channels + c] = value * scale;
            }
        }
    }
}

static dm_status next_record(nn_batch *b, nn_record *out)
{
    if (b->has_first) {
        *out = b->first;
        b->first = (nn_record){0};
        b->has_first = false;
        return DM_OK;
    }
    return nn_source_next(b->source, out);
}

dm_status nn_batch_next(nn_batch *b, dm_array data, dm_array labels)
{
    dm_session *s = b->layer->net->session;
    int64_t each = b->channels * b->height * b->width;
    for (int64_t i = 0; i < b->size; i++) {
        nn_record r = {0};
        dm_status status = next_record(b, &r);
        status = status == DM_OK ? check_shape(b, &r) : status;
        if (status == DM_OK) {
            transform(b, &r, b->images + i * each);
            b->labels[i] = (float)r.label;
            b->done++;
        }
        nn_record_drop(&r);
        if (status != DM_OK) {
            return status;
        }
    }
    dm_status status = dm_write(s, data, b->images);
    return status == DM_OK && labels.id ? dm_write(s, labels, b->labels) : status;
}

dm_status nn_batch_skip(nn_batch *b, int64_t batches)
{
    int64_t records = batches * b->size;
    b->done += records;
    if (records > 0 && b->has_first) {
        nn_record_drop(&b->first);
        b->has_first = false;
        records--;
    }
    return nn_source_skip(b->source, records);
}
