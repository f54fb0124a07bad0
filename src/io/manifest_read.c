/* Reads manifest.json. Its hash shows accidents; everything is checked all the same. */
#include "io/folder.h"
#include "io/hash.h"
#include "io/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WORKERS = 1 << 20 };

/* A reader of one manifest: the first thing that is wrong. */
typedef struct reader {
    const char *path;
    dm_status status;
} reader;

static void wrong(reader *r, const char *what)
{
    if (r->status == DM_OK) {
        r->status = dmi_fail(DM_ERR_FORMAT, "%s: it has no right \"%s\"", r->path, what);
    }
}

static void *room(reader *r, int64_t count, size_t each)
{
    void *out = calloc((size_t)count + 1, each);
    if (!out && r->status == DM_OK) {
        r->status = dmi_fail(DM_ERR_NOMEM, "%s: no memory", r->path);
    }
    return out;
}

static int64_t integer(reader *r, const json_t *from, const char *key, int64_t lo, int64_t hi)
{
    const json_t *value = json_object_get(from, key);
    int64_t out = json_is_integer(value) ? json_integer_value(value) : lo - 1;
    if (!json_is_integer(value) || out < lo || out > hi) {
        wrong(r, key);
        return lo;
    }
    return out;
}

static const char *string(reader *r, const json_t *from, const char *key)
{
    const char *out = json_string_value(json_object_get(from, key));
    if (!out) {
        wrong(r, key);
    }
    return out ? out : "";
}

static uint64_t hash_of(reader *r, const json_t *value, const char *key)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) {
        wrong(r, key);
        return 0;
    }
    return strtoull(text, NULL, 16);
}

/* A list of numbers; NULL where it is wrong. */
static int64_t *list(reader *r, const json_t *from, const char *key, int64_t lo, int64_t hi, int64_t *count)
{
    const json_t *array = json_object_get(from, key);
    *count = json_is_array(array) ? (int64_t)json_array_size(array) : 0;
    if (!json_is_array(array)) {
        wrong(r, key);
        return NULL;
    }
    int64_t *out = room(r, *count, sizeof *out);
    for (int64_t i = 0; out && i < *count; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        out[i] = json_integer_value(value);
        if (!json_is_integer(value) || out[i] < lo || out[i] > hi) {
            wrong(r, key);
        }
    }
    return out;
}

static void dims(reader *r, const json_t *from, const char *key, int64_t lo, int ndim, int64_t *out)
{
    int64_t count = 0, *values = list(r, from, key, lo, INT64_MAX, &count);
    if (values && count != ndim) {
        wrong(r, key);
    }
    for (int d = 0; values && d < ndim && d < count; d++) {
        out[d] = values[d];
    }
    free(values);
}

static void small_dims(reader *r, const json_t *from, const char *key, int ndim, int *out)
{
    int64_t wide[DM_MAX_DIMS] = {0};
    dims(r, from, key, 0, ndim, wide);
    for (int d = 0; d < ndim; d++) {
        if (wide[d] > MOST_WORKERS) {
            wrong(r, key);
        }
        out[d] = (int)wide[d];
    }
}

static int *workers_of(reader *r, const json_t *from, const char *key, int64_t *count)
{
    int64_t *wide = list(r, from, key, 0, MOST_WORKERS, count);
    int *out = wide ? room(r, *count, sizeof *out) : NULL;
    for (int64_t i = 0; out && i < *count; i++) {
        out[i] = (int)wide[i];
    }
    free(wide);
    return out;
}

static void take_layout(reader *r, const json_t *from, int ndim, dmi_saved_layout *out)
{
    const char *kind = string(r, from, "kind");
    int64_t count = 0;
    out->is_explicit = strcmp(kind, "explicit") == 0;
    if (!out->is_explicit && strcmp(kind, "grid") != 0) {
        wrong(r, "kind");
    }
    dims(r, from, "block", 0, ndim, out->block);
    if (out->is_explicit) {
        out->map = workers_of(r, from, "map", &out->map_count);
        return;
    }
    small_dims(r, from, "grid", ndim, out->grid);
    small_dims(r, from, "order", ndim, out->order);
    out->replicas = (int)integer(r, from, "replicas", 0, MOST_WORKERS);
    out->workers = workers_of(r, from, "workers", &count);
    out->nworkers = (int)count;
}

