/* Messages to text. */
#include "base/base.h"
#include "proto/text.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_string(FILE *to, nn_text text)
{
    fputc('"', to);
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c == '\n') {
            fputs("\\n", to);
        } else if (c >= ' ' && c < 127) {
            fputc(c, to);
        } else {
            fprintf(to, "\\%03o", c);
        }
    }
    fputc('"', to);
}

/* The shortest number that reads back to the same value. */
static void print_real(FILE *to, double value, bool is_float)
{
    char text[48];
    if (isnan(value) || isinf(value)) {
        fputs(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf", to);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, to);
}

static void print_value(FILE *to, const nn_entry *e, int64_t i)
{
    switch (e->field->type) {
    case NN_BOOL:
        fputs(e->at.integer[i] ? "true" : "false", to);
        return;
    case NN_INT32:
    case NN_INT64:
    case NN_UINT32:
        fprintf(to, "%" PRId64, e->at.integer[i]);
        return;
    case NN_ENUM:
        fputs(nn_enum_by_number(e->field->of, e->at.integer[i])->name, to);
        return;
    case NN_FLOAT:
        print_real(to, (double)e->at.real32[i], true);
        return;
    case NN_DOUBLE:
        print_real(to, e->at.real[i], false);
        return;
    case NN_STRING:
    case NN_BYTES:
        print_string(to, e->at.text[i]);
        return;
    case NN_MESSAGE:
        return; /* print_message */
    }
}

static void print_message(FILE *to, const nn_message *m, int indent)
{
    int count = 0;
    const nn_field *f = nn_schema_fields(m->type, &count);
    for (int k = 0; k < count; k++) {
        const nn_entry *e = nn_entry_at(m, &f[k]);
        for (int64_t i = 0; e && i < e->count; i++) {
            fprintf(to, "%*s%s", indent, "", f[k].name);
            if (f[k].type == NN_MESSAGE) {
                fputs(" {\n", to);
                print_message(to, e->at.message[i], indent + 2);
                fprintf(to, "%*s}\n", indent, "");
            } else {
                fputs(": ", to);
                print_value(to, e, i);
                fputc('\n', to);
            }
        }
    }
}

dm_status nn_text_print(const nn_message *message, char **out)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!to || !plain) {
        if (to) {
            fclose(to);
        }
        if (plain) {
            freelocale(plain);
        }
        free(text);
        return dm_error_no_memory("a text", BUFSIZ);
    }
    locale_t before = uselocale(plain);
    print_message(to, message, 0);
    uselocale(before);
    freelocale(plain);
    if (fclose(to) != 0) {
        free(text);
        return dm_error_no_memory("a text", length);
    }
    *out = text;
    return DM_OK;
}

dm_status nn_text_write(const nn_message *message, const char *path)
{
    char *text = NULL;
    dm_status status = nn_text_print(message, &text);
    status = status == DM_OK ? nn_file_write(path, text, strlen(text)) : status;
    free(text);
    return status;
}
