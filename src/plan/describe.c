/* Operands and plans in words, for error texts and explanations. */
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct writer {
    char *text;
    size_t room, at;
} writer;

static DMI_PRINTF(2, 3) void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->at, w->room - w->at, format, args);
    va_end(args);
    w->at = DMI_MIN(w->at + (size_t)DMI_MAX(n, 0), w->room - 1);
}

static void put_desc(writer *w, const dmi_desc *desc)
{
    const dmi_layout *l = desc->layout;
    put(w, "%s%s", dmi_dtype_name(desc->dtype), desc->ndim == 0 ? " scalar" : "");
    for (int d = 0; d < desc->ndim; d++) {
        put(w, "%c%" PRId64, d ? 'x' : ' ', desc->extent[d]);
    }
    if (l->kind == DMI_LAYOUT_EXPLICIT) {
        put(w, ", map of %" PRId64 " blocks", l->blocks);
        return;
    }
    for (int d = 0; d < desc->ndim; d++) {
        put(w, "%s%d", d ? "x" : " on ", l->grid[d]);
        if (l->order[d] == DMI_ORDER_CYCLIC) {
            put(w, " (blocks of %" PRId64 " in turn)", l->block[d]);
        }
    }
    if (l->replicas > 1) {
        put(w, ", %d copies", l->replicas);
    }
}

void dmi_desc_describe(const dmi_desc *desc, char *text, size_t room)
{
    writer w = {text, room, 0};
    put_desc(&w, desc);
}

void dmi_operand_describe(const char *name, const dmi_operand *operand, char *text, size_t room)
{
    int mode = operand->mode;
    writer w = {text, room, 0};
    put(&w, "%s: ", name);
    put_desc(&w, &operand->desc);
    put(&w, ", %s", mode == DMI_READ ? "read" : mode == DMI_WRITE ? "written" : mode ? "updated" : "not used");
}

void dmi_plan_describe(const dmi_plan *plan, char *text, size_t room)
{
    writer w = {text, room, 0};
    put(&w,
        "worker %d: steps %d sent %" PRId64 " received %" PRId64 " messages_sent %" PRId64
        " messages_received %" PRId64 " workspace %" PRId64 " flops %" PRId64,
        plan->me, plan->nstep, plan->bytes_sent, plan->bytes_received, plan->messages_sent,
        plan->messages_received, plan->workspace, plan->flops);
}
