/* Batches of records. */
#include "data/batch.h"

#include "data/order.h"
#include "data/store.h"
#include "data/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DAMAGED = 1000 }; /* in a row */

typedef struct batch {
    nn_origin origin; /* of the process that has the layer */
    char *where;      /* what messages about a record's shape begin with */
    int64_t store_bytes;
    const char *store_folder;
    nn_source *source;
    nn_transform transform;
    bool shuffle, skip_damaged;
    bool bytes;  /* records hold bytes, which the workers convert */
    bool labels; /* wanted */
    int64_t sample; /* the record whose shape all have */
    int64_t size, first;
    int64_t shape[3]; /* channels, height, width of what leaves here */
    int64_t record[3];           /* of that record */
    const unsigned char *memory; /* of the source; NULL: there is none */
    int64_t memory_bytes;
    uint64_t seed;
} batch;

static void close_batch(void *state)
{
    batch *b = state;
    nn_source_close(b->source);
    nn_transform_drop(&b->transform);
    free(b->where);
    free(b);
}

/* The number in the source of the record at place p of an endless sequence. */
static int64_t record_at(const batch *b, int64_t p)
{
    int64_t count = b->source->count, round = p / count, i = p % count;
    return b->shuffle ? nn_shuffled(nn_hash(b->seed, (uint64_t)round), count, i) : i;
}

static bool fits(const batch *b, const nn_record *r, char *why, size_t room)
{
    if (b->bytes && !r->bytes) {
        snprintf(why, room, "reads a record of floats, others are of bytes");
        return false;
    }
    return nn_transform_fits(&b->transform, r, b->shape, why, room);
}

/* What --damaged skip passes over. */
static bool is_damage(dm_status status)
{
    return status == DM_ERR_FORMAT || status == DM_ERR_SHAPE || status == DM_ERR_IO;
}

static dm_status read_fitting(const batch *b, int64_t i, nn_record *r)
{
    char why[256];
    dm_status status = b->source->type->read(b->source, i, r);
    if (status == DM_OK && !fits(b, r, why, sizeof why)) {
        nn_record_drop(r);
        status = dm_error_set(DM_ERR_SHAPE, "%s%s (record %lld of %s)", b->where, why, (long long)i,
                              b->source->path);
    }
    return status;
}

/* The record at a place. The next one of the source that makes sense stands in for a damaged one, if that is
 * wanted: so a batch depends on its number alone. */
static dm_status read_place(const batch *b, int64_t p, nn_page *page, nn_record *r)
{
    int64_t i = record_at(b, p);
    dm_status status = read_fitting(b, i, r);
    for (int tries = 1; status != DM_OK && b->skip_damaged; tries++) {
        if (!is_damage(status)) {
            break;
        }
        if (tries == 1) { /* once a round */
            nn_page_damaged(page, dm_error_message());
        }
        if (tries == MOST_DAMAGED || tries == b->source->count) {
            return dm_error_set(status, "%d damaged records in a row, the last: %s", tries, dm_error_message());
        }
        status = read_fitting(b, (i + tries) % b->source->count, r);
    }
    return status;
}

static bool is_within(const batch *b, uintptr_t at)
{
    const uintptr_t begin = (uintptr_t)b->memory;
    return b->memory && at >= begin && at < begin + (uintptr_t)b->memory_bytes;
}

/* Does the source have the bytes of the record where they stay, and the shape that most have? */
static bool lies(const batch *b, const nn_record *r)
{
    return r->height == b->record[1] && r->width == b->record[2] && is_within(b, (uintptr_t)r->bytes);
}

/* Of a record of bytes. */
static void put_image(const batch *b, const nn_rows *rows, const nn_record *r, uint64_t random, int64_t i,
                      nn_page *page)
{
    unsigned char *to = page->windows + i * rows->each[0];
    int32_t *place = page->places + 3 * i;
    if (rows->whole) {
        page->lies[i] = lies(b, r) ? r->bytes : NULL;
        nn_transform_whole(&b->transform, r, b->shape, b->record, random, page->lies[i] ? NULL : to, place);
    } else {
        nn_transform_cut(&b->transform, r, b->shape, random, to, place);
    }
}

