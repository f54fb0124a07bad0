/* Operands and plans in words, for error texts and explanations. */
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Of layouts that dmi_desc_describe gives one text. */
static void put_difference(writer *w, const dmi_layout *a, const dmi_layout *b)
{
    for (int d = 0; d < a->ndim; d++) {
        if (a->block[d] != b->block[d]) {
            put(w, "has blocks of %" PRId64 " along dim %d, not of %" PRId64, a->block[d], d, b->block[d]);
            return;
        }
    }
    for (int k = 0; k < a->nworkers; k++) {
        if (a->workers[k] != b->workers[k]) {
            put(w, "has a part on worker %d, not on worker %d", a->workers[k], b->workers[k]);
            return;
        }
    }
    for (int64_t k = 0; k < (a->kind == DMI_LAYOUT_EXPLICIT ? a->blocks : 0); k++) {
        if (a->map[k] != b->map[k]) {
            put(w, "has block %" PRId64 " on worker %d, not on worker %d", k, a->map[k], b->map[k]);
            return;
        }
    }
}

void dmi_desc_difference(const dmi_desc *a_desc, const dmi_desc *b_desc, char *text, size_t room)
{
    const dmi_layout *a = a_desc->layout, *b = b_desc->layout;
    const size_t dims = (size_t)a_desc->ndim * sizeof *a_desc->lo;
    writer w = {text, room, 0};
    text[0] = 0;
    if (a->kind != b->kind || a->nworkers != b->nworkers || a->replicas != b->replicas ||
        memcmp(a->grid, b->grid, sizeof a->grid) != 0 || memcmp(a->order, b->order, sizeof a->order) != 0) {
        return;
    }
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof a->shape) != 0) {
        put(&w, "is a part of an array of another shape");
    } else if (!dmi_layout_equal(a, b)) {
        put_difference(&w, a, b);
    } else if (memcmp(a_desc->lo, b_desc->lo, dims) != 0 || memcmp(a_desc->skip, b_desc->skip, dims) != 0) {
        put(&w, "is another part of such an array");
    }
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
