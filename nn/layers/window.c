/* WindowData: windows of images, some of the foreground and the rest of the background, drawn at random by the
 * seed. */
#include "layers/layers.h"

#include "data/feed.h"
#include "data/image.h"
#include "data/transform.h"
#include "data/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char W[] = "WindowDataParameter";

typedef struct sampler {
    const char *source, *folder;
    char *text;          /* what they point to, or NULL */
    double threshold[2]; /* foreground, background */
    nn_windows windows;
    nn_transform transform;
    int64_t size, foreground, crop, pad, channels;
    bool square, skip_damaged;
    uint64_t seed;
} sampler;

static void close_sampler(void *state)
{
    sampler *s = state;
    nn_windows_drop(&s->windows);
    nn_transform_drop(&s->transform);
    free(s->text);
    free(s);
}

static dm_status image_of(const sampler *s, int64_t image, nn_image *out)
{
    size_t room = strlen(s->folder) + strlen(s->windows.image[image]) + 1;
    char *path = malloc(room);
    if (!path) {
        return dm_error_no_memory("a path", room);
    }
    snprintf(path, room, "%s%s", s->folder, s->windows.image[image]);
    dm_status status = nn_image_read(path, NN_COLOUR, out, NULL, NULL);
    free(path);
    return status;
}

/* A window of an image to its place; elements outside of the image stay 0. */
static void put(const sampler *s, const nn_image *cut, const nn_placed *p, bool mirrored, float *out)
{
    const nn_transform *t = &s->transform;
    int64_t off_y = (t->mean_height - s->crop) / 2, off_x = (t->mean_width - s->crop) / 2;
    bool plane = t->mean && t->mean_height * t->mean_width > 1;
    for (int64_t c = 0; c < cut->channels; c++) {
        for (int64_t y = 0; y < p->height; y++) {
            for (int64_t x = 0; x < p->width; x++) {
                int64_t row = y + p->down, col = x + p->right, from = mirrored ? p->width - 1 - x : x;
                float value = (float)cut->bytes[(c * p->height + y) * p->width + from];
                if (plane) {
                    value -= t->mean[(c * t->mean_height + row + off_y) * t->mean_width + col + off_x];
                } else if (t->mean) {
                    value -= t->mean[t->mean_channels == 1 ? 0 : c];
                }
                out[(row * s->crop + col) * cut->channels + c] = value * (float)t->scale;
            }
        }
    }
}

static dm_status put_window(const sampler *s, const nn_window *w, bool mirrored, float *out)
{
    nn_image image = {0}, cut = {0};
    nn_placed p;
    dm_status status = image_of(s, w->image, &image);
    status = status == DM_OK
                 ? nn_window_place(w->box, image.height, image.width, s->crop, s->pad, s->square, mirrored, &p)
                 : status;
    status =
        status == DM_OK ? nn_image_cut(&image, p.top, p.left, p.rows, p.cols, p.height, p.width, &cut) : status;
    if (status == DM_OK) {
        put(s, &cut, &p, mirrored, out);
    } else {
        status = dm_error_set(status, "%s:%lld: %s", s->source, (long long)s->windows.line[w->image],
                              dm_error_message());
    }
    free(image.bytes);
    free(cut.bytes);
    return status;
}

/* Caffe's order: the background first. */
static dm_status make(void *state, int64_t number, const nn_rows *rows, nn_page *page)
{
    const sampler *s = state;
    int64_t each = s->channels * s->crop * s->crop;
    dm_status status = DM_OK;
    memset(page->top[0], 0, (size_t)(rows->count * each) * sizeof(float));
    for (int64_t i = 0; status == DM_OK && i < rows->count; i++) {
        const int64_t row = rows->first + i;
        int kind = row >= s->size - s->foreground;
        uint64_t random = nn_hash(s->seed, (uint64_t)(number * s->size + row));
        for (int tries = 0; tries < 1000; tries++, random = nn_hash(random, 1)) {
            const nn_window *w = &s->windows.all[kind][random % (uint64_t)s->windows.count[kind]];
            status = put_window(s, w, s->transform.mirror && random >> 63, page->top[0] + i * each);
            page->top[1][i] = (float)w->label;
            if (status == DM_OK || !s->skip_damaged || status == DM_ERR_NOMEM) {
                break;
            }
            nn_page_damaged(page, dm_error_message());
        }
    }
    return status;
}

