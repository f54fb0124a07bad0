/* LMDB: the one place that calls it. */
#include "base/base.h"
#include "data/record.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nn_record_drop(nn_record *record)
{
    nn_document_free(record->datum);
    record->datum = NULL;
}

#ifdef NN_HAVE_LMDB
#include <lmdb.h>
#include <sys/stat.h>

enum { PUTS_A_COMMIT = 1000, MAX_KEY_SHOWN = 60 };

struct nn_source {
    char *path;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi db;
    MDB_cursor *cursor;
    int64_t count;
};

static dm_status lmdb_failed(const char *path, int code)
{
    return dm_error_set(code == MDB_INVALID || code == MDB_CORRUPTED ? DM_ERR_FORMAT : DM_ERR_IO, "%s: %s",
                        path, mdb_strerror(code));
}

void nn_source_close(nn_source *source)
{
    if (source) {
        if (source->cursor) {
            mdb_cursor_close(source->cursor);
        }
        if (source->txn) {
            mdb_txn_abort(source->txn);
        }
        if (source->env) {
            mdb_env_close(source->env);
        }
        free(source->path);
        free(source);
    }
}

dm_status nn_source_open(const char *path, nn_source **out)
{
    MDB_stat about = {0};
    nn_source *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return nn_no_memory();
    }
    int code = mdb_env_create(&s->env);
    code = code ? code : mdb_env_open(s->env, path, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0664);
    code = code ? code : mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->txn);
    code = code ? code : mdb_dbi_open(s->txn, NULL, 0, &s->db);
    code = code ? code : mdb_cursor_open(s->txn, s->db, &s->cursor);
    code = code ? code : mdb_stat(s->txn, s->db, &about);
    s->count = (int64_t)about.ms_entries;
    dm_status status = code ? lmdb_failed(path, code) : DM_OK;
    if (status == DM_OK && s->count == 0) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: the database has no records", path);
    }
    if (status != DM_OK) {
        nn_source_close(s);
        return status;
    }
    *out = s;
    return DM_OK;
}

int64_t nn_source_count(const nn_source *source)
{
    return source->count;
}

/* The record that a Datum is; says what is wrong with it. */
static const char *understand(nn_record *r)
{
    const nn_message *d = r->datum->root;
    if (nn_int(d, "Datum", "encoded")) {
        return "is an encoded image, which this build does not decode";
    }
    r->channels = nn_int(d, "Datum", "channels");
    r->height = nn_int(d, "Datum", "height");
    r->width = nn_int(d, "Datum", "width");
    r->label = nn_int(d, "Datum", "label");
    if (r->channels <= 0 || r->height <= 0 || r->width <= 0 || r->channels > 1 << 20 || r->height > 1 << 20 ||
        r->width > 1 << 20) {
        return "has no channels, height and width";
    }
    int64_t elements = r->channels * r->height * r->width;
    const nn_entry *bytes = nn_entry_of(d, "data"), *reals = nn_entry_of(d, "float_data");
    if (bytes && (int64_t)bytes->at.text[0].length == elements) {
        r->bytes = (const unsigned char *)bytes->at.text[0].bytes;
        return NULL;
    }
    if (reals && reals->count == elements) {
        r->reals = reals->at.real32;
        return NULL;
    }
    return "does not have channels x height x width elements";
}

static int step(nn_source *s, MDB_val *key, MDB_val *value)
{
    int code = mdb_cursor_get(s->cursor, key, value, MDB_NEXT);
    return code == MDB_NOTFOUND ? mdb_cursor_get(s->cursor, key, value, MDB_FIRST) : code;
}

dm_status nn_source_skip(nn_source *s, int64_t count)
{
    MDB_val key = {0}, value = {0};
    int code = 0;
    for (int64_t i = 0; code == 0 && i < count % s->count; i++) {
        code = step(s, &key, &value);
    }
    return code ? lmdb_failed(s->path, code) : DM_OK;
}

