/* Bring: fetch, with memory for what is not in place. */
#include "plan/bring.h"

void dmi_plan_bring(dmi_builder *b, dmi_bring *bring, dmi_mark done)
{
    int64_t n = b->me < b->profile->workers ? bring->count(bring->context, b->me) : 0, missing = 0;
    bool *in_place = dmi_build_alloc(b, (size_t)n + 1), all = true;
    for (int64_t i = 0; i < n && in_place; i++) {
        dmi_region want;
        bring->want(bring->context, b->me, i, &want);
        in_place[i] = want.count == 0 || dmi_fetch_in_place(bring->x, b->me, &want);
        missing += want.count; /* fetch gives each its place */
        all = all && in_place[i];
    }
    bring->received = bring->source;
    bring->placed = 0;
    if (!all) {
        bring->received =
            dmi_ref_work(dmi_build_work(b, missing * dmi_dtype_bytes(bring->x->dtype)), DMI_WRITE);
    }
    dmi_fetch fetch = {.src = bring->x,
                       .src_ref = bring->source,
                       .dst_dtype = bring->x->dtype,
                       .dst_ref = bring->received,
                       .count = bring->count,
                       .want = bring->want,
                       .context = bring->context,
                       .dense = true,
                       .skip = in_place};
    dmi_plan_fetch(b, &fetch, NULL, done);
    bring->received.mode = DMI_READ;
}

dmi_ref dmi_bring_region(dmi_bring *bring, int me, int64_t which, dmi_region *out)
{
    bring->want(bring->context, me, which, out);
    bool here = out->count == 0 || dmi_fetch_in_place(bring->x, me, out);
    if (!here) {
        dmi_region_dense(out, bring->placed);
    }
    bring->placed += out->count;
    return here ? bring->source : bring->received;
}

int64_t dmi_bring_missing(const dmi_bring *bring, int worker)
{
    int64_t missing = 0, wants = bring->count(bring->context, worker),
            gives = dmi_desc_region_count(bring->x, worker);
    for (int64_t i = 0; i < wants; i++) {
        dmi_region want, have;
        bring->want(bring->context, worker, i, &want);
        missing += want.count;
        for (int64_t j = want.count > 0 ? -1 : gives;
             (j = dmi_desc_region_next(bring->x, worker, &want, j)) < gives;) {
            int64_t overlap = 1;
            dmi_desc_region(bring->x, worker, j, &have);
            for (int d = 0; d < want.ndim; d++) {
                overlap *= dmi_dimset_overlap(&have.dim[d], &want.dim[d]);
            }
            missing -= overlap;
        }
    }
    return missing;
}
