/* Messages that calls of a program make, field by field. */
#include "proto/edit.h"

#include "base/base.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64, NO_INDEX = -1, MAX_DIGITS = 9 };

/* Where a path leads: a field, and which of its values; NO_INDEX: all. */
typedef struct place {
    nn_message *message; /* NULL: it is not there yet */
    const nn_field *field;
    int64_t index;
} place;

static dm_status fail(const nn_edit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static dm_status fail(const nn_edit *e, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dm_error_set(DM_ERR_ARG, "%s: %s%.200s%sfield '%.200s': %s", e->call, e->layer ? "layer '" : "",
                        e->layer ? e->layer : "", e->layer ? "', " : "", e->path, text);
}

/* "name", "name[2]": one step of a path, up to its '.', which is passed, or its end. */
static bool take_step(const char **at, char name[NAME], int64_t *index)
{
    size_t n = strcspn(*at, ".[");
    *index = NO_INDEX;
    if (n == 0 || n >= NAME) {
        return false;
    }
    memcpy(name, *at, n);
    name[n] = 0;
    *at += n;
    if (**at == '[') {
        size_t digits = strspn(*at + 1, "0123456789");
        if (digits < 1 || digits > MAX_DIGITS || (*at)[1 + digits] != ']') {
            return false;
        }
        *index = strtoll(*at + 1, NULL, 10);
        *at += digits + 2;
    }
    if (**at == '.') {
        ++*at;
        return **at != 0;
    }
    return **at == 0;
}

static int64_t values_of(const nn_message *m, const nn_field *f)
{
    const nn_entry *e = m ? nn_entry_at(m, f) : NULL;
    return e ? e->count : 0;
}

static dm_status check_index(const nn_edit *e, const place *p)
{
    int64_t count = values_of(p->message, p->field);
    if (p->index != NO_INDEX && !nn_is_repeated(p->field)) {
        return fail(e, "%s.%s has one value and takes no number in brackets", p->field->message,
                    p->field->name);
    }
    return p->index <= count ? DM_OK
                             : fail(e, "%s[%lld] would leave a gap: there are %lld before it", p->field->name,
                                    (long long)p->index, (long long)count);
}

/* Follows the path; make: messages that are missing on the way. */
static dm_status find(const nn_edit *e, nn_message *root, bool make, place *out)
{
    const char *at = e->path, *type = root->type;
    place p = {.message = root};
    for (bool more = true; more;) {
        char name[NAME];
        bool good = take_step(&at, name, &p.index);
        if (!good) {
            return fail(e, "this is no path: names with dots between them, [2] behind one of several values");
        }
        p.field = nn_schema_by_name(type, name);
        if (!p.field) {
            return fail(e, "%s has no field '%s'", type, name);
        }
        dm_status status = check_index(e, &p);
        more = *at != 0;
        if (status != DM_OK || !more) {
            *out = p;
            return status;
        }
        if (p.field->type != NN_MESSAGE) {
            return fail(e, "%s.%s is no message: it has no fields", p.field->message, name);
        }
        const nn_entry *there = p.message ? nn_entry_at(p.message, p.field) : NULL;
        int64_t index = p.index == NO_INDEX ? 0 : p.index;
        if (there && index < there->count) {
            p.message = there->at.message[index];
        } else if (make) {
            status = nn_set_message(p.message, name, &p.message);
        } else {
            p.message = NULL;
        }
        type = p.field->of;
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

static dm_status check_number(const nn_edit *e, const nn_field *f, double x)
{
    const double most = f->type == NN_UINT32  ? UINT32_MAX
                        : f->type == NN_INT64 ? 0x1p53 /* what a double counts to */
                                              : INT32_MAX;
    bool whole = x == floor(x) && x <= most && x >= (f->type == NN_UINT32 ? 0 : -most - (f->type != NN_INT64));
    switch (f->type) {
    case NN_BOOL:
        return x == 0 || x == 1 ? DM_OK : fail(e, "%g is no bool: 0 or 1", x);
    case NN_ENUM:
        return whole && nn_enum_by_number(f->of, (int64_t)x) ? DM_OK : fail(e, "%s has no value %g", f->of, x);
    case NN_INT32:
    case NN_INT64:
    case NN_UINT32:
        return whole ? DM_OK : fail(e, "%.17g does not fit the type %s", x, nn_type_name(f->type));
    case NN_FLOAT:
        return isinf(x) || isnan(x) || fabs(x) <= (double)FLT_MAX
                   ? DM_OK
                   : fail(e, "%g does not fit the type float", x);
    case NN_DOUBLE:
        return DM_OK;
    case NN_STRING:
    case NN_BYTES:
    case NN_MESSAGE:
        break;
    }
    return fail(e, "%s.%s takes text", f->message, f->name);
}

/* *number: what text means where the field is no string. */
static dm_status check_text(const nn_edit *e, const nn_field *f, const char *text, int64_t *number)
{
    const nn_enum *one = f->type == NN_ENUM ? nn_enum_by_name(f->of, text) : NULL;
    bool yes = strcmp(text, "true") == 0;
    if (f->type == NN_ENUM) {
        *number = one ? one->number : 0;
        return one ? DM_OK : fail(e, "%s has no value '%.100s'", f->of, text);
    }
    if (f->type == NN_BOOL) {
        *number = yes;
        return yes || strcmp(text, "false") == 0 ? DM_OK : fail(e, "'%.100s' is no bool: true or false", text);
    }
    return f->type == NN_STRING || f->type == NN_BYTES
               ? DM_OK
               : fail(e, "%s.%s takes numbers (%s)", f->message, f->name, nn_type_name(f->type));
}

static dm_status check(const nn_edit *e, const place *p, const nn_given *g, int64_t *number)
{
    const nn_field *f = p->field;
    dm_status status = DM_OK;
    if (f->type == NN_MESSAGE) {
        return fail(e, "%s.%s is a message: name a field in it", f->message, f->name);
    }
    if (g->list && (!nn_is_repeated(f) || p->index != NO_INDEX)) {
        return fail(e, "%s.%s has one value and takes no list", f->message, f->name);
    }
    if (g->text) {
        return check_text(e, f, g->text, number);
    }
    for (int64_t i = 0; status == DM_OK && i < g->count; i++) {
        status = check_number(e, f, g->numbers[i]);
    }
    return status;
}

static void put_number(nn_entry *e, int64_t i, double x)
{
    if (e->field->type == NN_FLOAT) {
        e->at.real32[i] = (float)x;
    } else if (e->field->type == NN_DOUBLE) {
        e->at.real[i] = x;
    } else {
        e->at.integer[i] = (int64_t)x;
    }
}

static void put_text(nn_entry *e, int64_t i, char *text)
{
    if (i < e->count) {
        free(e->at.text[i].bytes);
    }
    e->at.text[i] = (nn_text){text, strlen(text)};
}

dm_status nn_edit_set(const nn_edit *edit, nn_message *message, const nn_given *given)
{
    place p = {0};
    nn_entry *e = NULL;
    int64_t number = 0;
    dm_status status = find(edit, message, false, &p);
    status = status == DM_OK ? check(edit, &p, given, &number) : status;
    status = status == DM_OK ? find(edit, message, true, &p) : status;
    if (status != DM_OK) {
        return status;
    }
    bool strings = given->text && (p.field->type == NN_STRING || p.field->type == NN_BYTES);
    char *copy = strings ? strdup(given->text) : NULL;
    status = strings && !copy ? dm_error_no_memory("a string of a message", strlen(given->text) + 1)
                              : nn_entry_grow(p.message, p.field, given->count, &e);
    if (status != DM_OK) {
        free(copy);
        return status;
    }
    if (p.index == NO_INDEX) {
        nn_entry_clear(e);
    }
    const int64_t first = p.index == NO_INDEX ? 0 : p.index, end = first + given->count;
    for (int64_t i = first; i < end; i++) {
        if (strings) {
            put_text(e, i, copy);
        } else {
            put_number(e, i, given->text ? (double)number : given->numbers[i - first]);
        }
    }
    e->count = e->count > end ? e->count : end;
    return DM_OK;
}
