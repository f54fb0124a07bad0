/* manifest.json. Its last member is the hash of all bytes before it, so that a change of any byte shows. */
#include "io/manifest.h"
#include "base/process.h"
#include "io/folder.h"
#include "io/hash.h"

#include <dmath/dmath.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HASH_ROOM = 17 };

void dmi_manifest_free(dmi_manifest *m)
{
    for (int i = 0; i < m->items; i++) {
        dmi_saved *saved = &m->item[i];
        free(saved->name);
        free(saved->file);
        free(saved->hash);
        free(saved->layout.workers);
        free(saved->layout.map);
        free(saved->value);
    }
    free(m->item);
    *m = (dmi_manifest){0};
}

const dmi_saved *dmi_manifest_find(const dmi_manifest *m, const char *name)
{
    for (int i = 0; i < m->items; i++) {
        if (strcmp(m->item[i].name, name) == 0) {
            return &m->item[i];
        }
    }
    return NULL;
}

bool dmi_manifest_name_fits(const char *name)
{
    json_t *text =
        name && name[0] && strlen(name) <= DMI_NAME_BYTES ? json_string(name) : NULL; /* UTF-8 alone */
    json_decref(text);
    return text != NULL;
}

dm_status dmi_manifest_possible(void)
{
    return DM_OK;
}

char *dmi_manifest_file_name(const char *name, int number)
{
    enum { MOST = 240, ROOM = MOST + 16 };
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    char *out = malloc(ROOM);
    int n = 0;
    for (const char *at = name; out && *at && n < MOST; at++) {
        bool as_it_is = strchr(plain, *at) && !(at == name && *at == '.');
        n += snprintf(out + n, (size_t)(ROOM - n), as_it_is ? "%c" : "%%%02X",
                      as_it_is ? *at : (unsigned char)*at);
    }
    if (out && n >= MOST) {
        n = snprintf(out, ROOM, "%%-%d", number);
    }
    if (out) {
        snprintf(out + n, (size_t)(ROOM - n), ".npy");
    }
    return out;
}

/* --- writing --- */

static json_t *hash_text(uint64_t hash)
{
    char text[HASH_ROOM];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static json_t *sizes(const int64_t *values, int64_t count)
{
    json_t *out = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(out, json_integer(values[i]));
    }
    return out;
}

static json_t *numbers(const int *values, int64_t count)
{
    json_t *out = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(out, json_integer(values[i]));
    }
    return out;
}

static json_t *layout_object(const dmi_saved_layout *y, int ndim)
{
    json_t *out = json_object();
    json_object_set_new(out, "kind", json_string(y->is_explicit ? "explicit" : "grid"));
    json_object_set_new(out, "block", sizes(y->block, ndim));
    if (y->is_explicit) {
        json_object_set_new(out, "map", numbers(y->map, y->map_count));
    } else {
        json_object_set_new(out, "grid", numbers(y->grid, ndim));
        json_object_set_new(out, "order", numbers(y->order, ndim));
        json_object_set_new(out, "replicas", json_integer(y->replicas));
        json_object_set_new(out, "workers", numbers(y->workers, y->nworkers));
    }
    return out;
}

static void set_array(json_t *to, const dmi_saved *saved)
{
    const dmi_parts *p = &saved->parts;
    json_t *parts = json_array();
    for (int64_t i = 0; i < p->count; i++) {
        json_array_append_new(parts, hash_text(saved->hash[i]));
    }
    json_object_set_new(to, "file", json_string(saved->file));
    json_object_set_new(to, "dtype", json_string(dmi_dtype_name(saved->dtype)));
    json_object_set_new(to, "shape", sizes(p->shape, p->ndim));
    json_object_set_new(to, "layout", layout_object(&saved->layout, p->ndim));
    json_object_set_new(to, "bytes", json_integer(saved->file_bytes));
    json_object_set_new(to, "header_bytes", json_integer(saved->header_bytes));
    json_object_set_new(to, "header_xxh3", hash_text(saved->header_hash));
    json_object_set_new(to, "part_shape", sizes(p->block, p->ndim));
    json_object_set_new(to, "parts_xxh3", parts);
}

/* For readers; what is loaded is the bytes. */
static void set_readable(json_t *to, const dmi_saved *saved)
{
    double f64;
    int64_t i64;
    if (saved->dtype == DM_F64 && saved->count == 1) {
        memcpy(&f64, saved->value, sizeof f64);
        if (isfinite(f64)) {
            json_object_set_new(to, "value", json_real(f64));
        }
    } else if (saved->dtype == DM_I64 && saved->count == 1) {
        memcpy(&i64, saved->value, sizeof i64);
        json_object_set_new(to, "value", json_integer(i64));
    }
}