static dm_status make(void *state, int64_t number, const nn_rows *rows, nn_page *page)
{
    const batch *b = state;
    const int64_t each = rows->each[0];
    for (int64_t i = 0; i < rows->count; i++) {
        int64_t p = number * b->size + rows->first + i;
        nn_record r = {0};
        dm_status status = read_place(b, p + b->first, page, &r);
        if (status != DM_OK) {
            return status;
        }
        const uint64_t random = nn_hash(b->seed, (uint64_t)p);
        if (b->bytes) {
            put_image(b, rows, &r, random, i, page);
        } else {
            nn_transform_apply(&b->transform, &r, b->shape, random, page->top[0] + i * each);
        }
        if (b->labels) {
            page->top[1][i] = (float)r.label;
        }
        nn_record_drop(&r);
    }
    return DM_OK;
}

/* --- in other processes */
static const char *alone(const void *state)
{
    const batch *b = state;
    return !b->origin.listed && b->origin.backend == NN_LEVELDB ? "a LevelDB is open in one process only"
                                                                : NULL;
}

static dm_status pack(const void *state, nn_pack *out)
{
    const batch *b = state;
    const nn_list_setup *list = &b->origin.list;
    const int64_t numbers[] = {b->origin.listed, b->origin.backend, list->colour,      list->height,
                               list->width,      b->source->count,  b->source->colour, b->sample,
                               b->size,          b->first,          b->shuffle,        b->skip_damaged,
                               b->bytes,         b->labels,         b->shape[0],       b->shape[1],
                               b->shape[2],      (int64_t)b->seed,  b->store_bytes,    b->store_folder != NULL,
                               b->record[0],     b->record[1],      b->record[2]};
    nn_pack_text(out, b->origin.path);
    nn_pack_text(out, list->folder);
    nn_pack_text(out, b->where);
    nn_pack_text(out, b->store_folder);
    for (int i = 0; i < NN_COUNT(numbers); i++) {
        nn_pack_int(out, numbers[i]);
    }
    nn_transform_pack(&b->transform, !b->bytes, out); /* of bytes, workers take the mean off later */
    return out->missed ? dm_error_no_memory("the settings of a data layer", out->missed) : DM_OK;
}

/* Is it what the program's process has found under this name? A record of it must be readable too: a list may
 * be there without its images. bytes: where that record's are. */
static dm_status check_source(const nn_source *source, int64_t count, int64_t sample, uintptr_t *bytes)
{
    nn_record r = {0};
    if (source->count != count) {
        return dm_error_set(DM_ERR_FORMAT, "%s: has %lld records here, and %lld where the program runs",
                            source->path, (long long)source->count, (long long)count);
    }
    dm_status status = source->type->read((nn_source *)(uintptr_t)source, sample, &r);
    *bytes = (uintptr_t)r.bytes;
    nn_record_drop(&r);
    return status == DM_ERR_IO ? status : DM_OK; /* damage is told when its turn comes */
}

static dm_status store_if_wanted(batch *b)
{
    nn_source *inner = b->source;
    if (b->store_bytes <= 0) {
        return DM_OK;
    }
    b->source = NULL;
    return nn_store_open(inner, b->store_bytes, b->store_folder, &b->source);
}

