/* Where settings come from: defaults, environment, option string. */
#include "base/config.h"
#include "base/config_value.h"
#include "base/plain.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "DMATH_"
#define TESTS_PREFIX "DMATH_TEST_"
/* Not a session's: quickstart.sh and test.sh take the first, libdmath_blas the others. */
static const char *const names_of_others[] = {"DMATH_CUDA", "DMATH_BLAS_THRESHOLD", "DMATH_BLAS_LIBRARY"};
#define EMULATED_PREFIX "DMATH_EMULATED_" /* what emulated GPUs are like: of the process, not of a session */
enum { PREFIX_BYTES = sizeof PREFIX - 1, NAME_BYTES = 64 };

extern char **environ;

#define ROW_INT(k, s, l, h, d) {#k, DMI_CONFIG_INT, offsetof(dmi_config, k), s, NULL, d, .lo = l, .hi = h},
#define ROW_BYTES(k, s, l, h, d) {#k, DMI_CONFIG_BYTES, offsetof(dmi_config, k), s, NULL, d, .lo = l, .hi = h},
#define ROW_DOUBLE(k, s, l, h, d)                                                                              \
    {#k, DMI_CONFIG_DOUBLE, offsetof(dmi_config, k), s, NULL, d, .least = l, .most = h},
#define ROW_BOOL(k, s, d) {#k, DMI_CONFIG_BOOL, offsetof(dmi_config, k), s, NULL, d},
#define ROW_ENUM(k, s, n, d) {#k, DMI_CONFIG_ENUM, offsetof(dmi_config, k), s, n, d},
#define ROW_STRING(k, s, n, d) {#k, DMI_CONFIG_STRING, offsetof(dmi_config, k), s, n, d},
static const dmi_config_row rows[] = {
    DMI_CONFIG_MAP(ROW_INT, ROW_BYTES, ROW_DOUBLE, ROW_BOOL, ROW_ENUM, ROW_STRING)};

typedef struct span {
    const char *at;
    int64_t bytes;
} span;

static const dmi_config_row *row_of(span key)
{
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        if (key.bytes == (int64_t)strlen(rows[i].key) &&
            strncasecmp(key.at, rows[i].key, (size_t)key.bytes) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Levenshtein distance of a and b, ignoring case. */
static int distance(span a, const char *b)
{
    int row[NAME_BYTES + 1];
    int width = (int)strlen(b);
    assert(width <= NAME_BYTES);
    for (int j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (int i = 0; i < a.bytes; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            int changed = diagonal + (tolower((unsigned char)a.at[i]) != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = DMI_MIN(changed, DMI_MIN(diagonal, row[j]) + 1);
        }
    }
    return row[width];
}

static const char *nearest(span key)
{
    const char *best = rows[0].key;
    int least = INT32_MAX;
    key.bytes = DMI_MIN(key.bytes, NAME_BYTES);
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        int64_t longer = key.bytes - (int64_t)strlen(rows[i].key); /* the distance is no less */
        int far = longer < least && -longer < least ? distance(key, rows[i].key) : least;
        if (far < least) {
            least = far;
            best = rows[i].key;
        }
    }
    return best;
}

static void variable_name(const char *key, char out[NAME_BYTES])
{
    int used = snprintf(out, NAME_BYTES, PREFIX "%s", key);
    for (int i = 0; i < DMI_MIN(used, NAME_BYTES - 1); i++) {
        out[i] = (char)toupper((unsigned char)out[i]);
    }
}

static span trimmed(span text)
{
    while (text.bytes > 0 && isspace((unsigned char)*text.at)) {
        text.at++;
        text.bytes--;
    }
    while (text.bytes > 0 && isspace((unsigned char)text.at[text.bytes - 1])) {
        text.bytes--;
    }
    return text;
}

static dm_status not_understood(const char *from, const char *name, span value, const dmi_config_row *row)
{
    char accepts[DMI_CONFIG_TEXT];
    dmi_config_accepts(row, accepts);
    return dmi_fail(DM_ERR_CONFIG, "%s %s=%.*s is not understood: accepted is %s", from, name,
                    (int)DMI_MIN(value.bytes, DMI_CONFIG_TEXT), value.at, accepts);
}

static dm_status load_environment(dmi_config *out)
{
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        char name[NAME_BYTES];
        variable_name(rows[i].key, name);
        const char *text = getenv(name);
        span value = text ? trimmed((span){text, (int64_t)strlen(text)}) : (span){0};
        if (value.bytes > 0 && !dmi_config_parse(&rows[i], value.at, value.bytes, out)) {
            return not_understood("environment variable", name, value, &rows[i]);
        }
    }
    return DM_OK;
}

static bool is_others(const char *variable)
{
    bool found = false;
    for (int i = 0; i < DMI_COUNT(names_of_others); i++) {
        size_t length = strlen(names_of_others[i]);
        found = found || (strncmp(variable, names_of_others[i], length) == 0 && variable[length] == '=');
    }
    return found;
}

/* A misspelt variable would otherwise do nothing, silently. */
static void warn_of_unknown_variables(void)
{
    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, PREFIX, PREFIX_BYTES) != 0 || strncmp(*at, TESTS_PREFIX, strlen(TESTS_PREFIX)) == 0 ||
            strncmp(*at, EMULATED_PREFIX, strlen(EMULATED_PREFIX)) == 0 ||
            is_others(*at)) {
            continue;
        }
        span key = {*at + PREFIX_BYTES, (int64_t)strcspn(*at, "=") - PREFIX_BYTES};
        char name[NAME_BYTES], exact[NAME_BYTES];
        const dmi_config_row *row = row_of(key);
        variable_name(row ? row->key : nearest(key), name);
        snprintf(exact, sizeof exact, PREFIX "%.*s", (int)DMI_MIN(key.bytes, NAME_BYTES), key.at);
        if (strcmp(name, exact) != 0) { /* DMATH_Log is unknown too */
            dmi_log(DMI_LOG_WARN, "the environment variable %s is unknown; did you mean %s?", exact, name);
        }
    }
}

