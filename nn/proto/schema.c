/* The schema's table and how it is searched. */
#include "proto/schema.h"

#include <string.h>

static const nn_field fields[] = {
#define NN_FIELD(message, name, number, type, label, of, value)                                                \
    {#message, #name, number, NN_##type, NN_##label, #of, value},
#include "proto/schema_layers.def"
#include "proto/schema_net.def"
#include "proto/schema_old.def"
#undef NN_FIELD
};

static const nn_enum enums[] = {
#define NN_ENUM(type, name, number) {#type, #name, number},
#include "proto/schema_enums.def"
#undef NN_ENUM
};

enum { FIELDS = sizeof fields / sizeof fields[0], ENUMS = sizeof enums / sizeof enums[0] };

const nn_field *nn_schema_all(int *count)
{
    *count = FIELDS;
    return fields;
}

const nn_field *nn_schema_fields(const char *message, int *count)
{
    int first = 0;
    while (first < FIELDS && strcmp(fields[first].message, message) != 0) {
        first++;
    }
    if (first == FIELDS) {
        return NULL;
    }
    int n = 1;
    while (first + n < FIELDS && strcmp(fields[first + n].message, message) == 0) {
        n++;
    }
    *count = n;
    return &fields[first];
}

const nn_field *nn_schema_by_name(const char *message, const char *name)
{
    int count = 0;
    const nn_field *f = nn_schema_fields(message, &count);
    for (int i = 0; i < count; i++) {
        if (strcmp(f[i].name, name) == 0) {
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
        if (strcmp(enums[i].type, type) == 0 && strcmp(enums[i].name, name) == 0) {
            return &enums[i];
        }
    }
    return NULL;
}

const nn_enum *nn_enum_by_number(const char *type, int64_t number)
{
    for (int i = 0; i < ENUMS; i++) {
        if (strcmp(enums[i].type, type) == 0 && enums[i].number == number) {
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
