/* From a record to the elements of a batch: mean, scale, crop and mirror as transform_param says. */
#ifndef NN_TRANSFORM_H
#define NN_TRANSFORM_H

#include "data/pack.h"
#include "data/record.h"
#include "net/net.h"

typedef struct nn_transform {
    const nn_layer *layer; /* NULL in other processes */
    bool train, mirror;
    nn_colour colour;
    int64_t crop;
    double scale;
    float *mean; /* channels x height x width, one a channel, or NULL */
    int64_t mean_channels, mean_height, mean_width;
} nn_transform;

dm_status nn_transform_read(const nn_layer *layer, nn_transform *out); /* drop it also where it fails */
void nn_transform_drop(nn_transform *transform);
/* For another process, and there, where it has no layer. mean: it is needed. */
void nn_transform_pack(const nn_transform *transform, bool mean, nn_pack *out);
dm_status nn_transform_unpack(nn_unpack *in, nn_transform *out); /* drop it also where it fails */
/* Mean images of files: a BlobProto. */
dm_status nn_mean_read(const char *path, float **mean, int64_t shape[3]);
/* Does a record fit the mean, and shape (channels, height, width of what leaves here)? why: what is wrong. */
bool nn_transform_fits(const nn_transform *transform, const nn_record *record, const int64_t shape[3],
                       char *why, size_t room);
/* What dm_images_forward takes of a record of bytes: its window, channel by channel, and its place in the
 * record. random: of this record in this round. */
void nn_transform_cut(const nn_transform *transform, const nn_record *record, const int64_t shape[3],
                      uint64_t random, unsigned char *window, int32_t place[3]);
/* The same with as many bytes as a record of the shape `whole` has: a record of this shape as it is, of another
 * its window in the first rows and columns. out: NULL where of a record of this shape only the place is wanted.
 */
void nn_transform_whole(const nn_transform *transform, const nn_record *record, const int64_t shape[3],
                        const int64_t whole[3], uint64_t random, unsigned char *out, int32_t place[3]);
/* The same, of any record, done here: out: height x width x channels. */
void nn_transform_apply(const nn_transform *transform, const nn_record *record, const int64_t shape[3],
                        uint64_t random, float *out);

#endif
