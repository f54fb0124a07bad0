/* Messages in memory: making and ending them. */
#include "proto/message.h"

#include "base/base.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t value_bytes(nn_type type)
{
    switch (type) {
    case NN_FLOAT:
        return sizeof(float);
    case NN_DOUBLE:
        return sizeof(double);
    case NN_STRING:
    case NN_BYTES:
        return sizeof(nn_text);
    case NN_MESSAGE:
        return sizeof(nn_message *);
    case NN_BOOL:
    case NN_INT32:
    case NN_INT64:
    case NN_UINT32:
    case NN_ENUM:
        break;
    }
    return sizeof(int64_t);
}

dm_status nn_document_new(const char *type, const char *file, nn_document **out)
{
    nn_document *d = calloc(1, sizeof *d);
    char *name = strdup(file);
    nn_message *root = calloc(1, sizeof *root);
    if (!d || !name || !root) {
        free(d);
        free(name);
        free(root);
        return dm_error_no_memory("a message", sizeof *d + strlen(file) + 1 + sizeof *root);
    }
    *root = (nn_message){.type = type, .file = name, .line = 1};
    *d = (nn_document){.root = root, .file = name};
    *out = d;
    return DM_OK;
}

void nn_document_free(nn_document *document)
{
    if (document) {
        nn_message_free(document->root);
        free(document->file);
        free(document);
    }
}

dm_status nn_message_new(const nn_message *parent, const char *type, int line, nn_message **out)
{
    nn_message *m = calloc(1, sizeof *m);
    if (!m) {
        return dm_error_no_memory("a message", sizeof *m);
    }
    *m = (nn_message){.type = type, .file = parent->file, .line = line};
    *out = m;
    return DM_OK;
}

void nn_entry_clear(nn_entry *entry)
{
    for (int64_t i = 0; i < entry->count; i++) {
        if (entry->field->type == NN_MESSAGE) {
            nn_message_free(entry->at.message[i]);
        } else if ((entry->field->type == NN_STRING || entry->field->type == NN_BYTES) && !entry->lent) {
            free(entry->at.text[i].bytes);
        }
    }
    entry->count = 0;
}

void nn_message_free(nn_message *message)
{
    if (!message) {
        return;
    }
    for (int i = 0; i < message->count; i++) {
        nn_entry_clear(&message->entries[i]);
        free(message->entries[i].at.data);
    }
    free(message->entries);
    free(message);
}

dm_status nn_entry_grow(nn_message *message, const nn_field *field, int64_t more, nn_entry **out)
{
    nn_entry *e = nn_entry_at(message, field);
    if (!e) {
        nn_entry *list = realloc(message->entries, (size_t)(message->count + 1) * sizeof *list);
        if (!list) {
            return dm_error_no_memory("the fields of a message", (size_t)(message->count + 1) * sizeof *list);
        }
        message->entries = list;
        e = &list[message->count++];
        *e = (nn_entry){.field = field};
    }
    if (e->count + more > e->room) {
        int64_t room = e->count + more > 2 * e->room ? e->count + more : 2 * e->room;
        void *data = realloc(e->at.data, (size_t)room * value_bytes(field->type));
        if (!data) {
            return dm_error_no_memory("the values of a field", (size_t)room * value_bytes(field->type));
        }
        e->at.data = data;
        e->room = room;
    }
    *out = e;
    return DM_OK;
}

/* Copies `count` values behind those of an entry that has the room. */
static dm_status append(nn_entry *to, const nn_entry *from)
{
    const nn_type type = from->field->type;
    for (int64_t i = 0; i < from->count; i++) {
        if (type == NN_MESSAGE) {
            dm_status status = nn_message_copy(from->at.message[i], &to->at.message[to->count]);
            if (status != DM_OK) {
                return status;
            }
        } else if (type == NN_STRING || type == NN_BYTES) {
            nn_text text = from->at.text[i];
            char *bytes = malloc(text.length + 1);
            if (!bytes) {
                return dm_error_no_memory("a string of a message", text.length + 1);
            }
            memcpy(bytes, text.bytes, text.length + 1);
            to->at.text[to->count] = (nn_text){bytes, text.length};
        } else {
            size_t n = value_bytes(type);
            memcpy((char *)to->at.data + (size_t)to->count * n, (char *)from->at.data + (size_t)i * n, n);
        }
        to->count++;
    }
    return DM_OK;
}

