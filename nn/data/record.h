/* Records of data layers, and where they come from. */
#ifndef NN_RECORD_H
#define NN_RECORD_H

#include "proto/message.h"

/* What colours an image is to have: those of its file, blue green red, gray. */
typedef enum nn_colour { NN_AS_IS, NN_COLOUR, NN_GRAY } nn_colour;

/* One image with its label, as Caffe's Datum: rows of a channel one after another, channel after channel. */
typedef struct nn_record {
    nn_document *datum;     /* owns what the rest points to, or NULL */
    unsigned char *decoded; /* the same */
    float *copied;          /* the same */
    char *file;             /* the encoded image, of a list that keeps it; owned */
    size_t file_bytes;
    int64_t channels, height, width, label;
    const unsigned char *bytes; /* one of the two; the other is NULL */
    const float *reals;
} nn_record;

void nn_record_drop(nn_record *record);
/* The record that the bytes of a Datum are; encoded images are decoded. name: of the record, for messages.
 * stays: the bytes live as long as the record, which then points to them. Errors: DM_ERR_FORMAT,
 * DM_ERR_UNSUPPORTED, DM_ERR_NOMEM. */
dm_status nn_record_parse(const void *bytes, size_t length, const char *name, nn_colour colour, bool stays,
                          nn_record *out);

/* A collection of records; those of a database are in the order of its keys. Any thread may read any record. */
typedef struct nn_source nn_source;
typedef struct nn_source_type {
    /* Record i, 0 <= i < count. Errors name the source and the record. */
    dm_status (*read)(nn_source *source, int64_t i, nn_record *out);
    void (*close)(nn_source *source);
    /* The memory, whole pages, in which records lie that need no decoding, as long as the source is open; NULL:
     * there is none, or mincore does not tell which of its pages are there. */
    const void *(*memory)(const nn_source *source, int64_t *bytes);
} nn_source_type;
struct nn_source {
    const nn_source_type *type;
    char *path;
    int64_t count;
    nn_colour colour;
};

typedef enum nn_backend { NN_LEVELDB, NN_LMDB } nn_backend; /* the numbers of Caffe's enum DB */
dm_status nn_source_open(const char *path, nn_backend backend, nn_source **out);
void nn_source_close(nn_source *source); /* accepts NULL */
/* The rows of HDF5 files, which stay as they are meanwhile: those of the arrays `data` and `label`. */
dm_status nn_rows_open(const char *const *paths, int count, nn_source **out);
dm_status nn_lmdb_open(const char *path, nn_source **out);
dm_status nn_leveldb_open(const char *path, nn_source **out);
/* The name of a record in messages, from its key. */
void nn_key_name(const void *key, size_t length, char *out, size_t room);

/* A new database, which must not be there yet. */
typedef struct nn_sink nn_sink;
typedef struct nn_sink_type {
    dm_status (*put)(nn_sink *sink, const char *key, const char *bytes, size_t length);
    dm_status (*close)(nn_sink *sink, dm_status status);
} nn_sink_type;
struct nn_sink {
    const nn_sink_type *type;
    char *path;
};
dm_status nn_sink_open(const char *path, nn_backend backend, nn_sink **out);
dm_status nn_rows_create(const char *path,
                         nn_sink **out); /* an HDF5 file of all records, as HDF5Data reads it */
dm_status nn_lmdb_create(const char *path, nn_sink **out);
dm_status nn_leveldb_create(const char *path, nn_sink **out);
dm_status nn_sink_put(nn_sink *sink, const char *key, const nn_message *datum);
/* Ends it, with all records on disk, if status is DM_OK; returns status or what failed here. */
dm_status nn_sink_close(nn_sink *sink, dm_status status);

#endif