static bool set_value(json_t *to, const dmi_saved *saved)
{
    char *hex = malloc(2 * (size_t)saved->value_bytes + 1);
    for (int64_t i = 0; hex && i < saved->value_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", saved->value[i]);
    }
    if (hex) {
        hex[2 * saved->value_bytes] = 0;
        json_object_set_new(to, "dtype", json_string(saved->dtype ? dmi_dtype_name(saved->dtype) : "bytes"));
        json_object_set_new(to, "count", json_integer(saved->count));
        json_object_set_new(to, "hex", json_string(hex));
        set_readable(to, saved);
    }
    free(hex);
    return hex != NULL;
}

/* NULL: no memory. */
static char *json_of(const dmi_manifest *m)
{
    json_t *top = json_object(), *items = json_array();
    bool ok = true;
    for (int i = 0; i < m->items; i++) {
        json_t *item = json_object();
        json_object_set_new(item, "name", json_string(m->item[i].name));
        if (m->item[i].file) {
            set_array(item, &m->item[i]);
        } else {
            ok = set_value(item, &m->item[i]) && ok;
        }
        ok = json_array_append_new(items, item) == 0 && ok;
    }
    ok = json_object_set_new(top, "dmath_checkpoint", json_integer(DMI_CHECKPOINT_VERSION)) == 0 && ok;
    ok = json_object_set_new(top, "dmath", json_string(dm_version())) == 0 && ok;
    ok = json_object_set_new(top, "workers", json_integer(m->workers)) == 0 && ok;
    ok = json_object_set_new(top, "items", items) == 0 && ok;
    char *text = ok ? json_dumps(top, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(top);
    return text;
}

static dm_status too_large(const char *path)
{
    return dmi_fail(
        DM_ERR_LIMIT,
        "%s: the manifest would be larger than the %lld bytes that can be read: it holds each byte of a "
        "value as two digits, and 16 for each part of an array; large values should be arrays",
        path, (long long)DMI_MANIFEST_BYTES);
}

dm_status dmi_manifest_fits(const char *path, int64_t value_bytes, int64_t hashes)
{
    bool fits = value_bytes < DMI_MANIFEST_BYTES && hashes < DMI_MANIFEST_BYTES &&
                2 * value_bytes + (HASH_ROOM - 1) * hashes < DMI_MANIFEST_BYTES;
    return fits ? DM_OK : too_large(path);
}

dm_status dmi_manifest_text(const dmi_manifest *m, const char *path, char **text, int64_t *bytes)
{
    char *json = json_of(m);
    size_t body = json ? strlen(json) - 2 : 0; /* without "\n}" */
    char *all = json ? realloc(json, body + DMI_MANIFEST_TAIL + 1) : NULL;
    if (!all) {
        free(json);
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for the manifest", path);
    }
    snprintf(all + body, DMI_MANIFEST_TAIL + 1, DMI_MANIFEST_TAIL_FORMAT, dmi_hash64(all, (int64_t)body));
    *text = all;
    *bytes = (int64_t)body + DMI_MANIFEST_TAIL;
    if (*bytes > DMI_MANIFEST_BYTES) {
        *text = NULL;
        free(all);
        return too_large(path);
    }
    return DM_OK;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
    dmi_file_limit held;
    bool ok = true;
    dmi_file_limit_enter(&held);
    while (ok && bytes > 0) {
        ssize_t n = write(fd, text, bytes);
        ok = n > 0 || (n < 0 && errno == EINTR);
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    dmi_file_limit_leave(&held);
    return ok;
}

dm_status dmi_manifest_write(const dmi_manifest *m, const char *folder)
{
    char *path = dmi_folder_path(folder, DMI_MANIFEST), *text = NULL;
    int64_t bytes = 0;
    if (!path) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for the manifest", folder);
    }
    dm_status status = dmi_manifest_text(m, path, &text, &bytes);
    if (status == DM_OK) {
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        bool ok = fd >= 0 && write_all(fd, text, (size_t)bytes);
        if (fd >= 0 && close(fd) != 0) {
            ok = false;
        }
        status = ok ? DM_OK : dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    free(path);
    free(text);
    return status;
}