static char *copy_of(reader *r, const char *text)
{
    char *out = strdup(text);
    if (!out && r->status == DM_OK) {
        r->status = dmi_fail(DM_ERR_NOMEM, "%s: no memory", r->path);
    }
    return out;
}

static void take_array(reader *r, const json_t *from, dmi_saved *out)
{
    int64_t shape[DM_MAX_DIMS] = {0}, block[DM_MAX_DIMS] = {0};
    const json_t *hashes = json_object_get(from, "parts_xxh3");
    size_t ndim = json_array_size(json_object_get(from, "shape"));
    const char *file = string(r, from, "file");
    if (ndim > DM_MAX_DIMS || strchr(file, '/') || file[0] == 0 || file[0] == '.') {
        wrong(r, ndim > DM_MAX_DIMS ? "shape" : "file");
        return;
    }
    if (!dmi_dtype_parse(string(r, from, "dtype"), &out->dtype)) {
        wrong(r, "dtype");
    }
    dims(r, from, "shape", 0, (int)ndim, shape);
    dims(r, from, "part_shape", 1, (int)ndim, block);
    if (r->status == DM_OK && !dmi_parts_of(out->dtype, (int)ndim, shape, block, &out->parts)) {
        wrong(r, "part_shape");
    }
    take_layout(r, json_object_get(from, "layout"), (int)ndim, &out->layout);
    out->file = copy_of(r, file);
    out->header_bytes = integer(r, from, "header_bytes", 1, 1 << 20);
    out->file_bytes = integer(r, from, "bytes", out->header_bytes, INT64_MAX);
    out->header_hash = hash_of(r, json_object_get(from, "header_xxh3"), "header_xxh3");
    if (r->status != DM_OK || (int64_t)json_array_size(hashes) != out->parts.count ||
        out->file_bytes != out->header_bytes + dmi_parts_bytes(&out->parts)) {
        wrong(r, "parts_xxh3");
        return;
    }
    out->hash = room(r, out->parts.count, sizeof *out->hash);
    for (int64_t i = 0; out->hash && i < out->parts.count; i++) {
        out->hash[i] = hash_of(r, json_array_get(hashes, (size_t)i), "parts_xxh3");
    }
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static void take_value(reader *r, const json_t *from, dmi_saved *out)
{
    const char *hex = string(r, from, "hex"), *dtype = string(r, from, "dtype");
    size_t digits = strlen(hex);
    out->count = integer(r, from, "count", 0, DMI_VALUE_BYTES);
    if (strcmp(dtype, "bytes") != 0 && !dmi_dtype_parse(dtype, &out->dtype)) {
        wrong(r, "dtype");
    }
    out->value_bytes = out->count * (out->dtype ? dmi_dtype_bytes(out->dtype) : 1);
    if ((int64_t)digits != 2 * out->value_bytes) {
        wrong(r, "hex");
        return;
    }
    out->value = room(r, out->value_bytes, 1);
    for (int64_t i = 0; out->value && i < out->value_bytes; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            wrong(r, "hex");
        }
        out->value[i] = (unsigned char)((high & 15) << 4 | (low & 15));
    }
}

static void take_items(reader *r, const json_t *top, dmi_manifest *out)
{
    const json_t *items = json_object_get(top, "items");
    size_t count = json_array_size(items);
    if (!json_is_array(items) || count > 1 << 24) {
        wrong(r, "items");
        return;
    }
    out->item = room(r, (int64_t)count, sizeof *out->item);
    for (size_t i = 0; out->item && i < count && r->status == DM_OK; i++) {
        const json_t *from = json_array_get(items, i);
        dmi_saved *saved = &out->item[out->items++];
        saved->name = copy_of(r, string(r, from, "name"));
        if (json_object_get(from, "file")) {
            take_array(r, from, saved);
        } else {
            take_value(r, from, saved);
        }
    }
}

