/* the caller's memory -> array. The master pushes every worker its shard, in every replica. */
#include "ops/common_host.h"

dm_status dm_array_write(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                         const void *host, int64_t ld)
{
    return dmi_host_transfer(session, DMI_OP_write, a, lo, extent, (void *)(uintptr_t)host,
                             ld, 0); /* only read there */
}

dm_status dmi_write_check(dmi_call *call)
{
    return dmi_host_check(call);
}

typedef struct writing {
    dmi_builder *b;
    int worker;
} writing;

static void expect_or_push(void *context, const dmi_copy *chunk)
{
    const writing *w = context;
    dmi_builder *b = w->b;
    if (b->me == w->worker) {
        dmi_build_expect(b, b->profile->workers, dmi_ref_operand(0, DMI_WRITE), chunk, NULL);
        return;
    }
    dmi_copy packed = *chunk;
    if (b->profile->gpu) { /* the payload arrives in host memory and is unpacked on the device */
        dmi_build_pack(b, chunk, &packed);
    }
    dmi_build_push(b, w->worker, dmi_ref_user(DMI_READ), &packed, NULL);
}

static void walk(dmi_builder *b, const dmi_call *call, int worker)
{
    const dmi_desc *a = &call->operand[0].desc;
    writing w = {b, worker};
    dmi_region host;
    dmi_host_region(call, &host);
    for (int64_t i = 0; i < dmi_desc_region_count(a, worker); i++) {
        dmi_region region;
        dmi_copy copy;
        dmi_desc_region(a, worker, i, &region);
        if (region.count == 0 || !dmi_region_copy(b, &host, &region, a->dtype, a->dtype, &copy)) {
            continue;
        }
        dmi_copy_split(b, &copy, b->profile->gpu ? b->profile->chunk : INT64_MAX, expect_or_push, &w);
    }
}

dm_status dmi_write_plan(dmi_builder *b, const dmi_call *call)
{
    if (b->me < b->profile->workers) {
        walk(b, call, b->me);
        return DM_OK;
    }
    for (int w = 0; w < b->profile->workers; w++) {
        walk(b, call, w);
    }
    return DM_OK;
}
