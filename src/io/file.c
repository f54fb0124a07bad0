#include "io/file.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Small ranges go through the buffer: of less than DIRECT_BYTES, and to read, gaps of up to GAP_BYTES between
 * them, which cost less than another system call. */
enum { BUFFER_BYTES = 512 << 10, DIRECT_BYTES = 32 << 10, GAP_BYTES = 4 << 10 };
/* Of so many bytes that have been written the disk is told at once. */
enum { EARLY_BYTES = 256 << 10, PAGE = 4096 };

/* A dim of more than one element. */
typedef struct level {
    int64_t nrun, count;
    const dmi_run *run;
    int64_t file, memory; /* strides */
    /* joined: the elements of all dims below lie behind one another in the file and `step` apart in memory, and
     * so do those of a run of this dim: `inner` elements an index, from file_at and memory_at on. */
    bool joined;
    int64_t inner, file_at, memory_at;
} level;

/* Walks the elements of a file range in the order of the file: segments of consecutive file elements. */
typedef struct walker {
    const dmi_file *file;
    int64_t elem, data_offset;
    int64_t swap; /* bytes of the numbers whose bytes are swapped; 0: none */
    char *memory;
    int levels;
    level level[DM_MAX_DIMS]; /* by decreasing file stride */
    int64_t file_at, memory_at, step;
    char *buffer;            /* bytes [at, at+filled) of the file; made when it is needed */
    int64_t at, filled, begin, end; /* begin, end: the part's first byte in the file, and behind its last one */
    bool through_gaps;       /* reading: gaps between segments are cheaper to read than to skip */
    dm_status status;
} walker;

static void swap_bytes(char *p, int64_t count, int64_t elem)
{
    for (int64_t i = 0; i < count && elem == 2; i++) {
        uint16_t v;
        memcpy(&v, p + 2 * i, sizeof v);
        v = __builtin_bswap16(v);
        memcpy(p + 2 * i, &v, sizeof v);
    }
    for (int64_t i = 0; i < count && elem == 4; i++) {
        uint32_t v;
        memcpy(&v, p + 4 * i, sizeof v);
        v = __builtin_bswap32(v);
        memcpy(p + 4 * i, &v, sizeof v);
    }
    for (int64_t i = 0; i < count && elem == 8; i++) {
        uint64_t v;
        memcpy(&v, p + 8 * i, sizeof v);
        v = __builtin_bswap64(v);
        memcpy(p + 8 * i, &v, sizeof v);
    }
}

/* Beyond `ulimit -f` this is an error. */
static ssize_t write_at(int fd, const char *buffer, size_t bytes, off_t at)
{
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    ssize_t n = pwrite(fd, buffer, bytes, at);
    dmi_file_limit_leave(&held);
    return n;
}

static bool transfer(walker *w, char *buffer, int64_t bytes, int64_t at)
{
    const dmi_file *f = w->file;
    if (f->memory) {
        memcpy(buffer, f->memory + at, (size_t)bytes);
        return true;
    }
    while (bytes > 0) {
        ssize_t n = f->reading ? pread(f->fd, buffer, (size_t)bytes, (off_t)at)
                               : write_at(f->fd, buffer, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            w->status =
                dmi_fail(DM_ERR_IO, "%s: %s at byte %lld: %s", f->path, f->reading ? "reading" : "writing",
                         (long long)at, n < 0 ? strerror(errno) : "the file ends early");
            return false;
        }
        buffer += n;
        bytes -= n;
        at += n;
    }
    return true;
}

/* Elements `to_step` apart from elements `from_step` apart. */
static void spread(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t elem)
{
    for (int64_t i = 0; i < count && elem == 16; i++) {
        memcpy(to + 16 * i * to_step, from + 16 * i * from_step, 16);
    }
    for (int64_t i = 0; i < count && elem == 8; i++) {
        memcpy(to + 8 * i * to_step, from + 8 * i * from_step, 8);
    }
    for (int64_t i = 0; i < count && elem == 4; i++) {
        memcpy(to + 4 * i * to_step, from + 4 * i * from_step, 4);
    }
    for (int64_t i = 0; i < count && elem == 2; i++) {
        memcpy(to + 2 * i * to_step, from + 2 * i * from_step, 2);
    }
    for (int64_t i = 0; i < count && elem == 1; i++) {
        to[i * to_step] = from[i * from_step];
    }
}

/* Copies a range between the buffer and memory. */
static void scatter(const walker *w, char *buffer, int64_t memory, int64_t count)
{
    char *m = w->memory + memory * w->elem;
    if (w->step == 1) {
        memcpy(w->file->reading ? m : buffer, w->file->reading ? buffer : m, (size_t)(count * w->elem));
    } else if (w->file->reading) {
        spread(m, w->step, buffer, 1, count, w->elem);
    } else {
        spread(buffer, 1, m, w->step, count, w->elem);
    }
}