/* Is the hash at the end that of the bytes before it? */
static dm_status check_hash(const char *path, const char *text, int64_t bytes)
{
    char want[DMI_MANIFEST_TAIL + 1];
    int64_t body = bytes - DMI_MANIFEST_TAIL;
    if (body > 0) {
        int n = snprintf(want, sizeof want, DMI_MANIFEST_TAIL_FORMAT, dmi_hash64(text, body));
        if (n == DMI_MANIFEST_TAIL && memcmp(text + body, want, DMI_MANIFEST_TAIL) == 0) {
            return DM_OK;
        }
    }
    return dmi_fail(DM_ERR_FORMAT,
                    "%s is not what was saved: the XXH3-64 at its end is not that of the bytes before it",
                    path);
}

static dm_status read_text(const char *path, char **text, int64_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not wait for its writer */
    bool ok = fd >= 0 && fstat(fd, &st) == 0, regular = ok && S_ISREG(st.st_mode);
    *bytes = regular ? (int64_t)st.st_size : 0;
    bool fits = *bytes <= DMI_MANIFEST_BYTES;
    *text = regular && fits ? malloc((size_t)*bytes + 1) : NULL;
    for (int64_t have = 0; *text && ok && have < *bytes;) {
        ssize_t n = pread(fd, *text + have, (size_t)(*bytes - have), (off_t)have);
        ok = n > 0 || (n < 0 && errno == EINTR);
        have += n > 0 ? n : 0;
    }
    dm_status status = ok && *text ? DM_OK
                       : !ok       ? dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno))
                       : !regular  ? dmi_fail(DM_ERR_IO, "%s: not a regular file", path)
                       : fits
                           ? dmi_fail(DM_ERR_NOMEM, "%s: no memory for it", path)
                           : dmi_fail(DM_ERR_LIMIT, "%s has %" PRId64 " bytes, and a manifest has %lld at most",
                                      path, *bytes, (long long)DMI_MANIFEST_BYTES);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

dm_status dmi_manifest_parse(const char *path, const char *text, int64_t bytes, dmi_manifest *out)
{
    json_t *top = NULL;
    *out = (dmi_manifest){0};
    reader r = {.path = path, .status = check_hash(path, text, bytes)};
    if (r.status == DM_OK && !(top = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, NULL))) {
        r.status = dmi_fail(DM_ERR_FORMAT, "%s is not JSON", path);
    }
    if (r.status == DM_OK) {
        out->version = (int)integer(&r, top, "dmath_checkpoint", 1, 1 << 20);
        out->workers = (int)integer(&r, top, "workers", 1, MOST_WORKERS);
        if (r.status == DM_OK && out->version != DMI_CHECKPOINT_VERSION) {
            r.status = dmi_fail(DM_ERR_FORMAT, "%s: version %d of the format is unknown: %d is known", path,
                                out->version, DMI_CHECKPOINT_VERSION);
        }
    }
    if (r.status == DM_OK) {
        take_items(&r, top, out);
    }
    if (r.status != DM_OK) {
        dmi_manifest_free(out);
    }
    json_decref(top);
    return r.status;
}

dm_status dmi_manifest_read(const char *folder, dmi_manifest *out)
{
    char *path = dmi_folder_path(folder, DMI_MANIFEST), *text = NULL;
    int64_t bytes = 0;
    *out = (dmi_manifest){0};
    if (!path) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
    }
    dm_status status = read_text(path, &text, &bytes);
    status = status == DM_OK ? dmi_manifest_parse(path, text, bytes, out) : status;
    free(path);
    free(text);
    return status;
}
