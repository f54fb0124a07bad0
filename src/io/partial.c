#include "io/partial.h"
#include "base/process.h"
#include "io/folder.h"
#include "io/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK ".partial-"
/* pid, its start, the place (dmi_process_place), number */
#define TAG_FORMAT MARK "%d-%" PRIx64 "-%" PRIx64 "-%llu"
#define TAG_SCAN MARK "%d-%" SCNx64 "-%" SCNx64 "-%llu%n"
enum { TAG_BYTES = 80 };

/* Of a call that has failed. */
static dm_status failure(void)
{
    return errno == ENOMEM ? DM_ERR_NOMEM : DM_ERR_IO;
}

static void remove_file(const char *path)
{
    (void)unlink(path);
}

/* Bytes of the path before the name. */
static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* "" is the current folder. */
static char *folder_of(const char *path)
{
    size_t bytes = folder_bytes(path);
    return bytes ? strndup(path, bytes) : strdup(".");
}

/* The file's name, cut if need be, and who writes it. */
static char *partial_name(const char *path)
{
    static atomic_ullong saves;
    size_t folder = folder_bytes(path), name = strlen(path) - folder;
    if (name > NAME_MAX - TAG_BYTES) {
        for (name = NAME_MAX - TAG_BYTES; name > 0 && (path[folder + name] & 0xc0) == 0x80; name--) {
            /* characters of several bytes stay whole */
        }
    }
    size_t room = folder + NAME_MAX + 1;
    char *out = malloc(room);
    if (out) {
        int pid = (int)getpid();
        snprintf(out, room, "%.*s" TAG_FORMAT, (int)(folder + name), path, pid, dmi_process_start(pid),
                 dmi_process_place(), atomic_fetch_add(&saves, 1));
    }
    return out;
}

void dmi_partial_tag(char *out, size_t room)
{
    static atomic_ullong tags;
    int pid = (int)getpid();
    snprintf(out, room, TAG_FORMAT, pid, dmi_process_start(pid), dmi_process_place(),
             atomic_fetch_add(&tags, 1));
}

dmi_partial_writer dmi_partial_by(const char *name, uint64_t place, int *out)
{
    int pid = 0, length = 0;
    uint64_t start = 0, there = 0;
    unsigned long long number = 0;
    const char *tag = NULL;
    for (const char *at = strstr(name, MARK); at; at = strstr(at + 1, MARK)) {
        tag = at;
    }
    if (!tag || sscanf(tag, TAG_SCAN, &pid, &start, &there, &number, &length) != 4 || tag[length] != 0 ||
        pid <= 0 || start == 0) {
        return DMI_WRITER_NONE;
    }
    if (out) {
        *out = pid;
    }
    return there != place                  ? DMI_WRITER_ELSEWHERE
           : dmi_process_lives(pid, start) ? DMI_WRITER_LIVES
                                           : DMI_WRITER_DEAD;
}

static void remove_left(const char *target)
{
    char *folder = folder_of(target);
    DIR *dir = folder ? opendir(folder) : NULL;
    uint64_t place = dmi_process_place();
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        struct stat st;
        if (dmi_partial_is_left(entry->d_name, place) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_uid == geteuid()) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir) {
        closedir(dir);
    }
    free(folder);
}

bool dmi_partial_lay_out(int fd, const void *header, int64_t header_bytes, int64_t bytes)
{
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    ssize_t n = 1;
    for (int64_t at = 0; at < header_bytes && n > 0; at += n) { /* a write may take a part */
        n = pwrite(fd, (const char *)header + at, (size_t)(header_bytes - at), (off_t)at);
    }
    bool ok = n > 0 && ftruncate(fd, (off_t)bytes) == 0;
    dmi_file_limit_leave(&held);
    return ok;
}

/* What a symbolic link leads to; else the path. Only the last name is resolved: folders may have other real
 * names on the workers' hosts. NULL: no memory, or a broken link (errno). */
static char *behind_links(const char *path)
{
    enum { MOST_LINKS = 40 };
    char to[PATH_MAX];
    errno = ENOMEM;
    char *at = strdup(path);
    for (int i = 0; at; i++) {
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n < 0) {
            return at; /* not a link */
        }
        to[n] = 0;
        const char *slash = strrchr(at, '/');
        size_t folder = slash && to[0] != '/' ? (size_t)(slash - at) + 1 : 0;
        char *next = i < MOST_LINKS ? malloc(folder + (size_t)n + 1) : NULL;
        if (next) {
            memcpy(next, at, folder);
            memcpy(next + folder, to, (size_t)n + 1);
        }
        free(at);
        at = next;
        errno = i < MOST_LINKS ? ENOMEM : ELOOP;
    }
    return NULL;
}

dm_status dmi_partial_target(const char *path, char **out)
{
    struct stat there; /* a file must not replace a device, a pipe or a directory */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return dmi_fail(DM_ERR_IO, "%s is there and is not a regular file", path);
    }
    char *target = behind_links(path);
    dm_status status =
        target ? dmi_folder_absolute(target, out) : dmi_fail(failure(), "%s: %s", path, strerror(errno));
    free(target);
    return status;
}

dm_status dmi_partial_begin(const char *target, const void *header, int64_t header_bytes, int64_t bytes,
                            dmi_partial *out)
{
    struct stat there;
    *out = (dmi_partial){.fd = -1, .path = partial_name(target)};
    if (!out->path) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
    }
    remove_left(target);
    if (stat(target, &there) == 0) {
        out->kept = true;
        out->mode = there.st_mode & 07777;
        out->group = there.st_gid;
    }
    out->fd = dmi_unfinished_make(out->path, out->kept ? 0600 : 0666, dmi_unfinished_file, remove_file);
    return out->fd >= 0 && dmi_partial_lay_out(out->fd, header, header_bytes, bytes)
               ? DM_OK
               : dmi_fail(failure(), "%s: %s", out->path, strerror(errno));
}

/* Some file systems have nothing to bring to a disk. */
bool dmi_partial_sync(int fd)
{
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* A folder that may be written to and not read cannot be brought to the disk by itself. */
static bool sync_folder(const char *target)
{
    errno = ENOMEM;
    char *folder = folder_of(target);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    if (fd < 0) {
        return errno == EACCES;
    }
    bool ok = dmi_partial_sync(fd);
    int error = errno;
    close(fd);
    errno = error;
    return ok;
}

dm_status dmi_partial_finish(dmi_partial *p, const char *target)
{
    if (p->kept) {
        (void)!fchown(p->fd, (uid_t)-1, p->group); /* not everybody may */
    }
    bool ok = (!p->kept || fchmod(p->fd, p->mode) == 0) && dmi_partial_sync(p->fd);
    int error = errno, fd = p->fd;
    p->fd = -1;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(p->path, target) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        return dmi_fail(DM_ERR_IO, "%s: %s", target, strerror(error));
    }
    dmi_unfinished_forget(p->path);
    free(p->path);
    p->path = NULL;
    return sync_folder(target)
               ? DM_OK
               : dmi_fail(failure(), "%s is written, but its folder cannot be brought to the disk: %s", target,
                          strerror(errno));
}

void dmi_partial_end(dmi_partial *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    if (p->path) {
        (void)unlink(p->path);
        dmi_unfinished_forget(p->path);
        free(p->path);
    }
    *p = (dmi_partial){.fd = -1};
}
