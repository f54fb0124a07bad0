/* The schema's table and how it is searched. */
#include "proto/schema.h"

#include <string.h>

static const nn_field fields[] = {
#define NN_MESSAGE(message)
#define NN_FIELD(message, name, number, type, label, of, value)                                                \
    {#message, #name, number, NN_##type, NN_##label, #of, value},
#include "proto/schema_layers.def"
#include "proto/schema_net.def"
#include "proto/schema_old.def"
#undef NN_FIELD
#undef NN_MESSAGE
};

/* Numbers of rows: FIRST_message is that of its first one. */
enum {
#define NN_MESSAGE(message) FIRST_##message, BEFORE_##message = FIRST_##message - 1,
#define NN_FIELD(message, name, number, type, label, of, value) ROW_##message##_##name,
#include "proto/schema_layers.def"
#include "proto/schema_net.def"
#include "proto/schema_old.def"
#undef NN_FIELD
#undef NN_MESSAGE
};

static const struct message {
    const char *name;
    size_t length;
    int first;
} messages[] = {
#define NN_MESSAGE(message) {#message, sizeof #message - 1, FIRST_##message},
#define NN_FIELD(message, name, number, type, label, of, value)
#include "proto/schema_layers.def"
#include "proto/schema_net.def"
#include "proto/schema_old.def"
#undef NN_FIELD
#undef NN_MESSAGE
};

static const nn_enum enums[] = {
#define NN_ENUM(type, name, number) {#type, #name, number},
#include "proto/schema_enums.def"
#undef NN_ENUM
};

enum {
    FIELDS = sizeof fields / sizeof fields[0],
    MESSAGES = sizeof messages / sizeof messages[0],
    ENUMS = sizeof enums / sizeof enums[0]
};

const nn_field *nn_schema_all(int *count)
{
    *count = FIELDS;
    return fields;
}

const nn_field *nn_schema_fields(const char *message, int *count)
{
    const size_t length = strlen(message);
    for (int i = 0; i < MESSAGES; i++) {
        if (messages[i].length == length && memcmp(messages[i].name, message, length) == 0) {
            *count = (i + 1 < MESSAGES ? messages[i + 1].first : FIELDS) - messages[i].first;
            return &fields[messages[i].first];
        }
    }
    return NULL;
}

/* Rows are many, and few begin alike. */
static bool same(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

const nn_field *nn_schema_by_name(const char *message, const char *name)
{
    int count = 0;
    const nn_field *f = nn_schema_fields(message, &count);
    for (int i = 0; i < count; i++) {
        if (same(f[i].name, name)) {
            return &f[i];
        }
    }
    return NULL;
}

const nn_field *nn_schema_by_number(const char *message, int number)
{
    int count = 0;
    const nn_field *f = nn_schema_fields(message, &count);
    for (int i = 0; i < count; i++) {
        if (f[i].number == number) {
            return &f[i];
        }
    }
    return NULL;
}

const nn_enum *nn_enum_by_name(const char *type, const char *name)
{
    for (int i = 0; i < ENUMS; i++) {
        if (same(enums[i].type, type) && same(enums[i].name, name)) {
            return &enums[i];
        }
    }
    return NULL;
}

const nn_enum *nn_enum_by_number(const char *type, int64_t number)
{
    for (int i = 0; i < ENUMS; i++) {
        if (enums[i].number == number && same(enums[i].type, type)) {
            return &enums[i];
        }
    }
    return NULL;
}

bool nn_is_repeated(const nn_field *field)
{
    return field->label == NN_REPEATED || field->label == NN_PACKED;
}

const char *nn_type_name(nn_type type)
{
    static const char *const names[] = {
        [NN_BOOL] = "bool",   [NN_INT32] = "int32",    [NN_INT64] = "int64",   [NN_UINT32] = "uint32",
        [NN_FLOAT] = "float", [NN_DOUBLE] = "double",  [NN_STRING] = "string", [NN_BYTES] = "bytes",
        [NN_ENUM] = "enum",   [NN_MESSAGE] = "message"};
    return names[type];
}