dm_status nn_source_next(nn_source *s, nn_record *out)
{
    MDB_val key = {0}, value = {0};
    char name[MAX_KEY_SHOWN + 32];
    int code = step(s, &key, &value);
    if (code) {
        return lmdb_failed(s->path, code);
    }
    int shown = key.mv_size < MAX_KEY_SHOWN ? (int)key.mv_size : MAX_KEY_SHOWN;
    nn_record r = {0};
    snprintf(name, sizeof name, "record '%.*s'", shown, (const char *)key.mv_data);
    dm_status status = nn_wire_parse(value.mv_data, value.mv_size, name, "Datum", &r.datum);
    if (status != DM_OK) {
        return dm_error_set(status, "%s: %s", s->path, dm_error_message());
    }
    const char *wrong = understand(&r);
    if (wrong) {
        nn_record_drop(&r);
        return dm_error_set(DM_ERR_FORMAT, "%s: %s %s", s->path, name, wrong);
    }
    *out = r;
    return DM_OK;
}

struct nn_sink {
    char *path;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi db;
    int64_t puts;
};

dm_status nn_sink_open(const char *path, nn_sink **out)
{
    nn_sink *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return nn_no_memory();
    }
    dm_status status = DM_OK;
    if (mkdir(path, 0775) != 0) {
        status = dm_error_set(DM_ERR_IO, "%s: the folder cannot be made (or is there already)", path);
    } else {
        int code = mdb_env_create(&s->env);
        code = code ? code
                    : mdb_env_set_mapsize(s->env, (size_t)1 << 40); /* the most it may grow to, as Caffe's */
        code = code ? code : mdb_env_open(s->env, path, 0, 0664);
        code = code ? code : mdb_txn_begin(s->env, NULL, 0, &s->txn);
        code = code ? code : mdb_dbi_open(s->txn, NULL, 0, &s->db);
        status = code ? lmdb_failed(path, code) : DM_OK;
    }
    if (status != DM_OK) {
        return nn_sink_close(s, status);
    }
    *out = s;
    return DM_OK;
}

dm_status nn_sink_put(nn_sink *s, const char *key, const nn_message *datum)
{
    char *bytes = NULL;
    size_t length = 0;
    dm_status status = nn_wire_bytes(datum, &bytes, &length);
    if (status != DM_OK) {
        return status;
    }
    MDB_val k = {strlen(key), (void *)(uintptr_t)key}, v = {length, bytes};
    int code = mdb_put(s->txn, s->db, &k, &v, 0);
    if (code == 0 && ++s->puts % PUTS_A_COMMIT == 0) {
        code = mdb_txn_commit(s->txn);
        s->txn = NULL;
        code = code ? code : mdb_txn_begin(s->env, NULL, 0, &s->txn);
    }
    free(bytes);
    return code ? lmdb_failed(s->path, code) : DM_OK;
}

dm_status nn_sink_close(nn_sink *s, dm_status status)
{
    if (s->txn && status == DM_OK) {
        int code = mdb_txn_commit(s->txn);
        status = code ? lmdb_failed(s->path, code) : DM_OK;
    } else if (s->txn) {
        mdb_txn_abort(s->txn);
    }
    if (s->env) {
        mdb_env_close(s->env);
    }
    free(s->path);
    free(s);
    return status;
}

#else

static dm_status missing(const char *path)
{
    return dm_error_set(DM_ERR_UNSUPPORTED,
                        "%s: dmath was built without LMDB: install liblmdb-dev and build it again", path);
}

dm_status nn_source_open(const char *path, nn_source **out)
{
    (void)out;
    return missing(path);
}

void nn_source_close(nn_source *source)
{
    (void)source;
}

dm_status nn_source_next(nn_source *source, nn_record *out)
{
    (void)source, (void)out;
    return missing("LMDB");
}

dm_status nn_source_skip(nn_source *source, int64_t count)
{
    (void)source, (void)count;
    return missing("LMDB");
}

int64_t nn_source_count(const nn_source *source)
{
    (void)source;
    return 0;
}

dm_status nn_sink_open(const char *path, nn_sink **out)
{
    (void)out;
    return missing(path);
}

dm_status nn_sink_put(nn_sink *sink, const char *key, const nn_message *datum)
{
    (void)sink, (void)key, (void)datum;
    return missing("LMDB");
}

dm_status nn_sink_close(nn_sink *sink, dm_status status)
{
    (void)sink;
    return status;
}
#endif
