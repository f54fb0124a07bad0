/* Values of the configuration: each type's reading, writing and description side by side. */
#include "base/config_value.h"
#include "base/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "KMGT";

static bool parse_digits(const char **text, int64_t *out)
{
    const char *at = *text;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value)) {
            return false;
        }
    }
    bool any = at > *text;
    *text = at;
    *out = value;
    return any;
}

static bool parse_int(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    text += negative || *text == '+';
    if (!parse_digits(&text, out) || *text) {
        return false;
    }
    *out = negative ? -*out : *out;
    return true;
}

static bool parse_bytes(const char *text, int64_t *out)
{
    if (!parse_digits(&text, out)) {
        return false;
    }
    for (const char *unit = units; *unit; unit++) {
        if ((*text & ~0x20) == *unit) {
            int shift = 10 * (int)(unit - units + 1);
            text++;
            text += strcasecmp(text, "iB") == 0; /* leaves the B, which may follow any number */
            if (!dmi_mul_fits(*out, INT64_C(1) << shift, out)) {
                return false;
            }
            break;
        }
    }
    return *text == 0 || strcasecmp(text, "B") == 0;
}

static bool parse_double(const char *text, double *out)
{
    char *end = NULL;
    *out = dmi_plain_real(text, &end);
    return end != text && *end == 0 && isfinite(*out);
}

static bool parse_bool(const char *text, bool *out)
{
    static const char *const words[2][4] = {{"0", "false", "no", "off"}, {"1", "true", "yes", "on"}};
    for (int i = 0; i < 8; i++) {
        if (strcasecmp(text, words[i / 4][i % 4]) == 0) {
            *out = i / 4;
            return true;
        }
    }
    return false;
}

static bool parse_enum(const char *names, const char *text, int *out)
{
    size_t length = strlen(text);
    for (int number = 0;; number++) {
        size_t name = strcspn(names, "|");
        if (name == length && strncasecmp(names, text, length) == 0) {
            *out = number;
            return true;
        }
        if (names[name] == 0) {
            return false;
        }
        names += name + 1;
    }
}

static bool has_this_form(const char *form, const char *end, const char *text)
{
    for (const char *at = form; at < end; at++) {
        bool number = *at == 'N' && at > form && strchr(":=", at[-1]) && (at + 1 == end || at[1] == ':');
        int64_t any;
        if (number ? !parse_digits(&text, &any) : *text++ != *at) {
            return false;
        }
    }
    return *text == 0;
}

/* Is it one of the forms, as "name", "name:N" or "name:N:word", or nothing? */
static bool has_form(const char *forms, const char *text)
{
    bool any = *text == 0 || *forms == 0;
    for (const char *form = forms; *form && !any;) {
        size_t length = strcspn(form, "|");
        any = has_this_form(form, form + length, text);
        form += length + (form[length] != 0);
    }
    return any;
}

bool dmi_config_parse(const dmi_config_row *row, const char *text, int64_t bytes, dmi_config *out)
{
    char value[DMI_CONFIG_TEXT];
    void *field = (char *)out + row->offset;
    int64_t number = 0;
    double real = 0;
    if (bytes >= DMI_CONFIG_TEXT) {
        return false;
    }
    memcpy(value, text, (size_t)bytes);
    value[bytes] = 0;
    switch (row->type) {
    case DMI_CONFIG_INT:
    case DMI_CONFIG_BYTES:
        if (!(row->type == DMI_CONFIG_INT ? parse_int : parse_bytes)(value, &number) || number < row->lo ||
            number > row->hi) {
            return false;
        }
        if (row->type == DMI_CONFIG_INT) {
            *(int *)field = (int)number;
        } else {
            *(int64_t *)field = number;
        }
        return true;
    case DMI_CONFIG_DOUBLE:
        if (!parse_double(value, &real) || real < row->least || real > row->most) {
            return false;
        }
        *(double *)field = real;
        return true;
    case DMI_CONFIG_BOOL:
        return parse_bool(value, field);
    case DMI_CONFIG_ENUM:
        return parse_enum(row->names, value, field);
    default:
        if (!has_form(row->names, value)) {
            return false;
        }
        memcpy(field, value, (size_t)bytes + 1);
        return true;
    }
}

/* In the largest unit that leaves a whole number. */
static void show_bytes(int64_t value, char out[DMI_CONFIG_TEXT])
{
    int unit = 0;
    while (unit < 4 && value != 0 && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    snprintf(out, DMI_CONFIG_TEXT, "%" PRId64 "%.*s", value, unit > 0, &units[unit > 0 ? unit - 1 : 0]);
}

void dmi_config_show(const dmi_config_row *row, const dmi_config *config, char out[DMI_CONFIG_TEXT])
{
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case DMI_CONFIG_INT:
        snprintf(out, DMI_CONFIG_TEXT, "%d", *(const int *)field);
        return;
    case DMI_CONFIG_BYTES:
        show_bytes(*(const int64_t *)field, out);
        return;
    case DMI_CONFIG_DOUBLE:
        snprintf(out, DMI_CONFIG_TEXT, "%g", *(const double *)field);
        return;
    case DMI_CONFIG_BOOL:
        snprintf(out, DMI_CONFIG_TEXT, "%d", *(const bool *)field);
        return;
    case DMI_CONFIG_ENUM: {
        const char *name = row->names;
        for (int number = *(const int *)field; number > 0; number--) {
            name += strcspn(name, "|") + 1;
        }
        snprintf(out, DMI_CONFIG_TEXT, "%.*s", (int)strcspn(name, "|"), name);
        return;
    }
    default:
        snprintf(out, DMI_CONFIG_TEXT, "%s", (const char *)field);
    }
}

void dmi_config_accepts(const dmi_config_row *row, char out[DMI_CONFIG_TEXT])
{
    char least[DMI_CONFIG_TEXT];
    switch (row->type) {
    case DMI_CONFIG_INT:
        snprintf(out, DMI_CONFIG_TEXT, "a whole number from %" PRId64 " to %" PRId64, row->lo, row->hi);
        return;
    case DMI_CONFIG_BYTES:
        show_bytes(row->lo, least);
        int used =
            snprintf(out, DMI_CONFIG_TEXT, "bytes as 65536, 64K, 64M, 1GiB or 2T, at least %.20s", least);
        if (row->hi < INT64_MAX / 4) {
            show_bytes(row->hi, least);
            snprintf(out + used, (size_t)(DMI_CONFIG_TEXT - used), ", at most %.20s", least);
        }
        return;
    case DMI_CONFIG_DOUBLE:
        snprintf(out, DMI_CONFIG_TEXT, "a number from %g to %g", row->least, row->most);
        return;
    case DMI_CONFIG_BOOL:
        snprintf(out, DMI_CONFIG_TEXT, "0, false, no, off, 1, true, yes or on");
        return;
    case DMI_CONFIG_ENUM:
        snprintf(out, DMI_CONFIG_TEXT, "one of %s", row->names);
        return;
    default:
        if (*row->names) {
            snprintf(out, DMI_CONFIG_TEXT, "nothing, or one of %s", row->names);
        } else {
            snprintf(out, DMI_CONFIG_TEXT, "a text of at most %d bytes", DMI_CONFIG_TEXT - 1);
        }
    }
}
