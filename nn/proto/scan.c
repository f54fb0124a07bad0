/* The tokens of a prototxt file. */
#include "proto/scan.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* ctype.h depends on the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int hex_digit(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_space(nn_scan *s)
{
    while (s->at < s->end) {
        if (*s->at == '#') {
            while (s->at < s->end && *s->at != '\n') {
                s->at++;
            }
        } else if (*s->at == '\n') {
            s->line++;
            s->at++;
        } else if (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\v' || *s->at == '\f') {
            s->at++;
        } else {
            return;
        }
    }
}

static dm_status scan_quoted(nn_scan *s)
{
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote && *s->at != '\n') {
        s->at += *s->at == '\\' && s->at + 1 < s->end && s->at[1] != '\n' ? 2 : 1;
    }
    if (s->at >= s->end || *s->at != quote) {
        return dm_error_set(DM_ERR_FORMAT, "%s:%d: a string has no end on its line", s->file, s->token_line);
    }
    s->at++;
    return DM_OK;
}

/* Letters, digits, points, and signs behind an exponent's e: whether they make a number is seen when it is
 * read. */
static void scan_number(nn_scan *s)
{
    bool hex = s->end - s->at > 1 && s->at[0] == '0' && (s->at[1] == 'x' || s->at[1] == 'X');
    while (s->at < s->end &&
           (is_digit(*s->at) || is_letter(*s->at) || *s->at == '.' ||
            (!hex && (*s->at == '-' || *s->at == '+') && (s->at[-1] == 'e' || s->at[-1] == 'E')))) {
        s->at++;
    }
}

dm_status nn_scan_next(nn_scan *s)
{
    dm_status status = DM_OK;
    skip_space(s);
    s->text = s->at;
    s->token_line = s->line;
    if (s->at >= s->end) {
        s->kind = NN_TOKEN_END;
    } else if (is_letter(*s->at)) {
        s->kind = NN_TOKEN_NAME;
        while (s->at < s->end && (is_letter(*s->at) || is_digit(*s->at))) {
            s->at++;
        }
    } else if (is_digit(*s->at) || (*s->at == '.' && s->end - s->at > 1 && is_digit(s->at[1]))) {
        s->kind = NN_TOKEN_NUMBER;
        scan_number(s);
    } else if (*s->at == '"' || *s->at == '\'') {
        s->kind = NN_TOKEN_STRING;
        status = scan_quoted(s);
    } else if (strchr("{}<>[]:;,-", *s->at) && *s->at) {
        s->kind = *s->at++;
    } else {
        status = dm_error_set(DM_ERR_FORMAT, "%s:%d: the character 0x%02x has no meaning here", s->file,
                              s->line, (unsigned)(unsigned char)*s->at);
    }
    s->length = (size_t)(s->at - s->text);
    return status;
}

bool nn_scan_is(const nn_scan *s, const char *word)
{
    return s->kind == NN_TOKEN_NAME && s->length == strlen(word) && memcmp(s->text, word, s->length) == 0;
}

dm_status nn_scan_expected(const nn_scan *s, const char *what)
{
    if (s->kind == NN_TOKEN_END) {
        return dm_error_set(DM_ERR_FORMAT, "%s:%d: expected %s, found the end of the file", s->file,
                            s->token_line, what);
    }
    int shown = s->length < 60 ? (int)s->length : 60;
    return dm_error_set(DM_ERR_FORMAT, "%s:%d: expected %s, found '%.*s'", s->file, s->token_line, what, shown,
                        s->text);
}

/* One escape, at the character behind the backslash; returns how many characters it has, 0 if it is none. */
static int escape(const char *at, const char *end, char *out)
{
    static const char letters[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    if (letter) {
        *out = values[letter - letters];
        return 1;
    }
    int value = 0, n = 0;
    if (*at == 'x' || *at == 'X') {
        for (n = 1; n < 3 && at + n < end && hex_digit(at[n]) >= 0; n++) {
            value = value * 16 + hex_digit(at[n]);
        }
        *out = (char)value;
        return n > 1 ? n : 0;
    }
    for (; n < 3 && at + n < end && at[n] >= '0' && at[n] <= '7'; n++) {
        value = value * 8 + at[n] - '0';
    }
    *out = (char)value;
    return value < 256 ? n : 0;
}

dm_status nn_scan_string(const nn_scan *s, char **bytes, size_t *length)
{
    char *grown = realloc(*bytes, *length + s->length + 1);
    if (!grown) {
        return dm_error_no_memory("a string of a message", *length + s->length + 1);
    }
    *bytes = grown;
    const char *end = s->text + s->length - 1;
    for (const char *at = s->text + 1; at < end;) {
        if (*at != '\\') {
            grown[(*length)++] = *at++;
            continue;
        }
        int n = escape(at + 1, end, &grown[*length]);
        if (n == 0) {
            return dm_error_set(DM_ERR_FORMAT, "%s:%d: a string has an escape that is not C's: '\\%c'", s->file,
                                s->token_line, at[1] >= ' ' && at[1] < 127 ? at[1] : '?');
        }
        (*length)++;
        at += 1 + n;
    }
    grown[*length] = 0;
    return DM_OK;
}