static dm_status unpack(nn_unpack *in, batch *b)
{
    nn_origin *o = &b->origin;
    o->path = nn_unpack_text(in);
    o->list.folder = nn_unpack_text(in);
    const char *where = nn_unpack_text(in);
    b->where = strdup(where);
    const char *folder = nn_unpack_text(in);
    o->listed = nn_unpack_int(in) != 0;
    o->backend = (nn_backend)nn_unpack_int(in);
    o->list.colour = nn_unpack_int(in) != 0;
    o->list.height = nn_unpack_int(in);
    o->list.width = nn_unpack_int(in);
    const int64_t count = nn_unpack_int(in);
    const nn_colour colour = (nn_colour)nn_unpack_int(in);
    b->sample = nn_unpack_int(in);
    b->size = nn_unpack_int(in);
    b->first = nn_unpack_int(in);
    b->shuffle = nn_unpack_int(in) != 0;
    b->skip_damaged = nn_unpack_int(in) != 0;
    b->bytes = nn_unpack_int(in) != 0;
    b->labels = nn_unpack_int(in) != 0;
    for (int d = 0; d < 3; d++) {
        b->shape[d] = nn_unpack_int(in);
    }
    b->seed = (uint64_t)nn_unpack_int(in);
    b->store_bytes = nn_unpack_int(in);
    b->store_folder = nn_unpack_int(in) ? folder : NULL;
    uintptr_t bytes = 0;
    for (int d = 0; d < 3; d++) {
        b->record[d] = nn_unpack_int(in);
    }
    dm_status status =
        b->where ? nn_transform_unpack(in, &b->transform) : dm_error_no_memory("a text", strlen(where) + 1);
    if (status == DM_OK && in->failed) {
        status = dm_error_set(DM_ERR_FORMAT, "the settings of a data layer are not whole");
    }
    status = status == DM_OK ? nn_origin_open(o, &b->source) : status;
    if (status == DM_OK) {
        b->source->colour = colour;
        status = check_source(b->source, count, b->sample, &bytes);
    }
    status = status == DM_OK ? store_if_wanted(b) : status;
    if (status == DM_OK && b->source->type->memory) {
        b->memory = b->source->type->memory(b->source, &b->memory_bytes);
        b->memory = is_within(b, bytes) ? b->memory : NULL; /* else records are decoded */
    }
    return status;
}

static const void *memory(const void *state, int64_t *bytes, int64_t shape[3])
{
    const batch *b = state;
    *bytes = b->memory_bytes;
    memcpy(shape, b->record, sizeof b->record);
    return b->memory;
}

static dm_status open_packed(nn_unpack *in, void **out)
{
    batch *b = calloc(1, sizeof *b);
    dm_status status = b ? unpack(in, b) : dm_error_no_memory("a data layer", sizeof *b);
    if (status == DM_OK) {
        *out = b;
    } else if (b) {
        close_batch(b);
    }
    return status;
}

const nn_feed_type nn_batch_feed = {"records", make, close_batch, pack, alone, open_packed, memory};

/* --- with the layer */
dm_status nn_origin_open(const nn_origin *o, nn_source **out)
{
    return o->listed ? nn_list_open(o->path, &o->list, out) : nn_source_open(o->path, o->backend, out);
}

/* Gives records the shape of this one, if it fits the transformation. */
static dm_status take_shape(const nn_layer *layer, batch *b, const nn_record *r)
{
    char why[256];
    const int64_t crop = b->transform.crop;
    b->bytes = r->bytes != NULL;
    b->record[0] = b->shape[0] = r->channels;
    b->record[1] = r->height;
    b->record[2] = r->width;
    b->shape[1] = crop ? crop : r->height;
    b->shape[2] = crop ? crop : r->width;
    return fits(b, r, why, sizeof why) ? DM_OK
                                       : nn_layer_fail(layer, "transform_param", DM_ERR_SHAPE, "%s", why);
}

static void say_unused(const nn_layer *layer, const nn_message *m, const char *field, const char *why)
{
    nn_log(layer->net, "%s:%d: %s of layer '%s' has no effect: %s", m->file, nn_line(m, field), field,
           layer->name, why);
}