static bool flush(walker *w)
{
    bool ok = w->filled == 0 || transfer(w, w->buffer, w->filled, w->at);
    w->filled = 0;
    return ok;
}

static bool need_buffer(walker *w)
{
    w->buffer = w->buffer ? w->buffer : malloc(BUFFER_BYTES);
    if (!w->buffer) {
        w->status = dmi_fail(DM_ERR_NOMEM, "%s: no memory for a buffer", w->file->path);
    }
    return w->buffer != NULL;
}

/* As many of `count` elements as the buffer has after reading more, if need be; 0: failed. */
static int64_t read_some(walker *w, int64_t byte, int64_t memory, int64_t count)
{
    int64_t n = DMI_MIN(count, BUFFER_BYTES / w->elem);
    if (byte < w->at || byte + w->elem > w->at + w->filled) {
        int64_t want = w->through_gaps ? DMI_MIN(w->end - byte, BUFFER_BYTES / w->elem * w->elem) : n * w->elem;
        if (!transfer(w, w->buffer, want, byte)) {
            return 0;
        }
        w->at = byte;
        w->filled = want;
        if (w->swap > 0) {
            swap_bytes(w->buffer, want / w->swap, w->swap);
        }
    }
    n = DMI_MIN(n, (w->at + w->filled - byte) / w->elem);
    scatter(w, w->buffer + (byte - w->at), memory, n);
    return n;
}

static int64_t write_some(walker *w, int64_t byte, int64_t memory, int64_t count)
{
    if (((w->filled > 0 && byte != w->at + w->filled) || w->filled + w->elem > BUFFER_BYTES) && !flush(w)) {
        return 0;
    }
    w->at = w->filled == 0 ? byte : w->at;
    int64_t n = DMI_MIN(count, (BUFFER_BYTES - w->filled) / w->elem);
    scatter(w, w->buffer + w->filled, memory, n);
    w->filled += n * w->elem;
    return n;
}

/* file, memory: element positions; count elements, consecutive in the file. */
static bool segment(walker *w, int64_t file, int64_t memory, int64_t count)
{
    bool reading = w->file->reading, large = count * w->elem >= DIRECT_BYTES;
    if (w->step == 1 && (large || (reading && !w->through_gaps))) {
        char *m = w->memory + memory * w->elem;
        bool ok = (reading || flush(w)) && transfer(w, m, count * w->elem, w->data_offset + file * w->elem);
        if (ok && w->swap > 0) {
            swap_bytes(m, count * w->elem / w->swap, w->swap);
        }
        return ok;
    }
    while (count > 0) {
        int64_t byte = w->data_offset + file * w->elem, n = 0;
        if (need_buffer(w)) {
            n = reading ? read_some(w, byte, memory, count) : write_some(w, byte, memory, count);
        }
        if (n == 0) {
            return false;
        }
        file += n;
        memory += n * w->step;
        count -= n;
    }
    return true;
}

static bool descend(walker *w, int at, int64_t file, int64_t memory)
{
    const level *l = &w->level[at];
    if (at == w->levels) {
        return segment(w, file, memory, 1);
    }
    for (int64_t r = 0; r < l->nrun; r++) {
        const dmi_run *run = &l->run[r];
        int64_t f = file + (w->file->reading ? run->a : run->b) * l->file;
        int64_t m = memory + (w->file->reading ? run->b : run->a) * l->memory;
        if (l->joined) {
            if (!segment(w, f + l->file_at, m + l->memory_at, run->len * l->inner)) {
                return false;
            }
            continue;
        }
        for (int64_t i = 0; i < run->len; i++) {
            if (!descend(w, at + 1, f + i * l->file, m + i * l->memory)) {
                return false;
            }
        }
    }
    return true;
}

/* The dims of more than one element by decreasing file stride; what the others add is a constant. */
static void sort_levels(walker *w, const dmi_copy *g)
{
    bool reading = w->file->reading;
    w->file_at = reading ? g->src_offset : g->dst_offset;
    w->memory_at = reading ? g->dst_offset : g->src_offset;
    for (int d = 0; d < g->ndim; d++) {
        level l = {.nrun = g->nrun[d], .run = g->run[d]};
        l.file = reading ? g->src_stride[d] : g->dst_stride[d];
        l.memory = reading ? g->dst_stride[d] : g->src_stride[d];
        for (int64_t r = 0; r < l.nrun; r++) {
            l.count += l.run[r].len;
        }
        if (l.count == 1) {
            w->file_at += (reading ? l.run->a : l.run->b) * l.file;
            w->memory_at += (reading ? l.run->b : l.run->a) * l.memory;
            continue;
        }
        int at = w->levels++;
        for (; at > 0 && w->level[at - 1].file < l.file; at--) {
            w->level[at] = w->level[at - 1];
        }
        w->level[at] = l;
    }
}

