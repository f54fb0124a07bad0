/* LevelDB: the one place that calls it. */
#include "base/base.h"
#include "data/record.h"

#ifdef NN_HAVE_LEVELDB
#include <leveldb/c.h>
#include <stdlib.h>
#include <string.h>

typedef struct record_key {
    char *bytes;
    size_t length;
} record_key;

typedef struct level_source {
    nn_source source;
    leveldb_options_t *options;
    leveldb_readoptions_t *reading;
    leveldb_t *db;
    record_key *keys;
    int64_t room;
} level_source;

static dm_status level_failed(const char *path, char *why)
{
    dm_status status = dm_error_set(strstr(why, "orruption") ? DM_ERR_FORMAT : DM_ERR_IO, "%s: %s", path, why);
    leveldb_free(why);
    return status;
}

static void close_source(nn_source *source)
{
    level_source *s = (level_source *)source;
    if (s->db) {
        leveldb_close(s->db);
    }
    leveldb_readoptions_destroy(s->reading);
    leveldb_options_destroy(s->options);
    for (int64_t i = 0; i < s->source.count; i++) {
        free(s->keys[i].bytes);
    }
    free(s->keys);
    free(s->source.path);
    free(s);
}

static dm_status read_record(nn_source *source, int64_t i, nn_record *out)
{
    const level_source *s = (const level_source *)source;
    char name[128], *why = NULL;
    size_t length = 0;
    nn_key_name(s->keys[i].bytes, s->keys[i].length, name, sizeof name);
    char *bytes = leveldb_get(s->db, s->reading, s->keys[i].bytes, s->keys[i].length, &length, &why);
    if (why || !bytes) {
        dm_status status = dm_error_set(DM_ERR_FORMAT, "%s: %s cannot be read: %s", source->path, name,
                                        why ? why : "it is not there");
        leveldb_free(why);
        return status;
    }
    dm_status status = nn_record_parse(bytes, length, name, source->colour, false, out);
    leveldb_free(bytes);
    return status == DM_OK ? status : dm_error_set(status, "%s: %s", source->path, dm_error_message());
}

static dm_status add_key(level_source *s, const char *bytes, size_t length)
{
    if (s->source.count == s->room) {
        int64_t room = s->room ? 2 * s->room : 1024;
        record_key *keys = realloc(s->keys, (size_t)room * sizeof *keys);
        if (!keys) {
            return dm_error_no_memory("the keys of a database", (size_t)room * sizeof *keys);
        }
        s->keys = keys;
        s->room = room;
    }
    record_key k = {malloc(length + 1), length};
    if (!k.bytes) {
        return dm_error_no_memory("a key of a database", length + 1);
    }
    memcpy(k.bytes, bytes, length);
    s->keys[s->source.count++] = k;
    return DM_OK;
}

static dm_status find_all(level_source *s)
{
    leveldb_iterator_t *at = leveldb_create_iterator(s->db, s->reading);
    dm_status status = DM_OK;
    char *why = NULL;
    for (leveldb_iter_seek_to_first(at); status == DM_OK && leveldb_iter_valid(at); leveldb_iter_next(at)) {
        size_t length = 0;
        const char *bytes = leveldb_iter_key(at, &length);
        status = add_key(s, bytes, length);
    }
    leveldb_iter_get_error(at, &why);
    leveldb_iter_destroy(at);
    if (why) {
        return level_failed(s->source.path, why);
    }
    return status == DM_OK && s->source.count == 0
               ? dm_error_set(DM_ERR_FORMAT, "%s: the database has no records", s->source.path)
               : status;
}

dm_status nn_leveldb_open(const char *path, nn_source **out)
{
    static const nn_source_type type = {read_record, close_source};
    char *why = NULL;
    level_source *s = calloc(1, sizeof *s);
    if (!s || !(s->source.path = strdup(path))) {
        free(s);
        return dm_error_no_memory("a database", sizeof *s + strlen(path) + 1);
    }
    s->source.type = &type;
    s->options = leveldb_options_create();
    s->reading = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(s->reading, 1);
    s->db = leveldb_open(s->options, path, &why);
    dm_status status = why ? level_failed(path, why) : find_all(s);
    if (status != DM_OK) {
        close_source(&s->source);
        return status;
    }
    *out = &s->source;
    return DM_OK;
}

/* --- writing */
typedef struct level_sink {
    nn_sink sink;
    leveldb_options_t *options;
    leveldb_writeoptions_t *writing;
    leveldb_t *db;
} level_sink;

static dm_status put(nn_sink *sink, const char *key, const char *bytes, size_t length)
{
    level_sink *s = (level_sink *)sink;
    char *why = NULL;
    leveldb_put(s->db, s->writing, key, strlen(key), bytes, length, &why);
    return why ? level_failed(sink->path, why) : DM_OK;
}

static dm_status close_sink(nn_sink *sink, dm_status status)
{
    level_sink *s = (level_sink *)sink;
    if (s->db) {
        leveldb_close(s->db);
    }
    leveldb_writeoptions_destroy(s->writing);
    leveldb_options_destroy(s->options);
    free(sink->path);
    free(s);
    return status;
}

dm_status nn_leveldb_create(const char *path, nn_sink **out)
{
    static const nn_sink_type type = {put, close_sink};
    char *why = NULL;
    level_sink *s = calloc(1, sizeof *s);
    if (!s || !(s->sink.path = strdup(path))) {
        free(s);
        return dm_error_no_memory("a database", sizeof *s + strlen(path) + 1);
    }
    s->sink.type = &type;
    s->options = leveldb_options_create();
    s->writing = leveldb_writeoptions_create();
    leveldb_options_set_create_if_missing(s->options, 1);
    leveldb_options_set_error_if_exists(s->options, 1);
    s->db = leveldb_open(s->options, path, &why);
    if (why) {
        return close_sink(&s->sink, level_failed(path, why));
    }
    *out = &s->sink;
    return DM_OK;
}

#else

static dm_status missing(const char *path)
{
    return dm_error_set(
        DM_ERR_UNSUPPORTED,
        "%s: dmath was built without LevelDB: install libleveldb-dev and build it again, or convert the "
        "data and write backend: LMDB",
        path);
}

dm_status nn_leveldb_open(const char *path, nn_source **out)
{
    (void)out;
    return missing(path);
}

dm_status nn_leveldb_create(const char *path, nn_sink **out)
{
    (void)out;
    return missing(path);
}
#endif
