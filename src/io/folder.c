#include "io/folder.h"
#include "base/process.h"
#include "io/manifest.h"
#include "io/parts.h"
#include "io/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAG_ROOM = 80, DIGITS = 8, MOST_DIGITS = 17 };
#define MOST_NUMBER INT64_C(99999999999999999)

char *dmi_folder_path(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *out = malloc(room);
    if (out) {
        snprintf(out, room, "%s/%s", folder, name);
    }
    return out;
}

/* Links in the name of this folder stay as the shell has them: it may have another real name on other hosts. */
dm_status dmi_folder_absolute(const char *path, char **out)
{
    char *here = path[0] == '/' ? NULL : get_current_dir_name();
    if (path[0] != '/' && !here) {
        return dmi_fail(errno == ENOMEM ? DM_ERR_NOMEM : DM_ERR_IO, "%s: the working folder: %s", path,
                        strerror(errno));
    }
    *out = here ? dmi_folder_path(here, path) : strdup(path);
    free(here);
    return *out ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for a path");
}

static dm_status failed(const char *folder, const char *name)
{
    return dmi_fail(DM_ERR_IO, "%s%s%s: %s", folder, name ? "/" : "", name ? name : "", strerror(errno));
}

static dm_status no_memory(void)
{
    return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
}

/* The entries of a folder that is none behind a link; NULL: it is not to be had. */
static DIR *open_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) {
        close(fd);
    }
    return dir;
}

static bool is_itself(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t bytes = strlen(name), of_end = strlen(end);
    return bytes > of_end && strcmp(name + bytes - of_end, end) == 0;
}

/* Is it a file of a checkpoint? manifest NULL: by its name alone, for one that may not have its manifest yet.
 */
