/* Whole files. */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static dm_status unwritten(const char *path, dm_status status)
{
    return dm_error_set(status, "%s: cannot be written: %s", path, dm_error_message());
}

dm_status nn_file_begin(const char *path, dm_file **out)
{
    dm_status status = dm_file_begin(path, out);
    return status == DM_OK ? DM_OK : unwritten(path, status);
}

dm_status nn_file_finish(const char *path, dm_file *file)
{
    dm_status status = dm_file_finish(file);
    return status == DM_OK ? DM_OK : unwritten(path, status);
}

dm_status nn_file_write(const char *path, const void *bytes, size_t length)
{
    dm_file *file = NULL;
    dm_status status = nn_file_begin(path, &file);
    if (status != DM_OK) {
        return status;
    }
    FILE *f = fopen(dm_file_path(file), "wbe");
    bool well = f && fwrite(bytes, 1, length, f) == length && fflush(f) == 0;
    int why = errno;
    if (f && fclose(f) != 0 && well) {
        well = false;
        why = errno;
    }
    if (well) {
        return nn_file_finish(path, file);
    }
    dm_file_drop(file);
    return dm_error_set(DM_ERR_IO, "%s: cannot be written: %s", path, strerror(why));
}