/* --- in other processes */
static dm_status pack(const void *state, nn_pack *out)
{
    const sampler *s = state;
    const int64_t numbers[] = {s->size,
                               s->foreground,
                               s->crop,
                               s->pad,
                               s->channels,
                               s->square,
                               s->skip_damaged,
                               (int64_t)s->seed,
                               s->windows.images,
                               s->windows.count[0],
                               s->windows.count[1]};
    nn_pack_text(out, s->source);
    nn_pack_text(out, s->folder);
    nn_pack_bytes(out, s->threshold, sizeof s->threshold);
    for (int i = 0; i < NN_COUNT(numbers); i++) {
        nn_pack_int(out, numbers[i]);
    }
    nn_transform_pack(&s->transform, true, out);
    return out->missed ? dm_error_no_memory("the settings of a data layer", out->missed) : DM_OK;
}

/* The windows must be those that the program's process has found, and the first image be there. */
static dm_status check_windows(const sampler *s, const int64_t wanted[3])
{
    const nn_windows *w = &s->windows;
    nn_image image = {0};
    if (w->images != wanted[0] || w->count[0] != wanted[1] || w->count[1] != wanted[2]) {
        return dm_error_set(DM_ERR_FORMAT, "%s: has other windows here than where the program runs", s->source);
    }
    dm_status status = w->images > 0 ? image_of(s, 0, &image) : DM_OK;
    free(image.bytes);
    return status == DM_ERR_IO ? status : DM_OK; /* damage is told when its turn comes */
}

static dm_status unpack(nn_unpack *in, sampler *s)
{
    const size_t bytes = (size_t)(in->end - in->at);
    s->text = malloc(bytes + 1);
    if (!s->text) {
        return dm_error_no_memory("the settings of a data layer", bytes + 1);
    }
    memcpy(s->text, in->at, bytes);
    nn_unpack own = {(unsigned char *)s->text, (unsigned char *)s->text + bytes, false};
    int64_t wanted[3];
    s->source = nn_unpack_text(&own);
    s->folder = nn_unpack_text(&own);
    const void *threshold = nn_unpack_bytes(&own, sizeof s->threshold);
    if (threshold) {
        memcpy(s->threshold, threshold, sizeof s->threshold);
    }
    s->size = nn_unpack_int(&own);
    s->foreground = nn_unpack_int(&own);
    s->crop = nn_unpack_int(&own);
    s->pad = nn_unpack_int(&own);
    s->channels = nn_unpack_int(&own);
    s->square = nn_unpack_int(&own) != 0;
    s->skip_damaged = nn_unpack_int(&own) != 0;
    s->seed = (uint64_t)nn_unpack_int(&own);
    for (int i = 0; i < 3; i++) {
        wanted[i] = nn_unpack_int(&own);
    }
    dm_status status = nn_transform_unpack(&own, &s->transform);
    status =
        status == DM_OK ? nn_windows_read(s->source, s->threshold[0], s->threshold[1], &s->windows) : status;
    return status == DM_OK ? check_windows(s, wanted) : status;
}

static dm_status open_packed(nn_unpack *in, void **out)
{
    sampler *s = calloc(1, sizeof *s);
    dm_status status = s ? unpack(in, s) : dm_error_no_memory("a data layer", sizeof *s);
    if (status == DM_OK) {
        *out = s;
    } else if (s) {
        close_sampler(s);
    }
    return status;
}

const nn_feed_type nn_window_feed = {"windows", make, close_sampler, pack, NULL, open_packed};

