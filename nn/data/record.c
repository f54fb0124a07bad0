/* Records, and the databases that hold them. */
#include "data/record.h"

#include "base/base.h"
#include "data/image.h"
#include "proto/wire.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_KEY_SHOWN = 60 };

void nn_record_drop(nn_record *record)
{
    nn_document_free(record->datum);
    free(record->decoded);
    free(record->copied);
    free(record->file);
    record->file = NULL;
    record->copied = NULL;
    record->datum = NULL;
    record->decoded = NULL;
}

void nn_key_name(const void *key, size_t length, char *out, size_t room)
{
    const unsigned char *bytes = key;
    char shown[MAX_KEY_SHOWN + 1];
    size_t n = length < MAX_KEY_SHOWN ? length : MAX_KEY_SHOWN;
    for (size_t i = 0; i < n; i++) {
        shown[i] = (char)(isprint(bytes[i]) ? bytes[i] : '?');
    }
    shown[n] = 0;
    snprintf(out, room, "record '%s'", shown);
}

/* The image inside; its colours are those asked for. */
static dm_status decode(nn_record *r, const nn_entry *bytes, const char *name, nn_colour colour)
{
    nn_image image = {0};
    dm_status status = nn_image_decode((const unsigned char *)bytes->at.text[0].bytes, bytes->at.text[0].length,
                                       name, colour, &image);
    if (status == DM_OK) {
        r->decoded = image.bytes;
        r->bytes = image.bytes;
        r->channels = image.channels;
        r->height = image.height;
        r->width = image.width;
    }
    return status;
}

static dm_status understand(nn_record *r, const char *name, nn_colour colour)
{
    const nn_message *d = r->datum->root;
    const nn_entry *bytes = nn_entry_of(d, "data"), *reals = nn_entry_of(d, "float_data");
    r->label = nn_int(d, "Datum", "label");
    if (nn_int(d, "Datum", "encoded")) {
        return bytes && bytes->count ? decode(r, bytes, name, colour)
                                     : dm_error_set(DM_ERR_FORMAT, "%s is an encoded image without data", name);
    }
    r->channels = nn_int(d, "Datum", "channels");
    r->height = nn_int(d, "Datum", "height");
    r->width = nn_int(d, "Datum", "width");
    if (r->channels <= 0 || r->height <= 0 || r->width <= 0 || r->channels > 1 << 20 || r->height > 1 << 20 ||
        r->width > 1 << 20) {
        return dm_error_set(DM_ERR_FORMAT, "%s has no channels, height and width", name);
    }
    int64_t elements = r->channels * r->height * r->width;
    if (bytes && bytes->count && (int64_t)bytes->at.text[0].length == elements) {
        r->bytes = (const unsigned char *)bytes->at.text[0].bytes;
    } else if (reals && reals->count == elements) {
        r->reals = reals->at.real32;
    } else {
        return dm_error_set(DM_ERR_FORMAT, "%s does not have channels x height x width elements", name);
    }
    return DM_OK;
}

dm_status nn_record_parse(const void *bytes, size_t length, const char *name, nn_colour colour, bool stays,
                          nn_record *out)
{
    nn_record r = {0};
    dm_status status = (stays ? nn_wire_parse_in_place : nn_wire_parse)(bytes, length, name, "Datum", &r.datum);
    status = status == DM_OK ? understand(&r, name, colour) : status;
    if (status != DM_OK) {
        nn_record_drop(&r);
        return status;
    }
    *out = r;
    return DM_OK;
}

/* --- databases */
/* Is there a file of the other kind's in the folder? */
static bool has_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

dm_status nn_source_open(const char *path, nn_backend backend, nn_source **out)
{
    if (backend == NN_LEVELDB && has_file(path, "data.mdb")) {
        return dm_error_set(DM_ERR_FORMAT,
                            "%s: is an LMDB (it has data.mdb), and is read as a LevelDB: write backend: LMDB",
                            path);
    }
    if (backend == NN_LMDB && has_file(path, "CURRENT")) {
        return dm_error_set(DM_ERR_FORMAT,
                            "%s: is a LevelDB (it has CURRENT), and is read as an LMDB: write backend: LEVELDB",
                            path);
    }
    if (backend == NN_LMDB && !has_file(path, "data.mdb")) {
        return dm_error_set(DM_ERR_IO, "%s: is no LMDB: there is no file data.mdb in such a folder", path);
    }
    if (backend == NN_LEVELDB && !has_file(path, "CURRENT")) { /* the library would make a folder */
        return dm_error_set(DM_ERR_IO, "%s: is no LevelDB: there is no file CURRENT in such a folder", path);
    }
    return backend == NN_LMDB ? nn_lmdb_open(path, out) : nn_leveldb_open(path, out);
}

void nn_source_close(nn_source *source)
{
    if (source) {
        source->type->close(source);
    }
}

dm_status nn_sink_open(const char *path, nn_backend backend, nn_sink **out)
{
    return backend == NN_LMDB ? nn_lmdb_create(path, out) : nn_leveldb_create(path, out);
}

dm_status nn_sink_put(nn_sink *sink, const char *key, const nn_message *datum)
{
    char *bytes = NULL;
    size_t length = 0;
    dm_status status = nn_wire_bytes(datum, &bytes, &length);
    if (status == DM_OK) {
        status = sink->type->put(sink, key, bytes, length);
        free(bytes);
    }
    return status;
}

dm_status nn_sink_close(nn_sink *sink, dm_status status)
{
    return sink->type->close(sink, status);
}
