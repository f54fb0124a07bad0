/* The types of feeds, which workers that read their own records look for by name. */
#include "layers/layers.h"

#include "data/batch.h"
#include "data/readers.h"

extern const nn_feed_type nn_hdf5_feed, nn_window_feed;

const nn_feed_type *const nn_feed_types[] = {&nn_batch_feed, &nn_hdf5_feed, &nn_window_feed, NULL};
