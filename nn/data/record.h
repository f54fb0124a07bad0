/* Records of data layers, and where they come from. */
#ifndef NN_RECORD_H
#define NN_RECORD_H

#include "proto/message.h"

/* One image with its label, as Caffe's Datum: rows of a channel one after another, channel after channel. */
typedef struct nn_record {
    nn_document *datum; /* owns what the rest points to */
    int64_t channels, height, width, label;
    const unsigned char *bytes; /* one of the two; the other is NULL */
    const float *reals;
} nn_record;

void nn_record_drop(nn_record *record);

/* A database of records in the order of its keys, from the first again after the last. */
typedef struct nn_source nn_source;
dm_status nn_source_open(const char *path, nn_source **out);
void nn_source_close(nn_source *source);
/* The next record. DM_ERR_FORMAT names the database and the key of a record that makes no sense. */
dm_status nn_source_next(nn_source *source, nn_record *out);
/* Leaves `count` records out. */
dm_status nn_source_skip(nn_source *source, int64_t count);
/* How many records there are. */
int64_t nn_source_count(const nn_source *source);

/* A new database, which must not be there yet. */
typedef struct nn_sink nn_sink;
dm_status nn_sink_open(const char *path, nn_sink **out);
dm_status nn_sink_put(nn_sink *sink, const char *key, const nn_message *datum);
/* Ends it, with all records on disk, if status is DM_OK; returns status or what failed here. */
dm_status nn_sink_close(nn_sink *sink, dm_status status);

#endif
