/* Text to tokens, and errors that show where they are. */
#include "base/plain.h"
#include "expr/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that begin no character are not counted: the caret stands under the right one. */
static int column_of(const char *text, int from, int at)
{
    int column = 0;
    for (int i = from; i < at; i++) {
        column += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return column;
}

int dmi_expr_fail(expr_parser *p, dm_status status, int at, const char *format, ...)
{
    enum { BEFORE = 60, SHOWN = 100 };
    char reason[400], line[SHOWN + 1];
    if (p->status != DM_OK) {
        return -1;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    int length = (int)strlen(p->text),
        from = at > BEFORE + SHOWN / 4 || length > SHOWN ? DMI_MAX(at - BEFORE, 0) : 0;
    while (from < at && ((unsigned char)p->text[from] & 0xc0) == 0x80) {
        from++;
    }
    int n = DMI_MIN(length - from, SHOWN);
    for (int i = 0; i < n; i++) { /* one line, whatever the text has */
        line[i] = iscntrl((unsigned char)p->text[from + i]) ? ' ' : p->text[from + i];
    }
    line[n] = 0;
    p->status = dmi_fail(status, "map: \"%.*s%s\": %s (column %d)\n  %s\n  %*s^", DMI_MIN(n, SHOWN), line,
                         from + n < length ? "..." : "", reason, column_of(p->text, 0, at) + 1, line,
                         column_of(p->text, from, at), "");
    p->token = (expr_token){.kind = TOKEN_END, .at = at};
    return -1;
}

static bool name_begins(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool name_goes_on(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool dmi_expr_name_ok(const char *name)
{
    enum expr_weak weak;
    double value;
    size_t length = strlen(name);
    bool ok = length > 0 && length < DMI_EXPR_NAME && name_begins(name[0]);
    for (size_t i = 0; i < length && ok; i++) {
        ok = name_goes_on(name[i]);
    }
    return ok && !dmi_expr_constant_named(name, (int)length, &weak, &value);
}

/* Decimal or hexadecimal digits; false: more than 2^64 - 1. */
static bool scan_digits(const char *from, int length, int base, __int128 *out)
{
    *out = 0;
    for (int i = 0; i < length; i++) {
        int c = tolower((unsigned char)from[i]);
        *out = *out * base + (c >= 'a' ? c - 'a' + 10 : c - '0');
        if (*out > (__int128)UINT64_MAX) {
            return false;
        }
    }
    return true;
}

static int digits_at(const char *at, bool hex)
{
    int n = 0;
    while (hex ? isxdigit((unsigned char)at[n]) : isdigit((unsigned char)at[n])) {
        n++;
    }
    return n;
}

static void scan_number(expr_parser *p, expr_token *t)
{
    const char *at = p->text + p->at;
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    int skip = hex ? 2 : 0, n = skip + digits_at(at + skip, hex);
    t->whole = true;
    if (hex && n == 2) {
        dmi_expr_fail(p, DM_ERR_ARG, p->at, "0x without digits");
        return;
    }
    if (!hex && at[n] == '.') {
        n += 1 + digits_at(at + n + 1, false);
        t->whole = false;
    }
    int sign = at[n] && (at[n + 1] == '+' || at[n + 1] == '-');
    if (!hex && (at[n] == 'e' || at[n] == 'E') && isdigit((unsigned char)at[n + 1 + sign])) {
        n += 1 + sign;
        n += digits_at(at + n, false);
        t->whole = false;
    }
    t->kind = TOKEN_NUMBER;
    t->length = n;
    if (name_goes_on(at[n]) || at[n] == '.') {
        dmi_expr_fail(p, DM_ERR_ARG, p->at + n,
                      (at[n] == 'j' || at[n] == 'J') && !name_goes_on(at[n + 1])
                          ? "imaginary numbers are not written in expressions"
                          : "a number does not go on like this: an operator is missing");
    } else if (!t->whole) {
        t->real = dmi_plain_real(at, NULL);
    } else if (!scan_digits(at + skip, n - skip, hex ? 16 : 10, &t->integer)) {
        dmi_expr_fail(p, DM_ERR_ARG, p->at, "a whole number above 2^64 - 1 (with .0 behind it, it is a float)");
    }
}

static int sign_length(const char *at)
{
    static const char *const two[] = {"**", "//", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    for (int i = 0; i < DMI_COUNT(two); i++) {
        if (strncmp(at, two[i], 2) == 0) {
            return 2;
        }
    }
    return 1;
}

void dmi_expr_next(expr_parser *p)
{
    if (p->status != DM_OK) {
        return;
    }
    while (isspace((unsigned char)p->text[p->at])) {
        p->at++;
    }
    const char *at = p->text + p->at;
    expr_token t = {.kind = TOKEN_END, .at = p->at};
    if (isdigit((unsigned char)at[0]) || (at[0] == '.' && isdigit((unsigned char)at[1]))) {
        scan_number(p, &t);
    } else if (name_begins(at[0])) {
        t.kind = TOKEN_NAME;
        while (name_goes_on(at[t.length])) {
            t.length++;
        }
    } else if (at[0] && strchr("+-*/%<>=!&|^~(),", at[0])) {
        t.kind = TOKEN_SIGN;
        t.length = sign_length(at);
        memcpy(t.sign, at, (size_t)t.length);
    } else if (at[0]) {
        dmi_expr_fail(p, DM_ERR_ARG, p->at, "a character that means nothing here");
    }
    if (p->status == DM_OK) {
        p->token = t;
        p->at += t.length;
    }
}

bool dmi_expr_is(const expr_parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && p->token.sign[0] == sign[0] && p->token.sign[1] == sign[1];
}

bool dmi_expr_take(expr_parser *p, const char *sign)
{
    if (!dmi_expr_is(p, sign)) {
        return false;
    }
    dmi_expr_next(p);
    return true;
}
