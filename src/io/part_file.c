/* The hash of a part that has been written, into the table beside its file; and of one that has been read,
 * against what it must be. */
#include "io/file.h"
#include "io/hash.h"
#include "io/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the elements begin in memory. They are consecutive there, as in the file. */
static const char *start_of(const dmi_copy *g, bool reading, const void *memory)
{
    int64_t at = reading ? g->dst_offset : g->src_offset;
    for (int d = 0; d < g->ndim; d++) {
        at += reading ? g->run[d]->b * g->dst_stride[d] : g->run[d]->a * g->src_stride[d];
    }
    return (const char *)memory + at * dmi_dtype_bytes(g->src_dtype);
}

static dm_status enter_in_table(const char *file, int64_t part, uint64_t hash)
{
    dmi_part_entry entry = {hash, hash ^ DMI_PART_WRITTEN};
    size_t room = strlen(file) + sizeof DMI_PART_TABLE;
    char *path = malloc(room);
    if (!path) {
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for a path", file);
    }
    snprintf(path, room, "%s%s", file, DMI_PART_TABLE);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok =
        fd >= 0 && pwrite(fd, &entry, sizeof entry, (off_t)(part * (int64_t)sizeof entry)) == sizeof entry;
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    dm_status status = ok ? DM_OK : dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(error));
    free(path);
    return status;
}

dm_status dmi_part_differs(const char *file, int64_t part, int64_t from, int64_t bytes, uint64_t hash,
                           uint64_t want)
{
    return dmi_fail(DM_ERR_FORMAT,
                    "%s: part %" PRId64 " (bytes %" PRId64 " to %" PRId64
                    ") is not what was saved: its XXH3-64 is %016" PRIx64 ", the manifest has %016" PRIx64,
                    file, part, from, from + bytes - 1, hash, want);
}

dm_status dmi_part_moved(const dmi_file *file, const dmi_file_range *range, const dmi_copy *g,
                         const void *memory)
{
    int64_t bytes = g->count * dmi_dtype_bytes(g->src_dtype), part = range->part - 1;
    uint64_t hash = dmi_hash64(start_of(g, file->reading, memory), bytes), want;
    if (!file->reading) {
        return enter_in_table(file->path, part, hash);
    }
    const char *hashes = file->path + dmi_part_tail((int64_t)strlen(file->path));
    memcpy(&want, hashes + (part - range->first) * (int64_t)sizeof want, sizeof want);
    return hash == want
               ? DM_OK
               : dmi_part_differs(file->path, part, range->data_offset + range->begin, bytes, hash, want);
}
