/* Bytes to messages. */
#include "base/base.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers of files are taken as they lie: little endian"
#endif

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
static const size_t max_file_bytes = (size_t)1 << 34;

typedef struct wire {
    const unsigned char *begin, *at, *end; /* end: of the message that is read */
    const char *file;
    bool in_place; /* bytes are not copied */
} wire;

static dm_status broken(const wire *w, const nn_message *m, const char *what)
{
    return dm_error_set(DM_ERR_FORMAT, "%s: byte %td, in %s: %s", w->file, w->at - w->begin, m->type, what);
}

static bool read_varint(wire *w, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (w->at >= w->end) {
            return false;
        }
        unsigned char byte = *w->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static int wire_type(nn_type type)
{
    switch (type) {
    case NN_FLOAT:
        return FIXED32;
    case NN_DOUBLE:
        return FIXED64;
    case NN_STRING:
    case NN_BYTES:
    case NN_MESSAGE:
        return BYTES;
    default:
        return VARINT;
    }
}

static dm_status read_integer(wire *w, const nn_message *m, nn_entry *e)
{
    uint64_t value = 0;
    if (!read_varint(w, &value)) {
        return broken(w, m, "an integer has no end");
    }
    int64_t v = (int64_t)value;
    if (e->field->type == NN_BOOL) {
        v = value != 0;
    } else if (e->field->type == NN_UINT32) {
        v = (int64_t)(uint32_t)value;
    } else if (e->field->type != NN_INT64) {
        v = (int32_t)(uint32_t)value;
    }
    if (e->field->type == NN_ENUM && !nn_enum_by_number(e->field->of, v)) {
        return dm_error_set(DM_ERR_FORMAT, "%s: byte %td: %s.%s is %" PRId64 ", which the enum %s lacks",
                            w->file, w->at - w->begin, m->type, e->field->name, v, e->field->of);
    }
    e->at.integer[e->count++] = v;
    return DM_OK;
}

static dm_status read_numbers(wire *w, nn_message *m, nn_entry *e, int64_t count)
{
    size_t size = e->field->type == NN_FLOAT ? sizeof(float) : sizeof(double);
    if ((size_t)(w->end - w->at) < (size_t)count * size) {
        return broken(w, m, "a number has no end");
    }
    if (count > 0) { /* a packed list may be empty, and the entry without memory then */
        memcpy((char *)e->at.data + (size_t)e->count * size, w->at, (size_t)count * size);
    }
    e->count += count;
    w->at += (size_t)count * size;
    return DM_OK;
}

static dm_status read_fields(wire *w, nn_message *m);

static dm_status read_bytes(wire *w, nn_message *m, nn_entry *e, size_t length)
{
    if (e->field->type == NN_STRING && memchr(w->at, 0, length)) {
        return broken(w, m, "a string has a zero byte");
    }
    if (w->in_place && e->field->type == NN_BYTES) {
        e->lent = true;
        e->at.text[e->count++] = (nn_text){(char *)(uintptr_t)w->at, length};
        w->at += length;
        return DM_OK;
    }
    char *bytes = malloc(length + 1);
    if (!bytes) {
        return dm_error_no_memory("a string of a message", length + 1);
    }
    memcpy(bytes, w->at, length);
    bytes[length] = 0;
    e->at.text[e->count++] = (nn_text){bytes, length};
    w->at += length;
    return DM_OK;
}

/* A run of numbers behind its length. */
static dm_status read_packed(wire *w, nn_message *m, const nn_field *f, const unsigned char *end)
{
    nn_entry *e = NULL;
    dm_status status = DM_OK;
    if (wire_type(f->type) != VARINT) {
        int64_t size = f->type == NN_FLOAT ? 4 : 8, bytes = end - w->at;
        status = bytes % size ? broken(w, m, "a run of numbers ends inside one")
                              : nn_entry_grow(m, f, bytes / size, &e);
        return status == DM_OK ? read_numbers(w, m, e, bytes / size) : status;
    }
    while (status == DM_OK && w->at < end) {
        status = nn_entry_grow(m, f, 1, &e);
        if (status == DM_OK) {
            status = read_integer(w, m, e);
        }
    }
    return status == DM_OK && w->at != end ? broken(w, m, "a run of integers ends inside one") : status;
}

static dm_status read_delimited(wire *w, nn_message *m, const nn_field *f)
{
    uint64_t length = 0;
    nn_entry *e = NULL;
    dm_status status = DM_OK;
    if (!read_varint(w, &length) || length > (uint64_t)(w->end - w->at)) {
        return broken(w, m, "a length goes beyond the end");
    }
    const unsigned char *inner_end = w->at + length;
    if (wire_type(f->type) != BYTES) {
        return read_packed(w, m, f, inner_end);
    }
    e = nn_entry_at(m, f);
    bool merge = e && e->count > 0 && !nn_is_repeated(f);
    if (merge && f->type != NN_MESSAGE) {
        nn_entry_clear(e);
    }
    if (!(merge && f->type == NN_MESSAGE)) {
        status = nn_entry_grow(m, f, 1, &e);
    }
    if (status != DM_OK || f->type != NN_MESSAGE) {
        return status == DM_OK ? read_bytes(w, m, e, (size_t)length) : status;
    }
    if (!merge) {
        status = nn_message_new(m, f->of, 0, &e->at.message[e->count]);
        e->count += status == DM_OK;
    }
    const unsigned char *end = w->end;
    w->end = inner_end;
    if (status == DM_OK) {
        status = read_fields(w, e->at.message[e->count - 1]);
    }
    w->end = end;
    return status;
}

static dm_status read_field(wire *w, nn_message *m)
{
    const unsigned char *start = w->at;
    uint64_t key = 0;
    if (!read_varint(w, &key)) {
        return broken(w, m, "a field has no end");
    }
    int number = key >> 3 > INT32_MAX ? 0 : (int)(key >> 3), type = (int)(key & 7);
    const nn_field *f = nn_schema_by_number(m->type, number);
    if (!f) {
        return dm_error_set(DM_ERR_FORMAT, "%s: byte %td: %s has no field of number %d", w->file,
                            start - w->begin, m->type, number);
    }
    if (type == BYTES && (wire_type(f->type) == BYTES || nn_is_repeated(f))) {
        return read_delimited(w, m, f);
    }
    if (type != wire_type(f->type)) {
        return dm_error_set(DM_ERR_FORMAT, "%s: byte %td: %s.%s has wire type %d, but is of type %s", w->file,
                            start - w->begin, m->type, f->name, type, nn_type_name(f->type));
    }
    nn_entry *e = nn_entry_at(m, f);
    if (e && !nn_is_repeated(f)) {
        nn_entry_clear(e);
    }
    dm_status status = nn_entry_grow(m, f, 1, &e);
    if (status == DM_OK) {
        status = type == VARINT ? read_integer(w, m, e) : read_numbers(w, m, e, 1);
    }
    return status;
}

static dm_status read_fields(wire *w, nn_message *m)
{
    dm_status status = DM_OK;
    while (status == DM_OK && w->at < w->end) {
        status = read_field(w, m);
    }
    return status;
}

static dm_status parse(const void *bytes, size_t length, const char *file, const char *type, bool in_place,
                       nn_document **out)
{
    nn_document *d = NULL;
    dm_status status = nn_document_new(type, file, &d);
    if (status != DM_OK) {
        return status;
    }
    d->root->line = 0;
    wire w = {.begin = bytes,
              .at = bytes,
              .end = (const unsigned char *)bytes + length,
              .file = d->file,
              .in_place = in_place};
    status = read_fields(&w, d->root);
    if (status != DM_OK) {
        nn_document_free(d);
        return status;
    }
    *out = d;
    return DM_OK;
}

dm_status nn_wire_parse(const void *bytes, size_t length, const char *file, const char *type, nn_document **out)
{
    return parse(bytes, length, file, type, false, out);
}

dm_status nn_wire_parse_in_place(const void *bytes, size_t length, const char *file, const char *type,
                                 nn_document **out)
{
    return parse(bytes, length, file, type, true, out);
}

dm_status nn_wire_read(const char *path, const char *type, nn_document **out)
{
    char *bytes = NULL;
    size_t length = 0;
    dm_status status = nn_file_read(path, max_file_bytes, &bytes, &length);
    if (status == DM_OK) {
        status = nn_wire_parse(bytes, length, path, type, out);
    }
    free(bytes);
    return status;
}