dm_status nn_entry_copy(nn_message *dst, const nn_field *field, const nn_entry *from)
{
    nn_entry *to = NULL;
    dm_status status = nn_entry_grow(dst, field, from->count, &to);
    if (status == DM_OK) {
        to->line = to->line ? to->line : from->line;
        to->used = from->used;
        status = append(to, from);
    }
    return status;
}

dm_status nn_message_merge(nn_message *dst, const nn_message *src)
{
    assert(strcmp(dst->type, src->type) == 0);
    for (int i = 0; i < src->count; i++) {
        const nn_entry *from = &src->entries[i];
        nn_entry *to = nn_entry_at(dst, from->field);
        dm_status status = DM_OK;
        if (to && to->count && from->count && from->field->type == NN_MESSAGE && !nn_is_repeated(from->field)) {
            status = nn_message_merge(to->at.message[0], from->at.message[0]);
        } else {
            if (to && from->count && !nn_is_repeated(from->field)) {
                nn_entry_clear(to);
            }
            status = nn_entry_copy(dst, from->field, from);
        }
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

dm_status nn_message_copy(const nn_message *message, nn_message **out)
{
    nn_message *m = NULL;
    dm_status status = nn_message_new(message, message->type, message->line, &m);
    if (status == DM_OK) {
        status = nn_message_merge(m, message);
    }
    if (status != DM_OK) {
        nn_message_free(m);
        return status;
    }
    *out = m;
    return DM_OK;
}

/* The entry of a field, with room for one value more; empty if the field holds one value. */
static dm_status place(nn_message *message, const char *name, nn_entry **out)
{
    const nn_field *field = nn_schema_by_name(message->type, name);
    assert(field);
    nn_entry *old = nn_entry_at(message, field);
    if (old && !nn_is_repeated(field)) {
        nn_entry_clear(old);
    }
    return nn_entry_grow(message, field, 1, out);
}

dm_status nn_set_int(nn_message *message, const char *field, int64_t value)
{
    nn_entry *e = NULL;
    dm_status status = place(message, field, &e);
    if (status == DM_OK) {
        e->at.integer[e->count++] = value;
    }
    return status;
}

dm_status nn_set_real(nn_message *message, const char *field, double value)
{
    nn_entry *e = NULL;
    dm_status status = place(message, field, &e);
    if (status == DM_OK && e->field->type == NN_FLOAT) {
        e->at.real32[e->count++] = (float)value;
    } else if (status == DM_OK) {
        e->at.real[e->count++] = value;
    }
    return status;
}

dm_status nn_set_text(nn_message *message, const char *field, const char *bytes, size_t length)
{
    nn_entry *e = NULL;
    dm_status status = place(message, field, &e);
    char *copy = status == DM_OK ? malloc(length + 1) : NULL;
    if (status == DM_OK && !copy) {
        status = dm_error_no_memory("a string of a message", length + 1);
    }
    if (status == DM_OK) {
        memcpy(copy, bytes, length);
        copy[length] = 0;
        e->at.text[e->count++] = (nn_text){copy, length};
    }
    return status;
}

dm_status nn_set_string(nn_message *message, const char *field, const char *text)
{
    return nn_set_text(message, field, text, strlen(text));
}

dm_status nn_set_message(nn_message *message, const char *field, nn_message **out)
{
    nn_entry *e = NULL;
    dm_status status = place(message, field, &e);
    if (status == DM_OK) {
        status = nn_message_new(message, e->field->of, message->line, &e->at.message[e->count]);
    }
    if (status == DM_OK) {
        *out = e->at.message[e->count++];
    }
    return status;
}
