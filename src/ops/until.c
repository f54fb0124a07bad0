/* Is value >= below at every worker? Between runs of a program, on which all workers must agree: one worker
 * sends what it has to all others, so a value that is poisoned there is poisoned everywhere. With args.i[2]
 * there is no value: the first worker that asks puts its number 2 into its own element of `seen`. */
#include "ops/common.h"

#include "kernels/random/fill.h"

dm_status dmi_until_check(dmi_call *call)
{
    return dmi_fail(DM_ERR_INTERNAL, "%s: only workers call it", dmi_call_name(call));
}

/* The first worker that holds the element, and its place there. */
static int owner_of(const dmi_desc *value, int64_t *offset)
{
    for (int i = 0; i < value->layout->nworkers; i++) {
        int worker = value->layout->workers[i];
        for (int64_t k = 0; k < dmi_desc_region_count(value, worker); k++) {
            dmi_region region;
            dmi_desc_region(value, worker, k, &region);
            if (region.count > 0) {
                *offset = dmi_region_start(&region);
                return worker;
            }
        }
    }
    return -1;
}

/* The first worker that asks, and its element. Number 2 of the call is number 0 of the kernel. */
static int put_number(dmi_builder *b, const dmi_desc *seen, uint64_t members, int64_t *offset, dmi_mark put)
{
    int first = 0;
    while (!(members >> first % 64 & 1)) {
        first++;
    }
    if (b->me == first) {
        dmi_fill fill = {.kind = DMI_FILL_CONST, .dtype = seen->dtype, .shape = {1}};
        dmi_ref ref = dmi_ref_operand(1, DMI_WRITE);
        dmi_desc_region(seen, first, 0, &fill.region);
        *offset = dmi_region_start(&fill.region);
        dmi_step *step = dmi_build_kernel(b, DMI_KERNEL_fill, &fill, sizeof fill, &ref, 1, NULL);
        step->number = 2;
        dmi_mark_step(put, step);
    }
    return first;
}

dm_status dmi_until_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_desc *value = &call->operand[0].desc;
    dmi_copy element = {.src_dtype = value->dtype, .dst_dtype = value->dtype, .count = 1};
    dmi_within within = {.dtype = value->dtype};
    uint64_t members = (uint32_t)call->args.i[0] | (uint64_t)(uint32_t)call->args.i[1]
                                                       << 32; /* who asks: dmi_op_frame */
    bool number = call->args.i[2];
    dmi_mark put = {0};
    if (b->me >= b->profile->workers) {
        return DM_OK;
    }
    int owner =
        number ? put_number(b, value, members, &element.src_offset, put) : owner_of(value, &element.src_offset);
    if (b->me != owner) {
        dmi_mark arrived = {0};
        dmi_ref seen = dmi_ref_operand(1, DMI_WRITE);
        dmi_mark_step(arrived, dmi_build_expect(b, owner, seen, &element, NULL));
        seen.mode = DMI_READ;
        dmi_build_kernel(b, DMI_KERNEL_within, &within, sizeof within, &seen, 1, arrived);
        return DM_OK;
    }
    dmi_ref here = dmi_ref_operand(number, DMI_READ);
    for (int peer = 0; peer < b->profile->workers; peer++) {
        if (peer != owner && members >> peer % 64 & 1) {
            dmi_build_push(b, peer, here, &element, put);
        }
    }
    within.offset = element.src_offset;
    dmi_build_kernel(b, DMI_KERNEL_within, &within, sizeof within, &here, 1, put);
    return DM_OK;
}
