/* .npy -> array: every worker reads its own part. */
#include "io/npy.h"
#include "ops/common.h"

#include <string.h>

dm_status dm_array_load(dm_session *session, const char *path, const dm_layout *layout, dm_array *out)
{
    dmi_session *s;
    dmi_npy_info info;
    dm_array a;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!path || !out)) {
        status = dmi_fail(DM_ERR_ARG, "load: %s is NULL", path ? "out" : "path");
    }
    if (status == DM_OK && s->explaining) {
        status = dmi_fail(DM_ERR_STATE, "load: not while explaining");
    }
    if (status != DM_OK || (status = dmi_npy_read_header(path, &info)) != DM_OK ||
        (status = dm_array_create(session, info.dtype, info.ndim, info.shape, layout, &a)) != DM_OK) {
        return status;
    }
    dmi_call call = {.op = DMI_OP_load, .noperand = 1, .tail = path, .tail_bytes = (int64_t)strlen(path) + 1};
    call.args.i[0] = (int32_t)info.data_offset;
    call.args.i[1] = info.fortran_order;
    call.args.i[2] = info.big_endian;
    status = dmi_call_wait(session, &call, &a, NULL);
    if (status == DM_OK) {
        *out = a;
        return DM_OK;
    }
    char text[512];
    strncpy(text, dmi_error_text(), sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)!dm_array_destroy(session, a);
    return dmi_fail(status, "%s", text);
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
    return dmi_plan_file(b, call, &file);
}
