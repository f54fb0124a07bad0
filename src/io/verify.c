/* The files of a checkpoint against its manifest. */
#include "io/file.h"
#include "io/folder.h"
#include "io/hash.h"
#include "io/manifest.h"
#include "io/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dm_status read_at(int fd, const char *path, int64_t at, int64_t bytes, void *into)
{
    for (int64_t have = 0; have < bytes;) {
        ssize_t n = pread(fd, (char *)into + have, (size_t)(bytes - have), (off_t)(at + have));
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return dmi_fail(DM_ERR_IO, "%s: reading byte %" PRId64 ": %s", path, at + have,
                            n < 0 ? strerror(errno) : "the file ends early");
        }
        have += n > 0 ? n : 0;
    }
    return DM_OK;
}

static dm_status check_header(const dmi_saved *saved, int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (st.st_size != saved->file_bytes) {
        return dmi_fail(DM_ERR_FORMAT, "%s is not what was saved: it has %lld bytes, the manifest has %" PRId64,
                        path, (long long)st.st_size, saved->file_bytes);
    }
    char *header = malloc((size_t)saved->header_bytes);
    dm_status status = header ? read_at(fd, path, 0, saved->header_bytes, header)
                              : dmi_fail(DM_ERR_NOMEM, "%s: no memory", path);
    uint64_t hash = status == DM_OK ? dmi_hash64(header, saved->header_bytes) : 0;
    free(header);
    if (status == DM_OK && hash != saved->header_hash) {
        status = dmi_fail(DM_ERR_FORMAT,
                          "%s: the header (%" PRId64 " bytes) is not what was saved: its XXH3-64 is %016" PRIx64
                          ", the manifest has %016" PRIx64,
                          path, saved->header_bytes, hash, saved->header_hash);
    }
    return status;
}

static bool is_as_in(const dmi_saved *saved, const dmi_npy_info *info)
{
    bool same = info->dtype == saved->dtype && info->ndim == saved->parts.ndim &&
                info->data_offset == saved->header_bytes && (!info->fortran_order || info->ndim < 2);
    for (int d = 0; d < info->ndim && same; d++) {
        same = info->shape[d] == saved->parts.shape[d];
    }
    return same;
}

static dm_status open_file(const dmi_saved *saved, const char *folder, char **path, int *fd)
{
    *path = dmi_folder_path(folder, saved->file);
    if (!*path) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
    }
    *fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *fd >= 0 ? DM_OK : dmi_fail(DM_ERR_IO, "%s: %s", *path, strerror(errno));
}

dm_status dmi_saved_check_file(const dmi_saved *saved, const char *folder, bool *swap)
{
    char *path = NULL;
    int fd = -1;
    dmi_npy_info info;
    dm_status status = open_file(saved, folder, &path, &fd);
    status = status == DM_OK ? check_header(saved, fd, path) : status;
    status = status == DM_OK ? dmi_npy_read_header(path, &info) : status;
    if (status == DM_OK && !is_as_in(saved, &info)) {
        status = dmi_fail(DM_ERR_FORMAT, "%s: its header and the manifest do not agree", path);
    }
    if (status == DM_OK) {
        *swap = info.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) && dmi_dtype_bytes(info.dtype) > 1;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return status;
}

static dm_status verify_part(const dmi_saved *saved, int fd, const char *path, int64_t part, char **buffer,
                             int64_t *room)
{
    int64_t offset, bytes;
    dmi_parts_range(&saved->parts, part, &offset, &bytes);
    if (bytes > *room) {
        char *grown = realloc(*buffer, (size_t)bytes);
        if (!grown) {
            return dmi_fail(DM_ERR_NOMEM, "%s: no memory for a part", path);
        }
        *buffer = grown;
        *room = bytes;
    }
    dm_status status = read_at(fd, path, saved->header_bytes + offset, bytes, *buffer);
    uint64_t hash = status == DM_OK ? dmi_hash64(*buffer, bytes) : 0;
    return status != DM_OK || hash == saved->hash[part]
               ? status
               : dmi_part_differs(path, part, saved->header_bytes + offset, bytes, hash, saved->hash[part]);
}

dm_status dmi_saved_verify(const dmi_saved *saved, const char *folder, void (*each)(void *, const char *),
                           void *context)
{
    char *path = NULL, *buffer = NULL, *first = NULL;
    int fd = -1;
    int64_t room = 0;
    bool swap;
    dm_status status = dmi_saved_check_file(saved, folder, &swap), worst = status;
    if (status != DM_OK && each) {
        each(context, dmi_error_text());
    }
    if (status == DM_OK) {
        worst = status = open_file(saved, folder, &path, &fd);
    }
    for (int64_t part = 0; status == DM_OK && part < saved->parts.count; part++) {
        dm_status differs = verify_part(saved, fd, path, part, &buffer, &room);
        if (differs != DM_OK && each) {
            each(context, dmi_error_text());
        }
        if (differs != DM_OK && worst == DM_OK) {
            worst = differs;
            first = strdup(dmi_error_text());
        }
        status = differs == DM_ERR_FORMAT && each ? DM_OK : differs; /* the others are of interest too */
    }
    if (first) {
        (void)dmi_fail(worst, "%s", first);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(first);
    free(path);
    free(buffer);
    return worst;
}
