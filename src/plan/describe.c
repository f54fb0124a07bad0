/* Operands in words, for error texts. */
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

void dmi_desc_describe(const dmi_desc *desc, char *text, size_t room)
{
    const dmi_layout *l = desc->layout;
    writer w = {text, room, 0};
    put(&w, "%s%s", dmi_dtype_name(desc->dtype), desc->ndim == 0 ? " scalar" : "");
    for (int d = 0; d < desc->ndim; d++) {
        put(&w, "%c%" PRId64, d ? 'x' : ' ', desc->extent[d]);
    }
    if (l->kind == DMI_LAYOUT_EXPLICIT) {
        put(&w, ", map of %" PRId64 " blocks", l->blocks);
        return;
    }
    for (int d = 0; d < desc->ndim; d++) {
        put(&w, "%s%d", d ? "x" : " on ", l->grid[d]);
        if (l->order[d] == DMI_ORDER_CYCLIC) {
            put(&w, " (blocks of %" PRId64 " in turn)", l->block[d]);
        }
    }
    if (l->replicas > 1) {
        put(&w, ", %d copies", l->replicas);
    }
}
