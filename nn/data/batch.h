/* Batches of records for a data layer. */
#ifndef NN_BATCH_H
#define NN_BATCH_H

#include "data/feed.h"
#include "data/record.h"

typedef struct nn_batch_setup {
    nn_source *source; /* ended by the batch, also where this fails */
    int64_t size;      /* records a batch */
    bool shuffle;      /* anew in each round */
    int64_t skip;      /* begin at random behind up to so many records */
} nn_batch_setup;

/* All records must have the shape of the first, or be cropped to one. Sets the shapes of the layer's tops.
 * Errors name the layer, or the source and the record. */
dm_status nn_batch_open(nn_layer *layer, const nn_batch_setup *setup, nn_feed **out);

#endif
