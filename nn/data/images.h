/* Batches of bytes on their way to the first top of a data layer: the workers convert them, with mean, scale
 * and mirror (dm_images_forward). They are written to two arrays in turn, so that a batch is on its way while a
 * step runs. */
#ifndef NN_IMAGES_H
#define NN_IMAGES_H

#include "data/transform.h"

typedef struct nn_images nn_images;

/* shape: channels, rows, columns of what leaves here. The arrays are made when the first batch comes.
 * `transform` must live as long. */
dm_status nn_images_open(const nn_transform *transform, int64_t size, const int64_t shape[3], nn_images **out);
void nn_images_close(nn_images *images); /* accepts NULL */
/* The arrays get whole records of this shape instead (nn_transform_whole). Before the first batch. */
void nn_images_whole(nn_images *images, const int64_t record[3]);
/* The arrays of the next batch, which are to be written. windows: size x channels x rows x columns; places:
 * size x 3, of nn_transform_cut. */
dm_status nn_images_next(nn_images *images, dm_array *windows, dm_array *places);
/* top = the batch that has been written. */
dm_status nn_images_forward(const nn_images *images, dm_array top);

#endif
