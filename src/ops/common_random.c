/* Fills that an expression goes on with: temporaries of the elements' shape, which the plan fills first. */
#include "ops/common.h"

#include <string.h>

/* args.i[FIRST]: how many, and their type; then one each: its kind, and the number that is its seed */
enum { FIRST = 4, SHIFT = 8, LOW = (1 << SHIFT) - 1 };
_Static_assert((int)FIRST + 1 + (int)DMI_MAP_INPUTS <= (int)DMI_ARG_INTS,
               "the arguments of a call are too few");

void dmi_call_filled(dmi_call *call, int kind, int seed, dm_dtype dtype)
{
    call->args.i[FIRST] = 1 | (int)dtype << SHIFT;
    call->args.i[FIRST + 1] = kind | seed << SHIFT;
    call->seeds |= kind == DMI_FILL_UNIFORM || kind == DMI_FILL_NORMAL ? 1u << seed : 0;
}

int dmi_randoms_of(const dmi_call *call)
{
    return call->args.i[FIRST] & LOW;
}

static void fill(dmi_builder *b, int what, const dmi_value *value)
{
    const dmi_desc *x = value->desc;
    dmi_ref ref = value->ref;
    ref.mode = DMI_WRITE;
    for (int64_t i = 0; b->me < b->profile->workers && i < dmi_desc_region_count(x, b->me) && !b->failed; i++) {
        dmi_fill k = {.kind = what & LOW, .seed = 1 + (what >> SHIFT), .dtype = x->dtype};
        dmi_desc_region(x, b->me, i, &k.region);
        memcpy(k.shape, x->extent, sizeof k.shape);
        if (k.region.count > 0) {
            dmi_build_kernel(b, DMI_KERNEL_fill, &k, sizeof k, &ref, 1, NULL);
        }
    }
}

void dmi_plan_randoms(dmi_builder *b, const dmi_call *call, const dmi_desc *like, dmi_value *value)
{
    int count = dmi_randoms_of(call);
    dm_dtype dtype = (dm_dtype)(call->args.i[FIRST] >> SHIFT);
    dmi_desc *desc = count > 0 ? dmi_build_alloc(b, sizeof *desc) : NULL;
    if (!desc) {
        return; /* there are none, or b has failed */
    }
    *desc = *like;
    desc->dtype = dtype;
    int64_t elements = b->me < b->profile->workers ? dmi_layout_shard_count(like->layout, b->me) : 0;
    for (int i = 0; i < count; i++) {
        int work = dmi_build_work(b, elements * dmi_dtype_bytes(dtype));
        value[i] = (dmi_value){.desc = desc, .ref = dmi_ref_work(work, DMI_READ)};
        fill(b, call->args.i[FIRST + 1 + i], &value[i]);
    }
    dmi_build_phase(b);
}
