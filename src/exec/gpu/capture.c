/* Checks that a CUDA graph can hold the work of every step: no allocation, no wait, no query of the device.
 * Steps that are work of the host (files, user functions) are left out. */
#include "exec/gpu/parts.h"

#include <stdio.h>

dm_status dmi_gpu_work_begin(dmi_engine *e, int stream)
{
    if (!e->config.capture) {
        return DM_OK;
    }
    dm_status status = dmi_cu_capture_begin(e->gpu->stream[stream]);
    e->gpu->capturing = status == DM_OK;
    return status;
}

dm_status dmi_gpu_work_end(dmi_engine *e, int stream, const dmi_queued_step *w, dm_status status)
{
    char text[DMI_ERROR_TEXT] = "";
    if (!e->gpu->capturing) {
        return status;
    }
    e->gpu->capturing = false;
    if (status != DM_OK) {
        snprintf(text, sizeof text, "%s", dmi_error_text());
    }
    dmi_graph *graph = NULL;
    dm_status run = dmi_cu_capture_end(e->gpu->stream[stream], &graph);
    run = run == DM_OK ? dmi_cu_graph_launch(graph, e->gpu->stream[stream]) : run;
    dmi_cu_graph_destroy(graph);
    if (status == DM_OK && run == DM_OK) {
        return DM_OK;
    }
    if (status == DM_OK) {
        snprintf(text, sizeof text, "%s", dmi_error_text());
    }
    return dmi_fail(status == DM_OK ? run : status, "capture of a %s step: %s", dmi_step_name(w->step->kind),
                    text);
}
