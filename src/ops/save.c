/* array -> .npy: every worker of replica 0 writes its own shard. */
#include "io/npy.h"
#include "io/partial.h"
#include "ops/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A save whose time is over: its file gets its name when the command is done. */
typedef struct saving {
    dmi_rest rest;
    dmi_partial partial;
    char target[];
} saving;

static dm_status end_saving(dmi_rest *rest, dm_status status)
{
    saving *own = (saving *)(void *)rest;
    status = status == DM_OK ? dmi_partial_finish(&own->partial, own->target) : DM_OK;
    status =
        status == DM_OK ? DM_OK : dmi_fail(status, "array_save: %s", dmi_error_text()); /* in another call */
    dmi_partial_end(&own->partial);
    free(own);
    return status;
}

/* From here on the file belongs to the session, unless there is no memory for that. */
static void finish_late(dmi_session *s, dmi_partial *partial, const char *path, uint64_t first)
{
    char text[2048];
    snprintf(text, sizeof text, "%s", dmi_error_text());
    saving *own = malloc(sizeof *own + strlen(path) + 1);
    if (own) {
        own->rest.first = first;
        own->rest.end = end_saving;
        own->partial = *partial;
        strcpy(own->target, path);
        dmi_rest_keep(s, &own->rest);
        *partial = (dmi_partial){.fd = -1};
    }
    (void)dmi_fail(DM_ERR_PENDING, "%s", text);
}

static dm_status save_to(dm_session *session, dmi_session *s, dm_array a, const dmi_desc *desc,
                         const char *path)
{
    char header[512];
    int64_t count = 1;
    for (int d = 0; d < desc->ndim; d++) {
        count *= desc->extent[d];
    }
    int bytes = dmi_npy_format(desc->dtype, desc->ndim, desc->extent, false, header);
    dmi_partial partial;
    dm_status status = dmi_partial_begin(path, header, bytes, bytes + count * dmi_dtype_bytes(desc->dtype), &partial);
    if (status == DM_OK) {
        dmi_call call = {.op = DMI_OP_save,
                         .noperand = 1,
                         .args = {.i = {bytes}},
                         .tail = partial.path,
                         .tail_bytes = (int64_t)strlen(partial.path) + 1};
        uint64_t before = dmi_session_facts(s).command;
        status = dmi_call_wait(session, &call, &a, NULL);
        if (status == DM_ERR_PENDING && dmi_session_facts(s).command != before) {
            finish_late(s, &partial, path, before + 1);
        }
    }
    status = status == DM_OK ? dmi_partial_finish(&partial, path) : status;
    dmi_partial_end(&partial);
    return status;
}

dm_status dm_array_save(dm_session *session, dm_array a, const char *path)
{
    dmi_session *s;
    dmi_handle *h = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!path || !path[0])) {
        status = dmi_fail(DM_ERR_ARG, "array_save: path is %s", path ? "empty" : "NULL");
    }
    if (status == DM_OK && dmi_session_facts(s).explaining) {
        status =
            dmi_fail(DM_ERR_STATE, "array_save: cannot be called between dm_explain_begin and dm_explain_end");
    }
    if (status != DM_OK || (status = dmi_handle_find(s, a, "a", &h)) != DM_OK) {
        return status;
    }
    char *target = NULL;
    status = dmi_partial_target(path, &target);
    status = status == DM_OK ? save_to(session, s, a, &h->desc, target) : status;
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
    bool parts = call->args.i[1] != 0; /* of a checkpoint, whose array is a copy that nothing else uses */
    b->plan->background = parts;
    return dmi_plan_file(b, call, &(dmi_file_plan){.data_offset = call->args.i[0], .first = parts, .last = INT64_MAX});
}