/* --- with the layer */
static dm_status check(nn_layer *l, const sampler *s)
{
    const nn_transform *t = &s->transform;
    bool plane = t->mean && t->mean_height * t->mean_width > 1;
    if (s->crop < 1 || s->size < 1 || s->pad < 0 || 2 * s->pad >= s->crop) {
        return nn_layer_fail(
            l, "window_data_param", DM_ERR_FORMAT,
            "needs a batch_size, a crop_size in transform_param, and a context_pad below half of it");
    }
    if (t->mean && ((t->mean_channels != s->channels && (plane || t->mean_channels != 1)) ||
                    (plane && (t->mean_height < s->crop || t->mean_width < s->crop)))) {
        return nn_layer_fail(l, "transform_param", DM_ERR_SHAPE, "has a mean that its windows do not fit");
    }
    for (int kind = 0; kind < 2; kind++) {
        int64_t wanted = kind ? s->foreground : s->size - s->foreground;
        if (wanted < 0 || (wanted > 0 && s->windows.count[kind] == 0)) {
            return nn_layer_fail(l, "source", DM_ERR_FORMAT,
                                 "takes %lld windows of the %s a batch, and %s has %lld", (long long)wanted,
                                 kind ? "foreground" : "background", s->source,
                                 (long long)s->windows.count[kind]);
        }
    }
    return DM_OK;
}

static dm_status open_sampler(nn_layer *l, sampler *s)
{
    const char *mode = nn_string(l->own, W, "crop_mode");
    s->source = nn_string(l->own, W, "source");
    s->folder = nn_string(l->own, W, "root_folder");
    s->size = nn_int(l->own, W, "batch_size");
    s->foreground = (int64_t)((double)s->size * nn_real(l->own, W, "fg_fraction"));
    s->pad = nn_int(l->own, W, "context_pad");
    s->square = strcmp(mode, "square") == 0;
    s->skip_damaged = l->net->skip_damaged;
    s->threshold[0] = nn_real(l->own, W, "fg_threshold");
    s->threshold[1] = nn_real(l->own, W, "bg_threshold");
    s->channels = 3;
    s->seed = nn_hash(l->net->seed, (uint64_t)l->index + 2000003);
    nn_use(l->own, "cache_images"); /* how Caffe computes */
    if (!s->square && strcmp(mode, "warp") != 0) {
        return nn_layer_fail(l, "crop_mode", DM_ERR_FORMAT, "has crop_mode '%s': it may be warp or square",
                             mode);
    }
    dm_status status = nn_transform_read(l, &s->transform);
    s->crop = s->transform.crop;
    if (status == DM_OK) {
        status = nn_windows_read(s->source, s->threshold[0], s->threshold[1], &s->windows);
        status = status == DM_OK
                     ? status
                     : nn_layer_fail(l, "source", status, "cannot read its windows: %s", dm_error_message());
    }
    status = status == DM_OK ? check(l, s) : status;
    status =
        status == DM_OK ? nn_top_shape(l, 0, 4, (int64_t[]){s->size, s->channels, s->crop, s->crop}) : status;
    return status == DM_OK ? nn_top_shape(l, 1, 1, &s->size) : status;
}

dm_status nn_window_setup(nn_layer *l)
{
    nn_feed *feed = NULL;
    sampler *s = calloc(1, sizeof *s);
    dm_status status = s ? open_sampler(l, s) : dm_error_no_memory("a data layer", sizeof *s);
    if (status != DM_OK) {
        if (s) {
            close_sampler(s);
        }
        return status;
    }
    status = nn_feed_open(l, &nn_window_feed, s, NULL, &feed);
    l->u.state = status == DM_OK ? feed : NULL;
    return status;
}

dm_status nn_window_forward(nn_layer *l)
{
    return nn_feed_next(l->u.state);
}

void nn_window_drop(nn_layer *l)
{
    nn_feed_close(l->u.state);
}
