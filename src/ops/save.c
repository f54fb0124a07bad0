/* array -> .npy: every worker of replica 0 writes its own part. */
#include "io/npy.h"
#include "ops/common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file in its full length with its header, under its temporary name. */
static dm_status begin_file(const char *path, const dmi_desc *a, int *header_bytes)
{
    char header[512];
    int64_t count = 1;
    for (int d = 0; d < a->ndim; d++) {
        count *= a->extent[d];
    }
    *header_bytes = dmi_npy_format(a->dtype, a->ndim, a->extent, false, header);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && pwrite(fd, header, (size_t)*header_bytes, 0) == *header_bytes &&
              ftruncate(fd, (off_t)(*header_bytes + count * dmi_dtype_bytes(a->dtype))) == 0;
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    return ok ? DM_OK : dmi_fail(DM_ERR_IO, "save: %s: %s", path, strerror(error));
}

/* A name beside the file's own for the time that it is written, as much of it as leaves room for the rest. */
static char *partial_name(const char *path, uint64_t command)
{
    enum { ADDED = 48 };
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, name = strlen(path) - folder, room = NAME_MAX - ADDED;
    char *out = malloc(folder + NAME_MAX + 1);
    if (out) {
        snprintf(out, folder + NAME_MAX + 1, "%.*s.partial-%ld-%llu", (int)(folder + DMI_MIN(name, room)), path,
                 (long)getpid(), (unsigned long long)command);
    }
    return out;
}

static dm_status save_to(dm_session *session, dm_array a, const dmi_handle *h, uint64_t command, const char *path)
{
    char *partial = partial_name(path, command);
    if (!partial) {
        return dmi_fail(DM_ERR_NOMEM, "save: no memory for a path");
    }
    dmi_call call = {
        .op = DMI_OP_save, .noperand = 1, .tail = partial, .tail_bytes = (int64_t)strlen(partial) + 1};
    dm_status status = begin_file(partial, &h->desc, &call.args.i[0]);
    if (status == DM_OK) {
        status = dmi_call_wait(session, &call, &a, NULL);
    }
    if (status == DM_OK && rename(partial, path) != 0) {
        status = dmi_fail(DM_ERR_IO, "save: %s: %s", path, strerror(errno));
    }
    if (status != DM_OK) {
        (void)unlink(partial);
    }
    free(partial);
    return status;
}

dm_status dm_array_save(dm_session *session, dm_array a, const char *path)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !path) {
        status = dmi_fail(DM_ERR_ARG, "save: path is NULL");
    }
    if (status == DM_OK && s->explaining) {
        status = dmi_fail(DM_ERR_STATE, "save: not while explaining");
    }
    if (status != DM_OK || (status = dmi_handle_find(s, a, "save: a", &h)) != DM_OK) {
        return status;
    }
    struct stat there; /* a device, a pipe or a directory is not to be replaced by a file */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return dmi_fail(DM_ERR_IO, "save: %s is there and is not a regular file", path);
    }
    /* What a symbolic link points to is written, not the link. Other paths stay as they were given: folders may have
     * another real name on the workers' hosts. */
    bool link = lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
    char *target = link ? realpath(path, NULL) : NULL;
    if (link && !target) {
        return dmi_fail(DM_ERR_IO, "save: %s is a symbolic link to nothing: %s", path, strerror(errno));
    }
    status = save_to(session, a, h, s->command, target ? target : path);
    free(target);
    return status;
}

dm_status dmi_save_check(dmi_call *call)
{
    (void)call;
    return DM_OK;
}

dm_status dmi_save_plan(dmi_builder *b, const dmi_call *call)
{
    if (b->me >= b->profile->workers || dmi_layout_replica(call->operand[0].desc.layout, b->me) != 0) {
        return DM_OK;
    }
    return dmi_plan_file(b, call, &(dmi_file_plan){.data_offset = call->args.i[0]});
}
