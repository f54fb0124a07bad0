/* Batches of records. */
#include "data/batch.h"

#include "data/order.h"
#include "data/store.h"
#include "data/transform.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_DAMAGED = 1000 }; /* in a row */

typedef struct batch {
    const nn_layer *layer;
    nn_source *source;
    nn_transform transform;
    bool shuffle, skip_damaged;
    bool bytes; /* records hold bytes, which the workers convert */
    int64_t size, first;
    int64_t shape[3]; /* channels, height, width of what leaves here */
    uint64_t seed;
} batch;

static void close_batch(void *state)
{
    batch *b = state;
    nn_source_close(b->source);
    nn_transform_drop(&b->transform);
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

static dm_status read_fitting(const batch *b, int64_t i, nn_record *r)
{
    char why[256];
    dm_status status = b->source->type->read(b->source, i, r);
    if (status == DM_OK && !fits(b, r, why, sizeof why)) {
        nn_record_drop(r);
        status = nn_layer_fail(b->layer, "transform_param", DM_ERR_SHAPE, "%s (record %lld of %s)", why,
                               (long long)i, b->source->path);
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
        if (status != DM_ERR_FORMAT && status != DM_ERR_SHAPE && status != DM_ERR_IO) {
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

static dm_status make(void *state, int64_t number, nn_page *page)
{
    const batch *b = state;
    int64_t each = b->shape[0] * b->shape[1] * b->shape[2];
    for (int64_t i = 0; i < b->size; i++) {
        int64_t p = number * b->size + i;
        nn_record r = {0};
        dm_status status = read_place(b, p + b->first, page, &r);
        if (status != DM_OK) {
            return status;
        }
        const uint64_t random = nn_hash(b->seed, (uint64_t)p);
        if (b->bytes) {
            nn_transform_cut(&b->transform, &r, b->shape, random, page->windows + i * each,
                             page->places + 3 * i);
        } else {
            nn_transform_apply(&b->transform, &r, b->shape, random, page->top[0] + i * each);
        }
        if (b->layer->tops > 1) {
            page->top[1][i] = (float)r.label;
        }
        nn_record_drop(&r);
    }
    return DM_OK;
}

/* The first record that makes sense says which shape all have. */
static dm_status find_shape(batch *b)
{
    nn_record r = {0};
    dm_status status = b->source->type->read(b->source, 0, &r);
    for (int64_t i = 1; status == DM_ERR_FORMAT && b->skip_damaged && i < b->source->count && i < MOST_DAMAGED;
         i++) {
        status = b->source->type->read(b->source, i, &r);
    }
    if (status == DM_OK) {
        char why[256];
        int64_t crop = b->transform.crop;
        b->bytes = r.bytes != NULL;
        b->shape[0] = r.channels;
        b->shape[1] = crop ? crop : r.height;
        b->shape[2] = crop ? crop : r.width;
        if (!fits(b, &r, why, sizeof why)) {
            status = nn_layer_fail(b->layer, "transform_param", DM_ERR_SHAPE, "%s", why);
        }
        nn_record_drop(&r);
    }
    return status;
}

static dm_status set_tops(nn_layer *l, const batch *b)
{
    const int64_t shape[4] = {b->size, b->shape[0], b->shape[1], b->shape[2]};
    dm_status status = nn_top_shape(l, 0, 4, shape);
    return status == DM_OK && l->tops > 1 ? nn_top_shape(l, 1, 1, shape) : status;
}

dm_status nn_batch_open(nn_layer *layer, const nn_batch_setup *setup, nn_feed **out)
{
    static const nn_feed_type type = {make, close_batch};
    batch *b = calloc(1, sizeof *b);
    if (!b) {
        nn_source_close(setup->source);
        return nn_no_memory();
    }
    b->layer = layer;
    b->source = setup->source;
    b->size = setup->size;
    b->shuffle = setup->shuffle;
    b->skip_damaged = layer->net->skip_damaged;
    b->seed = nn_hash(layer->net->seed, (uint64_t)layer->index + 2000003);
    b->first = setup->skip ? (int64_t)(nn_hash(b->seed, 77) % (uint64_t)setup->skip) : 0;
    dm_status status = nn_transform_read(layer, &b->transform);
    if (status == DM_OK && b->source->colour == NN_AS_IS) {
        b->source->colour = b->transform.colour;
    }
    if (status == DM_OK && layer->net->store_bytes > 0) {
        nn_source *inner = b->source;
        b->source = NULL;
        status = nn_store_open(inner, layer->net->store_bytes, layer->net->store_folder, &b->source);
    }
    status = status == DM_OK ? find_shape(b) : status;
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
    return nn_feed_open(layer, &type, b, images, out);
}
