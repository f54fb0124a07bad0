/* Text to messages: protobuf's text format. */
#include "base/base.h"
#include "proto/scan.h"
#include "proto/text.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 1 << 30 };

static dm_status parse_fields(nn_scan *s, nn_message *m, int closing);

static dm_status bad_value(const nn_scan *s, const nn_field *f)
{
    char what[160];
    snprintf(what, sizeof what, "a value of type %s for %s.%s", nn_type_name(f->type), f->message, f->name);
    return nn_scan_expected(s, what);
}

static dm_status out_of_range(const nn_scan *s, const nn_field *f, bool minus)
{
    return dm_error_set(DM_ERR_FORMAT, "%s:%d: %s%.*s does not fit the type %s of %s.%s", s->file,
                        s->token_line, minus ? "-" : "", s->length < 60 ? (int)s->length : 60, s->text,
                        nn_type_name(f->type), f->message, f->name);
}

/* The token's text with a 0 behind it; false if it is longer than any number. */
static bool token_text(const nn_scan *s, char *out, size_t room)
{
    if (s->length >= room) {
        return false;
    }
    memcpy(out, s->text, s->length);
    out[s->length] = 0;
    return true;
}

static dm_status parse_integer(const nn_scan *s, const nn_field *f, bool minus, int64_t *out)
{
    char text[32], *end = NULL;
    if (s->kind != NN_TOKEN_NUMBER || !token_text(s, text, sizeof text)) {
        return bad_value(s, f);
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (*end) {
        return bad_value(s, f);
    }
    uint64_t most = f->type == NN_UINT32 ? UINT32_MAX : f->type == NN_INT64 ? INT64_MAX : INT32_MAX;
    if (errno || (minus && f->type == NN_UINT32) || value > most + (minus ? 1 : 0)) {
        return out_of_range(s, f, minus);
    }
    *out = minus ? (int64_t)(0 - value) : (int64_t)value;
    return DM_OK;
}

static dm_status parse_real(const nn_scan *s, const nn_field *f, bool minus, double *out)
{
    char text[512], *end = NULL;
    double value = 0;
    if (nn_scan_is(s, "inf") || nn_scan_is(s, "infinity")) {
        value = INFINITY;
    } else if (nn_scan_is(s, "nan")) {
        value = NAN;
    } else if (s->kind != NN_TOKEN_NUMBER || !token_text(s, text, sizeof text) || strpbrk(text, "xXpP")) {
        return bad_value(s, f);
    } else {
        value = f->type == NN_FLOAT ? (double)strtof(text, &end) : strtod(text, &end);
        if (end[0] && !((end[0] == 'f' || end[0] == 'F') && !end[1])) {
            return bad_value(s, f);
        }
        if (isinf(value)) {
            return out_of_range(s, f, minus);
        }
    }
    *out = minus ? -value : value;
    return DM_OK;
}

static dm_status parse_bool(const nn_scan *s, const nn_field *f, int64_t *out)
{
    static const char *const words[2][3] = {{"false", "False", "f"}, {"true", "True", "t"}};
    for (int i = 0; i < 6; i++) {
        if (nn_scan_is(s, words[i / 3][i % 3])) {
            *out = i / 3;
            return DM_OK;
        }
    }
    if (s->kind == NN_TOKEN_NUMBER && s->length == 1 && (*s->text == '0' || *s->text == '1')) {
        *out = *s->text - '0';
        return DM_OK;
    }
    return bad_value(s, f);
}

static dm_status parse_enum(const nn_scan *s, const nn_field *f, bool minus, int64_t *out)
{
    char text[64];
    if (s->kind == NN_TOKEN_NAME && !minus && token_text(s, text, sizeof text)) {
        const nn_enum *one = nn_enum_by_name(f->of, text);
        if (one) {
            *out = one->number;
            return DM_OK;
        }
    } else if (s->kind == NN_TOKEN_NUMBER) {
        nn_field whole = *f;
        whole.type = NN_INT32;
        if (parse_integer(s, &whole, minus, out) == DM_OK && nn_enum_by_number(f->of, *out)) {
            return DM_OK;
        }
    }
    char what[160];
    snprintf(what, sizeof what, "a name of the enum %s for %s.%s", f->of, f->message, f->name);
    return nn_scan_expected(s, what);
}

/* Strings one after another are one. The token behind them is read. */
static dm_status parse_string(nn_scan *s, const nn_field *f, nn_text *out)
{
    nn_text t = {NULL, 0};
    dm_status status = s->kind == NN_TOKEN_STRING ? DM_OK : bad_value(s, f);
    while (status == DM_OK && s->kind == NN_TOKEN_STRING) {
        status = nn_scan_string(s, &t.bytes, &t.length);
        if (status == DM_OK && f->type == NN_STRING && strlen(t.bytes) != t.length) {
            status = dm_error_set(DM_ERR_FORMAT, "%s:%d: the string of %s.%s has a zero byte", s->file,
                                  s->token_line, f->message, f->name);
        }
        if (status == DM_OK) {
            status = nn_scan_next(s);
        }
    }
    if (status != DM_OK) {
        free(t.bytes);
        return status;
    }
    *out = t;
    return DM_OK;
}

static dm_status parse_message(nn_scan *s, nn_message *m, nn_entry *e)
{
    int closing = s->kind == '{' ? '}' : '>', line = s->token_line;
    nn_message *inner = NULL;
    dm_status status = nn_message_new(m, e->field->of, line, &inner);
    if (status != DM_OK) {
        return status;
    }
    e->at.message[e->count++] =
        inner; /* the entry owns it from here on, also where it is not read to its end */
    status = nn_scan_next(s);
    return status == DM_OK ? parse_fields(s, inner, closing) : status;
}

/* One value, at the current token, into an entry with room for it; reads the token behind it. */
static dm_status parse_value(nn_scan *s, nn_message *m, nn_entry *e)
{
    const nn_field *f = e->field;
    bool minus = s->kind == '-';
    dm_status status = minus ? nn_scan_next(s) : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    if (f->type == NN_MESSAGE) {
        return minus || (s->kind != '{' && s->kind != '<') ? nn_scan_expected(s, "'{'")
                                                           : parse_message(s, m, e);
    }
    if (f->type == NN_STRING || f->type == NN_BYTES) {
        status = minus ? bad_value(s, f) : parse_string(s, f, &e->at.text[e->count]);
        e->count += status == DM_OK;
        return status;
    }
    if (f->type == NN_FLOAT || f->type == NN_DOUBLE) {
        double value = 0;
        status = parse_real(s, f, minus, &value);
        if (f->type == NN_FLOAT) {
            e->at.real32[e->count] = (float)value;
        } else {
            e->at.real[e->count] = value;
        }
    } else if (f->type == NN_BOOL) {
        status = minus ? bad_value(s, f) : parse_bool(s, f, &e->at.integer[e->count]);
    } else if (f->type == NN_ENUM) {
        status = parse_enum(s, f, minus, &e->at.integer[e->count]);
    } else {
        status = parse_integer(s, f, minus, &e->at.integer[e->count]);
    }
    e->count += status == DM_OK;
    return status == DM_OK ? nn_scan_next(s) : status;
}

/* [value, value, ...] */
static dm_status parse_list(nn_scan *s, nn_message *m, const nn_field *f)
{
    dm_status status = nn_scan_next(s);
    for (int n = 0; status == DM_OK && s->kind != ']'; n++) {
        if (n > 0) {
            status = s->kind == ',' ? nn_scan_next(s) : nn_scan_expected(s, "',' or ']'");
        }
        nn_entry *e = NULL;
        if (status == DM_OK) {
            status = nn_entry_grow(m, f, 1, &e);
        }
        if (status == DM_OK) {
            status = parse_value(s, m, e);
        }
    }
    return status == DM_OK ? nn_scan_next(s) : status;
}

static dm_status find_field(const nn_scan *s, const nn_message *m, const nn_field **out)
{
    char name[64];
    if (s->kind != NN_TOKEN_NAME) {
        return nn_scan_expected(s, "the name of a field");
    }
    const nn_field *f = token_text(s, name, sizeof name) ? nn_schema_by_name(m->type, name) : NULL;
    if (!f) {
        return dm_error_set(DM_ERR_FORMAT, "%s:%d: %s has no field '%.*s'", s->file, s->token_line, m->type,
                            s->length < 60 ? (int)s->length : 60, s->text);
    }
    *out = f;
    return DM_OK;
}

/* name: value, or name { ... }, at the name. */
static dm_status parse_field(nn_scan *s, nn_message *m)
{
    const nn_field *f = NULL;
    nn_entry *e = NULL;
    int line = s->token_line;
    dm_status status = find_field(s, m, &f);
    if (status == DM_OK) {
        e = nn_entry_at(m, f);
        if (e && e->count > 0 && !nn_is_repeated(f)) {
            return dm_error_set(DM_ERR_FORMAT, "%s:%d: %s.%s has a value already, in line %d", s->file, line,
                                m->type, f->name, e->line);
        }
        status = nn_scan_next(s);
    }
    if (status == DM_OK && s->kind == ':') {
        status = nn_scan_next(s);
    } else if (status == DM_OK && f->type != NN_MESSAGE) {
        status = nn_scan_expected(s, "':'");
    }
    if (status == DM_OK) {
        status = nn_entry_grow(m, f, 1, &e);
    }
    if (status == DM_OK) {
        e->line = e->line ? e->line : line;
        status = s->kind == '[' && nn_is_repeated(f) ? parse_list(s, m, f) : parse_value(s, m, e);
    }
    if (status == DM_OK && (s->kind == ',' || s->kind == ';')) {
        status = nn_scan_next(s);
    }
    return status;
}

/* Fields up to the closing bracket, which is read too; closing 0: up to the end of the file. */
static dm_status parse_fields(nn_scan *s, nn_message *m, int closing)
{
    dm_status status = DM_OK;
    int count = 0;
    while (status == DM_OK && s->kind != NN_TOKEN_END && s->kind != closing) {
        status = parse_field(s, m);
    }
    if (status == DM_OK && closing && s->kind != closing) {
        return dm_error_set(DM_ERR_FORMAT, "%s:%d: the %s that begins here has no '%c'", s->file, m->line,
                            m->type, closing);
    }
    const nn_field *f = nn_schema_fields(m->type, &count);
    for (int i = 0; status == DM_OK && i < count; i++) {
        if (f[i].label == NN_REQUIRED && !nn_has(m, f[i].name)) {
            status = dm_error_set(DM_ERR_FORMAT, "%s:%d: %s lacks the field '%s'", s->file, m->line, m->type,
                                  f[i].name);
        }
    }
    return status == DM_OK && closing ? nn_scan_next(s) : status;
}

dm_status nn_text_parse(const char *text, size_t length, const char *file, const char *type, nn_document **out)
{
    nn_document *d = NULL;
    dm_status status = nn_document_new(type, file, &d);
    if (status != DM_OK) {
        return status;
    }
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t)0); /* numbers have a point, whatever the program's locale */
    locale_t before = uselocale(plain);
    nn_scan s = {.file = d->file, .at = text, .end = text + length, .line = 1};
    status = plain ? nn_scan_next(&s) : dm_error_no_memory("a locale", BUFSIZ);
    if (status == DM_OK) {
        status = parse_fields(&s, d->root, 0);
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    if (status != DM_OK) {
        nn_document_free(d);
        return status;
    }
    *out = d;
    return DM_OK;
}

dm_status nn_text_read(const char *path, const char *type, nn_document **out)
{
    char *text = NULL;
    size_t length = 0;
    dm_status status = nn_file_read(path, MAX_TEXT_BYTES, &text, &length);
    if (status == DM_OK) {
        status = nn_text_parse(text, length, path, type, out);
    }
    free(text);
    return status;
}
