/* LMDB: the one place that calls it. */
#include "base/base.h"
#include "data/lmdb_check.h"
#include "data/record.h"

#ifdef NN_HAVE_LMDB
#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PUTS_A_COMMIT = 1000 };

typedef struct lmdb_source {
    nn_source source;
    MDB_env *env;
    MDB_txn *txn;
    MDB_val *keys, *values; /* of all records: places in the mapped file */
} lmdb_source;

static dm_status lmdb_failed(const char *path, int code)
{
    return dm_error_set(code == MDB_INVALID || code == MDB_CORRUPTED ? DM_ERR_FORMAT : DM_ERR_IO, "%s: %s",
                        path, mdb_strerror(code));
}

static void close_source(nn_source *source)
{
    lmdb_source *s = (lmdb_source *)source;
    if (s->txn) {
        mdb_txn_abort(s->txn);
    }
    if (s->env) {
        mdb_env_close(s->env);
    }
    free(s->keys);
    free(s->values);
    free(s->source.path);
    free(s);
}

static dm_status read_record(nn_source *source, int64_t i, nn_record *out)
{
    const lmdb_source *s = (const lmdb_source *)source;
    char name[128];
    nn_key_name(s->keys[i].mv_data, s->keys[i].mv_size, name, sizeof name);
    dm_status status =
        nn_record_parse(s->values[i].mv_data, s->values[i].mv_size, name, source->colour, true, out);
    return status == DM_OK ? status : dm_error_set(status, "%s: %s", source->path, dm_error_message());
}

/* Does the system tell which pages of the file are in memory? To others it says that all are. */
static bool is_told(MDB_env *env)
{
    struct stat about;
    char path[64];
    mdb_filehandle_t file;
    if (mdb_env_get_fd(env, &file) != 0 || fstat(file, &about) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", (int)file);
    return about.st_uid == geteuid() || access(path, W_OK) == 0;
}

static const void *memory(const nn_source *source, int64_t *bytes)
{
    const lmdb_source *s = (const lmdb_source *)source;
    if (!is_told(s->env)) {
        return NULL;
    }
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int64_t i = 0; i < source->count; i++) {
        const uintptr_t at = (uintptr_t)s->values[i].mv_data;
        begin = at < begin ? at : begin;
        end = at + s->values[i].mv_size > end ? at + s->values[i].mv_size : end;
    }
    begin = begin / page * page;
    *bytes = (int64_t)((end + page - 1) / page * page - begin);
    return (const void *)begin;
}

/* Where each record lies. A walk over the leaves, which does not touch large records. */
static dm_status find_all(lmdb_source *s, MDB_dbi db)
{
    MDB_stat about = {0};
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    int64_t n = 0;
    int code = mdb_stat(s->txn, db, &about);
    code = code ? code : mdb_cursor_open(s->txn, db, &cursor);
    if (code) {
        return lmdb_failed(s->source.path, code);
    }
    s->source.count = (int64_t)about.ms_entries;
    bool sane = about.ms_entries < SIZE_MAX / sizeof *s->keys / 4;
    s->keys = sane ? calloc(about.ms_entries + 1, sizeof *s->keys) : NULL;
    s->values = sane ? calloc(about.ms_entries + 1, sizeof *s->values) : NULL;
    if (!s->keys || !s->values) {
        mdb_cursor_close(cursor);
        return dm_error_no_memory("the keys of a database",
                                  (about.ms_entries + 1) * (sizeof *s->keys + sizeof *s->values));
    }
    while (n <= s->source.count && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (n < s->source.count) {
            s->keys[n] = key;
            s->values[n] = value;
        }
        n++;
    }
    mdb_cursor_close(cursor);
    if (code != 0 && code != MDB_NOTFOUND) {
        return lmdb_failed(s->source.path, code);
    }
    if (n == 0 || n != s->source.count) {
        return dm_error_set(DM_ERR_FORMAT,
                            n ? "%s: the database does not have the records that it counts"
                              : "%s: the database has no records",
                            s->source.path);
    }
    return DM_OK;
}

