#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_BYTES = 4 << 20, GAP_BYTES = 16 << 10 };

/* Walks a part's elements in the order of the file: segments of consecutive file elements. */
typedef struct walker {
    const dmi_copy *g;
    bool reading;
    int order[DM_MAX_DIMS]; /* dims by decreasing file stride */
    int fd;
    const char *path;
    int64_t elem, data_offset;
    bool swap;
    char *memory;
    char *window;            /* bytes [at, at+filled) of the file */
    int64_t at, filled, end; /* end: behind the part's last byte in the file */
    bool through_gaps;       /* reading: what lies between segments is cheaper to read than to skip */
    dm_status status;
} walker;

static int64_t file_stride(const walker *w, int d)
{
    return w->reading ? w->g->src_stride[d] : w->g->dst_stride[d];
}

static int64_t memory_stride(const walker *w, int d)
{
    return w->reading ? w->g->dst_stride[d] : w->g->src_stride[d];
}

static void swap_bytes(char *p, int64_t count, int64_t elem)
{
    for (int64_t i = 0; i < count; i++, p += elem) {
        for (int64_t lo = 0, hi = elem - 1; lo < hi; lo++, hi--) {
            char t = p[lo];
            p[lo] = p[hi];
            p[hi] = t;
        }
    }
}

static bool transfer(walker *w, char *buffer, int64_t bytes, int64_t at)
{
    while (bytes > 0) {
        ssize_t n = w->reading ? pread(w->fd, buffer, (size_t)bytes, (off_t)at)
                               : pwrite(w->fd, buffer, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            w->status = dmi_fail(DM_ERR_IO, "%s: %s at byte %lld: %s", w->path, w->reading ? "reading" : "writing",
                                 (long long)at, n < 0 ? strerror(errno) : "the file ends early");
            return false;
        }
        buffer += n;
        bytes -= n;
        at += n;
    }
    return true;
}

/* Copies a stretch between the window and memory with a stride. */
static void scatter(walker *w, char *window, int64_t memory, int64_t count, int64_t stride)
{
    char *m = w->memory + memory * w->elem;
    if (stride == 1) {
        memcpy(w->reading ? m : window, w->reading ? window : m, (size_t)(count * w->elem));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        char *one = m + i * stride * w->elem, *other = window + i * w->elem;
        memcpy(w->reading ? one : other, w->reading ? other : one, (size_t)w->elem);
    }
}

static bool flush(walker *w)
{
    bool ok = w->filled == 0 || transfer(w, w->window, w->filled, w->at);
    w->filled = 0;
    return ok;
}

/* file, memory: element positions; count elements, consecutive in the file. */
static bool segment(walker *w, int64_t file, int64_t memory, int64_t count, int64_t stride)
{
    while (count > 0) {
        int64_t byte = w->data_offset + file * w->elem, n = DMI_MIN(count, WINDOW_BYTES / w->elem);
        if (w->reading) {
            if (byte < w->at || byte + w->elem > w->at + w->filled) {
                int64_t want = w->through_gaps ? DMI_MIN(w->end - byte, WINDOW_BYTES) : n * w->elem;
                if (!transfer(w, w->window, want, byte)) {
                    return false;
                }
                w->at = byte;
                w->filled = want;
                if (w->swap) {
                    swap_bytes(w->window, want / w->elem, w->elem);
                }
            }
            n = DMI_MIN(n, (w->at + w->filled - byte) / w->elem);
            scatter(w, w->window + (byte - w->at), memory, n, stride);
        } else {
            if ((w->filled > 0 && byte != w->at + w->filled) || w->filled + w->elem > WINDOW_BYTES) {
                if (!flush(w)) {
                    return false;
                }
            }
            w->at = w->filled == 0 ? byte : w->at;
            n = DMI_MIN(n, (WINDOW_BYTES - w->filled) / w->elem);
            scatter(w, w->window + w->filled, memory, n, stride);
            w->filled += n * w->elem;
        }
        file += n;
        memory += n * stride;
        count -= n;
    }
    return true;
}

static bool descend(walker *w, int level, int64_t file, int64_t memory)
{
    const dmi_copy *g = w->g;
    if (level == g->ndim) {
        return segment(w, file, memory, 1, 1);
    }
    int d = w->order[level];
    int64_t fs = file_stride(w, d), ms = memory_stride(w, d);
    for (int64_t r = 0; r < g->nrun[d]; r++) {
        const dmi_run *run = &g->run[d][r];
        int64_t f = file + (w->reading ? run->a : run->b) * fs, m = memory + (w->reading ? run->b : run->a) * ms;
        if (level == g->ndim - 1 && fs == 1) {
            if (!segment(w, f, m, run->len, ms)) {
                return false;
            }
            continue;
        }
        for (int64_t i = 0; i < run->len; i++) {
            if (!descend(w, level + 1, f + i * fs, m + i * ms)) {
                return false;
            }
        }
    }
    return true;
}

static dm_status walk(const dmi_file_part *part, const char *path, void *memory, bool reading)
{
    walker w = {.g = &part->geometry, .reading = reading, .path = path, .data_offset = part->data_offset,
                .swap = part->swap, .memory = memory, .elem = dmi_dtype_bytes(part->geometry.src_dtype)};
    const dmi_copy *g = w.g;
    int64_t begin = w.reading ? g->src_offset : g->dst_offset, last = begin, gap = 0;
    for (int d = 0; d < g->ndim; d++) {
        int at = d;
        for (; at > 0 && file_stride(&w, w.order[at - 1]) < file_stride(&w, d); at--) {
            w.order[at] = w.order[at - 1];
        }
        w.order[at] = d;
        const dmi_run *head = &g->run[d][0], *tail = &g->run[d][g->nrun[d] - 1];
        begin += (reading ? head->a : head->b) * file_stride(&w, d);
        last += ((reading ? tail->a : tail->b) + tail->len - 1) * file_stride(&w, d);
        gap = DMI_MAX(gap, file_stride(&w, d) * w.elem);
    }
    w.end = w.data_offset + (last + 1) * w.elem;
    int64_t span = last + 1 - begin;
    w.through_gaps = gap <= GAP_BYTES || g->count >= span / 4;
    w.fd = open(path, (reading ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (w.fd < 0) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    w.window = malloc(WINDOW_BYTES);
    if (!w.window) {
        w.status = dmi_fail(DM_ERR_NOMEM, "%s: no memory for a buffer", path);
    } else if (descend(&w, 0, reading ? g->src_offset : g->dst_offset, reading ? g->dst_offset : g->src_offset) &&
               !reading) {
        (void)flush(&w);
    }
    free(w.window);
    if (close(w.fd) != 0 && w.status == DM_OK && !reading) {
        w.status = dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    return w.status;
}

dm_status dmi_file_read(const dmi_file_part *part, const char *path, void *memory)
{
    return walk(part, path, memory, true);
}

dm_status dmi_file_write(const dmi_file_part *part, const char *path, const void *memory)
{
    return walk(part, path, (void *)(uintptr_t)memory, false); /* only read there */
}
