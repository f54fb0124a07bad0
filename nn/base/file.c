/* Whole files. */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dm_status nn_file_read(const char *path, size_t limit, char **bytes, size_t *length)
{
    dm_status status = DM_OK;
    char *data = NULL;
    struct stat about;
    FILE *f = fopen(path, "rbe");
    if (!f || fstat(fileno(f), &about) != 0 || (errno = S_ISDIR(about.st_mode) ? EISDIR : 0) != 0) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    if ((uint64_t)about.st_size > limit) {
        status = dm_error_set(DM_ERR_LIMIT, "%s: has %lld bytes, more than %zu", path, (long long)about.st_size,
                              limit);
        goto out;
    }
    data = malloc((size_t)about.st_size + 1);
    if (!data) {
        status = dm_error_no_memory("the bytes of a file", (size_t)about.st_size + 1);
        goto out;
    }
    size_t n = fread(data, 1, (size_t)about.st_size, f);
    if (ferror(f)) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    data[n] = 0;
    *bytes = data;
    *length = n;
    data = NULL;
out:
    free(data);
    if (f) {
        fclose(f);
    }
    return status;
}

dm_status nn_file_write(const char *path, const void *bytes, size_t length)
{
    dm_status status = DM_OK;
    size_t n = strlen(path) + 32;
    char *partial = malloc(n);
    if (!partial) {
        return dm_error_no_memory("a path", n);
    }
    snprintf(partial, n, "%s.partial-%ld", path, (long)getpid());
    FILE *f = fopen(partial, "wbe");
    bool well = f && fwrite(bytes, 1, length, f) == length && fflush(f) == 0 && fsync(fileno(f)) == 0;
    int why = errno;
    if (f && fclose(f) != 0 && well) {
        well = false;
        why = errno;
    }
    if (well && rename(partial, path) != 0) {
        well = false;
        why = errno;
    }
    if (!well) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written: %s", path, strerror(why));
        unlink(partial);
    }
    free(partial);
    return status;
}
