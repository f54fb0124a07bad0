/* Caffe's schema: which fields a message has. One table (schema_*.def) serves text and binary files. */
#ifndef NN_SCHEMA_H
#define NN_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nn_type {
    NN_BOOL,
    NN_INT32,
    NN_INT64,
    NN_UINT32,
    NN_FLOAT,
    NN_DOUBLE,
    NN_STRING,
    NN_BYTES,
    NN_ENUM,
    NN_MESSAGE
} nn_type;

typedef enum nn_label {
    NN_OPTIONAL,
    NN_REQUIRED,
    NN_REPEATED,
    NN_PACKED /* repeated, and one run of bytes in binary files */
} nn_label;

typedef struct nn_field {
    const char *message, *name;
    int number;
    nn_type type;
    nn_label label;
    const char *of;    /* the message or the enum of its values; "NONE" of plain types */
    const char *value; /* the default, as text; "" for none */
} nn_field;

typedef struct nn_enum {
    const char *type, *name;
    int number;
} nn_enum;

/* The fields of a message, and how many; NULL if there is no such message. */
const nn_field *nn_schema_fields(const char *message, int *count);
/* NULL if the message has none of this name, or number. */
const nn_field *nn_schema_by_name(const char *message, const char *name);
const nn_field *nn_schema_by_number(const char *message, int number);
/* A value of an enum; NULL if it has none of this name, or number. */
const nn_enum *nn_enum_by_name(const char *type, const char *name);
const nn_enum *nn_enum_by_number(const char *type, int64_t number);
bool nn_is_repeated(const nn_field *field);
/* "MESSAGE", for messages to people: the name of a type as the schema writes it. */
const char *nn_type_name(nn_type type);
/* All fields, for tests. */
const nn_field *nn_schema_all(int *count);

#endif
