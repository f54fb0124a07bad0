/* Files that the program writes itself, and that appear whole or not at all. */
#include "io/partial.h"

#include <dmath/dmath.h>

#include <stdlib.h>

struct dm_file {
    dmi_partial partial;
    char *target;
};

dm_status dm_file_begin(const char *path, dm_file **out)
{
    if (!path || !path[0] || !out) {
        return dmi_fail(DM_ERR_ARG, "file_begin: %s",
                        !out   ? "file is NULL"
                        : path ? "path is empty"
                               : "path is NULL");
    }
    dm_file *f = calloc(1, sizeof *f);
    if (!f) {
        return dmi_fail(DM_ERR_NOMEM, "file_begin: no memory for a file");
    }
    f->partial.fd = -1;
    dm_status status = dmi_partial_target(path, &f->target);
    status = status == DM_OK ? dmi_partial_begin(f->target, NULL, 0, 0, &f->partial) : status;
    if (status != DM_OK) {
        dm_file_drop(f);
        return status;
    }
    *out = f;
    return DM_OK;
}

const char *dm_file_path(const dm_file *file)
{
    return file ? file->partial.path : NULL;
}

dm_status dm_file_finish(dm_file *file)
{
    if (!file) {
        return dmi_fail(DM_ERR_ARG, "file_finish: file is NULL");
    }
    dm_status status = dmi_partial_finish(&file->partial, file->target);
    dm_file_drop(file);
    return status;
}

void dm_file_drop(dm_file *file)
{
    if (file) {
        dmi_partial_end(&file->partial);
        free(file->target);
        free(file);
    }
}
