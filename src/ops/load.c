/* .npy -> array: every worker reads its own part. */
#include "io/file.h"
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

/* The file's elements as a region: all indices, strides of C or Fortran order. */
static void file_region(const dmi_desc *a, bool fortran, dmi_region *out)
{
    memset(out, 0, sizeof *out);
    out->ndim = a->ndim;
    int64_t stride = 1;
    for (int k = 0; k < a->ndim; k++) {
        int d = fortran ? k : a->ndim - 1 - k;
        out->dim[d] = dmi_dimset_interval(0, a->extent[d]);
        out->stride[d] = stride;
        stride *= a->extent[d];
    }
    out->count = stride;
}

typedef struct loading {
    dmi_builder *b;
    dmi_file_part part;
} loading;

static void load_part(void *context, const dmi_copy *geometry)
{
    loading *l = context;
    dmi_ref ref = dmi_ref_operand(0, DMI_WRITE);
    l->part.geometry = *geometry;
    dmi_build_kernel(l->b, DMI_STEP_FILE_READ, &l->part, sizeof l->part, &ref, 1, NULL);
}

dm_status dmi_load_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *a = &call->operand[0].desc;
    dmi_region file;
    file_region(a, call->args.i[1], &file);
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(a, b->me); i++) {
        dmi_region region;
        dmi_copy copy;
        loading l = {.b = b, .part = {.data_offset = call->args.i[0], .swap = call->args.i[2]}};
        dmi_desc_region(a, b->me, i, &region);
        if (region.count > 0 && dmi_region_copy(b, &file, &region, a->dtype, a->dtype, &copy)) {
            dmi_copy_split(b, &copy, b->profile->gpu ? b->profile->piece : INT64_MAX, load_part, &l);
        }
    }
    return DM_OK;
}