dm_status nn_lmdb_open(const char *path, nn_source **out)
{
    static const nn_source_type type = {read_record, close_source, memory};
    MDB_dbi db = 0;
    lmdb_source *s = calloc(1, sizeof *s);
    if (!s || !(s->source.path = strdup(path))) {
        free(s);
        return dm_error_no_memory("a database", sizeof *s + strlen(path) + 1);
    }
    s->source.type = &type;
    dm_status status = nn_lmdb_check(path);
    if (status != DM_OK) {
        close_source(&s->source);
        return status;
    }
    int code = mdb_env_create(&s->env);
    code = code
               ? code
               : mdb_env_set_mapsize(s->env, 1); /* as little as what is there takes, not a TiB as of Caffe's */
    code = code ? code : mdb_env_open(s->env, path, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0664);
    status = code ? lmdb_failed(path, code) : DM_OK;
    if (status == DM_OK) {
        code = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->txn);
        code = code ? code : mdb_dbi_open(s->txn, NULL, 0, &db);
        status = code ? lmdb_failed(path, code) : find_all(s, db);
    }
    if (status != DM_OK) {
        close_source(&s->source);
        return status;
    }
    *out = &s->source;
    return DM_OK;
}

/* --- writing */
typedef struct lmdb_sink {
    nn_sink sink;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi db;
    int64_t puts;
} lmdb_sink;

static dm_status put(nn_sink *sink, const char *key, const char *bytes, size_t length)
{
    lmdb_sink *s = (lmdb_sink *)sink;
    MDB_val k = {strlen(key), (void *)(uintptr_t)key}, v = {length, (void *)(uintptr_t)bytes};
    int code = mdb_put(s->txn, s->db, &k, &v, 0);
    if (code == 0 && ++s->puts % PUTS_A_COMMIT == 0) {
        code = mdb_txn_commit(s->txn);
        s->txn = NULL;
        code = code ? code : mdb_txn_begin(s->env, NULL, 0, &s->txn);
    }
    return code ? lmdb_failed(sink->path, code) : DM_OK;
}

static dm_status close_sink(nn_sink *sink, dm_status status)
{
    lmdb_sink *s = (lmdb_sink *)sink;
    if (s->txn && status == DM_OK) {
        int code = mdb_txn_commit(s->txn);
        status = code ? lmdb_failed(sink->path, code) : DM_OK;
    } else if (s->txn) {
        mdb_txn_abort(s->txn);
    }
    if (s->env) {
        mdb_env_close(s->env);
    }
    free(sink->path);
    free(s);
    return status;
}

/* The most it may grow to is what it maps: a TiB, as Caffe's, or less where a process may not have so many
 * addresses. Without a lock file, which is mapped: on a full disk that ends the process. Nobody else has the
 * folder yet, and who opens it later makes the file. */
static int open_new(lmdb_sink *s)
{
    int code = ENOMEM;
    for (int bits = 40; code == ENOMEM && bits >= 30; bits--) {
        mdb_env_close(s->env);
        s->env = NULL;
        code = mdb_env_create(&s->env);
        code = code ? code : mdb_env_set_mapsize(s->env, (size_t)1 << bits);
        code = code ? code : mdb_env_open(s->env, s->sink.path, MDB_NOLOCK, 0664);
    }
    return code;
}

dm_status nn_lmdb_create(const char *path, nn_sink **out)
{
    static const nn_sink_type type = {put, close_sink};
    lmdb_sink *s = calloc(1, sizeof *s);
    if (!s || !(s->sink.path = strdup(path))) {
        free(s);
        return dm_error_no_memory("a database", sizeof *s + strlen(path) + 1);
    }
    s->sink.type = &type;
    dm_status status = DM_OK;
    if (mkdir(path, 0775) != 0) {
        status = dm_error_set(DM_ERR_IO, "%s: the folder cannot be made (or is there already)", path);
    } else {
        int code = open_new(s);
        code = code ? code : mdb_txn_begin(s->env, NULL, 0, &s->txn);
        code = code ? code : mdb_dbi_open(s->txn, NULL, 0, &s->db);
        status = code ? lmdb_failed(path, code) : DM_OK;
    }
    if (status != DM_OK) {
        return close_sink(&s->sink, status);
    }
    *out = &s->sink;
    return DM_OK;
}

#else

static dm_status missing(const char *path)
{
    return dm_error_set(DM_ERR_UNSUPPORTED,
                        "%s: dmath was built without LMDB: install liblmdb-dev and build it again", path);
}

dm_status nn_lmdb_open(const char *path, nn_source **out)
{
    (void)out;
    return missing(path);
}

dm_status nn_lmdb_create(const char *path, nn_sink **out)
{
    (void)out;
    return missing(path);
}
#endif
