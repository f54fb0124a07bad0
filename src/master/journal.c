/* Writing a journal. */
#include "master/journal.h"
#include "base/plain.h"
#include "base/process.h"
#include "base/sized.h"
#include "master/checkpoint.h"
#include "master/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Not of stdio: a child of fork would write the parent's half line when it ends. */
struct dmi_journal {
    int file;
    uint32_t hash; /* of the line so far */
    int error;     /* errno of the first write that failed; 0: none. Nothing is written behind it */
    char *path;
    size_t used;
    char text[1 << 13];
};

atomic_int dmi_journals;

uint32_t dmi_journal_hash(uint32_t hash, const void *bytes, size_t count)
{
    const unsigned char *b = bytes;
    hash = hash ? hash : UINT32_C(2166136261);
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ b[i]) * UINT32_C(16777619);
    }
    return hash;
}

/* Brings all to the file. A disk that is full, or `ulimit -f`, does not end the program. */
static void write_out(dmi_journal *j)
{
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    for (size_t at = 0; at < j->used && !j->error;) {
        ssize_t n = write(j->file, j->text + at, j->used - at);
        if (n > 0) {
            at += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            j->error = n == 0 ? EIO : errno;
        }
    }
    j->used = 0;
    dmi_file_limit_leave(&held);
}

static void append(dmi_journal *j, const char *text, size_t bytes)
{
    if (bytes > sizeof j->text - j->used) {
        write_out(j);
    }
    memcpy(j->text + j->used, text, bytes);
    j->used += bytes;
}

static DMI_PRINTF(2, 3) void put(dmi_journal *j, const char *format, ...)
{
    char text[64];
    va_list args;
    dmi_plain held;
    dmi_plain_enter(&held);
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dmi_plain_leave(&held);
    n = DMI_MIN(n, (int)sizeof text - 1);
    j->hash = dmi_journal_hash(j->hash, text, (size_t)n);
    append(j, text, (size_t)n);
}

