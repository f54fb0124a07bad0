/* array -> the caller's memory. Every worker of replica 0 pushes its shard to the master; where they do not
 * share an address space it passes through receive buffers that are used one after another. */
#include "ops/common_host.h"

#include <string.h>

enum { BUFFERS = 8 };

dm_status dm_array_read(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent, void *host,
                        int64_t ld)
{
    return dmi_host_transfer(session, DMI_OP_read, a, lo, extent, host, ld, 0);
}

dm_status dm_array_read_within(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent, void *host,
                               int64_t ld, double seconds)
{
    return seconds != seconds
               ? dmi_fail(DM_ERR_ARG, "array_read_within: seconds is NaN")
               : dmi_host_transfer(session, DMI_OP_read, a, lo, extent, host, ld, dmi_deadline(seconds));
}

dm_status dmi_read_check(dmi_call *call)
{
    return dmi_host_check(call);
}

typedef struct reading {
    dmi_builder *b;
    int worker; /* whose shard this is */
    int buffers[BUFFERS];
    dmi_mark free[BUFFERS]; /* when a buffer may be written again */
    int next;
} reading;

static void send_chunk(void *context, const dmi_copy *chunk)
{
    reading *r = context;
    dmi_copy packed = *chunk;
    if (!r->b->profile->one_space) {
        dmi_build_pack(r->b, chunk, &packed);
    }
    dmi_build_push(r->b, r->b->profile->workers, dmi_ref_operand(0, DMI_READ), &packed, NULL);
}

static void take_chunk(void *context, const dmi_copy *chunk)
{
    reading *r = context;
    if (r->b->profile->one_space) {
        dmi_build_expect(r->b, r->worker, dmi_ref_user(DMI_WRITE), chunk, NULL);
        return;
    }
    int buffer = r->next++ % BUFFERS;
    int64_t bytes = chunk->count * dmi_dtype_bytes(chunk->src_dtype);
    if (r->next <= BUFFERS) {
        r->buffers[buffer] = dmi_build_work(r->b, 0);
    }
    if (!r->b->failed) {
        int64_t *room = &r->b->plan->work_bytes[r->buffers[buffer]];
        *room = DMI_MAX(*room, bytes);
    }
    dmi_copy half;
    dmi_mark arrived = {0};
    dmi_ref refs[2] = {dmi_ref_work(r->buffers[buffer], DMI_WRITE), dmi_ref_user(DMI_WRITE)};
    dmi_build_pack(r->b, chunk, &half);
    dmi_mark_step(arrived, dmi_build_expect(r->b, r->worker, refs[0], &half, r->free[buffer]));
    dmi_build_unpack(r->b, chunk, &half);
    refs[0].mode = DMI_READ;
    memset(r->free[buffer], 0, sizeof r->free[buffer]);
    dmi_mark_step(r->free[buffer],
                  dmi_build_kernel(r->b, DMI_KERNEL_copy, &half, sizeof half, refs, 2, arrived));
}

static void walk(reading *r, const dmi_call *call, void (*each)(void *, const dmi_copy *))
{
    const dmi_desc *a = &call->operand[0].desc;
    dmi_region host;
    dmi_host_region(call, &host);
    for (int64_t i = 0; i < dmi_desc_region_count(a, r->worker); i++) {
        dmi_region region;
        dmi_copy copy;
        dmi_desc_region(a, r->worker, i, &region);
        if (region.count > 0 && dmi_region_copy(r->b, &region, &host, a->dtype, a->dtype, &copy)) {
            if (r->b->profile->one_space && !r->b->profile->gpu) {
                each(r, &copy);
            } else {
                dmi_copy_split(r->b, &copy, r->b->profile->chunk, each, r);
            }
        }
    }
}

dm_status dmi_read_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_layout *layout = call->operand[0].desc.layout;
    reading r = {.b = b, .worker = b->me};
    if (b->me < b->profile->workers) {
        if (dmi_layout_replica(layout, b->me) == 0) {
            walk(&r, call, send_chunk);
        }
        return DM_OK;
    }
    for (r.worker = 0; r.worker < b->profile->workers; r.worker++) {
        if (dmi_layout_replica(layout, r.worker) == 0) {
            walk(&r, call, take_chunk);
        }
    }
    return DM_OK;
}
