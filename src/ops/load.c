/* .npy -> array: every worker reads its own shard. */
#include "io/folder.h"
#include "io/npy.h"
#include "ops/common.h"

#include <stdlib.h>
#include <string.h>

/* An array of the file's type. */
static dm_status load(dm_session *session, const char *path, const dmi_npy_info *info, const dm_layout *layout,
                      dm_array *out)
{
    dm_array a;
    char *there;
    dm_status status = dmi_folder_absolute(path, &there);
    if (status != DM_OK) {
        return status;
    }
    status = dm_array_create(session, info->dtype, info->ndim, info->shape, layout, &a);
    if (status != DM_OK) {
        free(there);
        return status;
    }
    dmi_call call = {.op = DMI_OP_load, .noperand = 1, .tail = there, .tail_bytes = (int64_t)strlen(there) + 1};
    call.args.i[0] = (int32_t)info->data_offset;
    call.args.i[1] = info->fortran_order;
    call.args.i[2] = info->big_endian;
    status = dmi_call_wait(session, &call, &a, NULL);
    free(there);
    if (status != DM_OK) {
        return dmi_array_release(session, a, status);
    }
    *out = a;
    return DM_OK;
}

dm_status dm_array_load(dm_session *session, const char *path, const dm_layout *layout, dm_array *out)
{
    return dm_array_load_as(session, path, 0, layout, out);
}

dm_status dm_array_load_as(dm_session *session, const char *path, dm_dtype dtype, const dm_layout *layout,
                           dm_array *out)
{
    dmi_session *s;
    dmi_npy_info info;
    dm_array loaded, converted;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!path || !out)) {
        status = dmi_fail(DM_ERR_ARG, "%s: %s is NULL", dmi_api_called(), path ? "out" : "path");
    }
    if (status == DM_OK && !path[0]) {
        status = dmi_fail(DM_ERR_ARG, "%s: path is empty", dmi_api_called());
    }
    if (status == DM_OK && dtype && !dmi_dtype_bytes(dtype)) {
        status = dmi_fail(DM_ERR_DTYPE, "%s: dtype %d is unknown", dmi_api_called(), (int)dtype);
    }
    if (status == DM_OK && dmi_session_facts(s).explaining) {
        status = dmi_fail(DM_ERR_STATE, "%s: not while explaining", dmi_api_called());
    }
    if (status != DM_OK || (status = dmi_npy_read_header(path, &info)) != DM_OK) {
        return status;
    }
    if (!dtype || dtype == info.dtype) {
        return load(session, path, &info, layout, out);
    }
    if ((status = load(session, path, &info, layout, &loaded)) != DM_OK) {
        return status;
    }
    status = dm_array_create(session, dtype, info.ndim, info.shape, layout, &converted);
    if (status == DM_OK && (status = dm_copy(session, loaded, converted)) != DM_OK) {
        status = dmi_array_release(session, converted, status);
    }
    status = dmi_array_release(session, loaded, status);
    if (status == DM_OK) {
        *out = converted;
    }
    return status;
}

dm_status dmi_load_check(dmi_call *call)
{
    (void)call;
    return DM_OK;
}

dm_status dmi_load_plan(dmi_builder *b, const dmi_call *call)
{
    dmi_file_plan file = {.reading = true, .data_offset = call->args.i[0]};
    file.fortran = call->args.i[1];
    file.swap = call->args.i[2];
    file.first = call->args.i[3]; /* of a checkpoint */
    file.last = call->args.i[4];
    return dmi_plan_file(b, call, &file);
}
