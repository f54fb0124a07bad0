/* Bring: the regions of a source that this worker wants, used where they lie if it holds them, else in
 * workspace. */
#ifndef DMI_BRING_H
#define DMI_BRING_H

#include "plan/plan.h"

typedef struct dmi_bring {
    const dmi_desc *x;
    dmi_ref source; /* mode READ */
    /* As of dmi_fetch: regions in x's coordinates; their memory is set here. */
    int64_t (*count)(const void *context, int worker);
    void (*want)(const void *context, int worker, int64_t which, dmi_region *out);
    const void *context;
    dmi_ref received; /* workspace of the regions that are not in place, one after the other, each densely */
    int64_t placed;   /* elements of it that regions so far take */
} dmi_bring;
/* Makes the steps that bring the regions of all workers. The first five fields are set before. done: the mark
 * of their arrival. */
void dmi_plan_bring(dmi_builder *b, dmi_bring *bring, dmi_mark done);
/* Region `which` of this worker with its memory, and what that is an offset of. Call it for one region after
 * the other. */
dmi_ref dmi_bring_region(dmi_bring *bring, int me, int64_t which, dmi_region *out);
/* Elements that worker w wants and does not hold. */
int64_t dmi_bring_missing(const dmi_bring *bring, int worker);

#endif
