/* Messages to bytes. */
#include "base/base.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

static size_t varint_bytes(uint64_t value)
{
    size_t n = 1;
    for (; value >= 128; value >>= 7) {
        n++;
    }
    return n;
}

static char *put_varint(char *at, uint64_t value)
{
    for (; value >= 128; value >>= 7) {
        *at++ = (char)(value | 128);
    }
    *at++ = (char)value;
    return at;
}

static size_t message_bytes(const nn_message *m);

/* Bytes of a value without its key and its length. */
static size_t value_bytes(const nn_entry *e, int64_t i)
{
    switch (e->field->type) {
    case NN_FLOAT:
        return 4;
    case NN_DOUBLE:
        return 8;
    case NN_STRING:
    case NN_BYTES:
        return e->at.text[i].length;
    case NN_MESSAGE:
        return message_bytes(e->at.message[i]);
    default:
        return varint_bytes((uint64_t)e->at.integer[i]);
    }
}

static bool has_length(nn_type type)
{
    return type == NN_STRING || type == NN_BYTES || type == NN_MESSAGE;
}

static uint64_t key_of(const nn_field *f)
{
    int wire = f->label == NN_PACKED || has_length(f->type) ? 2
               : f->type == NN_FLOAT                        ? 5
               : f->type == NN_DOUBLE                       ? 1
                                                            : 0;
    return (uint64_t)f->number << 3 | (uint64_t)wire;
}

static size_t values_bytes(const nn_entry *e)
{
    if (e->field->type == NN_FLOAT || e->field->type == NN_DOUBLE) {
        return (size_t)e->count * (e->field->type == NN_FLOAT ? 4 : 8);
    }
    size_t n = 0;
    for (int64_t i = 0; i < e->count; i++) {
        n += value_bytes(e, i);
    }
    return n;
}

static size_t entry_bytes(const nn_entry *e)
{
    size_t key = varint_bytes(key_of(e->field)), n = values_bytes(e);
    if (e->field->label == NN_PACKED) {
        return key + varint_bytes(n) + n;
    }
    n += key * (size_t)e->count;
    for (int64_t i = 0; has_length(e->field->type) && i < e->count; i++) {
        n += varint_bytes(value_bytes(e, i));
    }
    return n;
}

static size_t message_bytes(const nn_message *m)
{
    size_t n = 0;
    for (int i = 0; i < m->count; i++) {
        n += m->entries[i].count > 0 ? entry_bytes(&m->entries[i]) : 0;
    }
    return n;
}

static char *put_message(char *at, const nn_message *m);

static char *put_value(char *at, const nn_entry *e, int64_t i)
{
    size_t n = value_bytes(e, i);
    switch (e->field->type) {
    case NN_FLOAT:
        memcpy(at, &e->at.real32[i], n);
        return at + n;
    case NN_DOUBLE:
        memcpy(at, &e->at.real[i], n);
        return at + n;
    case NN_STRING:
    case NN_BYTES:
        memcpy(at, e->at.text[i].bytes, n);
        return at + n;
    case NN_MESSAGE:
        return put_message(at, e->at.message[i]);
    default:
        return put_varint(at, (uint64_t)e->at.integer[i]);
    }
}

static char *put_entry(char *at, const nn_entry *e)
{
    if (e->field->label == NN_PACKED) {
        at = put_varint(at, key_of(e->field));
        at = put_varint(at, values_bytes(e));
    }
    for (int64_t i = 0; i < e->count; i++) {
        if (e->field->label != NN_PACKED) {
            at = put_varint(at, key_of(e->field));
        }
        if (has_length(e->field->type)) {
            at = put_varint(at, value_bytes(e, i));
        }
        at = put_value(at, e, i);
    }
    return at;
}

/* Fields in the order of their numbers, as the schema's rows stand: what Google's library writes too. */
static char *put_message(char *at, const nn_message *m)
{
    int count = 0;
    const nn_field *f = nn_schema_fields(m->type, &count);
    for (int k = 0; k < count; k++) {
        const nn_entry *e = nn_entry_at(m, &f[k]);
        if (e && e->count > 0) {
            at = put_entry(at, e);
        }
    }
    return at;
}

dm_status nn_wire_bytes(const nn_message *message, char **bytes, size_t *length)
{
    size_t n = message_bytes(message);
    char *buffer = malloc(n + 1);
    if (!buffer) {
        return dm_error_no_memory("the bytes of a message", n + 1);
    }
    put_message(buffer, message);
    *bytes = buffer;
    *length = n;
    return DM_OK;
}

dm_status nn_wire_write(const nn_message *message, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    dm_status status = nn_wire_bytes(message, &bytes, &length);
    if (status == DM_OK) {
        status = nn_file_write(path, bytes, length);
    }
    free(bytes);
    return status;
}
