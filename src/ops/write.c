/* the caller's memory -> array. The master pushes every worker its shard, in every replica. GPU workers in the
 * caller's address space read large arrays by themselves, with several threads, as they read files. */
#include "io/file.h"
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

/* Each piece, of `most` bytes, that goes from the caller's memory to the worker's shard. */
static void walk(dmi_builder *b, const dmi_call *call, int worker, int64_t most,
                 void (*each)(void *, const dmi_copy *))
{
    const dmi_desc *a = &call->operand[0].desc;
    writing w = {b, worker};
    dmi_region host, region;
    dmi_copy copy;
    dmi_host_region(call, &host);
    for (int64_t i = 0; i < dmi_desc_region_count(a, worker); i++) {
        dmi_desc_region(a, worker, i, &region);
        if (region.count > 0 && dmi_region_copy(b, &host, &region, a->dtype, a->dtype, &copy)) {
            dmi_copy_split(b, &copy, most, each, &w);
        }
    }
}

static void read_range(void *context, const dmi_copy *geometry)
{
    dmi_builder *b = ((const writing *)context)->b;
    const dmi_ref refs[2] = {dmi_ref_operand(0, DMI_WRITE), dmi_ref_user(DMI_READ)};
    dmi_file_range range = {.geometry = *geometry};
    dmi_build_pack(b, geometry, &range.packed);
    dmi_build_unpack(b, geometry, &range.rest);
    dmi_build_kernel(b, DMI_KERNEL_user_read, &range, sizeof range, refs, 2, NULL);
}

/* Small arrays are pushed: that wakes no threads. */
static bool workers_read(const dmi_builder *b, const dmi_desc *a)
{
    enum { LEAST = 1 << 20 };
    int64_t bytes = dmi_dtype_bytes(a->dtype);
    for (int d = 0; d < a->ndim; d++) {
        bytes *= a->extent[d];
    }
    return b->profile->gpu && b->profile->one_space && bytes >= LEAST;
}

dm_status dmi_write_plan(dmi_builder *b, const dmi_call *call)
{
    const bool worker = b->me < b->profile->workers;
    const int64_t most = b->profile->gpu ? b->profile->chunk : INT64_MAX;
    if (workers_read(b, &call->operand[0].desc)) {
        if (worker) {
            dmi_build_channel(b, 1); /* not behind kernels that were called before */
            walk(b, call, b->me, b->profile->file_chunk, read_range);
            dmi_build_channel(b, 0);
        }
        return DM_OK;
    }
    if (worker) {
        walk(b, call, b->me, most, expect_or_push);
        return DM_OK;
    }
    for (int w = 0; w < b->profile->workers; w++) {
        walk(b, call, w, most, expect_or_push);
    }
    return DM_OK;
}
