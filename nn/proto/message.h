/* A message in memory: the values of its fields, with the lines of the file that they come from. */
#ifndef NN_MESSAGE_H
#define NN_MESSAGE_H

#include "proto/schema.h"

#include <dmath/dmath.h>

typedef struct nn_text {
    char *bytes; /* with a 0 behind them */
    size_t length;
} nn_text;

typedef struct nn_message nn_message;

/* The values of one field, in the order of the file. */
typedef struct nn_entry {
    const nn_field *field;
    int64_t count, room;
    union {
        int64_t *integer; /* bool, integers, enums */
        float *real32;
        double *real;
        nn_text *text; /* string, bytes */
        nn_message **message;
        void *data;
    } at;
    int line;  /* of the first value; 0 of one that no text file has */
    bool used; /* somebody has asked for it: nn_unused */
    bool lent; /* its texts are not its own: nn_wire_parse_in_place */
} nn_entry;

struct nn_message {
    const char *type;
    const char *file; /* for error messages: the document's */
    int line;
    nn_entry *entries;
    int count;
};

/* What a file holds: the message and the name of the file, which messages inside refer to. */
typedef struct nn_document {
    nn_message *root;
    char *file;
} nn_document;

dm_status nn_document_new(const char *type, const char *file, nn_document **out);
void nn_document_free(nn_document *document);

/* --- making; DM_ERR_NOMEM */
dm_status nn_message_new(const nn_message *parent, const char *type, int line, nn_message **out);
void nn_message_free(nn_message *message);
/* A copy; of file and lines too, which the first one's document must outlive. */
dm_status nn_message_copy(const nn_message *message, nn_message **out);
/* dst's fields are those of src where src has them; repeated ones are joined, messages merged. */
dm_status nn_message_merge(nn_message *dst, const nn_message *src);
/* Room for `more` further values of a field; a new entry if there is none. */
dm_status nn_entry_grow(nn_message *message, const nn_field *field, int64_t more, nn_entry **out);
void nn_entry_clear(nn_entry *entry);
/* Adds copies of an entry's values to those of a field of the same type, with their line. */
dm_status nn_entry_copy(nn_message *dst, const nn_field *field, const nn_entry *from);
/* Add a value to a repeated field, or set another. The field must be in the schema. */
dm_status nn_set_int(nn_message *message, const char *field, int64_t value);
dm_status nn_set_real(nn_message *message, const char *field, double value);
dm_status nn_set_text(nn_message *message, const char *field, const char *bytes, size_t length);
dm_status nn_set_string(nn_message *message, const char *field, const char *text);
dm_status nn_set_message(nn_message *message, const char *field, nn_message **out);

/* --- asking. The field must be in the schema. Where the message lacks it, or is NULL, the schema's default is
 * given. Each marks the field as used. `type` is that of a message that may be NULL. */
nn_entry *nn_entry_of(const nn_message *message, const char *field); /* NULL if there is none; marks nothing */
nn_entry *nn_entry_at(const nn_message *message,
                      const nn_field *field);                        /* of a row of the message's own schema */
bool nn_has(const nn_message *message, const char *field);           /* marks nothing */
int64_t nn_count(const nn_message *message, const char *field);
int64_t nn_int(const nn_message *message, const char *type, const char *field);
double nn_real(const nn_message *message, const char *type, const char *field);
const char *nn_string(const nn_message *message, const char *type, const char *field);
nn_message *nn_sub(const nn_message *message, const char *field); /* NULL if there is none */
int64_t nn_int_at(const nn_message *message, const char *field, int64_t i);
double nn_real_at(const nn_message *message, const char *field, int64_t i);
const char *nn_string_at(const nn_message *message, const char *field, int64_t i);
nn_message *nn_sub_at(const nn_message *message, const char *field, int64_t i);
/* Line of a field, or of the message where it lacks the field. */
int nn_line(const nn_message *message, const char *field);
/* Marks all fields of a message and of those inside as used: of a layer that another phase has. */
void nn_use_all(nn_message *message);
void nn_use(const nn_message *message, const char *field);
/* DM_ERR_UNSUPPORTED with file, line and name of a field that is there and nobody has asked for; DM_OK if there
 * is none. */
dm_status nn_unused(const nn_message *message);
/* Notes "FILE:LINE: text" and returns the status. */
dm_status nn_fail_at(const nn_message *message, int line, dm_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
