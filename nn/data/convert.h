/* Data sets to databases, their means, and what is in them. */
#ifndef NN_CONVERT_H
#define NN_CONVERT_H

#include "data/record.h"

#include <dmath/nn.h>

/* Puts a record of bytes or of numbers (channel after channel), or an encoded image, under the key of its
 * number; the others are NULL. */
typedef struct nn_put {
    int64_t channels, height, width, label;
    const unsigned char *bytes;
    const float *reals;
    const char *file;
    size_t file_bytes;
} nn_put;
dm_status nn_put_record(nn_sink *sink, int64_t number, const nn_put *record);

/* All records of a source; what cannot be read is an error, or left out, as the options say. */
dm_status nn_put_all(const dm_data_options *options, nn_source *source, nn_sink *sink, int64_t *count);
/* The list that a folder's images have beside their database. */
void nn_list_path(const char *database, char *path, size_t room);
bool nn_is_there(const char *path);

/* Sources of dm_data_convert; *count: how many records. */
dm_status nn_convert_idx(const dm_data_options *options, nn_sink *sink, int64_t *count);
dm_status nn_convert_cifar(const dm_data_options *options, nn_sink *sink, int64_t *count);
dm_status nn_convert_images(const dm_data_options *options, nn_sink *sink, int64_t *count);
dm_status nn_convert_rows(const dm_data_options *options, nn_sink *sink, int64_t *count);
dm_status nn_convert_database(const dm_data_options *options, nn_sink *sink, int64_t *count);

#endif