/* Sessions at once, of this process or others, do not write over each other's. */
static int create(const char *path)
{
    int file =
        open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666); /* a pipe nobody reads is refused */
    if (file >= 0 && (flock(file, LOCK_EX | LOCK_NB) != 0 || ftruncate(file, 0) != 0)) {
        int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

dm_status dmi_journal_open(const char *path, int workers, dmi_journal **out)
{
    dmi_journal *j = calloc(1, sizeof *j);
    char *kept = strdup(path);
    j = j && kept ? j : (free(j), NULL);
    if (!j) {
        free(kept);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a journal");
    }
    j->path = kept;
    j->file = create(path);
    if (j->file < 0) {
        dm_status status = dmi_fail(DM_ERR_IO, "option journal: %s: %s", path, strerror(errno));
        free(j->path);
        free(j);
        return status;
    }
    put(j, DMI_JOURNAL_HEAD "%d", workers);
    dmi_journal_end(j);
    atomic_fetch_add(&dmi_journals, 1);
    *out = j;
    return DM_OK;
}

void dmi_journal_close(dmi_journal *j)
{
    if (j) {
        write_out(j);
        (void)flock(j->file, LOCK_UN); /* a child of fork may have the file still */
        if (close(j->file) != 0 && !j->error) {
            j->error = errno;
        }
        if (j->error) {
            dmi_log(DMI_LOG_WARN, "journal %s is not complete: %s", j->path, strerror(j->error));
        }
        atomic_fetch_sub(&dmi_journals, 1);
        free(j->path);
        free(j);
    }
}

dmi_journal *dmi_journal_begin(const dm_session *session, const char *call)
{
    dmi_session *s = session && dmi_owner_is(session) ? (dmi_session *)atomic_load(&session->live) : NULL;
    if (!s || !s->journal || s->explaining || dmi_session_forked(s)) {
        return NULL;
    }
    put(s->journal, "%s", call);
    return s->journal;
}

void dmi_journal_called(dmi_journal *j)
{
    write_out(j);
}

void dmi_journal_returned(dmi_journal *j, dm_status status)
{
    put(j, " = %d", (int)status);
}

void dmi_journal_end(dmi_journal *j)
{
    char text[16];
    append(j, text, (size_t)snprintf(text, sizeof text, " ~%08" PRIx32 "\n", j->hash));
    write_out(j);
    j->hash = 0;
}

void dmi_put_integer(dmi_journal *j, int64_t value)
{
    put(j, " %" PRId64, value);
}

void dmi_put_real(dmi_journal *j, double value)
{
    put(j, " %a", value);
}

void dmi_put_array(dmi_journal *j, dm_array a)
{
    put(j, " a%" PRIx64, a.id);
}

void dmi_put_program(dmi_journal *j, dm_program p)
{
    put(j, " p%" PRIx64, p.id);
}

void dmi_put_group(dmi_journal *j, dm_group g)
{
    put(j, " g%" PRIx64, g.id);
}

void dmi_put_factor(dmi_journal *j, dm_factor f)
{
    dmi_put_real(j, f.value);
    dmi_put_array(j, f.array);
    dmi_put_integer(j, f.element);
}

void dmi_put_bytes(dmi_journal *j, const void *bytes, int64_t count)
{
    const unsigned char *b = bytes;
    put(j, b ? " x" : " -");
    for (int64_t i = 0; b && i < count; i++) {
        put(j, "%02x", b[i]);
    }
}

void dmi_put_sized(dmi_journal *j, const void *options, size_t known)
{
    size_t size = known;
    if (options) {
        memcpy(&size, options, sizeof size);
        size = DMI_MAX(sizeof size, DMI_MIN(size, known));
    }
    dmi_put_bytes(j, options, (int64_t)size);
}

void dmi_put_text(dmi_journal *j, const char *text)
{
    dmi_put_bytes(j, text, text ? (int64_t)strlen(text) : 0);
}

void dmi_put_integers(dmi_journal *j, const int64_t *value, int64_t count)
{
    put(j, value ? " %" PRId64 : " -", count);
    for (int64_t i = 0; value && i < count; i++) {
        put(j, " %" PRId64, value[i]);
    }
}

void dmi_put_ints(dmi_journal *j, const int *value, int64_t count)
{
    put(j, value ? " %" PRId64 : " -", count);
    for (int64_t i = 0; value && i < count; i++) {
        put(j, " %d", value[i]);
    }
}

void dmi_put_reals(dmi_journal *j, const double *value, int64_t count)
{
    put(j, value ? " %" PRId64 : " -", count);
    for (int64_t i = 0; value && i < count; i++) {
        put(j, " %a", value[i]);
    }
}

void dmi_put_arrays(dmi_journal *j, const dm_array *a, int64_t count)
{
    put(j, a ? " %" PRId64 : " -", count);
    for (int64_t i = 0; a && i < count; i++) {
        dmi_put_array(j, a[i]);
    }
}

void dmi_put_map_args(dmi_journal *j, const dm_map_arg *arg, int64_t count)
{
    put(j, arg ? " %" PRId64 : " -", count);
    for (int64_t i = 0; arg && i < count; i++) {
        dmi_put_text(j, arg[i].name);
        dmi_put_array(j, arg[i].array);
        put(j, " %d %a %" PRId64, arg[i].kind, arg[i].number, arg[i].integer);
    }
}

void dmi_put_layout(dmi_journal *j, const dm_layout *layout)
{
    put(j, layout ? " l" : " -");
    if (layout) {
        put(j, " %d %d %d", layout->kind, layout->single, layout->replicas);
        dmi_put_integers(j, layout->block, DM_MAX_DIMS);
        dmi_put_ints(j, layout->grid, DM_MAX_DIMS);
        dmi_put_ints(j, layout->order, DM_MAX_DIMS);
        dmi_put_ints(j, layout->workers, layout->nworkers);
        dmi_put_ints(j, layout->map, layout->map_count);
    }
}

/* Bytes of a value; 0 where the call will refuse it. */
static int64_t value_bytes(const dm_checkpoint_item *item)
{
    bool known = item->dtype == 0 || dmi_dtype_bytes(item->dtype) > 0;
    bool fits =
        known && item->count >= 0 && item->count <= DMI_VALUE_BYTES && dmi_item_bytes(item) <= DMI_VALUE_BYTES;
    return item->value && fits ? dmi_item_bytes(item) : 0;
}

static void put_value(dmi_journal *j, const dm_checkpoint_item *item)
{
    int64_t bytes = value_bytes(item);
    if (bytes > DMI_JOURNAL_DATA) {
        put(j, " h%08" PRIx32, dmi_journal_hash(0, item->value, (size_t)bytes));
    } else {
        dmi_put_bytes(j, item->value, bytes);
    }
}

void dmi_put_items(dmi_journal *j, const dm_checkpoint_item *item, int64_t count, bool values)
{
    put(j, item ? " %" PRId64 : " -", count);
    for (int64_t i = 0; item && i < count; i++) {
        dmi_put_text(j, item[i].name);
        dmi_put_array(j, item[i].array);
        put(j, " %d %" PRId64 " %d", (int)item[i].dtype, item[i].count, item[i].value != NULL);
        if (values && !item[i].array.id) {
            put_value(j, &item[i]);
        } else {
            put(j, " -");
        }
    }
}

void dmi_put_checkpoint_options(dmi_journal *j, dm_session *session, const dm_checkpoint_options *options)
{
    dmi_session *s = NULL;
    dm_checkpoint_options known = DM_CHECKPOINT_OPTIONS_INIT;
    const dm_checkpoint_item *item = NULL;
    bool whole = options && dmi_sized_take(options, DMI_SIZED_LEAST(dm_checkpoint_options, keep), &known,
                                           sizeof known, "options") == DM_OK;
    put(j, whole ? " o %d %d" : " -", known.keep, known.named);
    bool entered = dmi_enter(session, &s) == DM_OK;
    int count = 0;
    while (entered && dmi_kept_value(s, count)) {
        count++;
    }
    dmi_put_integer(j, count);
    for (int i = 0; i < count && (item = dmi_kept_value(s, i)) != NULL; i++) {
        dmi_put_text(j, item->name);
        put_value(j, item);
    }
}

static const dmi_handle *handle_of(dm_session *session, dm_array a)
{
    dmi_session *s = NULL;
    dmi_handle *h = NULL;
    return dmi_enter(session, &s) == DM_OK && dmi_handle_find(s, a, "array", &h) == DM_OK ? h : NULL;
}

int dmi_journal_ndim(dm_session *session, dm_array a)
{
    const dmi_handle *h = handle_of(session, a);
    return h ? h->desc.ndim : 0;
}

void dmi_put_data(dmi_journal *j, dm_session *session, dm_array a, const int64_t *extent, int dtype,
                  const void *host, int64_t ld)
{
    const dmi_handle *h = handle_of(session, a);
    int64_t bytes = h ? dmi_dtype_bytes(dtype < 0 ? h->desc.dtype : (dm_dtype)dtype) : 0;
    for (int d = 0; h && d < h->desc.ndim; d++) {
        if (__builtin_mul_overflow(bytes, extent ? extent[d] : h->desc.extent[d], &bytes) || bytes < 0) {
            bytes = 0; /* the call refuses it */
        }
    }
    if (!host || ld != 0 || bytes > DMI_JOURNAL_DATA) {
        put(j, " h%08" PRIx32, host && ld == 0 ? dmi_journal_hash(0, host, (size_t)bytes) : 1);
    } else {
        dmi_put_bytes(j, host, bytes);
    }
}