/* Colours can be had of images that are decoded alone. */
static void say_colours(const nn_layer *layer, const batch *b, const nn_record *r)
{
    static const char *const fields[] = {"force_color", "force_gray"};
    const nn_message *m = nn_sub(layer->message, "transform_param");
    const char *why = b->origin.listed ? "is_color of image_data_param counts"
                      : r->decoded     ? NULL
                                       : "the records are not encoded images";
    for (int i = 0; why && i < NN_COUNT(fields); i++) {
        if (nn_int(m, "TransformationParameter", fields[i])) {
            say_unused(layer, m, fields[i], why);
        }
    }
    if (why && !b->origin.listed && nn_int(layer->own, "DataParameter", "force_encoded_color")) {
        say_unused(layer, layer->own, "force_encoded_color", why);
    }
}

/* The first record that makes sense says which shape all have. If none does, the first one says why: where the
 * layer's settings are at fault, they fit no record. */
static dm_status find_shape(const nn_layer *layer, batch *b)
{
    dm_status status = DM_ERR_FORMAT, why = DM_OK;
    char first[1024] = "";
    int64_t i = 0;
    for (; is_damage(status) && i < b->source->count && i < MOST_DAMAGED && (i == 0 || b->skip_damaged); i++) {
        nn_record r = {0};
        status = b->source->type->read(b->source, i, &r);
        if (status == DM_OK) {
            status = take_shape(layer, b, &r);
            say_colours(layer, b, &r);
            nn_record_drop(&r);
        }
        if (i == 0 && status != DM_OK) {
            why = status;
            snprintf(first, sizeof first, "%s", dm_error_message());
        }
        b->sample = i;
    }
    return is_damage(status) && i > 1 ? dm_error_set(why, "%s; nor does one of the %lld records behind it fit",
                                                     first, (long long)i - 1)
                                      : status;
}

static dm_status set_tops(nn_layer *l, const batch *b)
{
    const int64_t shape[4] = {b->size, b->shape[0], b->shape[1], b->shape[2]};
    dm_status status = nn_top_shape(l, 0, 4, shape);
    return status == DM_OK && l->tops > 1 ? nn_top_shape(l, 1, 1, shape) : status;
}

/* "net.prototxt:7: layer 'data' " */
static dm_status note_where(const nn_layer *layer, batch *b)
{
    if (nn_layer_fail(layer, "transform_param", DM_ERR_SHAPE, "%s", "") != DM_OK) {
        b->where = strdup(dm_error_message());
    }
    return b->where ? DM_OK : dm_error_no_memory("a text", strlen(dm_error_message()) + 1);
}

dm_status nn_batch_open(nn_layer *layer, const nn_batch_setup *setup, nn_feed **out)
{
    batch *b = calloc(1, sizeof *b);
    if (!b) {
        nn_source_close(setup->source);
        return dm_error_no_memory("a data layer", sizeof *b);
    }
    b->origin = setup->origin;
    b->source = setup->source;
    b->labels = layer->tops > 1;
    b->store_bytes = layer->net->store_bytes;
    b->store_folder = layer->net->store_folder;
    b->size = setup->size;
    b->shuffle = setup->shuffle;
    b->skip_damaged = layer->net->skip_damaged;
    b->seed = nn_hash(layer->net->seed, (uint64_t)layer->index + 2000003);
    b->first = setup->skip ? (int64_t)(nn_hash(b->seed, 77) % (uint64_t)setup->skip) : 0;
    dm_status status = nn_transform_read(layer, &b->transform);
    if (status == DM_OK && b->source->colour == NN_AS_IS) {
        b->source->colour = b->transform.colour;
    }
    status = status == DM_OK ? note_where(layer, b) : status;
    status = status == DM_OK ? store_if_wanted(b) : status;
    status = status == DM_OK ? find_shape(layer, b) : status;
    status = status == DM_OK ? set_tops(layer, b) : status;
    if (status != DM_OK) {
        close_batch(b);
        return status;
    }
    nn_images *images = NULL;
    if (b->bytes && (status = nn_images_open(&b->transform, b->size, b->shape, &images)) != DM_OK) {
        close_batch(b);
        return status;
    }
    return nn_feed_open(layer, &nn_batch_feed, b, images, out);
}