static bool is_ours(DIR *dir, const char *name, const dmi_manifest *manifest)
{
    struct stat st;
    bool named = strcmp(name, DMI_MANIFEST) == 0;
    for (int i = 0; manifest && !named && i < manifest->items; i++) {
        named = manifest->item[i].file && strcmp(manifest->item[i].file, name) == 0;
    }
    if (!manifest && !named) {
        named = ends_with(name, ".npy") || ends_with(name, ".npy" DMI_PART_TABLE);
    }
    return named && fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static void remove_files(const char *folder, const dmi_manifest *manifest)
{
    DIR *dir = open_folder(folder);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        if (is_ours(dir, entry->d_name, manifest)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir) {
        closedir(dir);
    }
    (void)rmdir(folder); /* it stays if there is anything else */
}

static void remove_unfinished(const char *folder)
{
    remove_files(folder, NULL);
}

void dmi_folder_remove(const char *folder)
{
    remove_unfinished(folder);
    dmi_unfinished_forget(folder);
}

void dmi_folder_unfinished(const char *series,
                           void (*one)(void *context, const char *name, dmi_partial_writer writer, int pid),
                           void *context)
{
    DIR *dir = opendir(series);
    uint64_t place = dmi_process_place();
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        int pid = 0;
        struct stat st;
        dmi_partial_writer writer = dmi_partial_by(entry->d_name, place, &pid);
        if (writer != DMI_WRITER_NONE && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode)) {
            one(context, entry->d_name, writer, pid);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void remove_if_left(void *series, const char *name, dmi_partial_writer writer, int pid)
{
    struct stat st;
    char *left = dmi_folder_path(series, name);
    (void)pid;
    if (left && writer == DMI_WRITER_DEAD && lstat(left, &st) == 0 && st.st_uid == geteuid()) {
        remove_unfinished(left);
    }
    free(left);
}

dm_status dmi_folder_file(const char *folder, const char *name, const void *header, int64_t header_bytes,
                          int64_t bytes)
{
    char *path = dmi_folder_path(folder, name);
    if (!path) {
        return no_memory();
    }
    int fd = dmi_unfinished_make(path, 0666, dmi_unfinished_file, NULL);
    free(path);
    bool ok = fd >= 0 && dmi_partial_lay_out(fd, header, header_bytes, bytes);
    dm_status status = ok ? DM_OK : failed(folder, name);
    if (fd >= 0 && close(fd) != 0 && ok) {
        status = failed(folder, name);
    }
    return status;
}

dm_status dmi_folder_sync(const char *folder, const char *name)
{
    char *path = name ? dmi_folder_path(folder, name) : strdup(folder);
    if (!path) {
        return no_memory();
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    dm_status status = fd >= 0 && dmi_partial_sync(fd) ? DM_OK : failed(folder, name);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* The number that is a folder's name, written as numbered() does; 0: it is none. */
static int64_t number_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    bool plain = name[digits] == 0 && (digits == DIGITS || (digits > DIGITS && name[0] != '0'));
    return plain && digits <= MOST_DIGITS ? strtoll(name, NULL, 10) : 0;
}

/* Could the file or folder not be opened though it is there, and of the right kind? Then it counts as dmath's,
 * and who reads it says what is wrong: an older checkpoint must not take its place. */
static bool is_shut(void)
{
    return errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENXIO;
}

/* Is the file there, and a manifest of dmath's, be it damaged? One byte cannot change both its ends. */
static bool is_manifest(int folder, const char *name)
{
    static const char begin[] = DMI_MANIFEST_HEAD;
    char head[sizeof begin - 1], tail[DMI_MANIFEST_TAIL], empty[DMI_MANIFEST_TAIL + 1];
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return is_shut();
    }
    bool known = fstat(fd, &st) == 0, is = !known || S_ISREG(st.st_mode); /* as one that cannot be opened */
    if (known && is) {
        size_t same = (size_t)snprintf(empty, sizeof empty, DMI_MANIFEST_TAIL_FORMAT, UINT64_C(0)) - 16 - 4;
        ssize_t first = pread(fd, head, sizeof head, 0),
                last = pread(fd, tail, sizeof tail, DMI_MAX(st.st_size - DMI_MANIFEST_TAIL, 0));
        is = first < 0 || last < 0 || (first == sizeof head && memcmp(head, begin, sizeof head) == 0) ||
             (last == sizeof tail && memcmp(tail, empty, same) == 0);
    }
    close(fd);
    return is;
}

static bool is_checkpoint(int series, const char *name)
{
    int fd = openat(series, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is = fd >= 0 ? is_manifest(fd, DMI_MANIFEST) : is_shut();
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

/* The newest of a series with a number below that; 0: there is none. Others may have names that are numbers. */
static int64_t newest_below(const char *series, int64_t below)
{
    int64_t newest = 0;
    DIR *dir = opendir(series);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        int64_t number = number_of(entry->d_name);
        if (number < below && number > newest && is_checkpoint(dirfd(dir), entry->d_name)) {
            newest = number;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return newest;
}

static char *numbered(const char *series, int64_t number)
{
    char name[24];
    snprintf(name, sizeof name, "%0*" PRId64, DIGITS, number);
    return dmi_folder_path(series, name);
}

dm_status dmi_folder_publish(const char *series, const char *folder, int64_t *number)
{
    for (int64_t next = newest_below(series, INT64_MAX) + 1;; next++) {
        struct stat there;
        if (next > MOST_NUMBER) {
            return dmi_fail(DM_ERR_LIMIT, "%s: there are no numbers behind that of its newest checkpoint",
                            series);
        }
        char *path = numbered(series, next);
        if (!path) {
            return no_memory();
        }
        bool taken = lstat(path, &there) == 0, ok = !taken && rename(folder, path) == 0;
        taken = taken ||
                (!ok && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)); /* another program's */
        dm_status status = ok || taken ? DM_OK : failed(path, NULL);
        free(path);
        if (ok) {
            dmi_unfinished_forget(folder);
            *number = next;
            return dmi_folder_sync(series, NULL);
        }
        if (!taken) {
            return status;
        }
    }
}

static bool has_others(const char *folder, const dmi_manifest *manifest)
{
    DIR *dir = open_folder(folder);
    bool others = !dir;
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry && !others; entry = readdir(dir)) {
        others = !is_itself(entry->d_name) && !is_ours(dir, entry->d_name, manifest);
    }
    if (dir) {
        closedir(dir);
    }
    return others;
}

/* It loses its number first, so that no half of it is left under that. What has files that its manifest does
 * not name, or no manifest that can be read, stays. */
static void retire(const char *series, const char *folder)
{
    char tag[TAG_ROOM];
    dmi_manifest manifest;
    dmi_partial_tag(tag, sizeof tag);
    char *away = dmi_folder_path(series, tag);
    if (away && dmi_manifest_read(folder, &manifest) == DM_OK) {
        if (!has_others(folder, &manifest) && rename(folder, away) == 0) {
            remove_files(away, &manifest);
        }
        dmi_manifest_free(&manifest);
    }
    free(away);
}

void dmi_folder_thin(const char *series, int keep)
{
    int64_t at = INT64_MAX;
    for (int i = 0; keep > 0 && (at = newest_below(series, at)) > 0; i++) {
        char *folder = i >= keep ? numbered(series, at) : NULL;
        if (folder) {
            retire(series, folder);
        }
        free(folder);
    }
}

static bool has_manifest(const char *folder, bool ours)
{
    struct stat there;
    char *path = dmi_folder_path(folder, DMI_MANIFEST);
    bool has = path && (ours ? is_manifest(AT_FDCWD, path) : lstat(path, &there) == 0);
    free(path);
    return has;
}

/* A new series has its name on the disk before its first checkpoint has one. */
static dm_status make_series(const char *series)
{
    if (mkdir(series, 0777) != 0) {
        return errno == EEXIST ? DM_OK : failed(series, NULL);
    }
    char *above = strdup(series);
    if (!above) {
        return no_memory();
    }
    dm_status status = dmi_folder_sync(dirname(above), NULL);
    free(above);
    return status;
}

static int make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode);
}

dm_status dmi_folder_begin(const char *series, char **out)
{
    char tag[TAG_ROOM];
    dm_status status = make_series(series);
    if (status == DM_OK && has_manifest(series, false)) {
        status = dmi_fail(DM_ERR_ARG,
                          "%s: %s has a file " DMI_MANIFEST
                          ": it is a checkpoint, or another program's folder, and no "
                          "series of checkpoints",
                          dmi_api_called(), series);
    }
    if (status != DM_OK) {
        return status;
    }
    dmi_folder_unfinished(series, remove_if_left, (void *)(uintptr_t)series);
    dmi_partial_tag(tag, sizeof tag);
    char *path = dmi_folder_path(series, tag);
    if (!path) {
        return no_memory();
    }
    if (dmi_unfinished_make(path, 0777, make_folder, remove_unfinished) != 0) {
        status = failed(path, NULL);
        free(path);
        return status;
    }
    *out = path;
    return DM_OK;
}

dm_status dmi_folder_find(const char *path, char **out)
{
    int64_t newest = 0;
    bool itself = has_manifest(path, true);
    /* more than once: a saver may remove one before the next is seen */
    for (int i = 0; i < 3 && newest == 0 && !itself; i++) {
        newest = newest_below(path, INT64_MAX);
    }
    if (newest == 0 && !has_manifest(path, false)) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path,
                        access(path, F_OK) == 0 ? "there is no checkpoint in this folder" : strerror(errno));
    }
    *out = newest > 0 ? numbered(path, newest) : strdup(path); /* who reads it says what is wrong with it */
    return *out ? DM_OK : no_memory();
}
