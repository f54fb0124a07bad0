/* Mean, scale, crop and mirror. */
#include "data/transform.h"

#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char T[] = "TransformationParameter";

void nn_transform_drop(nn_transform *t)
{
    free(t->mean);
    t->mean = NULL;
}

dm_status nn_mean_read(const char *path, float **mean, int64_t n[3])
{
    nn_document *d = NULL;
    dm_status status = nn_wire_read(path, "BlobProto", &d);
    if (status != DM_OK) {
        return status;
    }
    const nn_message *shape = nn_sub(d->root, "shape"), *m = d->root;
    int64_t dims = nn_count(shape, "dim");
    for (int i = 0; i < 3; i++) {
        static const char *const old[] = {"channels", "height", "width"};
        n[i] = dims >= 3 ? nn_int_at(shape, "dim", dims - 3 + i) : nn_int(m, "BlobProto", old[i]);
    }
    const nn_entry *data = NULL;
    status = nn_blob_singles(d->root, &data);
    bool sane = n[0] > 0 && n[1] > 0 && n[2] > 0 && n[0] < 1 << 20 && n[1] < 1 << 20 && n[2] < 1 << 20;
    if (status != DM_OK) {
        /* no memory */
    } else if (!sane || !data || data->count != n[0] * n[1] * n[2]) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: is no image with as many elements as it says", path);
    } else if (!(*mean = malloc((size_t)data->count * sizeof(float)))) {
        status = dm_error_no_memory("the mean of images", (size_t)data->count * sizeof(float));
    } else {
        memcpy(*mean, data->at.real32, (size_t)data->count * sizeof(float));
    }
    nn_document_free(d);
    return status;
}

static dm_status read_mean_values(nn_transform *t, const nn_message *m)
{
    int64_t count = nn_count(m, "mean_value");
    if (!(t->mean = malloc((size_t)count * sizeof(float)))) {
        return dm_error_no_memory("the means of channels", (size_t)count * sizeof(float));
    }
    for (int64_t i = 0; i < count; i++) {
        t->mean[i] = (float)nn_real_at(m, "mean_value", i);
    }
    t->mean_channels = count;
    t->mean_height = t->mean_width = 1;
    return DM_OK;
}

dm_status nn_transform_read(const nn_layer *layer, nn_transform *t)
{
    const nn_message *m = nn_sub(layer->message, "transform_param");
    bool colour = nn_int(m, T, "force_color") != 0, gray = nn_int(m, T, "force_gray") != 0;
    *t = (nn_transform){.layer = layer, .train = layer->net->phase == NN_TRAIN};
    t->scale = nn_real(m, T, "scale");
    t->mirror = nn_int(m, T, "mirror") != 0;
    t->crop = nn_int(m, T, "crop_size");
    if (colour && gray) {
        return nn_fail_at(m, nn_line(m, "force_gray"), DM_ERR_FORMAT,
                          "only one of force_color and force_gray may be there");
    }
    t->colour = colour ? NN_COLOUR : gray ? NN_GRAY : NN_AS_IS;
    if (nn_has(m, "mean_file") && nn_count(m, "mean_value")) {
        return nn_fail_at(m, nn_line(m, "mean_value"), DM_ERR_FORMAT,
                          "only one of mean_file and mean_value may be there");
    }
    if (nn_has(m, "mean_file")) {
        int64_t n[3] = {0, 0, 0};
        dm_status status = nn_mean_read(nn_string(m, T, "mean_file"), &t->mean, n);
        t->mean_channels = n[0];
        t->mean_height = n[1];
        t->mean_width = n[2];
        return status == DM_OK ? status
                               : nn_layer_fail(layer, "transform_param", status, "cannot read its mean: %s",
                                               dm_error_message());
    }
    return nn_count(m, "mean_value") ? read_mean_values(t, m) : DM_OK;
}

void nn_transform_pack(const nn_transform *t, bool mean, nn_pack *out)
{
    const int64_t count = t->mean && mean ? t->mean_channels * t->mean_height * t->mean_width : 0;
    const int64_t numbers[] = {t->train,       t->mirror,     t->crop, t->mean_channels,
                               t->mean_height, t->mean_width, count};
    for (int i = 0; i < NN_COUNT(numbers); i++) {
        nn_pack_int(out, numbers[i]);
    }
    nn_pack_bytes(out, &t->scale, sizeof t->scale);
    nn_pack_bytes(out, t->mean, (size_t)count * sizeof *t->mean);
}

