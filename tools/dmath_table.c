/* Results as a table for people, or as a JSON object a line. */
#include "dmath.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(char *text, size_t room, const char *format, ...) DMI_PRINTF(3, 4);
static void add(char *text, size_t room, const char *format, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + n, room - n, format, args);
    va_end(args);
}

static void add_string(tool_table *t, const char *value)
{
    add(t->object, sizeof t->object, "\"");
    for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
        if (*p == '"' || *p == '\\') {
            add(t->object, sizeof t->object, "\\%c", *p);
        } else if (*p < 0x20) {
            add(t->object, sizeof t->object, "\\u%04x", *p);
        } else {
            add(t->object, sizeof t->object, "%c", *p);
        }
    }
    add(t->object, sizeof t->object, "\"");
}

/* The column's head, and the name in the object. Returns the width, which is the head's at least. */
static int begin_value(tool_table *t, const char *key, int width, bool left)
{
    width = DMI_MAX(width, (int)strlen(key));
    add(t->object, sizeof t->object, ", \"%s\": ", key);
    add(t->head, sizeof t->head, left ? "%-*s " : "%*s ", width, key);
    return width;
}

static void trim(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ') {
        text[--n] = 0;
    }
}

void tool_row_begin(tool_table *t)
{
    t->head[0] = t->line[0] = 0;
    strcpy(t->object, "{");
    add(t->object, sizeof t->object, "\"command\": ");
    add_string(t, t->command);
    add(t->object, sizeof t->object, ", \"version\": \"%s\"", dm_version());
    if (t->where) {
        add(t->object, sizeof t->object,
            ", \"workers\": %d, \"cores\": %d, \"blas_threads\": %d, \"launch\": \"%s\", \"transport\": \"%s\"",
            t->where->workers, t->where->cores, t->where->blas_threads, t->where->launch, t->where->transport);
    }
}

void tool_row_text(tool_table *t, const char *key, int width, const char *value)
{
    width = begin_value(t, key, width, true);
    add_string(t, value);
    add(t->line, sizeof t->line, "%-*s ", width, value);
}

void tool_row_int(tool_table *t, const char *key, int width, int64_t value)
{
    width = begin_value(t, key, width, false);
    add(t->object, sizeof t->object, "%" PRId64, value);
    add(t->line, sizeof t->line, "%*" PRId64 " ", width, value);
}

void tool_row_real(tool_table *t, const char *key, int width, int digits, double value)
{
    width = begin_value(t, key, width, false);
    if (isfinite(value)) {
        add(t->object, sizeof t->object, "%.9g", value);
    } else {
        add(t->object, sizeof t->object, "null");
    }
    add(t->line, sizeof t->line, "%*.*f ", width, digits, value);
}

void tool_row_number(tool_table *t, const char *key, int width, double value)
{
    width = begin_value(t, key, width, false);
    if (isfinite(value)) {
        add(t->object, sizeof t->object, "%.17g", value);
        add(t->line, sizeof t->line, "%*.6g ", width, value);
    } else {
        add(t->object, sizeof t->object, "null");
        add(t->line, sizeof t->line, "%*s ", width, "-");
    }
}

void tool_row_list(tool_table *t, const char *key, const int64_t *value, int count)
{
    add(t->object, sizeof t->object, ", \"%s\": [", key);
    for (int i = 0; i < count; i++) {
        add(t->object, sizeof t->object, "%s%" PRId64, i ? ", " : "", value[i]);
    }
    add(t->object, sizeof t->object, "]");
}

void tool_row_stats(tool_table *t, const char *key, int width, int digits, tool_stats stats, double scale)
{
    static const char *const names[] = {"min", "median", "max"};
    const double values[] = {stats.min, stats.median, stats.max};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", key, names[i]);
        tool_row_real(t, name, width, digits, values[i] * scale);
    }
}

void tool_row_end(tool_table *t)
{
    if (t->json) {
        printf("%s}\n", t->object);
    } else {
        trim(t->head);
        trim(t->line);
        if (strcmp(t->head, t->last_head) != 0) {
            printf("%s\n", t->head);
            strcpy(t->last_head, t->head);
        }
        printf("%s\n", t->line);
    }
    fflush(stdout);
}

void tool_table_intro(const tool_table *t)
{
    if (!t->json && t->where) {
        const tool_where *w = t->where;
        printf("%s: dmath %s, %d workers (%s), transport %s, %d cores, %d BLAS threads a worker\n", t->command,
               dm_version(), w->workers, w->launch, w->transport, w->cores, w->blas_threads);
    }
}
