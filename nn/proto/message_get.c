/* Messages in memory: asking for values, and for what nobody has asked for. */
#include "base/base.h"
#include "proto/message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nn_entry *nn_entry_at(const nn_message *message, const nn_field *field)
{
    for (int i = 0; i < message->count; i++) {
        if (message->entries[i].field == field) {
            return &message->entries[i];
        }
    }
    return NULL;
}

nn_entry *nn_entry_of(const nn_message *message, const char *field)
{
    for (int i = 0; message && i < message->count; i++) {
        if (strcmp(message->entries[i].field->name, field) == 0) {
            return &message->entries[i];
        }
    }
    return NULL;
}

bool nn_has(const nn_message *message, const char *field)
{
    const nn_entry *e = nn_entry_of(message, field);
    return e && e->count > 0;
}

/* The entry, marked as used; NULL if there are no values. */
static nn_entry *used(const nn_message *message, const char *field)
{
    assert(!message || nn_schema_by_name(message->type, field));
    nn_entry *e = nn_entry_of(message, field);
    if (e) {
        e->used = true;
    }
    return e && e->count > 0 ? e : NULL;
}

void nn_use(const nn_message *message, const char *field)
{
    (void)used(message, field);
}

int64_t nn_count(const nn_message *message, const char *field)
{
    const nn_entry *e = used(message, field);
    return e ? e->count : 0;
}

static const char *default_of(const char *type, const char *field)
{
    const nn_field *f = nn_schema_by_name(type, field);
    assert(f);
    return f->value;
}

int64_t nn_int(const nn_message *message, const char *type, const char *field)
{
    const nn_entry *e = used(message, field);
    if (e) {
        return e->at.integer[0];
    }
    const nn_field *f = nn_schema_by_name(type, field);
    const char *value = default_of(type, field);
    if (f->type == NN_BOOL) {
        return strcmp(value, "true") == 0;
    }
    if (f->type == NN_ENUM) {
        const nn_enum *one = nn_enum_by_name(f->of, value);
        return one ? one->number : 0;
    }
    return strtoll(value, NULL, 10);
}

double nn_real(const nn_message *message, const char *type, const char *field)
{
    const nn_entry *e = used(message, field);
    if (e) {
        return e->field->type == NN_FLOAT ? (double)e->at.real32[0] : e->at.real[0];
    }
    double value = 0; /* a default with a point in every locale: digits, a point, digits, an exponent */
    int places = 0, exponent = 0;
    const char *at = default_of(type, field);
    bool minus = *at == '-', behind = false;
    for (at += minus; *at && *at != 'e'; at++) {
        if (*at == '.') {
            behind = true;
        } else {
            value = value * 10 + (*at - '0');
            places += behind;
        }
    }
    exponent = (*at == 'e' ? atoi(at + 1) : 0) - places;
    for (; exponent > 0; exponent--) {
        value *= 10;
    }
    double power = 1;
    for (; exponent < 0; exponent++) {
        power *= 10;
    }
    return (double)(float)((minus ? -value : value) / power); /* as a float of the file would be */
}

const char *nn_string(const nn_message *message, const char *type, const char *field)
{
    const nn_entry *e = used(message, field);
    return e ? e->at.text[0].bytes : default_of(type, field);
}

nn_message *nn_sub(const nn_message *message, const char *field)
{
    const nn_entry *e = used(message, field);
    return e ? e->at.message[0] : NULL;
}

static const nn_entry *entry_at(const nn_message *message, const char *field, int64_t i)
{
    const nn_entry *e = used(message, field);
    assert(e && i >= 0 && i < e->count);
    (void)i;
    return e;
}

int64_t nn_int_at(const nn_message *message, const char *field, int64_t i)
{
    return entry_at(message, field, i)->at.integer[i];
}

double nn_real_at(const nn_message *message, const char *field, int64_t i)
{
    const nn_entry *e = entry_at(message, field, i);
    return e->field->type == NN_FLOAT ? (double)e->at.real32[i] : e->at.real[i];
}

const char *nn_string_at(const nn_message *message, const char *field, int64_t i)
{
    return entry_at(message, field, i)->at.text[i].bytes;
}

nn_message *nn_sub_at(const nn_message *message, const char *field, int64_t i)
{
    return entry_at(message, field, i)->at.message[i];
}

int nn_line(const nn_message *message, const char *field)
{
    const nn_entry *e = nn_entry_of(message, field);
    return e && e->line ? e->line : message->line;
}

void nn_use_all(nn_message *message)
{
    for (int i = 0; message && i < message->count; i++) {
        nn_entry *e = &message->entries[i];
        e->used = true;
        for (int64_t k = 0; e->field->type == NN_MESSAGE && k < e->count; k++) {
            nn_use_all(e->at.message[k]);
        }
    }
}

dm_status nn_unused(const nn_message *message)
{
    for (int i = 0; message && i < message->count; i++) {
        const nn_entry *e = &message->entries[i];
        if (e->count > 0 && !e->used) {
            return nn_fail_at(message, e->line ? e->line : message->line, DM_ERR_UNSUPPORTED,
                              "field '%s' of %s has no effect here: dmath does not support it for this net",
                              e->field->name, message->type);
        }
        for (int64_t k = 0; e->field->type == NN_MESSAGE && k < e->count; k++) {
            dm_status status = nn_unused(e->at.message[k]);
            if (status != DM_OK) {
                return status;
            }
        }
    }
    return DM_OK;
}

dm_status nn_fail_at(const nn_message *message, int line, dm_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (line > 0) {
        return dm_error_set(status, "%s:%d: %s", message->file, line, text);
    }
    return dm_error_set(status, "%s: %s", message->file, text);
}
