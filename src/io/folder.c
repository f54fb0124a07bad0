#include "io/folder.h"
#include "base/process.h"
#include "io/partial.h"

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

enum { TAG_ROOM = 80, DIGITS = 8 };

char *dmi_folder_path(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *out = malloc(room);
    if (out) {
        snprintf(out, room, "%s/%s", folder, name);
    }
    return out;
}

static dm_status failed(const char *folder, const char *name)
{
    return dmi_fail(DM_ERR_IO, "%s%s%s: %s", folder, name ? "/" : "", name ? name : "", strerror(errno));
}

static dm_status no_memory(void)
{
    return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
}

void dmi_folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* not "." and ".." */
    }
    if (dir) {
        closedir(dir);
    }
    (void)rmdir(folder);
}

static void remove_left(const char *series)
{
    DIR *dir = opendir(series);
    uint64_t place = dmi_process_place();
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        struct stat st;
        if (dmi_partial_is_left(entry->d_name, place) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            st.st_uid == geteuid()) {
            char *left = dmi_folder_path(series, entry->d_name);
            if (left) {
                dmi_folder_remove(left);
            }
            free(left);
        }
    }
    if (dir) {
        closedir(dir);
    }
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

dm_status dmi_folder_begin(const char *series, char **out)
{
    char tag[TAG_ROOM];
    dm_status status = make_series(series);
    if (status != DM_OK) {
        return status;
    }
    remove_left(series);
    dmi_partial_tag(tag, sizeof tag);
    char *path = dmi_folder_path(series, tag);
    if (!path) {
        return no_memory();
    }
    if (mkdir(path, 0777) != 0) {
        status = failed(path, NULL);
        free(path);
        return status;
    }
    *out = path;
    return DM_OK;
}

dm_status dmi_folder_file(const char *folder, const char *name, const void *header, int64_t header_bytes,
                          int64_t bytes)
{
    char *path = dmi_folder_path(folder, name);
    if (!path) {
        return no_memory();
    }
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
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

/* The number that is a folder's name; 0: it is none. */
static int64_t number_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits >= DIGITS && digits < 18 && name[digits] == 0 ? strtoll(name, NULL, 10) : 0;
}

/* The newest of a series with a number below that; 0: there is none. */
static int64_t newest_below(const char *series, int64_t below)
{
    int64_t newest = 0;
    DIR *dir = opendir(series);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        int64_t number = number_of(entry->d_name);
        newest = number < below ? DMI_MAX(newest, number) : newest;
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
        char *path = numbered(series, next);
        if (!path) {
            return no_memory();
        }
        bool ok = rename(folder, path) == 0;
        bool taken = !ok && (errno == ENOTEMPTY || errno == EEXIST); /* another program's */
        dm_status status = ok || taken ? DM_OK : failed(path, NULL);
        free(path);
        if (ok) {
            *number = next;
            return dmi_folder_sync(series, NULL);
        }
        if (!taken) {
            return status;
        }
    }
}

/* It loses its number first, so that no half of it is left under that. */
static void retire(const char *series, const char *folder)
{
    char tag[TAG_ROOM];
    dmi_partial_tag(tag, sizeof tag);
    char *away = dmi_folder_path(series, tag);
    if (away && rename(folder, away) == 0) {
        dmi_folder_remove(away);
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

static bool has_manifest(const char *folder)
{
    char *path = dmi_folder_path(folder, DMI_MANIFEST);
    bool has = path && access(path, F_OK) == 0;
    free(path);
    return has;
}

dm_status dmi_folder_find(const char *path, char **out)
{
    if (has_manifest(path)) {
        *out = strdup(path);
        return *out ? DM_OK : no_memory();
    }
    int64_t newest = newest_below(path, INT64_MAX);
    if (newest == 0) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path,
                        access(path, F_OK) == 0 ? "there is no checkpoint in this folder" : strerror(errno));
    }
    *out = numbered(path, newest);
    return *out ? DM_OK : no_memory();
}