/* Consumes one "key=value" or "key='value'" and the comma behind it. */
static dm_status next_option(const char **text, span *key, span *value)
{
    const char *at = *text;
    size_t length = strcspn(at, "=,");
    *key = trimmed((span){at, (int64_t)length});
    if (at[length] != '=') {
        return dmi_fail(DM_ERR_CONFIG, "option %.*s has no value: key=value is expected",
                        (int)DMI_MIN(key->bytes, DMI_CONFIG_TEXT), key->at);
    }
    at += length + 1;
    at += strspn(at, " \t\n");
    bool quoted = *at == '\'';
    at += quoted;
    length = strcspn(at, quoted ? "'" : ",");
    *value = (span){at, (int64_t)length};
    at += length;
    if (!quoted) {
        *value = trimmed(*value);
    } else if (*at == 0) {
        return dmi_fail(DM_ERR_CONFIG, "option %.*s: the closing ' is missing",
                        (int)DMI_MIN(key->bytes, DMI_CONFIG_TEXT), key->at);
    } else {
        at++;
        at += strspn(at, " \t\n");
    }
    if (*at != 0 && *at != ',') {
        return dmi_fail(DM_ERR_CONFIG, "option %.*s: \"%.20s\" follows the closing '",
                        (int)DMI_MIN(key->bytes, DMI_CONFIG_TEXT), key->at, at);
    }
    *text = at + (*at == ',');
    return DM_OK;
}

static dm_status load_options(const char *options, dmi_config *out)
{
    bool given[DMI_COUNT(rows)] = {false};
    for (;;) {
        options += strspn(options, " \t\n,");
        if (*options == 0) {
            return DM_OK;
        }
        span key = {0}, value = {0};
        dm_status status = next_option(&options, &key, &value);
        if (status != DM_OK) {
            return status;
        }
        if (key.bytes == 0) {
            return dmi_fail(DM_ERR_CONFIG, "option =%.*s has no name: key=value is expected",
                            (int)DMI_MIN(value.bytes, DMI_CONFIG_TEXT), value.at);
        }
        const dmi_config_row *row = row_of(key);
        if (!row) {
            return dmi_fail(DM_ERR_CONFIG, "option %.*s (=%.*s) is unknown; did you mean %s?",
                            (int)DMI_MIN(key.bytes, NAME_BYTES), key.at,
                            (int)DMI_MIN(value.bytes, DMI_CONFIG_TEXT), value.at, nearest(key));
        }
        if (given[row - rows]) {
            return dmi_fail(DM_ERR_CONFIG, "option %s is given twice, the second time as %s=%.*s", row->key, row->key,
                            (int)DMI_MIN(value.bytes, DMI_CONFIG_TEXT), value.at);
        }
        given[row - rows] = true;
        if (!dmi_config_parse(row, value.at, value.bytes, out)) {
            return not_understood("option", row->key, value, row);
        }
    }
}

dm_status dmi_config_load(dmi_config *out, const char *options)
{
    dmi_config config;
    memset(&config, 0, sizeof config); /* padding too: a configuration may be compared or sent as bytes */
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        bool understood =
            dmi_config_parse(&rows[i], rows[i].standard, (int64_t)strlen(rows[i].standard), &config);
        assert(understood);
        (void)understood;
    }
    warn_of_unknown_variables();
    dm_status status = load_environment(&config);
    if (status == DM_OK && options) {
        status = load_options(options, &config);
    }
    if (status == DM_OK) {
        *out = config;
    }
    return status;
}

void dmi_config_print(const dmi_config *config, FILE *to)
{
    dmi_plain held;
    dmi_plain_enter(&held);
    for (int i = 0; i < DMI_COUNT(rows); i++) {
        char value[DMI_CONFIG_TEXT], accepts[DMI_CONFIG_TEXT];
        dmi_config_show(&rows[i], config, value);
        dmi_config_accepts(&rows[i], accepts);
        fprintf(to, "%-16s %-10s %s (%s; default %s)\n", rows[i].key, *value ? value : "''", rows[i].doc,
                accepts, *rows[i].standard ? rows[i].standard : "''");
    }
    dmi_plain_leave(&held);
}
