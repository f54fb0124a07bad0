/* Batches of records for a data layer. */
#ifndef NN_BATCH_H
#define NN_BATCH_H

#include "data/feed.h"
#include "data/list.h"
#include "data/record.h"

/* Where records come from. Texts are the caller's, as long as the layer lives. */
typedef struct nn_origin {
    const char *path;
    bool listed;        /* images that the file lists */
    nn_backend backend; /* else a database */
    nn_list_setup list;
} nn_origin;
dm_status nn_origin_open(const nn_origin *origin, nn_source **out);

typedef struct nn_batch_setup {
    nn_origin origin;
    nn_source *source; /* of it; ended by the batch, also where this fails */
    int64_t size;      /* records a batch */
    bool shuffle;      /* anew in each round */
    int64_t skip;      /* begin at random behind up to so many records */
} nn_batch_setup;

/* All records must have the shape of the first, or be cropped to one. Sets the shapes of the layer's tops.
 * Errors name the layer, or the source and the record. */
dm_status nn_batch_open(nn_layer *layer, const nn_batch_setup *setup, nn_feed **out);

extern const nn_feed_type nn_batch_feed;

#endif