dm_status nn_transform_unpack(nn_unpack *in, nn_transform *t)
{
    *t = (nn_transform){.train = nn_unpack_int(in) != 0};
    t->mirror = nn_unpack_int(in) != 0;
    t->crop = nn_unpack_int(in);
    t->mean_channels = nn_unpack_int(in);
    t->mean_height = nn_unpack_int(in);
    t->mean_width = nn_unpack_int(in);
    const int64_t count = nn_unpack_int(in);
    const void *scale = nn_unpack_bytes(in, sizeof t->scale),
               *mean = nn_unpack_bytes(in, (size_t)count * sizeof *t->mean);
    if (!scale || !mean) {
        return dm_error_set(DM_ERR_FORMAT, "the settings of a data layer are not whole");
    }
    memcpy(&t->scale, scale, sizeof t->scale);
    if (count > 0) {
        t->mean = malloc((size_t)count * sizeof *t->mean);
        if (!t->mean) {
            return dm_error_no_memory("the mean of images", (size_t)count * sizeof *t->mean);
        }
        memcpy(t->mean, mean, (size_t)count * sizeof *t->mean);
    }
    return DM_OK;
}

bool nn_transform_fits(const nn_transform *t, const nn_record *r, const int64_t shape[3], char *why,
                       size_t room)
{
    const bool mean = t->mean_channels > 0, whole = mean && t->mean_height * t->mean_width > 1;
    if (r->height < t->crop || r->width < t->crop) {
        snprintf(why, room, "crops %lld, but a record is %lld x %lld", (long long)t->crop, (long long)r->height,
                 (long long)r->width);
    } else if (r->channels != shape[0] || (!t->crop && (r->height != shape[1] || r->width != shape[2]))) {
        snprintf(why, room, "reads a record of %lld x %lld x %lld, others are %lld x %lld x %lld",
                 (long long)r->channels, (long long)r->height, (long long)r->width, (long long)shape[0],
                 (long long)shape[1], (long long)shape[2]);
    } else if (mean && ((t->mean_channels != r->channels && t->mean_channels != 1) ||
                        (whole && (t->mean_channels != r->channels || t->mean_height != r->height ||
                                   t->mean_width != r->width)))) {
        snprintf(why, room, "has a mean of another shape than its records");
    } else {
        return true;
    }
    return false;
}

/* Where the window is: at random in training, else the middle. */
static void place(const nn_transform *t, const nn_record *r, const int64_t shape[3], uint64_t random,
                  int32_t place[3])
{
    const int64_t top = r->height - shape[1], left = r->width - shape[2];
    place[0] = (int32_t)(t->train ? (int64_t)((random & 0xffffffff) % (uint64_t)(top + 1)) : top / 2);
    place[1] = (int32_t)(t->train ? (int64_t)((random >> 32 & 0x7fffffff) % (uint64_t)(left + 1)) : left / 2);
    place[2] = t->mirror && random >> 63;
}

/* The window at a place, to rows of `width` and channels of `height` of them. */
static void cut(const nn_record *r, const int64_t shape[3], const int32_t at[3], int64_t height, int64_t width,
                unsigned char *to)
{
    for (int64_t c = 0; c < shape[0]; c++) {
        const unsigned char *from = r->bytes + (c * r->height + at[0]) * r->width + at[1];
        for (int64_t y = 0; y < shape[1]; y++) {
            memcpy(to + (c * height + y) * width, from + y * r->width, (size_t)shape[2]);
        }
    }
}

void nn_transform_cut(const nn_transform *t, const nn_record *r, const int64_t shape[3], uint64_t random,
                      unsigned char *window, int32_t at[3])
{
    place(t, r, shape, random, at);
    cut(r, shape, at, shape[1], shape[2], window);
}

void nn_transform_whole(const nn_transform *t, const nn_record *r, const int64_t shape[3],
                        const int64_t whole[3], uint64_t random, unsigned char *out, int32_t at[3])
{
    const bool same = r->height == whole[1] && r->width == whole[2];
    place(t, r, shape, random, at);
    if (same && out) {
        memcpy(out, r->bytes, (size_t)(whole[0] * whole[1] * whole[2]));
    } else if (!same) {
        cut(r, shape, at, whole[1], whole[2], out);
        at[0] = at[1] = 0;
    }
}

/* (element - mean at its place in the record) * scale; then mirror. */
void nn_transform_apply(const nn_transform *t, const nn_record *r, const int64_t shape[3], uint64_t random,
                        float *out)
{
    const int64_t channels = shape[0], height = shape[1], width = shape[2];
    int32_t at_place[3];
    place(t, r, shape, random, at_place);
    const int64_t top = at_place[0], left = at_place[1];
    const bool mirrored = at_place[2], plane = t->mean_height * t->mean_width > 1;
    float scale = (float)t->scale;
    for (int64_t c = 0; c < channels; c++) {
        int64_t mean_channel = t->mean_channels == 1 ? 0 : c;
        for (int64_t y = 0; y < height; y++) {
            for (int64_t x = 0; x < width; x++) {
                int64_t place = (y + top) * r->width + x + left, at = c * r->height * r->width + place;
                float value = r->bytes ? (float)r->bytes[at] : r->reals[at];
                if (t->mean) {
                    value -= t->mean[plane ? at : mean_channel];
                }
                int64_t to = mirrored ? width - 1 - x : x;
                out[(y * width + to) * channels + c] = value * scale;
            }
        }
    }
}
