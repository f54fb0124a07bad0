#include "data/store.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A record that is kept; it stays where it is until the end. */
typedef struct kept {
    int64_t channels, height, width, label;
    off_t at;              /* in the file */
    unsigned char bytes[]; /* without a file */
} kept;

typedef struct store {
    nn_source source;
    nn_source *inner;
    int64_t limit;
    int file; /* -1: in memory */
    pthread_mutex_t lock;
    int64_t used; /* bytes; under the lock. Beyond the limit: it takes no more */
    _Atomic(kept *) *record;
} store;

static int64_t bytes_of(const nn_record *r)
{
    return r->channels * r->height * r->width;
}

/* Room for a record; -1: there is none. */
static int64_t take_room(store *s, int64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    int64_t at = bytes <= s->limit - s->used ? s->used : -1;
    s->used += at >= 0 ? bytes : 0;
    pthread_mutex_unlock(&s->lock);
    return at;
}

/* A disk that is full takes no more; what is there stays. */
static bool write_all(store *s, const unsigned char *bytes, int64_t count, off_t at)
{
    while (count > 0) {
        ssize_t n = pwrite(s->file, bytes, (size_t)count, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            pthread_mutex_lock(&s->lock);
            s->used = s->limit;
            pthread_mutex_unlock(&s->lock);
            return false;
        }
        bytes += n;
        at += n;
        count -= n;
    }
    return true;
}

/* Keeps a decoded record, if there is room. Another thread may have done so. */
static void keep(store *s, int64_t i, const nn_record *r)
{
    int64_t bytes = bytes_of(r), at = take_room(s, bytes);
    kept *k = at >= 0 ? malloc(sizeof *k + (s->file < 0 ? (size_t)bytes : 0)) : NULL, *none = NULL;
    if (!k) {
        return;
    }
    *k = (kept){r->channels, r->height, r->width, r->label, (off_t)at};
    if (s->file < 0) {
        memcpy(k->bytes, r->bytes, (size_t)bytes);
    } else if (!write_all(s, r->bytes, bytes, k->at)) {
        free(k);
        return;
    }
    if (!atomic_compare_exchange_strong(&s->record[i], &none, k)) {
        free(k);
    }
}

static dm_status read_file(const store *s, const kept *k, int64_t i, nn_record *out)
{
    int64_t count = k->channels * k->height * k->width, done = 0;
    unsigned char *bytes = malloc((size_t)count + 1);
    if (!bytes) {
        return dm_error_no_memory("a record", (size_t)count + 1);
    }
    while (done < count) {
        ssize_t n = pread(s->file, bytes + done, (size_t)(count - done), k->at + done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            free(bytes);
            return dm_error_set(
                DM_ERR_IO, "%s: record %lld cannot be read from the store of decoded images: %s",
                s->source.path, (long long)i, n < 0 ? strerror(errno) : "its file is too short");
        }
        done += n;
    }
    *out = (nn_record){.decoded = bytes,
                       .bytes = bytes,
                       .channels = k->channels,
                       .height = k->height,
                       .width = k->width,
                       .label = k->label};
    return DM_OK;
}

static dm_status read_record(nn_source *source, int64_t i, nn_record *out)
{
    store *s = (store *)source;
    kept *k = atomic_load(&s->record[i]);
    if (k && s->file >= 0) {
        return read_file(s, k, i, out);
    }
    if (k) {
        *out = (nn_record){.bytes = k->bytes,
                           .channels = k->channels,
                           .height = k->height,
                           .width = k->width,
                           .label = k->label};
        return DM_OK;
    }
    dm_status status = s->inner->type->read(s->inner, i, out);
    if (status == DM_OK && out->decoded) {
        keep(s, i, out);
    }
    return status;
}

static const void *memory(const nn_source *source, int64_t *bytes)
{
    const nn_source *inner = ((const store *)source)->inner;
    return inner->type->memory ? inner->type->memory(inner, bytes) : NULL;
}

static void close_store(nn_source *source)
{
    store *s = (store *)source;
    for (int64_t i = 0; s->record && i < s->source.count; i++) {
        free(atomic_load(&s->record[i]));
    }
    if (s->file >= 0) {
        close(s->file);
    }
    nn_source_close(s->inner);
    pthread_mutex_destroy(&s->lock);
    free(s->record);
    free(s);
}

static dm_status open_file(store *s, const char *folder)
{
    static const char name[] = "/dmath-images-XXXXXX";
    char *path = malloc(strlen(folder) + sizeof name);
    if (!path) {
        return dm_error_no_memory("a path", strlen(folder) + sizeof name);
    }
    snprintf(path, strlen(folder) + sizeof name, "%s%s", folder, name);
    s->file = mkostemp(path, O_CLOEXEC);
    dm_status status = s->file >= 0 && unlink(path) == 0
                           ? DM_OK
                           : dm_error_set(DM_ERR_IO, "%s: no file for decoded images can be made there: %s",
                                          folder, strerror(errno));
    free(path);
    return status;
}

dm_status nn_store_open(nn_source *inner, int64_t limit, const char *folder, nn_source **out)
{
    static const nn_source_type type = {read_record, close_store, memory};
    store *s = calloc(1, sizeof *s);
    if (!s) {
        nn_source_close(inner);
        return dm_error_no_memory("a store of records", sizeof *s);
    }
    s->source = (nn_source){&type, inner->path, inner->count, inner->colour};
    s->inner = inner;
    s->limit = limit;
    s->file = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->record = calloc((size_t)inner->count + 1, sizeof *s->record);
    dm_status status =
        s->record ? DM_OK
                  : dm_error_no_memory("a store of records", ((size_t)inner->count + 1) * sizeof *s->record);
    status = status == DM_OK && folder ? open_file(s, folder) : status;
    if (status != DM_OK) {
        close_store(&s->source);
        return status;
    }
    *out = &s->source;
    return DM_OK;
}