/* Which dims make one segment of a run; how many segments there are, and how far apart. */
static void join_levels(walker *w, int64_t count)
{
    bool reading = w->file->reading;
    int64_t inner = 1, file_at = 0, memory_at = 0, first = w->file_at, last = first, segments = 1;
    w->step = 1;
    if (w->levels > 0 && w->level[w->levels - 1].file == 1) {
        w->step = w->level[w->levels - 1].memory;
    }
    for (int i = w->levels - 1; i >= 0; i--) {
        level *l = &w->level[i];
        const dmi_run *head = l->run, *tail = &l->run[l->nrun - 1];
        l->joined = inner > 0 && l->file == inner && l->memory == inner * w->step;
        l->inner = inner;
        l->file_at = file_at;
        l->memory_at = memory_at;
        file_at += (reading ? head->a : head->b) * l->file;
        memory_at += (reading ? head->b : head->a) * l->memory;
        segments = !l->joined ? segments * l->count : l->nrun;
        inner = l->joined && l->nrun == 1 ? head->len * inner : 0;
        first += (reading ? head->a : head->b) * l->file;
        last += ((reading ? tail->a : tail->b) + tail->len - 1) * l->file;
    }
    w->begin = w->data_offset + first * w->elem;
    w->end = w->data_offset + (last + 1) * w->elem;
    w->through_gaps =
        !w->file->memory && (last + 1 - first - count) / DMI_MAX(segments - 1, 1) * w->elem <= GAP_BYTES;
}

/* Files that are saved are brought to the disk before they get their name. So the disk begins while the rest is
 * still written, and by all threads that write; the end of it is a wait. Whole pages only: a neighbour may
 * still write to the others. */
static void write_early(const walker *w, int64_t count)
{
    int64_t from = (w->begin + PAGE - 1) / PAGE * PAGE, to = w->end / PAGE * PAGE;
    if (w->end - w->begin == count * w->elem && to - from >= EARLY_BYTES) {
        int error = errno;
        (void)sync_file_range(w->file->fd, (off_t)from, (off_t)(to - from),
                              SYNC_FILE_RANGE_WRITE); /* fsync reports what fails */
        errno = error;
    }
}

dm_status dmi_file_move(const dmi_file *file, const dmi_file_range *part, const dmi_copy *geometry,
                        void *memory)
{
    walker w = {.file = file, .data_offset = part->data_offset, .memory = memory};
    w.elem = dmi_dtype_bytes(geometry->src_dtype);
    w.swap = part->swap ? dmi_dtype_bytes(dmi_dtype_part(geometry->src_dtype)) : 0;
    sort_levels(&w, geometry);
    join_levels(&w, geometry->count);
    if (descend(&w, 0, w.file_at, w.memory_at) && !file->reading) {
        (void)flush(&w);
    }
    free(w.buffer);
    if (w.status == DM_OK && !file->reading && !file->memory) {
        write_early(&w, geometry->count);
    }
    return w.status == DM_OK && part->part > 0 ? dmi_part_moved(file, part, geometry, memory) : w.status;
}

dm_status dmi_file_open(const char *path, bool reading, dmi_file *out)
{
    *out = (dmi_file){.path = path, .reading = reading};
    out->fd = open(path, (reading ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    return out->fd >= 0 ? DM_OK : dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
}

dm_status dmi_file_close(dmi_file *file)
{
    int fd = file->fd;
    file->fd = -1;
    return fd < 0 || close(fd) == 0 || file->reading
               ? DM_OK
               : dmi_fail(DM_ERR_IO, "%s: %s", file->path, strerror(errno));
}

static dm_status whole(const dmi_file_range *part, const char *path, bool reading, void *memory)
{
    dmi_file file;
    dm_status status = dmi_file_open(path, reading, &file);
    if (status != DM_OK) {
        return status;
    }
    status = dmi_file_move(&file, part, &part->geometry, memory);
    if (status != DM_OK) { /* report the first failure */
        file.reading = true;
    }
    dm_status closed = dmi_file_close(&file);
    return status == DM_OK ? closed : status;
}

dm_status dmi_file_read(const dmi_file_range *part, const char *path, void *memory)
{
    return whole(part, path, true, memory);
}

dm_status dmi_file_write(const dmi_file_range *part, const char *path, const void *memory)
{
    return whole(part, path, false, (void *)(uintptr_t)memory); /* only read there */
}
