/* Batches of records for a data layer: mean, scale, crop and mirror as its transform_param says. */
#ifndef NN_BATCH_H
#define NN_BATCH_H

#include "net/net.h"

typedef struct nn_batch nn_batch;

/* All records must have the shape of the first, or be cropped to one. Errors name the layer, or the database
 * and the record. */
dm_status nn_batch_open(nn_layer *layer, const char *source, int64_t size, nn_batch **out);
void nn_batch_close(nn_batch *batch);                       /* accepts NULL */
void nn_batch_shape(const nn_batch *batch, int64_t *shape); /* N, C, H, W */
/* Writes the next batch; labels may be DM_NO_ARRAY. */
dm_status nn_batch_next(nn_batch *batch, dm_array data, dm_array labels);
/* As if so many batches had been read. */
dm_status nn_batch_skip(nn_batch *batch, int64_t batches);

#endif
