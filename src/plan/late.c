/* Kernel steps delayed to the end of a round. */
#include "plan/plan.h"

#include <string.h>

typedef struct dmi_late_step {
    int kernel;
    const void *desc;
    size_t size;
    dmi_ref refs[2];
    dmi_mark after;
    struct dmi_late_step *next;
} late_step;

void dmi_late_kernel(dmi_builder *b, dmi_late *late, int kernel, const void *desc, size_t size,
                     const dmi_ref refs[2], const dmi_mark after)
{
    late_step *step = dmi_build_alloc(b, sizeof *step);
    void *kept = dmi_build_alloc(b, size);
    if (!step || !kept) {
        return;
    }
    memcpy(kept, desc, size);
    *step = (late_step){.kernel = kernel, .desc = kept, .size = size, .refs = {refs[0], refs[1]}};
    dmi_mark_merge(step->after, after);
    if (late->last) {
        late->last->next = step;
    } else {
        late->first = step;
    }
    late->last = step;
}

void dmi_late_make(dmi_builder *b, dmi_late *late, dmi_mark done)
{
    for (const late_step *s = late->first; s; s = s->next) {
        dmi_mark_step(done, dmi_build_kernel(b, s->kernel, s->desc, s->size, s->refs, 2, s->after));
    }
    *late = (dmi_late){0};
}
