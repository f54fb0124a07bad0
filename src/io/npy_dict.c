/* A reader for the subset of Python literals that a .npy header can be. It walks [at, end) once; nothing is
 * terminated by a zero, and nothing in the text is trusted. */
#include "io/npy_dict.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct cursor {
    const char *start, *at, *end;
    bool long_suffix;
} cursor;

typedef struct span {
    const char *at;
    int64_t bytes;
} span;

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };
enum { EXCERPT_BYTES = 100, EXCERPT_SHOWN = 40 };

/* Printable form of the text at `at`, cut after EXCERPT_SHOWN bytes. */
static const char *excerpt(const char *at, const char *end, char out[EXCERPT_BYTES])
{
    int used = 0;
    const char *stop = end - at > EXCERPT_SHOWN ? at + EXCERPT_SHOWN : end;
    for (; at < stop && used < EXCERPT_BYTES - 8; at++) {
        unsigned char c = (unsigned char)*at;
        used += snprintf(out + used, 5, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    }
    memcpy(out + used, at < end ? "..." : "", at < end ? 4 : 1);
    return out;
}

static dm_status unexpected(const cursor *in, const char *wanted)
{
    char text[EXCERPT_BYTES];
    if (in->at == in->end) {
        return dmi_fail(DM_ERR_FORMAT, "the header ends where %s should be", wanted);
    }
    return dmi_fail(DM_ERR_FORMAT, "the header has \"%s\" at byte %td where %s should be",
                    excerpt(in->at, in->end, text), in->at - in->start, wanted);
}

/* White space, and comments up to the end of their line, as Python skips them; no comment is worth a decoder,
 * so they must be ASCII. */
static void skip_space(cursor *in)
{
    bool comment = false;
    for (; in->at < in->end; in->at++) {
        char c = *in->at;
        if (c == '\n') {
            comment = false;
        } else if (c == '#') {
            comment = true;
        } else if (comment ? c == 0 || (unsigned char)c >= 0x80
                           : c != ' ' && c != '\t' && c != '\r' && c != '\f') {
            return;
        }
    }
}

static bool take(cursor *in, char c)
{
    skip_space(in);
    if (in->at < in->end && *in->at == c) {
        in->at++;
        return true;
    }
    return false;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool take_word(cursor *in, const char *word)
{
    skip_space(in);
    int64_t length = (int64_t)strlen(word);
    if (in->end - in->at < length || memcmp(in->at, word, (size_t)length) != 0 ||
        (in->end - in->at > length && is_word(in->at[length]))) {
        return false;
    }
    in->at += length;
    return true;
}

/* '..', "..", '''..''' or """..""", with an optional u or r before it. Neither the keys nor a type code need an
 * escape, so a backslash ends the reading. */
static bool take_string(cursor *in, span *out)
{
    skip_space(in);
    const char *at = in->at;
    if (at < in->end && strchr("uUrR", *at) && *at) {
        at++;
    }
    if (at == in->end || (*at != '\'' && *at != '"')) {
        return false;
    }
    char quote = *at;
    bool triple = in->end - at >= 6 && at[1] == quote && at[2] == quote;
    int marks = triple ? 3 : 1;
    const char *first = at + marks;
    for (at = first; in->end - at >= marks; at++) {
        if (*at == '\\' || *at == 0 || (*at == '\n' && !triple)) {
            return false;
        }
        if (*at == quote && (!triple || (at[1] == quote && at[2] == quote))) {
            *out = (span){first, at - first};
            in->at = at + marks;
            return true;
        }
    }
    return false;
}

static bool span_is(span text, const char *word)
{
    return text.bytes == (int64_t)strlen(word) && memcmp(text.at, word, (size_t)text.bytes) == 0;
}

/* The codes of NumPy, and of ml_dtypes for what NumPy has not, without the byte order. */
static const struct type_code {
    const char *code;
    dm_dtype dtype;
} type_codes[] = {{"f8", DM_F64},    {"f4", DM_F32},   {"f2", DM_F16}, {"i8", DM_I64},   {"i4", DM_I32},
                  {"i2", DM_I16},    {"i1", DM_I8},    {"u8", DM_U64}, {"u4", DM_U32},   {"u2", DM_U16},
                  {"u1", DM_U8},     {"b1", DM_BOOL},  {"c8", DM_C64}, {"c16", DM_C128}, {"V2", DM_BF16},
                  {"V1", DM_F8E4M3}, {"f1", DM_F8E5M2}};

/* Types that NumPy has not, by name. */
static const struct type_code type_names[] = {
    {"bfloat16", DM_BF16}, {"float8_e4m3fn", DM_F8E4M3}, {"float8_e5m2", DM_F8E5M2}};

const char *dmi_npy_type_code(dm_dtype dtype)
{
    for (int i = 0; i < DMI_COUNT(type_codes); i++) {
        if (type_codes[i].dtype == dtype) {
            return type_codes[i].code;
        }
    }
    assert(!"a type without a code");
    return "V1";
}

/* "f8, f4, ... or V2 (bfloat16)" */
static const char *known_codes(char *out, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < DMI_COUNT(type_codes) && used < room; i++) {
        const char *before = i == 0 ? "" : i + 1 == DMI_COUNT(type_codes) ? " or " : ", ";
        const char *behind = type_codes[i].dtype == DM_BF16     ? " (bfloat16)"
                             : type_codes[i].dtype == DM_F8E4M3 ? " (float8_e4m3fn)"
                             : type_codes[i].dtype == DM_F8E5M2 ? " (float8_e5m2)"
                                                                : "";
        used += (size_t)snprintf(out + used, room - used, "%s%s%s", before, type_codes[i].code, behind);
    }
    return out;
}

static dm_status parse_descr(cursor *in, dmi_npy_info *out)
{
    skip_space(in);
    char shown[EXCERPT_BYTES];
    const char *begin = in->at;
    span text;
    if (begin == in->end) {
        return unexpected(in, "descr");
    }
    if (!take_string(in, &text)) {
        return dmi_fail(DM_ERR_FORMAT, "descr %s is not supported: only single numbers, no records",
                        excerpt(begin, in->end, shown));
    }
    span code = text;
    char mark = '=';
    if (code.bytes > 0 && strchr("<>=|", *code.at) && *code.at) {
        mark = *code.at;
        code.at++;
        code.bytes--;
    }
    for (int i = 0; i < DMI_COUNT(type_codes); i++) {
        if (span_is(code, type_codes[i].code)) {
            bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
            out->dtype = type_codes[i].dtype;
            out->big_endian = dmi_dtype_bytes(out->dtype) > 1 && (mark == '>' || (mark != '<' && host_big));
            return DM_OK;
        }
    }
    for (int i = 0; i < DMI_COUNT(type_names); i++) {
        if (span_is(text, type_names[i].code)) {
            out->dtype = type_names[i].dtype;
            out->big_endian = dmi_dtype_bytes(out->dtype) > 1 && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
            return DM_OK;
        }
    }
    char known[300];
    return dmi_fail(DM_ERR_FORMAT, "descr '%s' is not supported: %s are",
                    excerpt(text.at, text.at + text.bytes, shown), known_codes(known, sizeof known));
}

static int digit_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* A Python integer: 12, 1_000, 0x1f, 0o17, 0b11, with a sign before it. */
static dm_status parse_extent(cursor *in, int dim, int64_t *out)
{
    char shown[EXCERPT_BYTES];
    skip_space(in);
    const char *begin = in->at;
    bool negative = take(in, '-');
    if (!negative) {
        take(in, '+');
    }
    skip_space(in);
    int base = 10;
    bool leading_zero = in->at < in->end && *in->at == '0';
    if (leading_zero && in->end - in->at > 1) {
        char kind = (char)(in->at[1] | 0x20);
        base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
        in->at += base == 10 ? 0 : 2;
    }
    const char *first = in->at;
    bool after_mark = base != 10, fits = true; /* an underscore may follow a digit or the base's letter */
    int64_t value = 0;
    for (; in->at < in->end; in->at++) {
        int digit = digit_value(*in->at);
        if (*in->at == '_' && after_mark) {
            after_mark = false;
        } else if (digit < base) {
            fits = fits && !__builtin_mul_overflow(value, base, &value) &&
                   !__builtin_add_overflow(value, digit, &value);
            after_mark = true;
        } else {
            break;
        }
    }
    bool bad = in->at == first || in->at[-1] == '_' || (base == 10 && leading_zero && value != 0);
    if (!bad && in->long_suffix && in->at < in->end && *in->at == 'L') {
        in->at++;
    }
    if (bad || (in->at < in->end && (is_word(*in->at) || *in->at == '.'))) {
        in->at = begin;
        return unexpected(in, "a whole number");
    }
    if (negative && (value != 0 || !fits)) {
        return dmi_fail(DM_ERR_FORMAT, "extent %d of the shape is negative: %s", dim,
                        excerpt(begin, in->at, shown));
    }
    if (!fits) {
        return dmi_fail(DM_ERR_FORMAT, "extent %d of the shape is over 2^63 - 1: %s", dim,
                        excerpt(begin, in->at, shown));
    }
    *out = value;
    return DM_OK;
}

static dm_status parse_shape(cursor *in, dmi_npy_info *out)
{
    if (!take(in, '(')) {
        return unexpected(in, "the shape, a tuple,");
    }
    int ndim = 0;
    bool comma = true;
    while (!take(in, ')')) {
        if (!comma) {
            return unexpected(in, "a comma or the end of the shape");
        }
        if (ndim == DM_MAX_DIMS) {
            return dmi_fail(DM_ERR_FORMAT, "the shape has more than %d dimensions", DM_MAX_DIMS);
        }
        dm_status status = parse_extent(in, ndim, &out->shape[ndim]);
        if (status != DM_OK) {
            return status;
        }
        ndim++;
        comma = take(in, ',');
    }
    /* (3) is a number in brackets, only (3,) is a tuple. */
    if (ndim == 1 && !comma) {
        return dmi_fail(DM_ERR_FORMAT, "the shape (%" PRId64 ") is a number, not a tuple", out->shape[0]);
    }
    out->ndim = ndim;
    return DM_OK;
}

static dm_status parse_order(cursor *in, dmi_npy_info *out)
{
    out->fortran_order = take_word(in, "True");
    if (!out->fortran_order && !take_word(in, "False")) {
        return unexpected(in, "fortran_order, True or False,");
    }
    return DM_OK;
}

static const struct key {
    const char *name;
    int bit;
    dm_status (*parse)(cursor *in, dmi_npy_info *out);
} keys[] = {{"descr", SEEN_DESCR, parse_descr},
            {"fortran_order", SEEN_ORDER, parse_order},
            {"shape", SEEN_SHAPE, parse_shape}};

static dm_status parse_item(cursor *in, int *seen, dmi_npy_info *out)
{
    char shown[EXCERPT_BYTES];
    span name;
    if (!take_string(in, &name)) {
        return unexpected(in, "a key in quotes");
    }
    const struct key *key = NULL;
    for (int i = 0; i < DMI_COUNT(keys); i++) {
        key = span_is(name, keys[i].name) ? &keys[i] : key;
    }
    if (!key) {
        return dmi_fail(DM_ERR_FORMAT, "the header has an unknown key '%s'",
                        excerpt(name.at, name.at + name.bytes, shown));
    }
    if (*seen & key->bit) {
        return dmi_fail(DM_ERR_FORMAT, "the header has the key '%s' twice", key->name);
    }
    *seen |= key->bit;
    if (!take(in, ':')) {
        return unexpected(in, "a colon");
    }
    return key->parse(in, out);
}

dm_status dmi_npy_dict_parse(const char *text, int64_t bytes, bool long_suffix, dmi_npy_info *out)
{
    cursor in = {text, text, text + bytes, long_suffix};
    int seen = 0;
    if (!take(&in, '{')) {
        return unexpected(&in, "a dictionary");
    }
    bool comma = true;
    while (!take(&in, '}')) {
        if (!comma) {
            return unexpected(&in, "a comma or the end of the dictionary");
        }
        dm_status status = parse_item(&in, &seen, out);
        if (status != DM_OK) {
            return status;
        }
        comma = take(&in, ',');
    }
    skip_space(&in);
    if (in.at != in.end) {
        return unexpected(&in, "the end of the header");
    }
    for (int i = 0; i < DMI_COUNT(keys); i++) {
        if (!(seen & keys[i].bit)) {
            return dmi_fail(DM_ERR_FORMAT, "the header lacks the key '%s'", keys[i].name);
        }
    }
    return DM_OK;
}
