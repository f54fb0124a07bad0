/* Ranges for a profiler (NVTX): of a command while it is planned and enqueued, of a step while it is put on its
 * stream. The profiler shows the device's work for a step below the step's range. */
#include "exec/gpu/parts.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_AN_OP = 1 + DMI_STEP_KINDS, NAMES = DMI_OPS * NAMES_AN_OP, NAME_BYTES = 32 };

void dmi_gpu_ranges_start(dmi_engine *e)
{
    char(*text)[NAME_BYTES] = malloc(NAMES * sizeof *text); /* more than a stack should have */
    const char **name = malloc(NAMES * sizeof *name);
    for (int i = 0; i < NAMES && text && name; i++) {
        const char *op = dmi_ops[i / NAMES_AN_OP].name;
        int kind = i % NAMES_AN_OP - 1;
        snprintf(text[i], NAME_BYTES, "%s%s%s", op, kind >= 0 ? " " : "",
                 kind >= 0 ? dmi_step_name(kind) : "");
        name[i] = text[i];
    }
    e->gpu->ranges = text && name ? dmi_cu_ranges_create("dmath", name, NAMES) : NULL;
    free(name);
    free(text);
}

void dmi_gpu_range_command(dmi_engine *e, int op, uint64_t command)
{
    if (e->gpu->ranges) {
        dmi_cu_range_push(e->gpu->ranges, op * NAMES_AN_OP, command);
    }
}

void dmi_gpu_range_step(dmi_engine *e, const dmi_queued_step *w)
{
    if (e->gpu->ranges) {
        dmi_cu_range_push(e->gpu->ranges, w->inst->op * NAMES_AN_OP + 1 + w->step->kind, w->inst->command);
    }
}

void dmi_gpu_range_end(dmi_engine *e)
{
    if (e->gpu->ranges) {
        dmi_cu_range_pop(e->gpu->ranges);
    }
}
